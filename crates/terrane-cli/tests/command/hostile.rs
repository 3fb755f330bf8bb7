//! Files that were made to do harm, in an address space of four gigabytes: a sentence, never an abort.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output};

use terrane_codec::format::{
    ErrorBound, GeoKeys, Header, IntegerScale, Integers, Layer, Method, ModelId, Pyramid, Record,
    Samples, Statistics, Writer, record,
};
use terrane_geo::{Affine, CogWriter, Crs, Existing, Georeference, Kind, SampleType, Storage};
use terrane_networks::model::CONFIG_KEY;
use terrane_networks::weights::Weights;

use crate::models::untrained;
use crate::{complaint, stdout};

/// Runs the command in an address space of four gigabytes.
fn limited(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_terrane"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The head of a file that lies somewhere, with any size.
fn head(pyramid: Pyramid, method: Method) -> Header {
    Header {
        pyramid,
        method,
        affine: [500_000.0, 1.0, 0.0, 5_200_000.0, 0.0, -1.0],
        is_georeferenced: true,
        pixel_is_point: false,
        epsg: [32632, 0],
        geo_keys: GeoKeys::default(),
        wkt: String::new(),
        samples: Samples::default(),
        bound: ErrorBound::MaxError(0.1),
        statistics: Statistics::default(),
        overviews: Vec::new(),
        model: None,
    }
}

/// Writes a file without any data.
fn empty(path: &Path, (width, height): (u32, u32), side: u16) -> u64 {
    let pyramid = Pyramid::new(width, height, side, 1).unwrap();
    let file = BufWriter::new(File::create(path).unwrap());
    let writer = Writer::create(file, head(pyramid, Method::Integers), false).unwrap();
    writer
        .finish(Statistics::default(), Vec::new())
        .unwrap()
        .flush()
        .unwrap();
    path.metadata().unwrap().len()
}

/// Writes a file of one tile that holds a model of its own.
fn with_model(path: &Path, weights: &Weights, method: Method) {
    let bytes = weights.to_bytes().unwrap();
    let header = Header {
        model: Some(ModelId {
            sha256: sha256(&bytes),
            name: "hostile".into(),
            address: String::new(),
            embedded: None,
        }),
        ..head(Pyramid::new(256, 256, 256, 1).unwrap(), method)
    };
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = Writer::create(file, header, true).unwrap();
    writer.embed_model(&bytes).unwrap();
    writer
        .finish(Statistics::default(), Vec::new())
        .unwrap()
        .flush()
        .unwrap();
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).into()
}

