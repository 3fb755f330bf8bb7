//! The network once more, written from its definition and nothing else, to compare with.

use std::collections::{HashMap, HashSet};

use crate::codec::Codec;
use crate::coefficients::{Coefficients, Transform};
use crate::compand::seen_symbol;
use crate::distribution::Context;
use crate::draft::Draft;
use crate::grid::{Area, MARGIN, PHASES};
use crate::matrix::Matrix;
use crate::model::{LayerWeights, ProbabilityModel, to_bytes};
use crate::picture::{Part, Picture};
use crate::planes::{CHANNELS, CONSTANTS, Planes};
use crate::quantiser::Quantiser;
use crate::wavelet::{BANDS, Subbands};
use crate::widths::Widths;

/// Channels at every position of a part and its margin.
#[derive(Clone)]
struct Field {
    width: isize,
    channels: usize,
    values: HashMap<[isize; 2], Vec<u8>>,
}

impl Field {
    fn new(planes: &Planes, channels: usize, value: impl Fn(usize, isize, isize) -> u8) -> Self {
        let margin = MARGIN as isize;
        let (width, height) = (planes.width() as isize, planes.height() as isize);
        let mut values = HashMap::new();
        for row in -margin..height + margin {
            for column in -margin..width + margin {
                if planes.is_valid(column, row) {
                    let all = (0..channels).map(|channel| value(channel, column, row));
                    values.insert([column, row], all.collect());
                }
            }
        }
        Self {
            width,
            channels,
            values,
        }
    }

    fn at(&self, column: isize, row: isize) -> Vec<u8> {
        let place = self.values.get(&[column, row]);
        place.cloned().unwrap_or(vec![0; self.channels])
    }
}

fn window(radius: isize) -> Vec<[isize; 2]> {
    let axis = -radius..=radius;
    axis.clone()
        .flat_map(|down| axis.clone().map(move |right| [down, right]))
        .collect()
}

/// Layers by name.
struct Reference {
    widths: Widths,
    layers: HashMap<String, LayerWeights>,
}

impl Reference {
    fn sums(&self, name: &str, inputs: &[u8]) -> Vec<i32> {
        let layer = &self.layers[name];
        let rows = layer.weights.chunks_exact(inputs.len());
        assert_eq!(rows.len(), layer.bias.len(), "{name}");
        rows.zip(&layer.bias)
            .map(|(row, bias)| {
                let products = row.iter().zip(inputs);
                bias + products
                    .map(|(&weight, &input)| i32::from(weight) * i32::from(input))
                    .sum::<i32>()
            })
            .collect()
    }

    fn activations(&self, name: &str, inputs: &[u8], before: &[u8]) -> Vec<u8> {
        let sums = self.sums(name, inputs).into_iter().enumerate();
        sums.map(|(output, sum)| {
            let before = before.get(output).copied().unwrap_or(0);
            (i32::from(before) + ((sum + 32) >> 6)).clamp(0, 127) as u8
        })
        .collect()
    }

    fn convolution(
        &self,
        name: &str,
        constants: &[u8],
        sources: &[&Field],
        before: Option<&Field>,
    ) -> Field {
        let mut values = HashMap::new();
        for &[column, row] in sources[0].values.keys() {
            let mut inputs = constants.to_vec();
            for source in sources {
                for [down, right] in window(1) {
                    inputs.extend(source.at(column + right, row + down));
                }
            }
            let before = before.map_or(Vec::new(), |field| field.at(column, row));
            values.insert([column, row], self.activations(name, &inputs, &before));
        }
        Field {
            width: sources[0].width,
            channels: self.layers[name].bias.len(),
            values,
        }
    }

    fn blocks(&self, name: &str, count: usize, mut field: Field) -> Field {
        for block in 0..count {
            let [a, b] = [1, 2].map(|layer| format!("{name}.{}", 2 * block + layer));
            let inside = self.convolution(&a, &[], &[&field], None);
            field = self.convolution(&b, &[], &[&inside], Some(&field));
        }
        field
    }

    fn trunk(&self, planes: &Planes) -> Field {
        let inputs = Field::new(planes, CHANNELS, |channel, column, row| {
            planes.input(channel, column, row)
        });
        let first = self.convolution("trunk.0", &planes.constants, &[&inputs], None);
        self.blocks("trunk", self.widths.blocks, first)
    }

