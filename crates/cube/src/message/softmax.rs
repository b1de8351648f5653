//! Computes softmax statistics: the maximum score of a row, and the sum of exponentials.
//!
//! ```text
//! for every row (or chunk of a long row) and every vector of columns, in parallel:
//!   largest = max score;  sum = Σ exp(score - largest)
//! ```
//! Each chunk of a long row has its own maximum. When sums of chunks are added, they are rescaled to the maximum of the
//! row.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::Shape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::device::launch::{address, arg, empty, grid, vector, wide};
use crate::message::layout::Layout;
use crate::message::walk::{Edges, Step, Visit};

/// The source of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScorePlace {
    /// `leaky_relu(a[far] + b[row])`, `a` and `b` on nodes.
    Nodes,
    /// `leaky_relu(a[row] + b[far])`: `Nodes` for rows that are sources.
    NodesReversed,
    /// `a[edge]`.
    Edges,
}

/// `width` scores per edge. `a` and `b` have one row per node, or `a` has one row per edge.
pub(crate) struct Scores<'a> {
    pub(crate) a: &'a CubeTensor,
    pub(crate) b: &'a CubeTensor,
    pub(crate) slope: f64,
    pub(crate) width: usize,
    pub(crate) place: ScorePlace,
}

impl Scores<'_> {
    /// The kernel argument, in vectors of `n`.
    pub(crate) fn launch<F: Float, N: Size>(&self, n: usize) -> EdgeScoresLaunch<F, N> {
        let slope = InputScalar::new(self.slope, elem(wide(self.a.dtype)));
        EdgeScoresLaunch::new(arg(self.a), arg(self.b), slope, self.width / n, self.place)
    }
}

/// The form in which the sum is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SumForm {
    /// The sum, or 1 if it is 0.
    Divisor,
    /// The inverse of the sum, or 0 if the sum is 0.
    Inverse,
    /// The sum and the maximum without changes, for chunks.
    Raw,
}

/// The scores of edges, as a kernel reads them.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct EdgeScores<F: Float, N: Size> {
    a: Box<[Vector<F, N>]>,
    b: Box<[Vector<F, N>]>,
    pub(crate) slope: InputScalar,
    /// Columns, in vectors.
    pub(crate) width: usize,
    #[cube(comptime)]
    pub(crate) place: ScorePlace,
}

#[cube]
impl<F: Float, N: Size> EdgeScores<F, N> {
    /// The sum of both endpoints, before `leaky_relu`, or the score of the edge.
    pub(crate) fn before<A: Float>(&self, step: &Step, col: usize) -> Vector<A, N> {
        if comptime!(self.place == ScorePlace::Edges) {
            Vector::<A, N>::cast_from(self.a[step.edge * self.width + col])
        } else if comptime!(self.place == ScorePlace::Nodes) {
            Vector::<A, N>::cast_from(self.a[step.far * self.width + col])
                + Vector::<A, N>::cast_from(self.b[step.row * self.width + col])
        } else {
            Vector::<A, N>::cast_from(self.a[step.row * self.width + col])
                + Vector::<A, N>::cast_from(self.b[step.far * self.width + col])
        }
    }

    pub(crate) fn score<A: Float>(&self, step: &Step, col: usize) -> Vector<A, N> {
        let x = self.before::<A>(step, col);
        if comptime!(self.place == ScorePlace::Edges) {
            x
        } else {
            // With derivative `slope` at 0.
            let above = x.greater_than(&Vector::<A, N>::new(A::new(0.0_f32)));
            select_many(above, x, x * Vector::<A, N>::new(self.slope.get::<A>()))
        }
    }
}

/// Whether every score is -inf.
#[cube]
fn masked<A: Float, N: Size>(largest: Vector<A, N>) -> Vector<bool, N> {
    largest.less_than(&Vector::<A, N>::new(A::min_value()))
}

/// The number that is subtracted from scores: the maximum, or 0 if the maximum is -inf.
#[cube]
fn shift<A: Float, N: Size>(largest: Vector<A, N>) -> Vector<A, N> {
    select_many(masked::<A, N>(largest), Vector::<A, N>::new(A::new(0.0_f32)), largest)
}

/// Converts a sum to the requested form.
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
fn stats_kernel<F: Float, A: Float, N: Size>(
    edges: &Edges,
    scores: &EdgeScores<F, N>,
    stats: &mut [Vector<A, N>],
    #[comptime] kept: SumForm,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    let width = scores.width;
    let span = edges.own_span(width);
    let task = pos / width;
    let col = pos % width;
    let zero = Vector::<A, N>::new(A::new(0.0_f32));
    let mut largest = zero;
    let mut sum = zero;
    for p in span.start..span.end {
        let x = scores.score::<A>(&edges.step(span.row, p), col);
        if p == span.start {
            largest = x;
        } else {
            // NaN is never larger; it reaches the result through the sum.
            largest = select_many(x.greater_than(&largest), x, largest);
        }
    }
    let by = shift::<A, N>(largest);
    for p in span.start..span.end {
        sum += (scores.score::<A>(&edges.step(span.row, p), col) - by).exp();
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
        // A chunk of masked scores has a sum of 0, which must not be multiplied by its scale: that may be infinite.
        let scale = select_many(masked::<A, Const<1>>(own), zero, (own - by).exp());
        sum += parts[chunk * 2 * width + width + col] * scale;
    }
    let at = index[long] as usize * 2 * width + col;
    stats[at] = by;
    stats[at + width] = finish::<A, Const<1>>(sum, kept);
}

/// The maximum score and the sum in the form `kept`, for every row and column: `[rows, 2, width]` in the accumulator type.
/// For rows without edges the maximum is 0, and the sum is the form of 0. The layout has at least one edge.
pub(crate) fn stats(layout: &Layout, scores: &Scores<'_>, kept: SumForm) -> CubeTensor {
    let Scores { a, b, width, .. } = *scores;
    let sums = wide(a.dtype);
    let rows = |n| Shape::from(vec![n, 2, width]);
    let out = empty(a, rows(layout.rows), sums);
    let client = out.client.clone();
    let n = vector(&client, a.dtype, &[width]);
    let launch = |visit, kept, tasks: usize, out: &CubeTensor| {
        let (count, dim) = grid(&client, tasks * width / n);
        // SAFETY: scores have a row of `width` columns for every id that is looked up, `out` has two for every task;
        // threads beyond the last return early.
        unsafe {
            stats_kernel::launch_unchecked(
                &client,
                count,
                dim,
                address([a, b, out], tasks * width / n),
                n,
                Edges::of_rows(layout, visit, 1),
                scores.launch(n),
                arg(out),
                kept,
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
                address([&parts, &out], heavy.rows * width),
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
