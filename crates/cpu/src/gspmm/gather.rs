//! Sums the messages of a row, a block of columns at a time; the parent module has the pseudo-code.
//!
//! Per edge and 32-bit column the loop reads the 4 bytes of the gathered entry, and those of `rhs` if it has an entry per
//! column. Sums stay in registers. Every column adds its edges in the same order, so bits depend neither on the size of
//! blocks nor on the number of threads.

use std::ops::Range;

use super::layout::Layout;
use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::prefetch::{FAR, ahead, from_memory};
use crate::simd::instruction_sets::{Baseline, Blocked, InstructionSets};
use crate::simd::unroll::each;
use burn_gnn_plan::BinaryOp;
use burn_gnn_structure::internal::{Cache, prefetch, prefetch_to};

/// A message operator. Common operators are monomorphised; the others are dispatched once per block of columns.
pub(crate) trait Op: Copy + Sync {
    const LHS: bool = true;
    const RHS: bool = true;
    /// The instruction sets that loops over sums are compiled for.
    type InstructionSets<T: Elem>: InstructionSets;
    fn apply<A: Acc, const N: usize>(self, l: Lanes<A, N>, r: Lanes<A, N>) -> Lanes<A, N>;
}

/// `lhs`
#[derive(Clone, Copy)]
pub(crate) struct CopyLhs;
/// `rhs`
#[derive(Clone, Copy)]
pub(crate) struct CopyRhs;
/// `lhs * rhs`
#[derive(Clone, Copy)]
pub(crate) struct Mul;
/// Any operator of two operands.
#[derive(Clone, Copy)]
pub(crate) struct Any(pub(crate) BinaryOp);

impl Op for CopyLhs {
    const RHS: bool = false;
    type InstructionSets<T: Elem> = T::HotLoop;
    #[inline(always)]
    fn apply<A: Acc, const N: usize>(self, l: Lanes<A, N>, _: Lanes<A, N>) -> Lanes<A, N> {
        l
    }
}

impl Op for CopyRhs {
    const LHS: bool = false;
    type InstructionSets<T: Elem> = T::HotLoop;
    #[inline(always)]
    fn apply<A: Acc, const N: usize>(self, _: Lanes<A, N>, r: Lanes<A, N>) -> Lanes<A, N> {
        r
    }
}

impl Op for Mul {
    type InstructionSets<T: Elem> = T::HotLoop;
    #[inline(always)]
    fn apply<A: Acc, const N: usize>(self, l: Lanes<A, N>, r: Lanes<A, N>) -> Lanes<A, N> {
        l.mul(r)
    }
}

impl Op for Any {
    type InstructionSets<T: Elem> = Baseline;
    #[inline(always)]
    fn apply<A: Acc, const N: usize>(self, l: Lanes<A, N>, r: Lanes<A, N>) -> Lanes<A, N> {
        match self.0 {
            BinaryOp::Add => l.add(r),
            BinaryOp::Sub => l.zip(r, |a, b| a - b),
            BinaryOp::Mul => l.mul(r),
            BinaryOp::Div => l.zip(r, |a, b| a / b),
            BinaryOp::CopyLhs => l,
            BinaryOp::CopyRhs => r,
        }
    }
}

/// The operands of the messages of one compressed layout.
pub(crate) struct Messages<'a, T, O, R> {
    pub(crate) rows: Adjacency<'a>,
    /// Rows of the nodes at the other endpoint of the edges, `width` entries each.
    pub(crate) lhs: &'a [T],
    /// Rows of the edges, by edge id.
    pub(crate) rhs: &'a [T],
    pub(crate) op: O,
    pub(crate) layout: R,
    pub(crate) width: usize,
    /// How many edges ahead rows are prefetched.
    ahead: usize,
    /// Whether the rows of any operand come from main memory.
    from_memory: bool,
    /// Whether the rows of `lhs` come from main memory.
    lhs_from_memory: bool,
}

/// Size in bytes up to which an operand fits in the second-level cache, and is not prefetched.
const CACHED: usize = 1 << 20;

