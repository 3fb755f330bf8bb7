//! Pictures of terrain: tinted relief and error maps, as RGBA and PNG.

use std::collections::BTreeSet;

/// Where the sun stands and how much heights are exaggerated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Light {
    /// Direction the light comes from, in degrees clockwise from north.
    pub azimuth_deg: f64,
    /// Height of the sun above the horizon, in degrees.
    pub altitude_deg: f64,
    /// Factor on the heights before they are shaded.
    pub z_factor: f64,
}

impl Default for Light {
    fn default() -> Self {
        Self {
            azimuth_deg: 315.0,
            altitude_deg: 45.0,
            z_factor: 1.0,
        }
    }
}

/// How a tinted relief is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tint<'a> {
    /// Heights in metres at the two ends of the tint; those of the terrain itself when absent.
    pub range_m: Option<(f32, f32)>,
    /// Pixels drawn as water, one flag per height.
    pub water: Option<&'a [bool]>,
}

/// A picture in RGBA, eight bits a channel, row by row from the north; no data is transparent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Four bytes for each pixel.
    pub rgba: Vec<u8>,
}

impl Picture {
    /// Encodes the picture as a PNG file, with a palette where that holds all its colours: a third of the size.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        if let Some((colours, indices)) = self.palette() {
            encoder.set_color(png::ColorType::Indexed);
            let channels = colours
                .iter()
                .flat_map(|&[red, green, blue, _]| [red, green, blue]);
            encoder.set_palette(channels.collect::<Vec<_>>());
            encoder.set_trns(colours.iter().map(|colour| colour[3]).collect::<Vec<_>>());
            // Neighbouring indices say nothing of each other that a filter could use.
            encoder.set_filter(png::Filter::NoFilter);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&indices)?;
            writer.finish()?;
        } else {
            encoder.set_color(png::ColorType::Rgba);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&self.rgba)?;
            writer.finish()?;
        }
        Ok(bytes)
    }

    /// The colours of the picture in order, and each pixel's index among them, if there are at most 256.
    fn palette(&self) -> Option<(Vec<[u8; 4]>, Vec<u8>)> {
        let pixels = || self.rgba.as_chunks::<4>().0.iter();
        let mut colours = BTreeSet::new();
        for pixel in pixels() {
            if colours.insert(*pixel) && colours.len() > 256 {
                return None;
            }
        }
        let colours: Vec<[u8; 4]> = colours.into_iter().collect();
        let index = |pixel| colours.binary_search(pixel).unwrap_or(0) as u8;
        let indices = pixels().map(index).collect();
        Some((colours, indices))
    }

    fn paint(
        heights: &[f32],
        width: usize,
        height: usize,
        mut colour: impl FnMut(usize) -> [u8; 3],
    ) -> Self {
        assert_eq!(heights.len(), width * height, "one height for each pixel");
        let mut rgba = vec![0; 4 * heights.len()];
        for (cell, pixel) in rgba.chunks_exact_mut(4).enumerate() {
            if heights[cell].is_finite() {
                pixel[..3].copy_from_slice(&colour(cell));
                pixel[3] = u8::MAX;
            }
        }
        Self {
            width,
            height,
            rgba,
        }
    }
}

/// Draws shaded relief over a hypsometric tint: sage lowlands, sandy slopes, pale summits.
pub fn relief(
    heights: &[f32],
    width: usize,
    height: usize,
    pixel_m: f64,
    light: &Light,
    tint: &Tint,
) -> Picture {
    let sun = Sun::new(light);
    // A second, weaker light keeps form in the slopes that the sun only grazes.
    let fill = Sun::new(&Light {
        azimuth_deg: light.azimuth_deg + 75.0,
        altitude_deg: light.altitude_deg + 15.0,
        ..*light
    });
    let level = Sun::new(light).shade([0.0; 2]) * 0.75 + fill.shade([0.0; 2]) * 0.25;
    let (low_m, high_m) = tint.range_m.unwrap_or_else(|| range(heights));
    let span_m = (high_m - low_m).max(f32::MIN_POSITIVE);
    Picture::paint(heights, width, height, |cell| {
        let slope = gradient(heights, width, cell, pixel_m);
        let lit = (sun.shade(slope) * 0.75 + fill.shade(slope) * 0.25) / level;
        let base = if tint.water.is_some_and(|water| water[cell]) {
            WATER
        } else {
            ramp(&RELIEF, f64::from((heights[cell] - low_m) / span_m))
        };
        lighten(base, lit)
    })
}

