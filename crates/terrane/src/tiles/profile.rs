//! Heights along a line.

use serde::Serialize;
use terrane_geo::geodesy::distance_m;

use super::error::Result;
use super::mercator::{degrees, position};
use super::{Deadline, MapTiles};

/// The last latitude of the web map, about.
const MAX_LATITUDE: f64 = 85.05;

/// A longitude and a latitude, in degrees.
pub type Degrees = (f64, f64);

/// Heights at equal distances along a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The line's length on the ellipsoid.
    pub length_m: f64,
    /// All metres upwards.
    pub ascent_m: f64,
    /// All metres downwards.
    pub descent_m: f64,
    /// Its points, the ends among them.
    pub points: Vec<ProfilePoint>,
}

/// One point of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProfilePoint {
    /// Metres from the start, along the line.
    pub distance_m: f64,
    /// Where it lies.
    pub longitude_deg: f64,
    /// Where it lies.
    pub latitude_deg: f64,
    /// Height; `None` where there is no data.
    pub height_m: Option<f64>,
}

impl MapTiles {
    /// Heights at `count` points, two at least, at equal distances along a line that is straight on the web map and has two
    /// corners at least.
    pub fn profile(&self, line: &[Degrees], count: usize, deadline: Deadline) -> Result<Profile> {
        let mut profile = Profile {
            length_m: 0.0,
            ascent_m: 0.0,
            descent_m: 0.0,
            points: Vec::with_capacity(count),
        };
        let mut pending = None;
        for (longitude_deg, latitude_deg) in along(line, count) {
            let last = profile.points.last();
            profile.length_m += last.map_or(0.0, |last| {
                let from = (last.longitude_deg, last.latitude_deg);
                distance_m(from, (longitude_deg, latitude_deg))
            });
            let sample = match self.map_point(longitude_deg, latitude_deg) {
                None => None,
                Some((x, y)) => match self.sample(x, y, deadline) {
                    Ok(sample) => sample,
                    // All that is to be read should be known at once.
                    Err(error) if error.is_pending() => {
                        pending = Some(error);
                        None
                    }
                    Err(error) => return Err(error),
                },
            };
            let height_m = sample.map(|sample| sample.height);
            if let Some((before, now)) = last.and_then(|last| last.height_m).zip(height_m) {
                profile.ascent_m += (now - before).max(0.0);
                profile.descent_m += (before - now).max(0.0);
            }
            profile.points.push(ProfilePoint {
                distance_m: profile.length_m,
                longitude_deg,
                latitude_deg,
                height_m,
            });
        }
        pending.map_or(Ok(profile), Err)
    }
}

/// Points at equal distances along a line, its ends among them.
fn along(line: &[Degrees], count: usize) -> Vec<Degrees> {
    let mut corners: Vec<Degrees> = Vec::with_capacity(line.len());
    for &(longitude, latitude) in line {
        let (mut u, v) = position(longitude, latitude.clamp(-MAX_LATITUDE, MAX_LATITUDE));
        // The short way, which may lead across 180°.
        if let Some((last, _)) = corners.last() {
            u += (last - u).round();
        }
        corners.push((u, v));
    }
    let lengths: Vec<f64> = corners
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1))
        .collect();
    let whole: f64 = lengths.iter().sum();
    let mut part = 0;
    let mut before = 0.0;
    (0..count)
        .map(|index| {
            let at = whole * index as f64 / (count - 1) as f64;
            while part + 1 < lengths.len() && at > before + lengths[part] {
                before += lengths[part];
                part += 1;
            }
            let share = if lengths[part] > 0.0 {
                ((at - before) / lengths[part]).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let (from, to) = (corners[part], corners[part + 1]);
            degrees(
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_the_short_way_across_180_degrees() {
        let points = along(&[(179.9, -17.0), (-179.9, -17.0)], 3);
        assert!((points[1].0 - 180.0).abs() < 1e-9 && (points[2].0 - 180.1).abs() < 1e-9);
        let length = distance_m(points[0], points[2]);
        assert!((length - 21_297.2).abs() < 10.0, "{length}");
    }

    #[test]
    fn a_line_is_walked_from_end_to_end_in_equal_steps() {
        let line = [(7.0, 47.0), (7.01, 47.0), (7.01, 47.01), (7.01, 47.01)];
        let points = along(&line, 101);
        let near = |a: Degrees, b: Degrees| (a.0 - b.0).hypot(a.1 - b.1) < 1e-9;
        assert!(near(points[0], line[0]) && near(points[100], line[2]));
        let steps: Vec<f64> = points
            .windows(2)
            .map(|pair| distance_m(pair[0], pair[1]))
            .collect();
        let (least, most) = (
            steps.iter().copied().fold(f64::INFINITY, f64::min),
            steps.iter().copied().fold(0.0, f64::max),
        );
        // One step turns the corner.
        assert!(
            most < 1.01 * steps[0] && least > 0.7 * steps[0],
            "{least} {most}"
        );
        assert_eq!(along(&[(7.0, 47.0), (7.0, 47.0)], 2).len(), 2);
    }
}
