//! Puts right the checksums of trees that are kept in a journal or a shard.

use sha2::{Digest, Sha256};
use terrane_format::Pyramid;

use crate::mend::{number, put_crc, record_crc};

/// Magic and fingerprint of a journal.
const JOURNAL_HEAD: usize = 8 + 32;
/// Magic, version, number and plan of a shard.
const SHARD_HEAD: usize = 8 + 4 + 4 + 32;
/// Trees, heights and checksum at the end of a shard.
const SHARD_TAIL: usize = 8 + 8 + HASH;
/// Number and length of a tree.
const TREE: usize = 8 + 8;
/// Length and measures of a tile.
const TILE: usize = 4 + 40;
const HASH: usize = 32;

fn size(bytes: &[u8]) -> Option<usize> {
    usize::try_from(number(bytes)).ok()
}

/// Mends a tree: its tiles' entries, then each record.
fn mend_tree(pyramid: &Pyramid, tree: u64, bytes: &mut [u8]) -> Option<()> {
    let places = pyramid.tree_tiles(pyramid.tree(tree)?);
    let (entries, rest) = bytes.split_at_mut_checked(places.len() * TILE)?;
    let (hash, mut rest) = rest.split_at_mut_checked(HASH)?;
    hash.copy_from_slice(&Sha256::digest(&*entries));
    for (place, entry) in places.into_iter().zip(entries.chunks_exact(TILE)) {
        let (record, after) = rest.split_at_mut_checked(size(&entry[..4])?)?;
        if let Some(crc) = record_crc(record, pyramid.number(place).ok()?) {
            put_crc(record, 0, crc);
        }
        rest = after;
    }
    Some(())
}

/// A journal with all checksums right that can be.
pub(crate) fn mend_journal(pyramid: &Pyramid, bytes: &mut [u8]) -> Option<()> {
    let mut rest = bytes.get_mut(JOURNAL_HEAD..)?;
    loop {
        let (entry, after) = rest.split_at_mut_checked(TREE)?;
        let (tree, after) = after.split_at_mut_checked(size(&entry[8..])?)?;
        mend_tree(pyramid, number(&entry[..8]), tree);
        rest = after;
    }
}

/// A shard with all checksums right that can be.
pub(crate) fn mend_shard(pyramid: &Pyramid, bytes: &mut [u8]) -> Option<()> {
    let tail = bytes.len().checked_sub(SHARD_TAIL)?;
    let trees = size(&bytes[tail..tail + 8])?;
    let heights = size(&bytes[tail + 8..tail + 16])?;
    let rows = tail.checked_sub(heights.checked_mul(8)?)?;
    let index = rows.checked_sub(trees.checked_mul(TREE)?)?;
    let (kept, entries) = bytes.split_at_mut_checked(index)?;
    let (head, mut rest) = kept.split_at_mut_checked(SHARD_HEAD)?;
    for entry in entries[..rows - index].chunks_exact(TREE) {
        let Some((tree, after)) =
            size(&entry[8..]).and_then(|length| rest.split_at_mut_checked(length))
        else {
            break;
        };
        mend_tree(pyramid, number(&entry[..8]), tree);
        rest = after;
    }
    let stated = entries.len() - HASH;
    let mut hash = Sha256::new();
    hash.update(&*head);
    hash.update(&entries[..stated]);
    entries[stated..].copy_from_slice(&hash.finalize());
    Some(())
}
