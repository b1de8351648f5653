//! Products of few rows with a small matrix, written for registers.
//!
//! The matrix lies in panels of [`LANES`] columns, padded with zeros, so that no loop has a remainder of
//! columns. Sums run in ascending inner index; there is no fused multiply-add, so results are the same
//! bits on every instruction set.

use crate::kernel::{Acc, Elem};

/// Columns of a panel: one register of AVX-512, two of AVX2.
pub(crate) const LANES: usize = 16;

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
                        data.extend((from..from + LANES).map(|j| if j < n { matrix[row * by_k + j * by_n].acc() } else { A::ZERO }));
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

/// `rows · panel` for `M` rows of `k` entries and one panel of `[k, LANES]`.
#[inline(always)]
pub(crate) fn product<A: Acc, const M: usize>(rows: [&[A]; M], panel: &[A]) -> [[A; LANES]; M] {
    let k = panel.len() / LANES;
    let rows = rows.map(|r| &r[..k]);
    let mut acc = [[A::ZERO; LANES]; M];
    for (i, w) in panel.chunks_exact(LANES).enumerate() {
        for m in 0..M {
            // SAFETY: `i` counts the panel's `k` rows, and every row was cut to `k` entries.
            let a = unsafe { *rows[m].get_unchecked(i) };
            for (s, &w) in acc[m].iter_mut().zip(w) {
                *s += a * w;
            }
        }
    }
    acc
}

/// Adds `Σ_m left[m][i] · right[m][j]` to `sums[i][j]` for `I` consecutive `i` and one panel of columns `j`;
/// `left` and `right` are `count` rows, `strides` apart, and begin at the first `i` and `j`.
#[inline(always)]
pub(crate) fn outer<A: Acc, const I: usize>(left: &[A], right: &[A], strides: [usize; 2], count: usize, sums: &mut [A], sum_stride: usize) {
    let mut acc = [[A::ZERO; LANES]; I];
    for m in 0..count {
        let l = &left[m * strides[0]..][..I];
        let r = &right[m * strides[1]..][..LANES];
        for i in 0..I {
            for (s, &r) in acc[i].iter_mut().zip(r) {
                *s += l[i] * r;
            }
        }
    }
    for (i, acc) in acc.iter().enumerate() {
        for (s, &a) in sums[i * sum_stride..][..LANES].iter_mut().zip(acc) {
            *s += a;
        }
    }
}
