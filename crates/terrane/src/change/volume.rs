//! Cut and fill, and how far they can be from the truth.
//!
//! The truth is what the rasters that the files were made from have at the pixels that both of them have. Where a decoded
//! difference is d and cannot be off by more than b, the true one lies from d − b to d + b; what a pixel adds to fill or cut
//! follows from that alone, and so does the sum. What the area of a pixel on the ellipsoid may be off widens both.

/// The least and the most that something can be.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Volumes and areas of pixels whose change is proven.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProvenVolumes {
    /// Pixels.
    pub pixels: u64,
    /// Their area on the ground.
    pub area_m2: f64,
    /// Volume of the pixels that rose.
    pub fill_m3: f64,
    /// How far that is from the truth at most.
    pub fill_bound_m3: f64,
    /// Volume of the pixels that sank.
    pub cut_m3: f64,
    /// How far that is from the truth at most.
    pub cut_bound_m3: f64,
}

/// Volumes and areas of all pixels that both files have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Volumes {
    /// Pixels with data in both files.
    pub pixels: u64,
    /// Their area on the ground.
    pub area_m2: f64,
    /// Volume where the new file is higher.
    pub fill_m3: f64,
    /// Volume where it is lower.
    pub cut_m3: f64,
    /// Where the true fill lies; nothing where there is no bound.
    pub fill: Option<Interval>,
    /// Where the true cut lies.
    pub cut: Option<Interval>,
    /// How far fill minus cut is from the truth at most.
    pub net_bound_m3: Option<f64>,
    /// What is proven; nothing where there is no bound.
    pub proven: Option<ProvenVolumes>,
    /// The lowest and the highest difference in metres.
    pub range_m: Option<Interval>,
    /// Sum of squares of differences.
    pub(super) squares: f64,
    /// What an area may be off, as a part of it.
    area_tolerance: f64,
}

impl Volumes {
    /// Nothing yet, with a bound of differences or without, and what areas may be off, as parts of them.
    pub(super) fn new(bound_m: Option<f64>, area_tolerance: f64) -> Self {
        Self {
            area_tolerance,
            fill: bound_m.map(|_| Interval::default()),
            cut: bound_m.map(|_| Interval::default()),
            net_bound_m3: bound_m.map(|_| 0.0),
            proven: bound_m.map(|_| ProvenVolumes::default()),
            ..Self::default()
        }
    }

    /// Adds one pixel: its difference in metres, and its area.
    pub(super) fn add(&mut self, difference: f64, area_m2: f64, bound_m: Option<f64>) {
        self.pixels += 1;
        self.area_m2 += area_m2;
        self.fill_m3 += difference.max(0.0) * area_m2;
        self.cut_m3 += (-difference).max(0.0) * area_m2;
        self.squares += difference * difference;
        let range = self.range_m.get_or_insert(Interval {
            low: difference,
            high: difference,
        });
        range.low = range.low.min(difference);
        range.high = range.high.max(difference);
        let Some(bound) = bound_m else {
            return;
        };
        let tolerance = self.area_tolerance;
        let add = |interval: &mut Option<Interval>, value: f64| {
            if let Some(interval) = interval {
                interval.low += (value - bound).max(0.0) * area_m2 * (1.0 - tolerance);
                interval.high += (value + bound).max(0.0) * area_m2 * (1.0 + tolerance);
            }
        };
        // Of a height and an area that both may be off.
        let off_m3 = area_m2 * (bound + tolerance * (difference.abs() + bound));
        add(&mut self.fill, difference);
        add(&mut self.cut, -difference);
        if let Some(net_bound) = &mut self.net_bound_m3 {
            *net_bound += off_m3;
        }
        if let Some(proven) = &mut self.proven
            && is_proven(difference, bound)
        {
            proven.pixels += 1;
            proven.area_m2 += area_m2;
            let (volume, volume_bound) = if difference > 0.0 {
                (&mut proven.fill_m3, &mut proven.fill_bound_m3)
            } else {
                (&mut proven.cut_m3, &mut proven.cut_bound_m3)
            };
            *volume += difference.abs() * area_m2;
            *volume_bound += off_m3;
        }
    }

