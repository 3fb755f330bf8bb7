//! `terrane info`: what a terrane file says of itself.

use crate::georeferencing::georeference;
use anyhow::Result;
use terrane_codec::format::{Pyramid, Reader};

use crate::Common;
use crate::commands::FileArguments;
use crate::output::{bytes, one_line, print, print_json};

/// Show what a terrane file holds.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane info dem.trn")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    // Describing a file needs no model.
    let reader = arguments.file.reader()?;
    let description = terrane::describe(&reader);
    if common.json {
        return print_json(&description);
    }
    let bound = description["error_bound"].as_str().unwrap_or_default();
    print(&text(&reader, bound))
}

/// The description in lines.
fn text(reader: &Reader, bound: &str) -> String {
    let header = reader.header();
    let pyramid = &header.pyramid;
    let (width, height) = pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let bpp = bpp(reader);
    let crs = georeference(header).crs;
    let levels = levels(pyramid);
    let mut text = String::new();
    // A value that a file states must not look like a line of ours.
    let mut line =
        |name: &str, value: String| text.push_str(&format!("{name:<12}{}\n", one_line(&value)));
    line("size", bytes(reader.length()));
    line(
        "raster",
        format!("{width} x {height}, {} with data", statistics.pixels),
    );
    line("rate", format!("{bpp:.3} bits per pixel with data"));
    line(
        "tiles",
        format!(
            "{} of {} with data, {} pixels across",
            statistics.tiles,
            pyramid.tiles(),
            pyramid.side()
        ),
    );
    line(
        "levels",
        levels
            .iter()
            .map(|(width, height)| format!("{width}x{height}"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    line("method", header.method.name().to_owned());
    if let Some(model) = &header.model {
        let where_it_is = if model.embedded.is_some() {
            "in the file"
        } else {
            "not in the file"
        };
        let name = match model.name.trim() {
            "" => "unnamed",
            name => name,
        };
        line(
            "model",
            format!("{name}, {}, {where_it_is}", hex::encode(model.sha256)),
        );
    }
    line("bound", bound.to_owned());
    line(
        "errors",
        format!(
            "RMSE {:.4} m, maximum {:.4} m",
            statistics.rmse_m, statistics.max_error_m
        ),
    );
    line(
        "heights",
        format!(
            "{:.2} to {:.2} m",
            statistics.lowest_m, statistics.highest_m
        ),
    );
    line("system", crs.to_string());
    line(
        "transform",
        format!(
            "{:?}{}",
            header.affine,
            if header.pixel_is_point {
                ", pixels are points"
            } else {
                ""
            }
        ),
    );
    line(
        "source",
        format!(
            "{}, nodata {}",
            header.samples.kind,
            header
                .samples
                .nodata
                .map_or("none".to_owned(), |value| value.to_string())
        ),
    );
    text
}

/// Bits per pixel with data.
fn bpp(reader: &Reader) -> f64 {
    reader.length() as f64 * 8.0 / reader.header().statistics.pixels.max(1) as f64
}

/// Columns and rows of all levels.
fn levels(pyramid: &Pyramid) -> Vec<(u32, u32)> {
    (0..pyramid.levels())
        .filter_map(|level| pyramid.size(level))
        .collect()
}
