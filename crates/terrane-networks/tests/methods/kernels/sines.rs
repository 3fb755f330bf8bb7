use super::{Argument, Card, Float, assert_near, f16s, floats, noise};

const COUNT: usize = 21;
const WIDTH: usize = 64;
const PATCHES: usize = 3;
const LINES: usize = PATCHES * WIDTH;
const POINTS: usize = PATCHES * COUNT;
const THREADS: (usize, usize) = (32, 8);

const KERNELS: [&str; 6] = [
    "first",
    "sine",
    "value",
    "value_and_back",
    "sine_back",
    "first_back",
];

/// What a layer is modulated with, and the angles before its shift.
struct Layer {
    amplitude: Vec<f64>,
    shift: Vec<f64>,
    angle: Vec<f64>,
}

impl Layer {
    fn new() -> Self {
        let scaled = |seed, count, factor: f64| {
            let numbers = noise(seed, count);
            numbers
                .into_iter()
                .map(|x| f64::from((x * factor) as f32))
                .collect()
        };
        Self {
            amplitude: scaled(1, LINES, 1.5),
            shift: scaled(2, LINES, 3.0),
            angle: scaled(3, POINTS * WIDTH, 40.0),
        }
    }

    fn modulation(&self) -> [Argument; 2] {
        [floats(&self.amplitude), floats(&self.shift)]
    }

    /// Amplitude, sine and cosine of every number of every point.
    fn waves<'a>(&'a self, angle: &'a [f64]) -> impl Iterator<Item = [f64; 3]> + 'a {
        angle.iter().enumerate().map(|(index, angle)| {
            let line = index / WIDTH / COUNT * WIDTH + index % WIDTH;
            let (sine, cosine) = (angle + self.shift[line]).sin_cos();
            [self.amplitude[line], sine, cosine]
        })
    }
}

/// The sums over the points of every patch.
fn over_points(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0; LINES];
    for (index, number) in numbers.enumerate() {
        sums[index / WIDTH / COUNT * WIDTH + index % WIDTH] += number;
    }
    sums
}

/// What goes through products: its type, and what gradients are multiplied with there.
#[derive(Clone, Copy)]
enum Narrow {
    Full,
    Half,
}

impl Narrow {
    fn card(self) -> Option<Card> {
        let is_half = usize::from(matches!(self, Self::Half));
        let defined = [
            ("COUNT", COUNT),
            ("WIDTH", WIDTH),
            ("HALF", is_half),
            ("RAISED", self.raised()),
        ];
        Card::new("sines", &KERNELS, &defined)
    }

    fn argument(self, numbers: &[f64]) -> Argument {
        match self {
            Self::Full => floats(numbers),
            Self::Half => f16s(numbers),
        }
    }

    fn out(self) -> Argument {
        self.argument(&vec![f64::NAN; POINTS * WIDTH])
    }

    fn raised(self) -> usize {
        match self {
            Self::Full => 1,
            Self::Half => 256,
        }
    }

    /// How near stored numbers come.
    fn part(self) -> f64 {
        match self {
            Self::Full => 1e-5,
            Self::Half => 1.0 / 2048.0,
        }
    }
}

/// Points, the weight of the first layer, and the angles that both give.
fn first_layer() -> [Vec<f64>; 3] {
    let (points, weight) = (noise(8, 2 * COUNT), noise(9, 2 * WIDTH));
    let angle = |index: usize| {
        let (point, number) = (index / WIDTH % COUNT, index % WIDTH);
        points[2 * point] * weight[number] + points[2 * point + 1] * weight[WIDTH + number]
    };
    let angles = (0..POINTS * WIDTH).map(angle).collect();
    [points, weight, angles]
}

#[test]
fn layers_are_as_defined() {
    for narrow in [Narrow::Full, Narrow::Half] {
        let Some(card) = narrow.card() else { return };
        let layer = Layer::new();
        let [amplitude, shift] = layer.modulation();
        let outputs = |angles: &[f64]| -> Vec<f64> {
            layer.waves(angles).map(|[a, sine, _]| a * sine).collect()
        };

        let [points, weight, angles] = first_layer();
        let arguments = [
            floats(&points),
            floats(&weight),
            amplitude.clone(),
            shift.clone(),
            narrow.out(),
        ];
        let out = card.run("first", PATCHES, THREADS, &arguments);
        assert_near("first", &out[4], &outputs(&angles), narrow.part());

        let arguments = [
            floats(&layer.angle),
            amplitude.clone(),
            shift.clone(),
            narrow.out(),
        ];
        let out = card.run("sine", PATCHES, THREADS, &arguments);
        let expected = outputs(&layer.angle);
        assert_near("sine", &out[3], &expected, narrow.part());

        let weight = noise(4, WIDTH);
        let arguments = [
            floats(&layer.angle),
            amplitude,
            shift,
            floats(&weight),
            floats(&[0.25]),
            Argument::out(POINTS),
        ];
        let out = card.run("value", PATCHES, THREADS, &arguments);
        let values: Vec<f64> = expected
            .chunks(WIDTH)
            .map(|point| 0.25 + point.iter().zip(&weight).map(|(h, w)| h * w).sum::<f64>())
            .collect();
        assert_near("value", &out[5], &values, 1e-5);
    }
}

