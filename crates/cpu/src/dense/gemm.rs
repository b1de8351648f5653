//! Safe wrappers of the `gemm` crate.
#![expect(unsafe_code, reason = "`gemm` takes pointers, and writes uninitialised outputs")]

use std::mem::MaybeUninit;

pub(super) use gemm::Parallelism;

use crate::number::Real;
use burn_gnn_structure::internal::huge_room;

/// The entries of a strided matrix, and its row and column strides.
pub(crate) type Strided<'a, A> = (&'a [A], [usize; 2]);

/// The destination of a product.
enum Out<'a, A> {
    /// Writes to memory that may be uninitialised.
    Fresh(&'a mut [MaybeUninit<A>]),
    /// Overwrites these entries.
    Over(&'a mut [A]),
    /// Adds to these entries.
    Onto(&'a mut [A]),
}

/// Computes a product `[m, n]` with row stride `stride`; the sizes are `[m, n, k]`.
fn multiply<A: Real>(
    [m, n, k]: [usize; 3],
    l: Strided<'_, A>,
    r: Strided<'_, A>,
    (out, stride): (Out<'_, A>, usize),
    threads: Parallelism,
) {
    let (to, len, add) = match out {
        Out::Fresh(out) => (out.as_mut_ptr().cast::<A>(), out.len(), false),
        Out::Over(out) => (out.as_mut_ptr(), out.len(), false),
        Out::Onto(out) => (out.as_mut_ptr(), out.len(), true),
    };
    assert!(m > 0 && n > 0 && k > 0, "an empty product");
    let last =
        |rows: usize, columns: usize, by: [usize; 2]| (rows - 1) * by[0] + (columns - 1) * by[1];
    let inside =
        last(m, k, l.1) < l.0.len() && last(k, n, r.1) < r.0.len() && last(m, n, [stride, 1]) < len;
    assert!(inside, "operands are smaller than their sizes and strides");
    let signed = |s: usize| s as isize;
    // SAFETY: the last entry that sizes and strides name of each operand lies in its slice (asserted), `m`,
    // `n` and `k` are at least 1, `out` is borrowed alone, and is only read under `add`, where it holds numbers.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            to,
            1,
            signed(stride),
            add,
            l.0.as_ptr(),
            signed(l.1[1]),
            signed(l.1[0]),
            r.0.as_ptr(),
            signed(r.1[1]),
            signed(r.1[0]),
            A::ONE,
            A::ONE,
            false,
            false,
            false,
            threads,
        );
    }
}

/// `out = l · r` or `out += l · r`, on the calling thread. The sizes are `[m, n, k]`, and `out.1` is the row stride of
/// `out`.
pub(crate) fn wide<A: Real>(
    sizes: [usize; 3],
    l: Strided<'_, A>,
    r: Strided<'_, A>,
    (out, stride): (&mut [A], usize),
    add: bool,
) {
    let out = if add { Out::Onto(out) } else { Out::Over(out) };
    multiply(sizes, l, r, (out, stride), Parallelism::None);
}

/// `l · r`, row-major.
pub(super) fn fresh<A: Real>(
    [m, n, k]: [usize; 3],
    l: Strided<'_, A>,
    r: Strided<'_, A>,
    threads: Parallelism,
) -> Vec<A> {
    let len = m * n;
    let mut out = huge_room::<A>(len);
    multiply([m, n, k], l, r, (Out::Fresh(&mut out.spare_capacity_mut()[..len]), n), threads);
    // SAFETY: the capacity is `len` entries, and `gemm` writes every entry of its result.
    unsafe { out.set_len(len) };
    out
}

/// `out += l · r`, row-major.
pub(super) fn onto<A: Real>(
    sizes: [usize; 3],
    l: Strided<'_, A>,
    r: Strided<'_, A>,
    out: &mut [A],
    threads: Parallelism,
) {
    assert_eq!(out.len(), sizes[0] * sizes[1], "`out` has another size than the product");
    multiply(sizes, l, r, (Out::Onto(out), sizes[1]), threads);
}
