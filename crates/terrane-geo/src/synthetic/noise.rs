//! Noise of all kinds, from integers that are mixed and `+ - * /` alone.

/// Gradient noise (Perlin 2002), rarely beyond ±0.7.
///
/// It keeps the slopes at the corners of the lattice cell it was last asked in, since the next pixel mostly lies there too.
pub(super) struct Noise {
    seed: u64,
    corner: [i64; 2],
    slopes: [[f64; 2]; 4],
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            corner: [i64::MIN; 2],
            slopes: [[0.0; 2]; 4],
        }
    }

    pub(super) fn at(&mut self, [x, y]: [f64; 2]) -> f64 {
        let (left, top) = (below(x), below(y));
        let (u, v) = (x - left as f64, y - top as f64);
        if [left, top] != self.corner {
            self.corner = [left, top];
            self.slopes = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[dx, dy]| {
                let bits = mix(self.seed ^ mix((left + dx) as u64 ^ mix((top + dy) as u64)));
                [bits, bits >> 16].map(|bits| (bits & 0xffff) as f64 / 32768.0 - 1.0)
            });
        }
        let corner = |index: usize, dx: f64, dy: f64| {
            let [across, down] = self.slopes[index];
            across * (u - dx) + down * (v - dy)
        };
        let fade = |t: f64| t * t * t * (t * (6.0 * t - 15.0) + 10.0);
        let blend = |a: f64, b: f64, t: f64| a + t * (b - a);
        let (across, down) = (fade(u), fade(v));
        let upper = blend(corner(0, 0.0, 0.0), corner(1, 1.0, 0.0), across);
        let lower = blend(corner(2, 0.0, 1.0), corner(3, 1.0, 1.0), across);
        blend(upper, lower, down)
    }
}

/// The greatest integer that is not above a number; `floor` would be a call, sixty times for each pixel.
fn below(x: f64) -> i64 {
    let whole = x as i64;
    whole - i64::from(whole as f64 > x)
}

/// Octaves of noise, the first of half the unit, each rotated so that no two lattices line up.
pub(super) struct Fractal(Vec<Noise>);

impl Fractal {
    pub(super) fn new(seed: u64, octaves: u64) -> Self {
        let octave = |octave: u64| Noise::new(seed.wrapping_add(octave << 32));
        Self((0..octaves).map(octave).collect())
    }

    pub(super) fn at(&mut self, mut position: [f64; 2]) -> f64 {
        let (mut sum, mut weight) = (0.0, 1.0);
        for octave in &mut self.0 {
            let [x, y] = position;
            position = [1.6 * x - 1.2 * y + 0.37, 1.2 * x + 1.6 * y + 0.71];
            sum += weight * octave.at(position);
            weight *= 0.5;
        }
        sum
    }
}

/// A wave of period 1 between -1 and 1, close to a sine.
pub(super) fn wave(turn: f64) -> f64 {
    let t = turn - turn.floor();
    10.4 * t * (1.0 - t) * (1.0 - 2.0 * t)
}

/// `SplitMix64` (Steele et al. 2014).
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number from 0 to below 1.
pub(super) fn unit(key: u64) -> f64 {
    (mix(key) >> 11) as f64 / (1_u64 << 53) as f64
}
