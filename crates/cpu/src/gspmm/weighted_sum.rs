//! Computes weighted sums over the edges of rows, followed by a bias and an activation.

use std::ops::Range;

use super::gather::{CopyLhs, Messages, for_blocks, put};
use super::layout::Same;
use crate::math::activation::ScalarActivation;
use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem, Exp};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::simd::instruction_sets::{Blocked, InstructionSets};
use crate::simd::unroll::each;
use burn_gnn_plan::Activation;

/// Operands of one weighted sum.
pub(super) struct Weighted<'a, T: Elem> {
    pub(super) rows: Adjacency<'a>,
    pub(super) x: &'a [T],
    /// A factor per row of `x`.
    pub(super) scale: Option<&'a [T::Acc]>,
    /// A factor per edge, by edge id.
    pub(super) weight: Option<&'a [T]>,
    /// A factor per row of the result.
    pub(super) after: Option<&'a [T::Acc]>,
    pub(super) bias: Option<&'a [T::Acc]>,
    pub(super) activation: Activation,
    pub(super) width: usize,
}

/// The result, `[rows, width]`.
pub(super) fn weighted_sum<T: Elem>(w: &Weighted<'_, T>) -> Vec<T> {
    let messages = Messages::new(w.rows, w.x, &[], CopyLhs, Same, w.width);
    let (w, messages) = (w, &messages);
    collect_rows(
        &by_edges(w.rows.indptr, w.width),
        w.width,
        &|run, out| match (w.weight, w.scale) {
            (None, None) => T::HotLoop::run(Rows::<_, 0> { w, messages, run, out }),
            (None, Some(_)) => T::HotLoop::run(Rows::<_, 1> { w, messages, run, out }),
            (Some(_), _) => T::HotLoop::run(Rows::<_, 2> { w, messages, run, out }),
        },
    )
}

/// `FACTORS` is 0 without factors, 1 with a factor per source, and 2 with a factor per edge and optionally per source.
struct Rows<'a, 'b, T: Elem, const FACTORS: u8> {
    w: &'a Weighted<'a, T>,
    messages: &'a Messages<'a, T, CopyLhs, Same>,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
}

impl<T: Elem, const FACTORS: u8> Blocked for Rows<'_, '_, T, FACTORS> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let (w, m) = (self.w, self.messages);
        for v in self.run {
            let after = w.after.map_or(T::Acc::ONE, |after| after[v]);
            for_blocks!(w.width, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                for p in w.rows.row(v) {
                    if col == 0 {
                        m.fetch(p, N * K);
                    }
                    let mut factor = T::Acc::ONE;
                    if FACTORS > 0
                        && let Some(scale) = w.scale
                    {
                        factor = scale[w.rows.indices[p] as usize];
                    }
                    if FACTORS > 1
                        && let Some(weight) = w.weight
                    {
                        factor = factor * weight[w.rows.edge_id(p)].acc();
                    }
                    let edge = m.edge(p, col, N * K);
                    each!(k < K, {
                        let x = m.lanes(&edge, N * k);
                        acc[k] = acc[k].add(if FACTORS > 0 { x.scale(factor) } else { x });
                    });
                }
                each!(k < K, {
                    let mut y = acc[k].scale(after);
                    if let Some(bias) = w.bias {
                        let part = &bias[col + N * k..][..N];
                        for (y, &b) in y.0.iter_mut().zip(part) {
                            *y += b;
                        }
                    }
                    acc[k] = epilogue(w.activation, y);
                });
                put(self.out, acc, keep);
            });
        }
    }
}

/// Applies the activation to a block. The activation is matched outside of the loop over lanes.
#[inline(always)]
fn epilogue<A: Acc + Exp, const N: usize>(activation: Activation, y: Lanes<A, N>) -> Lanes<A, N> {
    let map = |f: Activation| y.zip(y, |y, _| f.value(y));
    match activation {
        Activation::None => y,
        Activation::Relu => map(Activation::Relu),
        Activation::LeakyRelu(slope) => map(Activation::LeakyRelu(slope)),
        Activation::Elu(alpha) => map(Activation::Elu(alpha)),
    }
}
