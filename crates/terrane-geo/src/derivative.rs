//! Terrain derivatives: slope, aspect, hillshade, curvature, ruggedness.
//!
//! There are two ways to them, never mixed: from the 3×3 pixels around a pixel, where every product `gdaldem` also knows
//! equals its result where that is right, and from a gradient and a Hessian, which a continuous surface states itself.
//! `gdaldem` takes pixels as square and rows as running south for the aspect, and ignores a rotation everywhere: there the
//! results here are those of the ground. Angles and shades
//! from pixels go by Horn's gradient (1981), curvatures by the differences of Zevenbergen and Thorne (1987).
//!
//! With x east and y north, p and q the gradient, r, s and t the second derivatives xx, xy and yy, and g² = p² + q², as
//! in Florinsky (2016, ch. 2) and `WhiteboxTools`; a convex form is positive, but the Laplacian has no sign turned:
//!
//! ```text
//! slope                arctan g
//! aspect               direction of (-p, -q), clockwise from north
//! hillshade            1 + 254 · max(0, (sin 45° + p/2 - q/2) / √(1 + g²)), rounded; light from 315°, 45° high
//! laplacian            r + t
//! profile curvature    -(p²r + 2pqs + q²t) / (g² · (1 + g²)^(3/2))
//! plan curvature       -(q²r - 2pqs + p²t) / g³
//! ```

use std::f64::consts::FRAC_1_SQRT_2;
use std::str::FromStr;

use crate::Ground;

/// The direction of the light (east, north, up): azimuth 315°, altitude 45°.
const LIGHT: [f64; 3] = [-0.5, 0.5, FRAC_1_SQRT_2];

/// What can be derived from heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// Steepest slope in degrees.
    Slope,
    /// Direction in which the ground falls, in degrees clockwise from north, below 360.
    Aspect,
    /// Shade in integers from 1 to 255.
    Hillshade,
    /// Sum of the second derivatives; positive in hollows.
    Laplacian,
    /// Curvature of the line of fall; positive where it is convex.
    ProfileCurvature,
    /// Curvature of the contour line; positive on spurs.
    PlanCurvature,
    /// Terrain ruggedness index (Riley et al. 1999): root of the summed squares of height differences to neighbours.
    Tri,
    /// Topographic position index: height above the mean of the neighbours.
    Tpi,
    /// Greatest minus least height.
    Roughness,
}

/// A name that no product has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no product \"{name}\"; the products are {}", Product::ALL.map(Product::name).join(", "))]
pub struct UnknownProduct {
    /// The name given.
    pub name: String,
}

impl FromStr for Product {
    type Err = UnknownProduct;

    fn from_str(name: &str) -> Result<Self, UnknownProduct> {
        Self::ALL
            .into_iter()
            .find(|product| product.name() == name)
            .ok_or_else(|| UnknownProduct { name: name.into() })
    }
}

impl Product {
    /// Every product.
    pub const ALL: [Self; 9] = [
        Self::Slope,
        Self::Aspect,
        Self::Hillshade,
        Self::Laplacian,
        Self::ProfileCurvature,
        Self::PlanCurvature,
        Self::Tri,
        Self::Tpi,
        Self::Roughness,
    ];

