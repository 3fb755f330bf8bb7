//! Which file a path led to, and in which state: a raster that is written while it is read gives heights that never
//! stood together in one file.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::{Error, Result};

/// What tells a file from another, or from itself before it was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    length: u64,
    /// Where the file system keeps it.
    modified: Option<SystemTime>,
    identity: Option<Identity>,
}

impl FileState {
    /// The state of the file that a path leads to now.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let metadata =
            std::fs::metadata(path).map_err(|source| Error::of_path(path, "be read", source))?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(&metadata),
        })
    }

    /// Fails where the path now leads to another file, to a changed one or to none.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        if Self::of(path).is_ok_and(|now| now == *self) {
            return Ok(());
        }
        Err(Error::Changed {
            path: path.to_owned(),
        })
    }
}

/// Files with their states.
pub(crate) type FileStates = Vec<(PathBuf, FileState)>;

/// Fails where a file is no longer what it was.
pub(crate) fn check_states(states: &[(PathBuf, FileState)]) -> Result<()> {
    states
        .iter()
        .try_for_each(|(path, state)| state.check(path))
}

/// What a system knows of a file that no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// When its bytes or what is noted of it changed last; a file that is written to in place and given its old time has a
    /// new one.
    changed: (i64, i64),
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "not every system has them")]
fn identity(metadata: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<Identity> {
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_was_written_to_replaced_or_removed_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let is_changed =
            |state: FileState| matches!(state.check(&path), Err(Error::Changed { .. }));
        std::fs::write(&path, "one").unwrap();
        let state = FileState::of(&path).unwrap();
        assert!(!is_changed(state));

        std::fs::write(&path, "three").unwrap();
        assert!(is_changed(state), "another length");

        // The same length at another time.
        let state = FileState::of(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let later = SystemTime::now() + Duration::from_secs(5);
        file.set_modified(later).unwrap();
        assert!(is_changed(state), "another time");

        // Other bytes of the same length, and the old time.
        let state = FileState::of(&path).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&path, "eight").unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(later).unwrap();
        assert_eq!(is_changed(state), cfg!(unix), "the old time");

        // The same length and time in another file.
        let state = FileState::of(&path).unwrap();
        let other = folder.path().join("b");
        std::fs::write(&other, "seven").unwrap();
        let file = std::fs::File::options().write(true).open(&other).unwrap();
        file.set_modified(later).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(is_changed(state), cfg!(unix), "another file");

        std::fs::remove_file(&path).unwrap();
        assert!(is_changed(state), "removed");
        assert!(matches!(FileState::of(&path), Err(Error::Io { .. })));
        let error = FileState::of(Path::new("s3://bucket/dem.tif")).unwrap_err();
        assert!(matches!(error, Error::Address { .. }));
    }
}
