//! Computes loss and accuracy of labelled nodes.

use std::borrow::Cow;
use std::ops::RangeFull;

use burn::tensor::{DType, Tensor};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{LossReduction, cross_entropy_rows};

use crate::metrics::rows::Rows;

/// Rows of a loss: a list of them, or `..` for all.
pub trait SeedRows {
    /// The rows, of `all` that there are.
    fn rows(&self, all: usize) -> Cow<'_, [u32]>;
}

impl SeedRows for [u32] {
    fn rows(&self, _: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self)
    }
}
impl SeedRows for Vec<u32> {
    fn rows(&self, _: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self)
    }
}
impl<const N: usize> SeedRows for [u32; N] {
    fn rows(&self, _: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self)
    }
}
impl SeedRows for RangeFull {
    fn rows(&self, all: usize) -> Cow<'_, [u32]> {
        Cow::Owned((0..all as u32).collect())
    }
}
impl<S: SeedRows + ?Sized> SeedRows for &S {
    fn rows(&self, all: usize) -> Cow<'_, [u32]> {
        (**self).rows(all)
    }
}

/// Mean cross entropy of some nodes, `-1/n Σ_i log softmax(logits[seeds[i]])[labels[seeds[i]]]`, shape `[1]`.
///
/// # Shapes
/// - `logits`: `[rows, num_classes]`, one row per node: of a graph all nodes, of a mini-batch the output nodes
/// - `labels`: the class of each row; rows without a label (-1) may not be among the seeds
/// - `seeds`: the rows to learn from: the ids of the training nodes, or `..` for all rows, in a mini-batch whose
///   outputs are those of its seeds
///
/// # Panics
/// Not one label per row, a seed out of range or without a label, a label that is no class, no seeds.
///
/// # Cost
/// One pass over the rows of the seeds; the sum has one order for any number of threads.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::cross_entropy;
/// let logits = Tensor::<2>::from_data([[0.0, 0.0], [9.0, 9.0], [5.0, 5.0]], &Device::flex());
/// let loss = cross_entropy(logits, &[0, -1, 1], &[0, 2]).into_scalar::<f32>();
/// assert!((loss - 2f32.ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn cross_entropy(logits: Tensor<2>, labels: &[i64], seeds: impl SeedRows) -> Tensor<1> {
    let rows = seed_rows("cross_entropy", logits.dims(), labels, seeds);
    cross_entropy_rows(logits, &rows.index, &rows.labels, LossReduction::Mean)
}

/// Class of each row of `logits: [rows, num_classes]`, the number of its largest logit, as labels have it: `i64`, -1 for
/// a row without a class. Of equal logits the first counts; a row with a NaN, or whose largest logit is infinite, has
/// no class, as in [`accuracy`].
///
/// Burn's `argmax` gives an integer tensor of the type of its device, which a tensor of labels read from elsewhere may
/// not be compared with.
///
/// # Cost
/// The logits are copied to the CPU.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::predictions;
/// let logits = Tensor::<2>::from_data([[0.1, 0.7], [9.0, 1.0], [f32::NAN, 0.0]], &Device::flex());
/// assert_eq!(predictions(logits), [1, 0, -1]);
/// ```
pub fn predictions(logits: Tensor<2>) -> Vec<i64> {
    let [rows, classes] = logits.dims();
    let values: Vec<f64> = logits.into_data_dtype(DType::F64).try_to_vec().unwrap_or_default();
    let class =
        |row| predicted(&values[row * classes..(row + 1) * classes]).map_or(-1, |c| c as i64);
    (0..rows).map(class).collect()
}

/// The first largest logit of a row; none where there is no finite one or a NaN.
pub(crate) fn predicted(row: &[f64]) -> Option<usize> {
    let (mut best, mut max) = (0, f64::NEG_INFINITY);
    for (j, &v) in row.iter().enumerate() {
        if v.is_nan() {
            return None;
        }
        if v > max {
            (best, max) = (j, v);
        }
    }
    max.is_finite().then_some(best)
}

