//! How long the wavelets take for a tile of 256×256: one level back, and all levels forth.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]
#![expect(
    clippy::inline_always,
    reason = "what runs with wider registers must be inlined into a function that has them"
)]

use std::hint::black_box;
use std::time::Instant;

use terrane_context::simd::{self, Work};
use terrane_context::{Coefficients, Matrix, Subbands, Transform};

const SIDE: usize = 256;
const RUNS: usize = 101;

/// The median of some runs, in milliseconds.
fn time<T>(mut prepare: impl FnMut() -> T, mut work: impl FnMut(T)) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let input = prepare();
            let start = Instant::now();
            work(input);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

struct Inverse(Transform, Subbands<i64>);

impl Work for Inverse {
    type Output = Matrix<i64>;
    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Matrix<i64> {
        self.0.inverse(self.1)
    }
}

fn main() {
    let hills = |scale: f64| {
        let values = (0..SIDE * SIDE)
            .map(|index| {
                let (x, y) = ((index % SIDE) as f64, (index / SIDE) as f64);
                scale * (200.0 + 40.0 * (x / 17.0).sin() * (y / 11.0).cos() + (x * y).sin())
            })
            .collect();
        Matrix {
            width: SIDE,
            height: SIDE,
            values,
        }
    };
    for transform in [Transform::Lossy, Transform::Lossless] {
        for (name, scale) in [("small numbers", 10.0), ("large numbers", 1e5)] {
            let Some(subbands) = transform.forward(&hills(scale)) else {
                continue;
            };
            let substeps = transform.substeps() as f64;
            let whole = |band: Matrix<f64>| band.map(|value| (value * substeps).round() as i64);
            let subbands = Subbands {
                ll: whole(subbands.ll),
                bands: subbands.bands.map(whole),
            };
            let back = time(
                || subbands.clone(),
                |subbands| {
                    black_box(simd::run(Inverse(transform, subbands)));
                },
            );
            println!("{transform:?}, {name}: one level back in {back:.3} ms");
        }
        let picture = hills(10.0);
        let forth = time(
            || (),
            |()| {
                black_box(Coefficients::new(&picture, transform));
            },
        );
        println!("{transform:?}: all levels forth in {forth:.3} ms");
    }
}
