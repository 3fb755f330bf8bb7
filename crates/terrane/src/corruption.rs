//! Files whose bytes were changed in every way: always noticed, named, and everything else decodes as before.
//! `just test-corruption` runs all of it.

use std::sync::{Arc, PoisonError, RwLock};

use terrane_codec::format::{
    ByteSource, Error as FormatError, LevelTile, MemoryLimit, Method, Reader,
};
use terrane_codec::random::Random;
use terrane_codec::tile::Tile;
use terrane_codec::{Terrain, TerrainOptions};

use crate::damage::tests::{file, settings};
use crate::{DamagedPart, Settings, Target, verify};

/// A file that is changed while nobody looks.
#[derive(Clone)]
struct Shared(Arc<RwLock<Vec<u8>>>);

impl ByteSource for Shared {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, FormatError> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        bytes.read(offset, length)
    }

    fn length(&self) -> Result<u64, FormatError> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        bytes.length()
    }
}

/// Where a part is, in bytes.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Head,
    Model,
    Page(usize),
    Tile(LevelTile),
}

/// A file, and what belongs where in it.
struct Subject {
    whole: Vec<u8>,
    now: Shared,
    /// From the first byte to the last, each with its end.
    parts: Vec<(usize, Part)>,
    tiles: Vec<(LevelTile, Option<Tile>)>,
    is_tree: bool,
}

/// What was noticed of a change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    changed: u64,
    by_open: u64,
    by_reading: u64,
}

impl Subject {
    fn new(whole: Vec<u8>) -> Self {
        let now = Shared(Arc::new(RwLock::new(whole.clone())));
        let terrain = open(&now).unwrap();
        let (reader, header) = (terrain.reader(), terrain.header());
        let mut parts = vec![(reader.head().len(), Part::Head)];
        let model = header.model.as_ref().and_then(|model| model.embedded);
        parts.extend(model.map(|at| ((at.offset + at.length) as usize, Part::Model)));
        for page in 0..reader.page_trees().len() {
            let at = reader.page_extent(page).unwrap();
            parts.push(((at.offset + at.length) as usize, Part::Page(page)));
        }
        let mut tiles = Vec::new();
        for number in 0..header.pyramid.tiles() {
            let tile = header.pyramid.tile(number).unwrap();
            if let Some(at) = reader.locate(tile).unwrap() {
                parts.push(((at.offset + at.length) as usize, Part::Tile(tile)));
            }
            tiles.push((tile, terrain.decode(tile).unwrap()));
        }
        parts.sort_by_key(|&(end, _)| end);
        assert_eq!(parts.last().unwrap().0, whole.len());
        let is_tree = header.method == Method::Context;
        Self {
            whole,
            now,
            parts,
            tiles,
            is_tree,
        }
    }

    /// The parts that are not as they were; `None` where the length is another.
    fn changed(&self) -> Option<Vec<Part>> {
        let now = self.now.0.read().unwrap();
        let mut found = Vec::new();
        let mut start = 0;
        for (end, part) in &self.parts {
            if now.get(start..*end)? != &self.whole[start..*end] {
                found.push(part.clone());
            }
            start = *end;
        }
        (now.len() == self.whole.len()).then_some(found)
    }

    /// Changes the file, looks whether that is noticed where it must be, and puts it right again.
    fn suffer(&self, change: impl FnOnce(&mut Vec<u8>), in_full: bool, counts: &mut Counts) {
        change(&mut self.now.0.write().unwrap());
        let changed = self.changed();
        if changed.as_deref() != Some(&[]) {
            counts.changed += 1;
            self.is_noticed(changed, in_full, counts);
        }
        self.now.0.write().unwrap().clone_from(&self.whole);
    }

