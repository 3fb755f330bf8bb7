//! Measures of a reconstruction against reference heights: of one tile, over tiles, at patch seams, and of a raster.
//!
//! Rows run along y and columns along x, row-major. Gradients are central differences, one-sided at
//! the four borders, in metres per pixel; Laplacians are compared on the interior without its border.

use serde::{Deserialize, Serialize};

/// Range in metres below which a flat tile is not normalised further.
pub const MIN_RANGE_M: f64 = 1e-6;

/// Floor of the mean square error on the [0, 1] scale, which caps the PSNR at 100 dB.
const MIN_SQUARE_ERROR: f64 = 1e-10;

/// Input that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A field does not have one value per pixel.
    #[error("{field}: expected {width}×{height} values, found {found}")]
    LengthMismatch {
        /// The field at fault.
        field: &'static str,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
        /// Number of values given.
        found: usize,
    },
    /// The grid is empty, or a tile is less than three pixels wide or high.
    #[error("{width}×{height} pixels are too few to measure")]
    TooSmall {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// A value that must be a number is NaN or infinite.
    #[error("{field}: the value at index {index} is not finite")]
    NotFinite {
        /// The field at fault.
        field: &'static str,
        /// Index of the first such value.
        index: usize,
    },
    /// The seams leave no pixel near them or none away from them.
    #[error("patches of {patch_side} px do not split the tile into boundary and interior")]
    NoSplit {
        /// Patch side in pixels.
        patch_side: usize,
    },
    /// No pixel has both a reference height and a reconstructed one.
    #[error("no pixel has a height in both the reference and the reconstruction")]
    NoComparedPixel,
    /// There is no tile to average, or fewer than three to cut in thirds.
    #[error("{found} tiles are too few")]
    TooFewTiles {
        /// Number of tiles given.
        found: usize,
    },
}

/// Measures of one tile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TileMeasures {
    /// Range of the reference, the peak of the PSNR.
    pub range_m: f64,
    /// Peak signal-to-noise ratio, at most 100 dB.
    pub psnr_db: f64,
    /// Root mean square height error.
    pub rmse_m: f64,
    /// Largest absolute height error.
    pub max_error_m: f64,
    /// Root mean square length of the gradient's error vector.
    pub gradient_rmse_m_per_px: f64,
    /// Mean length of the gradient's error vector.
    pub mean_gradient_error_m_per_px: f64,
    /// Largest length of the gradient's error vector.
    pub max_gradient_error_m_per_px: f64,
    /// Mean absolute difference of the two gradients' lengths.
    pub gradient_magnitude_error_m_per_px: f64,
    /// Root mean square error of the 5-point Laplacian.
    pub laplacian_rmse_m_per_px2: f64,
    /// Mean absolute error of the 5-point Laplacian.
    pub mean_laplacian_error_m_per_px2: f64,
    /// Largest absolute error of the 5-point Laplacian.
    pub max_laplacian_error_m_per_px2: f64,
    /// Root mean square error of the Laplacian made by applying the gradient's differences twice.
    pub twice_laplacian_rmse_m_per_px2: f64,
}

/// Derivatives that a reconstruction states itself, one value per pixel.
#[derive(Debug, Clone, Copy)]
pub struct Derivatives<'a> {
    /// Derivative along the rows' index, downwards.
    pub gradient_y_m_per_px: &'a [f32],
    /// Derivative along the columns' index, to the right.
    pub gradient_x_m_per_px: &'a [f32],
    /// Laplacian, whose border values are ignored.
    pub laplacian_m_per_px2: &'a [f32],
}

/// Measures over tiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of tiles.
    pub tiles: usize,
    /// Means of the tiles' values, but maxima over tiles where the name has `max`.
    #[serde(flatten)]
    pub mean: TileMeasures,
    /// Largest of the tiles' mean gradient errors.
    pub max_tile_gradient_error_m_per_px: f64,
    /// Largest of the tiles' mean Laplacian errors.
    pub max_tile_laplacian_error_m_per_px2: f64,
}

/// PSNR near the seams between patches and away from them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeamMeasures {
    /// PSNR of the pixels within two pixels of a seam inside the tile.
    pub boundary_psnr_db: f64,
    /// PSNR of all other pixels.
    pub interior_psnr_db: f64,
    /// Fraction of the pixels that are boundary.
    pub boundary_fraction: f64,
}

impl SeamMeasures {
    /// Returns boundary minus interior PSNR, negative where seams are worse.
    pub fn gap_db(&self) -> f64 {
        self.boundary_psnr_db - self.interior_psnr_db
    }
}

