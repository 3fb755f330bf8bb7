//! The brinks from which hollows are filled, the lowest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many parts the heights are divided into.
const PARTS: usize = 4096;

/// Cells by height. One is never added below the last that was taken, so that only the part that is being taken has to be
/// sorted, which is small enough to stay near the processor.
pub(super) struct Brinks {
    lowest_m: f32,
    parts_per_m: f32,
    later: Vec<Vec<u64>>,
    part: usize,
    open: BinaryHeap<Reverse<u64>>,
}

impl Brinks {
    /// No brinks yet, on land between these heights.
    pub(super) fn new(lowest_m: f32, highest_m: f32) -> Self {
        Self {
            lowest_m,
            parts_per_m: PARTS as f32 / (highest_m - lowest_m).max(1.0),
            later: vec![Vec::new(); PARTS],
            part: 0,
            open: BinaryHeap::new(),
        }
    }

    pub(super) fn add(&mut self, height_m: f32, cell: usize) {
        let part = ((height_m - self.lowest_m) * self.parts_per_m) as usize;
        let (part, key) = (part.min(PARTS - 1), key(height_m, cell));
        if part <= self.part {
            self.open.push(Reverse(key));
        } else {
            self.later[part].push(key);
        }
    }

    /// Takes the lowest cell.
    pub(super) fn lowest(&mut self) -> Option<usize> {
        loop {
            if let Some(Reverse(key)) = self.open.pop() {
                return Some((key & 0xffff_ffff) as usize);
            }
            self.part += 1;
            let next = std::mem::take(self.later.get_mut(self.part)?);
            self.open = next.into_iter().map(Reverse).collect();
        }
    }
}

/// A number that sorts by height, then by cell.
pub(super) fn key(height_m: f32, cell: usize) -> u64 {
    let bits = height_m.to_bits();
    let sorted = if height_m < 0.0 {
        !bits
    } else {
        bits | 1 << 31
    };
    u64::from(sorted) << 32 | cell as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_by_their_height() {
        let heights = [3.5_f32, -1.0, 700.0, 0.0, 3.5, 1e6, -2000.25];
        let mut brinks = Brinks::new(-2000.25, 1e6);
        for (cell, height_m) in heights.into_iter().enumerate() {
            brinks.add(height_m, cell);
        }
        assert_eq!(brinks.lowest(), Some(6));
        assert_eq!(brinks.lowest(), Some(1));
        brinks.add(3.25, 20);
        brinks.add(2e6, 21);
        brinks.add(-0.5, 22);
        let rest: Vec<usize> = std::iter::from_fn(|| brinks.lowest()).collect();
        assert_eq!(rest, [22, 3, 20, 0, 4, 2, 5, 21]);
        brinks.add(3e6, 23);
        assert_eq!((brinks.lowest(), brinks.lowest()), (Some(23), None));
    }
}
