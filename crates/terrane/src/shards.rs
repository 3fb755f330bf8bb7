//! The shards of a plan: each made by itself, and all of them merged.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use terrane_codec::encode::{Heights, Report};
use terrane_codec::format::{ByteSource, Error as FormatError, LocalFile, Window};
use terrane_codec::merge::Merge;
use terrane_codec::shard::{ShardEncoding, ShardFile, ShardId};
use terrane_codec::{Measured, Resources, Terrain, TerrainOptions};
use terrane_geo::{AtomicFile, Existing, Grid, Output, Pieces, remove_abandoned};

use crate::encode::failure;
use crate::input::Input;
use crate::open::MODELS;
use crate::{Error, Plan, Result};

/// A shard that is there now.
#[derive(Debug)]
pub struct ShardReport {
    /// Its file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it was there before.
    pub was_there: bool,
    /// What was measured at full resolution.
    pub measured: Measured,
    /// Pixels whose value is neither a height nor declared as nodata; 0 where the shard was there before.
    pub not_heights: u64,
}

/// The heights of the rasters of a shard, with a count of those that are none.
struct PieceHeights<'a> {
    plan: &'a Plan,
    pieces: &'a Pieces,
    not_heights: u64,
}

impl PieceHeights<'_> {
    fn grid(&self, window: Window) -> std::result::Result<Grid, terrane_codec::Error> {
        let grid = self.pieces.read(self.plan.on_grid(window));
        grid.map_err(|error| terrane_codec::Error::Source(Box::new(error)))
    }
}

impl Heights for PieceHeights<'_> {
    fn read(&mut self, window: Window) -> std::result::Result<Vec<f64>, terrane_codec::Error> {
        let grid = self.grid(window)?;
        self.not_heights += grid.not_heights as u64;
        Ok(grid.heights)
    }

    fn read_around(
        &mut self,
        window: Window,
    ) -> std::result::Result<Vec<f64>, terrane_codec::Error> {
        // What is none is counted by the shard that it belongs to.
        Ok(self.grid(window)?.heights)
    }

    fn touches(&self, window: Window) -> bool {
        self.pieces.touches(self.plan.on_grid(window))
    }
}

/// A merged file.
#[derive(Debug)]
pub struct Merged {
    /// Its bytes.
    pub bytes: u64,
    /// What was measured at full resolution.
    pub measured: Measured,
}

/// A file whose errors say which it is: a merge reads many.
struct NamedFile {
    path: PathBuf,
    file: LocalFile,
}

impl NamedFile {
    fn open(path: PathBuf) -> std::result::Result<Self, FormatError> {
        match LocalFile::open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(named(&path, error)),
        }
    }

    /// A file that is open, and has another name as yet.
    fn of(file: std::fs::File, path: &Path) -> std::result::Result<Self, FormatError> {
        let file = LocalFile::from_file(file).map_err(|error| named(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }
}

fn named(path: &Path, error: FormatError) -> FormatError {
    match error {
        FormatError::Io(error) => FormatError::Io(std::io::Error::new(
            error.kind(),
            format!("{} cannot be read: {error}", path.display()),
        )),
        error => error,
    }
}

impl ByteSource for NamedFile {
    fn read(&self, offset: u64, length: usize) -> std::result::Result<Vec<u8>, FormatError> {
        let bytes = self.file.read(offset, length);
        bytes.map_err(|error| named(&self.path, error))
    }

    fn length(&self) -> std::result::Result<u64, FormatError> {
        self.file.length()
    }
}

/// The file of a shard in the folder of all.
pub fn shard_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("shard-{number:06}.trs"))
}

impl Plan {
    fn shard_id(&self, number: u32) -> ShardId {
        ShardId {
            plan: self.sha256(),
            number,
        }
    }

