//! Reconstructions side by side: heights, gradients and Laplacians of a flat, a hilly and a rugged tile.

use burn::tensor::{Tensor, TensorData};
use terrane_networks::methods::{Method, Precision};
use terrane_report::figure::{Colours, Figure, Panel, PanelRow, panels};
use terrane_train::evaluate::numbers_of;

use super::regimes::thirds;
use crate::Result;
use crate::runs::{Runs, Variant};

/// Pictures of the middle tile of every regime, by all methods whose weights are here.
pub(crate) fn reconstructions(runs: &mut Runs) -> Result<Vec<Figure>> {
    let thirds = thirds(runs)?;
    let tiles = runs.tiles();
    let chosen = [
        ("flat", &thirds.flat),
        ("hilly", &thirds.hilly),
        ("rugged", &thirds.rugged),
    ];
    let mut figures = Vec::new();
    for (regime, part) in chosen {
        let tile = tiles[part[part.len() / 2]];
        let heights = runs.dataset.heights(tile)?;
        let mut surfaces = vec![("source".to_owned(), heights.clone())];
        for &method in &runs.settings.methods {
            let run = runs.get(&Variant::plain(method))?;
            if let Some(model) = run.model(runs.device, runs.settings.memory)? {
                let decoded = decode(runs, &model, &run.config, &heights)?;
                surfaces.push((method.to_owned(), decoded));
            }
        }
        if surfaces.len() > 1 {
            figures.push(figure(
                regime,
                &runs.dataset.source(tile).file,
                &surfaces,
                runs.dataset.side(),
            ));
        }
    }
    Ok(figures)
}

fn figure(regime: &str, file: &str, surfaces: &[(String, Vec<f32>)], side: usize) -> Figure {
    let row = |label: &str, unit: &str, colours: Colours, of: fn(&[f32], usize) -> Vec<f32>| {
        let panels = surfaces
            .iter()
            .map(|(name, heights)| Panel::new(name, side, side, of(heights, side)));
        PanelRow::new(label, unit, colours, panels.collect())
    };
    let rows = [
        row("height", "m", Colours::Sequential, |heights, _| {
            heights.to_vec()
        }),
        row("gradient", "m/px", Colours::Sequential, slopes),
        row("Laplacian", "m/px²", Colours::Diverging, laplacians),
    ];
    panels(
        &format!("reconstruction-{regime}"),
        &format!("A {regime} tile"),
        &format!(
            "The middle tile of its regime, from `{file}`. Gradients and Laplacians are differences of the heights shown."
        ),
        &rows,
    )
}

fn decode(
    runs: &Runs,
    model: &terrane_networks::methods::Model,
    config: &terrane_train::config::Config,
    heights: &[f32],
) -> Result<Vec<f32>> {
    let side = runs.dataset.side();
    let map = config.data.normalise.map(heights);
    let values: Vec<f32> = heights
        .iter()
        .map(|&height| map.normalise(height))
        .collect();
    let tile = Tensor::from_data(TensorData::new(values, [1, side, side]), runs.device);
    let tokens = model.encode(tile, Precision::Full);
    let output = numbers_of(model.decode(tokens, Precision::Full))?;
    Ok(output.iter().map(|&value| map.metres(value)).collect())
}

/// Values at all pixels, from those around each; along the border the pixel itself stands in for what is outside.
fn stencil(heights: &[f32], side: usize, of: impl Fn([f32; 5]) -> f32) -> Vec<f32> {
    let at = |row: usize, column: usize| heights[row.min(side - 1) * side + column.min(side - 1)];
    (0..side * side)
        .map(|index| {
            let (row, column) = (index / side, index % side);
            of([
                at(row, column),
                at(row.saturating_sub(1), column),
                at(row + 1, column),
                at(row, column.saturating_sub(1)),
                at(row, column + 1),
            ])
        })
        .collect()
}

fn slopes(heights: &[f32], side: usize) -> Vec<f32> {
    stencil(heights, side, |[_, up, down, left, right]| {
        ((down - up) / 2.0).hypot((right - left) / 2.0)
    })
}

fn laplacians(heights: &[f32], side: usize) -> Vec<f32> {
    stencil(heights, side, |[here, up, down, left, right]| {
        up + down + left + right - 4.0 * here
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_a_parabola() {
        let heights: Vec<f32> = (0..25)
            .map(|index| ((index % 5) as f32).powi(2) + 3.0 * (index / 5) as f32)
            .collect();
        let (slopes, laplacians) = (slopes(&heights, 5), laplacians(&heights, 5));
        assert!((slopes[12] - 5.0).abs() < 1e-6, "{}", slopes[12]);
        assert!((laplacians[12] - 2.0).abs() < 1e-6);
    }
}
