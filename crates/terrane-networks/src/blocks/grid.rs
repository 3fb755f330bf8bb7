//! Coordinates of pixels: centred, (row, column), from −1 to 1.

use burn::tensor::{Device, Tensor, TensorData};

/// Centres of `count` pixels that fill [−1, 1].
pub fn pixel_positions(count: usize) -> Vec<f64> {
    (0..count)
        .map(|index| -1.0 + (2 * index + 1) as f64 / count as f64)
        .collect()
}

/// The centres of `side` × `side` pixels as points `[side², 2]` of (row, column), row by row.
pub fn pixel_grid(side: usize, device: &Device) -> Tensor<2> {
    let positions = pixel_positions(side);
    let points: Vec<f32> = positions
        .iter()
        .flat_map(|&y| positions.iter().flat_map(move |&x| [y as f32, x as f32]))
        .collect();
    Tensor::from_data(TensorData::new(points, [side * side, 2]), device)
}
