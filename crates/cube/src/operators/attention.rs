//! Attention and its gradients, without materialising a value per edge and feature.
//!
//! The algorithm is that of `burn-gnn-cpu`'s module `attention`, which explains its steps. On a GPU it runs as a few
//! kernels instead of one, each with one thread per row and vector of columns:
//!
//! ```text
//! forward:   statistics of the scores by destination, then     out[v] = Σ m[e] α[e] z[u]        rows of CSC
//! backward:  T[v] = <grad[v], out[v]> per head, then
//!            d z[u]  = Σ m[e] α[e] grad[v]                                                       rows of CSR
//!            d s[e]  = (m[e] α[e] <grad[v], z[u]> - α[e] T[v]) · slope                           edges
//!            d a_src = Σ d s over out-edges, d a_dst = Σ d s over in-edges
//! ```
//! 1. `α[e] = exp(s[e] - max[v]) · inverse[v]` is recomputed from the scores in every kernel that needs it, and so is the
//!    mask `m[e]` of dropout (0 or the scale). Only two statistics per destination and head are saved.
//! 2. Edge-parallel work (`d s`) runs with one thread per edge and head; all sums are gathers over rows, so there are no
//!    atomics.

use std::sync::Arc;

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{AttentionPlan, AttentionScoring};
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{
    address, arg, empty, grid, grid_of_rows, in_flight, vector, wide, zeros,
};
use crate::message::broadcast::Map;
use crate::message::chunk_sums::sum_rows;
use crate::message::formula::{Formula, Messages, MessagesExpand, Place, sum};
use crate::message::layout::{Layout, csc, csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};
use crate::message::softmax::{EdgeScores, ScorePlace, Scores, SumForm, stats};
use crate::message::walk::{Edges, Step};
use crate::numeric::dropout::Dropout;
use crate::numeric::philox::{Draws, pick};

/// The operands of the scores.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One is made for a call, and moved once.
pub enum AttentionScores {
    /// `a_src`, `[num_src, heads]`, and `a_dst`, `[num_dst, heads]`.
    Nodes(CubeTensor, CubeTensor),
    /// Scores per edge, `[num_edges, heads]`.
    Edges(CubeTensor),
}

impl AttentionScores {
    #[track_caller]
    fn checked(self, call: &Call, relation: &Relation, heads: usize) -> Self {
        match self {
            Self::Nodes(a, b) => {
                let a = call.rows("a_src", a, relation.num_src(), heads);
                Self::Nodes(a, call.rows("a_dst", b, relation.num_dst(), heads))
            }
            Self::Edges(x) => Self::Edges(call.rows("logits", x, relation.num_edges(), heads)),
        }
    }
    /// The scores for a kernel whose rows are destinations or, if `reversed`, sources.
    fn seen(&self, reversed: bool, plan: &AttentionPlan) -> Scores<'_> {
        let (a, b, place) = match (self, reversed) {
            (Self::Edges(x), _) => (x, x, ScorePlace::Edges),
            (Self::Nodes(a, b), false) => (a, b, ScorePlace::Nodes),
            (Self::Nodes(a, b), true) => (a, b, ScorePlace::NodesReversed),
        };
        let slope = match plan.scoring() {
            AttentionScoring::Nodes { slope } => slope,
            AttentionScoring::Edges => 0.0,
        };
        Scores { a, b, slope, width: plan.heads(), place }
    }
}

/// Computes the weights of edges in a kernel.
#[derive(CubeType, CubeLaunch)]
struct Weights<F: Float, A: Float> {
    scores: EdgeScores<F, Const<1>>,
    /// Statistics of destinations.
    stats: Box<[A]>,
    draws: ComptimeOption<Draws>,
    /// Whether rows are sources; then the statistics belong to the far node.
    #[cube(comptime)]
    reversed: bool,
}

#[cube]
impl<F: Float, A: Float> Weights<F, A> {
    /// `α` of an edge and head, before dropout.
    fn alpha(&self, step: &Step, head: usize) -> A {
        let heads = self.scores.width;
        let s = self.scores.score::<A>(step, head);
        let node = if comptime!(self.reversed) { step.far } else { step.row };
        let at = node * 2 * heads + head;
        (s.extract(0usize) - self.stats[at]).exp() * self.stats[at + heads]
    }

