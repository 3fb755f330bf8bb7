//! The page of a small folder of results that is made here.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use terrane_networks::cost::Convention;
use terrane_report::comparison::{Compared, Verdict};
use terrane_report::table::Cell;
use terrane_train::config::{Config, preset_text};
use terrane_train::evaluate::Evaluation;
use terrane_train::measure::{SeamMeasures, TileMeasures, mean};

use super::evidence::Fit;
use super::findings::{Findings, is_paper_size};
use super::{PAGE, page, paper};
use crate::diagnose::Descent;
use crate::diagnose::fit::{Fitted, Freedom};
use crate::diagnose::linear::{Basis, Held, Linear};
use crate::tables::paper as numbers;

const TILES: usize = 6;

fn tile(psnr_db: f64, range_m: f64) -> TileMeasures {
    let rmse_m = range_m / 10_f64.powf(psnr_db / 20.0);
    TileMeasures {
        range_m,
        psnr_db,
        rmse_m,
        max_error_m: 1.0,
        gradient_rmse_m_per_px: 0.06,
        mean_gradient_error_m_per_px: 0.05,
        max_gradient_error_m_per_px: 4.0,
        gradient_magnitude_error_m_per_px: range_m / 1000.0,
        laplacian_rmse_m_per_px2: 0.2,
        mean_laplacian_error_m_per_px2: 0.1,
        max_laplacian_error_m_per_px2: 5.0,
        twice_laplacian_rmse_m_per_px2: 0.1,
    }
}

fn evaluation(psnr_db: f64) -> Evaluation {
    let seams = SeamMeasures {
        boundary_psnr_db: psnr_db - 1.0,
        interior_psnr_db: psnr_db,
        boundary_fraction: 0.4,
    };
    Evaluation {
        tiles: (0..TILES).collect(),
        measures: (0..TILES)
            .map(|index| tile(psnr_db, 20.0 + index as f64))
            .collect(),
        seams: vec![seams; TILES],
        is_analytic: true,
        ..Evaluation::default()
    }
}

/// A preset with values changed, as it stands in a run's folder.
fn config(preset: &str, changes: &[(&str, &str)]) -> String {
    let mut text = preset_text(preset).unwrap().to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

fn run(folder: &Path, config: &str, psnr_db: f64, tiles_per_s: f64) {
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("config.toml", config.to_owned());
    let evaluation = json!([{ "evaluation": evaluation(psnr_db) }]);
    write("eval-test.json", evaluation.to_string());
    let log = json!({ "step": 1, "tiles_per_s": tiles_per_s });
    write(
        "metrics.jsonl",
        format!("{log}\n{{\"step\":1,\"val_psnr_db\":1.0}}\n"),
    );
}

const SHORT: (&str, &str) = ("steps = 20800", "steps = 5200");

/// Two trainings of the paper's size and one that is smaller.
fn results() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run(&at("full"), &config("huvr-siren", &[]), 51.5, 320.0);
    run(
        &at("some/short"),
        &config("huvr-siren", &[SHORT]),
        49.0,
        300.0,
    );
    let p8 = config("huvr-siren", &[SHORT, ("\npatch = 16", "\npatch = 8")]);
    run(&at("some/p8"), &p8, 54.0, 80.0);
    run(&at("tiny"), &config("huvr-siren-small", &[]), 45.0, 900.0);
    let quantised = "method,bits,fixed_bpp,shannon_bpp,coded_bpp,psnr_db,rmse_m\nhuvr-siren,float 32,4.015625,,,51.5,0.06\nhuvr-siren,int 8,1.01171875,0.8,0.9,51.3,0.06\n";
    std::fs::write(at("full/ptq.csv"), quantised).unwrap();
    std::fs::write(at("machine.txt"), "one abacus\n").unwrap();
    folder
}

fn find<'a>(
    report: &'a terrane_report::Report,
    place: &str,
    subject: &str,
    measure: &str,
) -> &'a Compared {
    let sections = report.sections.iter();
    let mut all = sections.flat_map(|section| &section.comparisons);
    let comparison = all.find(|comparison| comparison.place == place).unwrap();
    let same = |row: &&Compared| row.subject == subject && row.measure == measure;
    comparison.rows.iter().find(same).unwrap()
}

