//! DINOv3 (Siméoni et al., 2025): the frozen vision transformer whose features a distillation imitates.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use burn::module::{Module, Param};
use burn::tensor::activation::gelu;
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::blocks::{Dense, Norm, attend, join_heads, pixel_positions, split_patches};
use crate::init::Init;
use crate::methods::Precision;
use crate::weights::{Array, Weights, WeightsError, fill};

/// Channels of an image.
const CHANNELS: usize = 3;
/// Tokens between that of the whole image and those of the patches, which nothing is read from.
const STORAGE_TOKENS: usize = 4;
/// Width of a head in every published network.
const HEAD_WIDTH: usize = 64;
/// The rotary periods grow from 1 towards this, in halves of the image's side.
const ROTARY_BASE: f64 = 100.0;
// The statistics of ImageNet, which the teacher's photographs were brought to.
const MEAN: [f32; CHANNELS] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; CHANNELS] = [0.229, 0.224, 0.225];

/// Sizes of the teacher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeacherConfig {
    /// Width of a token.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of the attention; each must be a multiple of 4 wide.
    pub heads: usize,
    /// Width inside a feed-forward layer.
    pub hidden: usize,
    /// Side of a patch.
    pub patch: usize,
}

/// The teacher: images to features, without gradients.
#[derive(Module, Debug)]
pub struct Teacher {
    /// Patches to tokens.
    pub embed: Dense,
    /// The token of the whole image.
    pub class_token: Param<Tensor<3>>,
    /// The tokens after it.
    pub storage_tokens: Param<Tensor<3>>,
    /// The blocks.
    pub blocks: Vec<TeacherBlock>,
    /// The last normalisation.
    pub norm: Norm,
    heads: usize,
    patch: usize,
}

/// One block: attention and a feed-forward layer, each scaled per channel and added to the stream.
#[derive(Module, Debug)]
pub struct TeacherBlock {
    /// Normalisation before the attention.
    pub norm1: Norm,
    /// Queries, keys and values in one layer.
    pub qkv: Dense,
    /// Output of the attention.
    pub proj: Dense,
    /// Factors on what the attention adds.
    pub scale1: Param<Tensor<1>>,
    /// Normalisation before the feed-forward layer.
    pub norm2: Norm,
    /// Into the feed-forward layer.
    pub inner: Dense,
    /// Out of it.
    pub outer: Dense,
    /// Factors on what the feed-forward layer adds.
    pub scale2: Param<Tensor<1>>,
}

/// What the teacher sees in images, after its last normalisation.
#[derive(Debug, Clone)]
pub struct TeacherFeatures {
    /// Features `[batch, width]` of the whole image.
    pub class: Tensor<2>,
    /// Features `[batch, patches, width]`, row by row.
    pub patches: Tensor<3>,
}

/// Tiles `[batch, side, side]` in [0, 1] to images `[batch, 3, side, side]` as the teacher expects them: three equal
/// channels, each less a mean and by a deviation of its own.
pub fn prepare(tiles: Tensor<3>) -> Tensor<4> {
    let device = tiles.device();
    let dtype = tiles.dtype();
    let channels = |values: [f32; CHANNELS]| {
        let data = TensorData::new(values.to_vec(), [1, CHANNELS, 1, 1]);
        Tensor::<4>::from_data(data, &device).cast(dtype)
    };
    (tiles.unsqueeze_dim::<4>(1) - channels(MEAN)) / channels(DEVIATION)
}

impl TeacherConfig {
    /// ViT-B/16, the smaller teacher.
    pub const fn vit_base_16() -> Self {
        Self {
            width: 768,
            depth: 12,
            heads: 12,
            hidden: 3072,
            patch: 16,
        }
    }

