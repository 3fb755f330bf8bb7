//! The same networks on terrain of other kinds: other pixel sizes, countries and a planet they have not seen.

use std::collections::BTreeMap;

use terrane_report::figure::{Axis, Figure, Scale, Series, Style, line_chart};
use terrane_report::table::{Column, Table};
use terrane_train::evaluate::evaluate;
use terrane_train::measure::{TileMeasures, mean};

use crate::Result;
use crate::runs::{Runs, Variant};

/// Tiles of one source that are measured at most, spread over it: large rasters would drown small ones.
const MAX_TILES: usize = 4;

/// Quality by source on a split that was not trained on.
pub(crate) fn cross_source(runs: &mut Runs, split: &str) -> Result<(Vec<Table>, Figure)> {
    let note = format!(
        "Tiles of the split \"{split}\", at most {MAX_TILES} of each raster, spread over it. No raster of it was in the training."
    );
    let tiles = spread(runs, split);
    let mut tables = [
        (
            "cross-source",
            "Terrain of other kinds, by raster",
            "raster",
        ),
        (
            "cross-resolution",
            "Terrain of other kinds, by pixel size",
            "pixel size m",
        ),
        (
            "cross-country",
            "Terrain of other kinds, by country",
            "country",
        ),
    ]
    .map(|(name, title, group)| Table::new(name, title, &note, columns(group)));
    let mut curves = Vec::new();
    for &method in &runs.settings.methods {
        let run = runs.get(&Variant::plain(method))?;
        let Some(model) = run.model(runs.device, runs.settings.memory)? else {
            continue;
        };
        runs.report(&format!("{method} on {split}"), 0, 1);
        let evaluation = evaluate(&model, &run.config, runs.dataset, &tiles, runs.device)?;
        let mut groups: [BTreeMap<Key, Vec<TileMeasures>>; 3] = Default::default();
        for (&tile, measures) in tiles.iter().zip(&evaluation.measures) {
            let source = runs.dataset.source(tile);
            let country = if source.country.is_empty() {
                "not stated"
            } else {
                &source.country
            };
            let size = Key {
                number: (source.resolution_m * 1e3) as u64,
                text: format!("{}", source.resolution_m),
            };
            for (group, key) in
                groups
                    .iter_mut()
                    .zip([Key::text(&source.file), size, Key::text(country)])
            {
                group.entry(key).or_default().push(*measures);
            }
        }
        for (table, group) in tables.iter_mut().zip(&groups) {
            for (key, measures) in group {
                let mean = mean(measures)?.mean;
                table.row(vec![
                    method.into(),
                    key.text.as_str().into(),
                    measures.len().into(),
                    mean.range_m.into(),
                    mean.psnr_db.into(),
                    mean.rmse_m.into(),
                    (mean.rmse_m / mean.range_m).into(),
                    mean.gradient_rmse_m_per_px.into(),
                    mean.laplacian_rmse_m_per_px2.into(),
                ]);
            }
        }
        let points: Vec<(f64, f64)> = groups[1]
            .iter()
            .map(|(key, measures)| Ok((key.number as f64 / 1e3, mean(measures)?.mean.psnr_db)))
            .collect::<Result<_>>()?;
        curves.push(Series {
            name: method.into(),
            points,
            style: Style::LinePoints,
        });
    }
    let figure = line_chart(
        "cross-resolution",
        "Quality and pixel size",
        "PSNR on rasters of other pixel sizes than those of the training.",
        Axis {
            label: "pixel size, m".into(),
            scale: Scale::Logarithmic,
        },
        Axis {
            label: "PSNR, dB".into(),
            scale: Scale::Linear,
        },
        &curves,
    );
    Ok((tables.into(), figure))
}

/// Some tiles of every source of a split.
fn spread(runs: &Runs, split: &str) -> Vec<usize> {
    let mut sources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for tile in runs.dataset.split(split) {
        let source = runs.dataset.tiles()[tile].source;
        sources.entry(source).or_default().push(tile);
    }
    let some = |tiles: &Vec<usize>| -> Vec<usize> {
        let every = tiles.len().div_ceil(MAX_TILES);
        tiles.iter().copied().step_by(every).collect()
    };
    sources.values().flat_map(some).collect()
}

/// Sorted by number and then by text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    number: u64,
    text: String,
}

impl Key {
    fn text(text: &str) -> Self {
        Self {
            number: 0,
            text: text.to_owned(),
        }
    }
}

fn columns(group: &str) -> Vec<Column> {
    vec![
        Column::new("method", "method", 0),
        Column::new("group", group, 0),
        Column::new("tiles", "tiles", 0),
        Column::new("range_m", "mean range m", 1),
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("rmse_of_range", "RMSE / range", 5),
        Column::new("gradient_rmse_m_per_px", "gradient m/px", 4),
        Column::new("laplacian_rmse_m_per_px2", "Laplacian m/px²", 4),
    ]
}
