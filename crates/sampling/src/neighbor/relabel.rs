//! Assigns rows to the nodes of a batch, in order of first appearance.

use std::collections::HashMap;

use burn_gnn_graph::internal::{huge_room, prefetch};

/// Entry of a node that was never in a batch.
const NONE: u32 = u32::MAX;
/// Prefetch distance in ids.
const AHEAD: usize = 24;

/// Row of each node of one type in the current batch: 4 bytes per node of the graph.
///
/// Row numbers continue from batch to batch: the entries of the current batch are `first..first + rows`, all others are
/// smaller (from earlier batches) or [`NONE`]. The array is therefore never cleared, and a batch costs `O(its nodes)`.
#[derive(Debug)]
pub(crate) struct Rows {
    entries: Vec<u32>,
    /// Entry of row 0 of the current batch. `first` plus the number of nodes stays below [`NONE`].
    first: u32,
}

impl Rows {
    pub(crate) fn new(num_nodes: usize) -> Self {
        let mut entries = huge_room(num_nodes);
        entries.resize(num_nodes, NONE);
        Self { entries, first: 0 }
    }

    /// Writes the row of each id to `out`; appends new ids to `nodes`.
    pub(crate) fn relabel(&mut self, ids: &[u32], nodes: &mut Vec<u32>, out: &mut [u32]) {
        let first = self.first;
        let mut next = nodes.len();
        // Branch-free, as new and known nodes alternate at random; `nodes` has room for the case that all are new.
        nodes.resize(next + ids.len(), 0);
        for (i, (&v, out)) in ids.iter().zip(out).enumerate() {
            if let Some(&ahead) = ids.get(i + AHEAD) {
                prefetch(&self.entries, ahead as usize, 1);
            }
            let entry = &mut self.entries[v as usize];
            // Entries below `first` wrap around to numbers above all rows.
            let known = entry.wrapping_sub(first);
            let is_new = known as usize >= next;
            *out = if is_new { next as u32 } else { known };
            *entry = first + *out;
            nodes[next] = v;
            next += usize::from(is_new);
        }
        nodes.truncate(next);
    }

    /// Starts the next batch, after a batch of `nodes` nodes.
    pub(crate) fn next_batch(&mut self, nodes: usize) {
        let (first, most) = (u64::from(self.first) + nodes as u64, self.entries.len() as u64);
        if first + most < u64::from(NONE) {
            self.first = first as u32;
        } else {
            self.entries.fill(NONE);
            self.first = 0;
        }
    }
}

/// As [`Rows`], for disjoint trees: a node has one row per tree that contains it.
#[derive(Debug, Default)]
pub(crate) struct RootedRows {
    row: HashMap<(u32, u32), u32>,
}

impl RootedRows {
    /// Row of `node` in the tree `root`; a new node is appended to `nodes` and `roots`.
    pub(crate) fn relabel(
        &mut self,
        root: u32,
        node: u32,
        nodes: &mut Vec<u32>,
        roots: &mut Vec<u32>,
    ) -> u32 {
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
        // The last batches before entries begin again, and some after them.
        for first in [0, NONE - 18, NONE - 14, NONE - 11] {
            rows.first = first;
            for _ in 0..3 {
                let (mut nodes, mut out) = (vec![], [7; 6]);
                rows.relabel(&[8, 3, 8, 0, 3, 8], &mut nodes, &mut out);
                assert_eq!((&nodes[..], out), (&[8, 3, 0][..], [0, 1, 0, 2, 1, 0]), "from {first}");
                rows.relabel(&[0, 5], &mut nodes, &mut out[..2]);
                assert_eq!(
                    (&nodes[..], &out[..2]),
                    (&[8, 3, 0, 5][..], &[2, 3][..]),
                    "from {first}"
                );
                rows.next_batch(nodes.len());
                assert!(rows.first + 9 < NONE, "room for a batch of all nodes");
            }
        }
    }
}
