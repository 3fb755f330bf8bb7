//! An encoding in shards gives the bytes of an encoding in one go.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Output, SampleType, Storage, Window,
};

use crate::{complaint, json, stdout, terrane};

/// A raster with hills, a gap that is wider than a tile, and gaps of one pixel.
fn holes(path: &Path, (width, height): (usize, usize), storage: Storage) {
    let place = Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
        Crs::projected(2056, Some(5728)),
    );
    let height_at = |column: usize, row: usize| {
        let (x, y) = (column as f64, row as f64);
        if (100..190).contains(&column) && (70..160).contains(&row)
            || (column * 7 + row).is_multiple_of(911)
        {
            return f64::NAN;
        }
        (500.0 + 40.0 * (x / 37.0).sin() * (y / 29.0).cos() + 0.01 * x).round()
            + (x * y).sin().abs()
    };
    let mut writer = CogWriter::create(
        &Output::named_here(path, Existing::Refuse),
        (width, height),
        place,
        storage,
    )
    .unwrap();
    for row in 0..height {
        let heights: Vec<f64> = (0..width).map(|column| height_at(column, row)).collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

/// Cuts a raster into four files that overlap by some pixels.
fn quarters(folder: &Path, name: &str) -> Vec<String> {
    let raster = terrane_geo::open(&[folder.join(name)]).unwrap();
    let (width, height) = (raster.info().width(), raster.info().height());
    let (x, y) = (width / 2 + 3, height / 2 - 5);
    [
        (0, 0, x, y),
        (x - 9, 0, width - x + 9, y),
        (0, y - 4, x, height - y + 4),
        (x, y, width - x, height - y),
    ]
    .into_iter()
    .enumerate()
    .map(|(index, (column, row, width, height))| {
        let window = Window {
            column,
            row,
            width,
            height,
        };
        let grid = raster.read(0, window).unwrap();
        let info = raster.info();
        let name = format!("part{index}.tif");
        let mut writer = CogWriter::create(
            &Output::named_here(&folder.join(&name), Existing::Refuse),
            (width, height),
            info.georeference.cropped(column, row),
            info.storage.clone(),
        )
        .unwrap();
        writer.write_rows(&grid.heights).unwrap();
        writer.finish().unwrap();
        name
    })
    .collect()
}

/// Encodes in one go and in several numbers of shards, last shard first, and compares the bytes.
fn assert_same_bytes(folder: &Path, inputs: &[&str], options: &[&str], splits: &[[&str; 2]]) {
    let run = |arguments: &[&str]| terrane(folder, arguments);
    let with = |start: &[&str], end: &[&str]| -> Vec<String> {
        let all = start.iter().chain(inputs).chain(end).chain(options);
        all.map(|&part| part.to_owned()).collect()
    };
    let call = |arguments: Vec<String>| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(&arguments)
    };
    stdout(&call(with(&["encode"], &["whole.trn", "--overwrite"])));
    let whole = std::fs::read(folder.join("whole.trn")).unwrap();
    for split in splits {
        let mut arguments = with(&["shard", "plan"], &["plan.json", "--overwrite", "--json"]);
        arguments.extend(split.iter().map(|&part| part.to_owned()));
        let plan = json(&call(arguments));
        let count = plan["shards"].as_u64().unwrap();
        if split[0] == "--shards" {
            assert_eq!(count.to_string(), split[1]);
        }
        for number in (0..count).rev() {
            let number = number.to_string();
            stdout(&run(&[
                "shard",
                "encode",
                "plan.json",
                "--shard",
                &number,
                "--jobs",
                "1",
            ]));
        }
        stdout(&run(&[
            "shard",
            "merge",
            "plan.json",
            "merged.trn",
            "--overwrite",
        ]));
        let merged = std::fs::read(folder.join("merged.trn")).unwrap();
        assert!(merged == whole, "{inputs:?} {options:?} {split:?}");
        std::fs::remove_dir_all(folder.join("plan.shards")).unwrap();
    }
}

const NUMBERS: [[&str; 2]; 3] = [["--shards", "1"], ["--shards", "2"], ["--shards", "7"]];

