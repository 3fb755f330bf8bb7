//! One function for each kind of input.

use std::io::Write;
use std::sync::LazyLock;

use terrane::MODELS;
use terrane_codec::{FileModel, Terrain, TerrainOptions};
use terrane_context::{Codec, ProbabilityModel, Transform, unpack};
use terrane_format::coder::{AdaptiveBit, Decoder};
use terrane_format::integers::{self, Prediction};
use terrane_format::tokens::{Coding, TokenTables, Tokens, alphabet};
use terrane_format::{MemoryLimit, ParentMask, Reader, Record, Window, mask};

use crate::memory::MemoryFile;
use crate::mend::{mend, put_crc, record_crc, some_tiles};
use crate::{c, fixture, served};

/// What one input may take.
const MEMORY: MemoryLimit = MemoryLimit { bytes: 256 << 20 };
/// Tiles of a file that are decoded at most.
const TILES: usize = 24;
/// Pixels of a tile that are decoded at most; others only cost time.
const PIXELS: u64 = 1 << 18;
/// Pixels across of the tiles whose parts are inputs: more only cost time.
pub const SIDE: u8 = 80;
/// Pixels across of the windows that are read.
const ACROSS: usize = 192;

/// Channels of tokens at most.
const CHANNELS: usize = 4;
/// The small model of the golden files.
const SMALL_MODEL: &[u8] = include_bytes!("../../../conformance/context.safetensors");

/// A kind of input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What is done with an input.
    pub run: fn(&[u8]),
}

/// All kinds.
pub const TARGETS: &[Target] = &[
    Target {
        name: "head",
        run: head,
    },
    Target {
        name: "file",
        run: file,
    },
    Target {
        name: "record",
        run: record,
    },
    Target {
        name: "mask",
        run: missing,
    },
    Target {
        name: "coder",
        run: coder,
    },
    Target {
        name: "tokens",
        run: tokens,
    },
    Target {
        name: "model",
        run: model,
    },
    Target {
        name: "payload",
        run: payload,
    },
    Target {
        name: "geotiff",
        run: geotiff,
    },
    Target {
        name: "plan",
        run: plan,
    },
    Target {
        name: "journal",
        run: journal,
    },
    Target {
        name: "shard",
        run: shard,
    },
    Target {
        name: "repair",
        run: repair,
    },
    Target {
        name: "points",
        run: points,
    },
    Target {
        name: "http",
        run: http,
    },
    Target {
        name: "c",
        run: c::run,
    },
];

/// The kind of a name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}

/// A head with its checksum, and the pages of the index.
fn head(data: &[u8]) {
    let Ok(reader) = Reader::open(Box::new(MemoryFile(mend(data.to_vec())))) else {
        return;
    };
    for page in 0..reader.page_trees().len().min(64) {
        let _ = reader.check_page(page);
    }
    let _ = reader.check_layout();
    let _ = reader.embedded_model(MEMORY);
}

/// A whole file: everything that can be read of it.
fn file(data: &[u8]) {
    static SMALL: LazyLock<Option<FileModel>> =
        LazyLock::new(|| MODELS.load(SMALL_MODEL, MEMORY).ok());
    let bytes = mend(data.to_vec());
    let Ok(reader) = Reader::open(Box::new(MemoryFile(bytes.clone()))) else {
        return;
    };
    // The small model of the golden files need not be inside the file, which keeps inputs short.
    let named = reader.header().model.as_ref().map(|model| model.sha256);
    let small = SMALL.as_ref();
    let small = small.filter(|model| named == Some(model.sha256()));
    let options = TerrainOptions {
        models: MODELS,
        model: small.cloned(),
        memory: MEMORY,
    };
    let Ok(terrain) = Terrain::open(Box::new(MemoryFile(bytes)), options) else {
        return;
    };
    let pyramid = &terrain.header().pyramid;
    if u64::from(pyramid.side()).pow(2) > PIXELS {
        return;
    }
    for tile in some_tiles(pyramid, TILES) {
        let _ = terrain.tile(tile);
    }
    if let Some((width, height)) = pyramid.size(0) {
        let window = Window {
            column: 0,
            row: 0,
            width: ACROSS.min(width as usize),
            height: ACROSS.min(height as usize),
        };
        let _ = terrain.read(0, window);
        if let Ok(surface) = terrain.surface() {
            let [x, across, _, y, _, down] = terrain.header().affine;
            let _ = surface.at(x + 1.5 * across, y + 1.5 * down);
        }
    }
    if pyramid.tiles() <= TILES as u64 {
        let _ = terrane::verify(
            &terrain,
            &[],
            &terrane_geo::RasterOptions::default(),
            1,
            &mut |_, _, _, _| {},
        );
        let _ = terrane::parts::<terrane::Error>(terrain.reader(), &mut |_, _| Ok(()));
    }
}

