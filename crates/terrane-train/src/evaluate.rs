//! How well a trained method gives tiles back.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use terrane_codec::Normalisation;
use terrane_networks::field::OVERLAP;
use terrane_networks::methods::{Method, MethodConfig, Model, Overlap, Precision};

use crate::config::Config;
use crate::data::{Dataset, Source};
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
    /// The same with derivatives by differences of the decoded heights, as those of the reference are; earlier evaluations have none.
    #[serde(default)]
    pub by_differences: Vec<TileMeasures>,
    /// What the right heights measure with derivatives of 0, which is what the ground itself has of them: whose error is above that
    /// follows nothing of it. Earlier evaluations have none.
    #[serde(default)]
    pub zero: Vec<TileMeasures>,
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

    /// The means over the tiles of each raster, in the order in which they first appear.
    pub fn by_raster(&self, dataset: &Dataset) -> Result<Vec<RasterSummary>> {
        let mut rasters: Vec<(&Source, Vec<usize>)> = Vec::new();
        for (index, &tile) in self.tiles.iter().enumerate() {
            let source = dataset.source(tile);
            match rasters
                .iter_mut()
                .find(|(other, _)| other.file == source.file)
            {
                Some((_, tiles)) => tiles.push(index),
                None => rasters.push((source, vec![index])),
            }
        }
        let means = |(source, tiles): (&Source, Vec<usize>)| {
            let of = |measures: &[TileMeasures]| -> Result<Summary> {
                let own = tiles.iter().filter_map(|&index| measures.get(index));
                let measures: Vec<_> = own.copied().collect();
                Ok(measure::mean(&measures)?)
            };
            Ok(RasterSummary {
                raster: source.file.clone(),
                region: source.region.clone(),
                summary: of(&self.measures)?,
                by_differences: of(&self.by_differences)?,
                zero: of(&self.zero)?,
            })
        };
        rasters.into_iter().map(means).collect()
    }
}

/// The means over the tiles of a raster, each as [`Evaluation`] has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RasterSummary {
    /// Name of the file.
    pub raster: String,
    /// The region it shows.
    pub region: String,
    /// Derivatives are analytic where the method has them.
    pub summary: Summary,
    /// Derivatives are differences.
    pub by_differences: Summary,
    /// Derivatives are 0.
    pub zero: Summary,
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
            let with = |heights: &[f32], [row, column, laplacian]: [&[f32]; 3]| {
                let derivatives = Derivatives {
                    gradient_y_m_per_px: row,
                    gradient_x_m_per_px: column,
                    laplacian_m_per_px2: laplacian,
                };
                measure_analytic(reference, heights, derivatives, side, side)
            };
            let by_differences = measure(reference, &decoded, side, side)?;
            self.measures.push(match &jet {
                Some((row, column, laplacian)) => {
                    let (row, column, laplacian) = (scaled(row), scaled(column), scaled(laplacian));
                    with(&decoded, [&row, &column, &laplacian])?
                }
                None => by_differences,
            });
            self.by_differences.push(by_differences);
            let zero = vec![0.0_f32; pixels];
            self.zero.push(with(reference, [&zero, &zero, &zero])?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn derivatives_are_measured_in_both_conventions_and_beside_none() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = fixture::dataset(folder.path());
        let config = fixture::config(&[]);
        let device = Device::flex();
        let model = config.method.init(config.seed, &device);
        let tiles: Vec<usize> = (0..dataset.tiles().len()).collect();
        let evaluation = evaluate(&model, &config, &dataset, &tiles, &device).unwrap();
        assert!(evaluation.is_analytic);
        for (index, &tile) in tiles.iter().enumerate() {
            let (analytic, differences, zero) = (
                evaluation.measures[index],
                evaluation.by_differences[index],
                evaluation.zero[index],
            );
            assert_eq!(analytic.rmse_m, differences.rmse_m);
            assert_ne!(
                analytic.laplacian_rmse_m_per_px2,
                differences.laplacian_rmse_m_per_px2
            );
            // The ground's own slopes: those of a level plane, by differences.
            let heights = dataset.heights(tile).unwrap();
            let level = measure(&heights, &vec![0.0; heights.len()], 32, 32).unwrap();
            assert_eq!(zero.gradient_rmse_m_per_px, level.gradient_rmse_m_per_px);
            assert_eq!(
                zero.laplacian_rmse_m_per_px2,
                level.laplacian_rmse_m_per_px2
            );
        }
        let rasters = evaluation.by_raster(&dataset).unwrap();
        let names: Vec<_> = rasters
            .iter()
            .map(|raster| raster.raster.as_str())
            .collect();
        assert_eq!(names, ["train.tif", "val.tif"]);
        assert!(rasters.iter().all(|raster| raster.summary.tiles == 4));
        let whole = evaluation.summary().unwrap().mean.psnr_db;
        let mean = f64::midpoint(
            rasters[0].summary.mean.psnr_db,
            rasters[1].summary.mean.psnr_db,
        );
        assert!((whole - mean).abs() < 1e-9, "{whole} {mean}");
    }

    #[test]
    fn networks_without_derivatives_of_their_own_have_differences_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = fixture::dataset(folder.path());
        let text = include_str!("presets/huvr-small.toml");
        let settings = ["method.side=32", "method.patch=8"].map(str::to_owned);
        let config = Config::parse(text, &settings).unwrap();
        let device = Device::flex();
        let model = config.method.init(config.seed, &device);
        let evaluation = evaluate(&model, &config, &dataset, &[0, 5], &device).unwrap();
        assert!(!evaluation.is_analytic);
        assert_eq!(evaluation.measures, evaluation.by_differences);
    }
}
