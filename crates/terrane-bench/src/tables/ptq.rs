//! Tokens rounded after training: what they cost and what they are still worth.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use terrane_codec::format::Coding;
use terrane_codec::format::tokens::WIDTHS;
use terrane_codec::tile::TokenTile;
use terrane_networks::cost::Convention;
use terrane_networks::methods::{Method, Precision};
use terrane_networks::model::TrainedModel;
use terrane_report::figure::{Axis, Figure, Scale, Series, Style, line_chart};
use terrane_report::table::{Cell, Column, Table};
use terrane_train::evaluate::numbers_of;
use terrane_train::measure::{TileMeasures, mean, measure};

use super::paper;
use crate::codecs::{Curve, Point};
use crate::runs::{Runs, Variant};
use crate::{Error, Result};

/// One tile at one width.
struct Rounded {
    fixed_bits: f64,
    shannon_bits: f64,
    bytes: usize,
    measures: TileMeasures,
}

/// The tokens of a method in one width, means over tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantised {
    /// Bits of a symbol.
    pub bits: u8,
    /// Bits per pixel with every symbol in its width.
    pub fixed_bpp: f64,
    /// Bits per pixel at Shannon's bound.
    pub shannon_bpp: f64,
    /// Bits per pixel as they are written.
    pub coded_bpp: f64,
    /// Peak signal-to-noise ratio.
    pub psnr_db: f64,
    /// Root mean square height error.
    pub rmse_m: f64,
}

/// The tokens of a method in every width from the widest on, where its weights are here; measured once.
pub(crate) fn quantised(
    runs: &mut Runs,
    method: &'static str,
) -> Result<Option<Arc<Vec<Quantised>>>> {
    if let Some(known) = runs.known.quantised.get(method) {
        return Ok(Some(known.clone()));
    }
    let Some(model) = trained(runs, method)? else {
        return Ok(None);
    };
    let measured = Arc::new(measure_widths(runs, &model)?);
    runs.known.quantised.insert(method, measured.clone());
    Ok(Some(measured))
}

fn measure_widths(runs: &Runs, model: &TrainedModel) -> Result<Vec<Quantised>> {
    let pixels = runs.dataset.side().pow(2) as f64;
    let width = |&bits: &u8| {
        let tiles = rounded(runs, model, bits)?;
        let rate = |bits: fn(&Rounded) -> f64| {
            tiles.iter().map(bits).sum::<f64>() / (pixels * tiles.len() as f64)
        };
        let measures: Vec<TileMeasures> = tiles.iter().map(|tile| tile.measures).collect();
        let mean = mean(&measures)?.mean;
        Ok(Quantised {
            bits,
            fixed_bpp: rate(|tile| tile.fixed_bits),
            shannon_bpp: rate(|tile| tile.shannon_bits),
            coded_bpp: rate(|tile| 8.0 * tile.bytes as f64),
            psnr_db: mean.psnr_db,
            rmse_m: mean.rmse_m,
        })
    };
    WIDTHS.iter().rev().map(width).collect()
}

