//! What tiles take: floats, quantised tokens, and the frontier of rate and distortion.

use terrane_networks::cost::{Account, Convention};
use terrane_report::comparison::{Compared, Comparison};
use terrane_report::figure::{Axis, Figure, Scale, Series, Style, line_chart};

use super::cost::ACCOUNT;
use super::evidence::Evidence;
use super::findings::{Findings, paper_config};
use super::number::{Measure, named, noted, why};
use super::quality::Kind;
use crate::Result;
use crate::runs::methods;
use crate::tables::paper;
use crate::tables::ptq::Quantised;

const FLOATS: Measure = Measure::count("numbers per tile", "", 0);
const FIXED: Measure = Measure::count("fixed width", "bits per pixel", 3);
const SHANNON: Measure = Measure::error("Shannon's bound", "bits per pixel", 3);
const NO_TOKENS: &str = "not measured: it takes `ptq.csv` of a run (`terrane bench ptq`)";

/// A number that a method's account has.
pub(super) fn payload(
    method: &str,
    measure: &Measure,
    paper: f64,
    of: impl Fn(&Account) -> f64,
) -> Result<Compared> {
    let config = paper_config(method)?;
    let ours = config.map(|config| of(&config.method.account(Convention::AsRun)));
    Ok(measure.beside(&named(method), paper, ours, ACCOUNT, "other sizes"))
}

/// Bits per pixel of HUVR+SIREN's floats, which are as many as HUVR's.
fn floats_bpp() -> Result<f64> {
    let config = paper_config("huvr-siren")?;
    let bpp = config.map(|config| config.method.account(Convention::AsRun).bits_per_pixel(32));
    Ok(bpp.unwrap_or(f64::NAN))
}

impl Findings {
    /// The best evidence with quantised tokens.
    fn tokens_run(&self) -> Option<&Evidence> {
        self.best_with("huvr-siren", |run| !run.quantised.is_empty())
    }

    fn width(&self, bits: u8) -> Option<(&Evidence, &Quantised)> {
        let run = self.tokens_run()?;
        let width = run.quantised.iter().find(|row| row.bits == bits)?;
        Some((run, width))
    }

    /// One width beside the paper's, as the two tables have it.
    fn quantised(&self, bits: u8, digits: usize, has_rmse: bool) -> Result<Vec<Compared>> {
        let find = |row: &&(u8, f64, f64, f64)| row.0 == bits;
        let Some(&(_, shannon, psnr, rmse)) = paper::QUANTISED.iter().find(find) else {
            return Ok(Vec::new());
        };
        let fixed = paper::FIXED.iter().find(|(width, _)| *width == bits);
        let fixed = fixed.map_or(f64::NAN, |(_, bpp)| *bpp);
        let subject = format!("HUVR+SIREN, int {bits}");
        let found = self.width(bits);
        let by = self.source_of(found.map(|(run, _)| run))?;
        let because = |more: &str| match found {
            Some((run, _)) => why(run, more),
            None => Ok(NO_TOKENS.to_owned()),
        };
        let coded = found.map_or_else(String::new, |(_, width)| {
            format!(
                "it does not pay for its tables, {:.3} are written",
                width.coded_bpp
            )
        });
        let mut rows = vec![
            FIXED.beside(
                &subject,
                fixed,
                found.map(|(_, width)| width.fixed_bpp),
                &by,
                &because("")?,
            ),
            noted(
                SHANNON.beside(
                    &subject,
                    shannon,
                    found.map(|(_, width)| width.shannon_bpp),
                    &by,
                    &because("")?,
                ),
                &coded,
            ),
            Measure::psnr(digits).beside(
                &subject,
                psnr,
                found.map(|(_, width)| width.psnr_db),
                &by,
                &because(&self.lost(bits))?,
            ),
        ];
        if has_rmse {
            let ours = found.map(|(_, width)| width.rmse_m);
            rows.push(Kind::Rmse.measure(4).beside(
                &subject,
                rmse,
                ours,
                &by,
                &because(&self.lost(bits))?,
            ));
        }
        Ok(rows)
    }

    /// What a width loses against floats, here and there.
    fn lost(&self, bits: u8) -> String {
        let paper = paper::QUANTISED.iter().find(|row| row.0 == bits);
        match self.width(bits).zip(paper) {
            Some(((run, width), (_, _, psnr, _))) => format!(
                "int {bits} loses {:.2} dB against floats here, {:.2} in the paper",
                // No less than nothing: 16 bits may gain a millionth.
                (run.summary.mean.psnr_db - width.psnr_db).max(0.0),
                (paper::FLOATS.0 - psnr).max(0.0)
            ),
            None => String::new(),
        }
    }

    /// Table 3.
    pub(super) fn rates(&self) -> Result<Comparison> {
        let mut rows = Vec::new();
        for (method, floats, bpp) in paper::PAYLOAD {
            rows.push(payload(method, &FLOATS, floats as f64, |account| {
                account.payload_floats as f64
            })?);
            rows.push(payload(method, &FIXED, bpp, |account| {
                account.bits_per_pixel(32)
            })?);
            rows.extend(self.quality(method, self.best(method), &[Kind::Psnr], 3)?);
        }
        let floats = rows.iter().find(|row| row.subject == named("huvr-siren"));
        let floats = floats.cloned();
        for (bits, _) in paper::FIXED {
            rows.extend(floats.clone().map(|floats| Compared {
                subject: format!("HUVR+SIREN, int {bits}"),
                ..floats
            }));
            rows.extend(self.quantised(bits, 2, false)?);
        }
        rows.push(super::text::times_the_floats()?);
        Ok(Comparison {
            name: "rates".into(),
            place: "Table 3".into(),
            note: "Shannon's bound is the entropy of a tile's own symbols, dimension by dimension, which does not pay for telling their frequencies; at 16 bits it is no more than the logarithm of the number of tokens.".into(),
            rows,
        })
    }

