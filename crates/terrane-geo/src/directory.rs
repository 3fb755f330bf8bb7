//! The directories of a tiled TIFF: what they say of a raster, and their bytes.

use tiff_core::{ByteOrder, Compression, Predictor, Tag, TagType, TagValue};

use crate::metadata::MetadataItem;
use crate::{Georeference, SampleType, Storage, tag};

/// What says to GDAL that directories stand before blocks, and blocks row by row.
pub(crate) const IFDS_FIRST: &str = "LAYOUT=IFDS_BEFORE_DATA\nBLOCK_ORDER=ROW_MAJOR\n";
/// What says to GDAL that nobody changed the file without knowing this.
pub(crate) const COMPATIBLE: &str = "KNOWN_INCOMPATIBLE_EDITION=NO\n ";

/// How wide offsets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// 32 bits: the classic format, up to four gigabytes.
    Classic,
    /// 64 bits: `BigTIFF`.
    Big,
}

impl Width {
    /// Bytes of an offset, and of what an entry holds itself.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Classic => 4,
            Self::Big => 8,
        }
    }

    /// The type of offsets.
    pub(crate) fn offset_type(self) -> TagType {
        match self {
            Self::Classic => TagType::Long,
            Self::Big => TagType::Long8,
        }
    }
}

/// One entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    code: u16,
    kind: TagType,
    count: u64,
    value: Value,
}

#[derive(Debug)]
enum Value {
    /// Bytes, which stand in the entry or behind the directory.
    Bytes(Vec<u8>),
    /// What stands elsewhere in the file.
    At(u64),
}

impl From<Tag> for Entry {
    fn from(tag: Tag) -> Self {
        Self {
            code: tag.code,
            kind: tag.tag_type,
            count: tag.count,
            value: Value::Bytes(tag.value.encode(ByteOrder::LittleEndian)),
        }
    }
}

impl Entry {
    /// A value.
    pub(crate) fn new(code: u16, value: TagValue) -> Self {
        Tag::new(code, value).into()
    }

    /// Numbers that stand elsewhere in the file.
    pub(crate) fn elsewhere(code: u16, kind: TagType, count: u64, offset: u64) -> Self {
        Self {
            code,
            kind,
            count,
            value: Value::At(offset),
        }
    }
}

/// The first bytes of a file: its kind, what GDAL looks for to know its structure, and the first directory's offset, which
/// is where they end.
pub(crate) fn signature(width: Width, structure: &str) -> Vec<u8> {
    let ghost = format!(
        "GDAL_STRUCTURAL_METADATA_SIZE={:06} bytes\n{structure}",
        structure.len()
    );
    let mut bytes = match width {
        Width::Classic => vec![b'I', b'I', 42, 0],
        Width::Big => vec![b'I', b'I', 43, 0, 8, 0, 0, 0],
    };
    let pointer = width.bytes();
    let first = (bytes.len() + pointer + ghost.len()).next_multiple_of(16);
    bytes.extend(&(first as u64).to_le_bytes()[..pointer]);
    bytes.extend(ghost.as_bytes());
    bytes.resize(first, 0);
    bytes
}

/// One directory at an offset, with the values that do not fit into its entries behind it.
pub(crate) fn directory(entries: &[Entry], start: u64, next: u64, width: Width) -> Vec<u8> {
    let inline = width.bytes();
    let (count_bytes, entry_bytes) = match width {
        Width::Classic => (2, 12),
        Width::Big => (8, 20),
    };
    let mut values = start + (count_bytes + entry_bytes * entries.len() + inline) as u64;
    let mut bytes = (entries.len() as u64).to_le_bytes()[..count_bytes].to_vec();
    let mut outside = Vec::new();
    for entry in entries {
        bytes.extend(entry.code.to_le_bytes());
        bytes.extend(entry.kind.to_code().to_le_bytes());
        bytes.extend(&entry.count.to_le_bytes()[..inline]);
        match &entry.value {
            Value::At(offset) => bytes.extend(&offset.to_le_bytes()[..inline]),
            Value::Bytes(value) if value.len() <= inline => {
                bytes.extend(value);
                bytes.resize(bytes.len() + inline - value.len(), 0);
            }
            Value::Bytes(value) => {
                bytes.extend(&values.to_le_bytes()[..inline]);
                outside.extend(value);
                let length = value.len().next_multiple_of(8);
                outside.resize(outside.len() + length - value.len(), 0);
                values += length as u64;
            }
        }
    }
    bytes.extend(&next.to_le_bytes()[..inline]);
    bytes.extend(outside);
    // Directories begin on even offsets.
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// What the directories of a raster say besides where its blocks are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described<'a> {
    pub(crate) georeference: &'a Georeference,
    pub(crate) storage: &'a Storage,
    /// Side of a block.
    pub(crate) side: usize,
    pub(crate) compression: Compression,
    pub(crate) predictor: Predictor,
    /// What GDAL's metadata holds besides the band.
    pub(crate) items: &'a [MetadataItem],
}

