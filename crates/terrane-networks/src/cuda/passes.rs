//! The passes between the matrix products of a transformer on LibTorch's tensors, by our kernels or, in tests, by their twins: see
//! `trunk.cu`.

use std::sync::Arc;

use burn::backend::LibTorch;
use burn::backend::libtorch::TchTensor;
use burn::tensor::{DType, Tensor};
use tch::Kind;

use super::{Argument, CudaError, Program, Source};
use crate::blocks::{Dense, Norm};

const SOURCE: Source = Source {
    name: "trunk",
    text: include_str!("trunk.cu"),
};
/// Threads where a block takes no row.
pub(super) const THREADS: u32 = 256;
/// Blocks that fill the largest card: more would leave more sums to be added in the end.
const BLOCKS: usize = 528;
/// Bands of rows whose sums of columns are taken apart.
const BANDS: usize = 132;
/// Columns that a block of `column_sums` takes.
const BAND: usize = 512;

#[cfg(test)]
thread_local! {
    /// Whether this thread computes by the twins of the kernels.
    pub(super) static IS_TWIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

pub(super) type Raw = tch::Tensor;

/// The precision of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trunk {
    Full,
    Bf16,
}

impl Trunk {
    pub(super) fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F32 => Some(Self::Full),
            DType::BF16 => Some(Self::Bf16),
            _ => None,
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Full => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
        }
    }

    fn is_half(self) -> usize {
        usize::from(self == Self::Bf16)
    }
}

/// Kernels of one precision on a card.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    pub(super) trunk: Trunk,
    card: Option<Card>,
}

/// Where kernels run; tests are without one, and LibTorch's own operations compute the same: the plain twin.
#[derive(Debug, Clone)]
pub(super) struct Card {
    ordinal: usize,
    program: Arc<Program>,
}

impl Kernels {
    pub(super) fn of<const D: usize>(x: &Tensor<D>, trunk: DType) -> Option<Self> {
        let trunk = Trunk::of(trunk)?;
        if x.dtype() != DType::F32 {
            return None;
        }
        #[cfg(test)]
        if IS_TWIN.get() {
            return Some(Self { trunk, card: None });
        }
        let ordinal = super::ordinal(x).ok()?;
        let program = Program::on(ordinal, SOURCE, &[("HALF", trunk.is_half())]).ok()?;
        let card = Some(Card { ordinal, program });
        Some(Self { trunk, card })
    }

