use super::{Argument, Card, Float, Long, Nothing, assert_near, bf16s, floats, noise};

const WIDTH: usize = 256;
const ROWS: usize = 5;
/// Fewer than rows, so that one takes several.
const BLOCKS: usize = 3;
const ALL: usize = ROWS * WIDTH;
const EPSILON: f64 = 1e-5;
const HEADS: usize = 3;
const HEAD: usize = 8;
const TOKENS: usize = 5;

/// A precision of what goes through products: how it is given to kernels, and how near they come.
#[derive(Clone, Copy)]
enum Trunk {
    Full,
    Half,
}

impl Trunk {
    fn defined(self) -> (&'static str, usize) {
        ("HALF", usize::from(matches!(self, Self::Half)))
    }

    /// Kernels for rows.
    fn card(self, kernels: &[&str]) -> Option<Card> {
        Card::new("trunk", kernels, &[self.defined(), ("WIDTH", WIDTH)])
    }

    /// Room for rows.
    fn out(self) -> Argument {
        self.argument(&vec![f64::NAN; ALL])
    }

    fn argument(self, numbers: &[f64]) -> Argument {
        match self {
            Self::Full => floats(numbers),
            Self::Half => bf16s(numbers),
        }
    }

    fn part(self) -> f64 {
        match self {
            Self::Full => 2e-6,
            Self::Half => 1.0 / 256.0,
        }
    }

    /// Numbers that this precision has.
    fn noise(self, seed: u64, count: usize) -> Vec<f64> {
        self.argument(&noise(seed, count)).numbers()
    }
}

/// A row normalised, its mean and one over its deviation.
fn normalised(row: &[f64]) -> (Vec<f64>, [f64; 2]) {
    let mean = row.iter().sum::<f64>() / WIDTH as f64;
    let square = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / WIDTH as f64;
    let over = 1.0 / (square + EPSILON).sqrt();
    (
        row.iter().map(|x| (x - mean) * over).collect(),
        [mean, over],
    )
}

/// A normalised row with its scale and shift.
fn scaled(x: &[f64], scale: &[f64], shift: &[f64]) -> Vec<f64> {
    let numbers = x.iter().zip(scale).zip(shift);
    numbers.map(|((x, s), b)| x * s + b).collect()
}

/// From the gradient by a normalised row, before its scale, to that by the row.
fn back(g: &[f64], x: &[f64], scale: &[f64], over: f64) -> Vec<f64> {
    let g: Vec<f64> = g.iter().zip(scale).map(|(g, s)| g * s).collect();
    let level = g.iter().sum::<f64>() / WIDTH as f64;
    let along = g.iter().zip(x).map(|(g, x)| g * x).sum::<f64>() / WIDTH as f64;
    g.iter()
        .zip(x)
        .map(|(g, x)| over * (g - level - x * along))
        .collect()
}

/// Sums of blocks, added.
fn over_blocks(parts: &Argument) -> [Argument; 2] {
    let parts = parts.numbers();
    [0, WIDTH].map(|first| {
        let sum = |column| {
            parts
                .chunks(2 * WIDTH)
                .map(|part| part[first + column])
                .sum()
        };
        floats(&(0..WIDTH).map(sum).collect::<Vec<f64>>())
    })
}