    /// The sizes that published weights belong to; their heads are 64 wide.
    pub fn of(weights: &Weights) -> Result<Self, WeightsError> {
        let published = Published::new(weights);
        let class_token = published.named("class_token")?;
        let kernel = published.named("embed.weight")?;
        let inner = published.named("blocks.0.inner.weight")?;
        let width = class_token.shape.last().copied().unwrap_or(0);
        if width == 0 || !width.is_multiple_of(HEAD_WIDTH) {
            return Err(WeightsError::Shape {
                name: published.name("class_token")?,
                expected: vec![1, 1, width.next_multiple_of(HEAD_WIDTH).max(HEAD_WIDTH)],
                found: class_token.shape.clone(),
            });
        }
        Ok(Self {
            width,
            depth: (0..weights.arrays.len())
                .take_while(|&block| published.has(block))
                .count(),
            heads: width / HEAD_WIDTH,
            hidden: inner.shape.first().copied().unwrap_or(0),
            patch: kernel.shape.last().copied().unwrap_or(0),
        })
    }

    /// A network without knowledge, for [`Teacher::load`] to fill.
    pub fn init(&self, init: &Init) -> Teacher {
        let &Self {
            width,
            depth,
            heads,
            hidden,
            patch,
        } = self;
        let dense = |inputs: usize, outputs: usize| Dense::constant(inputs, outputs, 0.0, init);
        Teacher {
            embed: dense(CHANNELS * patch * patch, width),
            class_token: init.constant([1, 1, width], 0.0),
            storage_tokens: init.constant([1, STORAGE_TOKENS, width], 0.0),
            blocks: (0..depth)
                .map(|_| TeacherBlock {
                    norm1: Norm::new(width, init),
                    qkv: dense(width, 3 * width),
                    proj: dense(width, width),
                    scale1: init.constant([width], 1.0),
                    norm2: Norm::new(width, init),
                    inner: dense(width, hidden),
                    outer: dense(hidden, width),
                    scale2: init.constant([width], 1.0),
                })
                .collect(),
            norm: Norm::new(width, init),
            heads,
            patch,
        }
    }
}

impl Teacher {
    /// Width of its features.
    pub fn width(&self) -> usize {
        let [width] = self.norm.weight.dims();
        width
    }

    /// Side of the patches it sees.
    pub fn patch(&self) -> usize {
        self.patch
    }

    /// A teacher with published weights, under the names of the original, of Hugging Face's library or of timm's.
    ///
    /// What the file holds besides (rotary periods, masks, the token of masked patches, the norm of local crops) is
    /// passed over, but a block more than the configuration says is an error.
    pub fn load(
        weights: &Weights,
        config: &TeacherConfig,
        device: &Device,
    ) -> Result<Self, WeightsError> {
        let published = Published::new(weights);
        if published.has(config.depth) {
            return Err(WeightsError::Surplus {
                name: published.block(config.depth),
            });
        }
        let device = device.clone().without_autodiff();
        let blank = config.init(&Init::new(0, &device));
        let teacher = fill(blank, |path, shape| {
            Ok(Array {
                shape: shape.to_vec(),
                values: published.parameter(path, shape)?,
            })
        })?;
        Ok(teacher.no_grad())
    }

    /// Features of images `[batch, 3, height, width]` from [`prepare`], whose sides are multiples of the patch's.
    ///
    /// They are constants to a gradient, on whatever device the images are.
    pub fn forward(&self, images: Tensor<4>, precision: Precision) -> TeacherFeatures {
        let images = images.without_autodiff();
        let device = images.device();
        let stream = images.dtype();
        let trunk = precision.trunk(stream);
        let [batch, channels, height, width] = images.dims();
        let (rows, columns) = (height / self.patch, width / self.patch);
        let (count, pixels) = (rows * columns, self.patch * self.patch);
        let planes = images.reshape([batch * channels, height, width]);
        let patches = split_patches(planes, self.patch)
            .reshape([batch, channels, count, pixels])
            .swap_dims(1, 2)
            .reshape([batch, count, channels * pixels]);

        let patches = self.embed.forward(patches);
        let [_, _, width] = patches.dims();
        let repeated = |tokens: &Param<Tensor<3>>| -> Tensor<3> {
            let tokens = tokens.val().cast(stream);
            let [_, count, _] = tokens.dims();
            tokens.expand([batch, count, width])
        };
        let tokens = vec![
            repeated(&self.class_token),
            repeated(&self.storage_tokens),
            patches,
        ];
        let rotary = Rotary::new(rows, columns, width / self.heads, &device, stream);
        let x = self.blocks.iter().fold(Tensor::cat(tokens, 1), |x, block| {
            block.forward(x, self.heads, &rotary, trunk)
        });
        let x = self.norm.forward(x);
        TeacherFeatures {
            class: x.clone().narrow(1, 0, 1).squeeze_dim::<2>(1),
            patches: x.narrow(1, 1 + STORAGE_TOKENS, count),
        }
    }
}

