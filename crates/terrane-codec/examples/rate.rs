//! Codes square tiles at a rate: `rate MODEL TILES.f32 SIDE EFFORT bound|rmse|bpp|lossless VALUE`
//!
//! Prints a JSON line per tile with the bytes of its record and its errors, and the mean at the end.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program to measure with"
)]

use std::time::Instant;

use terrane_codec::format::{Coding, MemoryLimit, Method, Record, Window};
use terrane_codec::{Models, Rate, TileEncoder};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, tiles, side, effort, kind, value] = &arguments[..] else {
        panic!("rate MODEL TILES.f32 SIDE EFFORT KIND VALUE");
    };
    let side: usize = side.parse().unwrap();
    let value: f64 = value.parse().unwrap();
    let encoder = TileEncoder {
        method: if model == "integers" {
            Method::Integers
        } else {
            Method::Context
        },
        model: match model.as_str() {
            "integers" => None,
            path => {
                let file = std::fs::read(path).unwrap();
                Some(Models::LIGHT.load(&file, MemoryLimit::default()).unwrap())
            }
        },
        bits: 8,
        coding: Coding::Shortest,
        rate: match kind.as_str() {
            "bound" => Rate::MaxError(value),
            "rmse" => Rate::Rmse(value),
            "bpp" => Rate::Bpp(value),
            _ => Rate::Lossless,
        },
        is_f32: true,
        source_step_m: 0.0,
        effort: effort.parse().unwrap(),
    };
    let heights: Vec<f64> = std::fs::read(tiles)
        .unwrap()
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
        .collect();
    let window = Window::whole(side, side);
    let pixels = (side * side) as f64;
    let (mut sum, mut worst, mut count) = (0.0, 0.0_f64, 0.0);
    for (index, tile) in heights.chunks_exact(side * side).enumerate() {
        let clock = Instant::now();
        let coded = encoder.encode(tile, window).unwrap().unwrap();
        let measured = coded.measured;
        let bytes = coded.bytes;
        let record = Record::parse(&bytes, 0, window, None).unwrap();
        let bpp = bytes.len() as f64 * 8.0 / pixels;
        println!(
            "{{\"tile\":{index},\"bpp\":{bpp:.5},\"rmse_m\":{:.6},\"max_error_m\":{:.6},\"ms\":{:.1},\"kind\":{},\"step_m\":{:.4}}}",
            measured.rmse_m(),
            measured.max_error_m,
            clock.elapsed().as_secs_f64() * 1e3,
            bytes[4],
            match &record.layer {
                terrane_codec::format::Layer::Wavelet(details) => details.step_m,
                _ => 0.0,
            },
        );
        sum += bpp;
        worst = worst.max(measured.max_error_m);
        count += 1.0;
    }
    println!(
        "{{\"mean_bpp\":{:.4},\"max_error_m\":{worst:.7}}}",
        sum / count
    );
}
