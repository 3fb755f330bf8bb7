//! What the figures show: how much data it takes, what amortisation costs, where patches meet, what tokens hold.

use terrane_report::comparison::{Compared, Comparison};
use terrane_report::figure::{Axis, Figure, Scale, Series, Style, bar_chart, line_chart};
use terrane_train::measure::mean_seams;

use super::evidence::{Evidence, Fit, grouped};
use super::findings::{ALL_TILES, Findings};
use super::number::{Measure, named, why, why_if_less};
use crate::Result;
use crate::diagnose::tokens::{Heights, TokenStructure, Tokens};
use crate::runs::Variant;
use crate::tables::{ablation, paper};

/// A bar of Figure 5: what is fitted, its PSNR in the paper, ours, steps and tiles as far as they are stated, the command.
struct Bar {
    subject: &'static str,
    paper: f64,
    of: fn(&Evidence) -> Option<Fit>,
    steps: usize,
    tiles: usize,
    command: &'static str,
}

/// What is different about a fit, and what the paper's would take: time grows with steps and tiles. No steps are those
/// that the paper does not state.
fn fit_note(fit: &Fit, steps: usize, tiles: usize) -> String {
    let (fewer_steps, fewer_tiles) = (fit.steps < steps, fit.tiles < tiles);
    if !fewer_steps && !fewer_tiles {
        return String::new();
    }
    let mut less = Vec::new();
    if fewer_steps {
        let (ours, theirs) = (grouped(fit.steps), grouped(steps));
        less.push(format!("{ours} of the paper's {theirs} steps"));
    }
    if fewer_tiles {
        less.push(format!("{} tiles, not {tiles}", fit.tiles));
    }
    let share = steps.max(fit.steps) as f64 / fit.steps as f64;
    let minutes = fit.seconds_per_tile * share * tiles as f64 / 60.0;
    // Fits that run beside each other are slower, each of them.
    let parts = match fit.parts {
        0 | 1 => String::new(),
        parts => format!(" in one of {parts} fits, which may have run at once"),
    };
    format!(
        "{}; all of them one after another take {minutes:.0} min at the time that a tile took{parts}",
        less.join(", ")
    )
}

/// Charts of what tokens hold, under names of this page.
fn charts(tokens: &TokenStructure) -> Vec<Figure> {
    let figures = tokens.section().figures.into_iter();
    let charts = figures.map(|figure| Figure {
        name: format!("paper-{}", figure.name),
        ..figure
    });
    charts.collect()
}

impl Findings {
    /// Figure 4.
    pub(super) fn data(&self) -> Result<(Comparison, Figure)> {
        const PSNR: Measure = Measure::psnr(2);
        let mut rows = Vec::new();
        let mut points = Vec::new();
        let all = ablation::unaugmented();
        for (Variant { name, .. }, (tiles, paper)) in all.iter().zip(paper::SCALING) {
            let run = self.best(name);
            let subject = format!("{} tiles, as they are", grouped(tiles));
            let why = match run {
                Some(run) if name == ALL_TILES => match self.all_tiles(run) {
                    Some(all) => why(run, &format!("ours are {}", grouped(all)))?,
                    None => why(run, "ours are all of our training tiles")?,
                },
                Some(run) => why_if_less(
                    run,
                    "so small a network cannot memorise even the patches of 64 tiles",
                )?,
                None => self.missing(name)?,
            };
            let ours = run.map(|run| run.summary.mean.psnr_db);
            let by = self.source_of(run)?;
            rows.push(PSNR.beside(&subject, paper, ours, &by, &why));
            // All of ours are not as many as the paper's.
            let tiles = match run {
                Some(run) if name == ALL_TILES => self.all_tiles(run),
                _ => Some(tiles),
            };
            points.extend(tiles.zip(ours).map(|(tiles, psnr)| (tiles as f64, psnr)));
        }
        // The same schedule as without augmentation, so that nothing else differs.
        let augmented = self.pair("huvr-siren", ALL_TILES).map(|(run, _)| run);
        let augmented = augmented.or_else(|| self.best("huvr-siren"));
        let why = match augmented {
            Some(run) => why(run, "")?,
            None => self.missing("huvr-siren")?,
        };
        rows.push(PSNR.beside(
            &format!(
                "{} tiles, turned and flipped",
                grouped(paper::TRAINING_TILES)
            ),
            paper::AUGMENTED,
            augmented.map(|run| run.summary.mean.psnr_db),
            &self.source_of(augmented)?,
            &why,
        ));
        rows.extend(self.more_data()?);
        let theirs = paper::SCALING
            .iter()
            .map(|&(tiles, psnr)| (tiles as f64, psnr))
            .collect();
        let chart = line_chart(
            "paper-data",
            "How much data it takes, the paper's and ours",
            "PSNR on test tiles after one number of steps on so many training tiles, as they are.",
            Axis {
                label: "training tiles".into(),
                scale: Scale::Logarithmic,
            },
            Axis::linear("PSNR, dB"),
            &[
                Series::new("ours", Style::LinePoints, points),
                Series::new("paper", Style::Dashed, theirs),
            ],
        );
        let comparison = Comparison {
            name: "data".into(),
            place: "Figure 4".into(),
            note: "The paper's points have 21,000 steps each. The last of ours has as many tiles as its dataset, and is on the chart where a table (`data-scaling.csv`) says how many these are.".into(),
            rows,
        };
        Ok((comparison, chart))
    }

