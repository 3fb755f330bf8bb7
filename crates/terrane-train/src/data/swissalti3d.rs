//! The dataset of the paper: swissALTI3D at 1 m, nine tiles of 256 × 256 from the middle of each square kilometre.
//!
//! ```text
//! 2000×2000 at 0.5 m ─► mean of 2×2 ─► 1000×1000 at 1 m ─► centred 3×3 tiles of 256 (116 pixels margin on each side)
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use terrane_codec::random::hash;
use terrane_geo::{Existing, GeoTiff, RasterSource, Window};

use crate::data::download::{self, Options, Progress};
use crate::data::links::{Link, SourceTile, parse_links};
use crate::data::{Dataset, DatasetWriter, Source};
use crate::{Error, Result};

const SOURCE_SIDE: usize = 2000;
const SOURCE_PIXEL_M: f64 = 0.5;
const SIDE: usize = 256;
const ACROSS: usize = 3;
const MARGIN: usize = (SOURCE_SIDE / 2 - ACROSS * SIDE) / 2;

/// What happens while the dataset is made.
#[derive(Debug)]
pub enum Step<'a> {
    /// A file is being downloaded: its number, the number of files, its name, and how far it is.
    Download(usize, usize, &'a str, Progress<'a>),
    /// A file is being cut: its number, the number of files, its name.
    Cut(usize, usize, &'a str),
}

/// Downloads the rasters of an official link list into `downloads`, and cuts them into a dataset.
///
/// Downloads that are there already are checked and kept, so an interrupted run goes on where it stopped. Where a
/// square kilometre was surveyed more than once, the newest survey counts.
pub fn build(
    list: &Path,
    downloads: &Path,
    target: &Path,
    existing: Existing,
    options: &Options,
    progress: &mut dyn FnMut(Step),
) -> Result<Dataset> {
    let inputs = [list, downloads];
    DatasetWriter::check(target, existing, &inputs)?;
    let text = std::fs::read_to_string(list).map_err(|source| Error::Io {
        path: list.to_owned(),
        action: "be read",
        source,
    })?;
    let links = parse_links(&text).map_err(|source| Error::Links {
        path: list.to_owned(),
        source,
    })?;
    let links = newest(links);
    if links.is_empty() {
        return Err(Error::NoSwissTiles {
            path: list.to_owned(),
        });
    }

    let mut paths = Vec::with_capacity(links.len());
    for (index, (_, link)) in links.iter().enumerate() {
        let fetched = download::fetch(link, downloads, options, &mut |step| {
            progress(Step::Download(index, links.len(), &link.name, step));
        })
        .map_err(|source| Error::Download {
            url: link.url.clone(),
            source,
        })?;
        paths.push(fetched.path);
    }

    let splits = splits(links.iter().map(|(tile, _)| region(tile)).collect());
    let mut writer = DatasetWriter::create(target, SIDE, existing, &inputs)?;
    for (index, ((tile, link), path)) in links.iter().zip(&paths).enumerate() {
        progress(Step::Cut(index, links.len(), &link.name));
        let raster = GeoTiff::open(path)?;
        let region = region(tile);
        let split = splits[&region].to_owned();
        cut(&raster, region, split, &mut writer)?;
        raster.check_unchanged()?;
    }
    writer.finish()
}

/// The newest survey of each square kilometre at 0.5 m, from west to east and south to north.
fn newest(links: Vec<Link>) -> Vec<(SourceTile, Link)> {
    let mut by_square: BTreeMap<(u32, u32), (SourceTile, Link)> = BTreeMap::new();
    for link in links {
        let Some(tile) = link.tile.filter(|tile| tile.resolution_m == SOURCE_PIXEL_M) else {
            continue;
        };
        let square = (tile.east_km, tile.north_km);
        if by_square
            .get(&square)
            .is_none_or(|(other, _)| other.year < tile.year)
        {
            by_square.insert(square, (tile, link));
        }
    }
    by_square.into_values().collect()
}

fn region(tile: &SourceTile) -> String {
    format!("{}-{}", tile.east_km, tile.north_km)
}

/// Splits regions 80/10/10, in an order that depends on their names alone.
fn splits(mut regions: Vec<String>) -> BTreeMap<String, &'static str> {
    regions.sort_by_key(|region| hash(region));
    let count = regions.len();
    regions
        .into_iter()
        .enumerate()
        .map(|(index, region)| {
            let split = match index {
                _ if index * 10 < count * 8 => "train",
                _ if index * 10 < count * 9 => "val",
                _ => "test",
            };
            (region, split)
        })
        .collect()
}

fn cut(raster: &GeoTiff, region: String, split: String, writer: &mut DatasetWriter) -> Result<()> {
    let mut info = raster.info().clone();
    let (width, height) = (info.width(), info.height());
    let pixel_m = info.pixel_m();
    if width != SOURCE_SIDE || height != SOURCE_SIDE || (pixel_m - SOURCE_PIXEL_M).abs() > 1e-6 {
        return Err(Error::NotSwissAlti3d {
            path: info.path,
            width,
            height,
            pixel_m,
        });
    }
    let metre = raster.read(0, Window::whole(width, height))?.halved();
    info.georeference = info.georeference.coarsened(2.0);
    writer.add_source(Source::new(&info, region, split, 2.0 * SOURCE_PIXEL_M));
    for row in (MARGIN..).step_by(SIDE).take(ACROSS) {
        for column in (MARGIN..).step_by(SIDE).take(ACROSS) {
            let tile = metre.crop(Window {
                column,
                row,
                width: SIDE,
                height: SIDE,
            });
            if tile.is_complete() {
                let heights: Vec<f32> = tile.heights.iter().map(|&height| height as f32).collect();
                writer.add_tile(column, row, &heights)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_that_of_the_protocol() {
        assert_eq!(MARGIN, 116);
    }

    #[test]
    fn the_newest_survey_of_a_square_counts() {
        let address = |name: &str| format!("https://example.org/{name}");
        let list = [
            "swissalti3d_2019_2501-1120_0.5_2056_5728.tif",
            "swissalti3d_2021_2501-1120_0.5_2056_5728.tif",
            "swissalti3d_2019_2500-1121_2_2056_5728.tif",
            "swissalti3d_2020_2500-1121_0.5_2056_5728.tif",
        ]
        .map(address)
        .join("\n");
        let kept: Vec<_> = newest(parse_links(&list).unwrap())
            .iter()
            .map(|(tile, _)| (region(tile), tile.year))
            .collect();
        assert_eq!(
            kept,
            [
                ("2500-1121".to_owned(), 2020),
                ("2501-1120".to_owned(), 2021)
            ]
        );
    }

    #[test]
    fn regions_are_split_eighty_ten_ten() {
        let regions = (0..466)
            .map(|index| format!("{}-1120", 2480 + index))
            .collect();
        let splits = splits(regions);
        let count = |name| splits.values().filter(|&&split| split == name).count();
        assert_eq!((count("train"), count("val"), count("test")), (373, 47, 46));
    }
}
