//! One number of the paper beside ours: whether they agree, and why if not.

use terrane_report::comparison::{Compared, Form, Verdict};
use terrane_report::table::Cell;
use terrane_train::config::Config;

use super::evidence::{Evidence, grouped};
use super::findings::{Findings, is_paper_size, paper_config};
use crate::Result;
use crate::tables::{ablation, paper};

/// How far ours may be from the paper's and still agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tolerance {
    /// As far as the paper rounds, or counts differ.
    Rounding,
    /// So far, in the unit of the number.
    Within(f64),
    /// By this share of the paper's.
    Share(f64),
}

/// What was measured and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measure {
    pub name: &'static str,
    pub unit: &'static str,
    pub digits: usize,
    pub tolerance: Tolerance,
    pub form: Form,
}

/// Decibels that PSNR may differ by, and differences of PSNR.
const PSNR_DB: f64 = 1.0;
const CHANGE_DB: f64 = 0.5;
/// The share that errors, rates and other measures may differ by.
const SHARE: f64 = 0.15;

/// The most digits that the paper has of a number that it prints more than once.
const KNOWN_DIGITS: usize = 4;

/// And the share that counts of operations may.
const COUNTED: f64 = 0.002;

/// What the page says of them.
pub(super) const TOLERANCES: &str = "Ours agrees where it is within 1 dB in PSNR, 0.5 dB in differences of PSNR, and 15 % in errors, rates of symbols and the rest, of the paper's number with all digits that it has anywhere; counts, operations, fixed rates and settings agree where they round to the paper's number or are within 0.2 % of it.";

impl Measure {
    pub(super) const fn new(
        name: &'static str,
        unit: &'static str,
        digits: usize,
        tolerance: Tolerance,
    ) -> Self {
        Self {
            name,
            unit,
            digits,
            tolerance,
            form: Form::Value,
        }
    }

    /// The same as a change, which has a sign.
    const fn signed(mut self) -> Self {
        self.form = Form::Change;
        self
    }

    pub(super) const fn psnr(digits: usize) -> Self {
        Self::new("PSNR", "dB", digits, Tolerance::Within(PSNR_DB))
    }

    pub(super) const fn change(name: &'static str) -> Self {
        Self::new(name, "dB", 2, Tolerance::Within(CHANGE_DB)).signed()
    }

    pub(super) const fn error_change(
        name: &'static str,
        unit: &'static str,
        digits: usize,
    ) -> Self {
        Self::error(name, unit, digits).signed()
    }

    pub(super) const fn error(name: &'static str, unit: &'static str, digits: usize) -> Self {
        let mut measure = Self::new(name, unit, digits, Tolerance::Share(SHARE));
        measure.form = Form::Share;
        measure
    }

    pub(super) const fn count(name: &'static str, unit: &'static str, digits: usize) -> Self {
        Self::new(name, unit, digits, Tolerance::Rounding)
    }

    /// A number with all digits that the paper has of it anywhere: a table that prints fewer has no other number.
    fn known(&self, value: f64) -> f64 {
        let scale = 10_f64.powi(self.digits.max(KNOWN_DIGITS) as i32);
        (value * scale).round() / scale
    }

    fn agrees(&self, paper: f64, ours: f64) -> bool {
        let difference = (ours - paper).abs();
        match self.tolerance {
            // A little more than half, for what is printed is not a binary fraction.
            Tolerance::Rounding => {
                let half = 0.501 * 10_f64.powi(-(self.digits as i32));
                difference <= half.max(COUNTED * paper.abs())
            }
            Tolerance::Within(most) => difference <= most,
            Tolerance::Share(share) => difference <= share * paper.abs(),
        }
    }

    /// The paper's number beside ours; `why` is for those that do not agree.
    pub(super) fn beside(
        &self,
        subject: &str,
        paper: f64,
        ours: Option<f64>,
        source: &str,
        why: &str,
    ) -> Compared {
        let paper = self.known(paper);
        let verdict = match ours {
            None => Verdict::Missing,
            Some(ours) if self.agrees(paper, ours) => Verdict::Agrees,
            Some(_) => Verdict::Differs,
        };
        Compared {
            subject: subject.to_owned(),
            measure: self.name.to_owned(),
            unit: self.unit.to_owned(),
            digits: self.digits,
            paper: Cell::Number(paper),
            ours: ours.into(),
            form: self.form,
            source: source.to_owned(),
            why: match verdict {
                Verdict::Agrees => AGREES.to_owned(),
                _ => why.to_owned(),
            },
            verdict,
        }
    }
}

/// The same with something to add whether they agree or not, but not where there is nothing.
pub(super) fn noted(mut compared: Compared, note: &str) -> Compared {
    if compared.verdict != Verdict::Missing && !note.is_empty() {
        compared.why = format!("{}; {note}", compared.why);
    }
    compared
}

/// What stands where nothing has to be explained.
pub(super) const AGREES: &str = "agrees";

/// Words of the paper beside ours.
pub(super) fn words(
    subject: &str,
    measure: &str,
    paper: &str,
    ours: &str,
    source: &str,
    why: &str,
) -> Compared {
    let verdict = if paper == ours {
        Verdict::Agrees
    } else {
        Verdict::Differs
    };
    Compared {
        subject: subject.to_owned(),
        measure: measure.to_owned(),
        unit: String::new(),
        digits: 0,
        paper: paper.into(),
        ours: ours.into(),
        form: Form::Value,
        source: source.to_owned(),
        why: if verdict == Verdict::Agrees {
            AGREES.to_owned()
        } else {
            why.to_owned()
        },
        verdict,
    }
}

