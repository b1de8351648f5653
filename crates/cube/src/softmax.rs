//! Computes softmax statistics: the maximum score of a row, and the sum of exponentials.
//!
//! ```text
//! for every row (or chunk of a long row) and every vector of columns, in parallel:
//!   largest = max score;  sum = Σ exp(score - largest)
//! ```
//! Chunks of long rows keep their own largest; their sums are scaled to that of the row when they are added.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::Shape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::launch::{address, arg, empty, grid, vector, wide};
use crate::layout::{CHUNK, Layout};
use crate::message::*;

/// Where scores come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scores {
    /// `leaky_relu(a[far] + b[row])`, `a` and `b` on nodes.
    Nodes,
    /// As `Nodes`, where rows are sources: `leaky_relu(a[row] + b[far])`.
    NodesReversed,
    /// `a[edge]`.
    Edges,
}

/// What is kept of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SumForm {
    /// The sum, 1 where it is 0.
    Divisor,
    /// Its inverse, 0 where it is 0.
    Inverse,
    /// The sum itself, and the largest score as it is: of a chunk.
    Raw,
}

/// `leaky_relu` with derivative `slope` at 0.
#[cube]
pub(crate) fn leaky<A: Float, N: Size>(x: Vector<A, N>, slope: A) -> Vector<A, N> {
    let above = x.greater_than(&Vector::<A, N>::new(A::new(0.0_f32)));
    select_many(above, x, x * Vector::<A, N>::new(slope))
}

/// The sum of both endpoints, before `leaky_relu`, or the score of the edge.
#[cube]
pub(crate) fn before<F: Float, A: Float, N: Size>(
    a: &[Vector<F, N>],
    b: &[Vector<F, N>],
    step: &Step,
    width: usize,
    col: usize,
    #[comptime] scores: Scores,
) -> Vector<A, N> {
    if comptime!(scores == Scores::Edges) {
        Vector::<A, N>::cast_from(a[step.edge * width + col])
    } else if comptime!(scores == Scores::Nodes) {
        Vector::<A, N>::cast_from(a[step.far * width + col])
            + Vector::<A, N>::cast_from(b[step.row * width + col])
    } else {
        Vector::<A, N>::cast_from(a[step.row * width + col])
            + Vector::<A, N>::cast_from(b[step.far * width + col])
    }
}

#[cube]
pub(crate) fn score<F: Float, A: Float, N: Size>(
    a: &[Vector<F, N>],
    b: &[Vector<F, N>],
    slope: A,
    step: &Step,
    width: usize,
    col: usize,
    #[comptime] scores: Scores,
) -> Vector<A, N> {
    let x = before::<F, A, N>(a, b, step, width, col, scores);
    if comptime!(scores == Scores::Edges) { x } else { leaky::<A, N>(x, slope) }
}

/// Where every score is -inf: below every number.
#[cube]
fn masked<A: Float, N: Size>(largest: Vector<A, N>) -> Vector<bool, N> {
    largest.less_than(&Vector::<A, N>::new(A::min_value()))
}

/// What is subtracted from scores: the largest, or 0 where that is -inf.
#[cube]
fn shift<A: Float, N: Size>(largest: Vector<A, N>) -> Vector<A, N> {
    select_many(masked::<A, N>(largest), Vector::<A, N>::new(A::new(0.0_f32)), largest)
}

