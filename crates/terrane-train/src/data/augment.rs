//! The eight ways a square tile can lie: land has no up or left.

use terrane_codec::random::Random;

/// How a tile is turned: flipped left to right, flipped top to bottom, then rotated by quarter turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation {
    /// Whether left and right are exchanged.
    pub is_mirrored: bool,
    /// Whether top and bottom are exchanged.
    pub is_flipped: bool,
    /// Quarter turns against the clock.
    pub quarter_turns: usize,
}

impl Orientation {
    /// How a tile lies that is left alone.
    pub(crate) const AS_IT_IS: Self = Self {
        is_mirrored: false,
        is_flipped: false,
        quarter_turns: 0,
    };
    /// How many there are; each of the eight ways to lie is there twice.
    pub(crate) const COUNT: usize = 16;

    /// All of them, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(|number| Self {
            is_mirrored: number / 8 == 1,
            is_flipped: number / 4 % 2 == 1,
            quarter_turns: number % 4,
        })
    }

    /// Its number among all of them.
    pub(crate) fn number(self) -> usize {
        usize::from(self.is_mirrored) * 8
            + usize::from(self.is_flipped) * 4
            + self.quarter_turns % 4
    }

    /// Draws each flip with even odds and the number of quarter turns from 0 to 3.
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self {
            is_mirrored: random.below(2) == 1,
            is_flipped: random.below(2) == 1,
            quarter_turns: random.below(4),
        }
    }

    /// Turns a tile of `side` × `side` values.
    pub(crate) fn apply<T: Copy>(self, tile: &[T], side: usize) -> Vec<T> {
        let mut turned = Vec::with_capacity(tile.len());
        for row in 0..side {
            for column in 0..side {
                // Where the pixel at (row, column) of the result comes from: undo the turns, then the flips.
                let (mut r, mut c) = (row, column);
                for _ in 0..self.quarter_turns % 4 {
                    (r, c) = (c, side - 1 - r);
                }
                if self.is_flipped {
                    r = side - 1 - r;
                }
                if self.is_mirrored {
                    c = side - 1 - c;
                }
                turned.push(tile[r * side + c]);
            }
        }
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

    fn turned(is_mirrored: bool, is_flipped: bool, quarter_turns: usize) -> Vec<f32> {
        Orientation {
            is_mirrored,
            is_flipped,
            quarter_turns,
        }
        .apply(&TILE, 2)
    }

    #[test]
    fn flips_and_turns_are_those_of_numpy() {
        assert_eq!(turned(false, false, 0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(turned(true, false, 0), [2.0, 1.0, 4.0, 3.0]); // np.fliplr
        assert_eq!(turned(false, true, 0), [3.0, 4.0, 1.0, 2.0]); // np.flipud
        assert_eq!(turned(false, false, 1), [2.0, 4.0, 1.0, 3.0]); // np.rot90
        assert_eq!(turned(true, false, 1), [1.0, 3.0, 2.0, 4.0]); // np.rot90(np.fliplr)
        assert_eq!(turned(false, false, 3), [3.0, 1.0, 4.0, 2.0]); // np.rot90(k=3)
    }

    #[test]
    fn orientations_are_numbered() {
        for (number, orientation) in Orientation::all().enumerate() {
            assert_eq!(orientation.number(), number);
        }
        assert_eq!(Orientation::AS_IT_IS.number(), 0);
    }

    #[test]
    fn every_orientation_is_drawn() {
        let mut random = Random::new(1, 0);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..200 {
            let orientation = Orientation::draw(&mut random);
            seen.insert(format!("{orientation:?}"));
        }
        assert_eq!(seen.len(), 16);
    }
}
