//! Writes inputs to start fuzzing from: `seeds CONFORMANCE FLAVOURS CORPUS` takes the golden files apart into a folder for every
//! kind of input, beside a `GeoTIFF` of every flavour.

#![expect(clippy::unwrap_used, reason = "a program to prepare with")]

use std::path::{Path, PathBuf};

use terrane::{Checks, Destination, Plan, Profile, Resources, Settings, Split, Target};
use terrane_context::pack;
use terrane_format::{Layer, LocalFile, MemoryLimit, Method, ParentMask, Reader, Record};
use terrane_fuzz::SIDE;
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Grid, Kind, MemoryRaster, Output, SampleType,
    Storage,
};

/// Bytes of a file whose inputs are slow.
const LONG: usize = 64 << 10;

fn keep(corpus: &Path, target: &str, name: &str, bytes: &[u8]) {
    let folder = corpus.join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// Records, masks and symbols of a golden file.
fn take_apart(path: &Path, name: &str, corpus: &Path) {
    let reader = Reader::open(Box::new(LocalFile::open(path).unwrap())).unwrap();
    if let Ok(Some(model)) = reader.embedded_model(MemoryLimit::default())
        && model.len() < LONG
    {
        keep(corpus, "model", name, &model);
    }
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
        if width.max(height) >= SIDE {
            continue;
        }
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
                Layer::Tokens(coded) => keep(corpus, "tokens", &name, &sized(coded)),
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

/// A hill with a lake and a corner without data.
fn hill(width: usize, height: usize) -> MemoryRaster {
    let pixels = (0..width * height).map(|pixel| {
        let (x, y) = ((pixel % width) as f64, (pixel / width) as f64);
        match (x, y) {
            (x, y) if x + y < 9.0 => f64::NAN,
            (x, y) if (x - 20.0).hypot(y - 12.0) < 8.0 => 431.5,
            _ => (430.0 + (x * 0.3).sin() * 20.0 + (y * 0.17).cos() * 15.0).round() + 0.25,
        }
    });
    let georeference = Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 0.5),
        Crs::projected(2056, Some(5728)),
    );
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    MemoryRaster::new(
        "hill",
        Grid::new(width, height, pixels.collect()),
        georeference,
        storage,
    )
}

/// Short files of many kinds: their model is that of the golden files, or one inside the program.
fn small_files(golden: &Path, folder: &Path, corpus: &Path) {
    let model = golden.join("context.safetensors");
    let targets = [
        ("bound", Target::MaxError(0.5)),
        ("rmse", Target::Rmse(1.0)),
        ("lossless", Target::Lossless),
    ];
    for (name, target) in targets {
        for (kind, method, own) in [
            ("small", None, false),
            ("integers", Some(Method::Integers), false),
            ("own", None, true),
        ] {
            let settings = Settings {
                method,
                target,
                profile: Profile::Fast,
                model: (method.is_none() && !own).then(|| model.clone()),
                tile: Some(16),
                ..Settings::default()
            };
            let resources = Resources::default();
            let path = folder.join("small.trn");
            let destination = Destination {
                out: Output::new(&path, Existing::Replace, Kind::Terrain),
                resumable: None,
                resources,
            };
            let prepared = settings.prepare(resources.memory).unwrap();
            terrane::encode(&hill(45, 37), &prepared, destination, &mut |_| Ok(())).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let name = format!("{kind}-{name}");
            keep(corpus, "head", &name, &bytes);
            keep(corpus, "file", &name, &bytes);
            take_apart(&path, &name, corpus);
            if kind != "small" {
                for choices in [[0, 0, 0, 0, 45, 37, 0, 0], [3, 1, 1, 1, 9, 9, 2, 1]] {
                    let name = format!("{name}-{}", choices[0]);
                    keep(corpus, "c", &name, &[&choices, bytes.as_slice()].concat());
                }
            }
        }
    }
}

