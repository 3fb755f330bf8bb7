//! The files beside a `GeoTIFF` from which GDAL takes something of its heights or of its place.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::pam::{MAX_BYTES, Pam};
use super::{REWRITE_ADVICE, malformed, unsupported};
use crate::output::if_there;
use crate::{Affine, Error, Result};

/// The files beside a raster that say something of it.
pub(super) struct Sidecars {
    /// GDAL's auxiliary file.
    auxiliary: Option<PathBuf>,
    /// The mask of its pixels.
    pub(super) mask: Option<PathBuf>,
}

/// Files beside a raster whose change is a change of the raster: GDAL's auxiliary file and the mask.
pub fn sidecars(path: &Path) -> Result<Vec<PathBuf>> {
    let Sidecars { auxiliary, mask } = Sidecars::of(path)?;
    Ok(auxiliary.into_iter().chain(mask).collect())
}

impl Sidecars {
    /// Looks for them.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let there = |ending: &str| {
            let name = appended(path, ending);
            Ok::<_, Error>(exists(&name)?.then_some(name))
        };
        let auxiliary = there(".aux.xml")?;
        if auxiliary.is_none() {
            for name in [appended(path, ".aux"), path.with_extension("aux")] {
                refuse_imagine(path, &name)?;
            }
        }
        Ok(Self {
            auxiliary,
            mask: match there(".msk")? {
                Some(mask) => Some(mask),
                None => there(".MSK")?,
            },
        })
    }

    /// Their paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let all = [&self.auxiliary, &self.mask];
        all.into_iter().filter_map(|path| path.as_deref())
    }

    /// What GDAL's auxiliary file says of the raster and of one of its bands.
    pub(super) fn pam(&self, path: &Path, band: u16) -> Result<Pam> {
        let Some(auxiliary) = &self.auxiliary else {
            return Ok(Pam::default());
        };
        let mut bytes = Vec::new();
        // One more than it may have, so that it is refused.
        let read = std::fs::File::open(auxiliary)
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
        if_there(read).map_err(|source| unreadable(auxiliary, source))?;
        Pam::parse(path, &bytes, band)
    }
}

fn appended(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        action: "be read beside its raster",
        source,
    }
}

/// Where there is no `.aux.xml`, GDAL reads a file `.aux` of Erdas Imagine's in its place. Other programs have files of that
/// name too.
fn refuse_imagine(path: &Path, beside: &Path) -> Result<()> {
    const MAGIC: &[u8] = b"EHFA_HEADER_TAG";
    let mut start = [0; MAGIC.len()];
    let read = std::fs::File::open(beside).and_then(|mut file| file.read_exact(&mut start));
    match read {
        Ok(()) if start == MAGIC => Err(unsupported(
            path,
            "a file of Erdas Imagine's beside it (.aux)",
            REWRITE_ADVICE,
        )),
        Err(source)
            if !matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::IsADirectory
            ) =>
        {
            Err(unreadable(beside, source))
        }
        _ => Ok(()),
    }
}

/// The transform of a world file, from the *centre* of the first pixel, where there is one. GDAL asks only where nothing else
/// places the raster; it does not mind the case of a name.
pub(super) fn world_file(path: &Path) -> Result<Option<Affine>> {
    let stem = path.file_stem().unwrap_or_default();
    let ending = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    // Of `tif` the first and the last letter, and `w`; or all of it, and `w`; or `wld`.
    let mut endings = Vec::new();
    let mut letters = ending.chars();
    if let (Some(first), Some(last)) = (letters.next(), letters.next_back()) {
        endings.push(format!("{first}{last}w"));
        endings.push(format!("{ending}w"));
    }
    endings.push("wld".into());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut beside = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|source| unreadable(folder, source))? {
        let name = PathBuf::from(
            entry
                .map_err(|source| unreadable(folder, source))?
                .file_name(),
        );
        if name.file_stem() == Some(stem) {
            beside.push(name);
        }
    }
    let found = |ending: &str| {
        let has = |name: &&PathBuf| {
            name.extension()
                .is_some_and(|own| own.eq_ignore_ascii_case(ending))
        };
        beside.iter().find(has).map(|name| folder.join(name))
    };
    if let Some(table) = found("tab") {
        return Err(unsupported(
            path,
            format!(
                "a raster placed by a table of MapInfo's ({})",
                table.display()
            ),
            REWRITE_ADVICE,
        ));
    }
    if let Some(file) = endings.iter().find_map(|ending| found(ending)) {
        // Six short lines; what is longer is none.
        let mut text = String::new();
        let read =
            std::fs::File::open(&file).and_then(|file| file.take(4096).read_to_string(&mut text));
        match read {
            Err(source) if source.kind() != ErrorKind::InvalidData => {
                return Err(unreadable(&file, source));
            }
            _ => {}
        }
        return match parse_world_file(&text) {
            Some(affine) => Ok(Some(affine)),
            None => Err(malformed(
                path,
                &format!("the world file beside it, {}, is none", file.display()),
            )),
        };
    }
    Ok(None)
}

fn parse_world_file(text: &str) -> Option<Affine> {
    let mut numbers = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // Some programs write a decimal comma.
    let mut next = || {
        let number: f64 = numbers.next()?.replace(',', ".").parse().ok()?;
        number.is_finite().then_some(number)
    };
    let (x_per_column, y_per_column, x_per_row, y_per_row) = (next()?, next()?, next()?, next()?);
    Some(Affine {
        x: next()?,
        x_per_column,
        x_per_row,
        y: next()?,
        y_per_column,
        y_per_row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_file_is_six_numbers() {
        let affine = parse_world_file("2,5\n0\n\n 0.0\r\n-2\n100\n200\nmore\n").unwrap();
        assert_eq!(affine.numbers(), [100.0, 2.5, 0.0, 200.0, 0.0, -2.0]);
        for text in [
            "",
            "1\n2\n3\n4\n5",
            "1\n2\n3\n4\nfive\n6",
            "1\n2\n3\n4\n5\ninf",
        ] {
            assert_eq!(parse_world_file(text), None, "{text}");
        }
    }
}