#[test]
fn the_error_and_its_gradients_are_as_defined() {
    for narrow in [Narrow::Full, Narrow::Half] {
        let Some(card) = narrow.card() else { return };
        let layer = Layer::new();
        let [amplitude, shift] = layer.modulation();
        let (weight, wanted) = (noise(4, WIDTH), noise(5, POINTS));
        let unit = 1.0 / (narrow.raised() * POINTS) as f64;
        let mut arguments = vec![
            floats(&layer.angle),
            amplitude,
            shift,
            floats(&weight),
            floats(&[0.25]),
            floats(&wanted),
            Float(unit as f32),
            narrow.out(),
        ];
        arguments.extend([LINES, LINES, LINES, PATCHES, PATCHES].map(Argument::out));
        let out = card.run("value_and_back", PATCHES, THREADS, &arguments);

        let waves: Vec<[f64; 3]> = layer.waves(&layer.angle).collect();
        let off: Vec<f64> = waves
            .chunks(WIDTH)
            .zip(&wanted)
            .map(|(point, wanted)| {
                let products = point.iter().zip(&weight);
                0.25 + products.map(|([a, sine, _], w)| a * sine * w).sum::<f64>() - wanted
            })
            .collect();
        // By the mean of squares.
        let by_value = |index: usize| 2.0 * off[index / WIDTH] / POINTS as f64;
        let by_output = |index: usize| by_value(index) * weight[index % WIDTH];
        let indexed = || waves.iter().copied().enumerate();
        let by_angle: Vec<f64> = indexed()
            .map(|(index, [a, _, cosine])| by_output(index) * a * cosine)
            .collect();
        let by_amplitude = indexed().map(|(index, [_, sine, _])| by_output(index) * sine);
        let by_weight = indexed().map(|(index, [a, sine, _])| by_value(index) * a * sine);
        let by_patch = |numbers: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let patches = off.chunks(COUNT);
            patches
                .map(|patch| patch.iter().map(|&off| numbers(off)).sum())
                .collect()
        };
        let raised: Vec<f64> = by_angle.iter().map(|x| x / unit).collect();
        assert_near("angle", &out[7], &raised, 2.0 * narrow.part());
        for (name, index, expected) in [
            ("amplitude", 8, over_points(by_amplitude)),
            ("shift", 9, over_points(by_angle.into_iter())),
            ("weight", 10, over_points(by_weight)),
            ("bias", 11, by_patch(&|off| 2.0 * off / POINTS as f64)),
            ("squares", 12, by_patch(&|off| off * off)),
        ] {
            assert_near(name, &out[index], &expected, 2e-5);
        }
    }
}

#[test]
fn gradients_of_layers_are_as_defined() {
    const UNIT: f64 = 0.25;
    for narrow in [Narrow::Full, Narrow::Half] {
        let Some(card) = narrow.card() else { return };
        let layer = Layer::new();
        let [amplitude, shift] = layer.modulation();
        let given = narrow.argument(&noise(6, POINTS * WIDTH));
        let gradient = given.numbers();
        // By angles, and in their unit by amplitudes.
        let back = |waves: &[[f64; 3]]| -> (Vec<f64>, Vec<f64>) {
            let both = || waves.iter().zip(&gradient);
            (
                both().map(|([a, _, cosine], g)| g * a * cosine).collect(),
                over_points(both().map(|([_, sine, _], g)| UNIT * g * sine)),
            )
        };

        let mut arguments = vec![
            given.clone(),
            floats(&layer.angle),
            amplitude.clone(),
            shift.clone(),
            Float(UNIT as f32),
        ];
        arguments.extend([LINES, LINES].map(Argument::out));
        let out = card.run("sine_back", PATCHES, THREADS, &arguments);
        let waves: Vec<[f64; 3]> = layer.waves(&layer.angle).collect();
        let (by_angle, by_amplitude) = back(&waves);
        let by_shift = over_points(by_angle.iter().map(|x| UNIT * x));
        assert_near("angle", &out[0], &by_angle, 2.0 * narrow.part());
        assert_near("amplitude", &out[5], &by_amplitude, 1e-5);
        assert_near("shift", &out[6], &by_shift, 1e-5);

        let [points, weight, angles] = first_layer();
        let mut arguments = vec![
            given,
            floats(&points),
            floats(&weight),
            amplitude,
            shift,
            Float(UNIT as f32),
        ];
        arguments.extend([LINES; 4].map(Argument::out));
        let out = card.run("first_back", PATCHES, THREADS, &arguments);
        let waves: Vec<[f64; 3]> = layer.waves(&angles).collect();
        let (by_angle, by_amplitude) = back(&waves);
        let along = |axis: usize| {
            let numbers = by_angle.iter().enumerate();
            over_points(numbers.map(|(index, by_angle)| {
                UNIT * by_angle * points[2 * (index / WIDTH % COUNT) + axis]
            }))
        };
        let by_shift = over_points(by_angle.iter().map(|x| UNIT * x));
        for (name, index, expected) in [
            ("amplitude", 6, by_amplitude),
            ("shift", 7, by_shift),
            ("x", 8, along(0)),
            ("y", 9, along(1)),
        ] {
            assert_near(name, &out[index], &expected, 1e-5);
        }
    }
}
