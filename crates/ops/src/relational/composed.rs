//! Relational aggregation out of gathered rows, one product per relation and one sum at the end, for backends that have
//! kernels of GSpMM and GSDDMM.
//!
//! Edges stand by relation, so that the rows of one are a slice. Takes two rows per edge, one as wide as the input
//! and one as wide as the result.

use std::ops::Range;

use burn::backend::tensor::{Device, FloatTensor};
use burn::backend::{FloatDType, TensorMetadata};
use burn::tensor::{DType, Shape, Slice, TensorData};
use burn_gnn_graph::Relation;

use super::plan::{EdgeNorm, RelationalPlan};
use super::reference::{is_empty, matrix};
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce};
use crate::primitives::{index, narrow, widen};
use crate::{GsddmmBackend, GsddmmPlan, SddmmOp, Target};

/// Rows of one end of every edge, by relation.
fn ends<B: GsddmmBackend>(x: FloatTensor<B>, target: Target, width: usize, plan: &RelationalPlan) -> FloatTensor<B> {
    match GsddmmPlan::new(plan.index().sorted(), SddmmOp::CopyLhs, [target; 2], [&[width], &[width]]) {
        Ok(plan) => B::gsddmm_copy(x, plan),
        Err(_) => unreachable!("a shape broadcasts with itself, and widths were checked"),
    }
}

/// Rows of edges, added at their destinations.
fn sums<B: GsddmmBackend>(rows: FloatTensor<B>, relation: &Relation, width: usize) -> FloatTensor<B> {
    match GspmmPlan::new(relation, BinaryOp::CopyRhs, Reduce::Sum, &[width], &[width]) {
        Ok(plan) => B::gspmm_copy(rows, plan),
        Err(_) => unreachable!("a shape broadcasts with itself, and widths were checked"),
    }
}

/// Rows of edges times their factors.
fn scaled<B: GsddmmBackend>(mut rows: FloatTensor<B>, norm: &EdgeNorm<B>, plan: &RelationalPlan) -> FloatTensor<B> {
    let (edges, device) = (plan.index().relation().num_edges(), rows.device());
    let column = Shape::from(vec![edges, 1]);
    if let EdgeNorm::Each(norm) = norm {
        let norm = B::float_select(widen::<B>(norm.clone()), 0, index::<B>(plan.index().by_relation().1, &device));
        rows = B::float_mul(rows, B::float_reshape(norm, column.clone()));
    }
    if plan.index().is_mean() {
        let counts = plan.index().pair_counts();
        let factors: Vec<f64> = plan.index().by_relation().1.iter().map(|&e| 1.0 / f64::from(counts[e as usize])).collect();
        let factors = TensorData::new(factors, column).convert_dtype(rows.dtype());
        rows = B::float_mul(rows, B::float_from_data(factors, &device));
    }
    rows
}

/// The relations that have edges, and where those stand.
fn parts(plan: &RelationalPlan) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let starts = plan.index().by_relation().0;
    starts.windows(2).map(|w| w[0] as usize..w[1] as usize).enumerate().filter(|(_, r)| !r.is_empty())
}

/// The rows of one relation as `[blocks, edges, width]`.
fn part<B: GsddmmBackend>(rows: &FloatTensor<B>, range: &Range<usize>, blocks: usize, width: usize) -> FloatTensor<B> {
    let rows = B::float_slice(rows.clone(), &[Slice::from(range.clone()), Slice::from(0..blocks * width)]);
    B::float_swap_dims(B::float_reshape(rows, Shape::from(vec![range.len(), blocks, width])), 0, 1)
}

/// Every row times the matrix of its relation, or with `turned` times its transpose.
fn products<B: GsddmmBackend>(rows: &FloatTensor<B>, weight: &FloatTensor<B>, plan: &RelationalPlan, turned: bool) -> FloatTensor<B> {
    let [b, i, o] = plan.block_shape();
    let (from, to) = if turned { (o, i) } else { (i, o) };
    let product = |(r, range): (usize, Range<usize>)| {
        let w = matrix::<B>(weight, r, plan);
        let w = if turned { B::float_swap_dims(w, 1, 2) } else { w };
        let out = B::float_matmul(part::<B>(rows, &range, b, from), w);
        B::float_reshape(B::float_swap_dims(out, 0, 1), Shape::from(vec![range.len(), b * to]))
    };
    B::float_cat(parts(plan).map(product).collect(), 0)
}

