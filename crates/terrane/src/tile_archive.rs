//! All map tiles of a file in one archive, for hosting without a server.

use serde_json::{Map, Value, json};
use terrane_codec::format::MemoryLimit;
use terrane_codec::parallel::in_parallel;
use terrane_geo::Output;

use crate::pmtiles::{Archive, PmtilesWriter, tile_id};
use crate::tiles::{
    Deadline, Format, HeightCode, HeightEncoding, Layer, MAX_ZOOM, MapTile, MapTiles, Nodata,
    TileError, TileRequest, middle, parts, position, unwrapped,
};
use crate::{Error, Result};

/// Tiles that each thread draws before they are written.
const TILES_EACH: usize = 16;
/// Rounding takes at most this part of the error bound.
const BOUND_PART: f64 = 1.0 / 8.0;
/// Rounding makes no step between two pixels that is steeper than this: a fifth of a degree, which no hillshade shows.
const STEP_SLOPE: f64 = 1.0 / 256.0;

/// Which tiles are made, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TileArchive {
    /// What they show.
    pub layer: Layer,
    /// How they are stored.
    pub format: Format,
    /// Pixels across a tile.
    pub side: usize,
    /// The first zoom; without it the one at which the file is a few dozen pixels.
    pub min_zoom: Option<u8>,
    /// The last zoom; without it the one whose pixels are at least as fine as the file's.
    pub max_zoom: Option<u8>,
    /// How heights become colours.
    pub encoding: HeightEncoding,
    /// The step of heights in metres at all zooms, instead of one that is chosen for each.
    pub step_m: Option<f64>,
    /// How heights show that there is no data.
    pub nodata: Nodata,
    /// What the archive is called.
    pub name: String,
    /// Whom to thank, as a map shows it.
    pub attribution: Option<String>,
}

impl Default for TileArchive {
    fn default() -> Self {
        Self {
            layer: Layer::Height,
            format: Format::Webp,
            side: 512,
            min_zoom: None,
            max_zoom: None,
            encoding: HeightEncoding::default(),
            step_m: None,
            nodata: Nodata::Height(None),
            name: "terrain".into(),
            attribution: None,
        }
    }
}

/// An archive that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveReport {
    /// Bytes of the file.
    pub bytes: u64,
    /// Tiles with data.
    pub tiles: u64,
    /// Different ones among them.
    pub contents: u64,
    /// The first and the last zoom that has a tile.
    pub zooms: (u8, u8),
    /// The step of heights in metres at each zoom, where tiles hold heights.
    pub steps_m: Vec<(u8, f64)>,
    /// How far the surface of a tile's heights is from the file's at the last zoom at most, as a part of the error bound.
    pub rounding_of_bound: Option<f64>,
}

impl ArchiveReport {
    /// The report as JSON.
    pub fn json(&self) -> Value {
        json!({
            "bytes": self.bytes,
            "tiles": self.tiles,
            "different_tiles": self.contents,
            "minzoom": self.zooms.0,
            "maxzoom": self.zooms.1,
            "step_m_by_zoom": by_zoom(&self.steps_m),
            "rounding_of_bound": self.rounding_of_bound,
        })
    }
}

fn by_zoom(steps: &[(u8, f64)]) -> Map<String, Value> {
    let entry = |&(z, step): &(u8, f64)| (z.to_string(), step.into());
    steps.iter().map(entry).collect()
}

impl TileArchive {
    /// The zooms of an archive of a file.
    fn zooms(&self, tiles: &MapTiles) -> Result<(u8, u8)> {
        let finer = (self.side as f64 / TileRequest::SIDE as f64).log2();
        let coarsest = *tiles.zooms(self.layer).start();
        let native = (tiles.native_zoom() - finer - 1e-6).ceil();
        let last = self
            .max_zoom
            .unwrap_or(native.clamp(0.0, f64::from(MAX_ZOOM)) as u8);
        let first = self.min_zoom.unwrap_or(coarsest.min(last));
        if first > last || last > MAX_ZOOM {
            return Err(Error::Zooms {
                first,
                last,
                finest: MAX_ZOOM,
            });
        }
        Ok((first, last))
    }

