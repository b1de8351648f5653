//! Computes attention and its gradients in one pass over edges, without materialising a value per edge and feature.
//!
//! ```text
//! forward:   statistics of the scores by destination, then     out[v] = Σ m[e] α[e] z[u]        rows of CSC
//! backward:  T[v] = <grad[v], out[v]> per head, then
//!            d z[u]  = Σ m[e] α[e] grad[v]                                                       rows of CSR
//!            d s[e]  = (m[e] α[e] <grad[v], z[u]> - α[e] T[v]) · slope                           edges
//!            d a_src = Σ d s over out-edges, d a_dst = Σ d s over in-edges
//! ```
//! `α[e] = exp(s[e] - max[v]) · inverse[v]` is made again from the scores wherever it is needed; `m` is dropout, 0 or
//! the scale, drawn again too.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::AttentionPlan;
use cubecl::prelude::*;

use crate::broadcast::Map;
use crate::check::Call;
use crate::chunk_sums::combine;
use crate::dropout::Dropout;
use crate::launch::{address, arg, empty, grid, grid_of_rows, in_flight, vector, wide, zeros};
use crate::layout::{CHUNK, Layout, csc, csr, endpoints};
use crate::message::*;
use crate::message_pass::{MessagePass, Over, Source};
use crate::philox::{Draws, keeps, pick, words};
use crate::softmax::{Scores, SumForm, before, score, stats};

/// Where scores come from.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One is made for a call, and moved once.
pub enum AttentionScores {
    /// `a_src`, `[num_src, heads]`, and `a_dst`, `[num_dst, heads]`.
    Nodes(CubeTensor, CubeTensor),
    /// Logits, `[num_edges, heads]`.
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
    fn both(&self) -> (&CubeTensor, &CubeTensor) {
        match self {
            Self::Nodes(a, b) => (a, b),
            Self::Edges(x) => (x, x),
        }
    }
    /// From rows of destinations, or of sources.
    fn seen(&self, reversed: bool) -> Scores {
        match (self, reversed) {
            (Self::Edges(_), _) => Scores::Edges,
            (Self::Nodes(..), false) => Scores::Nodes,
            (Self::Nodes(..), true) => Scores::NodesReversed,
        }
    }
}

/// Compile-time options of an attention kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Weights {
    scores: Scores,
    /// Whether rows are sources, so that statistics are those of the far node.
    reversed: bool,
    dropout: bool,
}

/// `α` of head `head` of one edge, before dropout.
#[cube]
#[allow(clippy::too_many_arguments)]
fn alpha<F: Float, A: Float>(
    a: &[Vector<F, Const<1>>],
    b: &[Vector<F, Const<1>>],
    stats: &[A],
    slope: A,
    step: &Step,
    heads: usize,
    head: usize,
    #[comptime] how: Weights,
) -> A {
    let s = score::<F, A, Const<1>>(a, b, slope, step, heads, head, how.scores);
    let node = if comptime!(how.reversed) { step.far } else { step.row };
    let at = node * 2 * heads + head;
    (s.extract(0usize) - stats[at]).exp() * stats[at + heads]
}

