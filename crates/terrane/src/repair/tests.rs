//! Every kind of damage, on every kind of file: the result is the file that there was, or an error and nothing.

use std::path::PathBuf;

use terrane_codec::format::Method;
use terrane_codec::random::Random;
use terrane_codec::{Profile, Resources};
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Kind, RasterOptions, SampleType, Storage,
};

use super::*;
use crate::{Destination, Settings, Target, encode, open_reader};

/// A raster of hills with a gap and a lake as a GeoTIFF, and files of it.
struct Case {
    folder: tempfile::TempDir,
    raster: PathBuf,
    whole: Vec<u8>,
    hints: Hints,
}

fn heights(width: usize, height: usize) -> Vec<f64> {
    let at = |pixel: usize| {
        let (x, y) = ((pixel % width) as f64, (pixel / width) as f64);
        if (x - 40.0).hypot(y - 50.0) < 17.5 {
            return f64::NAN;
        }
        let noise = (pixel * 7919 % 101) as f64 / 500.0;
        let height = 431.0 + 12.0 * (x / 31.0).sin() * (y / 17.0).cos() + (x / 3.0).sin() + noise;
        f64::from((height as f32).max(425.0))
    };
    (0..width * height).map(at).collect()
}

fn write_raster(path: &Path, width: usize, heights: &[f64]) {
    let place = Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
        Crs::projected(2056, None),
    );
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let out = Output::new(path, Existing::Replace, Kind::Raster);
    let size = (width, heights.len() / width);
    let mut writer = CogWriter::create(&out, size, place, storage).unwrap();
    writer.write_rows(heights).unwrap();
    writer.finish().unwrap();
}

fn settings(target: Target) -> Settings {
    Settings {
        profile: Profile::Fast,
        tile: Some(32),
        target,
        ..Settings::default()
    }
}