impl TeacherBlock {
    fn forward(&self, x: Tensor<3>, heads: usize, rotary: &Rotary, trunk: DType) -> Tensor<3> {
        let stream = x.dtype();
        let [batch, count, width] = x.dims();
        let scale =
            |factors: &Param<Tensor<1>>| -> Tensor<3> { factors.val().cast(stream).unsqueeze() };
        let qkv = self
            .qkv
            .forward(self.norm1.forward(x.clone()).cast(trunk))
            .reshape([batch, count, 3 * heads, width / heads])
            .swap_dims(1, 2);
        let turned = rotary.turn(qkv.clone().narrow(1, 0, 2 * heads));
        let attended = attend(
            turned.clone().narrow(1, 0, heads),
            turned.narrow(1, heads, heads),
            qkv.narrow(1, 2 * heads, heads),
        );
        let mixed = self.proj.forward(join_heads(attended)).cast(stream);
        let x = x + mixed * scale(&self.scale1);

        let normed = self.norm2.forward(x.clone()).cast(trunk);
        let hidden = gelu(self.inner.forward(normed));
        x + self.outer.forward(hidden).cast(stream) * scale(&self.scale2)
    }
}

/// Rotary positions: number `k` of a head's first half turns with number `k` of its second, by an angle of the row in
/// the first quarter and of the column in the second.
struct Rotary {
    cosines: Tensor<4>,
    sines: Tensor<4>,
}

impl Rotary {
    fn new(rows: usize, columns: usize, width: usize, device: &Device, dtype: DType) -> Self {
        let quarter = width / 4;
        let frequencies: Vec<f64> = (0..quarter)
            .map(|index| TAU / ROTARY_BASE.powf(index as f64 / quarter as f64))
            .collect();
        // The tokens before the patches do not turn.
        let mut angles = vec![0.0; (1 + STORAGE_TOKENS) * 2 * quarter];
        let across = pixel_positions(columns);
        for y in pixel_positions(rows) {
            for &x in &across {
                for position in [y, x] {
                    angles.extend(frequencies.iter().map(|frequency| position * frequency));
                }
            }
        }
        let count = 1 + STORAGE_TOKENS + rows * columns;
        let table = |function: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&angle| function(angle) as f32).collect();
            let data = TensorData::new(values, [1, 1, count, 2 * quarter]);
            Tensor::<4>::from_data(data, device).cast(dtype)
        };
        Self {
            cosines: table(f64::cos),
            sines: table(f64::sin),
        }
    }

    /// Turns queries or keys `[batch, heads, count, width]`, in the precision of the tables.
    fn turn(&self, x: Tensor<4>) -> Tensor<4> {
        let dtype = x.dtype();
        let x = x.cast(self.cosines.dtype());
        let [_, _, _, width] = x.dims();
        let half = width / 2;
        let first = x.clone().narrow(3, 0, half);
        let second = x.narrow(3, half, half);
        let turned = vec![
            first.clone() * self.cosines.clone() - second.clone() * self.sines.clone(),
            second * self.cosines.clone() + first * self.sines.clone(),
        ];
        Tensor::cat(turned, 3).cast(dtype)
    }
}

/// In whose words the arrays of a file are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Original,
    HuggingFace,
    Timm,
}

/// A parameter's path here and its names, in the order of [`Names`].
type Row = (&'static str, [&'static str; 3]);

/// The parameters outside the blocks.
const STEM: [Row; 4] = [
    (
        "class_token",
        ["cls_token", "embeddings.cls_token", "cls_token"],
    ),
    (
        "storage_tokens",
        ["storage_tokens", "embeddings.register_tokens", "reg_token"],
    ),
    (
        "embed",
        [
            "patch_embed.proj",
            "embeddings.patch_embeddings",
            "patch_embed.proj",
        ],
    ),
    ("norm", ["norm", "norm", "norm"]),
];