/// `x` of an edge and head after dropout.
#[cube]
fn dropped<A: Float>(
    x: A,
    ids: &[u32],
    draws: &Draws,
    edge: usize,
    head: usize,
    #[comptime] how: Weights,
) -> A {
    let mut out = x;
    if comptime!(how.dropout) {
        let words = words(draws, ids, edge, (head / 4) as u32);
        let word = pick(words, (head % 4) as u32);
        out *= select(keeps(draws, word), draws.scale.get::<A>(), A::new(0.0_f32));
    }
    out
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn attend_kernel<F: Float, A: Float, O: Float, N: Size>(
    indptr: &[u32],
    indices: &[u32],
    edge_ids: &[u32],
    table: &[u32],
    a: &[Vector<F, Const<1>>],
    b: &[Vector<F, Const<1>>],
    stats: &[A],
    x: &[Vector<F, N>],
    ids: &[u32],
    out: &mut [Vector<O, N>],
    slope: InputScalar,
    draws: &Draws,
    tasks: usize,
    heads: usize,
    dim: usize,
    #[comptime] weights: Weights,
    #[comptime] how: Message,
    #[comptime] chunk: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let width = heads * dim;
    if pos >= tasks * width {
        terminate!();
    }
    let task = pos / width;
    let col = pos % width;
    let head = col / dim;
    let slope = slope.get::<A>();
    let span = span(indptr, table, task, tasks, how, chunk);
    if comptime!(how.split && how.visit == Visit::Rows) {
        if span.end - span.start > chunk {
            terminate!();
        }
    }
    let mut sum = Vector::<A, N>::new(A::new(0.0_f32));
    let mut p = span.start;
    if comptime!(how.flight > 1) {
        while p + how.flight <= span.end {
            let mut held = Sequence::<Vector<A, N>>::new();
            #[unroll]
            for i in 0..how.flight {
                let s = step(indptr, indices, edge_ids, span.row, p + i, how);
                let w = alpha::<F, A>(a, b, stats, slope, &s, heads, head, weights);
                let w = dropped::<A>(w, ids, draws, s.edge, head, weights);
                held.push(
                    Vector::<A, N>::new(w) * Vector::<A, N>::cast_from(x[s.far * width + col]),
                );
            }
            #[unroll]
            for i in 0..how.flight {
                sum += held[i];
            }
            p += how.flight;
        }
    }
    while p < span.end {
        let s = step(indptr, indices, edge_ids, span.row, p, how);
        let w = alpha::<F, A>(a, b, stats, slope, &s, heads, head, weights);
        let w = dropped::<A>(w, ids, draws, s.edge, head, weights);
        sum += Vector::<A, N>::new(w) * Vector::<A, N>::cast_from(x[s.far * width + col]);
        p += 1;
    }
    out[span.at * width + col] = Vector::<O, N>::cast_from(sum);
}

/// `ds` of every edge and head from `dots`, `<grad[v], z[u]>`, and `totals`, `T[v]`.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn scores_grad_kernel<F: Float, A: Float, O: Float>(
    src: &[u32],
    dst: &[u32],
    a: &[Vector<F, Const<1>>],
    b: &[Vector<F, Const<1>>],
    stats: &[A],
    dots: &[A],
    totals: &[A],
    ids: &[u32],
    out: &mut [O],
    slope: InputScalar,
    draws: &Draws,
    edges: usize,
    heads: usize,
    #[comptime] weights: Weights,
    #[comptime] how: Message,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= edges * heads {
        terminate!();
    }
    let edge = pos / heads;
    let head = pos % heads;
    let slope = slope.get::<A>();
    // Rows are sources here: an edge is seen from its source.
    let s = step(src, dst, src, edge, edge, how);
    let x = alpha::<F, A>(a, b, stats, slope, &s, heads, head, weights);
    let w = dropped::<A>(x, ids, draws, edge, head, weights);
    let mut d = w * dots[pos] - x * totals[s.far * heads + head];
    if comptime!(weights.scores != Scores::Edges) {
        let before =
            before::<F, A, Const<1>>(a, b, &s, heads, head, weights.scores).extract(0usize);
        d *= select(before > A::new(0.0_f32), A::new(1.0_f32), slope);
    }
    out[pos] = O::cast_from(d);
}

/// One call: its plan, and its draws on the device.
struct Attention<'a> {
    plan: &'a AttentionPlan,
    draws: Dropout,
}

impl<'a> Attention<'a> {
    #[track_caller]
    fn new(plan: &'a AttentionPlan, device: &CubeDevice) -> Self {
        Self { plan, draws: Dropout::maybe(plan.dropout(), device) }
    }

