//! The head of a file: what it holds, where it lies, and the root of its index.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a head has 16 KiB, so every length in it fits"
)]

use crc32c::crc32c;

use crate::bytes::{Cursor, Put};
use crate::index::PageLocation;
use crate::{Error, Method, Pyramid, Result, limits};

/// The first bytes of every file. Like PNG's, they show when a file was changed as if it were text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TRN\r\n\x1a\n";
/// The version of the format.
pub(crate) const VERSION: u16 = 1;
/// Bytes of the fixed part.
const FIXED: usize = 160;
/// The checksum stands at the end of the head.
const CHECKED: usize = limits::HEAD - 4;

/// By how much a decoded height may differ from its source, at every valid pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ErrorBound {
    /// Without a bound.
    None,
    /// No height is farther from the source than so many metres.
    MaxError(f64),
    /// Every height is the source's.
    Lossless {
        /// Whether heights are to be rounded to 32-bit floats, which the source's are.
        as_f32: bool,
    },
}

/// GeoTIFF's keys, as they were.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GeoKeys {
    /// The directory.
    pub directory: Vec<u16>,
    /// Its numbers.
    pub doubles: Vec<f64>,
    /// Its text.
    pub text: String,
}

/// How the source stored its heights, so that a decoded raster is like it.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// NumPy's name of the type, as `float32`.
    pub kind: String,
    /// The value of pixels without data.
    pub nodata: Option<f64>,
    /// What a stored value is multiplied with.
    pub scale: f64,
    /// What is added then.
    pub offset: f64,
    /// The unit of the result.
    pub unit: String,
    /// What the band is said to hold.
    pub description: String,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            kind: "float32".into(),
            nodata: None,
            scale: 1.0,
            offset: 0.0,
            unit: String::new(),
            description: String::new(),
        }
    }
}

/// The model that decodes the tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelId {
    /// SHA-256 of its file.
    pub sha256: [u8; 32],
    /// Its name.
    pub name: String,
    /// Where it can be had; empty where nobody said.
    pub address: String,
    /// Where in this file it is, where it is.
    pub embedded: Option<Extent>,
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// Their checksum.
    pub crc: u32,
}

/// What is known of all valid heights at full resolution.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Pixels with data.
    pub pixels: u64,
    /// Tiles with data, all levels.
    pub tiles: u64,
    /// Root of the mean square error.
    pub rmse_m: f64,
    /// Largest error.
    pub max_error_m: f64,
    /// Lowest decoded height.
    pub lowest_m: f64,
    /// Highest.
    pub highest_m: f64,
}

/// The head of a file, without its index.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The raster, its levels and tiles.
    pub pyramid: Pyramid,
    /// How heights became symbols.
    pub method: Method,
    /// From pixel positions to map coordinates, in GDAL's order: x, x per column, x per row, y, y per column, y per row.
    /// As the source has it: position (0, 0) is the corner of the first pixel, or its centre where pixels are points.
    pub affine: [f64; 6],
    /// Whether the source states where it lies.
    pub is_georeferenced: bool,
    /// Whether the source calls its pixels points.
    pub pixel_is_point: bool,
    /// EPSG codes of the horizontal and the vertical system; 0 where there is none.
    pub epsg: [u32; 2],
    /// GeoTIFF's keys.
    pub geo_keys: GeoKeys,
    /// The coordinate system as WKT; empty where nobody gave it.
    pub wkt: String,
    /// How the source stored its heights.
    pub samples: Samples,
    /// The bound of every height's error.
    pub bound: ErrorBound,
    /// What was measured.
    pub statistics: Statistics,
    /// The model, where the method needs one.
    pub model: Option<ModelId>,
}

