//! What the paper's text adds to its tables: differences and ratios of their numbers.

use terrane_networks::cost::{Account, Convention};
use terrane_report::comparison::Compared;

use super::cost::{ACCOUNT, account};
use super::evidence::Evidence;
use super::findings::{ALL_TILES, Findings, is_paper_size};
use super::number::{Measure, named, why};
use super::quality::Kind;
use crate::Result;
use crate::tables::paper::text;

const NO_PAIR: &str = "not measured: no two runs of equal schedule";

/// Two runs of one schedule.
type Pair<'a> = Option<(&'a Evidence, &'a Evidence)>;

/// A number of two runs, and where they lie.
fn of_pair(
    measure: &Measure,
    subject: &str,
    paper: f64,
    pair: Pair,
    of: impl Fn(&Evidence, &Evidence) -> f64,
    why: &str,
) -> Compared {
    let ours = pair.map(|(run, other)| of(run, other));
    let by = pair.map_or_else(String::new, |(run, other)| {
        format!("`{}` and `{}`, {}", run.place, other.place, run.schedule())
    });
    measure.beside(subject, paper, ours, &by, why)
}

/// Why a number of two runs differs, by the one that explains it.
fn why_of(run: Option<&Evidence>) -> Result<String> {
    run.map_or_else(|| Ok(NO_PAIR.to_owned()), |run| why(run, ""))
}

/// How much more of something there is, in percent.
fn percent_more(ours: f64, base: f64) -> f64 {
    100.0 * (ours / base - 1.0)
}

fn more_db(run: &Evidence, other: &Evidence) -> f64 {
    Kind::Psnr.of(run) - Kind::Psnr.of(other)
}

impl Findings {
    /// What HUVR+SIREN gains over HUVR in pairs of runs other than this one's.
    pub(super) fn other_gains(&self, but: &Evidence) -> String {
        let runs = self.runs.iter();
        let runs = runs.filter(|run| run.row == "huvr-siren" && run.place != but.place);
        let gains = runs.filter_map(|run| {
            let gain = format!("{:+.2}", more_db(run, self.beside(run, "huvr")?));
            let size = if is_paper_size(run) {
                ""
            } else {
                ", a smaller network"
            };
            Some(format!(
                "{} dB in `{}` ({}{size})",
                gain.replace('-', "−"),
                run.place,
                run.schedule()
            ))
        });
        let gains: Vec<String> = gains.collect();
        if gains.is_empty() {
            return String::new();
        }
        format!("by other runs {}", gains.join(", "))
    }

    /// Of Table 1: errors against HUVR's, and what HUVR has over the others.
    pub(super) fn against_huvr(&self) -> Result<Vec<Compared>> {
        const KINDS: [(Kind, Measure); 3] = [
            (
                Kind::Rmse,
                Measure::error_change("RMSE of heights against HUVR (text)", "%", 0),
            ),
            (
                Kind::Gradient,
                Measure::error_change("RMSE of gradients against HUVR (text)", "%", 0),
            ),
            (
                Kind::Laplacian,
                Measure::error_change("RMSE of Laplacians against HUVR (text)", "%", 0),
            ),
        ];
        let pair = self.pair("huvr-siren", "huvr");
        let because = why_of(pair.map(|(run, _)| run))?;
        let kinds = KINDS.iter().zip(text::ERRORS_AGAINST_HUVR);
        let errors = kinds.map(|((kind, measure), paper)| {
            let of = |run: &Evidence, huvr: &Evidence| percent_more(kind.of(run), kind.of(huvr));
            of_pair(measure, &named("huvr-siren"), paper, pair, of, &because)
        });
        let mut rows: Vec<Compared> = errors.collect();
        for (method, paper) in text::HUVR_OVER_DB {
            let measure = Measure::change(match method {
                "functa" => "gain over Functa (text)",
                _ => "gain over TransINR (text)",
            });
            let pair = self.pair("huvr", method);
            let because = why_of(pair.map(|(_, other)| other))?;
            let subject = named("huvr");
            rows.push(of_pair(&measure, &subject, paper, pair, more_db, &because));
        }
        Ok(rows)
    }

    /// Of Table 7: the worst errors against HUVR's.
    pub(super) fn worst_against_huvr(&self) -> Result<Vec<Compared>> {
        type Worst = (Measure, fn(&Evidence) -> f64);
        const KINDS: [Worst; 2] = [
            (
                Measure::error_change("worst gradient error against HUVR (text)", "%", 0),
                |run| run.summary.mean.max_gradient_error_m_per_px,
            ),
            (
                Measure::error_change("worst Laplacian error against HUVR (text)", "%", 0),
                |run| run.summary.mean.max_laplacian_error_m_per_px2,
            ),
        ];
        let pair = self.pair("huvr-siren", "huvr");
        let because = why_of(pair.map(|(run, _)| run))?;
        let kinds = KINDS.iter().zip(text::WORST_AGAINST_HUVR);
        let rows = kinds.map(|((measure, worst), paper)| {
            let of = |run: &Evidence, huvr: &Evidence| percent_more(worst(run), worst(huvr));
            of_pair(measure, &named("huvr-siren"), paper, pair, of, &because)
        });
        Ok(rows.collect())
    }

