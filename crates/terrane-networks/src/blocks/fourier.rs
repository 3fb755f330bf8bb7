//! Fourier features of pixel centres, as the ReLU methods see them.

use std::f64::consts::PI;

use burn::tensor::{Device, Tensor, TensorData};

use crate::blocks::pixel_positions;

/// The highest frequency; the others lie below it in equal ratios down to 1.
const HIGHEST: f64 = 1024.0;

/// Features `[side², 4 · frequencies]` of the centres of `side` × `side` pixels: cosines, then sines, of the row's
/// multiples, then the column's.
pub fn fourier_features(side: usize, frequencies: usize, device: &Device) -> Tensor<2> {
    // On the host and in double precision: 1024π times a float is wrong in the fifth digit.
    let positions = pixel_positions(side);
    let step = HIGHEST.ln() / (frequencies.max(2) - 1) as f64;
    let multiples: Vec<f64> = (0..frequencies)
        .map(|index| PI * (step * index as f64).exp())
        .collect();
    let mut features = Vec::with_capacity(side * side * 4 * frequencies);
    for y in &positions {
        for x in &positions {
            for function in [f64::cos, f64::sin] {
                for position in [y, x] {
                    features.extend(
                        multiples
                            .iter()
                            .map(|multiple| function(position * multiple) as f32),
                    );
                }
            }
        }
    }
    Tensor::from_data(
        TensorData::new(features, [side * side, 4 * frequencies]),
        device,
    )
}
