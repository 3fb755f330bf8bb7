//! Where the pixels of one file lie in another.

use terrane_codec::Terrain;
use terrane_geo::{Affine, Crs, Georeference, Projection, System};

use super::Side;
use crate::georeferencing::{georeference, size};
use crate::{Error, Result};

/// Parts of a pixel by which two grids may miss each other anywhere and still be one, as where transforms were written with
/// fewer digits.
const TOLERANCE: f64 = 1e-3;

/// How many pixels one grid is shifted against another: what is added to a pixel of the new file to have the old one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelOffset {
    pub(crate) columns: i64,
    pub(crate) rows: i64,
}

/// The way from a pixel of the new file to the old file.
#[derive(Debug)]
pub(crate) enum Alignment {
    /// Both have the same pixels.
    Same(PixelOffset),
    /// The old file's surface is asked at the middle of the new file's pixels.
    Surface {
        /// From pixel corners to the map.
        affine: Affine,
        /// From the new file's map to the old one's, where they differ.
        projection: Option<Box<Projection>>,
    },
}

impl Alignment {
    /// Compares where two files lie.
    pub(crate) fn of(new: &Terrain, old: &Terrain) -> Result<Self> {
        let (ours, theirs) = (georeference(new.header()), georeference(old.header()));
        check_vertical(&ours.crs, &theirs.crs)?;
        for (here, there, side) in [(&ours, &theirs, Side::New), (&theirs, &ours, Side::Old)] {
            if !here.is_georeferenced && there.is_georeferenced {
                return Err(Error::NoPlace { side });
            }
        }
        let (affine, is_same) = (ours.affine(), is_same_map(&ours.crs, &theirs.crs));
        if is_same && let Some(offset) = offset(new, &ours, &theirs) {
            return Ok(Self::Same(offset));
        }
        let projection = (!is_same)
            .then(|| {
                let from = System::of_raster(&ours, size(new))?;
                let to = System::of_raster(&theirs, size(old))?;
                Projection::new(&from, &to).map(Box::new)
            })
            .transpose()?;
        Ok(Self::Surface { affine, projection })
    }
}

/// Refuses heights above different zeros; one that is not stated may be the other.
fn check_vertical(new: &Crs, old: &Crs) -> Result<()> {
    match (new.vertical_epsg(), old.vertical_epsg()) {
        (Some(new), Some(old)) if new != old => Err(Error::VerticalSystems { new, old }),
        _ => Ok(()),
    }
}

/// Whether two systems have the same eastings and northings: by their code or, without one, in every word.
fn is_same_map(new: &Crs, old: &Crs) -> bool {
    match (new.horizontal_epsg(), old.horizontal_epsg()) {
        (Some(new), Some(old)) => new == old,
        (None, None) => new.horizontal() == old.horizontal(),
        _ => false,
    }
}

/// By how many whole pixels two grids are shifted; `None` where they are not the same pixels all over the new file.
fn offset(new: &Terrain, ours: &Georeference, theirs: &Georeference) -> Option<PixelOffset> {
    let (width, height) = new.header().pyramid.size(0)?;
    let (width, height) = (f64::from(width), f64::from(height));
    let (ours, theirs) = (ours.affine(), theirs.affine());
    let there = |column: f64, row: f64| {
        let (x, y) = ours.apply(column, row);
        theirs.invert(x, y)
    };
    let (column, row) = there(0.0, 0.0)?;
    let (columns, rows) = (column.round(), row.round());
    // A file has fewer pixels across than this, so that what lies farther off shares none.
    let is_near = columns.abs() < f64::from(u32::MAX) && rows.abs() < f64::from(u32::MAX);
    let corners = [(0.0, 0.0), (width, 0.0), (0.0, height), (width, height)];
    let is_same = corners.into_iter().all(|(column, row)| {
        there(column, row).is_some_and(|found| {
            (found.0 - column - columns).abs() <= TOLERANCE
                && (found.1 - row - rows).abs() <= TOLERANCE
        })
    });
    (is_near && is_same).then_some(PixelOffset {
        columns: columns as i64,
        rows: rows as i64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_told_apart_by_their_codes() {
        let swiss = Crs::projected(2056, Some(5728));
        assert!(is_same_map(&swiss, &Crs::projected(2056, None)));
        assert!(!is_same_map(&swiss, &Crs::projected(21781, None)));
        assert!(!is_same_map(&swiss, &Crs::default()));
        assert!(is_same_map(&Crs::default(), &Crs::default()));
    }

    #[test]
    fn heights_above_different_zeros_are_refused() {
        let at = |vertical| Crs::projected(2056, vertical);
        assert!(check_vertical(&at(Some(5728)), &at(Some(5728))).is_ok());
        assert!(check_vertical(&at(Some(5728)), &at(None)).is_ok());
        let error = check_vertical(&at(Some(5728)), &at(Some(5773))).unwrap_err();
        assert!(error.to_string().contains("EPSG:5773"), "{error}");
    }
}
