//! Rate–distortion curves of tiles, and their means at fixed rates.

use terrane_train::measure::{TileMeasures, mean_and_deviation};

use super::CodecError;

/// Part of the tiles that must reach a rate for its mean to be stated.
const ENOUGH: f64 = 0.9;
/// Minimum error whose logarithm is taken.
const MIN_ERROR: f64 = 1e-9;

/// One tile at one quality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// The codec's own quality.
    pub quality: f64,
    /// Bytes of the tile.
    pub bytes: usize,
    /// Bits per pixel.
    pub bpp: f64,
    /// What came back.
    pub errors: Errors,
}

/// Errors of a tile or of an average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Errors {
    /// Peak signal-to-noise ratio, the peak being the tile's range.
    pub psnr_db: f64,
    /// Root mean square error of heights.
    pub rmse_m: f64,
    /// Maximum error of a height.
    pub max_error_m: f64,
    /// Root mean square length of the gradient's error.
    pub gradient_rmse_m_per_px: f64,
    /// Root mean square error of the 5-point Laplacian.
    pub laplacian_rmse_m_per_px2: f64,
}

impl From<TileMeasures> for Errors {
    fn from(measures: TileMeasures) -> Self {
        Self {
            psnr_db: measures.psnr_db,
            rmse_m: measures.rmse_m,
            max_error_m: measures.max_error_m,
            gradient_rmse_m_per_px: measures.gradient_rmse_m_per_px,
            laplacian_rmse_m_per_px2: measures.laplacian_rmse_m_per_px2,
        }
    }
}

/// The points of a codec on every tile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// The codec's name.
    pub codec: String,
    /// Whether it is in tables only.
    pub is_variant: bool,
    /// Points of every tile, in any order.
    pub tiles: Vec<Vec<Point>>,
}

/// Means over tiles at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    /// Bits per pixel.
    pub bpp: f64,
    /// Tiles that reach the rate.
    pub tiles: usize,
    /// Means of their errors.
    pub errors: Errors,
    /// Standard deviation of their PSNR.
    pub psnr_sd_db: f64,
}

impl Curve {
    /// The curve without the tiles that are not kept.
    pub(super) fn only(&self, is_kept: &[bool]) -> Result<Self, CodecError> {
        if self.tiles.len() != is_kept.len() {
            return Err(CodecError::OtherTiles {
                codec: self.codec.clone(),
                found: self.tiles.len(),
                expected: is_kept.len(),
            });
        }
        let kept = self.tiles.iter().zip(is_kept);
        let kept = kept.filter(|(_, is_kept)| **is_kept);
        Ok(Self {
            tiles: kept.map(|(points, _)| points.clone()).collect(),
            ..self.clone()
        })
    }

    /// The mean at a rate of every tile's curve; `None` where fewer than nine in ten reach the rate.
    ///
    /// Between two points PSNR and the logarithms of errors are linear in the logarithm of the rate.
    pub(crate) fn at(&self, bpp: f64) -> Option<Mean> {
        let reached: Vec<Errors> = self
            .tiles
            .iter()
            .filter_map(|points| interpolate(&envelope(points), bpp))
            .collect();
        let count = reached.len() as f64;
        if reached.is_empty() || count < ENOUGH * self.tiles.len() as f64 {
            return None;
        }
        let mean = |value: fn(&Errors) -> f64| reached.iter().map(value).sum::<f64>() / count;
        let (psnr_db, psnr_sd_db) = mean_and_deviation(reached.iter().map(|errors| errors.psnr_db));
        Some(Mean {
            bpp,
            tiles: reached.len(),
            psnr_sd_db,
            errors: Errors {
                psnr_db,
                rmse_m: mean(|errors| errors.rmse_m),
                max_error_m: mean(|errors| errors.max_error_m),
                gradient_rmse_m_per_px: mean(|errors| errors.gradient_rmse_m_per_px),
                laplacian_rmse_m_per_px2: mean(|errors| errors.laplacian_rmse_m_per_px2),
            },
        })
    }

    /// The mean of the bits per pixel that every tile needs for a PSNR; `None` where fewer than nine in ten reach it.
    pub(crate) fn rate_at(&self, psnr_db: f64) -> Option<f64> {
        let reached: Vec<f64> = self
            .tiles
            .iter()
            .filter_map(|points| {
                let points = envelope(points);
                let pair = bracket(&points, psnr_db, |point| point.errors.psnr_db)?;
                Some(pair.mix(|point| point.bpp.ln()).exp())
            })
            .collect();
        let count = reached.len() as f64;
        let enough = !reached.is_empty() && count >= ENOUGH * self.tiles.len() as f64;
        enough.then(|| reached.iter().sum::<f64>() / count)
    }
}

