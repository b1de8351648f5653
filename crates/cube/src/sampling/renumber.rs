//! Assigns rows to the nodes of a batch in order of first appearance.
//!
//! A table has the row of every node of a type that is in the batch, and all ones for the other nodes. In parallel, each
//! edge of a hop writes `number of rows + index of the edge` to the entry of its source, by an atomic minimum, whose result
//! does not depend on the order. An edge whose number is in the entry afterwards is the first edge of a new node. An
//! exclusive prefix sum over these edges numbers the new nodes.

use cubecl::prelude::*;

/// Writes the node of every id (with `positions`, the source of the edge), and applies the atomic minimum to its entry.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn offer_kernel(
    ids: &[u32],
    indices: &[u32],
    found: &mut [u32],
    rows: &[Atomic<u32>],
    n: usize,
    next: u32,
    #[comptime] positions: bool,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let mut node = ids[pos];
    if comptime!(positions) {
        node = indices[ids[pos] as usize];
    }
    found[pos] = node;
    rows[node as usize].fetch_min(next + pos as u32);
}

/// Writes 1 for the first edge of every new node, and 0 for other edges.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn first_kernel(found: &[u32], rows: &[u32], first: &mut [u32], n: usize, next: u32) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    first[pos] = select(rows[found[pos] as usize] == next + pos as u32, 1u32, 0u32);
}

/// Writes the row of the source of every edge, and appends new nodes.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn row_kernel(
    found: &[u32],
    rows: &[u32],
    order: &[u32],
    src: &mut [u32],
    nodes: &mut [u32],
    n: usize,
    next: u32,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let node = found[pos];
    let mut row = rows[node as usize];
    if row >= next {
        row = next + order[(row - next) as usize];
    }
    src[pos] = row;
    if order[pos + 1] > order[pos] {
        nodes[row as usize] = node;
    }
}

/// Writes the rows `first..first + n` of nodes to the table; without `known` it clears them.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn settle_kernel(
    nodes: &[u32],
    rows: &mut [u32],
    first: usize,
    n: usize,
    #[comptime] known: bool,
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let mut row = 0xffff_ffffu32;
    if comptime!(known) {
        row = (first + pos) as u32;
    }
    rows[nodes[first + pos] as usize] = row;
}

/// `to[i] = table[at[i]]`
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn pick_kernel(at: &[u32], table: &[u32], to: &mut [u32], n: usize) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    to[pos] = table[at[pos] as usize];
}
