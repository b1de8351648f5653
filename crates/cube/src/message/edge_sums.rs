//! Sums messages over the edges of a row, one thread per vector of features.
//!
//! ```text
//! for every row (or chunk of a long row, or edge) and every vector of columns, in parallel:
//!   sum = 0
//!   for edges of the row, ascending:  sum += message
//!   out = sum  (/ degree for mean)
//! ```
//! Adjacent threads read adjacent columns, so the loads of an operand row are coalesced. Narrow rows share a thread block.
//! Every thread has several messages in flight; see [`crate::device::launch`].

use cubecl::prelude::*;

use crate::message::formula::{Messages, MessagesExpand, Operands, sum};
use crate::message::walk::{Edges, Visit};

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn walk_kernel<F: Float, A: Float, O: Float, N: Size, MA: Size, MB: Size, MC: Size>(
    edges: &Edges,
    messages: &Operands<F, N, MA, MB, MC>,
    out: &mut [Vector<O, N>],
    #[comptime] mean: bool,
    #[comptime] minus: bool,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let width = messages.width;
    let span = edges.own_span(width);
    let mut x = if comptime!(edges.visit == Visit::Edges || edges.visit == Visit::Plain) {
        // A row has one message, so there is no sum.
        messages.message(&edges.step(span.row, span.row), pos % width)
    } else {
        sum::<A, N, Operands<F, N, MA, MB, MC>>(edges, &span, messages, pos % width)
    };
    if comptime!(mean && edges.visit == Visit::Rows) {
        if span.end > span.start {
            x /= Vector::<A, N>::new(A::cast_from((span.end - span.start) as u32));
        }
    }
    if comptime!(minus) {
        x = Vector::<A, N>::new(A::new(0.0_f32)) - x;
    }
    out[pos] = Vector::<O, N>::cast_from(x);
}
