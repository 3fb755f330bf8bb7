//! The paper's tables and figures beside ours on one page: its numbers, ours, the difference, by which run, and why.
//!
//! Ours come from runs: those of a benchmark, or those of a folder of results, in which a run is a folder with
//! `config.toml` and `eval-SPLIT.json` (`terrane eval --json`). Which row of the paper it stands for follows from its
//! configuration; of several the one of the paper's size with the most tiles seen counts, and of equals the one with the
//! better heights. It may also hold `metrics.jsonl` (the log, for prices), `eval-train.json`, `ptq.csv` and
//! `amortisation.csv` (of `terrane bench`), `fit.json`, `bound-*.json` and `tokens.json` (of `terrane diagnose fit`,
//! `upper-bound` and `tokens` with `--json`). The tables may also lie in a folder with `runs.txt`, a line for each run that
//! they are of: its path from the topmost folder. Any folder may hold `wall-clock.csv`, `data-scaling.csv` and `linear.json`
//! (of `terrane diagnose linear --json`), and the topmost `machine.txt`, a line that names what made the logs.

mod cost;
mod diagnosis;
pub(crate) mod evidence;
mod findings;
mod number;
mod quality;
mod storage;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use terrane_report::comparison::{Comparison, Verdict};
use terrane_report::figure::Figure;
use terrane_report::{Report, Section};

pub(crate) use self::findings::Findings;
use self::number::TOLERANCES;
use crate::Result;

/// Stem of the page's files.
pub const PAGE: &str = "paper";

/// Compares the runs of a folder of results with the paper and writes the page; needs neither data nor weights.
pub fn paper(results: &Path, split: &str, out: &Path) -> Result<Report> {
    Report::check_as(out, PAGE)?;
    let page = page(&Findings::read(results, split)?)?;
    page.write_as(out, PAGE)?;
    Ok(page)
}

/// The page.
pub(crate) fn page(findings: &Findings) -> Result<Report> {
    let section = |heading: &str, comparison: Comparison, figures: Vec<Figure>| Section {
        heading: format!("{}: {heading}", comparison.place),
        comparisons: vec![comparison],
        figures,
        ..Section::default()
    };
    let (rates, rate_chart) = findings.dominance()?;
    let (data, data_chart) = findings.data()?;
    let (gap, gap_chart) = findings.amortisation()?;
    let (seams, seam_chart) = findings.seams()?;
    let (tokens, token_charts) = findings.tokens()?;
    let sections = vec![
        section("four methods", findings.headline()?, vec![]),
        section("operations, and time", findings.operations()?, vec![]),
        section("bits per pixel", findings.rates()?, vec![]),
        section("one change at a time", findings.ablation()?, vec![]),
        section("two coordinate networks", cost::networks()?, vec![]),
        section("settings of the trainings", cost::settings()?, vec![]),
        section("derivatives", findings.derivatives()?, vec![]),
        section("quantised tokens", findings.frontier()?, vec![]),
        section("flat, hilly and rugged", findings.regimes()?, vec![]),
        section("derivatives of the ablation", findings.absolute()?, vec![]),
        Section {
            heading: "Figure 1: the methods".into(),
            paragraphs: vec!["A drawing of the four methods, without numbers.".into()],
            ..Section::default()
        },
        reconstructions(findings),
        section("rate and distortion", rates, vec![rate_chart]),
        section("how much data it takes", data, vec![data_chart]),
        section("what amortisation costs", gap, vec![gap_chart]),
        section("where patches meet", seams, vec![seam_chart]),
        section("structure of the tokens", tokens, token_charts),
    ];
    Ok(Report {
        title: "The paper and what we measured".into(),
        introduction: introduction(findings, &sections),
        sections,
    })
}

fn reconstructions(findings: &Findings) -> Section {
    let text = if findings.pictures.is_empty() {
        "Pictures of three tiles, without numbers. Ours take weights and tiles: `terrane bench headline` draws them."
    } else {
        "Pictures of three tiles, without numbers. The paper takes tiles at the 10, 50 and 90 % quantiles of the deviation of heights, we take the middle one of each regime."
    };
    Section {
        heading: "Figure 2: reconstructions".into(),
        paragraphs: vec![text.into()],
        figures: findings.pictures.clone(),
        ..Section::default()
    }
}

/// How many numbers there are, how many have one of ours, and how many of those agree.
pub fn tally(sections: &[Section]) -> [usize; 3] {
    let comparisons = sections.iter().flat_map(|section| &section.comparisons);
    let rows: Vec<Verdict> = comparisons
        .flat_map(|comparison| comparison.rows.iter().map(|row| row.verdict))
        .collect();
    let count = |verdict| rows.iter().filter(|row| **row == verdict).count();
    [
        rows.len(),
        rows.len() - count(Verdict::Missing),
        count(Verdict::Agrees),
    ]
}

fn introduction(findings: &Findings, sections: &[Section]) -> String {
    let [all, measured, agree] = tally(sections);
    let best = findings.best("huvr-siren");
    let tiles = best.map_or_else(String::new, |run| {
        format!(
            "Ours were measured on {} test tiles of other terrain with a mean range of {:.1} m. ",
            run.summary.tiles, run.summary.mean.range_m
        )
    });
    let machine = findings
        .machine
        .as_deref()
        .unwrap_or("the machine of that log");
    format!(
        "“Rethinking Amortized Neural Representations for High-Resolution Terrain Elevation Data” (arXiv 2606.00404) in its order, each number beside ours: {all} numbers and settings, of which {measured} have one of ours and {agree} agree. {tiles}{TOLERANCES} “12,500 × 32” is 12,500 steps of 32 tiles. What a training as in the paper would take is its tiles (steps × tiles per step) divided by the tiles per second of the fastest log of that network, or of another of that method and size by the ratio of their operations, on {machine}."
    )
}
