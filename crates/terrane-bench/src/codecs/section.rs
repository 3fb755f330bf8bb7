//! The comparison in tables and figures.

use terrane_report::Section;
use terrane_report::figure::{Axis, Figure, Series, Style, line_chart};
use terrane_report::table::{Cell, Column, Table};

use super::codec::geometric;
use super::curve::{Curve, Errors, Mean};
use super::outcome::{Absent, Bounded};
use super::{BOUNDS_M, Comparison, LOSSLESS_STEP_M, RATES};
use crate::tables::paper::QUANTISED;

/// The PSNR whose rate is stated: the paper's tokens of eight bits, rounded.
const PAPER_PSNR_DB: f64 = 51.54;
/// The rate at which all errors stand in the first table: the paper's, rounded.
const PAPER_RATE: f64 = 0.82;
/// Bits of the paper's tokens in the last row.
const PAPER_BITS: u8 = 8;
/// Points of a line in a figure.
const LINE_POINTS: usize = 31;

/// Tables and figures of a comparison.
pub(super) fn section(comparison: &Comparison) -> Section {
    let mut curves: Vec<&Curve> = comparison.outcomes.curves.iter().collect();
    let rate = |curve: &Curve| curve.rate_at(PAPER_PSNR_DB).unwrap_or(f64::INFINITY);
    curves.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.codec.cmp(&b.codec)));
    Section {
        heading: "Codecs".to_owned(),
        paragraphs: vec![conventions(comparison), absent(&comparison.outcomes.absent)],
        tables: vec![
            rates(&curves),
            measures(&curves),
            bounds(comparison),
            lossless(comparison),
        ],
        figures: figures(&curves),
        ..Section::default()
    }
}

fn conventions(comparison: &Comparison) -> String {
    let flat = match comparison.flat {
        0 => String::new(),
        flat => format!(" ({flat} flat tiles were left out)"),
    };
    let versions: Vec<String> = comparison
        .outcomes
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let versions = match &versions[..] {
        [] => String::new(),
        versions => format!(" Run beside this program: {}.", versions.join(", ")),
    };
    let side = comparison.tiles[0].side;
    format!(
        "{} tiles of {side}×{side} pixels{flat}. Every tile is coded at a row of qualities; its curve is read at fixed rates \
         (PSNR and logarithms of errors linear in the logarithm of the rate), and the readings are averaged over tiles. A rate \
         that fewer than nine tiles in ten reach is not stated. The peak of the PSNR is the tile's range. Bytes are all that \
         a decoder needs for the tile: the stream with its head, 8 bytes for offset and scale where heights became integers, \
         16 bytes of the index of a COG, the whole record of our own codec. Gradients are central differences (one-sided at \
         the border), Laplacians 5-point, on both sides.{versions}",
        comparison.tiles.len(),
    )
}