    fn is_noticed(&self, changed: Option<Vec<Part>>, in_full: bool, counts: &mut Counts) {
        let reader = Reader::open(Box::new(self.now.clone()));
        let Some(changed) = changed.filter(|parts| !parts.contains(&Part::Head)) else {
            assert!(reader.is_err(), "a change of head or length goes unnoticed");
            counts.by_open += 1;
            return;
        };
        let reader = reader.unwrap();
        let lost_pages: Vec<usize> = changed
            .iter()
            .filter_map(|part| match part {
                Part::Page(page) => Some(*page),
                _ => None,
            })
            .collect();
        for part in &changed {
            let noticed = match part {
                Part::Head => unreachable!("a head is noticed by opening"),
                Part::Model => reader.embedded_model(MemoryLimit::default()).is_err(),
                Part::Page(page) => reader.check_page(*page).is_err(),
                Part::Tile(tile) => reader.bytes(*tile).is_err(),
            };
            assert!(noticed, "a change of {part:?} goes unnoticed");
        }
        counts.by_reading += 1;
        if in_full {
            self.is_named(&changed, &lost_pages);
        }
    }

    /// `verify` names exactly what was changed, and all else decodes to the same heights.
    fn is_named(&self, changed: &[Part], lost_pages: &[usize]) {
        let terrain = open(&self.now).unwrap();
        let pyramid = &terrain.header().pyramid;
        let found = verify(
            &terrain,
            &[],
            &terrane_geo::RasterOptions::default(),
            1,
            &mut |_, _, _, _| {},
        )
        .unwrap();
        assert!(!found.failed.is_empty(), "{changed:?}");
        let page_of = |tile: LevelTile| {
            let number = pyramid.tree_number(pyramid.root(tile)).unwrap();
            let mut pages = terrain.reader().page_trees();
            pages.position(|trees| trees.contains(&number)).unwrap()
        };
        // A record below a lost page cannot be looked at.
        let expected = |part: &&Part| match part {
            Part::Tile(tile) => !lost_pages.contains(&page_of(*tile)),
            _ => true,
        };
        let named: Vec<&DamagedPart> = found.damaged.iter().map(|damage| &damage.part).collect();
        assert_eq!(
            named.len(),
            changed.iter().filter(expected).count(),
            "{changed:?}: {named:?}"
        );
        for part in changed.iter().filter(expected) {
            let is_named = named.iter().any(|named| match (part, named) {
                (Part::Tile(tile), DamagedPart::Tile(named)) => tile == named,
                (Part::Model, DamagedPart::Model) => true,
                (Part::Page(page), DamagedPart::Index(trees)) => page_of(trees[0].0) == *page,
                _ => false,
            });
            assert!(is_named, "{part:?}: {named:?}");
        }
        let is_hit = |tile: LevelTile| {
            changed.iter().any(|part| match part {
                Part::Tile(hit) if self.is_tree => {
                    tile.level <= hit.level
                        && pyramid.root(tile) == pyramid.root(*hit)
                        && tile.above(hit.level - tile.level) == *hit
                }
                Part::Tile(hit) => tile == *hit,
                _ => false,
            })
        };
        for (tile, before) in &self.tiles {
            if is_hit(*tile) || lost_pages.contains(&page_of(*tile)) {
                assert!(
                    terrain.decode(*tile).is_err() || before.is_none(),
                    "{tile:?}"
                );
                continue;
            }
            let bits = |tile: &Option<Tile>| {
                tile.as_ref().map(|tile| {
                    let heights = tile.heights.iter().map(|height| height.to_bits());
                    (heights.collect::<Vec<_>>(), tile.missing.clone())
                })
            };
            assert!(
                bits(&terrain.decode(*tile).unwrap()) == bits(before),
                "{tile:?}"
            );
        }
    }

