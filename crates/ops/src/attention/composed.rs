//! Attention out of GSDDMM and GSpMM, for backends that have kernels of those: numbers per edge and head, none per
//! edge and feature.

use burn::backend::tensor::FloatTensor;
use burn::backend::{FloatDType, TensorMetadata, get_device_settings};
use burn::tensor::Shape;

use super::backend::AttentionKept;
use super::plan::{AttentionPlan, AttentionWants};
use super::reference::{leaky, mask, nothing, part_of, reshape, zeros};
use crate::backend::Kept;
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce, Side};
use crate::primitives::{narrow, replace, widen};
use crate::{GsddmmBackend, GsddmmPlan, SddmmOp, Target};

/// `op` on rows of `heads` entries at two targets.
fn edges<B: GsddmmBackend>(op: SddmmOp, [l, r]: [(Target, FloatTensor<B>); 2], plan: &AttentionPlan) -> FloatTensor<B> {
    let features = [plan.heads()];
    match GsddmmPlan::new(plan.relation(), op, [l.0, r.0], [&features, &features]) {
        Ok(plan) => B::gsddmm_binary(l.1, r.1, plan),
        Err(_) => unreachable!("rows of `heads` entries were checked when the attention was planned"),
    }
}

/// Rows of edges reduced at their destinations, or at their sources with `at_src`.
fn reduced(plan: &AttentionPlan, reduce: Reduce, at_src: bool) -> GspmmPlan {
    let relation = if at_src { plan.relation().reverse() } else { plan.relation().clone() };
    let features = [plan.heads()];
    match GspmmPlan::new(&relation, BinaryOp::CopyRhs, reduce, &features, &features) {
        Ok(plan) => plan,
        Err(_) => unreachable!("rows of `heads` entries were checked when the attention was planned"),
    }
}

/// `Σ w[e] · z[u]`.
fn weighted(plan: &AttentionPlan) -> GspmmPlan {
    match GspmmPlan::new(plan.relation(), BinaryOp::Mul, Reduce::Sum, &[plan.heads(), plan.dim()], &[plan.heads(), 1]) {
        Ok(plan) => plan,
        Err(_) => unreachable!("rows of `heads` entries broadcast with those of `z`"),
    }
}

/// Scores before `leaky_relu`.
fn before<B: GsddmmBackend>(a_src: FloatTensor<B>, a_dst: FloatTensor<B>, plan: &AttentionPlan) -> FloatTensor<B> {
    edges::<B>(SddmmOp::Add, [(Target::Src, widen::<B>(a_src)), (Target::Dst, widen::<B>(a_dst))], plan)
}

pub(super) fn gat<B: GsddmmBackend>(
    z: FloatTensor<B>,
    a_src: FloatTensor<B>,
    a_dst: FloatTensor<B>,
    plan: &AttentionPlan,
) -> (FloatTensor<B>, FloatTensor<B>) {
    if plan.is_empty() {
        return zeros::<B>(&z, plan);
    }
    let scores = leaky::<B>(before::<B>(a_src, a_dst, plan), plan.slope().unwrap_or_default()).0;
    forward::<B>(z, scores, plan)
}

pub(super) fn given<B: GsddmmBackend>(z: FloatTensor<B>, logits: FloatTensor<B>, plan: &AttentionPlan) -> (FloatTensor<B>, FloatTensor<B>) {
    if plan.is_empty() {
        return zeros::<B>(&z, plan);
    }
    forward::<B>(z, widen::<B>(logits), plan)
}

