//! A raster that another program changes at any moment: cut off, replaced by another of the same length and time, or
//! written over in place and given its old time.

use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

use crate::scene::{Files, Scene, files, words};
use crate::{Extent, layer};

const KINDS: [&str; 3] = ["truncate", "replace", "rewrite"];

/// A command that reads `dem.tif`, and what it makes of the raster before and after the change.
struct Sources {
    scene: Scene,
    output: &'static str,
    /// What it writes from the one raster, and from the other.
    made: [Vec<u8>; 2],
    time: SystemTime,
}

/// Two rasters of the same length and time, `dem.tif` and `dem.tif.new`.
fn rasters(folder: &Path) -> SystemTime {
    let time = SystemTime::now();
    for (name, base) in [("dem.tif", 100.0), ("dem.tif.new", 900.0)] {
        write(&folder.join(name), &plain_tiff(base), time);
    }
    time
}

/// A GeoTIFF without compression, whose heights lie at the same bytes whatever they are: parts of two would pass for one.
fn plain_tiff(base: f32) -> Vec<u8> {
    const WIDTH: u32 = 140;
    const HEIGHT: u32 = 160;
    const ROWS: u32 = 32;
    let strips = HEIGHT / ROWS;
    let head = 8;
    // Entries, and the place of the next directory.
    let lists = head + 2 + 10 * 12 + 4;
    let heights = lists + 2 * 4 * strips;
    let strip = WIDTH * ROWS * 4;
    let mut bytes = b"II*\0".to_vec();
    bytes.extend(head.to_le_bytes());
    bytes.extend(10_u16.to_le_bytes());
    let (short, long) = (3_u16, 4_u16);
    for (tag, kind, count, value) in [
        (256_u16, long, 1, WIDTH),
        (257, long, 1, HEIGHT),
        (258, short, 1, 32),
        (259, short, 1, 1),
        (262, short, 1, 1),
        (273, long, strips, lists),
        (277, short, 1, 1),
        (278, long, 1, ROWS),
        (279, long, strips, lists + 4 * strips),
        (339, short, 1, 3),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(u32::to_le_bytes(count));
        bytes.extend(u32::to_le_bytes(value));
    }
    bytes.extend([0; 4]);
    for index in 0..strips {
        bytes.extend((heights + index * strip).to_le_bytes());
    }
    for _ in 0..strips {
        bytes.extend(strip.to_le_bytes());
    }
    for index in 0..WIDTH * HEIGHT {
        let (x, y) = ((index % WIDTH) as f32, (index / WIDTH) as f32);
        bytes.extend((base + 9.0 * (x / 17.0).sin() * (y / 23.0).cos()).to_le_bytes());
    }
    bytes
}

