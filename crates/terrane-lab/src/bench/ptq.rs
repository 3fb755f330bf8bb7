//! Tokens rounded after training: what they cost and what they are still worth.

use burn::tensor::{Tensor, TensorData};
use terrane::format::Coding;
use terrane::format::tokens::{Tokens, WIDTHS};
use terrane::methods::{Method, Precision};
use terrane::model::TrainedModel;
use terrane::quantise::{Quantised, quantise};

use super::figure::{Axis, Figure, Scale, Series, Style, line_chart};
use super::paper;
use super::runs::{METHODS, Runs, Variant};
use super::table::{Cell, Column, Table};
use crate::measure::{TileMeasures, mean, measure};
use crate::{Error, Result};

/// Means over the tiles at one width.
struct Point {
    fixed_bpp: f64,
    shannon_bpp: f64,
    coded_bpp: f64,
    psnr_db: f64,
    rmse_m: f64,
}

/// The rates and errors of quantised tokens, for every method whose weights are here.
pub fn ptq(runs: &mut Runs) -> Result<(Table, Figure)> {
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
    for method in METHODS {
        let run = runs.get(&Variant::plain(method))?;
        let Some(path) = run.model_path() else {
            continue;
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
        let pixels = runs.dataset.side().pow(2) as f64;
        let [count, channels] = model.token_shape();
        let mut points = vec![(
            count as f64 * channels as f64 * 32.0 / pixels,
            run.summary.mean.psnr_db,
        )];
        table.row(vec![
            method.into(),
            "float 32".into(),
            points[0].0.into(),
            Cell::Missing,
            Cell::Missing,
            run.summary.mean.psnr_db.into(),
            run.summary.mean.rmse_m.into(),
            Cell::Missing,
            paper::row(method).map(|row| row.psnr_db).into(),
            paper::row(method).map(|row| row.rmse_m).into(),
        ]);
        for &bits in WIDTHS.iter().rev() {
            let point = at(runs, &model, bits)?;
            let paper = paper::QUANTISED
                .iter()
                .find(|(width, ..)| method == "huvr-siren" && *width == bits);
            points.push((point.coded_bpp, point.psnr_db));
            table.row(vec![
                method.into(),
                format!("int {bits}").into(),
                point.fixed_bpp.into(),
                point.shannon_bpp.into(),
                point.coded_bpp.into(),
                point.psnr_db.into(),
                point.rmse_m.into(),
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

fn at(runs: &Runs, model: &TrainedModel, bits: u8) -> Result<Point> {
    let side = runs.dataset.side();
    let [count, channels] = model.token_shape();
    let device = |error: String| Error::Device { reason: error };
    let (mut rates, mut measures): ([f64; 3], Vec<TileMeasures>) = ([0.0; 3], Vec::new());
    let tiles = runs.tiles();
    for &tile in &tiles {
        let heights = runs.dataset.heights(tile)?;
        let map = model.normalise.map(&heights);
        let values: Vec<f32> = heights
            .iter()
            .map(|&height| map.normalise(height))
            .collect();
        let input = Tensor::<3>::from_data(TensorData::new(values, [1, side, side]), runs.device);
        let tokens = model
            .network
            .encode(input, Precision::Full)
            .into_data()
            .convert::<f32>();
        let tokens: Vec<f32> = tokens
            .try_to_vec()
            .map_err(|error| device(error.to_string()))?;
        let quantised = quantise(&tokens, channels, bits.into());
        rates[0] += quantised.fixed_bits(bits.into());
        rates[1] += quantised.shannon_bits();
        rates[2] += 8.0 * coded(&quantised, model, bits, map.low_m, map.range_m)? as f64;
        let rounded = Tensor::<3>::from_data(
            TensorData::new(quantised.tokens(), [1, count, channels]),
            runs.device,
        );
        let output = model
            .network
            .decode(rounded, Precision::Full)
            .into_data()
            .convert::<f32>();
        let output: Vec<f32> = output
            .try_to_vec()
            .map_err(|error| device(error.to_string()))?;
        let decoded: Vec<f32> = output.iter().map(|&value| map.metres(value)).collect();
        measures.push(measure(&heights, &decoded, side, side)?);
    }
    let mean = mean(&measures)?.mean;
    let [fixed_bpp, shannon_bpp, coded_bpp] =
        rates.map(|bits| bits / (tiles.len() * side * side) as f64);
    Ok(Point {
        fixed_bpp,
        shannon_bpp,
        coded_bpp,
        psnr_db: mean.psnr_db,
        rmse_m: mean.rmse_m,
    })
}

/// Bytes of the payload.
fn coded(
    quantised: &Quantised,
    model: &TrainedModel,
    bits: u8,
    lowest_m: f32,
    range_m: f32,
) -> Result<usize> {
    let tokens = Tokens {
        lowest_m,
        range_m,
        bits,
        steps: quantised.steps.iter().map(|step| step.to_bits()).collect(),
        symbols: quantised.symbols.clone(),
    };
    let bytes = tokens
        .to_bytes(&model.tables, Coding::Shortest)
        .map_err(|error| Error::Tables {
            reason: error.to_string(),
        })?;
    Ok(bytes.len())
}