fn forward<B: GsddmmBackend>(z: FloatTensor<B>, scores: FloatTensor<B>, plan: &AttentionPlan) -> (FloatTensor<B>, FloatTensor<B>) {
    let (dtype, device, wide) = (z.dtype(), z.device(), scores.dtype());
    let (edge_count, rows, heads) = (plan.relation().num_edges(), plan.relation().num_dst(), plan.heads());
    let max = B::gspmm_copy_arg(scores.clone(), reduced(plan, Reduce::Max, false)).0;
    let max = replace::<B>(max, f64::NEG_INFINITY, 0.0);
    let e = B::float_exp(edges::<B>(SddmmOp::Sub, [(Target::Edge, scores), (Target::Dst, max.clone())], plan));
    let sum = B::gspmm_copy(e.clone(), reduced(plan, Reduce::Sum, false));
    // As in the reference: no inverse of a sum of nothing, which would be infinite.
    let none = B::float_equal_elem(sum.clone(), 0.0.into(), get_device_settings::<B>(&device).bool_dtype);
    let inverse = B::float_mask_fill(B::float_recip(replace::<B>(sum, 0.0, 1.0)), none, 0.0.into());
    let mut w = edges::<B>(SddmmOp::Mul, [(Target::Edge, e), (Target::Dst, inverse.clone())], plan);
    if let Some(mask) = mask::<B>(plan, wide, &device) {
        w = B::float_mul(w, mask);
    }
    let stats = B::float_cat(vec![reshape::<B, 3>(max, [rows, 1, heads]), reshape::<B, 3>(inverse, [rows, 1, heads])], 1);
    if plan.dim() == 0 {
        return (nothing::<B>(plan.out_shape(), &z, dtype), stats);
    }
    let out = B::gspmm_binary(widen::<B>(z), reshape::<B, 3>(w, [edge_count, heads, 1]), weighted(plan));
    (narrow::<B>(out, dtype), stats)
}

pub(super) fn gradient<B: GsddmmBackend>(
    grad: FloatTensor<B>,
    kept: AttentionKept<B>,
    plan: &AttentionPlan,
    wants: AttentionWants,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let (dtype, device) = (grad.dtype(), grad.device());
    let (heads, dim, dst, edge_count) = (plan.heads(), plan.dim(), plan.relation().num_dst(), plan.relation().num_edges());
    if plan.is_empty() || dim == 0 {
        return super::reference::gradient::<B>(grad, kept, plan, wants);
    }
    let (out, stats, z, pre, is_gat) = match kept {
        AttentionKept::Gat(out, stats, z, a_src, a_dst) => (out, stats, z, before::<B>(a_src, a_dst, plan), true),
        AttentionKept::Edges(out, stats, z, logits) => (out, stats, z, widen::<B>(logits), false),
    };
    let (scores, slopes) = match plan.slope() {
        Some(slope) => {
            let (scores, slopes) = leaky::<B>(pre, slope);
            (scores, Some(slopes))
        }
        None => (pre, None),
    };
    let stat = |at: usize| part_of::<B>(stats.clone(), at, plan);
    let shifted = edges::<B>(SddmmOp::Sub, [(Target::Edge, scores), (Target::Dst, stat(0))], plan);
    let alpha = edges::<B>(SddmmOp::Mul, [(Target::Edge, B::float_exp(shifted)), (Target::Dst, stat(1))], plan);
    let w = match mask::<B>(plan, alpha.dtype(), &device) {
        Some(mask) => B::float_mul(alpha.clone(), mask),
        None => alpha.clone(),
    };
    let none = || B::float_zeros(Shape::from([0]), &device, FloatDType::from(dtype));
    let g = widen::<B>(grad);
    let dz = if wants.z {
        let w = reshape::<B, 3>(w.clone(), [edge_count, heads, 1]);
        narrow::<B>(B::gspmm_grad(g.clone(), Kept::Rhs(w), weighted(plan), Side::Lhs), dtype)
    } else {
        none()
    };
    if !wants.first && !wants.second {
        return (dz, none(), none());
    }
    // d w[e] = z[u] · grad[v] for every head.
    let dots = reshape::<B, 2>(B::gspmm_grad(g.clone(), Kept::Lhs(widen::<B>(z)), weighted(plan), Side::Rhs), [edge_count, heads]);
    let total = reshape::<B, 2>(B::float_sum_dim(B::float_mul(g, widen::<B>(out)), 2), [dst, heads]);
    let total = edges::<B>(SddmmOp::Mul, [(Target::Edge, alpha), (Target::Dst, total)], plan);
    let mut ds = B::float_sub(B::float_mul(w, dots), total);
    if let Some(slopes) = slopes {
        ds = B::float_mul(ds, slopes);
    }
    if !is_gat {
        return (dz, narrow::<B>(ds, dtype), none());
    }
    let end = |wanted: bool, at_src: bool| {
        if wanted { narrow::<B>(B::gspmm_copy(ds.clone(), reduced(plan, Reduce::Sum, at_src)), dtype) } else { none() }
    };
    let (first, second) = (end(wants.first, true), end(wants.second, false));
    (dz, first, second)
}
