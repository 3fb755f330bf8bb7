//! The parts of the benchmark and what each writes.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use terrane_report::{Report, Section};
use terrane_train::data::Dataset;
use terrane_train::output::refuse_inputs;

use crate::Result;
use crate::codecs;
use crate::paper::{self, Findings};
use crate::runs::{self, Runs, Settings};
use crate::tables::Passes;
use crate::tables::{
    Fitting, ablation, amortisation, clock, cross, flops, headline, ptq, reconstructions, regimes,
};

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The four methods, the envelope of their derivatives and pictures of them.
    Headline,
    /// Operations and parameters.
    Flops,
    /// Quantised tokens.
    Ptq,
    /// One change at a time.
    Ablation,
    /// How much data it takes.
    DataScaling,
    /// Where patches meet.
    Boundary,
    /// Flat, hilly and rugged tiles.
    Regimes,
    /// Time for a tile.
    WallClock,
    /// What fitting a tile by itself would add, and what its tokens hold.
    Amortisation,
    /// Terrain of other kinds.
    CrossSource,
    /// Production codecs.
    Codecs,
    /// All numbers of the paper beside ours, on a page of its own.
    Paper,
}

impl Part {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::Headline,
        Self::Flops,
        Self::WallClock,
        Self::Ptq,
        Self::Codecs,
        Self::Regimes,
        Self::Boundary,
        Self::Ablation,
        Self::DataScaling,
        Self::Amortisation,
        Self::CrossSource,
        Self::Paper,
    ];
}

/// What a benchmark needs besides the data.
#[derive(Debug, Clone)]
pub struct Options {
    /// How networks are trained and measured.
    pub settings: Settings,
    /// Passes that are timed.
    pub passes: Passes,
    /// What the device is called in the tables.
    pub device_name: String,
    /// Fitting of single tiles.
    pub fitting: Fitting,
    /// The split of terrain of other kinds.
    pub other_split: String,
    /// A Python with the packages of the codecs that are not in this program.
    pub python: Option<PathBuf>,
}

/// Measures parts of the benchmark and writes the report after each; trainings are kept in `runs` of the folder and used
/// again.
pub fn run(
    parts: &[Part],
    dataset: &Dataset,
    folder: &Path,
    options: &Options,
    device: &Device,
    report: &mut runs::Report,
) -> Result<Report> {
    refuse_inputs(folder, &[dataset.folder()])?;
    Report::check(folder)?;
    if parts.contains(&Part::Paper) {
        Report::check_as(folder, paper::PAGE)?;
    }
    let mut runs = Runs::new(
        dataset,
        device,
        &options.settings,
        &folder.join("runs"),
        report,
    );
    let settings = &options.settings;
    let introduction = format!(
        "Measured on the split “{}” ({} tiles of {}×{} pixels) of a dataset with {} training tiles. Networks that were not there already were trained for {} steps of {} tiles; every table states the schedule. Values of the paper stand beside ours and were measured on other data.",
        settings.split,
        runs.tiles().len(),
        dataset.side(),
        dataset.side(),
        dataset.split("train").len(),
        settings.steps,
        settings.batch,
    );
    let mut report = Report {
        title: "Terrane benchmark".into(),
        introduction,
        sections: Vec::new(),
    };
    for &part in parts {
        let section = section(part, &mut runs, options, folder)?;
        report.sections.push(section);
        report.write(folder)?;
    }
    Ok(report)
}

/// Writes the page of the paper's numbers beside ours, and says how many agree.
fn write_paper(runs: &mut Runs, options: &Options, folder: &Path) -> Result<Section> {
    let page = paper::page(&Findings::measure(runs, options)?)?;
    page.write_as(folder, paper::PAGE)?;
    let [all, measured, agree] = paper::tally(&page.sections);
    Ok(Section {
        heading: "The paper's numbers beside ours".into(),
        paragraphs: vec![format!(
            "`{}.html` has all {all} of them: {measured} have one of ours, {agree} agree.",
            paper::PAGE
        )],
        ..Section::default()
    })
}

fn section(part: Part, runs: &mut Runs, options: &Options, folder: &Path) -> Result<Section> {
    let plain = |heading: &str, tables, figures| Section {
        heading: heading.into(),
        tables,
        figures,
        ..Section::default()
    };
    Ok(match part {
        Part::Headline => {
            let tables = vec![headline::headline(runs)?, headline::envelope(runs)?];
            plain(
                "Four methods",
                tables,
                reconstructions::reconstructions(runs)?,
            )
        }
        Part::Flops => plain("Operations", vec![flops::flops(runs)?], vec![]),
        Part::WallClock => {
            let table = clock::wall_clock(runs, options.passes, &options.device_name)?;
            plain("Time", vec![table], vec![])
        }
        Part::Ptq => {
            let (table, figure) = ptq::ptq(runs)?;
            plain("Quantised tokens", vec![table], vec![figure])
        }
        Part::Ablation => {
            let (table, figure) = ablation::ablation(runs)?;
            plain("Ablation", vec![table], vec![figure])
        }
        Part::DataScaling => {
            let (table, figure) = ablation::data_scaling(runs)?;
            plain("Data", vec![table], vec![figure])
        }
        Part::Boundary => {
            let (table, figure) = regimes::boundary(runs)?;
            plain("Seams", vec![table], vec![figure])
        }
        Part::Regimes => plain("Regimes", vec![regimes::regimes(runs)?], vec![]),
        Part::Paper => write_paper(runs, options, folder)?,
        Part::Amortisation => amortisation::amortisation(runs, &options.fitting)?,
        Part::CrossSource => {
            let (tables, figure) = cross::cross_source(runs, &options.other_split)?;
            plain("Terrain of other kinds", tables, vec![figure])
        }
        Part::Codecs => {
            let tiles = runs.tiles();
            let heights = tiles.iter().map(|&tile| runs.dataset.heights(tile));
            let heights = heights.collect::<terrane_train::Result<_>>()?;
            let others = ptq::curves(runs)?;
            runs.report("codecs", 0, 1);
            let codecs = codecs::Options {
                python: options.python.clone(),
                others,
                progress: &|_, _| {},
            };
            codecs::codecs(heights, runs.dataset.side(), &codecs)?.1
        }
    })
}
