//! Computes attention in Burn primitives: the oracle of tests, and the fallback of backends without kernels.
//!
//! It stores scores, weights and messages of all edges, `edges · heads · features` numbers.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{DType, Shape, Slice};
use burn_gnn_plan::{AttentionPlan, AttentionScoring, BinaryOp, GspmmPlan, Reduce};

use crate::attention::call::{AttentionGrad, AttentionGradInputs};
use crate::gspmm::reference::copy;
use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{bools, dropout_mask, index, narrow, replace, reshape, sum_rows, widen};

/// Gathers rows of operands on nodes, one per edge.
struct Endpoints<B: Backend> {
    src: IntTensor<B>,
    dst: IntTensor<B>,
}

impl<B: Backend> Endpoints<B> {
    fn new(plan: &AttentionPlan, device: &Device<B>) -> Self {
        Self {
            src: index::<B>(plan.relation().src(), device),
            dst: index::<B>(plan.relation().dst(), device),
        }
    }
    fn at_src(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        B::float_select(x, 0, self.src.clone())
    }
    fn at_dst(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        B::float_select(x, 0, self.dst.clone())
    }
}

/// `leaky_relu(x)`, whose derivative at 0 is `slope`, and its derivative.
fn leaky<B: Backend>(x: FloatTensor<B>, slope: f64) -> (FloatTensor<B>, FloatTensor<B>) {
    let above = B::float_greater_elem(x.clone(), 0.0.into(), bools::<B>(&x));
    let ones = B::float_ones(x.shape(), &x.device(), FloatDType::from(x.dtype()));
    let low = B::float_mul_scalar(x.clone(), slope.into());
    let derivative =
        B::float_mask_where(B::float_mul_scalar(ones.clone(), slope.into()), above.clone(), ones);
    (B::float_mask_where(low, above, x), derivative)
}

/// The scores of edges and, where they are computed from nodes, the derivative of their leaky ReLU.
fn scores<B: Backend>(
    first: FloatTensor<B>,
    second: Option<FloatTensor<B>>,
    endpoints: &Endpoints<B>,
    plan: &AttentionPlan,
) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
    let first = widen::<B>(first);
    let (AttentionScoring::Nodes { slope }, Some(second)) = (plan.scoring(), second) else {
        return (first, None);
    };
    let sum = B::float_add(endpoints.at_src(first), endpoints.at_dst(widen::<B>(second)));
    let (scores, slopes) = leaky::<B>(sum, slope);
    (scores, Some(slopes))
}

/// Dropout factors of every edge and head, 0 or `1 / (1 - p)`; `None` without dropout.
fn mask<B: Backend>(plan: &AttentionPlan, like: &FloatTensor<B>) -> Option<FloatTensor<B>> {
    let shape = [plan.relation().num_edges(), plan.heads()];
    Some(dropout_mask::<B>(plan.dropout()?, shape, like))
}

fn nothing<B: Backend>(shape: Shape, like: &FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    B::float_zeros(shape, &like.device(), FloatDType::from(dtype))
}

pub(super) fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Returns the result and its statistics. `first` and `second` are `a_src` and `a_dst`, or `first` are the given scores.
pub(crate) fn forward<B: Backend>(
    z: FloatTensor<B>,
    first: FloatTensor<B>,
    second: Option<FloatTensor<B>>,
    plan: &AttentionPlan,
) -> (FloatTensor<B>, FloatTensor<B>) {
    if plan.is_empty() {
        let stats = nothing::<B>(plan.stats_shape(), &z, wide(z.dtype()));
        return (nothing::<B>(plan.out_shape(), &z, z.dtype()), stats);
    }
    let endpoints = &Endpoints::<B>::new(plan, &z.device());
    let (scores, _) = scores::<B>(first, second, endpoints, plan);
    let dtype = z.dtype();
    let (relation, heads, dim) = (plan.relation(), plan.heads(), plan.dim());
    let (edges, rows) = (relation.num_edges(), relation.num_dst());
    let largest = GspmmPlan::new(relation, BinaryOp::CopyRhs, Reduce::Max, &[heads], &[heads]);
    let Ok(largest) = largest else {
        unreachable!("rows of `heads` entries were checked when the attention was planned")
    };
    // The weights do not depend on the shift, so it needs no gradient.
    let max = copy::<B>(B::float_detach(scores.clone()), &largest).0;
    let max = replace::<B>(max, f64::NEG_INFINITY, 0.0);
    let e = B::float_exp(B::float_sub(scores, endpoints.at_dst(max.clone())));
    let sum = sum_rows::<B>(rows, endpoints.dst.clone(), e.clone());
    // The sum is 0 without edges and where all scores are masks, since the largest score contributes 1. Its inverse is
    // set to 0: infinity times the zero weights would be NaN, here and in the gradient.
    let none = B::float_equal_elem(sum.clone(), 0.0.into(), bools::<B>(&sum));
    let inverse = B::float_mask_fill(B::float_recip(replace::<B>(sum, 0.0, 1.0)), none, 0.0.into());
    let mut w = B::float_mul(e, endpoints.at_dst(inverse.clone()));
    if let Some(mask) = mask::<B>(plan, &w) {
        w = B::float_mul(w, mask);
    }
    let stats = B::float_cat(
        vec![reshape::<B>(max, [rows, 1, heads]), reshape::<B>(inverse, [rows, 1, heads])],
        1,
    );
    if dim == 0 {
        return (nothing::<B>(plan.out_shape(), &z, dtype), stats);
    }
    let messages =
        B::float_mul(endpoints.at_src(widen::<B>(z)), reshape::<B>(w, [edges, heads, 1]));
    (narrow::<B>(sum_rows::<B>(rows, endpoints.dst.clone(), messages), dtype), stats)
}

