//! What can be asked, as JSON says it.

use serde::Deserialize;

/// A request; `file` is a number that JavaScript chose when it opened the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Opens a file and describes it.
    Open {
        /// Its number.
        file: u32,
        /// Whether nobody knows the definition of its coordinate system: it is opened without a map then.
        #[serde(default)]
        without_system: bool,
    },
    /// Forgets a file.
    Close {
        /// Its number.
        file: u32,
    },
    /// Gives the definition of a coordinate system as PROJ writes it.
    Define {
        /// Its code.
        epsg: u16,
        /// Its definition.
        definition: String,
    },
    /// The TileJSON of a layer.
    Tilejson {
        /// The file's number.
        file: u32,
        /// The layer's name.
        layer: String,
        /// The file's name.
        name: String,
        /// The template of its tiles' addresses.
        address: String,
    },
    /// The pixels of a map tile: red, green, blue and alpha.
    Tile {
        /// The file's number.
        file: u32,
        /// The layer's name.
        layer: String,
        /// Zoom.
        z: u8,
        /// Column.
        x: u32,
        /// Row.
        y: u32,
        /// Pixels across.
        side: usize,
    },
    /// What is known at a point.
    Point {
        /// The file's number.
        file: u32,
        /// In degrees.
        longitude: f64,
        /// In degrees.
        latitude: f64,
    },
    /// Heights along a line.
    Profile {
        /// The file's number.
        file: u32,
        /// Its corners: longitudes and latitudes in degrees.
        line: Vec<(f64, f64)>,
        /// Points to take, at equal distances.
        count: usize,
    },
    /// Heights of pixels, as 64-bit floats; no number where there is no data.
    Window {
        /// The file's number.
        file: u32,
        /// The overview; 0 is full resolution.
        level: u8,
        /// First column.
        column: usize,
        /// First row.
        row: usize,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
}

impl Request {
    /// The file that it is about.
    pub(crate) fn file(&self) -> Option<u32> {
        match self {
            Self::Define { .. } => None,
            Self::Open { file, .. }
            | Self::Close { file }
            | Self::Tilejson { file, .. }
            | Self::Tile { file, .. }
            | Self::Point { file, .. }
            | Self::Profile { file, .. }
            | Self::Window { file, .. } => Some(*file),
        }
    }
}
