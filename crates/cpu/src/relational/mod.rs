//! Computes relational aggregation, `out[v] = Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r`, and its gradients.

mod aggregate;
mod gather;
mod grouped_edges;
mod products;

use burn_gnn_plan::RelationalPlan;
use rayon::prelude::*;

use crate::dense::small_products::{Matrices, Panels, row_stride};
use crate::number::{Acc, Elem};
use crate::parallel::output_buffer::zeros;
use aggregate::{Walk, Weights};
use grouped_edges::{GroupedEdges, by_dst, by_src, src_pairs};
use products::Products;

/// Whether nothing is to be computed.
fn is_empty(plan: &RelationalPlan) -> bool {
    plan.index().relation().num_edges() == 0 || plan.d_input() == 0 || plan.d_output() == 0
}

/// The result; `norm` is a factor for every edge.
pub fn forward<T: Elem>(
    plan: &RelationalPlan,
    x: &[T],
    weight: &[T],
    norm: Option<&[T]>,
) -> Vec<T> {
    if is_empty(plan) {
        return zeros(plan.out_shape().num_elements());
    }
    aggregate(plan, x, weight, norm, multiply_first(plan))
}

/// What the gradients are computed from.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T> {
    /// That of the result.
    pub grad: &'a [T],
    /// The input, for the gradient of the weights.
    pub x: Option<&'a [T]>,
    /// The weights, for the gradient of the input.
    pub weight: Option<&'a [T]>,
    /// The factors of edges, if there are any.
    pub norm: Option<&'a [T]>,
}

/// Gradients of the input (if there are weights) and of the weights (if there is an input), in one pass.
pub fn gradient<T: Elem>(plan: &RelationalPlan, given: GradInputs<'_, T>) -> [Option<Vec<T>>; 2] {
    let GradInputs { grad, x, weight, norm } = given;
    if is_empty(plan) {
        let (x, weights) = (weight.map(|_| plan.x_shape()), x.map(|_| plan.weight_shape()));
        return [x, weights].map(|shape| shape.map(|shape| zeros(shape.num_elements())));
    }
    let [blocks, input, output] = plan.block_shape();
    let index = plan.index();
    let grouped = &*by_src(index);
    let scale = scales(grouped, norm, plan, index.is_mean());
    let matrices = weight.map(|w| Matrices::new(w, output, input, true));
    let weights = x.map(|own| Weights { own, num_relations: index.num_relations() });
    let walk = Walk {
        grouped,
        from: grad,
        at: grouped.others(),
        scale: scale.as_deref(),
        average: false,
        blocks,
        k: output,
        n: input,
    };
    let (d_x, d_weight) = walk.run::<T>(matrices.as_ref(), weights.as_ref(), matrices.is_some());
    [matrices.map(|_| d_x), weights.map(|_| T::round(d_weight))]
}

/// The gradient of the factors of edges.
pub fn gradient_of_norm<T: Elem>(
    plan: &RelationalPlan,
    grad: &[T],
    x: &[T],
    weight: &[T],
) -> Vec<T> {
    if is_empty(plan) {
        return zeros(plan.norm_shape().num_elements());
    }
    let [blocks, k, n] = plan.block_shape();
    let grouped = &*by_src(plan.index());
    let panels = Panels::new(weight, k, n, false);
    let scale = scales::<T>(grouped, None, plan, plan.index().is_mean());
    Products { grouped, own: x, panels: &panels, blocks, k, n }.dots(grad, scale.as_deref())
}

/// The result, by either method.
fn aggregate<T: Elem>(
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
    let rows =
        Products { grouped: &by_src(index), own: x, panels: &panels, blocks, k, n }.per_pair();
    let width = plan.d_output();
    Walk {
        grouped,
        from: &rows[..],
        at: &src_pairs(index),
        scale,
        average,
        blocks: 1,
        k: width,
        n: width,
    }
    .run(None, None, true)
    .0
}

/// Factors of edges in the order of grouped edges; `mean` if messages are divided here.
fn scales<T: Elem>(
    grouped: &GroupedEdges,
    norm: Option<&[T]>,
    plan: &RelationalPlan,
    mean: bool,
) -> Option<Vec<T::Acc>> {
    if norm.is_none() && !mean {
        return None;
    }
    let counts = mean.then(|| plan.index().pair_counts());
    let one = |e: u32| -> T::Acc {
        let e = e as usize;
        let norm = norm.map_or(T::Acc::ONE, |n| n[e].acc());
        counts.map_or(norm, |counts| norm / T::Acc::count(counts[e]))
    };
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
    let (edges, pairs) =
        (index.relation().num_edges(), [by_dst(index).num_pairs(), by_src(index).num_pairs()]);
    let after = gather_cost(edges, plan.d_input()) + multiply_cost(pairs[0], shape);
    let write = pairs[1] as f64 * (10.0 + plan.d_output() as f64 / 4.0);
    let before = multiply_cost(pairs[1], shape) + write + gather_cost(edges, plan.d_output());
    before < after
}

#[cfg(test)]
mod tests {
    use burn_gnn_plan::RelationalIndex;
    use burn_gnn_structure::{Relation, Stream};

    use super::*;

    fn numbers(seed: u64, n: usize) -> Vec<f64> {
        let stream = Stream::new(seed, "relational", 0);
        (0..n as u64).map(|i| 2.0 * stream.uniform(i, 0) - 1.0).collect()
    }

    #[test]
    fn multiplying_first_or_last() {
        let edges = |src, dst, n: u32| {
            let endpoints =
                |of: fn(u32) -> u32, nodes: usize| (0..n).map(|i| of(i) % nodes as u32).collect();
            let relation =
                Relation::from_coo(src, dst, endpoints(|i| i * 7, src), endpoints(|i| i * i, dst))
                    .unwrap();
            RelationalIndex::new(&relation, &(0..n).map(|i| i * 5 % 4).collect::<Vec<_>>(), 6)
        };
        let some = edges(6, 5, 40);
        for index in [some.mean(), some, edges(3, 70, 200)] {
            for shape in [&[5usize, 3][..], &[3, 5], &[2, 17, 2], &[64, 20]] {
                let plan = RelationalPlan::new(&index, shape).unwrap();
                let (x, w) = (
                    numbers(1, plan.x_shape().num_elements()),
                    numbers(2, plan.weight_shape().num_elements()),
                );
                let norm = numbers(3, index.relation().num_edges());
                for norm in [None, Some(&norm[..])] {
                    let [last, first] =
                        [false, true].map(|first| aggregate(&plan, &x, &w, norm, first));
                    assert_eq!(first.len(), last.len());
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
                    assert!(
                        first.iter().zip(&last).all(near),
                        "{shape:?}: {first:?} against {last:?}"
                    );
                }
            }
        }
    }
}
