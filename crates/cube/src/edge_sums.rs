//! Sums messages over the edges of a row, one thread per vector of features.
//!
//! ```text
//! for every row (or chunk of a long row, or edge) and every vector of columns, in parallel:
//!   sum = 0
//!   for edges of the row, ascending:  sum += message
//!   out = sum  (/ degree for mean)
//! ```
//! Threads of neighbouring columns lie side by side, so a row of an operand is read in one piece; narrow rows share a
//! thread block. Several messages are in flight; see [`crate::launch`].

use cubecl::prelude::*;

use crate::message::*;

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn walk_kernel<F: Float, A: Float, O: Float, N: Size, MA: Size, MB: Size, MC: Size>(
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
    out: &mut [Vector<O, N>],
    how_a: &Operand,
    how_b: &Operand,
    how_c: &Operand,
    tasks: usize,
    width: usize,
    #[comptime] how: Message,
    #[comptime] chunk: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= tasks * width {
        terminate!();
    }
    let task = pos / width;
    let col = pos % width;
    let span = span(indptr, table, task, tasks, how, chunk);
    if comptime!(how.split && how.visit == Visit::Rows) {
        if span.end - span.start > chunk {
            terminate!();
        }
    }
    let mut sum = Vector::<A, N>::new(A::new(0.0_f32));
    let mut p = span.start;
    if comptime!(how.flight > 1) {
        while p + how.flight <= span.end {
            let mut held = Sequence::<Vector<A, N>>::new();
            #[unroll]
            for i in 0..how.flight {
                let s = step(indptr, indices, edge_ids, span.row, p + i, how);
                let m = message::<F, MA, MB, MC, A, N>(
                    a, b, c, how_a, how_b, how_c, tables, argmax, degrees, &s, width, col, how,
                );
                held.push(m);
            }
            #[unroll]
            for i in 0..how.flight {
                sum += held[i];
            }
            p += how.flight;
        }
    }
    while p < span.end {
        let s = step(indptr, indices, edge_ids, span.row, p, how);
        sum += message::<F, MA, MB, MC, A, N>(
            a, b, c, how_a, how_b, how_c, tables, argmax, degrees, &s, width, col, how,
        );
        p += 1;
    }
    if comptime!(how.mean && how.visit == Visit::Rows) {
        if span.end > span.start {
            sum /= Vector::<A, N>::new(A::cast_from((span.end - span.start) as u32));
        }
    }
    if comptime!(how.minus) {
        sum = Vector::<A, N>::new(A::new(0.0_f32)) - sum;
    }
    out[span.at * width + col] = Vector::<O, N>::cast_from(sum);
}

/// One message for every edge (or row without edges): no sum.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn each_kernel<F: Float, A: Float, O: Float, N: Size, MA: Size, MB: Size, MC: Size>(
    src: &[u32],
    dst: &[u32],
    a: &[Vector<F, MA>],
    b: &[Vector<F, MB>],
    c: &[Vector<F, MC>],
    tables: &[u32],
    argmax: &[Vector<u32, N>],
    degrees: &[u32],
    out: &mut [Vector<O, N>],
    how_a: &Operand,
    how_b: &Operand,
    how_c: &Operand,
    tasks: usize,
    width: usize,
    #[comptime] how: Message,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= tasks * width {
        terminate!();
    }
    let edge = pos / width;
    let col = pos % width;
    let s = step(src, dst, src, edge, edge, how);
    let mut x = message::<F, MA, MB, MC, A, N>(
        a, b, c, how_a, how_b, how_c, tables, argmax, degrees, &s, width, col, how,
    );
    if comptime!(how.minus) {
        x = Vector::<A, N>::new(A::new(0.0_f32)) - x;
    }
    out[pos] = Vector::<O, N>::cast_from(x);
}
