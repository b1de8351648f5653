//! Matrix products that take matrices without rows.

use burn::tensor::{DType, Int, Tensor, TensorData};

/// `x · w` for `x: [n, k]`, `w: [k, m]`, also for `n = 0`.
///
/// A part of a graph may hold no node of some type, and every rank must still run the same calls; Burn's
/// ndarray backend panics on a product without rows. Then one row of zeros is multiplied and no row of
/// the product is selected (a slice of an empty range would leave the autodiff graph), so that gradients of `x` and
/// `w` exist and are zero.
///
/// # Panics
/// If `x` and `w` disagree about `k`, or their devices or element types differ.
#[track_caller]
pub fn matmul_rows(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    let [n, _] = x.dims();
    if n > 0 {
        return x.matmul(w);
    }
    let device = x.device();
    let none = Tensor::<1, Int>::from_data(TensorData::new(Vec::<i64>::new(), [0]), (&device, DType::I64));
    // The sum of no rows is a row of zeros that `x` takes part in; `Tensor::cat` would forget an empty `x`.
    x.sum_dim(0).matmul(w).select(0, none)
}