    /// Adds the sums of other pixels; by rows, so that a small pixel is not lost in a large sum.
    pub(super) fn merge(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.area_m2 += other.area_m2;
        self.fill_m3 += other.fill_m3;
        self.cut_m3 += other.cut_m3;
        self.squares += other.squares;
        for (interval, part) in [(&mut self.fill, other.fill), (&mut self.cut, other.cut)] {
            if let (Some(interval), Some(part)) = (interval, part) {
                interval.low += part.low;
                interval.high += part.high;
            }
        }
        if let (Some(bound), Some(part)) = (&mut self.net_bound_m3, other.net_bound_m3) {
            *bound += part;
        }
        if let (Some(proven), Some(part)) = (&mut self.proven, other.proven) {
            proven.pixels += part.pixels;
            proven.area_m2 += part.area_m2;
            proven.fill_m3 += part.fill_m3;
            proven.fill_bound_m3 += part.fill_bound_m3;
            proven.cut_m3 += part.cut_m3;
            proven.cut_bound_m3 += part.cut_bound_m3;
        }
        self.range_m = match (self.range_m, other.range_m) {
            (Some(a), Some(b)) => Some(Interval {
                low: a.low.min(b.low),
                high: a.high.max(b.high),
            }),
            (a, b) => a.or(b),
        };
    }

    /// Root of the mean square difference.
    pub fn rms_m(&self) -> Option<f64> {
        (self.pixels > 0).then(|| (self.squares / self.pixels as f64).sqrt())
    }
}

/// Whether a decoded difference proves that the sources differ.
///
/// Rounding does not spoil it: a difference of two numbers is rounded to the nearest, which never takes it past another
/// rounded number, so that one above the rounded sum of the bounds was above their sum.
pub(super) fn is_proven(difference: f64, bound_m: f64) -> bool {
    difference.abs() > bound_m
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every truth that is within the bound lies within what is said.
    #[test]
    fn the_truth_is_within_what_is_said() {
        const BOUND: f64 = 0.2;
        let decoded = [-1.0, -0.3, -0.2, -0.1, 0.0, 0.05, 0.2, 0.21, 3.0];
        let mut volumes = Volumes::new(Some(BOUND), 0.0);
        for difference in decoded {
            let mut row = Volumes::new(Some(BOUND), 0.0);
            row.add(difference, 2.0, Some(BOUND));
            volumes.merge(&row);
        }
        let (fill, cut) = (volumes.fill.unwrap(), volumes.cut.unwrap());
        let proven = volumes.proven.unwrap();
        assert_eq!(proven.pixels, 4);
        for error in [-BOUND, -0.1, 0.0, 0.13, BOUND] {
            let truth = decoded.map(|difference| difference + error);
            let sum = |value: fn(f64) -> f64| -> f64 {
                truth.iter().map(|d| value(*d).max(0.0) * 2.0).sum()
            };
            let (true_fill, true_cut) = (sum(|d| d), sum(|d| -d));
            let near = 1e-12;
            assert!(true_fill >= fill.low - near && true_fill <= fill.high + near);
            assert!(true_cut >= cut.low - near && true_cut <= cut.high + near);
            let net = volumes.fill_m3 - volumes.cut_m3;
            assert!((true_fill - true_cut - net).abs() <= volumes.net_bound_m3.unwrap() + near);
            // Of the proven pixels alone: those that rose, and those that sank.
            let (rose, sank) = (truth[7] + truth[8], -(truth[0] + truth[1]));
            assert!((2.0 * rose - proven.fill_m3).abs() <= proven.fill_bound_m3 + near);
            assert!((2.0 * sank - proven.cut_m3).abs() <= proven.cut_bound_m3 + near);
        }
        assert_eq!(volumes.range_m.unwrap().high, 3.0);
    }

    #[test]
    fn without_a_bound_nothing_is_proven() {
        let mut volumes = Volumes::new(None, 0.0);
        volumes.add(100.0, 1.0, None);
        assert_eq!(
            (volumes.fill_m3, volumes.proven, volumes.fill),
            (100.0, None, None)
        );
        assert!(is_proven(1e-300, 0.0) && !is_proven(0.0, 0.0) && !is_proven(-0.2, 0.2));
    }
}
