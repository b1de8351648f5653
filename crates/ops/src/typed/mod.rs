//! Multiplies every row by the matrix of its segment or type (`segment_mm`, `gather_mm`).

pub(crate) mod operator;
mod reference;

use burn::tensor::Tensor;
use burn_gnn_plan::{Segments, TypeIndex, TypedPlan};

use crate::check::{accept, check_dtype, check_rows, check_same, check_shape};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::operator::{reference as plain, tensor};

/// Multiplies the rows of each segment by the matrix of the segment, `out[i] = a[i] · b[segment of i]`.
///
/// # Shapes
/// - `a`: `[N, d_input]`, `N` the rows of `segments`; `b`: `[segments, d_input, d_output]`
/// - returns `[N, d_output]`
///
/// # Semantics
/// The matrix of an empty segment gets gradient 0. Infinities and NaN propagate as in a product of matrices. f16 and
/// bf16 are summed in f32 and rounded once. Long segments are divided at fixed rows, so results are the same bits for
/// any number of threads.
///
/// # Gradients
/// For `a` and `b`. Saved for backward: `b` if `a` is tracked, `a` if `b` is tracked. `d b[k]` is a sum over the rows of
/// segment `k`, in order. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_segment_mm`] returns.
///
/// # Cost
/// `2 · N · d_input · d_output` operations. Every row is read and written once. Matrices of up to 32 × 32 entries are
/// packed for registers, larger ones are multiplied by the `gemm` crate.
///
/// # Source
/// `segment_mm` of DGL.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Segments, segment_mm};
/// let device = Device::flex();
/// let a = Tensor::<2>::from_data([[1.0], [2.0], [3.0]], &device);
/// let b = Tensor::<3>::from_data([[[1.0, 2.0]], [[10.0, 20.0]]], &device);
/// let y = segment_mm(a, b, &Segments::from_lengths(&[1, 2]));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, 20.0, 40.0, 30.0, 60.0]);
/// ```
#[track_caller]
pub fn segment_mm(a: Tensor<2>, b: Tensor<3>, segments: &Segments) -> Tensor<2> {
    accept(try_segment_mm(a, b, segments))
}

/// [`segment_mm`] that returns an error instead of panicking.
///
/// # Errors
/// A wrong number of rows, of matrices or of their rows; rows of more than `u32::MAX` entries; different element types
/// or devices; an element type without a kernel.
pub fn try_segment_mm(
    a: Tensor<2>,
    b: Tensor<3>,
    segments: &Segments,
) -> Result<Tensor<2>, OpsError> {
    let (a, b) = (enter("segment_mm", "a", a)?, enter("segment_mm", "b", b)?);
    let plan = plan_segments(&a, &b, segments)?;
    Ok(tensor(plan, [a.into_dispatch(), b.into_dispatch()]))
}

/// Multiplies every row by the matrix of its type, `out[i] = a[i] · b[type of i]`.
///
/// Rows are sorted once, by [`TypeIndex`], which is reused between calls. Matrices are not gathered per row. Otherwise
/// as [`segment_mm`].
///
/// # Shapes
/// - `a`: `[N, d_input]`, `N` the rows of `types`; `b`: `[types, d_input, d_output]`
/// - returns `[N, d_output]`
///
/// # Panics
/// With the text of the error that [`try_gather_mm`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{TypeIndex, gather_mm};
/// let device = Device::flex();
/// let a = Tensor::<2>::from_data([[1.0], [2.0], [3.0]], &device);
/// let b = Tensor::<3>::from_data([[[1.0]], [[10.0]]], &device);
/// let y = gather_mm(a, b, &TypeIndex::new(&[1u8, 0, 1], 2));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [10.0, 2.0, 30.0]);
/// ```
#[track_caller]
pub fn gather_mm(a: Tensor<2>, b: Tensor<3>, types: &TypeIndex) -> Tensor<2> {
    accept(try_gather_mm(a, b, types))
}

/// [`gather_mm`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_segment_mm`].
pub fn try_gather_mm(a: Tensor<2>, b: Tensor<3>, types: &TypeIndex) -> Result<Tensor<2>, OpsError> {
    let (a, b) = (enter("gather_mm", "a", a)?, enter("gather_mm", "b", b)?);
    let plan = plan_types(&a, &b, types)?;
    Ok(tensor(plan, [a.into_dispatch(), b.into_dispatch()]))
}

/// [`segment_mm`] in plain tensor operations, differentiated by Burn: the reference for tests of the kernels. f16 and
/// bf16 are computed in f32.
///
/// # Panics
/// As [`segment_mm`].
#[track_caller]
pub fn segment_mm_reference(a: Tensor<2>, b: Tensor<3>, segments: &Segments) -> Tensor<2> {
    let plan = accept(plan_segments(&a, &b, segments));
    plain(plan, [a.into_dispatch(), b.into_dispatch()])
}

/// [`gather_mm`] in plain tensor operations, differentiated by Burn: the reference for tests of the kernels. f16 and
/// bf16 are computed in f32.
///
/// # Panics
/// As [`gather_mm`].
#[track_caller]
pub fn gather_mm_reference(a: Tensor<2>, b: Tensor<3>, types: &TypeIndex) -> Tensor<2> {
    let plan = accept(plan_types(&a, &b, types));
    plain(plan, [a.into_dispatch(), b.into_dispatch()])
}

fn plan_segments(a: &Tensor<2>, b: &Tensor<3>, segments: &Segments) -> Result<TypedPlan, OpsError> {
    let rows = ("rows of the segments", segments.num_rows());
    let output = check("segment_mm", a, b, rows, segments.len())?;
    Ok(TypedPlan::segments(segments, a.dims()[1], output)?)
}

fn plan_types(a: &Tensor<2>, b: &Tensor<3>, types: &TypeIndex) -> Result<TypedPlan, OpsError> {
    let rows = ("one per row of `types`", types.num_rows());
    let output = check("gather_mm", a, b, rows, types.num_types())?;
    Ok(TypedPlan::types(types, a.dims()[1], output)?)
}

/// Validates a call and returns the feature size of the result.
fn check(
    op: &'static str,
    a: &Tensor<2>,
    b: &Tensor<3>,
    (why, rows): (&'static str, usize),
    matrices: usize,
) -> Result<usize, OpsError> {
    let ([n, k], [count, height, output]) = (a.dims(), b.dims());
    check_rows(op, "a", why, rows, n)?;
    check_shape(op, "b", &[matrices, k, output], &[count, height, output])?;
    check_dtype(op, "a", a.dtype())?;
    check_same(op, ("b", b), ("a", a))?;
    Ok(output)
}
