//! Relational aggregation on the tensors of CPU backends.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use super::backend::RelationalBackend;
use super::grouped_edges::GroupedEdges;
use super::kernel::{Walk, Weights};
use super::plan::{EdgeNorm, RelationalPlan};
use super::products::Products;
use crate::cpu::Host;
use crate::kernel::{Elem, zeros};
use crate::typed::dense::{Matrices, Panels, row_stride};
use crate::typed::widen::{Real, by_real};

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
    let (edges, pairs) = (index.relation().num_edges(), [index.by_dst().num_pairs(), index.by_src().num_pairs()]);
    let after = gather_cost(edges, plan.d_input()) + multiply_cost(pairs[0], shape);
    let write = pairs[1] as f64 * (10.0 + plan.d_output() as f64 / 4.0);
    let before = multiply_cost(pairs[1], shape) + write + gather_cost(edges, plan.d_output());
    before < after
}

fn forward<B: Host, T: Elem<Acc = A>, A: Real>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    norm: &EdgeNorm<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    if is_empty(plan) {
        return nothing::<B, T>(plan.out_shape());
    }
    let (x, weight) = (B::floats::<T>(x), B::floats::<T>(weight));
    let norm = each::<B, T>(norm);
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
    let (grouped, average) = (index.by_dst(), index.is_mean());
    let scale = scales(grouped, norm, plan, false);
    let scale = scale.as_deref();
    if !multiply_first {
        let walk = Walk { grouped, from: x, at: grouped.others(), scale, average, blocks, k, n };
        return walk.run(Some(&Matrices::new(weight, k, n, false)), None, true).0;
    }
    let panels = Panels::new(weight, k, n, false);
    let rows = Products { grouped: index.by_src(), own: x, panels: &panels, blocks, k, n }.per_pair();
    let width = plan.d_output();
    Walk { grouped, from: &rows[..], at: index.src_pairs(), scale, average, blocks: 1, k: width, n: width }.run(None, None, true).0
}

fn each<B: Host, T: Elem>(norm: &EdgeNorm<B>) -> Option<Cow<'_, [T]>> {
    match norm {
        EdgeNorm::One => None,
        EdgeNorm::Each(norm) => Some(B::floats::<T>(norm)),
    }
}

/// Gradients of the input (if there are weights) and of the weights (if there is an input).
fn gradients<B: Host, T: Elem<Acc = A>, A: Real>(
    grad: &FloatTensor<B>,
    x: Option<&FloatTensor<B>>,
    weight: Option<&FloatTensor<B>>,
    norm: &EdgeNorm<B>,
    plan: &RelationalPlan,
) -> (Option<FloatTensor<B>>, Option<FloatTensor<B>>) {
    if is_empty(plan) {
        return (weight.map(|_| nothing::<B, T>(plan.x_shape())), x.map(|_| nothing::<B, T>(plan.weight_shape())));
    }
    let [blocks, input, output] = plan.block_shape();
    let index = plan.index();
    let grouped = index.by_src();
    let grad = B::floats::<T>(grad);
    let scale = scales(grouped, each::<B, T>(norm).as_deref(), plan, index.is_mean());
    let weight = weight.map(B::floats::<T>);
    let matrices = weight.as_deref().map(|w| Matrices::new(w, output, input, true));
    let x = x.map(B::floats::<T>);
    let weights = x.as_deref().map(|own| Weights { own, num_relations: index.num_relations() });
    let walk = Walk { grouped, from: &grad, at: grouped.others(), scale: scale.as_deref(), average: false, blocks, k: output, n: input };
    let (d_x, d_weight) = walk.run::<T>(matrices.as_ref(), weights.as_ref(), matrices.is_some());
    let d_x = matrices.map(|_| B::from_floats(d_x, plan.x_shape()));
    (d_x, weights.map(|_| B::from_floats(T::round(d_weight), plan.weight_shape())))
}

fn grad_norm<B: Host, T: Elem<Acc = A>, A: Real>(
    grad: &FloatTensor<B>,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    plan: &RelationalPlan,
) -> FloatTensor<B> {
    let shape = Shape::from(vec![plan.index().relation().num_edges()]);
    if is_empty(plan) {
        return nothing::<B, T>(shape);
    }
    let [blocks, k, n] = plan.block_shape();
    let grouped = plan.index().by_src();
    let panels = Panels::new(&B::floats::<T>(weight), k, n, false);
    let scale = scales::<A, T>(grouped, None, plan, plan.index().is_mean());
    let products = Products { grouped, own: &B::floats::<T>(x), panels: &panels, blocks, k, n };
    B::from_floats(products.dots(&B::floats::<T>(grad), scale.as_deref()), shape)
}

/// Asked for, so it is there.
fn asked<B: Host>(gradient: Option<FloatTensor<B>>) -> FloatTensor<B> {
    match gradient {
        Some(gradient) => gradient,
        None => unreachable!("the kernel returns every gradient that it was given operands for"),
    }
}

macro_rules! implement {
    ($backend:ty) => {
        impl RelationalBackend for $backend {
            fn relational(
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                norm: EdgeNorm<Self>,
                plan: RelationalPlan,
            ) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&x), forward::<Self>(&x, &weight, &norm, &plan))
            }
            fn relational_grad_x(
                grad: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                norm: EdgeNorm<Self>,
                plan: RelationalPlan,
            ) -> FloatTensor<Self> {
                asked::<Self>(by_real!(TensorMetadata::dtype(&grad), gradients::<Self>(&grad, None, Some(&weight), &norm, &plan)).0)
            }
            fn relational_grad_weight(
                grad: FloatTensor<Self>,
                x: FloatTensor<Self>,
                norm: EdgeNorm<Self>,
                plan: RelationalPlan,
            ) -> FloatTensor<Self> {
                asked::<Self>(by_real!(TensorMetadata::dtype(&grad), gradients::<Self>(&grad, Some(&x), None, &norm, &plan)).1)
            }
            fn relational_grad_both(
                grad: FloatTensor<Self>,
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                norm: EdgeNorm<Self>,
                plan: RelationalPlan,
            ) -> (FloatTensor<Self>, FloatTensor<Self>) {
                let (d_x, d_weight) =
                    by_real!(TensorMetadata::dtype(&grad), gradients::<Self>(&grad, Some(&x), Some(&weight), &norm, &plan));
                (asked::<Self>(d_x), asked::<Self>(d_weight))
            }
            fn relational_grad_norm(
                grad: FloatTensor<Self>,
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                plan: RelationalPlan,
            ) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&grad), grad_norm::<Self>(&grad, &x, &weight, &plan))
            }
        }
    };
}

#[cfg(feature = "flex")]
implement!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
implement!(burn::backend::NdArray);
