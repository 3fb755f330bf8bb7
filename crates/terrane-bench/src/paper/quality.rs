//! Errors of heights and their derivatives: the four methods, the ablation, regimes.

use terrane_networks::methods::MethodConfig;
use terrane_report::comparison::{Compared, Comparison};
use terrane_train::evaluate::Evaluation;
use terrane_train::measure::{TileMeasures, mean, split_regimes};

use super::evidence::Evidence;
use super::findings::Findings;
use super::number::{Measure, named, noted, why, why_if_less};
use super::storage::payload;
use crate::Result;
use crate::diagnose::linear::{Basis, Linear};
use crate::runs::methods;
use crate::tables::paper;

/// Which error it is, for the reasons that go with it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Psnr,
    Rmse,
    Gradient,
    Laplacian,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Psnr, Self::Rmse, Self::Gradient, Self::Laplacian];

    /// With so many digits of all but PSNR.
    pub(super) const fn measure(self, digits: usize) -> Measure {
        match self {
            Self::Psnr => Measure::psnr(2),
            Self::Rmse => Measure::error("RMSE of heights", "m", digits),
            Self::Gradient => Measure::error("RMSE of gradients", "m/px", digits),
            Self::Laplacian => Measure::error("RMSE of Laplacians", "m/px²", digits),
        }
    }

    pub(super) fn of_paper(self, row: &paper::PaperRow) -> f64 {
        match self {
            Self::Psnr => row.psnr_db,
            Self::Rmse => row.rmse_m,
            Self::Gradient => row.gradient,
            Self::Laplacian => row.laplacian,
        }
    }

    pub(super) fn of(self, run: &Evidence) -> f64 {
        let mean = &run.summary.mean;
        match self {
            Self::Psnr => mean.psnr_db,
            Self::Rmse => mean.rmse_m,
            Self::Gradient => mean.gradient_rmse_m_per_px,
            Self::Laplacian => mean.laplacian_rmse_m_per_px2,
        }
    }
}

/// A method whose error is by this factor above the Laplacian of the ground puts in more than it misses.
const ADDS: f64 = 1.05;

/// The range that the paper's tiles have by its PSNR and RMSE.
fn paper_range_m(row: &paper::PaperRow) -> f64 {
    row.rmse_m * 10_f64.powf(row.psnr_db / 20.0)
}

impl Findings {
    /// What can be said of an error beside what was trained.
    fn of_kind(&self, kind: Kind, run: &Evidence) -> String {
        let Some(row) = paper::row(&run.row) else {
            return String::new();
        };
        match kind {
            Kind::Psnr => String::new(),
            Kind::Rmse => format!(
                "tiles of {:.1} m range in the mean, the paper's by its two figures of about {:.0} m",
                run.summary.mean.range_m,
                paper_range_m(&row)
            ),
            Kind::Gradient | Kind::Laplacian => match self.ground() {
                Some((_, ground, _)) if kind == Kind::Laplacian && kind.of(run) > ADDS * ground => {
                    "errs by more than the ground's own Laplacian: it adds roughness".to_owned()
                }
                Some((word, ..)) => format!("{word} ground"),
                None => String::new(),
            },
        }
    }

    /// How rough our ground is: Functa follows so little of the Laplacian that its error is nearly the Laplacian itself.
    fn ground(&self) -> Option<(&'static str, f64, f64)> {
        let ours = self.best("functa")?.summary.mean.laplacian_rmse_m_per_px2;
        let paper = paper::row("functa")?.laplacian;
        let word = if ours > paper { "rougher" } else { "smoother" };
        Some((word, ours, paper))
    }

    /// What the sections with derivatives say of the ground.
    fn ground_note(&self) -> String {
        self.ground().map_or_else(String::new, |(word, ours, paper)| {
            format!(
                "Our ground is {word}: Functa, which hardly follows the Laplacian, errs in it by {ours:.3} m/px² here and by {paper:.3} in the paper. The paper does not state its stencil; ours with differences applied twice stands beside each."
            )
        })
    }

