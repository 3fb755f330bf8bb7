//! Reading a `GeoTIFF`, from any source that `tiff-reader` can decode, without its silent traps.
//!
//! `tiff-reader` decodes blocks; everything that gives the numbers a meaning is done here: blocks that are absent from
//! the file are nodata or 0 as for GDAL, nodata and internal masks are honoured, scale, offset and unit are applied.

mod blocks;
mod keys;
mod pam;
mod sidecars;

use std::path::Path;

use terrane_format::Window;
use tiff_reader::{ExtraSample, Ifd, OpenOptions, ParseBudgets, TiffError, TiffFile};

use self::blocks::{Blocks, MAX_BLOCK_BYTES};
pub(crate) use self::keys::crs;
use self::pam::Pam;
pub use self::sidecars::sidecars;
use self::sidecars::{Sidecars, world_file};
use crate::file_state::{FileState, FileStates, check_states};
use crate::foreign::refuse_foreign;
use crate::metadata::{is_mask_of_all, parse_nodata};
use crate::sample::Pixel;
use crate::tag;
use crate::{
    Crs, Error, Georeference, Grid, HeightUnit, Note, Quantity, RasterInfo, RasterOptions,
    RasterSource, Result, SampleType, Storage, UnitOrigin,
};

const UNIT_ADVICE: &str = "give the band a unit that is known, such as m or ft, or `vertical_unit`";
const REWRITE_ADVICE: &str = "rewrite it first, for example with gdal_translate -of COG";
const WARP_ADVICE: &str = "warp it to a regular grid first, for example with gdalwarp";

/// A `GeoTIFF` that is read by windows.
pub struct GeoTiff {
    tiff: TiffFile,
    /// The file, and those beside it that say something of it.
    states: FileStates,
    info: RasterInfo,
    images: Vec<Image>,
    notes: Vec<Note>,
}

/// What a file may hold to be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accept {
    Heights,
    AnyQuantity,
}

/// One resolution of the raster, with its mask where it has one.
struct Image {
    blocks: Blocks,
    mask: Option<Mask>,
}

/// Which pixels have a height: a directory of the same file, or of one beside it.
struct Mask {
    blocks: Blocks,
    beside: Option<TiffFile>,
}

impl GeoTiff {
    /// Opens a file of heights and reads its directories, but none of its heights.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, &RasterOptions::default())
    }

    /// Opens a file of heights of which something is said that counts before what the file states. A box is not cut out
    /// here: see [`crate::open_with`].
    pub fn open_with(path: &Path, options: &RasterOptions) -> Result<Self> {
        Self::open_as(path, Accept::Heights, options)
    }

    /// Opens a file of heights or of any other quantity, such as slopes, whose values are read as they are stored, in
    /// the unit that the band states.
    pub fn open_values(path: &Path) -> Result<Self> {
        Self::open_as(path, Accept::AnyQuantity, &RasterOptions::default())
    }

    fn open_as(path: &Path, accept: Accept, options: &RasterOptions) -> Result<Self> {
        // Before anything is read of it, so that no change goes unseen.
        let state = FileState::of(path)?;
        refuse_foreign(path)?;
        let sidecars = Sidecars::of(path)?;
        let mut states = vec![(path.to_owned(), state)];
        for beside in sidecars.paths() {
            states.push((beside.to_owned(), FileState::of(beside)?));
        }
        let tiff = open_tiff(path)?;
        let directories = directories(path, &tiff)?;
        let [main, ..] = directories.as_slice() else {
            return Err(malformed(path, "it holds no image"));
        };
        let band = band(path, main, options.band)?;
        let pam = sidecars.pam(path, band)?;

        let mut storage = storage(path, main, band, &pam)?;
        let mut georeference = georeference(path, main, &pam, options)?;
        let mut notes = Vec::new();
        options.apply(path, &mut georeference, &mut storage, &mut notes);
        let unit = unit(path, &storage, &georeference.crs, accept, &mut notes)?;

        let mut images = images(path, &tiff, &directories, band)?;
        if let Some(beside) = &sidecars.mask {
            // Its overviews, if any, are in yet another file.
            images.truncate(1);
            images[0].mask = Some(mask_beside(path, beside, &images[0])?);
        }
        storage.sample = images[0].blocks.sample;
        let info = RasterInfo {
            path: path.to_owned(),
            levels: images
                .iter()
                .map(|image| (image.blocks.width, image.blocks.height))
                .collect(),
            georeference,
            storage,
            unit,
        };
        Ok(Self {
            tiff,
            states,
            info,
            images,
            notes,
        })
    }

    fn read_image(&self, image: &Image, window: Window) -> Result<Grid> {
        let Image { blocks, mask } = image;
        let (path, storage, unit) = (&self.info.path, &self.info.storage, self.info.unit);
        let mut grid = Grid::missing(window.width, window.height);
        for part in blocks.parts(window) {
            let stored = blocks.read(path, &self.tiff, part)?;
            let valid = match mask {
                Some(Mask { blocks, beside }) => {
                    let tiff = beside.as_ref().unwrap_or(&self.tiff);
                    Some((blocks, blocks.read(path, tiff, part)?))
                }
                None => None,
            };
            for row in 0..part.height {
                let mut samples = blocks.row(&stored, part, row);
                blocks.fill_absent(&mut samples, part, row, storage.absent());
                let valid = valid
                    .as_ref()
                    .map(|(mask, stored)| mask.row(stored, part, row));
                let start =
                    (part.row - window.row + row) * window.width + part.column - window.column;
                let line = &mut grid.heights[start..start + part.width];
                for (column, (height, &raw)) in line.iter_mut().zip(&samples).enumerate() {
                    if valid.as_ref().is_some_and(|valid| valid[column] == 0.0) {
                        continue;
                    }
                    match storage.pixel(raw, unit) {
                        Pixel::Height(height_m) => *height = height_m,
                        Pixel::Missing => {}
                        Pixel::NotAHeight => grid.not_heights += 1,
                    }
                }
            }
        }
        Ok(grid)
    }

    /// The files that were read, and their states when the raster was opened.
    pub(crate) fn states(&self) -> &FileStates {
        &self.states
    }
}