/// Sizes that an input states in its first bytes, and the rest.
fn sized(data: &[u8]) -> Option<([usize; 2], u8, &[u8])> {
    let (&[width, height, choice], rest) = data.split_first_chunk::<3>()?;
    let size = [width, height].map(|side| usize::from(side % SIDE) + 1);
    Some((size, choice, rest))
}

/// A mask above one of a size, made of bits.
fn above([width, height]: [usize; 2], seed: u8) -> (Vec<bool>, usize) {
    let [columns, rows] = [width.div_ceil(2), height.div_ceil(2)];
    let missing = (0..columns * rows).map(|index| (index * 7 + usize::from(seed)) % 5 == 0);
    (missing.collect(), columns)
}

/// Every other time there is a tile above, with such a mask.
fn parent((missing, columns): &(Vec<bool>, usize), choice: u8) -> Option<ParentMask<'_>> {
    (choice % 2 == 1).then_some(ParentMask {
        missing: Some(missing),
        width: *columns,
        column: 0,
        row: 0,
    })
}

/// The record of a tile: mask, flat areas, layer, residual, corrections.
fn record(data: &[u8]) {
    let Some(([width, height], choice, bytes)) = sized(data) else {
        return;
    };
    let mut bytes = bytes.to_vec();
    let Some(crc) = record_crc(&bytes, 0) else {
        return;
    };
    put_crc(&mut bytes, 0, crc);
    let window = Window {
        column: 0,
        row: 0,
        width,
        height,
    };
    let above = above([width, height], choice);
    let parent = parent(&above, choice);
    let parent = parent.as_ref();
    if let Ok(record) = Record::parse(&bytes, 0, window, parent) {
        let again = record.to_bytes(0, width, parent);
        let again = Record::parse(&again, 0, window, parent);
        assert!(again.is_ok(), "what was read can be written and read again");
        if let Some(corrections) = &record.corrections {
            let _ = corrections.metres(width);
        }
        if let Some(flats) = &record.flats {
            flats.apply(&mut vec![0.0; width * height]);
        }
    }
}

/// A mask, alone or below another.
fn missing(data: &[u8]) {
    let Some((size @ [width, height], choice, bytes)) = sized(data) else {
        return;
    };
    let above = above(size, choice);
    let parent = parent(&above, choice);
    let parent = parent.as_ref();
    if let Ok(found) = mask::decode(bytes, width, height, parent) {
        let coded = mask::encode(&found, width, parent);
        let again = mask::decode(&coded, width, height, parent);
        assert_eq!(again.as_deref().ok(), Some(found.as_slice()));
    }
}

/// The entropy decoder, and the integers that it codes.
fn coder(data: &[u8]) {
    let Some(([width, height], choice, bytes)) = sized(data) else {
        return;
    };
    let prediction = if choice % 2 == 0 {
        Prediction::Median
    } else {
        Prediction::Zero
    };
    let (missing, _) = above([2 * width, 2 * height], choice);
    let missing = (choice % 4 < 2).then_some(missing.as_slice());
    if let Ok(values) = integers::decode(bytes, width, width * height, prediction, missing) {
        let coded = integers::encode(&values, width, prediction, missing);
        let again = integers::decode(&coded, width, width * height, prediction, missing);
        assert_eq!(again.as_deref().ok(), Some(values.as_slice()));
    }
    let mut decoder = if choice % 8 < 4 {
        Decoder::new(bytes)
    } else {
        Decoder::grouped(bytes)
    };
    let mut bit = AdaptiveBit::default();
    for operation in 0..width * height {
        match operation % 3 {
            0 => _ = decoder.bit(&mut bit),
            1 => _ = decoder.raw(1 + u32::from(choice) % 64),
            _ => {
                let target = decoder.decode_target();
                decoder.consume(target & !15, 16);
            }
        }
    }
    let _ = decoder.end();
}

/// Tokens, by tables that the input states, or by others where those are none.
fn tokens(data: &[u8]) {
    let Some(([width, height], choice, bytes)) = sized(data) else {
        return;
    };
    let channels = width % CHANNELS + 1;
    let stated = |bits: u8| {
        let numbers = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&pair| u16::from_le_bytes(pair));
        numbers.take(channels * alphabet(bits)).collect()
    };
    let counts = |bits: u8, channel: usize| {
        let seed = channel + usize::from(choice);
        let counts = (0..alphabet(bits)).map(|index| (index * 31 + seed) % 17);
        counts.map(|count| count as u64).collect()
    };
    let tables = TokenTables::from_frequencies(channels, stated)
        .or_else(|_| TokenTables::from_counts(channels, counts));
    let tables = tables.expect("every count gives a table");
    let count = channels * height;
    if let Ok(tokens) = Tokens::parse(bytes, &tables, count) {
        for coding in [Coding::Shortest, Coding::Tables, Coding::Fixed] {
            let again = tokens.to_bytes(&tables, coding);
            let again = again.and_then(|bytes| Tokens::parse(&bytes, &tables, count));
            assert_eq!(again.ok().as_ref(), Some(&tokens));
        }
    }
}