/// The parameters of a block, except those of queries, keys and values.
const BLOCK: [Row; 7] = [
    ("norm1", ["norm1", "norm1", "norm1"]),
    ("proj", ["attn.proj", "attention.o_proj", "attn.proj"]),
    ("scale1", ["ls1.gamma", "layer_scale1.lambda1", "gamma_1"]),
    ("norm2", ["norm2", "norm2", "norm2"]),
    ("inner", ["mlp.fc1", "mlp.up_proj", "mlp.fc1"]),
    ("outer", ["mlp.fc2", "mlp.down_proj", "mlp.fc2"]),
    ("scale2", ["ls2.gamma", "layer_scale2.lambda1", "gamma_2"]),
];

/// The arrays of a file and how to find them.
struct Published<'a> {
    names: Names,
    arrays: BTreeMap<&'a str, &'a Array>,
}

impl<'a> Published<'a> {
    fn new(weights: &'a Weights) -> Self {
        let arrays: BTreeMap<&str, &Array> = weights
            .arrays
            .iter()
            // Hugging Face's library puts this before some names or all of them, depending on its version.
            .map(|(name, array)| (name.trim_start_matches("model."), array))
            .collect();
        let names = if arrays.contains_key("embeddings.cls_token") {
            Names::HuggingFace
        } else if arrays.contains_key("reg_token") {
            Names::Timm
        } else {
            Names::Original
        };
        Self { names, arrays }
    }

    /// The name of a block.
    fn block(&self, index: impl std::fmt::Display) -> String {
        match self.names {
            Names::HuggingFace => format!("layer.{index}"),
            Names::Original | Names::Timm => format!("blocks.{index}"),
        }
    }

    fn has(&self, block: usize) -> bool {
        let name = format!("{}.norm1.weight", self.block(block));
        self.arrays.contains_key(name.as_str())
    }

    /// The file's name for a parameter.
    fn name(&self, path: &str) -> Result<String, WeightsError> {
        let find = |table: &[Row], path: &str| {
            let (name, rest) = table.iter().find_map(|&(ours, names)| {
                Some((names[self.names as usize], path.strip_prefix(ours)?))
            })?;
            Some(format!("{name}{rest}"))
        };
        let name = match in_block(path) {
            Some((block, path)) => {
                find(&BLOCK, path).map(|name| format!("{}.{name}", self.block(block)))
            }
            None => find(&STEM, path),
        };
        name.ok_or_else(|| WeightsError::Missing {
            name: path.to_owned(),
        })
    }

