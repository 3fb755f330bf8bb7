//! The diagnostics of amortisation from the command line, on a terrain of our own.

use crate::training::dataset;
use crate::{complaint, json, stdout, terrane};

/// A small network that a few steps have moved from where its heads ignore tokens.
fn train(folder: &std::path::Path) {
    let mut arguments = vec![
        "train",
        "huvr-siren-small",
        "--data",
        "tiles",
        "--out",
        "run",
    ];
    for setting in [
        "train.steps=4",
        "train.batch=1",
        "train.validate_every=0",
        "train.schedule.warmup_steps=0",
        "method.patch=32",
        "method.siren_width=16",
        "method.decoder.width=32",
        "method.decoder.hidden=32",
    ] {
        arguments.extend(["--set", setting]);
    }
    stdout(&terrane(folder, &arguments));
}

#[test]
fn a_model_and_its_tiles_are_diagnosed() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    train(folder.path());
    let diagnose = |arguments: &[&str]| {
        let mut all = vec!["diagnose"];
        all.extend(arguments);
        all.extend(["--data", "tiles"]);
        terrane(folder.path(), &all)
    };

    let fit = [
        "fit", "run", "--tiles", "1", "--steps", "3", "--json", "--out", "page",
    ];
    let fit = json(&diagnose(&fit));
    assert!(fit["gap_db"].as_f64().unwrap() > 0.0, "{fit}");
    assert_eq!(fit["numbers"], 65 * 32);
    assert_eq!(fit["freedom"], "tokens");
    assert_eq!(fit["curve"].as_array().unwrap().len(), 2);
    for name in ["report.html", "gap.csv", "gap.json", "fit-curve.svg"] {
        assert!(folder.path().join("page").join(name).exists(), "{name}");
    }

    let model = "run/model.safetensors";
    let bound = [
        "upper-bound",
        model,
        "--tiles",
        "2",
        "--part",
        "2/2",
        "--steps",
        "2",
    ];
    let table = stdout(&diagnose(&bound));
    assert!(
        table.contains("tokens and decoder") && table.contains("PSNR dB"),
        "{table}"
    );

    let tokens = json(&diagnose(&["tokens", "run", "--tiles", "1", "--json"]));
    assert_eq!(tokens["tokens"], 64);
    assert_eq!(
        tokens["stored"]["eigenvalues"].as_array().unwrap().len(),
        32
    );
    assert_eq!(tokens["neighbours"][0]["chance"], 10.0 / 63.0);
    assert_eq!(tokens["split"], "train");

    let siren = [
        "siren", "--width", "8", "--layers", "1", "--steps", "2", "--json",
    ];
    let siren = json(&diagnose(&siren));
    assert_eq!(siren["weights"], 2 * 8 + 8 + 8 + 1);
    assert!(
        siren["tiles"][0]["measures"]["psnr_db"].as_f64().unwrap() > 0.0,
        "{siren}"
    );

    let linear = [
        "linear",
        "--patch",
        "32",
        "--numbers",
        "32,8",
        "--json",
        "--out",
        "bases",
    ];
    let linear = json(&diagnose(&linear));
    let held = linear["held"].as_array().unwrap();
    let of = |index: usize, key: &str| held[index]["summary"][key].as_f64().unwrap();
    assert_eq!((held.len(), &held[1]["numbers"]), (4, &32.into()));
    assert_eq!(held[2]["basis"], "cosines");
    assert!(of(1, "psnr_db") > of(0, "psnr_db") && of(3, "psnr_db") > of(2, "psnr_db"));
    for name in ["report.html", "bases.csv", "bases.svg"] {
        assert!(folder.path().join("bases").join(name).exists(), "{name}");
    }
}

#[test]
fn faults_of_a_diagnosis_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    let attempt = |arguments: &[&str]| complaint(&terrane(folder.path(), arguments));
    let siren = ["diagnose", "siren", "--data", "tiles"];
    let split = attempt(&[&siren[..], &["--split", "unseen"]].concat());
    assert!(
        split.contains("there is no split \"unseen\"; there are train, test"),
        "{split}"
    );
    let part = attempt(&[&siren[..], &["--part", "1/9"]].concat());
    assert!(part.contains("fewer parts"), "{part}");
    let layers = attempt(&[&siren[..], &["--layers", "0"]].concat());
    assert!(
        layers.contains("--layers must be from 1 to 1024, and is 0"),
        "{layers}"
    );
    let linear = ["diagnose", "linear", "--data", "tiles"];
    let patch = attempt(&[&linear[..], &["--patch", "12"]].concat());
    assert!(
        patch.contains("patches of 12 pixels do not fill a tile"),
        "{patch}"
    );
    let numbers = attempt(&[&linear[..], &["--numbers", "16,257"]].concat());
    assert!(numbers.contains("ask for 1 to 256"), "{numbers}");
    let taught = attempt(&[&linear[..], &["--taught-by", "unseen"]].concat());
    assert!(taught.contains("there is no split \"unseen\""), "{taught}");
    let model = attempt(&["diagnose", "fit", "nowhere", "--data", "tiles"]);
    assert!(model.contains("nowhere: cannot be read"), "{model}");
}
