//! Scales of a map between a few places where they are computed.
//!
//! A box is divided into four until a polynomial of the second order through nine places gives what there is at four
//! others; what bends more than that, or ends, is computed everywhere.

use super::scale::Ground;

/// What is computed may be off, as a part of the scale, where it is compared. The polynomial errs most near there; a half of
/// what is promised is kept for where it does not.
const TOLERANCE: f64 = 5e-6;

/// How often a box is divided.
const DEPTH: u32 = 6;

/// Scales inside a box.
#[derive(Debug)]
pub(super) struct Lattice {
    /// Least x and y, and greatest.
    bounds: [f64; 4],
    root: Node,
}

#[derive(Debug)]
enum Node {
    /// Scales at nine places, row by row from the least x and y.
    Even(Box<[[f64; 4]; 9]>),
    /// Four parts, row by row from the least x and y.
    Divided(Box<[Self; 4]>),
    /// Scales have no simple form.
    Uneven,
}

impl Lattice {
    /// Computes scales inside a box.
    pub(super) fn new(bounds: [f64; 4], exact: &dyn Fn(f64, f64) -> Ground) -> Self {
        Self {
            bounds,
            root: Node::new(bounds, exact, DEPTH),
        }
    }

    /// The scale at a point; `None` outside the box, and where it must be computed.
    pub(super) fn at(&self, x: f64, y: f64) -> Option<Ground> {
        let [west, south, east, north] = self.bounds;
        let mut u = (x - west) / (east - west);
        let mut v = (y - south) / (north - south);
        if !(0.0..=1.0).contains(&u) || !(0.0..=1.0).contains(&v) {
            return None;
        }
        let mut node = &self.root;
        loop {
            match node {
                Node::Even(places) => return Some(between(places, u, v)),
                Node::Uneven => return None,
                Node::Divided(parts) => {
                    let (right, upper) = (u >= 0.5, v >= 0.5);
                    node = &parts[usize::from(right) + 2 * usize::from(upper)];
                    u = 2.0 * u - f64::from(u8::from(right));
                    v = 2.0 * v - f64::from(u8::from(upper));
                }
            }
        }
    }
}

impl Node {
    fn new(bounds: [f64; 4], exact: &dyn Fn(f64, f64) -> Ground, depth: u32) -> Self {
        let [west, south, east, north] = bounds;
        let at =
            |u: f64, v: f64| exact(west + u * (east - west), south + v * (north - south)).numbers();
        let places =
            std::array::from_fn(|index| at((index % 3) as f64 / 2.0, (index / 3) as f64 / 2.0));
        let is_even = [(0.2, 0.3), (0.7, 0.2), (0.8, 0.7), (0.3, 0.8)]
            .into_iter()
            .all(|(u, v)| {
                let (found, guess) = (at(u, v), between(&places, u, v).numbers());
                let largest = found
                    .iter()
                    .fold(0.0_f64, |largest, value| largest.max(value.abs()));
                // Not a number is not near.
                let near = |(a, b): (&f64, f64)| (a - b).abs() <= TOLERANCE * largest;
                found.iter().zip(guess).all(near)
            });
        if is_even {
            return Self::Even(Box::new(places));
        }
        if depth == 0 {
            return Self::Uneven;
        }
        let (x, y) = (f64::midpoint(west, east), f64::midpoint(south, north));
        let part = |bounds| Self::new(bounds, exact, depth - 1);
        Self::Divided(Box::new([
            part([west, south, x, y]),
            part([x, south, east, y]),
            part([west, y, x, north]),
            part([x, y, east, north]),
        ]))
    }
}

/// The polynomial of the second order through nine places, in parts of a box.
fn between(places: &[[f64; 4]; 9], u: f64, v: f64) -> Ground {
    let weights = |t: f64| {
        [
            2.0 * (t - 0.5) * (t - 1.0),
            4.0 * t * (1.0 - t),
            2.0 * t * (t - 0.5),
        ]
    };
    let (across, up) = (weights(u), weights(v));
    let mut numbers = [0.0; 4];
    for (index, place) in places.iter().enumerate() {
        let weight = across[index % 3] * up[index / 3];
        for (number, value) in numbers.iter_mut().zip(place) {
            *number += weight * value;
        }
    }
    Ground::from_numbers(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_what_is_there() {
        let exact =
            |x: f64, y: f64| Ground::upright((x / 3.0).cos() + 2.0, (x * y / 20.0).sin() + 3.0);
        let lattice = Lattice::new([-1.0, 0.0, 3.0, 2.0], &exact);
        for index in 0..400 {
            let (x, y) = (
                -1.0 + f64::from(index % 20) / 5.0,
                f64::from(index / 20) / 10.0,
            );
            let (found, there) = (lattice.at(x, y).unwrap(), exact(x, y));
            for (a, b) in found.numbers().into_iter().zip(there.numbers()) {
                assert!(
                    (a - b).abs() < 1e-5 * 3.0,
                    "{x} {y}: {found:?} instead of {there:?}"
                );
            }
        }
        assert_eq!(lattice.at(3.1, 1.0), None);
        assert_eq!(lattice.at(f64::NAN, 1.0), None);
    }

    #[test]
    fn what_has_no_scale_is_computed() {
        let exact = |x: f64, _: f64| Ground::upright(if x < 0.1 { f64::NAN } else { 1.0 }, 1.0);
        let lattice = Lattice::new([0.0, 0.0, 1.0, 1.0], &exact);
        assert_eq!(lattice.at(0.1, 0.5), None);
        assert_eq!(lattice.at(0.9, 0.5).unwrap().x[0], 1.0);
    }
}
