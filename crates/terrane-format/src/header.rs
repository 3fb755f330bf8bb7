//! The head of a file: what it holds, where it lies, and the root of its index.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a head has at most 16 KiB, so every length in it fits"
)]

use crate::bytes::{Cursor, Put};
use crate::checksum::crc32c;
use crate::index::PageLocation;
use crate::{Error, Method, Pyramid, Result, limits};

/// The first bytes of every file. Like PNG's, they show when a file was changed as if it were text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TRN\r\n\x1a\n";
/// The version of the format.
pub(crate) const VERSION: u16 = 1;
/// Where a head says its length.
pub(crate) const LENGTH_OFFSET: usize = MAGIC.len() + 2;
/// Bytes of the fixed part.
pub(crate) const FIXED: usize = 160;
/// Bytes of the checksum at the end of a head.
const CRC: usize = 4;
/// Bytes of what is known of an overview.
const OVERVIEW: usize = 8;

/// By how much a decoded height may differ from its source, at every valid pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "snake_case")
)]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Samples {
    /// NumPy's name of the type, as `float32`.
    pub kind: String,
    /// The value of pixels without data.
    #[cfg_attr(feature = "serde", serde(with = "crate::nodata"))]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct ModelId {
    /// SHA-256 of its file.
    #[cfg_attr(feature = "serde", serde(with = "hex::serde"))]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
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

/// How far the heights of an overview are from the means of the source's valid pixels that each of them covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct OverviewStatistics {
    /// Root of the mean square difference.
    pub rmse_m: f32,
    /// Largest difference.
    pub max_error_m: f32,
}

impl Statistics {
    /// Whether nothing was measured, as before an encoding.
    #[cfg(feature = "serde")]
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The head of a file, without its index.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
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
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Statistics::is_empty")
    )]
    pub statistics: Statistics,
    /// What was measured of every overview, from level 1 on.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub overviews: Vec<OverviewStatistics>,
    /// The model, where the method needs one.
    pub model: Option<ModelId>,
}

/// A head that was read, with what only a reader needs.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) header: Header,
    /// Bytes of the head.
    pub(crate) length: usize,
    pub(crate) file_length: u64,
    pub(crate) page_trees: u32,
    pub(crate) pages: Vec<PageLocation>,
}

impl Header {
    /// The head as bytes, with the locations of all index pages.
    pub(crate) fn to_bytes(
        &self,
        file_length: u64,
        page_trees: u32,
        pages: &[PageLocation],
    ) -> Result<Vec<u8>> {
        let (width, height) = self.pyramid.size(0).unwrap_or_default();
        let mut head = Vec::new();
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        // Its length, once it is known.
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
        head.extend(page_trees.to_le_bytes());
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
        let length = head.len() + CRC;
        if length > limits::HEAD {
            return Err(Error::HeadTooLong {
                bytes: length,
                limit: limits::HEAD,
            });
        }
        head[LENGTH_OFFSET..][..2].copy_from_slice(&(length as u16).to_le_bytes());
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

        let overviews = usize::from(self.pyramid.levels()) - 1;
        if overviews > 0 {
            let mut bytes = Vec::with_capacity(overviews * OVERVIEW);
            for index in 0..overviews {
                let known = self.overviews.get(index).copied().unwrap_or_default();
                bytes.extend(known.rmse_m.to_le_bytes());
                bytes.extend(known.max_error_m.to_le_bytes());
            }
            put_chunk(head, *b"LEVL", &bytes);
        }
        if !self.wkt.is_empty() {
            put_chunk(head, *b"wkt2", self.wkt.as_bytes());
        }
        if let Some(model) = &self.model {
            let mut bytes = model.sha256.to_vec();
            bytes.put_block(model.name.as_bytes());
            bytes.put_block(model.address.as_bytes());
            bytes.push(u8::from(model.embedded.is_some()));
            if let Some(extent) = model.embedded {
                bytes.extend(extent.offset.to_le_bytes());
                bytes.extend(extent.length.to_le_bytes());
                bytes.extend(extent.crc.to_le_bytes());
            }
            put_chunk(head, *b"MODL", &bytes);
        }
    }