impl RasterSource for GeoTiff {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        // A block that cannot be decoded may be one that is being written.
        self.read_image(&self.images[level], window)
            .map_err(|error| self.check_unchanged().err().unwrap_or(error))
    }

    fn block_width(&self) -> usize {
        self.images[0].blocks.block_width
    }

    fn touches(&self, window: Window) -> bool {
        let blocks = &self.images[0].blocks;
        let whole = Window::whole(blocks.width, blocks.height);
        let Some(inside) = window.intersection(&whole) else {
            return false;
        };
        let fill = self
            .info
            .storage
            .pixel(self.info.storage.absent(), self.info.unit);
        !blocks.has_absent
            || fill != Pixel::Missing
            || blocks
                .within(inside)
                .any(|(index, _)| !blocks.is_absent(index))
    }

    fn check_unchanged(&self) -> Result<()> {
        check_states(&self.states)
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn identity(&self) -> String {
        format!("{:?}", self.states)
    }
}

/// Opens a TIFF within bounds of memory.
fn open_tiff(path: &Path) -> Result<TiffFile> {
    let options = OpenOptions {
        parse_budgets: ParseBudgets {
            max_ifds: 256,
            max_ifd_entries: 4096,
            ..ParseBudgets::default()
        },
        decode_output_bytes: 2 * MAX_BLOCK_BYTES,
        ..OpenOptions::default()
    };
    TiffFile::open_with_options(path, options).map_err(|error| translate(path, error))
}

/// The band that holds the heights, from 1.
fn band(path: &Path, main: &Ifd, asked: Option<u16>) -> Result<u16> {
    let bands = main.samples_per_pixel();
    let is_shown_in_colours = match main.photometric_interpretation() {
        None | Some(0 | 1) => false,
        // What a picture of three colours is said to be of bands that are chosen by number.
        Some(2) => asked.is_none(),
        Some(_) => true,
    };
    if is_shown_in_colours {
        return Err(unsupported(
            path,
            "an image of colours instead of heights",
            "choose the band of the heights with `band`, where it has one",
        ));
    }
    let alpha = main.extra_samples().unwrap_or_default();
    let is_alpha = |extra: &ExtraSample| {
        matches!(
            extra,
            ExtraSample::AssociatedAlpha | ExtraSample::UnassociatedAlpha
        )
    };
    if asked.is_some() && alpha.iter().any(is_alpha) {
        return Err(unsupported(
            path,
            "a band of transparency",
            "make a mask of it, for example with gdal_translate -b 1 -mask 2",
        ));
    }
    match asked {
        None if bands == 1 => Ok(1),
        None => Err(Error::SeveralBands {
            path: path.to_owned(),
            bands,
        }),
        Some(band) if band <= bands && band > 0 => Ok(band),
        Some(band) => Err(Error::NoBand {
            path: path.to_owned(),
            band,
            bands,
        }),
    }
}