/// Indices of tiles in three regimes of rising ruggedness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regimes {
    /// The third with the smallest gradient-magnitude error.
    pub flat: Vec<usize>,
    /// The middle third.
    pub hilly: Vec<usize>,
    /// The third with the largest gradient-magnitude error.
    pub rugged: Vec<usize>,
}

/// Measures of a raster in which a pixel that is not finite is nodata.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RasterMeasures {
    /// Pixels with a height in both rasters, over which heights are compared.
    pub compared_pixels: usize,
    /// Pixels that are nodata in the reconstruction alone.
    pub missing_pixels: usize,
    /// Pixels that are nodata in the reference alone.
    pub invented_pixels: usize,
    /// Range of the reference's valid heights, the peak of the PSNR.
    pub range_m: f64,
    /// Peak signal-to-noise ratio, at most 100 dB.
    pub psnr_db: f64,
    /// Root mean square height error.
    pub rmse_m: f64,
    /// Largest absolute height error.
    pub max_error_m: f64,
    /// Root mean square length of the gradient's error vector in metres per pixel, where any pixel has a stencil.
    pub gradient_rmse: Option<f64>,
    /// Root mean square error of the 5-point Laplacian in metres per square pixel, where any pixel has a stencil.
    pub laplacian_rmse: Option<f64>,
}

impl RasterMeasures {
    /// Returns whether both rasters are nodata at the same pixels.
    pub fn nodata_equal(&self) -> bool {
        self.missing_pixels == 0 && self.invented_pixels == 0
    }
}

/// Measures a tile with the derivatives of both sides taken by finite differences.
pub fn measure(
    reference: &[f32],
    reconstruction: &[f32],
    width: usize,
    height: usize,
) -> Result<TileMeasures, MeasureError> {
    let reference = Grid::tile("reference", reference, (width, height))?;
    let reconstruction = Grid::tile("reconstruction", reconstruction, (width, height))?;
    Ok(compare(reference, reconstruction, None))
}

/// Measures a tile with the reconstruction's derivatives given and the reference's taken by finite differences.
pub fn measure_analytic(
    reference: &[f32],
    reconstruction: &[f32],
    derivatives: Derivatives<'_>,
    width: usize,
    height: usize,
) -> Result<TileMeasures, MeasureError> {
    let tile = |field, values| Grid::tile(field, values, (width, height));
    let reference = tile("reference", reference)?;
    let reconstruction = tile("reconstruction", reconstruction)?;
    let derivatives = [
        tile("gradient along y", derivatives.gradient_y_m_per_px)?,
        tile("gradient along x", derivatives.gradient_x_m_per_px)?,
        tile("Laplacian", derivatives.laplacian_m_per_px2)?,
    ];
    Ok(compare(reference, reconstruction, Some(derivatives)))
}

/// Measures a tile near and away from the seams of square patches that start at its first pixel.
pub fn measure_seams(
    reference: &[f32],
    reconstruction: &[f32],
    width: usize,
    height: usize,
    patch_side: usize,
) -> Result<SeamMeasures, MeasureError> {
    let reference = Grid::new("reference", reference, (width, height))?.finite()?;
    let reconstruction = Grid::new("reconstruction", reconstruction, (width, height))?.finite()?;
    let [mut boundary, mut interior]: [Errors; 2] = Default::default();
    for row in 0..height {
        for column in 0..width {
            let near = near_seam(row, height, patch_side) || near_seam(column, width, patch_side);
            let side = if near { &mut boundary } else { &mut interior };
            side.add(reconstruction.at(row, column) - reference.at(row, column));
        }
    }
    if boundary.count == 0 || interior.count == 0 {
        return Err(MeasureError::NoSplit { patch_side });
    }
    let range_m = reference.range_m();
    Ok(SeamMeasures {
        boundary_psnr_db: boundary.psnr_db(range_m),
        interior_psnr_db: interior.psnr_db(range_m),
        boundary_fraction: boundary.count as f64 / (width * height) as f64,
    })
}