#[test]
fn every_number_of_the_papers_tables_is_on_the_page() {
    let folder = results();
    let findings = Findings::read(folder.path(), "test").unwrap();
    let report = page(&findings).unwrap();
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for comparison in report
        .sections
        .iter()
        .flat_map(|section| &section.comparisons)
    {
        for row in &comparison.rows {
            let is_text = row.measure.contains("(text)") || row.subject.contains("(text)");
            counts.entry(&comparison.place).or_default()[usize::from(is_text)] += 1;
        }
    }
    // As they are counted in the paper: cells of its tables with numbers or settings, then what its text adds.
    let expected = [
        ("Table 1", [4 * 5, 6]),
        ("Table 2", [4 * 5, 3 + 5]),
        ("Table 3", [4 * 3 + 4 * 4, 1]),
        ("Table 4", [2 + 11 * 6, 3]),
        ("Table 5", [2 * 5, 2]),
        ("Table 6", [4 * 5 + 2, 0]),
        ("Table 7", [2 * 6, 2]),
        ("Table 8", [3 + 4 * 4, 0]),
        ("Table 9", [4 * 3 * 2, 0]),
        ("Table 10", [12 * 2, 0]),
        ("Figure 3", [2, 0]),
        ("Figure 4", [5, 2]),
        ("Figure 5", [5, 0]),
        ("Figure 6", [5, 0]),
        ("Figure 7", [6, 0]),
    ];
    assert_eq!(counts, expected.into_iter().collect());
    let headings = report
        .sections
        .iter()
        .map(|section| section.heading.as_str());
    let headings: Vec<&str> = headings.collect();
    for place in (1..=10)
        .map(|n| format!("Table {n}:"))
        .chain((1..=7).map(|n| format!("Figure {n}:")))
    {
        assert!(
            headings.iter().any(|heading| heading.starts_with(&place)),
            "{place}"
        );
    }
}

#[test]
fn differences_are_those_of_the_best_run() {
    let folder = results();
    let report = page(&Findings::read(folder.path(), "test").unwrap()).unwrap();
    let psnr = find(&report, "Table 1", "HUVR+SIREN", "PSNR");
    assert!(
        (psnr.difference().unwrap() + 0.1907).abs() < 1e-9,
        "{psnr:?}"
    );
    assert_eq!(
        (psnr.verdict, psnr.why.as_str()),
        (Verdict::Agrees, "agrees")
    );
    assert_eq!(psnr.source, "`full`, 20,800 × 32");
    let laplacian = find(&report, "Table 1", "HUVR+SIREN", "RMSE of Laplacians");
    assert_eq!(laplacian.verdict, Verdict::Differs);
    assert!(
        laplacian
            .why
            .contains("the paper's network and schedule, other terrain"),
        "{laplacian:?}"
    );

    // A change is that from the run with the same schedule, and no other.
    let change = find(&report, "Table 4", "p 8", "change of PSNR");
    assert_eq!(change.ours, Cell::Number(5.0));
    assert!((change.difference().unwrap() - 0.1).abs() < 1e-9);
    assert!(change.source.contains("against `some/short`"), "{change:?}");
    let height = find(&report, "Table 4", "p 8", "PSNR");
    assert!(
        height
            .source
            .starts_with("`some/p8`, 5,200 × 32: 25 % of the paper's tiles"),
        "{height:?}"
    );

    let rate = find(&report, "Table 3", "HUVR+SIREN, int 8", "Shannon's bound");
    assert!((rate.difference().unwrap() + 0.022).abs() < 1e-9);
    assert_eq!(
        rate.why,
        "agrees; it does not pay for its tables, 0.900 are written"
    );
    let seam = find(&report, "Figure 6", "p 8", "boundary less interior");
    assert!((seam.difference().unwrap() + 0.82).abs() < 1e-9, "{seam:?}");
}