/// Maps signed errors to blue below, near-white at zero and orange above, saturating at `range_m`.
pub fn error_map(errors_m: &[f32], width: usize, height: usize, range_m: f32) -> Picture {
    let range_m = f64::from(range_m);
    map(
        errors_m,
        width,
        height,
        (-range_m, range_m),
        Colours::Diverging,
    )
}

/// How values become colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// From dark violet over green to yellow, evenly brighter (viridis), from the lowest value to the highest.
    Sequential,
    /// Blue below, near-white at zero, orange above.
    Diverging,
}

impl Colours {
    /// The colour at a position from 0, the low end, to 1, the high end.
    pub(crate) fn at(self, position: f64) -> [u8; 3] {
        let stops = match self {
            Self::Sequential => &VIRIDIS[..],
            Self::Diverging => &ERROR[..],
        };
        ramp(stops, position).map(|value| (value + 0.5) as u8)
    }
}

/// As many steps as a palette holds beside the transparent one, with a colour right in the middle.
const STEPS: f64 = 254.0;

/// Maps values to colours in 254 steps, saturating outside `low` to `high`.
pub(crate) fn map(
    values: &[f32],
    width: usize,
    height: usize,
    (low, high): (f64, f64),
    colours: Colours,
) -> Picture {
    let span = (high - low).max(f64::MIN_POSITIVE);
    Picture::paint(values, width, height, |cell| {
        let position = (f64::from(values[cell]) - low) / span;
        colours.at((position * STEPS).round() / STEPS)
    })
}

type Stop = (f64, [f64; 3]);

const RELIEF: [Stop; 6] = [
    (0.00, [150.0, 171.0, 147.0]),
    (0.20, [184.0, 194.0, 158.0]),
    (0.42, [220.0, 214.0, 176.0]),
    (0.65, [219.0, 197.0, 160.0]),
    (0.85, [203.0, 178.0, 150.0]),
    (1.00, [240.0, 233.0, 223.0]),
];

const WATER: [f64; 3] = [158.0, 190.0, 205.0];

// Blue and orange stay apart under every common colour blindness, and both darken away from zero.
const ERROR: [Stop; 7] = [
    (0.00, [5.0, 48.0, 97.0]),
    (0.20, [33.0, 102.0, 172.0]),
    (0.36, [103.0, 169.0, 207.0]),
    (0.50, [247.0, 247.0, 247.0]),
    (0.64, [241.0, 163.0, 64.0]),
    (0.80, [179.0, 88.0, 6.0]),
    (1.00, [94.0, 46.0, 6.0]),
];

// Eleven of the 256 colours of viridis, by Smith and van der Walt (CC0): a straight line between two is one step off.
const VIRIDIS: [Stop; 11] = [
    (0.0, [68.0, 1.0, 84.0]),
    (0.1, [72.0, 36.0, 117.0]),
    (0.2, [65.0, 68.0, 135.0]),
    (0.3, [53.0, 95.0, 141.0]),
    (0.4, [42.0, 120.0, 142.0]),
    (0.5, [33.0, 145.0, 140.0]),
    (0.6, [34.0, 168.0, 132.0]),
    (0.7, [68.0, 191.0, 112.0]),
    (0.8, [122.0, 209.0, 81.0]),
    (0.9, [189.0, 223.0, 38.0]),
    (1.0, [253.0, 231.0, 37.0]),
];

fn ramp(stops: &[Stop], position: f64) -> [f64; 3] {
    let position = position.clamp(0.0, 1.0);
    let upper = stops
        .iter()
        .position(|stop| stop.0 >= position)
        .unwrap_or(stops.len() - 1);
    let (start, from) = stops[upper.saturating_sub(1)];
    let (end, to) = stops[upper];
    let fraction = if end > start {
        (position - start) / (end - start)
    } else {
        1.0
    };
    std::array::from_fn(|channel| from[channel] + fraction * (to[channel] - from[channel]))
}

