//! Reduces and normalises segments: sum, mean, max, min and softmax.

use burn::tensor::Tensor;
use burn_gnn_plan::{BinaryOp, Reduce, Segments, Side, SoftmaxPlan};

use crate::check::{accept, check_operand, check_width};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::gspmm::general::{gspmm_reference, try_gspmm_copy};
use crate::operator::{reference as plain, tensor};

/// How the rows of a segment become one row: a [`Reduce`] whose messages are the rows.
pub type SegmentReduce = Reduce;

/// `out[k] = reduce of the rows of segment k`.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, the result `[segments, ..]`.
///
/// # Semantics
/// As [`gspmm`](crate::gspmm) on a relation whose edges are rows and whose destinations are segments,
/// which is what runs: an empty segment gets 0 and passes no gradient on, decided by its length; of equal
/// entries under max or min the first wins; the first NaN wins over every number; f16 and bf16 are summed in
/// f32; sums run in the order of rows, the same bits for any number of threads.
///
/// # Gradients
/// Of the row's segment; divided by its length for mean, of the argmax (argmin) row only for max and min. Kept are
/// winning rows for max and min, nothing else.
///
/// # Panics
/// With the text of the error that [`try_segment_reduce`] returns.
///
/// # Cost
/// Every row is read once, every result row written once; the segments keep 12 bytes per row from the first
/// call on.
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

/// [`segment_reduce`] that returns what is wrong with its arguments.
///
/// # Errors
/// A number of rows that is not that of the segments, rows of more than `u32::MAX` entries, or an element
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

/// Softmax inside each segment, per feature entry: `y[i] = exp(x[i] - m) / Σ exp(x[j] - m)` over the rows `j`
/// of the segment of `i`, `m` their largest entry.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, and so is the result.
///
/// # Semantics
/// Rows of a segment sum to 1, whatever the size of `x`. `-inf` is a mask: 0, and gradient 0, also where all rows
/// of a segment have it. A segment with a NaN or `+inf` is NaN in that entry. f16 and bf16 are computed in f32 and
/// rounded once. The same bits for any number of threads.
///
/// # Gradients
/// `d x = y · (d y - Σ d y · y)`; kept is the result. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_segment_softmax`] returns.
///
/// # Cost
/// Every row is read from memory once and written once, for segments that fit in cache; a buffer of the size of the
/// longest segment for each thread, in f32 for f16 and bf16. A segment is the work of one thread.
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

/// [`segment_softmax`] that returns what is wrong with its arguments.
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
