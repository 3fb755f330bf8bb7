//! A small encoding that was stopped, the shards of a plan, and whole files: what journals, shards and damaged files are read by.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use terrane::{
    Checks, Destination, EncodeProgress, Hints, Plan, Profile, Repairing, Resources, Settings,
    Split, Target, shard_path,
};
use terrane_codec::Error as Stopped;
use terrane_format::{Method, Pyramid};
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Kind, Output, RasterOptions, SampleType,
    Storage,
};

use crate::mend::mend;
use crate::mend_kept::{mend_journal, mend_shard};

/// Columns and rows of the raster: two trees of the smallest tiles, one below the other.
const SIZE: (usize, usize) = (24, 140);
const TILE: u16 = 16;
/// What journals and shards are encoded to.
const BOUND: Target = Target::MaxError(0.5);

struct Fixture {
    folder: tempfile::TempDir,
    raster: PathBuf,
    journal: Vec<u8>,
    plan: Plan,
    pyramid: Pyramid,
    shard: Vec<u8>,
    /// Files of the raster, and how they were encoded.
    whole: Vec<(Settings, Vec<u8>)>,
}

type Any = Box<dyn std::error::Error>;

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    Fixture::new().expect("a small raster is encoded in a folder of this machine")
});

fn settings(target: Target) -> Settings {
    Settings {
        target,
        // The quickest: what is fuzzed here is what is around the tiles.
        method: Some(Method::Integers),
        tile: Some(TILE),
        ..Settings::default()
    }
}

impl Fixture {
    fn new() -> Result<Self, Any> {
        let folder = tempfile::tempdir()?;
        let raster = folder.path().join("hill.tif");
        let georeference = Georeference::new(
            Affine::north_up(2.6e6, 1.2e6, 1.0),
            Crs::projected(2056, None),
        );
        let storage = Storage::metres(SampleType::F32, Some(-9999.0));
        let out = Output::new(&raster, Existing::Refuse, Kind::Raster);
        let mut writer = CogWriter::create(&out, SIZE, georeference, storage)?;
        for row in 0..SIZE.1 {
            let heights: Vec<f64> = (0..SIZE.0)
                .map(|column| ((column * row) as f64 * 1e-3).sin() * 40.0 + row as f64 * 0.1)
                .collect();
            writer.write_rows(&heights)?;
        }
        writer.finish()?;
        let plan = Plan::new(
            std::slice::from_ref(&raster),
            &RasterOptions::default(),
            &settings(BOUND),
            Split::Shards(1),
            Checks::Time,
        )?;
        let shards = folder.path().join("shards");
        let made = plan.encode(0, &shards, None, Resources::default(), &mut |_| Ok(()))?;
        let whole = folder.path().join("whole.trn");
        let out = Output::new(&whole, Existing::Refuse, Kind::Terrain);
        plan.merge(&shards, &out, None, Resources::default(), &mut |_| Ok(()))?;
        let mut fixture = Self {
            pyramid: terrane::open(&whole)?.header().pyramid.clone(),
            shard: std::fs::read(made.path)?,
            whole: Vec::new(),
            journal: Vec::new(),
            folder,
            raster,
            plan,
        };
        // A journal stays where the last step does not come.
        let stopped = fixture.encode(&mut |_| Err(Stopped::Stopped));
        drop(stopped);
        fixture.journal = std::fs::read(fixture.out().with_extension("trn.journal"))?;
        let learned = |target| Settings {
            method: None,
            profile: Profile::Fast,
            ..settings(target)
        };
        for settings in [
            settings(BOUND),
            learned(BOUND),
            learned(Target::Lossless),
            learned(Target::Rmse(0.3)),
        ] {
            let file = fixture.bytes_of(&settings)?;
            fixture.whole.push((settings, file));
        }
        Ok(fixture)
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.trn")
    }

    fn encode(
        &self,
        progress: &mut dyn FnMut(EncodeProgress) -> Result<(), Stopped>,
    ) -> Result<(), Any> {
        self.encode_as(&self.out(), &settings(BOUND), progress)
    }

    fn encode_as(
        &self,
        out: &Path,
        settings: &Settings,
        progress: &mut dyn FnMut(EncodeProgress) -> Result<(), Stopped>,
    ) -> Result<(), Any> {
        // Threads would take longer to start than they work.
        let resources = Resources::of_jobs(1);
        let inputs = [self.raster.clone()];
        let raster = terrane_geo::open(&inputs)?;
        let destination = Destination {
            out: Output::new(out, Existing::Replace, Kind::Terrain),
            resumable: Some(&inputs),
            resources,
        };
        let prepared = settings.prepare(resources.memory)?;
        terrane::encode(raster.as_ref(), &prepared, destination, progress)?;
        Ok(())
    }

    fn bytes_of(&self, settings: &Settings) -> Result<Vec<u8>, Any> {
        let out = self.folder.path().join("one.trn");
        self.encode_as(&out, settings, &mut |_| Ok(()))?;
        Ok(std::fs::read(out)?)
    }
}

/// Bytes with others in their place, and whether checksums are to be mended: an input says that in its first byte, then how
/// much of the end is cut, and then offsets of two bytes with values.
fn edited(bytes: &[u8], data: &[u8]) -> (Vec<u8>, bool) {
    let mut bytes = bytes.to_vec();
    let Some((&[choice, cut], edits)) = data.split_first_chunk() else {
        return (bytes, false);
    };
    for &[low, high, value] in edits.as_chunks::<3>().0 {
        let length = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(usize::from(u16::from_le_bytes([low, high])) % length) {
            *byte = value;
        }
    }
    let cut = usize::from(cut) * bytes.len() / 256;
    bytes.truncate(bytes.len() - cut);
    (bytes, choice % 2 == 1)
}

