//! Reduces messages by max or min per column, and records the argmax.

use std::ops::Range;

use super::gather::{CopyLhs, Messages, Op, for_blocks, put, put_last};
use super::layout::{Layout, Same};
use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem};
use crate::parallel::collect::{collect_rows, collect_rows_and_edges, collect_rows2};
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::prefetch::ahead;
use crate::simd::instruction_sets::{Blocked, InstructionSets};
use crate::simd::unroll::each;
use burn_gnn_plan::{BinaryOp, GspmmPlan};

/// Columns whose argmax bits are stored together: 8 bits for each of 16 lanes.
pub(super) const GROUP: usize = 16 * 8;
/// 32-bit words of the bits of a group.
pub(super) const WORDS: usize = GROUP / 32;

/// The number of 32-bit words per edge if the argmax is saved as one bit per edge and column, otherwise `None`: it is
/// saved as one edge id per destination and column.
///
/// Bits are used for `copy_u` if they take no more memory than ids. The gradient reads the argmax for every edge: with
/// 128 columns it reads 16 bytes of bits, or 512 bytes of ids, as many as of the gradient itself.
pub fn bit_words(plan: &GspmmPlan) -> Option<usize> {
    let (relation, n) = (plan.relation(), plan.width());
    let whole =
        plan.op() == BinaryOp::CopyLhs && plan.reduce().selects() && n > 0 && n.is_multiple_of(16);
    let words = WORDS * n.div_ceil(GROUP);
    (whole && relation.num_edges() > 0 && relation.num_edges() * words <= relation.num_dst() * n)
        .then_some(words)
}

/// The max (or min) of the messages of every row, `[rows, width]`. Rows without edges are 0. There is no sentinel among
/// the values.
///
/// `W` are the instruction sets that the loops are compiled for. The minimum is computed as the maximum of the negated
/// messages, which is exact.
pub(crate) fn select<T: Elem, O: Op, R: Layout, W: InstructionSets>(
    messages: &Messages<'_, T, O, R>,
    max: bool,
) -> Vec<T> {
    collect_rows(&by_edges(messages.rows.indptr, messages.width), messages.width, &|run, out| {
        W::run(SelectRows { messages, sign: sign(max), run, out, argmax: NoArgmax });
    })
}

/// [`select`], and the edge id of the argmax of every entry, or -1 for rows without edges.
pub(crate) fn select_ids<T: Elem, O: Op, R: Layout, W: InstructionSets>(
    messages: &Messages<'_, T, O, R>,
    max: bool,
) -> (Vec<T>, Vec<i32>) {
    let width = messages.width;
    // Twice the width: there are two outputs, and a comparison costs more than an addition.
    collect_rows2(&by_edges(messages.rows.indptr, 2 * width), [width, width], &|run, out, ids| {
        W::run(SelectRows { messages, sign: sign(max), run, out, argmax: Ids(ids) });
    })
}

/// [`select`] for `copy_u`, and `words` words of bits for every edge, by edge id: whether it is the argmax of a column.
///
/// Column `128 g + 16 k + i` of an edge is bit `k` of byte `i` of group `g`. So 16 adjacent columns map to 16 adjacent
/// bytes, and lanes need no shuffles.
pub(crate) fn select_bits<T: Elem>(
    messages: &Messages<'_, T, CopyLhs, Same>,
    max: bool,
    words: usize,
) -> (Vec<T>, Vec<i32>) {
    let (rows, width) = (messages.rows, messages.width);
    assert_eq!(words, WORDS * width.div_ceil(GROUP), "every group of columns has {WORDS} words");
    let runs = by_edges(rows.indptr, 2 * width);
    let (out, _, bits) = collect_rows_and_edges::<T, (), i32>(
        &runs,
        [width, 0],
        Scattered::by_edge(rows, &runs, words),
        &|run, out, _, bits| {
            bits.whole();
            let argmax = Bits { bits, words, args: vec![-1; width], at: 0 };
            T::HotLoop::run(SelectRows { messages, sign: sign(max), run, out, argmax });
        },
    );
    (out, bits)
}