#[test]
fn one_number_of_the_paper_has_one_verdict() {
    let folder = results();
    let report = page(&Findings::read(folder.path(), "test").unwrap()).unwrap();
    let rows = report
        .sections
        .iter()
        .flat_map(|section| &section.comparisons);
    let rows = rows.flat_map(|comparison| &comparison.rows);
    let same =
        |row: &&Compared| row.source == "`full`, 20,800 × 32" && row.measure == "RMSE of heights";
    let rows: Vec<&Compared> = rows.filter(same).collect();
    // Tables 1, 4, 7 and 8, with three digits and with four; the thirds of Table 9 have no HUVR here.
    assert!(rows.len() >= 4, "{rows:?}");
    for row in rows.iter().filter(|row| !row.subject.contains("int")) {
        assert_eq!(
            (&row.paper, row.verdict),
            (&Cell::Number(0.0655), rows[0].verdict)
        );
    }
}

#[test]
fn what_needs_no_network_stands_beside_the_networks_of_the_same_tiles() {
    let folder = results();
    let held = |basis, numbers, psnr_db| {
        let evaluation = evaluation(psnr_db);
        Held {
            basis,
            numbers,
            summary: evaluation.summary().unwrap(),
            seams: evaluation.seams[0],
            evaluation,
        }
    };
    let mut linear = Linear {
        patch: 16,
        taught: 9,
        held: vec![
            held(Basis::PrincipalComponents, 16, 48.0),
            held(Basis::PrincipalComponents, 32, 52.0),
            held(Basis::Cosines, 32, 51.0),
        ],
    };
    let notes = |linear: &Linear| {
        let file = folder.path().join("some").join("linear.json");
        std::fs::write(file, serde_json::to_string(linear).unwrap()).unwrap();
        let findings = Findings::read(folder.path(), "test").unwrap();
        let sections = page(&findings).unwrap().sections;
        let mut all = sections.into_iter().flat_map(|section| section.comparisons);
        ["Table 1", "Table 4"].map(|place| all.find(|table| table.place == place).unwrap().note)
    };
    let [headline, ablation] = notes(&linear);
    for text in [
        "32 numbers for each patch of 16×16 pixels",
        "6 tiles",
        "principal components 52.00 dB",
        "cosines 51.00 dB",
    ] {
        assert!(headline.contains(text), "{headline}");
    }
    assert!(
        ablation.contains("hold 48.00 dB with 16, 52.00 dB with 32 numbers"),
        "{ablation}"
    );
    // Bases of other patches, or measured on other tiles, say nothing of these networks.
    linear.patch = 8;
    assert!(
        notes(&linear)
            .iter()
            .all(|note| !note.contains("Without a network"))
    );
    linear.patch = 16;
    linear.held[1].evaluation.measures[0].range_m += 1.0;
    assert!(
        notes(&linear)
            .iter()
            .all(|note| !note.contains("Without a network"))
    );
}

#[test]
fn of_equal_trainings_the_better_heights_count() {
    let folder = results();
    for (name, psnr_db) in [("a", 51.6), ("z", 51.4)] {
        let config = config("huvr-siren", &[]);
        run(&folder.path().join(name), &config, psnr_db, 320.0);
    }
    let findings = Findings::read(folder.path(), "test").unwrap();
    assert_eq!(findings.best("huvr-siren").unwrap().place, "a");
}