/// Names what could not be run, grouped by why.
fn absent(absent: &[Absent]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for Absent { name, reason } in absent {
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    if groups.is_empty() {
        return "No codec is absent.".to_owned();
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|(reason, names)| format!("{} ({reason})", names.join("; ")))
        .collect();
    format!("Absent: {}.", groups.join("; "))
}

/// A number as part of a key: `0.125` is `0_125`.
fn key(number: f64) -> String {
    number.to_string().replace('.', "_")
}

fn rates(curves: &[&Curve]) -> Table {
    let mut columns = vec![Column::new("codec", "codec", 0)];
    for rate in RATES {
        let head = if rate == RATES[0] {
            format!("PSNR dB at {rate} bpp")
        } else {
            format!("{rate}")
        };
        columns.push(Column::new(
            &format!("psnr_at_{}_bpp_db", key(rate)),
            &head,
            2,
        ));
    }
    let at = key(PAPER_RATE);
    columns.extend([
        Column::new(
            &format!("rate_at_{}_db_bpp", key(PAPER_PSNR_DB)),
            &format!("bpp at {PAPER_PSNR_DB} dB"),
            3,
        ),
        Column::new(
            &format!("rmse_at_{at}_bpp_m"),
            &format!("at {PAPER_RATE}: RMSE m"),
            4,
        ),
        Column::new(
            &format!("gradient_rmse_at_{at}_bpp_m_per_px"),
            "gradient",
            4,
        ),
        Column::new(
            &format!("laplacian_rmse_at_{at}_bpp_m_per_px2"),
            "Laplacian",
            4,
        ),
        Column::new(&format!("max_error_at_{at}_bpp_m"), "max m", 3),
    ]);
    let mut table = Table::new(
        "codecs",
        "Rate and distortion of codecs",
        "In the order of the bits that they need for the paper's PSNR. The paper's row is of other, smoother tiles, \
         and its rate is a Shannon bound.",
        columns,
    );
    for curve in curves {
        let mut row: Vec<Cell> = vec![curve.codec.clone().into()];
        row.extend(RATES.map(|rate| curve.at(rate).map(|mean| mean.errors.psnr_db).into()));
        row.push(curve.rate_at(PAPER_PSNR_DB).into());
        let errors = curve.at(PAPER_RATE).map(|mean| mean.errors);
        row.extend(four(errors.as_ref()));
        table.row(row);
    }
    let paper = QUANTISED.iter().find(|(bits, ..)| *bits == PAPER_BITS);
    if let Some(&(_, rate, psnr_db, rmse_m)) = paper {
        let mut row: Vec<Cell> = vec!["the paper's HUVR+SIREN, int8, on other data".into()];
        row.extend(RATES.map(|rate| Cell::from((rate == PAPER_RATE).then_some(psnr_db))));
        row.extend([rate, rmse_m].map(Cell::from));
        row.extend([Cell::Missing, Cell::Missing, Cell::Missing]);
        table.row(row);
    }
    table
}

/// Errors of heights, gradient and Laplacian, and the maximum.
fn four(errors: Option<&Errors>) -> [Cell; 4] {
    let values: [fn(&Errors) -> f64; 4] = [
        |errors| errors.rmse_m,
        |errors| errors.gradient_rmse_m_per_px,
        |errors| errors.laplacian_rmse_m_per_px2,
        |errors| errors.max_error_m,
    ];
    values.map(|value| errors.map(value).into())
}

/// Everything at every rate.
fn measures(curves: &[&Curve]) -> Table {
    let mut table = Table::new(
        "codecs-measures",
        "Every measure at every rate",
        "Means over the tiles that reach the rate.",
        vec![
            Column::new("codec", "codec", 0),
            Column::new("rate_bpp", "bpp", 3),
            Column::new("tiles", "tiles", 0),
            Column::new("psnr_db", "PSNR dB", 2),
            Column::new("psnr_sd_db", "sd dB", 2),
            Column::new("rmse_m", "RMSE m", 4),
            Column::new("gradient_rmse_m_per_px", "gradient", 4),
            Column::new("laplacian_rmse_m_per_px2", "Laplacian", 4),
            Column::new("max_error_m", "max m", 3),
        ],
    );
    for curve in curves {
        for mean in RATES.iter().filter_map(|&rate| curve.at(rate)) {
            let mut row: Vec<Cell> = vec![
                curve.codec.clone().into(),
                mean.bpp.into(),
                mean.tiles.into(),
                mean.errors.psnr_db.into(),
                mean.psnr_sd_db.into(),
            ];
            row.extend(four(Some(&mean.errors)));
            table.row(row);
        }
    }
    table
}

fn bounds(comparison: &Comparison) -> Table {
    let mut columns = vec![Column::new("codec", "codec", 0)];
    for bound in BOUNDS_M {
        columns.push(Column::new(
            &format!("rate_within_{}_m_bpp", key(bound)),
            &format!("bpp within {bound} m"),
            3,
        ));
    }
    for bound in BOUNDS_M {
        columns.push(Column::new(
            &format!("rmse_within_{}_m_m", key(bound)),
            &format!("RMSE m within {bound} m"),
            4,
        ));
    }
    let mut table = Table::new(
        "codecs-bounds",
        "Bits per pixel for a maximum error at every pixel",
        "Checked on the decoded 32-bit heights; a codec that exceeds its own bound by rounding is given a smaller one.",
        columns,
    );
    let all = &comparison.outcomes.bounds;
    let of = |codec: &str, bound: f64| {
        let is_it = |held: &&Bounded| held.codec == codec && held.bound_m == bound;
        all.iter().find(is_it).and_then(Bounded::mean)
    };
    let mut names: Vec<&str> = Vec::new();
    for bounded in all {
        if !names.contains(&bounded.codec.as_str()) {
            names.push(&bounded.codec);
        }
    }
    let rate = |name: &&str| of(name, BOUNDS_M[0]).map_or(f64::INFINITY, |held| held.bpp);
    names.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    for name in names {
        let held = BOUNDS_M.map(|bound| of(name, bound));
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend(held.map(|held| held.map(|held| held.bpp).into()));
        row.extend(held.map(|held| held.map(|held| held.rmse_m).into()));
        table.row(row);
    }
    table
}

fn lossless(comparison: &Comparison) -> Table {
    let tiles = &comparison.tiles;
    let natural: Vec<bool> = tiles
        .iter()
        .map(|tile| {
            let rounded = tile.whole_steps(LOSSLESS_STEP_M);
            let mut pairs = rounded.zip(&tile.heights);
            pairs.all(|(steps, &height)| (steps * LOSSLESS_STEP_M) as f32 == height)
        })
        .collect();
    let count = natural.iter().filter(|&&is_natural| is_natural).count();
    let mut table = Table::new(
        "codecs-lossless",
        "Bits per pixel without loss, of heights in whole centimetres",
        "A codec that cannot code every tile has no mean.",
        vec![
            Column::new("codec", "codec", 0),
            Column::new(
                "rounded_bpp",
                &format!("all {} tiles, rounded to 1 cm", tiles.len()),
                3,
            ),
            Column::new(
                "natural_bpp",
                &format!("the {count} tiles that are in cm"),
                3,
            ),
        ],
    );
    let mean = |bytes: &[Option<usize>], is_wanted: &dyn Fn(usize) -> bool| {
        let wanted = bytes.iter().zip(tiles).enumerate();
        let wanted = wanted.filter(|(index, _)| is_wanted(*index));
        let rates = wanted.map(|(_, (bytes, tile))| bytes.map(|bytes| tile.bpp(bytes)));
        let rates: Vec<f64> = rates.collect::<Option<_>>()?;
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    };
    let mut rows: Vec<(&str, Option<f64>, Option<f64>)> = comparison
        .outcomes
        .lossless
        .iter()
        .map(|lossless| {
            let all = mean(&lossless.bytes, &|_| true);
            let natural = mean(&lossless.bytes, &|index| natural[index]);
            (lossless.codec.as_str(), all, natural)
        })
        .collect();
    rows.sort_by(|(_, a, _), (_, b, _)| {
        let rate = |rate: &Option<f64>| rate.unwrap_or(f64::INFINITY);
        rate(a).total_cmp(&rate(b))
    });
    for (name, all, natural) in rows {
        table.row(vec![name.into(), all.into(), natural.into()]);
    }
    table
}

/// Name and title of a chart, its upright axis and what stands on it.
type Chart = (&'static str, &'static str, Axis, fn(&Errors) -> f64);

fn figures(curves: &[&Curve]) -> Vec<Figure> {
    let rates = geometric(RATES[0], RATES[RATES.len() - 1], LINE_POINTS);
    let shown: Vec<(&str, Vec<Mean>)> = curves
        .iter()
        .filter(|curve| !curve.is_variant)
        .map(|curve| {
            let means = rates.iter().filter_map(|&rate| curve.at(rate));
            (curve.codec.as_str(), means.collect())
        })
        .filter(|(_, means): &(_, Vec<Mean>)| !means.is_empty())
        .collect();
    let charts: [Chart; 4] = [
        (
            "codecs-psnr",
            "Height: PSNR of codecs",
            Axis::linear("PSNR dB"),
            |errors| errors.psnr_db,
        ),
        (
            "codecs-gradient",
            "Gradient: error of codecs",
            Axis::logarithmic("gradient RMSE, m per pixel"),
            |errors| errors.gradient_rmse_m_per_px,
        ),
        (
            "codecs-laplacian",
            "Laplacian: error of codecs",
            Axis::logarithmic("Laplacian RMSE, m per pixel²"),
            |errors| errors.laplacian_rmse_m_per_px2,
        ),
        (
            "codecs-max-error",
            "Maximum error of codecs",
            Axis::logarithmic("maximum error of a tile, m"),
            |errors| errors.max_error_m,
        ),
    ];
    let draw = |(name, title, y, value): Chart| {
        let line = |(codec, means): &(&str, Vec<Mean>)| {
            let points = means.iter().map(|mean| (mean.bpp, value(&mean.errors)));
            Series::new(codec, Style::Line, points.collect())
        };
        let lines: Vec<Series> = shown.iter().map(line).collect();
        let x = Axis::logarithmic("bits per pixel");
        let caption = "Means over tiles; lesser variants of a codec are in the tables only.";
        line_chart(name, title, caption, x, y, &lines)
    };
    charts.map(draw).into()
}
