//! The work on one level of a tile: trunk, bands, offsets, and the inverse transform.

use std::cell::Cell;
use std::ops::Range;

use terrane_format::coder;

use crate::codec::Codec;
use crate::coefficients::Transform;
use crate::compand::{Compander, SUBSTEPS, raised_steps};
use crate::distribution::Context;
use crate::grid::{LANES, PHASE_OF, PHASES, Rectangle};
use crate::kernel::{OUTPUTS, Target};
use crate::matrix::Matrix;
use crate::model::ProbabilityModel;
use crate::network::{Network, Rounded};
use crate::planes::{GROUP, INPUT_MAPS, MASK_MAP, Planes, SYMBOL_MAP, symbol_place};
use crate::simd::{self, Work};
use crate::stream::Stream;
use crate::timing::{Stage, timed};
use crate::wavelet::{BANDS, Subbands};
use crate::widths::window;

/// Room that is used again from level to level and from picture to picture.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<u32>,
    inputs: Vec<usize>,
    /// At the positions of a phase, with those between its rows.
    contexts: Vec<Context>,
    /// The dequantiser's, at the positions of each band and phase, with those between rows.
    offsets: [[Vec<i8>; PHASES.len()]; BANDS],
    packed: Packed,
}

/// Of symbols one after another.
#[derive(Debug, Default)]
struct Packed {
    contexts: Vec<Context>,
    indices: Vec<u32>,
    /// Of each phase.
    symbols: [Vec<i64>; PHASES.len()],
}

/// Words that a thread keeps at most: 16 MiB, the largest networks on the tiles that files have.
const MAX_KEPT: usize = 1 << 22;

impl Scratch {
    /// Works with the room that this thread has.
    pub(crate) fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        thread_local! {
            static SCRATCH: Cell<Scratch> = Cell::default();
        }
        let mut scratch = SCRATCH.take();
        let result = work(&mut scratch);
        SCRATCH.set(scratch);
        result
    }

    /// Words with nothing in them that is needed.
    pub(crate) fn spare(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.words)
    }

    /// So many words of 0.
    pub(crate) fn words(&mut self, length: usize) -> Vec<u32> {
        let mut words = self.spare();
        words.clear();
        words.resize(length, 0);
        words
    }

    /// Takes the words of a level back.
    pub(crate) fn keep(&mut self, planes: Planes) {
        if planes.values.capacity() <= MAX_KEPT {
            self.words = planes.values;
        }
    }
}

/// Which positions a layer is computed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The part and its margin.
    Valid,
    /// The part alone, where nothing looks further.
    Own,
}

impl Extent {
    /// Where a layer is needed that others see within a radius, or only at the position.
    fn seen_within(radius: usize) -> Self {
        if radius > 0 { Self::Valid } else { Self::Own }
    }
}

/// A convolution of maps to maps.
struct Convolution<'a> {
    layer: Rounded<'a>,
    sources: [Range<usize>; 3],
    target: usize,
    is_residual: bool,
    extent: Extent,
}

/// No maps.
const NONE: Range<usize> = 0..0;

impl Convolution<'_> {
    fn run(self, planes: &mut Planes, inputs: &mut Vec<usize>) {
        let grid = planes.grid;
        for phase in 0..PHASES.len() {
            inputs.clear();
            for source in &self.sources {
                for at in window(1) {
                    inputs.extend(source.clone().map(|map| grid.neighbour(map, phase, at)));
                }
            }
            let span = grid.span(&match self.extent {
                Extent::Valid => grid.valid(phase),
                Extent::Own => grid.own(phase),
            });
            let target = Target {
                first: grid.phase(self.target, phase) + span.start,
                step: grid.map_length(),
                mask: Some(grid.phase(MASK_MAP, phase) + span.start),
                is_residual: self.is_residual,
            };
            self.layer.layer.activations(
                &mut planes.values,
                self.layer.bias,
                (inputs, span.start),
                span.len().div_ceil(LANES),
                &target,
            );
        }
    }
}

