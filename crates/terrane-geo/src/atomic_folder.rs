//! A folder that appears whole or not at all, and never in place of anything that is not its like.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::atomic::{
    GONE, LOCK, PREFIX, folder_beside, is_abandoned, remove_folder, settle, unfinished,
};
use crate::output::folder;
use crate::{Error, Existing, Result};

/// The ending of a folder that made room for another, while the other takes its place.
const ASIDE: &str = ".old";

/// What a folder of some kind holds: all files of these names, and nothing else than what may be beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderKind {
    /// What it is, as in "a tile dataset".
    pub name: &'static str,
    /// Names of its files.
    pub files: &'static [&'static str],
    /// Names of folders in it, whatever they hold.
    pub folders: &'static [&'static str],
    /// Endings of other files that it may have.
    pub endings: &'static [&'static str],
}

impl FolderKind {
    /// Files of these names alone.
    pub const fn of_files(name: &'static str, files: &'static [&'static str]) -> Self {
        Self {
            name,
            files,
            folders: &[],
            endings: &[],
        }
    }

    fn has(&self, name: &str, is_file: bool) -> bool {
        if !is_file {
            return self.folders.contains(&name);
        }
        let ending = Path::new(name).extension().and_then(OsStr::to_str);
        self.files.contains(&name) || ending.is_some_and(|ending| self.endings.contains(&ending))
    }
}

/// A folder that is filled under a temporary name beside its target and renamed by [`AtomicFolder::commit`].
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: Temporary,
    /// As it was named.
    target: PathBuf,
    /// Where it lies: a link to a folder stays, and its folder is replaced.
    real_path: PathBuf,
    existing: Existing,
    kind: FolderKind,
}

impl AtomicFolder {
    /// Starts a folder; nothing is seen at `target` before it is committed.
    ///
    /// A folder that is there is replaced where `existing` says so, if it is of the same kind and neither holds any of
    /// the inputs nor lies in one. Folders that a killed process left unfinished in the same place are removed.
    pub fn create(
        target: &Path,
        existing: Existing,
        kind: FolderKind,
        inputs: &[&Path],
    ) -> Result<Self> {
        let real_path = Self::check(target, existing, kind, inputs)?;
        remove_stale(folder(&real_path));
        let failed = |source| Error::of_path(target, "be created", source);
        let temporary = Temporary::create(folder(&real_path)).map_err(failed)?;
        Ok(Self {
            temporary,
            target: target.to_owned(),
            real_path,
            existing,
            kind,
        })
    }

    /// Refuses what [`AtomicFolder::create`] refuses, for those who have long to do before; gives the folder's real path.
    pub fn check(
        target: &Path,
        existing: Existing,
        kind: FolderKind,
        inputs: &[&Path],
    ) -> Result<PathBuf> {
        let real_path = real_path(target)?;
        if real_path.exists() {
            refuse_foreign(target, &real_path, kind)?;
            if existing == Existing::Refuse {
                return Err(Error::Exists {
                    path: target.to_owned(),
                });
            }
            refuse_inputs(target, &real_path, inputs)?;
        }
        Ok(real_path)
    }

    /// The folder while it is being filled.
    pub fn path(&self) -> &Path {
        &self.temporary.path
    }

    /// Makes the folder appear under its name.
    pub fn commit(self) -> Result<()> {
        let failed = |source| Error::Io {
            path: self.target.clone(),
            action: "be renamed into place",
            source,
        };
        let new = self.path();
        sync(new).map_err(failed)?;
        if self.real_path.exists() {
            if self.existing == Existing::Refuse {
                return Err(Error::Exists { path: self.target });
            }
            // It may have changed since the start, and may change until it has another name.
            let check = |old: &Path| refuse_foreign(&self.target, old, self.kind);
            check(&self.real_path)?;
            let permissions = fs::metadata(&self.real_path).map_err(failed)?.permissions();
            fs::set_permissions(new, permissions).map_err(failed)?;
            replace(new, &self.real_path, &check).map_err(failed)??;
        } else {
            settle(new, || fs::rename(new, &self.real_path)).map_err(failed)?;
        }
        // The name is in the folder around it, which is written by itself.
        if let Ok(parent) = File::open(folder(&self.real_path)) {
            let _ = parent.sync_all();
        }
        // What was replaced has the temporary name now, and goes with it.
        Ok(())
    }
}

