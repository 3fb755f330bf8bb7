//! What is damaged behind a head that is known, and how it is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use terrane_codec::format::{
    Error as FormatError, LocalFile, Reader, TreeLocation, index_page, record, salvage,
};
use terrane_codec::remake::{RemadeTree, Remaking};
use terrane_geo::RasterSource;

use super::gaps::Gaps;
use super::{Job, Repaired, difference, settings, write_at};
use crate::encode::{RasterHeights, failure};
use crate::verify::Report;
use crate::{Error, Prepared, Result, Target, is_damage};

/// What is damaged.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Trees of which a record is damaged, and where they are.
    damaged: BTreeMap<u64, TreeLocation>,
    /// Pages of the index that are lost, and with them where their trees are.
    lost: Vec<usize>,
    /// Pages of the index that were put right.
    mended: Vec<usize>,
    /// Places of all parts that are known, as offset and length.
    parts: Vec<(u64, u64)>,
    /// Whether the model inside the file is damaged.
    model: bool,
}

/// What came of an attempt.
#[derive(Default)]
struct Attempt {
    records: u64,
    unproven: u64,
    /// Where the trees of lost pages are.
    found: BTreeMap<u64, TreeLocation>,
    seen: BTreeSet<u64>,
}

/// Passes an error on that says nothing about the file.
fn damage(error: FormatError) -> Result<()> {
    let error = error.into();
    if is_damage(&error) {
        Ok(())
    } else {
        Err(Error::Terrain(error))
    }
}

impl Trees {
    /// Looks for damage in a copy of a file; pages of the index with one wrong byte are put right there.
    pub(super) fn find(job: &Job, copy: &mut File, progress: &mut Report) -> Result<Self> {
        let reader = job.open_reader(copy)?;
        let mut found = Self::default();
        for page in 0..reader.page_trees().len() {
            let Err(error) = reader.check_page(page) else {
                continue;
            };
            damage(error)?;
            let Some(extent) = reader.page_extent(page) else {
                continue;
            };
            let bytes = reader.raw(extent.offset, extent.length as usize)?;
            match salvage::mended(&bytes, extent.crc) {
                Some(bytes) => {
                    write_at(copy, extent.offset, &bytes)
                        .map_err(|source| job.unwritable(source))?;
                    found.mended.push(page);
                }
                None => found.lost.push(page),
            }
        }
        let reader = job.open_reader(copy)?;
        // A checksum may name a byte by chance: then the parts do not fit together.
        let fits = |page: &usize| reader.check_page(*page).is_ok();
        if !found.mended.iter().all(fits)
            || (found.lost.is_empty() && reader.check_layout().is_err())
        {
            found.lost.append(&mut found.mended);
            found.lost.sort_unstable();
        }
        if let Err(error) = reader.embedded_model(job.repairing.resources.memory) {
            damage(error)?;
            found.model = true;
        }
        found.find_records(job, &reader, progress)?;
        Ok(found)
    }

    fn find_records(&mut self, job: &Job, reader: &Reader, progress: &mut Report) -> Result<()> {
        let pyramid = &reader.header().pyramid;
        let memory = job.repairing.resources.memory;
        self.parts.push((0, reader.head().len() as u64));
        let model = reader.header().model.as_ref();
        self.parts.extend(
            model
                .and_then(|model| model.embedded)
                .map(|extent| (extent.offset, extent.length)),
        );
        for (page, trees) in reader.page_trees().enumerate() {
            self.parts.extend(
                reader
                    .page_extent(page)
                    .map(|extent| (extent.offset, extent.length)),
            );
            if self.lost.contains(&page) {
                continue;
            }
            let locations = reader.page_locations(page)?;
            let last = trees.end;
            for (number, location) in trees.zip(locations) {
                let Some(root) = pyramid.tree(number) else {
                    continue;
                };
                if location.lengths.is_empty() {
                    continue;
                }
                self.parts.push((location.offset, location.length()));
                for (index, tile) in pyramid.tree_tiles(root).into_iter().enumerate() {
                    let at = location.record(index);
                    if at.length == 0 {
                        continue;
                    }
                    memory.check("so long a record", at.length, "")?;
                    let bytes = reader.raw(at.offset, at.length as usize)?;
                    if record::check(&bytes, pyramid.number(tile)?).is_err() {
                        self.damaged.insert(number, location);
                        break;
                    }
                }
            }
            progress("check", last, pyramid.trees(), "trees");
        }
        Ok(())
    }

