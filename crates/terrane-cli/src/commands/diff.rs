//! `terrane diff`: what changed between two files, and what of it is proven.

use std::path::PathBuf;

use anyhow::Result;
use terrane::OpenOptions;
use terrane::change::{Change, ChangeReport};
use terrane_codec::Terrain;
use terrane_geo::Kind;

use crate::Common;
use crate::commands::{OutputOptions, RemoteArguments, jobs};
use crate::output::{complain, shown, with_options};
use crate::progress::Progress;
use crate::streams::Destination;

/// Compare two files: their difference in metres, what of it is proven, and volumes of cut and fill with their bounds.
///
/// The difference is new minus old, at the pixels of the new file. Where both files have the same pixels (coordinate system,
/// pixel size and position, shifted by whole pixels or not) and guarantee a bound (encoded with --max-error or --lossless), a
/// difference above both bounds together proves that the rasters they were made from differ: the mask says where. Otherwise
/// the old file's surface is asked at the new file's pixels; there is a difference then, and no proof.
///
/// Volumes are over proven pixels (fill ± bound, cut ± bound) and over all pixels that both files have, as the range within
/// which the true volume lies. The truth is what the two source rasters have at these pixels.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane diff 2024.trn 2019.trn change.tif\n  terrane diff 2024.trn 2019.trn change.tif --mask proven.tif --json\n  terrane diff 2024.trn 2019.trn change.tif --resolution 10"
)]
pub(crate) struct Arguments {
    /// The newer terrane file: a path or an address (https://…, s3://…).
    new: PathBuf,
    /// The older one.
    old: PathBuf,
    /// COG of the difference to write, 32-bit floats in metres.
    out: PathBuf,
    /// COG of proven change to write: 1 where it is proven, 0 where it is not, 255 without data.
    #[arg(long, value_name = "MASK.tif")]
    mask: Option<PathBuf>,
    /// Side of a pixel in map units, a whole multiple of the new file's: means of differences, within the same bound.
    #[arg(long, value_name = "M")]
    resolution: Option<f64>,
    /// A model for files that neither hold theirs nor use one of the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let Arguments {
        new,
        old,
        out,
        mask,
        model,
        ..
    } = arguments;
    let inputs = || [Some(new), Some(old), model.as_ref()].into_iter().flatten();
    let destination = Destination::new(out, "tif")?;
    let output = destination
        .output(&arguments.output, Kind::Raster)
        .made_of(inputs());
    output.check()?;
    let mask = mask.as_ref().map(|mask| {
        let others = inputs().chain([out]);
        arguments.output.output(mask, Kind::Raster).made_of(others)
    });
    let open = |path: &PathBuf| -> Result<Terrain> {
        let options = OpenOptions {
            model: model.clone(),
            memory: common.memory(),
            remote: arguments.remote.options(),
        };
        Ok(terrane::open_with(path, &options)?)
    };
    let (new, old) = (open(new)?, open(old)?);
    let change = Change::between(&new, &old, arguments.resolution)?;
    let mut progress = Progress::new("diff", common.progress);
    let report = change.write(&output, mask.as_ref(), jobs(common), &mut |done, of| {
        progress.at(done, of, "rows");
        Ok(())
    })?;
    drop(progress);
    let mut value = report.json();
    value["mask"] = arguments.mask.as_ref().map(|mask| shown(mask)).into();
    if !common.json {
        for warning in &report.warnings {
            complain("terrane", warning);
        }
    }
    destination.report(common, value, |name| format!("{name}: {}", text(&report)))
}

/// A number with so many digits that its bound is told from it, and no more.
fn cubic(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn text(report: &ChangeReport) -> String {
    let ChangeReport {
        width,
        height,
        volumes,
        ..
    } = report;
    let mut text = format!("{width} x {height}, new minus old in metres\n");
    let mut line = |head: &str, tail: String| text.push_str(&format!("{head:<10}{tail}\n"));
    match report.bound_m {
        Ok(bound) => line(
            "bound",
            format!("every difference is within {bound} m of that of the source rasters"),
        ),
        Err(reason) => line(
            "bound",
            format!("none: {}", with_options(&reason.to_string())),
        ),
    }
    if let Some(range) = volumes.range_m {
        line(
            "range",
            format!(
                "{:.3} to {:.3} m, root mean square {:.3} m, over {} pixels ({} m²); {} without data in one file or both",
                range.low,
                range.high,
                volumes.rms_m().unwrap_or_default(),
                volumes.pixels,
                cubic(volumes.area_m2),
                report.nodata_pixels
            ),
        );
    }
    if let Some(proven) = &volumes.proven {
        line(
            "proven",
            format!(
                "{} pixels ({} m²): fill {} ± {} m³, cut {} ± {} m³",
                proven.pixels,
                cubic(proven.area_m2),
                cubic(proven.fill_m3),
                cubic(proven.fill_bound_m3),
                cubic(proven.cut_m3),
                cubic(proven.cut_bound_m3)
            ),
        );
    }
    let net = volumes.fill_m3 - volumes.cut_m3;
    match (volumes.fill, volumes.cut, volumes.net_bound_m3) {
        (Some(fill), Some(cut), Some(bound)) => line(
            "all",
            format!(
                "fill from {} to {} m³, cut from {} to {} m³, net {} ± {} m³",
                cubic(fill.low),
                cubic(fill.high),
                cubic(cut.low),
                cubic(cut.high),
                cubic(net),
                cubic(bound)
            ),
        ),
        _ => line(
            "all",
            format!(
                "fill {} m³, cut {} m³, net {} m³, without a bound",
                cubic(volumes.fill_m3),
                cubic(volumes.cut_m3),
                cubic(net)
            ),
        ),
    }
    text
}