/// Lights a colour relative to level ground (`lit` = 1): shadows turn cool, sunlit slopes warm.
fn lighten(base: [f64; 3], lit: f64) -> [u8; 3] {
    const SHADOW: [f64; 3] = [58.0, 66.0, 92.0];
    const SUN: [f64; 3] = [255.0, 250.0, 236.0];
    let shadow = (1.0 - lit).clamp(0.0, 0.9) * 1.05;
    let sun = (lit - 1.0).clamp(0.0, 0.42) * 1.6;
    std::array::from_fn(|channel| {
        let shaded =
            base[channel] * (1.0 - shadow) + base[channel] * SHADOW[channel] / 255.0 * shadow;
        (shaded + (SUN[channel] - shaded) * sun + 0.5) as u8
    })
}

fn range(heights: &[f32]) -> (f32, f32) {
    heights
        .iter()
        .filter(|height| height.is_finite())
        .fold((f32::MAX, f32::MIN), |(low, high), &height| {
            (low.min(height), high.max(height))
        })
}

struct Sun {
    east: f64,
    north: f64,
    up: f64,
    z_factor: f64,
}

impl Sun {
    fn new(light: &Light) -> Self {
        let (sin_azimuth, cos_azimuth) = light.azimuth_deg.to_radians().sin_cos();
        let (up, level) = light.altitude_deg.to_radians().sin_cos();
        let z_factor = light.z_factor;
        Self {
            east: sin_azimuth * level,
            north: cos_azimuth * level,
            up,
            z_factor,
        }
    }

    /// Cosine of the angle between the sun and the normal of a slope, 0 in its own shadow.
    fn shade(&self, [east, north]: [f64; 2]) -> f64 {
        let (east, north) = (east * self.z_factor, north * self.z_factor);
        let facing = self.up - east * self.east - north * self.north;
        (facing / (1.0 + east * east + north * north).sqrt()).max(0.0)
    }
}

