//! A raster that is in memory already.

use std::path::PathBuf;

use terrane_format::Window;

use crate::{Georeference, Grid, HeightUnit, RasterInfo, RasterSource, Result, Storage};

/// Heights in metres with their georeference.
#[derive(Debug)]
pub struct MemoryRaster {
    info: RasterInfo,
    grid: Grid,
}

impl MemoryRaster {
    /// A raster of heights, NaN where there is no data; `name` stands for it in messages, and `storage` says how it would
    /// be stored.
    pub fn new(
        name: impl Into<PathBuf>,
        grid: Grid,
        georeference: Georeference,
        storage: Storage,
    ) -> Self {
        Self {
            info: RasterInfo {
                path: name.into(),
                levels: vec![(grid.width, grid.height)],
                georeference,
                storage,
                unit: HeightUnit::Metre,
            },
            grid,
        }
    }
}

impl RasterSource for MemoryRaster {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        let mut grid = self.grid.crop(window);
        grid.drop_not_heights(&self.info.storage);
        Ok(grid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Crs, SampleType};

    #[test]
    fn numbers_that_are_no_heights_are_counted() {
        let heights = vec![1.0, f64::INFINITY, f64::NAN, -1e30, 9.9e29, -3e38];
        let storage = Storage::metres(SampleType::F64, Some(-3e38));
        let georeference = Georeference::of_pixels(Crs::default());
        let raster = MemoryRaster::new("array", Grid::new(3, 2, heights), georeference, storage);
        let grid = raster.read(0, Window::whole(3, 2)).unwrap();
        assert_eq!(grid.not_heights, 2);
        let is_missing: Vec<bool> = grid.heights.iter().map(|height| height.is_nan()).collect();
        assert_eq!(is_missing, [false, true, true, true, false, true]);
        assert_eq!(raster.read(0, Window::whole(1, 2)).unwrap().not_heights, 1);
    }
}