    /// The name it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slope => "slope",
            Self::Aspect => "aspect",
            Self::Hillshade => "hillshade",
            Self::Laplacian => "laplacian",
            Self::ProfileCurvature => "profile-curvature",
            Self::PlanCurvature => "plan-curvature",
            Self::Tri => "tri",
            Self::Tpi => "tpi",
            Self::Roughness => "roughness",
        }
    }

    /// The unit of its values; empty for a shade, which has none.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Slope | Self::Aspect => "degree",
            Self::Hillshade => "",
            Self::Laplacian | Self::ProfileCurvature | Self::PlanCurvature => "1/m",
            Self::Tri | Self::Tpi | Self::Roughness => "m",
        }
    }

    /// Whether a continuous surface has it; the others exist between pixels alone.
    pub fn is_of_surface(self) -> bool {
        !matches!(self, Self::Tri | Self::Tpi | Self::Roughness)
    }

    /// The value at the middle of 3×3 heights in metres, row by row from the top left.
    ///
    /// It is NaN where any of the nine heights is, and where the product is undefined: aspect on level ground, curvature
    /// as [`Derivatives`] says.
    pub fn from_neighbourhood(self, z: &[f64; 9], cell: impl Into<Ground>) -> f64 {
        let cell = cell.into();
        if z.iter().any(|height| height.is_nan()) {
            return f64::NAN;
        }
        let differences = || z.iter().map(|height| height - z[4]);
        match self {
            Self::Slope => slope_deg(horn_single(z, cell)),
            Self::Aspect => aspect_deg(horn_single(z, cell)).unwrap_or(f64::NAN),
            Self::Hillshade => hillshade(horn(z, cell)),
            Self::Laplacian => Derivatives::from_neighbourhood(z, cell).laplacian(),
            Self::ProfileCurvature => Derivatives::from_neighbourhood(z, cell).profile_curvature(),
            Self::PlanCurvature => Derivatives::from_neighbourhood(z, cell)
                .plan_curvature()
                .unwrap_or(f64::NAN),
            Self::Tri => differences().map(|m| m * m).sum::<f64>().sqrt(),
            Self::Tpi => {
                // In single precision, as gdaldem.
                let others = z.iter().enumerate().filter(|(index, _)| *index != 4);
                let sum = others.fold(0.0_f32, |sum, (_, &height)| sum + height as f32);
                f64::from(z[4] as f32 - sum * 0.125)
            }
            Self::Roughness => {
                differences().fold(0.0, f64::max) - differences().fold(0.0, f64::min)
            }
        }
    }

    /// The value at a point of a surface with these derivatives, NaN where it is undefined; `None` for a product that
    /// only pixels have.
    pub fn from_derivatives(self, derivatives: &Derivatives) -> Option<f64> {
        match self {
            Self::Slope => Some(derivatives.slope_deg()),
            Self::Aspect => Some(derivatives.aspect_deg().unwrap_or(f64::NAN)),
            Self::Hillshade => Some(hillshade(derivatives.gradient)),
            Self::Laplacian => Some(derivatives.laplacian()),
            Self::ProfileCurvature => Some(derivatives.profile_curvature()),
            Self::PlanCurvature => Some(derivatives.plan_curvature().unwrap_or(f64::NAN)),
            Self::Tri | Self::Tpi | Self::Roughness => None,
        }
    }
}

/// The size of a pixel of a raster that is not rotated, on the ground.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Metres from one column to the next; negative where columns run west.
    pub x_m: f64,
    /// Metres from one row to the next; negative where rows run north.
    pub y_m: f64,
}

impl Cell {
    /// A square pixel of a north-up raster.
    pub fn square(side_m: f64) -> Self {
        Self {
            x_m: side_m,
            y_m: side_m,
        }
    }
}

impl From<Cell> for Ground {
    fn from(cell: Cell) -> Self {
        Self::upright(cell.x_m, -cell.y_m)
    }
}

/// First and second derivatives of the height at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Derivatives {
    /// Rise eastwards and northwards, in metres per metre.
    pub gradient: [f64; 2],
    /// Second derivatives xx, xy and yy with x east and y north, in 1/m.
    pub hessian: [f64; 3],
}

impl Derivatives {
    /// The least gradient at which contour lines have a curvature: it grows without bound towards level ground, where
    /// it would show the noise of the heights.
    pub const MIN_GRADIENT: f64 = 1e-3;

    /// The derivatives at the middle of 3×3 heights, as in [`Product::from_neighbourhood`], by the differences of
    /// Zevenbergen and Thorne (1987); the Laplacian is then that of five points.
    pub fn from_neighbourhood(z: &[f64; 9], cell: impl Into<Ground>) -> Self {
        let by_pixels = [(z[5] - z[3]) / 2.0, (z[7] - z[1]) / 2.0];
        let second = [
            z[3] - 2.0 * z[4] + z[5],
            ((z[8] - z[6]) - (z[2] - z[0])) / 4.0,
            z[1] - 2.0 * z[4] + z[7],
        ];
        Self::on_ground(by_pixels, second, cell.into())
    }

