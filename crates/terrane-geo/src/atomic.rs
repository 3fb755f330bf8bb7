//! Files that appear whole or not at all, and what is unfinished of files and folders.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::output::{Existing, Output, folder, if_there};
use crate::{Error, Result};

/// What the names of unfinished files and folders start and end with.
pub(crate) const PREFIX: &str = ".terrane-";
pub(crate) const SUFFIX: &str = ".part";
/// What the name of a scratch file holds, before an ending of its own.
const SCRATCH: &str = ".scratch.";
/// The ending of a folder that is being removed.
pub(crate) const GONE: &str = ".gone.part";
/// The ending of the file beside a temporary folder that its process holds: there before the folder, and gone after it.
pub(crate) const LOCK: &str = ".lock";
/// A program that makes something unfinished locks it at once; what has no lock and is older has lost its program.
pub(crate) const ABANDONED: Duration = Duration::from_mins(1);

// A signal handler cannot run destructors, so the names of unfinished files are kept where it can find them.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes every file that is not complete yet; for the end of a program by a signal.
pub fn remove_unfinished() {
    let all = std::mem::take(&mut *unfinished());
    // The last name first: a folder goes before its lock.
    for path in all.into_iter().rev() {
        // The program is ending: there is nobody left to tell.
        let _ = if path.is_dir() {
            // Under another name nobody adds to it while it is removed, and whoever comes next knows what it is.
            let gone = path.with_extension(&GONE[1..]);
            let is_renamed = std::fs::rename(&path, &gone).is_ok();
            remove_folder(if is_renamed { &gone } else { &path })
        } else if path.extension().is_some_and(|end| end == &LOCK[1..])
            && folder_beside(&path).exists()
        {
            Ok(())
        } else {
            std::fs::remove_file(path)
        };
    }
}

/// Removes a folder and all that is in it, if it is there, also one that nothing may be removed from.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    let remove = || match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    };
    remove().or_else(|error| {
        if error.kind() != ErrorKind::PermissionDenied {
            return Err(error);
        }
        let mut permissions = std::fs::metadata(path)?.permissions();
        allow_removal(&mut permissions);
        std::fs::set_permissions(path, permissions)?;
        remove()
    })
}

#[cfg(unix)]
fn allow_removal(permissions: &mut std::fs::Permissions) {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(permissions.mode() | 0o700);
}

#[cfg(not(unix))]
fn allow_removal(permissions: &mut std::fs::Permissions) {
    permissions.set_readonly(false);
}

/// The folder that a lock is for.
pub(crate) fn folder_beside(lock: &Path) -> PathBuf {
    lock.with_extension(&SUFFIX[1..])
}

/// Whether a file is locked by nobody, and had time to be.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    // Where locks go over a network, only a file that is open for writing can be locked alone.
    let Ok(file) = File::options().read(true).write(true).open(path) else {
        return false;
    };
    let is_old = file
        .metadata()
        .and_then(|found| found.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
    is_old && file.try_lock().is_ok()
}

