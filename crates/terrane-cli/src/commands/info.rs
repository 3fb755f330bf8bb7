//! `terrane info`: what a terrane file says of itself.

use anyhow::Result;
use terrane::georeferencing::{georeference, height_unit, placement};
use terrane::{Parts, extent, geographic_extent};
use terrane_codec::format::{Header, Pyramid, Reader};
use terrane_geo::{Crs, HeightUnit, UnitOrigin};

use crate::Common;
use crate::commands::FileArguments;
use crate::output::{bytes, one_line, print, print_json, table};
use crate::progress::Progress;

/// Show what a terrane file holds.
///
/// The errors of overviews are those against means of the source's pixels with data. With --parts, which reads the whole
/// file: where its bytes are, as a share of the file and in bits per pixel with data at full resolution.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  terrane info dem.trn\n  terrane info dem.trn --parts")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// Show where the bytes are: by what they hold, and by level.
    #[arg(long)]
    parts: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    // Describing a file needs no model.
    let reader = arguments.file.reader()?;
    if arguments.parts {
        return show_parts(&reader, common);
    }
    let description = terrane::describe(&reader);
    if common.json {
        return print_json(&description);
    }
    let bound = description["error_bound"].as_str().unwrap_or_default();
    print(&text(&reader, bound))
}

/// The description in lines.
#[expect(clippy::too_many_lines, reason = "a line after another")]
fn text(reader: &Reader, bound: &str) -> String {
    let header = reader.header();
    let pyramid = &header.pyramid;
    let (width, height) = pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let bpp = bpp(reader);
    let georeference = georeference(header);
    let crs = &georeference.crs;
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
    for (level, overview) in header.overviews.iter().enumerate() {
        line(
            &format!("overview {}", level + 1),
            format!(
                "RMSE {:.4} m, maximum {:.4} m against means",
                overview.rmse_m, overview.max_error_m
            ),
        );
    }
    line(
        "heights",
        format!(
            "{:.2} to {:.2} m{}",
            statistics.lowest_m,
            statistics.highest_m,
            source_unit(header)
        ),
    );
    line("system", system(crs));
    let unit = crs.coordinate_unit();
    if let Some(extent) = extent(header) {
        line("extent", format!("{} {unit}", corners(extent)));
    }
    if let Some(bounds) = geographic_extent(header) {
        line("bounds", format!("{} degree (WGS 84)", degrees(bounds)));
    }
    let [across, down] = georeference.affine().pixel_sides();
    line("pixel", format!("{across} x {down} {unit}"));
    line(
        "placed",
        match placement(header) {
            Ok(Some(metres)) => format!("WGS 84 within {metres} m"),
            Ok(None) => "WGS 84, within an accuracy that is not stated".to_owned(),
            Err(error) => error.to_string(),
        },
    );
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

/// The unit of the source's heights, where it is not plain metres that it states.
fn source_unit(header: &Header) -> String {
    match height_unit(header) {
        Some((HeightUnit::Metre, UnitOrigin::Assumed)) => {
            "; the source states no unit, and metres are assumed".into()
        }
        Some((unit, origin)) => format!("; in the source {} ({})", unit.name(), origin.name()),
        None => format!("; in the source {}", header.samples.unit),
    }
}

/// A system with its name.
fn system(crs: &Crs) -> String {
    match crs.name().filter(|name| !crs.to_string().contains(name)) {
        Some(name) => format!("{crs}, {name}"),
        None => crs.to_string(),
    }
}

/// The lower-left and the upper-right corner.
fn corners([left, bottom, right, top]: [f64; 4]) -> String {
    format!("{left}, {bottom} to {right}, {top}")
}

/// The same of degrees, to the centimetre.
fn degrees([west, south, east, north]: [f64; 4]) -> String {
    format!("{west:.7}, {south:.7} to {east:.7}, {north:.7}")
}

/// Shows where the bytes are.
fn show_parts(reader: &Reader, common: &Common) -> Result<()> {
    let mut progress = Progress::new("read", common.progress);
    let parts = terrane::parts(reader, &mut |done, of| -> terrane::Result<()> {
        progress.at(done, of, "trees");
        Ok(())
    })?;
    drop(progress);
    if common.json {
        return print_json(&parts);
    }
    print(&parts_text(&parts))
}

/// Two tables: the bytes by what they hold, and by level.
fn parts_text(parts: &Parts) -> String {
    let figures = |bytes: u64| {
        [
            bytes.to_string(),
            format!("{:.2} %", 100.0 * parts.share(bytes)),
            format!("{:.4}", parts.bpp(bytes)),
        ]
    };
    let row = |name: String, bytes: u64| [vec![name], figures(bytes).to_vec()].concat();
    let is_there = |(_, bytes): &(&str, u64)| *bytes > 0;
    let mut rows: Vec<Vec<String>> = parts
        .named()
        .filter(is_there)
        .map(|(name, bytes)| row(title(name).to_owned(), bytes))
        .collect();
    rows.push(row("file".into(), parts.bytes));
    let head = ["part", "bytes", "share", "bits per pixel"];
    let mut text = table(&head, &rows);
    // A column for each kind of part that some level has.
    let kinds: Vec<&str> = parts
        .layers
        .named()
        .into_iter()
        .filter(is_there)
        .map(|(name, _)| name)
        .collect();
    let rows: Vec<Vec<String>> = parts
        .levels
        .iter()
        .map(|level| {
            let mut cells = row(level.level.to_string(), level.bytes);
            cells.insert(1, level.storey.to_string());
            cells.insert(2, format!("{}x{}", level.width, level.height));
            cells.insert(3, level.records.to_string());
            let own = level
                .layers
                .named()
                .into_iter()
                .filter(|(name, _)| kinds.contains(name));
            cells.extend(own.map(|(_, bytes)| bytes.to_string()));
            cells
        })
        .collect();
    let mut head = vec![
        "level",
        "storey",
        "pixels",
        "records",
        "bytes",
        "share",
        "bits per pixel",
    ];
    head.extend(kinds.iter().map(|name| title(name)));
    text.push('\n');
    text.push_str(&table(&head, &rows));
    text
}

/// A part as people read it.
fn title(name: &'static str) -> &'static str {
    match name {
        "flats" => "flat areas",
        name => name,
    }
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