    /// Applies dropout to the value `x` of an edge and head.
    fn dropped(&self, x: A, edge: usize, head: usize) -> A {
        let mut out = x;
        #[comptime]
        if let ComptimeOption::Some(draws) = &self.draws {
            let words = draws.words(edge, (head / 4) as u32);
            let word = pick(words, (head % 4) as u32);
            out *= select(draws.keeps(word), draws.scale.get::<A>(), A::new(0.0_f32));
        }
        out
    }
}

/// Messages: rows of the far nodes times the weight of the edge, for one head.
#[derive(CubeType)]
struct Weighted<'a, F: Float, A: Float, N: Size> {
    weights: &'a Weights<F, A>,
    x: &'a [Vector<F, N>],
    width: usize,
    head: usize,
}

#[cube]
impl<'a, F: Float, A: Float, N: Size> Weighted<'a, F, A, N> {
    fn new(weights: &'a Weights<F, A>, x: &'a [Vector<F, N>], width: usize, head: usize) -> Self {
        Weighted::<'a, F, A, N> { weights, x, width, head }
    }
}

#[cube]
impl<F: Float, A: Float, N: Size> Messages<A, N> for Weighted<'_, F, A, N> {
    fn message(&self, step: &Step, col: usize) -> Vector<A, N> {
        let w = self.weights.alpha(step, self.head);
        let w = self.weights.dropped(w, step.edge, self.head);
        Vector::<A, N>::new(w) * Vector::<A, N>::cast_from(self.x[step.far * self.width + col])
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn attend_kernel<F: Float, A: Float, O: Float, N: Size>(
    edges: &Edges,
    weights: &Weights<F, A>,
    x: &[Vector<F, N>],
    out: &mut [Vector<O, N>],
    dim: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let width = weights.scores.width * dim;
    let span = edges.own_span(width);
    let col = pos % width;
    let messages = Weighted::new(weights, x, width, col / dim);
    let sum = sum::<A, N, Weighted<'_, F, A, N>>(edges, &span, &messages, col);
    out[pos] = Vector::<O, N>::cast_from(sum);
}

/// `ds` of every edge and head from `dots`, `<grad[v], z[u]>`, and `totals`, `T[v]`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn scores_grad_kernel<F: Float, A: Float, O: Float>(
    edges: &Edges,
    weights: &Weights<F, A>,
    dots: &[A],
    totals: &[A],
    out: &mut [O],
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let heads = weights.scores.width;
    if pos >= edges.tasks * heads {
        terminate!();
    }
    let edge = pos / heads;
    let head = pos % heads;
    // Rows are sources in this kernel.
    let s = edges.step(edge, edge);
    let x = weights.alpha(&s, head);
    let w = weights.dropped(x, edge, head);
    let mut d = w * dots[pos] - x * totals[s.far * heads + head];
    if comptime!(weights.scores.place != ScorePlace::Edges) {
        let before = weights.scores.before::<A>(&s, head).extract(0usize);
        let slope = weights.scores.slope.get::<A>();
        d *= select(before > A::new(0.0_f32), A::new(1.0_f32), slope);
    }
    out[pos] = O::cast_from(d);
}

/// A plan, and its dropout mask on the device.
struct Attention<'a> {
    plan: &'a AttentionPlan,
    draws: Option<Dropout>,
}

impl<'a> Attention<'a> {
    #[track_caller]
    fn new(plan: &'a AttentionPlan, device: &CubeDevice) -> Self {
        Self { plan, draws: plan.dropout().map(|plan| Dropout::of(plan, device)) }
    }

    fn weights<F: Float, A: Float>(
        &self,
        scores: &AttentionScores,
        stats: &CubeTensor,
        reversed: bool,
    ) -> WeightsLaunch<F, A> {
        let draws = self.draws.as_ref().map(|draws| draws.launch(stats.dtype));
        let scores = scores.seen(reversed, self.plan).launch(1);
        WeightsLaunch::new(scores, arg(stats), draws.into(), reversed)
    }

