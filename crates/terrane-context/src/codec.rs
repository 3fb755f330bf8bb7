//! One tile: coefficients to bytes and back.

use terrane_format::coder::{Decoder, Encoder};
use terrane_format::integers::{self, Prediction};

use crate::coefficients::{Coefficients, Transform, level_sizes};
use crate::compand::SUBSTEPS;
use crate::distribution::MAX_SYMBOL;
use crate::level::{Band, InverseTransform, Offsets, Trunk, Trunks};
use crate::matrix::Matrix;
use crate::model::ProbabilityModel;
use crate::network::Scratch;
use crate::planes::{Planes, Taps};
use crate::quantiser::Quantiser;
use crate::simd;
use crate::stream::{Reading, Stream, Writing};
use crate::wavelet::{BANDS, Subbands};
use crate::{Error, Result};

/// A model with everything that coding needs.
#[derive(Debug)]
pub struct Codec {
    pub(crate) model: ProbabilityModel,
    pub(crate) taps: Taps,
}

impl Codec {
    /// Codes with a model.
    pub fn new(model: ProbabilityModel) -> Self {
        Self {
            taps: Taps::new(model.network.widths.radius),
            model,
        }
    }

    /// Its model.
    pub fn model(&self) -> &ProbabilityModel {
        &self.model
    }

    /// Codes a tile, and gives back what a decoder makes of it, in 1/64 steps (in steps where the transform is lossless).
    pub fn encode(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
    ) -> (Vec<u8>, Matrix<i64>) {
        self.encode_counting(coefficients, quantiser, None)
    }

    /// Counts the symbols of a tile, for tables; `counts` as from [`Distributions::no_counts`].
    ///
    /// [`Distributions::no_counts`]: crate::Distributions::no_counts
    pub fn count(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
        counts: &mut Vec<Vec<u64>>,
    ) {
        self.encode_counting(coefficients, quantiser, Some(counts));
    }

    fn encode_counting(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
        counts: Option<&mut Vec<Vec<u64>>>,
    ) -> (Vec<u8>, Matrix<i64>) {
        let quantiser = match coefficients.transform {
            Transform::Lossy => quantiser,
            Transform::Lossless => Quantiser::ROUNDING,
        };
        let mut encoder = Encoder::default();
        let ll: Vec<i64> = coefficients
            .ll
            .values
            .iter()
            .map(|value| value.round() as i64)
            .collect();
        let width = coefficients.ll.width;
        integers::encode_to(&mut encoder, &ll, width, Prediction::Median, None);
        let mut writing = Writing {
            encoder,
            coefficients,
            quantiser,
            level: 0,
            counts,
        };
        let decoded = self.code(
            &mut writing,
            [coefficients.width, coefficients.height],
            coefficients.transform,
            ll,
            0,
        );
        (writing.encoder.finish(), decoded)
    }