/// A folder under a temporary name, and the lock beside it. Whatever has the name in the end is removed; what cannot be is for
/// whoever makes the next folder here, who knows it by its lock.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    /// `None` where the file system knows no locks, and nobody may take the folder for one that was left behind.
    lock: Option<NamedTempFile>,
}

impl Temporary {
    fn create(parent: &Path) -> io::Result<Self> {
        // A signal finds both or neither.
        let mut unfinished = unfinished();
        let lock = tempfile::Builder::new()
            .prefix(PREFIX)
            .suffix(LOCK)
            .tempfile_in(parent)?;
        let is_held = lock.as_file().try_lock().is_ok();
        let path = folder_beside(lock.path());
        fs::create_dir(&path)?;
        unfinished.insert(lock.path().to_owned());
        unfinished.insert(path.clone());
        let lock = is_held.then_some(lock);
        Ok(Self { path, lock })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let removed = settle(&self.path, || remove_folder(&self.path));
        if let (Err(_), Some(lock)) = (removed, self.lock.take()) {
            let _ = lock.keep();
        }
    }
}

/// What a folder must pass that makes room for another, once nobody comes to it by its name.
type Check<'a> = &'a dyn Fn(&Path) -> Result<()>;

/// Puts a folder in the place of another, which then has its temporary name; or leaves both where they are and gives what the
/// check said of the other. A signal waits.
fn replace(new: &Path, real_path: &Path, check: Check<'_>) -> io::Result<Result<()>> {
    let _held = unfinished();
    match exchange(new, real_path) {
        Ok(()) => {
            let checked = check(new);
            if checked.is_err() && exchange(new, real_path).is_err() {
                // It is not ours to remove.
                fs::rename(new, aside(new))?;
            }
            Ok(checked)
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            replace_in_steps(new, real_path, check)
        }
        Err(error) => Err(error),
    }
}

/// As [`replace`] where two names cannot be exchanged: the old folder has another name for a moment, and is renamed back if its
/// place cannot be taken. A program that is killed within leaves a whole folder under that name, which nobody takes for an
/// unfinished one.
fn replace_in_steps(new: &Path, real_path: &Path, check: Check<'_>) -> io::Result<Result<()>> {
    let aside = aside(new);
    fs::rename(real_path, &aside)?;
    let outcome = match check(&aside) {
        Ok(()) => fs::rename(new, real_path).map(Ok),
        refused => Ok(refused),
    };
    let is_replaced = matches!(outcome, Ok(Ok(())));
    // Whatever becomes of the old, the new is in its place or it is not.
    let _ = fs::rename(aside, if is_replaced { new } else { real_path });
    outcome
}

/// Exchanges two names at once, where the system and the file system can: "unsupported" elsewhere.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| match error {
        Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => ErrorKind::Unsupported.into(),
        _ => error.into(),
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// A name beside a temporary folder that nobody else takes.
fn aside(temporary: &Path) -> PathBuf {
    let mut name = OsString::from(temporary);
    name.push(ASIDE);
    name.into()
}

/// What is in a folder. Files are opened again after a signal by themselves, folders are not.
fn entries(path: &Path) -> io::Result<fs::ReadDir> {
    loop {
        match fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Brings all files of a folder to the disk, and their names.
fn sync(path: &Path) -> io::Result<()> {
    for entry in entries(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            // Windows brings nothing to the disk that is open for reading alone.
            File::options()
                .read(true)
                .write(cfg!(windows))
                .open(entry.path())?
                .sync_all()?;
        }
    }
    // Some systems cannot bring a folder to the disk by itself.
    let _ = File::open(path).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Where a target lies once all links are followed.
fn real_path(target: &Path) -> Result<PathBuf> {
    let failed = |source| Error::Io {
        path: target.to_owned(),
        action: "be created",
        source,
    };
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_symlink() => match target.canonicalize() {
            Ok(real_path) => Ok(real_path),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::Foreign {
                path: target.to_owned(),
                found: "is a link to nothing".into(),
            }),
            Err(error) => Err(failed(error)),
        },
        Ok(_) => target.canonicalize().map_err(failed),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(target.to_owned()),
        Err(error) => Err(failed(error)),
    }
}

