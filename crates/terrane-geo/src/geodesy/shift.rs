//! The way from a datum to WGS 84.
//!
//! EPSG publishes several for most datums, each for an area and with an accuracy. As PROJ does for a point, the most
//! accurate of those that a place lies in is taken, here for a whole raster by its middle, so that nothing jumps inside
//! it; where a place lies in none, the nearest is, and its accuracy is not known. Grids are taken where the environment's
//! `PROJ_DATA` names a folder that holds them.

#[cfg(all(feature = "definitions", not(target_family = "wasm")))]
use proj4rs::nadgrids::{catalog, files::read_from_file};

#[cfg(feature = "definitions")]
use super::table::{ShiftRecord, datum};

/// EPSG's word for an accuracy that is not known.
#[cfg(feature = "definitions")]
const UNKNOWN_M: f64 = 999.0;

/// A shift as PROJ writes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shift {
    /// `+towgs84=…` or `+nadgrids=…`.
    pub(super) text: String,
    /// Metres that it may be off, where that is stated.
    pub(super) accuracy_m: Option<f64>,
}

/// The best shift of a datum at a longitude and a latitude.
#[cfg(feature = "definitions")]
pub(super) fn best(code: u16, place: (f64, f64)) -> Option<Shift> {
    let found = nearest(code, place, |shift| {
        !shift.is_grid() || own_grid(shift).is_some()
    })?;
    let is_stated = found.distance(place) == 0.0 && found.accuracy_m < UNKNOWN_M;
    Some(Shift {
        text: match own_grid(&found) {
            Some(grid) => format!("+nadgrids={grid}"),
            None => format!("+towgs84={}", found.parameters),
        },
        accuracy_m: is_stated.then_some(found.accuracy_m),
    })
}

#[cfg(not(feature = "definitions"))]
pub(super) fn best(_code: u16, _place: (f64, f64)) -> Option<Shift> {
    None
}

/// Parameters of the best shift without a grid.
#[cfg(feature = "definitions")]
pub(super) fn helmert(code: u16, place: (f64, f64)) -> Option<&'static str> {
    Some(nearest(code, place, |shift| !shift.is_grid())?.parameters)
}

/// The grid that a datum is shifted by at a place, where there is one.
#[cfg(feature = "definitions")]
pub(super) fn grid(code: u16, place: (f64, f64)) -> Option<&'static str> {
    nearest(code, place, ShiftRecord::is_grid)?.grids().next()
}

#[cfg(not(feature = "definitions"))]
pub(super) fn grid(_code: u16, _place: (f64, f64)) -> Option<&'static str> {
    None
}

/// The most accurate of the shifts for a place, the one for the smallest area among equals; outside all areas the nearest.
#[cfg(feature = "definitions")]
fn nearest(
    code: u16,
    place: (f64, f64),
    is_wanted: impl Fn(&ShiftRecord) -> bool,
) -> Option<ShiftRecord> {
    let datum = datum(code)?;
    datum.shifts().filter(is_wanted).min_by(|a, b| {
        let key = |shift: &ShiftRecord| (shift.distance(place), shift.accuracy_m, shift.extent());
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    })
}

/// The name under which the user's own folders of PROJ hold a grid.
#[cfg(all(feature = "definitions", not(target_family = "wasm")))]
fn own_grid(shift: &ShiftRecord) -> Option<&'static str> {
    let folders = std::env::var_os("PROJ_DATA")?;
    let has =
        |name: &&str| std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
    let found = shift.grids().find(has);
    if found.is_some() {
        // The library reads grids only where it is told how.
        catalog::set_builder(read_from_file);
    }
    found
}

#[cfg(all(feature = "definitions", target_family = "wasm"))]
fn own_grid(_shift: &ShiftRecord) -> Option<&'static str> {
    None
}

#[cfg(all(test, feature = "definitions"))]
mod tests {
    use super::*;

    #[test]
    fn the_best_shift_of_a_place_is_taken() {
        let best = |code, place| best(code, place).unwrap();
        // MGI in Vienna, and in Graz, where a better one is published.
        assert_eq!(best(6312, (16.4, 48.2)).accuracy_m, Some(1.5));
        assert_eq!(best(6312, (15.4, 47.1)).accuracy_m, Some(0.5));
        // Far from Austria.
        let far = best(6312, (2.0, 48.0));
        assert!(far.text.starts_with("+towgs84=577.326") && far.accuracy_m.is_none());
        assert_eq!(best(6326, (2.0, 48.0)).text, "+towgs84=0,0,0");
        assert_eq!(grid(6314, (9.0, 50.0)), Some("de_adv_BETA2007.tif"));
        // A datum without any.
        assert_eq!(super::best(1358, (100.0, 0.0)).unwrap().accuracy_m, None);
        assert_eq!(super::best(1, (0.0, 0.0)), None);
    }
}