/// Measures a raster over the pixels whose stencils hold no nodata in either raster.
///
/// Without nodata the values are those of [`measure`]. Beside nodata no one-sided difference is taken:
/// such a pixel has a height error but no gradient error.
pub fn measure_masked(
    reference: &[f32],
    reconstruction: &[f32],
    width: usize,
    height: usize,
) -> Result<RasterMeasures, MeasureError> {
    let reference = Grid::new("reference", reference, (width, height))?;
    let reconstruction = Grid::new("reconstruction", reconstruction, (width, height))?;
    let [mut heights, mut gradients, mut laplacians]: [Errors; 3] = Default::default();
    let (mut missing_pixels, mut invented_pixels) = (0, 0);
    for row in 0..height {
        for column in 0..width {
            let (from, to) = (reference.at(row, column), reconstruction.at(row, column));
            if !from.is_finite() || !to.is_finite() {
                missing_pixels += usize::from(from.is_finite());
                invented_pixels += usize::from(to.is_finite());
                continue;
            }
            heights.add(to - from);
            let (from, to) = (
                reference.gradient(row, column),
                reconstruction.gradient(row, column),
            );
            gradients.add(distance(to, from));
            if reference.is_interior(row, column) {
                laplacians
                    .add(reconstruction.laplacian(row, column) - reference.laplacian(row, column));
            }
        }
    }
    if heights.count == 0 {
        return Err(MeasureError::NoComparedPixel);
    }
    let range_m = reference.range_m();
    Ok(RasterMeasures {
        compared_pixels: heights.count,
        missing_pixels,
        invented_pixels,
        range_m,
        psnr_db: heights.psnr_db(range_m),
        rmse_m: heights.rmse(),
        max_error_m: heights.max,
        gradient_rmse: (gradients.count > 0).then(|| gradients.rmse()),
        laplacian_rmse: (laplacians.count > 0).then(|| laplacians.rmse()),
    })
}

/// The PSNR of a mean square error of heights in [0, 1].
pub fn psnr_db(square_error: f64) -> f64 {
    -10.0 * square_error.max(MIN_SQUARE_ERROR).log10()
}

/// Mean and standard deviation of values; both are 0 where there are none.
pub fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Summarises tiles by the means of their values, or the maxima where the name has `max`.
pub fn mean(tiles: &[TileMeasures]) -> Result<Summary, MeasureError> {
    if tiles.is_empty() {
        return Err(MeasureError::TooFewTiles { found: 0 });
    }
    let count = tiles.len() as f64;
    let mean = |value: fn(&TileMeasures) -> f64| tiles.iter().map(value).sum::<f64>() / count;
    let max = |value: fn(&TileMeasures) -> f64| tiles.iter().map(value).fold(0.0, f64::max);
    Ok(Summary {
        tiles: tiles.len(),
        mean: TileMeasures {
            range_m: mean(|tile| tile.range_m),
            psnr_db: mean(|tile| tile.psnr_db),
            rmse_m: mean(|tile| tile.rmse_m),
            max_error_m: max(|tile| tile.max_error_m),
            gradient_rmse_m_per_px: mean(|tile| tile.gradient_rmse_m_per_px),
            mean_gradient_error_m_per_px: mean(|tile| tile.mean_gradient_error_m_per_px),
            max_gradient_error_m_per_px: max(|tile| tile.max_gradient_error_m_per_px),
            gradient_magnitude_error_m_per_px: mean(|tile| tile.gradient_magnitude_error_m_per_px),
            laplacian_rmse_m_per_px2: mean(|tile| tile.laplacian_rmse_m_per_px2),
            mean_laplacian_error_m_per_px2: mean(|tile| tile.mean_laplacian_error_m_per_px2),
            max_laplacian_error_m_per_px2: max(|tile| tile.max_laplacian_error_m_per_px2),
            twice_laplacian_rmse_m_per_px2: mean(|tile| tile.twice_laplacian_rmse_m_per_px2),
        },
        max_tile_gradient_error_m_per_px: max(|tile| tile.mean_gradient_error_m_per_px),
        max_tile_laplacian_error_m_per_px2: max(|tile| tile.mean_laplacian_error_m_per_px2),
    })
}

/// Averages the seam measures of tiles.
pub fn mean_seams(tiles: &[SeamMeasures]) -> Result<SeamMeasures, MeasureError> {
    if tiles.is_empty() {
        return Err(MeasureError::TooFewTiles { found: 0 });
    }
    let count = tiles.len() as f64;
    let mean = |value: fn(&SeamMeasures) -> f64| tiles.iter().map(value).sum::<f64>() / count;
    Ok(SeamMeasures {
        boundary_psnr_db: mean(|tile| tile.boundary_psnr_db),
        interior_psnr_db: mean(|tile| tile.interior_psnr_db),
        boundary_fraction: mean(|tile| tile.boundary_fraction),
    })
}

