//! Points of a line, placed on the surface.

use super::{Field, Point};

/// Metres that a point may be off its height.
const PRECISION_M: f64 = 1e-6;
/// Steps towards a root at most: every third one halves what is left, so that even an edge of 2⁻⁵² is found.
const MAX_STEPS: usize = 180;
/// Pixels that the line may be off the chord between two points.
const TOLERANCE: f64 = 0.05;
/// Chords are halved so many times at most.
const MAX_HALVINGS: u8 = 5;
/// Steps of Newton's method.
const NEWTON_STEPS: usize = 12;

/// Where the surface has a height on the way between two nodes, of which one lies below it and the other not.
pub(super) fn crossing<F: Field>(
    field: &F,
    height: f64,
    (from, from_height): (Point, f64),
    (to, to_height): (Point, f64),
) -> Result<Point, F::Error> {
    let at = |t: f64| {
        // Nodes themselves are exact, so that edges that meet in one agree.
        if t <= 0.0 {
            from
        } else if t >= 1.0 {
            to
        } else {
            [0, 1].map(|axis| from[axis] + t * (to[axis] - from[axis]))
        }
    };
    let (mut low, mut low_off) = (0.0, from_height - height);
    let (mut high, mut high_off) = (1.0, to_height - height);
    if low_off == 0.0 {
        return Ok(from);
    }
    if high_off == 0.0 {
        return Ok(to);
    }
    let mut best = (f64::INFINITY, 0.5);
    for step in 0..MAX_STEPS {
        let secant = (low * high_off - high * low_off) / (high_off - low_off);
        let is_inside = secant > low && secant < high;
        let t = if is_inside && step % 3 != 2 {
            secant
        } else {
            f64::midpoint(low, high)
        };
        let Some(found) = field.height(at(t))? else {
            break;
        };
        let off = found - height;
        if off.abs() < best.0 {
            best = (off.abs(), t);
        }
        if off.abs() <= PRECISION_M || t <= low || t >= high {
            break;
        }
        if (off < 0.0) == (low_off < 0.0) {
            (low, low_off) = (t, off);
            // The other end would stay where it is: the method of Illinois.
            high_off *= 0.5;
        } else {
            (high, high_off) = (t, off);
            low_off *= 0.5;
        }
    }
    Ok(at(best.1))
}

/// The height that decides how lines pass through a cell with two high corners across each other: that of the
/// surface's saddle there, or of the cell's middle where it has none.
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

/// Adds the points between two others that keep the line within a tolerance of its chords, each of them on the surface,
/// and the last of the two.
pub(super) fn add_between<F: Field>(
    field: &F,
    height: f64,
    from: Point,
    to: Point,
    points: &mut Vec<Point>,
) -> Result<(), F::Error> {
    add_halves(field, height, from, to, MAX_HALVINGS, points)?;
    points.push(to);
    Ok(())
}

fn add_halves<F: Field>(
    field: &F,
    height: f64,
    from: Point,
    to: Point,
    halvings: u8,
    points: &mut Vec<Point>,
) -> Result<(), F::Error> {
    if halvings == 0 {
        return Ok(());
    }
    let Some(middle) = beside_middle(field, height, from, to)? else {
        return Ok(());
    };
    add_halves(field, height, from, middle, halvings - 1, points)?;
    points.push(middle);
    add_halves(field, height, middle, to, halvings - 1, points)
}

/// Where the line passes the middle of a chord; `None` where that is near enough, or where it cannot be told.
fn beside_middle<F: Field>(
    field: &F,
    height: f64,
    from: Point,
    to: Point,
) -> Result<Option<Point>, F::Error> {
    let chord = [to[0] - from[0], to[1] - from[1]];
    let length = chord[0].hypot(chord[1]);
    if length < 2.0 * TOLERANCE {
        return Ok(None);
    }
    let across = [-chord[1] / length, chord[0] / length];
    let mut off = 0.0;
    for step in 0..NEWTON_STEPS {
        let at = [0, 1].map(|axis| f64::midpoint(from[axis], to[axis]) + off * across[axis]);
        let Some(jet) = field.jet(at)? else {
            return Ok(None);
        };
        let short = height - jet.value;
        if short.abs() <= PRECISION_M && step > 0 {
            return Ok((off.abs() > TOLERANCE).then_some(at));
        }
        let next = off + short / (jet.x * across[0] + jet.y * across[1]);
        let is_flat = step == 0 && next.abs() <= TOLERANCE;
        // Farther away it would be another line, or another part of this one; not a number is not near.
        if is_flat || next.abs().is_nan() || next.abs() > 0.5 * length {
            return Ok(None);
        }
        off = next;
    }
    Ok(None)
}