    /// Of Table 4: what small patches and wide bottlenecks take, and what the last step of width gains.
    pub(super) fn wider(&self) -> Result<Vec<Compared>> {
        const FLOATS: Measure = Measure::count("numbers per tile (text)", "", 0);
        const BPP: Measure = Measure::count("floats (text)", "bits per pixel", 2);
        let of = |row: &str, value: fn(&Account) -> f64| -> Result<Option<f64>> {
            Ok(account(row, Convention::AsRun)?.as_ref().map(value))
        };
        let floats = of("p8", |account| account.payload_floats as f64)?;
        let bpp = of("d128", |account| account.bits_per_pixel(32))?;
        let pair = self.pair("d256", "d128");
        let because = why_of(pair.map(|(run, _)| run))?;
        let gain = Measure::change("gain over D 128 (text)");
        let paper = text::D256_OVER_D128_DB;
        let other = "other sizes";
        Ok(vec![
            FLOATS.beside(&named("p8"), text::P8_FLOATS, floats, ACCOUNT, other),
            BPP.beside(&named("d128"), text::D128_BPP, bpp, ACCOUNT, other),
            of_pair(&gain, &named("d256"), paper, pair, more_db, &because),
        ])
    }

    /// Of Figure 4: what the last tiles gain, and what turning and flipping does.
    pub(super) fn more_data(&self) -> Result<Vec<Compared>> {
        let gains = [
            (
                "all tiles",
                "gain over 1,024 tiles (text)",
                text::MORE_TILES_DB,
                self.pair(ALL_TILES, "n1024"),
            ),
            (
                "all tiles, turned and flipped",
                "gain over them as they are (text)",
                text::AUGMENTED_DB,
                self.pair("huvr-siren", ALL_TILES),
            ),
        ];
        let rows = gains.into_iter().map(|(subject, measure, paper, pair)| {
            let because = why_of(pair.map(|(run, _)| run))?;
            let measure = Measure::change(measure);
            Ok(of_pair(&measure, subject, paper, pair, more_db, &because))
        });
        rows.collect()
    }
}

/// Of Table 2: operations as multiples of HUVR+SIREN's.
pub(super) fn times_the_operations() -> Result<Vec<Compared>> {
    let base = account("huvr-siren", Convention::Paper)?;
    let mut rows = Vec::new();
    for (method, training, inference) in text::TIMES_OPERATIONS {
        let ours = account(method, Convention::Paper)?.zip(base.as_ref());
        let digits = if method == "functa" { 1 } else { 2 };
        let mut row = |name, paper: Option<f64>, of: fn(&Account) -> u64| {
            let ratio = ours
                .as_ref()
                .map(|(ours, base)| of(ours) as f64 / of(base) as f64);
            let measure = Measure::count(name, "times", digits);
            rows.extend(paper.map(|paper| {
                measure.beside(&named(method), paper, ratio, ACCOUNT, "another count")
            }));
        };
        row("training against HUVR+SIREN (text)", training, |account| {
            account.training
        });
        row(
            "inference against HUVR+SIREN (text)",
            Some(inference),
            |account| account.inference,
        );
    }
    Ok(rows)
}

/// Of Table 3: TransINR's floats as a multiple of HUVR's.
pub(super) fn times_the_floats() -> Result<Compared> {
    const TIMES: Measure = Measure::count("floats against HUVR (text)", "times", 0);
    let [ours, base] = [
        account("transinr", Convention::AsRun)?,
        account("huvr", Convention::AsRun)?,
    ];
    let times = ours
        .zip(base)
        .map(|(ours, base)| ours.bits_per_pixel(32) / base.bits_per_pixel(32));
    let paper = text::TRANSINR_TIMES_FLOATS;
    Ok(TIMES.beside(&named("transinr"), paper, times, ACCOUNT, "other sizes"))
}

/// Of Table 5: the coordinate network at a point against HUVR's.
pub(super) fn point_against_huvr() -> Result<Compared> {
    const POINT: Measure = Measure::error_change("at a point against HUVR (text)", "%", 0);
    let [ours, base] = [
        account("huvr-siren", Convention::Paper)?,
        account("huvr", Convention::Paper)?,
    ];
    let percent = ours
        .zip(base)
        .map(|(ours, base)| percent_more(ours.point as f64, base.point as f64));
    let (subject, paper) = (named("huvr-siren"), text::POINT_AGAINST_HUVR);
    Ok(POINT.beside(&subject, paper, percent, ACCOUNT, "another count"))
}
