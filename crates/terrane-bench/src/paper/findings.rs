//! All that was measured, and which run stands for which row of the paper.

use std::path::{Path, PathBuf};

use terrane_networks::cost::Convention;
use terrane_networks::methods::MethodConfig;
use terrane_networks::methods::huvr_siren::{Config as HuvrSirenConfig, ModulationKind};
use terrane_report::figure::Figure;
use terrane_train::config::Config;

use super::evidence::{Evidence, Fit, Structure, bases, listed, named_runs, scaling, text, times};
use crate::diagnose::draw;
use crate::diagnose::linear::{Linear, LinearOptions, linear};
use crate::runs::{Runs, Variant, methods};
use crate::suite::Options;
use crate::tables::amortisation::gap;
use crate::tables::clock::{self, Time};
use crate::tables::reconstructions::reconstructions;
use crate::tables::{ablation, paper, ptq};
use crate::{Error, Result};

/// A line that names the machine of a folder's logs.
const MACHINE: &str = "machine.txt";
const TIMES: &str = "wall-clock.csv";
/// Folders of a folder of results that are looked into.
const MAX_DEPTH: usize = 4;
/// The run on all training tiles as they are.
pub(super) const ALL_TILES: &str = "nall";
/// Tiles that are enough to teach principal components of patches, of which each has many.
const TAUGHT: usize = 1000;
/// Two measurements of one network differ by less.
const SAME_DB: f64 = 0.01;

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What was measured with each training.
    pub runs: Vec<Evidence>,
    /// How long tiles take, and on what.
    pub times: Vec<(Time, String)>,
    /// PSNR by training tiles as they are, which says how many all of them are.
    pub scaling: Vec<(usize, f64)>,
    /// What linear bases hold of the tiles.
    pub linear: Vec<Linear>,
    /// What made the logs.
    pub machine: Option<String>,
    /// Tiles side by side.
    pub pictures: Vec<Figure>,
}

/// A row of the paper and its network in the paper's size.
struct PaperRun {
    name: String,
    config: Config,
}

/// Every row of the paper that is a training of its own.
fn variants() -> Vec<Variant> {
    let mut all: Vec<Variant> = methods().map(Variant::plain).collect();
    all.extend(ablation::variants().into_iter().skip(1));
    all.extend(ablation::unaugmented());
    all
}

fn paper_runs() -> Result<Vec<PaperRun>> {
    let run = |variant: Variant| {
        Ok(PaperRun {
            config: Config::preset(variant.method, &variant.changes)?,
            name: variant.name,
        })
    };
    variants().into_iter().map(run).collect()
}

/// The paper's network and data of a row.
pub(crate) fn paper_config(row: &str) -> Result<Option<Config>> {
    let run = paper_runs()?.into_iter().find(|run| run.name == row);
    Ok(run.map(|run| run.config))
}

/// What the ablation varies of a network.
fn features(method: &MethodConfig) -> Option<(usize, usize, f64, ModulationKind)> {
    match method {
        MethodConfig::HuvrSiren(config) => Some((
            config.patch,
            config.bottleneck,
            config.omega,
            config.modulation,
        )),
        MethodConfig::Huvr(config) => Some((
            config.patch,
            config.bottleneck,
            0.0,
            ModulationKind::AmplitudeShift,
        )),
        _ => None,
    }
}

/// The rest of it: its sizes.
fn sizes(method: &MethodConfig) -> MethodConfig {
    match method {
        MethodConfig::HuvrSiren(config) => MethodConfig::HuvrSiren(HuvrSirenConfig {
            patch: 0,
            bottleneck: 0,
            omega: 0.0,
            modulation: ModulationKind::AmplitudeShift,
            ..*config
        }),
        other => other.clone(),
    }
}

/// The row of the paper that a configuration is of, whatever its size and schedule.
fn row_of(config: &Config, known: &[PaperRun]) -> Option<String> {
    let same = |run: &&PaperRun| {
        run.config.method.method() == config.method.method()
            && features(&run.config.method) == features(&config.method)
            && run.config.data == config.data
    };
    known.iter().find(same).map(|run| run.name.clone())
}