/// How the heights are stored, but for the type of the numbers.
fn storage(path: &Path, main: &Ifd, band: u16, pam: &Pam) -> Result<Storage> {
    let mut metadata = keys::band_metadata(path, main, &crs(main), band)?;
    pam.apply(path, &mut metadata)?;
    let nodata = main.tag(tag::GDAL_NODATA);
    let nodata = nodata
        .and_then(|tag| tag.value.as_str())
        .and_then(parse_nodata);
    let mut storage = Storage::metres(SampleType::F64, pam.nodata.or(nodata));
    storage.band = metadata;
    Ok(storage)
}

/// Where the raster lies: as GDAL's file beside it says, else as it says itself, else as a world file does.
fn georeference(
    path: &Path,
    main: &Ifd,
    pam: &Pam,
    options: &RasterOptions,
) -> Result<Georeference> {
    let own_crs = crs(main);
    let anchor = match keys::anchor(path, main)? {
        Some(anchor) => Some(anchor),
        // From the centre of the first pixel.
        None => world_file(path)?.map(|centre| {
            if own_crs.pixel_is_point() {
                centre
            } else {
                centre.shifted(-0.5, -0.5)
            }
        }),
    };
    let own = match anchor {
        Some(anchor) => Georeference::new(anchor, own_crs),
        None => Georeference::of_pixels(own_crs),
    };
    let crs = match &pam.crs {
        Some(Ok(crs)) => Some(crs.clone()),
        Some(Err(source)) if options.crs.is_none() => {
            return Err(Error::CrsBeside {
                path: path.to_owned(),
                source: source.clone(),
            });
        }
        _ => None,
    };
    let georeference = match (pam.transform, crs) {
        (Some(corner), crs) => Georeference::at_corner(corner, crs.unwrap_or(own.crs)),
        (None, Some(crs)) if own.is_georeferenced => Georeference::at_corner(own.affine(), crs),
        (None, Some(crs)) => Georeference::of_pixels(crs),
        (None, None) => own,
    };
    let size = georeference.anchor.pixel_size();
    if size == 0.0 || !size.is_finite() {
        return Err(malformed(path, "its pixels have no size"));
    }
    Ok(georeference)
}

/// The unit of the heights.
fn unit(
    path: &Path,
    storage: &Storage,
    crs: &Crs,
    accept: Accept,
    notes: &mut Vec<Note>,
) -> Result<HeightUnit> {
    let found = storage.unit_with_origin(crs);
    match (&storage.band.quantity, accept) {
        (Quantity::Height, Accept::Heights) => {
            let (unit, origin) = found.map_err(|what| unsupported(path, what, UNIT_ADVICE))?;
            if origin == UnitOrigin::Assumed && crs.is_in_other_units() {
                notes.push(Note::UnitAssumed {
                    path: path.to_owned(),
                    coordinates: crs.coordinate_unit(),
                });
            }
            Ok(unit)
        }
        (Quantity::Height, Accept::AnyQuantity) => {
            Ok(found.map(|(unit, _)| unit).unwrap_or_default())
        }
        (Quantity::Other(name), Accept::Heights) => Err(unsupported(
            path,
            format!("a raster of {name} instead of heights"),
            "give the raster of heights that it was derived from",
        )),
        (Quantity::Other(_), Accept::AnyQuantity) => Ok(HeightUnit::Metre),
    }
}