    /// How heights are rounded at a zoom: as coarsely as a part of the error bound allows, and not so that flat ground becomes
    /// stairs.
    fn code(&self, tiles: &MapTiles, z: u8) -> HeightCode {
        let step_m = self.step_m.unwrap_or_else(|| {
            let zoom = f64::from(z) + (self.side as f64 / TileRequest::SIDE as f64).log2();
            let pixel_m = tiles.pixel_m() * (tiles.native_zoom() - zoom).exp2();
            let allowed_m = 2.0 * BOUND_PART * tiles.stated_error_m().unwrap_or(0.0);
            allowed_m.min(STEP_SLOPE * pixel_m)
        });
        HeightCode::of_step(self.encoding, step_m)
    }

    /// Writes all tiles with data; `progress` is told tiles looked at and tiles in all, and may stop it.
    pub fn write(
        &self,
        tiles: &MapTiles,
        out: &Output,
        jobs: usize,
        memory: MemoryLimit,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<ArchiveReport> {
        out.check()?;
        if let Some(step) = self.step_m
            && !(step > 0.0 && step.is_finite())
        {
            return Err(Error::NotPositive {
                name: "step",
                value: step,
            });
        }
        let (first, last) = self.zooms(tiles)?;
        let ranges: Vec<TileRange> = (first..=last)
            .map(|z| TileRange::of(tiles.bounds(), z))
            .collect();
        let total: u64 = ranges.iter().map(TileRange::count).sum();
        // Numbers of the tiles of a zoom are sorted, and each that is written takes an entry and a hash.
        let needed = total.saturating_mul(128);
        memory.check("so many tiles", needed, "give a smaller `max_zoom`, or ")?;
        let mut writer = PmtilesWriter::create(out)?;
        let (mut done, mut found) = (0, Vec::new());
        for range in &ranges {
            let numbers = range.along_the_curve();
            for batch in numbers.chunks(TILES_EACH * jobs.max(1)) {
                let drawn = in_parallel(batch.len(), jobs, &|index| {
                    Ok(self.draw(tiles, batch[index].1))
                })?;
                for (&(number, tile), bytes) in batch.iter().zip(drawn) {
                    if let Some(bytes) = bytes? {
                        writer.add(number, &bytes)?;
                        found.push(tile.z);
                        found.dedup();
                    }
                }
                done += batch.len() as u64;
                progress(done, total)?;
            }
        }
        let (Some(&first), Some(&last)) = (found.first(), found.last()) else {
            return Err(Error::NoTiles);
        };
        let steps_m: Vec<(u8, f64)> = match self.layer {
            Layer::Height => (first..=last)
                .map(|z| (z, self.code(tiles, z).step_m()))
                .collect(),
            _ => Vec::new(),
        };
        let archive = Archive {
            format: self.format,
            zooms: (first, last),
            bounds: unwrapped(tiles.bounds()),
            centre: middle(tiles.bounds()),
            centre_zoom: (first + 2).min(last),
            metadata: self.metadata(tiles, &steps_m).to_string(),
        };
        let written = writer.finish(&archive)?;
        let bound = tiles.stated_error_m();
        Ok(ArchiveReport {
            bytes: written.bytes,
            tiles: written.tiles,
            contents: written.contents,
            zooms: (first, last),
            rounding_of_bound: steps_m.last().zip(bound).map(|(step, b)| 0.5 * step.1 / b),
            steps_m,
        })
    }

    /// One tile as bytes; `None` where it has no data.
    fn draw(
        &self,
        tiles: &MapTiles,
        tile: MapTile,
    ) -> std::result::Result<Option<Vec<u8>>, TileError> {
        let code = self.code(tiles, tile.z);
        let request = TileRequest {
            side: self.side,
            nodata: Nodata::Transparent,
            code,
            ..TileRequest::new(self.layer, tile)
        };
        let mut picture = tiles.tile(request, Deadline::NONE)?;
        if picture.is_clear() {
            return Ok(None);
        }
        if let (Layer::Height, Nodata::Height(height)) = (self.layer, self.nodata) {
            let height = height.unwrap_or(tiles.range().lowest_m);
            picture.fill_clear(code.colour(height));
        }
        picture.encode_small(self.format).map(Some)
    }

    /// What the archive says of itself.
    fn metadata(&self, tiles: &MapTiles, steps_m: &[(u8, f64)]) -> Value {
        let mut value = json!({
            "name": self.name,
            "description": format!("{} of {}", self.layer.name(), tiles.crs()),
            "type": "overlay",
            "version": env!("CARGO_PKG_VERSION"),
            "generator": concat!("terrane ", env!("CARGO_PKG_VERSION")),
            "tile_size": self.side,
            "terrane": {
                "layer": self.layer.name(),
                "unit": self.layer.unit(),
                "pixel_m": tiles.pixel_m(),
                "lowest_m": tiles.range().lowest_m,
                "highest_m": tiles.range().highest_m,
            },
        });
        if let Some(attribution) = &self.attribution {
            value["attribution"] = attribution.as_str().into();
        }
        if self.layer == Layer::Height {
            value["encoding"] = self.encoding.name().into();
            let more = &mut value["terrane"];
            more["bound_m"] = tiles.bound_m().into();
            more["step_m_by_zoom"] = by_zoom(steps_m).into();
            more["nodata_m"] = match self.nodata {
                Nodata::Transparent => Value::Null,
                Nodata::Height(height) => height.unwrap_or(tiles.range().lowest_m).into(),
            };
        }
        value
    }
}

/// Columns and rows of a zoom that a file reaches, the last ones among them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TileRange {
    z: u8,
    /// Two where a file lies across 180°.
    x: Vec<(u32, u32)>,
    y: (u32, u32),
}

