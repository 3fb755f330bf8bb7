//! Where a raster lies in longitudes and latitudes.
//!
//! Bounds are west, south, east and north in degrees. West is from −180 to 180, and east is not less than west: across the
//! meridian of 180° it is above 180.

use terrane_geo::{Affine, Projection};

use super::error::{Result, TileError};
use super::mercator::MapTile;

/// Points along each edge of a raster that are converted to find its bounds.
const EDGE_POINTS: usize = 33;

/// A turn around the Earth but for rounding.
const TURN: f64 = 360.0 - 1e-6;

/// The bounds of a raster.
pub(crate) fn bounds(
    affine: &Affine,
    (width, height): (usize, usize),
    from_own: &Projection,
    to_own: &Projection,
) -> Result<[f64; 4]> {
    let (width, height) = (width as f64, height as f64);
    let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
    let (mut longitudes, mut latitudes) = (Vec::new(), Vec::new());
    // Around the raster, from each corner towards the next; longitudes go on where they pass 180°.
    for edge in 0..4 {
        let (from, to) = (corners[edge], corners[(edge + 1) % 4]);
        for step in 0..EDGE_POINTS {
            let part = step as f64 / EDGE_POINTS as f64;
            let (x, y) = affine.apply(
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            let (longitude, latitude) = from_own.apply(x, y)?;
            let last = longitudes.last().copied().unwrap_or(longitude);
            longitudes.push(near(longitude, last));
            latitudes.push(latitude);
        }
    }
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut west, mut east) = (least(&longitudes), greatest(&longitudes));
    let (mut south, mut north) = (least(&latitudes), greatest(&latitudes));
    let is_on_earth = [west, south, east, north]
        .iter()
        .all(|degrees| degrees.is_finite())
        && east - west <= 361.0
        && south >= -90.1
        && north <= 90.1;
    if !is_on_earth {
        return Err(TileError::OutsideWorld);
    }
    // A pole inside, or on the edge.
    for (pole, latitude) in [(-90.0, &mut south), (90.0, &mut north)] {
        let pixel = to_own
            .apply(0.0, pole)
            .ok()
            .and_then(|(x, y)| affine.invert(x, y));
        let is_around = longitudes
            .first()
            .zip(longitudes.last())
            .is_some_and(|(first, last)| (near(*first, *last) - first).abs() > 180.0);
        let is_inside = pixel.is_some_and(|(column, row)| {
            (0.0..=width).contains(&column) && (0.0..=height).contains(&row)
        });
        if is_around && is_inside {
            *latitude = pole;
            (west, east) = (-180.0, 180.0);
        }
    }
    if east - west >= TURN {
        (west, east) = (-180.0, 180.0);
    }
    let turns = ((west + 180.0) / 360.0).floor() * 360.0;
    Ok([
        west - turns,
        south.max(-90.0),
        east - turns,
        north.min(90.0),
    ])
}

/// A longitude, whole turns away, that is nearest to another.
pub(super) fn near(longitude: f64, other: f64) -> f64 {
    longitude + ((other - longitude) / 360.0).round() * 360.0
}

/// Whether bounds have anything in common with a box of the map, which ends at 180°.
pub(super) fn overlap([left, bottom, right, top]: [f64; 4], area: [f64; 4]) -> bool {
    let [west, south, east, north] = area;
    let is_beside = [-360.0, 0.0, 360.0]
        .into_iter()
        .any(|turn| west + turn <= right && east + turn >= left);
    is_beside && south <= top && north >= bottom
}

/// The parts of bounds on this side of 180° and beyond it.
pub(crate) fn parts([west, south, east, north]: [f64; 4]) -> Vec<[f64; 4]> {
    if east <= 180.0 {
        return vec![[west, south, east, north]];
    }
    vec![
        [west, south, 180.0, north],
        [-180.0, south, east - 360.0, north],
    ]
}

/// Bounds that do not pass 180°, as TileJSON and PMTiles want them: all longitudes where they would.
pub(crate) fn unwrapped([west, south, east, north]: [f64; 4]) -> [f64; 4] {
    if east <= 180.0 {
        [west, south, east, north]
    } else {
        [-180.0, south, 180.0, north]
    }
}

/// The middle of bounds.
pub(crate) fn middle([west, south, east, north]: [f64; 4]) -> (f64, f64) {
    let longitude = near(f64::midpoint(west, east), 0.0);
    (longitude, f64::midpoint(south, north))
}

