//! Renumbers the nodes of a batch in order of first appearance.

use std::collections::HashMap;

use burn_gnn_graph::internal::{huge_room, prefetch};

/// No node has this number.
const NONE: u32 = u32::MAX;
/// Ids that are prefetched ahead.
const AHEAD: usize = 24;

/// The row of each node of one type in the batch at hand: 4 bytes per node of the graph.
///
/// Between batches every entry is [`NONE`]; [`clear`](Self::clear) resets the entries of a batch alone, so that a batch
/// costs nothing per node of the graph.
#[derive(Debug)]
pub(crate) struct Rows {
    row: Vec<u32>,
}

impl Rows {
    pub(crate) fn new(num_nodes: usize) -> Self {
        let mut row = huge_room(num_nodes);
        row.resize(num_nodes, NONE);
        Self { row }
    }

    /// Writes the row of each id to `out`; ids seen for the first time go to the end of `nodes`.
    pub(crate) fn relabel(&mut self, ids: &[u32], nodes: &mut Vec<u32>, out: &mut [u32]) {
        let mut next = nodes.len();
        // New and old nodes mix at random: a loop without branches, into memory for the case that all are new.
        nodes.resize(next + ids.len(), 0);
        for (i, (&v, out)) in ids.iter().zip(out).enumerate() {
            if let Some(&ahead) = ids.get(i + AHEAD) {
                prefetch(&self.row, ahead as usize, 1);
            }
            let row = &mut self.row[v as usize];
            let is_new = *row == NONE;
            *row = if is_new { next as u32 } else { *row };
            *out = *row;
            nodes[next] = v;
            next += usize::from(is_new);
        }
        nodes.truncate(next);
    }

    /// Forgets the nodes of a batch.
    pub(crate) fn clear(&mut self, nodes: &[u32]) {
        nodes.iter().for_each(|&v| self.row[v as usize] = NONE);
    }
}

/// As [`Rows`], where a node has one row for every root that it was reached from.
#[derive(Debug, Default)]
pub(crate) struct RootedRows {
    row: HashMap<(u32, u32), u32>,
}

impl RootedRows {
    /// The row of `node` below `root`; a new one goes to the end of `nodes` and `roots`.
    pub(crate) fn relabel(&mut self, root: u32, node: u32, nodes: &mut Vec<u32>, roots: &mut Vec<u32>) -> u32 {
        *self.row.entry((root, node)).or_insert_with(|| {
            nodes.push(node);
            roots.push(root);
            nodes.len() as u32 - 1
        })
    }
    pub(crate) fn clear(&mut self) {
        self.row.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_first_appearance_and_nothing_left_behind() {
        let mut rows = Rows::new(9);
        for _ in 0..2 {
            let (mut nodes, mut out) = (vec![], [7; 6]);
            rows.relabel(&[8, 3, 8, 0, 3, 8], &mut nodes, &mut out);
            assert_eq!((&nodes[..], out), (&[8, 3, 0][..], [0, 1, 0, 2, 1, 0]));
            rows.relabel(&[0, 5], &mut nodes, &mut out[..2]);
            assert_eq!((&nodes[..], &out[..2]), (&[8, 3, 0, 5][..], &[2, 3][..]));
            rows.clear(&nodes);
            assert!(rows.row.iter().all(|&r| r == NONE));
        }
    }
}