fn zeros<B: GsddmmBackend>(shape: Shape, device: &Device<B>, dtype: DType) -> FloatTensor<B> {
    B::float_zeros(shape, device, FloatDType::from(dtype))
}

pub(super) fn forward<B: GsddmmBackend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    norm: EdgeNorm<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (x.dtype(), x.device());
    if is_empty(plan) {
        return zeros::<B>(plan.out_shape(), &device, dtype);
    }
    let rows = scaled::<B>(ends::<B>(widen::<B>(x), Target::Src, plan.d_input(), plan), &norm, plan);
    let rows = products::<B>(&rows, &widen::<B>(weight), plan, false);
    narrow::<B>(sums::<B>(rows, plan.index().sorted(), plan.d_output()), dtype)
}

pub(super) fn grad_x<B: GsddmmBackend>(
    grad: FloatTensor<B>,
    weight: FloatTensor<B>,
    norm: EdgeNorm<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    if is_empty(plan) {
        return zeros::<B>(plan.x_shape(), &device, dtype);
    }
    let rows = scaled::<B>(ends::<B>(widen::<B>(grad), Target::Dst, plan.d_output(), plan), &norm, plan);
    let rows = products::<B>(&rows, &widen::<B>(weight), plan, true);
    narrow::<B>(sums::<B>(rows, &plan.index().sorted().reverse(), plan.d_input()), dtype)
}

pub(super) fn grad_weight<B: GsddmmBackend>(
    grad: FloatTensor<B>,
    x: FloatTensor<B>,
    norm: EdgeNorm<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    if is_empty(plan) {
        return zeros::<B>(plan.weight_shape(), &device, dtype);
    }
    let [b, i, o] = plan.block_shape();
    let grads = scaled::<B>(ends::<B>(widen::<B>(grad), Target::Dst, plan.d_output(), plan), &norm, plan);
    let rows = ends::<B>(widen::<B>(x), Target::Src, plan.d_input(), plan);
    let mut shape = plan.weight_shape().to_vec();
    shape[0] = 1;
    let mut all = vec![];
    let blank = |all: &mut Vec<FloatTensor<B>>, upto: usize, from: usize| {
        if upto > from {
            let mut shape = shape.clone();
            shape[0] = upto - from;
            all.push(zeros::<B>(Shape::from(shape), &device, rows.dtype()));
        }
    };
    let mut next = 0;
    for (r, range) in parts(plan) {
        blank(&mut all, r, next);
        let turned = B::float_swap_dims(part::<B>(&rows, &range, b, i), 1, 2);
        let d = B::float_matmul(turned, part::<B>(&grads, &range, b, o));
        all.push(B::float_reshape(d, Shape::from(shape.clone())));
        next = r + 1;
    }
    blank(&mut all, plan.index().num_relations(), next);
    narrow::<B>(B::float_cat(all, 0), dtype)
}

pub(super) fn grad_norm<B: GsddmmBackend>(
    grad: FloatTensor<B>,
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let edges = plan.index().relation().num_edges();
    if is_empty(plan) {
        return zeros::<B>(Shape::from(vec![edges]), &device, dtype);
    }
    let grads = scaled::<B>(ends::<B>(widen::<B>(grad), Target::Dst, plan.d_output(), plan), &EdgeNorm::One, plan);
    let rows = products::<B>(&ends::<B>(widen::<B>(x), Target::Src, plan.d_input(), plan), &widen::<B>(weight), plan, false);
    let d = B::float_reshape(B::float_sum_dim(B::float_mul(rows, grads), 1), Shape::from(vec![edges]));
    // Back to edge ids: a permutation is gathered by its inverse.
    let mut place = vec![0; edges];
    plan.index().by_relation().1.iter().enumerate().for_each(|(at, &e)| place[e as usize] = at as u32);
    narrow::<B>(B::float_select(d, 0, index::<B>(&place, &device)), dtype)
}
