//! One tile: coefficients to bytes and back.

use terrane_format::coder::{Decoder, Encoder};
use terrane_format::integers::{self, Prediction};

use crate::compand::UNIT;
use crate::distribution::MOST_SYMBOL;
use crate::grid::Grid;
use crate::level::{Band, Join, Offsets, Trunk, Trunks};
use crate::model::Model;
use crate::network::Scratch;
use crate::planes::{Planes, Taps};
use crate::simd;
use crate::stream::{Effort, Reading, Stream, Writing};
use crate::tile::{Tile, Transform, level_sizes};
use crate::wavelet::{BANDS, Split};
use crate::{Error, Result};

/// A model with everything that coding needs.
#[derive(Debug)]
pub struct Codec {
    pub(crate) model: Model,
    pub(crate) taps: Taps,
}

impl Codec {
    /// Codes with a model.
    pub fn new(model: Model) -> Self {
        Self {
            taps: Taps::new(model.network.widths.reach),
            model,
        }
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Codes a tile, and gives back what a decoder makes of it, in 1/64 steps (in whole steps where nothing is lost).
    pub fn encode(&self, tile: &Tile, effort: Effort) -> (Vec<u8>, Grid<i64>) {
        self.encode_counting(tile, effort, None)
    }

    /// Counts the symbols of a tile, for tables; `counts` as from [`Distributions::no_counts`].
    ///
    /// [`Distributions::no_counts`]: crate::Distributions::no_counts
    pub fn count(&self, tile: &Tile, effort: Effort, counts: &mut Vec<Vec<u64>>) {
        self.encode_counting(tile, effort, Some(counts));
    }

    fn encode_counting(
        &self,
        tile: &Tile,
        effort: Effort,
        counts: Option<&mut Vec<Vec<u64>>>,
    ) -> (Vec<u8>, Grid<i64>) {
        let effort = match tile.transform {
            Transform::Lossy => effort,
            Transform::Lossless => Effort::NONE,
        };
        let mut encoder = Encoder::default();
        let coarsest: Vec<i64> = tile
            .coarsest
            .values
            .iter()
            .map(|value| value.round() as i64)
            .collect();
        let width = tile.coarsest.width;
        integers::encode_to(&mut encoder, &coarsest, width, Prediction::Median, None);
        let mut writing = Writing {
            encoder,
            tile,
            effort,
            level: 0,
            counts,
        };
        let decoded = self.code(
            &mut writing,
            [tile.width, tile.height],
            tile.transform,
            coarsest,
            0,
        );
        (writing.encoder.finish(), decoded)
    }

    /// Decodes a tile of a size, in 1/64 steps (whole steps where nothing was lost), leaving out so many of its finest
    /// levels.
    pub fn decode(
        &self,
        bytes: &[u8],
        [width, height]: [usize; 2],
        transform: Transform,
        skip: usize,
    ) -> Result<Grid<i64>> {
        let (_, [low_w, low_h]) = level_sizes(width, height);
        let mut decoder = Decoder::new(bytes);
        let coarsest =
            integers::decode_from(&mut decoder, low_w, low_w * low_h, Prediction::Median, None);
        if coarsest
            .iter()
            .any(|value| value.unsigned_abs() > MOST_SYMBOL as u64)
        {
            return Err(Error::Payload {
                reason: "its coarsest picture is out of range",
            });
        }
        let mut reading = Reading { decoder };
        let decoded = self.code(&mut reading, [width, height], transform, coarsest, skip);
        if skip == 0 {
            reading.decoder.end()?;
        }
        Ok(decoded)
    }

    fn code<S: Stream>(
        &self,
        stream: &mut S,
        [width, height]: [usize; 2],
        transform: Transform,
        coarsest: Vec<i64>,
        skip: usize,
    ) -> Grid<i64> {
        let (sizes, [low_w, low_h]) = level_sizes(width, height);
        let unit = transform.unit();
        let mut low = Grid {
            width: low_w,
            height: low_h,
            values: coarsest.iter().map(|value| value * unit).collect(),
        };
        let mut decoded = low.clone();
        let mut scratch = Scratch::new(&self.model.network);
        let mut parents: Option<[Grid<i64>; BANDS]> = None;
        for (level, sizes) in sizes.iter().enumerate().skip(skip).rev() {
            let scaled = (unit != UNIT).then(|| low.map(|value| value.wrapping_mul(UNIT / unit)));
            let seen = scaled.as_ref().unwrap_or(&low);
            let mut bands = sizes.map(|[width, height]| Grid::new(width, height));
            // Planes and trunk are only needed where a band has symbols.
            let mut context: Option<(Planes, Trunks)> = None;
            for (number, symbols) in bands.iter_mut().enumerate() {
                if symbols.values.is_empty() || stream.is_empty(level, number) {
                    continue;
                }
                let scratch = &mut scratch;
                let (planes, trunks) = context.get_or_insert_with(|| {
                    let planes = Planes::new(seen, parents.as_ref(), level);
                    let trunks = simd::run(Trunk {
                        codec: self,
                        planes: &planes,
                        scratch,
                    });
                    (planes, trunks)
                });
                simd::run(Band {
                    codec: self,
                    stream,
                    scratch,
                    planes,
                    trunks,
                    number,
                    symbols,
                });
            }
            let details = bands
                .each_ref()
                .map(|band| band.map(|symbol| symbol.wrapping_mul(unit)));
            if transform == Transform::Lossy {
                let mut bands = details.clone();
                if let Some((planes, trunks)) = &context {
                    simd::run(Offsets {
                        codec: self,
                        scratch: &mut scratch,
                        planes,
                        trunks,
                        details: &mut bands,
                    });
                }
                let split = Split {
                    low: decoded,
                    bands,
                };
                decoded = simd::run(Join { split, transform });
            }
            if transform == Transform::Lossless || level > skip {
                let split = Split {
                    low,
                    bands: details,
                };
                low = simd::run(Join { split, transform });
            }
            parents = Some(bands);
        }
        match transform {
            Transform::Lossy => decoded,
            Transform::Lossless => low,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerWeights, to_bytes};
    use crate::network::Widths;

    /// A network of random weights.
    fn codec() -> Codec {
        let widths = Widths {
            reach: 1,
            stem: 12,
            trunk: 9,
            hidden: 10,
            last: 7,
            dequantiser: 6,
        };
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let layers: Vec<LayerWeights> = widths
            .layers()
            .iter()
            .map(|shape| LayerWeights {
                weights: (0..shape.inputs * shape.outputs)
                    .map(|_| random(41) as i8 - 20)
                    .collect(),
                bias: (0..shape.outputs)
                    .map(|_| random(2001) as i32 - 1000)
                    .collect(),
            })
            .collect();
        Codec::new(Model::from_bytes(&to_bytes("test", &widths, &layers, &[]).unwrap()).unwrap())
    }

    fn hills(width: usize, height: usize) -> Grid<f64> {
        let values = (0..width * height)
            .map(|index| {
                let (x, y) = ((index % width) as f64, (index / width) as f64);
                40.0 * (x / 17.0).sin() * (y / 11.0).cos() + 3.0 * (x * 1.7 + y * y * 0.3).sin()
            })
            .collect();
        Grid::from_values(width, height, values).unwrap()
    }

    const ROUNDED: Effort = Effort::NONE;

    #[test]
    fn tiles_of_all_sizes_come_back() {
        let codec = codec();
        for [width, height] in [[1, 1], [1, 40], [9, 9], [64, 64], [100, 37], [130, 7]] {
            let heights = hills(width, height);
            let tile = Tile::lossy(&heights).unwrap();
            for effort in [
                ROUNDED,
                Effort {
                    bit_worth: 0.1,
                    dead_zone: 0.1,
                },
            ] {
                let (bytes, encoded) = codec.encode(&tile, effort);
                let decoded = codec
                    .decode(&bytes, [width, height], Transform::Lossy, 0)
                    .unwrap();
                assert_eq!(decoded, encoded);
                for (&units, height) in decoded.values.iter().zip(&heights.values) {
                    assert!((units as f64 / 64.0 - height).abs() < 3.5);
                }
            }
            let whole = Grid {
                width,
                height,
                values: heights
                    .values
                    .iter()
                    .map(|height| height.round() as i64)
                    .collect(),
            };
            let (bytes, _) = codec.encode(&Tile::lossless(&whole).unwrap(), ROUNDED);
            let decoded = codec
                .decode(&bytes, [width, height], Transform::Lossless, 0)
                .unwrap();
            assert_eq!(decoded, whole);
        }
    }

    /// Run on every kind of machine (`just test-machines`).
    #[test]
    fn bytes_and_heights_are_the_same_on_every_machine() {
        let values = (0..120 * 77_i64)
            .map(|index| {
                let (x, y) = (index % 120, index / 120);
                (x * x / 9 - x * y / 5 + (x * 7919 + y * 104_729) % 17) as f64 / 8.0
            })
            .collect();
        let tile = Tile::lossy(&Grid::from_values(120, 77, values).unwrap()).unwrap();
        let effort = Effort {
            bit_worth: 0.125,
            dead_zone: 0.0625,
        };
        let (bytes, decoded) = codec().encode(&tile, effort);
        let mix =
            |sum: u64, value: u64| (sum ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
        let bytes = bytes.iter().fold(0, |sum, &byte| mix(sum, byte.into()));
        let decoded = decoded
            .values
            .iter()
            .fold(0, |sum, value| mix(sum, value.cast_unsigned()));
        assert_eq!(
            (bytes, decoded),
            (6_990_283_880_116_407_260, 3_154_143_558_576_941_956)
        );
    }

    #[test]
    fn coarser_levels_are_coarser_pictures() {
        let codec = codec();
        let heights = hills(128, 96);
        let (bytes, _) = codec.encode(&Tile::lossy(&heights).unwrap(), ROUNDED);
        let half = codec
            .decode(&bytes, [128, 96], Transform::Lossy, 1)
            .unwrap();
        assert_eq!((half.width, half.height), (64, 48));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn no_bit_depends_on_the_width_of_registers() {
        let codec = codec();
        let tile = Tile::lossy(&hills(120, 77)).unwrap();
        let all: Vec<_> = simd::limit::ALL
            .iter()
            .map(|&limit| {
                simd::limit::set(limit);
                codec.encode(&tile, ROUNDED)
            })
            .collect();
        simd::limit::set(simd::limit::AVX512);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
    }

    #[test]
    fn damaged_bytes_do_not_panic() {
        let codec = codec();
        let (bytes, _) = codec.encode(&Tile::lossy(&hills(40, 40)).unwrap(), ROUNDED);
        for place in 0..bytes.len() {
            for value in [0, 0xff, bytes[place] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                let _ = codec.decode(&damaged, [40, 40], Transform::Lossy, 0);
            }
        }
        let _ = codec.decode(&[], [40, 40], Transform::Lossy, 0);
    }
}
