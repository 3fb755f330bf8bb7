//! Tables and figures of the diagnostics.

use terrane_report::Section;
use terrane_report::figure::{Axis, Figure, Series, Style, line_chart};
use terrane_report::table::{Cell, Column, Table};
use terrane_train::measure::TileMeasures;

use super::Spectrum;
use super::fit::{Fitted, Freedom};
use super::linear::{Basis, Linear};
use super::siren::{SirenPoint, Sirens};
use super::tokens::{Heights, TokenStructure, Tokens};

/// Names of tokens as they are, and after what a decoder's first normalisation does to them.
const STORED: &str = "as stored";
const DECODED: &str = "as decoded";

impl Fitted {
    fn name(&self) -> &'static str {
        match self.freedom {
            Freedom::Tokens => "tokens",
            Freedom::TokensAndDecoder => "tokens and decoder",
        }
    }

    /// What was fitted, its curve and its gain.
    pub fn section(&self) -> Section {
        Section {
            heading: format!("Fitting {} to single tiles", self.name()),
            tables: vec![gap_table(&[self])],
            figures: vec![curve_figure(&[self])],
            ..Section::default()
        }
    }
}

/// What amortisation costs: each fit beside what the encoder gives for the same tiles.
fn gap_table(fits: &[&Fitted]) -> Table {
    let mut columns = vec![
        Column::new("optimised", "optimised per tile", 0),
        Column::new("numbers", "numbers", 0),
        Column::new("steps", "steps", 0),
        Column::new("tiles", "tiles", 0),
    ];
    columns.extend(measure_columns());
    columns.push(Column::new("gain_db", "gain dB", 2));
    columns.push(Column::new("seconds_per_tile", "s per tile", 1));
    let note = "Adam from what the encoder gives on each tile's own mean square error; the best of all steps counts.";
    let mut table = Table::new("gap", "The amortization gap", note, columns);
    for fit in fits {
        let tiles = fit.amortised.tiles;
        let mut first = vec![
            "nothing".into(),
            0_usize.into(),
            0_usize.into(),
            tiles.into(),
        ];
        first.extend(measure_cells(&fit.amortised.mean));
        first.extend([Cell::Missing, Cell::Missing]);
        table.row(first);
        let mut second = vec![
            fit.name().into(),
            fit.numbers.into(),
            fit.descent.steps.into(),
            tiles.into(),
        ];
        second.extend(measure_cells(&fit.fitted.mean));
        second.extend([fit.gap_db.into(), fit.seconds_per_tile.into()]);
        table.row(second);
    }
    table
}

/// PSNR over the steps of fits.
pub(crate) fn curve_figure(fits: &[&Fitted]) -> Figure {
    let series: Vec<Series> = fits
        .iter()
        .map(|fit| {
            let points = fit
                .curve
                .iter()
                .map(|point| (point.step as f64, point.psnr_db));
            Series::new(fit.name(), Style::Line, points.collect())
        })
        .collect();
    let caption = "Mean over tiles, each at its best so far; step 0 is what the encoder gives.";
    let (x, y) = (Axis::linear("steps"), Axis::linear("PSNR dB"));
    line_chart("fit-curve", "Fitting single tiles", caption, x, y, &series)
}

impl Basis {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PrincipalComponents => "principal components",
            Self::Cosines => "cosines",
        }
    }
}

