//! COGs with deflate, as GDAL writes them for floats and for integers.

use terrane_geo::{CogWriter, Existing, Kind, Output, SampleType, Storage, Window};

use super::source::Source;
use super::stored::Stored;
use crate::Result;
use crate::codecs::CodecError;

/// How heights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// 32-bit floats (predictor 3).
    Floats,
    /// Integers with a scale and an offset (predictor 2).
    Integers,
}

impl Sample {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Floats, Self::Integers];

    /// What such files are called in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floats => "COG, deflate, float32",
            Self::Integers => "COG, deflate, integers",
        }
    }

    /// A file of heights that are rounded to whole steps.
    pub(super) fn rounded(self, source: &Source, step_m: f64) -> Result<Stored> {
        let steps = source.range_m / step_m;
        match self {
            Self::Floats => {
                let round = |&height: &f64| (height / step_m).round() * step_m;
                let heights: Vec<f64> = source.heights.iter().map(round).collect();
                let storage = Storage::metres(SampleType::F32, None);
                through(self.name(), source, &heights, storage)
            }
            Self::Integers => {
                // The last value stands for gaps.
                let (sample, nodata) = if steps < f64::from(u16::MAX - 1) {
                    (SampleType::U16, f64::from(u16::MAX))
                } else {
                    (SampleType::U32, f64::from(u32::MAX))
                };
                let mut storage = Storage::metres(sample, Some(nodata));
                (storage.band.scale, storage.band.offset) = (step_m, source.low_m);
                through(self.name(), source, &source.heights, storage)
            }
        }
    }
}

/// What files without loss are called in tables.
pub(super) const LOSSLESS: &str = "COG, deflate, as the source";

/// A file with heights as the source has them.
pub(super) fn lossless(source: &Source) -> Result<Stored> {
    let storage = source.storage().clone();
    through(LOSSLESS, source, &source.heights, storage)
}

fn through(name: &str, source: &Source, heights: &[f64], storage: Storage) -> Result<Stored> {
    let failed = |error| CodecError::failed(name, error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("a.tif");
    let output = Output::new(&path, Existing::Refuse, Kind::Raster);
    let size = (source.width(), source.height());
    let georeference = terrane_geo::RasterSource::info(&source.raster)
        .georeference
        .clone();
    let mut writer = CogWriter::create(&output, size, georeference, storage)?;
    writer.write_rows(heights)?;
    writer.finish()?;
    let bytes = std::fs::metadata(&path).map_err(failed)?.len();
    let read = terrane_geo::open(&[&path])?.read(0, Window::whole(size.0, size.1))?;
    Ok(Stored {
        bytes,
        heights: read.heights,
    })
}
