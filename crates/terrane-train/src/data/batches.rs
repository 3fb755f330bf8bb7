//! Batches of training tiles, prepared beside the training; the same for the same step, however it was reached.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use burn::tensor::{Device, Tensor, TensorData};
use terrane_codec::random::Random;

use crate::config::DataConfig;
use crate::data::Dataset;
use crate::data::Orientation;
use crate::{Error, Result};

/// Batches that wait to be used.
const AHEAD: usize = 4;
/// Streams of random numbers: the subset, the order of each pass, the orientations of each step.
const SUBSET: u64 = 1 << 62;
const ORDER: u64 = 1 << 61;

/// Training tiles in memory, normalised.
#[derive(Debug)]
pub(crate) struct Tiles {
    side: usize,
    tiles: Vec<Vec<f32>>,
}

impl Tiles {
    /// The train split, or the first tiles of one random order of it.
    pub(crate) fn load(dataset: &Dataset, config: &DataConfig, seed: u64) -> Result<Self> {
        let mut numbers = dataset.split("train");
        if config.tiles > 0 {
            Random::new(seed, SUBSET).shuffle(&mut numbers);
            numbers.truncate(config.tiles);
        }
        if numbers.is_empty() {
            return Err(Error::NoTrainingTiles);
        }
        let tiles = numbers
            .into_iter()
            .map(|number| {
                let heights = dataset.heights(number)?;
                let map = config.normalise.map(&heights);
                Ok(heights
                    .iter()
                    .map(|&height| map.normalise(height))
                    .collect())
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            side: dataset.side(),
            tiles,
        })
    }

    /// The tiles of a step, one after another.
    fn batch(&self, step: usize, size: usize, config: &DataConfig, seed: u64) -> Vec<f32> {
        // A pass has as many whole batches as fit; few tiles are seen more than once in a batch.
        let per_pass = (self.tiles.len() / size).max(1);
        let pass = if config.shuffle {
            (step / per_pass) as u64
        } else {
            0
        };
        let mut order: Vec<usize> = (0..self.tiles.len()).collect();
        Random::new(seed, ORDER | pass).shuffle(&mut order);
        let first = step % per_pass * size;
        let mut random = Random::new(seed, step as u64);
        let mut values = Vec::with_capacity(size * self.side * self.side);
        for index in first..first + size {
            let tile = &self.tiles[order[index % order.len()]];
            let orientation = Orientation::draw(&mut random);
            if config.augment {
                values.extend(orientation.apply(tile, self.side));
            } else {
                values.extend_from_slice(tile);
            }
        }
        values
    }
}

/// The batches of a training, prepared by a thread of their own.
#[derive(Debug)]
pub(crate) struct Batches {
    receiver: Receiver<Tensor<3>>,
}

impl Batches {
    /// Starts preparing the batches of the given steps on the device; there too, so that no step waits for a copy.
    pub(crate) fn start(
        tiles: Arc<Tiles>,
        steps: std::ops::Range<usize>,
        size: usize,
        config: DataConfig,
        seed: u64,
        device: &Device,
    ) -> Self {
        let shape = [size, tiles.side, tiles.side];
        let device = device.clone();
        let (sender, receiver) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            for step in steps {
                let values = tiles.batch(step, size, &config, seed);
                let batch = Tensor::from_data(TensorData::new(values, shape), &device);
                if sender.send(batch).is_err() {
                    return;
                }
            }
        });
        Self { receiver }
    }
}

impl Iterator for Batches {
    type Item = Tensor<3>;

    /// The next batch as a tensor `[batch, side, side]`.
    fn next(&mut self) -> Option<Tensor<3>> {
        self.receiver.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use terrane_codec::Normalise;

    use super::*;

    fn tiles(count: usize) -> Tiles {
        Tiles {
            side: 1,
            tiles: (0..count).map(|index| vec![index as f32]).collect(),
        }
    }

    const CONFIG: DataConfig = DataConfig {
        tiles: 0,
        augment: true,
        shuffle: true,
        normalise: Normalise::MinMax,
    };

    #[test]
    fn a_pass_shows_every_tile_once_in_an_order_of_its_own() {
        let tiles = tiles(12);
        let pass = |from: usize, config: &DataConfig| -> Vec<f32> {
            (from..from + 3)
                .flat_map(|step| tiles.batch(step, 4, config, 7))
                .collect()
        };
        let (first, second) = (pass(0, &CONFIG), pass(3, &CONFIG));
        assert_ne!(first, second);
        for mut shown in [first, second] {
            shown.sort_by(f32::total_cmp);
            assert_eq!(shown, (0..12).map(|index| index as f32).collect::<Vec<_>>());
        }
        let fixed = DataConfig {
            shuffle: false,
            ..CONFIG
        };
        assert_eq!(pass(0, &fixed), pass(3, &fixed));
    }

    #[test]
    fn a_step_has_the_same_batch_however_it_is_reached() {
        let shared = Arc::new(tiles(5));
        let device = Device::flex();
        let mut whole = Batches::start(Arc::clone(&shared), 0..6, 4, CONFIG, 1, &device);
        let mut late = Batches::start(shared, 3..6, 4, CONFIG, 1, &device);
        for _ in 0..3 {
            whole.next().unwrap();
        }
        for _ in 0..3 {
            assert_eq!(
                whole.next().unwrap().into_data(),
                late.next().unwrap().into_data()
            );
        }
        assert!(whole.next().is_none());
    }
}