/// Refuses whatever is there unless it is a folder of a kind.
fn refuse_foreign(target: &Path, real_path: &Path, kind: FolderKind) -> Result<()> {
    let foreign = |found: String| {
        Err(Error::Foreign {
            path: target.to_owned(),
            found,
        })
    };
    if !real_path.is_dir() {
        return foreign("is a file, and no folder".into());
    }
    let failed = |source| Error::Io {
        path: target.to_owned(),
        action: "be listed",
        source,
    };
    let mut names = Vec::new();
    for entry in entries(real_path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let found = entry.file_type().map_err(failed)?;
        // A link is neither.
        if !(found.is_file() || found.is_dir()) || !kind.has(&name, found.is_file()) {
            return foreign(format!(
                "holds \"{name}\", which is no part of {}",
                kind.name
            ));
        }
        names.push(name);
    }
    if names.is_empty() {
        return foreign(format!("is an empty folder, and not {}", kind.name));
    }
    match kind
        .files
        .iter()
        .find(|name| !names.iter().any(|n| n == *name))
    {
        Some(name) => foreign(format!("is not {}: it has no \"{name}\"", kind.name)),
        None => Ok(()),
    }
}

/// Refuses a folder that is an input, holds one or lies in one.
fn refuse_inputs(target: &Path, real_path: &Path, inputs: &[&Path]) -> Result<()> {
    for &input in inputs {
        let Ok(found) = input.canonicalize() else {
            continue;
        };
        if real_path.starts_with(&found) || found.starts_with(real_path) {
            return Err(Error::HoldsInput {
                path: target.to_owned(),
                input: input.to_owned(),
            });
        }
    }
    Ok(())
}

