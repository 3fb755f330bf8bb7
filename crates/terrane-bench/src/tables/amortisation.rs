//! What is lost because an encoder computes tokens in one pass and all tiles share a decoder, and what tokens hold.

use std::sync::Arc;

use terrane_networks::methods::Model;
use terrane_report::Section;
use terrane_report::figure::{Axis, Figure, bar_chart};
use terrane_report::table::{Cell, Column, Table};

use super::paper;
use crate::Result;
use crate::diagnose::fit::{FitOptions, Fitted, fit_tokens, upper_bound};
use crate::diagnose::presentation::curve_figure;
use crate::diagnose::tokens::{TokenStructure, structure};
use crate::diagnose::{Descent, draw};
use crate::runs::{Run, Runs, Variant};

/// Rates of the two fits, as the paper has them.
const TOKEN_RATE: f64 = 1e-1;
const WHOLE_RATE: f64 = 1e-4;
/// Where the tiles of the fits are drawn from.
const SEED: u64 = 0;
/// Tiles whose tokens are fitted at once.
const BATCH: usize = 4;
/// Training tiles whose tokens are looked at.
const STRUCTURE_TILES: usize = 128;
/// Points of a curve.
const POINTS: usize = 20;

/// How far single tiles are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitting {
    /// Steps on tokens.
    pub token_steps: usize,
    /// Tiles whose tokens are fitted; 0 for all.
    pub token_tiles: usize,
    /// Steps on tokens and decoder.
    pub bound_steps: usize,
    /// Tiles whose tokens and decoder are fitted.
    pub bound_tiles: usize,
}

/// What single tiles gain by being fitted, and what tokens hold.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Fitted tokens.
    pub tokens: Fitted,
    /// Fitted tokens and decoder.
    pub whole: Fitted,
    /// The tokens of training tiles.
    pub structure: TokenStructure,
}

/// The gap of HUVR+SIREN, where its weights are here; measured once.
pub(crate) fn gap(runs: &mut Runs, fitting: &Fitting) -> Result<Option<Arc<Gap>>> {
    if let Some(known) = &runs.known.gap {
        return Ok(Some(known.clone()));
    }
    let run = runs.get(&Variant::plain("huvr-siren"))?;
    let Some(model) = run.model(runs.device, runs.settings.memory)? else {
        return Ok(None);
    };
    runs.known.gap = Some(Arc::new(measure(runs, &run, &model, fitting)?));
    Ok(runs.known.gap.clone())
}

fn measure(runs: &mut Runs, run: &Run, model: &Model, fitting: &Fitting) -> Result<Gap> {
    let all = runs.tiles();
    let count = (fitting.token_tiles > 0).then_some(fitting.token_tiles);
    let descent = |steps: usize, rate: f64| Descent::constant(steps, rate, steps.div_ceil(POINTS));
    let (dataset, device) = (runs.dataset, runs.device);
    let tokens = fit_tokens(
        model,
        &run.config,
        dataset,
        &draw(&all, count, SEED),
        FitOptions {
            descent: descent(fitting.token_steps, TOKEN_RATE),
            batch: BATCH,
        },
        device,
        &mut |state| runs.report("fitting tokens", state.step, state.steps),
    )?;
    let whole = upper_bound(
        model,
        &run.config,
        dataset,
        &draw(&all, Some(fitting.bound_tiles), SEED),
        descent(fitting.bound_steps, WHOLE_RATE),
        device,
        &mut |state| runs.report("fitting decoders", state.step, state.steps),
    )?;
    let train = runs.dataset.split("train");
    let train = draw(&train, Some(STRUCTURE_TILES.min(train.len())), SEED);
    let structure = structure(
        model,
        &run.config,
        dataset,
        &train,
        SEED,
        device,
        &mut |done, total| runs.report("tokens", done, total),
    )?;
    Ok(Gap {
        tokens,
        whole,
        structure,
    })
}

/// The gap of HUVR+SIREN and the structure of its tokens.
pub(crate) fn amortisation(runs: &mut Runs, fitting: &Fitting) -> Result<Section> {
    let mut section = Section {
        heading: "Amortisation and tokens".into(),
        ..Section::default()
    };
    let Some(gap) = gap(runs, fitting)? else {
        let text = "The weights of HUVR+SIREN are not here, so no tile can be fitted.";
        section.paragraphs.push(text.into());
        return Ok(section);
    };
    section.tables.push(table(&gap.tokens, &gap.whole));
    section.figures.extend(figures(&gap.tokens, &gap.whole));
    let structure = gap.structure.section();
    section.paragraphs.extend(structure.paragraphs);
    section.tables.extend(structure.tables);
    section.figures.extend(structure.figures);
    Ok(section)
}

fn table(tokens: &Fitted, whole: &Fitted) -> Table {
    let note = "Every fit starts from the trained network's own tokens and keeps the best of all steps; the amortised mean is that of the same tiles. The paper: 51.69 dB amortised, 53.05 with fitted tokens, 58.95 with fitted tokens and decoder (5000 steps).";
    let columns = vec![
        Column::new("fitted", "fitted per tile", 0),
        Column::new("numbers", "numbers per tile", 0),
        Column::new("tiles", "tiles", 0),
        Column::new("steps", "steps", 0),
        Column::new("seconds_per_tile", "seconds per tile", 1),
        Column::new("amortised_psnr_db", "amortised dB", 2),
        Column::new("fitted_psnr_db", "fitted dB", 2),
        Column::new("gap_db", "gap dB", 2),
        Column::new("paper_gap_db", "paper: gap dB", 2),
        Column::new("amortised_rmse_m", "amortised RMSE m", 4),
        Column::new("fitted_rmse_m", "fitted RMSE m", 4),
    ];
    let mut table = Table::new("amortisation", "What amortisation costs", note, columns);
    let [amortised, fitted, bound] = paper::AMORTISATION;
    let rows = [
        ("tokens", tokens, fitted - amortised),
        ("tokens and decoder", whole, bound - amortised),
    ];
    for (name, fit, paper_gap) in rows {
        table.row(vec![
            name.into(),
            fit.numbers.into(),
            fit.fitted.tiles.into(),
            fit.descent.steps.into(),
            fit.seconds_per_tile.into(),
            fit.amortised.mean.psnr_db.into(),
            fit.fitted.mean.psnr_db.into(),
            fit.gap_db.into(),
            Cell::Number(paper_gap),
            fit.amortised.mean.rmse_m.into(),
            fit.fitted.mean.rmse_m.into(),
        ]);
    }
    table
}

fn figures(tokens: &Fitted, whole: &Fitted) -> [Figure; 2] {
    let [amortised, fitted, bound] = paper::AMORTISATION;
    let group = |name: &str, here: f64, paper: f64| {
        let bars = vec![("here".to_owned(), here), ("paper".to_owned(), paper)];
        (name.to_owned(), bars)
    };
    let decomposition = bar_chart(
        "amortisation",
        "Where the quality goes",
        "What fitting a tile's tokens, and fitting its tokens and its decoder, adds to the amortised result of the same tiles.",
        Axis::linear("gain in PSNR, dB"),
        &[
            group("fitted tokens", tokens.gap_db, fitted - amortised),
            group("fitted tokens and decoder", whole.gap_db, bound - amortised),
        ],
    );
    [decomposition, curve_figure(&[tokens, whole])]
}
