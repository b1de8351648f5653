//! Computes ROC AUC, average precision and top-k accuracy of scores.

use burn::tensor::{DType, Tensor};
use rayon::prelude::*;

use crate::error::ModelError;

/// Area under the ROC curve of scores for two classes: the share of (positive, negative) pairs in which the positive
/// has the larger score, a pair of equal scores counting half.
///
/// ```text
/// auc = Σ over positives p, negatives n of [s_p > s_n] + [s_p = s_n] / 2   divided by   positives · negatives
/// ```
///
/// # Shapes
/// `scores`: `[rows]`, larger for positive; logits and probabilities give the same. `is_positive`: one entry per row.
///
/// # Errors
/// Another number of labels than scores; no positive or no negative row, where the area is not defined; a score that is
/// NaN.
///
/// # Cost
/// `O(rows log rows)` on the CPU, in f64.
///
/// # Source
/// Hanley and McNeil, "The meaning and use of the area under a ROC curve", Radiology 1982; scikit-learn's
/// `roc_auc_score`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::roc_auc;
/// let scores = Tensor::<1>::from_data([0.1, 0.4, 0.35, 0.8], &Device::flex());
/// assert_eq!(roc_auc(scores, &[false, false, true, true])?, 0.75);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[doc(alias = "roc_auc_score")]
pub fn roc_auc(scores: Tensor<1>, is_positive: &[bool]) -> Result<f64, ModelError> {
    roc_auc_of(f64s(scores.into_data_dtype(DType::F64)), is_positive)
}

pub(crate) fn roc_auc_of(scores: Vec<f64>, is_positive: &[bool]) -> Result<f64, ModelError> {
    let groups = descending(&scores, is_positive)?;
    let (positives, negatives) = totals(&groups);
    if negatives == 0.0 {
        return Err(few("negative"));
    }
    let (mut above, mut area) = (0.0, 0.0);
    for group in &groups {
        area += group.negatives * (above + group.positives / 2.0);
        above += group.positives;
    }
    Ok(area / (positives * negatives))
}

/// Average precision of scores for two classes, the area under the precision-recall curve as a step function:
///
/// ```text
/// ap = Σ over thresholds of (recall - recall before) · precision
/// ```
/// where rows of equal scores share a threshold. Shapes, errors and cost are those of [`roc_auc`], but there may be no
/// negative row.
///
/// # Source
/// scikit-learn's `average_precision_score`; Open Graph Benchmark, `ap`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::average_precision;
/// let scores = Tensor::<1>::from_data([0.1, 0.4, 0.35, 0.8], &Device::flex());
/// let ap = average_precision(scores, &[false, false, true, true])?;
/// assert!((ap - (0.5 + 0.5 * 2.0 / 3.0)).abs() < 1e-12);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[doc(alias = "average_precision_score")]
pub fn average_precision(scores: Tensor<1>, is_positive: &[bool]) -> Result<f64, ModelError> {
    average_precision_of(f64s(scores.into_data_dtype(DType::F64)), is_positive)
}

pub(crate) fn average_precision_of(
    scores: Vec<f64>,
    is_positive: &[bool],
) -> Result<f64, ModelError> {
    let groups = descending(&scores, is_positive)?;
    let (positives, _) = totals(&groups);
    let (mut hits, mut rows, mut sum) = (0.0, 0.0, 0.0);
    for group in &groups {
        hits += group.positives;
        rows += group.positives + group.negatives;
        sum += group.positives * hits / rows;
    }
    Ok(sum / positives)
}