    /// The derivatives on the ground of a surface in units of a map, or in pixels.
    pub fn on_ground(gradient: [f64; 2], hessian: [f64; 3], ground: Ground) -> Self {
        Self {
            gradient: ground.gradient(gradient),
            hessian: ground.hessian(hessian),
        }
    }

    /// Steepest slope in degrees.
    pub fn slope_deg(&self) -> f64 {
        slope_deg(self.gradient)
    }

    /// Direction in which the ground falls, in degrees clockwise from north; level ground has none.
    pub fn aspect_deg(&self) -> Option<f64> {
        aspect_deg(self.gradient)
    }

    /// Sum of the second derivatives in 1/m.
    pub fn laplacian(&self) -> f64 {
        self.hessian[0] + self.hessian[2]
    }

    /// Curvature of the line of fall in 1/m. Where the ground is level it has no direction: 0 on a plane, else NaN.
    pub fn profile_curvature(&self) -> f64 {
        let [p, q] = self.gradient;
        let square = p * p + q * q;
        if square == 0.0 && self.hessian == [0.0; 3] {
            return 0.0;
        }
        0.0 - self.bend([p, q]) / (square * (1.0 + square).powf(1.5))
    }

    /// Curvature of the contour line in 1/m; `None` below [`Self::MIN_GRADIENT`].
    pub fn plan_curvature(&self) -> Option<f64> {
        let [p, q] = self.gradient;
        let steepness = p.hypot(q);
        (steepness >= Self::MIN_GRADIENT).then(|| 0.0 - self.bend([q, -p]) / steepness.powi(3))
    }

    /// The second derivative along a vector, times the square of its length.
    fn bend(&self, [x, y]: [f64; 2]) -> f64 {
        let [xx, xy, yy] = self.hessian;
        x * x * xx + 2.0 * x * y * xy + y * y * yy
    }
}

/// Derives one row of a raster from its heights and those of the rows above and below it.
///
/// The outer edge of the raster is NaN, as with `gdaldem`; `previous` or `next` is `None` there.
pub fn derive_rows(
    product: Product,
    previous: Option<&[f64]>,
    current: &[f64],
    next: Option<&[f64]>,
    cell: impl Into<Ground>,
) -> Vec<f64> {
    let cell = cell.into();
    let mut values = vec![f64::NAN; current.len()];
    if let (Some(previous), Some(next)) = (previous, next) {
        assert_eq!((previous.len(), next.len()), (current.len(), current.len()));
        for column in 1..current.len().saturating_sub(1) {
            let rows = [previous, current, next];
            let z = std::array::from_fn(|index| rows[index / 3][column - 1 + index % 3]);
            values[column] = product.from_neighbourhood(&z, cell);
        }
    }
    values
}

/// The gradient eastwards and northwards over 3×3 heights (Horn 1981).
fn horn(z: &[f64; 9], cell: Ground) -> [f64; 2] {
    let line = |a: usize, b: usize, c: usize| z[a] + 2.0 * z[b] + z[c];
    cell.gradient([
        (line(2, 5, 8) - line(0, 3, 6)) / 8.0,
        (line(6, 7, 8) - line(0, 1, 2)) / 8.0,
    ])
}

/// The same, summed in single precision and in the order in which gdaldem does for slope and aspect: equal results are
/// worth more there than the digits it loses.
fn horn_single(z: &[f64; 9], cell: Ground) -> [f64; 2] {
    let z = z.map(|height| height as f32);
    let line = |a: usize, b: usize, c: usize| z[a] + z[b] + z[b] + z[c];
    let across = f64::from(line(2, 5, 8) - line(0, 3, 6));
    let down = -f64::from(line(0, 1, 2) - line(6, 7, 8));
    cell.gradient([across / 8.0, down / 8.0])
}

fn slope_deg([p, q]: [f64; 2]) -> f64 {
    p.hypot(q).atan().to_degrees()
}

