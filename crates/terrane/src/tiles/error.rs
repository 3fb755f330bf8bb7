//! What can be wrong with map tiles.

/// An error of map tiles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TileError {
    /// A raster without a transform.
    #[error("it does not say where it lies; give its raster a transform and encode it again")]
    NotGeoreferenced,
    /// A raster in earth-centred coordinates.
    #[error("its coordinates are earth-centred")]
    Geocentric,
    /// A transform without an inverse.
    #[error("its transform cannot be inverted")]
    Singular,
    /// A raster whose longitudes and latitudes do not exist.
    #[error("it lies outside the world")]
    OutsideWorld,
    /// A raster whose pixels cannot be measured on the web map.
    #[error("its pixels have no size on the ground")]
    NoPixelSize,
    /// A tile of so coarse a zoom that the file's overviews do not reach it.
    #[error(
        "this zoom is too coarse for the overviews that the file has: minzoom in its TileJSON says where they begin"
    )]
    TooCoarse,
    /// Work that was given up since nobody waits for it any more.
    #[error("nobody waits for the answer any more")]
    Late,
    /// A difference without a raster to compare with.
    #[error("there is no original to compare with")]
    NoOriginal,
    /// A change without an earlier file.
    #[error("there is no earlier file to compare with")]
    NoBefore,
    /// A level that is not there.
    #[error("there is no level {level}: the last is {last}")]
    NoLevel {
        /// The level.
        level: u8,
        /// The last.
        last: u8,
    },
    /// Heights that contour lines cannot be drawn at.
    #[error(transparent)]
    Levels(#[from] crate::contour::LevelsError),
    /// Contour lines nearer to each other than the file is exact.
    #[error(
        "an interval of {interval} m is finer than what the file is exact to, {error} m: take a larger one"
    )]
    FinerThanFile {
        /// The interval in metres.
        interval: f64,
        /// The largest error of the file in metres.
        error: f64,
    },
    /// More contour lines than a tile should hold.
    #[error(
        "an interval of {interval} m gives more than {most} points of contour lines in this tile: take a larger one"
    )]
    TooManyLines {
        /// The interval in metres.
        interval: f64,
        /// Points of lines at most.
        most: usize,
    },
    /// A picture that cannot be written as PNG.
    #[error("a tile cannot be encoded")]
    Png(#[from] png::EncodingError),
    /// A picture that cannot be written as WebP.
    #[error("a tile cannot be encoded")]
    Webp(#[from] image_webp::EncodingError),
    /// The coordinate system.
    #[error(transparent)]
    Geodesy(#[from] terrane_geo::GeodesyError),
    /// The raster that the file was made from.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// The file.
    #[error(transparent)]
    Terrain(#[from] terrane_codec::Error),
}

impl TileError {
    /// Whether bytes are missing that the file's source reads later; the same may be asked again then.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Terrain(error) if error.is_pending())
    }
}

/// The result of drawing a tile.
pub(super) type Result<T> = std::result::Result<T, TileError>;
