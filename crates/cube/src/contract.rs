//! Contracts messages over edges and features: dot products, and gradients of broadcast operands.
//!
//! ```text
//! for every row (or chunk, or edge) and every entry of its result, a group of threads in parallel:
//!   every thread: sum = 0; for edges ascending: for its columns: sum += message
//!   entry = the sums of the threads, added as a tree
//! ```
//! Threads of a group read neighbouring columns. Which thread adds what is fixed, so the order of the sum is.

use cubecl::prelude::*;

use crate::message::*;

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
    indptr: &[u32],
    indices: &[u32],
    edge_ids: &[u32],
    table: &[u32],
    a: &[Vector<F, MA>],
    b: &[Vector<F, MB>],
    c: &[Vector<F, MC>],
    tables: &[u32],
    argmax: &[Vector<u32, N>],
    degrees: &[u32],
    out: &mut [O],
    how_a: &Operand,
    how_b: &Operand,
    how_c: &Operand,
    tasks: usize,
    entries: usize,
    // Columns of an entry, and of a message, in vectors.
    columns: usize,
    width: usize,
    // Where the columns of entries are listed, if they are not neighbours.
    list: usize,
    #[comptime] listed: bool,
    #[comptime] how: Message,
    #[comptime] chunk: usize,
    #[comptime] group: usize,
    #[comptime] threads: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let unit = UNIT_POS as usize;
    let lane = unit % group;
    let pos = ABSOLUTE_POS / group;
    // No thread leaves before the barriers below.
    let mut here = pos < tasks * entries;
    let task = select(here, pos / entries, 0usize);
    let entry = pos % entries;
    let span = span(indptr, table, task, tasks, how, chunk);
    if comptime!(how.split && how.visit == Visit::Rows) {
        here = here && span.end - span.start <= chunk;
    }
    let end = select(here, span.end, span.start);
    let mut sum = Vector::<A, N>::new(A::new(0.0_f32));
    for p in span.start..end {
        let s = step(indptr, indices, edge_ids, span.row, p, how);
        let mut k = lane;
        while k < columns {
            let mut col = entry * columns + k;
            if comptime!(listed) {
                col = tables[list + col] as usize;
            }
            sum += message::<F, MA, MB, MC, A, N>(
                a, b, c, how_a, how_b, how_c, tables, argmax, degrees, &s, width, col, how,
            );
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
        if comptime!(how.mean && how.visit == Visit::Rows) {
            if span.end > span.start {
                total /= A::cast_from((span.end - span.start) as u32);
            }
        }
        if comptime!(how.minus) {
            total = A::new(0.0_f32) - total;
        }
        out[pos] = O::cast_from(total);
    }
}
