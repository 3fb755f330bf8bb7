//! What can be asked, as JSON says it.

use serde::Deserialize;

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Opens a file and describes it; `without_system` where nobody knows its coordinate system.
    Open,
    /// Forgets a file.
    Close,
    /// Gives the `definition` of the coordinate system `epsg` as PROJ writes it.
    Define,
    /// The TileJSON of a `layer` or of `contours`, with the file's `name` and the `address` of its tiles, a template.
    Tilejson,
    /// The pixels of a map tile, `side` across: red, green, blue and alpha.
    Tile,
    /// Contour lines of a map tile as a Mapbox vector tile, `interval` metres apart or as suits the zoom.
    Contours,
    /// What is known at `longitude` and `latitude`.
    Point,
    /// Heights along a `line` at `count` points.
    Profile,
    /// Heights of pixels of a `level`, as 64-bit floats; no number where there is no data.
    Window,
}

/// A request. One kind of fields for all of them: a reader for each kind would be a tenth of the module.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the kinds of requests say what they need")]
pub struct Request {
    pub ask: Ask,
    /// A number that JavaScript chose when it opened the file.
    #[serde(default)]
    pub file: u32,
    #[serde(default)]
    pub without_system: bool,
    #[serde(default)]
    pub epsg: u16,
    #[serde(default)]
    pub definition: String,
    #[serde(default)]
    pub layer: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub address: String,
    #[serde(default)]
    pub z: u8,
    #[serde(default)]
    pub x: u32,
    #[serde(default)]
    pub y: u32,
    #[serde(default)]
    pub side: usize,
    #[serde(default)]
    pub interval: Option<f64>,
    #[serde(default)]
    pub longitude: f64,
    #[serde(default)]
    pub latitude: f64,
    #[serde(default)]
    pub line: Vec<(f64, f64)>,
    #[serde(default)]
    pub count: usize,
    #[serde(default)]
    pub level: u8,
    #[serde(default)]
    pub column: usize,
    #[serde(default)]
    pub row: usize,
    #[serde(default)]
    pub width: usize,
    #[serde(default)]
    pub height: usize,
}