fn aspect_deg([p, q]: [f64; 2]) -> Option<f64> {
    if [p, q] == [0.0, 0.0] {
        return None;
    }
    let degrees = (-p).atan2(-q).to_degrees().rem_euclid(360.0);
    // Rasters hold single precision, in which a direction just short of north must not become 360.
    Some(if degrees as f32 >= 360.0 {
        0.0
    } else {
        degrees
    })
}

fn hillshade([p, q]: [f64; 2]) -> f64 {
    let [east, north, up] = LIGHT;
    let lit = (up - p * east - q * north) / (1.0 + p * p + q * q).sqrt();
    if lit <= 0.0 {
        1.0
    } else {
        (1.0 + 254.0 * lit).round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBLONG: Cell = Cell { x_m: 2.0, y_m: 3.0 };

    /// The 3×3 heights of a surface around a point, x east and y north.
    fn sample(height_m: impl Fn(f64, f64) -> f64, [x, y]: [f64; 2], cell: Cell) -> [f64; 9] {
        std::array::from_fn(|index| {
            let (column, row) = ((index % 3) as f64 - 1.0, (index / 3) as f64 - 1.0);
            height_m(x + column * cell.x_m, y - row * cell.y_m)
        })
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64, what: &str) {
        let same = (value - expected).abs() <= tolerance;
        assert!(same, "{what}: {value} instead of {expected}");
    }

    #[test]
    fn a_product_of_the_surface_has_a_value_on_a_slope() {
        let slope =
            Derivatives::on_ground([0.2, -0.1], [0.01, 0.0, 0.02], Ground::upright(1.0, 1.0));
        for product in Product::ALL {
            let value = product.from_derivatives(&slope);
            assert_eq!(value.is_some(), product.is_of_surface(), "{product:?}");
        }
    }

    #[test]
    fn names_lead_back_to_products_and_others_are_listed() {
        for product in Product::ALL {
            assert_eq!(product.name().parse(), Ok(product));
        }
        let error = "steepness".parse::<Product>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no product \"steepness\"; the products are slope, aspect, hillshade, laplacian, \
             profile-curvature, plan-curvature, tri, tpi, roughness"
        );
    }

    #[test]
    fn a_plane_has_one_slope_and_no_curvature() {
        let z = sample(|x, y| 100.0 + 0.75 * x - y, [0.0, 0.0], OBLONG);
        let value = |product: Product| product.from_neighbourhood(&z, OBLONG);
        let slope = 1.25_f64.atan().to_degrees();
        assert_near(value(Product::Slope), slope, 1e-12, "slope");
        assert_eq!(value(Product::Laplacian), 0.0);
        assert_eq!(value(Product::ProfileCurvature), 0.0);
        assert_eq!(value(Product::PlanCurvature), 0.0);
        assert_eq!(value(Product::Tpi), 0.0);
        // Corners differ by 1.5 and 4.5, neighbours by 1.5 m across and by 3 m down.
        assert_eq!(value(Product::Roughness), 9.0);
        let squares = 2.0 * (4.5_f64 * 4.5 + 1.5 * 1.5 + 1.5 * 1.5 + 3.0 * 3.0);
        assert_near(value(Product::Tri), squares.sqrt(), 1e-12, "tri");
    }

    #[test]
    fn aspect_points_downhill() {
        for (degrees, p, q) in [
            (0.0, 0.0, -0.1),
            (90.0, -0.1, 0.0),
            (180.0, 0.0, 0.1),
            (270.0, 0.1, 0.0),
            (225.0, 0.1, 0.1),
        ] {
            let cell = Cell::square(1.0);
            let z = sample(|x, y| p * x + q * y, [0.0, 0.0], cell);
            let grid = Product::Aspect.from_neighbourhood(&z, cell);
            assert_near(grid, degrees, 1e-9, "grid");
            let surface = Derivatives {
                gradient: [p, q],
                hessian: [0.0; 3],
            };
            assert_near(surface.aspect_deg().unwrap(), degrees, 1e-9, "surface");
        }
        let almost_north = Derivatives {
            gradient: [1e-12, -1.0],
            hessian: [0.0; 3],
        };
        assert_eq!(almost_north.aspect_deg(), Some(0.0));
    }

    /// A plane that falls to 342° on rasters that lie otherwise than north up and square.
    #[test]
    fn aspect_is_that_of_the_ground_however_the_raster_lies() {
        let (east, north) = 342_f64.to_radians().sin_cos();
        let (sine, cosine) = 30_f64.to_radians().sin_cos();
        for ground in [
            Ground::upright(10.0, -10.0),
            Ground::from(OBLONG),
            // South up, and west at the right.
            Ground::upright(10.0, 10.0),
            Ground::upright(-10.0, -10.0),
            // Turned, and askew.
            Ground {
                x: [2.0 * cosine, 2.0 * sine],
                y: [3.0 * sine, -3.0 * cosine],
            },
            Ground {
                x: [2.0, 0.5],
                y: [0.3, -3.0],
            },
        ] {
            let z: [f64; 9] = std::array::from_fn(|index| {
                let (column, row) = ((index % 3) as f64 - 1.0, (index / 3) as f64 - 1.0);
                let along = |axis: usize| column * ground.x[axis] + row * ground.y[axis];
                -0.5 * (east * along(0) + north * along(1))
            });
            let aspect = Product::Aspect.from_neighbourhood(&z, ground);
            assert_near(aspect, 342.0, 1e-4, "grid");
            let derivatives = Derivatives::from_neighbourhood(&z, ground);
            assert_near(derivatives.aspect_deg().unwrap(), 342.0, 1e-9, "true");
            let slope = Product::Slope.from_neighbourhood(&z, ground);
            assert_near(slope, 0.5_f64.atan().to_degrees(), 1e-5, "slope");
            assert_near(derivatives.laplacian(), 0.0, 1e-12, "laplacian");
        }
    }

    #[test]
    fn curvatures_are_those_of_the_ground_on_rasters_askew() {
        let ground = Ground {
            x: [2.0, 0.5],
            y: [0.3, -3.0],
        };
        let z: [f64; 9] = std::array::from_fn(|index| {
            let (column, row) = ((index % 3) as f64 - 1.0, (index / 3) as f64 - 1.0);
            let along = |axis: usize| column * ground.x[axis] + row * ground.y[axis];
            let (x, y) = (along(0), along(1));
            0.1 * x - 0.2 * y + 0.01 * x * x + 0.02 * x * y - 0.03 * y * y
        });
        let found = Derivatives::from_neighbourhood(&z, ground);
        for (value, expected) in found.hessian.into_iter().zip([0.02, 0.02, -0.06]) {
            assert_near(value, expected, 1e-12, "second derivative");
        }
    }

    #[test]
    fn level_ground_has_no_direction() {
        let z = [420.0; 9];
        let value = |product: Product| product.from_neighbourhood(&z, OBLONG);
        assert!(value(Product::Aspect).is_nan() && value(Product::PlanCurvature).is_nan());
        assert_eq!(value(Product::Hillshade), 181.0);
        for product in Product::ALL {
            let undefined = matches!(product, Product::Aspect | Product::PlanCurvature);
            if !undefined && product != Product::Hillshade {
                assert_eq!(value(product), 0.0, "{}", product.name());
            }
        }
        let summit = Derivatives {
            gradient: [0.0; 2],
            hessian: [-0.1, 0.0, -0.1],
        };
        assert!(summit.profile_curvature().is_nan());
        assert_eq!(summit.plan_curvature(), None);
    }

    #[test]
    fn light_comes_from_the_north_west() {
        let shade = |p: f64, q: f64| {
            Product::Hillshade.from_derivatives(&Derivatives {
                gradient: [p, q],
                hessian: [0.0; 3],
            })
        };
        // A slope of 45° that faces the light, or turns away from it: straight on and grazing.
        assert_eq!(shade(FRAC_1_SQRT_2, -FRAC_1_SQRT_2), Some(255.0));
        assert_eq!(shade(-1.0, 1.0), Some(1.0));
        assert_eq!(shade(0.0, 0.0), Some(181.0));
    }

    #[test]
    fn curvature_of_a_dome_is_positive_and_that_of_a_bowl_negative() {
        // z = -a (x² + y²) / 2: contours are circles, lines of fall are parabolas.
        for (a, cell) in [(0.01, Cell::square(0.5)), (-0.01, OBLONG)] {
            let radius_m = 50.0;
            let point = [0.6 * radius_m, 0.8 * radius_m];
            let z = sample(|x, y| -a * (x * x + y * y) / 2.0, point, cell);
            let value = |product: Product| product.from_neighbourhood(&z, cell);
            let slope = a * radius_m;
            let profile = a / (1.0 + slope * slope).powf(1.5);
            assert_near(value(Product::Laplacian), -2.0 * a, 1e-9, "laplacian");
            assert_near(value(Product::ProfileCurvature), profile, 1e-9, "profile");
            let plan = a.signum() / radius_m;
            assert_near(value(Product::PlanCurvature), plan, 1e-9, "plan");
        }
    }

    #[test]
    fn one_missing_height_is_enough() {
        for missing in 0..9 {
            let mut z = sample(|x, y| x + 2.0 * y + x * y, [0.0, 0.0], OBLONG);
            z[missing] = f64::NAN;
            for product in Product::ALL {
                assert!(product.from_neighbourhood(&z, OBLONG).is_nan());
            }
        }
    }

    #[test]
    fn the_grid_approaches_the_surface() {
        let height_m = |x: f64, y: f64| 20.0 * (x / 30.0).sin() * (y / 40.0).cos() + 0.1 * x;
        let cell = Cell {
            x_m: 0.02,
            y_m: 0.03,
        };
        for point in [[3.0_f64, 5.0], [-20.0, 11.0], [47.0, -60.0]] {
            let ((sx, cx), (sy, cy)) = ((point[0] / 30.0).sin_cos(), (point[1] / 40.0).sin_cos());
            let surface = Derivatives {
                gradient: [20.0 / 30.0 * cx * cy + 0.1, -20.0 / 40.0 * sx * sy],
                hessian: [
                    -20.0 / 900.0 * sx * cy,
                    -20.0 / 1200.0 * cx * sy,
                    -20.0 / 1600.0 * sx * cy,
                ],
            };
            let z = sample(height_m, point, cell);
            let grid = Derivatives::from_neighbourhood(&z, cell).aspect_deg();
            let aspect = surface.aspect_deg().unwrap();
            assert_near(grid.unwrap(), aspect, 1e-4, "aspect");
            for product in Product::ALL {
                let Some(expected) = product.from_derivatives(&surface) else {
                    assert!(product == Product::Roughness || product.name().len() == 3);
                    continue;
                };
                if product != Product::Aspect {
                    // Horn's sums are in single precision.
                    let tolerance = if product == Product::Slope {
                        1e-3
                    } else {
                        1e-4
                    };
                    let value = product.from_neighbourhood(&z, cell);
                    assert_near(value, expected, tolerance, product.name());
                }
            }
        }
    }

    #[test]
    fn rows_are_derived_inside_the_edge() {
        let rows: Vec<Vec<f64>> = (0..3)
            .map(|row| {
                (0..5)
                    .map(|column| f64::from(column * column + row))
                    .collect()
            })
            .collect();
        let derive = |previous, next| {
            derive_rows(
                Product::Laplacian,
                previous,
                &rows[1],
                next,
                Cell::square(1.0),
            )
        };
        let values = derive(Some(&rows[0][..]), Some(&rows[2][..]));
        assert_eq!(values[1..4], [2.0; 3]);
        assert!(values[0].is_nan() && values[4].is_nan());
        for values in [
            derive(None, Some(&rows[2][..])),
            derive(Some(&rows[0][..]), None),
        ] {
            assert!(values.len() == 5 && values.iter().all(|value| value.is_nan()));
        }
        for narrow in [&[][..], &[1.0], &[1.0, 2.0]] {
            let cell = Cell::square(1.0);
            let values = derive_rows(Product::Slope, Some(narrow), narrow, Some(narrow), cell);
            assert!(values.len() == narrow.len() && values.iter().all(|value| value.is_nan()));
        }
    }
}
