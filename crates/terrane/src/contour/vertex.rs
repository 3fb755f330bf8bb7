//! Points of a line, placed on the surface.

use super::{Field, Levels, Point};

/// Metres that a point may be off its height.
const PRECISION_M: f64 = 1e-6;
/// Steps towards a root at most: every third one halves what is left, so that even an edge of 2⁻⁵² is found.
const MAX_STEPS: usize = 180;
/// Pixels that the line may be off the chord between two points.
const TOLERANCE: f64 = 0.05;
/// Steps of Newton's method.
const NEWTON_STEPS: usize = 12;

/// An end of an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) at: Point,
    pub(super) height: f64,
    /// The number of the highest level that is not above it.
    pub(super) number: i64,
}

/// Where lines cross the way from one node to another, from the first to the second: every level between the two once.
///
/// The surface may rise and fall on the way, so the roots of several levels could come in any order. Each is sought
/// behind the one before, where the surface still has to rise to the next level: so they come in the order of their
/// heights, and lines never change places. `gap` pixels are kept between them and to both nodes, since lines that
/// pass through a node at their height exactly would touch there.
pub(super) fn add_crossings<F: Field>(
    field: &F,
    levels: &Levels,
    gap: f64,
    [from, to]: [Node; 2],
    points: &mut Vec<Point>,
) -> Result<(), F::Error> {
    let (low, high) = if from.number < to.number {
        (from, to)
    } else {
        (to, from)
    };
    let first = points.len();
    let count = (high.number - low.number) as f64;
    let way = [0, 1].map(|axis| high.at[axis] - low.at[axis]);
    let gap = (gap / way[0].hypot(way[1])).min(0.5 / (count + 1.0));
    let at = |t: f64| [0, 1].map(|axis| low.at[axis] + t * way[axis]);
    let (mut before, mut before_height) = (0.0, low.height);
    for number in low.number + 1..=high.number {
        let height = levels.height(number);
        let ends = [
            (before, before_height - height),
            (1.0, high.height - height),
        ];
        let root = root(ends, |t| {
            Ok(field.height(at(t))?.map(|found| found - height))
        })?;
        let last = 1.0 - gap * (high.number - number + 1) as f64;
        before = root.max(before + gap).min(last);
        before_height = height;
        points.push(at(before));
    }
    if from.number > to.number {
        points[first..].reverse();
    }
    Ok(())
}

/// Where a function is 0 between two places where it is below 0 and not below: the method of Illinois, made safe by
/// halving.
fn root<E>(
    [(mut low, mut low_off), (mut high, mut high_off)]: [(f64, f64); 2],
    off_at: impl Fn(f64) -> Result<Option<f64>, E>,
) -> Result<f64, E> {
    if high_off == 0.0 {
        return Ok(high);
    }
    let mut best = (f64::INFINITY, f64::midpoint(low, high));
    for step in 0..MAX_STEPS {
        let secant = (low * high_off - high * low_off) / (high_off - low_off);
        let is_inside = secant > low && secant < high;
        let t = if is_inside && step % 3 != 2 {
            secant
        } else {
            f64::midpoint(low, high)
        };
        if t <= low || t >= high {
            break;
        }
        let Some(off) = off_at(t)? else {
            break;
        };
        if off.abs() < best.0 {
            best = (off.abs(), t);
        }
        if off.abs() <= PRECISION_M {
            break;
        }
        // The end that stays would stay for ever: it counts for half.
        if off < 0.0 {
            (low, low_off) = (t, off);
            high_off *= 0.5;
        } else {
            (high, high_off) = (t, off);
            low_off *= 0.5;
        }
    }
    Ok(best.1)
}

/// The height that decides how lines pass through a rectangle with two high corners across each other: that of the
/// surface's saddle there, or of the middle where it has none.
pub(super) fn saddle<F: Field>(
    field: &F,
    low: Point,
    high: Point,
) -> Result<Option<f64>, F::Error> {
    let middle = [0, 1].map(|axis| f64::midpoint(low[axis], high[axis]));
    let mut at = middle;
    let mut found = None;
    for _ in 0..NEWTON_STEPS {
        let Some(jet) = field.jet(at)? else {
            break;
        };
        let determinant = jet.xx * jet.yy - jet.xy * jet.xy;
        let step = [
            (jet.yy * jet.x - jet.xy * jet.y) / determinant,
            (jet.xx * jet.y - jet.xy * jet.x) / determinant,
        ];
        let next = [at[0] - step[0], at[1] - step[1]];
        let is_inside = (0..2).all(|axis| next[axis] >= low[axis] && next[axis] <= high[axis]);
        // Not a number is not inside.
        if determinant >= 0.0 || !is_inside {
            break;
        }
        at = next;
        if step[0].hypot(step[1]) < 1e-9 {
            found = field.height(at)?;
            break;
        }
    }
    match found {
        Some(height) => Ok(Some(height)),
        None => field.height(middle),
    }
}

/// Whether the line passes too far from the middle of a chord; `false` where it cannot be told.
pub(super) fn is_bent<F: Field>(
    field: &F,
    height: f64,
    from: Point,
    to: Point,
) -> Result<bool, F::Error> {
    let chord = [to[0] - from[0], to[1] - from[1]];
    let length = chord[0].hypot(chord[1]);
    if length < 2.0 * TOLERANCE {
        return Ok(false);
    }
    let across = [-chord[1] / length, chord[0] / length];
    let mut off = 0.0;
    for step in 0..NEWTON_STEPS {
        let at = [0, 1].map(|axis| f64::midpoint(from[axis], to[axis]) + off * across[axis]);
        let Some(jet) = field.jet(at)? else {
            return Ok(false);
        };
        let short = height - jet.value;
        if short.abs() <= PRECISION_M && step > 0 {
            return Ok(off.abs() > TOLERANCE);
        }
        let next = off + short / (jet.x * across[0] + jet.y * across[1]);
        let is_flat = step == 0 && next.abs() <= TOLERANCE;
        // Farther away it would be another line, or another part of this one; not a number is not near.
        if is_flat || next.abs().is_nan() || next.abs() > 0.5 * length {
            return Ok(false);
        }
        off = next;
    }
    Ok(false)
}
