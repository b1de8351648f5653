//! Products of a few rows with one of many matrices: narrow matrices in registers, wide ones in the `gemm` crate.
//!
//! A narrow matrix is packed into panels of [`LANES`] columns, padded with zeros, so that loops have no remainder of
//! columns. Sums run in ascending inner index without fused multiply-add, so results have the same bits on every
//! instruction set. The bits of `gemm` depend on the processor, but not on the number of threads.

use std::borrow::Cow;

use super::widen::widen;
use crate::number::{Acc, Elem, Real};

/// Columns of a panel: one AVX-512 register or two AVX2 registers of f32.
pub(crate) const LANES: usize = 16;

/// Number of entries of a matrix up to which products run in registers. Measured with AVX-512, in GFLOP/s of this module
/// and of `gemm`: 140 and 86 for 16 × 16, 177 and 187 for 32 × 32, 149 and 219 for 64 × 64.
const NARROW: usize = 32 * 32;

/// Number of columns, rounded up to whole panels.
pub(crate) fn padded(columns: usize) -> usize {
    columns.div_ceil(LANES) * LANES
}

/// Matrices `[k, n]` of equal shape, packed into panels and widened to the accumulator type.
pub(crate) struct Panels<A> {
    data: Vec<A>,
    k: usize,
    /// `padded(n)`.
    pub(crate) stride: usize,
}

impl<A: Acc> Panels<A> {
    /// Packs row-major matrices; `transposed` if they are stored as `[n, k]`.
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
/// The loop over `m` is unrolled by hand. Otherwise the compiler, after it has unrolled the loop over lanes, may vectorise
/// over `m` with gathers and scatters of single entries. It does so with one codegen unit and without LTO, which is 50
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
#[expect(unsafe_code, reason = "the inner loop of products, without bounds checks")]
#[inline(always)]
pub(crate) fn product<A: Acc, const M: usize>(rows: [&[A]; M], panel: &[A]) -> [[A; LANES]; M] {
    let panel = panel.as_chunks::<LANES>().0;
    let rows = rows.map(|r| &r[..panel.len()]);
    let mut acc = [[A::ZERO; LANES]; M];
    for (i, w) in panel.iter().enumerate() {
        // SAFETY: `i` is below the number of rows of the panel, and every `row` was truncated to this length.
        axpys(&mut acc, |m| unsafe { *rows[m].get_unchecked(i) }, w);
    }
    acc
}

/// Adds `Σ_m left(m)[i] · right[m][j]` to `sums[i][j]`, for `I` (at most four) consecutive `i` and the columns `j` of one
/// panel. `left(m)` starts at the first `i`. `right` has `count` rows with a stride, and starts at the first `j`.
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

/// Matrices `[k, n]` of equal shape, prepared for products.
pub(crate) enum Matrices<'a, A: Acc> {
    /// For products in registers.
    Narrow(Panels<A>),
    /// For products in `gemm`: row-major as stored, `[n, k]` if `transposed`.
    Wide {
        /// Their entries.
        b: Cow<'a, [A]>,
        /// Whether they are transposed.
        transposed: bool,
    },
}

/// Whether products with matrices `[k, n]` run in registers.
pub(crate) fn is_narrow(k: usize, n: usize) -> bool {
    k.saturating_mul(n) <= NARROW
}

/// Row stride of results, for matrices `[k, n]`.
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