impl TileRange {
    fn of(bounds: [f64; 4], z: u8) -> Self {
        let across = f64::from(1_u32 << z);
        // The square ends before the poles.
        let at = |part: f64| (part * across).clamp(0.0, across - 1.0) as u32;
        let mut range = Self {
            z,
            x: Vec::new(),
            y: (0, 0),
        };
        for [west, south, east, north] in parts(bounds).into_iter().rev() {
            let ((left, top), (right, bottom)) = (position(west, north), position(east, south));
            range.y = (at(top), at(bottom));
            let (left, right) = (at(left), at(right));
            match range.x.last_mut() {
                // At a coarse zoom both parts meet.
                Some(last) if left <= last.1 => last.1 = right,
                _ => range.x.push((left, right)),
            }
        }
        range
    }

    fn count(&self) -> u64 {
        let columns: u64 = self.x.iter().map(|x| u64::from(x.1 - x.0 + 1)).sum();
        columns * u64::from(self.y.1 - self.y.0 + 1)
    }

    /// All tiles with their numbers, in their order.
    fn along_the_curve(&self) -> Vec<(u64, MapTile)> {
        let z = self.z;
        let mut tiles: Vec<(u64, MapTile)> = (self.y.0..=self.y.1)
            .flat_map(|y| {
                let columns = self.x.iter().flat_map(|x| x.0..=x.1);
                columns.filter_map(move |x| MapTile::new(z, x, y))
            })
            .map(|tile| (tile_id(tile.z, tile.x, tile.y), tile))
            .collect();
        tiles.sort_unstable_by_key(|(number, _)| *number);
        tiles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_around_bounds_are_all_and_in_order() {
        let range = TileRange::of([7.0, 46.0, 7.2, 46.1], 12);
        assert_eq!(range.x, [(2127, 2129)]);
        let tiles = range.along_the_curve();
        assert_eq!(tiles.len() as u64, range.count());
        assert!(tiles.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let across = TileRange::of([179.9, -0.1, 180.1, 0.1], 10);
        assert_eq!(
            (across.x.clone(), across.count()),
            (vec![(0, 0), (1023, 1023)], 4)
        );
        assert_eq!(across.along_the_curve().len(), 4);
        assert_eq!(TileRange::of([179.9, -0.1, 180.1, 0.1], 0).x, [(0, 0)]);
        let world = TileRange::of([-180.0, -90.0, 180.0, 90.0], 2);
        assert_eq!(
            (world.x.clone(), world.y, world.count()),
            (vec![(0, 3)], (0, 3), 16)
        );
    }
}