/// Requests that the server answers, and one connection of several.
fn requests(corpus: &Path) {
    let paths = [
        "/",
        "/assets/main.js",
        "/health",
        "/metrics",
        "/catalog.json",
        "/dem",
        "/dem.trn",
        "/dem.tif",
        "/dem-original/tilejson.json",
        "/dem/info",
        "/dem/parts.json",
        "/dem/profile?line=7.4387,46.9510;7.4424,46.9490&points=50",
        "/dem/point/7.4405,46.9499",
        "/dem/contours?interval=10",
        "/dem/contours/14/8530/5766.mvt?interval=5",
        "/dem/hillshade/tilejson.json",
        "/dem/slope/18/136490/92256.png?nodata=white",
        "/dem/16/34122/23064@2x.webp",
        "/dem/change/14/8530/5766.png",
        "/dem/tiles/WebMercatorQuad/14/8530/5766.png?algorithm=terrarium&format=png",
        "/%2e%2e/%2e%2e/etc/passwd",
    ];
    for (index, path) in paths.iter().enumerate() {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        keep(corpus, "http", &format!("get-{index}"), request.as_bytes());
    }
    for (name, request) in [
        (
            "range",
            "GET /dem.trn HTTP/1.1\r\nRange: bytes=0-99\r\n\r\n",
        ),
        (
            "tail",
            "GET /dem.tif HTTP/1.1\r\nRange: bytes=-50\r\nIf-Range: \"a\"\r\n\r\n",
        ),
        (
            "known",
            "GET /dem HTTP/1.1\r\nIf-None-Match: W/\"a\", *\r\nAccept-Encoding: gzip\r\n\r\n",
        ),
        (
            "two",
            "HEAD /dem HTTP/1.1\r\n\r\nGET /health HTTP/1.0\r\n\r\n",
        ),
        (
            "body",
            "POST /dem HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "cors",
            "OPTIONS /dem HTTP/1.1\r\nOrigin: http://a\r\nAccess-Control-Request-Method: GET\r\n\r\n",
        ),
    ] {
        keep(corpus, "http", name, request.as_bytes());
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = || arguments.next().unwrap();
    let (golden, flavours, corpus) = (next(), next(), next());
    for entry in std::fs::read_dir(&golden).unwrap() {
        let folder = entry.unwrap().path();
        let path = folder.join("input.trn");
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // Long inputs are slow ones: one with a model inside is enough.
        if bytes.len() < LONG || name == "context-bound" {
            keep(&corpus, "head", &name, &bytes);
            keep(&corpus, "file", &name, &bytes);
            keep(&corpus, "c", &name, &[&[0; 8], bytes.as_slice()].concat());
        }
        take_apart(&path, &name, &corpus);
    }
    let model = std::fs::read(golden.join("context.safetensors")).unwrap();
    keep(&corpus, "model", "context", &model);
    keep(&corpus, "model", "packed", &pack(&model).unwrap());
    for entry in std::fs::read_dir(&flavours).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tif") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            keep(&corpus, "geotiff", name, &std::fs::read(&path).unwrap());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    small_files(&golden, folder.path(), &corpus);
    requests(&corpus);
    for (index, text) in [
        "x,y\n2600000.5,1200000.25\n7,8\n",
        "\u{feff}Lat;id;Lon\n1200000,25;1;2600000,5\n8;2;7\n",
        "easting\tnorthing\n1e3\t-2\n",
        "  1   2\n3 4\n",
        "a,b\n\"1\",2\n",
    ]
    .into_iter()
    .enumerate()
    {
        keep(&corpus, "points", &index.to_string(), text.as_bytes());
    }
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
                &terrane_geo::RasterOptions::default(),
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
    // One channel and four symbols, in each way and each width.
    for (how, bits) in (0..3).flat_map(|how| [2, 4, 8, 16].map(|bits| (how, bits))) {
        let head = [0, 3, 0, how, bits, 0, 0, 0, 0, 0, 0, 128, 63, 0, 60];
        let coded = vec![0x55; usize::from(bits) / 2];
        let bytes = [&head, coded.as_slice()].concat();
        keep(&corpus, "tokens", &format!("{how}-{bits}"), &bytes);
    }
    for target in ["journal", "shard"] {
        for is_mended in [0, 1] {
            let cut = [is_mended, 10, 0, 0, 0];
            keep(&corpus, target, &format!("cut-{is_mended}"), &cut);
            let changed = [is_mended, 0, 60, 0, 1, 90, 0, 7];
            keep(&corpus, target, &format!("changed-{is_mended}"), &changed);
        }
    }
    // Nothing, the end, the head, and what lies behind it, of each file.
    for choice in 0..8 {
        for (name, changes) in [
            ("whole", &[0][..]),
            ("cut", &[10]),
            ("head", &[0, 20, 0, 7]),
            ("torn", &[0, 20, 0, 7, 40, 0, 7]),
            ("index", &[0, 0, 1, 7]),
            ("records", &[0, 100, 1, 7, 0, 2, 7, 0, 3, 7]),
        ] {
            let input = [&[choice], changes].concat();
            keep(&corpus, "repair", &format!("{name}-{choice}"), &input);
        }
    }
}