/// Goes on with an encoding whose journal was changed: it ends with a whole file, or with an error. One whose checksums
/// are right is believed, and what comes of it is only read.
pub(crate) fn go_on(data: &[u8]) {
    let fixture = &*FIXTURE;
    let out = fixture.out();
    let (mut journal, is_mended) = edited(&fixture.journal, data);
    if is_mended {
        mend_journal(&fixture.pyramid, &mut journal);
    }
    let written = std::fs::write(out.with_extension("trn.journal"), journal);
    assert!(written.is_ok(), "a journal can be written");
    if fixture.encode(&mut |_| Ok(())).is_ok() {
        check(&out, is_mended);
    }
}

/// Merges a shard that was changed, as [`go_on`].
pub(crate) fn merge(data: &[u8]) {
    let fixture = &*FIXTURE;
    let folder = fixture.folder.path().join("changed");
    let (mut shard, is_mended) = edited(&fixture.shard, data);
    if is_mended {
        mend_shard(&fixture.pyramid, &mut shard);
    }
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(shard_path(&folder, 0), shard));
    assert!(written.is_ok(), "a shard can be written");
    let path = fixture.folder.path().join("merged.trn");
    let out = Output::new(&path, Existing::Replace, Kind::Terrain);
    let merged = fixture
        .plan
        .merge(&folder, &out, None, Resources::of_jobs(1), &mut |_| Ok(()));
    if merged.is_ok() {
        check(&path, is_mended);
    }
}

/// The raster, and the file that it becomes under a name in a folder that stays.
pub(crate) fn encoded(name: &str, target: Target) -> (PathBuf, PathBuf) {
    let fixture = &*FIXTURE;
    let out = fixture.folder.path().join(name);
    let made = fixture.encode_as(&out, &settings(target), &mut |_| Ok(()));
    made.expect("a small raster is encoded");
    (fixture.raster.clone(), out)
}

/// Repairs a file that was changed: what was written is what there was, or there is nothing. One whose checksums are right
/// says something else, and only its repair is tried.
pub(crate) fn repair(data: &[u8]) {
    let fixture = &*FIXTURE;
    let which = data.first().map_or(0, |choice| choice >> 1);
    let (settings, whole) = &fixture.whole[usize::from(which) % fixture.whole.len()];
    let (mut damaged, is_mended) = edited(whole, data);
    if is_mended {
        damaged = mend(damaged);
    }
    let [path, out] = ["damaged.trn", "repaired.trn"].map(|name| fixture.folder.path().join(name));
    let _ = std::fs::remove_file(&out);
    let written = std::fs::write(&path, damaged);
    assert!(written.is_ok(), "a file can be written");
    // With a head that is lost everything would be tried, which takes seconds.
    let hints = Hints {
        target: settings.target,
        method: settings.method,
        profile: Some(settings.profile),
        effort: Some(settings.effort),
        tile: settings.tile,
        ..Hints::default()
    };
    let repairing = Repairing {
        from: std::slice::from_ref(&fixture.raster),
        options: RasterOptions::default(),
        hints,
        out: Output::new(&out, Existing::Refuse, Kind::Terrain),
        resources: Resources::of_jobs(1),
    };
    match terrane::repair(&path, &repairing, &mut |_, _, _, _| {}) {
        Ok(_) if is_mended => {}
        Ok(_) => assert!(std::fs::read(&out).ok().as_ref() == Some(whole)),
        Err(_) => assert!(!out.exists()),
    }
}

fn check(path: &Path, is_mended: bool) {
    let found = terrane::open(path).and_then(|terrain| {
        terrane::verify(
            &terrain,
            &[],
            &RasterOptions::default(),
            1,
            &mut |_, _, _, _| {},
        )
    });
    if !is_mended {
        let found = found.expect("a file that was made can be opened and verified");
        assert!(found.failed.is_empty(), "{:?}", found.failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not changed stays; what is changed is believed once its checksums are right.
    #[test]
    fn kept_trees_are_mended() {
        type Mend = fn(&Pyramid, &mut [u8]) -> Option<()>;
        let fixture = &*FIXTURE;
        for (kept, mend) in [
            (&fixture.journal, mend_journal as Mend),
            (&fixture.shard, mend_shard),
        ] {
            let mut same = kept.clone();
            mend(&fixture.pyramid, &mut same);
            assert!(same == *kept);
            let mut changed = kept.clone();
            // In the entries of the first tree.
            changed[80] ^= 1;
            let before = changed.clone();
            mend(&fixture.pyramid, &mut changed);
            let differing = changed.iter().zip(&before).filter(|(a, b)| a != b);
            assert!(differing.count() > 20, "a hash is another now");
        }
    }
    /// Damage of every file, by chance: in the head, in the index, in records, cut, with checksums that are right and wrong ones.
    #[test]
    fn damaged_files_are_repaired_or_refused() {
        let mut random = terrane_codec::random::Random::new(7, 0);
        for _ in 0..80 {
            let length = 2 + 3 * random.below(4);
            let mut input: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            input[1] /= 16;
            repair(&input);
        }
    }
}
