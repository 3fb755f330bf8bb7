//! A file to be written: where it goes, what it may replace, and what it must not be.
//!
//! Every file that a user names as an output passes through here, so that no command can replace its own input, a device,
//! a folder, or a file of another kind.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Whether an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is refused.
    Refuse,
    /// It is replaced when the new one is complete.
    Replace,
}

/// What a file holds, which the ending of its name should not contradict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A terrane file.
    Terrain,
    /// A GeoTIFF: an elevation raster, or one derived from it.
    Raster,
    /// A raster in a format that is not written here.
    OtherRaster,
    /// The weights of a network.
    Model,
    /// A plan of shards.
    Plan,
    /// Lines on the map.
    Lines,
    /// An archive of map tiles.
    Tiles,
    /// Anything: the name was chosen knowingly, or by the program.
    Any,
}

impl Kind {
    /// Endings that say what a file holds. A name with another ending, or none, says nothing.
    const ENDINGS: [(Self, &[&str]); 7] = [
        (Self::Terrain, &["trn"]),
        (Self::Raster, &["tif", "tiff", "gtiff"]),
        (
            Self::OtherRaster,
            &[
                "vrt", "img", "asc", "hgt", "bil", "flt", "dem", "dt0", "dt1", "dt2", "jp2", "nc",
                "grd", "xyz", "las", "laz", "png", "jpg", "jpeg", "webp", "zarr", "mbtiles",
            ],
        ),
        (Self::Model, &["safetensors", "pth", "pt"]),
        (Self::Plan, &["json"]),
        (Self::Lines, &["geojson", "geojsonl", "fgb"]),
        (Self::Tiles, &["pmtiles"]),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Terrain => "a terrane file",
            Self::Raster => "a GeoTIFF",
            Self::OtherRaster => "another raster",
            Self::Model => "a model",
            Self::Plan => "a plan of shards",
            Self::Lines => "lines",
            Self::Tiles => "an archive of map tiles",
            Self::Any => "any file",
        }
    }

    /// The ending that a file of this kind usually has.
    fn ending(self) -> &'static str {
        match self {
            Self::Terrain => "trn",
            Self::Raster | Self::OtherRaster => "tif",
            Self::Model => "safetensors",
            Self::Plan => "json",
            Self::Lines => "geojson",
            Self::Tiles => "pmtiles",
            Self::Any => "",
        }
    }

    fn of(ending: &str) -> Option<Self> {
        Self::ENDINGS
            .iter()
            .find(|(_, endings)| endings.contains(&ending))
            .map(|(kind, _)| *kind)
    }
}

/// A file to be written.
#[derive(Debug, Clone)]
pub struct Output<'a> {
    path: &'a Path,
    existing: Existing,
    kind: Kind,
    inputs: Vec<&'a Path>,
    /// Whether a user named the file.
    is_named: bool,
}

impl<'a> Output<'a> {
    /// A file of a kind at a path.
    pub fn new(path: &'a Path, existing: Existing, kind: Kind) -> Self {
        Self {
            path,
            existing,
            kind,
            inputs: Vec::new(),
            is_named: true,
        }
    }

    /// A file that the program itself named, such as a part of a folder that it fills.
    pub fn named_here(path: &'a Path, existing: Existing) -> Self {
        Self {
            is_named: false,
            ..Self::new(path, existing, Kind::Any)
        }
    }