/// What a row is called.
pub(super) fn named(row: &str) -> String {
    let name = match row {
        "transinr" => "TransINR",
        "functa" => "Functa",
        "huvr" => "HUVR",
        "huvr-siren" => "HUVR+SIREN",
        other => ablation::label(other).unwrap_or(other),
    };
    name.to_owned()
}

/// What the small network and short schedules make of a row, as far as we found it out.
const REASONS: [(&str, &str); 5] = [
    (
        "transinr",
        "it gives the mean of a tile for its first 15,000 tiles and learns slowly from there",
    ),
    (
        "d16",
        "the small network is limited by its decoder, not by its tokens",
    ),
    ("d256", "wider tokens take longer to learn"),
    ("d768", "wider tokens take longer to learn"),
    (
        "omega30",
        "after so few tiles its sines still swing between pixels",
    ),
];

/// How a training falls short of the paper's.
struct Shortfall {
    /// Its share of the paper's parameters, where it has another network.
    parameters: Option<f64>,
    /// Its share of the paper's tiles, where it saw fewer.
    tiles: Option<f64>,
}

/// A training that saw this share of the paper's tiles saw all of them.
const ALL_TILES: f64 = 0.95;

impl Shortfall {
    fn of(run: &Evidence) -> Result<Self> {
        let count = |config: &Config| config.method.parameters().unwrap_or(0) as f64;
        let paper = paper_config(&run.row)?.filter(|_| !is_paper_size(run));
        let schedule = paper::hyperparameters(run.config.method.method().name());
        let tiles = run.tiles_seen() as f64 / (schedule.steps() * schedule.batch) as f64;
        Ok(Self {
            parameters: paper.map(|paper| count(&run.config) / count(&paper)),
            tiles: (tiles < ALL_TILES).then_some(tiles),
        })
    }
}

/// A share in percent, with two digits at least.
fn percent(share: f64) -> String {
    let share = 100.0 * share;
    let digits = usize::from(share < 9.5);
    format!("{share:.digits$} %")
}

/// Why a run's number differs: its network, its schedule, what these do to its row, and what else there is to say.
pub(super) fn why(run: &Evidence, more: &str) -> Result<String> {
    let short = Shortfall::of(run)?;
    let mut clauses = vec![match (short.parameters, short.tiles) {
        (Some(_), Some(_)) => "smaller network, shorter schedule",
        (Some(_), None) => "smaller network",
        (None, Some(_)) => "shorter schedule",
        (None, None) => "the paper's network and schedule, other terrain",
    }];
    // What else there is to say counts more than what goes for the whole row.
    if more.is_empty() && (short.parameters.is_some() || short.tiles.is_some()) {
        let reason = REASONS.iter().find(|(row, _)| *row == run.row);
        clauses.extend(reason.map(|(_, reason)| *reason));
    }
    clauses.extend((!more.is_empty()).then_some(more));
    Ok(clauses.join("; "))
}

/// The same where something is to be said of short schedules and small networks alone.
pub(super) fn why_if_less(run: &Evidence, more: &str) -> Result<String> {
    let short = Shortfall::of(run)?;
    let is_less = short.parameters.is_some() || short.tiles.is_some();
    why(run, if is_less { more } else { "" })
}

impl Findings {
    /// Where a number of a run comes from, how much less its training was than the paper's, and what the paper's would take.
    pub(super) fn source(&self, run: &Evidence) -> Result<String> {
        let mut text = format!("`{}`, {}", run.place, run.schedule());
        let short = Shortfall::of(run)?;
        let mut less = Vec::new();
        less.extend(
            short
                .tiles
                .map(|share| format!("{} of the paper's tiles", percent(share))),
        );
        less.extend(
            short
                .parameters
                .map(|share| format!("{} of its parameters", percent(share))),
        );
        if !less.is_empty() {
            text.push_str(&format!(": {}", less.join(", ")));
            if let Some(price) = self.price(&run.row)? {
                text.push_str(&format!("; as in the paper {price}"));
            }
        }
        Ok(text)
    }

    /// The same of a run that may not be there.
    pub(super) fn source_of(&self, run: Option<&Evidence>) -> Result<String> {
        run.map_or_else(|| Ok(String::new()), |run| self.source(run))
    }

    /// Why there is nothing of a row.
    pub(super) fn missing(&self, row: &str) -> Result<String> {
        Ok(match self.price(row)? {
            Some(price) => format!("not measured: no run; as in the paper it takes {price}"),
            None => "not measured: no run".to_owned(),
        })
    }

    /// The time of a training as in the paper, in words.
    pub(super) fn price(&self, row: &str) -> Result<Option<String>> {
        let minutes = self.minutes(row)?;
        Ok(minutes.map(Self::time))
    }

    /// A time on the machine of the logs, which the page names.
    fn time(minutes: f64) -> String {
        match minutes {
            short if short < 10.0 => format!("{short:.1} min"),
            long => format!("{} min", grouped(long.round() as usize)),
        }
    }
}