/// Columns of a block from which rows in main memory are prefetched twice. For narrower rows the instructions cost more
/// than they save. With AVX2 and AVX-512, blocks of f32, f16 and bf16 are at least this wide, for copies and products.
pub(super) const WIDE_ROW: usize = 32;

impl<'a, T: Elem, O: Op, R: Layout> Messages<'a, T, O, R> {
    pub(crate) fn new(
        rows: Adjacency<'a>,
        lhs: &'a [T],
        rhs: &'a [T],
        op: O,
        layout: R,
        width: usize,
    ) -> Self {
        let bytes = |read: bool, data: &[T]| if read { size_of_val(data) } else { 0 };
        let (of_lhs, of_rhs) = (bytes(O::LHS, lhs), bytes(O::RHS, rhs));
        let lhs_from_memory = from_memory(of_lhs);
        // Rows of edges are read once. They take up half of the cache, and rows of nodes the other half.
        let from_memory = lhs_from_memory || from_memory((of_lhs + of_rhs) / 2);
        let ahead = ahead::<T>(width);
        Self { rows, lhs, rhs, op, layout, width, ahead, from_memory, lhs_from_memory }
    }

    /// Prefetches the rows of the edge some positions after `p`. `columns` is a constant of the caller: the number of
    /// columns that it adds at a time.
    #[inline(always)]
    pub(crate) fn fetch(&self, p: usize, columns: usize) {
        if columns >= WIDE_ROW
            && self.from_memory
            && let Some(&u) = self.rows.indices.get(p + FAR * self.ahead)
        {
            if O::LHS && self.lhs_from_memory {
                prefetch_to(Cache::Second, self.lhs, u as usize * self.width, self.width);
            }
            if O::RHS {
                let id = self.rows.edge_id(p + FAR * self.ahead);
                self.layout.fetch(Cache::Second, self.rhs, id, self.width);
            }
        }
        let Some(&u) = self.rows.indices.get(p + self.ahead) else { return };
        if O::LHS && size_of_val(self.lhs) > CACHED {
            prefetch(self.lhs, u as usize * self.width, self.width);
        }
        if O::RHS && size_of_val(self.rhs) > CACHED {
            let id = self.rows.edge_id(p + self.ahead);
            self.layout.fetch(Cache::First, self.rhs, id, self.width);
        }
    }

    /// The operands of columns `col..col + len` of the message at position `p`.
    #[inline(always)]
    pub(crate) fn edge(&self, p: usize, col: usize, len: usize) -> Operands<'_, T, R> {
        let lhs = if O::LHS {
            &self.lhs[self.rows.indices[p] as usize * self.width + col..][..len]
        } else {
            &[]
        };
        let rhs = if O::RHS {
            self.layout.part(self.rhs, self.rows.edge_id(p), self.width, col, len)
        } else {
            R::nothing()
        };
        Operands { lhs, rhs }
    }

    /// Columns `at..at + N` of the message of these operands.
    #[inline(always)]
    pub(crate) fn lanes<const N: usize>(
        &self,
        edge: &Operands<'_, T, R>,
        at: usize,
    ) -> Lanes<T::Acc, N> {
        let left = if O::LHS { Lanes::load(edge.lhs, at) } else { Lanes::splat(T::Acc::ZERO) };
        let right =
            if O::RHS { R::lanes::<T, N>(edge.rhs, at) } else { Lanes::splat(T::Acc::ZERO) };
        self.op.apply(left, right)
    }
}

/// The operands of a block of columns of one message.
pub(crate) struct Operands<'a, T: Elem, R: Layout> {
    lhs: &'a [T],
    rhs: R::Part<'a, T>,
}