/// The residual blocks of maps, from their layers; `extent` is that of the last one's result.
fn residual_blocks<'a>(
    planes: &mut Planes,
    inputs: &mut Vec<usize>,
    blocks: impl ExactSizeIterator<Item = [Rounded<'a>; 2]>,
    maps: &Range<usize>,
    inside: usize,
    extent: Extent,
) {
    let count = blocks.len();
    for (index, [first, second]) in blocks.enumerate() {
        Convolution {
            layer: first,
            sources: [maps.clone(), NONE, NONE],
            target: inside,
            is_residual: false,
            extent: Extent::Valid,
        }
        .run(planes, inputs);
        Convolution {
            layer: second,
            sources: [inside..inside + maps.len(), NONE, NONE],
            target: maps.start,
            is_residual: true,
            extent: if index + 1 == count {
                extent
            } else {
                Extent::Valid
            },
        }
        .run(planes, inputs);
    }
}

/// Computes the trunk at all positions.
pub(crate) fn trunk(network: &Network, planes: &mut Planes, scratch: &mut Scratch) {
    let (widths, layout) = (network.widths, network.layout());
    let maps = layout.trunk..layout.trunk + widths.trunk / GROUP;
    let extent = Extent::seen_within(widths.band.max(widths.look).max(widths.dequantiser_blocks));
    let bias = network.first().rounded_bias(&planes.constants);
    Convolution {
        layer: Rounded {
            layer: network.first(),
            bias: &bias,
        },
        sources: [0..INPUT_MAPS, NONE, NONE],
        target: layout.trunk,
        is_residual: false,
        extent: if widths.blocks == 0 {
            extent
        } else {
            Extent::Valid
        },
    }
    .run(planes, &mut scratch.inputs);
    let blocks = (0..widths.blocks).map(|block| network.trunk_block(block));
    residual_blocks(
        planes,
        &mut scratch.inputs,
        blocks,
        &maps,
        layout.inside,
        extent,
    );
}

/// Computes the features of a band, where the network has layers for them.
fn band_features(network: &Network, planes: &mut Planes, scratch: &mut Scratch, band: usize) {
    let (widths, layout) = (network.widths, network.layout());
    if widths.band == 0 {
        return;
    }
    let maps = layout.band..layout.band + widths.band / GROUP;
    Convolution {
        layer: network.band(band),
        sources: [
            layout.trunk..layout.trunk + widths.trunk / GROUP,
            if band > 0 {
                SYMBOL_MAP..SYMBOL_MAP + 1
            } else {
                NONE
            },
            NONE,
        ],
        target: layout.band,
        is_residual: false,
        extent: Extent::seen_within(widths.band_blocks.max(widths.look)),
    }
    .run(planes, &mut scratch.inputs);
    let blocks = (0..widths.band_blocks).map(|block| network.band_block(band, block));
    residual_blocks(
        planes,
        &mut scratch.inputs,
        blocks,
        &maps,
        layout.inside,
        Extent::seen_within(widths.look),
    );
}

/// One band of a level: its features, then phase by phase its heads and symbols.
pub(crate) fn code_band<S: Stream>(
    codec: &Codec,
    stream: &mut S,
    planes: &mut Planes,
    scratch: &mut Scratch,
    band: usize,
    symbols: &mut Matrix<i64>,
) {
    let network = &codec.model.network;
    timed(Stage::Bands, || {
        band_features(network, planes, scratch, band);
    });
    for (phase, [row, column]) in PHASES.into_iter().enumerate() {
        let rectangle = Rectangle {
            rows: 1..1 + (symbols.height + 1 - row) / 2,
            columns: 1..1 + (symbols.width + 1 - column) / 2,
        };
        if rectangle.rows.is_empty() || rectangle.columns.is_empty() {
            continue;
        }
        timed(Stage::Heads, || {
            contexts_of(codec, planes, scratch, band, phase, &rectangle);
        });
        timed(Stage::Symbols, || {
            simd::run(CodePhase {
                model: &codec.model,
                stream,
                planes,
                contexts: &scratch.contexts,
                packed: &mut scratch.packed,
                band,
                phase,
                rectangle,
                width: symbols.width,
            });
        });
    }
    timed(Stage::Symbols, || {
        simd::run(Interleave {
            phases: &scratch.packed.symbols,
            symbols,
        });
    });
}

