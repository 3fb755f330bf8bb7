//! The benchmark from the command line, on terrains of our own.

use std::path::Path;

use crate::{complaint, json, stdout, terrane};

const TABLES: [&str; 6] = ["headline", "flops", "ptq", "boundary", "regimes", "codecs"];

/// Tiles of 64 pixels, two rasters of which are to train on and to test with.
pub(crate) fn dataset(folder: &Path, name: &str, seeds: [&str; 2]) {
    let rasters = format!("{name}-rasters");
    std::fs::create_dir(folder.join(&rasters)).unwrap();
    for (file, seed) in ["a.tif", "b.tif"].into_iter().zip(seeds) {
        let file = format!("{rasters}/{file}");
        let size = ["--size", "200x140", "--seed", seed];
        stdout(&terrane(
            folder,
            &[&["generate", file.as_str()], size.as_slice()].concat(),
        ));
    }
    let catalog = "file,split\na.tif,train\nb.tif,test\n";
    std::fs::write(folder.join(&rasters).join("catalog.csv"), catalog).unwrap();
    let build = ["dataset", "build", &rasters, name, "--side", "64"];
    stdout(&terrane(folder, &build));
}

fn csv(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

#[test]
fn other_terrain_gives_other_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    dataset(path, "one", ["1", "2"]);
    dataset(path, "two", ["1", "3"]);
    let bench = |data: &str, out: &str| {
        let mut arguments = vec!["bench"];
        arguments.extend(TABLES);
        arguments.extend(["--data", data, "--out", out, "--steps", "2", "--json"]);
        arguments.extend(["--batch", "1"]);
        json(&terrane(path, &arguments))
    };
    bench("one", "first");
    for file in [
        "report.html",
        "report.md",
        "headline.csv",
        "headline.json",
        "flops.csv",
        "ptq.csv",
        "boundary.csv",
        "regimes.csv",
        "codecs.csv",
        "runs/functa/model.safetensors",
    ] {
        assert!(path.join("first").join(file).exists(), "{file}");
    }
    let page = std::fs::read_to_string(path.join("first/report.html")).unwrap();
    for outside in ["src=\"http", "href=\"http", "@import"] {
        assert!(!page.contains(outside), "the page asks for {outside}");
    }

    // The same networks on the same tiles give the same table; on other tiles another one.
    std::fs::create_dir(path.join("second")).unwrap();
    std::fs::rename(path.join("first/runs"), path.join("second/runs")).unwrap();
    bench("one", "second");
    let first = csv(&path.join("first/headline.csv"));
    assert_eq!(first, csv(&path.join("second/headline.csv")));
    std::fs::create_dir(path.join("third")).unwrap();
    std::fs::rename(path.join("second/runs"), path.join("third/runs")).unwrap();
    bench("two", "third");
    let third = csv(&path.join("third/headline.csv"));
    assert_eq!(first[0], third[0]);
    let psnr = first[0].iter().position(|name| name == "psnr_db").unwrap();
    for (a, b) in first.iter().zip(&third).skip(1) {
        assert_eq!(a[0], b[0]);
        assert_ne!(a[psnr], b[psnr], "{a:?}");
    }

    // What was measured with a run stands for it where its weights are not.
    let run = path.join("results/huvr");
    std::fs::create_dir_all(&run).unwrap();
    let from = path.join("third/runs/huvr");
    std::fs::copy(from.join("config.toml"), run.join("config.toml")).unwrap();
    let evaluation = ["eval", "third/runs/huvr", "--data", "two", "--json"];
    let evaluation = stdout(&terrane(path, &evaluation));
    std::fs::write(run.join("eval-test.json"), evaluation).unwrap();
    let paper = ["bench", "paper", "--results", "results", "--out", "page"];
    let page = json(&terrane(path, &[paper.as_slice(), &["--json"]].concat()));
    let rows = page["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["subject"] == "HUVR").unwrap();
    let huvr = third.iter().find(|row| row[0] == "huvr").unwrap();
    let ours: f64 = huvr[psnr].parse().unwrap();
    assert!((row["ours"].as_f64().unwrap() - ours).abs() < 1e-3, "{row}");
    assert_eq!(page["numbers"], rows.len());
    assert!(path.join("page/paper.html").exists() && !path.join("page/report.html").exists());
    let other = ["bench", "ptq", "--results", "results", "--out", "page"];
    let complaint_of_other = complaint(&terrane(path, &other));
    assert!(
        complaint_of_other.contains("`paper` alone"),
        "{complaint_of_other}"
    );

    let missing = ["bench", "headline", "--data", "one", "--out", "fourth"];
    let missing = [missing.as_slice(), &["--split", "val"]].concat();
    let complaint = complaint(&terrane(path, &missing));
    assert!(complaint.contains("val"), "{complaint}");
}
