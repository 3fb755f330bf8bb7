//! Codes square tiles at a row of steps: `curve MODEL TILES.f32 SIDE LAMBDA DEAD_ZONE OUT.f32 REPEATS STEP…`
//!
//! Steps are parts of each tile's range. Prints one JSON line per tile and step with the bytes and milliseconds (of the quickest decoding), and
//! writes the decoded heights one after another, so that another program can measure them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program to measure with"
)]

use std::io::Write;
use std::time::Instant;

use terrane_context::{Codec, Coefficients, Matrix, ProbabilityModel, Quantiser, Transform};
use terrane_format::{Layer, Record, WaveletLayer};

/// As the command has it.
#[cfg(not(target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of the record of a file that holds a tile's payload.
fn record_bytes(step_m: f64, offset: i64, bytes: &[u8], side: usize) -> usize {
    let layer = Layer::Wavelet(WaveletLayer {
        is_lossless: false,
        step_m,
        offset,
        bytes: bytes.to_vec(),
    });
    let record = Record {
        missing: None,
        flats: None,
        layer,
        residual: None,
        corrections: None,
    };
    record.to_bytes(0, side, None).len()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap();
    let model = ProbabilityModel::from_bytes(&std::fs::read(next()).unwrap()).unwrap();
    let codec = Codec::new(model);
    let heights = std::fs::read(next()).unwrap();
    let side: usize = next().parse().unwrap();
    let quantiser = Quantiser {
        lambda: next().parse().unwrap(),
        dead_zone: next().parse().unwrap(),
    };
    let mut out = std::fs::File::create(next()).unwrap();
    let repeats: usize = next().parse().unwrap();
    let steps: Vec<f64> = arguments.map(|step| step.parse().unwrap()).collect();
    let heights: Vec<f64> = heights
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
        .collect();
    for (index, tile) in heights.chunks_exact(side * side).enumerate() {
        let low = tile.iter().copied().fold(f64::INFINITY, f64::min);
        let high = tile.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for part in &steps {
            // As a record has them: a float of 32 bits, and a number of such steps.
            let step = f64::from(((high - low) * part) as f32);
            let offset = (f64::midpoint(low, high) / step).round();
            let middle = offset * step;
            let clock = Instant::now();
            let values = tile.iter().map(|height| (height - middle) / step).collect();
            let grid = Matrix::from_values(side, side, values).unwrap();
            let (bytes, encoded) = codec.encode(&Coefficients::lossy(&grid).unwrap(), quantiser, 0);
            let encode_ms = clock.elapsed().as_secs_f64() * 1e3;
            let mut decode_ms = f64::INFINITY;
            for _ in 0..repeats {
                let clock = Instant::now();
                let decoded = codec.decode(&bytes, [side, side], Transform::Lossy, 0);
                decode_ms = decode_ms.min(clock.elapsed().as_secs_f64() * 1e3);
                assert_eq!(decoded.unwrap(), encoded);
            }
            let back: Vec<u8> = encoded
                .values()
                .values
                .iter()
                .flat_map(|&substeps| {
                    ((middle + step / 64.0 * substeps as f64) as f32).to_le_bytes()
                })
                .collect();
            out.write_all(&back).unwrap();
            println!(
                "{{\"tile\":{index},\"step\":{part},\"bytes\":{},\"encode_ms\":{encode_ms:.3},\"decode_ms\":{decode_ms:.3}}}",
                record_bytes(step, offset as i64, &bytes, side)
            );
        }
    }
}
