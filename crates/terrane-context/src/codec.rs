//! Pictures to bytes and back: a whole one, or the details that one has and the coarser one above it has not.

use terrane_format::coder::{Decoder, Encoder};
use terrane_format::integers::{self, Prediction};

use crate::coefficients::{Coefficients, Transform, level_sizes};
use crate::compand::SUBSTEPS;
use crate::distribution::MAX_SYMBOL;
use crate::grid::{Grid, PHASES};
use crate::level::{InverseTransform, Scratch, code_band, dequantised, trunk};
use crate::matrix::Matrix;
use crate::model::ProbabilityModel;
use crate::picture::{Part, Picture};
use crate::planes::{Planes, Seen};
use crate::quantiser::Quantiser;
use crate::simd;
use crate::stream::{Nothing, Reading, Stream, Writing};
use crate::timing::{Stage, timed};
use crate::wavelet::{BANDS, Subbands, subband_sizes};
use crate::widths::SymbolTap;
use crate::{Error, Result};

/// Is shown the symbols of every level, coarsest first.
type Take<'a> = dyn FnMut(&[Matrix<i64>; BANDS]) + 'a;

/// A model with everything that coding needs.
#[derive(Debug)]
pub struct Codec {
    pub(crate) model: ProbabilityModel,
    /// The symbols that heads see, by band and phase.
    pub(crate) taps: Vec<Vec<SymbolTap>>,
}

impl Codec {
    /// Codes with a model.
    pub fn new(model: ProbabilityModel) -> Self {
        let widths = model.network.widths;
        let taps = (0..BANDS)
            .flat_map(|band| (0..PHASES.len()).map(move |phase| widths.symbol_taps(band, phase)))
            .collect();
        Self { model, taps }
    }

    /// Its model.
    pub fn model(&self) -> &ProbabilityModel {
        &self.model
    }

    /// Memory that the maps of the finest level of a picture take. Those of the other levels are not there at the same time.
    pub fn map_bytes(&self, [width, height]: [usize; 2]) -> u64 {
        let layout = self.model.network.layout();
        let grid = Grid::of_size([width.div_ceil(2), height.div_ceil(2)]);
        let words = layout.maps as u64 * grid.map_length() as u64 + layout.room as u64;
        words * size_of::<u32>() as u64
    }

    /// Codes a whole picture below which so many finer levels lie, and gives back what a decoder makes of it.
    pub fn encode(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
        finer: usize,
    ) -> (Vec<u8>, Picture) {
        self.write(coefficients, quantiser, finer, None, &mut |_| {})
    }

    /// Counts the symbols of a picture, for tables; `counts` as from [`Distributions::no_counts`].
    ///
    /// [`Distributions::no_counts`]: crate::Distributions::no_counts
    pub fn count(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
        counts: &mut Vec<Vec<u64>>,
    ) {
        self.write(coefficients, quantiser, 0, Some(counts), &mut |_| {});
    }

    /// The symbols that a quantiser chooses for a picture, finest level first.
    pub fn choose(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
    ) -> Vec<[Matrix<i64>; BANDS]> {
        let mut chosen = Vec::with_capacity(coefficients.levels.len());
        let take = &mut |bands: &[Matrix<i64>; BANDS]| chosen.push(bands.clone());
        self.write(coefficients, quantiser, 0, None, take);
        chosen.reverse();
        chosen
    }

    fn write(
        &self,
        coefficients: &Coefficients,
        quantiser: Quantiser,
        finer: usize,
        counts: Option<&mut Vec<Vec<u64>>>,
        take: &mut Take,
    ) -> (Vec<u8>, Picture) {
        let transform = coefficients.transform;
        let (encoder, ll) = encode_ll(coefficients);
        let mut writing = Writing {
            encoder,
            levels: &coefficients.levels,
            quantiser: quantiser.of(transform),
            level: 0,
            has_symbols: false,
            counts,
        };
        let size = [coefficients.width, coefficients.height];
        let picture = self.code(&mut writing, size, transform, &ll, finer, take);
        (writing.encoder.finish(), picture)
    }

