//! Relational aggregation on the tensors of CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use super::grouped_edges::{GroupedEdges, by_dst, by_src, src_pairs};
use super::kernel::{Walk, Weights};
use super::operator::{Given, Relational, RelationalGrad};
use super::products::Products;
use crate::cpu::Host;
use crate::kernel::{Elem, zeros};
use crate::operator::Tensors;
use crate::typed::dense::{Matrices, Panels, row_stride};
use crate::typed::widen::{Real, by_real};
use burn_gnn_plan::RelationalPlan;

/// Whether nothing is to be computed.
fn is_empty(plan: &RelationalPlan) -> bool {
    plan.index().relation().num_edges() == 0 || plan.d_input() == 0 || plan.d_output() == 0
}

fn nothing<B: Host, T: Elem>(shape: Shape) -> FloatTensor<B> {
    B::from_floats::<T>(zeros(shape.num_elements()), shape)
}

/// Factors of edges in the order of grouped edges; `mean` if messages are divided here.
fn scales<A: Real, T: Elem<Acc = A>>(grouped: &GroupedEdges, norm: Option<&[T]>, plan: &RelationalPlan, mean: bool) -> Option<Vec<A>> {
    let one = |e: u32| -> A {
        let e = e as usize;
        let norm = norm.map_or(A::ONE, |n| n[e].acc());
        if mean { norm / A::count(plan.index().pair_counts()[e]) } else { norm }
    };
    if norm.is_none() && !mean {
        return None;
    }
    if mean {
        plan.index().pair_counts();
    }
    if grouped.num_edges() < 1 << 16 {
        return Some(grouped.edges().iter().map(|&e| one(e)).collect());
    }
    Some(grouped.edges().par_iter().with_min_len(1 << 14).map(|&e| one(e)).collect())
}

/// Nanoseconds, roughly: of gathering rows of `width`, and of multiplying `pairs`.
fn gather_cost(edges: usize, width: usize) -> f64 {
    edges as f64 * (15.0 + width as f64 / 8.0)
}
fn multiply_cost(pairs: usize, [blocks, input, output]: [usize; 3]) -> f64 {
    pairs as f64 * (blocks * input * row_stride(input, output)) as f64 / 32.0
}

/// Whether a row per pair of a relation and a source is cheaper to make first and to gather then.
fn multiply_first(plan: &RelationalPlan) -> bool {
    let (index, shape) = (plan.index(), plan.block_shape());
    // The other layout is built only where it could win.
    if plan.d_output() >= plan.d_input() {
        return false;
    }
    let (edges, pairs) = (index.relation().num_edges(), [by_dst(index).num_pairs(), by_src(index).num_pairs()]);
    let after = gather_cost(edges, plan.d_input()) + multiply_cost(pairs[0], shape);
    let write = pairs[1] as f64 * (10.0 + plan.d_output() as f64 / 4.0);
    let before = multiply_cost(pairs[1], shape) + write + gather_cost(edges, plan.d_output());
    before < after
}

pub(super) fn forward<B: Host>(op: &Relational, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let given = (inputs.float(), inputs.float(), inputs.float_if(op.scaled));
    Tensors::one(by_real!(given.0.dtype(), typed_forward::<B>(&given, &op.plan)))
}

fn typed_forward<B: Host, T: Elem<Acc = A>, A: Real>(
    (x, weight, norm): &(FloatTensor<B>, FloatTensor<B>, Option<FloatTensor<B>>),
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    if is_empty(plan) {
        return nothing::<B, T>(plan.out_shape());
    }
    let (x, weight, norm) = (B::floats::<T>(x), B::floats::<T>(weight), norm.as_ref().map(B::floats::<T>));
    let out = aggregate::<A, T>(plan, &x, &weight, norm.as_deref(), multiply_first(plan));
    B::from_floats(out, plan.out_shape())
}

