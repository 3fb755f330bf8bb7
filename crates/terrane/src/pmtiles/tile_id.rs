//! The number of a tile: all coarser zooms come first, and within a zoom tiles follow a Hilbert curve.

/// The number of a tile; its column and row must be those of its zoom.
pub(crate) fn tile_id(z: u8, mut x: u32, mut y: u32) -> u64 {
    let before = ((1_u64 << (2 * u32::from(z))) - 1) / 3;
    let mut along = 0;
    for bit in (0..z).rev() {
        let (half, mask) = (1_u32 << bit, (1_u32 << bit) - 1);
        let (right, lower) = (x & half != 0, y & half != 0);
        let quarter = match (right, lower) {
            (false, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
            (true, false) => 3,
        };
        along = along * 4 + quarter;
        (x, y) = (x & mask, y & mask);
        if !lower {
            if right {
                (x, y) = (mask - x, mask - y);
            }
            (x, y) = (y, x);
        }
    }
    before + along
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        for ((z, x, y), id) in [
            ((0, 0, 0), 0),
            ((1, 0, 0), 1),
            ((1, 0, 1), 2),
            ((1, 1, 1), 3),
            ((1, 1, 0), 4),
            ((2, 0, 0), 5),
            ((12, 3423, 1763), 19_078_479),
        ] {
            assert_eq!(tile_id(z, x, y), id, "{z}/{x}/{y}");
        }
    }

    #[test]
    fn neighbours_on_the_curve_are_neighbours_on_the_map() {
        let z = 5;
        let mut tiles: Vec<(u64, u32, u32)> = (0..1024)
            .map(|index| (index % 32, index / 32))
            .map(|(x, y)| (tile_id(z, x, y), x, y))
            .collect();
        tiles.sort_unstable();
        for (number, pair) in tiles.windows(2).enumerate() {
            let [(a, ax, ay), (b, bx, by)] = [pair[0], pair[1]];
            assert_eq!(b - a, 1, "{number}");
            assert_eq!(ax.abs_diff(bx) + ay.abs_diff(by), 1);
        }
        // The last tile of the finest zoom that a map has.
        assert_eq!(tile_id(24, (1 << 24) - 1, 0) + 1, ((1_u64 << 50) - 1) / 3);
    }
}
