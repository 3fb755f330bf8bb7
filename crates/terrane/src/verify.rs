//! Whether a file is whole, and how far it is from its source.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use terrane_codec::format::{ErrorBound, Window};
use terrane_codec::{Terrain, psnr_db};
use terrane_geo::{RasterOptions, RasterSource};

use crate::damage::{Damage, find_damage};
use crate::georeferencing::{geo_keys, georeference};
use crate::{Error, Result};

/// What was found.
#[derive(Debug, Default)]
pub struct Verification {
    /// The figures, by name.
    pub report: Map<String, Value>,
    /// What is damaged; of very much damage the beginning.
    pub damaged: Vec<Damage>,
    /// What does not hold, a sentence each.
    pub failed: Vec<String>,
}

/// Is told the name of the work, how much is done, of how much, and of what.
pub(crate) type Report<'a> = dyn FnMut(&'static str, u64, u64, &'static str) + 'a;

/// Checks every checksum and every tile of a file and, with its source, every height, the georeference and the error bound.
/// Damage does not end it: everything that can still be read is checked. Only what is whole is compared with its source,
/// which is read as it was when the file was made.
pub fn verify(
    terrain: &Terrain,
    against: &[PathBuf],
    options: &RasterOptions,
    jobs: usize,
    progress: &mut Report,
) -> Result<Verification> {
    let damages = find_damage(terrain, jobs, progress)?;
    let mut found = Verification::default();
    let mut note = |name: &str, value: Value| found.report.insert(name.to_owned(), value);
    note("bytes", json!(terrain.reader().length()));
    note("tiles", json!(damages.with_data));
    let listed: Vec<Value> = damages.listed.iter().map(Damage::json).collect();
    note("damaged", listed.into());
    if damages.is_empty() {
        if !against.is_empty() {
            let raster = terrane_geo::open_with(against, options)?;
            compare(terrain, &*raster, jobs, progress, &mut found)?;
        }
    } else {
        if damages.unlisted > 0 {
            note("damaged_unlisted", json!(damages.unlisted));
        }
        note("tiles_unreadable", json!(damages.unreadable.tiles));
        note("overviews_unreadable", json!(damages.unreadable.overviews));
        found.failed.push(damages.sentence(terrain.header()));
        if !against.is_empty() {
            let sentence = "it was not compared with its source, as it cannot all be read";
            found.failed.push(sentence.into());
        }
    }
    found.damaged = damages.listed;
    let holds = found.failed.is_empty();
    found.report.insert("holds".into(), json!(holds));
    Ok(found)
}

#[derive(Default)]
struct Sums {
    pixels: u64,
    squares: f64,
    max_error_m: f64,
    lowest: f64,
    highest: f64,
    nodata_differs: u64,
    not_heights: u64,
    gradient: (f64, u64),
    laplacian: (f64, u64),
}

fn compare(
    terrain: &Terrain,
    raster: &dyn RasterSource,
    jobs: usize,
    progress: &mut Report,
    found: &mut Verification,
) -> Result<()> {
    let header = terrain.header();
    let info = raster.info();
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let (width, height) = (width as usize, height as usize);
    if (width, height) != (info.width(), info.height()) {
        return Err(Error::OtherSize {
            width,
            height,
            other_width: info.width(),
            other_height: info.height(),
        });
    }
    let found_at = georeference(header);
    let georeference_equal =
        found_at == info.georeference && header.geo_keys == geo_keys(&info.georeference.crs);
    let mut sums = Sums {
        lowest: f64::INFINITY,
        highest: f64::NEG_INFINITY,
        ..Sums::default()
    };
    let side = usize::from(header.pyramid.side());
    for row in (0..height).step_by(side) {
        let end = (row + side).min(height);
        let (first, last) = (row.saturating_sub(1), (end + 1).min(height));
        let window = Window {
            column: 0,
            row: first,
            width,
            height: last - first,
        };
        let source = raster.read(0, window)?;
        if source.not_heights > 0 {
            // The rows around the strip are counted with their own.
            let own = Window {
                row,
                height: end - row,
                ..window
            };
            sums.not_heights += raster.read(0, own)?.not_heights as u64;
        }
        let source = source.heights;
        let decoded = terrain.read_with(0, window, jobs)?;
        for row in row..end {
            sums.row(&source, &decoded, width, row - first, window.height);
        }
        progress("compare", end as u64, height as u64, "rows");
    }
    raster.check_unchanged()?;
    sums.judge(terrain, georeference_equal, found);
    Ok(())
}

