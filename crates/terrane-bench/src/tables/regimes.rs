//! Flat, hilly and rugged tiles apart, and what happens where patches meet.

use terrane_report::figure::{Axis, Figure, Scale, Series, Style, line_chart};
use terrane_report::table::{Column, Table};
use terrane_train::measure::{Regimes, mean, mean_seams, split_regimes};

use super::paper;
use crate::Result;
use crate::runs::{Run, Runs, Variant};

/// Runs whose seams are compared.
const SEAM_RUNS: [(&str, &[&str]); 5] = [
    ("huvr-siren", &[]),
    ("p8", &["method.patch=8"]),
    ("p32", &["method.patch=32"]),
    ("d16", &["method.bottleneck=16"]),
    ("d768", &["method.bottleneck=768"]),
];

/// Tiles in thirds by HUVR's error in the length of gradients.
pub(crate) fn thirds(runs: &mut Runs) -> Result<Regimes> {
    let huvr = runs.get(&Variant::plain("huvr"))?;
    let errors: Vec<f64> = huvr
        .evaluation
        .measures
        .iter()
        .map(|tile| tile.gradient_magnitude_error_m_per_px)
        .collect();
    Ok(split_regimes(&errors)?)
}

/// Quality by regime.
pub(crate) fn regimes(runs: &mut Runs) -> Result<Table> {
    let note = "The tiles of the split in thirds by HUVR's mean error in the length of the gradient, as in the paper, whose values were measured on other data.";
    let columns = vec![
        Column::new("method", "method", 0),
        Column::new("regime", "regime", 0),
        Column::new("tiles", "tiles", 0),
        Column::new("range_m", "mean range m", 1),
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("gradient_rmse_m_per_px", "gradient m/px", 4),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian m/px²", 4),
        Column::new("paper_psnr_db", "paper: PSNR dB", 2),
        Column::new("paper_rmse_m", "paper: RMSE m", 2),
    ];
    let mut table = Table::new("regimes", "Flat, hilly and rugged", note, columns);
    let thirds = thirds(runs)?;
    for &method in &runs.settings.methods {
        let run = runs.get(&Variant::plain(method))?;
        let paper = paper::REGIMES.iter().find(|(name, _)| *name == method);
        let parts = [
            ("flat", &thirds.flat),
            ("hilly", &thirds.hilly),
            ("rugged", &thirds.rugged),
        ];
        for (index, (name, tiles)) in parts.into_iter().enumerate() {
            let measures: Vec<_> = tiles
                .iter()
                .map(|&tile| run.evaluation.measures[tile])
                .collect();
            let mean = mean(&measures)?.mean;
            table.row(vec![
                method.into(),
                name.into(),
                tiles.len().into(),
                mean.range_m.into(),
                mean.psnr_db.into(),
                mean.rmse_m.into(),
                mean.gradient_rmse_m_per_px.into(),
                mean.laplacian_rmse_m_per_px2.into(),
                paper.map(|(_, values)| values[index][0]).into(),
                paper.map(|(_, values)| values[index][1]).into(),
            ]);
        }
    }
    Ok(table)
}

/// PSNR near the seams of patches and away from them.
pub(crate) fn boundary(runs: &mut Runs) -> Result<(Table, Figure)> {
    let note = "Boundary: within two pixels of a seam inside the tile. The last columns are the same after neighbouring patches were passed into each other, as a terrane file does.";
    let columns = vec![
        Column::new("run", "run", 0),
        Column::new("boundary_fraction", "share of boundary", 3),
        Column::new("boundary_psnr_db", "boundary dB", 2),
        Column::new("interior_psnr_db", "interior dB", 2),
        Column::new("gap_db", "gap dB", 2),
        Column::new("paper_gap_db", "paper: gap dB", 2),
        Column::new("blended_boundary_psnr_db", "in a file: boundary dB", 2),
        Column::new("blended_gap_db", "in a file: gap dB", 2),
    ];
    let mut table = Table::new("boundary", "Where patches meet", note, columns);
    let mut series = Vec::new();
    let variants = SEAM_RUNS
        .iter()
        .map(|(name, changes)| Variant::changed(name, changes));
    for variant in std::iter::once(Variant::plain("huvr")).chain(variants) {
        let run = runs.get(&variant)?;
        let plain = mean_seams(&run.evaluation.seams)?;
        let blended = match &run.evaluation.blended_seams[..] {
            [] => None,
            seams => Some(mean_seams(seams)?),
        };
        let paper = paper::SEAMS.iter().find(|(name, _)| *name == run.name);
        table.row(vec![
            run.name.as_str().into(),
            plain.boundary_fraction.into(),
            plain.boundary_psnr_db.into(),
            plain.interior_psnr_db.into(),
            plain.gap_db().into(),
            paper.map(|(_, gap)| *gap).into(),
            blended.map(|seams| seams.boundary_psnr_db).into(),
            blended.map(|seams| seams.gap_db()).into(),
        ]);
        series.push(scatter(&run));
    }
    let figure = line_chart(
        "boundary",
        "Where patches meet",
        "Every tile's PSNR near the seams against that away from them; below the diagonal seams are worse.",
        Axis {
            label: "interior PSNR, dB".into(),
            scale: Scale::Linear,
        },
        Axis {
            label: "boundary PSNR, dB".into(),
            scale: Scale::Linear,
        },
        &with_diagonal(series),
    );
    Ok((table, figure))
}

fn scatter(run: &Run) -> Series {
    let points = run
        .evaluation
        .seams
        .iter()
        .map(|seams| (seams.interior_psnr_db, seams.boundary_psnr_db));
    Series {
        name: run.name.clone(),
        points: points.collect(),
        style: Style::Points,
    }
}

fn with_diagonal(mut series: Vec<Series>) -> Vec<Series> {
    let all = || {
        series
            .iter()
            .flat_map(|series| &series.points)
            .flat_map(|&(x, y)| [x, y])
    };
    let (least, most) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    if least < most {
        series.push(Series {
            name: "equal".into(),
            points: vec![(least, least), (most, most)],
            style: Style::Dashed,
        });
    }
    series
}
