//! `terrane info`: what a neural terrain file says of itself.

use anyhow::Result;
use serde_json::json;
use terrane::format::{Method, Promise, Pyramid, Reader};
use terrane::hexadecimal;

use crate::Common;
use crate::commands::FileArguments;
use crate::output::{bytes, print, print_json};
use crate::placement::georeference;

/// Show what a neural terrain file holds.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane info dem.trn")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
}

/// The name a method is asked for by.
pub(crate) fn method_name(method: Method) -> &'static str {
    match method {
        Method::Integers => "integers",
        Method::TransInr => "transinr",
        Method::Functa => "functa",
        Method::Huvr => "huvr",
        Method::HuvrSiren => "huvr-siren",
        Method::Context => "context",
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    // Describing a file needs no model.
    let reader = arguments.file.reader()?;
    let header = reader.header();
    let pyramid = &header.pyramid;
    let (width, height) = pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let bpp = bpp(&reader);
    let crs = georeference(header).crs;
    let levels = levels(pyramid);
    let model = header.model.as_ref();
    let promise = match header.promise {
        Promise::None => "none".to_owned(),
        Promise::MaxError(bound) => format!("no error above {bound} m"),
        Promise::Lossless { .. } => "lossless".to_owned(),
    };
    if common.json {
        let bound = match header.promise {
            Promise::MaxError(bound) => Some(bound),
            _ => None,
        };
        return print_json(&json!({
            "bytes": reader.length(), "width": width, "height": height, "tile": pyramid.side(),
            "levels": levels, "tiles": pyramid.tiles(), "tiles_with_data": statistics.tiles,
            "method": method_name(header.method),
            "model": model.map(|model| json!({
                "name": model.name, "sha256": hexadecimal(&model.sha256), "embedded": model.embedded.is_some(),
            })),
            "promise": promise, "bound_m": bound, "lossless": matches!(header.promise, Promise::Lossless { .. }),
            "pixels": statistics.pixels, "bpp": bpp, "rmse_m": statistics.rmse_m,
            "max_error_m": statistics.max_error_m, "lowest_m": statistics.lowest_m, "highest_m": statistics.highest_m,
            "crs": crs.to_string(), "horizontal_epsg": crs.horizontal_epsg(), "vertical_epsg": crs.vertical_epsg(),
            "affine": header.affine, "pixel_is_point": header.pixel_is_point,
            "sample_type": header.samples.kind, "nodata": header.samples.nodata, "unit": header.samples.unit,
        }));
    }
    print(&text(&reader, &promise))
}

/// The description in lines.
fn text(reader: &Reader, promise: &str) -> String {
    let header = reader.header();
    let pyramid = &header.pyramid;
    let (width, height) = pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let bpp = bpp(reader);
    let crs = georeference(header).crs;
    let levels = levels(pyramid);
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<12}{value}\n"));
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
    line("method", method_name(header.method).to_owned());
    if let Some(model) = &header.model {
        let place = if model.embedded.is_some() {
            "in the file"
        } else {
            "not in the file"
        };
        line(
            "model",
            format!("{}, {}, {place}", model.name, hexadecimal(&model.sha256)),
        );
    }
    line("promise", promise.to_owned());
    line(
        "errors",
        format!(
            "RMSE {:.4} m, greatest {:.4} m",
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
