//! Windows of a raster that have data everywhere.

use terrane_geo::{RasterSource, Result, Window};

/// Rows that are read at a time.
const ROWS: usize = 256;

/// The first square window of a side without a missing pixel, in the order in which their last pixels are read; `None`
/// where there is none.
pub(super) fn first_complete(raster: &dyn RasterSource, side: usize) -> Result<Option<Window>> {
    let (width, height) = raster.info().levels[0];
    // The side of the largest complete square that ends at each pixel of the row above.
    let mut above = vec![0_usize; width];
    for start in (0..height).step_by(ROWS) {
        let rows = Window {
            column: 0,
            row: start,
            width,
            height: ROWS.min(height - start),
        };
        let grid = raster.read(0, rows)?;
        for row in 0..grid.height {
            let (mut left, mut above_left) = (0, 0);
            for (column, height) in grid.row(row).iter().enumerate() {
                let square = if height.is_nan() {
                    0
                } else {
                    1 + left.min(above_left).min(above[column])
                };
                if square >= side {
                    return Ok(Some(Window {
                        column: column + 1 - side,
                        row: start + row + 1 - side,
                        width: side,
                        height: side,
                    }));
                }
                (above_left, left) = (above[column], square);
                above[column] = square;
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use terrane_geo::{Crs, Georeference, Grid, MemoryRaster, SampleType, Storage};

    use super::*;

    fn found(width: usize, height: usize, gaps: &[(usize, usize)], side: usize) -> Option<Window> {
        let mut heights = vec![1.0; width * height];
        for (column, row) in gaps {
            heights[row * width + column] = f64::NAN;
        }
        let georeference = Georeference::of_pixels(Crs::default());
        let storage = Storage::metres(SampleType::F64, None);
        let grid = Grid::new(width, height, heights);
        first_complete(&MemoryRaster::new("a", grid, georeference, storage), side).unwrap()
    }

    fn at(column: usize, row: usize, side: usize) -> Window {
        Window {
            column,
            row,
            width: side,
            height: side,
        }
    }

    #[test]
    fn the_first_window_without_gaps_is_found() {
        assert_eq!(found(10, 8, &[], 8), Some(at(0, 0, 8)));
        assert_eq!(found(10, 8, &[], 9), None);
        // One gap at the left: the window lies right of it; one in each half: below.
        assert_eq!(found(10, 8, &[(1, 2)], 5), Some(at(2, 0, 5)));
        assert_eq!(found(10, 8, &[(1, 1), (6, 2)], 5), Some(at(0, 2, 5)));
        assert_eq!(found(10, 8, &[(4, 3)], 5), Some(at(5, 0, 5)));
        assert_eq!(found(10, 8, &[(4, 3)], 6), None);
    }

    #[test]
    fn a_window_may_begin_in_one_strip_and_end_in_another() {
        let gaps: Vec<(usize, usize)> = (0..20).map(|column| (column, 250)).collect();
        assert_eq!(found(20, 300, &gaps, 20), Some(at(0, 0, 20)));
        let above: Vec<(usize, usize)> = (0..251).map(|row| (10, row)).collect();
        assert_eq!(found(20, 300, &above, 20), Some(at(0, 251, 20)));
    }
}
