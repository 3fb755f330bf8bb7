//! A rectangle of numbers, row by row.

use crate::grid::Area;

/// A rectangle of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Numbers, row by row.
    pub values: Vec<T>,
}

impl<T: Copy + Default> Matrix<T> {
    /// A rectangle of zeros.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            values: vec![T::default(); width * height],
        }
    }

    /// A rectangle of given numbers; `None` where there are not as many as pixels.
    pub fn from_values(width: usize, height: usize, values: Vec<T>) -> Option<Self> {
        (values.len() == width * height).then_some(Self {
            width,
            height,
            values,
        })
    }

    /// Every number made another.
    pub fn map<U>(&self, make: impl Fn(T) -> U) -> Matrix<U> {
        Matrix {
            width: self.width,
            height: self.height,
            values: self.values.iter().map(|&value| make(value)).collect(),
        }
    }

    /// A row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.width..][..self.width]
    }

    /// A row to write to.
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.values[row * self.width..][..self.width]
    }

    /// A part, which must lie inside.
    #[must_use]
    pub fn cropped(&self, area: Area) -> Self {
        let mut values = Vec::with_capacity(area.width * area.height);
        for row in area.row..area.row + area.height {
            values.extend_from_slice(&self.row(row)[area.column..area.column + area.width]);
        }
        Self {
            width: area.width,
            height: area.height,
            values,
        }
    }

    /// Puts another rectangle at a column and row; it must fit.
    pub fn paste(&mut self, part: &Self, column: usize, row: usize) {
        for index in 0..part.height {
            let line = &mut self.row_mut(row + index)[column..column + part.width];
            line.copy_from_slice(part.row(index));
        }
    }

    /// The number at a column and row, or at the nearest ones inside.
    pub fn clamped(&self, column: isize, row: isize) -> T {
        let column = column.clamp(0, self.width as isize - 1) as usize;
        let row = row.clamp(0, self.height as isize - 1) as usize;
        self.values[row * self.width + column]
    }
}