    /// What linear bases hold of the tiles of HUVR+SIREN, in patches of its size, and how many numbers it has itself.
    fn without_network(&self) -> Option<(&Linear, &Evidence, usize)> {
        let run = self.best("huvr-siren")?;
        let MethodConfig::HuvrSiren(method) = &run.config.method else {
            return None;
        };
        let same = |linear: &&Linear| {
            let mut held = linear.held.iter();
            linear.patch == method.patch
                && held.all(|held| are_same_tiles(&held.evaluation, &run.evaluation))
        };
        let linear = self.linear.iter().find(same)?;
        Some((linear, run, method.bottleneck))
    }

    /// What as many numbers per patch hold without a network.
    fn same_numbers_note(&self) -> String {
        let Some((linear, run, numbers)) = self.without_network() else {
            return String::new();
        };
        let held = linear.held.iter().filter(|held| held.numbers == numbers);
        let held: Vec<String> = held
            .map(|held| {
                let mean = &held.summary.mean;
                format!(
                    "{} {:.2} dB, {:.4} m, {:.3} m/px and {:.3} m/px²",
                    held.basis.name(),
                    mean.psnr_db,
                    mean.rmse_m,
                    mean.gradient_rmse_m_per_px,
                    mean.laplacian_rmse_m_per_px2
                )
            })
            .collect();
        if held.is_empty() {
            return String::new();
        }
        format!(
            " Without a network, {numbers} numbers for each patch of {0}×{0} pixels, as many as HUVR+SIREN has, hold of the {1} tiles: {2} (`terrane diagnose linear`; the principal components are those of training patches, and derivatives are finite differences).",
            linear.patch,
            run.summary.tiles,
            held.join("; ")
        )
    }

    /// What other counts of numbers hold without a network.
    fn other_numbers_note(&self) -> String {
        let Some((linear, ..)) = self.without_network() else {
            return String::new();
        };
        let held = linear.held.iter();
        let held = held.filter(|held| held.basis == Basis::PrincipalComponents);
        let held: Vec<String> = held
            .map(|held| format!("{:.2} dB with {}", held.summary.mean.psnr_db, held.numbers))
            .collect();
        format!(
            " Without a network, principal components of patches of {0}×{0} pixels hold {1} numbers per patch.",
            linear.patch,
            held.join(", ")
        )
    }

    /// Errors of a row beside the paper's.
    pub(super) fn quality(
        &self,
        row: &str,
        run: Option<&Evidence>,
        kinds: &[Kind],
        digits: usize,
    ) -> Result<Vec<Compared>> {
        let Some(paper) = paper::row(row) else {
            return Ok(Vec::new());
        };
        let (missing, by) = (self.missing(row)?, self.source_of(run)?);
        let compare = |&kind: &Kind| {
            let why = match run {
                Some(run) => why(run, &self.of_kind(kind, run))?,
                None => missing.clone(),
            };
            let compared = kind.measure(digits).beside(
                &named(row),
                kind.of_paper(&paper),
                run.map(|run| kind.of(run)),
                &by,
                &why,
            );
            let twice = run.map(|run| run.summary.mean.twice_laplacian_rmse_m_per_px2);
            Ok(match twice.filter(|_| kind == Kind::Laplacian) {
                Some(twice) => noted(
                    compared,
                    &format!("{twice:.3} with differences applied twice"),
                ),
                None => compared,
            })
        };
        kinds.iter().map(compare).collect()
    }

    /// Table 1.
    pub(super) fn headline(&self) -> Result<Comparison> {
        const FLOATS: Measure = Measure::count("numbers per tile", "", 0);
        let mut rows = Vec::new();
        for method in methods() {
            rows.extend(self.quality(method, self.best(method), &Kind::ALL, 3)?);
            let floats = paper::PAYLOAD.iter().find(|(name, ..)| *name == method);
            let floats = floats.map_or(0, |(_, floats, _)| *floats);
            rows.push(payload(method, &FLOATS, floats as f64, |account| {
                account.payload_floats as f64
            })?);
        }
        let (ours, by, why) = match self.pair("huvr-siren", "huvr") {
            Some((run, huvr)) => (
                Some(Kind::Psnr.of(run) - Kind::Psnr.of(huvr)),
                format!("`{}` and `{}`, {}", run.place, huvr.place, run.schedule()),
                why_if_less(run, &self.other_gains(run))?,
            ),
            None => (
                None,
                String::new(),
                "not measured: no two runs of equal schedule".to_owned(),
            ),
        };
        rows.push(Measure::change("gain over HUVR (text)").beside(
            &named("huvr-siren"),
            paper::OVER_HUVR_DB,
            ours,
            &by,
            &why,
        ));
        rows.extend(self.against_huvr()?);
        Ok(Comparison {
            name: "headline".into(),
            place: "Table 1".into(),
            note: format!(
                "Means over tiles: {} test tiles in the paper. PSNR with a tile's own range as its peak; derivatives are analytic for methods of sines and finite differences for the others, compared with central differences and the 5-point Laplacian of the source. {}{}",
                paper::TEST_TILES,
                self.ground_note(),
                self.same_numbers_note()
            ),
            rows,
        })
    }

