//! Colours of values: ramps, and the legends that say what they mean.

use serde::Serialize;
use terrane_geo::Product;

use super::layer::Layer;

type Rgb = [u8; 3];

/// Level ground has no aspect.
const FLAT: Rgb = [168, 170, 172];
/// Data on one side of a difference alone.
const ONE_SIDED: Rgb = [201, 60, 190];

const SLOPE: [(f64, Rgb); 8] = [
    (0.0, [250, 247, 236]),
    (5.0, [244, 233, 198]),
    (15.0, [240, 205, 137]),
    (25.0, [233, 164, 92]),
    (35.0, [213, 112, 73]),
    (45.0, [170, 66, 75]),
    (60.0, [108, 38, 84]),
    (90.0, [46, 20, 62]),
];

/// Directions on a wheel of equal lightness.
const ASPECT: [(f64, Rgb); 9] = [
    (0.0, [88, 126, 190]),
    (45.0, [76, 157, 168]),
    (90.0, [112, 172, 116]),
    (135.0, [184, 173, 82]),
    (180.0, [219, 150, 84]),
    (225.0, [212, 112, 108]),
    (270.0, [174, 98, 156]),
    (315.0, [124, 106, 190]),
    (360.0, [88, 126, 190]),
];

/// Hollow and lower is blue, convex and higher is orange.
const SIGNED: [(f64, Rgb); 7] = [
    (-1.0, [28, 70, 122]),
    (-0.6, [70, 130, 178]),
    (-0.25, [164, 198, 215]),
    (0.0, [246, 244, 240]),
    (0.25, [240, 199, 158]),
    (0.6, [213, 124, 68]),
    (1.0, [133, 56, 26]),
];

/// What sank is red and what rose is blue, as geomorphologists draw it; nothing that is proven is without colour.
const CHANGE: [(f64, Rgb); 6] = [
    (-1.0, [122, 14, 28]),
    (-0.5, [206, 62, 52]),
    (0.0, [246, 190, 170]),
    (0.0, [170, 206, 240]),
    (0.5, [52, 120, 196]),
    (1.0, [16, 48, 118]),
];

/// Sage lowlands, sandy slopes, pale summits; parts of the way from the lowest to the highest point.
const RELIEF: [(f64, Rgb); 6] = [
    (0.0, [141, 168, 143]),
    (0.2, [180, 193, 155]),
    (0.42, [220, 214, 176]),
    (0.65, [222, 197, 158]),
    (0.85, [206, 182, 158]),
    (1.0, [242, 238, 232]),
];

/// Lights of a relief: east, north and up, and their share. The second keeps form in slopes that the first only grazes.
const LIGHTS: [([f64; 3], f64); 2] = [
    ([-0.5, 0.5, std::f64::consts::FRAC_1_SQRT_2], 0.72),
    ([0.25, 0.433, 0.866], 0.28),
];

/// The colour of a relief: how high between the lowest and the highest, and the gradient east and north.
pub(super) fn relief_colour(part: f64, [east, north]: [f64; 2]) -> Rgb {
    let level: f64 = LIGHTS.iter().map(|([_, _, up], share)| up * share).sum();
    let steepness = (1.0 + east * east + north * north).sqrt();
    let lit: f64 = LIGHTS
        .iter()
        .map(|([x, y, up], share)| ((up - x * east - y * north) / steepness).max(0.0) * share)
        .sum();
    let light = lit / level;
    ramp(&RELIEF, part).map(|channel| {
        let value = f64::from(channel);
        let shaded = if light < 1.0 {
            value * (0.18 + 0.82 * light)
        } else {
            value + (255.0 - value) * (light - 1.0).min(1.0) * 0.9
        };
        shaded.round() as u8
    })
}

fn ramp(stops: &[(f64, Rgb)], value: f64) -> Rgb {
    let index = stops.partition_point(|(stop, _)| *stop <= value);
    if index == 0 {
        return stops[0].1;
    }
    let (from, low) = stops[index - 1];
    let Some(&(to, high)) = stops.get(index) else {
        return low;
    };
    let part = (value - from) / (to - from);
    std::array::from_fn(|channel| {
        let (a, b) = (f64::from(low[channel]), f64::from(high[channel]));
        (a + (b - a) * part).round() as u8
    })
}

/// How far a signed value lies from 0 to the limit, small values drawn apart by a root.
fn rooted(value: f64, limit: f64) -> f64 {
    let part = (value.abs() / limit).min(1.0).sqrt();
    part.copysign(value)
}

