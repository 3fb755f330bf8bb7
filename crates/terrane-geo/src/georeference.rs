//! Where a raster lies: its affine transform and its coordinate reference system.

use crate::Crs;

/// An affine map from pixel coordinates (column, row) to map coordinates (x, y).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// x of the origin.
    pub x: f64,
    /// Change of x per column.
    pub x_per_column: f64,
    /// Change of x per row.
    pub x_per_row: f64,
    /// y of the origin.
    pub y: f64,
    /// Change of y per column.
    pub y_per_column: f64,
    /// Change of y per row; negative where rows run southwards.
    pub y_per_row: f64,
}

impl Affine {
    /// A north-up grid of square pixels with its top-left corner at `x`, `y`.
    pub fn north_up(x: f64, y: f64, pixel: f64) -> Self {
        Self {
            x,
            x_per_column: pixel,
            x_per_row: 0.0,
            y,
            y_per_column: 0.0,
            y_per_row: -pixel,
        }
    }

    /// A transform from its six numbers in GDAL's order.
    pub fn from_numbers(numbers: [f64; 6]) -> Self {
        let [x, x_per_column, x_per_row, y, y_per_column, y_per_row] = numbers;
        Self {
            x,
            x_per_column,
            x_per_row,
            y,
            y_per_column,
            y_per_row,
        }
    }

    /// Its six numbers in GDAL's order.
    pub fn numbers(&self) -> [f64; 6] {
        [
            self.x,
            self.x_per_column,
            self.x_per_row,
            self.y,
            self.y_per_column,
            self.y_per_row,
        ]
    }

    /// Map coordinates of a pixel position.
    pub fn apply(&self, column: f64, row: f64) -> (f64, f64) {
        (
            self.x + column * self.x_per_column + row * self.x_per_row,
            self.y + column * self.y_per_column + row * self.y_per_row,
        )
    }

    /// Pixel position of map coordinates, or `None` where the transform is singular.
    pub fn invert(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let determinant = self.determinant();
        if determinant == 0.0 || !determinant.is_finite() {
            return None;
        }
        let (dx, dy) = (x - self.x, y - self.y);
        Some((
            (dx * self.y_per_row - dy * self.x_per_row) / determinant,
            (dy * self.x_per_column - dx * self.y_per_column) / determinant,
        ))
    }

    /// The same grid with its origin moved by whole or partial pixels.
    #[must_use]
    pub fn shifted(&self, columns: f64, rows: f64) -> Self {
        let (x, y) = self.apply(columns, rows);
        Self { x, y, ..*self }
    }

    /// The same grid with pixels `factor` times as large.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        self.stretched([factor; 2])
    }

    /// The same grid with pixels so many times as wide and as high.
    #[must_use]
    pub fn stretched(&self, [across, down]: [f64; 2]) -> Self {
        Self {
            x_per_column: self.x_per_column * across,
            x_per_row: self.x_per_row * down,
            y_per_column: self.y_per_column * across,
            y_per_row: self.y_per_row * down,
            ..*self
        }
    }

    /// Width and height of a pixel in map units.
    pub fn pixel_sides(&self) -> [f64; 2] {
        [
            self.x_per_column.hypot(self.y_per_column),
            self.x_per_row.hypot(self.y_per_row),
        ]
    }

    /// Side of a pixel in map units: the root of its area.
    pub fn pixel_size(&self) -> f64 {
        self.determinant().abs().sqrt()
    }

    /// Whether columns or rows do not run along the map's axes.
    pub fn is_rotated(&self) -> bool {
        self.x_per_row != 0.0 || self.y_per_column != 0.0
    }

    fn determinant(&self) -> f64 {
        self.x_per_column * self.y_per_row - self.x_per_row * self.y_per_column
    }
}

/// Where a raster lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Georeference {
    /// The transform as the file anchors it: at the corner of the first pixel, or at its centre where the system
    /// says `PixelIsPoint`. Kept so, because adding and taking away half a pixel loses bits.
    pub anchor: Affine,
    /// Whether the file has a transform of its own; otherwise the anchor counts pixels.
    pub is_georeferenced: bool,
    /// The coordinate reference system.
    pub crs: Crs,
}