/// Share of rows whose label is among the `k` classes of the largest logits, in `0.0..=1.0`; 0 without rows.
///
/// The label's rank counts the classes with a larger logit and those of a smaller number with an equal one, as an
/// argmax that takes the first does. A row whose label has a NaN is no hit, and a NaN elsewhere counts as larger.
///
/// # Shapes
/// `logits`: `[rows, classes]`; `labels`: one class per row.
///
/// # Errors
/// Another number of labels than rows, a label that is no class, `k = 0`.
///
/// # Cost
/// One pass over `logits` on the CPU.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::top_k_accuracy;
/// let logits = Tensor::<2>::from_data([[0.9, 0.2, 0.5], [0.1, 0.3, 0.2]], &Device::flex());
/// assert_eq!(top_k_accuracy(logits.clone(), &[2, 0], 1)?, 0.0);
/// assert_eq!(top_k_accuracy(logits, &[2, 0], 2)?, 0.5);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn top_k_accuracy(logits: Tensor<2>, labels: &[u32], k: usize) -> Result<f64, ModelError> {
    ModelError::check_sizes(&[("k", k)], 0.0)?;
    let [rows, classes] = logits.dims();
    check_labels("labels", rows, labels.len())?;
    if let Some(i) = labels.iter().position(|&l| l as usize >= classes) {
        let (arg, range) = (format!("label of row {i}"), format!("0..{classes}"));
        return Err(ModelError::out_of_range(arg, range, labels[i]));
    }
    let values = f64s(logits.into_data_dtype(DType::F64));
    let hit = |(row, &label): (&[f64], &u32)| {
        let own = row[label as usize];
        let ahead = |(class, &v): (usize, &f64)| {
            v.is_nan() || v > own || (v == own && class < label as usize)
        };
        !own.is_nan() && row.iter().enumerate().filter(|&c| ahead(c)).count() < k
    };
    let hits = values.par_chunks(classes.max(1)).zip(labels).filter(|&row| hit(row)).count();
    Ok(hits as f64 / rows.max(1) as f64)
}

/// Rows of one score.
struct Group {
    positives: f64,
    negatives: f64,
}

