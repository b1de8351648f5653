//! Computes typed products, where the type of a row selects its matrix, and their gradients.
//!
//! ```text
//! parallel for pieces (matrix k, at most PIECE of its rows):
//!   out[rows] = a[rows] · b[k]
//!   d b[k]    = Σ over pieces of a[rows]ᵀ · grad[rows], pieces added in their order
//! ```
//! A segment is split into pieces at fixed positions, so a long segment occupies several threads, and bits do not depend
//! on their number. Narrow products run in registers (`dense::small_products`), wide products in the `gemm` crate, with
//! one thread per piece. Rows of f16 and bf16 are widened, and results rounded, a tile at a time.

use std::ops::Range;

use rayon::prelude::*;

use crate::dense::gemm::wide;
use crate::dense::small_products::{
    LANES, Matrices, is_narrow, outer, padded, product, row_stride,
};
use crate::dense::widen::{append, rounded, widened};
use crate::number::{Acc, Elem, Real};
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::zeros;
use crate::parallel::output_rows::OutputRows;
use crate::parallel::scatter::Scattered;
use crate::parallel::scatter::scatter;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_plan::TypedPlan;

/// Number of rows of a piece.
const PIECE: usize = 1024;
/// Number of rows that are multiplied at a time.
const TILE: usize = 128;

/// Consecutive rows of one matrix.
#[derive(Clone, Debug)]
struct Piece {
    matrix: usize,
    /// Positions in the order sorted by matrix.
    at: Range<usize>,
}

fn pieces(plan: &TypedPlan, size: usize) -> Vec<Piece> {
    let segments = plan.offsets();
    let mut out = Vec::with_capacity(segments.len() + segments.num_rows() / size);
    for matrix in 0..segments.len() {
        let rows = segments.range(matrix);
        out.extend(
            rows.clone()
                .step_by(size)
                .map(|at| Piece { matrix, at: at..(at + size).min(rows.end) }),
        );
    }
    out
}

/// Groups consecutive pieces into runs, each with enough work for a thread.
fn runs(pieces: &[Piece], work_per_row: usize) -> Vec<Range<usize>> {
    let rows = pieces.last().map_or(0, |p| p.at.end);
    let per_run = rows.div_ceil(
        (rows.saturating_mul(work_per_row) >> 18).clamp(1, 8 * rayon::current_num_threads()),
    );
    let (mut out, mut from) = (Vec::new(), 0);
    for i in 1..=pieces.len() {
        if i == pieces.len() || pieces[i].at.end - pieces[from].at.start > per_run {
            out.push(from..i);
            from = i;
        }
    }
    out
}

/// The inputs of a product: rows of `k` entries times matrices `[k, n]`.
struct Job<'a, T: Elem> {
    plan: &'a TypedPlan,
    a: &'a [T],
    matrices: Matrices<'a, T::Acc>,
    k: usize,
    n: usize,
}

/// `out[row] = a[row] · b[k]`, where `k` is the matrix of the row. If `transposed` is set, the matrices are transposed.
pub(crate) fn multiply<T: Elem>(plan: &TypedPlan, a: &[T], b: &[T], transposed: bool) -> Vec<T> {
    let (i, o) = (plan.d_input(), plan.d_output());
    let (k, n) = if transposed { (o, i) } else { (i, o) };
    let rows = plan.offsets().num_rows();
    if k == 0 || n == 0 || rows == 0 {
        return zeros(
            rows.checked_mul(n)
                .expect("a tensor's number of entries fits in `usize`: its shape was checked"),
        );
    }
    let matrices = Matrices::new(b, k, n, transposed);
    let job = Job { plan, a, matrices, k, n };
    let pieces = pieces(plan, PIECE);
    let runs = runs(&pieces, k * padded(n) / LANES + n);
    let positions: Vec<_> =
        runs.iter().map(|r| pieces[r.start].at.start..pieces[r.end - 1].at.end).collect();
    match plan.permutation() {
        None => collect_rows(&positions, n, &|run, sink| {
            let first = pieces.partition_point(|p| p.at.end <= run.start);
            let last = pieces.partition_point(|p| p.at.end <= run.end);
            job.rows(&pieces[first..last], |row| sink.put(row));
        }),
        Some(order) => scatter(
            Scattered { rows: OutputRows::permuted(order), positions, width: n, zeroed: false },
            runs,
            &|run, out| {
                out.whole();
                job.rows(&pieces[run], |row| out.put(n, |to| to.put(row)));
            },
        ),
    }
}

/// The rows at some positions, in the accumulator type. They are copied if they are not consecutive or need widening.
fn rows_at<'a, A: Real, T: Elem<Acc = A>>(
    a: &'a [T],
    order: Option<&[u32]>,
    at: Range<usize>,
    k: usize,
    gathered: &'a mut Vec<A>,
) -> &'a [A] {
    match order {
        None => widened(&a[at.start * k..at.end * k], gathered),
        Some(order) => {
            gathered.clear();
            append(order[at].iter().map(|&row| &a[row as usize * k..][..k]), gathered);
            gathered
        }
    }
}

