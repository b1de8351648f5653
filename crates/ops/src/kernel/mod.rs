//! CPU kernels on slices, shared by all CPU backends.
//!
//! Work is cut into runs of whole rows with about equal numbers of edges. A row is never cut, and
//! inside a row edges come in ascending edge id, so results are the same bits for any number of
//! threads. Every output entry has one writer; there are no atomics.

mod adjacency;
mod argmax;
mod backward;
mod dropout;
mod elem;
mod exp;
mod forward;
pub(crate) mod gather;
pub(crate) mod lanes;
mod layout;
mod narrow;
mod philox;
mod product_grad;
mod scatter;
mod simd;
mod sink;
mod split;
pub(crate) mod weighted;

pub(crate) use adjacency::Adjacency;
pub(crate) use argmax::bit_words;
pub(crate) use backward::{Given, gradient, gradients};
pub(crate) use burn_gnn_graph::{prefetch, prefetch_at};
pub(crate) use dropout::{Mask, dropout_rows};
pub(crate) use elem::{Acc, Elem};
pub(crate) use exp::{Exp, divisor, inverse, shift};
pub(crate) use forward::{forward, forward_argmax};
pub(crate) use philox::{LANES, philox_lanes};
pub(crate) use scatter::{EdgeRows, Places, Scattered, collect_beside, collect_rows, collect_rows_and_edges, collect_rows2, scatter};
pub(crate) use simd::{Vectorised, ahead, vectorised};
pub(crate) use sink::{Sink, room, zeros};
pub(crate) use split::{by_edges, evenly, split_mut};

/// Any broadcasting: column `j` of a message reads entry `offsets[j]` of an operand row of `len` entries.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) offsets: &'a [u32],
    pub(crate) len: usize,
}
