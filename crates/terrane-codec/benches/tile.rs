//! One tile of 256×256 pixels through each profile of the context codec, on one core.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop where it is"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_codec::Profile;
use terrane_codec::context::{Coefficients, Matrix, Quantiser, Transform};
use terrane_codec::random::Random;

const SIDE: usize = 256;

/// Hills of all sizes: a sum of random waves whose heights fall with their lengths.
fn hills() -> Matrix<f64> {
    let mut random = Random::new(1, 0);
    let waves: Vec<[f64; 4]> = (0..160)
        .map(|index| {
            let length = 256.0 / 1.03_f64.powi(index);
            let turn = random.unit() * std::f64::consts::TAU;
            let rate = std::f64::consts::TAU / length;
            [
                rate * turn.cos(),
                rate * turn.sin(),
                random.unit() * std::f64::consts::TAU,
                0.02 * length,
            ]
        })
        .collect();
    let values = (0..SIDE * SIDE)
        .map(|index| {
            let (x, y) = ((index % SIDE) as f64, (index / SIDE) as f64);
            let height = |[a, b, c, d]: &[f64; 4]| d * (a * x + b * y + c).sin();
            waves.iter().map(height).sum::<f64>() + 0.1 * random.normal()
        })
        .collect();
    Matrix::from_values(SIDE, SIDE, values).unwrap()
}

fn profiles(criterion: &mut Criterion) {
    let heights = hills();
    let effort = Quantiser {
        lambda: 0.12,
        dead_zone: 0.0,
    };
    // The step that gives about half a bit per pixel.
    let step = 1.1;
    let scaled = Matrix {
        values: heights.values.iter().map(|height| height / step).collect(),
        ..heights
    };
    for profile in Profile::ALL {
        let model = profile.model();
        let codec = model.context().unwrap();
        let (bytes, _) = codec.encode(&Coefficients::lossy(&scaled).unwrap(), effort, 0);
        let rate = bytes.len() as f64 * 8.0 / (SIDE * SIDE) as f64;
        let mut group =
            criterion.benchmark_group(format!("{profile:?} at {rate:.2} bits per pixel"));
        group.sample_size(30);
        group.bench_function("decode", |bencher| {
            bencher.iter(|| {
                codec
                    .decode(&bytes, [SIDE, SIDE], Transform::Lossy, 0)
                    .unwrap()
            });
        });
        group.bench_function("encode", |bencher| {
            bencher.iter(|| codec.encode(&Coefficients::lossy(&scaled).unwrap(), effort, 0));
        });
        group.finish();
    }
}

criterion_group!(benches, profiles);
criterion_main!(benches);
