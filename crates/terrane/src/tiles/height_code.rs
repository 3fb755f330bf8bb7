//! Heights as colours: how a step of height becomes a step of red, green and blue.

/// Which height a colour is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HeightEncoding {
    /// Steps of 1/256 m from 32768 m below zero.
    #[default]
    Terrarium,
    /// Steps of 0.1 m from 10000 m below zero.
    Mapbox,
}

impl HeightEncoding {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Terrarium, Self::Mapbox];

    /// The name that map clients know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terrarium => "terrarium",
            Self::Mapbox => "mapbox",
        }
    }

    /// Its steps per metre: a whole number, so that heights in whole steps are exact.
    fn steps_per_metre(self) -> f64 {
        match self {
            Self::Terrarium => 256.0,
            Self::Mapbox => 10.0,
        }
    }

    /// Its lowest height, in metres below zero.
    fn lowest_m(self) -> f64 {
        match self {
            Self::Terrarium => 32_768.0,
            Self::Mapbox => 10_000.0,
        }
    }
}

/// How heights are rounded and become colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeightCode {
    /// Which height a colour is.
    pub encoding: HeightEncoding,
    /// Steps of the encoding that heights are rounded to a multiple of; 1 is as fine as it can be.
    pub multiple: u32,
}

impl Default for HeightCode {
    fn default() -> Self {
        Self::finest(HeightEncoding::default())
    }
}

impl HeightCode {
    /// As fine as an encoding can be.
    pub fn finest(encoding: HeightEncoding) -> Self {
        Self {
            encoding,
            multiple: 1,
        }
    }

    /// With steps of at most so many metres, or as fine as the encoding can be. Every coarser step is twice another, so that
    /// a height that is rounded once more stays a step of all finer ones.
    pub fn of_step(encoding: HeightEncoding, step_m: f64) -> Self {
        const COARSEST: u32 = 1 << 16;
        let steps = step_m * encoding.steps_per_metre();
        let mut multiple = 1;
        while multiple < COARSEST && f64::from(2 * multiple) <= steps {
            multiple *= 2;
        }
        Self { encoding, multiple }
    }

    /// The step in metres.
    pub fn step_m(self) -> f64 {
        f64::from(self.multiple) / self.encoding.steps_per_metre()
    }

    /// The colour of a height, rounded to the nearest step from zero, so that what is zero stays so.
    pub fn colour(self, height_m: f64) -> [u8; 3] {
        let steps = self.encoding.steps_per_metre();
        let multiple = f64::from(self.multiple);
        let rounded = (height_m * steps / multiple).round() * multiple;
        let number = (rounded + self.encoding.lowest_m() * steps)
            .clamp(0.0, f64::from((1 << 24) - 1)) as u32;
        let [_, red, green, blue] = number.to_be_bytes();
        [red, green, blue]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As map clients read it.
    fn back(encoding: HeightEncoding, [red, green, blue]: [u8; 3]) -> f64 {
        let [red, green, blue] = [red, green, blue].map(f64::from);
        match encoding {
            HeightEncoding::Terrarium => red * 256.0 + green + blue / 256.0 - 32_768.0,
            HeightEncoding::Mapbox => (red * 65_536.0 + green * 256.0 + blue) * 0.1 - 10_000.0,
        }
    }

    #[test]
    fn heights_are_rounded_to_the_nearest_step() {
        for encoding in HeightEncoding::ALL {
            for step in [0.0, 0.02, 0.5, 3.0] {
                let code = HeightCode::of_step(encoding, step);
                assert!(code.step_m() <= step || code.multiple == 1);
                assert!(2.0 * code.step_m() > step);
                for height in [0.0, -431.2, 8848.86, 1999.999, 0.0039, -0.001] {
                    let found = back(encoding, code.colour(height));
                    let off = (found - height).abs();
                    assert!(
                        off <= 0.5 * code.step_m() + 1e-9,
                        "{code:?} {height} {found}"
                    );
                }
                assert!(back(encoding, code.colour(0.0)).abs() < 1e-9);
            }
        }
        assert_eq!(HeightCode::default().colour(-1e9), [0, 0, 0]);
        assert_eq!(HeightCode::default().colour(1e9), [255, 255, 255]);
    }
}
