//! Prints the definitions of all coordinate systems that points are converted to, one a line: code and definition. The
//! decoder for browsers reads them from such a file.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use terrane_geo::geodesy::{Projection, definition};

fn main() {
    for epsg in 1..=u16::MAX {
        if let Some(definition) = definition(epsg)
            && Projection::new(4326, Some(epsg)).is_ok()
        {
            println!("{epsg} {definition}");
        }
    }
}
