//! Elevation rasters as compact terrane files, with a guaranteed error and an analytic surface.
//!
//! A raster becomes a file by [`encode()`], as [`Settings`] say; [`open()`] opens one, of this machine or at an address.
//! A [`Terrain`] gives heights by tiles and windows, and a [`Surface`] height, gradient and curvature at any point of the
//! map; [`query()`] and [`GroundSurface`] measure them on the ground. [`Decoding`] writes a COG again at any resolution,
//! a [`Contouring`] lines of equal height, a [`Derivation`] slope, aspect, hillshade and the like, [`change`] says what is
//! proven to have changed between two files, [`tiles`] makes pictures for a web map and a [`TileArchive`] all of them in one
//! file. [`verify()`]
//! finds damage and compares a file with its source, [`repair()`] makes a damaged file whole from its source, [`parts()`] says where its bytes are. A [`Plan`] divides an encoding into shards that are made apart ([`Plan::encode`])
//! and become the same file in the end ([`Plan::merge`]).
//!
//! ```
//! use terrane::geo::{Affine, Crs, Existing, Georeference, Grid, Kind, MemoryRaster, Output, SampleType, Storage};
//! use terrane::{Decoding, Destination, GroundSurface, Resources, Settings, Target};
//!
//! let folder = tempfile::tempdir()?;
//! let (file, cog) = (folder.path().join("hill.trn"), folder.path().join("hill.tif"));
//!
//! // A hill of 100 by 100 metres; `terrane::geo::open(&["dem.tif"])` opens a GeoTIFF instead.
//! let heights = (0..10_000).map(|pixel| {
//!     let (x, y) = (f64::from(pixel % 100) - 50.0, f64::from(pixel / 100) - 50.0);
//!     500.0 - 0.01 * (x * x + y * y)
//! });
//! let georeference = Georeference::new(Affine::north_up(2_600_000.0, 1_200_000.0, 1.0), Crs::projected(2056, Some(5728)));
//! let storage = Storage::metres(SampleType::F64, None);
//! let raster = MemoryRaster::new("hill", Grid::new(100, 100, heights.collect()), georeference, storage);
//!
//! // No pixel is farther off than 5 cm.
//! let settings = Settings { target: Target::MaxError(0.05), ..Settings::default() };
//! let resources = Resources::default();
//! let destination = Destination {
//!     out: Output::new(&file, Existing::Refuse, Kind::Terrain),
//!     resumable: None,
//!     resources,
//! };
//! let encoded = terrane::encode(&raster, &settings.prepare(resources.memory)?, destination, &mut |_| Ok(()))?;
//! assert!(encoded.measured.max_error_m <= 0.05);
//!
//! let terrain = terrane::open(&file)?;
//! let sample = terrain.surface()?.at(2_600_050.5, 1_199_949.5)?;
//! assert!((sample.height - 500.0).abs() < 0.06);
//!
//! // On the ground: 20 m beside the top the slope is 0.4.
//! let ground = GroundSurface::new(&terrain)?.at(2_600_070.5, 1_199_949.5)?;
//! let slope = ground.expect("there is data").derivatives.slope_deg();
//! assert!((slope - 0.4_f64.atan().to_degrees()).abs() < 1.0);
//!
//! // Back to a COG with pixels of two metres.
//! let decoding = Decoding { resolution: Some(2.0), ..Decoding::default() };
//! let out = Output::new(&cog, Existing::Refuse, Kind::Raster);
//! let decoded = decoding.write(&terrain, &out, resources.jobs, &mut |_, _| Ok(()))?;
//! assert_eq!((decoded.width, decoded.height), (50, 50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Features: `networks` (default) reads and writes files of tokens, which need burn; without it the context codec and
//! integers are there, and opening a file of tokens is an error that says so. `remote` (default) reads files from web
//! servers and object stores.

#![forbid(unsafe_code)]

pub mod change;
pub mod contour;
#[cfg(test)]
mod corruption;
mod damage;
mod decode;
mod derive;
mod describe;
mod encode;
mod error;
mod extent;
mod fault;
#[cfg(test)]
mod fixture;
pub mod georeferencing;
mod input;
mod open;
mod parts;
mod plan;
mod pmtiles;
mod points;
mod query;
mod rate_search;
mod repair;
mod sentence;
mod settings;
mod shards;
mod tile_archive;
pub mod tiles;
mod verify;
mod virtual_tiff;

pub use contour::{ContourLine, ContourReport, Contouring, LineCrs, LineFormat};
pub use damage::{Damage, DamagedPart, Reach, is_damage};
pub use decode::{Damaged, Decoded, Decoding, View};
pub use derive::{Derivation, DeriveMode, UnknownMode};
pub use describe::describe;
pub use encode::{Destination, Encoded, encode};
pub use error::{Error, Result};
pub use extent::{extent, geographic_extent};
pub use fault::Fault;
pub use input::Checks;
pub use open::{MODELS, ModelFile, OpenOptions, open, open_reader, open_with, read_model};
pub use parts::{LayerBytes, LevelBytes, Parts, parts};
pub use plan::{Plan, Split};
pub use points::{PointTable, PointsError, parse_points, read_points};
pub use query::{GroundSample, GroundSurface, PointReport, query};
pub use rate_search::Reached;
pub use repair::{HeadRepair, Hints, Repaired, Repairing, repair};
pub use sentence::{one_line, plain_lines, sentence};
pub use settings::{Prepared, Settings, Target};
pub use shards::{Merged, ShardReport, shard_path};
pub use tile_archive::{ArchiveReport, TileArchive};
pub use verify::{Verification, verify};
pub use virtual_tiff::{TiffCache, VirtualTiff};

pub use terrane_codec::encode::EncodeProgress;
pub use terrane_codec::{
    Measured, Profile, RemoteOptions, Resources, Sample, Surface, Terrain, public_address, shown,
    without_secrets,
};
pub use terrane_format as format;
pub use terrane_geo as geo;