impl Georeference {
    /// A raster whose transform is anchored as its system says.
    pub fn new(anchor: Affine, crs: Crs) -> Self {
        Self {
            anchor,
            is_georeferenced: true,
            crs,
        }
    }

    /// A raster whose transform is from the corner of the first pixel, whatever its system says.
    pub fn at_corner(corner: Affine, crs: Crs) -> Self {
        let anchor = if crs.pixel_is_point() {
            corner.shifted(0.5, 0.5)
        } else {
            corner
        };
        Self::new(anchor, crs)
    }

    /// Left, bottom, right and top of the raster of so many columns and rows.
    pub fn extent(&self, (width, height): (usize, usize)) -> [f64; 4] {
        let affine = self.affine();
        let (width, height) = (width as f64, height as f64);
        let corners = [(0.0, 0.0), (width, 0.0), (0.0, height), (width, height)];
        let mut extent = [
            f64::INFINITY,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NEG_INFINITY,
        ];
        for (x, y) in corners.map(|(column, row)| affine.apply(column, row)) {
            extent[0] = extent[0].min(x);
            extent[1] = extent[1].min(y);
            extent[2] = extent[2].max(x);
            extent[3] = extent[3].max(y);
        }
        extent
    }

    /// A raster that is not georeferenced: pixels are counted from its top-left corner, as GDAL does.
    pub fn of_pixels(crs: Crs) -> Self {
        let anchor = Affine {
            x: 0.0,
            x_per_column: 1.0,
            x_per_row: 0.0,
            y: 0.0,
            y_per_column: 0.0,
            y_per_row: 1.0,
        };
        Self {
            anchor,
            is_georeferenced: false,
            crs,
        }
    }

    /// The transform from pixel corners: position (0, 0) is the corner of the first pixel, (0.5, 0.5) its centre.
    pub fn affine(&self) -> Affine {
        if self.is_georeferenced && self.crs.pixel_is_point() {
            self.anchor.shifted(-0.5, -0.5)
        } else {
            self.anchor
        }
    }

    /// The georeference of a part of the raster that starts at the given pixel.
    #[must_use]
    pub fn cropped(&self, column: usize, row: usize) -> Self {
        Self {
            anchor: self.anchor.shifted(column as f64, row as f64),
            ..self.clone()
        }
    }

    /// The georeference of the raster with pixels `factor` times as large and the same outer corner.
    #[must_use]
    pub fn coarsened(&self, factor: f64) -> Self {
        let mut anchor = self.affine().scaled(factor);
        if self.is_georeferenced && self.crs.pixel_is_point() {
            anchor = anchor.shifted(0.5, 0.5);
        }
        Self {
            anchor,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_a_rotated_transform() {
        let affine = Affine {
            x: 2_600_000.0,
            x_per_column: 0.8,
            x_per_row: 0.6,
            y: 1_200_000.0,
            y_per_column: 0.6,
            y_per_row: -0.8,
        };
        let (x, y) = affine.apply(12.5, 7.25);
        let (column, row) = affine.invert(x, y).unwrap();
        assert!((column - 12.5).abs() < 1e-8 && (row - 7.25).abs() < 1e-8);
        assert!((affine.pixel_size() - 1.0).abs() < 1e-12);
        assert!(affine.is_rotated());
        assert_eq!(
            Affine {
                x_per_column: 0.0,
                x_per_row: 0.0,
                ..affine
            }
            .invert(x, y),
            None
        );
    }

    #[test]
    fn coarser_pixels_keep_the_outer_corner() {
        let mut crs = Crs::projected(2056, None);
        let anchor = Affine::north_up(100.0, 200.0, 2.0);
        assert_eq!(
            Georeference::new(anchor, crs.clone())
                .coarsened(2.0)
                .affine()
                .apply(0.0, 0.0),
            (100.0, 200.0)
        );
        crs.directory[11] = 2;
        let point = Georeference::new(anchor, crs);
        assert!(point.crs.pixel_is_point());
        assert_eq!(point.affine().apply(0.0, 0.0), (99.0, 201.0));
        assert_eq!(point.coarsened(4.0).affine().apply(0.0, 0.0), (99.0, 201.0));
    }
}