impl<A: Real, T: Elem<Acc = A>> Job<'_, T> {
    /// Entries between the starts of the rows of a tile.
    fn stride(&self) -> usize {
        row_stride(self.k, self.n)
    }

    /// Passes the result rows of these pieces to `put`, in the order of positions.
    #[inline(always)]
    fn rows(&self, pieces: &[Piece], mut put: impl FnMut(&[T])) {
        let (mut gathered, mut tile, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces {
            for at in piece.at.clone().step_by(TILE) {
                let at = at..(at + TILE).min(piece.at.end);
                self.tile(piece.matrix, at.clone(), &mut gathered, &mut tile);
                let tile = rounded::<A, T>(&tile[..at.len() * self.stride()], &mut out);
                tile.chunks_exact(self.stride()).for_each(|row| put(&row[..self.n]));
            }
        }
    }

    fn tile(&self, matrix: usize, at: Range<usize>, gathered: &mut Vec<A>, tile: &mut Vec<A>) {
        tile.resize(TILE * self.stride(), A::ZERO);
        let count = at.len();
        let rows = rows_at(self.a, self.plan.order(), at, self.k, gathered);
        match &self.matrices {
            Matrices::Narrow(panels) => vectorised(Narrow {
                rows,
                panels: panels.matrix(matrix),
                k: self.k,
                count,
                stride: self.stride(),
                tile,
            }),
            Matrices::Wide { b, transposed } => {
                let b = &b[matrix * self.k * self.n..][..self.k * self.n];
                let by = if *transposed { [1, self.k] } else { [self.n, 1] };
                wide([count, self.n, self.k], (rows, [self.k, 1]), (b, by), (tile, self.n), false);
            }
        }
    }
}

struct Narrow<'a, A> {
    rows: &'a [A],
    panels: &'a [A],
    k: usize,
    count: usize,
    stride: usize,
    tile: &'a mut [A],
}

impl<A: Real> Vectorised for Narrow<'_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (k, stride) = (self.k, self.stride);
        for (c, panel) in self.panels.chunks_exact(k * LANES).enumerate() {
            let row = |m: usize| &self.rows[m * k..][..k];
            let mut m = 0;
            while m + 4 <= self.count {
                for (i, sum) in
                    product([row(m), row(m + 1), row(m + 2), row(m + 3)], panel).iter().enumerate()
                {
                    self.tile[(m + i) * stride + c * LANES..][..LANES].copy_from_slice(sum);
                }
                m += 4;
            }
            while m < self.count {
                self.tile[m * stride + c * LANES..][..LANES]
                    .copy_from_slice(&product([row(m)], panel)[0]);
                m += 1;
            }
        }
    }
}

/// `d b[k] = Σ a[row]ᵀ · grad[row]`, `[matrices, d_input, d_output]`.
pub(crate) fn gradient_of_matrices<T: Elem>(plan: &TypedPlan, grad: &[T], a: &[T]) -> Vec<T> {
    let (i, o) = (plan.d_input(), plan.d_output());
    let size = i * o;
    let total = plan
        .offsets()
        .len()
        .checked_mul(size)
        .expect("a tensor's number of entries fits in `usize`: its shape was checked");
    if size == 0 || plan.offsets().num_rows() == 0 {
        return zeros(total);
    }
    let (narrow, stride) = (is_narrow(i, o), row_stride(i, o));
    // Pieces are long enough that partial sums are small compared with their rows.
    let pieces = pieces(plan, PIECE.max(4 * (size / (i + o)).next_power_of_two()));
    let runs = runs(&pieces, i * stride / LANES + i + o);
    let part = |piece: &Piece| {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut sums = vec![T::Acc::ZERO; i * stride];
        for at in piece.at.clone().step_by(TILE) {
            let at = at..(at + TILE).min(piece.at.end);
            let l = rows_at(a, plan.order(), at.clone(), i, &mut left);
            if narrow {
                // `LANES` more entries, because the last panel reads past the end of the last row.
                right.clear();
                match plan.order() {
                    None => append(std::iter::once(&grad[at.start * o..at.end * o]), &mut right),
                    Some(order) => append(
                        order[at.clone()].iter().map(|&r| &grad[r as usize * o..][..o]),
                        &mut right,
                    ),
                }
                right.resize(right.len() + LANES, T::Acc::ZERO);
                vectorised(Outer {
                    left: l,
                    right: &right,
                    widths: [i, o],
                    count: at.len(),
                    sums: &mut sums,
                });
            } else {
                let r = rows_at(grad, plan.order(), at.clone(), o, &mut right);
                wide([i, o, at.len()], (l, [1, i]), (r, [o, 1]), (&mut sums, o), true);
            }
        }
        sums
    };
    let one = |run: &Range<usize>| {
        pieces[run.clone()].iter().map(|p| (p.matrix, part(p))).collect::<Vec<_>>()
    };
    let parts: Vec<_> = if runs.len() == 1 {
        runs.iter().map(one).collect()
    } else {
        runs.par_iter().map(one).collect()
    };
    let mut out = zeros::<T::Acc>(total);
    for (matrix, sums) in parts.into_iter().flatten() {
        for (to, from) in
            out[matrix * size..][..size].chunks_exact_mut(o).zip(sums.chunks_exact(stride))
        {
            to.iter_mut().zip(from).for_each(|(t, &f)| *t += f);
        }
    }
    T::round(out)
}

struct Outer<'a, A> {
    left: &'a [A],
    right: &'a [A],
    widths: [usize; 2],
    count: usize,
    sums: &'a mut [A],
}

impl<A: Real> Vectorised for Outer<'_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let [i, o] = self.widths;
        let stride = padded(o);
        for c in (0..o).step_by(LANES) {
            let right = (&self.right[c..], o);
            let mut row = 0;
            while row + 4 <= i {
                outer::<A, 4>(
                    |m| &self.left[m * i + row..],
                    right,
                    self.count,
                    (&mut self.sums[row * stride + c..], stride),
                );
                row += 4;
            }
            while row < i {
                outer::<A, 1>(
                    |m| &self.left[m * i + row..],
                    right,
                    self.count,
                    (&mut self.sums[row * stride + c..], stride),
                );
                row += 1;
            }
        }
    }
}
