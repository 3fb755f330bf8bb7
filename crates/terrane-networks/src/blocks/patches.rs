//! Tiles cut into patches and put together again.

use burn::tensor::Tensor;

/// Tiles `[batch, side, side]` to patches `[batch, patches, patch²]`, both row by row.
pub fn split_patches(tiles: Tensor<3>, patch: usize) -> Tensor<3> {
    let [batch, height, width] = tiles.dims();
    let (rows, columns) = (height / patch, width / patch);
    tiles
        .reshape([batch, rows, patch, columns, patch])
        .swap_dims(2, 3)
        .reshape([batch, rows * columns, patch * patch])
}

/// Patches `[batch, patches, patch²]` of square tiles to tiles `[batch, side, side]`.
pub fn join_patches(patches: Tensor<3>, patch: usize) -> Tensor<3> {
    let [batch, count, _] = patches.dims();
    let across = count.isqrt();
    patches
        .reshape([batch, across, across, patch, patch])
        .swap_dims(2, 3)
        .reshape([batch, across * patch, across * patch])
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Int, Tensor};

    use super::*;

    #[test]
    fn patches_are_row_by_row_and_come_back() {
        let tiles = Tensor::<1, Int>::arange(0..32, &Device::flex())
            .float()
            .reshape([2, 4, 4]);
        let patches = split_patches(tiles.clone(), 2);
        assert_eq!(patches.dims(), [2, 4, 4]);
        let second = patches
            .clone()
            .narrow(0, 0, 1)
            .narrow(1, 1, 1)
            .into_data()
            .try_to_vec::<f32>()
            .unwrap();
        assert_eq!(second, [2.0, 3.0, 6.0, 7.0]);
        assert_eq!(join_patches(patches, 2).into_data(), tiles.into_data());
    }
}
