//! Where the levels of a window lie on one canvas, so that a step needs few large operations instead of many small ones.
//!
//! The finest level lies left and the coarser ones in a column right of it, each with the margins that the network sees.
//! Between two of them at least two positions are empty, which are 0 in every layer, and all begin at an even row and
//! column, so that the phases of all levels are those of the canvas.

/// Rows of the canvas.
pub(crate) const HEIGHT: usize = 132;
/// Columns of the canvas.
pub(crate) const WIDTH: usize = 202;
/// Positions of the canvas.
pub(crate) const POSITIONS: usize = HEIGHT * WIDTH;
/// Positions that are seen on each side of a part.
pub(crate) const MARGIN: usize = 2;

/// The place of one level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The row of its first own position.
    pub(crate) row: usize,
    /// The column of its first own position.
    pub(crate) column: usize,
    /// Own positions across and down, at most.
    pub(crate) side: usize,
}

/// The places of the levels, finest first; coarser ones are not learned from.
pub(crate) const PLACES: [Place; 5] = [
    place(0, 0, 128),
    place(0, 134, 64),
    place(70, 134, 32),
    place(70, 172, 16),
    place(92, 172, 8),
];

const fn place(row: usize, column: usize, side: usize) -> Place {
    Place {
        row: row + MARGIN,
        column: column + MARGIN,
        side,
    }
}

/// For every position of the canvas which level lies there: a row of zeros and a one per position, or zeros alone.
pub(crate) fn level_map() -> Vec<f32> {
    let mut map = vec![0.0; POSITIONS * PLACES.len()];
    for (level, place) in PLACES.iter().enumerate() {
        let around = |start: usize| start - MARGIN..start + place.side + MARGIN;
        for row in around(place.row) {
            for column in around(place.column) {
                map[(row * WIDTH + column) * PLACES.len() + level] = 1.0;
            }
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_keep_their_distance() {
        let map = level_map();
        let at = |row: usize, column: usize| {
            let first = (row * WIDTH + column) * PLACES.len();
            map[first..first + PLACES.len()]
                .iter()
                .position(|&is_there| is_there > 0.0)
        };
        let sum: f32 = map.iter().sum();
        let expected: usize = PLACES.iter().map(|p| (p.side + 2 * MARGIN).pow(2)).sum();
        assert_eq!(sum, expected as f32);
        for row in 0..HEIGHT {
            for column in 0..WIDTH {
                for (down, right) in [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0)] {
                    let (r, c) = (row + down, column + right);
                    if r < HEIGHT && c < WIDTH {
                        let (a, b) = (at(row, column), at(r, c));
                        assert!(a.is_none() || b.is_none() || a == b, "{row} {column}");
                    }
                }
            }
        }
        for place in PLACES {
            assert!(place.row % 2 == 0 && place.column % 2 == 0);
        }
    }
}