    /// One change of a kind at random.
    fn random_change(&self, random: &mut Random, file: &mut Vec<u8>) {
        let length = file.len();
        let at = random.below(length);
        match random.below(8) {
            // One flipped bit, or several.
            0..=3 => file[at] ^= 1 << random.below(8),
            4 => {
                for _ in 0..2 + random.below(30) {
                    let at = random.below(length);
                    file[at] ^= 1 << random.below(8);
                }
            }
            // A run of other bytes.
            5 => {
                let end = (at + 1 + random.below(600)).min(length);
                for byte in &mut file[at..end] {
                    *byte = random.below(256) as u8;
                }
            }
            // A sector of zeros, or the end cut off.
            6 => {
                let first = at / 512 * 512;
                let end = (first + 512).min(length);
                if random.below(4) == 0 {
                    file.truncate(first);
                } else {
                    file[first..end].fill(0);
                }
            }
            // Two records exchanged, as far as the shorter one goes.
            _ => {
                let other = random.below(length);
                let span = |at: usize| {
                    let index = self.parts.partition_point(|&(end, _)| end <= at);
                    let start = if index == 0 {
                        0
                    } else {
                        self.parts[index - 1].0
                    };
                    (start, self.parts[index].0 - start)
                };
                let ((a, first), (b, second)) = (span(at), span(other));
                if a != b {
                    for step in 0..first.min(second) {
                        file.swap(a + step, b + step);
                    }
                }
            }
        }
    }
}

fn open(file: &Shared) -> Result<Terrain, terrane_codec::Error> {
    let options = TerrainOptions {
        models: crate::MODELS,
        ..TerrainOptions::default()
    };
    Terrain::open(Box::new(file.clone()), options)
}

/// Small files: of a few tiles, of integers and of wavelets.
fn small() -> Vec<Subject> {
    [Method::Integers, Method::Context]
        .map(|method| Subject::new(file(40, 36, &settings(method, 16))))
        .into()
}

/// Larger ones: bounded, without loss, with two pages of the index, with a model inside.
fn large() -> Vec<Subject> {
    let lossless = Settings {
        target: Target::Lossless,
        ..settings(Method::Context, 32)
    };
    let embedding = Settings {
        embed_model: true,
        ..settings(Method::Context, 16)
    };
    vec![
        Subject::new(file(300, 270, &settings(Method::Context, 32))),
        Subject::new(file(300, 270, &lossless)),
        Subject::new(file(1100, 1000, &settings(Method::Integers, 16))),
        Subject::new(file(90, 70, &embedding)),
    ]
}

/// Every byte of small files changed in turn, by these values.
fn every_byte(changes: impl Fn(usize) -> Vec<u8>) -> Counts {
    let mut counts = Counts::default();
    for subject in small() {
        for offset in 0..subject.whole.len() {
            for (index, change) in changes(offset).into_iter().enumerate() {
                subject.suffer(|file| file[offset] ^= change, index == 0, &mut counts);
            }
        }
    }
    counts
}

fn random_changes(each: u64, in_full: u64) -> Counts {
    let mut counts = Counts::default();
    for (stream, subject) in large().iter().enumerate() {
        let mut random = Random::new(18, stream as u64);
        let mut own = Counts::default();
        while own.changed < each {
            let full = own.changed % in_full == 0;
            let change = |file: &mut Vec<u8>| subject.random_change(&mut random, file);
            subject.suffer(change, full, &mut own);
        }
        counts.changed += own.changed;
        counts.by_open += own.by_open;
        counts.by_reading += own.by_reading;
    }
    counts
}

#[test]
fn every_bit_of_a_small_file_counts() {
    let counts = every_byte(|_| (0..8).map(|bit| 1 << bit).collect());
    assert_eq!(counts.by_open + counts.by_reading, counts.changed);
    assert!(
        counts.changed > 15_000 && counts.by_open > 4000,
        "{counts:?}"
    );
}

#[test]
fn random_damage_of_larger_files_is_noticed_and_named() {
    let counts = random_changes(1000, 100);
    assert_eq!(counts.by_open + counts.by_reading, counts.changed);
    assert_eq!(counts.changed, 4000);
}

#[test]
#[ignore = "takes minutes: just test-corruption"]
fn all_other_values_of_every_byte_and_a_million_random_damages() {
    let bytes = every_byte(|_| (1..=255).collect());
    println!("every other value of every byte of two small files: {bytes:?}");
    assert_eq!(bytes.by_open + bytes.by_reading, bytes.changed);
    let random = random_changes(250_000, 1000);
    println!("a million random damages of four larger files: {random:?}");
    assert_eq!(random.by_open + random.by_reading, random.changed);
}
