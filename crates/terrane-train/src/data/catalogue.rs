//! Which raster belongs to which region and split.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use terrane_codec::random::hash;

use crate::{Error, Result};

/// The name of the catalogue in a folder of rasters.
pub(super) const CATALOGUE: &str = "catalog.csv";

/// What is known of the rasters of a folder.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    entries: BTreeMap<String, Entry>,
    /// The splits of regions, where they are stated.
    splits: BTreeMap<String, String>,
}

impl Catalogue {
    /// What is stated of a raster.
    pub(super) fn entry(&self, file: &str) -> Option<&Entry> {
        self.entries.get(file)
    }

    /// The region of a raster: as stated, else its name.
    pub(super) fn region(&self, file: &str) -> String {
        let stated = self.entry(file).and_then(|entry| entry.region.as_deref());
        let stem = || Path::new(file).file_stem().unwrap_or_default();
        stated.map_or_else(|| stem().to_string_lossy().into_owned(), str::to_owned)
    }

    /// The split of a region: as stated for any of its rasters, else by its name.
    pub(super) fn split(&self, region: &str) -> &str {
        let stated = self.splits.get(region);
        stated.map_or_else(|| split_by_name(region), String::as_str)
    }

    /// Notes the splits that are stated; two of one region are refused.
    fn with_splits(mut self, path: &Path) -> Result<Self> {
        let mut stated: BTreeMap<String, (&str, &str)> = BTreeMap::new();
        for entry in self.entries.values() {
            let Some(split) = &entry.split else {
                continue;
            };
            let region = self.region(&entry.file);
            let &mut (first, first_split) =
                stated.entry(region.clone()).or_insert((&entry.file, split));
            if first_split != split {
                return Err(Error::RegionInTwoSplits {
                    path: path.to_owned(),
                    region,
                    rasters: Box::new([first.to_owned(), entry.file.clone()]),
                    splits: Box::new([first_split.to_owned(), split.clone()]),
                });
            }
        }
        self.splits = stated
            .into_iter()
            .map(|(region, (_, split))| (region, split.to_owned()))
            .collect();
        Ok(self)
    }
}

/// What a catalogue states of one raster; other columns are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Entry {
    /// Name of the file in the folder.
    pub file: String,
    /// The split of its region.
    #[serde(default)]
    pub split: Option<String>,
    /// The region it shows.
    #[serde(default)]
    pub region: Option<String>,
    /// The country it lies in.
    #[serde(default)]
    pub country: Option<String>,
    /// Side of a pixel in metres, for rasters whose coordinates are not metres.
    #[serde(default)]
    pub resolution_m: Option<f64>,
}

/// Reads `catalog.csv` of a folder; empty where there is none.
///
/// Rasters of one region are never in different splits. A raster whose region is not stated is a region of its own: the catalogue alone
/// can say what lies beside it or comes from the same survey.
pub(super) fn read(folder: &Path) -> Result<Catalogue> {
    let path = folder.join(CATALOGUE);
    if !path.exists() {
        return Ok(Catalogue::default());
    }
    let failed = |reason: String| Error::Catalogue {
        path: path.clone(),
        reason,
    };
    let mut reader = csv::Reader::from_path(&path).map_err(|error| failed(error.to_string()))?;
    let mut entries = BTreeMap::new();
    for entry in reader.deserialize::<Entry>() {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        if let Some(split) = entry.split.as_deref().filter(|split| !is_name(split)) {
            return Err(failed(format!(
                "{}: \"{split}\" is no name of a split",
                entry.file
            )));
        }
        if let Some(twice) = entries.insert(entry.file.clone(), entry) {
            return Err(failed(format!("{} stands in it twice", twice.file)));
        }
    }
    let catalogue = Catalogue {
        entries,
        ..Catalogue::default()
    };
    catalogue.with_splits(&path)
}