impl Findings {
    /// Those of a folder of runs, however deep they lie in it.
    pub(crate) fn read(folder: &Path, split: &str) -> Result<Self> {
        let mut findings = Self::default();
        let machine = folder.join(MACHINE);
        if machine.is_file() {
            findings.machine = Some(text(&machine)?.trim().to_owned());
        }
        let mut tables = Vec::new();
        findings.read_folder(
            folder,
            folder,
            split,
            &paper_runs()?,
            MAX_DEPTH,
            &mut tables,
        )?;
        for (tables, runs) in tables {
            let named = |run: &&mut Evidence| runs.contains(&run.place);
            for run in findings.runs.iter_mut().filter(named) {
                run.read_tables(&tables)?;
            }
        }
        if findings.runs.is_empty() {
            return Err(Error::NoResults {
                path: folder.to_owned(),
                split: split.to_owned(),
            });
        }
        Ok(findings)
    }

    fn read_folder(
        &mut self,
        root: &Path,
        folder: &Path,
        split: &str,
        known: &[PaperRun],
        depth: usize,
        tables: &mut Vec<(PathBuf, Vec<String>)>,
    ) -> Result<()> {
        let place = folder.strip_prefix(root).unwrap_or(folder);
        let place = place.to_string_lossy().replace('\\', "/");
        if let Some(mut evidence) = Evidence::read(folder, &place, split)?
            && let Some(row) = row_of(&evidence.config, known)
        {
            evidence.row = row;
            self.runs.push(evidence);
        }
        self.times.extend(times(&folder.join(TIMES))?);
        self.scaling.extend(scaling(folder)?);
        self.linear.extend(bases(folder)?);
        let runs = named_runs(folder)?;
        if !runs.is_empty() {
            tables.push((folder.to_owned(), runs));
        }
        if depth > 0 {
            for path in listed(folder)?.iter().filter(|path| path.is_dir()) {
                self.read_folder(root, path, split, known, depth - 1, tables)?;
            }
        }
        Ok(())
    }

    /// Those of the benchmark's own runs; what is not there yet is trained and measured.
    pub(crate) fn measure(runs: &mut Runs, options: &Options) -> Result<Self> {
        let mut findings = Self::default();
        let tiles = runs.dataset.split("train").len();
        for variant in variants() {
            // A smaller dataset has fewer rows.
            if variant.changes.iter().any(|change| {
                let count = change.strip_prefix("data.tiles=");
                count.is_some_and(|count| count.parse().is_ok_and(|count: usize| count >= tiles))
            }) {
                continue;
            }
            let run = runs.get(&variant)?;
            let folder = runs.folder_of(&variant.name);
            let place = format!("runs/{}", variant.name);
            let (config, evaluation) = (run.config.clone(), run.evaluation.clone());
            let mut evidence = Evidence::new(&place, config, evaluation)?;
            // What lies beside a run counts where its weights do not.
            evidence.read_files(&folder)?;
            evidence.row.clone_from(&variant.name);
            if variant.name == ALL_TILES {
                let psnr = evidence.summary.mean.psnr_db;
                findings.scaling.push((tiles, psnr));
            }
            findings.runs.push(evidence);
        }
        if let Some(best) = findings.runs.iter_mut().find(|run| run.row == "huvr-siren") {
            if let Some(widths) = ptq::quantised(runs, "huvr-siren")? {
                best.quantised = widths.to_vec();
            }
            if let Some(gap) = gap(runs, &options.fitting)? {
                best.tokens = Fit::of(std::slice::from_ref(&gap.tokens))?;
                best.whole = Fit::of(std::slice::from_ref(&gap.whole))?;
                best.structure = Some(Structure {
                    split: "train".into(),
                    tokens: gap.structure.clone(),
                });
            }
        }
        findings.linear.push(without_network(runs)?);
        let times = clock::times(runs, options.passes)?;
        let times = times.iter().cloned();
        findings.times = times
            .map(|time| (time, options.device_name.clone()))
            .collect();
        findings.pictures = reconstructions(runs)?;
        Ok(findings)
    }