impl Linear {
    /// What each basis holds, and its curve.
    pub fn section(&self) -> Section {
        let mut columns = vec![
            Column::new("basis", "basis", 0),
            Column::new("numbers", "numbers per patch", 0),
        ];
        columns.extend(measure_columns());
        columns.push(Column::new("seam_db", "seam dB", 2));
        let note = format!(
            "Patches of {0}×{0} pixels, projected on a fixed basis and not rounded; no network. Principal components are those of the patches of {1} training tiles, cosines take no training. Derivatives by finite differences on both sides.",
            self.patch, self.taught
        );
        let mut table = Table::new("bases", "What a linear basis holds", &note, columns);
        for held in &self.held {
            let mut row = vec![held.basis.name().into(), held.numbers.into()];
            row.extend(measure_cells(&held.summary.mean));
            row.push(held.seams.gap_db().into());
            table.row(row);
        }
        let series = [Basis::PrincipalComponents, Basis::Cosines].map(|basis| {
            let held = self.held.iter().filter(|held| held.basis == basis);
            let points = held.map(|held| (held.numbers as f64, held.summary.mean.psnr_db));
            Series::new(basis.name(), Style::LinePoints, points.collect())
        });
        Section {
            heading: "Without a network".into(),
            tables: vec![table],
            figures: vec![line_chart(
                "bases",
                "What a linear basis holds",
                "Mean PSNR of tiles by the numbers that each of their patches is projected on.",
                Axis::logarithmic("numbers per patch"),
                Axis::linear("PSNR dB"),
                &series,
            )],
            ..Section::default()
        }
    }
}

impl TokenStructure {
    /// Spectra, correlations and neighbours.
    pub fn section(&self) -> Section {
        Section {
            heading: "Structure of the tokens".into(),
            tables: vec![self.summary_table(), self.neighbour_table()],
            figures: vec![
                self.spectrum_figure(),
                self.correlation_figure(),
                self.scatter_figure(),
            ],
            ..Section::default()
        }
    }

    /// Every component and every dimension.
    pub fn details(&self) -> Section {
        Section {
            heading: "Components and dimensions".into(),
            tables: vec![self.spectrum_table(), self.correlation_table()],
            figures: Vec::new(),
            ..Section::default()
        }
    }

    /// Ranks, participation ratios and largest correlations.
    fn summary_table(&self) -> Table {
        let columns = vec![
            Column::new("tokens", "tokens", 0),
            Column::new("count", "count", 0),
            Column::new("dimensions", "dimensions", 0),
            Column::new("rank_95", "95 % rank", 0),
            Column::new("participation_ratio", "participation ratio", 2),
            Column::new("max_pearson_m", "max |ρ| metres", 3),
            Column::new("max_partial_m", "partial", 3),
            Column::new("max_pearson", "max |ρ| normalised", 3),
            Column::new("max_partial", "partial", 3),
        ];
        let note = "Correlations of single dimensions with the mean height of their patch; partial ones with its deviation and steepest slope held fixed. As decoded: centred and of unit deviation, which is what a decoder that starts with a normalisation sees.";
        let mut table = Table::new("tokens", "Tokens of patches", note, columns);
        let start = |name: &str, spectrum: &Spectrum| -> Vec<Cell> {
            vec![
                name.into(),
                self.tokens.into(),
                spectrum.eigenvalues.len().into(),
                spectrum.rank_95.into(),
                spectrum.participation_ratio.into(),
            ]
        };
        let mut row = start(STORED, &self.stored);
        for correlations in [&self.metres, &self.normalised] {
            row.extend([
                correlations.max_pearson.into(),
                correlations.max_partial.into(),
            ]);
        }
        table.row(row);
        if let Some(decoded) = &self.decoded {
            let mut row = start(DECODED, decoded);
            row.extend([const { Cell::Missing }; 4]);
            table.row(row);
        }
        table
    }

    /// Variances along the principal directions.
    fn spectrum_table(&self) -> Table {
        let columns = vec![
            Column::new("component", "component", 0),
            Column::new("share", "share", 4),
            Column::new("cumulative", "cumulative", 4),
            Column::new("decoded_share", "as decoded", 4),
            Column::new("decoded_cumulative", "cumulative", 4),
        ];
        let mut table = Table::new(
            "token-spectrum",
            "Principal components of tokens",
            "",
            columns,
        );
        let stored = explained_variance(&self.stored);
        let decoded = self
            .decoded
            .as_ref()
            .map(explained_variance)
            .unwrap_or_default();
        for (index, (share, sum)) in stored.iter().enumerate() {
            let other = decoded.get(index);
            table.row(vec![
                (index + 1).into(),
                (*share).into(),
                (*sum).into(),
                other.map(|(share, _)| *share).into(),
                other.map(|(_, sum)| *sum).into(),
            ]);
        }
        table
    }

