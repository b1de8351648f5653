//! Matrix products that take matrices without rows or columns.

use burn::tensor::{DType, Int, Tensor, TensorData};

/// `x · w` for `x: [n, k]`, `w: [k, m]`, where any of `n`, `k` and `m` may be 0.
///
/// A part of a graph may hold no node of some type, a node type may have no features, and every rank must
/// still run the same calls; Burn's ndarray backend panics on such products. Then every axis of length 0
/// is made one of zeros, and of the product no row or no column is selected (a slice of an empty range
/// would leave the autodiff graph). So the result for `k = 0` is all zeros, and gradients of `x` and `w`
/// exist: zeros, or tensors without entries.
///
/// # Panics
/// If `x` and `w` disagree about `k`, or their devices or element types differ.
#[track_caller]
pub fn matmul_rows(mut x: Tensor<2>, mut w: Tensor<2>) -> Tensor<2> {
    let ([n, k], [rows, m]) = (x.dims(), w.dims());
    if n > 0 && k > 0 && m > 0 && rows > 0 {
        return x.matmul(w);
    }
    assert!(k == rows, "matmul_rows: `w` must have {k} rows (one per column of `x`), got {rows}");
    let device = x.device();
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
    let mut out = x.matmul(w);
    for (axis, len) in [n, m].into_iter().enumerate() {
        if len == 0 {
            let none = Tensor::<1, Int>::from_data(TensorData::new(Vec::<i64>::new(), [0]), (&device, DType::I64));
            out = out.select(axis, none);
        }
    }
    out
}