/// Removes unfinished files of programs that were killed before they could.
pub fn remove_abandoned(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) || !(name.ends_with(SUFFIX) || name.contains(SCRATCH)) {
            continue;
        }
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_abandoned(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A locked file in the system's folder of temporary files, whose name has an ending; [`remove_unfinished`] removes it.
pub fn scratch(ending: &str) -> Result<(PathBuf, File)> {
    let folder = std::env::temp_dir();
    remove_abandoned(&folder);
    let failed = |source| Error::of_path(&folder, "hold a temporary file", without_path(source));
    let temporary = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(&format!("{SCRATCH}{ending}"))
        .tempfile_in(&folder)
        .map_err(failed)?;
    let (file, path) = temporary.keep().map_err(|error| failed(error.error))?;
    unfinished().insert(path.clone());
    let _ = file.try_lock();
    Ok((path, file))
}

/// An error of a temporary file without that file's name, which means nothing to a user.
fn without_path(error: io::Error) -> io::Error {
    // `tempfile` appends it and gives the system's error no other way out.
    match error.to_string().rsplit_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}

/// A file that is written under a temporary name beside its target and renamed by [`AtomicFile::commit`].
#[derive(Debug)]
pub struct AtomicFile {
    temporary: NamedTempFile,
    path: PathBuf,
    target: PathBuf,
    existing: Existing,
}

impl AtomicFile {
    /// Starts a file; nothing is seen at its path before it is committed. A link is followed and stays a link.
    pub fn create(output: &Output) -> Result<Self> {
        let target = output.check()?;
        let failed = |source| Error::of_path(output.path(), "be created", without_path(source));
        remove_abandoned(folder(&target));
        let prefix = prefix_of(&target);
        let temporary = builder()
            .prefix(&prefix)
            .tempfile_in(folder(&target))
            .map_err(failed)?;
        unfinished().insert(temporary.path().to_owned());
        // A file system without locks leaves an abandoned file where it is, or a slow one to be taken for abandoned only
        // where it was not touched for a minute.
        let _ = temporary.as_file().try_lock();
        if output.is_named() && is_written_by_another(folder(&target), &prefix) {
            let path = output.path().to_owned();
            return Err(Error::BeingWritten { path });
        }
        Ok(Self {
            temporary,
            path: output.path().to_owned(),
            target,
            existing: output.existing(),
        })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.temporary.as_file_mut()
    }

    /// Removes what the file will replace, so that it is not taken for a part of something newer.
    pub fn remove_replaced(&self) -> Result<()> {
        if_there(std::fs::remove_file(&self.target))
            .map(drop)
            .map_err(|source| Error::of_path(&self.path, "be replaced", source))
    }

    /// Makes the file appear under its name, with the mode and owner of the one it replaces.
    pub fn commit(mut self) -> Result<()> {
        let failed = |source| Error::Io {
            path: self.path.clone(),
            action: "be written",
            source,
        };
        if let Ok(replaced) = std::fs::metadata(&self.target) {
            keep_owner(self.temporary.as_file(), &replaced);
            self.temporary
                .as_file()
                .set_permissions(replaced.permissions())
                .map_err(failed)?;
        }
        self.temporary.as_file_mut().sync_all().map_err(failed)?;
        let name = self.temporary.path().to_owned();
        let (path, target) = (self.path, self.target);
        let (temporary, existing) = (self.temporary, self.existing);
        let outcome = settle(&name, || match existing {
            Existing::Replace => temporary.persist(&target).map(drop),
            Existing::Refuse => temporary.persist_noclobber(&target).map(drop),
        });
        outcome.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => Error::Exists { path },
            _ => Error::Io {
                path,
                action: "be renamed into place",
                source: without_path(error.error),
            },
        })?;
        // The name is in the folder, which is written by itself; where it cannot be, the system does so in its own time.
        if let Ok(folder) = File::open(folder(&target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// What the names of temporary files for a target start with.
fn prefix_of(target: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    target.file_name().hash(&mut hasher);
    format!("{PREFIX}{:016x}-", hasher.finish())
}

/// Whether another program writes a file whose temporary names start so. Two that begin in the same moment may both find the
/// other, and then neither goes on.
fn is_written_by_another(folder: &Path, prefix: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let own = unfinished().clone();
    entries.flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with(prefix)
            && !own
                .iter()
                .any(|path| path.file_name() == Some(&entry.file_name()))
            && File::options()
                .read(true)
                .write(true)
                .open(entry.path())
                .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    })
}

/// Gives a file the owner and group of another, where this program may.
#[cfg(unix)]
fn keep_owner(file: &File, other: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(other.uid()), Some(other.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &std::fs::Metadata) {}

/// Refuses a target that is there and is to be kept.
pub fn refuse_existing(target: &Path, existing: Existing) -> Result<()> {
    if existing == Existing::Refuse && target.exists() {
        return Err(Error::Exists {
            path: target.to_owned(),
        });
    }
    Ok(())
}

/// What a signal is to remove. A signal waits for whoever holds it.
pub(crate) fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what finishes something unfinished; a signal waits for it.
pub(crate) fn settle<T, E>(
    path: &Path,
    finish: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    let mut unfinished = unfinished();
    let outcome = finish()?;
    unfinished.remove(path);
    Ok(outcome)
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    // Temporary files are private by default; a finished raster should be as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Kind;

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
        let mut file = AtomicFile::create(&Output::named_here(&target, Existing::Refuse)).unwrap();
        file.file().write_all(b"whole").unwrap();
        assert!(!target.exists());
        drop(file);
        assert!(names(folder.path()).is_empty());

        let mut file = AtomicFile::create(&Output::named_here(&target, Existing::Refuse)).unwrap();
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
            AtomicFile::create(&Output::named_here(&target, Existing::Refuse)),
            Err(Error::Exists { .. })
        ));
        let mut file = AtomicFile::create(&Output::named_here(&target, Existing::Replace)).unwrap();
        file.file().write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = AtomicFile::create(&Output::named_here(
            Path::new("/no/such/folder/a.tif"),
            Existing::Refuse,
        ))
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "/no/such/folder/a.tif: cannot be created"
        );
        let address = Output::named_here(Path::new("s3://bucket/a.tif"), Existing::Refuse);
        let error = AtomicFile::create(&address).unwrap_err();
        assert!(matches!(error, Error::Address { .. }));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_mode_stays_a_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (
            folder.path().join("real.trn"),
            folder.path().join("link.trn"),
        );
        std::fs::write(&real, b"old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.trn", &link).unwrap();
        let mut file = AtomicFile::create(&Output::named_here(&link, Existing::Replace)).unwrap();
        file.file().write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_another_program_writes_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (target, beside) = (folder.path().join("a.tif"), folder.path().join("b.tif"));
        let name = format!("{}x{SUFFIX}", prefix_of(&target));
        // As another program holds it: this one's own list does not have it.
        let other = File::create(folder.path().join(name)).unwrap();
        other.lock().unwrap();
        let create =
            |path: &Path| AtomicFile::create(&Output::new(path, Existing::Replace, Kind::Any));
        let error = create(&target).unwrap_err();
        assert!(matches!(error, Error::BeingWritten { .. }), "{error}");
        drop(create(&beside).unwrap());
        drop(other);
        let first = create(&target).unwrap();
        // One program may write a file twice, and the last one stays.
        drop(create(&target).unwrap());
        first.commit().unwrap();
        assert!(target.exists());
    }

    #[cfg(unix)]
    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let error = io::Error::other(
            "No space left on device (os error 28) at path \"/tmp/.terrane-x.part\"",
        );
        assert_eq!(
            without_path(error).to_string(),
            "No space left on device (os error 28)"
        );
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_another_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - 2 * ABANDONED;
        let unfinished = |name: &str| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(old).unwrap();
            file
        };
        drop(unfinished(".terrane-killed.part"));
        let writing = unfinished(".terrane-writing.part");
        writing.lock().unwrap();
        std::fs::write(folder.path().join(".terrane-fresh.part"), b"").unwrap();
        std::fs::write(folder.path().join("mine.part"), b"").unwrap();
        let target = folder.path().join("a.tif");
        drop(AtomicFile::create(&Output::named_here(&target, Existing::Refuse)).unwrap());
        assert_eq!(
            names(folder.path()),
            [".terrane-fresh.part", ".terrane-writing.part", "mine.part"]
        );
    }
}