    /// Figure 5.
    pub(super) fn amortisation(&self) -> Result<(Comparison, Figure)> {
        const PSNR: Measure = Measure::psnr(2);
        const GAIN: Measure = Measure::change("gain over the same tiles' tokens");
        let [amortised, tokens, whole] = paper::AMORTISATION;
        let mut rows = self.quality(
            "huvr-siren",
            self.best("huvr-siren"),
            &[super::quality::Kind::Psnr],
            3,
        )?;
        for row in &mut rows {
            "tokens of the encoder".clone_into(&mut row.subject);
        }
        let fits = [
            Bar {
                subject: "fitted tokens",
                paper: tokens,
                of: |run| run.tokens,
                steps: 0,
                tiles: paper::TEST_TILES,
                command: "fit",
            },
            Bar {
                subject: "fitted tokens and decoder",
                paper: whole,
                of: |run| run.whole,
                steps: paper::BOUND.0,
                tiles: paper::BOUND.1,
                command: "upper-bound",
            },
        ];
        let best = self.best("huvr-siren");
        // One network's bars: those of another would seem to lose by being fitted.
        let mut ours = vec![best.map(|run| run.summary.mean.psnr_db)];
        for Bar {
            subject,
            paper,
            of,
            steps,
            tiles,
            command,
        } in fits
        {
            let run = self.best_with("huvr-siren", |run| of(run).is_some());
            let found = run.and_then(|run| Some((run, of(run)?)));
            let why = match found {
                Some((run, fit)) => {
                    let more = fit_note(&fit, steps, tiles);
                    why(run, &more)?
                }
                None => format!("not measured: `terrane diagnose {command} RUN --json`"),
            };
            let mut by = self.source_of(found.map(|(run, _)| run))?;
            if let Some((_, fit)) = found {
                by.push_str(&format!(
                    "; fitted for {} steps on {} tiles",
                    grouped(fit.steps),
                    fit.tiles
                ));
            }
            let (psnr, gain) = (
                found.map(|(_, fit)| fit.fitted_db),
                found.map(|(_, fit)| fit.gain_db()),
            );
            rows.push(PSNR.beside(subject, paper, psnr, &by, &why));
            rows.push(GAIN.beside(subject, paper - amortised, gain, &by, &why));
            let is_same = best
                .zip(found)
                .is_some_and(|(best, (run, _))| std::ptr::eq(best, run));
            ours.push(psnr.filter(|_| is_same));
        }
        let chart = self.gap_chart(ours);
        let comparison = Comparison {
            name: "amortisation".into(),
            place: "Figure 5".into(),
            note: "A gain is that over the encoder's tokens for the same tiles. The paper fits tokens of all its test tiles for a number of steps that it does not state, and decoders of 32 tiles for 5,000 steps.".into(),
            rows,
        };
        Ok((comparison, chart))
    }