impl Case {
    fn new(width: usize, height: usize, settings: &Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let raster = folder.path().join("dem.tif");
        write_raster(&raster, width, &heights(width, height));
        let path = folder.path().join("whole.trn");
        let resources = Resources::of_jobs(2);
        let destination = Destination {
            out: Output::new(&path, Existing::Refuse, Kind::Terrain),
            resumable: None,
            resources,
        };
        let source = terrane_geo::open(std::slice::from_ref(&raster)).unwrap();
        let prepared = settings.prepare(resources.memory).unwrap();
        encode(&*source, &prepared, destination, &mut |_| Ok(())).unwrap();
        let whole = std::fs::read(&path).unwrap();
        Self {
            folder,
            raster,
            whole,
            hints: Hints::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The outcome, and the file where there is one.
    fn repair_from(&self, damaged: &[u8], raster: &Path) -> (Vec<u8>, Result<Repaired>) {
        let (path, out) = (self.path("damaged.trn"), self.path("repaired.trn"));
        std::fs::write(&path, damaged).unwrap();
        let _ = std::fs::remove_file(&out);
        let from = [raster.to_owned()];
        let repairing = Repairing {
            from: &from,
            options: RasterOptions::default(),
            hints: self.hints.clone(),
            out: Output::new(&out, Existing::Refuse, Kind::Terrain).made_of(&from),
            resources: Resources::of_jobs(2),
        };
        let outcome = repair(&path, &repairing, &mut |_, _, _, _| {});
        assert_eq!(outcome.is_ok(), out.exists());
        // Nothing is left behind, whatever came of it.
        let left = std::fs::read_dir(self.folder.path()).unwrap();
        let left = left.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".part")
        });
        assert_eq!(left.count(), 0);
        (std::fs::read(&out).unwrap_or_default(), outcome)
    }

    /// Repairs a file that was damaged, and expects the one that there was.
    fn comes_back(&self, damaged: &[u8], what: &str) -> Repaired {
        let (back, repaired) = self.repair_from(damaged, &self.raster);
        let repaired =
            repaired.unwrap_or_else(|error| panic!("{what}: {}", crate::sentence(&error)));
        assert!(back == self.whole, "{what}: {repaired:?}");
        assert_eq!(repaired.was_whole(), damaged == self.whole, "{what}");
        repaired
    }

    fn reader(&self) -> Reader {
        open_reader(&self.path("whole.trn"), crate::RemoteOptions::default()).unwrap()
    }

    /// Every kind of damage at once behind the head.
    fn suffers_everything(&self) {
        let reader = self.reader();
        let head = reader.head().len();
        let index = reader.page_extent(0).unwrap().offset as usize;
        let whole = &self.whole;
        let mut random = Random::new(5, 0);
        let mut below = |limit: usize| random.below(limit);
        assert!(self.comes_back(whole, "nothing").was_whole());
        // One bit of a record.
        let mut damaged = whole.clone();
        damaged[head + (index - head) / 2] ^= 4;
        let repaired = self.comes_back(&damaged, "a bit");
        assert_eq!((repaired.records, repaired.unproven), (1, 0));
        // A run of noise.
        let mut damaged = whole.clone();
        let first = head + below(index - head - 300);
        for byte in &mut damaged[first..first + 300] {
            *byte = below(256) as u8;
        }
        assert!(self.comes_back(&damaged, "a run").records > 0);
        // A sector of zeros.
        let mut damaged = whole.clone();
        let first = (head / 512 + 1) * 512;
        damaged[first..(first + 512).min(index)].fill(0);
        assert!(self.comes_back(&damaged, "a sector").records > 0);
        // Parts exchanged.
        let mut damaged = whole.clone();
        let (a, b) = (head + 10, head + (index - head) / 2 + 7);
        for at in 0..100 {
            damaged.swap(a + at, b + at);
        }
        assert!(self.comes_back(&damaged, "an exchange").records > 0);
        // The end cut off, with the index and some records; and bytes after the end.
        let cut = head + (index - head) * 3 / 4;
        let repaired = self.comes_back(&whole[..cut], "a cut");
        assert!(repaired.length && repaired.pages > 0 && repaired.records > 0);
        let longer = [&whole[..], &[7; 100]].concat();
        let repaired = self.comes_back(&longer, "more bytes");
        assert!(repaired.length && repaired.records == 0);
        // A byte of the index, and then all of it.
        let mut damaged = whole.clone();
        damaged[index + 3] ^= 0x55;
        let repaired = self.comes_back(&damaged, "a byte of the index");
        assert_eq!((repaired.pages, repaired.records), (1, 0));
        let end = damaged.len().min(index + 40);
        damaged[index..end].fill(0xff);
        let repaired = self.comes_back(&damaged, "the index");
        assert_eq!((repaired.pages, repaired.records), (1, 0));
        // A byte of the head.
        let mut damaged = whole.clone();
        for at in [0, 8, 10, 17, 26, 40, 97, 106, head - 2, head / 2] {
            damaged[at] ^= 0x41;
            let repaired = self.comes_back(&damaged, "a byte of the head");
            assert_eq!(repaired.head, HeadRepair::Mended);
            damaged[at] ^= 0x41;
        }
    }

    /// The head lost, alone and with a part of the first tree.
    fn loses_its_head(&self) {
        let head = self.reader().head().len();
        for lost in [0..64, 100..head, 0..head, 0..head + 50] {
            let mut damaged = self.whole.clone();
            damaged[lost.clone()].fill(0);
            let repaired = self.comes_back(&damaged, &format!("{lost:?}"));
            assert_eq!(repaired.head, HeadRepair::Anew);
        }
    }
}

#[test]
fn a_bounded_file_comes_back_from_every_damage() {
    let case = Case::new(300, 270, &settings(Target::MaxError(0.05)));
    case.suffers_everything();
}

#[test]
fn a_lossless_file_comes_back_from_every_damage() {
    Case::new(180, 150, &settings(Target::Lossless)).suffers_everything();
}

#[test]
fn a_lossy_file_comes_back_by_the_step_of_its_other_trees() {
    let case = Case::new(300, 270, &settings(Target::Bpp(1.5)));
    let reader = case.reader();
    let (head, index) = (reader.head().len(), reader.page_extent(0).unwrap().offset);
    for at in (head..index as usize).step_by(1200) {
        let mut damaged = case.whole.clone();
        damaged[at] ^= 1;
        assert_eq!(case.comes_back(&damaged, "a bit").records, 1);
    }
}

#[test]
fn a_file_of_integers_comes_back_from_every_damage() {
    let settings = Settings {
        method: Some(Method::Integers),
        ..settings(Target::MaxError(0.1))
    };
    Case::new(180, 150, &settings).suffers_everything();
}

