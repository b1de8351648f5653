//! Negatives within a batch: the destinations of the other pairs.

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_models::ModelError;

use crate::errors::{check_length, out_of_range};
use crate::ranking::id_lists::IdLists;

/// Corrections of the scores of a batch in which every pair is compared with the destinations of all pairs.
///
/// ```text
/// s'[i, j] = s[i, j] - log q(dst_j)      -∞ where dst_j is a known destination of src_i and j ≠ i
/// ```
/// with `q(d)` the expected number of times that `d` is in a batch. A popular destination is a frequent negative;
/// without the correction its scores would be too small. The loss is the cross entropy of row `i` with class `i`.
///
/// # Shapes
/// Result `[pairs, pairs]`, to be added to the scores of sources × destinations. `known` has a list of destinations per
/// source; a source beyond its rows has none. The destination of pair `i` is known of `src_i` in any case, also where
/// other pairs of the batch have it. `counts` are the frequencies of destinations in training.
///
/// # Errors
/// Lists of different lengths; a destination without a count.
///
/// # Source
/// Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys 2019.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_links::{IdLists, in_batch_corrections};
/// let known = IdLists::from_pairs(2, [(0, 5), (0, 6), (1, 6)])?;
/// let counts = [0, 0, 0, 0, 0, 1, 2]; // of destinations in training
/// let c = in_batch_corrections(&[0, 1], &[5, 6], &known, &counts, &Device::flex())?;
/// let c = c.into_data().try_to_vec::<f32>()?;
/// assert!(c[1] == f32::NEG_INFINITY && c[2] > c[3]); // 6 is an answer of 0; 5 is less popular than 6
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn in_batch_corrections(
    src: &[u32],
    dst: &[u32],
    known: &IdLists,
    counts: &[u32],
    device: &Device,
) -> Result<Tensor<2>, ModelError> {
    let n = src.len();
    check_length("dst", "one per source", n, dst.len())?;
    let total: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    let log_q = |d: &u32| match counts.get(*d as usize) {
        Some(&c) if c > 0 => Ok((f64::from(c) * n as f64 / total).ln() as f32),
        _ => Err(out_of_range("dst", "destinations with a count above 0", d)),
    };
    let log_q: Vec<f32> = dst.iter().map(log_q).collect::<Result<_, _>>()?;
    let mut out = Vec::with_capacity(n * n);
    for (i, (&u, own)) in src.iter().zip(dst).enumerate() {
        let of_source = known.of(u as usize);
        out.extend(dst.iter().zip(&log_q).enumerate().map(|(j, (d, log_q))| {
            let is_answer = i != j && (d == own || of_source.binary_search(d).is_ok());
            if is_answer { f32::NEG_INFINITY } else { -log_q }
        }));
    }
    Ok(Tensor::from_data(TensorData::new(out, [n, n]), device))
}
