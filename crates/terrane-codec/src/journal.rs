//! Finished trees of an encoding, kept beside it so that one that was stopped can go on.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use terrane_format::{Header, Pyramid, read_exact_at};

use crate::Error;
use crate::tile::TileEncoder;
use crate::tree::EncodedTree;

/// The first bytes of a journal: whatever else has its name is not touched.
const MAGIC: [u8; 8] = *b"\x89TRJ\r\n\x1a\n";
/// Magic and fingerprint.
const HEAD: usize = MAGIC.len() + 32;
/// Number and length before each tree.
const ENTRY: usize = 8 + 8;

/// The trees of one encoding, by number.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Appended to under the lock, and read at offsets beside it.
    file: File,
    end: Mutex<()>,
    pyramid: Pyramid,
    known: HashMap<u64, (u64, usize)>,
}

/// What the machine said of a journal.
fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::JournalIo {
        path: path.to_owned(),
        source,
    }
}

/// What tells one encoding from another: the head of its file, how tiles are coded, and its sources.
fn fingerprint(header: &Header, encoder: &TileEncoder, identity: &str) -> Result<[u8; 32], Error> {
    let TileEncoder {
        // The header has the method, and names its model by the hash.
        method: _,
        model: _,
        bits,
        coding,
        rate,
        is_f32,
        source_step_m,
        effort,
    } = encoder;
    let settings = (
        header,
        bits,
        coding,
        rate,
        is_f32,
        source_step_m,
        effort,
        identity,
    );
    let text = serde_json::to_vec(&settings)
        .map_err(|error| Error::Format(std::io::Error::from(error).into()))?;
    Ok(Sha256::digest(text).into())
}

impl Journal {
    /// Opens the journal of an encoding, or starts it. One of another encoding is started anew: `identity` is what
    /// tells sources apart (their names, sizes and times).
    pub fn open(
        path: &Path,
        header: &Header,
        encoder: &TileEncoder,
        identity: &str,
    ) -> Result<Self, Error> {
        let fingerprint = fingerprint(header, encoder, identity)?;
        let failed = failed(path);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(&failed)?;
        let refuse = |reason| Error::Journal {
            path: path.to_owned(),
            reason,
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(refuse("is being written by another encoding"));
            }
            // Without locks two encodings at once are the user's to avoid.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut start = Vec::new();
        let mut head = (&file).take(HEAD as u64);
        head.read_to_end(&mut start).map_err(&failed)?;
        let said = start.len().min(MAGIC.len());
        if start[..said] != MAGIC[..said] {
            return Err(refuse(
                "is no journal of an encoding: move it away, or name another output",
            ));
        }
        let mut known = HashMap::new();
        let mut end = HEAD as u64;
        if start.get(MAGIC.len()..) == Some(&fingerprint) {
            // What was cut off in the middle of an entry is written again.
            while let Some((number, bytes)) = entry(&mut file).map_err(&failed)? {
                known.insert(number, (end + ENTRY as u64, bytes));
                end += (ENTRY + bytes) as u64;
            }
        } else {
            file.set_len(0).map_err(&failed)?;
            file.write_all(&MAGIC).map_err(&failed)?;
            file.write_all(&fingerprint).map_err(&failed)?;
        }
        file.set_len(end).map_err(&failed)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            end: Mutex::default(),
            pyramid: header.pyramid.clone(),
            known,
        })
    }

    /// A tree that was made before.
    pub(crate) fn tree(&self, number: u64) -> Option<EncodedTree> {
        let &(offset, length) = self.known.get(&number)?;
        let mut bytes = vec![0; length];
        read_exact_at(&self.file, &mut bytes, offset).ok()?;
        EncodedTree::parse(&self.pyramid, number, &bytes)
    }

    /// Keeps a tree.
    pub(crate) fn keep(&self, tree: &EncodedTree) -> Result<(), Error> {
        if self.known.contains_key(&tree.number) {
            return Ok(());
        }
        let bytes = tree.to_bytes();
        let mut entry = Vec::with_capacity(ENTRY + bytes.len());
        entry.extend(tree.number.to_le_bytes());
        entry.extend((bytes.len() as u64).to_le_bytes());
        entry.extend_from_slice(&bytes);
        let _end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.file).write_all(&entry).map_err(failed(&self.path))
    }

    /// Removes the journal: the file is whole.
    pub fn remove(self) -> Result<(), Error> {
        std::fs::remove_file(&self.path).map_err(failed(&self.path))
    }
}

/// The next entry's number and length, with the file after its tree; `None` at the end. What cannot be read is no end:
/// the trees after it would be lost.
fn entry(file: &mut File) -> std::io::Result<Option<(u64, usize)>> {
    let mut head = [0; ENTRY];
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome?,
    }
    let number = u64::from_le_bytes(std::array::from_fn(|index| head[index]));
    let length = u64::from_le_bytes(std::array::from_fn(|index| head[8 + index]));
    let end = file.stream_position()?.checked_add(length);
    let (Some(end), Ok(length)) = (end, usize::try_from(length)) else {
        return Ok(None);
    };
    if end > file.metadata()?.len() {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(end))?;
    Ok(Some((number, length)))
}