/// Puts the phases of a band's symbols together.
struct Interleave<'a> {
    phases: &'a [Vec<i64>; PHASES.len()],
    symbols: &'a mut Matrix<i64>,
}

impl Work for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let width = self.symbols.width;
        for row in 0..self.symbols.height {
            let line = |parity: usize| {
                let length = (width + 1 - parity) / 2;
                let phase = &self.phases[PHASE_OF[row % 2][parity]];
                &phase[row / 2 * length..][..length]
            };
            let (even, odd) = (line(0), line(1));
            let (pairs, last) = self.symbols.row_mut(row).as_chunks_mut::<2>();
            for ((pair, &even), &odd) in pairs.iter_mut().zip(even).zip(odd) {
                *pair = [even, odd];
            }
            if let ([last], Some(&even)) = (last, even.last()) {
                *last = even;
            }
        }
    }
}

/// The contexts of a band's phase, from the first to the last position of a rectangle.
fn contexts_of(
    codec: &Codec,
    planes: &mut Planes,
    scratch: &mut Scratch,
    band: usize,
    phase: usize,
    rectangle: &Rectangle,
) {
    let network = &codec.model.network;
    let (widths, layout, grid) = (network.widths, network.layout(), planes.grid);
    let head = band * PHASES.len() + phase;
    let first_map = if widths.band > 0 {
        layout.band
    } else {
        layout.trunk
    };
    let inputs = &mut scratch.inputs;
    inputs.clear();
    let features = first_map..first_map + widths.features() / GROUP;
    for at in window(widths.look as isize) {
        inputs.extend(features.clone().map(|map| grid.neighbour(map, phase, at)));
    }
    inputs.extend(codec.taps[head].iter().map(|tap| {
        let map = SYMBOL_MAP + tap.group;
        grid.neighbour(map, phase, [tap.down, tap.right])
    }));
    let room = layout.maps * grid.map_length();
    let span = grid.span(rectangle);
    let blocks = span.len().div_ceil(LANES);
    scratch.contexts.resize(blocks * LANES, Context::default());
    // The layers after the first read what the one before wrote.
    let between: Vec<usize> = (0..(widths.hidden + widths.last) / GROUP)
        .map(|group| room + group * LANES)
        .collect();
    let mut sums = [[0; LANES]; OUTPUTS];
    for (start, contexts) in span
        .step_by(LANES)
        .zip(scratch.contexts.as_chunks_mut::<LANES>().0)
    {
        let mut sources = (&inputs[..], start);
        let mut used = 0;
        for rounded in network.head(head) {
            let layer = rounded.layer;
            let end = used + layer.groups();
            let Some(next) = between.get(used..end) else {
                layer.sums(&planes.values, sources, &mut sums);
                break;
            };
            let target = Target {
                first: room + used * LANES,
                step: LANES,
                mask: None,
                is_residual: false,
            };
            layer.activations(&mut planes.values, rounded.bias, sources, 1, &target);
            sources = (next, 0);
            used = end;
        }
        simd::run(Contexts {
            sums: &sums,
            contexts,
        });
    }
}

/// Contexts from sums.
struct Contexts<'a> {
    sums: &'a [[i32; LANES]; OUTPUTS],
    contexts: &'a mut [Context; LANES],
}