/// The raster at full resolution and its overviews, each with its mask.
fn images(path: &Path, tiff: &TiffFile, directories: &[Ifd], band: u16) -> Result<Vec<Image>> {
    let size = |ifd: &Ifd| (ifd.width(), ifd.height());
    let mut images = Vec::new();
    for directory in directories.iter().filter(|ifd| !is_mask(ifd)) {
        let is_of_it = |ifd: &&Ifd| is_mask(ifd) && size(ifd) == size(directory);
        let mask = directories.iter().find(is_of_it);
        let mask = mask.map(|ifd| Blocks::new(path, tiff, ifd.clone(), 1));
        images.push(Image {
            blocks: Blocks::new(path, tiff, directory.clone(), band)?,
            mask: mask.transpose()?.map(|blocks| Mask {
                blocks,
                beside: None,
            }),
        });
    }
    Ok(images)
}

/// The mask in a file of its own, as GDAL writes it: a TIFF of the raster's size, which says that it masks all bands.
fn mask_beside(path: &Path, beside: &Path, image: &Image) -> Result<Mask> {
    let other = |what: &str| {
        unsupported(
            path,
            format!("a mask beside it (.msk) {what}"),
            REWRITE_ADVICE,
        )
    };
    if image.mask.is_some() {
        return Err(other("and another one in it"));
    }
    let tiff = open_tiff(beside)?;
    let directories = directories(beside, &tiff)?;
    let main = directories.first();
    let main = main.ok_or_else(|| malformed(beside, "it holds no image"))?;
    let metadata = main.tag(tag::GDAL_METADATA);
    let metadata = metadata.and_then(|tag| tag.value.as_str());
    if !metadata.is_some_and(is_mask_of_all) {
        return Err(other("which does not say that it masks all bands"));
    }
    let blocks = Blocks::new(beside, &tiff, main.clone(), 1)?;
    if (blocks.width, blocks.height) != (image.blocks.width, image.blocks.height) {
        return Err(other("of another size"));
    }
    Ok(Mask {
        blocks,
        beside: Some(tiff),
    })
}

/// The directory of full resolution.
pub(crate) fn main_directory(tiff: &TiffFile) -> Option<&Ifd> {
    tiff.ifds()
        .iter()
        .find(|ifd| subfile_type(ifd) & (tag::REDUCED | tag::MASK) == 0)
}

/// The main image, then its overviews and masks, whether they are chained or subordinate.
fn directories(path: &Path, tiff: &TiffFile) -> Result<Vec<Ifd>> {
    let Some(main) = main_directory(tiff) else {
        return Err(malformed(path, "it holds no image at full resolution"));
    };
    let mut all = vec![main.clone()];
    all.extend(
        tiff.ifds()
            .iter()
            .filter(|ifd| subfile_type(ifd) & (tag::REDUCED | tag::MASK) != 0)
            .cloned(),
    );
    for offset in main
        .sub_ifd_offsets()
        .unwrap_or_default()
        .into_iter()
        .take(64)
    {
        all.push(
            tiff.read_ifd_at_offset(offset)
                .map_err(|error| translate(path, error))?,
        );
    }
    all[1..].sort_by_key(|ifd| std::cmp::Reverse((ifd.width(), ifd.height())));
    Ok(all)
}

fn subfile_type(ifd: &Ifd) -> u32 {
    ifd.tag(tag::NEW_SUBFILE_TYPE)
        .and_then(|tag| tag.value.as_u32())
        .unwrap_or(0)
}

fn is_mask(ifd: &Ifd) -> bool {
    subfile_type(ifd) & tag::MASK != 0
}

fn malformed(path: &Path, reason: &str) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn unsupported(path: &Path, what: impl Into<String>, advice: &'static str) -> Error {
    Error::Unsupported {
        path: path.to_owned(),
        what: what.into(),
        advice,
    }
}

fn translate(path: &Path, error: TiffError) -> Error {
    match error {
        TiffError::Io(source, _) => Error::Io {
            path: path.to_owned(),
            action: "be read",
            source,
        },
        TiffError::UnsupportedCompression(_)
        | TiffError::UnsupportedPredictor(_)
        | TiffError::UnsupportedPlanarConfiguration(_)
        | TiffError::UnsupportedBitsPerSample(_)
        | TiffError::UnsupportedSampleFormat(_) => {
            let text = error.to_string();
            let what = text
                .strip_prefix("unsupported ")
                .unwrap_or(&text)
                .replace(": ", " ");
            unsupported(path, what, REWRITE_ADVICE)
        }
        other => malformed(path, &other.to_string()),
    }
}
