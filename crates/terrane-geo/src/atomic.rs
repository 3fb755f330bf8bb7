//! Files and folders that appear whole or not at all.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{NamedTempFile, TempDir};

use crate::{Error, Result};

/// Whether an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is refused.
    Keep,
    /// It is replaced when the new one is complete.
    Replace,
}

// A signal handler cannot run destructors, so the names of unfinished files are kept where it can find them.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes every file that is not complete yet; for the end of a program by a signal.
pub fn remove_unfinished() {
    for path in std::mem::take(&mut *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)) {
        // The program is ending: there is nobody left to tell.
        let _ = if path.is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        };
    }
}

/// A file that is written under a temporary name beside its target and renamed by [`AtomicFile::commit`].
#[derive(Debug)]
pub struct AtomicFile {
    temporary: NamedTempFile,
    target: PathBuf,
    existing: Existing,
}

impl AtomicFile {
    /// Starts a file; nothing is seen at `target` before it is committed.
    pub fn create(target: &Path, existing: Existing) -> Result<Self> {
        refuse_existing(target, existing)?;
        let temporary = builder()
            .tempfile_in(folder(target))
            .map_err(|source| Error::Io {
                path: target.to_owned(),
                action: "be created",
                source,
            })?;
        remember(temporary.path());
        Ok(Self {
            temporary,
            target: target.to_owned(),
            existing,
        })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.temporary.as_file_mut()
    }

    /// Makes the file appear under its name.
    pub fn commit(mut self) -> Result<()> {
        let failed = |source| Error::Io {
            path: self.target.clone(),
            action: "be written",
            source,
        };
        self.temporary.as_file_mut().sync_all().map_err(failed)?;
        let name = self.temporary.path().to_owned();
        let target = self.target.clone();
        let outcome = match self.existing {
            Existing::Replace => self.temporary.persist(&target).map(drop),
            Existing::Keep => self.temporary.persist_noclobber(&target).map(drop),
        };
        UNFINISHED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&name);
        outcome.map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists { path: target },
            _ => Error::Io {
                path: target,
                action: "be renamed into place",
                source: error.error,
            },
        })
    }
}

/// A folder that is filled under a temporary name beside its target and renamed by [`AtomicFolder::commit`].
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: TempDir,
    target: PathBuf,
    existing: Existing,
}

impl AtomicFolder {
    /// Starts a folder; nothing is seen at `target` before it is committed.
    pub fn create(target: &Path, existing: Existing) -> Result<Self> {
        refuse_existing(target, existing)?;
        let temporary = tempfile::Builder::new()
            .prefix(".terrane-")
            .suffix(".part")
            .tempdir_in(folder(target))
            .map_err(|source| Error::Io {
                path: target.to_owned(),
                action: "be created",
                source,
            })?;
        remember(temporary.path());
        Ok(Self {
            temporary,
            target: target.to_owned(),
            existing,
        })
    }

    /// The folder while it is being filled.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes the folder appear under its name.
    pub fn commit(self) -> Result<()> {
        let Self {
            temporary,
            target,
            existing,
        } = self;
        let failed = |source| Error::Io {
            path: target.clone(),
            action: "be renamed into place",
            source,
        };
        // A private folder would be of no use to anyone else; renaming onto a folder that is not empty fails.
        #[cfg(unix)]
        std::fs::set_permissions(
            temporary.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .map_err(failed)?;
        if existing == Existing::Replace && target.exists() {
            std::fs::remove_dir_all(&target).map_err(failed)?;
        }
        std::fs::rename(temporary.path(), &target).map_err(failed)?;
        forget(&temporary.keep());
        Ok(())
    }
}

/// Refuses a target that is there and is to be kept.
pub fn refuse_existing(target: &Path, existing: Existing) -> Result<()> {
    if existing == Existing::Keep && target.exists() {
        return Err(Error::Exists {
            path: target.to_owned(),
        });
    }
    Ok(())
}

fn remember(path: &Path) {
    UNFINISHED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(path.to_owned());
}

fn forget(path: &Path) {
    UNFINISHED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(path);
}

/// The folder a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".terrane-").suffix(".part");
    // Temporary files are private by default; a finished raster should be as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_appears_before_the_commit_and_nothing_stays_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.tif");
        let mut file = AtomicFile::create(&target, Existing::Keep).unwrap();
        file.file().write_all(b"whole").unwrap();
        assert!(!target.exists());
        drop(file);
        assert!(names(folder.path()).is_empty());

        let mut file = AtomicFile::create(&target, Existing::Keep).unwrap();
        file.file().write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(names(folder.path()), ["a.tif"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn an_existing_file_is_kept_or_replaced_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.tif");
        std::fs::write(&target, b"old").unwrap();
        assert!(matches!(
            AtomicFile::create(&target, Existing::Keep),
            Err(Error::Exists { .. })
        ));
        let mut file = AtomicFile::create(&target, Existing::Replace).unwrap();
        file.file().write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_folder_appears_whole() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        let unfinished = AtomicFolder::create(&target, Existing::Keep).unwrap();
        std::fs::write(unfinished.path().join("a"), b"1").unwrap();
        drop(unfinished);
        assert!(names(parent.path()).is_empty());
        for existing in [Existing::Keep, Existing::Replace] {
            let folder = AtomicFolder::create(&target, existing).unwrap();
            std::fs::write(folder.path().join("a"), b"1").unwrap();
            folder.commit().unwrap();
            assert_eq!(names(parent.path()), ["set"]);
            assert_eq!(names(&target), ["a"]);
        }
        assert!(matches!(
            AtomicFolder::create(&target, Existing::Keep),
            Err(Error::Exists { .. })
        ));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error =
            AtomicFile::create(Path::new("/no/such/folder/a.tif"), Existing::Keep).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/no/such/folder/a.tif: cannot be created")
        );
    }
}
