//! The height range of one tile, which a network does not see: it works on [0, 1].

use serde::{Deserialize, Serialize};

/// Tiles flatter than this are taken to have this range, so that a flat tile divides by something.
const MIN_RANGE_M: f32 = 1e-6;

/// The map between a tile's heights in metres and [0, 1], by its minimum and maximum height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// The minimum height.
    pub low_m: f32,
    /// Maximum minus minimum height, at least a micrometre.
    pub range_m: f32,
}

/// How heights become numbers near 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalise {
    /// Minimum height to 0, maximum to 1: what the authors' code does.
    MinMax,
    /// Mean to 0, standard deviation to 1: what the paper says.
    ZScore,
}

impl Normalise {
    /// The map of a tile's heights, which must be finite.
    pub fn map(self, heights_m: &[f32]) -> Normalisation {
        match self {
            Self::MinMax => Normalisation::of(heights_m),
            Self::ZScore => Normalisation::z_score(heights_m),
        }
    }
}

impl Normalisation {
    /// The map of one tile; heights must be finite.
    pub fn of(heights_m: &[f32]) -> Self {
        let low_m = heights_m.iter().copied().fold(f32::INFINITY, f32::min);
        let high_m = heights_m.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        Self {
            low_m,
            range_m: (high_m - low_m).max(MIN_RANGE_M),
        }
    }

    /// The map of one tile by its mean and standard deviation: 0 is the mean, 1 one deviation above it.
    pub fn z_score(heights_m: &[f32]) -> Self {
        let count = heights_m.len() as f64;
        let mean = heights_m
            .iter()
            .map(|&height| f64::from(height))
            .sum::<f64>()
            / count;
        let variance = heights_m
            .iter()
            .map(|&height| (f64::from(height) - mean).powi(2))
            .sum::<f64>()
            / count;
        Self {
            low_m: mean as f32,
            range_m: (variance.sqrt() as f32).max(MIN_RANGE_M),
        }
    }

    /// The normalised value of a height.
    pub fn normalise(&self, height_m: f32) -> f32 {
        (height_m - self.low_m) / self.range_m
    }

    /// The height of a normalised value.
    pub fn metres(&self, value: f32) -> f32 {
        value * self.range_m + self.low_m
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_fill_the_unit_interval_and_come_back() {
        let heights = [431.5_f32, 440.25, 433.0, 471.5];
        let normalisation = Normalisation::of(&heights);
        assert_eq!(
            normalisation,
            Normalisation {
                low_m: 431.5,
                range_m: 40.0
            }
        );
        for height in heights {
            let value = normalisation.normalise(height);
            assert!((0.0..=1.0).contains(&value));
            assert!((normalisation.metres(value) - height).abs() < 1e-4);
        }
    }

    #[test]
    fn a_flat_tile_stays_flat() {
        let normalisation = Normalisation::of(&[12.0; 9]);
        assert_eq!(normalisation.normalise(12.0), 0.0);
        assert_eq!(normalisation.metres(0.0), 12.0);
    }
}