impl Work for Contexts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let [mean, scale, shape, _] = self.sums;
        let mut has_far = false;
        for lane in 0..LANES {
            self.contexts[lane] = Context::near(mean[lane], scale[lane], shape[lane]);
            has_far |= Context::is_far(mean[lane]);
        }
        if has_far {
            for (context, &mean) in self.contexts.iter_mut().zip(mean) {
                if Context::is_far(mean) {
                    *context = context.with_far_mean(mean);
                }
            }
        }
    }
}

/// The symbols of a band's phase.
struct CodePhase<'a, S> {
    model: &'a ProbabilityModel,
    stream: &'a mut S,
    planes: &'a mut Planes,
    /// From the first to the last position of the rectangle.
    contexts: &'a [Context],
    packed: &'a mut Packed,
    band: usize,
    phase: usize,
    rectangle: Rectangle,
    /// Columns of the band.
    width: usize,
}

impl<S: Stream> Work for CodePhase<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let compander = Compander::get();
        let grid = self.planes.grid;
        let [row_phase, column_phase] = PHASES[self.phase];
        let (width, stride) = (self.width, grid.stride());
        let Rectangle { rows, columns } = self.rectangle;
        let Packed {
            contexts,
            indices,
            symbols,
        } = self.packed;
        let symbols = &mut symbols[self.phase];
        contexts.clear();
        indices.clear();
        for row in 0..rows.len() {
            contexts.extend_from_slice(&self.contexts[row * stride..][..columns.len()]);
            let first = (2 * row + row_phase) * width + column_phase;
            indices.extend((0..columns.len()).map(|column| (first + 2 * column) as u32));
        }
        symbols.resize(indices.len(), 0);
        for ((indices, contexts), symbols) in indices
            .chunks(coder::GROUP)
            .zip(contexts.chunks(coder::GROUP))
            .zip(symbols.chunks_mut(coder::GROUP))
        {
            self.stream
                .symbols(self.model, self.band, indices, contexts, symbols);
        }
        let (map, shift) = symbol_place(self.band);
        let first = grid.phase(map, self.phase) + rows.start * stride + columns.start;
        for (row, symbols) in symbols.chunks_exact(columns.len()).enumerate() {
            let words = &mut self.planes.values[first + row * stride..][..columns.len()];
            for (words, symbols) in words.chunks_mut(LANES).zip(symbols.chunks(LANES)) {
                let mut raised = [0; LANES];
                for (raised, &symbol) in raised.iter_mut().zip(symbols) {
                    *raised = raised_steps(symbol);
                }
                for (word, &raised) in words.iter_mut().zip(&raised) {
                    *word |= u32::from(compander.coarse_raised(raised)) << shift;
                }
            }
        }
    }
}

