//! The paper's first table: four methods at stated schedules, with the envelope of the derivatives' errors.

use terrane_report::table::{Cell, Column, Table};

use super::paper;
use crate::Result;
use crate::runs::{Run, Runs, Variant};

/// Columns of quality that several tables share, ours and then the paper's.
pub(crate) fn quality_columns() -> Vec<Column> {
    vec![
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("gradient_rmse_m_per_px", "gradient m/px", 4),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian m/px²", 4),
        Column::new("paper_psnr_db", "paper: PSNR dB", 2),
        Column::new("paper_rmse_m", "paper: RMSE m", 4),
        Column::new("paper_gradient_rmse_m_per_px", "paper: gradient", 4),
        Column::new("paper_laplacian_rmse_m_per_px2", "paper: Laplacian", 4),
    ]
}

/// Their cells for a run.
pub(crate) fn quality(run: &Run) -> Vec<Cell> {
    let mean = &run.summary.mean;
    let paper = paper::row(&run.name);
    vec![
        mean.psnr_db.into(),
        mean.rmse_m.into(),
        mean.gradient_rmse_m_per_px.into(),
        mean.laplacian_rmse_m_per_px2.into(),
        paper.map(|row| row.psnr_db).into(),
        paper.map(|row| row.rmse_m).into(),
        paper.map(|row| row.gradient).into(),
        paper.map(|row| row.laplacian).into(),
    ]
}

/// What the tables of quality say of their columns.
pub(crate) const QUALITY_NOTE: &str = "Means over tiles; PSNR with a tile's own range as its peak. Derivatives are analytic for methods of sines, finite differences for the others, compared with central differences and the 5-point Laplacian of the source. The paper's values were measured on other data after longer trainings.";

/// The four methods.
pub(crate) fn headline(runs: &mut Runs) -> Result<Table> {
    let mut columns = vec![
        Column::new("method", "method", 0),
        Column::new("parameters", "parameters", 0),
        Column::new("steps_x_tiles", "steps × tiles", 0),
        Column::new("payload_floats", "floats per tile", 0),
        Column::new("fp32_bpp", "fp32 bpp", 3),
    ];
    columns.extend(quality_columns());
    let mut table = Table::new("headline", "Four methods", QUALITY_NOTE, columns);
    for &method in &runs.settings.methods {
        let run = runs.get(&Variant::plain(method))?;
        let account = run
            .config
            .method
            .account(terrane_networks::cost::Convention::AsRun);
        let mut cells: Vec<Cell> = vec![
            method.into(),
            account.parameters().into(),
            run.schedule().into(),
            account.payload_floats.into(),
            account.bits_per_pixel(32).into(),
        ];
        cells.extend(quality(&run));
        table.row(cells);
    }
    Ok(table)
}

/// How far derivatives err at worst.
pub(crate) fn envelope(runs: &mut Runs) -> Result<Table> {
    let note = "The paper's worst values (HUVR 4.73 and 5.77, HUVR+SIREN 3.79 and 4.67) can be read as the worst pixel or as the worst tile's mean; both are given. m/px and m/px².";
    let columns = vec![
        Column::new("method", "method", 0),
        Column::new("gradient_rmse_m_per_px", "gradient RMSE", 4),
        Column::new(
            "max_tile_gradient_error_m_per_px",
            "worst tile's mean gradient error",
            4,
        ),
        Column::new(
            "max_gradient_error_m_per_px",
            "worst pixel's gradient error",
            2,
        ),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian RMSE", 4),
        Column::new(
            "max_tile_laplacian_error_m_per_px2",
            "worst tile's mean Laplacian error",
            4,
        ),
        Column::new(
            "max_laplacian_error_m_per_px2",
            "worst pixel's Laplacian error",
            2,
        ),
        Column::new(
            "twice_laplacian_rmse_m_per_px2",
            "Laplacian RMSE, differences applied twice",
            4,
        ),
        Column::new("max_error_m", "worst height error m", 2),
    ];
    let mut table = Table::new(
        "derivatives",
        "Derivatives and their envelope",
        note,
        columns,
    );
    for &method in &runs.settings.methods {
        let run = runs.get(&Variant::plain(method))?;
        let (summary, mean) = (&run.summary, &run.summary.mean);
        table.row(vec![
            method.into(),
            mean.gradient_rmse_m_per_px.into(),
            summary.max_tile_gradient_error_m_per_px.into(),
            mean.max_gradient_error_m_per_px.into(),
            mean.laplacian_rmse_m_per_px2.into(),
            summary.max_tile_laplacian_error_m_per_px2.into(),
            mean.max_laplacian_error_m_per_px2.into(),
            mean.twice_laplacian_rmse_m_per_px2.into(),
            mean.max_error_m.into(),
        ]);
    }
    Ok(table)
}