impl Described<'_> {
    /// The entries of a level, in the order of their numbers.
    pub(crate) fn entries(
        &self,
        level: usize,
        (width, height): (usize, usize),
        offsets: Entry,
        lengths: Entry,
    ) -> Vec<Entry> {
        let sample = self.storage.sample;
        let format = match sample {
            SampleType::U8 | SampleType::U16 | SampleType::U32 => 1,
            SampleType::I8 | SampleType::I16 | SampleType::I32 => 2,
            SampleType::F32 | SampleType::F64 => 3,
        };
        let short = |code, value| Entry::new(code, TagValue::Short(vec![value]));
        let long = |code, value: usize| Entry::new(code, TagValue::Long(vec![value as u32]));
        let mut entries = vec![
            long(
                tag::NEW_SUBFILE_TYPE,
                if level == 0 { 0 } else { tag::REDUCED as usize },
            ),
            long(tag::IMAGE_WIDTH, width),
            long(tag::IMAGE_LENGTH, height),
            short(tag::BITS_PER_SAMPLE, 8 * sample.bytes() as u16),
            short(tag::COMPRESSION, self.compression.to_code()),
            short(tag::PHOTOMETRIC, 1),
            short(tag::SAMPLES_PER_PIXEL, 1),
            short(tag::PLANAR_CONFIGURATION, 1),
            short(tag::PREDICTOR, self.predictor.to_code()),
            long(tag::TILE_WIDTH, self.side),
            long(tag::TILE_LENGTH, self.side),
            offsets,
            lengths,
            short(tag::SAMPLE_FORMAT, format),
        ];
        if level == 0 {
            entries.extend(
                georeference_tags(self.georeference)
                    .into_iter()
                    .map(Entry::from),
            );
            let xml = self.storage.band.to_xml(self.items);
            entries.extend(xml.map(|xml| Entry::new(tag::GDAL_METADATA, TagValue::Ascii(xml))));
        }
        let nodata = self.storage.nodata.map(nodata_text);
        entries.extend(nodata.map(|text| Entry::new(tag::GDAL_NODATA, TagValue::Ascii(text))));
        entries
    }
}

fn georeference_tags(georeference: &Georeference) -> Vec<Tag> {
    let a = georeference.anchor;
    let double = |code, values| Tag::new(code, TagValue::Double(values));
    let mut tags = Vec::new();
    if georeference.is_georeferenced {
        if a.is_rotated() || a.y_per_row > 0.0 {
            let matrix = vec![
                a.x_per_column,
                a.x_per_row,
                0.0,
                a.x,
                a.y_per_column,
                a.y_per_row,
                0.0,
                a.y,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                1.0,
            ];
            tags.push(double(tag::MODEL_TRANSFORMATION, matrix));
        } else {
            tags.push(double(
                tag::MODEL_PIXEL_SCALE,
                vec![a.x_per_column, -a.y_per_row, 0.0],
            ));
            tags.push(double(
                tag::MODEL_TIEPOINT,
                vec![0.0, 0.0, 0.0, a.x, a.y, 0.0],
            ));
        }
    }
    let crs = &georeference.crs;
    if !crs.is_empty() {
        tags.push(Tag::new(
            tag::GEO_KEY_DIRECTORY,
            TagValue::Short(crs.directory.clone()),
        ));
        if !crs.doubles.is_empty() {
            tags.push(double(tag::GEO_DOUBLE_PARAMS, crs.doubles.clone()));
        }
        if !crs.text.is_empty() {
            tags.push(Tag::new(
                tag::GEO_ASCII_PARAMS,
                TagValue::Ascii(crs.text.clone()),
            ));
        }
    }
    tags
}

/// A nodata value as GDAL writes it, and such that it reads back to the same number.
fn nodata_text(nodata: f64) -> String {
    if nodata.is_nan() {
        "nan".into()
    } else if nodata.abs() >= 1e15 {
        format!("{nodata:e}")
    } else {
        nodata.to_string()
    }
}
