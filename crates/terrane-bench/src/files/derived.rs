//! What users derive from heights: slopes, flow, streams, contour lines, views.

use super::contours;
use super::drainage;
use super::flow::Flow;
use super::slope::Slopes;
use super::source::Source;
use super::viewshed::Viewsheds;

/// How well what is derived from decoded heights agrees with what is derived from the source; NaN where the source has
/// nothing to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Derived {
    /// Root mean square error of slopes.
    pub slope_rmse_deg: f64,
    /// Root mean square error of aspects, on slopes above two degrees.
    pub aspect_rmse_deg: f64,
    /// The part of the pixels that drain the same way.
    pub flow_agreement: f64,
    /// F1 of the drainage network, within one pixel.
    pub drainage_f1: f64,
    /// Mean distance of contour lines.
    pub contour_distance_px: f64,
    /// Intersection over union of what is seen.
    pub viewshed_iou: f64,
}

/// What is derived from the source, once for all files.
#[derive(Debug)]
pub(super) struct Reference<'a> {
    source: &'a Source,
    slopes: Slopes,
    flow: Flow,
    viewsheds: Viewsheds,
}

impl<'a> Reference<'a> {
    /// That of a source.
    pub(super) fn of(source: &'a Source) -> Self {
        let ground = source.ground();
        Self {
            source,
            slopes: Slopes::of(&ground),
            flow: Flow::of(&ground),
            viewsheds: Viewsheds::of(&ground),
        }
    }

    /// How well decoded heights agree with it.
    pub(super) fn compare(&self, heights: &[f64]) -> Derived {
        // Where the source has gaps, what a codec without a mask put there is not looked at.
        let masked: Vec<f64> = heights
            .iter()
            .zip(&self.source.heights)
            .map(|(&height, source)| if source.is_nan() { f64::NAN } else { height })
            .collect();
        let ground = self.source.ground_of(&masked);
        let slopes = self.slopes.errors(&Slopes::of(&ground));
        let flow = Flow::of(&ground);
        Derived {
            slope_rmse_deg: slopes.slope_rmse_deg,
            aspect_rmse_deg: slopes.aspect_rmse_deg,
            flow_agreement: self.flow.agreement(&flow),
            drainage_f1: drainage::agreement(&self.flow, &flow),
            contour_distance_px: contours::distance_px(&self.source.ground(), &ground),
            viewshed_iou: self.viewsheds.agreement(&Viewsheds::of(&ground)),
        }
    }
}
