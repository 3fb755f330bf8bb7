//! What a run's folder holds of what was measured with it, weights or none.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use terrane_train::config::{Config, Experiment};
use terrane_train::evaluate::Evaluation;
use terrane_train::measure::{Summary, mean};
use terrane_train::training::checkpoint::{CONFIG, METRICS};

use crate::diagnose::fit::Fitted;
use crate::diagnose::linear::Linear;
use crate::diagnose::tokens::TokenStructure;
use crate::tables::clock::Time;
use crate::tables::ptq::Quantised;
use crate::{Error, Result};

/// Files that a run's folder may hold beside its configuration, its log and its evaluations.
const QUANTISED: &str = "ptq.csv";
const FITTED: &str = "fit.json";
const FITS: &str = "amortisation.csv";
const TOKENS: &str = "tokens.json";
const LINEAR: &str = "linear.json";
/// The method whose tiles a table of fits is of.
const FITTED_METHOD: &str = "huvr-siren";
/// A line for each run that the tables of a folder without a run are of: its path from the topmost folder.
const RUNS: &str = "runs.txt";
/// PSNR by training tiles.
const SCALING: &str = "data-scaling.csv";
/// Parts of one upper bound begin so.
const BOUND: &str = "bound-";

/// What was measured with one training.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// Where it lies.
    pub place: String,
    /// The row of the paper that it stands for.
    pub row: String,
    /// Its configuration.
    pub config: Config,
    /// Measures of the test tiles.
    pub evaluation: Evaluation,
    /// Their means.
    pub summary: Summary,
    /// Means over training tiles.
    pub train: Option<Summary>,
    /// Its tokens in several widths.
    pub quantised: Vec<Quantised>,
    /// What fitting tokens adds.
    pub tokens: Option<Fit>,
    /// What fitting tokens and decoder adds.
    pub whole: Option<Fit>,
    /// What its tokens hold.
    pub structure: Option<Structure>,
    /// How fast it was trained.
    pub tiles_per_s: Option<f64>,
}

/// What tokens hold, and of which tiles they are.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Structure {
    /// The split of the tiles.
    pub split: String,
    /// What was found.
    #[serde(flatten)]
    pub tokens: TokenStructure,
}

/// What fitting single tiles added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// Tiles that were fitted.
    pub tiles: usize,
    /// Steps of each.
    pub steps: usize,
    /// Fits that they are of, which may have run beside each other.
    pub parts: usize,
    /// Time of each.
    pub seconds_per_tile: f64,
    /// Their mean PSNR before.
    pub amortised_db: f64,
    /// And after.
    pub fitted_db: f64,
}

impl Fit {
    /// Of parts of one fit, each of other tiles; those with the most steps count.
    pub(crate) fn of(parts: &[Fitted]) -> Result<Option<Self>> {
        let Some(steps) = parts.iter().map(|part| part.descent.steps).max() else {
            return Ok(None);
        };
        let (mut tiles, mut seconds) = (Vec::new(), 0.0);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let parts = parts.iter().filter(|part| part.descent.steps == steps);
        for part in parts.clone() {
            let each = part.amortised_tiles.tiles.iter();
            let each = each.zip(&part.amortised_tiles.measures);
            for ((tile, amortised), fitted) in each.zip(&part.fitted_tiles.measures) {
                if !tiles.contains(tile) {
                    tiles.push(*tile);
                    before.push(*amortised);
                    after.push(*fitted);
                    seconds += part.seconds_per_tile;
                }
            }
        }
        Ok(Some(Self {
            tiles: tiles.len(),
            steps,
            parts: parts.count(),
            seconds_per_tile: seconds / tiles.len() as f64,
            amortised_db: mean(&before)?.mean.psnr_db,
            fitted_db: mean(&after)?.mean.psnr_db,
        }))
    }

    /// What it added.
    pub(crate) fn gain_db(&self) -> f64 {
        self.fitted_db - self.amortised_db
    }
}

