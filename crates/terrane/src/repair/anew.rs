//! A file whose head is lost: encoded once more, and compared with what is left of it.

use std::collections::BTreeSet;
use std::io::Cursor;

use terrane_codec::format::{ByteSource, LocalFile, Reader, Writer, record, salvage};
use terrane_codec::remake::{RemadeTree, Remaking};
use terrane_geo::RasterSource;

use super::{HeadRepair, Job, Repaired, settings};
use crate::encode::{RasterHeights, failure, make};
use crate::verify::Report;
use crate::{Destination, Error, Prepared, Result, Settings};

impl Job<'_> {
    /// Encodes the raster in the way that gives the first tree of the file, and checks that every part that differs from the
    /// file's is damaged there.
    pub(super) fn anew(
        &self,
        damaged: &LocalFile,
        start: &[u8],
        head: HeadRepair,
        progress: &mut Report,
    ) -> Result<Repaired> {
        let raster = self.raster()?;
        let traces = salvage::traces(start);
        let (mut refused, mut other) = (None, None);
        for way in settings::of_traces(start, &traces, &self.repairing.hints) {
            let memory = self.repairing.resources.memory;
            let plain = match way.prepare(memory) {
                Ok(prepared) => prepared,
                Err(error) => {
                    // Guesses may contradict each other; what was given may not.
                    refused = refused.or(Some(error));
                    continue;
                }
            };
            // A rate of the whole file takes the whole raster to find.
            let first = if plain.is_whole {
                None
            } else {
                self.first_tree(&*raster, &plain)?
            };
            let embedding = Settings {
                embed_model: true,
                ..way
            };
            let embedding = embedding.prepare(memory).ok();
            for prepared in [Some(plain), embedding].into_iter().flatten() {
                if !prepared.is_whole
                    && !self.is_first(damaged, &*raster, &prepared, first.as_ref())?
                {
                    continue;
                }
                match self.encode(damaged, &*raster, &prepared, head, progress) {
                    Err(error @ (Error::NotRemade { .. } | Error::NothingLeft { .. })) => {
                        other = Some(error);
                    }
                    outcome => return outcome,
                }
            }
            other = other.or_else(|| {
                Some(Error::HeadLost {
                    path: self.path.to_owned(),
                })
            });
        }
        Err(other.or(refused).unwrap_or_else(|| self.not_remade()))
    }

    /// Encodes the raster in one way; the file gets its name where it is the one that there was.
    fn encode(
        &self,
        damaged: &LocalFile,
        raster: &dyn RasterSource,
        prepared: &Prepared,
        head: HeadRepair,
        progress: &mut Report,
    ) -> Result<Repaired> {
        let destination = Destination {
            out: self.repairing.out.clone(),
            resumable: None,
            resources: self.repairing.resources,
        };
        let mut made = make(raster, prepared, destination, &mut |at| {
            progress("encode", at.tiles, at.of, "tiles");
            Ok(())
        })?;
        let reader = self.open_reader(made.file.file())?;
        let repaired = self.compare(damaged, &reader, head)?;
        made.file.commit()?;
        Ok(repaired)
    }

    /// The first tree of the raster with data, in one way; `None` where there is none.
    fn first_tree(&self, raster: &dyn RasterSource, way: &Prepared) -> Result<Option<RemadeTree>> {
        let (header, encoder) = way.start(raster.info(), way.rate)?;
        let trees: BTreeSet<u64> = (0..header.pyramid.trees()).collect();
        let remaking = Remaking {
            pyramid: &header.pyramid,
            encoder: &encoder,
            trees: &trees,
            resources: self.repairing.resources,
        };
        let mut heights = RasterHeights {
            raster,
            not_heights: 0,
        };
        let mut first = None;
        let mut take = |tree: RemadeTree| {
            first = Some(tree);
            Err(terrane_codec::Error::Stopped)
        };
        let outcome = remaking.run(&mut heights, &mut take, &mut |_, _| Ok(()));
        if first.is_none() {
            let out = self.repairing.out.path();
            outcome.map_err(|error| failure(error, &raster.info().path, out))?;
        }
        Ok(first)
    }

    /// Whether a record of the first tree is where it must be in the damaged file.
    fn is_first(
        &self,
        damaged: &LocalFile,
        raster: &dyn RasterSource,
        way: &Prepared,
        tree: Option<&RemadeTree>,
    ) -> Result<bool> {
        let (header, _) = way.start(raster.info(), way.rate)?;
        let embedded = way.embedded();
        let writer = Writer::create(Cursor::new(Vec::new()), header, embedded.is_some())?;
        let mut offset = writer.length() + embedded.map_or(0, |model| model.len() as u64);
        let records = tree.iter().flat_map(|tree| &tree.records);
        for made in records.filter(|made| !made.is_empty()) {
            if self.read(damaged, offset, made.len())? == *made {
                return Ok(true);
            }
            offset += made.len() as u64;
        }
        Ok(false)
    }

    /// Compares a new file with a damaged one: whatever differs must be damaged there, and something must be the same.
    fn compare(&self, damaged: &LocalFile, new: &Reader, head: HeadRepair) -> Result<Repaired> {
        let length = damaged.length().map_err(|error| self.unreadable(error))?;
        let mut repaired = Repaired {
            bytes: new.length(),
            head,
            pages: 0,
            records: 0,
            unproven: 0,
            model: false,
            length: length != new.length(),
        };
        let was = self.read(damaged, 0, new.head().len())?;
        if head != HeadRepair::Anew && was != new.head() {
            return Err(self.not_remade());
        }
        let model = new.header().model.as_ref();
        if let Some(extent) = model.and_then(|model| model.embedded) {
            let was = self.read(damaged, extent.offset, extent.length as usize)?;
            repaired.model = salvage::checksum(&was) != extent.crc;
        }
        let pyramid = &new.header().pyramid;
        let mut same = 0_u64;
        for (page, trees) in new.page_trees().enumerate() {
            if let Some(extent) = new.page_extent(page) {
                let was = self.read(damaged, extent.offset, extent.length as usize)?;
                let is_same = salvage::checksum(&was) == extent.crc;
                repaired.pages += u64::from(!is_same);
                same += u64::from(is_same);
            }
            for (number, location) in trees.zip(new.page_locations(page)?) {
                let Some(root) = pyramid.tree(number) else {
                    continue;
                };
                if location.lengths.is_empty() {
                    continue;
                }
                for (index, tile) in pyramid.tree_tiles(root).into_iter().enumerate() {
                    let at = location.record(index);
                    if at.length == 0 {
                        continue;
                    }
                    let made = new.raw(at.offset, at.length as usize)?;
                    let was = self.read(damaged, at.offset, made.len())?;
                    if was == made {
                        same += 1;
                        continue;
                    }
                    if record::check(&was, pyramid.number(tile)?).is_ok() {
                        return Err(self.not_remade());
                    }
                    repaired.records += 1;
                    let is_proven = was.get(..4) == made.get(..4) || was.get(4..) == made.get(4..);
                    repaired.unproven += u64::from(!is_proven);
                }
            }
        }
        if same == 0 {
            return Err(Error::NothingLeft {
                path: self.path.to_owned(),
            });
        }
        Ok(repaired)
    }
}
