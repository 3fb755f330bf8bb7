//! The difference of two files, strip by strip.

use std::ops::Range;

use terrane_codec::Terrain;
use terrane_codec::format::Window;
use terrane_codec::parallel::by_blocks;
use terrane_geo::{Affine, CogWriter, Georeference, GroundScale, Output, SampleType, Storage};

use super::volume::{Volumes, is_proven};
use super::{Alignment, ChangeReport, PixelOffset, Unproven, difference_bound};
use crate::georeferencing::{affine, georeference};
use crate::{Error, Result};

/// What stands for no difference, where no difference can be it.
const NODATA: f64 = -9999.0;
/// What stands for neither yes nor no.
const NO_ANSWER: f64 = 255.0;
/// A 32-bit float is off by at most this part of its value.
const F32_STEP: f64 = 1.0 / 16_777_216.0;
/// How far a pixel size may be from a whole number of pixels.
const WHOLE: f64 = 1e-3;

/// The change from one file to another, on the pixels of the new one or on blocks of them.
#[derive(Debug)]
pub struct Change<'a> {
    new: &'a Terrain,
    old: &'a Terrain,
    alignment: Alignment,
    bound_m: std::result::Result<f64, Unproven>,
    affine: Affine,
    scale: GroundScale,
    /// Columns and rows of the new file.
    size: (usize, usize),
    /// Pixels of the new file across one of the difference.
    factor: usize,
}

/// The change as arrays, row by row.
#[derive(Debug)]
pub struct ChangeArrays {
    /// New minus old in metres; NaN where one of them has no data.
    pub difference: Vec<f32>,
    /// Whether a change is proven; nothing where none can be.
    pub proven: Option<Vec<bool>>,
    /// What was found.
    pub report: ChangeReport,
}

/// The difference of some rows.
struct Strip {
    difference: Vec<f64>,
    /// 1 where a change is proven, 0 where not, NaN where there is no difference.
    proven: Vec<f64>,
}

/// What is summed up on the way.
struct Sums {
    volumes: Volumes,
    nodata_pixels: u64,
}

impl<'a> Change<'a> {
    /// The change from an old file to a new one. A resolution, in map units, is a whole number of the new file's pixels, whose
    /// differences are averaged.
    pub fn between(new: &'a Terrain, old: &'a Terrain, resolution: Option<f64>) -> Result<Self> {
        let alignment = Alignment::of(new, old)?;
        let affine = affine(new.corner_affine());
        let (width, height) = new.header().pyramid.size(0).unwrap_or_default();
        Ok(Self {
            bound_m: match alignment {
                Alignment::Same(_) => difference_bound(new.header(), old.header()),
                Alignment::Surface { .. } => Err(Unproven::OtherPixels),
            },
            scale: GroundScale::of_raster(
                &georeference(new.header()),
                (width as usize, height as usize),
            )?,
            factor: resolution.map_or(Ok(1), |resolution| factor(&affine, resolution))?,
            new,
            old,
            alignment,
            affine,
            size: (width as usize, height as usize),
        })
    }

    /// How far a difference is from that of the sources at most, or why nothing is proven.
    pub fn bound_m(&self) -> std::result::Result<f64, Unproven> {
        self.bound_m
    }

    /// Columns and rows of the difference.
    pub fn size(&self) -> (usize, usize) {
        let (width, height) = self.size;
        (width.div_ceil(self.factor), height.div_ceil(self.factor))
    }

    /// Where it lies.
    pub fn georeference(&self) -> Georeference {
        let georeference = georeference(self.new.header());
        if self.factor == 1 {
            georeference
        } else {
            georeference.coarsened(self.factor as f64)
        }
    }