/// Share of some nodes whose largest logit is that of their class, in `0.0..=1.0`; of equal logits the first counts, and
/// a row with a NaN, or whose largest logit is infinite, is wrong.
///
/// # Shapes
/// As [`cross_entropy`].
///
/// # Panics
/// As [`cross_entropy`].
///
/// # Cost
/// The logits are copied to the CPU; one pass over the rows of the seeds.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::accuracy;
/// let logits = Tensor::<2>::from_data([[0.1, 0.7], [9.0, 1.0], [5.0, 2.0]], &Device::flex());
/// assert_eq!(accuracy(logits, &[1, -1, 1], &[0, 2]), 0.5);
/// ```
#[track_caller]
pub fn accuracy(logits: Tensor<2>, labels: &[i64], seeds: impl SeedRows) -> f64 {
    let rows = seed_rows("accuracy", logits.dims(), labels, seeds);
    Counts::new(&logits, &rows).accuracy()
}

/// The rows of seeds that all have a class below the number of logits.
#[track_caller]
fn seed_rows(caller: &str, dims: [usize; 2], labels: &[i64], seeds: impl SeedRows) -> Rows {
    let [rows, classes] = dims;
    let seeds = seeds.rows(rows);
    assert!(
        labels.len() == rows,
        "{caller}: `labels`: expected {rows} (one per row of the logits), got {}",
        labels.len()
    );
    assert!(!seeds.is_empty(), "{caller}: `seeds` is empty; give at least one node");
    Rows::new(&seeds, labels, classes).map_err(|e| format!("{caller}: {e}")).or_panic()
}

impl Rows {
    /// `Σ over this rank's rows of -log softmax(logits)[label] / total`, shape `[1]`.
    ///
    /// Summed over ranks it is the mean cross entropy. On a rank without rows it is an exact 0 that still
    /// reaches `logits` in backward (with gradient 0), so that every rank runs the same collectives.
    pub fn cross_entropy(&self, logits: Tensor<2>) -> Tensor<1> {
        // A sum in one order for any number of threads; without rows it is 0 and tracked.
        cross_entropy_rows(logits, &self.index, &self.labels, LossReduction::Over(self.total))
    }
}

/// Sums that ranks add up before dividing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Rows whose largest logit is their label's (the first of equal ones).
    pub correct: f64,
    /// Sum of cross entropies.
    pub loss: f64,
    /// Rows.
    pub rows: f64,
}

impl Counts {
    /// Of this rank's rows.
    pub fn new(logits: &Tensor<2>, rows: &Rows) -> Self {
        let values: Vec<f64> =
            logits.clone().into_data_dtype(DType::F64).try_to_vec().unwrap_or_default();
        Self::of_values(&values, logits.dims()[1], rows)
    }

    /// The same of logits `[rows, c]` in host memory.
    pub(crate) fn of_values(values: &[f64], c: usize, rows: &Rows) -> Self {
        let mut out = Self { rows: rows.index.len() as f64, ..Self::default() };
        for (&r, &label) in rows.index.iter().zip(&*rows.labels) {
            let row = &values[r as usize * c..(r as usize + 1) * c];
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            out.correct += f64::from(u8::from(predicted(row) == Some(label as usize)));
            out.loss +=
                max + row.iter().map(|v| (v - max).exp()).sum::<f64>().ln() - row[label as usize];
        }
        out
    }
    /// Share of correct rows, in `0.0..=1.0`; 0 without rows.
    pub fn accuracy(&self) -> f64 {
        self.correct / self.rows.max(1.0)
    }
    /// Mean cross entropy.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.rows.max(1.0)
    }
}

/// The most common class of `train` and the share of `test` that has it.
pub fn majority_class(train: &Rows, test: &Rows, num_classes: usize) -> (u32, f64) {
    let mut count = vec![0usize; num_classes];
    train.labels.iter().for_each(|&l| count[l as usize] += 1);
    let best = (0..num_classes).rev().max_by_key(|&c| count[c]).unwrap_or(0) as u32;
    let hits = test.labels.iter().filter(|&&l| l == best).count();
    (best, hits as f64 / test.labels.len().max(1) as f64)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use std::sync::Arc;

    use burn::tensor::Device;

    use super::*;

    /// Devices keep copies of lists by the list, so the lists of `Rows` must reach the operator themselves.
    #[test]
    fn the_loss_holds_the_lists_of_its_rows() {
        let rows = Rows::new(&[2, 0], &[0, -1, 1], 2).unwrap();
        let x = Tensor::<2>::ones([3, 2], &Device::flex().autodiff()).require_grad();
        let losses = [rows.cross_entropy(x.clone()), rows.clone().cross_entropy(x)];
        assert_eq!([&rows.index, &rows.labels].map(Arc::strong_count), [3; 2]);
        drop(losses);
    }
}
