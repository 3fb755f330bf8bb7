//! What changed between two files, and what of it is proven.
//!
//! Two surveys of one place differ everywhere, since both are stored with an error. A file with a guaranteed bound turns
//! this into arithmetic: where the decoded heights of a pixel differ by more than both bounds together, the heights of
//! the rasters that the files were made from differ too, and on the same side.
//!
//! `alignment` finds where a pixel of the new file lies in the old one, `guarantee` what can be proven of their
//! difference, `volume` sums cut and fill with their bounds, `difference` goes through both files by strips, and `report`
//! says what was found.

mod alignment;
mod difference;
mod guarantee;
mod report;
mod volume;

pub(crate) use alignment::{Alignment, PixelOffset};
pub use difference::{Change, ChangeArrays};
pub use guarantee::{Side, Unproven};
pub(crate) use guarantee::{bound_of, difference_bound};
pub use report::ChangeReport;
pub use volume::{Interval, ProvenVolumes, Volumes};

#[cfg(test)]
mod tests;
