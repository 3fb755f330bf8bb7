//! What can be proven of a difference.

use terrane_codec::format::{ErrorBound, Header};

/// One of two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The newer one.
    New,
    /// The older one.
    Old,
}

impl std::fmt::Display for Side {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::New => "new",
            Self::Old => "old",
        })
    }
}

/// Why no change is proven, however large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// A bound holds at pixels, and the surface between them is interpolated.
    #[error(
        "no change is proven: the files have different pixels, and a bound holds at pixels, not between them"
    )]
    OtherPixels,
    /// A file without a guarantee.
    #[error(
        "no change is proven: the {0} file guarantees no bound; encode its raster with `max_error` or `lossless`"
    )]
    NoBound(Side),
}

/// How far a height of full resolution is from the source at most; `None` where nothing is guaranteed.
pub(crate) fn bound_of(header: &Header) -> Option<f64> {
    match header.bound {
        ErrorBound::MaxError(bound) => Some(bound),
        ErrorBound::Lossless { .. } => Some(0.0),
        ErrorBound::None => None,
    }
}

/// How far a difference of two decoded heights of one pixel is from that of the sources at most.
pub(crate) fn difference_bound(new: &Header, old: &Header) -> Result<f64, Unproven> {
    let of = |header: &Header, side| bound_of(header).ok_or(Unproven::NoBound(side));
    Ok(of(new, Side::New)? + of(old, Side::Old)?)
}