/// Rise per metre towards east and north by Horn (1981), over the eight neighbours.
fn gradient(heights: &[f32], width: usize, cell: usize, pixel_m: f64) -> [f64; 2] {
    let height = heights.len() / width;
    let (x, y) = (cell % width, cell / width);
    let known = |dx: isize, dy: isize| {
        let (x, y) = (x.checked_add_signed(dx)?, y.checked_add_signed(dy)?);
        let inside = x < width && y < height;
        inside
            .then(|| f64::from(heights[y * width + x]))
            .filter(|value| value.is_finite())
    };
    let centre = f64::from(heights[cell]);
    // Past an edge the surface goes on as it comes from the other side.
    let beyond = |dx: isize, dy: isize| {
        known(dx, dy).or_else(|| known(-dx, -dy).map(|opposite| 2.0 * centre - opposite))
    };
    let side = |dx: isize, dy: isize| beyond(dx, dy).unwrap_or(centre);
    let corner =
        |dx: isize, dy: isize| beyond(dx, dy).unwrap_or_else(|| side(dx, 0) + side(0, dy) - centre);
    let (nw, ne, sw, se) = (corner(-1, -1), corner(1, -1), corner(-1, 1), corner(1, 1));
    let east = ne + 2.0 * side(1, 0) + se - nw - 2.0 * side(-1, 0) - sw;
    let north = nw + 2.0 * side(0, -1) + ne - sw - 2.0 * side(0, 1) - se;
    [east / (8.0 * pixel_m), north / (8.0 * pixel_m)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: usize = 8;

    /// A plane that rises by these many metres for each pixel towards east and south.
    fn plane(east: f32, south: f32) -> Vec<f32> {
        let height = |cell: usize| east * (cell % SIDE) as f32 + south * (cell / SIDE) as f32;
        (0..SIDE * SIDE).map(height).collect()
    }

    /// The light on every pixel, in the grey values of `gdaldem hillshade -compute_edges`.
    fn grey(heights: &[f32]) -> Vec<u8> {
        let sun = Sun::new(&Light::default());
        let shade = |cell| sun.shade(gradient(heights, SIDE, cell, 2.0));
        (0..heights.len())
            .map(|cell| (1.0 + 254.0 * shade(cell) + 0.5) as u8)
            .collect()
    }

    #[test]
    fn flat_ground_has_the_grey_of_gdaldem() {
        assert_eq!(grey(&plane(0.0, 0.0)), vec![181; SIDE * SIDE]);
    }

    #[test]
    fn a_plane_is_even_up_to_its_edges() {
        // 1 + 254 (sin 45° + 0.5 / 2) / √1.25 for a rise of 0.5 towards east.
        assert_eq!(grey(&plane(1.0, 0.0)), vec![218; SIDE * SIDE]);
    }

    #[test]
    fn slopes_that_face_the_sun_are_brighter() {
        let (to_sun, from_sun) = (grey(&plane(1.0, 1.0)), grey(&plane(-1.0, -1.0)));
        assert!(to_sun[0] > 181 && from_sun[0] < 181);
        assert_eq!(grey(&plane(-9.0, -9.0))[0], 1);
    }

    #[test]
    fn missing_heights_are_transparent_and_leave_their_neighbours_alone() {
        let mut heights = plane(1.0, 0.0);
        heights[3 * SIDE + 3] = f32::NAN;
        let (light, tint) = (Light::default(), Tint::default());
        let picture = relief(&heights, SIDE, SIDE, 2.0, &light, &tint);
        let pixels = picture.rgba.chunks_exact(4).zip(grey(&heights));
        for (cell, (pixel, grey)) in pixels.enumerate() {
            if cell == 3 * SIDE + 3 {
                assert_eq!(pixel, [0; 4]);
            } else {
                assert_eq!((pixel[3], grey), (255, 218), "cell {cell}");
            }
        }
    }

    #[test]
    fn errors_are_blue_below_and_orange_above_and_neutral_at_zero() {
        let picture = error_map(&[-2.0, -1.0, 0.0, 1.0, 2.0, f32::NAN], 3, 2, 1.0);
        let pixels: Vec<&[u8]> = picture.rgba.chunks_exact(4).collect();
        assert_eq!(pixels[0], pixels[1]);
        assert!(pixels[1][2] > pixels[1][0] && pixels[3][0] > pixels[3][2]);
        assert_eq!(
            (pixels[2], pixels[5]),
            (&[247, 247, 247, 255][..], &[0; 4][..])
        );
        assert_eq!(pixels[3], pixels[4]);
    }

    #[test]
    fn water_has_its_own_tint() {
        let heights = plane(0.5, 0.0);
        let water: Vec<bool> = (0..SIDE * SIDE).map(|cell| cell < SIDE).collect();
        let tint = Tint {
            range_m: Some((0.0, 4.0)),
            water: Some(&water),
        };
        let rgba = relief(&heights, SIDE, SIDE, 2.0, &Light::default(), &tint).rgba;
        assert!(rgba[2] > rgba[0], "water is blue");
        assert!(rgba[4 * SIDE + 2] < rgba[4 * SIDE + 1], "lowland is green");
    }

    #[test]
    fn a_png_decodes_to_the_picture() {
        let mut heights = plane(0.3, -0.2);
        heights[0] = f32::NAN;
        let picture = relief(
            &heights,
            SIDE,
            SIDE,
            2.0,
            &Light::default(),
            &Tint::default(),
        );
        let bytes = picture.png().unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut rgba = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut rgba).unwrap();
        assert_eq!((frame.width as usize, frame.height as usize), (SIDE, SIDE));
        assert_eq!(rgba, picture.rgba);
    }

    #[test]
    fn a_map_has_a_palette_and_decodes_to_its_colours() {
        let values: Vec<f32> = (0..4096).map(|index| index as f32 * 0.01).collect();
        let picture = map(&values, 64, 64, (0.0, 40.95), Colours::Sequential);
        assert_eq!(picture.rgba[..4], [68, 1, 84, 255]);
        assert_eq!(picture.rgba[4 * 4095..], [253, 231, 37, 255]);
        let bytes = picture.png().unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        assert_eq!(reader.info().color_type, png::ColorType::Indexed);
        let mut rgba = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut rgba).unwrap();
        assert_eq!(rgba, picture.rgba);
    }
}
