//! How long a tile takes: one tile at a time, some passes to warm up and many that are timed.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::{Tensor, TensorData};
use terrane_networks::methods::{Method, Precision};
use terrane_report::table::{Column, Table};
use terrane_train::evaluate::numbers_of;
use terrane_train::measure::mean_and_deviation;
use terrane_train::memory::NetworkMemory;

use super::paper;
use crate::runs::{Runs, Variant};
use crate::{Error, Result};

/// How many passes are made.
#[derive(Debug, Clone, Copy)]
pub struct Passes {
    /// Passes that are not timed.
    pub warm_up: usize,
    /// Passes that are.
    pub timed: usize,
}

/// Milliseconds that a method takes for one tile, with their standard deviations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Time {
    /// The method.
    pub method: String,
    /// Parameters of its network.
    pub parameters: u64,
    /// To encode.
    pub encode_ms: f64,
    /// How that varies.
    pub encode_deviation_ms: f64,
    /// To decode.
    pub decode_ms: f64,
    /// How that varies.
    pub decode_deviation_ms: f64,
}

impl Time {
    /// To encode and to decode.
    pub(crate) fn both_ms(&self) -> f64 {
        self.encode_ms + self.decode_ms
    }
}

/// The times of all methods; measured once.
pub(crate) fn times(runs: &mut Runs, passes: Passes) -> Result<Arc<Vec<Time>>> {
    if let Some(known) = &runs.known.times {
        return Ok(known.clone());
    }
    let Some(&tile) = runs.tiles().first() else {
        return Err(Error::EmptySplit {
            split: runs.settings.split.clone(),
        });
    };
    let heights = runs.dataset.heights(tile)?;
    let side = runs.dataset.side();
    let mut times = Vec::new();
    for &method in &runs.settings.methods {
        let config = runs.config(&Variant::plain(method))?;
        runs.settings.memory.require_network(&config.method)?;
        // Time does not depend on what the weights are.
        let network = config.method.init(config.seed, runs.device);
        let map = config.data.normalise.map(&heights);
        let values: Vec<f32> = heights
            .iter()
            .map(|&height| map.normalise(height))
            .collect();
        let tile = Tensor::<3>::from_data(TensorData::new(values, [1, side, side]), runs.device);
        let tokens = network.encode(tile.clone(), Precision::Full);
        let encode = timed(passes, || network.encode(tile.clone(), Precision::Full))?;
        let decode = timed(passes, || network.decode(tokens.clone(), Precision::Full))?;
        let account = config
            .method
            .account(terrane_networks::cost::Convention::AsRun);
        times.push(Time {
            method: method.to_owned(),
            parameters: account.parameters(),
            encode_ms: encode.0,
            encode_deviation_ms: encode.1,
            decode_ms: decode.0,
            decode_deviation_ms: decode.1,
        });
    }
    let times = Arc::new(times);
    runs.known.times = Some(times.clone());
    Ok(times)
}

/// Milliseconds for one tile, to encode and to decode it.
pub(crate) fn wall_clock(runs: &mut Runs, passes: Passes, device_name: &str) -> Result<Table> {
    let note = format!(
        "Batch 1, {} passes to warm up and {} timed, device: {device_name}. The paper measured on an RTX A5000 (Functa's time is not given there).",
        passes.warm_up, passes.timed
    );
    let columns = vec![
        Column::new("method", "method", 0),
        Column::new("parameters", "parameters", 0),
        Column::new("encode_ms", "encode ms", 2),
        Column::new("encode_deviation_ms", "± ms", 2),
        Column::new("decode_ms", "decode ms", 2),
        Column::new("decode_deviation_ms", "± ms", 2),
        Column::new("both_ms", "both ms", 2),
        Column::new("paper_both_ms", "paper: ms", 2),
        Column::new("device", "device", 0),
    ];
    let mut table = Table::new("wall-clock", "Time for a tile", &note, columns);
    for time in times(runs, passes)?.iter() {
        let paper = paper::WALL_CLOCK_MS
            .iter()
            .find(|(name, _)| *name == time.method);
        table.row(vec![
            time.method.as_str().into(),
            time.parameters.into(),
            time.encode_ms.into(),
            time.encode_deviation_ms.into(),
            time.decode_ms.into(),
            time.decode_deviation_ms.into(),
            time.both_ms().into(),
            paper.map(|(_, ms)| *ms).into(),
            device_name.into(),
        ]);
    }
    Ok(table)
}

/// Mean and standard deviation of a pass in milliseconds.
fn timed(passes: Passes, mut pass: impl FnMut() -> Tensor<3>) -> Result<(f64, f64)> {
    let mut times = Vec::with_capacity(passes.timed);
    for index in 0..passes.warm_up + passes.timed {
        let clock = Instant::now();
        // One number has to come back before the clock stops: devices work behind their caller.
        numbers_of(pass().sum())?;
        if index >= passes.warm_up {
            times.push(clock.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(mean_and_deviation(times.into_iter()))
}