    /// Says what the file is made of: it must not be one of these, by whatever name or link.
    #[must_use]
    pub fn made_of<P: AsRef<Path> + ?Sized + 'a>(
        mut self,
        inputs: impl IntoIterator<Item = &'a P>,
    ) -> Self {
        self.inputs.extend(inputs.into_iter().map(AsRef::as_ref));
        self
    }

    /// The path as it was given.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Whether a user named the file, which two programs should not write at a time.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// Whether an existing file may be replaced.
    pub(crate) fn existing(&self) -> Existing {
        self.existing
    }

    /// Refuses what must not be written to; returns where the file will really be: links are followed.
    pub fn check(&self) -> Result<PathBuf> {
        let path = || self.path.to_owned();
        // What cannot be looked at may be anything, also what must not be replaced.
        let failed = |source| Error::Io {
            path: path(),
            action: "be looked at",
            source,
        };
        let target =
            follow_links(self.path)
                .map_err(failed)?
                .ok_or_else(|| Error::NotReplaceable {
                    path: path(),
                    what: "a link that leads to itself",
                })?;
        let found = if_there(std::fs::metadata(&target)).map_err(failed)?;
        if let Some(found) = &found {
            if found.is_dir() {
                return Err(Error::IsFolder { path: path() });
            }
            if !found.is_file() {
                return Err(Error::NotReplaceable {
                    path: path(),
                    what: special(found),
                });
            }
        }
        for input in &self.inputs {
            if is_one_file(&target, input).map_err(failed)? {
                return Err(Error::IsInput {
                    path: path(),
                    input: input.to_path_buf(),
                });
            }
        }
        self.check_ending()?;
        if let Some(found) = found {
            if self.existing == Existing::Refuse {
                return Err(Error::Exists { path: path() });
            }
            if found.permissions().readonly() {
                return Err(Error::NotReplaceable {
                    path: path(),
                    what: "read-only",
                });
            }
        }
        Ok(target)
    }

    fn check_ending(&self) -> Result<()> {
        let ending = self
            .path
            .extension()
            .and_then(OsStr::to_str)
            .map(str::to_ascii_lowercase);
        let said = ending.as_deref().and_then(Kind::of);
        match (said, ending) {
            (Some(said), Some(ending)) if self.kind != Kind::Any && said != self.kind => {
                Err(Error::OtherEnding {
                    path: self.path.to_owned(),
                    ending,
                    said: said.name(),
                    kind: self.kind.name(),
                    right: self.kind.ending(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// What was found, or `None` where nothing is there.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What a path leads to in the end, whether or not something is there; `None` where links lead round in a circle.
fn follow_links(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        let found = if_there(std::fs::symlink_metadata(&path))?;
        if !found.is_some_and(|found| found.is_symlink()) {
            return Ok(Some(path));
        }
        path = folder(&path).join(std::fs::read_link(&path)?);
    }
    Ok(None)
}

/// Whether two paths are one file or folder, by whatever name or link; also where that cannot be found out.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    is_one_file(a, b).unwrap_or(true)
}

fn is_one_file(a: &Path, b: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |path: &Path| -> io::Result<_> {
            let found = if_there(std::fs::metadata(path))?;
            Ok(found.map(|found| (found.dev(), found.ino())))
        };
        if let (Some(a), Some(b)) = (identity(a)?, identity(b)?) {
            return Ok(a == b);
        }
    }
    let real_path = |path: &Path| if_there(std::fs::canonicalize(path));
    Ok(match (real_path(a)?, real_path(b)?) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    })
}

#[cfg(unix)]
fn special(metadata: &std::fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_: &std::fs::Metadata) -> &'static str {
    "no regular file"
}

/// The folder a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_no_input_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("a.tif");
        std::fs::write(&input, b"precious").unwrap();
        let mut names = vec![input.clone(), folder.path().join("./b/../a.tif")];
        std::fs::create_dir(folder.path().join("b")).unwrap();
        #[cfg(unix)]
        {
            let link = folder.path().join("link.tif");
            std::os::unix::fs::symlink("a.tif", &link).unwrap();
            names.push(link);
        }
        let hard = folder.path().join("hard.tif");
        std::fs::hard_link(&input, &hard).unwrap();
        names.push(hard);
        for name in names {
            let output = Output::new(&name, Existing::Replace, Kind::Raster).made_of([&input]);
            assert!(
                matches!(output.check(), Err(Error::IsInput { .. })),
                "{}",
                name.display()
            );
        }
        let other = folder.path().join("c.tif");
        let output = Output::new(&other, Existing::Refuse, Kind::Raster).made_of([&input]);
        assert_eq!(output.check().unwrap(), other);
    }

    #[test]
    fn an_ending_that_says_something_else_is_refused() {
        let check = |name: &str, kind| Output::new(Path::new(name), Existing::Refuse, kind).check();
        for (name, kind) in [
            ("no/a.tif", Kind::Terrain),
            ("no/a.TIFF", Kind::Terrain),
            ("no/a.trn", Kind::Raster),
            ("no/a.png", Kind::Raster),
            ("no/a.JP2", Kind::Raster),
            ("no/a.safetensors", Kind::Raster),
            ("no/a.tif", Kind::Model),
            ("no/a.trn", Kind::Plan),
            ("no/a.tif", Kind::Tiles),
        ] {
            let error = check(name, kind).unwrap_err();
            assert!(matches!(error, Error::OtherEnding { .. }), "{error}");
        }
        for (name, kind) in [
            ("no/a.trn", Kind::Terrain),
            ("no/a", Kind::Terrain),
            ("no/a.out", Kind::Raster),
            ("no/a.tif", Kind::Any),
        ] {
            check(name, kind).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| {
            Output::new(path, Existing::Replace, Kind::Terrain)
                .check()
                .unwrap_err()
                .to_string()
        };
        assert!(kind(Path::new("/dev/null")).contains("is a device"));
        assert!(kind(folder.path()).contains("is a folder"));
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        assert!(kind(&circle).contains("leads to itself"));
        let locked = folder.path().join("locked.trn");
        std::fs::write(&locked, b"kept").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        std::fs::set_permissions(&locked, mode).unwrap();
        assert!(kind(&locked).contains("read-only"));
        // A link to nothing is followed to where the file will be.
        let link = folder.path().join("link.trn");
        std::os::unix::fs::symlink("there.trn", &link).unwrap();
        let output = Output::new(&link, Existing::Refuse, Kind::Terrain);
        assert_eq!(output.check().unwrap(), folder.path().join("there.trn"));
    }
}