    /// PSNR with more and more made for each tile, and the other methods.
    fn gap_chart(&self, ours: Vec<Option<f64>>) -> Figure {
        let names = [
            "the encoder's tokens",
            "fitted tokens",
            "fitted tokens and decoder",
        ];
        let groups = names.into_iter().zip(ours).zip(paper::AMORTISATION);
        let groups = groups.map(|((name, ours), paper)| (name.to_owned(), ours, paper));
        // The paper draws the other methods as lines.
        let others = ["huvr", "transinr", "functa"].into_iter();
        let others = others.filter_map(|method| {
            let ours = self.best(method).map(|run| run.summary.mean.psnr_db);
            Some((named(method), ours, paper::row(method)?.psnr_db))
        });
        let groups: Vec<(String, Vec<(String, f64)>)> = groups
            .chain(others)
            .map(|(name, ours, paper)| {
                let bars = [("ours", ours), ("paper", Some(paper))];
                let bars = bars
                    .into_iter()
                    .filter_map(|(who, psnr)| Some((who.to_owned(), psnr?)));
                (name, bars.collect())
            })
            .collect();
        bar_chart(
            "paper-amortisation",
            "What amortisation costs, the paper's and ours",
            "PSNR with more and more made for each tile, and of the other methods. Those of ours that are fitted are of the tiles that were fitted; fits of another network are in the table alone.",
            Axis::linear("PSNR, dB"),
            &groups,
        )
    }

    /// Figure 6.
    pub(super) fn seams(&self) -> Result<(Comparison, Figure)> {
        const GAP: Measure = Measure::change("boundary less interior");
        let mut rows = Vec::new();
        for (row, paper) in paper::SEAMS {
            let has = |run: &Evidence| !run.evaluation.seams.is_empty();
            let run = self.best_with(row, has);
            let gap = match run {
                Some(run) => Some(mean_seams(&run.evaluation.seams)?.gap_db()),
                None => None,
            };
            let why = match run {
                Some(run) => why(run, "")?,
                None => self.missing(row)?,
            };
            let by = self.source_of(run)?;
            let name = match row {
                "huvr-siren" => "p 16, D 32".to_owned(),
                other => named(other),
            };
            rows.push(GAP.beside(&name, paper, gap, &by, &why));
        }
        let mut series = Vec::new();
        let mut ends = [f64::INFINITY, f64::NEG_INFINITY];
        for run in &self.runs {
            let is_patched = ["huvr-siren", "huvr"].contains(&run.row.as_str())
                || paper::CHANGES.iter().any(|(row, _)| *row == run.row);
            let is_best = self
                .best(&run.row)
                .is_some_and(|best| best.place == run.place);
            if !is_patched || !is_best || run.evaluation.seams.is_empty() {
                continue;
            }
            let mean = mean_seams(&run.evaluation.seams)?;
            let point = (mean.boundary_psnr_db, mean.interior_psnr_db);
            ends = [
                ends[0].min(point.0).min(point.1),
                ends[1].max(point.0).max(point.1),
            ];
            series.push((named(&run.row), point));
        }
        series.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let (names, points): (Vec<String>, Vec<(f64, f64)>) = series.into_iter().unzip();
        let mut series = vec![Series::new("ours, means over tiles", Style::Points, points)];
        if ends[0] < ends[1] {
            let diagonal = ends.map(|end| (end, end)).to_vec();
            series.push(Series::new("equal", Style::Dashed, diagonal));
        }
        let chart = line_chart(
            "paper-seams",
            "Where patches meet, ours",
            &format!(
                "As the paper draws it: above the diagonal the interior of patches is better. From left to right: {}.",
                names.join("; ")
            ),
            Axis::linear("boundary PSNR, dB"),
            Axis::linear("interior PSNR, dB"),
            &series,
        );
        let comparison = Comparison {
            name: "seams".into(),
            place: "Figure 6".into(),
            note: "Boundary: within two pixels of a seam inside the tile. The paper states these gaps in its text; its points are not printed.".into(),
            rows,
        };
        Ok((comparison, chart))
    }

