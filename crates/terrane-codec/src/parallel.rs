//! Work that several threads share, with results in their order.

use std::ops::Range;

use crate::Error;

/// What a function makes of every number, by some threads.
pub fn in_parallel<T: Send>(
    numbers: Range<usize>,
    jobs: usize,
    work: &(dyn Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let all: Vec<usize> = numbers.collect();
    let share = all.len().div_ceil(jobs.max(1)).max(1);
    let parts: Vec<Result<Vec<T>, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(|&number| work(number)).collect()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(Error::Stopped)))
            .collect()
    });
    let mut made = Vec::with_capacity(all.len());
    for part in parts {
        made.extend(part?);
    }
    Ok(made)
}

/// Values of some rows of a raster, made block by block, each about a tile wide, so that few tiles are at hand at a
/// time; `value` is given the column and the row.
pub fn by_blocks(
    width: usize,
    rows: Range<usize>,
    wide: usize,
    jobs: usize,
    value: &(dyn Fn(usize, usize) -> Result<f64, Error> + Sync),
) -> Result<Vec<f64>, Error> {
    let columns = |index: usize| index * wide..((index + 1) * wide).min(width);
    let blocks = in_parallel(0..width.div_ceil(wide), jobs, &|index| {
        let mut values = Vec::with_capacity(columns(index).len() * rows.len());
        for row in rows.clone() {
            for column in columns(index) {
                values.push(value(column, row)?);
            }
        }
        Ok(values)
    })?;
    let mut values = vec![f64::NAN; width * rows.len()];
    for (index, block) in blocks.iter().enumerate() {
        let columns = columns(index);
        for (row, part) in block.chunks(columns.len()).enumerate() {
            values[row * width + columns.start..][..columns.len()].copy_from_slice(part);
        }
    }
    Ok(values)
}
