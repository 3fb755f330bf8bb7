//! How rasters are read, and what is said of them.

use std::path::PathBuf;

use anyhow::Result;
use terrane_geo::{
    Crs, HeightUnit, Note, RasterOptions, RasterSource, parse_band, parse_bbox, parse_number,
    parse_unit,
};

use crate::output::{one_line, with_options};

/// What is said of rasters; it counts before what their files state.
#[derive(Default, clap::Args)]
#[command(next_help_heading = "Reading rasters")]
pub(crate) struct RasterArguments {
    /// The band that holds the heights, from 1; needed where there are several.
    #[arg(long, value_name = "N", value_parser = parse_band)]
    band: Option<u16>,
    /// The coordinate reference system: EPSG:2056, EPSG:2056+5728 with the system of heights, or well-known text.
    #[arg(long, value_name = "CRS", value_parser = parse_crs)]
    crs: Option<Crs>,
    /// The stored number of pixels without data; nan too.
    #[arg(long, value_name = "V", value_parser = parse_number, allow_hyphen_values = true)]
    nodata: Option<f64>,
    /// The unit of the heights: m, ft, us-ft; where nothing states it they are metres.
    #[arg(long, value_name = "UNIT", value_parser = parse_unit)]
    vertical_unit: Option<HeightUnit>,
    /// The part to read, in the raster's own coordinates: every pixel that the box touches.
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse_bbox, allow_hyphen_values = true)]
    bbox: Option<[f64; 4]>,
}

fn parse_crs(text: &str) -> Result<Crs, terrane_geo::CrsTextError> {
    text.parse()
}

impl RasterArguments {
    /// As the library has it.
    pub(crate) fn options(&self) -> RasterOptions {
        RasterOptions {
            band: self.band,
            crs: self.crs.clone(),
            nodata: self.nodata,
            vertical_unit: self.vertical_unit,
            bbox: self.bbox,
        }
    }

    /// Opens rasters, one or several as a mosaic, and says on standard error what should be said of them.
    pub(crate) fn open(&self, paths: &[PathBuf]) -> Result<Box<dyn RasterSource>> {
        let raster = terrane_geo::open_with(paths, &self.options())?;
        tell(raster.notes());
        Ok(raster)
    }
}

/// Says on standard error what should be said of rasters; of many rasters the beginning.
pub(crate) fn tell(notes: &[Note]) {
    const TOLD: usize = 5;
    for note in notes.iter().take(TOLD) {
        eprintln!(
            "terrane: note: {}",
            one_line(&with_options(&note.to_string()))
        );
    }
    if let Some(more) = notes.len().checked_sub(TOLD).filter(|&more| more > 0) {
        eprintln!("terrane: note: and {more} more of the kind");
    }
}