    /// Sums of rows of `x` with the weights of edges, for every row of `layout`.
    fn gather(
        &self,
        layout: &Layout,
        reversed: bool,
        scores: &AttentionScores,
        stats: &CubeTensor,
        x: &CubeTensor,
    ) -> CubeTensor {
        let (a, b) = scores.both();
        let (heads, dim, width) = (self.plan.heads(), self.plan.dim(), self.plan.width());
        let out = empty(x, Shape::from(vec![layout.rows, heads, dim]), x.dtype);
        let client = out.client.clone();
        let n = vector(&client, x.dtype, &[dim]);
        let (draws, sums) = (&self.draws, wide(x.dtype));
        let weights = Weights {
            scores: scores.seen(reversed),
            reversed,
            dropout: self.plan.dropout().is_some(),
        };
        let launch = |visit, tasks: usize, out: &CubeTensor| {
            let flight = in_flight(width);
            let how = Message { flight, ..Message::new(visit, Some(layout)) };
            let slope = self.plan.slope().unwrap_or(0.0);
            let threads = tasks * width / n;
            let (count, cube) = grid_of_rows(&client, threads, width);
            // SAFETY: ids of a relation lie below its numbers of nodes and edges, for which scores, statistics, ids
            // and `x` have a row each (checked by `attention` and its gradient); `table` names rows or chunks of
            // the layout; `out` has `tasks` rows, and threads beyond them return early.
            unsafe {
                attend_kernel::launch_unchecked(
                    &client,
                    count,
                    cube,
                    address(&[a, b, x, stats, out], threads),
                    n,
                    arg(&layout.indptr),
                    arg(&layout.indices),
                    arg(layout.ids()),
                    arg(layout.table()),
                    arg(a),
                    arg(b),
                    arg(stats),
                    arg(x),
                    arg(draws.ids(&layout.indptr)),
                    arg(out),
                    InputScalar::new(slope, elem(sums)),
                    draws.launch(sums),
                    tasks,
                    heads,
                    dim / n,
                    weights,
                    how,
                    CHUNK,
                    [elem(x.dtype), elem(sums), elem(out.dtype)],
                );
            }
        };
        launch(Visit::Rows, layout.rows, &out);
        if let Some(heavy) = &layout.heavy {
            let parts = empty(x, Shape::from(vec![heavy.chunks, width]), sums);
            launch(Visit::Chunks, heavy.chunks, &parts);
            combine(&parts, heavy, &layout.indptr, &out, width, false);
        }
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
/// `-inf` is a mask; a destination of masks only, or without in-edges, gets 0. NaN and `+inf` propagate. f16 and
/// bf16 are computed in f32 and rounded once.
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
    let (a, b) = scores.both();
    let kept = stats(
        &layout,
        a,
        b,
        plan.slope().unwrap_or(0.0),
        heads,
        scores.seen(false),
        SumForm::Inverse,
    );
    if plan.dim() == 0 {
        return (empty(&z, plan.out_shape(), z.dtype), kept);
    }
    (Attention::new(plan, &z.device).gather(&layout, false, &scores, &kept, &z), kept)
}

/// What the gradient of an attention reads.
#[derive(Clone, Debug)]
pub struct AttentionKept {
    /// The result.
    pub out: CubeTensor,
    /// Its statistics.
    pub stats: CubeTensor,
    /// Rows of sources.
    pub z: CubeTensor,
    /// Scores.
    pub scores: AttentionScores,
}

/// Which gradients are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionGradMask {
    /// Of `z`.
    pub z: bool,
    /// Of `a_src`, or of the logits.
    pub first: bool,
    /// Of `a_dst`.
    pub second: bool,
}

