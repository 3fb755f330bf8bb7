//! A folder with inputs, a command, and what it makes of them where nothing fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::layer::{self, Outcome};

/// All files of a folder by name; folders end in a slash.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A command and its folder.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) folder: TempDir,
    pub(crate) arguments: Vec<String>,
    /// Before the command.
    pub(crate) before: Files,
    /// After it.
    pub(crate) after: Files,
    /// What it says.
    pub(crate) stdout: String,
    /// Calls on files of the undisturbed command.
    pub(crate) calls: Vec<layer::Call>,
    /// Whether a journal may stay after a failure.
    pub(crate) is_resumable: bool,
}

/// Words of a command line.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The files of a folder now.
pub(crate) fn files(folder: &Path) -> Files {
    fn add(files: &mut Files, folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                add(files, &entry.path(), &format!("{name}/"));
                files.insert(format!("{name}/"), Vec::new());
            } else {
                files.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut found = Files::new();
    add(&mut found, folder, "");
    found
}

/// A folder with what some commands make.
fn prepared(lines: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // As the kernel names it.
    let path = folder.path().canonicalize().unwrap();
    assert_eq!(path, folder.path());
    for line in lines {
        let outcome = layer::run_plainly(&path, &words(line));
        assert_eq!(outcome.code, Some(0), "{line}: {}", outcome.stderr);
    }
    folder
}

impl Scene {
    /// Prepares a folder by some commands, and notes what the last one does.
    fn new(name: &'static str, prepare: &[&str], line: &str) -> Self {
        Self::of(name, prepared(prepare), line)
    }

    /// A scene in a folder that is prepared.
    pub(crate) fn of(name: &'static str, folder: TempDir, line: &str) -> Self {
        let mut scene = Self {
            name,
            arguments: words(line),
            before: files(folder.path()),
            folder,
            after: Files::new(),
            stdout: String::new(),
            calls: Vec::new(),
            is_resumable: line.contains("--resumable"),
        };
        let outcome = layer::run(scene.path(), &scene.arguments, None);
        assert_eq!(outcome.code, Some(0), "{line}: {}", outcome.stderr);
        scene.after = files(scene.path());
        assert!(!scene.after.keys().any(|name| is_leftover(name)), "{name}");
        scene.stdout = outcome.stdout;
        scene.calls = outcome.calls;
        scene.reset();
        scene
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the folder as it was. What did not change is not touched: plans know rasters by their times.
    pub(crate) fn reset(&self) {
        let now = files(self.path());
        for name in now.keys().filter(|name| !self.before.contains_key(*name)) {
            let path = self.path().join(name);
            let _ = if name.ends_with('/') {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
        for (name, bytes) in &self.before {
            if name.ends_with('/') {
                std::fs::create_dir_all(self.path().join(name)).unwrap();
            } else if now.get(name) != Some(bytes) {
                std::fs::write(self.path().join(name), bytes).unwrap();
            }
        }
    }

    /// Runs the command on top of the layer.
    pub(crate) fn run(&self, plan: &str) -> Outcome {
        layer::run(self.path(), &self.arguments, Some(plan))
    }

    /// What is wrong with the folder after a run that came to some end: a complete output or none, and nothing else but
    /// what a resumable or a killed command leaves.
    pub(crate) fn fault_of_files(&self, is_success: bool, is_killed: bool) -> Option<String> {
        let mut now = files(self.path());
        now.retain(|name, _| {
            let is_journal = self.is_resumable && !is_success && has_ending(name, "journal");
            // The folder of the shards is there before the first of them.
            let is_folder = name == "plan.shards/";
            !(is_journal || is_folder || is_killed && is_part(name))
        });
        let without_journal = |files: &Files| {
            let mut files = files.clone();
            files.retain(|name, _| {
                name != "plan.shards/" && !(self.is_resumable && has_ending(name, "journal"))
            });
            files
        };
        let is_complete = now == without_journal(&self.after);
        let is_fine = if is_success {
            is_complete
        } else {
            // What is killed may have been done already.
            now == without_journal(&self.before) || is_killed && is_complete
        };
        (!is_fine).then(|| {
            let differ = |name: &String| {
                let (was, will, is) = (self.before.get(name), self.after.get(name), now.get(name));
                let state = match is {
                    None => "gone",
                    Some(_) if is == will => "new",
                    Some(_) if is == was => "old",
                    Some(_) => "other",
                };
                (is != was).then(|| format!("{name} {state}"))
            };
            let names: BTreeSet<&String> = self.before.keys().chain(now.keys()).collect();
            let changed: Vec<String> = names.into_iter().filter_map(differ).collect();
            format!("changed files: {changed:?}")
        })
    }

    /// What is wrong with the sentence of a failed run: there is one, and it names a file.
    pub(crate) fn fault_of_words(outcome: &Outcome) -> Option<String> {
        // As JSON where results are JSON.
        let starts = ["terrane: ", "{\"error\":\""];
        let is_sentence = starts.iter().any(|start| outcome.stderr.starts_with(start))
            && outcome.stderr.trim_end().lines().count() == 1
            && !outcome.stderr.contains("a fault in terrane");
        let endings = [
            ".tif", ".trn", ".trs", "json", ".fgb", ".pmtiles", ".journal", ".site", ".aux",
        ];
        if !is_sentence {
            Some("no sentence".to_owned())
        } else if !endings.iter().any(|ending| outcome.stderr.contains(ending)) {
            Some("no file is named".to_owned())
        } else {
            None
        }
    }

    /// Goes on after a run that failed or was killed: the same command, undisturbed, gives the same as ever, and whatever a
    /// killed one left is gone once it is old enough.
    pub(crate) fn fault_of_going_on(&self) -> Option<String> {
        self.age();
        let outcome = layer::run_plainly(self.path(), &self.arguments);
        let fault = if outcome.code == Some(0) {
            self.fault_of_files(true, false)
        } else {
            Some("it fails".to_owned())
        };
        fault.map(|fault| format!("run again: {fault}; {}", outcome.stderr.trim_end()))
    }

    /// Makes unfinished files, and what says that a folder is, older than any that is still being written.
    fn age(&self) {
        let old = SystemTime::now() - Duration::from_mins(2);
        let is_file = |name: &&String| is_part(name) && !name.contains(".part/");
        for name in files(self.path()).keys().filter(is_file) {
            let file = File::options().write(true).open(self.path().join(name));
            file.unwrap().set_modified(old).unwrap();
        }
    }

    /// Whether nothing changed at all.
    pub(crate) fn is_untouched(&self) -> bool {
        files(self.path()) == self.before
    }
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == ending)
}

/// Whether something is unfinished, in an unfinished folder, or the lock of one.
pub(crate) fn is_part(name: &str) -> bool {
    let is_part = |name: &str| has_ending(name, "part") || has_ending(name, "lock");
    let mut parts = name.split('/');
    parts.any(|name| name.starts_with(".terrane-") && is_part(name))
}

fn is_leftover(name: &str) -> bool {
    is_part(name) || has_ending(name, "journal")
}

/// Trees of 128 pixels: six of them.
const GENERATE: &str = "generate dem.tif --size 260x140 --seed 3 --jobs 1";
const CODING: &str = "--tile 16 --method integers --jobs 1";

/// An encoding that keeps a journal.
pub(crate) fn resumable() -> Scene {
    let old = format!("encode dem.tif x.trn {CODING} --max-error 1");
    let line = format!("encode dem.tif x.trn {CODING} --resumable --overwrite");
    Scene::new("encode --resumable", &[GENERATE, &old], &line)
}

/// An encoding that goes on where another was killed.
pub(crate) fn resumed() -> Scene {
    let scene = resumable();
    let writes = scene.calls.iter().filter(|call| {
        call.name == "write" && call.path.extension().is_some_and(|end| end == "journal")
    });
    // In the middle of its trees.
    let numbers: Vec<usize> = writes.map(|call| call.number).collect();
    let outcome = scene.run(&format!("{} kill", numbers[numbers.len() / 2]));
    assert_eq!(outcome.code, None);
    for name in files(scene.path()).keys().filter(|name| is_part(name)) {
        std::fs::remove_file(scene.path().join(name)).unwrap();
    }
    assert!(scene.path().join("x.trn.journal").exists());
    let line = scene.arguments.join(" ");
    Scene::of("encode --resumable, resumed", scene.folder, &line)
}

/// A shard of a plan.
pub(crate) fn shard() -> Scene {
    let plan = format!("shard plan dem.tif plan.json {CODING} --shards 3");
    let line = "shard encode plan.json --shard 1 --jobs 1";
    Scene::new("shard encode", &[GENERATE, &plan], line)
}

/// All shards of a plan, and an older file under the name.
pub(crate) fn merge() -> Scene {
    let plan = format!("shard plan dem.tif plan.json {CODING} --shards 3");
    let old = format!("encode dem.tif x.trn {CODING} --max-error 1");
    let shard = |number| format!("shard encode plan.json --shard {number} --jobs 1");
    let line = "shard merge plan.json x.trn --overwrite --jobs 1";
    let prepare = [GENERATE, &plan, &old, &shard(0), &shard(1), &shard(2)];
    Scene::new("shard merge", &prepare, line)
}

/// Commands that go on where they were stopped.
pub(crate) fn going_on() -> [Scene; 4] {
    [resumable(), resumed(), shard(), merge()]
}

/// Commands that write a file made of a raster or a terrane file: anew, and in place of an older one.
pub(crate) fn writing() -> Vec<Scene> {
    let small = "generate dem.tif --size 100x90 --seed 3 --jobs 1";
    let other = "generate b.tif --size 100x90 --seed 4 --jobs 1";
    let encoded = "encode dem.tif x.trn --tile 32 --profile fast --jobs 1";
    let changed = "encode b.tif y.trn --tile 32 --profile fast --jobs 1";
    let old = "decode y.trn out.tif --jobs 1";
    let old_lines = "contour y.trn out.geojson --interval 20 --jobs 1";
    let old_tiles = "tiles y.trn out.pmtiles --max-zoom 13 --jobs 1";
    let prepare = [small, other, encoded, changed];
    let with = |more: &'static str| [&prepare[..], &[more]].concat();
    vec![
        Scene::new("encode", &[small], encoded),
        Scene::new(
            "encode --overwrite --lossless",
            &[small, encoded],
            "encode dem.tif x.trn --method integers --lossless --overwrite --jobs 1",
        ),
        Scene::new(
            "encode a mosaic",
            &[small, other],
            "encode dem.tif b.tif x.trn --tile 32 --profile fast --bpp 2 --jobs 1",
        ),
        Scene::new(
            "shard plan",
            &[GENERATE],
            "shard plan dem.tif plan.json --tile 16 --shards 2 --hash --jobs 1",
        ),
        Scene::new("decode", &prepare, "decode x.trn out.tif --jobs 1"),
        Scene::new(
            "decode --overwrite",
            &with(old),
            "decode x.trn out.tif --overwrite --jobs 1",
        ),
        Scene::new(
            "derive",
            &with(old),
            "derive x.trn out.tif --product slope --overwrite --jobs 1",
        ),
        Scene::new(
            "contour",
            &with(old_lines),
            "contour x.trn out.geojson --interval 10 --overwrite --jobs 1",
        ),
        Scene::new(
            "contour to FlatGeobuf",
            &prepare,
            "contour x.trn out.fgb --interval 10 --jobs 1",
        ),
        Scene::new(
            "tiles",
            &with(old_tiles),
            "tiles x.trn out.pmtiles --max-zoom 13 --overwrite --jobs 1",
        ),
        Scene::new(
            "diff",
            &with(old),
            "diff x.trn y.trn out.tif --overwrite --jobs 1",
        ),
        Scene::new("generate", &[], small),
    ]
}

/// A folder that takes the place of another.
pub(crate) fn replaced_site() -> Scene {
    let small = "generate dem.tif --size 100x90 --seed 3 --jobs 1";
    let encoded = "encode dem.tif x.trn --tile 32 --profile fast --jobs 1";
    let old = "site y=x.trn map.site";
    Scene::new(
        "site --overwrite",
        &[small, encoded, old],
        "site x.trn map.site --overwrite",
    )
}

/// Commands that write a folder, and those that mend a damaged file.
pub(crate) fn others() -> [Scene; 4] {
    let small = "generate dem.tif --size 100x90 --seed 3 --jobs 1";
    let encoded = "encode dem.tif x.trn --tile 32 --profile fast --jobs 1";
    let repair = |name, line| {
        let folder = prepared(&[small, encoded]);
        let path = folder.path().join("x.trn");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        std::fs::write(path, bytes).unwrap();
        Scene::of(name, folder, line)
    };
    [
        Scene::new("site", &[small, encoded], "site x.trn map.site"),
        replaced_site(),
        repair("repair", "repair x.trn whole.trn --from dem.tif --jobs 1"),
        repair(
            "repair --in-place",
            "repair x.trn --from dem.tif --in-place --jobs 1",
        ),
    ]
}

/// Commands that only read.
pub(crate) fn reading() -> Vec<Scene> {
    let small = "generate dem.tif --size 100x90 --seed 3 --jobs 1";
    let encoded = "encode dem.tif x.trn --tile 32 --profile fast --jobs 1";
    let scene = |name, line| Scene::new(name, &[small, encoded], line);
    vec![
        scene("verify", "verify x.trn --against dem.tif --json --jobs 1"),
        scene("info", "info x.trn --parts --json --jobs 1"),
        scene(
            "query",
            "query x.trn --at 500050.5,5199950.5 --json --jobs 1",
        ),
    ]
}