/// Rows of equal scores, from the largest score down; at least one of them positive.
fn descending(values: &[f64], is_positive: &[bool]) -> Result<Vec<Group>, ModelError> {
    let rows = values.len();
    check_labels("is_positive", rows, is_positive.len())?;
    if let Some(i) = values.iter().position(|v| v.is_nan()) {
        let arg = format!("score of row {i}");
        return Err(ModelError::out_of_range(arg, "numbers, which have an order", f64::NAN));
    }
    if !is_positive.contains(&true) {
        return Err(few("positive"));
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.par_sort_unstable_by(|&a, &b| values[b].total_cmp(&values[a]));
    let group = |rows: &[usize]| {
        let positives = rows.iter().filter(|&&r| is_positive[r]).count();
        Group { positives: positives as f64, negatives: (rows.len() - positives) as f64 }
    };
    Ok(order.chunk_by(|&a, &b| values[a] == values[b]).map(group).collect())
}

fn totals(groups: &[Group]) -> (f64, f64) {
    groups.iter().fold((0.0, 0.0), |(p, n), g| (p + g.positives, n + g.negatives))
}

fn f64s(data: burn::tensor::TensorData) -> Vec<f64> {
    data.try_to_vec().unwrap_or_else(|e| unreachable!("converted to f64 before: {e:?}"))
}

fn check_labels(arg: &str, expected: usize, actual: usize) -> Result<(), ModelError> {
    ModelError::check_length(arg, "one entry per row of scores", expected, actual)
}

fn few(class: &str) -> ModelError {
    let range =
        format!("lists with at least one {class} row, without which the metric is not defined");
    ModelError::out_of_range("is_positive", range, "none")
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use burn_gnn_ops::Stream;

    use super::*;

    fn scores(values: &[f64]) -> Tensor<1> {
        Tensor::from_data(
            TensorData::new(values.to_vec(), [values.len()]),
            (&Device::flex(), DType::F64),
        )
    }

    /// Few different scores, so that many are equal.
    fn draw(seed: u64, n: u64) -> (Vec<f64>, Vec<bool>) {
        let s = Stream::new(seed, "scores", 0);
        let values = (0..n).map(|i| (s.uniform(i, 0) * 7.0).floor()).collect();
        (values, (0..n).map(|i| i == 0 || (i > 1 && s.uniform(i, 1) < 0.4)).collect())
    }

    #[test]
    fn by_definition() {
        for seed in 0..40 {
            let (values, positive) = draw(seed, 2 + seed);
            let pairs = || {
                (0..values.len())
                    .flat_map(|p| (0..values.len()).map(move |n| (p, n)))
                    .filter(|&(p, n)| positive[p] && !positive[n])
            };
            let ranked = |(p, n): (usize, usize)| {
                if values[p] == values[n] {
                    0.5
                } else {
                    f64::from(u8::from(values[p] > values[n]))
                }
            };
            let expected = pairs().map(ranked).sum::<f64>() / pairs().count() as f64;
            assert!(
                (roc_auc(scores(&values), &positive).unwrap() - expected).abs() < 1e-12,
                "seed {seed}"
            );
            // Precision at the threshold of each positive row, averaged.
            let precision = |t: f64| {
                let chosen: Vec<usize> = (0..values.len()).filter(|&r| values[r] >= t).collect();
                chosen.iter().filter(|&&r| positive[r]).count() as f64 / chosen.len() as f64
            };
            let of: Vec<f64> =
                values.iter().zip(&positive).filter(|r| *r.1).map(|r| precision(*r.0)).collect();
            let expected = of.iter().sum::<f64>() / of.len() as f64;
            assert!(
                (average_precision(scores(&values), &positive).unwrap() - expected).abs() < 1e-12,
                "seed {seed}"
            );
        }
    }

    #[test]
    fn extremes() {
        let truth = [true, false, true, false];
        for (values, auc) in [
            ([3.0, 1.0, 2.0, 0.0], 1.0),
            ([0.0, 2.0, 1.0, 3.0], 0.0),
            ([5.0; 4], 0.5),
            ([f64::INFINITY, 1.0, 1.0, -1.0], 0.875),
        ] {
            assert_eq!(roc_auc(scores(&values), &truth).unwrap(), auc, "{values:?}");
        }
        assert_eq!(average_precision(scores(&[1.0, 2.0]), &[true, true]).unwrap(), 1.0);
        let text = |v: &[f64], t: &[bool]| roc_auc(scores(v), t).unwrap_err().to_string();
        assert_eq!(
            text(&[1.0], &[true, false]),
            "`is_positive`: expected 1 (one entry per row of scores), got 2; give 1"
        );
        assert!(text(&[1.0, 2.0], &[true, true]).contains("at least one negative row"));
        assert!(text(&[], &[]).contains("at least one positive row"));
        assert_eq!(
            text(&[1.0, f64::NAN], &[true, false]),
            "`score of row 1` must lie in numbers, which have an order, got NaN"
        );
    }

    #[test]
    fn top_k() {
        let nan = f64::NAN;
        let values = vec![0.5, 0.5, 0.5, 3.0, 1.0, 2.0, nan, 1.0, 0.0, 0.0, nan, 1.0];
        let logits = || {
            Tensor::<2>::from_data(
                TensorData::new(values.clone(), [4, 3]),
                (&Device::flex(), DType::F64),
            )
        };
        // Class 1 by row: second of a tie; last of (3, 1, 2); second, after a NaN; a NaN, which is never
        // a hit.
        let share = |k| top_k_accuracy(logits(), &[1, 1, 1, 1], k).unwrap();
        assert_eq!([1, 2, 3, 9].map(share), [0.0, 0.5, 0.75, 0.75]);
        assert_eq!(top_k_accuracy(logits(), &[0, 0, 2, 2], 1).unwrap(), 0.5);
        let text = |labels: &[u32], k| top_k_accuracy(logits(), labels, k).unwrap_err().to_string();
        assert_eq!(text(&[0, 3, 0, 0], 1), "`label of row 1` must lie in 0..3, got 3");
        assert!(text(&[0], 1).contains("expected 4") && text(&[0; 4], 0).contains("`k`"));
        let none = Tensor::<2>::zeros([0, 3], &Device::flex());
        assert_eq!(top_k_accuracy(none, &[], 1).unwrap(), 0.0);
    }
}