impl Header {
    /// The head as bytes, with the locations of all index pages.
    pub(crate) fn to_bytes(
        &self,
        file_length: u64,
        page_tiles: u32,
        pages: &[PageLocation],
    ) -> Result<Vec<u8>> {
        let (width, height) = self.pyramid.size(0).unwrap_or_default();
        let mut head = Vec::with_capacity(limits::HEAD);
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend([0; 2]);
        let (bound, bound_m) = match self.bound {
            ErrorBound::None => (0_u8, 0.0),
            ErrorBound::MaxError(bound_m) => (1, bound_m),
            ErrorBound::Lossless { as_f32: false } => (2, 0.0),
            ErrorBound::Lossless { as_f32: true } => (3, 0.0),
        };
        head.extend((pages.len() as u32).to_le_bytes());
        head.extend(file_length.to_le_bytes());
        head.extend(width.to_le_bytes());
        head.extend(height.to_le_bytes());
        head.extend(self.pyramid.side().to_le_bytes());
        head.extend([self.pyramid.levels(), self.method.code()]);
        head.extend(page_tiles.to_le_bytes());
        head.extend([
            bound,
            u8::from(self.is_georeferenced),
            u8::from(self.pixel_is_point),
            0,
        ]);
        head.extend([0; 4]);
        for value in self.affine {
            head.extend(value.to_le_bytes());
        }
        let s = &self.statistics;
        for value in [bound_m, s.rmse_m, s.max_error_m, s.lowest_m, s.highest_m] {
            head.extend(value.to_le_bytes());
        }
        head.extend(s.pixels.to_le_bytes());
        head.extend(s.tiles.to_le_bytes());
        for code in self.epsg {
            head.extend(code.to_le_bytes());
        }
        debug_assert_eq!(head.len(), FIXED, "the fixed part has its length");

        self.put_chunks(&mut head);
        let root: Vec<u8> = pages.iter().flat_map(|page| page.to_bytes()).collect();
        put_chunk(&mut head, *b"ROOT", &root);
        put_chunk(&mut head, *b"TEND", &[]);
        if head.len() > CHECKED {
            return Err(Error::HeadTooLong {
                bytes: head.len(),
                limit: CHECKED,
            });
        }
        head.resize(CHECKED, 0);
        let crc = crc32c(&head);
        head.extend(crc.to_le_bytes());
        Ok(head)
    }

    fn put_chunks(&self, head: &mut Vec<u8>) {
        let mut keys = Vec::new();
        keys.put_varint(self.geo_keys.directory.len() as u64);
        keys.extend(
            self.geo_keys
                .directory
                .iter()
                .flat_map(|value| value.to_le_bytes()),
        );
        keys.put_varint(self.geo_keys.doubles.len() as u64);
        keys.extend(
            self.geo_keys
                .doubles
                .iter()
                .flat_map(|value| value.to_le_bytes()),
        );
        keys.put_block(self.geo_keys.text.as_bytes());
        put_chunk(head, *b"GEOK", &keys);

        let mut samples = Vec::new();
        samples.push(u8::from(self.samples.nodata.is_some()));
        for value in [
            self.samples.nodata.unwrap_or(0.0),
            self.samples.scale,
            self.samples.offset,
        ] {
            samples.extend(value.to_le_bytes());
        }
        for text in [
            &self.samples.kind,
            &self.samples.unit,
            &self.samples.description,
        ] {
            samples.put_block(text.as_bytes());
        }
        put_chunk(head, *b"SAMP", &samples);

        if !self.wkt.is_empty() {
            put_chunk(head, *b"wkt2", self.wkt.as_bytes());
        }
        if let Some(model) = &self.model {
            let mut bytes = model.sha256.to_vec();
            let extent = model.embedded.unwrap_or(Extent {
                offset: 0,
                length: 0,
                crc: 0,
            });
            bytes.extend(extent.offset.to_le_bytes());
            bytes.extend(extent.length.to_le_bytes());
            bytes.extend(extent.crc.to_le_bytes());
            bytes.put_block(model.name.as_bytes());
            bytes.put_block(model.address.as_bytes());
            put_chunk(head, *b"MODL", &bytes);
        }
    }