fn no_unfinished_file(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(
            path.extension() != Some("part".as_ref()),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_model_that_says_more_than_it_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.trn");
    for (preset, method, key) in [
        ("functa-small", Method::Functa, "side"),
        ("functa-small", Method::Functa, "latent"),
        ("functa-small", Method::Functa, "width"),
        ("functa-small", Method::Functa, "inner_steps"),
        ("transinr-small", Method::TransInr, "side"),
        ("huvr-siren-small", Method::HuvrSiren, "depth"),
        ("huvr-siren-small", Method::HuvrSiren, "side"),
        ("huvr-small", Method::Huvr, "width"),
    ] {
        let mut weights = untrained(preset);
        let text = weights.metadata[CONFIG_KEY].clone();
        let (before, after) = text.split_once("[method]").unwrap();
        let mut lines: Vec<String> = after.lines().map(str::to_owned).collect();
        let line = lines
            .iter_mut()
            .find(|line| line.split('=').next().unwrap().trim() == key);
        let Some(line) = line else {
            panic!("{preset} has no {key}: {after}");
        };
        *line = format!("{key} = 16384");
        let text = format!("{before}[method]{}", lines.join("\n"));
        weights.metadata.insert(CONFIG_KEY.into(), text);
        with_model(&file, &weights, method);
        for arguments in [
            vec!["decode", "x.trn", "y.tif"],
            vec!["verify", "x.trn"],
            vec!["query", "x.trn", "--at", "500010,5199990"],
        ] {
            let output = limited(folder.path(), &arguments);
            let text = String::from_utf8(output.stderr.clone()).unwrap();
            assert!(
                matches!(output.status.code(), Some(1 | 2)) && text.starts_with("terrane: "),
                "{preset} {key} {arguments:?}: {:?} {text}",
                output.status
            );
        }
        no_unfinished_file(folder.path());
    }
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(empty(&at("square.trn"), (1 << 20, 1 << 20), 4096) < 100_000);
    assert!(empty(&at("wide.trn"), (1 << 30, 16_384), 4096) < 2_000_000);
    for name in ["square.trn", "wide.trn"] {
        for arguments in [
            vec!["decode", name, "y.tif"],
            vec!["derive", name, "y.tif", "--product", "slope"],
            vec![
                "derive",
                name,
                "y.tif",
                "--product",
                "slope",
                "--mode",
                "grid",
            ],
        ] {
            let text = complaint(&limited(folder.path(), &arguments));
            assert!(
                text.contains("of memory, and the limit is 2048 MB")
                    && text.contains("raise it with --memory-limit"),
                "{arguments:?}: {text}"
            );
            no_unfinished_file(folder.path());
        }
        stdout(&limited(folder.path(), &["info", name]));
    }
    // A part of it, which needs little, can be had.
    let part = ["--bbox", "600000,5000000,600100,5000100"];
    let decode = [&["decode", "square.trn", "part.tif"], &part[..]].concat();
    assert!(stdout(&limited(folder.path(), &decode)).contains("100 x 100"));
    // And so can more, for who says so.
    let text = complaint(&limited(
        folder.path(),
        &["decode", "square.trn", "y.tif", "--memory-limit", "0.5"],
    ));
    assert!(text.contains("the limit is 500 MB"), "{text}");
}

#[test]
fn a_model_of_sixteen_gigabytes_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trn");
    let mut weights = Weights::default();
    weights.metadata.insert("a".into(), "b".into());
    with_model(&path, &weights, Method::HuvrSiren);
    // The head says that the model is what follows the file, and the file is made so long.
    let mut bytes = std::fs::read(&path).unwrap();
    let (start, length) = (bytes.len() as u64, (1_u64 << 34) - 4096);
    let chunk = bytes.windows(4).position(|tag| tag == b"MODL").unwrap();
    let count = u32::from_le_bytes(bytes[chunk + 4..chunk + 8].try_into().unwrap());
    // Offset, length and checksum of the model end the chunk.
    let extent = chunk + 8 + count as usize - 20;
    bytes[extent..extent + 8].copy_from_slice(&start.to_le_bytes());
    bytes[extent + 8..extent + 16].copy_from_slice(&length.to_le_bytes());
    bytes[16..24].copy_from_slice(&(start + length).to_le_bytes());
    seal(&mut bytes);
    let mut file = File::create(&path).unwrap();
    file.write_all(&bytes).unwrap();
    file.set_len(start + length).unwrap();
    drop(file);
    for arguments in [
        ["verify", "x.trn"].as_slice(),
        &["decode", "x.trn", "y.tif"],
    ] {
        let text = complaint(&limited(folder.path(), arguments));
        assert!(
            text.contains("the model inside the file would take")
                && text.contains("--memory-limit"),
            "{text}"
        );
    }
}