    /// Figure 7.
    pub(super) fn tokens(&self) -> Result<(Comparison, Vec<Figure>)> {
        const COUNT: Measure = Measure::count("tokens", "", 0);
        const RANK: Measure = Measure::new(
            "directions with 95 % of the variance",
            "",
            0,
            super::number::Tolerance::Within(1.0),
        );
        const RATIO: Measure = Measure::error("participation ratio", "", 2);
        const PEARSON: Measure = Measure::error("largest |ρ| with heights in metres", "", 3);
        const PARTIAL: Measure = Measure::error("largest partial |ρ|, below", "", 2);
        const SHARED: Measure = Measure::error("neighbours shared of 10", "fraction", 2);
        let theirs = paper::TOKENS;
        let run = self.best_with("huvr-siren", |run| run.structure.is_some());
        let found = run.and_then(|run| Some((run, run.structure.as_ref()?)));
        let by = self.source_of(run)?;
        let neighbours = found.and_then(|(_, structure)| {
            let all = structure.tokens.neighbours.iter();
            let of = |heights: Heights| {
                let mut all = all.clone();
                all.find(|row| row.heights == heights && row.tokens == Tokens::Stored)
            };
            Some((of(Heights::Metres)?, of(Heights::Normalised)?))
        });
        let missing = "not measured: `terrane diagnose tokens RUN --json`";
        let because = |more: String| match run {
            Some(run) => why(run, &more),
            None => Ok(missing.to_owned()),
        };
        let normalised = found.map_or_else(String::new, |(_, structure)| {
            format!(
                "the network never sees metres: with the heights that it sees the largest is {:.3}, partial {:.3}",
                structure.tokens.normalised.max_pearson, structure.tokens.normalised.max_partial
            )
        });
        let counted = found.map_or_else(String::new, |(_, structure)| {
            let tiles = grouped(structure.tokens.tiles);
            format!(
                "the patches of {tiles} tiles of the split `{}`, the paper's of all training tiles",
                structure.split
            )
        });
        let shared = neighbours.map_or_else(String::new, |(metres, normalised)| {
            format!(
                "in metres; {:.2} with the heights that the network sees, {:.2} by chance; the paper's 0.11 “of 10” may be a fraction or a count",
                normalised.fraction, metres.chance
            )
        });
        let subject = "HUVR+SIREN";
        let row = |measure: &Measure, paper: f64, ours: Option<f64>, more: String| {
            Ok(measure.beside(subject, paper, ours, &by, &because(more)?))
        };
        let of = |value: fn(&TokenStructure) -> f64| {
            found.map(|(_, structure)| value(&structure.tokens))
        };
        let (tokens, rank) = (theirs.tokens as f64, theirs.rank_95 as f64);
        let fraction = neighbours.map(|(metres, _)| metres.fraction);
        let (pearson, partial) = (of(|s| s.metres.max_pearson), of(|s| s.metres.max_partial));
        let (ranks, ratio) = (
            of(|s| s.stored.rank_95 as f64),
            of(|s| s.stored.participation_ratio),
        );
        let rows: Result<Vec<Compared>> = [
            row(&COUNT, tokens, of(|s| s.tokens as f64), counted),
            row(&RANK, rank, ranks, String::new()),
            row(&RATIO, theirs.participation_ratio, ratio, String::new()),
            row(&PEARSON, theirs.max_pearson, pearson, normalised.clone()),
            row(&PARTIAL, theirs.below, partial, normalised),
            row(&SHARED, theirs.shared, fraction, shared),
        ]
        .into_iter()
        .collect();
        let comparison = Comparison {
            name: "tokens".into(),
            place: "Figure 7".into(),
            note: format!(
                "Neighbours: the {} nearest in heights against the {} nearest in tokens, among {} patches. The charts are ours; the paper's points are not printed.",
                theirs.k, theirs.k, theirs.pool
            ),
            rows: rows?,
        };
        let charts = found.map_or_else(Vec::new, |(_, structure)| charts(&structure.tokens));
        Ok((comparison, charts))
    }
}
