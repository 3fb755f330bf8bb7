//! Writes inputs to start fuzzing from: `seeds CONFORMANCE CORPUS` takes the golden files apart into a folder for every
//! kind of input.

#![expect(clippy::unwrap_used, reason = "a program to prepare with")]

use std::path::{Path, PathBuf};

use terrane::{Checks, Plan, Settings, Split};
use terrane_format::{Layer, LocalFile, ParentMask, Reader, Record};
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Kind, Output, SampleType, Storage,
};

fn keep(corpus: &Path, target: &str, name: &str, bytes: &[u8]) {
    let folder = corpus.join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// Records, masks and symbols of a golden file.
fn take_apart(path: &Path, name: &str, corpus: &Path) {
    let reader = Reader::open(Box::new(LocalFile::open(path).unwrap())).unwrap();
    let pyramid = &reader.header().pyramid;
    for number in 0..pyramid.tiles().min(40) {
        let tile = pyramid.tile(number).unwrap();
        let (Ok(Some(bytes)), Ok(window)) = (reader.bytes(tile), pyramid.window(tile)) else {
            continue;
        };
        // Sizes are a byte each.
        let (Ok(width), Ok(height)) = (
            u8::try_from(window.width - 1),
            u8::try_from(window.height - 1),
        ) else {
            continue;
        };
        let name = format!("{name}-{number}");
        let missing = vec![false; window.width.div_ceil(2) * window.height.div_ceil(2)];
        let parent = ParentMask {
            missing: Some(&missing),
            width: window.width.div_ceil(2),
            column: 0,
            row: 0,
        };
        for (choice, parent) in [(0, None), (1, Some(&parent))] {
            let sized = |bytes: &[u8]| [&[width, height, choice], bytes].concat();
            keep(
                corpus,
                "record",
                &format!("{name}-{choice}"),
                &sized(&bytes),
            );
            let Ok(record) = Record::parse(&bytes, number, window, parent) else {
                continue;
            };
            if let Some(missing) = &record.missing {
                let coded = terrane_format::mask::encode(missing, window.width, parent);
                keep(corpus, "mask", &format!("{name}-{choice}"), &sized(&coded));
            }
            match &record.layer {
                Layer::Wavelet(layer) => keep(corpus, "payload", &name, &sized(&layer.bytes)),
                Layer::Details(layer) => keep(corpus, "payload", &name, &sized(&layer.bytes)),
                Layer::Integers(layer) => {
                    let coded = terrane_format::integers::encode(
                        &layer.values,
                        window.width,
                        terrane_format::integers::Prediction::Median,
                        None,
                    );
                    keep(corpus, "coder", &name, &sized(&coded));
                }
                Layer::Tokens(_) => {}
            }
        }
    }
}

fn raster(path: &Path, sample: SampleType, size: (usize, usize)) {
    let georeference = Georeference::new(
        Affine::north_up(5e5, 2e5, 1.0),
        Crs::projected(2056, Some(5728)),
    );
    let storage = Storage::metres(sample, Some(-9999.0));
    let out = Output::new(path, Existing::Replace, Kind::Raster);
    let mut writer = CogWriter::create(&out, size, georeference, storage).unwrap();
    for row in 0..size.1 {
        let heights: Vec<f64> = (0..size.0)
            .map(|column| ((column * row % 97) as f64).round())
            .collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (golden, corpus) = (arguments.next().unwrap(), arguments.next().unwrap());
    for entry in std::fs::read_dir(&golden).unwrap() {
        let folder = entry.unwrap().path();
        let path = folder.join("input.trn");
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        keep(&corpus, "head", &name, &bytes);
        keep(&corpus, "file", &name, &bytes);
        take_apart(&path, &name, &corpus);
    }
    let model = std::fs::read(golden.join("context.safetensors")).unwrap();
    keep(&corpus, "model", "context", &model);
    let folder = tempfile::tempdir().unwrap();
    for (name, sample, size) in [
        ("f32", SampleType::F32, (40, 30)),
        ("f64", SampleType::F64, (20, 33)),
        ("i16", SampleType::I16, (64, 5)),
        ("u8", SampleType::U8, (3, 3)),
    ] {
        let path = folder.path().join("a.tif");
        raster(&path, sample, size);
        keep(&corpus, "geotiff", name, &std::fs::read(&path).unwrap());
        if name == "f32" {
            let plan = Plan::new(
                std::slice::from_ref(&path),
                &Settings::default(),
                Split::Shards(1),
                Checks::Time,
            )
            .unwrap();
            let out = folder.path().join("plan.json");
            plan.write(&Output::new(&out, Existing::Replace, Kind::Plan))
                .unwrap();
            keep(&corpus, "plan", "plan", &std::fs::read(out).unwrap());
        }
    }
    for target in ["journal", "shard"] {
        keep(&corpus, target, "cut", &[10, 0, 0, 0]);
        keep(&corpus, target, "changed", &[0, 60, 0, 1, 90, 0, 7]);
    }
}
