//! The continuous surface at points.

use library::GroundSample;

use crate::border::{reference, status};
use crate::failure::{ErrorText, Failure};
use crate::file::{File, open_file};

#[repr(C)]
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
    height_m: f64,
    gradient_east: f64,
    gradient_north: f64,
    slope_deg: f64,
    aspect_deg: f64,
    laplacian_per_m: f64,
    profile_curvature_per_m: f64,
    plan_curvature_per_m: f64,
}

impl Point {
    /// What is known here, in a place that keeps its own coordinates.
    fn fill(&mut self, sample: Option<&GroundSample>) {
        let (x, y) = (self.x, self.y);
        *self = match sample {
            None => Self {
                x,
                y,
                height_m: f64::NAN,
                gradient_east: f64::NAN,
                gradient_north: f64::NAN,
                slope_deg: f64::NAN,
                aspect_deg: f64::NAN,
                laplacian_per_m: f64::NAN,
                profile_curvature_per_m: f64::NAN,
                plan_curvature_per_m: f64::NAN,
            },
            Some(GroundSample {
                height,
                derivatives,
            }) => Self {
                x,
                y,
                height_m: *height,
                gradient_east: derivatives.gradient[0],
                gradient_north: derivatives.gradient[1],
                slope_deg: derivatives.slope_deg(),
                aspect_deg: derivatives.aspect_deg().unwrap_or(f64::NAN),
                laplacian_per_m: derivatives.laplacian(),
                profile_curvature_per_m: derivatives.profile_curvature(),
                plan_curvature_per_m: derivatives.plan_curvature().unwrap_or(f64::NAN),
            },
        };
    }
}

/// The surface at points.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_query(
    file: *const File,
    points: *mut Point,
    count: usize,
    epsg: u32,
    error: ErrorText,
) -> i32 {
    let query = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        if count == 0 {
            return Ok(());
        }
        let epsg = u16::try_from(epsg).map_err(|_| Failure::Argument {
            name: "epsg",
            must: "a code of EPSG, or 0 for the file's own system",
            value: epsg.to_string(),
        })?;
        // SAFETY: as this function's.
        unsafe { reference("points", points)? };
        // SAFETY: it is not NULL, and leads to as many points, which nobody else uses now.
        let points = unsafe { std::slice::from_raw_parts_mut(points, count) };
        let at: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        let epsg = (epsg != 0).then_some(epsg);
        let reports = library::query(&file.terrain, &at, epsg, file.jobs)?;
        for (point, report) in points.iter_mut().zip(&reports) {
            point.fill(report.sample.as_ref());
        }
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, query) }
}