    /// Table 8.
    pub(super) fn frontier(&self) -> Result<Comparison> {
        let run = self.tokens_run().or_else(|| self.best("huvr-siren"));
        let subject = "HUVR+SIREN, float 32";
        let (.., fixed) = paper::PAYLOAD[2];
        let fixed = payload("huvr-siren", &FIXED, fixed, |account| {
            account.bits_per_pixel(32)
        })?;
        let mut rows = vec![Compared {
            subject: subject.to_owned(),
            ..fixed
        }];
        let (psnr, rmse) = paper::FLOATS;
        let by = self.source_of(run)?;
        let why = match run {
            Some(run) => why(run, "")?,
            None => self.missing("huvr-siren")?,
        };
        let ours = run.map(|run| run.summary.mean);
        rows.push(Measure::psnr(4).beside(subject, psnr, ours.map(|mean| mean.psnr_db), &by, &why));
        rows.push(Kind::Rmse.measure(4).beside(
            subject,
            rmse,
            ours.map(|mean| mean.rmse_m),
            &by,
            &why,
        ));
        for (bits, _) in paper::FIXED {
            rows.extend(self.quantised(bits, 4, true)?);
        }
        Ok(Comparison {
            name: "frontier".into(),
            place: "Table 8".into(),
            note: "The same numbers as in Table 3 with more digits, and heights. Rates hold 16-bit steps, one for each dimension.".into(),
            rows,
        })
    }

    /// Figure 3.
    pub(super) fn dominance(&self) -> Result<(Comparison, Figure)> {
        let (eight, floats) = (self.width(8), floats_bpp()?);
        // Of a run that has HUVR beside it, whichever has the most tiles.
        let coded = |run: &Evidence| run.quantised.iter().find(|row| row.bits == 8).copied();
        let huvr = self.pair_with("huvr-siren", "huvr", |run| coded(run).is_some());
        let gain =
            huvr.and_then(|(run, huvr)| Some(coded(run)?.psnr_db - huvr.summary.mean.psnr_db));
        let by = self.source_of(eight.map(|(run, _)| run))?;
        let by_gain = match huvr {
            Some((run, huvr)) => format!("{}, against `{}`", self.source(run)?, huvr.place),
            None => String::new(),
        };
        let price = self
            .price("huvr")?
            .map(|price| format!("; HUVR as in the paper {price}"));
        let no_huvr = format!(
            "not measured: no HUVR of the same size and schedule as a run with quantised tokens{}",
            price.unwrap_or_default()
        );
        let why_gain = match (huvr, eight) {
            (Some((run, _)), _) => why(run, "")?,
            (None, Some(_)) => no_huvr,
            (None, None) => NO_TOKENS.to_owned(),
        };
        let why_rate = match eight {
            Some((run, _)) => why(run, "")?,
            None => NO_TOKENS.to_owned(),
        };
        let written = eight.map_or_else(String::new, |(_, width)| {
            format!(
                "{:.1} times by the bytes that are written",
                floats / width.coded_bpp
            )
        });
        let subject = "HUVR+SIREN, int 8, against HUVR's floats";
        let rows = vec![
            Measure::change("gain of PSNR").beside(
                subject,
                paper::INT8_OVER_HUVR_DB,
                gain,
                &by_gain,
                &why_gain,
            ),
            noted(
                Measure::error("times fewer bits", "", 1).beside(
                    subject,
                    paper::INT8_TIMES_SMALLER,
                    eight.map(|(_, width)| floats / width.shannon_bpp),
                    &by,
                    &why_rate,
                ),
                &written,
            ),
        ];
        let comparison = Comparison {
            name: "dominance".into(),
            place: "Figure 3".into(),
            note: "The points of the figure are those of Table 3.".into(),
            rows,
        };
        Ok((comparison, self.chart()))
    }

    fn chart(&self) -> Figure {
        let mut series = Vec::new();
        if let Some(run) = self.tokens_run() {
            let points = run.quantised.iter();
            let mut points: Vec<(f64, f64)> =
                points.map(|row| (row.shannon_bpp, row.psnr_db)).collect();
            points.sort_by(|a, b| b.0.total_cmp(&a.0));
            series.push(Series::new(
                "ours: HUVR+SIREN, quantised",
                Style::LinePoints,
                points,
            ));
        }
        for method in methods() {
            if let Some(run) = self.best(method) {
                let bpp = run
                    .config
                    .method
                    .account(Convention::AsRun)
                    .bits_per_pixel(32);
                let name = format!("ours: {}, floats", named(method));
                series.push(Series::new(
                    &name,
                    Style::Points,
                    vec![(bpp, run.summary.mean.psnr_db)],
                ));
            }
        }
        let points = paper::QUANTISED.iter().map(|row| (row.1, row.2)).collect();
        series.push(Series::new(
            "paper: HUVR+SIREN, quantised",
            Style::Dashed,
            points,
        ));
        let floats = paper::PAYLOAD
            .iter()
            .filter_map(|(method, _, bpp)| Some((*bpp, paper::row(method)?.psnr_db)));
        series.push(Series::new(
            "paper: four methods, floats",
            Style::Points,
            floats.collect(),
        ));
        line_chart(
            "paper-rates",
            "Rate and distortion, the paper's and ours",
            "Quantised tokens at Shannon's bound, 16, 8, 4 and 2 bits per symbol from right to left; floats in their 32 bits.",
            Axis {
                label: "bits per pixel".into(),
                scale: Scale::Logarithmic,
            },
            Axis::linear("PSNR, dB"),
            &series,
        )
    }
}
