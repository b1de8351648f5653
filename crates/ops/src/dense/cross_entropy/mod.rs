//! Computes the cross entropy of chosen rows: log-softmax and negative log-likelihood in one pass.

mod operator;
pub(crate) mod reference;

pub(crate) use burn_gnn_plan::CrossEntropyPlan;
pub use burn_gnn_plan::LossReduction;

use std::sync::Arc;

use burn::tensor::Tensor;

use crate::check::{accept, check_dtype};
use crate::error::OpsError;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "cross_entropy_rows";

/// Cross entropy of chosen rows of `logits`: log-softmax and negative log-likelihood in one pass.
///
/// ```text
/// loss[i] = log Σ_c exp(logits[rows[i], c]) - logits[rows[i], targets[i]]
/// ```
/// The result is the sum over `i`, or the mean.
///
/// # Shapes
/// - `logits`: `[n, classes]`; `rows` and `targets`: one entry per chosen row
/// - returns `[1]`
///
/// # Semantics
/// - A row that is chosen several times counts several times. Without rows the result is 0 (also for a mean) and still
///   tracked, with gradient 0, so that a rank without training rows makes the same calls as the other ranks.
/// - The largest logit is subtracted before the exponential. NaN and infinities propagate: a row with NaN,
///   with +inf, or all -inf gives NaN; -inf at the target gives +inf.
/// - Losses are added in f64 in the order of `rows`, so the result is the same bits for any number of threads. f16 and
///   bf16 are computed in f32.
///
/// # Gradients
/// At chosen rows `softmax(logits[r]) - onehot(target)` times the gradient of the loss (divided by the number of rows
/// for a mean), 0 elsewhere. Saved for backward: `logits`, and two numbers per chosen row (largest logit, inverse sum).
/// Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_cross_entropy_rows`] returns.
///
/// # Cost
/// Forward reads the chosen rows once. Backward reads them again and writes the gradient once. No log-softmax is stored.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{LossReduction, cross_entropy_rows};
/// let logits = Tensor::<2>::from_data([[0.0, 0.0], [9.0, -9.0], [1.0, 1.0]], &Device::flex());
/// let loss = cross_entropy_rows(logits, &[0, 2].into(), &[1, 0].into(), LossReduction::Mean);
/// let loss = loss.into_scalar::<f32>();
/// assert!((loss - 2f32.ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn cross_entropy_rows(
    logits: Tensor<2>,
    rows: &Arc<[u32]>,
    targets: &Arc<[u32]>,
    reduction: LossReduction,
) -> Tensor<1> {
    accept(try_cross_entropy_rows(logits, rows, targets, reduction))
}

/// [`cross_entropy_rows`] that returns an error instead of panicking.
///
/// # Errors
/// Different numbers of rows and targets; a row or target out of range; an element type without a kernel.
pub fn try_cross_entropy_rows(
    logits: Tensor<2>,
    rows: &Arc<[u32]>,
    targets: &Arc<[u32]>,
    reduction: LossReduction,
) -> Result<Tensor<1>, OpsError> {
    let plan = plan(&logits, rows, targets, reduction)?;
    Ok(tensor(plan, [logits.into_dispatch()]))
}

/// [`cross_entropy_rows`] in plain tensor operations, differentiated by Burn: the reference for tests of the kernels.
///
/// # Panics
/// As [`cross_entropy_rows`].
#[track_caller]
pub fn cross_entropy_rows_reference(
    logits: Tensor<2>,
    rows: &Arc<[u32]>,
    targets: &Arc<[u32]>,
    reduction: LossReduction,
) -> Tensor<1> {
    let plan = accept(plan(&logits, rows, targets, reduction));
    plain(plan, [logits.into_dispatch()])
}

fn plan(
    logits: &Tensor<2>,
    rows: &Arc<[u32]>,
    targets: &Arc<[u32]>,
    reduction: LossReduction,
) -> Result<CrossEntropyPlan, OpsError> {
    check_dtype(NAME, "logits", logits.dtype())?;
    Ok(CrossEntropyPlan::new(logits.dims(), rows, targets, reduction)?)
}