    /// The weighted sums of rows of `x`, for every row of `layout`.
    fn gather(
        &self,
        layout: &Layout,
        reversed: bool,
        scores: &AttentionScores,
        stats: &CubeTensor,
        x: &CubeTensor,
    ) -> CubeTensor {
        let (heads, dim, width) = (self.plan.heads(), self.plan.dim(), self.plan.width());
        let out = empty(x, Shape::from(vec![layout.rows, heads, dim]), x.dtype);
        let (n, sums) = (vector(&out.client, x.dtype, &[dim]), wide(x.dtype));
        let Scores { a, b, .. } = scores.seen(reversed, self.plan);
        sum_rows(layout, &out, width, sums, false, |visit, tasks, out| {
            let threads = tasks * width / n;
            let (count, cube) = grid_of_rows(&out.client, threads, width);
            // SAFETY: ids of a relation lie below its numbers of nodes and edges, for which scores, statistics, ids
            // and `x` have a row each (checked by `attention` and its gradient); chunks are those of the layout; `out`
            // has `tasks` rows, and threads beyond them return early.
            unsafe {
                attend_kernel::launch_unchecked(
                    &out.client,
                    count,
                    cube,
                    address([a, b, x, stats, out], threads),
                    n,
                    Edges::of_rows(layout, visit, in_flight(width)),
                    self.weights(scores, stats, reversed),
                    arg(x),
                    arg(out),
                    dim / n,
                    [elem(x.dtype), elem(sums), elem(out.dtype)],
                );
            }
        });
        out
    }
}

/// `out[v] = Σ m[e] α[e] z[u]` over in-edges, `α` a softmax of the scores over the in-edges of `v`, and its statistics.
///
/// # Shapes
/// - `z`: `[num_src, heads, dim]`; scores: see [`AttentionScores`]
/// - returns `[num_dst, heads, dim]`, and `[num_dst, 2, heads]` in the type of sums: the largest score of each
///   destination and head, and 1 / Σ exp(score - largest); zeros where no in-edge has a score above -inf
///
/// # Semantics
/// A score of `-inf` masks its edge. A destination without in-edges, or with masked edges only, gets 0. NaN and `+inf`
/// propagate. f16 and bf16 are computed in f32 and rounded once.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn attention(
    plan: &AttentionPlan,
    z: CubeTensor,
    scores: AttentionScores,
) -> (CubeTensor, CubeTensor) {
    let (relation, heads, checked) =
        (plan.relation(), plan.heads(), Call::new("attention", "z", &z));
    let z = checked.rows("z", z, relation.num_src(), plan.width());
    let scores = scores.checked(&checked, relation, heads);
    if plan.is_empty() {
        return (
            zeros(&z, plan.out_shape(), z.dtype),
            zeros(&z, plan.stats_shape(), wide(z.dtype)),
        );
    }
    let layout = csc(relation, &z.device);
    let kept = stats(&layout, &scores.seen(false, plan), SumForm::Inverse);
    if plan.dim() == 0 {
        return (empty(&z, plan.out_shape(), z.dtype), kept);
    }
    (Attention::new(plan, &z.device).gather(&layout, false, &scores, &kept, &z), kept)
}

/// The saved tensors that the gradient of attention reads.
#[derive(Clone, Debug)]
pub struct AttentionKept {
    /// The result.
    pub out: CubeTensor,
    /// The statistics that [`attention`] returned.
    pub stats: CubeTensor,
    /// Rows of sources.
    pub z: CubeTensor,
    /// Scores.
    pub scores: AttentionScores,
}

/// Which gradients are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionGradMask {
    /// The gradient of `z`.
    pub z: bool,
    /// The gradient of `a_src`, or of the scores per edge.
    pub first: bool,
    /// The gradient of `a_dst`.
    pub second: bool,
}