#[test]
fn effort_is_found_and_a_model_inside_is_restored() {
    let settings = Settings {
        effort: 3,
        embed_model: true,
        ..settings(Target::MaxError(0.05))
    };
    let case = Case::new(140, 150, &settings);
    let reader = case.reader();
    let model = reader.header().model.as_ref().unwrap().embedded.unwrap();
    let mut damaged = case.whole.clone();
    for at in [5, 900] {
        damaged[model.offset as usize + at] ^= 9;
    }
    let repaired = case.comes_back(&damaged, "the model");
    assert!(repaired.model && repaired.records == 0);
    damaged[(model.offset + model.length) as usize + 20] ^= 1;
    let repaired = case.comes_back(&damaged, "the model and a record");
    assert!(repaired.model && repaired.records == 1);
}

#[test]
fn a_lost_head_is_made_again() {
    Case::new(140, 150, &settings(Target::Default)).loses_its_head_with(|hints| {
        hints.tile = Some(32);
    });
    // A rate of the whole is found again as it was found.
    let mut case = Case::new(140, 150, &settings(Target::Bpp(2.0)));
    case.hints = Hints {
        target: Target::Bpp(2.0),
        profile: Some(Profile::Fast),
        tile: Some(32),
        ..Hints::default()
    };
    case.loses_its_head();
}

impl Case {
    fn loses_its_head_with(mut self, hint: impl Fn(&mut Hints)) {
        hint(&mut self.hints);
        self.loses_its_head();
    }
}

#[test]
fn what_cannot_be_repaired_is_refused_and_nothing_written() {
    let mut case = Case::new(300, 150, &settings(Target::MaxError(0.05)));
    let fast = Hints {
        profile: Some(Profile::Fast),
        effort: Some(1),
        tile: Some(32),
        ..Hints::default()
    };
    let head = case.reader().head().len();
    let mut damaged = case.whole.clone();
    damaged[head + 30] ^= 1;
    let refused = |case: &Case, damaged: &[u8], raster: &Path| {
        let error = case.repair_from(damaged, raster).1.unwrap_err();
        crate::sentence(&error)
    };
    // Another raster: of another size, with other heights, and with one other height below the damage.
    let other = case.path("other.tif");
    write_raster(&other, 170, &heights(170, 150));
    assert!(refused(&case, &damaged, &other).contains("300 x 150"));
    let mut changed = heights(300, 150);
    for height in &mut changed {
        *height += 1.0;
    }
    write_raster(&other, 300, &changed);
    let sentence = refused(&case, &damaged, &other);
    assert!(
        sentence.contains("not the raster that the file was made from"),
        "{sentence}"
    );
    let mut changed = heights(300, 150);
    changed[5] += 0.5;
    write_raster(&other, 300, &changed);
    let sentence = refused(&case, &damaged, &other);
    assert!(sentence.contains("raster"), "{sentence}");
    case.hints = fast.clone();
    // Nothing left of it, and a lost head of unusual settings.
    let zeros = vec![0; damaged.len()];
    assert!(refused(&case, &zeros, &case.raster).contains("head is lost"));
    assert!(refused(&case, &[], &case.raster).contains("head is lost"));
    let mut unusual = Case::new(180, 150, &settings(Target::Rmse(0.07)));
    unusual.hints = fast;
    let mut damaged = unusual.whole.clone();
    damaged[..head].fill(0);
    assert!(refused(&unusual, &damaged, &unusual.raster).contains("head is lost"));
}

#[test]
fn a_file_is_repaired_where_it_is() {
    let case = Case::new(140, 150, &settings(Target::MaxError(0.05)));
    let path = case.path("damaged.trn");
    let from = [case.raster.clone()];
    let repairing = Repairing {
        from: &from,
        options: RasterOptions::default(),
        hints: Hints::default(),
        out: Output::new(&path, Existing::Replace, Kind::Terrain).made_of(&from),
        resources: Resources::of_jobs(1),
    };
    let mut damaged = case.whole.clone();
    damaged[case.whole.len() / 2] ^= 1;
    for (bytes, was_whole) in [(&damaged, false), (&case.whole, true)] {
        std::fs::write(&path, bytes).unwrap();
        let repaired = repair(&path, &repairing, &mut |_, _, _, _| {}).unwrap();
        assert_eq!(repaired.was_whole(), was_whole);
        assert!(std::fs::read(&path).unwrap() == case.whole);
    }
}