fn is_name(split: &str) -> bool {
    !split.is_empty()
        && split
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The split of a region without a catalogue: 80 % train, 10 % val, 10 % test, by its name alone, so that a region
/// stays where it is when others are added.
fn split_by_name(region: &str) -> &'static str {
    match hash(region) % 10 {
        8 => "val",
        9 => "test",
        _ => "train",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_with_other_columns_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(CATALOGUE),
            "file,product,resolution_m,split\na.tif,\"lidar, 2019\",1.0,train\nb.tif,x,,\n",
        )
        .unwrap();
        let catalogue = read(folder.path()).unwrap();
        let entry = |file| catalogue.entry(file).unwrap();
        assert_eq!(entry("a.tif").split.as_deref(), Some("train"));
        assert_eq!(entry("a.tif").resolution_m, Some(1.0));
        assert_eq!(entry("b.tif").split, None);
        assert_eq!(catalogue.split(&catalogue.region("a.tif")), "train");
        let elsewhere = read(&folder.path().join("elsewhere")).unwrap();
        assert!(elsewhere.entry("a.tif").is_none());
    }

    #[test]
    fn a_region_has_one_split() {
        let folder = tempfile::tempdir().unwrap();
        let with = |lines: &str| {
            let text = format!("file,region,split\n{lines}");
            std::fs::write(folder.path().join(CATALOGUE), text).unwrap();
            read(folder.path())
        };
        let error = with("a.tif,coast,train\nb.tif,hills,test\nc.tif,coast,test\n").unwrap_err();
        let Error::RegionInTwoSplits {
            region,
            rasters,
            splits,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(region, "coast");
        assert_eq!(rasters.join(" "), "a.tif c.tif");
        assert_eq!(splits.join(" "), "train test");
        assert!(error.to_string().contains("\"coast\""), "{error}");
        // A raster's name is a region, too.
        let clash = with("a.tif,coast,train\ncoast.tif,,test\n").unwrap_err();
        assert!(matches!(clash, Error::RegionInTwoSplits { .. }), "{clash}");
        let twice = with("a.tif,coast,train\na.tif,coast,test\n").unwrap_err();
        assert!(
            twice.to_string().contains("a.tif stands in it twice"),
            "{twice}"
        );
        // What one raster states holds for its region.
        let catalogue = with("a.tif,coast,\nb.tif,coast,unseen\n").unwrap();
        assert_eq!(catalogue.split(&catalogue.region("a.tif")), "unseen");
        assert_eq!(catalogue.region("dir.d.tif"), "dir.d");
    }

    #[test]
    fn the_shipped_catalogue_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        if !folder.join(CATALOGUE).exists() {
            eprintln!("skipped: no ../shared/data");
            return;
        }
        // It states splits and no regions: blocks of one survey are in three of them, as its README says.
        let catalogue = read(&folder).unwrap();
        for (file, split) in [
            ("m1_fr_litto3d_a1.tif", "train"),
            ("m1_fr_litto3d_b.tif", "val"),
            ("m1_fr_litto3d_c.tif", "test"),
        ] {
            assert_eq!(catalogue.split(&catalogue.region(file)), split);
        }
    }

    #[test]
    fn a_catalogue_without_files_or_with_odd_splits_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["name,split\na.tif,train\n", "file,split\na.tif,../train\n"] {
            std::fs::write(folder.path().join(CATALOGUE), text).unwrap();
            let error = read(folder.path()).unwrap_err().to_string();
            assert!(error.contains("catalog.csv"), "{error}");
        }
    }

    #[test]
    fn names_are_split_eight_one_one() {
        let mut counts = BTreeMap::new();
        for index in 0..2000 {
            *counts
                .entry(split_by_name(&format!("region-{index}")))
                .or_insert(0) += 1;
        }
        assert!((1500..1700).contains(&counts["train"]), "{counts:?}");
        assert!(
            (150..250).contains(&counts["val"]) && (150..250).contains(&counts["test"]),
            "{counts:?}"
        );
    }
}
