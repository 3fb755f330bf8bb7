//! What was found, in words and numbers.

use serde_json::{Value, json};

use super::Unproven;
use super::volume::{Interval, ProvenVolumes, Volumes};

/// What changed between two files.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeReport {
    /// Columns of the difference.
    pub width: usize,
    /// Rows of it.
    pub height: usize,
    /// How far a difference is from that of the sources at most, or why that is not known.
    pub bound_m: Result<f64, Unproven>,
    /// The same for the numbers of the raster, which are rounded to 32-bit floats.
    pub stored_bound_m: Option<f64>,
    /// Pixels of the new file that have no data in one file or in both.
    pub nodata_pixels: u64,
    /// Volumes and areas, at full resolution.
    pub volumes: Volumes,
    /// What the user should know besides.
    pub warnings: Vec<String>,
}

impl ChangeReport {
    /// The report as JSON, `null` for what is not known.
    pub fn json(&self) -> Value {
        let volumes = &self.volumes;
        let proven = |value: fn(&ProvenVolumes) -> Value| volumes.proven.as_ref().map(value);
        let low = |interval: Option<Interval>| interval.map(|interval| interval.low);
        let high = |interval: Option<Interval>| interval.map(|interval| interval.high);
        json!({
            "width": self.width,
            "height": self.height,
            "bound_m": self.bound_m.ok(),
            "stored_bound_m": self.stored_bound_m,
            "unproven": self.bound_m.err().map(|reason| reason.to_string()),
            "compared_pixels": volumes.pixels,
            "compared_m2": volumes.area_m2,
            "nodata_pixels": self.nodata_pixels,
            "lowest_m": low(volumes.range_m),
            "highest_m": high(volumes.range_m),
            "rms_m": volumes.rms_m(),
            "changed_pixels": proven(|proven| proven.pixels.into()),
            "changed_m2": proven(|proven| proven.area_m2.into()),
            "fill_m3": proven(|proven| proven.fill_m3.into()),
            "fill_bound_m3": proven(|proven| proven.fill_bound_m3.into()),
            "cut_m3": proven(|proven| proven.cut_m3.into()),
            "cut_bound_m3": proven(|proven| proven.cut_bound_m3.into()),
            "all_fill_m3": volumes.fill_m3,
            "all_fill_low_m3": low(volumes.fill),
            "all_fill_high_m3": high(volumes.fill),
            "all_cut_m3": volumes.cut_m3,
            "all_cut_low_m3": low(volumes.cut),
            "all_cut_high_m3": high(volumes.cut),
            "net_m3": volumes.fill_m3 - volumes.cut_m3,
            "net_bound_m3": volumes.net_bound_m3,
            "warnings": self.warnings,
        })
    }
}
