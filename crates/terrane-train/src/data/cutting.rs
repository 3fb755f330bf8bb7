//! Rasters cut into a tile dataset.

use std::path::{Path, PathBuf};

use terrane_geo::{Existing, GeoTiff, Grid, RasterSource, Window};

use crate::data::{Dataset, DatasetWriter, Source, catalogue};
use crate::{Error, Result};

/// A band of tiles is read in pieces of this many columns, so that memory does not grow with the raster.
const PIECE_COLUMNS: usize = 8192;
/// The splits whose tiles may overlap: nothing is measured on them.
const OVERLAPPING: [&str; 2] = ["train", "other"];

/// How rasters are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Side of a tile in pixels.
    pub side: usize,
    /// Distance between tiles of the splits train and other; those of the rest never overlap.
    pub train_stride: usize,
}

/// Cuts every `GeoTIFF` of a folder into tiles without missing heights, on a plain grid from its first pixel.
///
/// Splits come from the folder's `catalog.csv`, else from the name of the region; one region in two splits is refused.
/// `progress` is called with the number of rasters done, of all rasters, and the name of the next one.
pub fn build(
    folder: &Path,
    target: &Path,
    cut: Cut,
    existing: Existing,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Dataset> {
    if cut.side == 0 || cut.train_stride == 0 || cut.train_stride > cut.side {
        return Err(Error::Stride {
            side: cut.side,
            stride: cut.train_stride,
        });
    }
    let paths = rasters(folder)?;
    let catalogue = catalogue::read(folder)?;
    let mut writer = DatasetWriter::create(target, cut.side, existing, &[folder])?;
    let mut tiles = 0;
    let mut largest = (0, 0, PathBuf::new());
    for (done, path) in paths.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        progress(done, paths.len(), &name);
        let raster = GeoTiff::open(path)?;
        let entry = catalogue.entry(&name);
        let region = catalogue.region(&name);
        let split = catalogue.split(&region).to_owned();
        let resolution_m = entry
            .and_then(|entry| entry.resolution_m)
            .unwrap_or_else(|| raster.info().pixel_m());
        let stride = if OVERLAPPING.contains(&split.as_str()) {
            cut.train_stride
        } else {
            cut.side
        };
        let country = entry.and_then(|entry| entry.country.clone());
        writer.add_source(Source {
            country: country.unwrap_or_default(),
            ..Source::new(raster.info(), region, split, resolution_m)
        });
        let (width, height) = raster.info().levels[0];
        if width.min(height) >= largest.0.min(largest.1) {
            largest = (width, height, path.clone());
        }
        cut_raster(&raster, cut.side, stride, |column, row, heights| {
            tiles += 1;
            writer.add_tile(column, row, heights)
        })?;
        raster.check_unchanged()?;
    }
    progress(paths.len(), paths.len(), "");
    if tiles == 0 {
        let (width, height, path) = largest;
        return Err(Error::NoTiles {
            path: folder.to_owned(),
            side: cut.side,
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            width,
            height,
        });
    }
    writer.finish()
}

