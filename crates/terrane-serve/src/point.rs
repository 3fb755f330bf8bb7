//! Heights at points and along lines.

use serde_json::{Value, json};

use terrane::tiles::{Deadline, degrees, position};
use terrane_geo::geodesy::distance_m;

use crate::dataset::Dataset;
use crate::failure::Failure;
use crate::limits::{MAX_CORNERS, MAX_DEGREES, MAX_PROFILE_POINTS};

/// A longitude and a latitude, in degrees.
pub(crate) type Degrees = (f64, f64);

/// Reads `lon,lat`.
pub(crate) fn parse_degrees(text: &str) -> Result<Degrees, Failure> {
    let numbers = text
        .split_once(',')
        .and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    let Some((longitude, latitude)): Option<Degrees> = numbers else {
        return Err(Failure::bad(
            "a point is longitude,latitude in degrees, such as 7.4386,46.9511",
        ));
    };
    // Not a number is in no range.
    if !(-180.0..=180.0).contains(&longitude) || !(-90.0..=90.0).contains(&latitude) {
        return Err(Failure::bad(
            "a longitude is from -180 to 180 degrees and a latitude from -90 to 90",
        ));
    }
    Ok((longitude, latitude))
}

/// Reads `lon,lat;lon,lat;…`.
pub(crate) fn parse_line(text: &str) -> Result<Vec<Degrees>, Failure> {
    let mut line = Vec::new();
    for part in text.split(';') {
        if line.len() == MAX_CORNERS {
            return Err(Failure::bad(format!(
                "a line has at most {MAX_CORNERS} corners"
            )));
        }
        line.push(parse_degrees(part)?);
    }
    if line.len() < 2 {
        return Err(Failure::bad(
            "a line needs two corners at least, such as line=7.43,46.95;7.45,46.96",
        ));
    }
    let span = |axis: fn(&Degrees) -> f64| {
        let values = || line.iter().map(axis);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    };
    if span(|point| point.0) > MAX_DEGREES || span(|point| point.1) > MAX_DEGREES {
        return Err(Failure::bad(format!(
            "a line is at most {MAX_DEGREES} degrees long"
        )));
    }
    Ok(line)
}

/// Reads the number of points of a profile.
pub(crate) fn parse_count(text: Option<&str>) -> Result<usize, Failure> {
    const DEFAULT: usize = 256;
    let Some(text) = text else {
        return Ok(DEFAULT);
    };
    text.parse()
        .ok()
        .filter(|count| (2..=MAX_PROFILE_POINTS).contains(count))
        .ok_or_else(|| Failure::bad(format!("points is a number from 2 to {MAX_PROFILE_POINTS}")))
}

/// Everything that is known at a point, as `terrane query` says it.
pub(crate) fn point(
    dataset: &Dataset,
    (longitude, latitude): Degrees,
    deadline: Deadline,
) -> Result<Value, Failure> {
    let report = dataset.tiles.point(longitude, latitude, deadline)?;
    let Some(report) = report else {
        return Err(Failure::missing(format!(
            "{longitude},{latitude} has no position in the system of {}",
            dataset.name
        )));
    };
    let mut value = report.json();
    value["coordinates"] = json!([longitude, latitude]);
    value["crs"] = dataset.tiles.crs().to_string().into();
    Ok(value)
}

/// Heights at equal distances along a line that is straight on the web map.
pub(crate) fn profile(
    dataset: &Dataset,
    line: &[Degrees],
    count: usize,
    deadline: Deadline,
) -> Result<Value, Failure> {
    let mut points = Vec::with_capacity(count);
    let mut last: Option<Degrees> = None;
    let mut distance = 0.0;
    let (mut ascent, mut descent) = (0.0, 0.0);
    let mut last_height = None;
    for (longitude, latitude) in along(line, count) {
        distance += last.map_or(0.0, |last| distance_m(last, (longitude, latitude)));
        last = Some((longitude, latitude));
        let sample = match dataset.tiles.map_point(longitude, latitude) {
            None => None,
            Some((x, y)) => dataset.tiles.sample(x, y, deadline)?,
        };
        let height = sample.map(|sample| sample.height);
        if let Some((before, now)) = last_height.zip(height) {
            let step: f64 = now - before;
            ascent += step.max(0.0);
            descent -= step.min(0.0);
        }
        last_height = height;
        points.push(json!({
            "distance_m": distance, "longitude_deg": longitude, "latitude_deg": latitude, "height_m": height,
        }));
    }
    Ok(json!({
        "name": dataset.name, "length_m": distance, "ascent_m": ascent, "descent_m": descent, "points": points,
    }))
}

/// Points at equal distances along a line, its ends among them.
fn along(line: &[Degrees], count: usize) -> Vec<Degrees> {
    let corners: Vec<Degrees> = line
        .iter()
        .map(|&(longitude, latitude)| position(longitude, latitude.clamp(-85.05, 85.05)))
        .collect();
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

    #[test]
    fn what_is_no_line_is_refused_with_a_sentence() {
        for text in [
            "",
            "7,47",
            "7,47;8",
            "7,47;x,47",
            "200,47;7,47",
            "7,47;7,NaN",
            "0,0;40,0",
        ] {
            assert!(!parse_line(text).unwrap_err().sentence.is_empty(), "{text}");
        }
        let long = vec!["7,47"; MAX_CORNERS + 1].join(";");
        assert!(parse_line(&long).is_err());
        assert!(parse_count(Some("1")).is_err() && parse_count(Some("1e9")).is_err());
        assert_eq!(parse_count(Some("2000")), Ok(2000));
    }
}
