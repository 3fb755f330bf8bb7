//! Which raster belongs to which region and split.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use terrane_codec::random::hash;

use crate::{Error, Result};

/// The name of the catalogue in a folder of rasters.
pub(super) const CATALOGUE: &str = "catalog.csv";

/// What a catalogue states of one raster; other columns are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Entry {
    /// Name of the file in the folder.
    pub file: String,
    /// The split it belongs to; chosen by the region's name where the catalogue has none.
    #[serde(default)]
    pub split: Option<String>,
    /// The region it shows; rasters of one region are never in different splits. The file's name where none is given.
    #[serde(default)]
    pub region: Option<String>,
    /// The country it lies in.
    #[serde(default)]
    pub country: Option<String>,
    /// Side of a pixel in metres, for rasters whose coordinates are not metres.
    #[serde(default)]
    pub resolution_m: Option<f64>,
}

/// Reads `catalog.csv` of a folder, by file name; empty where there is none.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, Entry>> {
    let path = folder.join(CATALOGUE);
    if !path.exists() {
        return Ok(BTreeMap::new());
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
        entries.insert(entry.file.clone(), entry);
    }
    Ok(entries)
}

fn is_name(split: &str) -> bool {
    !split.is_empty()
        && split
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The split of a region without a catalogue: 80 % train, 10 % val, 10 % test, by its name alone, so that a region
/// stays where it is when others are added.
pub(super) fn split_by_name(region: &str) -> &'static str {
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
        let entries = read(folder.path()).unwrap();
        assert_eq!(entries["a.tif"].split.as_deref(), Some("train"));
        assert_eq!(entries["a.tif"].resolution_m, Some(1.0));
        assert_eq!(entries["b.tif"].split, None);
        assert!(read(&folder.path().join("elsewhere")).unwrap().is_empty());
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