fn sign<A: Acc>(max: bool) -> A {
    if max { A::ONE } else { -A::ONE }
}

/// Stores the argmax of a row.
trait ArgmaxSink {
    /// Whether the argmax is stored at all.
    const STORED: bool = true;
    /// The number that identifies the edge at position `p`.
    fn label<T, O, R>(m: &Messages<'_, T, O, R>, p: usize) -> i32;
    /// Prefetches the memory that is written for an edge some positions after `p`.
    fn prefetch<T, O, R>(&self, _m: &Messages<'_, T, O, R>, _p: usize) {}
    /// Stores the labels of the last `keep` columns of a block.
    fn put<const N: usize>(&mut self, labels: &[i32; N], keep: usize);
    /// Called after all columns of a row, which has these edges.
    fn finish(&mut self, _edges: Range<usize>) {}
}

/// Stores nothing: no input is tracked.
struct NoArgmax;

impl ArgmaxSink for NoArgmax {
    const STORED: bool = false;
    #[inline(always)]
    fn label<T, O, R>(_: &Messages<'_, T, O, R>, _: usize) -> i32 {
        -1
    }
    #[inline(always)]
    fn put<const N: usize>(&mut self, _: &[i32; N], _: usize) {}
}

/// Stores an edge id for every entry of the result.
struct Ids<'a, 'b>(&'a mut Sink<'b, i32>);

impl ArgmaxSink for Ids<'_, '_> {
    #[inline(always)]
    fn label<T, O, R>(m: &Messages<'_, T, O, R>, p: usize) -> i32 {
        m.rows.edge_id(p) as i32
    }
    #[inline(always)]
    fn put<const N: usize>(&mut self, labels: &[i32; N], keep: usize) {
        put_last(self.0, labels, keep);
    }
}

/// Stores a bit for every edge and column.
struct Bits<'a, 'b> {
    bits: &'a mut EdgeRows<'b, i32>,
    words: usize,
    /// Positions of the argmax of the columns of the current row.
    args: Vec<i32>,
    /// Number of columns in `args`.
    at: usize,
}

impl ArgmaxSink for Bits<'_, '_> {
    #[inline(always)]
    fn label<T, O, R>(_: &Messages<'_, T, O, R>, p: usize) -> i32 {
        p as i32
    }
    #[inline(always)]
    fn prefetch<T, O, R>(&self, m: &Messages<'_, T, O, R>, p: usize) {
        let next = p + ahead::<i32>(GROUP);
        if next < m.rows.indices.len() {
            self.bits.prefetch(m.rows.edge_id(next), 0, self.words);
        }
    }
    #[inline(always)]
    fn put<const N: usize>(&mut self, labels: &[i32; N], keep: usize) {
        // Two cases for the reason that `put_last` gives.
        if keep == N {
            self.args[self.at..][..N].copy_from_slice(labels)
        } else {
            self.args[self.at..][..keep].copy_from_slice(&labels[N - keep..])
        }
        self.at += keep;
    }
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // Over two arrays at once.
    fn finish(&mut self, edges: Range<usize>) {
        self.at = 0;
        let Self { bits, words, args, .. } = self;
        for p in edges {
            bits.put(*words, |row| {
                for args in args.chunks(GROUP) {
                    let mut lanes = Lanes::<u32, 16>([0; 16]);
                    each!(k < 8, {
                        if let Some(args) = args.get(16 * k..16 * k + 16) {
                            let mut with = lanes;
                            for i in 0..16 {
                                with.0[i] = if args[i] == p as i32 {
                                    lanes.0[i] | 1 << k
                                } else {
                                    lanes.0[i]
                                };
                            }
                            lanes = with;
                        }
                    });
                    let mut bytes = [0u8; 16];
                    for i in 0..16 {
                        bytes[i] = lanes.0[i] as u8;
                    }
                    let four: [i32; WORDS] = bytemuck::cast(bytes);
                    row.put(&four);
                }
            });
        }
    }
}

struct SelectRows<'a, 'b, T: Elem, O, R, W> {
    messages: &'a Messages<'a, T, O, R>,
    sign: T::Acc,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
    argmax: W,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<T: Elem, O: Op, R: Layout, W: ArgmaxSink> Blocked for SelectRows<'_, '_, T, O, R, W> {
    #[inline(always)]
    fn run<const WIDE: usize>(mut self) {
        let (m, sign) = (self.messages, self.sign);
        for v in self.run {
            let edges = m.rows.row(v);
            for_blocks!(m.width, WIDE, |col, keep, N, K| {
                // The sign is applied to the result once more, so a row without edges is +0 for min as well.
                let mut best = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO).scale(sign); K];
                let mut arg = [Lanes::<i32, N>([-1; N]); K];
                if !edges.is_empty() {
                    // The first message is the first candidate of all columns, whatever its value.
                    let edge = m.edge(edges.start, col, N * K);
                    arg = [Lanes([W::label(m, edges.start); N]); K];
                    each!(k < K, {
                        best[k] = m.lanes(&edge, N * k).scale(sign);
                    });
                }
                for p in edges.clone() {
                    if col == 0 {
                        m.fetch(p, N * K);
                        self.argmax.prefetch(m, p);
                    }
                    let label = W::label(m, p);
                    let edge = m.edge(p, col, N * K);
                    each!(k < K, {
                        let (b, mut w) = (best[k], arg[k]);
                        let x = m.lanes(&edge, N * k).scale(sign);
                        if W::STORED {
                            for i in 0..N {
                                w.0[i] = if better(x.0[i], b.0[i]) { label } else { w.0[i] };
                            }
                            arg[k] = w;
                        }
                        best[k] = b.zip(x, |b, x| if better(x, b) { x } else { b });
                    });
                }
                each!(k < K, {
                    best[k] = best[k].scale(sign);
                });
                put(self.out, best, keep);
                if W::STORED {
                    each!(k < K, {
                        self.argmax.put(&arg[k].0, if K == 1 { keep } else { N });
                    });
                }
            });
            self.argmax.finish(edges);
        }
    }
}

/// Whether `x` replaces `best`: it must be strictly larger, so the first of equal messages wins. NaN is larger than every
/// number, and the first NaN wins.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` tests for NaN without a call, so that the loop vectorises.
pub(crate) fn better<A: Acc>(m: A, best: A) -> bool {
    (m > best) | ((m != m) & (best == best))
}

#[cfg(test)]
mod tests {
    use burn_gnn_structure::Relation;
    use half::f16;
    use proptest::prelude::*;

