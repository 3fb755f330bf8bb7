//! Times one tile through networks of random weights: `speed WIDTHS…`, each `trunk,blocks,band,band_blocks,hidden,last,dequantiser,reach`.
//!
//! The tile is made up: 256 × 256 heights that take about 0.8 bits each. Prints the median of 30 runs, in milliseconds, of encoding and
//! decoding (and the quickest, for machines that have other things to do) and of their parts.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program to measure with"
)]

use std::time::{Duration, Instant};

use terrane_context::timing::{Stage, take};
use terrane_context::{
    BANDS, Codec, Coefficients, LayerWeights, Matrix, PHASES, Picture, ProbabilityModel, Quantiser,
    Transform, Widths, to_bytes,
};

const SIDE: usize = 256;
const RUNS: usize = 30;
const SMALLEST: &str = "8,0,0,0,8,0,4,1";

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn unit(&mut self) -> f64 {
        self.below(1 << 24) as f64 / f64::from(1 << 24)
    }
}

/// Random weights, but a last layer of heads that says little, as before training.
fn codec(widths: Widths) -> Codec {
    let mut random = Random(1);
    let layers: Vec<LayerWeights> = widths
        .layers()
        .iter()
        .map(|shape| {
            let is_last = shape.outputs == 4 && shape.name.starts_with("head");
            let spread = if is_last { 1 } else { 21 };
            LayerWeights {
                weights: (0..shape.inputs * shape.outputs)
                    .map(|_| (random.below(2 * spread + 1) as i64 - spread as i64) as i8)
                    .collect(),
                bias: (0..shape.outputs)
                    .map(|_| random.below(401) as i32 - 200)
                    .collect(),
            }
        })
        .collect();
    let bytes = to_bytes("speed", &widths, &layers, &[]).unwrap();
    Codec::new(ProbabilityModel::from_bytes(&bytes).unwrap())
}

/// Hills with noise, so many steps high.
fn tile(noise: f64) -> Coefficients {
    let mut random = Random(7);
    let values = (0..SIDE * SIDE)
        .map(|index| {
            let (x, y) = ((index % SIDE) as f64, (index / SIDE) as f64);
            60.0 * (x / 37.0).sin() * (y / 29.0).cos()
                + 2.0 * (x / 7.0 + y / 11.0).sin()
                + noise * (random.unit() + random.unit() - 1.0)
        })
        .collect();
    Coefficients::lossy(&Matrix::from_values(SIDE, SIDE, values).unwrap()).unwrap()
}

/// Products of a network on a tile whose bands all have symbols, without margins and padding.
fn products(widths: &Widths) -> usize {
    let mut positions = 0;
    let mut side = SIDE / 2;
    while side >= 8 {
        positions += side * side;
        side /= 2;
    }
    let layers = widths.layers();
    let per_position: usize = layers
        .iter()
        .map(|layer| {
            let all = layer.inputs * layer.outputs * PHASES.len();
            // A head works on one phase.
            if layer.name.starts_with("head") {
                all / PHASES.len()
            } else {
                all
            }
        })
        .sum();
    per_position * positions / PHASES.len()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    milliseconds(times[times.len() / 2])
}

/// The quickest, and medians of the whole and of each stage.
fn measure(mut work: impl FnMut()) -> (f64, f64, Vec<f64>) {
    let mut whole = Vec::new();
    let mut parts = vec![Vec::new(); Stage::ALL.len()];
    for run in 0..RUNS + 3 {
        take();
        let start = Instant::now();
        work();
        let time = start.elapsed();
        if run >= 3 {
            whole.push(time);
            for (part, time) in parts.iter_mut().zip(take()) {
                part.push(time);
            }
        }
    }
    let least = whole.iter().min().copied().unwrap_or_default();
    let parts = parts.into_iter().map(median).collect();
    (milliseconds(least), median(whole), parts)
}

fn main() {
    let mut all: Vec<String> = std::env::args().skip(1).collect();
    if all.is_empty() {
        all.push(SMALLEST.into());
    }
    let quantiser = Quantiser::ROUNDING;
    for text in all {
        let numbers: Vec<usize> = text.split(',').map(|part| part.parse().unwrap()).collect();
        let &[
            trunk,
            blocks,
            band,
            band_blocks,
            hidden,
            last,
            dequantiser,
            reach,
        ] = &numbers[..]
        else {
            panic!("eight widths, not {text}");
        };
        let widths = Widths {
            trunk,
            blocks,
            band,
            band_blocks,
            hidden,
            last,
            dequantiser,
            reach,
        };
        let codec = codec(widths);
        // The noise that makes the tile as long as wanted.
        let bits = |noise: f64| {
            let (bytes, _) = codec.encode(&tile(noise), quantiser, 0);
            bytes.len() as f64 * 8.0 / (SIDE * SIDE) as f64
        };
        let (mut low, mut high) = (0.0, 8.0);
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            if bits(middle) < 0.8 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let tile = tile(high);
        let (bytes, picture) = codec.encode(&tile, quantiser, 0);
        let products = products(&widths);
        println!(
            "{text}: {} bytes, {:.2} bits each, {:.1} million products a tile ({} bands a level)",
            bytes.len(),
            bytes.len() as f64 * 8.0 / (SIDE * SIDE) as f64,
            products as f64 / 1e6,
            BANDS,
        );
        let encoding = measure(|| {
            std::hint::black_box(codec.encode(&tile, quantiser, 0));
        });
        let mut decoded: Option<Picture> = None;
        let decoding = measure(|| {
            decoded = codec.decode(&bytes, [SIDE, SIDE], Transform::Lossy, 0).ok();
        });
        assert_eq!(decoded.as_ref(), Some(&picture), "what comes back");
        for (name, (least, whole, parts)) in [("encode", encoding), ("decode", decoding)] {
            print!("  {name} {whole:.3} ms (quickest {least:.3}):");
            for (stage, part) in Stage::ALL.iter().zip(&parts) {
                print!(" {stage:?} {part:.3}");
            }
            let rest = whole - parts.iter().sum::<f64>();
            let network: f64 = [Stage::Trunk, Stage::Bands, Stage::Heads, Stage::Dequantiser]
                .iter()
                .map(|&stage| parts[stage as usize])
                .sum();
            println!(
                " rest {rest:.3}; network {:.0} GMAC/s",
                products as f64 / network / 1e6
            );
        }
    }
}