    /// Correlations of every dimension.
    fn correlation_table(&self) -> Table {
        let columns = vec![
            Column::new("dimension", "dimension", 0),
            Column::new("pearson_m", "ρ metres", 3),
            Column::new("partial_m", "partial", 3),
            Column::new("pearson", "ρ normalised", 3),
            Column::new("partial", "partial", 3),
        ];
        let title = "Correlations of tokens with mean heights";
        let mut table = Table::new("token-correlations", title, "", columns);
        for dimension in 0..self.metres.pearson.len() {
            let mut row = vec![dimension.into()];
            for correlations in [&self.metres, &self.normalised] {
                row.push(correlations.pearson[dimension].into());
                row.push(correlations.partial[dimension].into());
            }
            table.row(row);
        }
        table
    }

    /// Agreement of neighbours.
    fn neighbour_table(&self) -> Table {
        let columns = vec![
            Column::new("heights", "heights", 0),
            Column::new("tokens", "tokens", 0),
            Column::new("pool", "patches", 0),
            Column::new("k", "k", 0),
            Column::new("fraction", "shared", 3),
            Column::new("chance", "by chance", 3),
        ];
        let note = "Share of a patch's k nearest neighbours in heights that are among its k nearest in tokens.";
        let mut table = Table::new("token-neighbours", "Neighbours of patches", note, columns);
        for kind in &self.neighbours {
            let heights = match kind.heights {
                Heights::Metres => "metres",
                Heights::Normalised => "normalised",
            };
            let tokens = match kind.tokens {
                Tokens::Stored => STORED,
                Tokens::Decoded => DECODED,
            };
            table.row(vec![
                heights.into(),
                tokens.into(),
                kind.pool.into(),
                kind.k.into(),
                kind.fraction.into(),
                kind.chance.into(),
            ]);
        }
        table
    }

    /// The spectrum on a logarithmic axis.
    fn spectrum_figure(&self) -> Figure {
        let line = |name: &str, spectrum: &Spectrum| {
            let fractions = explained_variance(spectrum).into_iter().enumerate();
            let points = fractions.map(|(index, (fraction, _))| ((index + 1) as f64, fraction));
            Series::new(name, Style::LinePoints, points.collect())
        };
        let mut series = vec![line(STORED, &self.stored)];
        series.extend(self.decoded.as_ref().map(|decoded| line(DECODED, decoded)));
        let caption = "Shares of the variance; as decoded after every token was centred and brought to unit deviation.";
        let (x, y) = (
            Axis::linear("component"),
            Axis::logarithmic("share of variance"),
        );
        let title = "Principal components of tokens";
        line_chart("token-spectrum", title, caption, x, y, &series)
    }

    /// Correlations without their signs.
    fn correlation_figure(&self) -> Figure {
        let line = |name: &str, values: &[f64]| {
            let values = values.iter().enumerate();
            let points = values.map(|(dimension, value)| (dimension as f64, value.abs()));
            Series::new(name, Style::Points, points.collect())
        };
        let series = [
            line("metres", &self.metres.pearson),
            line("metres, partial", &self.metres.partial),
            line("normalised", &self.normalised.pearson),
            line("normalised, partial", &self.normalised.partial),
        ];
        let caption = "Every dimension of the tokens with the mean height of their patch; partial: deviation and steepest slope of the patch held fixed.";
        let title = "Correlations of tokens with mean heights";
        let (x, y) = (Axis::linear("dimension"), Axis::linear("|ρ|"));
        line_chart("token-correlations", title, caption, x, y, &series)
    }

    /// The dimension that follows heights most.
    fn scatter_figure(&self) -> Figure {
        let points = self
            .samples
            .iter()
            .map(|&[mean, value]| (mean, value))
            .collect();
        let series = [Series::new("patches", Style::Points, points)];
        let caption = "Some patches, drawn at random.";
        let title = "The dimension that follows heights most";
        let (x, y) = (
            Axis::linear("mean height of the patch, m"),
            Axis::linear("token"),
        );
        line_chart("token-heights", title, caption, x, y, &series)
    }
}