    /// Table 4.
    pub(super) fn ablation(&self) -> Result<Comparison> {
        const MEASURES: [Measure; 4] = [
            Measure::change("change of PSNR"),
            Measure::error_change("change of gradients", "m/px", 4),
            Measure::error_change("change of Laplacians", "m/px²", 4),
            Measure::change("change of PSNR, training tiles"),
        ];
        let height = [Kind::Psnr, Kind::Rmse];
        let mut rows = self.quality("huvr-siren", self.best("huvr-siren"), &height, 4)?;
        for (row, changes) in paper::CHANGES {
            let pair = self.pair(row, "huvr-siren");
            let run = pair.map(|(run, _)| run).or_else(|| self.best(row));
            rows.extend(self.quality(row, run, &height, 4)?);
            let kinds = [
                Some(Kind::Psnr),
                Some(Kind::Gradient),
                Some(Kind::Laplacian),
                None,
            ];
            for ((measure, paper), kind) in MEASURES.iter().zip(changes).zip(kinds) {
                let ours = pair.and_then(|(run, base)| match kind {
                    Some(kind) => Some(kind.of(run) - kind.of(base)),
                    None => Some(run.train?.mean.psnr_db - base.train?.mean.psnr_db),
                });
                let by = match pair {
                    Some((run, base)) => format!("against `{}`, {}", base.place, run.schedule()),
                    None => String::new(),
                };
                let why = match (run, kind) {
                    (None, _) => self.missing(row)?,
                    (Some(_), None) if ours.is_none() => "not measured: `eval-train.json` of both runs (`terrane eval RUN --split train --json`)".to_owned(),
                    (Some(_), _) if pair.is_none() => {
                        "not measured: no run without the change at the same size and schedule".to_owned()
                    }
                    (Some(run), Some(Kind::Gradient | Kind::Laplacian)) if row == "p8" => {
                        why(run, "sines can swing between the pixels of a small patch")?
                    }
                    (Some(run), _) => why(run, "")?,
                };
                let by = if ours.is_some() { by } else { String::new() };
                rows.push(measure.beside(&named(row), paper, ours, &by, &why));
            }
        }
        rows.extend(self.wider()?);
        Ok(Comparison {
            name: "ablation".into(),
            place: "Table 4".into(),
            note: format!(
                "Changes are those from HUVR+SIREN of the same size after the same schedule, which is the run after “against”; the paper's are those from its first row.{}",
                self.other_numbers_note()
            ),
            rows,
        })
    }

    /// Table 7.
    pub(super) fn derivatives(&self) -> Result<Comparison> {
        const GRADIENT: Measure = Measure::error("worst gradient error", "m/px", 2);
        const LAPLACIAN: Measure = Measure::error("worst Laplacian error", "m/px²", 2);
        let mut rows = Vec::new();
        for (method, [gradient, laplacian]) in paper::WORST {
            let run = self.best(method);
            rows.extend(self.quality(method, run, &Kind::ALL, 3)?);
            let by = self.source_of(run)?;
            let worst = |run: &Evidence, tile: f64| {
                let tile = format!(
                    "read as the worst pixel; the worst tile's mean, as the paper words it, is {tile:.2} here, far from what it prints"
                );
                why(run, &tile)
            };
            let (why_gradient, why_laplacian) = match run {
                Some(run) => (
                    worst(run, run.summary.max_tile_gradient_error_m_per_px)?,
                    worst(run, run.summary.max_tile_laplacian_error_m_per_px2)?,
                ),
                None => (self.missing(method)?, self.missing(method)?),
            };
            let ours = run.map(|run| run.summary.mean.max_gradient_error_m_per_px);
            rows.push(GRADIENT.beside(&named(method), gradient, ours, &by, &why_gradient));
            let ours = run.map(|run| run.summary.mean.max_laplacian_error_m_per_px2);
            rows.push(LAPLACIAN.beside(&named(method), laplacian, ours, &by, &why_laplacian));
        }
        rows.extend(self.worst_against_huvr()?);
        Ok(Comparison {
            name: "derivatives".into(),
            place: "Table 7".into(),
            note: self.ground_note(),
            rows,
        })
    }

