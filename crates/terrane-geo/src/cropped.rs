//! A part of a raster.

use terrane_format::Window;

use crate::{Error, Georeference, Grid, Note, RasterInfo, RasterSource, Result};

/// A window of a raster, as a raster of its own.
pub struct Cropped {
    whole: Box<dyn RasterSource>,
    window: Window,
    info: RasterInfo,
}

impl Cropped {
    /// The pixels of a raster that a box in its own coordinates touches: left, bottom, right, top.
    pub fn new(whole: Box<dyn RasterSource>, bbox: [f64; 4]) -> Result<Self> {
        let mut info = whole.info().clone();
        let size = (info.width(), info.height());
        let window = box_window(&info.georeference, size, bbox);
        let window = window.ok_or_else(|| Error::OutsideBox {
            path: info.path.clone(),
            extent: info.georeference.extent(size),
        })?;
        info.levels = vec![(window.width, window.height)];
        info.georeference = info.georeference.cropped(window.column, window.row);
        Ok(Self {
            whole,
            window,
            info,
        })
    }

    /// The part, in pixels of the whole.
    pub fn window(&self) -> Window {
        self.window
    }

    fn in_whole(&self, window: Window) -> Window {
        Window {
            column: self.window.column + window.column,
            row: self.window.row + window.row,
            ..window
        }
    }
}

/// The pixels of a grid of so many columns and rows that a box in its coordinates touches; `None` where there are none.
pub fn box_window(
    georeference: &Georeference,
    size: (usize, usize),
    [left, bottom, right, top]: [f64; 4],
) -> Option<Window> {
    let affine = georeference.affine();
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for (x, y) in [(left, bottom), (left, top), (right, bottom), (right, top)] {
        let (column, row) = affine.invert(x, y)?;
        for (axis, value) in [column, row].into_iter().enumerate() {
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    // A corner on a pixel's border does not touch the pixel beyond; coordinates carry rounding.
    let first = |value: f64| (value + 1e-6).floor().max(0.0) as usize;
    let end = |value: f64, size: usize| ((value - 1e-6).ceil().max(0.0) as usize).min(size);
    let (column, row) = (first(low[0]), first(low[1]));
    let (right, bottom) = (end(high[0], size.0), end(high[1], size.1));
    (column < right && row < bottom).then(|| Window {
        column,
        row,
        width: right - column,
        height: bottom - row,
    })
}

impl RasterSource for Cropped {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        self.whole.read(level, self.in_whole(window))
    }

    fn touches(&self, window: Window) -> bool {
        self.whole.touches(self.in_whole(window))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.whole.check_unchanged()
    }

    fn notes(&self) -> &[Note] {
        self.whole.notes()
    }

    fn identity(&self) -> String {
        format!("{} {:?}", self.whole.identity(), self.window)
    }
}
