//! How well a trained method gives tiles back.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use terrane::field::RIM;
use terrane::methods::{Method, Model, Precision, Rims};

use crate::config::Config;
use crate::dataset::Dataset;
use crate::measure::{
    self, Derivatives, SeamMeasures, Summary, TileMeasures, measure, measure_analytic,
    measure_seams,
};
use crate::{Error, Result};

/// Tiles that go through the network at once.
const BATCH: usize = 8;

/// Measures of every tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Numbers of the tiles in their dataset.
    pub tiles: Vec<usize>,
    /// Their measures; derivatives are analytic where the method has them.
    pub measures: Vec<TileMeasures>,
    /// Boundary and interior of patches, for methods with patches.
    pub seams: Vec<SeamMeasures>,
    /// The same after neighbouring patches were passed into each other, as a file does.
    pub blended_seams: Vec<SeamMeasures>,
    /// Whether the derivatives are analytic.
    pub is_analytic: bool,
}

impl Evaluation {
    /// The means over all tiles.
    pub fn summary(&self) -> Result<Summary> {
        Ok(measure::mean(&self.measures)?)
    }
}

/// Encodes and decodes tiles and measures them in metres.
pub fn evaluate(
    model: &Model,
    config: &Config,
    dataset: &Dataset,
    tiles: &[usize],
    device: &Device,
) -> Result<Evaluation> {
    let side = dataset.side();
    let patch = match &config.method {
        terrane::methods::MethodConfig::Huvr(method) => Some(method.patch),
        terrane::methods::MethodConfig::HuvrSiren(method) => Some(method.patch),
        _ => None,
    };
    let mut evaluation = Evaluation {
        tiles: tiles.to_vec(),
        measures: Vec::new(),
        seams: Vec::new(),
        blended_seams: Vec::new(),
        is_analytic: false,
    };
    for numbers in tiles.chunks(BATCH) {
        let heights: Vec<Vec<f32>> = numbers
            .iter()
            .map(|&number| dataset.heights(number))
            .collect::<Result<_>>()?;
        let maps: Vec<_> = heights
            .iter()
            .map(|tile| config.data.normalise.map(tile))
            .collect();
        let values: Vec<f32> = heights
            .iter()
            .zip(&maps)
            .flat_map(|(tile, map)| tile.iter().map(|&height| map.normalise(height)))
            .collect();
        let batch = Tensor::from_data(TensorData::new(values, [numbers.len(), side, side]), device);
        let tokens = model.encode(batch, Precision::Full);
        let output = numbers_of(model.decode(tokens.clone(), Precision::Full))?;
        let rims: Vec<Option<Rims>> = (0..numbers.len())
            .map(|index| model.decode_rims(tokens.clone().narrow(0, index, 1), RIM))
            .collect();
        let jet = match model.decode_jet(tokens) {
            Some(jet) => {
                let laplacian = numbers_of(jet.row_row + jet.column_column)?;
                Some((numbers_of(jet.row)?, numbers_of(jet.column)?, laplacian))
            }
            None => None,
        };
        evaluation.is_analytic = jet.is_some();
        let pixels = side * side;
        for (index, (reference, map)) in heights.iter().zip(&maps).enumerate() {
            let part = |values: &[f32]| -> Vec<f32> {
                values[index * pixels..(index + 1) * pixels].to_vec()
            };
            let scaled = |values: &[f32]| -> Vec<f32> {
                part(values)
                    .iter()
                    .map(|value| value * map.range_m)
                    .collect()
            };
            let decoded: Vec<f32> = part(&output)
                .iter()
                .map(|&value| map.metres(value))
                .collect();
            evaluation.measures.push(match &jet {
                Some((row, column, laplacian)) => {
                    let (row, column, laplacian) = (scaled(row), scaled(column), scaled(laplacian));
                    let derivatives = Derivatives {
                        gradient_y_m_per_px: &row,
                        gradient_x_m_per_px: &column,
                        laplacian_m_per_px2: &laplacian,
                    };
                    measure_analytic(reference, &decoded, derivatives, side, side)?
                }
                None => measure(reference, &decoded, side, side)?,
            });
            if let Some(patch) = patch {
                evaluation
                    .seams
                    .push(measure_seams(reference, &decoded, side, side, patch)?);
                if let Some(rims) = &rims[index] {
                    let blended: Vec<f32> = rims
                        .blend(side)
                        .iter()
                        .map(|&value| map.metres(value as f32))
                        .collect();
                    evaluation
                        .blended_seams
                        .push(measure_seams(reference, &blended, side, side, patch)?);
                }
            }
        }
    }
    Ok(evaluation)
}

fn numbers_of(tensor: Tensor<3>) -> Result<Vec<f32>> {
    tensor
        .into_data()
        .try_to_vec()
        .map_err(|error| Error::Device {
            reason: error.to_string(),
        })
}