/// Gradients of [`attention`]: of `z`, of `a_src` or the scores per edge, and of `a_dst`.
///
/// # Shapes
/// - `grad`: `[num_dst, heads, dim]`
/// - returns the shapes of the operands; gradients that are not requested have shape `[0]`
///
/// # Cost
/// If a gradient of scores is requested, two temporary numbers per edge and head.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn attention_grad(
    plan: &AttentionPlan,
    grad: CubeTensor,
    kept: AttentionKept,
    wants: AttentionGradMask,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let (relation, heads, dim, dtype) = (plan.relation(), plan.heads(), plan.dim(), grad.dtype);
    let checked = Call::new("attention_grad", "grad", &grad);
    let (num_src, num_dst, width) = (relation.num_src(), relation.num_dst(), plan.width());
    let (grad, out) =
        (checked.rows("grad", grad, num_dst, width), checked.rows("out", kept.out, num_dst, width));
    let stats =
        checked.rows_of("stats", kept.stats, num_dst, heads.saturating_mul(2), &[wide(dtype)]);
    let z = checked.rows("z", kept.z, num_src, width);
    let scores = kept.scores.checked(&checked, relation, heads);
    let given = matches!(scores, AttentionScores::Edges(_));
    let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
    let nothing = || zeros(&grad, Shape::from([0]), dtype);
    if plan.is_empty() || dim == 0 {
        let zeros_if = |wanted: bool, shape: Vec<usize>| {
            if wanted { zeros(&grad, Shape::from(shape), dtype) } else { nothing() }
        };
        let first = if given { edges } else { src };
        return (
            zeros_if(wants.z, vec![src, heads, dim]),
            zeros_if(wants.first, vec![first, heads]),
            zeros_if(wants.second && !given, vec![dst, heads]),
        );
    }
    let (by_src, call) = (csr(relation, &grad.device), Attention::new(plan, &grad.device));
    let dz = if wants.z { call.gather(&by_src, true, &scores, &stats, &grad) } else { nothing() };
    if !wants.first && (!wants.second || given) {
        return (dz, nothing(), nothing());
    }
    let sums = wide(dtype);
    let ds = call.scores_grad(&grad, &out, &stats, &z, &scores, if given { dtype } else { sums });
    if given {
        return (dz, ds, nothing());
    }
    let side = |layout: Arc<Layout>| {
        let operands = vec![Source::new(ds.clone(), Place::Edge, Map::same(heads))];
        let shape = Shape::from(vec![layout.rows, heads]);
        MessagePass {
            dtype,
            ..MessagePass::new(Over::Rows(layout), Formula::A, operands, heads, shape)
        }
        .run()
    };
    let first = if wants.first { side(by_src) } else { nothing() };
    let second = if wants.second { side(csc(relation, &grad.device)) } else { nothing() };
    (dz, first, second)
}

impl Attention<'_> {
    /// The gradient of `a_src[u] + a_dst[v]`, or of the score, for every edge and head.
    fn scores_grad(
        &self,
        grad: &CubeTensor,
        out: &CubeTensor,
        stats: &CubeTensor,
        z: &CubeTensor,
        scores: &AttentionScores,
        dtype: DType,
    ) -> CubeTensor {
        let (plan, sums) = (self.plan, wide(grad.dtype));
        let (relation, heads, dim, width) =
            (plan.relation(), plan.heads(), plan.dim(), plan.width());
        let endpoints = endpoints(relation, &grad.device);
        let source = |x: &CubeTensor, place| Source::new(x.clone(), place, Map::same(width));
        let dots = |over, rows, operands| {
            let shape = Shape::from(vec![rows, heads]);
            MessagePass {
                own: Map::repeat(heads, dim),
                dtype: sums,
                ..MessagePass::new(over, Formula::Mul, operands, width, shape)
            }
            .run()
        };
        let rows = relation.num_dst();
        let totals =
            dots(Over::Plain(rows), rows, vec![source(grad, Place::Row), source(out, Place::Row)]);
        let by_edge = dots(
            Over::Edges(endpoints.clone()),
            endpoints.edges,
            vec![source(grad, Place::Far), source(z, Place::Row)],
        );
        let result = empty(grad, Shape::from(vec![endpoints.edges, heads]), dtype);
        let Scores { a, b, .. } = scores.seen(true, plan);
        let threads = endpoints.edges * heads;
        let (count, cube) = grid(&result.client, threads);
        // SAFETY: as in `gather`; `dots` and `result` have a row for every edge, `totals` one for every destination.
        unsafe {
            scores_grad_kernel::launch_unchecked(
                &result.client,
                count,
                cube,
                address([a, b, stats, &by_edge], threads),
                Edges::of_endpoints(&endpoints),
                self.weights(scores, stats, true),
                arg(&by_edge),
                arg(&totals),
                arg(&result),
                [elem(grad.dtype), elem(sums), elem(dtype)],
            );
        }
        result
    }
}
