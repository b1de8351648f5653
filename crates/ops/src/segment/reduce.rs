//! Reduces and normalises segments: sum, mean, max, min and softmax.

use burn::tensor::Tensor;
use burn_gnn_plan::{BinaryOp, Reduce, Segments, Side, SoftmaxPlan};

use crate::check::{accept, check_operand, check_width};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::gspmm::general::{gspmm_reference, try_gspmm_copy};
use crate::operator::{reference as plain, tensor};

/// Reducer of the rows of a segment: a [`Reduce`] whose messages are the rows.
pub type SegmentReduce = Reduce;

/// Reduces the rows of each segment to one row: `out[k] = reduce of x[i]` over the rows `i` of segment `k`.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, the result `[segments, ..]`.
///
/// # Semantics
/// It runs [`gspmm`](crate::gspmm) on a relation whose edges are the rows and whose destinations are the segments. An
/// empty segment gets 0. Of equal entries under max or min the first is the argmax; a NaN is beyond every number. f16
/// and bf16 are summed in f32. Sums run in the order of rows, so results are the same bits for any number of threads.
///
/// # Gradients
/// Every row gets the gradient of its segment, divided by the length for mean, and only the argmax (argmin) row for max
/// and min. Saved for backward: the argmax for max and min, otherwise nothing.
///
/// # Panics
/// With the text of the error that [`try_segment_reduce`] returns.
///
/// # Cost
/// Every row is read once, every result row is written once. From the first call on the segments cache 12 bytes per
/// row.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{SegmentReduce, Segments, segment_reduce};
/// let x = Tensor::<1>::from_data([1.0, 5.0, 2.0], &Device::flex());
/// let y = segment_reduce(x, &Segments::from_lengths(&[2, 0, 1]), SegmentReduce::Mean);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.0, 0.0, 2.0]);
/// ```
#[track_caller]
pub fn segment_reduce<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
    reduce: SegmentReduce,
) -> Tensor<D> {
    accept(try_segment_reduce(x, segments, reduce))
}

/// [`segment_reduce`] that returns an error instead of panicking.
///
/// # Errors
/// A number of rows that does not match the segments, rows of more than `u32::MAX` entries, or an element
/// type without a kernel.
pub fn try_segment_reduce<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
    reduce: SegmentReduce,
) -> Result<Tensor<D>, OpsError> {
    let x = enter("segment_reduce", "x", x)?;
    check("segment_reduce", &x, segments)?;
    try_gspmm_copy(segments.relation()?, Side::Rhs, reduce, x)
}

/// [`segment_reduce`] in plain tensor operations, differentiated by Burn.
///
/// # Panics
/// As [`segment_reduce`].
#[track_caller]
pub fn segment_reduce_reference<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
    reduce: SegmentReduce,
) -> Tensor<D> {
    accept(check("segment_reduce", &x, segments));
    let relation = accept(segments.relation());
    gspmm_reference(relation, BinaryOp::CopyRhs, reduce, x.clone(), x)
}

/// Softmax inside each segment, per feature entry: `y[i] = exp(x[i] - m) / Σ exp(x[j] - m)` over the rows `j` of the
/// segment of `i`, where `m` is their largest entry.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, and so is the result.
///
/// # Semantics
/// The rows of a segment sum to 1. `-inf` is a mask, with result 0 and gradient 0, also where all rows of a segment are
/// masked. A NaN or `+inf` makes its segment and feature entry NaN. f16 and bf16 are computed in f32 and rounded once.
/// Results are the same bits for any number of threads.
///
/// # Gradients
/// `d x = y · (d y - Σ d y · y)`. The result is saved. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_segment_softmax`] returns.
///
/// # Cost
/// Every row of a segment that fits in the cache is read from memory once and written once. One thread processes a
/// segment, in a buffer of the size of the longest segment (f32 for f16 and bf16).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Segments, segment_softmax};
/// let x = Tensor::<1>::from_data([7.0, 7.0, -80.0], &Device::flex());
/// let y = segment_softmax(x, &Segments::from_lengths(&[2, 1]));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5, 1.0]);
/// ```
#[track_caller]
pub fn segment_softmax<const D: usize>(x: Tensor<D>, segments: &Segments) -> Tensor<D> {
    accept(try_segment_softmax(x, segments))
}

/// [`segment_softmax`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_segment_reduce`].
pub fn try_segment_softmax<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
) -> Result<Tensor<D>, OpsError> {
    let x = enter("segment_softmax", "x", x)?;
    let plan = plan_softmax(&x, segments)?;
    Ok(tensor(plan, [x.into_dispatch()]))
}

/// [`segment_softmax`] in plain tensor operations, differentiated by Burn.
/// f16 and bf16 are computed in f32.
///
/// # Panics
/// As [`segment_softmax`].
#[track_caller]
pub fn segment_softmax_reference<const D: usize>(x: Tensor<D>, segments: &Segments) -> Tensor<D> {
    let plan = accept(plan_softmax(&x, segments));
    plain(plan, [x.into_dispatch()])
}

fn plan_softmax<const D: usize>(
    x: &Tensor<D>,
    segments: &Segments,
) -> Result<SoftmaxPlan, OpsError> {
    let features = check("segment_softmax", x, segments)?;
    Ok(SoftmaxPlan::segments("segment_softmax", segments, &features)?)
}

fn check<const D: usize>(
    op: &'static str,
    x: &Tensor<D>,
    segments: &Segments,
) -> Result<Vec<usize>, OpsError> {
    let features = check_operand(op, ("x", x), "rows of the segments", segments.num_rows())?;
    check_width(op, &features)?;
    Ok(features)
}