    /// Decodes a tile of a size, in 1/64 steps (in steps where the transform is lossless), leaving out the `skip` finest
    /// levels.
    pub fn decode(
        &self,
        bytes: &[u8],
        [width, height]: [usize; 2],
        transform: Transform,
        skip: usize,
    ) -> Result<Matrix<i64>> {
        let (_, [ll_w, ll_h]) = level_sizes(width, height);
        let mut decoder = Decoder::new(bytes);
        let ll = integers::decode_from(&mut decoder, ll_w, ll_w * ll_h, Prediction::Median, None);
        if ll
            .iter()
            .any(|value| value.unsigned_abs() > MAX_SYMBOL as u64)
        {
            return Err(Error::Payload {
                reason: "its LL band is out of range",
            });
        }
        let mut reading = Reading { decoder };
        let decoded = self.code(&mut reading, [width, height], transform, ll, skip);
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
        ll: Vec<i64>,
        skip: usize,
    ) -> Matrix<i64> {
        let (sizes, [ll_w, ll_h]) = level_sizes(width, height);
        let substeps = transform.substeps();
        // What contexts are derived from, without the dequantiser's offsets, and what is given back, with them.
        let mut seen = Matrix {
            width: ll_w,
            height: ll_h,
            values: ll.iter().map(|value| value * substeps).collect(),
        };
        let mut decoded = seen.clone();
        let mut scratch = Scratch::new(&self.model.network);
        let mut parents: Option<[Matrix<i64>; BANDS]> = None;
        for (level, sizes) in sizes.iter().enumerate().skip(skip).rev() {
            let scaled = (substeps != SUBSTEPS)
                .then(|| seen.map(|value| value.wrapping_mul(SUBSTEPS / substeps)));
            let image = scaled.as_ref().unwrap_or(&seen);
            let mut bands = sizes.map(|[width, height]| Matrix::new(width, height));
            // Planes and trunk are only needed where a band has symbols.
            let mut context: Option<(Planes, Trunks)> = None;
            for (number, symbols) in bands.iter_mut().enumerate() {
                if symbols.values.is_empty() || stream.is_empty(level, number) {
                    continue;
                }
                let scratch = &mut scratch;
                let (planes, trunks) = context.get_or_insert_with(|| {
                    let planes = Planes::new(image, parents.as_ref(), level);
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
            let rounded = bands
                .each_ref()
                .map(|band| band.map(|symbol| symbol.wrapping_mul(substeps)));
            if transform == Transform::Lossy {
                let mut bands = rounded.clone();
                if let Some((planes, trunks)) = &context {
                    simd::run(Offsets {
                        codec: self,
                        scratch: &mut scratch,
                        planes,
                        trunks,
                        bands: &mut bands,
                    });
                }
                let subbands = Subbands { ll: decoded, bands };
                decoded = simd::run(InverseTransform {
                    subbands,
                    transform,
                });
            }
            if transform == Transform::Lossless || level > skip {
                let subbands = Subbands {
                    ll: seen,
                    bands: rounded,
                };
                seen = simd::run(InverseTransform {
                    subbands,
                    transform,
                });
            }
            parents = Some(bands);
        }
        match transform {
            Transform::Lossy => decoded,
            Transform::Lossless => seen,
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
            radius: 1,
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
        Codec::new(
            ProbabilityModel::from_bytes(&to_bytes("test", &widths, &layers, &[]).unwrap())
                .unwrap(),
        )
    }

    fn hills(width: usize, height: usize) -> Matrix<f64> {
        let values = (0..width * height)
            .map(|index| {
                let (x, y) = ((index % width) as f64, (index / width) as f64);
                40.0 * (x / 17.0).sin() * (y / 11.0).cos() + 3.0 * (x * 1.7 + y * y * 0.3).sin()
            })
            .collect();
        Matrix::from_values(width, height, values).unwrap()
    }

    const ROUNDED: Quantiser = Quantiser::ROUNDING;

    #[test]
    fn tiles_of_all_sizes_come_back() {
        let codec = codec();
        for [width, height] in [[1, 1], [1, 40], [9, 9], [64, 64], [100, 37], [130, 7]] {
            let heights = hills(width, height);
            let tile = Coefficients::lossy(&heights).unwrap();
            for quantiser in [
                ROUNDED,
                Quantiser {
                    lambda: 0.1,
                    dead_zone: 0.1,
                },
            ] {
                let (bytes, encoded) = codec.encode(&tile, quantiser);
                let decoded = codec
                    .decode(&bytes, [width, height], Transform::Lossy, 0)
                    .unwrap();
                assert_eq!(decoded, encoded);
                for (&substeps, height) in decoded.values.iter().zip(&heights.values) {
                    assert!((substeps as f64 / 64.0 - height).abs() < 3.5);
                }
            }
            let whole = Matrix {
                width,
                height,
                values: heights
                    .values
                    .iter()
                    .map(|height| height.round() as i64)
                    .collect(),
            };
            let (bytes, _) = codec.encode(&Coefficients::lossless(&whole).unwrap(), ROUNDED);
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
        let tile = Coefficients::lossy(&Matrix::from_values(120, 77, values).unwrap()).unwrap();
        let quantiser = Quantiser {
            lambda: 0.125,
            dead_zone: 0.0625,
        };
        let (bytes, decoded) = codec().encode(&tile, quantiser);
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
    fn leaving_out_levels_gives_coarser_images() {
        let codec = codec();
        let heights = hills(128, 96);
        let (bytes, _) = codec.encode(&Coefficients::lossy(&heights).unwrap(), ROUNDED);
        let half = codec
            .decode(&bytes, [128, 96], Transform::Lossy, 1)
            .unwrap();
        assert_eq!((half.width, half.height), (64, 48));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn no_bit_depends_on_the_width_of_registers() {
        let codec = codec();
        let tile = Coefficients::lossy(&hills(120, 77)).unwrap();
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
        let (bytes, _) = codec.encode(&Coefficients::lossy(&hills(40, 40)).unwrap(), ROUNDED);
        for offset in 0..bytes.len() {
            for value in [0, 0xff, bytes[offset] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[offset] = value;
                let _ = codec.decode(&damaged, [40, 40], Transform::Lossy, 0);
            }
        }
        let _ = codec.decode(&[], [40, 40], Transform::Lossy, 0);
    }
}
