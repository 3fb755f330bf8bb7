//! How well a trained method gives tiles back.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use terrane_codec::Normalisation;
use terrane_networks::field::OVERLAP;
use terrane_networks::methods::{Method, MethodConfig, Model, Overlap, Precision};

use crate::config::Config;
use crate::data::Dataset;
use crate::measure::{
    self, Derivatives, SeamMeasures, Summary, TileMeasures, measure, measure_analytic,
    measure_seams,
};
use crate::{Error, Result};

/// Tiles that go through the network at once.
const BATCH: usize = 8;

/// Measures of every tile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Numbers of the tiles in their dataset.
    pub tiles: Vec<usize>,
    /// Their measures; derivatives are analytic where the method has them.
    pub measures: Vec<TileMeasures>,
    /// Boundary and interior of patches, for methods with patches.
    pub seams: Vec<SeamMeasures>,
    /// The same after neighbouring patches were blended, as a file does; earlier evaluations have none.
    #[serde(default)]
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
    let mut evaluation = Evaluation::default();
    for numbers in tiles.chunks(BATCH) {
        let batch = Batch::load(config, dataset, numbers, device)?;
        let tokens = model.encode(batch.values.clone(), Precision::Full);
        evaluation.add(model, config, &batch, &tokens)?;
    }
    Ok(evaluation)
}

/// Some tiles of a dataset as a network sees them.
pub struct Batch {
    numbers: Vec<usize>,
    side: usize,
    /// Heights in metres, tile by tile.
    pub heights: Vec<Vec<f32>>,
    /// How the heights of each tile were normalised.
    pub maps: Vec<Normalisation>,
    /// Normalised heights `[batch, side, side]`.
    pub values: Tensor<3>,
}

impl Batch {
    /// Reads tiles and normalises them.
    pub fn load(
        config: &Config,
        dataset: &Dataset,
        numbers: &[usize],
        device: &Device,
    ) -> Result<Self> {
        let side = dataset.side();
        if side != config.method.side() {
            return Err(Error::TileSide {
                tiles: side,
                method: config.method.side(),
            });
        }
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
        let values = TensorData::new(values, [numbers.len(), side, side]);
        Ok(Self {
            numbers: numbers.to_vec(),
            side,
            heights,
            maps,
            values: Tensor::from_data(values, device),
        })
    }

    /// Factor from square errors of normalised heights to those of heights in [0, 1], for every tile: 1 where the
    /// minimum height is 0 and the maximum 1.
    pub fn square_units(&self) -> Vec<f32> {
        self.heights
            .iter()
            .zip(&self.maps)
            .map(|(tile, map)| (map.range_m / Normalisation::of(tile).range_m).powi(2))
            .collect()
    }
}

impl Evaluation {
    /// Decodes the tokens of tiles and adds their measures.
    pub fn add(
        &mut self,
        model: &Model,
        config: &Config,
        batch: &Batch,
        tokens: &Tensor<3>,
    ) -> Result<()> {
        let side = batch.side;
        let patch = match &config.method {
            MethodConfig::Huvr(method) => Some(method.patch),
            MethodConfig::HuvrSiren(method) => Some(method.patch),
            _ => None,
        };
        let output = numbers_of(model.decode(tokens.clone(), Precision::Full))?;
        let overlap: Vec<Option<Overlap>> = (0..batch.numbers.len())
            .map(|index| model.decode_overlapping(tokens.clone().narrow(0, index, 1), OVERLAP))
            .collect();
        let jet = match model.decode_jet(tokens.clone()) {
            Some(jet) => {
                let laplacian = numbers_of(jet.row_row + jet.column_column)?;
                Some((numbers_of(jet.row)?, numbers_of(jet.column)?, laplacian))
            }
            None => None,
        };
        self.tiles.extend(&batch.numbers);
        self.is_analytic = jet.is_some();
        let pixels = side * side;
        for (index, (reference, map)) in batch.heights.iter().zip(&batch.maps).enumerate() {
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
            self.measures.push(match &jet {
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
                self.seams
                    .push(measure_seams(reference, &decoded, side, side, patch)?);
                if let Some(overlap) = &overlap[index] {
                    let blended: Vec<f32> = overlap
                        .blend(side)
                        .iter()
                        .map(|&value| map.metres(value as f32))
                        .collect();
                    self.blended_seams
                        .push(measure_seams(reference, &blended, side, side, patch)?);
                }
            }
        }
        Ok(())
    }
}

/// The numbers of a tensor.
pub fn numbers_of<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    tensor
        .into_data()
        .convert::<f32>()
        .try_to_vec()
        .map_err(|error| Error::Device {
            reason: error.to_string(),
        })
}