    /// Makes again what is damaged, in a copy of the file; false where the raster must be encoded as a whole for it.
    pub(super) fn repair(
        &self,
        job: &Job,
        damaged: &LocalFile,
        copy: &mut File,
        repaired: &mut Repaired,
        progress: &mut Report,
    ) -> Result<bool> {
        let reader = job.open_reader(copy)?;
        repaired.pages = (self.lost.len() + self.mended.len()) as u64;
        repaired.model = self.model;
        if self.model {
            restore_model(job, &reader, copy)?;
        }
        if self.damaged.is_empty() && self.lost.is_empty() {
            return Ok(true);
        }
        let raster = job.raster()?;
        check_size(&reader, &*raster)?;
        let hints = &job.repairing.hints;
        let reader = job.open_reader(copy)?;
        let ways = settings::of_head(&reader, hints, job.repairing.resources)?;
        for way in &ways {
            let found = self.attempt(job, &reader, &*raster, way, damaged, copy, progress)?;
            if let Some(attempt) = found {
                raster.check_unchanged()?;
                repaired.records = attempt.records;
                repaired.unproven = attempt.unproven;
                return Ok(true);
            }
        }
        if let Some(error) = difference::find(job, copy, &*raster)? {
            return Err(error);
        }
        if matches!(hints.target, Target::Rmse(_) | Target::Bpp(_)) && !hints.per_tile {
            return Ok(false);
        }
        Err(job.not_remade())
    }

    /// Makes the trees in one way; `None` where that is not how they were made.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is another part of the work"
    )]
    fn attempt(
        &self,
        job: &Job,
        reader: &Reader,
        raster: &dyn RasterSource,
        way: &Prepared,
        damaged: &LocalFile,
        copy: &mut File,
        progress: &mut Report,
    ) -> Result<Option<Attempt>> {
        let pyramid = &reader.header().pyramid;
        let (_, encoder) = way.start(raster.info(), way.rate)?;
        let mut wanted: BTreeSet<u64> = self.damaged.keys().copied().collect();
        for (page, trees) in reader.page_trees().enumerate() {
            if self.lost.contains(&page) {
                wanted.extend(trees);
            }
        }
        let gaps = Gaps::between(self.parts.clone(), reader.length());
        let Some(mut gaps) = gaps else {
            return Ok(None);
        };
        let mut attempt = Attempt::default();
        // What ended the work: an error, or a tree that is not the file's.
        let mut ended: Option<Result<()>> = None;
        let mut take = |tree: RemadeTree| {
            let outcome = self.place(job, pyramid, &tree, &mut gaps, &mut attempt, damaged, copy);
            match outcome {
                Ok(true) => Ok(()),
                Ok(false) => {
                    ended = Some(Ok(()));
                    Err(terrane_codec::Error::Stopped)
                }
                Err(error) => {
                    ended = Some(Err(error));
                    Err(terrane_codec::Error::Stopped)
                }
            }
        };
        let remaking = Remaking {
            pyramid,
            encoder: &encoder,
            trees: &wanted,
            resources: job.repairing.resources,
        };
        let mut heights = RasterHeights {
            raster,
            not_heights: 0,
        };
        let outcome = remaking.run(&mut heights, &mut take, &mut |row, of| {
            progress("repair", row, of, "rows of trees");
            Ok(())
        });
        match ended {
            Some(Ok(())) => return Ok(None),
            Some(Err(error)) => return Err(error),
            None => {}
        }
        outcome.map_err(|error| failure(error, &raster.info().path, job.repairing.out.path()))?;
        if !self
            .damaged
            .keys()
            .all(|number| attempt.seen.contains(number))
        {
            return Ok(None);
        }
        for &page in &self.lost {
            if !write_page(job, reader, page, &attempt.found, copy)? {
                return Ok(None);
            }
        }
        Ok(Some(attempt))
    }

    /// Writes a tree to its place; false where the file has another there.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is another part of the work"
    )]
    fn place(
        &self,
        job: &Job,
        pyramid: &terrane_codec::format::Pyramid,
        tree: &RemadeTree,
        gaps: &mut Gaps,
        attempt: &mut Attempt,
        damaged: &LocalFile,
        copy: &mut File,
    ) -> Result<bool> {
        let lengths: Vec<u32> = tree
            .records
            .iter()
            .map(|bytes| bytes.len() as u32)
            .collect();
        let location = if let Some(location) = self.damaged.get(&tree.number) {
            location.clone()
        } else {
            let length = lengths.iter().map(|&length| u64::from(length)).sum();
            let Some(offset) = gaps.take(length) else {
                return Ok(false);
            };
            let lengths = lengths.clone();
            TreeLocation { offset, lengths }
        };
        if location.lengths != lengths {
            return Ok(false);
        }
        let Some(root) = pyramid.tree(tree.number) else {
            return Ok(false);
        };
        for (index, tile) in pyramid.tree_tiles(root).into_iter().enumerate() {
            let made = &tree.records[index];
            if made.is_empty() {
                continue;
            }
            let offset = location.record(index).offset;
            let was = job.read(damaged, offset, made.len())?;
            if was != *made {
                if record::check(&was, pyramid.number(tile)?).is_ok() {
                    return Ok(false);
                }
                attempt.records += 1;
                // Its checksum survived, or all that it is the checksum of.
                let is_proven = was.get(..4) == made.get(..4) || was.get(4..) == made.get(4..);
                attempt.unproven += u64::from(!is_proven);
            }
            // Also what is equal: the copy may hold something of another attempt.
            write_at(copy, offset, made).map_err(|source| job.unwritable(source))?;
        }
        attempt.seen.insert(tree.number);
        attempt.found.insert(tree.number, location);
        Ok(true)
    }
}

