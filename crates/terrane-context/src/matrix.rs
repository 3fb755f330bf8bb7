//! A rectangle of numbers, row by row.

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

    /// The number at a column and row, or at the nearest ones inside.
    pub fn clamped(&self, column: isize, row: isize) -> T {
        let column = column.clamp(0, self.width as isize - 1) as usize;
        let row = row.clamp(0, self.height as isize - 1) as usize;
        self.values[row * self.width + column]
    }
}
