//! Computes relational aggregation, `out[v] = Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r`, and its gradients.
//!
//! It is the sum of an R-GCN layer over all relations. Composed of operators it either gathers and stores `x[u] W_r` per
//! edge, or loops over relations, each of which reads and writes all of `out`. The fused kernel does neither: it groups
//! the edges once by (block of destinations, relation, destination), sums the sources of each (relation, destination)
//! pair, multiplies the sum with `W_r`, and adds the product to the block of results, which stays in cache.
//!
//! ```text
//! parallel for runs of blocks of rows:
//!   for group (relation r, pairs) of the block:
//!     for up to TILE pairs (r, row):
//!       tile[pair] = Σ over the edges of the pair of scale[e] · from[other endpoint]
//!       block[row] += tile[pair] · W_r     4 rows × 16 columns at a time, sums in registers
//!       d W_r += own[row]ᵀ · tile[pair]    (backward only)
//!   write the rows of the block
//! ```
//!
//! 1. **Sum first, multiply once per pair.** `Σ_e norm[e] x[u] W_r = (Σ_e norm[e] x[u]) W_r`, so there is one product per
//!    pair instead of one per edge. If outputs are narrower than inputs and sources are fewer than destinations, it is
//!    cheaper to multiply every (relation, source) pair first and to gather the products; `multiply_first` estimates both.
//! 2. **Blocks of rows, sorted by relation** (`grouped_edges`): the result rows of a block and the weights of a relation
//!    stay in the first-level caches. Per edge only one source row and the index come from memory.
//! 3. **Narrow rows are summed in one flat loop over edges.** Most pairs have one or two edges. A loop per pair would
//!    mispredict its end each time, which costs more than the edge (`gather`).
//! 4. **Narrow matrices are multiplied from packed panels**, in registers: 1.16 to 1.21 times as fast per R-GCN epoch as
//!    calls of `gemm` (docs/measurements/2026-11-24-specialised-kernels.md). Wide matrices use `gemm`, a tile at a time.
//! 5. **Backward is the same walk from the other endpoint.** `from` is the gradient, `own` the input, and the weights are
//!    transposed; the gradient of the weights is accumulated from the tiles that are in cache.
//!
//! The derivatives are `∂L/∂x[u] = Σ_r (Σ_(u,v,e) in r norm[e] g[v]) W_rᵀ`,
//! `∂L/∂W_r = Σ_u x[u]ᵀ (Σ_(u,v,e) in r norm[e] g[v])` and `∂L/∂norm[e] = <x[u] W_r, g[v]>`, with `g = ∂L/∂out`.

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

/// Whether the result is empty or zero, because the plan has no edges or no columns.
fn is_empty(plan: &RelationalPlan) -> bool {
    plan.index().relation().num_edges() == 0 || plan.d_input() == 0 || plan.d_output() == 0
}

/// The result of a plan; `norm` is an optional factor per edge.
pub(crate) fn forward<T: Elem>(
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

/// The tensors that gradients are computed from.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T> {
    /// Gradient of the result.
    pub grad: &'a [T],
    /// The input, if the gradient of the weights is needed.
    pub x: Option<&'a [T]>,
    /// The weights, if the gradient of the input is needed.
    pub weight: Option<&'a [T]>,
    /// The factors of edges, if there are any.
    pub norm: Option<&'a [T]>,
}

/// The gradients of the input (if `weight` is given) and of the weights (if `x` is given), in one pass.
pub(crate) fn gradient<T: Elem>(
    plan: &RelationalPlan,
    given: GradInputs<'_, T>,
) -> [Option<Vec<T>>; 2] {
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

/// The gradient of `norm`.
pub(crate) fn gradient_of_norm<T: Elem>(
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

/// The result, by the method that `multiply_first` selects.
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

/// The factors of edges in the order of grouped edges. If `mean` is set, they include `1 / count` of the pair.
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

/// Estimated time of gathering `edges` rows of `width` entries, in nanoseconds.
fn gather_cost(edges: usize, width: usize) -> f64 {
    edges as f64 * (15.0 + width as f64 / 8.0)
}
/// Estimated time of multiplying the rows of `pairs` with their weights, in nanoseconds.
fn multiply_cost(pairs: usize, [blocks, input, output]: [usize; 3]) -> f64 {
    pairs as f64 * (blocks * input * row_stride(input, output)) as f64 / 32.0
}

/// Whether it is cheaper to multiply each (relation, source) pair first and then to gather the products.
fn multiply_first(plan: &RelationalPlan) -> bool {
    let (index, shape) = (plan.index(), plan.block_shape());
    // Grouping the edges by source as well costs time and memory, so it is done only if it may pay off.
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
    fn multiplying_before_and_after_the_sum_agree() {
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