    /// The kernels with some numbers defined, where there is a card.
    pub(super) fn program(
        &self,
        defined: &[(&'static str, usize)],
    ) -> Result<Option<Arc<Program>>, CudaError> {
        let Some(card) = &self.card else {
            return Ok(None);
        };
        let defined = [&[("HALF", self.trunk.is_half())], defined].concat();
        Program::on(card.ordinal, SOURCE, &defined).map(Some)
    }

    /// Kernels for rows of a width.
    pub(super) fn rows(&self, width: usize) -> Result<Rows, CudaError> {
        if !width.is_multiple_of(128) || width > 4096 || width == 0 {
            return Err(CudaError::Sizes(format!(
                "rows of {width}: they are multiples of 128 up to 4096 wide"
            )));
        }
        Ok(Rows {
            program: self.program(&[("WIDTH", width)])?,
            trunk: self.trunk,
            width,
        })
    }

    /// `factor · stream + branch`.
    pub(super) fn add(&self, stream: &Raw, branch: &Raw, factor: f64) -> Raw {
        let Some(card) = &self.card else {
            return stream * factor + branch;
        };
        let sum = stream.empty_like();
        let count = sum.numel();
        assert!(count.is_multiple_of(4), "{count} numbers are no fours");
        let fours = count / 4;
        card.program.launch(
            "add",
            fours.div_ceil(THREADS as usize).clamp(1, 16 * BLOCKS),
            (THREADS, 1),
            &[
                floats(stream, count),
                numbers(branch, self.trunk, count),
                Argument::Long(fours as i64),
                Argument::Float(factor as f32),
                floats(&sum, count),
            ],
        );
        sum
    }

    /// `x · weight + bias`, with the weight as it was multiplied.
    pub(super) fn linear(&self, x: &Raw, dense: &Weights) -> (Raw, Raw) {
        let weight = dense.weight.to_kind(self.trunk.kind());
        let y = dense.bias.to_kind(self.trunk.kind()).addmm(x, &weight);
        (y, weight)
    }

    /// Back through [`Kernels::linear`]: gradients by input, weight and bias.
    pub(super) fn linear_back(&self, by_y: &Raw, x: &Raw, weight: &Raw) -> [Raw; 3] {
        let [by_weight, by_bias] = self.weights_back(by_y, x);
        [by_y.mm(&weight.tr()), by_weight, by_bias]
    }

    pub(super) fn weights_back(&self, by_y: &Raw, x: &Raw) -> [Raw; 2] {
        [self.transposed_product(x, by_y), self.column_sums(by_y)]
    }

    /// `xᵀ · y` as 32-bit floats.
    fn transposed_product(&self, x: &Raw, y: &Raw) -> Raw {
        match (self.trunk, &self.card) {
            (Trunk::Bf16, Some(_)) => x.tr().mm_dtype(y, Kind::Float),
            _ => x.to_kind(Kind::Float).tr().mm(&y.to_kind(Kind::Float)),
        }
    }

    fn column_sums(&self, x: &Raw) -> Raw {
        let Some(card) = &self.card else {
            return x.sum_dim_intlist(&[0_i64][..], false, Kind::Float);
        };
        let (rows, width) = shape(x);
        assert!(width.is_multiple_of(4), "{width} columns are no fours");
        let across = width.div_ceil(BAND);
        let bands = BANDS.min(rows.div_ceil(8));
        let parts = Raw::empty([bands as i64, width as i64], (Kind::Float, x.device()));
        card.program.launch(
            "column_sums",
            across * bands,
            ((BAND / 4) as u32, 1),
            &[
                numbers(x, self.trunk, rows * width),
                Argument::Long(rows as i64),
                Argument::Long(width as i64),
                floats(&parts, bands * width),
            ],
        );
        parts.sum_dim_intlist(&[0_i64][..], false, Kind::Float)
    }
}

/// Kernels for rows of one width.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    program: Option<Arc<Program>>,
    pub(super) trunk: Trunk,
    pub(super) width: usize,
}

/// Gradients by the scale and the shift of a normalisation.
pub(super) struct NormBack {
    pub(super) scale: Raw,
    pub(super) shift: Raw,
}

impl Rows {
    fn launch(&self, program: &Program, name: &'static str, rows: usize, arguments: &[Argument]) {
        let threads = (self.width / 4) as u32;
        program.launch(name, rows.min(BLOCKS), (threads, 1), arguments);
    }

    fn moments(rows: usize, like: &Raw) -> Raw {
        Raw::empty([rows as i64, 2], (Kind::Float, like.device()))
    }

    /// `factor · x` normalised, and mean and deviation of every row.
    pub(super) fn norm(&self, x: &Raw, norm: &Weights, factor: f64) -> (Raw, Raw) {
        let Some(program) = &self.program else {
            return self.plain_norm(&(x * factor), norm);
        };
        let (rows, width) = shape(x);
        let y = Raw::empty([rows as i64, width as i64], (self.trunk.kind(), x.device()));
        let moments = Self::moments(rows, x);
        self.launch(
            program,
            "row_norm",
            rows,
            &[
                floats(x, rows * self.width),
                floats(&norm.weight, self.width),
                floats(&norm.bias, self.width),
                Argument::Long(rows as i64),
                Argument::Float(factor as f32),
                numbers(&y, self.trunk, rows * self.width),
                floats(&moments, 2 * rows),
            ],
        );
        (y, moments)
    }