/// Calls `$do` for blocks that cover the columns `0..$n` from left to right. A block has `N * K` columns from `col`.
///
/// If `$n` is not a multiple of the block size, the last block overlaps with the previous one; only its last `keep`
/// columns are new.
macro_rules! for_blocks {
    ($n:expr, $wide:expr, |$col:ident, $keep:ident, $N:ident, $K:ident| $do:expr) => {{
        let n: usize = $n;
        let mut at = 0;
        for_blocks!(@ whole $wide >= 8, at, n, 8, |$col, $keep, $N, $K| $do);
        for_blocks!(@ whole $wide >= 4, at, n, 4, |$col, $keep, $N, $K| $do);
        for_blocks!(@ whole $wide >= 2, at, n, 2, |$col, $keep, $N, $K| $do);
        if n >= 16 {
            for_blocks!(@ rest at, n, 16, |$col, $keep, $N, $K| $do);
        } else if n >= 8 {
            for_blocks!(@ rest at, n, 8, |$col, $keep, $N, $K| $do);
        } else if n >= 4 {
            for_blocks!(@ rest at, n, 4, |$col, $keep, $N, $K| $do);
        } else {
            for_blocks!(@ rest at, n, 1, |$col, $keep, $N, $K| $do);
        }
    }};
    (@ whole $cond:expr, $at:ident, $n:ident, $count:literal, |$col:ident, $keep:ident, $N:ident, $K:ident| $do:expr) => {
        if $cond {
            const $N: usize = 16;
            const $K: usize = $count;
            while $n - $at >= $N * $K {
                let ($col, $keep) = ($at, $N * $K);
                $do;
                $at += $N * $K;
            }
        }
    };
    (@ rest $at:ident, $n:ident, $size:literal, |$col:ident, $keep:ident, $N:ident, $K:ident| $do:expr) => {{
        const $N: usize = $size;
        const $K: usize = 1;
        while $at < $n {
            let $col = $at.min($n - $N);
            let $keep = $N - ($at - $col);
            $do;
            $at = $col + $N;
        }
    }};
}
pub(crate) use for_blocks;

/// The sums (or means) of the messages of every row, `[rows, width]`. Rows without edges are 0.
pub(crate) fn sum<T: Elem, O: Op, R: Layout>(
    messages: &Messages<'_, T, O, R>,
    mean: bool,
) -> Vec<T> {
    collect_rows(&by_edges(messages.rows.indptr, messages.width), messages.width, &|run, out| {
        O::InstructionSets::<T>::run(SumRows { messages, mean, run, out });
    })
}

/// Writes the last `keep` columns of a block.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Over two arrays at once.
pub(crate) fn put<T: Elem, const N: usize, const K: usize>(
    out: &mut Sink<'_, T>,
    block: [Lanes<T::Acc, N>; K],
    keep: usize,
) {
    each!(k < K, {
        let mut entries = [T::zeroed(); N];
        for i in 0..N {
            entries[i] = T::of(block[k].0[i]);
        }
        put_last(out, &entries, if K == 1 { keep } else { N });
    });
}

/// Writes the last `keep` of `entries`; the others were written by the previous block.
///
/// A block that is written as a whole is a separate case, because its length is then a constant and the compiler emits
/// one wide store. A length that is known at run time only becomes a loop over single entries, which took a fifth of the
/// time of rows of 16 columns.
#[inline(always)]
pub(crate) fn put_last<T: Copy, const N: usize>(
    out: &mut Sink<'_, T>,
    entries: &[T; N],
    keep: usize,
) {
    if keep == N { out.put(entries) } else { out.put(&entries[N - keep..]) }
}

struct SumRows<'a, 'b, T, O, R> {
    messages: &'a Messages<'a, T, O, R>,
    mean: bool,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
}

impl<T: Elem, O: Op, R: Layout> Blocked for SumRows<'_, '_, T, O, R> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let m = self.messages;
        for v in self.run {
            let edges = m.rows.row(v);
            let degree =
                if self.mean { T::Acc::count(edges.len().max(1) as u32) } else { T::Acc::ONE };
            for_blocks!(m.width, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                for p in edges.clone() {
                    if col == 0 {
                        m.fetch(p, N * K);
                    }
                    let edge = m.edge(p, col, N * K);
                    each!(k < K, {
                        acc[k] = acc[k].add(m.lanes(&edge, N * k));
                    });
                }
                if self.mean {
                    each!(k < K, {
                        acc[k] = acc[k].zip(Lanes::splat(degree), |a, d| a / d);
                    });
                }
                put(self.out, acc, keep);
            });
        }
    }
}
