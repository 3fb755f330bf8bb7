//! Heights at points and along lines.

use serde_json::{Value, json};

use terrane::tiles::{Deadline, Degrees};

use crate::dataset::Dataset;
use crate::failure::Failure;
use crate::limits::{MAX_CORNERS, MAX_DEGREES, MAX_PROFILE_POINTS};

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
    let profile = dataset.tiles.profile(line, count, deadline)?;
    let mut value = serde_json::to_value(profile).map_err(|error| Failure::broken(&error))?;
    value["name"] = dataset.name.clone().into();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