    /// Back through [`Rows::norm`], with the gradient that comes along the stream.
    pub(super) fn norm_back(
        &self,
        by_y: &Raw,
        x: &Raw,
        moments: &Raw,
        scale: &Raw,
        stream: Option<&Raw>,
        factor: f64,
    ) -> (Raw, NormBack) {
        let Some(program) = &self.program else {
            let (by_x, by_norm) = Self::plain_norm_back(by_y, &(x * factor), moments, scale);
            let stream = stream.map_or_else(|| by_x.zeros_like(), Raw::shallow_clone);
            return ((stream + by_x) * factor, by_norm);
        };
        let (rows, _) = shape(x);
        let by_x = x.empty_like();
        let parts = self.parts(rows, x);
        self.launch(
            program,
            "row_norm_back",
            rows,
            &[
                numbers(by_y, self.trunk, rows * self.width),
                floats(x, rows * self.width),
                floats(moments, 2 * rows),
                floats(scale, self.width),
                stream.map_or(Argument::Nothing, |stream| {
                    floats(stream, rows * self.width)
                }),
                Argument::Long(rows as i64),
                Argument::Float(factor as f32),
                floats(&by_x, rows * self.width),
                floats(&parts, parts.numel()),
            ],
        );
        (by_x, Self::summed(&parts))
    }

    pub(super) fn gated_norm(&self, gate: &Raw, through: &Raw, norm: &Weights) -> (Raw, Raw) {
        let Some(program) = &self.program else {
            return self.plain_norm(&gated(gate, through), norm);
        };
        let (rows, _) = shape(gate);
        let y = gate.empty_like();
        let moments = Self::moments(rows, gate);
        let count = rows * self.width;
        self.launch(
            program,
            "gated_norm",
            rows,
            &[
                numbers(gate, self.trunk, count),
                numbers(through, self.trunk, count),
                floats(&norm.weight, self.width),
                floats(&norm.bias, self.width),
                Argument::Long(rows as i64),
                numbers(&y, self.trunk, count),
                floats(&moments, 2 * rows),
            ],
        );
        (y, moments)
    }

    /// Back through [`Rows::gated_norm`]; gate and what goes through are written over by their gradients.
    pub(super) fn gated_norm_back(
        &self,
        by_y: &Raw,
        gate: &Raw,
        through: &Raw,
        moments: &Raw,
        scale: &Raw,
    ) -> NormBack {
        let Some(program) = &self.program else {
            let (by_gated, by_norm) =
                Self::plain_norm_back(by_y, &gated(gate, through), moments, scale);
            let (wide_gate, wide_through) =
                (gate.to_kind(Kind::Float), through.to_kind(Kind::Float));
            let open = wide_gate.sigmoid();
            let silu = &wide_gate * &open;
            let slope = &open + &silu * (1.0 - &open);
            gate.shallow_clone()
                .copy_(&(&by_gated * wide_through * slope));
            through.shallow_clone().copy_(&(by_gated * silu));
            return by_norm;
        };
        let (rows, _) = shape(gate);
        let count = rows * self.width;
        let parts = self.parts(rows, gate);
        self.launch(
            program,
            "gated_norm_back",
            rows,
            &[
                numbers(by_y, self.trunk, count),
                numbers(gate, self.trunk, count),
                numbers(through, self.trunk, count),
                floats(moments, 2 * rows),
                floats(scale, self.width),
                Argument::Long(rows as i64),
                floats(&parts, parts.numel()),
            ],
        );
        Self::summed(&parts)
    }

    /// The twin of `row_norm`.
    fn plain_norm(&self, x: &Raw, norm: &Weights) -> (Raw, Raw) {
        let x = x.to_kind(Kind::Float);
        let mean = x.mean_dim(&[1_i64][..], true, Kind::Float);
        let x = x - &mean;
        let over = (x.square().mean_dim(&[1_i64][..], true, Kind::Float) + 1e-5).rsqrt();
        let y = &x * &over * &norm.weight + &norm.bias;
        (y.to_kind(self.trunk.kind()), Raw::cat(&[mean, over], 1))
    }