/// Gives a head that was changed its checksum: its last four bytes, by the length that it states.
fn seal(file: &mut [u8]) {
    let checked = usize::from(u16::from_le_bytes([file[10], file[11]])) - 4;
    let crc = crc32c(&file[..checked]);
    file[checked..checked + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Castagnoli's checksum, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn a_record_of_another_method_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trn");
    let generate = ["generate", "dem.tif", "--size", "100x90", "--seed", "3"];
    stdout(&crate::terrane(folder.path(), &generate));
    stdout(&crate::terrane(
        folder.path(),
        &["encode", "dem.tif", "x.trn"],
    ));
    let bytes = std::fs::read(&path).unwrap();
    // Byte 35 of the head is the method: 5 is the context codec.
    let method = 8 + 2 + 2 + 4 + 8 + 4 + 4 + 2 + 1;
    assert_eq!(bytes[method], 5);
    for other in [0, 4] {
        let mut changed = bytes.clone();
        changed[method] = other;
        seal(&mut changed);
        std::fs::write(&path, &changed).unwrap();
        let output = limited(folder.path(), &["verify", "x.trn"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("its kind does not belong to the file's method"),
            "{text}"
        );
    }
}

#[test]
fn rasters_far_apart_take_memory_by_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, x: f64, y: f64| {
        let path = folder.path().join(name);
        let place = Georeference::new(Affine::north_up(x, y, 1.0), Crs::projected(32632, None));
        let storage = Storage::metres(SampleType::F32, Some(-9999.0));
        let output = terrane_geo::Output::new(&path, Existing::Refuse, Kind::Raster);
        let mut writer = CogWriter::create(&output, (100, 100), place, storage).unwrap();
        for row in 0..100 {
            let heights: Vec<f64> = (0..100)
                .map(|column| f64::from(row * column) / 50.0)
                .collect();
            writer.write_rows(&heights).unwrap();
        }
        writer.finish().unwrap();
    };
    write("a.tif", 0.0, 0.0);
    write("b.tif", 1e7, 0.0);
    write("c.tif", 1e6, -1e6);
    for (other, columns) in [("b.tif", 10_000_100), ("c.tif", 1_000_100)] {
        let encode = [
            "encode",
            "a.tif",
            other,
            "x.trn",
            "--overwrite",
            "--jobs",
            "2",
        ];
        // A tenth of what it took for a tenth of the distance.
        let output = Command::new("sh")
            .args(["-c", "ulimit -v 1500000; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_terrane"))
            .args(encode)
            .current_dir(folder.path())
            .output()
            .unwrap();
        stdout(&output);
        let info = crate::json(&limited(folder.path(), &["info", "x.trn", "--json"]));
        assert_eq!(info["width"], columns);
        assert_eq!(info["pixels"], 20_000);
        let at = |x: f64, y: f64| {
            let point = format!("{x},{y}");
            let query = ["query", "x.trn", "--json", "--at", &point];
            crate::json(&limited(folder.path(), &query))[0]["height_m"].as_f64()
        };
        let (x, y) = if other == "b.tif" {
            (1e7, 0.0)
        } else {
            (1e6, -1e6)
        };
        assert!((at(50.5, -50.5).unwrap() - 50.0).abs() < 0.1 + 0.5);
        assert!((at(x + 50.5, y - 50.5).unwrap() - 50.0).abs() < 0.1 + 0.5);
        assert_eq!(at(x / 2.0, y / 2.0 - 50.0), None);
    }
}

/// A tile that the encoder would never write, for the tests above to lean on: integers in any file are fine.
#[test]
fn integers_belong_to_every_method() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trn");
    let weights = untrained("huvr-siren-small");
    let bytes = weights.to_bytes().unwrap();
    let header = Header {
        model: Some(ModelId {
            sha256: sha256(&bytes),
            name: "small".into(),
            address: String::new(),
            embedded: None,
        }),
        ..head(Pyramid::new(256, 256, 256, 1).unwrap(), Method::HuvrSiren)
    };
    let mut file = File::create(&path).unwrap();
    let mut writer = Writer::create(&mut file, header, true).unwrap();
    writer.embed_model(&bytes).unwrap();
    let tile = Record {
        missing: None,
        flats: None,
        layer: Layer::Integers(Integers {
            scale: IntegerScale::Step {
                origin_m: 400.0,
                step_m: 1.0,
            },
            values: vec![0; 256 * 256],
        }),
        residual: None,
        corrections: None,
    };
    let bytes = tile.to_bytes(0, 256, None);
    record::check(&bytes, 0).unwrap();
    writer.tree(0, &[bytes]).unwrap();
    writer.finish(Statistics::default(), Vec::new()).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    drop(file);
    stdout(&limited(folder.path(), &["verify", "x.trn"]));
}

/// A sparse raster of a few kilobytes that says it has a thousand million columns, all of them at sea level.
#[test]
fn a_small_raster_cannot_ask_for_much_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Of one row: what waits for the overviews is a sixteenth of it.
    let (width, rows) = (1_u32 << 30, 1_u32);
    let side = 1_u32 << 16;
    let blocks = (width / side) as usize;
    // A TIFF of one directory whose tiles are all absent.
    let mut file = vec![b'I', b'I', 42, 0, 8, 0, 0, 0];
    let tags: [(u16, u16, u32, u32); 11] = [
        (256, 4, 1, width),
        (257, 4, 1, rows),
        (258, 3, 1, 8),
        (259, 3, 1, 8),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
        (322, 4, 1, side),
        (323, 4, 1, 16),
        (324, 4, blocks as u32, 0),
        (325, 4, blocks as u32, 0),
        (339, 3, 1, 1),
    ];
    let zeros = 8 + 2 + 12 * tags.len() as u32 + 4;
    file.extend((tags.len() as u16).to_le_bytes());
    for (code, kind, count, value) in tags {
        let value = if code == 324 || code == 325 {
            zeros
        } else {
            value
        };
        file.extend(code.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.resize(file.len() + 4 * blocks, 0);
    std::fs::write(folder.path().join("sea.tif"), &file).unwrap();
    assert!(file.len() < 100_000);
    let text = complaint(&limited(
        folder.path(),
        &["encode", "sea.tif", "x.trn", "--memory-limit", "0.02"],
    ));
    assert!(
        text.contains("the overviews of so wide a raster") && text.contains("--memory-limit"),
        "{text}"
    );
    no_unfinished_file(folder.path());
}