    /// Reads a head; also gives the length of the file, the tiles per page and the pages.
    pub(crate) fn parse(head: &[u8]) -> Result<(Self, u64, u32, Vec<PageLocation>)> {
        if !head.starts_with(&MAGIC) {
            return Err(Error::NotTerrane);
        }
        if head.len() < limits::HEAD {
            return Err(Error::Length {
                expected: limits::HEAD as u64,
                found: head.len() as u64,
            });
        }
        let mut cursor = Cursor::new(&head[..CHECKED], "head");
        cursor.take(MAGIC.len())?;
        // The version comes before the checksum: a later one may have it elsewhere.
        let version = cursor.u16()?;
        if version != VERSION {
            return Err(Error::Unsupported {
                what: "format version",
                value: version.to_string(),
            });
        }
        let expected = Cursor::new(&head[CHECKED..], "head").u32()?;
        let found = crc32c(&head[..CHECKED]);
        if expected != found {
            return Err(Error::Checksum {
                what: "head",
                expected,
                found,
            });
        }
        if cursor.u16()? != 0 {
            return Err(cursor.malformed("a reserved field is not 0"));
        }
        let page_count = cursor.u32()?;
        let file_length = cursor.u64()?;
        let (width, height) = (cursor.u32()?, cursor.u32()?);
        let (side, levels) = (cursor.u16()?, cursor.u8()?);
        let method = Method::from_code(cursor.u8()?)?;
        let pyramid = Pyramid::new(width, height, side, levels)?;
        let page_tiles = cursor.u32()?;
        if page_count > limits::PAGES {
            return Err(Error::LimitExceeded {
                what: "index pages",
                value: page_count.into(),
                limit: limits::PAGES.into(),
            });
        }
        if page_tiles == 0 || pyramid.tiles().div_ceil(page_tiles.into()) != u64::from(page_count) {
            return Err(cursor.malformed("the pages do not cover the tiles"));
        }
        let bound = cursor.u8()?;
        let is_georeferenced = flag(&mut cursor)?;
        let pixel_is_point = flag(&mut cursor)?;
        if cursor.take(5)? != [0; 5] {
            return Err(cursor.malformed("a reserved field is not 0"));
        }
        let mut affine = [0.0; 6];
        for value in &mut affine {
            *value = cursor.f64()?;
        }
        let bound_m = cursor.f64()?;
        let bound = match bound {
            0 => ErrorBound::None,
            1 => ErrorBound::MaxError(bound_m),
            2 => ErrorBound::Lossless { as_f32: false },
            3 => ErrorBound::Lossless { as_f32: true },
            other => {
                return Err(Error::Unsupported {
                    what: "error bound",
                    value: other.to_string(),
                });
            }
        };
        let [rmse_m, max_error_m, lowest_m, highest_m] =
            [cursor.f64()?, cursor.f64()?, cursor.f64()?, cursor.f64()?];
        let statistics = Statistics {
            pixels: cursor.u64()?,
            tiles: cursor.u64()?,
            rmse_m,
            max_error_m,
            lowest_m,
            highest_m,
        };
        let epsg = [cursor.u32()?, cursor.u32()?];

        let mut header = Self {
            pyramid,
            method,
            affine,
            is_georeferenced,
            pixel_is_point,
            epsg,
            geo_keys: GeoKeys::default(),
            wkt: String::new(),
            samples: Samples::default(),
            bound,
            statistics,
            model: None,
        };
        let pages = header.parse_chunks(&mut cursor, page_count)?;
        Ok((header, file_length, page_tiles, pages))
    }