impl Sums {
    /// Counts one row of a strip of `rows` rows.
    fn row(&mut self, source: &[f64], decoded: &[f64], width: usize, row: usize, rows: usize) {
        for column in 0..width {
            let index = row * width + column;
            let (height, back) = (source[index], decoded[index]);
            if height.is_nan() != back.is_nan() {
                self.nodata_differs += 1;
                continue;
            }
            if height.is_nan() {
                continue;
            }
            let error = (height - back).abs();
            self.pixels += 1;
            self.squares += error * error;
            self.max_error_m = self.max_error_m.max(error);
            self.lowest = self.lowest.min(height);
            self.highest = self.highest.max(height);
            if row == 0 || row + 1 == rows || column == 0 || column + 1 == width {
                continue;
            }
            let difference = |index: usize| source[index] - decoded[index];
            let [north, south, west, east] =
                [index - width, index + width, index - 1, index + 1].map(difference);
            let (x, y) = ((east - west) / 2.0, (south - north) / 2.0);
            let laplacian = north + south + west + east - 4.0 * (height - back);
            if !laplacian.is_nan() {
                self.gradient.0 += x * x + y * y;
                self.gradient.1 += 1;
                self.laplacian.0 += laplacian * laplacian;
                self.laplacian.1 += 1;
            }
        }
    }

    /// Puts the figures into the report, with what does not hold.
    fn judge(&self, terrain: &Terrain, georeference_equal: bool, found: &mut Verification) {
        let header = terrain.header();
        let mean = |(sum, count): (f64, u64)| (sum / count.max(1) as f64).sqrt();
        let rmse_m = mean((self.squares, self.pixels));
        let range = self.highest - self.lowest;
        found.report.insert("rmse_m".into(), json!(rmse_m));
        found
            .report
            .insert("max_error_m".into(), json!(self.max_error_m));
        found.report.insert(
            "psnr_db".into(),
            json!((rmse_m > 0.0 && range > 0.0).then(|| psnr_db((rmse_m / range).powi(2)))),
        );
        found
            .report
            .insert("gradient_rmse".into(), json!(mean(self.gradient)));
        found
            .report
            .insert("laplacian_rmse".into(), json!(mean(self.laplacian)));
        found.report.insert(
            "bpp".into(),
            json!(terrain.reader().length() as f64 * 8.0 / self.pixels.max(1) as f64),
        );
        found
            .report
            .insert("nodata_equal".into(), json!(self.nodata_differs == 0));
        found
            .report
            .insert("georeference_equal".into(), json!(georeference_equal));
        if self.not_heights > 0 {
            // Said, because they are values of the raster; the file has no data there.
            found
                .report
                .insert("not_heights".into(), json!(self.not_heights));
        }
        if self.nodata_differs > 0 {
            found.failed.push(format!(
                "{} pixels have data on one side alone",
                self.nodata_differs
            ));
        }
        if !georeference_equal {
            found
                .failed
                .push("it lies elsewhere than the raster".into());
        }
        match header.bound {
            ErrorBound::MaxError(bound) => {
                found.report.insert("bound_m".into(), json!(bound));
                if self.max_error_m > bound {
                    found.failed.push(format!(
                        "the maximum error is {} m, above the bound of {bound} m",
                        self.max_error_m
                    ));
                }
            }
            ErrorBound::Lossless { .. } if self.max_error_m > 0.0 => found.failed.push(format!(
                "it claims to be lossless and is off by up to {} m",
                self.max_error_m
            )),
            _ => {}
        }
    }
}