#[test]
fn one_two_and_seven_shards_are_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let float = Storage::metres(SampleType::F32, Some(-9999.0));
    // Trees are eight tiles across: 25 of 128 pixels, nine of 192 or 256.
    holes(&folder.path().join("holes.tif"), (520, 520), float);
    let path = folder.path();
    let every = [
        NUMBERS[0],
        NUMBERS[1],
        NUMBERS[2],
        ["--shards", "23"],
        ["--shard-tiles", "1"],
        ["--shard-tiles", "4"],
        ["--shard-tiles", "64"],
    ];
    assert_same_bytes(
        path,
        &["holes.tif"],
        &["--tile", "16", "--max-error", "0.1"],
        &every,
    );
    for options in [
        &["--tile", "24", "--lossless", "--embed-model"][..],
        &["--tile", "32", "--bpp", "2", "--per-tile"],
        &["--tile", "32", "--profile", "fast", "--effort", "3"],
        &[
            "--tile",
            "16",
            "--method",
            "integers",
            "--rmse",
            "0.2",
            "--per-tile",
        ],
        &["--tile", "32", "--method", "integers", "--lossless"],
    ] {
        assert_same_bytes(path, &["holes.tif"], options, &NUMBERS);
    }
}

#[test]
fn a_network_in_shards_is_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let float = Storage::metres(SampleType::F32, Some(f64::NAN));
    // Trees of 2048 pixels, for the side of a network's tiles is its own; the third is a few columns wide.
    holes(&folder.path().join("holes.tif"), (4150, 170), float);
    let numbers = [NUMBERS[0], NUMBERS[1], ["--shards", "3"]];
    for options in [
        &["--method", "huvr-siren", "--max-error", "0.5"][..],
        &["--bits", "4", "--fixed-width"],
    ] {
        assert_same_bytes(folder.path(), &["holes.tif"], options, &numbers);
    }
}

#[test]
fn a_mosaic_of_integers_in_shards_is_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let metres = Storage::metres(SampleType::I16, Some(-32768.0));
    holes(&folder.path().join("holes.tif"), (450, 400), metres);
    let parts = quarters(folder.path(), "holes.tif");
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    for options in [&["--tile", "16"][..], &["--tile", "24", "--lossless"]] {
        assert_same_bytes(folder.path(), &parts, options, &NUMBERS);
    }
    // The mosaic is the raster that was cut, but for its own description.
    stdout(&terrane(
        folder.path(),
        &["verify", "merged.trn", "--against", "holes.tif"],
    ));
}