    use super::*;
    use crate::gspmm::argmax_grad::{SavedArgmax, select_grad};
    use crate::parallel::adjacency::Adjacency;
    use burn_gnn_plan::Reduce;

    /// Widths that are a multiple of 16, and enough destinations for bits to be smaller than ids.
    fn sparse() -> impl Strategy<Value = (Relation, usize)> {
        (1usize..9, 1usize..18).prop_flat_map(|(src, blocks)| {
            let width = 16 * blocks;
            (0usize..40).prop_flat_map(move |edges| {
                let dst = (edges * 4 * width.div_ceil(GROUP)).div_ceil(width).max(2) + 3;
                (proptest::collection::vec((0..src as u32, 0..dst as u32), edges), Just(dst))
                    .prop_map(move |(pairs, dst)| {
                        let (u, v) = pairs.into_iter().unzip();
                        (Relation::from_coo(src, dst, u, v).unwrap(), width)
                    })
            })
        })
    }

    /// Few different values, so that messages tie; some are not numbers.
    fn numbers<T: Elem>(n: usize, seed: usize, of: impl Fn(f32) -> T) -> Vec<T> {
        let values = [0.5, -0.0, 0.0, -2.0, 3.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        (0..n)
            .map(|i| of(values[(i * 7919 + i / 13 + seed) % if seed == 0 { 5 } else { 8 }]))
            .collect()
    }

    /// Which of two NaN an addition passes on is up to the processor.
    #[allow(clippy::eq_op)]
    fn same_bits<T: Elem>(a: &[T], b: &[T]) {
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let nan = a.acc() != a.acc() && b.acc() != b.acc();
            assert!(nan || bytemuck::bytes_of(a) == bytemuck::bytes_of(b), "entry {i}");
        }
    }