    /// Encodes a shard into a folder. One that is there and whole is left as it is; one that is damaged or of another plan
    /// is replaced. The file appears under its name when it is complete, so workers may be killed and may do the same twice.
    pub fn encode(
        &self,
        number: u32,
        folder: &Path,
        model: Option<&Path>,
        resources: Resources,
        progress: &mut Report,
    ) -> Result<ShardReport> {
        let division = self.division();
        let area = *division.areas.get(number as usize).ok_or(Error::NoShard {
            number,
            count: division.areas.len(),
        })?;
        let header = self.header();
        let pyramid = &header.pyramid;
        let id = self.shard_id(number);
        let path = shard_path(folder, number);
        // Also where there is nothing left to do.
        remove_abandoned(folder);
        if let Ok(file) = LocalFile::open(&path)
            && let Ok(shard) = ShardFile::open(Box::new(file), id, pyramid, &area, division.top)
            && let Ok(measured) = shard.check()
        {
            return Ok(ShardReport {
                bytes: length(&path)?,
                path,
                was_there: true,
                measured,
                not_heights: 0,
            });
        }
        let failed = |source| Error::Unwritable {
            path: path.clone(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        // Only the rasters that this shard reads are opened: a country is thousands of them.
        let model = self.model(model, resources.memory)?;
        let encoder = self.encoder(model.as_ref());
        let window = self.on_grid(encoder.reads(area.window(pyramid), pyramid));
        let mut pieces = Vec::new();
        let mut used = Vec::new();
        for input in &self.inputs {
            let piece = input.piece();
            if piece.window.intersection(&window).is_some() {
                input.check()?;
                pieces.push(piece);
                used.push(input);
            }
        }
        let options = self.options().map_err(Error::RasterOption)?;
        let pieces = Pieces::new(pieces, options);
        let encoding = ShardEncoding {
            id,
            pyramid,
            encoder: &encoder,
            area,
            top: division.top,
            resources,
        };
        let paths: Vec<&Path> = used.iter().map(|input| input.path()).collect();
        let out = Output::named_here(&path, Existing::Replace).made_of(paths.iter().copied());
        let mut file = AtomicFile::create(&out)?;
        let mut out = BufWriter::new(file.file());
        let mut heights = PieceHeights {
            plan: self,
            pieces: &pieces,
            not_heights: 0,
        };
        let measured = encoding
            .run(&mut out, &mut heights, progress)
            .map_err(|error| failure(error, paths.first().unwrap_or(&path.as_path()), &path))?;
        let not_heights = heights.not_heights;
        out.flush().map_err(failed)?;
        drop(out);
        // Before it has its name: nothing fails once it is there.
        let bytes = file.file().metadata().map_err(failed)?.len();
        pieces.check_unchanged()?;
        for input in used {
            input.check()?;
        }
        file.commit()?;
        Ok(ShardReport {
            bytes,
            path,
            was_there: false,
            measured,
            not_heights,
        })
    }

    /// Checks all shards of a folder and writes the file that one encoding of the whole would have written.
    pub fn merge(
        &self,
        folder: &Path,
        out: &Output,
        model: Option<&Path>,
        resources: Resources,
        progress: &mut Report,
    ) -> Result<Merged> {
        let division = self.division();
        let count = division.areas.len();
        let shards: Vec<PathBuf> = (0..count as u32)
            .map(|number| shard_path(folder, number))
            .collect();
        let inputs = self.inputs.iter().map(Input::path);
        let out = out.clone().made_of(&shards).made_of(inputs).made_of(model);
        out.check()?;
        for number in 0..count as u32 {
            let path = shard_path(folder, number);
            if !path.is_file() {
                return Err(Error::MissingShard {
                    number,
                    count,
                    path,
                });
            }
        }
        let path = out.path();
        let failed = |source| Error::Unwritable {
            path: path.to_owned(),
            source,
        };
        let model = self.model(model, resources.memory)?;
        let encoder = self.encoder(model.as_ref());
        let mut file = AtomicFile::create(&out)?;
        let merge = Merge {
            header: self.header().clone(),
            encoder: &encoder,
            embedded: model
                .as_ref()
                .filter(|_| self.embeds_model())
                .map(|(_, file)| &file[..]),
            division,
            plan: self.sha256(),
            resources,
        };
        let target = file.file().try_clone().map_err(failed)?;
        let merged = merge.run(
            BufWriter::new(target),
            &mut |number| Ok(Box::new(NamedFile::open(shard_path(folder, number))?)),
            progress,
        );
        let (writer, measured) = merged.map_err(|error| match error {
            // Shards name themselves; what else fails is the file that is written.
            terrane_codec::Error::Format(FormatError::Io(source)) => failed(source),
            error => error.into(),
        })?;
        drop(
            writer
                .into_inner()
                .map_err(|error| failed(error.into_error()))?,
        );
        // The index and every entry of it, before anybody trusts the file.
        let written = file.file().try_clone().map_err(failed)?;
        let source = NamedFile::of(written, path)?;
        let options = TerrainOptions {
            models: MODELS,
            model: model.map(|(model, _)| model),
            memory: resources.memory,
        };
        let bytes = source.length()?;
        let terrain = Terrain::open(Box::new(source), options)?;
        terrain.reader().check_layout()?;
        file.commit()?;
        Ok(Merged { bytes, measured })
    }
}

fn length(path: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    Ok(metadata.len())
}
