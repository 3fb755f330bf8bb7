//! Batches of training tiles, prepared beside the training; the same for the same step, however it was reached.

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};
use terrane_codec::random::Random;

use crate::config::DataConfig;
use crate::data::Dataset;
use crate::data::Orientation;
use crate::training::Prepared;
use crate::{Error, Result};

/// Batches that wait to be used.
const AHEAD: usize = 4;
/// Bytes of tiles that are kept on a device with memory of its own.
const ON_DEVICE: usize = 8 << 30;
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

    /// The tiles of a step by their numbers, and how each of them lies; `order` is that of the step before.
    fn draw(
        &self,
        order: &mut Order,
        step: usize,
        size: usize,
        config: &DataConfig,
        seed: u64,
    ) -> Vec<(usize, Orientation)> {
        // A pass has as many whole batches as fit; few tiles are seen more than once in a batch.
        let per_pass = (self.tiles.len() / size).max(1);
        let pass = if config.shuffle {
            (step / per_pass) as u64
        } else {
            0
        };
        let order = order.of(pass, self.tiles.len(), seed);
        let first = step % per_pass * size;
        let mut random = Random::new(seed, step as u64);
        (first..first + size)
            .map(|index| {
                let drawn = Orientation::draw(&mut random);
                let orientation = if config.augment {
                    drawn
                } else {
                    Orientation::AS_IT_IS
                };
                (order[index % order.len()], orientation)
            })
            .collect()
    }

    /// Tiles one after another.
    fn gather(&self, drawn: &[(usize, Orientation)]) -> Vec<f32> {
        drawn
            .iter()
            .flat_map(|&(number, orientation)| orientation.apply(&self.tiles[number], self.side))
            .collect()
    }
}

/// The order of the tiles in one pass, kept for its steps.
#[derive(Debug, Clone, Default)]
struct Order {
    pass: u64,
    numbers: Vec<usize>,
}

impl Order {
    fn of(&mut self, pass: u64, tiles: usize, seed: u64) -> &[usize] {
        if self.numbers.is_empty() || self.pass != pass {
            self.pass = pass;
            self.numbers = (0..tiles).collect();
            Random::new(seed, ORDER | pass).shuffle(&mut self.numbers);
        }
        &self.numbers
    }
}

/// The tiles on a device with memory of its own, so that no step waits for their way there.
#[derive(Debug, Clone)]
struct OnDevice {
    side: usize,
    /// `[tiles, side · side]`.
    tiles: Tensor<2>,
    /// Where every pixel comes from, by the number of an orientation: `[orientations, side · side]`.
    sources: Tensor<2, Int>,
}

impl OnDevice {
    /// `None` where the device is the computer itself, or where the tiles are too many.
    fn new(tiles: &Tiles, device: &Device) -> Option<Self> {
        let bytes = tiles.tiles.len() * tiles.side * tiles.side * size_of::<f32>();
        (*device != Device::flex() && bytes <= ON_DEVICE).then(|| Self::of(tiles, device))
    }

    fn of(tiles: &Tiles, device: &Device) -> Self {
        let pixels = tiles.side * tiles.side;
        let data = TensorData::new(tiles.tiles.concat(), [tiles.tiles.len(), pixels]);
        let numbers: Vec<i64> = (0..pixels as i64).collect();
        let sources: Vec<i64> = Orientation::all()
            .flat_map(|orientation| orientation.apply(&numbers, tiles.side))
            .collect();
        let sources = TensorData::new(sources, [Orientation::COUNT, pixels]);
        Self {
            side: tiles.side,
            tiles: Tensor::from_data(data, device),
            sources: Tensor::from_data(sources, device),
        }
    }

    fn gather(&self, drawn: &[(usize, Orientation)]) -> Tensor<3> {
        let device = self.tiles.device();
        let list = |numbers: Vec<i64>| Tensor::<1, Int>::from_data(numbers.as_slice(), &device);
        let tiles = list(drawn.iter().map(|&(tile, _)| tile as i64).collect());
        let ways = list(drawn.iter().map(|(_, way)| way.number() as i64).collect());
        let sources = self.sources.clone().select(0, ways);
        let batch = self.tiles.clone().select(0, tiles).gather(1, sources);
        batch.reshape([drawn.len(), self.side, self.side])
    }
}

/// Starts preparing the batches `[batch, side, side]` of the given steps on the device, by a thread of their own.
pub(crate) fn start(
    tiles: Arc<Tiles>,
    steps: Range<usize>,
    size: usize,
    config: DataConfig,
    seed: u64,
    device: &Device,
) -> Prepared<Tensor<3>> {
    let shape = [size, tiles.side, tiles.side];
    let device = device.clone();
    let on_device = OnDevice::new(&tiles, &device);
    let mut order = Order::default();
    Prepared::start(&steps, 1, AHEAD, move |step| {
        let drawn = tiles.draw(&mut order, step, size, &config, seed);
        match &on_device {
            Some(tiles) => tiles.gather(&drawn),
            None => Tensor::from_data(TensorData::new(tiles.gather(&drawn), shape), &device),
        }
    })
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
            let mut order = Order::default();
            (from..from + 3)
                .flat_map(|step| tiles.gather(&tiles.draw(&mut order, step, 4, config, 7)))
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
    fn a_device_turns_tiles_as_the_computer_does() {
        let pixels = |tile: usize| (0..9).map(|pixel| (10 * tile + pixel) as f32).collect();
        let tiles = Tiles {
            side: 3,
            tiles: (0..7).map(pixels).collect(),
        };
        let device = Device::flex();
        let on_device = OnDevice::of(&tiles, &device);
        let mut order = Order::default();
        for step in 0..20 {
            let drawn = tiles.draw(&mut order, step, 5, &CONFIG, 3);
            let expected = TensorData::new(tiles.gather(&drawn), [5, 3, 3]);
            assert_eq!(on_device.gather(&drawn).into_data(), expected);
        }
        assert!(OnDevice::new(&tiles, &device).is_none());
    }

    #[test]
    fn a_step_has_the_same_batch_however_it_is_reached() {
        let shared = Arc::new(tiles(5));
        let device = Device::flex();
        // From the middle of a pass on, too.
        for first in [3, 5] {
            let mut whole = start(Arc::clone(&shared), 0..9, 2, CONFIG, 1, &device);
            let mut late = start(Arc::clone(&shared), first..9, 2, CONFIG, 1, &device);
            for _ in 0..first {
                whole.next();
            }
            for _ in first..9 {
                assert_eq!(whole.next().into_data(), late.next().into_data());
            }
        }
    }

    #[test]
    fn a_pass_has_one_order_that_is_made_once() {
        let mut order = Order::default();
        let first = order.of(0, 100, 7).to_vec();
        let address = order.of(0, 100, 7).as_ptr();
        assert_eq!(order.of(0, 100, 7).as_ptr(), address);
        // As every step shuffled it anew until 0.1.0: seeds keep their sequences.
        let mut shuffled: Vec<usize> = (0..100).collect();
        Random::new(7, ORDER).shuffle(&mut shuffled);
        assert_eq!(first, shuffled);
        assert_ne!(order.of(1, 100, 7), first);
        assert_eq!(order.of(0, 100, 7), first);
    }
}
