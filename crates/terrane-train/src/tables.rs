//! Probabilities of a model's symbols, learned on the training split.

use burn::tensor::{Device, Tensor, TensorData};
use terrane_codec::format::TokenTables;
use terrane_codec::format::tokens::{WIDTHS, alphabet, symbol_index};
use terrane_codec::quantise::quantise;
use terrane_networks::methods::{Method, Model, Precision};

use crate::config::Config;
use crate::data::Dataset;
use crate::{Error, Result};

/// Tiles from which the symbols are counted.
const MAX_TILES: usize = 512;
/// A symbol counts as seen this often before any is: rare ones should not cost too much.
const PRIOR: u64 = 1;
/// Every real symbol counts this often.
const WEIGHT: u64 = 8;

/// Counts the symbols of the training tiles at every width.
pub fn learn(
    model: &Model,
    config: &Config,
    dataset: &Dataset,
    device: &Device,
) -> Result<TokenTables> {
    let [_, channels] = config.method.token_shape();
    let side = config.method.side();
    let mut counts: Vec<Vec<Vec<u64>>> = WIDTHS
        .iter()
        .map(|&bits| vec![vec![PRIOR; alphabet(bits)]; channels])
        .collect();
    if dataset.side() != side {
        return Err(Error::TileSide {
            tiles: dataset.side(),
            method: side,
        });
    }
    let numbers = dataset.split("train");
    if numbers.is_empty() {
        return Err(Error::NoTrainingTiles);
    }
    let every = numbers.len().div_ceil(MAX_TILES).max(1);
    for &number in numbers.iter().step_by(every) {
        let heights = dataset.heights(number)?;
        let map = config.data.normalise.map(&heights);
        let values: Vec<f32> = heights
            .iter()
            .map(|&height| map.normalise(height))
            .collect();
        let tile = Tensor::from_data(TensorData::new(values, [1, side, side]), device);
        let tokens = model.encode(tile, Precision::Full).into_data();
        let tokens: Vec<f32> =
            tokens
                .convert::<f32>()
                .try_to_vec()
                .map_err(|error| Error::Device {
                    reason: error.to_string(),
                })?;
        for (&bits, counts) in WIDTHS.iter().zip(&mut counts) {
            let symbols = quantise(&tokens, channels, bits.into()).symbols;
            for (index, &symbol) in symbols.iter().enumerate() {
                counts[index % channels][symbol_index(symbol, bits)] += WEIGHT;
            }
        }
    }
    TokenTables::from_counts(channels, |bits, channel| {
        let index = WIDTHS.iter().position(|&width| width == bits).unwrap_or(0);
        counts[index][channel].clone()
    })
    .map_err(|error| Error::Tables {
        reason: error.to_string(),
    })
}
