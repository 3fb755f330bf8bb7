//! Where the bytes of a file are.

use serde::Serialize;
use terrane_codec::Error;
use terrane_codec::format::{LayerKind, LevelTile, Reader, RecordParts};

use crate::is_damage;

/// Bytes of the records of some tiles, by what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LayerBytes {
    /// Pictures at the tops of trees.
    pub roots: u64,
    /// Wavelet coefficients below them.
    pub details: u64,
    /// Heights as integers.
    pub integers: u64,
    /// Tokens.
    pub tokens: u64,
    /// Residuals of layers.
    pub residuals: u64,
    /// Masks of missing pixels.
    pub masks: u64,
    /// Flat areas.
    pub flats: u64,
    /// Checksums, kinds and lengths of records.
    pub framing: u64,
    /// Records that are damaged, whatever they held.
    pub damaged: u64,
}

impl LayerBytes {
    /// The parts with their names.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("roots", self.roots),
            ("details", self.details),
            ("integers", self.integers),
            ("tokens", self.tokens),
            ("residuals", self.residuals),
            ("masks", self.masks),
            ("flats", self.flats),
            ("framing", self.framing),
            ("damaged", self.damaged),
        ]
    }

    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Adds those of others.
    fn add(&mut self, other: &Self) {
        self.roots += other.roots;
        self.details += other.details;
        self.integers += other.integers;
        self.tokens += other.tokens;
        self.residuals += other.residuals;
        self.masks += other.masks;
        self.flats += other.flats;
        self.framing += other.framing;
        self.damaged += other.damaged;
    }

    /// Adds the parts of a record; `false` where they cannot be told.
    fn add_record(&mut self, record: &[u8]) -> bool {
        let (Ok(kind), Ok(parts)) = (LayerKind::of(record), RecordParts::of(record)) else {
            return false;
        };
        let layer = match kind {
            LayerKind::Root => &mut self.roots,
            LayerKind::Details => &mut self.details,
            LayerKind::Integers => &mut self.integers,
            LayerKind::Tokens => &mut self.tokens,
        };
        *layer += parts.layer;
        self.residuals += parts.residual;
        self.masks += parts.mask;
        self.flats += parts.flats;
        self.framing += parts.framing;
        true
    }
}

/// The records of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LevelBytes {
    /// The level, 0 at full resolution.
    pub level: u8,
    /// The storey that it belongs to, 0 the one of full resolution.
    pub storey: u8,
    /// Its columns of pixels.
    pub width: u32,
    /// Its rows of pixels.
    pub height: u32,
    /// How many records it has.
    pub records: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// What they hold.
    #[serde(flatten)]
    pub layers: LayerBytes,
}

/// Where the bytes of a file are: every byte is counted once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Bytes of the file.
    pub bytes: u64,
    /// Pixels with data at full resolution.
    pub pixels: u64,
    /// Bytes of the head.
    pub head: u64,
    /// Bytes of the pages of the index.
    pub index: u64,
    /// Bytes of the model, where it is in the file.
    pub model: u64,
    /// All records.
    #[serde(flatten)]
    pub layers: LayerBytes,
    /// The records of each level, full resolution first.
    pub levels: Vec<LevelBytes>,
}

impl Parts {
    /// The parts with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [
            ("head", self.head),
            ("index", self.index),
            ("model", self.model),
        ]
        .into_iter()
        .chain(self.layers.named())
    }

    /// The part of the file that so many bytes are, from 0 to 1.
    pub fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes.max(1) as f64
    }

    /// Bits per pixel with data.
    pub fn bpp(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.pixels.max(1) as f64
    }
}

/// Reads all records of a file, tree by tree, and says where its bytes are. `progress` is told the trees that are done
/// and of how many, and may stop the work by an error.
pub fn parts<E: From<Error>>(
    reader: &Reader,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
) -> Result<Parts, E> {
    reader.check_layout().map_err(Error::from)?;
    let header = reader.header();
    let pyramid = &header.pyramid;
    let mut levels: Vec<LevelBytes> = (0..pyramid.levels())
        .map(|level| {
            let (width, height) = pyramid.size(level).unwrap_or_default();
            LevelBytes {
                level,
                storey: pyramid.storey(level) / pyramid.storey_levels(),
                width,
                height,
                records: 0,
                bytes: 0,
                layers: LayerBytes::default(),
            }
        })
        .collect();
    let trees = pyramid.trees();
    for number in 0..trees {
        if let Some(root) = pyramid.tree(number) {
            count(reader, &pyramid.tree_tiles(root), &mut levels)?;
        }
        progress(number + 1, trees)?;
    }
    let mut layers = LayerBytes::default();
    for level in &levels {
        layers.add(&level.layers);
    }
    let model = header.model.as_ref().and_then(|model| model.embedded);
    Ok(Parts {
        bytes: reader.length(),
        pixels: header.statistics.pixels,
        head: reader.head().len() as u64,
        index: reader.index_length(),
        model: model.map_or(0, |extent| extent.length),
        layers,
        levels,
    })
}