#[test]
fn tables_belong_to_the_runs_that_their_folder_names() {
    let folder = results();
    let at = |name: &str| folder.path().join(name);
    let small = config("huvr-siren-small", &[("steps = 2000", "steps = 3000")]);
    run(&at("a/small"), &small, 45.0, 900.0);
    let huvr = config("huvr-small", &[("steps = 2000", "steps = 3000")]);
    run(&at("b/huvr"), &huvr, 42.4, 900.0);
    let all = [
        SHORT,
        ("augment = true", "augment = false"),
        ("shuffle = true", "shuffle = false"),
    ];
    run(&at("nall"), &config("huvr-siren", &all), 48.0, 300.0);
    std::fs::create_dir(at("bench")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(at("bench").join(name), text).unwrap();
    write("runs.txt", "a/small\nb/huvr\n");
    write(
        "ptq.csv",
        "method,bits,fixed_bpp,shannon_bpp,coded_bpp,psnr_db,rmse_m\nhuvr-siren,int 8,1.0,0.8,0.9,44.9,0.1\n",
    );
    write(
        "amortisation.csv",
        "fitted,tiles,steps,seconds_per_tile,amortised_psnr_db,fitted_psnr_db\ntokens,8,200,3.0,45.0,46.0\n",
    );
    write(
        "data-scaling.csv",
        "tiles,augmented,psnr_db\n64,no,40.0\n4146,no,48.0001\n4146,yes,47.0\n",
    );
    let findings = Findings::read(folder.path(), "test").unwrap();
    let report = page(&findings).unwrap();

    // The run with the most tiles has quantised tokens too, but no HUVR beside it.
    let subject = "HUVR+SIREN, int 8, against HUVR's floats";
    let gain = find(&report, "Figure 3", subject, "gain of PSNR");
    assert!(
        matches!(gain.ours, Cell::Number(gain) if (gain - 2.5).abs() < 1e-9),
        "{gain:?}"
    );
    assert!(gain.source.contains("`a/small`") && gain.source.ends_with("against `b/huvr`"));
    let fewer = find(&report, "Figure 3", subject, "times fewer bits");
    assert!(fewer.source.starts_with("`full`"), "{fewer:?}");

    let fitted = find(&report, "Figure 5", "fitted tokens", "PSNR");
    assert!(fitted.source.starts_with("`a/small`"), "{fitted:?}");
    // 432 tiles of 3 s.
    let note = "8 tiles, not 432; all of them one after another take 22 min";
    assert!(fitted.why.contains(note), "{fitted:?}");

    let all = find(&report, "Figure 4", "3,338 tiles, as they are", "PSNR");
    assert!(all.why.contains("ours are 4,146"), "{all:?}");
}

#[test]
fn what_is_missing_is_said_with_its_price() {
    let folder = results();
    let findings = Findings::read(folder.path(), "test").unwrap();
    let report = page(&findings).unwrap();
    let width = find(&report, "Table 4", "D 16", "PSNR");
    assert_eq!(
        (width.verdict, &width.ours),
        (Verdict::Missing, &Cell::Missing)
    );
    // 665,600 tiles at 320 a second, and a little less for a smaller network.
    let work = |changes: &[String]| {
        let config = Config::preset("huvr-siren", changes).unwrap();
        config.method.account(Convention::AsRun).training as f64
    };
    let minutes = 665_600.0 / 320.0 / 60.0;
    let d16 = minutes * work(&["method.bottleneck=16".into()]) / work(&[]);
    assert_eq!(
        width.why,
        format!("not measured: no run; as in the paper it takes {d16:.0} min")
    );
    // That of p 8 is its own log's.
    let p8 = findings.minutes("p8").unwrap().unwrap();
    assert!((p8 - 665_600.0 / 80.0 / 60.0).abs() < 1e-9, "{p8}");
    let functa = find(&report, "Table 1", "Functa", "PSNR");
    assert_eq!(functa.why, "not measured: no run");
    let four = find(&report, "Table 3", "HUVR+SIREN, int 4", "PSNR");
    assert!(four.why.contains("`ptq.csv`"), "{four:?}");
    let regime = find(&report, "Table 9", "HUVR+SIREN, flat", "PSNR");
    assert!(regime.why.contains("no run of HUVR"), "{regime:?}");
    let tokens = find(&report, "Figure 7", "HUVR+SIREN", "participation ratio");
    assert!(
        tokens.why.contains("`terrane diagnose tokens RUN --json`"),
        "{tokens:?}"
    );
    assert!(
        report.introduction.contains("on one abacus"),
        "{}",
        report.introduction
    );
}

#[test]
fn the_page_is_written_whole_and_a_folder_without_runs_is_refused() {
    let (folder, out) = (results(), tempfile::tempdir().unwrap());
    let report = paper(folder.path(), "test", out.path()).unwrap();
    for name in [
        "paper.html",
        "paper.md",
        "paper.csv",
        "paper.json",
        "paper-rates.svg",
    ] {
        assert!(out.path().join(name).is_file(), "{name}");
    }
    let csv = std::fs::read_to_string(out.path().join("paper.csv")).unwrap();
    let rows = report.numbers(PAGE).unwrap().rows.len();
    assert_eq!(
        csv::Reader::from_reader(csv.as_bytes()).records().count(),
        rows
    );
    let error = paper(folder.path(), "val", out.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("config.toml and eval-val.json"), "{error}");
    std::fs::write(folder.path().join("full/ptq.csv"), "method,bits\na,b\n").unwrap();
    let error = paper(folder.path(), "test", out.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ptq.csv: not a run of this benchmark"),
        "{error}"
    );
}

#[test]
fn a_configuration_says_which_row_it_is() {
    let folder = results();
    let findings = Findings::read(folder.path(), "test").unwrap();
    let rows: Vec<(&str, &str, bool)> = findings
        .runs
        .iter()
        .map(|run| (run.place.as_str(), run.row.as_str(), is_paper_size(run)))
        .collect();
    assert_eq!(
        rows,
        [
            ("full", "huvr-siren", true),
            ("some/p8", "p8", true),
            ("some/short", "huvr-siren", true),
            ("tiny", "huvr-siren", false),
        ]
    );
    // Two changes at once are no row of the paper.
    let two = config(
        "huvr-siren",
        &[
            ("\npatch = 16", "\npatch = 8"),
            ("omega = 10.0", "omega = 5.0"),
        ],
    );
    run(&folder.path().join("two"), &two, 50.0, 1.0);
    let again = Findings::read(folder.path(), "test").unwrap();
    assert_eq!(again.runs.len(), 4);
}

#[test]
fn parts_of_a_fit_are_one() {
    let part = |tiles: &[usize], steps: usize, gain_db: f64| {
        let of = |psnr_db: f64| Evaluation {
            tiles: tiles.to_vec(),
            measures: vec![tile(psnr_db, 25.0); tiles.len()],
            ..Evaluation::default()
        };
        let (before, after) = (of(50.0), of(50.0 + gain_db));
        Fitted {
            freedom: Freedom::TokensAndDecoder,
            descent: Descent::constant(steps, 1e-4, 0),
            numbers: 1,
            amortised: mean(&before.measures).unwrap(),
            fitted: mean(&after.measures).unwrap(),
            gap_db: gain_db,
            seconds_per_tile: 2.0,
            curve: Vec::new(),
            amortised_tiles: before,
            fitted_tiles: after,
        }
    };
    let parts = [
        part(&[0, 1, 2], 5000, 6.0),
        part(&[2, 3], 5000, 8.0),
        part(&[9], 100, 1.0),
    ];
    // As they travel.
    let text = serde_json::to_string(&parts).unwrap();
    let parts: Vec<Fitted> = serde_json::from_str(&text).unwrap();
    let fit = Fit::of(&parts).unwrap().unwrap();
    assert_eq!((fit.tiles, fit.steps, fit.parts), (4, 5000, 2));
    assert!((fit.gain_db() - 6.5).abs() < 1e-9, "{fit:?}");
    assert_eq!(Fit::of(&[]).unwrap(), None);
}

#[test]
fn the_papers_own_sums_come_out() {
    let base = numbers::row("huvr-siren").unwrap();
    for (name, [psnr, gradient, laplacian, _]) in numbers::CHANGES {
        let row = numbers::row(name).unwrap();
        // Differences were rounded after they were taken.
        for (change, of) in [
            (psnr, row.psnr_db - base.psnr_db),
            (100.0 * gradient, 100.0 * (row.gradient - base.gradient)),
            (100.0 * laplacian, 100.0 * (row.laplacian - base.laplacian)),
        ] {
            assert!((change - of).abs() < 0.0151, "{name}: {change} {of}");
        }
    }
    let steps = |method: &str| numbers::hyperparameters(method).steps();
    assert_eq!(
        ["huvr-siren", "huvr", "functa", "transinr"].map(steps),
        [20_800, 20_800, 83_400, 417_000]
    );
}
