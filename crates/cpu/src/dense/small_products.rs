//! Multiplies a few rows with one matrix of many: narrow ones in registers, wide ones by the `gemm` crate.
//!
//! A narrow matrix lies in panels of [`LANES`] columns, padded with zeros, so that no loop has a remainder of
//! columns. Sums run in ascending inner index; there is no fused multiply-add, so results are the same
//! bits on every instruction set. `gemm` has no such rule: its bits are those of a machine, for any number of
//! threads.

use std::borrow::Cow;

use super::widen::widen;
use crate::number::{Acc, Elem, Real};

/// Columns of a panel: one register of AVX-512, two of AVX2.
pub(crate) const LANES: usize = 16;

/// Entries of a matrix up to which products run in registers. Measured with AVX-512, GFLOP/s here and of
/// `gemm`: 140 and 86 at 16 × 16, 177 and 187 at 32 × 32, 149 and 219 at 64 × 64.
const NARROW: usize = 32 * 32;

/// Columns rounded up to whole panels.
pub(crate) fn padded(columns: usize) -> usize {
    columns.div_ceil(LANES) * LANES
}

/// Matrices `[k, n]` of equal shape in panels, in the type that sums are kept in.
pub(crate) struct Panels<A> {
    data: Vec<A>,
    k: usize,
    /// `padded(n)`.
    pub(crate) stride: usize,
}

impl<A: Acc> Panels<A> {
    /// From `count` row-major matrices; `transposed` if they are stored as `[n, k]`.
    pub(crate) fn new<T: Elem<Acc = A>>(w: &[T], k: usize, n: usize, transposed: bool) -> Self {
        let stride = padded(n);
        let mut data = Vec::new();
        if k > 0 && n > 0 {
            let (by_k, by_n) = if transposed { (1, k) } else { (n, 1) };
            data.reserve_exact(w.len() / (k * n) * stride * k);
            for matrix in w.chunks_exact(k * n) {
                for from in (0..n).step_by(LANES) {
                    for row in 0..k {
                        data.extend((from..from + LANES).map(|j| {
                            if j < n { matrix[row * by_k + j * by_n].acc() } else { A::ZERO }
                        }));
                    }
                }
            }
        }
        Self { data, k, stride }
    }

    /// All panels of matrix `i`.
    #[inline(always)]
    pub(crate) fn matrix(&self, i: usize) -> &[A] {
        &self.data[i * self.k * self.stride..][..self.k * self.stride]
    }
}

/// `sums += a · row`.
#[inline(always)]
fn axpy<A: Acc>(sums: &mut [A; LANES], a: A, row: &[A; LANES]) {
    for (s, &r) in sums.iter_mut().zip(row) {
        *s += a * r;
    }
}

/// Adds `a(m) · row` to `sums[m]` for every `m`.
///
/// Written out, since a compiler that meets a loop over `m` after it has unrolled the one over lanes may vectorise
/// across rows, with gathers and scatters of single numbers: that is what it does with one codegen unit and no LTO, 50
/// times slower.
#[inline(always)]
fn axpys<A: Acc, const M: usize>(
    sums: &mut [[A; LANES]; M],
    a: impl Fn(usize) -> A,
    row: &[A; LANES],
) {
    const { assert!(M <= 4) };
    if M > 0 {
        axpy(&mut sums[0], a(0), row);
    }
    if M > 1 {
        axpy(&mut sums[1], a(1), row);
    }
    if M > 2 {
        axpy(&mut sums[2], a(2), row);
    }
    if M > 3 {
        axpy(&mut sums[3], a(3), row);
    }
}

/// `rows · panel` for `M` rows of `k` entries and one panel of `[k, LANES]`; at most four rows.
#[expect(unsafe_code, reason = "the loop that products spend their time in")]
#[inline(always)]
pub(crate) fn product<A: Acc, const M: usize>(rows: [&[A]; M], panel: &[A]) -> [[A; LANES]; M] {
    let panel = panel.as_chunks::<LANES>().0;
    let rows = rows.map(|r| &r[..panel.len()]);
    let mut acc = [[A::ZERO; LANES]; M];
    for (i, w) in panel.iter().enumerate() {
        // SAFETY: `i` counts the panel's rows, and every row was cut to as many entries.
        axpys(&mut acc, |m| unsafe { *rows[m].get_unchecked(i) }, w);
    }
    acc
}

/// Adds `Σ_m left(m)[i] · right[m][j]` to `sums[i][j]` for `I` consecutive `i`, at most four, and one panel of columns
/// `j`. `left(m)` begins at the first `i`; `right` are `count` rows, `stride` apart, and begins at the first `j`.
#[inline(always)]
pub(crate) fn outer<'a, A: Acc + 'a, const I: usize>(
    left: impl Fn(usize) -> &'a [A],
    (right, stride): (&[A], usize),
    count: usize,
    (sums, sum_stride): (&mut [A], usize),
) {
    let mut acc = [[A::ZERO; LANES]; I];
    for m in 0..count {
        let l = &left(m)[..I];
        let Some(r) = right[m * stride..].first_chunk() else {
            unreachable!("rows end with a whole panel")
        };
        axpys(&mut acc, |i| l[i], r);
    }
    for (i, acc) in acc.iter().enumerate() {
        for (s, &a) in sums[i * sum_stride..][..LANES].iter_mut().zip(acc) {
            *s += a;
        }
    }
}

/// Matrices `[k, n]` of equal shape, ready for products.
pub(crate) enum Matrices<'a, A: Acc> {
    /// In registers.
    Narrow(Panels<A>),
    /// As they are stored: row-major, `[n, k]` if `transposed`.
    Wide {
        /// Their entries.
        b: Cow<'a, [A]>,
        /// Whether they are transposed.
        transposed: bool,
    },
}

/// Whether products with `[k, n]` run in registers.
pub(crate) fn is_narrow(k: usize, n: usize) -> bool {
    k.saturating_mul(n) <= NARROW
}

/// Entries between result rows of `n` columns, for matrices of `[k, n]`.
pub(crate) fn row_stride(k: usize, n: usize) -> usize {
    if is_narrow(k, n) { padded(n) } else { n }
}

impl<'a, A: Real> Matrices<'a, A> {
    pub(crate) fn new<T: Elem<Acc = A>>(b: &'a [T], k: usize, n: usize, transposed: bool) -> Self {
        if is_narrow(k, n) {
            Self::Narrow(Panels::new(b, k, n, transposed))
        } else {
            Self::Wide { b: widen(b), transposed }
        }
    }
}