#[test]
fn a_killed_worker_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |arguments: &[&str]| terrane(path, arguments);
    stdout(&run(&["generate", "dem.tif", "--size", "1000x700"]));
    let options = ["--tile", "32", "--max-error", "0.02", "--effort", "3"];
    let call = |start: &[&str]| stdout(&run(&[start, &options].concat()));
    call(&["encode", "dem.tif", "whole.trn"]);
    call(&["shard", "plan", "dem.tif", "plan.json", "--shards", "2"]);
    let shards = path.join("plan.shards");
    let mut worker = Command::new(env!("CARGO_BIN_EXE_terrane"))
        .current_dir(path)
        .args([
            "shard",
            "encode",
            "plan.json",
            "--shard",
            "0",
            "--jobs",
            "1",
        ])
        .args(["--progress", "none"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // In the middle: some tiles are written to the file that has no name yet.
    let begun = || {
        let entries = std::fs::read_dir(&shards).ok()?;
        let lengths = entries.map(|entry| entry.unwrap().metadata().map_or(0, |data| data.len()));
        lengths.max()
    };
    let start = Instant::now();
    while begun().unwrap_or(0) < 10_000 {
        assert!(worker.try_wait().unwrap().is_none(), "it is done too soon");
        assert!(start.elapsed() < Duration::from_mins(5));
        std::thread::sleep(Duration::from_millis(2));
    }
    worker.kill().unwrap();
    assert!(!worker.wait().unwrap().success());
    assert!(!shards.join("shard-000000.trs").exists());
    let merge = ["shard", "merge", "plan.json", "merged.trn"];
    assert!(complaint(&run(&merge)).contains("shard 0 of 2 is missing"));

    // The next worker does it again, and another one does it twice at a time.
    let encode = |number: &'static str| ["shard", "encode", "plan.json", "--shard", number];
    let twice: Vec<_> = (0..2)
        .map(|_| {
            Command::new(env!("CARGO_BIN_EXE_terrane"))
                .current_dir(path)
                .args(encode("0"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut worker in twice {
        assert!(worker.wait().unwrap().success());
    }
    stdout(&run(&encode("1")));
    assert!(stdout(&run(&encode("1"))).contains("was there already"));
    stdout(&run(&merge));
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert!(read("merged.trn") == read("whole.trn"));
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |arguments: &[&str]| terrane(path, arguments);
    stdout(&run(&["generate", "dem.tif", "--size", "300x200"]));
    let plan = |end: &[&str]| {
        let start = ["shard", "plan", "dem.tif", "plan.json", "--tile", "16"];
        run(&[&start[..], end].concat())
    };
    for rate in ["--bpp", "--rmse"] {
        assert!(complaint(&plan(&[rate, "1"])).contains("--per-tile"));
    }
    assert!(complaint(&plan(&["--shards", "1000"])).contains("1000 for 6 trees"));
    assert!(complaint(&plan(&["--shard-tiles", "3"])).contains("a power of two"));
    stdout(&plan(&["--shards", "3", "--hash"]));
    let first = std::fs::read(path.join("plan.json")).unwrap();
    stdout(&plan(&["--shards", "3", "--hash", "--overwrite"]));
    assert_eq!(std::fs::read(path.join("plan.json")).unwrap(), first);
    let encode = |number: &str| run(&["shard", "encode", "plan.json", "--shard", number]);
    assert!(complaint(&encode("3")).contains("there is no shard 3: the plan has 3"));
    for number in ["0", "1", "2"] {
        stdout(&encode(number));
    }
    let merge = || run(&["shard", "merge", "plan.json", "all.trn", "--overwrite"]);
    stdout(&merge());

    // Every byte of a shard counts, for the merge and for a worker that finds it.
    let shard = path.join("plan.shards/shard-000001.trs");
    let whole = std::fs::read(&shard).unwrap();
    for place in [0, 13, 20, 60, whole.len() / 2, whole.len() - 3] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        std::fs::write(&shard, &bytes).unwrap();
        assert!(complaint(&merge()).contains("shard 1 is"), "{place}");
    }
    std::fs::write(&shard, &whole[..whole.len() - 9]).unwrap();
    assert!(complaint(&merge()).contains("shard 1 is damaged"));
    assert!(!stdout(&encode("1")).contains("was there"));
    assert_eq!(std::fs::read(&shard).unwrap(), whole);

    // Shards of another plan, of a raster that changed, and plans that are none.
    stdout(&plan(&[
        "--shards",
        "3",
        "--max-error",
        "0.5",
        "--overwrite",
    ]));
    assert!(complaint(&merge()).contains("another plan"));
    stdout(&run(&[
        "generate",
        "dem.tif",
        "--size",
        "300x200",
        "--seed",
        "9",
        "--overwrite",
    ]));
    assert!(complaint(&encode("0")).contains("changed since the plan was made"));
    let text = std::fs::read_to_string(path.join("plan.json")).unwrap();
    let changed = [
        text.replace("\"columns\": ", "\"columns\": 1"),
        text.replacen("\"program\": \"", "\"program\": \"9", 1),
        text.replacen("\"terrane_shard_plan\": 1", "\"terrane_shard_plan\": 2", 1),
        text[..text.len() / 2].to_owned(),
    ];
    for (text, expected) in changed
        .iter()
        .zip(["is not a plan", "plan again", "version", "plan"])
    {
        std::fs::write(path.join("plan.json"), text).unwrap();
        assert!(complaint(&encode("0")).contains(expected), "{expected}");
    }
}