/// Statistic `at`, `[num_dst, heads]`.
fn part_of<B: Backend>(stats: FloatTensor<B>, at: usize, plan: &AttentionPlan) -> FloatTensor<B> {
    let (dst, heads) = (plan.relation().num_dst(), plan.heads());
    let part = B::float_slice(
        stats,
        &[Slice::from(0..dst), Slice::from(at..at + 1), Slice::from(0..heads)],
    );
    reshape::<B>(part, [dst, heads])
}

pub(super) fn gradient<B: GnnBackend>(
    op: &AttentionGrad,
    inputs: AttentionGradInputs<B>,
) -> Tensors<B> {
    let AttentionGradInputs { grad, out, stats, z, first, second } = inputs;
    let (plan, dtype, device) = (&op.plan, grad.dtype(), grad.device());
    let (relation, heads, dim) = (plan.relation(), plan.heads(), plan.dim());
    let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
    if plan.is_empty() || dim == 0 {
        return op
            .wanted(op.shapes())
            .into_iter()
            .map(|shape| nothing::<B>(shape.into(), &grad, dtype))
            .collect();
    }
    let endpoints = Endpoints::<B>::new(plan, &device);
    let is_gat = second.is_some();
    let (scores, slopes) = scores::<B>(first, second, &endpoints, plan);
    let part = |at: usize| endpoints.at_dst(part_of::<B>(stats.clone(), at, plan));
    let alpha = B::float_mul(B::float_exp(B::float_sub(scores, part(0))), part(1));
    let w = match mask::<B>(plan, &alpha) {
        Some(mask) => B::float_mul(alpha.clone(), mask),
        None => alpha.clone(),
    };
    let wide_grad = widen::<B>(grad);
    let g = endpoints.at_dst(wide_grad.clone());
    let dz = op.z.then(|| {
        let d = B::float_mul(g.clone(), reshape::<B>(w.clone(), [edges, heads, 1]));
        narrow::<B>(sum_rows::<B>(src, endpoints.src.clone(), d), dtype)
    });
    if !op.first && !op.second {
        return dz.into_iter().collect();
    }
    let dots = reshape::<B>(
        B::float_sum_dim(B::float_mul(g, endpoints.at_src(widen::<B>(z))), 2),
        [edges, heads],
    );
    let total =
        reshape::<B>(B::float_sum_dim(B::float_mul(wide_grad, widen::<B>(out)), 2), [dst, heads]);
    let mut ds = B::float_sub(B::float_mul(w, dots), B::float_mul(alpha, endpoints.at_dst(total)));
    if let Some(slopes) = slopes {
        ds = B::float_mul(ds, slopes);
    }
    let at = |wanted: bool, rows: usize, index: &IntTensor<B>| {
        wanted.then(|| narrow::<B>(sum_rows::<B>(rows, index.clone(), ds.clone()), dtype))
    };
    let d_first = if is_gat {
        at(op.first, src, &endpoints.src)
    } else {
        op.first.then(|| narrow::<B>(ds.clone(), dtype))
    };
    let d_second = at(op.second, dst, &endpoints.dst);
    [dz, d_first, d_second].into_iter().flatten().collect()
}