    fn parse_chunks(&mut self, cursor: &mut Cursor, page_count: u32) -> Result<Vec<PageLocation>> {
        let mut pages = None;
        let mut seen = Vec::new();
        loop {
            let mut tag = [0; 4];
            tag.copy_from_slice(cursor.take(4)?);
            if seen.contains(&tag) {
                return Err(cursor.malformed("a chunk comes twice"));
            }
            seen.push(tag);
            let length = cursor.u32()? as usize;
            let chunk = cursor.take(length)?;
            match &tag {
                b"GEOK" => self.geo_keys = parse_keys(chunk)?,
                b"SAMP" => self.samples = parse_samples(chunk)?,
                b"wkt2" => {
                    self.wkt = String::from_utf8(chunk.to_vec())
                        .map_err(|_| cursor.malformed("a text is not UTF-8"))?;
                }
                b"MODL" => self.model = Some(parse_model(chunk)?),
                b"ROOT" => pages = Some(PageLocation::parse_all(chunk, page_count)?),
                b"TEND" if chunk.is_empty() => break,
                b"TEND" => return Err(cursor.malformed("its end is not empty")),
                // A chunk that starts with a small letter may be passed over, as in PNG.
                _ if tag[0].is_ascii_lowercase() => {}
                _ => {
                    return Err(Error::Unsupported {
                        what: "chunk",
                        value: String::from_utf8_lossy(&tag).into_owned(),
                    });
                }
            }
        }
        if cursor.rest().iter().any(|&byte| byte != 0) {
            return Err(cursor.malformed("there is something after its end"));
        }
        pages.ok_or_else(|| cursor.malformed("it has no index"))
    }
}

fn flag(cursor: &mut Cursor) -> Result<bool> {
    match cursor.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(cursor.malformed("a yes or no is neither")),
    }
}

fn put_chunk(head: &mut Vec<u8>, tag: [u8; 4], bytes: &[u8]) {
    head.extend(tag);
    head.extend((bytes.len() as u32).to_le_bytes());
    head.extend_from_slice(bytes);
}

fn parse_keys(chunk: &[u8]) -> Result<GeoKeys> {
    let mut cursor = Cursor::new(chunk, "list of geographic keys");
    let count = |cursor: &mut Cursor, size: usize| {
        let count = cursor.varint()?;
        // No more than the chunk can hold: a stated length is not trusted.
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= cursor.remaining() / size)
            .ok_or_else(|| cursor.malformed("it is shorter than it says"))
    };
    let directory = (0..count(&mut cursor, 2)?)
        .map(|_| cursor.u16())
        .collect::<Result<_>>()?;
    let doubles = (0..count(&mut cursor, 8)?)
        .map(|_| cursor.f64())
        .collect::<Result<_>>()?;
    let text = cursor.text()?;
    cursor.end()?;
    Ok(GeoKeys {
        directory,
        doubles,
        text,
    })
}

fn parse_samples(chunk: &[u8]) -> Result<Samples> {
    let mut cursor = Cursor::new(chunk, "description of the samples");
    let has_nodata = flag(&mut cursor)?;
    let [nodata, scale, offset] = [cursor.f64()?, cursor.f64()?, cursor.f64()?];
    let [kind, unit, description] = [cursor.text()?, cursor.text()?, cursor.text()?];
    cursor.end()?;
    Ok(Samples {
        kind,
        nodata: has_nodata.then_some(nodata),
        scale,
        offset,
        unit,
        description,
    })
}

fn parse_model(chunk: &[u8]) -> Result<ModelId> {
    let mut cursor = Cursor::new(chunk, "name of the model");
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(cursor.take(32)?);
    let extent = Extent {
        offset: cursor.u64()?,
        length: cursor.u64()?,
        crc: cursor.u32()?,
    };
    let [name, address] = [cursor.text()?, cursor.text()?];
    cursor.end()?;
    if extent.length > limits::MODEL_BYTES {
        return Err(Error::LimitExceeded {
            what: "bytes of a model",
            value: extent.length,
            limit: limits::MODEL_BYTES,
        });
    }
    Ok(ModelId {
        sha256,
        name,
        address,
        embedded: (extent.length > 0).then_some(extent),
    })
}
