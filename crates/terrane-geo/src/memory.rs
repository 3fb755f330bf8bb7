//! A raster that is in memory already.

use std::path::PathBuf;

use terrane_format::Window;

use crate::{Georeference, Grid, HeightUnit, RasterInfo, RasterSource, Result, Storage};

/// Heights in metres with their place on the ground.
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
        Ok(self.grid.crop(window))
    }
}