/// The rates and errors of quantised tokens, for every method whose weights are here.
pub(crate) fn ptq(runs: &mut Runs) -> Result<(Table, Figure)> {
    let note = "Each channel of a tile is rounded to its own 16-bit step. Fixed: every symbol in its width. Shannon: the entropy of the tile's own symbols, channel by channel, which does not pay for telling their frequencies; at 16 bits it is no more than the logarithm of the number of tokens. Coded: the real bytes of the tile's payload, by the model's tables or by what the tile teaches, whichever is shorter, with steps, range and lowest height.";
    let columns = vec![
        Column::new("method", "method", 0),
        Column::new("bits", "bits per symbol", 0),
        Column::new("fixed_bpp", "fixed bpp", 4),
        Column::new("shannon_bpp", "Shannon bpp", 4),
        Column::new("coded_bpp", "coded bpp", 4),
        Column::new("psnr_db", "PSNR dB", 2),
        Column::new("rmse_m", "RMSE m", 4),
        Column::new("paper_shannon_bpp", "paper: Shannon bpp", 3),
        Column::new("paper_psnr_db", "paper: PSNR dB", 2),
        Column::new("paper_rmse_m", "paper: RMSE m", 4),
    ];
    let mut table = Table::new("ptq", "Quantised tokens", note, columns);
    let mut curves = Vec::new();
    for &method in &runs.settings.methods {
        let run = runs.get(&Variant::plain(method))?;
        let Some(widths) = quantised(runs, method)? else {
            continue;
        };
        let whole = run.config.method.account(Convention::AsRun);
        let whole = whole.bits_per_pixel(32);
        let mut points = vec![(whole, run.summary.mean.psnr_db)];
        table.row(vec![
            method.into(),
            "float 32".into(),
            whole.into(),
            Cell::Missing,
            Cell::Missing,
            run.summary.mean.psnr_db.into(),
            run.summary.mean.rmse_m.into(),
            Cell::Missing,
            paper::row(method).map(|row| row.psnr_db).into(),
            paper::row(method).map(|row| row.rmse_m).into(),
        ]);
        for row in widths.iter() {
            let paper = paper::QUANTISED
                .iter()
                .find(|(width, ..)| method == "huvr-siren" && *width == row.bits);
            points.push((row.coded_bpp, row.psnr_db));
            table.row(vec![
                method.into(),
                format!("int {}", row.bits).into(),
                row.fixed_bpp.into(),
                row.shannon_bpp.into(),
                row.coded_bpp.into(),
                row.psnr_db.into(),
                row.rmse_m.into(),
                paper.map(|row| row.1).into(),
                paper.map(|row| row.2).into(),
                paper.map(|row| row.3).into(),
            ]);
        }
        curves.push(Series {
            name: method.into(),
            points,
            style: Style::LinePoints,
        });
    }
    curves.push(Series {
        name: "paper's HUVR+SIREN, Shannon (other data)".into(),
        points: paper::QUANTISED.iter().map(|row| (row.1, row.2)).collect(),
        style: Style::Dashed,
    });
    let figure = line_chart(
        "ptq",
        "Rate and distortion of quantised tokens",
        "Float 32, then 16, 8, 4 and 2 bits per symbol from right to left; bits per pixel as coded.",
        Axis {
            label: "bits per pixel".into(),
            scale: Scale::Logarithmic,
        },
        Axis {
            label: "PSNR, dB".into(),
            scale: Scale::Linear,
        },
        &curves,
    );
    Ok((table, figure))
}

/// The curves of all methods whose weights are here, to stand beside those of codecs.
pub(crate) fn curves(runs: &mut Runs) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    for &method in &runs.settings.methods {
        let Some(model) = trained(runs, method)? else {
            continue;
        };
        let pixels = runs.dataset.side().pow(2) as f64;
        let mut tiles = vec![Vec::new(); runs.tiles().len()];
        for bits in WIDTHS {
            for (points, tile) in tiles.iter_mut().zip(rounded(runs, &model, bits)?) {
                points.push(Point {
                    quality: bits.into(),
                    bytes: tile.bytes,
                    bpp: 8.0 * tile.bytes as f64 / pixels,
                    errors: tile.measures.into(),
                });
            }
        }
        curves.push(Curve {
            codec: format!("{method}, quantised tokens"),
            is_variant: false,
            tiles,
        });
    }
    Ok(curves)
}

/// The trained network of a method with its tables, where its weights are here.
fn trained(runs: &mut Runs, method: &'static str) -> Result<Option<TrainedModel>> {
    let run = runs.get(&Variant::plain(method))?;
    let Some(path) = run.model_path() else {
        return Ok(None);
    };
    let bytes = std::fs::read(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        action: "be read",
        source,
    })?;
    let model = TrainedModel::from_bytes(&bytes, runs.device).map_err(|error| Error::Run {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Some(model))
}

/// Every tile as a file stores it, decoded without blending patches: as the paper measures it.
fn rounded(runs: &Runs, model: &TrainedModel, bits: u8) -> Result<Vec<Rounded>> {
    let side = runs.dataset.side();
    let [count, channels] = model.token_shape();
    let tables = |error: terrane_codec::Error| terrane_train::Error::Tables {
        reason: error.to_string(),
    };
    let tile = |tile: usize| {
        let heights = runs.dataset.heights(tile)?;
        let coded = TokenTile::encode(model, &heights, bits).map_err(tables)?;
        let coded = coded.ok_or(terrane_codec::Error::Device).map_err(tables)?;
        let TokenTile { map, quantised, .. } = &coded;
        let tokens = TensorData::new(quantised.tokens(), [1, count, channels]);
        let tokens = Tensor::from_data(tokens, runs.device);
        let output = numbers_of(model.network.decode(tokens, Precision::Full))?;
        let decoded: Vec<f32> = output.iter().map(|&value| map.metres(value)).collect();
        let payload = coded.to_bytes(model, Coding::Shortest).map_err(tables)?;
        Ok(Rounded {
            fixed_bits: quantised.fixed_bits(bits.into()),
            shannon_bits: quantised.shannon_bits(),
            bytes: payload.len(),
            measures: measure(&heights, &decoded, side, side)?,
        })
    };
    runs.tiles().into_iter().map(tile).collect()
}