/// Cuts tiles in thirds by the gradient-magnitude error of one reference method.
///
/// Of `n` tiles in rising order, ties in the order given, the cuts fall at `⌊n/3⌋` and `⌊2n/3⌋`, so the
/// sizes differ by at most one and the more rugged thirds take the surplus.
pub fn split_regimes(gradient_magnitude_errors: &[f64]) -> Result<Regimes, MeasureError> {
    let errors = gradient_magnitude_errors;
    let tiles = errors.len();
    if tiles < 3 {
        return Err(MeasureError::TooFewTiles { found: tiles });
    }
    let mut order: Vec<usize> = (0..tiles).collect();
    order.sort_by(|&a, &b| errors[a].total_cmp(&errors[b]));
    let rugged = order.split_off(2 * tiles / 3);
    let hilly = order.split_off(tiles / 3);
    let flat = order;
    Ok(Regimes {
        flat,
        hilly,
        rugged,
    })
}

/// Width and height.
type Size = (usize, usize);

/// A row-major view whose length has been checked.
#[derive(Clone, Copy)]
struct Grid<'a> {
    field: &'static str,
    values: &'a [f32],
    width: usize,
    height: usize,
}

impl<'a> Grid<'a> {
    fn new(field: &'static str, values: &'a [f32], size: Size) -> Result<Self, MeasureError> {
        let (width, height) = size;
        if width == 0 || height == 0 {
            return Err(MeasureError::TooSmall { width, height });
        }
        if width.checked_mul(height) != Some(values.len()) {
            let found = values.len();
            return Err(MeasureError::LengthMismatch {
                field,
                width,
                height,
                found,
            });
        }
        Ok(Self {
            field,
            values,
            width,
            height,
        })
    }

    fn tile(field: &'static str, values: &'a [f32], size: Size) -> Result<Self, MeasureError> {
        let (width, height) = size;
        if width < 3 || height < 3 {
            return Err(MeasureError::TooSmall { width, height });
        }
        Self::new(field, values, size)?.finite()
    }

    fn finite(self) -> Result<Self, MeasureError> {
        let field = self.field;
        match self.values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(MeasureError::NotFinite { field, index }),
            None => Ok(self),
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        f64::from(self.values[row * self.width + column])
    }

    fn is_interior(&self, row: usize, column: usize) -> bool {
        row > 0 && row + 1 < self.height && column > 0 && column + 1 < self.width
    }

    fn range_m(&self) -> f64 {
        let finite = self.values.iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(f64::from(value)), high.max(f64::from(value)))
        });
        (high - low).max(MIN_RANGE_M)
    }

    fn slope_y(&self, row: usize, column: usize) -> f64 {
        let (above, below) = (row.saturating_sub(1), (row + 1).min(self.height - 1));
        (self.at(below, column) - self.at(above, column)) / (below - above) as f64
    }

    fn slope_x(&self, row: usize, column: usize) -> f64 {
        let (left, right) = (column.saturating_sub(1), (column + 1).min(self.width - 1));
        (self.at(row, right) - self.at(row, left)) / (right - left) as f64
    }

    fn gradient(&self, row: usize, column: usize) -> [f64; 2] {
        [self.slope_y(row, column), self.slope_x(row, column)]
    }

    fn laplacian(&self, row: usize, column: usize) -> f64 {
        self.at(row - 1, column)
            + self.at(row + 1, column)
            + self.at(row, column - 1)
            + self.at(row, column + 1)
            - 4.0 * self.at(row, column)
    }

    /// Returns the 5-point Laplacian and that of the gradient's differences applied twice.
    fn laplacians(&self, row: usize, column: usize) -> [f64; 2] {
        let yy = self.slope_y(row + 1, column) - self.slope_y(row - 1, column);
        let xx = self.slope_x(row, column + 1) - self.slope_x(row, column - 1);
        [self.laplacian(row, column), f64::midpoint(yy, xx)]
    }
}

/// Sums over finite errors: a stencil that touches nodata gives none, and does not count.
#[derive(Default)]
struct Errors {
    count: usize,
    sum: f64,
    sum_squares: f64,
    max: f64,
}

