//! Prints the definitions of all coordinate systems that points are converted to, one a line: code and definition. The
//! decoder for browsers reads them from such a file.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use terrane_geo::geodesy::{Projection, System, definition};

fn main() {
    for epsg in 1..=u16::MAX {
        let is_known = || {
            let (earth, system) = (System::epsg(4326)?, System::epsg(epsg)?);
            Projection::new(&earth, &system)
        };
        if let Some(definition) = definition(epsg)
            && is_known().is_ok()
        {
            println!("{epsg} {definition}");
        }
    }
}