impl Evidence {
    /// A training with the measures of its test tiles; the row is for the caller to say.
    pub(crate) fn new(place: &str, config: Config, evaluation: Evaluation) -> Result<Self> {
        Ok(Self {
            place: place.to_owned(),
            row: String::new(),
            config,
            summary: evaluation.summary()?,
            evaluation,
            train: None,
            quantised: Vec::new(),
            tokens: None,
            whole: None,
            structure: None,
            tiles_per_s: None,
        })
    }

    /// That of a folder, if it holds a run of a method with an evaluation of the split.
    pub(crate) fn read(folder: &Path, place: &str, split: &str) -> Result<Option<Self>> {
        let stored = folder.join(evaluation_file(split));
        let path = folder.join(CONFIG);
        if !stored.is_file() || !path.is_file() {
            return Ok(None);
        }
        let config = match Experiment::parse(&text(&path)?, &[]) {
            Ok(Experiment::Method(config)) => *config,
            Ok(Experiment::Context(_)) => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        let mut evidence = Self::new(place, config, read_evaluation(&stored)?)?;
        evidence.read_files(folder)?;
        Ok(Some(evidence))
    }

    /// Reads what else a folder holds.
    pub(crate) fn read_files(&mut self, folder: &Path) -> Result<()> {
        let train = folder.join(evaluation_file("train"));
        if train.is_file() {
            self.train = Some(read_evaluation(&train)?.summary()?);
        }
        self.structure = optional(&folder.join(TOKENS))?;
        self.tiles_per_s = speed(&folder.join(METRICS))?;
        self.read_tables(folder)?;
        self.read_fits(folder)
    }

    /// Reads the tables of a benchmark that lie in the run's folder, or in another that names the run; what is known stays.
    pub(crate) fn read_tables(&mut self, folder: &Path) -> Result<()> {
        let method = self.config.method.method().name();
        if self.quantised.is_empty() {
            self.quantised = quantised(&folder.join(QUANTISED), method)?;
        }
        // The benchmark fits tiles of this method alone.
        if method != FITTED_METHOD {
            return Ok(());
        }
        for row in rows::<FitRow>(&folder.join(FITS))? {
            let fit = Fit {
                tiles: row.tiles,
                steps: row.steps,
                parts: 1,
                seconds_per_tile: row.seconds_per_tile,
                amortised_db: row.amortised_psnr_db,
                fitted_db: row.fitted_psnr_db,
            };
            match row.fitted.as_str() {
                "tokens" => self.tokens.get_or_insert(fit),
                _ => self.whole.get_or_insert(fit),
            };
        }
        Ok(())
    }

    fn read_fits(&mut self, folder: &Path) -> Result<()> {
        if let Some(fitted) = optional::<Fitted>(&folder.join(FITTED))? {
            self.tokens = Fit::of(&[fitted])?;
        }
        let mut parts = Vec::new();
        for path in listed(folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(BOUND) && name.ends_with(".json") {
                parts.extend(optional::<Fitted>(&path)?);
            }
        }
        if let Some(whole) = Fit::of(&parts)? {
            self.whole = Some(whole);
        }
        Ok(())
    }

    /// The schedule in words.
    pub(crate) fn schedule(&self) -> String {
        let train = &self.config.train;
        format!("{} × {}", grouped(train.steps), train.batch)
    }

    /// Tiles that its training saw.
    pub(crate) fn tiles_seen(&self) -> usize {
        self.config
            .train
            .steps
            .saturating_mul(self.config.train.batch)
    }
}

/// A count with its thousands apart.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The file of a split's evaluation.
fn evaluation_file(split: &str) -> String {
    format!("eval-{split}.json")
}

/// What `terrane eval --json` wrote: the evaluation of one model, or of the first of several.
pub(crate) fn read_evaluation(path: &Path) -> Result<Evaluation> {
    #[derive(Deserialize)]
    struct Stored {
        evaluation: Evaluation,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum File {
        One(Box<Stored>),
        Several(Vec<Stored>),
    }
    let stored = match json(path)? {
        File::One(stored) => Some(*stored),
        File::Several(all) => all.into_iter().next(),
    };
    let stored = stored.ok_or_else(|| failed(path, "it holds no evaluation"))?;
    Ok(stored.evaluation)
}

#[derive(Deserialize)]
struct FitRow {
    fitted: String,
    tiles: usize,
    steps: usize,
    seconds_per_tile: f64,
    amortised_psnr_db: f64,
    fitted_psnr_db: f64,
}

fn quantised(path: &Path, method: &str) -> Result<Vec<Quantised>> {
    #[derive(Deserialize)]
    struct Row {
        method: String,
        bits: String,
        fixed_bpp: f64,
        shannon_bpp: Option<f64>,
        coded_bpp: Option<f64>,
        psnr_db: f64,
        rmse_m: f64,
    }
    let ours = rows::<Row>(path)?
        .into_iter()
        .filter(|row| row.method == method);
    // Floats have no Shannon bound; their row is that of the evaluation.
    let quantised = ours.filter_map(|row| {
        Some(Quantised {
            bits: row.bits.strip_prefix("int ")?.parse().ok()?,
            fixed_bpp: row.fixed_bpp,
            shannon_bpp: row.shannon_bpp?,
            coded_bpp: row.coded_bpp?,
            psnr_db: row.psnr_db,
            rmse_m: row.rmse_m,
        })
    });
    Ok(quantised.collect())
}

/// The times of a table of them, and on what they were measured.
pub(crate) fn times(path: &Path) -> Result<Vec<(Time, String)>> {
    #[derive(Deserialize)]
    struct Row {
        method: String,
        parameters: u64,
        encode_ms: f64,
        encode_deviation_ms: f64,
        decode_ms: f64,
        decode_deviation_ms: f64,
        #[serde(default)]
        device: String,
    }
    let rows = rows::<Row>(path)?.into_iter().map(|row| {
        let time = Time {
            method: row.method,
            parameters: row.parameters,
            encode_ms: row.encode_ms,
            encode_deviation_ms: row.encode_deviation_ms,
            decode_ms: row.decode_ms,
            decode_deviation_ms: row.decode_deviation_ms,
        };
        (time, row.device)
    });
    Ok(rows.collect())
}

/// Training tiles and PSNR of runs on tiles as they are, of a table of them.
pub(crate) fn scaling(folder: &Path) -> Result<Vec<(usize, f64)>> {
    #[derive(Deserialize)]
    struct Row {
        tiles: usize,
        augmented: String,
        psnr_db: f64,
    }
    let rows = rows::<Row>(&folder.join(SCALING))?.into_iter();
    let rows = rows.filter(|row| row.augmented == "no");
    Ok(rows.map(|row| (row.tiles, row.psnr_db)).collect())
}

/// What linear bases hold, where a folder says it.
pub(crate) fn bases(folder: &Path) -> Result<Option<Linear>> {
    optional(&folder.join(LINEAR))
}

/// The runs that a folder's tables are of.
pub(crate) fn named_runs(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(RUNS);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = text(&path)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// The last speed that a log states.
fn speed(path: &Path) -> Result<Option<f64>> {
    #[derive(Deserialize)]
    struct Line {
        tiles_per_s: Option<f64>,
    }
    if !path.is_file() {
        return Ok(None);
    }
    let mut speed = None;
    for line in text(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).map_err(|error| failed(path, error))?;
        speed = line.tiles_per_s.or(speed);
    }
    Ok(speed.filter(|speed| *speed > 0.0))
}

fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = text(path)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader
        .deserialize()
        .map(|row| row.map_err(|error| failed(path, error)));
    rows.collect()
}

fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    path.is_file().then(|| json(path)).transpose()
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&text(path)?).map_err(|error| failed(path, error))
}

pub(crate) fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        action: "be read",
        source,
    })
}

/// What lies in a folder, by name.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io {
        path: folder.to_owned(),
        action: "be listed",
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
    let mut paths = paths.collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn failed(path: &Path, reason: impl ToString) -> Error {
    Error::Run {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