    fn array(&self, name: &str) -> Result<&'a Array, WeightsError> {
        self.arrays
            .get(name)
            .copied()
            .ok_or_else(|| WeightsError::Missing {
                name: name.to_owned(),
            })
    }

    /// The array of a parameter.
    fn named(&self, path: &str) -> Result<&'a Array, WeightsError> {
        self.array(&self.name(path)?)
    }

    /// The numbers of an array of a shape, up to the grouping of all axes but the first.
    fn values(&self, name: &str, shape: &[usize]) -> Result<&'a [f32], WeightsError> {
        let array = self.array(name)?;
        let size: usize = shape.iter().product();
        if array.shape.first() != shape.first() || array.values.len() != size {
            return Err(WeightsError::Shape {
                name: name.to_owned(),
                expected: shape.to_vec(),
                found: array.shape.clone(),
            });
        }
        Ok(&array.values)
    }

    /// The numbers of a parameter, arranged as they are here.
    fn parameter(&self, path: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsError> {
        match (in_block(path), shape) {
            (Some((block, "qkv.weight")), &[width, outputs]) => {
                Ok(transposed(&self.qkv_weight(block, width)?, width, outputs))
            }
            (Some((block, "qkv.bias")), &[outputs]) => self.qkv_bias(block, outputs / 3),
            (_, &[inputs, outputs]) => {
                let values = self.values(&self.name(path)?, &[outputs, inputs])?;
                Ok(transposed(values, inputs, outputs))
            }
            _ => Ok(self.values(&self.name(path)?, shape)?.to_vec()),
        }
    }

    /// The weights `[3 · width, width]` of queries, keys and values.
    fn qkv_weight(&self, block: &str, width: usize) -> Result<Vec<f32>, WeightsError> {
        let block = self.block(block);
        if self.names != Names::HuggingFace {
            let name = format!("{block}.attn.qkv.weight");
            return Ok(self.values(&name, &[3 * width, width])?.to_vec());
        }
        let mut weight = Vec::with_capacity(3 * width * width);
        for part in ["q", "k", "v"] {
            let name = format!("{block}.attention.{part}_proj.weight");
            weight.extend_from_slice(self.values(&name, &[width, width])?);
        }
        Ok(weight)
    }

    /// The bias of queries, keys and values; the network was trained with 0 for the keys, whatever the file holds.
    fn qkv_bias(&self, block: &str, width: usize) -> Result<Vec<f32>, WeightsError> {
        let block = self.block(block);
        let of = |name: String| self.values(&name, &[width]);
        let (query, value) = match self.names {
            Names::Original => {
                let bias = self.values(&format!("{block}.attn.qkv.bias"), &[3 * width])?;
                (&bias[..width], &bias[2 * width..])
            }
            Names::HuggingFace => (
                of(format!("{block}.attention.q_proj.bias"))?,
                of(format!("{block}.attention.v_proj.bias"))?,
            ),
            Names::Timm => {
                let [query, value] = ["q", "v"].map(|part| format!("{block}.attn.{part}_bias"));
                // Timm also publishes variants without these biases.
                if [&query, &value]
                    .iter()
                    .all(|name| !self.arrays.contains_key(name.as_str()))
                {
                    return Ok(vec![0.0; 3 * width]);
                }
                (of(query)?, of(value)?)
            }
        };
        let key = vec![0.0; width];
        Ok([query, key.as_slice(), value].concat())
    }
}

/// A path inside a block as the block's number and the rest.
fn in_block(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("blocks.")?.split_once('.')
}

/// Weights `[outputs, inputs]` as `[inputs, outputs]`.
fn transposed(values: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    (0..inputs)
        .flat_map(|input| (0..outputs).map(move |output| values[output * inputs + input]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One head at all positions of a 3×3 grid, after the five tokens without a position.
    fn turned(values: [f32; 8]) -> Vec<Vec<f32>> {
        let device = Device::flex();
        let data = TensorData::new(values.repeat(14), [1, 1, 14, 8]);
        Rotary::new(3, 3, 8, &device, DType::F32)
            .turn(Tensor::from_data(data, &device))
            .into_data()
            .try_to_vec::<f32>()
            .unwrap()
            .chunks(8)
            .map(<[f32]>::to_vec)
            .collect()
    }

    #[test]
    fn pairs_are_half_a_head_apart_and_only_patches_turn() {
        let x = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let rows = turned(x);
        for token in &rows[..5] {
            assert_eq!(token, &x);
        }
        // The centre of the first of three rows is at −2/3; the first period is 1.
        let (sine, cosine) = (-2.0 / 3.0 * TAU).sin_cos();
        for patch in &rows[5..8] {
            assert!((f64::from(patch[0]) - cosine).abs() < 1e-6);
            assert!((f64::from(patch[4]) - sine).abs() < 1e-6);
        }
        assert_eq!(rows[8], x);
    }

    #[test]
    fn products_depend_on_offsets_alone() {
        let query = turned([0.3, -1.0, 0.5, 0.2, 0.9, 0.1, -0.4, 0.7]);
        let key = turned([-0.2, 0.4, 1.0, 0.6, 0.3, -0.8, 0.5, 0.1]);
        let dot =
            |a: usize, b: usize| -> f32 { query[a].iter().zip(&key[b]).map(|(x, y)| x * y).sum() };
        // Patch (r, c) is token 5 + 3r + c; both pairs are one row and one column apart.
        assert!((dot(5, 9) - dot(9, 13)).abs() < 1e-5);
        assert!((dot(5, 9) - dot(5, 6)).abs() > 1e-3);
    }
}