/// Gradients of [`attention`]: of `z`, then of `a_src` and `a_dst`, or of the logits and nothing.
///
/// # Shapes
/// - `grad`: `[num_dst, heads, dim]`
/// - returns the shapes of the operands; what is not wanted has shape `[0]`
///
/// # Cost
/// Beside the results one number for every edge and head, twice, where a gradient of scores is asked for.
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
    let nothing = |wanted: bool, shape: Vec<usize>| {
        zeros(&grad, Shape::from(if wanted { shape } else { vec![0] }), dtype)
    };
    if plan.is_empty() || dim == 0 {
        let first = if given { edges } else { src };
        return (
            nothing(wants.z, vec![src, heads, dim]),
            nothing(wants.first, vec![first, heads]),
            nothing(wants.second && !given, vec![dst, heads]),
        );
    }
    let (by_src, call) = (csr(relation, &grad.device), Attention::new(plan, &grad.device));
    let dz = if wants.z {
        call.gather(&by_src, true, &scores, &stats, &grad)
    } else {
        nothing(false, vec![])
    };
    if !wants.first && (!wants.second || given) {
        return (dz, nothing(false, vec![]), nothing(false, vec![]));
    }
    let sums = wide(dtype);
    let ds = call.scores_grad(&grad, &out, &stats, &z, &scores, if given { dtype } else { sums });
    if given {
        return (dz, ds, nothing(false, vec![]));
    }
    let side = |wanted: bool, layout: &Layout| {
        if !wanted {
            return nothing(false, vec![]);
        }
        MessagePass {
            over: Over::Rows(layout),
            formula: Formula::A,
            operands: vec![Source::new(ds.clone(), Place::Edge, Map::same(heads))],
            argmax: None,
            share: None,
            mean: false,
            minus: false,
            width: heads,
            own: Map::same(heads),
            shape: Shape::from(vec![layout.rows, heads]),
            dtype,
        }
        .run()
    };
    let first = side(wants.first, &by_src);
    let second = if wants.second {
        side(true, &csc(relation, &grad.device))
    } else {
        nothing(false, vec![])
    };
    (dz, first, second)
}

impl Attention<'_> {
    /// Gradient of the sum of both endpoints, or of the logit, for every edge and head.
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
            MessagePass {
                over,
                formula: Formula::Mul,
                operands,
                argmax: None,
                share: None,
                mean: false,
                minus: false,
                width,
                own: Map::repeat(heads, dim),
                shape: Shape::from(vec![rows, heads]),
                dtype: sums,
            }
            .run()
        };
        let rows = relation.num_dst();
        let totals =
            dots(Over::Plain(rows), rows, vec![source(grad, Place::Row), source(out, Place::Row)]);
        let by_edge = dots(
            Over::Edges(&endpoints),
            endpoints.edges,
            vec![source(grad, Place::Far), source(z, Place::Row)],
        );
        let result = empty(grad, Shape::from(vec![endpoints.edges, heads]), dtype);
        let (a, b) = scores.both();
        let weights = Weights {
            scores: scores.seen(true),
            reversed: true,
            dropout: self.plan.dropout().is_some(),
        };
        let (draws, threads) = (&self.draws, endpoints.edges * heads);
        let (count, cube) = grid(&result.client, threads);
        // SAFETY: as in `gather`; `dots` and `result` have a row for every edge, `totals` one for every destination.
        unsafe {
            scores_grad_kernel::launch_unchecked(
                &result.client,
                count,
                cube,
                address(&[a, b, stats, &by_edge], threads),
                arg(&endpoints.src),
                arg(&endpoints.dst),
                arg(a),
                arg(b),
                arg(stats),
                arg(&by_edge),
                arg(&totals),
                arg(draws.ids(&endpoints.src)),
                arg(&result),
                InputScalar::new(self.plan.slope().unwrap_or(0.0), elem(sums)),
                draws.launch(sums),
                endpoints.edges,
                heads,
                weights,
                Message::new(Visit::Edges, None),
                [elem(grad.dtype), elem(sums), elem(dtype)],
            );
        }
        result
    }
}
