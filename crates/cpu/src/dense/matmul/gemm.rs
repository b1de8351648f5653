//! Products by the `gemm` crate.
#![expect(unsafe_code, reason = "products of the `gemm` crate, into memory that is written once")]

use std::mem::MaybeUninit;

use super::Transposed;
use crate::{Real, room};

/// Multiplications from which a second thread pays; Flex has the same bound.
const PARALLEL_FROM: usize = 192 * 192 * 192;

/// Sizes of a product `[m, k] · [k, n]` and where its operands' entries lie.
pub(super) struct Job {
    m: usize,
    n: usize,
    k: usize,
    /// Entries between rows and between columns, of the left and of the right operand.
    strides: [[usize; 2]; 2],
}

impl Job {
    /// For operands that are stored in row-major order.
    pub(super) fn new(l: [usize; 2], r: [usize; 2], transpose: Transposed) -> Self {
        let side = |[rows, columns]: [usize; 2], transposed: bool| {
            if transposed { ([columns, rows], [1, columns]) } else { ([rows, columns], [columns, 1]) }
        };
        let (([m, k], left), ([inner, n], right)) = (side(l, transpose.left), side(r, transpose.right));
        assert_eq!(k, inner, "sizes were checked before");
        Self { m, n, k, strides: [left, right] }
    }

    pub(super) fn m(&self) -> usize {
        self.m
    }
    pub(super) fn n(&self) -> usize {
        self.n
    }
    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// `l · r` by all threads.
    pub(super) fn fresh<A: Real>(&self, l: &[A], r: &[A]) -> Vec<A> {
        let len = self.m * self.n;
        let mut out = room::<A>(len);
        self.run_on(self.threads(), l, r, &mut out.spare_capacity_mut()[..len], false);
        // SAFETY: there is room for `len` entries, and a product writes every one of its result.
        unsafe { out.set_len(len) };
        out
    }

    /// `out += l · r` by all threads.
    pub(super) fn onto<A: Real>(&self, l: &[A], r: &[A], out: &mut [A]) {
        self.run_on(self.threads(), l, r, uninit(out), true);
    }

    fn threads(&self) -> gemm::Parallelism {
        let work = self.m.saturating_mul(self.n).saturating_mul(self.k);
        if work >= PARALLEL_FROM { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None }
    }

    /// On this thread: onto `out`, or, if `out` has no entries yet, as its entries.
    pub(super) fn alone<A: Real>(&self, l: &[A], r: &[A], out: &mut Vec<A>) {
        let (add, len) = (!out.is_empty(), self.m * self.n);
        if add {
            self.run_on(gemm::Parallelism::None, l, r, uninit(out), true);
        } else {
            out.reserve_exact(len);
            self.run_on(gemm::Parallelism::None, l, r, &mut out.spare_capacity_mut()[..len], false);
            // SAFETY: there is room for `len` entries, and a product writes every one of its result.
            unsafe { out.set_len(len) };
        }
    }

    fn run_on<A: Real>(&self, threads: gemm::Parallelism, l: &[A], r: &[A], out: &mut [MaybeUninit<A>], add: bool) {
        let &Self { m, n, k, strides: [left, right] } = self;
        assert!(m > 0 && n > 0 && k > 0, "an empty product");
        assert!(l.len() == m * k && r.len() == k * n && out.len() == m * n, "operands of other sizes");
        let signed = |s: usize| s as isize;
        // SAFETY: operands are as long as their sizes say (asserted) and strides are those of row-major storage, read
        // along either axis, so the last entry named lies inside; `m`, `n` and `k` are at least 1; `out` is borrowed
        // alone, and is only read under `add`, where the caller's entries are initialised.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                out.as_mut_ptr().cast::<A>(),
                1,
                signed(n),
                add,
                l.as_ptr(),
                signed(left[1]),
                signed(left[0]),
                r.as_ptr(),
                signed(right[1]),
                signed(right[0]),
                A::ONE,
                A::ONE,
                false,
                false,
                false,
                threads,
            );
        }
    }
}

/// Initialised entries as ones that may not be: for [`Job::run_on`], which writes only values.
fn uninit<A>(out: &mut [A]) -> &mut [MaybeUninit<A>] {
    // SAFETY: the layout is the same, and the one caller, a product, stores no uninitialised entry.
    unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<A>]) }
}