    /// The twin of `row_norm_back`, without the stream.
    fn plain_norm_back(by_y: &Raw, x: &Raw, moments: &Raw, scale: &Raw) -> (Raw, NormBack) {
        let g = by_y.to_kind(Kind::Float);
        let (mean, over) = (moments.narrow(1, 0, 1), moments.narrow(1, 1, 1));
        let x = (x.to_kind(Kind::Float) - mean) * &over;
        let by_norm = NormBack {
            scale: (&g * &x).sum_dim_intlist(&[0_i64][..], false, Kind::Float),
            shift: g.sum_dim_intlist(&[0_i64][..], false, Kind::Float),
        };
        let g = g * scale;
        let along = (&g * &x).mean_dim(&[1_i64][..], true, Kind::Float);
        let level = g.mean_dim(&[1_i64][..], true, Kind::Float);
        ((g - level - x * along) * over, by_norm)
    }

    fn parts(&self, rows: usize, like: &Raw) -> Raw {
        let blocks = rows.min(BLOCKS) as i64;
        Raw::empty([blocks, 2, self.width as i64], (Kind::Float, like.device()))
    }

    fn summed(parts: &Raw) -> NormBack {
        let sums = parts.sum_dim_intlist(&[0_i64][..], false, Kind::Float);
        NormBack {
            scale: sums.select(0, 0),
            shift: sums.select(0, 1),
        }
    }
}

/// A layer's two arrays.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) weight: Raw,
    pub(super) bias: Raw,
}

impl Weights {
    pub(super) fn of_dense(dense: &Dense) -> Option<Self> {
        Some(Self {
            weight: raw(&dense.weight.val())?,
            bias: raw(&dense.bias.as_ref()?.val())?,
        })
    }

    pub(super) fn of_norm(norm: &Norm) -> Option<Self> {
        Some(Self {
            weight: raw(&norm.weight.val())?,
            bias: raw(&norm.bias.val())?,
        })
    }

    pub(super) fn detach(&self) -> Self {
        Self {
            weight: self.weight.detach(),
            bias: self.bias.detach(),
        }
    }
}

/// `silu(gate) · through` in full precision.
fn gated(gate: &Raw, through: &Raw) -> Raw {
    gate.to_kind(Kind::Float).silu() * through.to_kind(Kind::Float)
}

fn shape(x: &Raw) -> (usize, usize) {
    let size = x.size();
    (size[0] as usize, size[1] as usize)
}

/// The tensor behind one of Burn's, where it is LibTorch's.
pub(super) fn raw<const D: usize>(tensor: &Tensor<D>) -> Option<Raw> {
    let primitive = tensor.clone().try_into_primitive::<LibTorch>().ok()?;
    Some(primitive.tensor)
}

pub(super) fn wrapped<const D: usize>(tensor: Raw) -> Tensor<D> {
    Tensor::from_primitive::<LibTorch>(TchTensor::new(tensor))
}

/// The address of so many 32-bit floats.
pub(super) fn floats(tensor: &Raw, count: usize) -> Argument {
    super::address_of(tensor, Kind::Float, count)
}

/// The address of so many numbers of a trunk.
pub(super) fn numbers(tensor: &Raw, trunk: Trunk, count: usize) -> Argument {
    super::address_of(tensor, trunk.kind(), count)
}

/// The address of numbers of a trunk that lie apart, with those of the last axis side by side.
pub(super) fn strided(tensor: &Raw, trunk: Trunk, shape: [usize; 4]) -> Argument {
    assert!(
        tensor.kind() == trunk.kind()
            && tensor.size() == shape.map(|side| side as i64)
            && tensor.stride()[3] == 1,
        "a kernel needs numbers of {shape:?}, not {tensor:?}"
    );
    super::array(tensor)
}
