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

/// Matrix product `x · w` of node features and weights, for `x: [n, k]` and `w: [k, m]`, where `n`, `k` and `m` may be 0.
///
/// # Gradients
/// `d w = xᵀ · d out`, then `d x = d out · wᵀ`. Saved for backward: `x` if `w` is tracked, `w` if `x` is tracked. Unlike
/// `Tensor::matmul`, backward frees `x` before it allocates `d x`, so that a training step holds one of the two matrices
/// and not both, if `x` has no other references. Differentiable any number of times.
///
/// # Corner cases
/// A part of a graph may have no nodes of some type, and a node type may have no features, yet every rank must make the
/// same calls. Burn's ndarray backend panics on such products. An axis of length 0 is therefore replaced by one of
/// zeros, and no row or column of the product is selected (a slice of an empty range would leave the autodiff graph).
/// For `k = 0` the result is zeros. The gradients of `x` and `w` exist in every case.
///
/// # Precision
/// Under [`with_precision`](crate::with_precision) both operands are cast.
///
/// # Panics
/// With the text of the error that [`try_matmul_rows`] returns.
///
/// # Cost
/// `2 n k m` operations forward, twice as many backward.
///
/// - CPUs multiply by the `gemm` crate, into uninitialised memory. The gradient of `w` with up to 16 columns is kept in
///   registers, a wider one is computed in runs of rows. 16-bit floats are widened one block of rows at a time, summed in
///   f32 and rounded once; a copy of `w` in f32 exists during the product.
/// - GPUs use Burn's products. The gradient of `w` is computed in parts of at least 2,048 rows in parallel, which are
///   added in order; 16-bit operands are copied to f32 first.
#[track_caller]
pub fn matmul_rows(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    accept(try_matmul_rows(x, w))
}

/// [`matmul_rows`] that returns an error instead of panicking.
///
/// # Errors
/// A number of rows of `w` that is not the feature size of `x`; different element types or devices; an element type
/// that the device does not support under [`with_precision`](crate::with_precision).
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
    // The sum of no rows is a row of zeros that stays connected to the operand in the autodiff graph; `Tensor::cat`
    // drops an empty operand.
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

/// Adds a matrix product to a sum in place, `sum + x · w`, for `x: [n, k]`, `w: [k, m]` and `sum: [n, m]`, where `n`, `k`
/// and `m` may be 0. Layers use it to add the term of a node itself to the term of its neighbours.
///
/// Rounding: blocks of the inner axis are added to `sum` sequentially.
///
/// # Gradients
/// For `x` and `w` as [`matmul_rows`]; `d sum = d out`. Differentiable any number of times.
///
/// # Precision
/// As [`matmul_rows`].
///
/// # Panics
/// With the text of the error that [`try_matmul_rows_onto`] returns.
///
/// # Cost
/// As [`matmul_rows`]. A `sum` without other references is updated in place, whereas `matmul_rows(x, w) + sum` writes and
/// reads another matrix of its size. 16-bit floats are written to a new matrix.
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

/// [`matmul_rows_onto`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_matmul_rows`]; a `sum` with a wrong shape, element type or device.
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
