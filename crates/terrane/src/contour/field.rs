//! A surface over pixels, as lines are traced on it.

use std::convert::Infallible;

use terrane_codec::Surface;
use terrane_codec::kernel::PixelJet;
use terrane_codec::pixels::Pixels;

use super::Point;

/// A surface over pixels: a function of the position alone, so that whoever asks gets the same answer.
pub trait Field {
    /// What can go wrong.
    type Error;

    /// The surface at a position; `None` where there is no data.
    fn jet(&self, at: Point) -> Result<Option<PixelJet>, Self::Error>;

    /// Its height alone.
    fn height(&self, at: Point) -> Result<Option<f64>, Self::Error> {
        Ok(self.jet(at)?.map(|jet| jet.value))
    }

    /// The height at the centre of a pixel.
    fn centre(&self, pixel: (usize, usize)) -> Result<Option<f64>, Self::Error> {
        self.height([pixel.0 as f64 + 0.5, pixel.1 as f64 + 0.5])
    }
}

impl<H: Copy + Into<f64> + From<f32>> Field for Pixels<H> {
    type Error = Infallible;

    fn jet(&self, [column, row]: Point) -> Result<Option<PixelJet>, Infallible> {
        Ok(Self::jet(self, column, row))
    }

    fn height(&self, [column, row]: Point) -> Result<Option<f64>, Infallible> {
        Ok(Self::height(self, column, row))
    }

    fn centre(&self, pixel: (usize, usize)) -> Result<Option<f64>, Infallible> {
        Ok(Self::centre(self, pixel))
    }
}

/// The surface of a file whose tiles may be networks, with its decoded pixels at hand.
#[derive(Debug)]
pub(super) struct TokenField<'a> {
    pub(super) surface: &'a Surface<'a>,
    pub(super) pixels: &'a Pixels<f64>,
}

impl Field for TokenField<'_> {
    type Error = terrane_codec::Error;

    fn jet(&self, [column, row]: Point) -> Result<Option<PixelJet>, Self::Error> {
        self.surface.at_pixel(column, row)
    }

    /// A network passes through its pixels to a fraction of a millimetre, and would take long for all of them.
    fn centre(&self, pixel: (usize, usize)) -> Result<Option<f64>, Self::Error> {
        Ok(self.pixels.centre(pixel))
    }
}
