//! The work on one level of a tile: trunk, bands, offsets, and the inverse transform.

use crate::codec::Codec;
use crate::coefficients::Transform;
use crate::compand::Compander;
use crate::distribution::Context;
use crate::matrix::Matrix;
use crate::network::{Inputs, Row, Scratch};
use crate::planes::{LANES, PHASES, Planes, Tap};
use crate::simd::Work;
use crate::stream::Stream;
use crate::wavelet::{BANDS, Subbands};

/// The trunk's outputs and the neighbours, for [`LANES`] positions of a phase.
#[inline(always)]
fn inputs<'a>(
    trunk: &'a [Row],
    planes: &'a Planes,
    taps: &'a [Tap],
    phase: usize,
    start: usize,
) -> Inputs<'a> {
    let around = taps.iter().map(|tap| planes.lanes(tap, phase, start));
    Inputs::new(trunk.iter().chain(around), trunk.len() + taps.len())
}

/// The trunk's outputs at all positions of a level, phase by phase: for every [`LANES`] positions a row per channel.
pub(crate) type Trunks = [Vec<Row>; 4];

pub(crate) struct Trunk<'a> {
    pub(crate) codec: &'a Codec,
    pub(crate) planes: &'a Planes,
    pub(crate) scratch: &'a mut Scratch,
}

impl Work for Trunk<'_> {
    type Output = Trunks;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Trunks {
        let network = &self.codec.model.network;
        let bias = network.trunk_bias(&self.planes.constants);
        let taps = &self.codec.taps.trunk;
        let span = self.planes.span();
        let mut trunks = [const { Vec::new() }; 4];
        for (phase, out) in trunks.iter_mut().enumerate() {
            out.reserve(span.len().div_ceil(LANES) * network.widths.trunk);
            for start in span.clone().step_by(LANES) {
                let inputs = inputs(&[], self.planes, taps, phase, start);
                out.extend_from_slice(network.trunk::<FUSED>(&bias, &inputs, self.scratch));
            }
        }
        trunks
    }
}

/// One band of a level.
pub(crate) struct Band<'a, S> {
    pub(crate) codec: &'a Codec,
    pub(crate) stream: &'a mut S,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) planes: &'a mut Planes,
    pub(crate) trunks: &'a Trunks,
    pub(crate) number: usize,
    pub(crate) symbols: &'a mut Matrix<i64>,
}

impl<S: Stream> Work for Band<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let compander = Compander::get();
        let model = &self.codec.model;
        let width = model.network.widths.trunk;
        let span = self.planes.span();
        for (phase, trunks) in self.trunks.iter().enumerate() {
            let head = self.number * PHASES.len() + phase;
            let taps = &self.codec.taps.heads[head];
            for (start, trunk) in span.clone().step_by(LANES).zip(trunks.chunks_exact(width)) {
                let inputs = inputs(trunk, self.planes, taps, phase, start);
                let sums = model.network.head::<FUSED>(head, &inputs, self.scratch);
                let mut contexts = [Context::default(); LANES];
                let (mut indices, mut lanes) = ([0; LANES], [0; LANES]);
                let mut count = 0;
                for [lane, column, row] in self.planes.positions(phase, start) {
                    if column < self.symbols.width && row < self.symbols.height {
                        contexts[count] =
                            Context::new(sums[0][lane] as i32, sums[1][lane] as i32, -2048);
                        indices[count] = (row * self.symbols.width + column) as u32;
                        lanes[count] = lane;
                        count += 1;
                    }
                }
                let mut symbols = [0; LANES];
                self.stream.symbols(
                    model,
                    self.number,
                    &indices[..count],
                    &contexts[..count],
                    &mut symbols[..count],
                );
                for at in 0..count {
                    if symbols[at] != 0 {
                        self.symbols.values[indices[at] as usize] = symbols[at];
                        let seen = compander.coarse(symbols[at]);
                        self.planes
                            .set_symbol(self.number, phase, start + lanes[at], seen);
                    }
                }
            }
        }
    }
}

/// Adds the dequantiser's offsets, in 1/64 steps, to the coefficients of a level.
pub(crate) struct Offsets<'a> {
    pub(crate) codec: &'a Codec,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) planes: &'a Planes,
    pub(crate) trunks: &'a Trunks,
    pub(crate) bands: &'a mut [Matrix<i64>; BANDS],
}

impl Work for Offsets<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let network = &self.codec.model.network;
        let width = network.widths.trunk;
        let taps = &self.codec.taps.dequantiser;
        let span = self.planes.span();
        for (phase, trunks) in self.trunks.iter().enumerate() {
            for (start, trunk) in span.clone().step_by(LANES).zip(trunks.chunks_exact(width)) {
                let inputs = inputs(trunk, self.planes, taps, phase, start);
                let Some(sums) = network.dequantiser::<FUSED>(&inputs, self.scratch) else {
                    return;
                };
                for [lane, column, row] in self.planes.positions(phase, start) {
                    for (band, sums) in self.bands.iter_mut().zip(sums) {
                        if column < band.width && row < band.height {
                            band.values[row * band.width + column] += offset(sums[lane]);
                        }
                    }
                }
            }
        }
    }
}

/// The dequantiser's offset in 1/64 steps, at most half a step.
#[inline(always)]
fn offset(sum: f32) -> i64 {
    ((sum as i32 + 16) >> 5).clamp(-32, 32).into()
}

/// The inverse transform of a level.
pub(crate) struct InverseTransform {
    pub(crate) subbands: Subbands<i64>,
    pub(crate) transform: Transform,
}

impl Work for InverseTransform {
    type Output = Matrix<i64>;
    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Matrix<i64> {
        self.transform.inverse(self.subbands)
    }
}
