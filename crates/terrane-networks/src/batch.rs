//! Tiles as one tensor.

use burn::tensor::{Device, Tensor, TensorData};

use crate::{Error, Normalisation};

/// Normalises tiles of heights in metres into a tensor `[batch, side, side]`, with the map of each tile.
pub fn batch(
    tiles: &[impl AsRef<[f32]>],
    side: usize,
    device: &Device,
) -> Result<(Tensor<3>, Vec<Normalisation>), Error> {
    let mut values = Vec::with_capacity(tiles.len() * side * side);
    let mut maps = Vec::with_capacity(tiles.len());
    for tile in tiles {
        let heights = tile.as_ref();
        if heights.len() != side * side {
            return Err(Error::TileSize {
                side,
                found: heights.len(),
            });
        }
        if let Some(index) = heights.iter().position(|height| !height.is_finite()) {
            return Err(Error::NotAHeight {
                row: index / side,
                column: index % side,
            });
        }
        let map = Normalisation::of(heights);
        values.extend(heights.iter().map(|&height| map.normalise(height)));
        maps.push(map);
    }
    let tensor = Tensor::from_data(TensorData::new(values, [tiles.len(), side, side]), device);
    Ok((tensor, maps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_become_one_normalised_tensor() {
        let device = Device::flex();
        let (tensor, maps) = batch(&[[1.0_f32, 2.0, 3.0, 5.0], [7.0; 4]], 2, &device).unwrap();
        assert_eq!(tensor.dims(), [2, 2, 2]);
        assert_eq!(
            tensor.into_data().try_to_vec::<f32>().unwrap(),
            [0.0, 0.25, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0]
        );
        assert_eq!(
            maps[0],
            Normalisation {
                low_m: 1.0,
                range_m: 4.0
            }
        );
    }

    #[test]
    fn a_tile_of_the_wrong_size_or_with_holes_is_refused() {
        let device = Device::flex();
        assert!(matches!(
            batch(&[[1.0_f32; 5]], 2, &device).unwrap_err(),
            Error::TileSize { side: 2, found: 5 }
        ));
        let holes = [1.0, f32::NAN, 2.0, 3.0];
        assert!(matches!(
            batch(&[holes], 2, &device).unwrap_err(),
            Error::NotAHeight { row: 0, column: 1 }
        ));
    }
}