    /// Reads a head from the first bytes of a file.
    pub(crate) fn parse(start: &[u8]) -> Result<Head> {
        let checked = checked(start)?;
        let length = checked.len() + CRC;
        let mut cursor = Cursor::new(checked, "head");
        cursor.take(LENGTH_OFFSET + 2)?;
        let page_count = cursor.u32()?;
        let file_length = cursor.u64()?;
        let (width, height) = (cursor.u32()?, cursor.u32()?);
        let (side, levels) = (cursor.u16()?, cursor.u8()?);
        let method = Method::from_code(cursor.u8()?)?;
        let pyramid = Pyramid::new(width, height, side, levels)?;
        let page_trees = cursor.u32()?;
        if page_count > limits::PAGES {
            return Err(Error::LimitExceeded {
                what: "index pages",
                value: page_count.into(),
                limit: limits::PAGES.into(),
            });
        }
        if page_trees == 0 || pyramid.trees().div_ceil(page_trees.into()) != u64::from(page_count) {
            return Err(cursor.malformed("the pages do not cover the trees"));
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
            overviews: Vec::new(),
            model: None,
        };
        let pages = header.parse_chunks(&mut cursor, page_count)?;
        Ok(Head {
            header,
            length,
            file_length,
            page_trees,
            pages,
        })
    }

