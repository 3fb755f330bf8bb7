//! One change at a time: the twelve rows of the paper's ablation, and how much data it takes.

use terrane_report::figure::{Axis, Figure, Scale, Series, Style, bar_chart, line_chart};
use terrane_report::table::{Cell, Column, Table};

use super::headline::{QUALITY_NOTE, quality, quality_columns};
use super::paper;
use crate::Result;
use crate::runs::{Runs, Variant};

/// A row: its group, what it is called, its run, and what it changes.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const ROWS: [Row; 12] = [
    (
        "as the paper has it",
        "p 16, D 32, ω₀ 10, amplitude and shift",
        "huvr-siren",
        &[],
    ),
    ("patch", "p 8", "p8", &["method.patch=8"]),
    ("patch", "p 32", "p32", &["method.patch=32"]),
    ("bottleneck", "D 16", "d16", &["method.bottleneck=16"]),
    ("bottleneck", "D 128", "d128", &["method.bottleneck=128"]),
    ("bottleneck", "D 256", "d256", &["method.bottleneck=256"]),
    ("bottleneck", "D 768", "d768", &["method.bottleneck=768"]),
    ("frequency", "ω₀ 5", "omega5", &["method.omega=5.0"]),
    ("frequency", "ω₀ 30", "omega30", &["method.omega=30.0"]),
    (
        "modulation",
        "amplitude",
        "amplitude",
        &["method.modulation=\"amplitude\""],
    ),
    (
        "modulation",
        "shift",
        "shift",
        &["method.modulation=\"shift\""],
    ),
    (
        "modulation",
        "INCODE",
        "incode",
        &["method.modulation=\"incode\""],
    ),
];

/// Sizes of the training set; 0 is all of it.
const COUNTS: [usize; 4] = [64, 256, 1024, 0];

/// The runs of the ablation.
pub(crate) fn variants() -> Vec<Variant> {
    ROWS.iter()
        .map(|(_, _, name, changes)| Variant::changed(name, changes))
        .collect()
}

/// What a row of the ablation is called.
pub(crate) fn label(name: &str) -> Option<&'static str> {
    let row = ROWS.iter().find(|(_, _, run, _)| *run == name);
    row.map(|(_, label, ..)| *label)
}

/// The runs on fewer tiles, as they are.
pub(crate) fn unaugmented() -> Vec<Variant> {
    COUNTS.map(|count| scaled(count, false)).to_vec()
}

/// All rows of the ablation.
pub(crate) fn ablation(runs: &mut Runs) -> Result<(Table, Figure)> {
    let mut columns = vec![
        Column::new("change", "change", 0),
        Column::new("variant", "variant", 0),
        Column::new("steps_x_tiles", "steps × tiles", 0),
        Column::new("payload_floats", "floats per tile", 0),
        Column::new("fp32_bpp", "fp32 bpp", 3),
        Column::new("difference_db", "against the first row dB", 2),
        Column::new("paper_difference_db", "paper: against the first row dB", 2),
    ];
    columns.extend(quality_columns());
    let mut table = Table::new("ablation", "One change at a time", QUALITY_NOTE, columns);
    let (mut first, paper_first) = (None, paper::row("huvr-siren").map(|row| row.psnr_db));
    let mut groups: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for ((group, label, name, _), variant) in ROWS.iter().zip(variants()) {
        let run = runs.get(&variant)?;
        let account = run
            .config
            .method
            .account(terrane_networks::cost::Convention::AsRun);
        let psnr = run.summary.mean.psnr_db;
        let base = *first.get_or_insert(psnr);
        let paper = paper::row(name)
            .zip(paper_first)
            .map(|(row, first)| row.psnr_db - first);
        let mut cells: Vec<Cell> = vec![
            (*group).into(),
            (*label).into(),
            run.schedule().into(),
            account.payload_floats.into(),
            account.bits_per_pixel(32).into(),
            (psnr - base).into(),
            paper.into(),
        ];
        cells.extend(quality(&run));
        table.row(cells);
        if *name != "huvr-siren" {
            let bars = [("here", Some(psnr - base)), ("paper", paper)];
            let bars = bars
                .into_iter()
                .filter_map(|(who, value)| Some((who.to_owned(), value?)));
            groups.push(((*label).to_owned(), bars.collect()));
        }
    }
    let figure = bar_chart(
        "ablation",
        "One change at a time",
        "PSNR against the paper's configuration, ours and the paper's (on other data).",
        Axis {
            label: "difference in PSNR, dB".into(),
            scale: Scale::Linear,
        },
        &groups,
    );
    Ok((table, figure))
}

/// The same number of steps on fewer tiles, with and without turning and flipping them.
pub(crate) fn data_scaling(runs: &mut Runs) -> Result<(Table, Figure)> {
    let note = "The same number of steps for every row. Without augmentation the tiles also keep one order, as the paper has it. The paper's last row has 3338 tiles.";
    let columns = vec![
        Column::new("tiles", "training tiles", 0),
        Column::new("augmented", "augmented", 0),
        Column::new("steps_x_tiles", "steps × tiles", 0),
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("gradient_rmse_m_per_px", "gradient m/px", 4),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian m/px²", 4),
        Column::new("paper_psnr_db", "paper: PSNR dB", 2),
    ];
    let mut table = Table::new("data-scaling", "How much data it takes", note, columns);
    let all = runs.dataset.split("train").len();
    let mut curves: Vec<Series> = Vec::new();
    for augmented in [false, true] {
        let mut points = Vec::new();
        for (index, count) in COUNTS.into_iter().enumerate() {
            // A smaller dataset has fewer rows.
            if count >= all {
                continue;
            }
            let run = runs.get(&scaled(count, augmented))?;
            let (mean, tiles) = (&run.summary.mean, if count == 0 { all } else { count });
            let paper = (!augmented).then(|| paper::SCALING[index].1);
            table.row(vec![
                tiles.into(),
                (if augmented { "yes" } else { "no" }).into(),
                run.schedule().into(),
                mean.psnr_db.into(),
                mean.rmse_m.into(),
                mean.gradient_rmse_m_per_px.into(),
                mean.laplacian_rmse_m_per_px2.into(),
                paper.into(),
            ]);
            points.push((tiles as f64, mean.psnr_db));
        }
        let name = if augmented {
            "augmented"
        } else {
            "as they are"
        };
        curves.push(Series {
            name: name.into(),
            points,
            style: Style::LinePoints,
        });
    }
    curves.push(Series {
        name: "paper, as they are (other data)".into(),
        points: paper::SCALING
            .iter()
            .map(|&(tiles, psnr)| (tiles as f64, psnr))
            .collect(),
        style: Style::Dashed,
    });
    let figure = line_chart(
        "data-scaling",
        "How much data it takes",
        "PSNR on the test tiles after the same number of steps.",
        Axis {
            label: "training tiles".into(),
            scale: Scale::Logarithmic,
        },
        Axis {
            label: "PSNR, dB".into(),
            scale: Scale::Linear,
        },
        &curves,
    );
    Ok((table, figure))
}

fn scaled(count: usize, augmented: bool) -> Variant {
    let tiles = format!("data.tiles={count}");
    match (count, augmented) {
        (0, true) => Variant::plain("huvr-siren"),
        (0, false) => Variant::changed("nall", &["data.augment=false", "data.shuffle=false"]),
        (_, true) => Variant::changed(&format!("n{count}-augmented"), &[&tiles]),
        (_, false) => Variant::changed(
            &format!("n{count}"),
            &[&tiles, "data.augment=false", "data.shuffle=false"],
        ),
    }
}