/// The `GeoTIFF`s of a folder, by name.
pub fn rasters(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io {
        path: folder.to_owned(),
        action: "be listed",
        source,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        if extension == "tif" || extension == "tiff" {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(Error::NoRasters {
            path: folder.to_owned(),
        });
    }
    Ok(paths)
}

/// Hands over every tile of `side` pixels, `stride` apart, that has no missing height; memory is bounded by
/// `PIECE_COLUMNS` × `side` pixels.
fn cut_raster(
    raster: &dyn RasterSource,
    side: usize,
    stride: usize,
    mut tile: impl FnMut(usize, usize, &[f32]) -> Result<()>,
) -> Result<()> {
    let (width, height) = raster.info().levels[0];
    if side > width || side > height {
        return Ok(());
    }
    let tiles_across = (width - side) / stride + 1;
    let tiles_per_piece = (PIECE_COLUMNS.saturating_sub(side) / stride + 1).max(1);
    for row in (0..=height - side).step_by(stride) {
        for first in (0..tiles_across).step_by(tiles_per_piece) {
            let count = tiles_per_piece.min(tiles_across - first);
            let column = first * stride;
            let piece = raster.read(
                0,
                Window {
                    column,
                    row,
                    width: (count - 1) * stride + side,
                    height: side,
                },
            )?;
            for index in 0..count {
                if let Some(heights) = complete(&piece, index * stride, side) {
                    tile(column + index * stride, row, &heights)?;
                }
            }
        }
    }
    Ok(())
}

/// The tile of a band that starts at a column, unless a height is missing.
fn complete(band: &Grid, column: usize, side: usize) -> Option<Vec<f32>> {
    let mut heights = Vec::with_capacity(side * side);
    for row in 0..side {
        let line = &band.row(row)[column..column + side];
        heights.extend(line.iter().map(|&height| height as f32));
    }
    // What is too high for a float is missing too.
    heights
        .iter()
        .all(|height| height.is_finite())
        .then_some(heights)
}

#[cfg(test)]
mod tests {
    use terrane_geo::{Affine, CogWriter, Crs, Georeference, SampleType, Storage};

    use super::*;

    fn write(path: &Path, width: usize, height: usize, missing: Option<(usize, usize)>) {
        let mut heights: Vec<f64> = (0..width * height)
            .map(|index| (index % width) as f64 + 0.5 * (index / width) as f64)
            .collect();
        if let Some((column, row)) = missing {
            heights[row * width + column] = f64::NAN;
        }
        let georeference = Georeference::new(
            Affine::north_up(500_000.0, 5_000_000.0, 2.0),
            Crs::projected(32632, None),
        );
        let storage = Storage::metres(SampleType::F32, Some(-9999.0));
        let mut writer = CogWriter::create(
            &terrane_geo::Output::named_here(path, Existing::Refuse),
            (width, height),
            georeference,
            storage,
        )
        .unwrap();
        writer.write_rows(&heights).unwrap();
        writer.finish().unwrap();
    }

    fn build_quietly(folder: &Path, target: &Path, cut: Cut) -> Result<Dataset> {
        build(folder, target, cut, Existing::Refuse, &mut |_, _, _| {})
    }

    #[test]
    fn tiles_keep_their_heights_their_position_and_their_split() {
        let folder = tempfile::tempdir().unwrap();
        let rasters = folder.path().join("rasters");
        std::fs::create_dir(&rasters).unwrap();
        write(&rasters.join("a.tif"), 100, 70, None);
        write(&rasters.join("b.tif"), 64, 64, Some((33, 2)));
        write(&rasters.join("small.tif"), 20, 200, None);
        std::fs::write(
            rasters.join("catalog.csv"),
            "file,split,resolution_m\na.tif,train,2\nb.tif,test,2\nsmall.tif,val,2\n",
        )
        .unwrap();
        let cut = Cut {
            side: 32,
            train_stride: 16,
        };
        let dataset = build_quietly(&rasters, &folder.path().join("set"), cut).unwrap();
        assert_eq!(dataset.splits(), ["train", "test", "val"]);
        assert_eq!(dataset.split("train").len(), 5 * 3);
        assert_eq!(dataset.split("test").len(), 3);
        assert_eq!(dataset.split("val").len(), 0);

        let tile = dataset.split("train")[6];
        let record = dataset.tiles()[tile];
        assert_eq!((record.column, record.row), (16, 16));
        let heights = dataset.heights(tile).unwrap();
        assert_eq!(heights[0], 16.0 + 8.0);
        assert_eq!((record.min_m, record.max_m), (24.0, 24.0 + 31.0 + 15.5));
        let georeference = dataset
            .source(tile)
            .georeference()
            .cropped(record.column, record.row);
        assert_eq!(
            georeference.affine().apply(0.0, 0.0),
            (500_032.0, 4_999_968.0)
        );
        assert_eq!(georeference.crs.horizontal_epsg(), Some(32632));

        assert_eq!(dataset.empty_splits(), ["val"]);
        let statistics = dataset.statistics();
        assert_eq!(statistics.len(), 2);
        assert_eq!((statistics[1].tiles, statistics[1].mean_range_m), (3, 46.5));
        assert_eq!(statistics[0].resolutions_m, [2.0]);
    }

    #[test]
    fn wide_rasters_are_read_in_pieces_without_losing_a_tile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wide.tif");
        write(&path, 2 * PIECE_COLUMNS + 100, 16, None);
        let raster = GeoTiff::open(&path).unwrap();
        let mut columns = Vec::new();
        cut_raster(&raster, 16, 8, |column, _, heights| {
            assert_eq!(heights[0], column as f32);
            columns.push(column);
            Ok(())
        })
        .unwrap();
        let expected: Vec<_> = (0..=2 * PIECE_COLUMNS + 84).step_by(8).collect();
        assert_eq!(columns, expected);
    }

    #[test]
    fn a_build_without_tiles_names_the_largest_raster() {
        let folder = tempfile::tempdir().unwrap();
        let rasters = folder.path().join("rasters");
        std::fs::create_dir(&rasters).unwrap();
        write(&rasters.join("a.tif"), 300, 20, None);
        write(&rasters.join("b.tif"), 40, 50, None);
        write(&rasters.join("c.tif"), 30, 90, None);
        let cut = |side: usize| Cut {
            side,
            train_stride: side,
        };
        let target = folder.path().join("set");
        let text = build_quietly(&rasters, &target, cut(41))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("no raster in it has a tile of 41x41 pixels without a gap")
                && text.contains("the largest is b.tif with 40x50 pixels"),
            "{text}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        build_quietly(&rasters, &target, cut(40)).unwrap();
    }

    #[test]
    fn rasters_are_not_replaced_by_their_tiles() {
        let folder = tempfile::tempdir().unwrap();
        let rasters = folder.path().join("rasters");
        std::fs::create_dir(&rasters).unwrap();
        write(&rasters.join("a.tif"), 64, 64, None);
        let cut = Cut {
            side: 32,
            train_stride: 32,
        };
        let replace = |target: &Path| {
            build(&rasters, target, cut, Existing::Replace, &mut |_, _, _| {})
                .map(drop)
                .map_err(|error| error.to_string())
        };
        let text = replace(&rasters).unwrap_err();
        assert!(
            text.contains("holds \"a.tif\", which is no part of a tile dataset"),
            "{text}"
        );
        let text = replace(folder.path()).unwrap_err();
        assert!(text.contains("holds \"rasters\""), "{text}");
        assert!(rasters.join("a.tif").exists());
        // Inside its input a dataset may appear, but not be replaced.
        let inside = rasters.join("set");
        replace(&inside).unwrap();
        let text = replace(&inside).unwrap_err();
        assert!(text.contains("is, holds or lies in the input"), "{text}");
        Dataset::open(&inside).unwrap();
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_a_damaged_dataset_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let rasters = folder.path().join("rasters");
        std::fs::create_dir(&rasters).unwrap();
        let target = folder.path().join("set");
        let cut = Cut {
            side: 32,
            train_stride: 32,
        };
        assert!(matches!(
            build_quietly(&rasters, &target, cut),
            Err(Error::NoRasters { .. })
        ));
        std::fs::write(rasters.join("broken.tif"), b"II*").unwrap();
        assert!(matches!(
            build_quietly(&rasters, &target, cut),
            Err(Error::Raster(_))
        ));
        assert!(!target.exists());
        let bad = Cut {
            side: 32,
            train_stride: 0,
        };
        assert!(matches!(
            build_quietly(&rasters, &target, bad),
            Err(Error::Stride { .. })
        ));

        std::fs::remove_file(rasters.join("broken.tif")).unwrap();
        write(&rasters.join("a.tif"), 64, 64, None);
        build_quietly(&rasters, &target, cut).unwrap();
        let heights = target.join("heights.f32");
        let bytes = std::fs::read(&heights).unwrap();
        std::fs::write(&heights, &bytes[1..]).unwrap();
        assert!(matches!(Dataset::open(&target), Err(Error::Dataset { .. })));
        assert!(matches!(
            Dataset::open(folder.path()),
            Err(Error::Dataset { .. })
        ));
    }
}
