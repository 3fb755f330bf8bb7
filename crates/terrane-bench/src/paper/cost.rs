//! What the methods compute and how they are trained: operations, times, coordinate networks, settings.

use terrane_networks::cost::{Account, Convention, FunctaShape, HuvrShape, Modulation};
use terrane_networks::methods::MethodConfig;
use terrane_report::comparison::{Compared, Comparison};
use terrane_train::training::ScheduleConfig;

use super::evidence::grouped;
use super::findings::{Findings, paper_config};
use super::number::{Measure, Tolerance, named, noted, words};
use super::text::{point_against_huvr, times_the_operations};
use crate::Result;
use crate::tables::paper;

pub(super) const ACCOUNT: &str = "accounting of the preset";

/// Operations of a tile in billions.
fn giga(flops: u64) -> f64 {
    flops as f64 / 1e9
}

/// The account of a method as the paper's table counts; Functa's row there is of a larger network than its text has.
pub(super) fn account(method: &str, convention: Convention) -> Result<Option<Account>> {
    if method == "functa" && convention == Convention::Paper {
        return Ok(Some(FunctaShape::flops_table().account(convention)));
    }
    let config = paper_config(method)?;
    Ok(config.map(|config| config.method.account(convention)))
}

impl Findings {
    /// Table 2, and the times of the text.
    pub(super) fn operations(&self) -> Result<Comparison> {
        type Part = (&'static str, usize, fn(&Account) -> u64);
        const PARTS: [Part; 5] = [
            ("training step", 1, |account| account.training),
            ("inference", 1, |account| account.inference),
            ("encoder", 1, |account| account.encoder),
            ("decoder", 2, |account| account.decoder),
            ("coordinate network", 1, |account| account.neural_decoder),
        ];
        let mut rows = Vec::new();
        for (method, values) in paper::FLOPS {
            let (ours, run) = (
                account(method, Convention::Paper)?,
                account(method, Convention::AsRun)?,
            );
            for ((name, digits, of), paper) in PARTS.into_iter().zip(values) {
                let as_run = run.as_ref().map_or(f64::NAN, |run| giga(of(run)));
                let note = match method {
                    "functa" => format!(
                        "of 15 sine layers of 512; the text's 4 of 256, which we train, take {as_run:.2}"
                    ),
                    _ => format!("{as_run:.2} as it runs"),
                };
                let measure = Measure::count(name, "GFLOP", digits);
                let ours = ours.as_ref().map(|account| giga(of(account)));
                let compared =
                    measure.beside(&named(method), paper, ours, ACCOUNT, "another count");
                rows.push(noted(compared, &note));
            }
        }
        rows.extend(times_the_operations()?);
        rows.extend(self.wall_clock()?);
        Ok(Comparison {
            name: "operations".into(),
            place: "Table 2".into(),
            note: "Operations for one tile, a product with a sum is two. The paper counts attention that its released decoder does not have, and HUVR's network at every pixel where it runs at 16 points of a patch. Times are from the text: one tile, RTX A5000, 100 passes.".into(),
            rows,
        })
    }

    fn wall_clock(&self) -> Result<Vec<Compared>> {
        let mut rows = Vec::new();
        for (method, paper) in paper::WALL_CLOCK_MS {
            let config = paper_config(method)?;
            let parameters = config.and_then(|config| config.method.parameters());
            let of_paper = |(time, _): &&(crate::tables::clock::Time, String)| {
                time.method == method && Some(time.parameters) == parameters
            };
            let found = self.times.iter().find(of_paper);
            let by = found.map(|(_, device)| format!("`wall-clock`, {device}"));
            let why = match found {
                Some(_) => "another machine and program".to_owned(),
                None => "not measured: `wall-clock.csv` of `terrane bench wall-clock --size paper`, which takes seconds on a GPU".to_owned(),
            };
            let measure = Measure::error(
                match method {
                    "huvr" => "HUVR",
                    "huvr-siren" => "HUVR+SIREN",
                    _ => "TransINR",
                },
                "ms",
                2,
            );
            rows.push(measure.beside(
                "Time of a tile (text)",
                paper,
                found.map(|(time, _)| time.both_ms()),
                &by.unwrap_or_default(),
                &why,
            ));
        }
        Ok(rows)
    }
}

/// Table 5.
pub(super) fn networks() -> Result<Comparison> {
    const HEADS: [&str; 4] = ["activation", "depth × width", "output", "upsampler"];
    const POINT: Measure = Measure::count("at a point", "kFLOP", 0);
    const SIREN: Measure = Measure::count("parameters of the sines (text)", "", 0);
    let mut rows = Vec::new();
    for ((method, texts), (_, kflop)) in paper::NETWORKS.into_iter().zip(paper::POINT_KFLOP) {
        let Some(config) = paper_config(method)? else {
            continue;
        };
        let ours = network(&config.method);
        for ((head, paper), ours) in HEADS.into_iter().zip(texts).zip(&ours) {
            let why = match head {
                "output" => {
                    "as released: it runs at 4 × 4 points of a patch, and the upsampler makes pixels of them"
                }
                _ => "other than the paper's",
            };
            rows.push(words(&named(method), head, paper, ours, ACCOUNT, why));
        }
        let point = account(method, Convention::Paper)?.map(|account| account.point);
        let run = account(method, Convention::AsRun)?;
        let per_pixel = run.map_or(f64::NAN, |run| {
            run.neural_decoder as f64 / run.pixels as f64
        });
        let note = format!(
            "for its network at every pixel and without convolutions; {:.0} per pixel as it runs",
            per_pixel / 1e3
        );
        let point = point.map(|flops| flops as f64 / 1e3);
        let compared = POINT.beside(&named(method), kflop, point, ACCOUNT, "another count");
        rows.push(noted(compared, &note));
    }
    let account = account("huvr-siren", Convention::AsRun)?;
    let sines = account.and_then(|account| {
        let part = account.parts.iter().find(|(name, _)| *name == "network");
        part.map(|(_, parameters)| *parameters as f64)
    });
    rows.push(SIREN.beside(
        &named("huvr-siren"),
        paper::SIREN_PARAMETERS as f64,
        sines,
        ACCOUNT,
        "other sizes",
    ));
    rows.push(point_against_huvr()?);
    Ok(Comparison {
        name: "networks".into(),
        place: "Table 5".into(),
        note: "HUVR+SIREN's coordinate network takes more than HUVR's as they run, not less: see the last row of each.".into(),
        rows,
    })
}

/// Table 6.
pub(super) fn settings() -> Result<Comparison> {
    const RATE: Measure = Measure::new("learning rate", "10⁻⁵", 2, Tolerance::Rounding);
    const DECAY: Measure = Measure::count("weight decay", "", 2);
    const EPOCHS: Measure = Measure::count("epochs", "", 0);
    const BATCH: Measure = Measure::count("tiles per step", "", 0);
    let mut rows = Vec::new();
    for (method, paper) in paper::HYPERPARAMETERS {
        let Some(config) = paper_config(method)? else {
            continue;
        };
        let (train, by) = (&config.train, format!("preset `{method}`"));
        let decay = train.optimiser.weight_decay;
        let optimiser = if decay > 0.0 { "AdamW" } else { "Adam" };
        let (rate, schedule) = match train.schedule {
            ScheduleConfig::Cosine { peak, .. } => (peak, "cosine".to_owned()),
            ScheduleConfig::Drop { rate, after, .. } => {
                (rate, format!("step at {:.0} %", 100.0 * after))
            }
        };
        let name = named(method);
        let code =
            "the released code has it so (5·10⁻⁴ by 32 of 256 tiles, and 0.01); we follow the code";
        rows.push(words(
            &name,
            "optimiser",
            paper.optimiser,
            optimiser,
            &by,
            code,
        ));
        rows.push(RATE.beside(&name, paper.rate * 1e5, Some(rate * 1e5), &by, code));
        rows.push(words(
            &name,
            "schedule",
            paper.schedule,
            &schedule,
            &by,
            code,
        ));
        if let Some(paper) = paper.weight_decay {
            rows.push(DECAY.beside(&name, paper, Some(decay), &by, code));
        }
        let pass = paper::TRAINING_TILES / train.batch;
        let epochs = train.steps as f64 / pass as f64;
        let steps = format!("{} steps", grouped(train.steps));
        let compared = EPOCHS.beside(&name, paper.epochs as f64, Some(epochs), &by, code);
        rows.push(noted(compared, &steps));
        rows.push(BATCH.beside(
            &name,
            paper.batch as f64,
            Some(train.batch as f64),
            &by,
            code,
        ));
    }
    Ok(Comparison {
        name: "settings".into(),
        place: "Table 6".into(),
        note: format!(
            "What our presets have; which schedule a run had stands beside its numbers. An epoch is ⌊{} / tiles per step⌋ steps. The paper's text keeps distillation from DINOv3, its released training has none: ours is off and can be turned on.",
            paper::TRAINING_TILES
        ),
        rows,
    })
}

/// What our coordinate network is: activation, depth and width, output, upsampler.
fn network(method: &MethodConfig) -> [String; 4] {
    match method {
        MethodConfig::Huvr(config) => {
            let layers = HuvrShape::paper(Modulation::RankOne).network_layers;
            [
                "ReLU".into(),
                format!("{layers} × {}", config.mlp_width),
                "4 × 4 points of a patch".into(),
                "conv, pixel shuffle".into(),
            ]
        }
        MethodConfig::HuvrSiren(config) => {
            // The linear layer is one more.
            let layers = HuvrShape::paper(Modulation::AmplitudeShift).network_layers + 1;
            [
                format!("SIREN, ω₀ {}", config.omega),
                format!("{layers} × {}", config.siren_width),
                "every pixel".into(),
                "none".into(),
            ]
        }
        _ => Default::default(),
    }
}
