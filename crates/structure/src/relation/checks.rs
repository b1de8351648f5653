//! Validates counts, lengths and ids.

use std::fmt::Display;

use rayon::prelude::*;

use crate::error::graph_error::{GraphError, UNNAMED};
use crate::memory::reserve::room;

/// The most nodes of one type and edges of one relation; the id `u32::MAX` means "no edge".
pub const LIMIT: u64 = u32::MAX as u64 - 1;

/// Returns an error if `count` exceeds [`LIMIT`].
pub fn check_limit(what: &'static str, count: u64) -> Result<(), GraphError> {
    if count <= LIMIT {
        return Ok(());
    }
    Err(GraphError::TooLarge { relation: UNNAMED.into(), what, count, limit: LIMIT })
}

/// Returns an error if a count exceeds [`LIMIT`], or if the row offsets of a layout cannot be allocated.
pub fn check_counts(num_src: usize, num_dst: usize, num_edges: usize) -> Result<(), GraphError> {
    for (what, count) in [("nodes", num_src), ("nodes", num_dst), ("edges", num_edges)] {
        check_limit(what, count as u64)?;
    }
    // Layouts have an offset per node and are built where no error can be returned, so the allocation is tried here. It
    // is not tried for small counts, because tests that measure peak memory would count it.
    const LARGE: usize = 1 << 26;
    let nodes = num_src.max(num_dst);
    if nodes > LARGE { offsets(nodes).map(drop) } else { Ok(()) }
}

/// An empty vector with capacity for the offsets of `rows` rows, the only array of a layout that grows with them.
pub(super) fn offsets(rows: usize) -> Result<Vec<u32>, GraphError> {
    room(
        rows as u128 + 1,
        || format!("a layout of {rows} nodes"),
        "number the nodes that have edges from 0",
    )
}

/// Returns an error for the first node id that is not below `bound`.
pub fn check_nodes(arg: &'static str, ids: &[u32], bound: usize) -> Result<(), GraphError> {
    // A test for any invalid id vectorises, while the search for the first one does not.
    let is_far = |&v: &u32| v as usize >= bound;
    const CHUNK: usize = 1 << 15;
    let found = if ids.len() <= CHUNK {
        ids.iter().any(is_far)
    } else {
        ids.par_chunks(CHUNK).any(|chunk| chunk.iter().any(is_far))
    };
    if !found {
        return Ok(());
    }
    match ids.iter().position(is_far) {
        None => Ok(()),
        Some(position) => {
            let value = i128::from(ids[position]);
            Err(GraphError::NodeOutOfRange {
                relation: UNNAMED.into(),
                arg,
                position,
                bound,
                value,
            })
        }
    }
}

/// Returns an error if a length differs from the expected one, which comes from `why`.
pub fn check_len(
    arg: &str,
    why: &'static str,
    expected: usize,
    actual: usize,
) -> Result<(), GraphError> {
    if expected == actual {
        return Ok(());
    }
    Err(GraphError::Length { relation: UNNAMED.into(), arg: arg.into(), why, expected, actual })
}

/// Returns an error if an id is not below `bound`.
pub fn check_id(what: impl Display, id: u64, bound: u64) -> Result<(), GraphError> {
    if id < bound {
        return Ok(());
    }
    Err(GraphError::IdOutOfRange { what: what.to_string(), id, bound })
}

/// Returns an error for the first id that is not below `bound`; it names the argument and the position.
pub fn check_ids(arg: &str, of: &str, ids: &[u32], bound: usize) -> Result<(), GraphError> {
    match ids.iter().position(|&id| id as usize >= bound) {
        None => Ok(()),
        Some(at) => {
            let what = format_args!("`{arg}` of {of}, position {at}:");
            check_id(what, u64::from(ids[at]), bound as u64)
        }
    }
}