/// Adds the records of some tiles to those of their levels.
fn count(reader: &Reader, tiles: &[LevelTile], levels: &mut [LevelBytes]) -> Result<(), Error> {
    for (&tile, record) in tiles.iter().zip(reader.records(tiles)?) {
        let Some(location) = reader.locate(tile)? else {
            continue;
        };
        let level = &mut levels[usize::from(tile.level)];
        level.records += 1;
        level.bytes += location.length;
        let is_told = match record.map_err(Error::from) {
            Ok(record) => record.is_some_and(|record| level.layers.add_record(&record)),
            Err(error) if is_damage(&error) => false,
            Err(error) => return Err(error),
        };
        if !is_told {
            level.layers.damaged += location.length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use terrane_codec::format::Method;

    use super::*;
    use crate::damage::tests::{file, settings};
    use crate::{Settings, Target};

    fn parts_of(file: &[u8]) -> Parts {
        let reader = Reader::open(Box::new(file.to_vec())).unwrap();
        let mut done = 0;
        let parts = parts(&reader, &mut |trees, of| -> Result<(), Error> {
            assert!(trees == done + 1 && trees <= of);
            done = trees;
            Ok(())
        });
        assert_eq!(done, reader.header().pyramid.trees());
        parts.unwrap()
    }

    /// Every byte of the file is counted once.
    fn check(file: &[u8], parts: &Parts) {
        assert_eq!(parts.bytes, file.len() as u64);
        let sum: u64 = parts.named().map(|(_, bytes)| bytes).sum();
        assert_eq!(sum, parts.bytes);
        let mut layers = LayerBytes::default();
        for level in &parts.levels {
            assert_eq!(level.bytes, level.layers.total());
            layers.add(&level.layers);
        }
        assert_eq!(layers, parts.layers);
    }

    #[test]
    fn the_parts_are_the_whole_file() {
        let wide = settings(Method::Context, 64);
        let lossless = Settings {
            target: Target::Lossless,
            ..wide.clone()
        };
        let embedding = Settings {
            embed_model: true,
            ..wide.clone()
        };
        let small = settings(Method::Context, 16);
        for settings in [
            wide,
            lossless,
            embedding,
            small,
            settings(Method::Integers, 32),
        ] {
            let file = file(300, 270, &settings);
            let parts = parts_of(&file);
            check(&file, &parts);
            assert_eq!(parts.model > 0, settings.embed_model);
            assert!(parts.head > 160 && parts.index > 0 && parts.layers.framing > 0);
            assert!(parts.layers.masks > 0 && parts.layers.damaged == 0);
            if settings.method == Some(Method::Integers) {
                assert!(parts.layers.integers > 0 && parts.layers.roots == 0);
                continue;
            }
            assert!(parts.layers.roots > 0 && parts.layers.details > 0);
            // Roots are at the top of storeys, details below them.
            for level in &parts.levels {
                let is_top = level.level % 4 == 3 || level.level as usize + 1 == parts.levels.len();
                assert!(is_top || level.layers.roots == 0);
                assert!(!is_top || level.layers.details == 0);
                assert_eq!(level.storey, level.level / 4);
            }
        }
    }

    #[test]
    fn damaged_records_are_counted_as_such() {
        let mut file = file(200, 200, &settings(Method::Context, 64));
        let whole = parts_of(&file);
        file[whole.head as usize + 9] ^= 1;
        let parts = parts_of(&file);
        check(&file, &parts);
        let damaged: Vec<u64> = parts
            .levels
            .iter()
            .map(|level| level.layers.damaged)
            .collect();
        assert!(damaged[2] > 0 && damaged[..2] == [0, 0]);
        assert_eq!(parts.layers.details, whole.layers.details);
    }

    #[test]
    fn the_work_can_be_stopped() {
        let file = file(90, 70, &settings(Method::Integers, 16));
        let reader = Reader::open(Box::new(file)).unwrap();
        let stopped = parts(&reader, &mut |_, _| Err(Error::Stopped));
        assert!(matches!(stopped, Err(Error::Stopped)));
    }
}