/// The result, by one way or the other.
pub(super) fn aggregate<A: Real, T: Elem<Acc = A>>(
    plan: &RelationalPlan,
    x: &[T],
    weight: &[T],
    norm: Option<&[T]>,
    multiply_first: bool,
) -> Vec<T> {
    let [blocks, k, n] = plan.block_shape();
    let index = plan.index();
    let (grouped, average) = (&*by_dst(index), index.is_mean());
    let scale = scales(grouped, norm, plan, false);
    let scale = scale.as_deref();
    if !multiply_first {
        let walk = Walk { grouped, from: x, at: grouped.others(), scale, average, blocks, k, n };
        return walk.run(Some(&Matrices::new(weight, k, n, false)), None, true).0;
    }
    let panels = Panels::new(weight, k, n, false);
    let rows = Products { grouped: &by_src(index), own: x, panels: &panels, blocks, k, n }.per_pair();
    let width = plan.d_output();
    Walk { grouped, from: &rows[..], at: &src_pairs(index), scale, average, blocks: 1, k: width, n: width }.run(None, None, true).0
}

pub(super) fn gradient<B: Host>(op: &RelationalGrad, given: Given<B>) -> Tensors<B> {
    match op.norm {
        true => Tensors::one(by_real!(given.grad.dtype(), gradient_of_norm::<B>(&given, &op.plan))),
        false => by_real!(given.grad.dtype(), typed_gradient::<B>(op, &given)),
    }
}

/// Gradients of the input (if there are weights) and of the weights (if there is an input), in one pass.
fn typed_gradient<B: Host, T: Elem<Acc = A>, A: Real>(op: &RelationalGrad, given: &Given<B>) -> Tensors<B> {
    let plan = &op.plan;
    if is_empty(plan) {
        let shapes = [op.x.then(|| plan.x_shape()), op.weight.then(|| plan.weight_shape())];
        return shapes.into_iter().flatten().map(nothing::<B, T>).collect::<Vec<_>>().into();
    }
    let [blocks, input, output] = plan.block_shape();
    let index = plan.index();
    let grouped = &*by_src(index);
    let (grad, norm) = (B::floats::<T>(&given.grad), given.norm.as_ref().map(B::floats::<T>));
    let scale = scales(grouped, norm.as_deref(), plan, index.is_mean());
    let (x, weight) = (given.x.as_ref().map(B::floats::<T>), given.weight.as_ref().map(B::floats::<T>));
    let matrices = weight.as_deref().map(|w| Matrices::new(w, output, input, true));
    let weights = x.as_deref().map(|own| Weights { own, num_relations: index.num_relations() });
    let walk = Walk { grouped, from: &grad, at: grouped.others(), scale: scale.as_deref(), average: false, blocks, k: output, n: input };
    let (d_x, d_weight) = walk.run::<T>(matrices.as_ref(), weights.as_ref(), matrices.is_some());
    let d_x = matrices.map(|_| B::from_floats(d_x, plan.x_shape()));
    let d_weight = weights.map(|_| B::from_floats(T::round(d_weight), plan.weight_shape()));
    d_x.into_iter().chain(d_weight).collect::<Vec<_>>().into()
}

fn gradient_of_norm<B: Host, T: Elem<Acc = A>, A: Real>(given: &Given<B>, plan: &RelationalPlan) -> FloatTensor<B> {
    let (Some(x), Some(weight)) = (&given.x, &given.weight) else { unreachable!("the gradient of factors reads both operands") };
    if is_empty(plan) {
        return nothing::<B, T>(plan.norm_shape());
    }
    let [blocks, k, n] = plan.block_shape();
    let grouped = &*by_src(plan.index());
    let panels = Panels::new(&B::floats::<T>(weight), k, n, false);
    let scale = scales::<A, T>(grouped, None, plan, plan.index().is_mean());
    let products = Products { grouped, own: &B::floats::<T>(x), panels: &panels, blocks, k, n };
    B::from_floats(products.dots(&B::floats::<T>(&given.grad), scale.as_deref()), plan.norm_shape())
}
