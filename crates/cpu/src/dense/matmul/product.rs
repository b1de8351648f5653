//! The product of two row-major matrices by `gemm`.

use crate::dense::gemm::{Parallelism, fresh, onto};
use crate::number::Real;

/// Which operands of a product are stored transposed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transposed {
    /// The left one is stored as `[k, m]`.
    pub left: bool,
    /// The right one is stored as `[n, k]`.
    pub right: bool,
}

/// Number of multiplications from which a product runs in parallel; Burn's Flex backend has the same threshold.
const PARALLEL_FROM: usize = 192 * 192 * 192;

/// Sizes of a product `[m, k] · [k, n]`, and the strides of its operands.
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Row and column strides of the left and of the right operand.
    strides: [[usize; 2]; 2],
}

impl Product {
    /// For operands that are stored in row-major order.
    pub(super) fn new(l: [usize; 2], r: [usize; 2], transpose: Transposed) -> Self {
        let side = |[rows, columns]: [usize; 2], transposed: bool| {
            if transposed {
                ([columns, rows], [1, columns])
            } else {
                ([rows, columns], [columns, 1])
            }
        };
        let (([m, k], left), ([inner, n], right)) =
            (side(l, transpose.left), side(r, transpose.right));
        assert_eq!(k, inner, "the inner sizes of a product must be equal");
        Self { m, n, k, strides: [left, right] }
    }

    /// `l · r` by all threads.
    pub(super) fn fresh<A: Real>(&self, l: &[A], r: &[A]) -> Vec<A> {
        let [sl, sr] = self.checked(l, r);
        fresh([self.m, self.n, self.k], (l, sl), (r, sr), self.threads())
    }

    /// `out += l · r` by all threads.
    pub(super) fn onto<A: Real>(&self, l: &[A], r: &[A], out: &mut [A]) {
        let [sl, sr] = self.checked(l, r);
        onto([self.m, self.n, self.k], (l, sl), (r, sr), out, self.threads());
    }

    /// On the calling thread: adds to `out`, or fills `out` if it is empty.
    pub(super) fn alone<A: Real>(&self, l: &[A], r: &[A], out: &mut Vec<A>) {
        let ([sl, sr], sizes) = (self.checked(l, r), [self.m, self.n, self.k]);
        if out.is_empty() {
            *out = fresh(sizes, (l, sl), (r, sr), Parallelism::None);
        } else {
            onto(sizes, (l, sl), (r, sr), out, Parallelism::None);
        }
    }

    fn checked<A>(&self, l: &[A], r: &[A]) -> [[usize; 2]; 2] {
        assert!(
            l.len() == self.m * self.k && r.len() == self.k * self.n,
            "operands of other sizes"
        );
        self.strides
    }

    fn threads(&self) -> Parallelism {
        let work = self.m.saturating_mul(self.n).saturating_mul(self.k);
        if work >= PARALLEL_FROM { Parallelism::Rayon(0) } else { Parallelism::None }
    }
}