/// The same over all rows: gradients by scale and shift.
fn over_rows(g: &[f64], x: &[Vec<f64>]) -> [Vec<f64>; 2] {
    let mut sums = [vec![0.0; WIDTH], vec![0.0; WIDTH]];
    for (g, x) in g.chunks(WIDTH).zip(x) {
        for column in 0..WIDTH {
            sums[0][column] += g[column] * x[column];
            sums[1][column] += g[column];
        }
    }
    sums
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[test]
fn normalisation_is_as_defined() {
    for trunk in [Trunk::Full, Trunk::Half] {
        let Some(card) = trunk.card(&["row_norm", "row_norm_back"]) else {
            return;
        };
        let (scale, shift) = (noise(1, WIDTH), noise(2, WIDTH));
        let rows = Long(ROWS as i64);

        let x = noise(3, ALL);
        for (factor, stream) in [(1.0, None), (2.0, Some(noise(4, ALL)))] {
            let arguments = [
                floats(&x),
                floats(&scale),
                floats(&shift),
                rows.clone(),
                Float(factor as f32),
                trunk.out(),
                Argument::out(2 * ROWS),
            ];
            let found = card.run("row_norm", BLOCKS, (WIDTH / 4, 1), &arguments);
            let (mut y, mut moments, mut lines) = (Vec::new(), Vec::new(), Vec::new());
            for row in x.chunks(WIDTH) {
                let row: Vec<f64> = row.iter().map(|x| factor * x).collect();
                let (line, moment) = normalised(&row);
                y.extend(scaled(&line, &scale, &shift));
                moments.extend(moment);
                lines.push(line);
            }
            assert_near("row_norm", &found[5], &y, trunk.part());
            assert_near("moments", &found[6], &moments, 2e-6);

            let by_y = trunk.noise(5, ALL);
            let arguments = [
                trunk.argument(&by_y),
                floats(&x),
                found[6].clone(),
                floats(&scale),
                stream.as_deref().map_or(Nothing, floats),
                rows.clone(),
                Float(factor as f32),
                Argument::out(ALL),
                Argument::out(BLOCKS * 2 * WIDTH),
            ];
            let found = card.run("row_norm_back", BLOCKS, (WIDTH / 4, 1), &arguments);
            let mut by_x = Vec::new();
            for (index, line) in lines.iter().enumerate() {
                let of_row = index * WIDTH..(index + 1) * WIDTH;
                let along = stream
                    .as_ref()
                    .map_or(vec![0.0; WIDTH], |s| s[of_row.clone()].to_vec());
                let row = back(&by_y[of_row], line, &scale, moments[2 * index + 1]);
                by_x.extend(row.iter().zip(along).map(|(x, along)| factor * (x + along)));
            }
            assert_near("row_norm_back", &found[7], &by_x, 5e-6);
            for (sum, expected) in over_blocks(&found[8]).iter().zip(over_rows(&by_y, &lines)) {
                assert_near("scale and shift", sum, &expected, 5e-6);
            }
        }
    }
}

#[test]
fn gated_normalisation_is_as_defined() {
    for trunk in [Trunk::Full, Trunk::Half] {
        let Some(card) = trunk.card(&["gated_norm", "gated_norm_back"]) else {
            return;
        };
        let (scale, shift) = (noise(1, WIDTH), noise(2, WIDTH));
        let rows = Long(ROWS as i64);

        let [gate, through, by_y] = [6, 7, 8].map(|seed| trunk.noise(seed, ALL));
        let arguments = [
            trunk.argument(&gate),
            trunk.argument(&through),
            floats(&scale),
            floats(&shift),
            rows.clone(),
            trunk.out(),
            Argument::out(2 * ROWS),
        ];
        let found = card.run("gated_norm", BLOCKS, (WIDTH / 4, 1), &arguments);
        let gated: Vec<f64> = gate
            .iter()
            .zip(&through)
            .map(|(a, t)| silu(*a) * t)
            .collect();
        let (lines, moments): (Vec<_>, Vec<_>) = gated.chunks(WIDTH).map(normalised).unzip();
        let y: Vec<f64> = lines
            .iter()
            .flat_map(|line| scaled(line, &scale, &shift))
            .collect();
        assert_near("gated_norm", &found[5], &y, trunk.part());
        assert_near("moments", &found[6], moments.as_flattened(), 5e-6);

        let arguments = [
            trunk.argument(&by_y),
            trunk.argument(&gate),
            trunk.argument(&through),
            found[6].clone(),
            floats(&scale),
            rows,
            Argument::out(BLOCKS * 2 * WIDTH),
        ];
        let found = card.run("gated_norm_back", BLOCKS, (WIDTH / 4, 1), &arguments);
        let by_gated: Vec<f64> = lines
            .iter()
            .zip(by_y.chunks(WIDTH))
            .zip(&moments)
            .flat_map(|((line, g), moment)| back(g, line, &scale, moment[1]))
            .collect();
        let open = |a: f64| 1.0 / (1.0 + (-a).exp());
        let by_gate: Vec<f64> = (0..ALL)
            .map(|index| {
                let a = gate[index];
                by_gated[index] * through[index] * (open(a) + silu(a) * (1.0 - open(a)))
            })
            .collect();
        let by_through: Vec<f64> = by_gated
            .iter()
            .zip(&gate)
            .map(|(g, a)| g * silu(*a))
            .collect();
        let part = 3.0 * trunk.part();
        assert_near("gate", &found[1], &by_gate, part);
        assert_near("through", &found[2], &by_through, part);
        for (sum, expected) in over_blocks(&found[6]).iter().zip(over_rows(&by_y, &lines)) {
            assert_near("scale and shift", sum, &expected, 1e-5);
        }
    }
}

#[test]
fn turns_are_as_defined_and_back_again() {
    let defined = [("HEAD", HEAD), ("HEADS", HEADS), ("TOKENS", TOKENS)];
    for trunk in [Trunk::Full, Trunk::Half] {
        let defined = [&[trunk.defined()], &defined[..]].concat();
        let Some(card) = Card::new("trunk", &["turn", "turn_back"], &defined) else {
            return;
        };
        let rows = 2 * TOKENS;
        let all = HEADS * HEAD;
        // Pairs share a number of the tables.
        let tables = [f64::cos, f64::sin].map(|wave| -> Vec<f64> {
            let angle = |index: usize| (index / HEAD * 5 + index % HEAD / 2) as f64 * 0.3;
            (0..TOKENS * HEAD).map(|index| wave(angle(index))).collect()
        });
        let [cosines, sines] = tables.each_ref().map(|table| floats(table));
        let turned = |x: &[f64], sign: f64| -> Vec<f64> {
            let mut y = x.to_vec();
            for (row, y) in y.chunks_mut(3 * all).enumerate() {
                for at in (0..2 * all).step_by(2) {
                    let entry = row % TOKENS * HEAD + at % HEAD;
                    let (c, s) = (tables[0][entry], sign * tables[1][entry]);
                    (y[at], y[at + 1]) = (y[at] * c - y[at + 1] * s, y[at + 1] * c + y[at] * s);
                }
            }
            y
        };
        let x = trunk.noise(1, rows * 3 * all);
        let arguments = [trunk.argument(&x), cosines.clone(), sines.clone()];
        let found = card.run("turn", rows, (256, 1), &arguments);
        assert_near("turn", &found[0], &turned(&x, 1.0), trunk.part());

        // Gradients as attention leaves them: [batch, heads, tokens, head].
        let part = |which: usize| -> Vec<f64> {
            let mut numbers = Vec::new();
            for batch in 0..rows / TOKENS {
                for head in 0..HEADS {
                    for token in 0..TOKENS {
                        let first = (batch * TOKENS + token) * 3 * all + which * all + head * HEAD;
                        numbers.extend(&x[first..first + HEAD]);
                    }
                }
            }
            numbers
        };
        let mut arguments = Vec::new();
        for which in 0..3 {
            arguments.push(trunk.argument(&part(which)));
            arguments.extend([HEADS * TOKENS * HEAD, HEAD, TOKENS * HEAD].map(|s| Long(s as i64)));
        }
        arguments.extend([cosines, sines, trunk.argument(&vec![f64::NAN; x.len()])]);
        let found = card.run("turn_back", rows, (256, 1), &arguments);
        assert_near("turn_back", &found[14], &turned(&x, -1.0), trunk.part());
    }
}

#[test]
fn sums_are_as_defined() {
    for trunk in [Trunk::Full, Trunk::Half] {
        let Some(card) = Card::new("trunk", &["add", "column_sums"], &[trunk.defined()]) else {
            return;
        };
        let (stream, branch) = (noise(1, 4 * 300), trunk.noise(2, 4 * 300));
        let arguments = [
            floats(&stream),
            trunk.argument(&branch),
            Long(300),
            Float(2.0),
            Argument::out(4 * 300),
        ];
        let found = card.run("add", 1, (256, 1), &arguments);
        let expected: Vec<f64> = stream
            .iter()
            .zip(&branch)
            .map(|(s, b)| 2.0 * s + b)
            .collect();
        assert_near("add", &found[4], &expected, 1e-6);

        // Two blocks across, the second nearly idle, and three bands.
        let (rows, width, bands) = (37, 516, 3);
        let x = trunk.noise(3, rows * width);
        let arguments = [
            trunk.argument(&x),
            Long(rows as i64),
            Long(width as i64),
            Argument::out(bands * width),
        ];
        let found = card.run("column_sums", 2 * bands, (128, 1), &arguments);
        let parts = found[3].numbers();
        let sum = |column: usize, numbers: &[f64]| numbers.iter().skip(column).step_by(width).sum();
        let [found, expected] = [&parts, &x]
            .map(|numbers| -> Vec<f64> { (0..width).map(|column| sum(column, numbers)).collect() });
        assert_near("column_sums", &floats(&found), &expected, 1e-6);
    }
}