/// The colour of a derivative; of level ground where it is not a number.
pub(super) fn product_colour(product: Product, value: f64, limit: f64) -> Rgb {
    match product {
        Product::Hillshade => [value as u8; 3],
        Product::Slope => ramp(&SLOPE, value),
        Product::Aspect if value.is_nan() => FLAT,
        Product::Aspect => ramp(&ASPECT, value),
        // The Laplacian is positive in hollows, the curvatures on ridges.
        Product::Laplacian => ramp(&SIGNED, -rooted(value, limit)),
        _ if value.is_nan() => ramp(&SIGNED, 0.0),
        _ => ramp(&SIGNED, rooted(value, limit)),
    }
}

/// The colour of a difference; not a number where one side alone has data.
pub(super) fn difference_colour(difference_m: f64, limit_m: f64) -> Rgb {
    if difference_m.is_nan() {
        return ONE_SIDED;
    }
    ramp(&SIGNED, difference_m / limit_m)
}

/// The colour of a proven change.
pub(super) fn change_colour(change_m: f64, limit_m: f64) -> Rgb {
    ramp(&CHANGE, rooted(change_m, limit_m))
}

fn hexadecimal([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// What a layer's colours mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Legend {
    /// How values lie between the stops: `linear`, `cyclic` or over the `range` of heights, or from -1 to 1 where the
    /// limit depends on the zoom, `signed` or as its `root`.
    pub kind: &'static str,
    /// Values with their colours.
    pub stops: Vec<(f64, String)>,
}

impl Legend {
    /// Whether its stops are parts of a limit that depends on the zoom.
    pub fn is_limited(&self) -> bool {
        matches!(self.kind, "root" | "signed")
    }
}

/// The legend of a layer; `None` where its colours are no scale.
pub fn legend(layer: Layer) -> Option<Legend> {
    let legend = |kind, stops: &[(f64, Rgb)]| {
        let stops = stops.iter();
        Some(Legend {
            kind,
            stops: stops
                .map(|(value, colour)| (*value, hexadecimal(*colour)))
                .collect(),
        })
    };
    match layer {
        Layer::Product(Product::Slope) => legend("linear", &SLOPE),
        Layer::Product(Product::Aspect) => legend("cyclic", &ASPECT),
        Layer::Product(Product::Laplacian) => {
            let mirrored: Vec<(f64, Rgb)> = SIGNED
                .iter()
                .rev()
                .map(|(value, colour)| (-value, *colour))
                .collect();
            legend("root", &mirrored)
        }
        Layer::Product(Product::ProfileCurvature | Product::PlanCurvature) => {
            legend("root", &SIGNED)
        }
        Layer::Relief => legend("range", &RELIEF),
        Layer::Difference => legend("signed", &SIGNED),
        Layer::Change => legend("root", &CHANGE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_hold_at_stops_between_and_beyond() {
        assert_eq!(ramp(&SLOPE, -3.0), SLOPE[0].1);
        assert_eq!(ramp(&SLOPE, 15.0), SLOPE[2].1);
        assert_eq!(ramp(&SLOPE, 99.0), SLOPE[7].1);
        assert_eq!(ramp(&ASPECT, 0.0), ramp(&ASPECT, 360.0));
        let halfway = ramp(&SIGNED, 0.8);
        assert!(halfway[0] < SIGNED[5].1[0] && halfway[0] > SIGNED[6].1[0]);
    }

    #[test]
    fn hollows_are_blue_in_every_curvature() {
        let is_blue = |[red, _, blue]: Rgb| blue > red;
        assert!(is_blue(product_colour(Product::Laplacian, 0.2, 0.4)));
        assert!(is_blue(product_colour(
            Product::ProfileCurvature,
            -0.2,
            0.4
        )));
        assert!(!is_blue(product_colour(Product::PlanCurvature, 0.2, 0.4)));
        assert_eq!(product_colour(Product::Aspect, f64::NAN, 1.0), FLAT);
        assert_eq!(difference_colour(f64::NAN, 0.1), ONE_SIDED);
        assert!(is_blue(change_colour(1e-9, 10.0)) && is_blue(change_colour(3.0, 10.0)));
        assert!(!is_blue(change_colour(-1e-9, 10.0)) && !is_blue(change_colour(-30.0, 10.0)));
    }
}
