//! The limits of the format; a file beyond them is refused before anything is allocated.

/// Bytes of a head at most: the header, all small descriptions and the root of the index. A reader asks for so many at once.
pub const HEAD: usize = 16_384;
/// Columns or rows of a raster.
pub const RASTER_SIDE: u32 = 1 << 30;
/// Smallest and largest side of a tile, which is even so that overviews of strips fit together.
pub const TILE_SIDE: std::ops::RangeInclusive<u16> = 16..=4096;
/// Pixels of a tile.
pub const TILE_PIXELS: usize = 4096 * 4096;
/// Levels of a file.
pub const LEVELS: u8 = 24;
/// Tiles of a file, all levels.
pub const TILES: u64 = 1 << 30;
/// Bytes of one tile.
pub const TILE_BYTES: u64 = 1 << 30;
/// Bytes of one index page.
pub const PAGE_BYTES: u32 = 1 << 24;
/// Bytes of a model inside a file.
pub const MODEL_BYTES: u64 = 1 << 34;
/// Pages of the index, so that its root fits the head.
pub const PAGES: u32 = 512;
/// Trees of one index page, at least.
pub const PAGE_TREES: u32 = 64;
