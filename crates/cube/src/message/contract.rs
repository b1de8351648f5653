//! Contracts messages over edges and features: dot products, and gradients of broadcast operands.
//!
//! ```text
//! for every row (or chunk, or edge) and every entry of its result, a group of threads in parallel:
//!   every thread: sum = 0; for edges ascending: for its columns: sum += message
//!   entry = the sums of the threads, added as a tree
//! ```
//! The threads of a group read adjacent columns. The assignment of columns to threads is fixed, and so is the order of the
//! sum.

use cubecl::prelude::*;

use crate::message::formula::{Messages, MessagesExpand, Operands};
use crate::message::layout::CHUNK;
use crate::message::walk::{Edges, Visit};

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn contract_kernel<
    F: Float,
    A: Float,
    O: Float,
    N: Size,
    MA: Size,
    MB: Size,
    MC: Size,
>(
    edges: &Edges,
    messages: &Operands<F, N, MA, MB, MC>,
    out: &mut [O],
    entries: usize,
    // Columns of an entry, in vectors.
    columns: usize,
    // Start of the list of columns by entry, if the columns of an entry are not adjacent.
    list: usize,
    #[comptime] listed: bool,
    #[comptime] mean: bool,
    #[comptime] minus: bool,
    #[comptime] group: usize,
    #[comptime] threads: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let unit = UNIT_POS as usize;
    let lane = unit % group;
    let pos = ABSOLUTE_POS / group;
    // No thread returns early, because of the barriers below.
    let mut here = pos < edges.tasks * entries;
    let task = select(here, pos / entries, 0usize);
    let entry = pos % entries;
    let span = edges.span(task);
    if comptime!(edges.split) {
        here = here && span.end - span.start <= CHUNK;
    }
    let end = select(here, span.end, span.start);
    let mut sum = Vector::<A, N>::new(A::new(0.0_f32));
    for p in span.start..end {
        let s = edges.step(span.row, p);
        let mut k = lane;
        while k < columns {
            let mut col = entry * columns + k;
            if comptime!(listed) {
                col = messages.tables[list + col] as usize;
            }
            sum += messages.message(&s, col);
            k += group;
        }
    }
    let mut total = sum.extract(0usize);
    #[unroll]
    for i in 1..N::value() {
        total += sum.extract(i);
    }
    if comptime!(group > 1) {
        let mut sums = Shared::<[A]>::new_slice(threads);
        sums[unit] = total;
        sync_cube();
        #[unroll]
        for level in 0..comptime!(group.ilog2() as usize) {
            let half = comptime!(group >> (level + 1));
            if lane < half {
                let other = sums[unit + half];
                sums[unit] += other;
            }
            sync_cube();
        }
        total = sums[unit];
    }
    if here && lane == 0 {
        if comptime!(mean && edges.visit == Visit::Rows) {
            if span.end > span.start {
                total /= A::cast_from((span.end - span.start) as u32);
            }
        }
        if comptime!(minus) {
            total = A::new(0.0_f32) - total;
        }
        out[pos] = O::cast_from(total);
    }
}