impl Sirens {
    /// Tiles and the mean curve.
    pub fn section(&self) -> Section {
        Section {
            heading: "A network of sines for every tile".into(),
            tables: vec![self.table(), self.curve_table()],
            figures: vec![self.curve_figure()],
            ..Section::default()
        }
    }

    /// Every tile and the mean.
    pub(crate) fn table(&self) -> Table {
        let mut columns = vec![Column::new("tile", "tile", 0)];
        columns.extend(measure_columns());
        columns.push(Column::new("minutes", "minutes", 2));
        let note = format!(
            "{} hidden layers of {}, ω {}, {} weights ({:.1} bits per pixel), {} steps; derivatives are analytic.",
            self.options.layers,
            self.options.width,
            self.options.omega,
            self.weights,
            self.bits_per_pixel,
            self.options.descent.steps
        );
        let title = "Networks of sines fitted from scratch";
        let mut table = Table::new("siren", title, &note, columns);
        for siren in &self.tiles {
            let mut row = vec![siren.tile.to_string().into()];
            row.extend(measure_cells(&siren.measures));
            row.push(siren.minutes.into());
            table.row(row);
        }
        let mut row = vec!["mean".into()];
        row.extend(measure_cells(&self.mean.mean));
        row.push(self.minutes_per_tile.into());
        table.row(row);
        table
    }

    /// Means over tiles at the steps that were looked at.
    fn curve_table(&self) -> Table {
        let mut columns = vec![Column::new("step", "step", 0)];
        columns.extend(measure_columns());
        let mut table = Table::new("siren-curve", "Networks of sines over steps", "", columns);
        for point in &self.curve {
            let SirenPoint {
                step,
                psnr_db,
                rmse_m,
                gradient_rmse_m_per_px,
                laplacian_rmse_m_per_px2,
            } = *point;
            table.row(vec![
                step.into(),
                psnr_db.into(),
                rmse_m.into(),
                gradient_rmse_m_per_px.into(),
                laplacian_rmse_m_per_px2.into(),
            ]);
        }
        table
    }

    /// PSNR over steps, tile by tile and on average.
    pub(crate) fn curve_figure(&self) -> Figure {
        let line = |name: &str, style: Style, curve: &[SirenPoint]| {
            let points = curve.iter().map(|point| (point.step as f64, point.psnr_db));
            Series::new(name, style, points.collect())
        };
        let mut series = vec![line("mean", Style::Line, &self.curve)];
        if let [_, _, ..] = self.tiles[..] {
            let worst = self
                .tiles
                .iter()
                .min_by(|a, b| a.measures.psnr_db.total_cmp(&b.measures.psnr_db));
            let best = self
                .tiles
                .iter()
                .max_by(|a, b| a.measures.psnr_db.total_cmp(&b.measures.psnr_db));
            series.extend(worst.map(|siren| line("worst tile", Style::Dashed, &siren.curve)));
            series.extend(best.map(|siren| line("best tile", Style::Dashed, &siren.curve)));
        }
        let (x, y) = (Axis::linear("steps"), Axis::linear("PSNR dB"));
        line_chart(
            "siren-curve",
            "Networks of sines fitted from scratch",
            "",
            x,
            y,
            &series,
        )
    }
}

/// Fractions of the variance along every direction and their cumulative sums.
fn explained_variance(spectrum: &Spectrum) -> Vec<(f64, f64)> {
    let total: f64 = spectrum.eigenvalues.iter().sum();
    let mut sum = 0.0;
    let eigenvalues = spectrum.eigenvalues.iter();
    eigenvalues
        .map(|value| {
            sum += value / total;
            (value / total, sum)
        })
        .collect()
}

fn measure_columns() -> [Column; 4] {
    [
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("gradient_rmse_m_per_px", "gradient m/px", 4),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian m/px²", 4),
    ]
}

fn measure_cells(measures: &TileMeasures) -> [Cell; 4] {
    [
        measures.psnr_db.into(),
        measures.rmse_m.into(),
        measures.gradient_rmse_m_per_px.into(),
        measures.laplacian_rmse_m_per_px2.into(),
    ]
}
