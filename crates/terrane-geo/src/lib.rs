//! Elevation rasters in and out, and their geodesy.
//!
//! A [`RasterSource`] is a georeferenced raster that is read by windows of heights in metres: a [`GeoTiff`], or several
//! as one [`Mosaic`]. A [`CogWriter`] writes one row by row. Every flavour of file is read as GDAL reads it or refused
//! with a sentence that says why; nothing is guessed. [`geodesy`] measures them on the ground, and
//! [`Derivatives`] are slopes and curvatures there.
//!
//! ```
//! use terrane_geo::{Affine, CogWriter, Crs, Existing, Georeference, Kind, Output, SampleType, Storage, Window};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("hill.tif");
//! let georeference = Georeference::new(Affine::north_up(2_600_000.0, 1_200_000.0, 1.0), Crs::projected(2056, Some(5728)));
//! let storage = Storage::metres(SampleType::F32, Some(-9999.0));
//! let output = Output::new(&path, Existing::Refuse, Kind::Raster);
//! let mut writer = CogWriter::create(&output, (3, 2), georeference, storage)?;
//! writer.write_rows(&[431.5, 432.0, 432.5])?;
//! writer.write_rows(&[431.0, f64::NAN, 432.0])?;
//! writer.finish()?;
//!
//! let raster = terrane_geo::open(&[&path])?;
//! assert_eq!(raster.info().georeference.crs.to_string(), "EPSG:2056+5728");
//! let grid = raster.read(0, Window { column: 1, row: 0, width: 2, height: 2 })?;
//! assert_eq!(grid.heights[..2], [432.0, 432.5]);
//! assert!(grid.heights[2].is_nan());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod atomic;
mod atomic_folder;
mod cog;
mod cropped;
mod crs;
mod crs_geotiff;
mod crs_name;
mod crs_text;
mod derivative;
mod directory;
mod error;
mod file_state;
mod foreign;
pub mod geodesy;
mod georeference;
mod geotiff;
mod memory;
mod metadata;
mod mosaic;
mod note;
mod output;
mod plain_cog;
mod raster;
mod raster_options;
mod sample;
pub mod synthetic;
mod tag;
mod unit;

pub use atomic::{AtomicFile, refuse_existing, remove_abandoned, remove_unfinished, scratch};
pub use atomic_folder::{AtomicFolder, FolderKind};
pub use cog::CogWriter;
pub use cropped::{Cropped, box_window};
pub use crs::{Crs, CrsKind};
pub use crs_text::CrsTextError;
pub use derivative::{Cell, Derivatives, Product, UnknownProduct, derive_rows};
pub use error::{Error, Result};
pub use geodesy::{GeodesyError, Ground, GroundScale, Projection, System};
pub use georeference::{Affine, Georeference};
pub use geotiff::{GeoTiff, sidecars};
pub use memory::MemoryRaster;
pub use metadata::{BandMetadata, MetadataItem, Quantity};
pub use mosaic::{Mosaic, Piece, Pieces};
pub use note::Note;
pub use output::{Existing, Kind, Output, is_same_file};
pub use plain_cog::{PlainBlocks, PlainCog, PlainRaster};
pub use raster::{Grid, RasterInfo, RasterSource, open, open_with};
pub use raster_options::{
    RasterOptionError, RasterOptions, parse_band, parse_bbox, parse_number, parse_unit,
};
pub use sample::{SampleType, Storage};
pub use terrane_format::Window;
pub use unit::{HeightUnit, UnitOrigin};