    /// The best evidence of a row that has something: of the paper's size, then of the most tiles, then of the best heights.
    pub(crate) fn best_with(
        &self,
        row: &str,
        has: impl Fn(&Evidence) -> bool,
    ) -> Option<&Evidence> {
        let all = self.runs.iter().filter(|run| run.row == row && has(run));
        all.max_by(|a, b| {
            let [a, b] = [a, b].map(|run| {
                let seen = (is_paper_size(run), run.tiles_seen());
                (seen, run.summary.mean.psnr_db)
            });
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// The best evidence of a row.
    pub(crate) fn best(&self, row: &str) -> Option<&Evidence> {
        self.best_with(row, |_| true)
    }

    /// A row's run of the same size and schedule as another.
    pub(crate) fn beside(&self, run: &Evidence, row: &str) -> Option<&Evidence> {
        let same = |base: &&Evidence| {
            let schedules = [base, run].map(|run| (run.config.train.steps, run.config.train.batch));
            let [a, b] = [base, run].map(|run| &run.config.method);
            let is_same_size = if a.method() == b.method() {
                sizes(a) == sizes(b)
            } else {
                is_paper_size(base) == is_paper_size(run)
            };
            base.row == row && schedules[0] == schedules[1] && is_same_size
        };
        self.runs.iter().find(same)
    }

    /// The best evidence of a row that has something and another's of the same size and schedule beside it, with that one.
    pub(crate) fn pair_with(
        &self,
        row: &str,
        other: &str,
        has: impl Fn(&Evidence) -> bool,
    ) -> Option<(&Evidence, &Evidence)> {
        let run = self.best_with(row, |run| has(run) && self.beside(run, other).is_some())?;
        Some((run, self.beside(run, other)?))
    }

    /// The same, whatever it has.
    pub(crate) fn pair(&self, row: &str, other: &str) -> Option<(&Evidence, &Evidence)> {
        self.pair_with(row, other, |_| true)
    }

    /// How many tiles a run on all of them saw, where a table says so.
    pub(crate) fn all_tiles(&self, run: &Evidence) -> Option<usize> {
        let psnr = run.summary.mean.psnr_db;
        let same = |(_, of_table): &&(usize, f64)| (of_table - psnr).abs() < SAME_DB;
        let tiles = self.scaling.iter().filter(same).map(|(tiles, _)| *tiles);
        tiles.max()
    }

    /// Minutes that a row would take with the paper's network and schedule, at the highest speed of a log of that network, or
    /// else of another of that method and size: a network takes as much longer as it has operations more.
    pub(crate) fn minutes(&self, row: &str) -> Result<Option<f64>> {
        let Some(config) = paper_config(row)? else {
            return Ok(None);
        };
        let work = |config: &Config| config.method.account(Convention::AsRun).training as f64;
        let fastest = |is_like: &dyn Fn(&MethodConfig) -> bool| {
            let logs = self.runs.iter().filter(|run| is_like(&run.config.method));
            let speeds = logs.filter_map(|run| Some(run.tiles_per_s? * work(&run.config)));
            speeds.reduce(f64::max)
        };
        let same = fastest(&|method| *method == config.method);
        let speed = same.or_else(|| fastest(&|method| sizes(method) == sizes(&config.method)));
        let paper = paper::hyperparameters(config.method.method().name());
        let tiles = (paper.steps() * paper.batch) as f64;
        Ok(speed.map(|speed| tiles * work(&config) / speed / 60.0))
    }
}

/// What linear bases hold of the tiles in as many numbers as a token of the benchmark's own HUVR+SIREN has, in half and in twice
/// as many.
fn without_network(runs: &mut Runs) -> Result<Linear> {
    let config = runs.get(&Variant::plain("huvr-siren"))?.config.clone();
    let MethodConfig::HuvrSiren(method) = config.method else {
        return Err(Error::NoPatchTokens);
    };
    let pixels = method.patch * method.patch;
    let numbers = [1, 2, 4].map(|times| (method.bottleneck * times / 2).clamp(1, pixels));
    let options = LinearOptions {
        patch: method.patch,
        numbers: numbers.to_vec(),
    };
    let dataset = &runs.dataset;
    let taught = draw(&dataset.split("train"), Some(TAUGHT), 0);
    let tiles = dataset.split(&runs.settings.split);
    linear(dataset, &taught, &tiles, &options, &mut |_, _| {})
}

/// Whether a run's network is the paper's.
pub(crate) fn is_paper_size(run: &Evidence) -> bool {
    let paper = paper_config(&run.row);
    paper.is_ok_and(|paper| paper.is_some_and(|paper| paper.method == run.config.method))
}
