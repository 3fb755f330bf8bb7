//! Whole files: what a user gets on disk, every byte counted, beside what others write.
//!
//! Every raster is written at given rates and compared with JPEG 2000 of the same bytes, in its heights and in what users
//! derive from them, and written within given bounds and without loss, beside LERC and COGs. All files are read again,
//! and every pixel is compared.

mod cog;
mod contours;
mod derived;
mod drainage;
mod flow;
mod ground;
#[cfg(feature = "openjpeg")]
mod jpeg2000;
mod lerc;
mod measure;
mod section;
mod slope;
mod source;
mod stored;
mod terrane_file;
mod viewshed;
mod window;

use std::path::{Path, PathBuf};

use terrane::{Profile, Resources};
use terrane_report::Report;
use terrane_train::data::cutting::rasters;
use terrane_train::output::refuse_inputs;

use crate::{Error, Result};
use measure::{Outcome, measure};
use source::{Fit, Source};

/// How whole files are compared.
#[derive(Debug, Clone)]
pub struct Options {
    /// Side of the window without gaps that is cut from each raster; all of it where none is given.
    pub window: Option<usize>,
    /// How many rasters are measured at most.
    pub limit: Option<usize>,
    /// Which of our models.
    pub profiles: Vec<Profile>,
    /// Bits per pixel.
    pub rates: Vec<f64>,
    /// Maximum errors in metres.
    pub bounds_m: Vec<f64>,
    /// Threads and memory of our encoder.
    pub resources: Resources,
}

impl Options {
    fn check(&self) -> Result<()> {
        let rates = self.rates.iter().map(|&rate| ("bpp", rate));
        let bounds = self.bounds_m.iter().map(|&bound| ("bound", bound));
        for (name, value) in rates.chain(bounds) {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::NotPositive { name, value });
            }
        }
        Ok(())
    }
}

/// What was measured of all rasters.
#[derive(Debug, Default)]
struct Outcomes {
    /// The rasters, each with its columns and rows.
    rasters: Vec<(String, usize, usize)>,
    /// Those that have no window as large as was asked for.
    without_window: Vec<String>,
    /// Those that are flat or empty.
    flat: Vec<String>,
    /// Their files.
    files: Outcome,
}

impl Outcomes {
    fn add(&mut self, source: &Source, files: Outcome) {
        let name = source.name.clone();
        self.rasters.push((name, source.width(), source.height()));
        self.files.join(files);
    }

    /// Why there is nothing to measure.
    fn reason(&self, options: &Options) -> String {
        let window = options.window.map_or_else(String::new, |side| {
            let count = self.without_window.len();
            format!("{count} have no window of {side} × {side} pixels without gaps, ")
        });
        format!("{window}{} are flat or empty", self.flat.len())
    }
}

/// Measures whole files of rasters, given as files and folders of them, and writes a report after each raster; `progress`
/// is told the raster, how many are done, and how many there are.
pub fn files(
    inputs: &[PathBuf],
    folder: &Path,
    options: &Options,
    progress: &mut dyn FnMut(&str, usize, usize),
) -> Result<Report> {
    options.check()?;
    let mut paths = Vec::new();
    for input in inputs {
        if input.is_dir() {
            paths.extend(rasters(input)?);
        } else {
            paths.push(input.clone());
        }
    }
    let all = inputs.iter().chain(&paths).map(PathBuf::as_path);
    refuse_inputs(folder, &all.collect::<Vec<_>>())?;
    Report::check(folder)?;
    let total = options.limit.unwrap_or(paths.len()).min(paths.len());
    let mut outcomes = Outcomes::default();
    for path in &paths {
        if outcomes.rasters.len() == total {
            break;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        progress(&stem, outcomes.rasters.len(), total);
        match Source::read(path, options.window)? {
            Fit::NoWindow => outcomes.without_window.push(stem.into_owned()),
            Fit::Flat => outcomes.flat.push(stem.into_owned()),
            Fit::Source(source) => {
                let files = measure(&source, options)?;
                outcomes.add(&source, files);
                // What is there stays, whatever happens to the next.
                section::report(&outcomes, options).write(folder)?;
            }
        }
    }
    if outcomes.rasters.is_empty() {
        let reason = outcomes.reason(options);
        return Err(Error::NoSources { reason });
    }
    let report = section::report(&outcomes, options);
    report.write(folder)?;
    progress("", outcomes.rasters.len(), outcomes.rasters.len());
    Ok(report)
}
