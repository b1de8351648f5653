//! Computes typed products in Burn primitives, one matrix at a time: the fallback of backends without kernels.
//!
//! Rows are sorted by matrix and sorted back afterwards, so that the rows of a matrix are a slice and every result row is
//! written once. Scatter-adds are avoided, since some devices run them sequentially.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Slice;
use burn_gnn_plan::TypedPlan;

use crate::primitives::{index, narrow, reshape, widen, zeros};

/// Sorts rows by matrix.
fn sorted<B: Backend>(x: FloatTensor<B>, plan: &TypedPlan) -> FloatTensor<B> {
    match plan.order() {
        Some(order) => {
            let order = index::<B>(order, &x.device());
            B::float_select(x, 0, order)
        }
        None => x,
    }
}

/// The inverse of [`sorted`].
fn unsorted<B: Backend>(x: FloatTensor<B>, plan: &TypedPlan) -> FloatTensor<B> {
    let Some(order) = plan.order() else { return x };
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &row)| inverse[row as usize] = at as u32);
    let inverse = index::<B>(&inverse, &x.device());
    B::float_select(x, 0, inverse)
}

/// The matrices that have rows.
fn matrices(plan: &TypedPlan) -> impl Iterator<Item = usize> + '_ {
    (0..plan.offsets().len()).filter(|&k| !plan.offsets().range(k).is_empty())
}

/// The rows of matrix `k` of a sorted tensor.
fn part<B: Backend>(x: &FloatTensor<B>, k: usize, plan: &TypedPlan) -> FloatTensor<B> {
    let width = x.shape()[1];
    B::float_slice(x.clone(), &[Slice::from(plan.offsets().range(k)), Slice::from(0..width)])
}

pub(super) fn multiply<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    plan: &TypedPlan,
    transposed: bool,
) -> FloatTensor<B> {
    let dtype = a.dtype();
    let [i, o] = [plan.d_input(), plan.d_output()];
    if i * o == 0 || plan.offsets().num_rows() == 0 {
        let shape = if transposed { plan.a_shape() } else { plan.out_shape() };
        return zeros::<B>(shape, &a);
    }
    let (a, b) = (sorted::<B>(widen::<B>(a), plan), widen::<B>(b));
    let product = |k: usize| {
        let w = B::float_slice(b.clone(), &[Slice::new(k as isize, Some(k as isize + 1), 1)]);
        let w = reshape::<B>(w, [i, o]);
        B::float_matmul(
            part::<B>(&a, k, plan),
            if transposed { B::float_swap_dims(w, 0, 1) } else { w },
        )
    };
    let out = B::float_cat(matrices(plan).map(product).collect(), 0);
    narrow::<B>(unsorted::<B>(out, plan), dtype)
}

pub(super) fn grad_b<B: Backend>(
    grad: FloatTensor<B>,
    a: FloatTensor<B>,
    plan: &TypedPlan,
) -> FloatTensor<B> {
    let dtype = grad.dtype();
    let (grad, a) = (sorted::<B>(widen::<B>(grad), plan), sorted::<B>(widen::<B>(a), plan));
    let [i, o] = [plan.d_input(), plan.d_output()];
    let mut out = zeros::<B>(plan.b_shape(), &a);
    if i * o > 0 {
        for k in matrices(plan) {
            let left = B::float_swap_dims(part::<B>(&a, k, plan), 0, 1);
            let d = reshape::<B>(B::float_matmul(left, part::<B>(&grad, k, plan)), [1, i, o]);
            out = B::float_slice_assign(out, &[Slice::new(k as isize, Some(k as isize + 1), 1)], d);
        }
    }
    narrow::<B>(out, dtype)
}
