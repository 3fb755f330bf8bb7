//! One number of the paper beside ours: whether they agree, and why if not.

use terrane_report::comparison::{Compared, Verdict};
use terrane_report::table::Cell;

use super::evidence::{Evidence, grouped};
use super::findings::{Findings, is_paper_size, paper_config};
use crate::Result;
use crate::tables::{ablation, paper};

/// How far ours may be from the paper's and still agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tolerance {
    /// As far as the paper rounds.
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
}

/// Decibels that PSNR may differ by, and differences of PSNR.
const PSNR_DB: f64 = 1.0;
const CHANGE_DB: f64 = 0.5;
/// The share that errors, rates and other measures may differ by.
const SHARE: f64 = 0.15;

/// What the page says of them.
pub(super) const TOLERANCES: &str = "Ours agrees where it is within 1 dB in PSNR, 0.5 dB in differences of PSNR, and 15 % in errors, rates of symbols and the rest; counts, operations, fixed rates and settings agree where they round to the paper's number.";

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
        }
    }

    pub(super) const fn psnr(digits: usize) -> Self {
        Self::new("PSNR", "dB", digits, Tolerance::Within(PSNR_DB))
    }

    pub(super) const fn change(name: &'static str) -> Self {
        Self::new(name, "dB", 2, Tolerance::Within(CHANGE_DB))
    }

    pub(super) const fn error(name: &'static str, unit: &'static str, digits: usize) -> Self {
        Self::new(name, unit, digits, Tolerance::Share(SHARE))
    }

    pub(super) const fn count(name: &'static str, unit: &'static str, digits: usize) -> Self {
        Self::new(name, unit, digits, Tolerance::Rounding)
    }

    /// A number as the paper prints it.
    fn printed(&self, value: f64) -> f64 {
        let scale = 10_f64.powi(self.digits as i32);
        (value * scale).round() / scale
    }

    fn agrees(&self, paper: f64, ours: f64) -> bool {
        let difference = (ours - paper).abs();
        match self.tolerance {
            // A little more, for what is printed is not a binary fraction.
            Tolerance::Rounding => difference <= 0.501 * 10_f64.powi(-(self.digits as i32)),
            Tolerance::Within(most) => difference <= most,
            Tolerance::Share(share) => difference <= share * paper.abs(),
        }
    }

    /// The paper's number beside ours; `why` is for those that differ, or for all where it says `agrees` itself.
    pub(super) fn beside(
        &self,
        subject: &str,
        paper: f64,
        ours: Option<f64>,
        source: &str,
        why: &str,
    ) -> Compared {
        let paper = self.printed(paper);
        let verdict = match ours {
            None => Verdict::Missing,
            Some(ours) if self.agrees(paper, ours) => Verdict::Agrees,
            Some(_) => Verdict::Differs,
        };
        let is_change = paper < 0.0 || self.name.contains("change");
        Compared {
            subject: subject.to_owned(),
            measure: self.name.to_owned(),
            unit: self.unit.to_owned(),
            digits: self.digits,
            paper: Cell::Number(paper),
            ours: ours.into(),
            has_share: self.unit != "dB" && !is_change,
            source: source.to_owned(),
            why: match verdict {
                Verdict::Agrees if !why.starts_with(AGREES) => AGREES.to_owned(),
                _ => why.to_owned(),
            },
            verdict,
        }
    }
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
        has_share: false,
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

/// Where a number of a run comes from.
pub(super) fn source(run: &Evidence) -> String {
    format!("`{}`, {}", run.place, run.schedule())
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

impl Findings {
    /// How a run's training was less than the paper's, what that does, and what the paper's would cost; `more` comes
    /// between.
    pub(super) fn why(&self, run: &Evidence, more: &str) -> Result<String> {
        let mut clauses = Vec::new();
        let paper = paper_config(&run.row)?;
        let parameters = |config: &terrane_train::config::Config| {
            let count = config.method.parameters().unwrap_or(0);
            usize::try_from(count).unwrap_or(usize::MAX)
        };
        let is_small = !is_paper_size(run);
        if is_small && let Some(paper) = &paper {
            let (ours, theirs) = (parameters(&run.config), parameters(paper));
            clauses.push(format!(
                "a network of {} parameters, the paper's has {}",
                grouped(ours),
                grouped(theirs)
            ));
        }
        let schedule = paper::hyperparameters(run.config.method.method().name());
        let tiles = schedule.steps() * schedule.batch;
        let is_short = 20 * run.tiles_seen() < 19 * tiles;
        if is_short {
            let share = 100.0 * run.tiles_seen() as f64 / tiles as f64;
            let digits = usize::from(share < 2.0);
            clauses.push(format!(
                "trained on {share:.digits$} % of the paper's tiles"
            ));
        }
        if !is_small && !is_short {
            clauses.push("the paper's network and schedule on other terrain".to_owned());
        } else if let Some((_, reason)) = REASONS.iter().find(|(row, _)| *row == run.row) {
            clauses.push((*reason).to_owned());
        }
        if !more.is_empty() {
            clauses.push(more.to_owned());
        }
        if (is_small || is_short)
            && let Some(price) = self.price(&run.row)?
        {
            clauses.push(format!("as in the paper: {price}"));
        }
        Ok(clauses.join("; "))
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
        Ok(minutes.map(|minutes| self.time(minutes)))
    }

    /// A time on the machine of the logs.
    pub(super) fn time(&self, minutes: f64) -> String {
        let minutes = match minutes {
            short if short < 10.0 => format!("{short:.1}"),
            long => grouped(long.round() as usize),
        };
        match &self.machine {
            Some(machine) => format!("{minutes} min on {machine}"),
            None => format!("{minutes} min"),
        }
    }
}