fn write(path: &Path, bytes: &[u8], time: SystemTime) {
    std::fs::write(path, bytes).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

impl Sources {
    fn new(name: &'static str, prepare: &[&str], line: &str, output: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let time = rasters(folder.path());
        for line in prepare {
            let outcome = layer::run_plainly(folder.path(), &words(line));
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        }
        let scene = Scene::of(name, folder, line);
        let first = scene.after[output].clone();
        let sources = Self {
            scene,
            output,
            made: [first, Vec::new()],
            time,
        };
        sources.reset();
        let other = &sources.scene.before["dem.tif.new"];
        write(&sources.path().join("dem.tif"), other, time);
        let outcome = layer::run_plainly(sources.path(), &sources.scene.arguments);
        // A plan with hashes knows that it is another.
        let second = if outcome.code == Some(0) {
            std::fs::read(sources.path().join(output)).unwrap()
        } else {
            Vec::new()
        };
        sources.reset();
        let [first, _] = sources.made;
        assert_ne!(first, second);
        Self {
            made: [first, second],
            ..sources
        }
    }

    fn path(&self) -> &Path {
        self.scene.path()
    }

    fn reset(&self) {
        self.scene.reset();
        for name in ["dem.tif", "dem.tif.new"] {
            write(&self.path().join(name), &self.scene.before[name], self.time);
        }
    }

    /// What is wrong after a run: an output that is of neither raster, or anything that should not be there.
    fn fault(&self, outcome: &layer::Outcome) -> Option<String> {
        let mut now = files(self.path());
        let output = now.remove(self.output);
        let is_journal = |name: &str| self.scene.is_resumable && name.ends_with(".journal");
        let others: Vec<&String> = now
            .keys()
            .filter(|name| !self.scene.before.contains_key(*name))
            .filter(|name| outcome.code == Some(0) || !is_journal(name))
            .filter(|name| *name != "plan.shards/")
            .collect();
        if !others.is_empty() {
            return Some(format!("{others:?} stay behind"));
        }
        match (outcome.code, output) {
            (Some(0), Some(output)) => {
                (!self.made.contains(&output)).then(|| "the file is of neither raster".to_owned())
            }
            (Some(2), None) => Scene::fault_of_words(outcome),
            (code, output) => Some(format!("exit {code:?}, output {}", output.is_some())),
        }
    }

    fn change_at_calls(&self, extent: Extent, wrong: &mut Vec<String>) -> [usize; 2] {
        let (mut noticed, mut count) = (0, 0);
        for kind in KINDS {
            let calls = self.scene.calls.len();
            for index in extent.of(calls, 10, self.scene.name.len()) {
                let number = self.scene.calls[index].number;
                let raster = self.path().join("dem.tif");
                let outcome = self
                    .scene
                    .run(&format!("{number} {kind} {}", raster.display()));
                if outcome.touched().is_none() {
                    continue;
                }
                count += 1;
                noticed += usize::from(outcome.code == Some(2));
                if let Some(fault) = self.fault(&outcome) {
                    wrong.push(format!(
                        "{}: {kind} before call {:?}: {fault}; {}",
                        self.scene.name,
                        outcome.touched(),
                        outcome.stderr.trim_end()
                    ));
                }
                self.reset();
            }
        }
        [count, noticed]
    }
}

fn sources() -> Vec<Sources> {
    let encode = "encode dem.tif x.trn --tile 16 --method integers --jobs 1";
    let lossless = "encode dem.tif x.trn --tile 32 --profile fast --lossless --jobs 1";
    let plan = "shard plan dem.tif plan.json --tile 16 --method integers --shards 2 --jobs 1";
    let shard = "shard encode plan.json --shard 0 --jobs 1";
    let trs = "plan.shards/shard-000000.trs";
    vec![
        Sources::new("encode", &[], lossless, "x.trn"),
        Sources::new(
            "encode --resumable",
            &[],
            &format!("{encode} --resumable"),
            "x.trn",
        ),
        Sources::new("shard encode", &[plan], shard, trs),
        Sources::new(
            "shard encode, hashed",
            &[&format!("{plan} --hash")],
            shard,
            trs,
        ),
    ]
}

fn change(extent: Extent) {
    if !layer::is_there() {
        return;
    }
    let mut wrong = Vec::new();
    for sources in sources() {
        let [count, noticed] = sources.change_at_calls(extent, &mut wrong);
        println!(
            "{}: changed {count} times, noticed {noticed} times",
            sources.scene.name
        );
        assert!(noticed > 0);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_raster_that_changes_gives_no_file_of_both() {
    change(Extent::Quick);
}

#[test]
#[ignore = "hundreds of changes: just test-faults"]
fn a_raster_that_changes_at_every_call_gives_no_file_of_both() {
    change(Extent::Full);
}

/// A journal of one raster does not go on with another, whatever its length and time are.
#[test]
fn a_journal_does_not_go_on_with_another_raster() {
    if !layer::is_there() {
        return;
    }
    let line = "encode dem.tif x.trn --tile 16 --method integers --jobs 1 --resumable";
    let sources = Sources::new("encode --resumable", &[], line, "x.trn");
    let writes: Vec<usize> = sources
        .scene
        .calls
        .iter()
        .filter(|call| call.name == "write" && call.path.ends_with("x.trn.journal"))
        .map(|call| call.number)
        .collect();
    for kind in ["replace", "rewrite"] {
        let outcome = sources
            .scene
            .run(&format!("{} kill", writes[writes.len() / 2]));
        assert_eq!(outcome.code, None);
        let kept: Files = files(sources.path());
        assert!(kept["x.trn.journal"].len() > 100);
        let raster = sources.path().join("dem.tif");
        if kind == "replace" {
            std::fs::rename(sources.path().join("dem.tif.new"), &raster).unwrap();
        } else {
            write(&raster, &kept["dem.tif.new"], sources.time);
        }
        let outcome = layer::run_plainly(sources.path(), &sources.scene.arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let made = std::fs::read(sources.path().join("x.trn")).unwrap();
        assert!(made == sources.made[1], "{kind}: parts of both rasters");
        sources.reset();
    }
}