    /// Decodes a picture of a size below which so many finer levels lie.
    pub fn decode(
        &self,
        bytes: &[u8],
        [width, height]: [usize; 2],
        transform: Transform,
        finer: usize,
    ) -> Result<Picture> {
        let (_, [ll_w, ll_h]) = level_sizes(width, height);
        let mut decoder = Decoder::grouped(bytes);
        let ll = integers::decode_from(&mut decoder, ll_w, ll_w * ll_h, Prediction::Median, None);
        if ll
            .iter()
            .any(|value| value.unsigned_abs() > MAX_SYMBOL as u64)
        {
            return Err(Error::Payload {
                reason: "its LL band is out of range",
            });
        }
        let ll = Matrix {
            width: ll_w,
            height: ll_h,
            values: ll,
        };
        let mut reading = Reading { decoder };
        let picture = self.code(
            &mut reading,
            [width, height],
            transform,
            &ll,
            finer,
            &mut |_| {},
        );
        reading.decoder.end()?;
        Ok(picture)
    }

    /// Codes the details of the picture whose LL band is a part of another, and gives back what a decoder makes of it;
    /// without bytes where it has no details at all.
    pub fn encode_details(
        &self,
        part: Part,
        bands: &[Matrix<f64>; BANDS],
        quantiser: Quantiser,
        finer: usize,
    ) -> (Option<Vec<u8>>, Picture) {
        let mut writing = Writing {
            encoder: Encoder::grouped(),
            levels: std::slice::from_ref(bands),
            quantiser: quantiser.of(part.picture.transform),
            level: 0,
            has_symbols: false,
            counts: None,
        };
        let sizes = bands.each_ref().map(|band| [band.width, band.height]);
        let picture =
            Scratch::with(|scratch| self.level(&mut writing, part, sizes, 0, finer, scratch));
        let bytes = writing.has_symbols.then(|| writing.encoder.finish());
        (bytes, picture)
    }

    /// Decodes the details of a picture of a size, whose LL band is a part of another.
    pub fn decode_details(
        &self,
        part: Part,
        bytes: &[u8],
        size: [usize; 2],
        finer: usize,
    ) -> Result<Picture> {
        let mut reading = Reading {
            decoder: Decoder::grouped(bytes),
        };
        let picture = self.details(&mut reading, part, size, finer)?;
        reading.decoder.end()?;
        Ok(picture)
    }

    /// The bytes that say that a picture of a size has no details: the flags of its bands.
    pub fn no_details([width, height]: [usize; 2]) -> Vec<u8> {
        let (_, sizes) = subband_sizes(width, height);
        let mut encoder = Encoder::grouped();
        for _ in sizes.iter().filter(|[width, height]| width * height > 0) {
            encoder.raw(1, 1);
        }
        encoder.finish()
    }

    /// The picture whose LL band is a part of another and that has no details.
    pub fn plain(&self, part: Part, [width, height]: [usize; 2], finer: usize) -> Result<Picture> {
        self.details(&mut Nothing, part, [width, height], finer)
    }

    fn details<S: Stream>(
        &self,
        stream: &mut S,
        part: Part,
        [width, height]: [usize; 2],
        finer: usize,
    ) -> Result<Picture> {
        let (ll, sizes) = subband_sizes(width, height);
        if ll != [part.area.width, part.area.height] {
            return Err(Error::Payload {
                reason: "the picture above it has another size",
            });
        }
        Ok(Scratch::with(|scratch| {
            self.level(stream, part, sizes, 0, finer, scratch)
        }))
    }

    fn code<S: Stream>(
        &self,
        stream: &mut S,
        [width, height]: [usize; 2],
        transform: Transform,
        ll: &Matrix<i64>,
        finer: usize,
        take: &mut Take,
    ) -> Picture {
        let (sizes, _) = level_sizes(width, height);
        let mut picture = Picture::coarsest(ll, transform);
        Scratch::with(|scratch| {
            for (level, &sizes) in sizes.iter().enumerate().rev() {
                let (part, finer) = (picture.whole(), finer + level);
                let mut context = None;
                let bands = self.bands(stream, part, (level, sizes), finer, &mut context, scratch);
                take(&bands);
                picture = self.refined(part, bands, context, finer, scratch);
            }
        });
        picture
    }

    /// One level more of a part of a picture.
    pub(crate) fn level<S: Stream>(
        &self,
        stream: &mut S,
        part: Part,
        sizes: [[usize; 2]; BANDS],
        level: usize,
        finer: usize,
        scratch: &mut Scratch,
    ) -> Picture {
        // Planes and trunk are only needed where a band has symbols.
        let mut context = None;
        let level = (level, sizes);
        let bands = self.bands(stream, part, level, finer, &mut context, scratch);
        self.refined(part, bands, context, finer, scratch)
    }

