//! Softmax over the in-edges of every destination, and its gradient.
//!
//! ```text
//! y[e]   = exp(x[e] - max of v) / sum of v          statistics by rows, then edges in parallel
//! d x[e] = y[e] · (g[e] - Σ y · g over the edges of v)
//! ```

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::SoftmaxPlan;
use cubecl::prelude::*;

use crate::device::check::Call;
use crate::device::launch::{address, arg, empty, features, grid, vector, wide, with_rows};
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Place};
use crate::message::layout::{csc, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};
use crate::message::softmax::{ScorePlace, Scores, SumForm, stats};

#[cube(launch_unchecked, address_type = "dynamic")]
fn probability_kernel<F: Float, A: Float, N: Size>(
    dst: &[u32],
    x: &[Vector<F, N>],
    stats: &[Vector<A, N>],
    out: &mut [Vector<F, N>],
    edges: usize,
    width: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= edges * width {
        terminate!();
    }
    let at = dst[pos / width] as usize * 2 * width + pos % width;
    let e = (Vector::<A, N>::cast_from(x[pos]) - stats[at]).exp();
    out[pos] = Vector::<F, N>::cast_from(e / stats[at + width]);
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gradient_kernel<F: Float, A: Float, N: Size>(
    dst: &[u32],
    y: &[Vector<F, N>],
    grad: &[Vector<F, N>],
    sums: &[Vector<A, N>],
    out: &mut [Vector<F, N>],
    edges: usize,
    width: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= edges * width {
        terminate!();
    }
    let sum = sums[dst[pos / width] as usize * width + pos % width];
    let difference = Vector::<A, N>::cast_from(grad[pos]) - sum;
    out[pos] = Vector::<F, N>::cast_from(Vector::<A, N>::cast_from(y[pos]) * difference);
}

/// Softmax over the in-edges of each destination, `y[e] = exp(x[e]) / Σ exp(x[e'])`, per column.
///
/// For a softmax over a subset of the edges, or over the edges of several relations, use a relation of these edges. For
/// segments of rows, use a relation whose destinations are the segments.
///
/// # Shapes
/// - `x`: `[num_edges, ..]`
/// - returns the same shape
///
/// # Semantics
/// The maximum logit of a destination is subtracted first. A logit of `-inf` masks its edge, which gets 0, even if all
/// edges of the destination are masked. NaN and `+inf` make all results of their destination and column NaN.
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn edge_softmax(plan: &SoftmaxPlan, x: CubeTensor) -> CubeTensor {
    let relation = plan.relation();
    let width = plan.width();
    let x = Call::new("edge_softmax", "x", &x).rows("x", x, relation.num_edges(), width);
    if x.meta.num_elements() == 0 {
        return x;
    }
    let layout = csc(relation, &x.device);
    let scores = Scores { a: &x, b: &x, slope: 0.0, width, place: ScorePlace::Edges };
    let stats = stats(&layout, &scores, SumForm::Divisor);
    let (out, client) = (empty(&x, x.meta.shape().clone(), x.dtype), x.client.clone());
    let n = vector(&client, x.dtype, &[width]);
    let edges = endpoints(relation, &x.device);
    let threads = x.meta.num_elements() / n;
    let (count, dim) = grid(&client, threads);
    // SAFETY: `x` (checked above) and `out` have a row for every edge, `stats` two for every destination; threads
    // beyond the last leave.
    unsafe {
        probability_kernel::launch_unchecked(
            &client,
            count,
            dim,
            address([&x, &stats], threads),
            n,
            arg(&edges.dst),
            arg(&x),
            arg(&stats),
            arg(&out),
            edges.edges,
            width / n,
            [elem(x.dtype), elem(stats.dtype)],
        );
    }
    out
}

/// Gradient of [`edge_softmax`] from its result: `d x = y · (g - Σ y · g)`, summed over the edges of a destination.
///
/// # Shapes
/// - `y`, `grad`: `[num_edges, ..]`
/// - returns the same shape
///
/// # Panics
/// If an operand has another shape, element type or device, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn edge_softmax_grad(plan: &SoftmaxPlan, y: CubeTensor, grad: CubeTensor) -> CubeTensor {
    let (relation, features, width) = (plan.relation(), features(&y), plan.width());
    let call = Call::new("edge_softmax_grad", "y", &y);
    let [y, grad] =
        [("y", y), ("grad", grad)].map(|(arg, x)| call.rows(arg, x, relation.num_edges(), width));
    if grad.meta.num_elements() == 0 {
        return grad;
    }
    let over = Over::Rows(csc(relation, &y.device));
    let on_edges = |x: &CubeTensor| Source::new(x.clone(), Place::Edge, Map::same(width));
    let operands = vec![on_edges(&y), on_edges(&grad)];
    let shape = with_rows(relation.num_dst(), &features);
    let sums = MessagePass {
        dtype: wide(y.dtype),
        ..MessagePass::new(over, Formula::Mul, operands, width, shape)
    }
    .run();
    let (out, client) = (empty(&y, y.meta.shape().clone(), y.dtype), y.client.clone());
    let n = vector(&client, y.dtype, &[width]);
    let edges = endpoints(relation, &y.device);
    let threads = y.meta.num_elements() / n;
    let (count, dim) = grid(&client, threads);
    // SAFETY: as in `edge_softmax`, with one row of sums for every destination.
    unsafe {
        gradient_kernel::launch_unchecked(
            &client,
            count,
            dim,
            address([&y, &sums], threads),
            n,
            arg(&edges.dst),
            arg(&y),
            arg(&grad),
            arg(&sums),
            arg(&out),
            edges.edges,
            width / n,
            [elem(y.dtype), elem(sums.dtype)],
        );
    }
    out
}