    /// Writes the difference as a COG and, where it is asked for, the mask of proven change as another; `progress` is told
    /// rows done and rows in all, and may stop it.
    pub fn write(
        &self,
        out: &Output,
        mask: Option<&Output>,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<ChangeReport> {
        out.check()?;
        if let Some(mask) = mask {
            mask.check()?;
            self.bound_m?;
        }
        let size = self.size();
        let rasters = if mask.is_some() { 2 } else { 1 };
        self.new.memory().check(
            "comparing so wide a raster",
            self.strip_bytes(jobs)
                .saturating_add(CogWriter::memory(size.0, size.1).saturating_mul(rasters)),
            "",
        )?;
        let storage = Storage::other(SampleType::F32, Some(self.nodata()), "change", "m");
        let mut writer = self.writer(out, storage, "new minus old")?;
        let mut mask = mask
            .map(|mask| {
                let storage = Storage::other(SampleType::U8, Some(NO_ANSWER), "proven-change", "");
                self.writer(mask, storage, "1 where a change is proven")
            })
            .transpose()?;
        let report = self.go_through(jobs, progress, &mut |strip| {
            writer.write_rows(&strip.difference)?;
            match &mut mask {
                Some(mask) => Ok(mask.write_rows(&strip.proven)?),
                None => Ok(()),
            }
        })?;
        for writer in [Some(&mut writer), mask.as_mut()].into_iter().flatten() {
            self.describe(writer, &report);
        }
        // A program that is killed between leaves a difference without a mask, and never beside that of another.
        let (difference, _) = writer.complete()?;
        let mask = mask.map(CogWriter::complete).transpose()?;
        if let Some((mask, _)) = &mask {
            mask.remove_replaced()?;
        }
        difference.commit()?;
        if let Some((mask, _)) = mask {
            mask.commit()?;
        }
        Ok(report)
    }

    /// The difference and what is proven, as arrays.
    pub fn arrays(
        &self,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<ChangeArrays> {
        let (width, height) = self.size();
        let pixels = width as u64 * height as u64;
        self.new.memory().check(
            "so large an array",
            self.strip_bytes(jobs)
                .saturating_add(pixels.saturating_mul(5)),
            "ask for a coarser `resolution`, or ",
        )?;
        let mut difference = Vec::with_capacity(width * height);
        let mut proven = self
            .bound_m
            .is_ok()
            .then(|| Vec::with_capacity(width * height));
        let report = self.go_through(jobs, progress, &mut |strip| {
            difference.extend(strip.difference.iter().map(|value| *value as f32));
            if let Some(proven) = &mut proven {
                proven.extend(strip.proven.iter().map(|value| *value == 1.0));
            }
            Ok(())
        })?;
        Ok(ChangeArrays {
            difference,
            proven,
            report,
        })
    }

    fn writer(&self, out: &Output, mut storage: Storage, description: &str) -> Result<CogWriter> {
        storage.band.description = description.into();
        let writer = CogWriter::create(out, self.size(), self.georeference(), storage)?;
        Ok(writer)
    }

    /// What a reader of the raster should know.
    fn describe(&self, writer: &mut CogWriter, report: &ChangeReport) {
        match self.bound_m {
            Ok(_) => {
                if let Some(bound) = report.stored_bound_m {
                    writer.note("TERRANE_BOUND_M", &bound.to_string());
                }
            }
            Err(reason) => writer.note("TERRANE_UNPROVEN", &reason.to_string()),
        }
    }

    /// A value that no difference has.
    fn nodata(&self) -> f64 {
        let [new, old] = [self.new, self.old].map(|terrain| terrain.header().statistics);
        let widest = (new.highest_m - old.lowest_m)
            .abs()
            .max((new.lowest_m - old.highest_m).abs());
        // A surface may overshoot its pixels, but not by as much again.
        if 2.0 * widest < NODATA.abs() {
            NODATA
        } else {
            f64::NAN
        }
    }

    /// Rows of the new file that are read at a time: whole blocks of the difference, and two rows of tiles at least, as these
    /// lie below the same tiles.
    fn strip_rows(&self, jobs: usize) -> usize {
        let side = usize::from(self.new.header().pyramid.side());
        let tiles = self.size.0.div_ceil(side).max(1);
        let rows = side * jobs.div_ceil(tiles).max(2);
        (rows / self.factor).max(1).saturating_mul(self.factor)
    }

    /// Memory of a strip: both heights and their difference, with what is proven.
    fn strip_bytes(&self, jobs: usize) -> u64 {
        let rows = self.strip_rows(jobs).min(self.size.1);
        (rows as u64).saturating_mul(self.size.0 as u64 * 4 * 8)
    }

    fn go_through(
        &self,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
        take: &mut dyn FnMut(&Strip) -> Result<()>,
    ) -> Result<ChangeReport> {
        let bound_m = self.bound_m.ok();
        let mut sums = Sums {
            volumes: Volumes::new(bound_m, self.area_tolerance()),
            nodata_pixels: 0,
        };
        let (_, height) = self.size;
        let mut start = 0;
        while start < height {
            let rows = start..start.saturating_add(self.strip_rows(jobs)).min(height);
            start = rows.end;
            let difference = self.difference(rows.clone(), jobs)?;
            self.sum_up(&difference, rows, &mut sums);
            take(&self.strip(difference))?;
            progress(start as u64, height as u64)?;
        }
        if sums.volumes.pixels == 0 {
            return Err(Error::NothingShared);
        }
        let (width, height) = self.size();
        let largest = sums
            .volumes
            .range_m
            .map_or(0.0, |range| range.low.abs().max(range.high.abs()));
        Ok(ChangeReport {
            width,
            height,
            bound_m: self.bound_m,
            stored_bound_m: bound_m.map(|bound| (bound + largest * F32_STEP).next_up()),
            nodata_pixels: sums.nodata_pixels,
            volumes: sums.volumes,
            warnings: self.warnings(),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let stated = [self.new, self.old].map(|terrain| {
            let crs = georeference(terrain.header()).crs;
            crs.vertical_epsg()
        });
        match stated {
            [Some(code), None] => vec![format!(
                "the old file states no vertical system: its heights count as EPSG:{code}, the new file's"
            )],
            [None, Some(code)] => vec![format!(
                "the new file states no vertical system: its heights count as EPSG:{code}, the old file's"
            )],
            _ => Vec::new(),
        }
    }

    /// New minus old at rows of the new file; NaN where one of them has no data.
    fn difference(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>> {
        let (width, _) = self.size;
        let window = Window {
            column: 0,
            row: rows.start,
            width,
            height: rows.len(),
        };
        let mut heights = self.new.read_with(0, window, jobs)?;
        match &self.alignment {
            Alignment::Same(offset) => self.subtract_pixels(&mut heights, window, *offset, jobs)?,
            Alignment::Surface { affine, projection } => {
                let surface = self.old.surface()?;
                let side = usize::from(self.new.header().pyramid.side());
                let jobs = self.old.decoders(jobs)?;
                let old = by_blocks(width, rows, side, jobs, &|column, row| {
                    let (x, y) = affine.apply(column as f64 + 0.5, row as f64 + 0.5);
                    let point = match projection {
                        None => Ok((x, y)),
                        Some(projection) => projection.apply(x, y),
                    };
                    // A point that the old file's system does not have is not in the old file.
                    let Ok((x, y)) = point else {
                        return Ok(f64::NAN);
                    };
                    let (column, row) = surface.pixel(x, y);
                    let height = surface.height_at_pixel(column, row)?;
                    Ok(height.unwrap_or(f64::NAN))
                })?;
                for (height, old) in heights.iter_mut().zip(old) {
                    *height -= old;
                }
            }
        }
        Ok(heights)
    }

    /// Takes the old file's pixels from heights of a window of the new one.
    fn subtract_pixels(
        &self,
        heights: &mut [f64],
        window: Window,
        offset: PixelOffset,
        jobs: usize,
    ) -> Result<()> {
        let (columns, rows) = self.old.header().pyramid.size(0).unwrap_or_default();
        let columns = shared(window.column, window.width, offset.columns, columns);
        let rows = shared(window.row, window.height, offset.rows, rows);
        let mut difference = vec![f64::NAN; heights.len()];
        if !columns.is_empty() && !rows.is_empty() {
            let there = |first: usize, from: usize, offset: i64| -> usize {
                ((first + from) as i64 + offset) as usize
            };
            let part = Window {
                column: there(window.column, columns.start, offset.columns),
                row: there(window.row, rows.start, offset.rows),
                width: columns.len(),
                height: rows.len(),
            };
            let old = self.old.read_with(0, part, jobs)?;
            for (row, old) in rows.zip(old.chunks_exact(columns.len())) {
                let from = row * window.width + columns.start;
                let new = &heights[from..from + columns.len()];
                let difference = &mut difference[from..from + columns.len()];
                for ((difference, new), old) in difference.iter_mut().zip(new).zip(old) {
                    *difference = new - old;
                }
            }
        }
        heights.copy_from_slice(&difference);
        Ok(())
    }

    /// Adds rows of differences to the volumes.
    fn sum_up(&self, difference: &[f64], rows: Range<usize>, sums: &mut Sums) {
        let bound_m = self.bound_m.ok();
        let (width, _) = self.size;
        let unit_area = self.affine.pixel_size().powi(2);
        let area = |column: usize, row: usize| {
            let (x, y) = self.affine.apply(column as f64 + 0.5, row as f64 + 0.5);
            unit_area * self.scale.at(x, y).area()
        };
        // Along a row of a grid that is not rotated y stays, and with it the area.
        let is_even = self.scale.is_constant()
            || (self.scale.is_even_along_x() && self.affine.y_per_column == 0.0);
        for (row, values) in rows.zip(difference.chunks_exact(width)) {
            let even = area(0, row);
            let mut part = Volumes::new(bound_m, self.area_tolerance());
            for (column, &value) in values.iter().enumerate() {
                if value.is_nan() {
                    sums.nodata_pixels += 1;
                } else {
                    let area = if is_even { even } else { area(column, row) };
                    part.add(value, area, bound_m);
                }
            }
            sums.volumes.merge(&part);
        }
    }

    /// What the area of a pixel may be off, as a part of it.
    fn area_tolerance(&self) -> f64 {
        let pixel_m = self.scale.pixel_m(&self.affine, self.size);
        self.scale.tolerance(pixel_m)
    }

    /// Differences as they are written, with what is proven of each.
    fn strip(&self, difference: Vec<f64>) -> Strip {
        let bound_m = self.bound_m.ok();
        let answer = |value: f64, slack: f64| match bound_m {
            _ if value.is_nan() => f64::NAN,
            Some(bound) if is_proven(value, bound + slack) => 1.0,
            _ => 0.0,
        };
        if self.factor == 1 {
            let proven = difference.iter().map(|&value| answer(value, 0.0));
            return Strip {
                proven: proven.collect(),
                difference,
            };
        }
        let means = means(&difference, self.size.0, self.factor);
        Strip {
            proven: means
                .iter()
                .map(|mean| answer(mean.value, mean.rounding))
                .collect(),
            difference: means.iter().map(|mean| mean.value).collect(),
        }
    }
}

/// How many pixels one of a resolution is across.
fn factor(affine: &Affine, resolution: f64) -> Result<usize> {
    if !(resolution > 0.0 && resolution.is_finite()) {
        return Err(Error::NotPositive {
            name: "resolution",
            value: resolution,
        });
    }
    let [width, height] = affine.pixel_sides();
    let whole = (resolution / affine.pixel_size()).round();
    // Pixels of a raster are often not quite square.
    let is_whole = |side: f64| (resolution / side - whole).abs() <= WHOLE * whole;
    if whole < 1.0 || !is_whole(width) || !is_whole(height) || whole > f64::from(u32::MAX) {
        return Err(Error::NotWhole {
            resolution,
            width,
            height,
        });
    }
    Ok(whole as usize)
}

/// The part of a window that lies inside the other raster, counted from the window's start.
fn shared(first: usize, length: usize, offset: i64, size: u32) -> Range<usize> {
    let start = first as i64 + offset;
    let from = (-start).clamp(0, length as i64);
    let to = (i64::from(size) - start).clamp(from, length as i64);
    from as usize..to as usize
}

/// A mean of differences.
#[derive(Clone, Copy)]
struct Mean {
    value: f64,
    /// How much the sum may have been rounded.
    rounding: f64,
}

/// Means of square blocks of rows, over what is there; NaN where nothing is.
fn means(values: &[f64], width: usize, factor: usize) -> Vec<Mean> {
    let mut all = Vec::with_capacity(values.len() / factor / factor + width);
    for rows in values.chunks(width * factor) {
        for from in (0..width).step_by(factor) {
            let to = (from + factor).min(width);
            let (mut sum, mut count, mut largest) = (0.0, 0_u32, 0.0_f64);
            for row in rows.chunks_exact(width) {
                for value in row[from..to].iter().filter(|value| !value.is_nan()) {
                    sum += value;
                    count += 1;
                    largest = largest.max(value.abs());
                }
            }
            all.push(Mean {
                value: if count == 0 {
                    f64::NAN
                } else {
                    sum / f64::from(count)
                },
                rounding: f64::from(count + 1) * f64::EPSILON * largest,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_grids_share_is_found() {
        assert_eq!(shared(0, 10, 0, 10), 0..10);
        assert_eq!(shared(0, 10, -3, 10), 3..10);
        assert_eq!(shared(4, 10, 3, 10), 0..3);
        assert!(shared(0, 10, 20, 10).is_empty() && shared(0, 10, -20, 10).is_empty());
        assert_eq!(shared(5, 10, -8, 4), 3..7);
    }

    #[test]
    fn means_are_taken_of_what_is_there() {
        let nan = f64::NAN;
        let values = [1.0, 3.0, nan, 5.0, nan, 5.0, nan, nan, nan];
        let found: Vec<f64> = means(&values, 3, 2).iter().map(|mean| mean.value).collect();
        assert_eq!(found[..2], [3.0, 5.0]);
        assert!(found[2..].iter().all(|mean| mean.is_nan()) && found.len() == 4);
    }

    #[test]
    fn a_resolution_is_a_whole_number_of_pixels() {
        let affine = Affine::north_up(0.0, 0.0, 0.5);
        assert_eq!(factor(&affine, 2.0).unwrap(), 4);
        for resolution in [0.75, 0.25, 0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(factor(&affine, resolution).is_err(), "{resolution}");
        }
    }
}