    /// The symbols of a level; `context` is made where a band has symbols, or taken as it is.
    pub(crate) fn bands<S: Stream>(
        &self,
        stream: &mut S,
        part: Part,
        (level, sizes): (usize, [[usize; 2]; BANDS]),
        finer: usize,
        context: &mut Option<Planes>,
        scratch: &mut Scratch,
    ) -> [Matrix<i64>; BANDS] {
        let mut bands = sizes.map(|[width, height]| Matrix::new(width, height));
        for (number, symbols) in bands.iter_mut().enumerate() {
            if symbols.values.is_empty() || stream.is_empty(level, number) {
                continue;
            }
            let scratch = &mut *scratch;
            let planes = context.get_or_insert_with(|| self.context(part, finer, scratch));
            code_band(self, stream, planes, scratch, number, symbols);
        }
        bands
    }

    /// What a level's contexts are derived from: its planes and the trunk, which need none of its symbols.
    pub(crate) fn context(&self, part: Part, finer: usize, scratch: &mut Scratch) -> Planes {
        let above = part.picture;
        let network = &self.model.network;
        let mut planes = timed(Stage::Planes, || {
            let seen = Seen {
                image: &above.seen,
                unit: SUBSTEPS / above.transform.substeps(),
                area: part.area,
                parents: above.bands.as_ref(),
                finer,
                is_lossless: above.transform == Transform::Lossless,
            };
            let layout = network.layout();
            let length = layout.maps * Planes::map_length(&seen) + layout.room;
            Planes::with_room(seen, scratch.words(length))
        });
        timed(Stage::Trunk, || trunk(network, &mut planes, scratch));
        planes
    }

    /// The picture after a level; `context` is there where it has offsets.
    pub(crate) fn refined(
        &self,
        part: Part,
        bands: [Matrix<i64>; BANDS],
        mut context: Option<Planes>,
        finer: usize,
        scratch: &mut Scratch,
    ) -> Picture {
        let Part {
            picture: above,
            area,
        } = part;
        let transform = above.transform;
        let substeps = transform.substeps();
        let rounded = || {
            bands
                .each_ref()
                .map(|band| band.map(|symbol| symbol.wrapping_mul(substeps)))
        };
        let inverse = |ll, bands| {
            let subbands = Subbands { ll, bands };
            timed(Stage::Transform, || {
                simd::run(InverseTransform {
                    subbands,
                    transform,
                })
            })
        };
        // At the finest level nobody looks at what has no offsets.
        let is_last = finer == 0 && above.decoded.is_some();
        let seen = if is_last {
            Matrix::new(0, 0)
        } else {
            inverse(above.seen.cropped(area), rounded())
        };
        let decoded = above.decoded.as_ref().map(|decoded| {
            let with_offsets = context.as_mut().and_then(|planes| {
                timed(Stage::Dequantiser, || {
                    dequantised(&self.model.network, planes, scratch, &bands)
                })
            });
            let bands = with_offsets.unwrap_or_else(rounded);
            inverse(decoded.cropped(area), bands)
        });
        if let Some(planes) = context {
            scratch.keep(planes);
        }
        Picture {
            transform,
            seen,
            decoded,
            bands: (finer > 0).then_some(bands),
        }
    }
}