/// A model of the context codec, as it is or packed, which then decodes something.
fn model(data: &[u8]) {
    let Ok(data) = unpack(data.to_vec()) else {
        return;
    };
    let data = data.as_slice();
    let _ = MODELS.load(data, MEMORY);
    if let Ok(model) = ProbabilityModel::from_bytes(data)
        && model.network.widths.trunk <= 32
    {
        let codec = Codec::new(model);
        let _ = codec.decode(data, [24, 20], Transform::Lossy, 0);
    }
}

/// Symbols for the context codec, by the small model of the golden files.
fn payload(data: &[u8]) {
    static CODEC: LazyLock<Option<Codec>> = LazyLock::new(|| {
        ProbabilityModel::from_bytes(SMALL_MODEL)
            .ok()
            .map(Codec::new)
    });
    let (Some(codec), Some((size, choice, bytes))) = (CODEC.as_ref(), sized(data)) else {
        return;
    };
    let transform = if choice % 2 == 0 {
        Transform::Lossy
    } else {
        Transform::Lossless
    };
    let finer = usize::from(choice / 2 % 4);
    let Ok(picture) = codec.decode(bytes, size, transform, finer) else {
        return;
    };
    let [width, height] = size.map(|side| (2 * side).min(96));
    let part = picture.whole();
    if finer > 0 && [width, height] == size.map(|side| 2 * side) {
        let _ = codec.decode_details(part, bytes, [width, height], finer - 1);
    }
}

/// A file of an input, for what reads by name.
fn named(data: &[u8]) -> Option<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new().ok()?;
    file.write_all(data).ok()?;
    Some(file)
}

/// A GeoTIFF.
fn geotiff(data: &[u8]) {
    let Some(file) = named(data) else { return };
    let Ok(raster) = terrane_geo::open(&[file.path()]) else {
        return;
    };
    let levels = &raster.info().levels;
    for level in [0, levels.len() - 1] {
        let (width, height) = levels[level];
        let window = Window {
            column: 0,
            row: 0,
            width: width.min(ACROSS),
            height: height.min(ACROSS),
        };
        let _ = raster.read(level, window);
    }
}

/// A plan of shards.
fn plan(data: &[u8]) {
    if let Some(file) = named(data) {
        let _ = terrane::Plan::read(file.path());
    }
}

/// A journal of an encoding that goes on: whatever is in it, the file that comes of it is whole.
fn journal(data: &[u8]) {
    fixture::go_on(data);
}

/// A shard that is merged.
fn shard(data: &[u8]) {
    fixture::merge(data);
}

/// A damaged file, which is repaired.
fn repair(data: &[u8]) {
    fixture::repair(data);
}

/// A table of points.
fn points(data: &[u8]) {
    let columns = ("a".to_owned(), "b".to_owned());
    for columns in [None, Some(&columns)] {
        let Ok(table) = terrane::parse_points(data, columns) else {
            continue;
        };
        let rows = table.points.iter().map(|(x, y)| format!("{x:?},{y:?}\n"));
        let again = terrane::parse_points(rows.collect::<String>().as_bytes(), None);
        assert_eq!(again.ok().map(|again| again.points), Some(table.points));
    }
}

/// Requests to the tile server.
fn http(data: &[u8]) {
    served::ask(data);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// All golden files, by name.
    pub(crate) fn golden_files() -> Vec<(String, Vec<u8>)> {
        let cases = files(&root().join("conformance"));
        let golden: Vec<_> = cases
            .iter()
            .filter_map(|case| {
                Some((
                    case.display().to_string(),
                    std::fs::read(case.join("input.trn")).ok()?,
                ))
            })
            .collect();
        assert!(golden.len() > 15);
        golden
    }

    #[test]
    fn every_finding_is_answered() {
        for target in TARGETS {
            for path in files(&root().join("fuzz/findings").join(target.name)) {
                (target.run)(&std::fs::read(&path).unwrap());
            }
            // What every target must bear.
            for length in [0, 1, 3, 7, 64, 500] {
                (target.run)(&vec![0; length]);
                (target.run)(&vec![0xff; length]);
            }
        }
    }

    /// Golden files with bytes changed here and there, whose checksums are right.
    #[test]
    fn changed_files_are_read_or_refused() {
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for (_, golden) in golden_files() {
            if golden.len() > 100_000 {
                continue;
            }
            for _ in 0..20 {
                let mut changed = golden.clone();
                for _ in 0..=random(4) {
                    let at = random(changed.len());
                    changed[at] = random(256) as u8;
                }
                head(&changed);
                file(&changed);
                c::run(&[&[3, 0, 0, 0, 30, 30, 2, 1], changed.as_slice()].concat());
            }
        }
    }
}
