//! A georeferenced elevation raster, read by windows.

use std::path::{Path, PathBuf};

use terrane_format::{Window, halve};

use crate::sample::is_height;
use crate::{
    Cropped, Error, GeoTiff, Georeference, GroundScale, HeightUnit, Mosaic, Note, RasterOptions,
    Result, Storage,
};

/// Heights in metres, row by row from the top; `NaN` where there is no data.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// `width * height` heights.
    pub heights: Vec<f64>,
    /// How many pixels of the window that was read hold a number which is no height, because it is infinite or of 1e30
    /// and beyond, without being the nodata value that the file declares. Their heights are `NaN` as if they were
    /// missing, which whoever guarantees every valid pixel has to report. 0 in a grid that was made of another.
    pub not_heights: usize,
}

impl Grid {
    /// A grid of heights, all of which are heights or missing.
    pub fn new(width: usize, height: usize, heights: Vec<f64>) -> Self {
        Self {
            width,
            height,
            heights,
            not_heights: 0,
        }
    }

    /// A grid without data.
    pub fn missing(width: usize, height: usize) -> Self {
        Self::new(width, height, vec![f64::NAN; width * height])
    }

    /// One row of heights.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.heights[row * self.width..][..self.width]
    }

    /// Whether every pixel has a height.
    pub fn is_complete(&self) -> bool {
        !self.heights.iter().any(|height| height.is_nan())
    }

    /// A part of the grid, which must lie inside it.
    #[must_use]
    pub fn crop(&self, window: Window) -> Self {
        let heights = (window.row..window.row + window.height)
            .flat_map(|row| &self.row(row)[window.column..window.column + window.width])
            .copied()
            .collect();
        Self::new(window.width, window.height, heights)
    }

    /// Puts another grid, which must fit, over a part of this one.
    pub fn paste(&mut self, part: &Self, column: usize, row: usize) {
        for (index, values) in part.heights.chunks_exact(part.width.max(1)).enumerate() {
            let start = (row + index) * self.width + column;
            self.heights[start..start + part.width].copy_from_slice(values);
        }
    }

    /// Takes numbers that are no heights for missing, and counts those that a storage does not declare as nodata.
    pub fn drop_not_heights(&mut self, storage: &Storage) {
        for height in self
            .heights
            .iter_mut()
            .filter(|height| !is_height(**height))
        {
            if !height.is_nan() && !storage.is_nodata(*height) {
                self.not_heights += 1;
            }
            *height = f64::NAN;
        }
    }

    /// The grid at half the resolution: each pixel the mean of the valid ones among its two by two.
    #[must_use]
    pub fn halved(&self) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        Self::new(width, height, halve(&self.heights, self.width))
    }
}

/// What is known of a raster before its heights are read.
#[derive(Debug, Clone, PartialEq)]
pub struct RasterInfo {
    /// The file, or the first file of a mosaic.
    pub path: PathBuf,
    /// Columns and rows at full resolution, then of each overview from fine to coarse.
    pub levels: Vec<(usize, usize)>,
    /// Where the raster lies.
    pub georeference: Georeference,
    /// How the heights are stored.
    pub storage: Storage,
    /// The unit they are stored in.
    pub unit: HeightUnit,
}

impl RasterInfo {
    /// Columns at full resolution.
    pub fn width(&self) -> usize {
        self.levels[0].0
    }

    /// Rows at full resolution.
    pub fn height(&self) -> usize {
        self.levels[0].1
    }

    /// Side of a pixel on the ground in metres, at the middle of the raster. A system whose unit is not known counts as
    /// metric.
    pub fn pixel_m(&self) -> f64 {
        let georeference = &self.georeference;
        GroundScale::of(&georeference.crs)
            .unwrap_or_else(|_| GroundScale::constant(1.0))
            .pixel_m(&georeference.affine(), self.levels[0])
    }

    /// Checks that a window lies inside a level.
    pub fn check(&self, level: usize, window: Window) -> Result<()> {
        let Some(&(width, height)) = self.levels.get(level) else {
            return Err(Error::NoSuchLevel {
                path: self.path.clone(),
                level,
                last: self.levels.len() - 1,
            });
        };
        if !window.fits(width, height) || window.pixels().is_none() {
            return Err(Error::OutsideRaster {
                path: self.path.clone(),
                window,
                width,
                height,
            });
        }
        Ok(())
    }
}

/// A raster that can be read by windows.
pub trait RasterSource: Send + Sync {
    /// What is known before any height is read.
    fn info(&self) -> &RasterInfo;

    /// Reads heights in metres at a level (0 is full resolution); memory is bounded by the window.
    fn read(&self, level: usize, window: Window) -> Result<Grid>;

    /// Columns of the blocks in which full resolution is stored; 0 where that differs or nobody knows.
    fn block_width(&self) -> usize {
        0
    }

    /// Whether any pixel of a window at full resolution may have a height; `false` is certain, and costs no reading.
    fn touches(&self, window: Window) -> bool {
        let _ = window;
        true
    }

    /// What should be said of the raster before it is trusted.
    fn notes(&self) -> &[Note] {
        &[]
    }

    /// What tells the raster from others and from itself before it was changed: its files, and how they are read. Empty for
    /// what is in memory.
    fn identity(&self) -> String {
        String::new()
    }

    /// Fails where a file is no longer what it was when it was opened: then what was read before and after do not
    /// belong together. What is in memory does not change.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Opens one `GeoTIFF`, or several as one mosaic.
pub fn open(paths: &[impl AsRef<Path>]) -> Result<Box<dyn RasterSource>> {
    open_with(paths, &RasterOptions::default())
}

/// Opens one `GeoTIFF`, or several as one mosaic, of which something is said that counts before what the files state.
pub fn open_with(
    paths: &[impl AsRef<Path>],
    options: &RasterOptions,
) -> Result<Box<dyn RasterSource>> {
    let whole: Box<dyn RasterSource> = match paths {
        [] => return Err(Error::NoInput),
        [path] => Box::new(GeoTiff::open_with(path.as_ref(), options)?),
        _ => Box::new(Mosaic::open_with(paths, options)?),
    };
    Ok(match options.bbox {
        None => whole,
        Some(bbox) => Box::new(Cropped::new(whole, bbox)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_holds_its_window() {
        let grid = Grid::new(4, 3, (0..12).map(f64::from).collect());
        let crop = grid.crop(Window {
            column: 1,
            row: 1,
            width: 2,
            height: 2,
        });
        assert_eq!(crop.heights, [5.0, 6.0, 9.0, 10.0]);
    }
}
