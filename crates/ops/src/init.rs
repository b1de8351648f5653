//! Draws initial values keyed by original ids, so that a node has the same values on every rank.

use burn::tensor::{DType, TensorData};
use burn_gnn_graph::Stream;
use rayon::prelude::*;

fn rows_of(
    ids: Option<&[u64]>,
    rows: usize,
    cols: usize,
    draw: impl Fn(u64, u64) -> f64 + Sync,
) -> TensorData {
    assert!(
        ids.is_none_or(|ids| ids.len() == rows),
        "`ids` must have {rows} entries (one per row), got {}",
        ids.map_or(0, <[u64]>::len)
    );
    let mut data = vec![0f64; rows * cols];
    if cols > 0 {
        data.par_chunks_exact_mut(cols).enumerate().for_each(|(r, row)| {
            let id = ids.map_or(r as u64, |ids| ids[r]);
            row.iter_mut().zip(0u64..).for_each(|(x, c)| *x = draw(id, c));
        });
    }
    TensorData::new(data, [rows, cols])
}

/// Uniform values in `[low, high)`, `[rows, cols]`. Entry `(r, c)` is a function of `(stream, ids[r], c)`; `None` stands
/// for ids `0..rows`. The data are f64 and convert to any element type.
///
/// # Panics
/// `ids` does not have `rows` entries.
///
/// ```
/// use burn_gnn_ops::{Stream, uniform_rows};
/// let stream = Stream::new(1, "embedding", 0);
/// let all = uniform_rows(stream, None, 10, 4, -1.0, 1.0).try_to_vec::<f64>().unwrap();
/// let part = uniform_rows(stream, Some(&[7]), 1, 4, -1.0, 1.0).try_to_vec::<f64>().unwrap();
/// assert_eq!(part, all[28..32]);
/// ```
#[track_caller]
pub fn uniform_rows(
    stream: Stream,
    ids: Option<&[u64]>,
    rows: usize,
    cols: usize,
    low: f64,
    high: f64,
) -> TensorData {
    rows_of(ids, rows, cols, |id, c| low + (high - low) * stream.uniform(id, c))
}

/// As [`uniform_rows`], normally distributed with the given mean and standard deviation.
///
/// # Panics
/// `ids` does not have `rows` entries.
#[track_caller]
pub fn normal_rows(
    stream: Stream,
    ids: Option<&[u64]>,
    rows: usize,
    cols: usize,
    mean: f64,
    std: f64,
) -> TensorData {
    rows_of(ids, rows, cols, |id, c| mean + std * stream.normal(id, c))
}

/// Glorot initialisation: values uniform in `±sqrt(6 / (fan_in + fan_out))` (Glorot and Bengio, AISTATS 2010). The
/// shape is treated as a matrix of `shape[0]` rows, and row `r` is keyed by `r`.
pub fn glorot_uniform<const D: usize>(
    stream: Stream,
    fan_in: usize,
    fan_out: usize,
    shape: [usize; D],
) -> TensorData {
    let bound = (6.0 / (fan_in + fan_out).max(1) as f64).sqrt();
    shaped(shape, |rows, cols| uniform_rows(stream, None, rows, cols, -bound, bound))
}

/// Normally distributed values of any shape, keyed as in [`glorot_uniform`].
pub fn normal<const D: usize>(
    stream: Stream,
    mean: f64,
    std: f64,
    shape: [usize; D],
) -> TensorData {
    shaped(shape, |rows, cols| normal_rows(stream, None, rows, cols, mean, std))
}

fn shaped<const D: usize>(
    shape: [usize; D],
    make: impl FnOnce(usize, usize) -> TensorData,
) -> TensorData {
    let rows = shape.first().copied().unwrap_or(1);
    let data = make(rows, shape.iter().skip(1).product());
    TensorData::from_bytes(data.bytes().clone(), shape, DType::F64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_moments() {
        let s = Stream::new(3, "w", 0);
        let w = glorot_uniform(s, 200, 100, [200, 10, 10]);
        assert_eq!(w.shape().to_vec(), [200, 10, 10]);
        let bound = (6.0f64 / 300.0).sqrt();
        let w = w.try_to_vec::<f64>().unwrap();
        assert!(w.iter().all(|x| x.abs() <= bound) && w.iter().any(|x| x.abs() > 0.99 * bound));
        let z = normal(s, 2.0, 0.5, [100, 100]).try_to_vec::<f64>().unwrap();
        let mean = z.iter().sum::<f64>() / z.len() as f64;
        let var = z.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / z.len() as f64;
        assert!((mean - 2.0).abs() < 0.02 && (var - 0.25).abs() < 0.01, "{mean} {var}");
        assert_eq!(uniform_rows(s, None, 3, 0, 0.0, 1.0).shape().to_vec(), [3, 0]);
    }

    #[test]
    #[should_panic(expected = "`ids` must have 2 entries (one per row), got 1")]
    fn wrong_number_of_ids() {
        let _ = uniform_rows(Stream::new(0, "w", 0), Some(&[1]), 2, 1, 0.0, 1.0);
    }
}