    /// The contexts of all symbols, in the order of coding.
    fn contexts(
        &self,
        planes: &Planes,
        trunk: &Field,
        bands: &[Matrix<i64>; BANDS],
    ) -> [Matrix<Context>; BANDS] {
        let mut contexts = bands
            .each_ref()
            .map(|band| Matrix::new(band.width, band.height));
        for band in 0..BANDS {
            let mut known = symbols(planes, bands, |other, _| other < band);
            let features = if self.widths.band > 0 {
                let sources = [trunk, &known[0]];
                let sources = &sources[..if band > 0 { 2 } else { 1 }];
                let name = format!("band.{band}");
                let first = self.convolution(&format!("{name}.0"), &[], sources, None);
                self.blocks(&name, self.widths.band_blocks, first)
            } else {
                trunk.clone()
            };
            for (phase, parities) in PHASES.into_iter().enumerate() {
                known = symbols(planes, bands, |other, parities| {
                    other < band || (other == band && PHASES[..phase].contains(&parities))
                });
                let is_before = |row: isize, column: isize| {
                    let parities = [row, column].map(|place| place.rem_euclid(2) as usize);
                    PHASES[..phase].contains(&parities)
                };
                for row in 0..bands[band].height {
                    for column in 0..bands[band].width {
                        if [row % 2, column % 2] != parities {
                            continue;
                        }
                        let (x, y) = (column as isize, row as isize);
                        let mut inputs = Vec::new();
                        for [down, right] in window(self.widths.look as isize) {
                            inputs.extend(features.at(x + right, y + down));
                        }
                        let own = &known[band / 2];
                        let has_all = self.widths.band == 0;
                        for [down, right] in window(self.widths.reach as isize) {
                            let is_near = down.abs() <= 1 && right.abs() <= 1;
                            if is_before(y + down, x + right) || (has_all && band == 1 && is_near) {
                                inputs.extend(own.at(x + right, y + down));
                            }
                        }
                        if has_all && band == 2 {
                            for [down, right] in window(1) {
                                inputs.extend(known[0].at(x + right, y + down));
                            }
                        }
                        let name = |layer: usize| format!("head.{band}.{phase}.{layer}");
                        let mut hidden = self.activations(&name(0), &inputs, &[]);
                        let mut last = 1;
                        if self.widths.last > 0 {
                            hidden = self.activations(&name(1), &hidden, &[]);
                            last = 2;
                        }
                        let sums = self.sums(&name(last), &hidden);
                        contexts[band].row_mut(row)[column] =
                            Context::new(sums[0], sums[1], sums[2]);
                    }
                }
            }
        }
        contexts
    }

    /// What the last layer of the dequantiser sees.
    fn dequantiser(&self, trunk: &Field, known: &[Field; 2]) -> Field {
        if self.widths.band > 0 {
            let sources = [trunk, &known[0], &known[1]];
            let first = self.convolution("dequantiser.0", &[], &sources, None);
            return self.blocks("dequantiser", self.widths.dequantiser_blocks, first);
        }
        let mut field = trunk.clone();
        field.channels = self.widths.dequantiser;
        for (&[x, y], values) in &mut field.values {
            let mut inputs = trunk.at(x, y);
            for field in known {
                for [down, right] in window(1) {
                    inputs.extend(field.at(x + right, y + down));
                }
            }
            *values = self.activations("dequantiser.0", &inputs, &[]);
        }
        field
    }

    /// The offset of a band at a position.
    fn offset(&self, dequantiser: &Field, band: usize, x: isize, y: isize) -> i64 {
        let last = format!("dequantiser.{}", 1 + 2 * self.widths.dequantiser_blocks);
        let sum = self.sums(&last, &dequantiser.at(x, y))[band];
        ((sum + 16) >> 5).clamp(-32, 32).into()
    }
}

/// The two groups of symbols, as far as they are known.
fn symbols(
    planes: &Planes,
    bands: &[Matrix<i64>; BANDS],
    is_known: impl Fn(usize, [usize; 2]) -> bool,
) -> [Field; 2] {
    [0, 1].map(|group| {
        Field::new(planes, 4, |channel, column, row| {
            let band = 2 * group + channel / 2;
            let (Ok(x), Ok(y)) = (usize::try_from(column), usize::try_from(row)) else {
                return 0;
            };
            match bands.get(band) {
                Some(symbols)
                    if x < symbols.width
                        && y < symbols.height
                        && is_known(band, [y % 2, x % 2]) =>
                {
                    seen_symbol(symbols.row(y)[x])[channel % 2]
                }
                _ => 0,
            }
        })
    })
}