    /// Table 9.
    pub(super) fn regimes(&self) -> Result<Comparison> {
        let thirds = match self.best("huvr") {
            Some(huvr) => {
                let errors = huvr.evaluation.measures.iter();
                let errors: Vec<f64> = errors
                    .map(|tile| tile.gradient_magnitude_error_m_per_px)
                    .collect();
                Some((huvr, split_regimes(&errors)?))
            }
            None => None,
        };
        let mut rows = Vec::new();
        for (method, values) in paper::REGIMES {
            let run = self.best(method);
            let beside = run.zip(thirds.as_ref());
            let same =
                beside.filter(|(run, (huvr, _))| are_same_tiles(&run.evaluation, &huvr.evaluation));
            for (index, regime) in ["flat", "hilly", "rugged"].into_iter().enumerate() {
                let third = match same {
                    Some((run, (_, thirds))) => {
                        let tiles = [&thirds.flat, &thirds.hilly, &thirds.rugged][index];
                        let measures = tiles.iter().map(|&tile| run.evaluation.measures[tile]);
                        Some(mean(&measures.collect::<Vec<TileMeasures>>())?.mean)
                    }
                    None => None,
                };
                let why = match (run, &third) {
                    (Some(run), Some(mean)) => why(
                        run,
                        &format!(
                            "the tiles of this third have a mean range of {:.1} m",
                            mean.range_m
                        ),
                    )?,
                    (Some(_), None) => {
                        "not measured: no run of HUVR on the same tiles, by which they are parted"
                            .to_owned()
                    }
                    (None, _) => self.missing(method)?,
                };
                let by = self.source_of(run.filter(|_| third.is_some()))?;
                let subject = format!("{}, {regime}", named(method));
                for (kind, paper) in [Kind::Psnr, Kind::Rmse].into_iter().zip(values[index]) {
                    let ours = third.map(|mean| match kind {
                        Kind::Psnr => mean.psnr_db,
                        _ => mean.rmse_m,
                    });
                    rows.push(kind.measure(2).beside(&subject, paper, ours, &by, &why));
                }
            }
        }
        Ok(Comparison {
            name: "regimes".into(),
            place: "Table 9".into(),
            note: "Thirds of the test tiles by HUVR's mean error in the length of the gradient; 144 tiles each in the paper.".into(),
            rows,
        })
    }

    /// Table 10.
    pub(super) fn absolute(&self) -> Result<Comparison> {
        let kinds = [Kind::Gradient, Kind::Laplacian];
        let mut rows = self.quality("huvr-siren", self.best("huvr-siren"), &kinds, 4)?;
        for (row, _) in paper::CHANGES {
            let run = self.pair(row, "huvr-siren").map(|(run, _)| run);
            rows.extend(self.quality(row, run.or_else(|| self.best(row)), &kinds, 4)?);
        }
        Ok(Comparison {
            name: "absolute".into(),
            place: "Table 10".into(),
            note: self.ground_note(),
            rows,
        })
    }
}

/// Whether two runs were measured on the same tiles: datasets may number them differently and round heights a little.
fn are_same_tiles(a: &Evaluation, b: &Evaluation) -> bool {
    let ranges = |evaluation: &Evaluation| -> Vec<f64> {
        let tiles = evaluation.measures.iter();
        tiles.map(|tile| tile.range_m).collect()
    };
    let (a, b) = (ranges(a), ranges(b));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.02;
    a.len() == b.len() && a.iter().zip(&b).all(near)
}