/// What is kept of a sum.
#[cube]
fn finish<A: Float, N: Size>(sum: Vector<A, N>, #[comptime] kept: SumForm) -> Vector<A, N> {
    let one = Vector::<A, N>::new(A::new(1.0_f32));
    let zero = Vector::<A, N>::new(A::new(0.0_f32));
    let divisor = select_many(sum.equal(&zero), one, sum);
    if comptime!(kept == SumForm::Divisor) {
        divisor
    } else {
        select_many(sum.equal(&zero), zero, one / divisor)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn stats_kernel<F: Float, A: Float, N: Size>(
    indptr: &[u32],
    indices: &[u32],
    edge_ids: &[u32],
    table: &[u32],
    a: &[Vector<F, N>],
    b: &[Vector<F, N>],
    slope: InputScalar,
    stats: &mut [Vector<A, N>],
    tasks: usize,
    width: usize,
    #[comptime] scores: Scores,
    #[comptime] kept: SumForm,
    #[comptime] how: Message,
    #[comptime] chunk: usize,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= tasks * width {
        terminate!();
    }
    let task = pos / width;
    let col = pos % width;
    let slope = slope.get::<A>();
    let span = span(indptr, table, task, tasks, how, chunk);
    if comptime!(how.split && how.visit == Visit::Rows) {
        if span.end - span.start > chunk {
            terminate!();
        }
    }
    let zero = Vector::<A, N>::new(A::new(0.0_f32));
    let mut largest = zero;
    let mut sum = zero;
    for p in span.start..span.end {
        let s = step(indptr, indices, edge_ids, span.row, p, how);
        let x = score::<F, A, N>(a, b, slope, &s, width, col, scores);
        if p == span.start {
            largest = x;
        } else {
            // A NaN is never larger, and makes the sum NaN all the same.
            largest = select_many(x.greater_than(&largest), x, largest);
        }
    }
    let by = shift::<A, N>(largest);
    for p in span.start..span.end {
        let s = step(indptr, indices, edge_ids, span.row, p, how);
        let x = score::<F, A, N>(a, b, slope, &s, width, col, scores);
        sum += (x - by).exp();
    }
    let at = task * 2 * width + col;
    if comptime!(kept == SumForm::Raw) {
        stats[at] = largest;
        stats[at + width] = sum;
    } else {
        stats[at] = by;
        stats[at + width] = finish::<A, N>(sum, kept);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_stats_kernel<A: Float>(
    parts: &[Vector<A, Const<1>>],
    index: &[u32],
    stats: &mut [Vector<A, Const<1>>],
    rows: usize,
    width: usize,
    #[comptime] kept: SumForm,
    #[define(A)] _type: ElemType,
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * width {
        terminate!();
    }
    let long = pos / width;
    let col = pos % width;
    let first = index[rows + long] as usize;
    let last = index[rows + long + 1] as usize;
    let zero = Vector::<A, Const<1>>::new(A::new(0.0_f32));
    let mut largest = parts[first * 2 * width + col];
    for chunk in first + 1..last {
        let x = parts[chunk * 2 * width + col];
        largest = select_many(x.greater_than(&largest), x, largest);
    }
    let by = shift::<A, Const<1>>(largest);
    let mut sum = zero;
    for chunk in first..last {
        let own = parts[chunk * 2 * width + col];
        // A chunk of masks only has a sum of 0 that its scale, infinite maybe, must not touch.
        let scale = select_many(masked::<A, Const<1>>(own), zero, (own - by).exp());
        sum += parts[chunk * 2 * width + width + col] * scale;
    }
    let at = index[long] as usize * 2 * width + col;
    stats[at] = by;
    stats[at + width] = finish::<A, Const<1>>(sum, kept);
}

/// Largest score and what is kept of the sum for every row and column, `[rows, 2, width]` in the type of sums; 0 and
/// the `kept` of 0 for rows without edges. `a` and `b` have `width` columns; there is at least one edge.
pub(crate) fn stats(
    layout: &Layout,
    a: &CubeTensor,
    b: &CubeTensor,
    slope: f64,
    width: usize,
    scores: Scores,
    kept: SumForm,
) -> CubeTensor {
    let sums = wide(a.dtype);
    let rows = |n| Shape::from(vec![n, 2, width]);
    let out = empty(a, rows(layout.rows), sums);
    let client = out.client.clone();
    let n = vector(&client, a.dtype, &[width]);
    let launch = |visit, kept, tasks: usize, out: &CubeTensor| {
        let how = Message::new(visit, Some(layout));
        let (count, dim) = grid(&client, tasks * width / n);
        let (ids, chunks) = (layout.ids(), layout.table());
        // SAFETY: `a` and `b` have a row of `width` columns for every id that `scores` looks up, `out` has two for
        // every task; threads beyond the last return early.
        unsafe {
            stats_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address(&[a, b, out], tasks * width / n),
                n,
                arg(&layout.indptr),
                arg(&layout.indices),
                arg(ids),
                arg(chunks),
                arg(a),
                arg(b),
                InputScalar::new(slope, elem(sums)),
                arg(out),
                tasks,
                width / n,
                scores,
                kept,
                how,
                CHUNK,
                [elem(a.dtype), elem(sums)],
            );
        }
    };
    launch(Visit::Rows, kept, layout.rows, &out);
    if let Some(heavy) = &layout.heavy {
        let parts = empty(a, rows(heavy.chunks), sums);
        launch(Visit::Chunks, SumForm::Raw, heavy.chunks, &parts);
        let (count, dim) = grid(&client, heavy.rows * width);
        // SAFETY: `index` names rows of `out` and chunks of `parts`, which have two rows of `width` columns for each.
        unsafe {
            combine_stats_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address(&[&parts, &out], heavy.rows * width),
                arg(&parts),
                arg(&heavy.index),
                arg(&out),
                heavy.rows,
                width,
                kept,
                elem(sums),
            );
        }
    }
    out
}