fn random_layers(widths: &Widths) -> Vec<LayerWeights> {
    let mut state = 5_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let shapes = widths.layers();
    let layers = shapes.iter().map(|shape| LayerWeights {
        weights: (0..shape.inputs * shape.outputs)
            .map(|_| random(61) as i8 - 30)
            .collect(),
        bias: (0..shape.outputs)
            .map(|_| random(4001) as i32 - 1000)
            .collect(),
    });
    layers.collect()
}

#[test]
fn the_network_is_the_one_of_its_definition() {
    assert_eq!(CONSTANTS, 17);
    let small = Widths {
        trunk: 8,
        blocks: 0,
        band: 0,
        band_blocks: 0,
        look: 0,
        hidden: 8,
        last: 0,
        dequantiser: 4,
        dequantiser_blocks: 0,
        reach: 1,
    };
    let large = Widths {
        trunk: 12,
        blocks: 2,
        band: 8,
        band_blocks: 1,
        look: 1,
        hidden: 12,
        last: 8,
        dequantiser: 8,
        dequantiser_blocks: 1,
        reach: 4,
    };
    let mixed = Widths {
        blocks: 1,
        look: 1,
        last: 4,
        reach: 2,
        ..small
    };
    let bands_alone = Widths {
        blocks: 0,
        band_blocks: 0,
        look: 0,
        dequantiser_blocks: 0,
        reach: 3,
        ..large
    };
    for widths in [small, large, mixed, bands_alone] {
        let layers = random_layers(&widths);
        let bytes = to_bytes("test", &widths, &layers, &[]).unwrap();
        let codec = Codec::new(ProbabilityModel::from_bytes(&bytes).unwrap());
        let names = widths.layers().into_iter().map(|shape| shape.name);
        let reference = Reference {
            widths,
            layers: names.zip(layers).collect(),
        };
        let heights = (0..90 * 80)
            .map(|index| {
                let (x, y) = (f64::from(index % 90), f64::from(index / 90));
                30.0 * (x / 9.0).sin() * (y / 7.0).cos() + (x * 1.7 + y * y * 0.3).sin() * 4.0
            })
            .collect();
        let heights = Matrix::from_values(90, 80, heights).unwrap();
        let coefficients = Coefficients::lossy(&heights).unwrap();
        let (_, picture) = codec.encode(&coefficients, Quantiser::ROUNDING, 1);
        // All of it, a part with margins on all sides, one with fewer, and one that is a line.
        for [column, row, width, height] in [
            [0, 0, 90, 80],
            [20, 30, 13, 10],
            [1, 62, 9, 17],
            [89, 3, 1, 5],
        ] {
            let area = Area {
                column,
                row,
                width,
                height,
            };
            compare(&codec, &reference, &picture, area);
        }
    }
}

fn compare(codec: &Codec, reference: &Reference, picture: &Picture, area: Area) {
    let Area { width, height, .. } = area;
    let sizes = [
        [width, height],
        [width, height.max(2) - 1],
        [width, height.max(2) - 1],
    ];
    let mut state = 3_u64;
    let symbols = sizes.map(|[width, height]| {
        let values = (0..width * height).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            [0, 0, 0, 1, -1, 2, -5, 300][(state >> 61) as usize]
        });
        Matrix::from_values(width, height, values.collect()).unwrap()
    });
    let part = Part { picture, area };
    let coefficients = symbols
        .each_ref()
        .map(|band| band.map(|symbol| symbol as f64));
    let draft = Draft::below(codec, part, &coefficients);
    let (_, finest) = draft.code(&symbols);
    let planes = Planes::new(&picture.seen, area, picture.bands.as_ref(), 0, false);
    let trunk = reference.trunk(&planes);
    let contexts = reference.contexts(&planes, &trunk, &symbols);
    assert_eq!(finest.contexts, contexts, "{:?} {area:?}", reference.widths);
    if width > 20 {
        // Or there would be nothing to compare.
        let tables: HashSet<u16> = contexts[2].values.iter().map(|seen| seen.table).collect();
        assert!(tables.len() > 20, "{}", tables.len());
    }
    let known = self::symbols(&planes, &symbols, |_, _| true);
    let dequantiser = reference.dequantiser(&trunk, &known);
    let bands = [0, 1, 2].map(|band: usize| {
        let mut values = symbols[band].map(|symbol| symbol * 64);
        for row in 0..values.height {
            for (column, value) in values.row_mut(row).iter_mut().enumerate() {
                *value += reference.offset(&dequantiser, band, column as isize, row as isize);
            }
        }
        values
    });
    let ll = picture.values().cropped(area);
    let expected = Transform::Lossy.inverse(Subbands { ll, bands });
    assert_eq!(finest.picture.values(), &expected);
}