/// Points in the order of their rates, without those that a lower rate beats: a sweep whose rates go up and down is not
/// held against a codec.
fn envelope(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.bpp.total_cmp(&b.bpp));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|point| {
        let is_better = point.errors.psnr_db > best;
        best = best.max(point.errors.psnr_db);
        is_better
    });
    sorted
}

/// Two neighbours and a position between them.
struct Pair<'a> {
    before: &'a Point,
    after: &'a Point,
    part: f64,
}

impl Pair<'_> {
    fn mix(&self, value: impl Fn(&Point) -> f64) -> f64 {
        let (before, after) = (value(self.before), value(self.after));
        before + (after - before) * self.part
    }

    fn mix_logarithms(&self, value: fn(&Errors) -> f64) -> f64 {
        self.mix(|point| value(&point.errors).max(MIN_ERROR).ln())
            .exp()
    }
}

/// The neighbours around a value of something that rises along the points; `None` outside them.
fn bracket(points: &[Point], target: f64, value: impl Fn(&Point) -> f64) -> Option<Pair<'_>> {
    let after = points.iter().position(|point| value(point) >= target)?;
    let (before, after) = match after {
        // Only the first point itself lies within.
        0 if value(&points[0]) > target => return None,
        0 => (&points[0], &points[0]),
        _ => (&points[after - 1], &points[after]),
    };
    let span = value(after) - value(before);
    let part = if span > 0.0 {
        (target - value(before)) / span
    } else {
        0.0
    };
    Some(Pair {
        before,
        after,
        part,
    })
}

fn interpolate(points: &[Point], bpp: f64) -> Option<Errors> {
    let pair = bracket(points, bpp.ln(), |point| point.bpp.ln())?;
    Some(Errors {
        psnr_db: pair.mix(|point| point.errors.psnr_db),
        rmse_m: pair.mix_logarithms(|errors| errors.rmse_m),
        max_error_m: pair.mix_logarithms(|errors| errors.max_error_m),
        gradient_rmse_m_per_px: pair.mix_logarithms(|errors| errors.gradient_rmse_m_per_px),
        laplacian_rmse_m_per_px2: pair.mix_logarithms(|errors| errors.laplacian_rmse_m_per_px2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bpp: f64, psnr_db: f64) -> Point {
        let error = 10_f64.powf(-psnr_db / 20.0);
        Point {
            quality: 0.0,
            bytes: 0,
            bpp,
            errors: Errors {
                psnr_db,
                rmse_m: error,
                max_error_m: 4.0 * error,
                gradient_rmse_m_per_px: error,
                laplacian_rmse_m_per_px2: error,
            },
        }
    }

    fn curve(tiles: Vec<Vec<Point>>) -> Curve {
        Curve {
            codec: "a".to_owned(),
            is_variant: false,
            tiles,
        }
    }

    #[test]
    fn lies_halfway_between_two_points_in_the_logarithm_of_the_rate() {
        // The second tile's points are out of order, and one of them is beaten by a lower rate.
        let tiles = vec![
            vec![point(0.25, 40.0), point(1.0, 60.0)],
            vec![point(1.0, 50.0), point(0.25, 30.0), point(0.5, 20.0)],
        ];
        let mean = curve(tiles).at(0.5).unwrap();
        assert!((mean.errors.psnr_db - 45.0).abs() < 1e-9);
        assert!((mean.psnr_sd_db - 5.0).abs() < 1e-9);
        let expected = f64::midpoint(10_f64.powf(-2.5), 0.01);
        assert!((mean.errors.rmse_m - expected).abs() < 1e-12);
    }

    #[test]
    fn a_rate_that_too_few_tiles_reach_is_not_stated() {
        let wide = vec![point(0.1, 40.0), point(1.0, 60.0)];
        let narrow = vec![point(0.5, 50.0), point(1.0, 60.0)];
        let mut tiles = vec![wide; 9];
        tiles.push(narrow.clone());
        assert_eq!(curve(tiles.clone()).at(0.2).unwrap().tiles, 9);
        assert_eq!(curve(tiles.clone()).at(1.0).unwrap().tiles, 10);
        assert_eq!(curve(tiles.clone()).at(1.1), None);
        tiles.push(narrow);
        assert_eq!(curve(tiles.clone()).at(0.2), None);
        assert_eq!(curve(tiles).at(0.5).unwrap().tiles, 11);
    }

    #[test]
    fn the_rate_of_a_quality_is_found_on_the_same_line() {
        let curve = curve(vec![vec![point(0.25, 40.0), point(1.0, 60.0)]]);
        assert!((curve.rate_at(50.0).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(curve.rate_at(61.0), None);
    }
}