/// Puts the model back into a copy of a file.
fn restore_model(job: &Job, reader: &Reader, copy: &mut File) -> Result<()> {
    let model = settings::model(reader, &job.repairing.hints, job.repairing.resources)?;
    let extent = reader
        .header()
        .model
        .as_ref()
        .and_then(|model| model.embedded);
    if let (Some((_, bytes)), Some(extent)) = (model, extent)
        && bytes.len() as u64 == extent.length
    {
        return write_at(copy, extent.offset, &bytes).map_err(|source| job.unwritable(source));
    }
    Err(job.not_remade())
}

/// Writes a page of the index anew; false where it is not the one that the head states.
fn write_page(
    job: &Job,
    reader: &Reader,
    page: usize,
    found: &BTreeMap<u64, TreeLocation>,
    copy: &mut File,
) -> Result<bool> {
    let (Some(trees), Some(extent)) = (reader.page_trees().nth(page), reader.page_extent(page))
    else {
        return Ok(false);
    };
    let locations: Vec<TreeLocation> = trees
        .map(|number| found.get(&number).cloned().unwrap_or_default())
        .collect();
    let bytes = index_page(&locations);
    if bytes.len() as u64 != extent.length || salvage::checksum(&bytes) != extent.crc {
        return Ok(false);
    }
    write_at(copy, extent.offset, &bytes).map_err(|source| job.unwritable(source))?;
    Ok(true)
}

/// Refuses a raster of another size.
pub(super) fn check_size(reader: &Reader, raster: &dyn RasterSource) -> Result<()> {
    let (width, height) = reader.header().pyramid.size(0).unwrap_or_default();
    let (width, height) = (width as usize, height as usize);
    let info = raster.info();
    if (width, height) == (info.width(), info.height()) {
        return Ok(());
    }
    Err(Error::OtherSize {
        width,
        height,
        other_width: info.width(),
        other_height: info.height(),
    })
}
