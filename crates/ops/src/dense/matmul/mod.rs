//! Multiplies node features with a weight matrix.

pub(crate) mod call;
mod cpu;
#[cfg(feature = "cube")]
mod cube;
mod operator;

use burn::tensor::Tensor;
use burn_gnn_graph::row_index;

use crate::check::{accept, check_rows, check_same, check_shape};
use crate::dense::matmul::call::{Product, ProductOnto};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::operator::tensor;

const NAME: &str = "matmul_rows";

/// `x · w` for `x: [n, k]`, `w: [k, m]`, where any of `n`, `k` and `m` may be 0.
///
/// # Gradients
/// `d w = xᵀ · d out`, then `d x = d out · wᵀ`. Kept for backward: `x` if `w` is tracked, `w` if `x` is. Unlike
/// `Tensor::matmul`, backward gives `x` up before it makes `d x`: of hidden rows that nothing else reads, a
/// training step holds one matrix at that moment and not two. Differentiable any number of times.
///
/// # Corner cases
/// A part of a graph may hold no node of some type, a node type may have no features, and every rank must
/// still run the same calls; Burn's ndarray backend panics on such products. Then every axis of length 0
/// is made one of zeros, and of the product no row or no column is selected (a slice of an empty range
/// would leave the autodiff graph). So the result for `k = 0` is all zeros, and gradients of `x` and `w`
/// exist: zeros, or tensors without entries.
///
/// # Precision
/// Under [`with_precision`](crate::with_precision) both operands are cast, as those of every operator are.
///
/// # Panics
/// With the text of the error that [`try_matmul_rows`] returns.
///
/// # Cost
/// `2 n k m` operations forward, twice as many backward. On CPU backends by the `gemm` crate into memory that was never
/// touched before, the gradient of up to 16 columns in registers, that of more of them in runs of rows. 16-bit floats
/// are widened a block of rows at a time, summed in f32 and rounded once; `w` is held in f32 meanwhile. On GPUs by Burn's
/// products, the gradient of `w` in parts of 2,048 rows and more side by side, whose sums are added in their order; for
/// that 16-bit floats are widened first, in copies of both operands.
#[track_caller]
pub fn matmul_rows(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    accept(try_matmul_rows(x, w))
}

/// [`matmul_rows`] that returns what is wrong with its arguments.
///
/// # Errors
/// Another number of rows of `w` than columns of `x`, element types or devices that differ, an element type that a
/// device cannot hold under [`with_precision`](crate::with_precision).
pub fn try_matmul_rows(x: Tensor<2>, w: Tensor<2>) -> Result<Tensor<2>, OpsError> {
    let (mut x, mut w) = (enter(NAME, "x", x)?, enter(NAME, "w", w)?);
    let ([n, k], [actual, m]) = (x.dims(), w.dims());
    check_rows(NAME, "w", "one per feature of `x`", k, actual)?;
    check_same(NAME, ("w", &w), ("x", &x))?;
    let device = x.device();
    let product = |x: Tensor<2>, w: Tensor<2>| {
        tensor(Product::default(), [x.into_dispatch(), w.into_dispatch()])
    };
    if n > 0 && k > 0 && m > 0 {
        return Ok(product(x, w));
    }
    // The sum of no rows is a row of zeros that the operand takes part in; `Tensor::cat` would forget an
    // empty operand.
    if k == 0 {
        (x, w) = (x.sum_dim(1), w.sum_dim(0));
    }
    if n == 0 {
        x = x.sum_dim(0);
    }
    if m == 0 {
        w = w.sum_dim(1);
    }
    let mut out: Tensor<2> = product(x, w);
    for (axis, len) in [n, m].into_iter().enumerate() {
        if len == 0 {
            let none = row_index(std::iter::empty(), &device);
            out = out.select(axis, none);
        }
    }
    Ok(out)
}

/// `sum + x · w` for `x: [n, k]`, `w: [k, m]` and `sum: [n, m]`, where any of `n`, `k` and `m` may be 0: a node's own
/// term onto that of its neighbours.
///
/// Rounding: blocks of the inner axis are added to `sum` one after the other.
///
/// # Gradients
/// Of `x` and `w` as [`matmul_rows`]; `d sum = d out`, which is kept as it is. Differentiable any number of times.
///
/// # Precision
/// As [`matmul_rows`].
///
/// # Panics
/// With the text of the error that [`try_matmul_rows_onto`] returns.
///
/// # Cost
/// As [`matmul_rows`]; a `sum` without other references is added to in place, where `matmul_rows(x, w) + sum`
/// writes and reads a matrix of its size once more (16-bit floats: to a new matrix).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::matmul_rows_onto;
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 2.0]], &device);
/// let w = Tensor::<2>::from_data([[3.0], [4.0]], &device);
/// let sum = Tensor::<2>::from_data([[100.0]], &device);
/// assert_eq!(matmul_rows_onto(x, w, sum).into_scalar::<f32>(), 111.0);
/// ```
#[track_caller]
pub fn matmul_rows_onto(x: Tensor<2>, w: Tensor<2>, sum: Tensor<2>) -> Tensor<2> {
    accept(try_matmul_rows_onto(x, w, sum))
}

/// [`matmul_rows_onto`] that returns what is wrong with its arguments.
///
/// # Errors
/// As [`try_matmul_rows`]; a `sum` of another shape, element type or device.
pub fn try_matmul_rows_onto(
    x: Tensor<2>,
    w: Tensor<2>,
    sum: Tensor<2>,
) -> Result<Tensor<2>, OpsError> {
    const NAME: &str = "matmul_rows_onto";
    let (x, w, sum) = (enter(NAME, "x", x)?, enter(NAME, "w", w)?, enter(NAME, "sum", sum)?);
    let ([n, k], [actual, m], [rows, columns]) = (x.dims(), w.dims(), sum.dims());
    check_rows(NAME, "w", "one per feature of `x`", k, actual)?;
    check_rows(NAME, "sum", "one per row of `x`", n, rows)?;
    check_shape(NAME, "sum", &[n, m], &[rows, columns])?;
    check_same(NAME, ("w", &w), ("x", &x))?;
    check_same(NAME, ("sum", &sum), ("x", &x))?;
    if n == 0 || k == 0 || m == 0 {
        return Ok(try_matmul_rows(x, w)? + sum);
    }
    Ok(tensor(ProductOnto, [x, w, sum].map(Tensor::into_dispatch)))
}