    fn compare<T: Elem>(relation: &Relation, width: usize, max: bool, of: impl Fn(f32) -> T) {
        let plan = GspmmPlan::new(
            relation,
            BinaryOp::CopyLhs,
            if max { Reduce::Max } else { Reduce::Min },
            &[width],
            &[width],
        )
        .unwrap();
        if relation.num_edges() == 0 {
            return assert_eq!(bit_words(&plan), None);
        }
        let words = bit_words(&plan).expect("bits are smaller here");
        for seed in [0, 1] {
            let x = numbers(relation.num_src() * width, seed, &of);
            let messages =
                Messages::new(Adjacency::new(relation.csc()), &x, &[], CopyLhs, Same, width);
            let (values, ids) = select_ids::<T, _, _, T::HotLoop>(&messages, max);
            let (again, bits) = select_bits(&messages, max, words);
            same_bits(&values, &again);
            same_bits(&values, &select::<T, _, _, T::HotLoop>(&messages, max));
            let bytes: &[u8] = bytemuck::cast_slice(&bits);
            for (e, &v) in relation.dst().iter().enumerate() {
                for j in 0..width {
                    let byte = bytes[e * 4 * words + j / GROUP * 16 + j % 16];
                    let is_argmax = ids[v as usize * width + j] == e as i32;
                    assert_eq!(
                        byte & (1 << (j % GROUP / 16)) != 0,
                        is_argmax,
                        "edge {e}, column {j}"
                    );
                }
            }
            let grad = numbers(relation.num_dst() * width, 1, &of);
            let by_ids =
                select_grad(Adjacency::new(relation.csr()), &grad, SavedArgmax::Ids(&ids), width);
            same_bits(
                &by_ids,
                &select_grad(
                    Adjacency::new(relation.csr()),
                    &grad,
                    SavedArgmax::Bits { bits: &bits, words },
                    width,
                ),
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 64 }))]

        #[test]
        fn bits_say_what_ids_say((relation, width) in sparse(), max: bool) {
            compare(&relation, width, max, |x| x);
            compare(&relation, width, max, f64::from);
            compare(&relation, width, max, f16::from_f32);
        }
    }

    #[test]
    fn bits_are_kept_where_they_are_smaller() {
        let star = |edges: usize| Relation::from_coo(1, 2, vec![0; edges], vec![1; edges]).unwrap();
        let words = |edges, op, reduce, width| {
            bit_words(&GspmmPlan::new(&star(edges), op, reduce, &[width], &[width]).unwrap())
        };
        // Two destinations of 128 ids against edges of 4 words.
        assert_eq!(words(64, BinaryOp::CopyLhs, Reduce::Max, 128), Some(4));
        assert_eq!(words(65, BinaryOp::CopyLhs, Reduce::Max, 128), None);
        assert_eq!(words(8, BinaryOp::CopyLhs, Reduce::Min, 16), Some(4));
        assert_eq!(words(9, BinaryOp::CopyLhs, Reduce::Min, 16), None);
        assert_eq!(words(36, BinaryOp::CopyLhs, Reduce::Max, 144), Some(8));
        for (edges, op, reduce, width) in [
            (8, BinaryOp::CopyLhs, Reduce::Sum, 128),
            (8, BinaryOp::CopyRhs, Reduce::Max, 128),
            (8, BinaryOp::Mul, Reduce::Max, 128),
            (8, BinaryOp::CopyLhs, Reduce::Max, 120),
            (0, BinaryOp::CopyLhs, Reduce::Max, 128),
            (1, BinaryOp::CopyLhs, Reduce::Max, 0),
        ] {
            assert_eq!(
                words(edges, op, reduce, width),
                None,
                "{op:?} {reduce:?}, {edges} edges, {width} columns"
            );
        }
    }
}
