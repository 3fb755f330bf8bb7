//! What an encoding measures of the heights that come back.

use terrane_format::{OverviewStatistics, Pyramid, Statistics};

/// Peak signal-to-noise ratio in dB: of a mean square error relative to the square of the range of heights.
pub fn psnr_db(relative_square_error: f64) -> f64 {
    -10.0 * relative_square_error.log10()
}

/// Errors of valid heights, summed up.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Valid pixels.
    pub pixels: u64,
    /// Sum of squares.
    pub squares: f64,
    /// Maximum error.
    pub max_error_m: f64,
    /// Lowest decoded height.
    pub lowest_m: f64,
    /// Highest.
    pub highest_m: f64,
}

/// The lower of two heights. Of zeros it is the one below zero: a machine's own minimum may be either.
fn lower(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_lt() { b } else { a }
}

/// The higher of two heights, as [`lower`].
fn higher(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_gt() { b } else { a }
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            pixels: 0,
            squares: 0.0,
            max_error_m: 0.0,
            lowest_m: f64::INFINITY,
            highest_m: f64::NEG_INFINITY,
        }
    }
}

impl Measured {
    /// Counts one pixel.
    pub fn add(&mut self, height: f64, decoded: f64) {
        let error = (height - decoded).abs();
        self.pixels += 1;
        self.squares += error * error;
        self.max_error_m = self.max_error_m.max(error);
        self.lowest_m = lower(self.lowest_m, decoded);
        self.highest_m = higher(self.highest_m, decoded);
    }

    /// Joins the counts of another part.
    pub fn join(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.squares += other.squares;
        self.max_error_m = self.max_error_m.max(other.max_error_m);
        self.lowest_m = lower(self.lowest_m, other.lowest_m);
        self.highest_m = higher(self.highest_m, other.highest_m);
    }

    /// Root of the mean square error.
    pub fn rmse_m(&self) -> f64 {
        (self.squares / self.pixels.max(1) as f64).sqrt()
    }

    /// What a file says of all its tiles at full resolution.
    fn of_file(&self) -> Statistics {
        let has_data = self.pixels > 0;
        Statistics {
            pixels: self.pixels,
            tiles: 0,
            rmse_m: self.rmse_m(),
            max_error_m: self.max_error_m,
            lowest_m: if has_data { self.lowest_m } else { 0.0 },
            highest_m: if has_data { self.highest_m } else { 0.0 },
        }
    }

    /// Bytes of what was measured, in a journal or a shard.
    pub(crate) const BYTES: usize = 5 * 8;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let values = [
            self.squares,
            self.max_error_m,
            self.lowest_m,
            self.highest_m,
        ];
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.pixels.to_le_bytes());
        for (slot, value) in bytes[8..].chunks_exact_mut(8).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// What was measured of so many pixels at most; `None` where it cannot have been.
    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES], most: u64) -> Option<Self> {
        let eight = |at: usize| std::array::from_fn(|index| bytes[8 * at + index]);
        let number = |at: usize| f64::from_le_bytes(eight(at));
        let measured = Self {
            pixels: u64::from_le_bytes(eight(0)),
            squares: number(1),
            max_error_m: number(2),
            lowest_m: number(3),
            highest_m: number(4),
        };
        let is_possible = measured.pixels <= most
            && measured.squares >= 0.0
            && measured.max_error_m >= 0.0
            && (measured.pixels == 0 || measured.lowest_m <= measured.highest_m);
        is_possible.then_some(measured)
    }

    fn of_overview(&self) -> OverviewStatistics {
        OverviewStatistics {
            rmse_m: self.rmse_m() as f32,
            // Rounded up: what is stated is never below what was measured.
            max_error_m: if self.max_error_m > 0.0 {
                (self.max_error_m as f32).next_up()
            } else {
                0.0
            },
        }
    }
}

/// What an encoding measures, level by level.
#[derive(Debug)]
pub(crate) struct MeasuredLevels {
    levels: Vec<Measured>,
    /// Tiles with data.
    tiles: u64,
}

impl MeasuredLevels {
    pub(crate) fn new(pyramid: &Pyramid) -> Self {
        Self {
            levels: vec![Measured::default(); pyramid.levels().into()],
            tiles: 0,
        }
    }

    /// Adds what was measured of a tile of a level.
    pub(crate) fn join(&mut self, level: u8, tile: &Measured) {
        self.tiles += u64::from(tile.pixels > 0);
        if let Some(measured) = self.levels.get_mut(usize::from(level)) {
            measured.join(tile);
        }
    }

    /// At full resolution.
    pub(crate) fn full(&self) -> Measured {
        self.levels.first().copied().unwrap_or_default()
    }

    /// Of all overviews.
    pub(crate) fn overviews(&self) -> Vec<OverviewStatistics> {
        let overviews = self.levels.iter().skip(1);
        overviews.map(Measured::of_overview).collect()
    }

    /// What a file says of itself at full resolution.
    pub(crate) fn of_file(&self) -> Statistics {
        Statistics {
            tiles: self.tiles,
            ..self.full().of_file()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_have_been_measured_is_refused() {
        let mut measured = Measured::default();
        let read = |measured: Measured| Measured::from_bytes(&measured.to_bytes(), 4);
        assert!(read(measured).is_some());
        measured.add(1.0, 1.5);
        let found = read(measured).unwrap();
        assert_eq!(
            (found.pixels, found.squares, found.max_error_m),
            (1, 0.25, 0.5)
        );
        assert_eq!((found.lowest_m, found.highest_m), (1.5, 1.5));
        for pixels in [5, u64::MAX] {
            assert!(read(Measured { pixels, ..measured }).is_none());
        }
        for wrong in [f64::NAN, -1.0] {
            let parts: [fn(&mut Measured) -> &mut f64; 3] = [
                |measured| &mut measured.squares,
                |measured| &mut measured.max_error_m,
                |measured| &mut measured.highest_m,
            ];
            for part in parts {
                let mut measured = measured;
                *part(&mut measured) = wrong;
                assert!(read(measured).is_none());
            }
        }
    }

    #[test]
    fn of_zeros_the_lowest_is_below_zero_in_any_order() {
        for zeros in [[0.0, -0.0], [-0.0, 0.0]] {
            let mut whole = Measured::default();
            let parts = zeros.map(|zero| {
                whole.add(zero, zero);
                let mut part = Measured::default();
                part.add(zero, zero);
                part
            });
            let mut joined = Measured::default();
            for part in parts {
                joined.join(&part);
            }
            for measured in [whole, joined] {
                assert!(measured.lowest_m.is_sign_negative());
                assert!(measured.highest_m.is_sign_positive());
            }
        }
    }
}