impl Errors {
    fn add(&mut self, error: f64) {
        if !error.is_finite() {
            return;
        }
        self.count += 1;
        self.sum += error.abs();
        self.sum_squares += error * error;
        self.max = self.max.max(error.abs());
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn rmse(&self) -> f64 {
        (self.sum_squares / self.count as f64).sqrt()
    }

    fn psnr_db(&self, range_m: f64) -> f64 {
        psnr_db(self.sum_squares / self.count as f64 / (range_m * range_m))
    }
}

/// Compares a tile whose reconstruction may state its gradient along y and x and its Laplacian.
fn compare(
    reference: Grid<'_>,
    reconstruction: Grid<'_>,
    derivatives: Option<[Grid<'_>; 3]>,
) -> TileMeasures {
    let [mut height, mut slope, mut magnitude]: [Errors; 3] = Default::default();
    let [mut laplacian, mut twice]: [Errors; 2] = Default::default();
    for row in 0..reference.height {
        for column in 0..reference.width {
            height.add(reconstruction.at(row, column) - reference.at(row, column));
            let from = reference.gradient(row, column);
            let to = match derivatives {
                Some([y, x, _]) => [y.at(row, column), x.at(row, column)],
                None => reconstruction.gradient(row, column),
            };
            slope.add(distance(to, from));
            magnitude.add(distance(to, [0.0; 2]) - distance(from, [0.0; 2]));
            if reference.is_interior(row, column) {
                let [from, from_twice] = reference.laplacians(row, column);
                let [to, to_twice] = match derivatives {
                    Some([_, _, laplacian]) => [laplacian.at(row, column); 2],
                    None => reconstruction.laplacians(row, column),
                };
                laplacian.add(to - from);
                twice.add(to_twice - from_twice);
            }
        }
    }
    let range_m = reference.range_m();
    TileMeasures {
        range_m,
        psnr_db: height.psnr_db(range_m),
        rmse_m: height.rmse(),
        max_error_m: height.max,
        gradient_rmse_m_per_px: slope.rmse(),
        mean_gradient_error_m_per_px: slope.mean(),
        max_gradient_error_m_per_px: slope.max,
        gradient_magnitude_error_m_per_px: magnitude.mean(),
        laplacian_rmse_m_per_px2: laplacian.rmse(),
        mean_laplacian_error_m_per_px2: laplacian.mean(),
        max_laplacian_error_m_per_px2: laplacian.max,
        twice_laplacian_rmse_m_per_px2: twice.rmse(),
    }
}

// `hypot` would guard against overflow, which heights held as f32 cannot reach, and is slower.
fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    let (y, x) = (a[0] - b[0], a[1] - b[1]);
    (y * y + x * x).sqrt()
}

/// A seam lies before every pixel whose index is a positive multiple of the patch side.
fn near_seam(index: usize, length: usize, patch_side: usize) -> bool {
    (index.saturating_sub(1)..=index + 2)
        .any(|seam| seam > 0 && seam < length && seam.is_multiple_of(patch_side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MeasureError::{
        LengthMismatch, NoComparedPixel, NoSplit, NotFinite, TooFewTiles, TooSmall,
    };

    #[test]
    fn flat_tile_met_exactly_has_100_db() {
        let flat = measure(&[7.0; 9], &[7.0; 9], 3, 3).unwrap();
        assert!((flat.psnr_db - 100.0).abs() < 1e-12 && flat.range_m <= MIN_RANGE_M);
    }

    #[test]
    fn deviation_is_that_of_the_values_themselves() {
        assert_eq!(
            mean_and_deviation([1.0, 3.0, 5.0, 7.0].into_iter()),
            (4.0, 5_f64.sqrt())
        );
        assert_eq!(mean_and_deviation(std::iter::empty()), (0.0, 0.0));
    }

    #[test]
    fn side_of_one_pixel_has_heights_but_no_gradient() {
        let line = measure_masked(&[1.0; 4], &[3.0; 4], 4, 1).unwrap();
        assert!((line.rmse_m - 2.0).abs() < 1e-12);
        assert_eq!((line.gradient_rmse, line.laplacian_rmse), (None, None));
    }

    #[test]
    fn refuses_what_cannot_be_measured() {
        let (z, nan) = ([0.0; 16], [f32::NAN; 16]);
        assert!(matches!(
            measure(&z, &z[1..], 4, 4),
            Err(LengthMismatch { found: 15, .. })
        ));
        assert_eq!(
            measure(&z, &z, 8, 2),
            Err(TooSmall {
                width: 8,
                height: 2
            })
        );
        assert_eq!(
            measure_masked(&[], &[], 0, 9),
            Err(TooSmall {
                width: 0,
                height: 9
            })
        );
        assert!(matches!(
            measure(&z, &nan, 4, 4),
            Err(NotFinite { index: 0, .. })
        ));
        assert_eq!(measure_masked(&nan, &z, 4, 4), Err(NoComparedPixel));
        for patch_side in [0, 2, 4] {
            assert_eq!(
                measure_seams(&z, &z, 4, 4, patch_side),
                Err(NoSplit { patch_side })
            );
        }
        assert_eq!(mean(&[]), Err(TooFewTiles { found: 0 }));
        assert_eq!(split_regimes(&[1.0, 2.0]), Err(TooFewTiles { found: 2 }));
    }
}