/// Codes the LL band of a picture.
pub(crate) fn encode_ll(coefficients: &Coefficients) -> (Encoder, Matrix<i64>) {
    let mut encoder = Encoder::grouped();
    let ll = coefficients.ll.map(|value| value.round() as i64);
    let width = coefficients.ll.width;
    integers::encode_to(&mut encoder, &ll.values, width, Prediction::Median, None);
    (encoder, ll)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Area;
    use crate::model::{LayerWeights, to_bytes};
    use crate::widths::Widths;

    /// A network of random weights.
    fn codec() -> Codec {
        let widths = Widths {
            trunk: 12,
            blocks: 1,
            band: 8,
            band_blocks: 1,
            look: 1,
            hidden: 12,
            last: 8,
            dequantiser: 8,
            dequantiser_blocks: 1,
            reach: 4,
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
                let (bytes, encoded) = codec.encode(&tile, quantiser, 0);
                let decoded = codec
                    .decode(&bytes, [width, height], Transform::Lossy, 0)
                    .unwrap();
                assert_eq!(decoded, encoded);
                for (&substeps, height) in decoded.values().values.iter().zip(&heights.values) {
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
            let (bytes, _) = codec.encode(&Coefficients::lossless(&whole).unwrap(), ROUNDED, 0);
            let decoded = codec
                .decode(&bytes, [width, height], Transform::Lossless, 0)
                .unwrap();
            assert_eq!(decoded.values(), &whole);
        }
    }

    #[test]
    fn chosen_symbols_are_those_that_are_coded() {
        let codec = codec();
        let quantiser = Quantiser {
            lambda: 0.12,
            dead_zone: 0.0,
        };
        let tile = Coefficients::lossy(&hills(100, 37)).unwrap();
        let chosen = codec.choose(&tile, quantiser);
        let rounded = Coefficients {
            levels: chosen
                .iter()
                .map(|bands| {
                    bands
                        .each_ref()
                        .map(|band| band.map(|symbol| symbol as f64))
                })
                .collect(),
            ..tile.clone()
        };
        assert_eq!(
            codec.encode(&rounded, ROUNDED, 0),
            codec.encode(&tile, quantiser, 0)
        );
        assert_ne!(
            codec.encode(&rounded, ROUNDED, 0),
            codec.encode(&tile, ROUNDED, 0)
        );
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
        let (bytes, decoded) = codec().encode(&tile, quantiser, 0);
        let mix =
            |sum: u64, value: u64| (sum ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
        let bytes = bytes.iter().fold(0, |sum, &byte| mix(sum, byte.into()));
        let decoded = decoded
            .values()
            .values
            .iter()
            .fold(0, |sum, value| mix(sum, value.cast_unsigned()));
        assert_eq!(
            (bytes, decoded),
            (14_714_149_570_571_176_007, 18_239_924_381_734_387_635)
        );
    }

    /// A picture as a tree: a root, and its four quarters below it.
    #[test]
    fn quarters_below_a_root_come_back() {
        let codec = codec();
        let heights = hills(88, 70);
        let windows = [
            [0, 0, 48, 40],
            [48, 0, 40, 40],
            [0, 40, 48, 30],
            [48, 40, 40, 30],
        ];
        for transform in [Transform::Lossy, Transform::Lossless] {
            let quarters = windows.map(|[column, row, width, height]| {
                let area = Area {
                    column,
                    row,
                    width,
                    height,
                };
                let part = heights.cropped(area);
                let subbands = transform.forward(&part).unwrap();
                let at = Area {
                    column: column / 2,
                    row: row / 2,
                    width: subbands.ll.width,
                    height: subbands.ll.height,
                };
                (part, subbands, at)
            });
            let mut above = Matrix::new(44, 35);
            for (_, subbands, at) in &quarters {
                above.paste(&subbands.ll, at.column, at.row);
            }
            let root = Coefficients::new(&above, transform).unwrap();
            let (bytes, root) = codec.encode(&root, ROUNDED, 1);
            assert_eq!(codec.decode(&bytes, [44, 35], transform, 1).unwrap(), root);
            for (part, subbands, at) in quarters {
                let above = Part {
                    picture: &root,
                    area: at,
                };
                let (bytes, picture) = codec.encode_details(above, &subbands.bands, ROUNDED, 0);
                let size = [part.width, part.height];
                let bytes = bytes.unwrap();
                let decoded = codec.decode_details(above, &bytes, size, 0).unwrap();
                assert_eq!(decoded, picture);
                let zeros = subbands.bands.map(|band| band.map(|_| 0.0));
                let (none, plain) = codec.encode_details(above, &zeros, ROUNDED, 0);
                assert!(none.is_none());
                assert_eq!(codec.plain(above, size, 0).unwrap(), plain);
                let unit = transform.substeps() as f64;
                for (&value, height) in picture.values().values.iter().zip(&part.values) {
                    let expected = if unit == 1.0 { height.round() } else { *height };
                    let limit = if unit == 1.0 { 0.0 } else { 3.5 };
                    assert!((value as f64 / unit - expected).abs() <= limit);
                }
                assert!(
                    codec
                        .decode_details(above, &bytes, [size[0] + 2, size[1]], 0)
                        .is_err()
                );
            }
        }
    }

    #[test]
    fn no_bit_depends_on_the_width_of_registers() {
        let codec = codec();
        let tile = Coefficients::lossy(&hills(120, 77)).unwrap();
        let all = simd::limit::each(|_| codec.encode(&tile, ROUNDED, 0));
        for other in &all {
            assert_eq!(other, &all[0]);
        }
    }

    #[test]
    fn damaged_bytes_do_not_panic() {
        let codec = codec();
        let (bytes, _) = codec.encode(&Coefficients::lossy(&hills(40, 40)).unwrap(), ROUNDED, 0);
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
