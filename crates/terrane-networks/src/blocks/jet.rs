//! A value with its first and second derivatives along rows and columns.

use burn::tensor::Tensor;

use crate::wave::{cosine, sine};

/// Derivatives up to the second order; every field has the shape of the value.
#[derive(Debug, Clone)]
pub struct Jet<const D: usize> {
    /// The value.
    pub value: Tensor<D>,
    /// ∂/∂row.
    pub row: Tensor<D>,
    /// ∂/∂column.
    pub column: Tensor<D>,
    /// ∂²/∂row².
    pub row_row: Tensor<D>,
    /// ∂²/∂row∂column.
    pub row_column: Tensor<D>,
    /// ∂²/∂column².
    pub column_column: Tensor<D>,
}

impl<const D: usize> Jet<D> {
    /// Points `[…, 2]` as functions of themselves: the first derivatives are the unit vectors.
    pub fn identity(points: Tensor<D>) -> Self {
        let zero = points.zeros_like();
        let ones = zero.clone().narrow(D - 1, 0, 1).add_scalar(1.0);
        let zeros = zero.clone().narrow(D - 1, 0, 1);
        Self {
            value: points,
            row: Tensor::cat(vec![ones.clone(), zeros.clone()], D - 1),
            column: Tensor::cat(vec![zeros, ones], D - 1),
            row_row: zero.clone(),
            row_column: zero.clone(),
            column_column: zero,
        }
    }

    /// Applies a linear map to every part.
    #[must_use]
    pub fn map<const E: usize>(self, map: impl Fn(Tensor<D>) -> Tensor<E>) -> Jet<E> {
        Jet {
            value: map(self.value),
            row: map(self.row),
            column: map(self.column),
            row_row: map(self.row_row),
            row_column: map(self.row_column),
            column_column: map(self.column_column),
        }
    }

    /// The same surface with derivatives per pixel, where a pixel is so much of the coordinates' unit.
    #[must_use]
    pub fn per_pixel(self, pixel: f64) -> Self {
        let square = pixel * pixel;
        Self {
            value: self.value,
            row: self.row.mul_scalar(pixel),
            column: self.column.mul_scalar(pixel),
            row_row: self.row_row.mul_scalar(square),
            row_column: self.row_column.mul_scalar(square),
            column_column: self.column_column.mul_scalar(square),
        }
    }

    /// The sine, by the chain rule.
    #[must_use]
    pub fn sin(self) -> Self {
        let (sine, cosine) = (sine(self.value.clone()), cosine(self.value));
        let second = |first: &Tensor<D>, other: &Tensor<D>, second: Tensor<D>| {
            cosine.clone() * second - sine.clone() * first.clone() * other.clone()
        };
        Self {
            row_row: second(&self.row, &self.row, self.row_row),
            row_column: second(&self.row, &self.column, self.row_column),
            column_column: second(&self.column, &self.column, self.column_column),
            row: cosine.clone() * self.row,
            column: cosine.clone() * self.column,
            value: sine,
        }
    }
}