/// How many times around the world a raster lies from where a tile sees it: that many turns are added to its longitudes.
pub(super) fn turns(bounds: [f64; 4], tile: MapTile) -> impl Iterator<Item = f64> {
    let [west, _, east, _] = tile.bounds();
    // A tile draws a little of its neighbours.
    let margin = east - west;
    [-360.0, 0.0, 360.0]
        .into_iter()
        .filter(move |turn| bounds[0] + turn <= east + margin && bounds[2] + turn >= west - margin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_geo::{Crs, Georeference, System};

    fn of(crs: Crs, affine: Affine, size: (usize, usize)) -> [f64; 4] {
        let georeference = Georeference::new(affine, crs);
        let own = System::of_raster(&georeference, size).unwrap();
        let earth = System::epsg(4326).unwrap();
        let from = Projection::new(&own, &earth).unwrap();
        let to = Projection::new(&earth, &own).unwrap();
        bounds(&affine, size, &from, &to).unwrap()
    }

    fn assert_near(found: [f64; 4], expected: [f64; 4]) {
        let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-9;
        let is_near = found.into_iter().zip(expected).all(near);
        assert!(is_near, "{found:?} instead of {expected:?}");
    }

    #[test]
    fn bounds_go_on_beyond_180_degrees() {
        let degrees = || Crs::geographic(4326, None);
        let pixel = 1.0 / 3600.0;
        let across = of(degrees(), Affine::north_up(179.9, 0.1, pixel), (720, 720));
        assert_near(across, [179.9, -0.1, 180.1, 0.1]);
        let same = of(degrees(), Affine::north_up(-180.1, 0.1, pixel), (720, 720));
        assert_near(same, [179.9, -0.1, 180.1, 0.1]);
        // Fiji's part of the UTM zone 60.
        let zone = of(
            Crs::projected(32760, None),
            Affine::north_up(700_000.0, 8_200_000.0, 1000.0),
            (200, 200),
        );
        assert!(
            zone[0] < 180.0 && zone[2] > 180.0 && zone[2] < 182.0,
            "{zone:?}"
        );
        let world = of(degrees(), Affine::north_up(-180.0, 90.0, 1.0), (360, 180));
        assert_near(world, [-180.0, -90.0, 180.0, 90.0]);
        let other = of(degrees(), Affine::north_up(0.0, 90.0, 1.0), (360, 180));
        assert_near(other, [-180.0, -90.0, 180.0, 90.0]);
    }

    #[test]
    fn a_raster_around_a_pole_has_all_longitudes() {
        let affine = Affine::north_up(-1_000_000.0, 1_000_000.0, 10_000.0);
        let arctic = of(Crs::projected(3413, None), affine, (200, 200));
        assert_eq!([arctic[0], arctic[2], arctic[3]], [-180.0, 180.0, 90.0]);
        assert!(arctic[1] > 75.0 && arctic[1] < 78.0, "{arctic:?}");
        let antarctic = of(Crs::projected(3031, None), affine, (200, 200));
        assert_eq!([antarctic[0], antarctic[1]], [-180.0, -90.0]);
    }

    #[test]
    fn what_crosses_180_degrees_is_seen_from_both_sides() {
        let across = [179.9, -0.1, 180.1, 0.1];
        assert!(overlap(across, [-180.0, -1.0, -179.95, 1.0]));
        assert!(overlap(across, [179.95, -1.0, 180.0, 1.0]));
        assert!(!overlap(across, [-179.5, -1.0, -179.0, 1.0]));
        assert_eq!(parts(across)[0], [179.9, -0.1, 180.0, 0.1]);
        assert_near(parts(across)[1], [-180.0, -0.1, -179.9, 0.1]);
        assert_eq!(unwrapped(across), [-180.0, -0.1, 180.0, 0.1]);
        assert_eq!(parts([7.0, 46.0, 8.0, 47.0]).len(), 1);
        assert!((middle(across).0.abs() - 180.0).abs() < 1e-9);
        let turns = |z, x| turns(across, MapTile::new(z, x, 1 << (z - 1)).unwrap()).count();
        assert_eq!((turns(8, 0), turns(8, 255), turns(8, 100)), (1, 1, 0));
    }
}
