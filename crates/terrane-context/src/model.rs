//! A trained model: the network and the tables, in a safetensors file.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, serialize};

use crate::arrays::Arrays;
use crate::distribution::{Distributions, TABLES, logistic_counts, support};
use crate::network::{Layer, Network};
use crate::planes::CONSTANTS;
use crate::widths::Widths;
use crate::{Error, Result};

/// The key of the metadata that holds the widths, and so marks a context model's file.
pub const WIDTHS_KEY: &str = "terrane.context";
const NAME_KEY: &str = "name";
pub(crate) const CENTRES: &str = "tables.centre";
pub(crate) const RADII: &str = "tables.radius";
pub(crate) const FREQUENCIES: &str = "tables.size";
/// The weight of the logistic shape against the counts.
const PRIOR: f64 = 200.0;

/// A network and its tables.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbabilityModel {
    /// The name of its configuration.
    pub name: String,
    /// The network.
    pub network: Network,
    /// The tables.
    pub distributions: Distributions,
}

/// Weights `[outputs][inputs]` and bias of a layer, as integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LayerWeights {
    /// Weights, output by output.
    pub weights: Vec<i8>,
    /// In parts of 1/64 of an activation.
    pub bias: Vec<i32>,
}

impl ProbabilityModel {
    /// Reads a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = Arrays::read(bytes)?;
        let name = file.note(NAME_KEY).unwrap_or_default().to_owned();
        let widths = file
            .note(WIDTHS_KEY)
            .and_then(Widths::read)
            .filter(Widths::is_sound)
            .ok_or_else(|| missing("sound widths of a context codec"))?;
        let i32s = |name: &str| -> Result<Vec<i32>> {
            let bytes = file.array(name, "I32")?;
            let (chunks, _) = bytes.as_chunks::<4>();
            Ok(chunks
                .iter()
                .map(|bytes| i32::from_le_bytes(*bytes))
                .collect())
        };
        let layers = widths
            .layers()
            .iter()
            .enumerate()
            .map(|(index, shape)| {
                let constants = if index == 0 { CONSTANTS } else { 0 };
                let weights = file.array(&format!("{}.weight", shape.name), "I8")?;
                let weights: Vec<i8> = weights.iter().map(|byte| byte.cast_signed()).collect();
                let bias = i32s(&format!("{}.bias", shape.name))?;
                Layer::new(shape.inputs, constants, &weights, &bias)
            })
            .collect::<Result<_>>()?;
        let frequencies = file.array(FREQUENCIES, "U16")?;
        let (frequencies, _) = frequencies.as_chunks::<2>();
        let frequencies: Vec<u16> = frequencies
            .iter()
            .map(|bytes| u16::from_le_bytes(*bytes))
            .collect();
        Ok(Self {
            name,
            network: Network::new(widths, layers)?,
            distributions: Distributions::new(
                &i32s(CENTRES)?,
                file.array(RADII, "U8")?,
                &frequencies,
            )?,
        })
    }
}

fn missing(what: &str) -> Error {
    Error::Missing { what: what.into() }
}

/// Centre, radius and frequencies of all tables, from how often each symbol was seen; tables without counts keep the logistic
/// shape.
pub(crate) fn tables_of(counts: &[Vec<u64>]) -> (Vec<i32>, Vec<u8>, Vec<u16>) {
    let mut centres = Vec::with_capacity(TABLES);
    let mut radii = Vec::with_capacity(TABLES);
    let mut all = Vec::new();
    for table in 0..TABLES {
        let (centre, radius) = support(table);
        centres.push(centre as i32);
        radii.push(radius as u8);
        let shape = logistic_counts(table);
        let seen = counts.get(table).filter(|seen| seen.len() == shape.len());
        let mixed: Vec<f64> = shape
            .iter()
            .enumerate()
            .map(|(index, part)| part * PRIOR + seen.map_or(0.0, |seen| seen[index] as f64))
            .collect();
        all.extend(frequencies_of(&mixed));
    }
    (centres, radii, all)
}

/// Frequencies in proportion to counts, each at least 1, with a total of 2^16.
fn frequencies_of(counts: &[f64]) -> Vec<u16> {
    let spare = f64::from(1_u32 << 16) - counts.len() as f64;
    let total: f64 = counts.iter().sum();
    let mut sum = 0.0;
    let cumulative: Vec<u32> = counts
        .iter()
        .enumerate()
        .map(|(index, count)| {
            let below = (sum / total * spare) as u32 + index as u32;
            sum += count;
            below
        })
        .chain([1 << 16])
        .collect();
    cumulative
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u16)
        .collect()
}

/// Writes a file: layers in the order of [`Widths::layers`], and counts per table.
pub fn to_bytes(
    name: &str,
    widths: &Widths,
    layers: &[LayerWeights],
    counts: &[Vec<u64>],
) -> Result<Vec<u8>> {
    let le = |values: &[i32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let (centres, radii, frequencies) = tables_of(counts);
    let mut arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = vec![
        (CENTRES.into(), Dtype::I32, vec![TABLES], le(&centres)),
        (RADII.into(), Dtype::U8, vec![TABLES], radii),
        (
            FREQUENCIES.into(),
            Dtype::U16,
            vec![frequencies.len()],
            frequencies
                .iter()
                .flat_map(|frequency| frequency.to_le_bytes())
                .collect(),
        ),
    ];
    for (shape, layer) in widths.layers().iter().zip(layers) {
        let weights = layer
            .weights
            .iter()
            .map(|weight| weight.cast_unsigned())
            .collect();
        let name = |part: &str| format!("{}.{part}", shape.name);
        let size = vec![shape.outputs, shape.inputs];
        arrays.push((name("weight"), Dtype::I8, size, weights));
        arrays.push((
            name("bias"),
            Dtype::I32,
            vec![shape.outputs],
            le(&layer.bias),
        ));
    }
    let damaged = |source: SafeTensorError| Error::Safetensors {
        reason: source.to_string(),
    };
    let views = arrays
        .iter()
        .map(|(name, dtype, shape, data)| {
            Ok((
                name.clone(),
                TensorView::new(*dtype, shape.clone(), data).map_err(damaged)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    let widths = serde_json::to_string(widths).map_err(|_| missing("widths"))?;
    let metadata = HashMap::from([
        (WIDTHS_KEY.to_string(), widths),
        (NAME_KEY.to_string(), name.to_string()),
    ]);
    serialize(views, Some(metadata)).map_err(damaged)
}