/// Removes the temporary folders of processes that are gone: those beside a lock that nobody holds, and that had time to be held,
/// and those that were being removed.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    // Of others it may not be possible, and the new folder does not depend on it.
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if !name.starts_with(PREFIX) {
            continue;
        }
        if kind.is_dir() && name.ends_with(GONE) {
            let _ = remove_folder(&path);
        }
        // A lock stays as long as its folder.
        if kind.is_file()
            && name.ends_with(LOCK)
            && is_abandoned(&path)
            && remove_folder(&folder_beside(&path)).is_ok()
        {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KIND: FolderKind = FolderKind::of_files("a set", &["head", "body"]);

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn start(target: &Path, existing: Existing, inputs: &[&Path]) -> Result<AtomicFolder> {
        let folder = AtomicFolder::create(target, existing, KIND, inputs)?;
        for name in KIND.files {
            fs::write(
                folder.path().join(name),
                target.as_os_str().as_encoded_bytes(),
            )
            .unwrap();
        }
        Ok(folder)
    }

    fn make(target: &Path, existing: Existing) -> Result<()> {
        start(target, existing, &[])?.commit()
    }

    fn complaint(target: &Path, inputs: &[&Path]) -> String {
        start(target, Existing::Replace, inputs)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_folder_appears_whole() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        drop(start(&target, Existing::Refuse, &[]).unwrap());
        assert!(names(parent.path()).is_empty());
        for existing in [Existing::Refuse, Existing::Replace] {
            make(&target, existing).unwrap();
            assert_eq!(names(parent.path()), ["set"]);
            assert_eq!(names(&target), ["body", "head"]);
        }
        assert!(matches!(
            make(&target, Existing::Refuse),
            Err(Error::Exists { .. })
        ));
    }

    #[test]
    fn only_its_like_is_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("home");
        fs::create_dir(&target).unwrap();
        assert!(complaint(&target, &[]).contains("is an empty folder, and not a set"));
        fs::write(target.join("head"), "").unwrap();
        assert!(complaint(&target, &[]).contains("it has no \"body\""));
        fs::write(target.join("body"), "").unwrap();
        fs::write(target.join("letter"), "dear").unwrap();
        assert!(complaint(&target, &[]).contains("holds \"letter\", which is no part of a set"));
        assert_eq!(fs::read(target.join("letter")).unwrap(), b"dear");
        fs::remove_file(target.join("letter")).unwrap();
        fs::create_dir(target.join("deep")).unwrap();
        assert!(complaint(&target, &[]).contains("holds \"deep\""));
        fs::remove_dir(target.join("deep")).unwrap();
        make(&target, Existing::Replace).unwrap();

        let file = parent.path().join("file");
        fs::write(&file, "dear").unwrap();
        assert!(complaint(&file, &[]).contains("is a file, and no folder"));
        assert_eq!(fs::read(&file).unwrap(), b"dear");
        assert_eq!(names(parent.path()), ["file", "home"]);
    }

    #[test]
    fn a_kind_may_have_folders_and_files_by_their_endings() {
        let kind = FolderKind {
            folders: &["deep"],
            endings: &["trn"],
            ..KIND
        };
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        for _ in 0..2 {
            let folder = AtomicFolder::create(&target, Existing::Replace, kind, &[]).unwrap();
            fs::create_dir(folder.path().join("deep")).unwrap();
            for name in ["head", "body", "a.trn", "deep/letter"] {
                fs::write(folder.path().join(name), "dear").unwrap();
            }
            folder.commit().unwrap();
        }
        assert_eq!(names(&target), ["a.trn", "body", "deep", "head"]);
        fs::write(target.join("a.tif"), "dear").unwrap();
        let error = AtomicFolder::create(&target, Existing::Replace, kind, &[]).unwrap_err();
        assert!(error.to_string().contains("holds \"a.tif\""), "{error}");
    }

    #[test]
    fn a_file_that_comes_meanwhile_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        make(&target, Existing::Refuse).unwrap();
        let folder = start(&target, Existing::Replace, &[]).unwrap();
        fs::write(target.join("letter"), "dear").unwrap();
        assert!(matches!(folder.commit(), Err(Error::Foreign { .. })));
        assert_eq!(names(&target), ["body", "head", "letter"]);

        let late = parent.path().join("late");
        let folder = start(&late, Existing::Refuse, &[]).unwrap();
        fs::create_dir(&late).unwrap();
        assert!(matches!(folder.commit(), Err(Error::Exists { .. })));
        assert_eq!(names(parent.path()), ["late", "set"]);
    }

    #[test]
    fn inputs_are_not_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        make(&target, Existing::Refuse).unwrap();
        let input = target.join("head");
        for input in [parent.path(), &target, &input, &target.join("../set")] {
            let text = complaint(&target, &[input]);
            assert!(text.contains("is, holds or lies in the input"), "{text}");
        }
        // What is not there yet takes nothing away from what it lies in.
        start(
            &parent.path().join("new"),
            Existing::Replace,
            &[parent.path()],
        )
        .unwrap();
        start(&target, Existing::Replace, &[Path::new("/no/such/input")]).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_their_folders_are_replaced() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let parent = tempfile::tempdir().unwrap();
        let (real, link) = (parent.path().join("deep/real"), parent.path().join("link"));
        fs::create_dir(parent.path().join("deep")).unwrap();
        symlink("deep/real", &link).unwrap();
        assert!(complaint(&link, &[]).contains("is a link to nothing"));
        make(&real, Existing::Refuse).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).unwrap();
        make(&link, Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let written = fs::read(real.join("head")).unwrap();
        assert_eq!(written, link.as_os_str().as_encoded_bytes());
        let mode = fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(names(&parent.path().join("deep")), ["real"]);
        assert!(complaint(&link, &[&real]).contains("lies in the input"));
    }

    #[test]
    fn what_cannot_take_its_place_leaves_the_old() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        make(&target, Existing::Refuse).unwrap();
        let missing = parent.path().join("gone");
        for replace in [replace, replace_in_steps] {
            let error = replace(&missing, &target, &|_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert_eq!(names(parent.path()), ["set"]);
            assert_eq!(names(&target), ["body", "head"]);
        }
    }

    #[test]
    fn what_came_at_the_last_moment_is_put_back() {
        let parent = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| parent.path().join(name));
        for (path, name) in [(&old, "before"), (&new, "after")] {
            fs::create_dir(path).unwrap();
            fs::write(path.join(name), "").unwrap();
        }
        let refuse = |path: &Path| {
            assert_eq!(names(path), ["before"]);
            refuse_foreign(&old, path, KIND)
        };
        for replace in [replace, replace_in_steps] {
            let refused = replace(&new, &old, &refuse).unwrap();
            assert!(matches!(refused, Err(Error::Foreign { .. })));
            assert_eq!(
                (names(&old), names(&new)),
                (vec!["before".into()], vec!["after".into()])
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_nothing_may_be_removed_from_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("set");
        make(&target, Existing::Refuse).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o555)).unwrap();
        for _ in 0..2 {
            make(&target, Existing::Replace).unwrap();
            assert_eq!(names(parent.path()), ["set"]);
            let mode = fs::metadata(&target).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o555);
        }
        remove_folder(&target).unwrap();
    }

    #[test]
    fn the_old_has_the_temporary_name() {
        let parent = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| parent.path().join(name));
        for replace in [replace, replace_in_steps] {
            for (path, name) in [(&old, "before"), (&new, "after")] {
                fs::create_dir(path).unwrap();
                fs::write(path.join(name), "").unwrap();
            }
            replace(&new, &old, &|_| Ok(())).unwrap().unwrap();
            assert_eq!(names(parent.path()), ["new", "old"]);
            assert_eq!(
                (names(&old), names(&new)),
                (vec!["after".into()], vec!["before".into()])
            );
            for path in [&old, &new] {
                fs::remove_dir_all(path).unwrap();
            }
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let lock = |name: &str, age: Duration| {
            let lock = File::create(parent.path().join(name)).unwrap();
            lock.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
            lock
        };
        let left = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("body"), "half").unwrap();
        };
        let minutes = Duration::from_mins(2);
        lock(".terrane-stale.lock", minutes);
        left(".terrane-stale.part");
        lock(".terrane-alone.lock", minutes);
        lock(".terrane-young.lock", Duration::ZERO);
        left(".terrane-young.part");
        let held = lock(".terrane-held.lock", minutes);
        held.lock().unwrap();
        left(".terrane-held.part");
        left(".terrane-set.part.old");
        left("mine.part");
        lock("mine.lock", minutes);
        left(".terrane-bare.part");
        left(".terrane-going.gone.part");
        fs::write(parent.path().join(".terrane-file.part"), "file").unwrap();
        make(&parent.path().join("set"), Existing::Refuse).unwrap();
        assert_eq!(
            names(parent.path()),
            [
                ".terrane-bare.part",
                ".terrane-file.part",
                ".terrane-held.lock",
                ".terrane-held.part",
                ".terrane-set.part.old",
                ".terrane-young.lock",
                ".terrane-young.part",
                "mine.lock",
                "mine.part",
                "set"
            ]
        );
    }

    #[test]
    fn a_folder_that_is_being_filled_is_not_stale() {
        let parent = tempfile::tempdir().unwrap();
        let folder = start(&parent.path().join("set"), Existing::Refuse, &[]).unwrap();
        let past = std::time::SystemTime::now() - Duration::from_mins(9);
        let lock = folder.temporary.lock.as_ref().unwrap().as_file();
        lock.set_modified(past).unwrap();
        make(&parent.path().join("other"), Existing::Refuse).unwrap();
        folder.commit().unwrap();
        assert_eq!(names(parent.path()), ["other", "set"]);
    }
}
