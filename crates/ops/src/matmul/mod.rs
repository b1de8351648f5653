//! Products of rows with a matrix of weights.

mod autodiff;
// The generated dispatch names `NdArray`, which Burn has deprecated.
#[cfg_attr(feature = "ndarray", allow(deprecated))]
mod backend;

pub use backend::MatmulBackend;

use burn::backend::Dispatch;
use burn::tensor::{DType, Int, Tensor, TensorData};

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
/// # Panics
/// If `x` and `w` disagree about `k`, or their devices or element types differ.
///
/// # Cost
/// `2 n k m` operations forward, twice as many backward.
#[track_caller]
pub fn matmul_rows(mut x: Tensor<2>, mut w: Tensor<2>) -> Tensor<2> {
    let ([n, k], [rows, m]) = (x.dims(), w.dims());
    assert!(k == rows, "matmul_rows: `w` must have {k} rows (one per column of `x`), got {rows}");
    assert!(x.dtype() == w.dtype(), "matmul_rows: `x` has element type {:?}, `w` has {:?}; convert one of them", x.dtype(), w.dtype());
    let device = x.device();
    assert!(device == w.device(), "matmul_rows: `x` is on {device:?}, `w` on {:?}; move one of them", w.device());
    let product = |x: Tensor<2>, w: Tensor<2>| Tensor::from_dispatch(Dispatch::matmul_weights(x.into_dispatch(), w.into_dispatch()));
    if n > 0 && k > 0 && m > 0 {
        return product(x, w);
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
            let none = Tensor::<1, Int>::from_data(TensorData::new(Vec::<i64>::new(), [0]), (&device, DType::I64));
            out = out.select(axis, none);
        }
    }
    out
}