/// The coefficients that symbols stand for, in 1/64 steps: with the dequantiser's offsets, where there is one.
pub(crate) fn dequantised(
    network: &Network,
    planes: &mut Planes,
    scratch: &mut Scratch,
    bands: &[Matrix<i64>; BANDS],
) -> Option<[Matrix<i64>; BANDS]> {
    let [first, last] = network.dequantiser()?;
    let (widths, layout, grid) = (network.widths, network.layout(), planes.grid);
    let trunk = layout.trunk..layout.trunk + widths.trunk / GROUP;
    let has_maps = widths.dequantiser_blocks > 0;
    let maps = layout.band..layout.band + widths.dequantiser / GROUP;
    if has_maps {
        Convolution {
            layer: first,
            sources: [
                trunk.clone(),
                SYMBOL_MAP..SYMBOL_MAP + 1,
                SYMBOL_MAP + 1..SYMBOL_MAP + 2,
            ],
            target: maps.start,
            is_residual: false,
            extent: Extent::Valid,
        }
        .run(planes, &mut scratch.inputs);
        let blocks = (0..widths.dequantiser_blocks).map(|block| network.dequantiser_block(block));
        let inputs = &mut scratch.inputs;
        residual_blocks(planes, inputs, blocks, &maps, layout.inside, Extent::Own);
    }
    let room = layout.maps * grid.map_length();
    let between: Vec<usize> = (0..widths.dequantiser / GROUP)
        .map(|group| room + group * LANES)
        .collect();
    let target = Target {
        first: room,
        step: LANES,
        mask: None,
        is_residual: false,
    };
    let radius = isize::from(widths.band > 0);
    let inputs = &mut scratch.inputs;
    for phase in 0..PHASES.len() {
        let span = grid.span(&grid.own(phase));
        inputs.clear();
        if has_maps {
            inputs.extend(maps.clone().map(|map| grid.phase(map, phase)));
        } else {
            for at in window(radius) {
                inputs.extend(trunk.clone().map(|map| grid.neighbour(map, phase, at)));
            }
            for map in SYMBOL_MAP..SYMBOL_MAP + 2 {
                inputs.extend(window(1).map(|at| grid.neighbour(map, phase, at)));
            }
        }
        for offsets in &mut scratch.offsets {
            offsets[phase].resize(span.len().next_multiple_of(LANES), 0);
        }
        let mut sums = [[0; LANES]; OUTPUTS];
        for (block, start) in span.step_by(LANES).enumerate() {
            let mut sources = (&inputs[..], start);
            if !has_maps {
                let layer = first.layer;
                layer.activations(&mut planes.values, first.bias, sources, 1, &target);
                sources = (&between, 0);
            }
            last.layer.sums(&planes.values, sources, &mut sums);
            for (offsets, sums) in scratch.offsets.iter_mut().zip(&sums) {
                let offsets = offsets[phase].as_chunks_mut().0;
                simd::run(Offsets {
                    sums,
                    offsets: &mut offsets[block],
                });
            }
        }
    }
    Some(simd::run(Dequantise {
        offsets: &scratch.offsets,
        stride: grid.stride(),
        bands,
    }))
}

/// Offsets from sums: in 1/64 steps, at most half a step.
struct Offsets<'a> {
    sums: &'a [i32; LANES],
    offsets: &'a mut [i8; LANES],
}

impl Work for Offsets<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (offset, &sum) in self.offsets.iter_mut().zip(self.sums) {
            // Sums are that large only where they are clamped anyway.
            *offset = (sum.saturating_add(16) >> 5).clamp(-32, 32) as i8;
        }
    }
}

/// Adds offsets to symbols.
struct Dequantise<'a> {
    offsets: &'a [[Vec<i8>; PHASES.len()]; BANDS],
    stride: usize,
    bands: &'a [Matrix<i64>; BANDS],
}

impl Work for Dequantise<'_> {
    type Output = [Matrix<i64>; BANDS];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> [Matrix<i64>; BANDS] {
        let value = |symbol: i64, offset: i8| {
            let value = symbol.wrapping_mul(SUBSTEPS);
            value.wrapping_add(offset.into())
        };
        std::array::from_fn(|band| {
            let (symbols, phases) = (&self.bands[band], &self.offsets[band]);
            let mut values = Matrix::new(symbols.width, symbols.height);
            for row in 0..symbols.height {
                let line = |parity: usize| {
                    let length = (symbols.width + 1 - parity) / 2;
                    let start = if length == 0 {
                        0
                    } else {
                        row / 2 * self.stride
                    };
                    &phases[PHASE_OF[row % 2][parity]][start..start + length]
                };
                let (even, odd) = (line(0), line(1));
                let (pairs, last) = symbols.row(row).as_chunks::<2>();
                let (out, out_last) = values.row_mut(row).as_chunks_mut::<2>();
                for (((out, pair), &even), &odd) in out.iter_mut().zip(pairs).zip(even).zip(odd) {
                    *out = [value(pair[0], even), value(pair[1], odd)];
                }
                if let ([out], [symbol], Some(&even)) = (out_last, last, even.last()) {
                    *out = value(*symbol, even);
                }
            }
            values
        })
    }
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