    fn parse_chunks(&mut self, cursor: &mut Cursor, page_count: u32) -> Result<Vec<PageLocation>> {
        let mut pages = None;
        let mut seen = Vec::new();
        while cursor.remaining() > 0 {
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
                b"LEVL" => self.overviews = parse_overviews(chunk, self.pyramid.levels())?,
                b"ROOT" => pages = Some(PageLocation::parse_all(chunk, page_count)?),
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
        if self.pyramid.levels() > 1 && self.overviews.is_empty() {
            return Err(cursor.malformed("it says nothing of its overviews"));
        }
        pages.ok_or_else(|| cursor.malformed("it has no index"))
    }
}

/// The bytes of a head without its checksum, which must be right.
fn checked(start: &[u8]) -> Result<&[u8]> {
    if !start.starts_with(&MAGIC) {
        return Err(Error::NotTerrane);
    }
    let mut cursor = Cursor::new(start, "head");
    cursor.take(MAGIC.len())?;
    // The version comes before the checksum: a later one may have it elsewhere.
    let version = cursor.u16()?;
    if version != VERSION {
        return Err(Error::Unsupported {
            what: "format version",
            value: version.to_string(),
        });
    }
    let length = usize::from(cursor.u16()?);
    if !(FIXED + CRC..=limits::HEAD).contains(&length) {
        return Err(cursor.malformed("it cannot have such a length"));
    }
    let Some(head) = start.get(..length) else {
        return Err(Error::Length {
            expected: length as u64,
            found: start.len() as u64,
        });
    };
    let (checked, crc) = head.split_at(length - CRC);
    let expected = Cursor::new(crc, "head").u32()?;
    let found = crc32c(checked);
    if expected != found {
        return Err(Error::Checksum {
            what: "head",
            expected,
            found,
        });
    }
    Ok(checked)
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

fn parse_overviews(chunk: &[u8], levels: u8) -> Result<Vec<OverviewStatistics>> {
    let mut cursor = Cursor::new(chunk, "list of overviews");
    let overviews = (1..levels)
        .map(|_| {
            Ok(OverviewStatistics {
                rmse_m: cursor.f32()?,
                max_error_m: cursor.f32()?,
            })
        })
        .collect::<Result<_>>()?;
    cursor.end()?;
    Ok(overviews)
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
    let [name, address] = [cursor.text()?, cursor.text()?];
    let embedded = if flag(&mut cursor)? {
        Some(Extent {
            offset: cursor.u64()?,
            length: cursor.u64()?,
            crc: cursor.u32()?,
        })
    } else {
        None
    };
    cursor.end()?;
    if let Some(extent) = embedded.filter(|extent| extent.length > limits::MODEL_BYTES) {
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
        embedded,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const PAGES: [PageLocation; 1] = [PageLocation {
        offset: 20_000,
        length: 77,
        crc: 0xdead_beef,
    }];

    /// A head with every field and every chunk.
    pub(crate) fn full() -> Header {
        Header {
            pyramid: Pyramid::new(1000, 700, 256, 3).unwrap(),
            method: Method::Context,
            affine: [2_600_000.0, 0.5, 0.0, 1_200_000.0, 0.0, -0.5],
            is_georeferenced: true,
            pixel_is_point: true,
            epsg: [2056, 5728],
            geo_keys: GeoKeys {
                directory: vec![1, 1, 0, 1, 1024, 0, 1, 1],
                doubles: vec![0.1, -7.5e300],
                text: "CH1903+|".into(),
            },
            wkt: "PROJCRS[\"CH1903+ / LV95\"]".into(),
            samples: Samples {
                kind: "int16".into(),
                nodata: Some(-9999.0),
                scale: 0.1,
                offset: 5.0,
                unit: "metre".into(),
                description: "Höhe".into(),
            },
            bound: ErrorBound::MaxError(0.25),
            statistics: Statistics {
                pixels: 700_000,
                tiles: 17,
                rmse_m: 0.07,
                max_error_m: 0.25,
                lowest_m: 410.5,
                highest_m: 1203.0,
            },
            overviews: vec![
                OverviewStatistics {
                    rmse_m: 0.125,
                    max_error_m: 0.5,
                },
                OverviewStatistics {
                    rmse_m: 0.25,
                    max_error_m: 1.0,
                },
            ],
            model: Some(ModelId {
                sha256: [7; 32],
                name: "context".into(),
                address: "https://example.org/context.safetensors".into(),
                embedded: Some(Extent {
                    offset: 16_384,
                    length: 3000,
                    crc: 5,
                }),
            }),
        }
    }

    /// A head with as little as there can be.
    pub(crate) fn least() -> Header {
        Header {
            pyramid: Pyramid::new(40, 30, 16, 1).unwrap(),
            method: Method::Integers,
            affine: [0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            is_georeferenced: false,
            pixel_is_point: false,
            epsg: [0; 2],
            geo_keys: GeoKeys::default(),
            wkt: String::new(),
            samples: Samples::default(),
            bound: ErrorBound::None,
            statistics: Statistics::default(),
            overviews: Vec::new(),
            model: None,
        }
    }

    /// Gives a changed head its checksum, as a hostile writer would.
    pub(crate) fn seal(head: &mut [u8]) {
        let length = usize::from(u16::from_le_bytes([
            head[LENGTH_OFFSET],
            head[LENGTH_OFFSET + 1],
        ]));
        if (FIXED + CRC..=head.len()).contains(&length) {
            let checked = length - CRC;
            let crc = crc32c(&head[..checked]);
            head[checked..length].copy_from_slice(&crc.to_le_bytes());
        }
    }

    fn bytes(header: &Header) -> Vec<u8> {
        header.to_bytes(99_999, 4096, &PAGES).unwrap()
    }

    /// Where a chunk starts.
    fn chunk(head: &[u8], tag: [u8; 4]) -> usize {
        let mut offset = FIXED;
        while head[offset..offset + 4] != tag {
            let mut length = [0; 4];
            length.copy_from_slice(&head[offset + 4..offset + 8]);
            offset += 8 + u32::from_le_bytes(length) as usize;
        }
        offset
    }

    /// What is said of a head that was changed and sealed again.
    fn fault(header: &Header, change: impl FnOnce(&mut Vec<u8>)) -> Error {
        let mut head = bytes(header);
        change(&mut head);
        seal(&mut head);
        Header::parse(&head).unwrap_err()
    }

    #[test]
    fn heads_come_back() {
        let mut headers = vec![full(), least()];
        headers.extend(
            Method::ALL
                .iter()
                .map(|&method| Header { method, ..full() }),
        );
        for as_f32 in [false, true] {
            headers.push(Header {
                bound: ErrorBound::Lossless { as_f32 },
                ..least()
            });
        }
        for header in headers {
            let head = bytes(&header);
            // What follows in a file is none of its business.
            let back = Header::parse(&[&head[..], b"more"].concat()).unwrap();
            assert_eq!((back.length, back.file_length), (head.len(), 99_999));
            assert_eq!((back.page_trees, &back.pages[..]), (4096, &PAGES[..]));
            assert_eq!(back.header, header);
            assert_eq!(bytes(&back.header), head);
        }
    }

    #[test]
    fn a_head_that_is_cut_off_is_refused() {
        let head = bytes(&full());
        for length in 0..head.len() {
            assert!(Header::parse(&head[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let mut head = bytes(&full());
        for bit in (0..head.len() * 8).step_by(5) {
            head[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&head).is_err(), "{bit}");
            head[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Header::parse(&head).is_ok());
    }

    #[test]
    fn bytes_with_a_right_checksum_are_still_not_trusted() {
        let head = bytes(&full());
        for offset in 0..head.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = head.clone();
                changed[offset] = value;
                seal(&mut changed);
                let _ = Header::parse(&changed);
            }
        }
    }

    #[test]
    fn faults_are_told_apart() {
        let malformed = |reason| move |error: &Error| matches!(error, Error::Malformed { reason: found, .. } if *found == reason);
        let is_unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
        let exceeds = |error: &Error| matches!(error, Error::LimitExceeded { .. });
        let put = |offset: usize, bytes: &'static [u8]| {
            fault(&full(), |head| {
                head[offset..offset + bytes.len()].copy_from_slice(bytes);
            })
        };
        assert!(matches!(put(0, b"GIF89a"), Error::NotTerrane));
        assert!(is_unsupported(&put(8, &[2])));
        assert!(malformed("it cannot have such a length")(&put(10, &[9, 0])));
        assert!(malformed("it cannot have such a length")(&put(
            10,
            &[1, 64]
        )));
        assert!(matches!(put(10, &[0, 64]), Error::Length { .. }));
        assert!(malformed("a reserved field is not 0")(&put(47, &[1])));
        assert!(exceeds(&put(12, &[1, 2, 0, 0])));
        assert!(malformed("the pages do not cover the trees")(&put(
            12,
            &[2]
        )));
        assert!(malformed("the pages do not cover the trees")(&put(
            36, &[0; 4]
        )));
        assert!(exceeds(&put(24, &[0xff; 4])));
        assert!(matches!(put(24, &[0; 4]), Error::EmptyGrid { .. }));
        assert!(exceeds(&put(32, &[8, 0])) && exceeds(&put(34, &[25])));
        assert!(is_unsupported(&put(35, &[6])));
        assert!(is_unsupported(&put(40, &[4])));
        assert!(malformed("a yes or no is neither")(&put(41, &[2])));

        let named = |tag: [u8; 4], new: &'static [u8; 4]| {
            fault(&full(), |head| {
                let offset = chunk(head, tag);
                head[offset..offset + 4].copy_from_slice(new);
            })
        };
        assert!(is_unsupported(&named(*b"MODL", b"NEWS")));
        assert!(malformed("a chunk comes twice")(&named(*b"MODL", b"GEOK")));
        assert!(malformed("it has no index")(&named(*b"ROOT", b"root")));
        assert!(malformed("it says nothing of its overviews")(&named(
            *b"LEVL", b"levl"
        )));
    }

    #[test]
    fn a_chunk_that_may_be_passed_over_is() {
        let mut head = bytes(&full());
        let offset = chunk(&head, *b"wkt2");
        head[offset..offset + 4].copy_from_slice(b"xown");
        seal(&mut head);
        let back = Header::parse(&head).unwrap().header;
        let expected = Header {
            wkt: String::new(),
            ..full()
        };
        assert_eq!(back, expected);
    }

    #[test]
    fn stated_lengths_are_not_trusted() {
        for tag in [*b"GEOK", *b"SAMP", *b"LEVL", *b"wkt2", *b"MODL", *b"ROOT"] {
            for length in [0_u32, 1, 15, 16_384, u32::MAX] {
                let error = fault(&full(), |head| {
                    let offset = chunk(head, tag) + 4;
                    head[offset..offset + 4].copy_from_slice(&length.to_le_bytes());
                });
                assert!(!matches!(error, Error::Checksum { .. }), "{tag:?} {length}");
            }
        }
        // As many keys as numbers of 64 bits can count.
        let error = fault(&full(), |head| {
            let offset = chunk(head, *b"GEOK") + 8;
            head[offset..offset + 10].copy_from_slice(&[0xff; 10]);
            head[offset + 9] = 1;
        });
        assert!(matches!(
            error,
            Error::Malformed {
                reason: "it is shorter than it says",
                ..
            }
        ));
        let error = fault(&full(), |head| {
            // Before the next chunk: a length of eight bytes and a checksum of four.
            let offset = chunk(head, *b"ROOT") - 12;
            head[offset..offset + 8].copy_from_slice(&(limits::MODEL_BYTES + 1).to_le_bytes());
        });
        assert!(matches!(error, Error::LimitExceeded { .. }));
    }

    #[test]
    fn what_does_not_fit_the_head_is_refused() {
        let header = Header {
            wkt: "x".repeat(limits::HEAD),
            ..least()
        };
        assert!(matches!(
            header.to_bytes(0, 4096, &PAGES),
            Err(Error::HeadTooLong { .. })
        ));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn heads_come_back_from_json() {
        let mut headers = vec![full(), least()];
        for nodata in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut header = full();
            header.samples.nodata = Some(nodata);
            headers.push(header);
        }
        for header in headers {
            let text = serde_json::to_string(&header).unwrap();
            let back: Header = serde_json::from_str(&text).unwrap();
            assert_eq!(bytes(&back), bytes(&header), "{text}");
        }
        let text = serde_json::to_string(&full()).unwrap();
        let sha256 = format!("\"sha256\":\"{}\"", "07".repeat(32));
        for part in [
            "\"pyramid\":{\"width\":1000,\"height\":700,\"side\":256,\"levels\":3}",
            "\"method\":\"context\"",
            "\"bound\":{\"max_error\":0.25}",
            &sha256,
        ] {
            assert!(text.contains(part), "{part} {text}");
        }
        let wrong = text.replace("\"levels\":3", "\"levels\":0");
        assert!(serde_json::from_str::<Header>(&wrong).is_err());
        let wrong = text.replace("\"context\"", "\"magic\"");
        let error = serde_json::from_str::<Header>(&wrong).unwrap_err();
        assert!(error.to_string().contains("methods are integers"));
    }
}
