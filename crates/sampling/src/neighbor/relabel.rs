//! Renumbers the nodes of a batch in order of first appearance.

use std::collections::HashMap;

use burn_gnn_graph::internal::{huge_room, prefetch};

/// What no node of a batch has.
const NONE: u32 = u32::MAX;
/// Ids that are prefetched ahead.
const AHEAD: usize = 24;

/// The row of each node of one type in the batch at hand: 4 bytes per node of the graph.
///
/// Entries count on from batch to batch: those of this one are `first..first + rows`, all others are of batches before
/// it or [`NONE`]. So a batch costs nothing per node of the graph, and no second walk over its own nodes.
#[derive(Debug)]
pub(crate) struct Rows {
    entries: Vec<u32>,
    /// The entry of row 0 of this batch; with one more per node of the graph it stays below [`NONE`].
    first: u32,
}

impl Rows {
    pub(crate) fn new(num_nodes: usize) -> Self {
        let mut entries = huge_room(num_nodes);
        entries.resize(num_nodes, NONE);
        Self { entries, first: 0 }
    }

    /// Writes the row of each id to `out`; ids seen for the first time go to the end of `nodes`.
    pub(crate) fn relabel(&mut self, ids: &[u32], nodes: &mut Vec<u32>, out: &mut [u32]) {
        let first = self.first;
        let mut next = nodes.len();
        // New and old nodes mix at random: a loop without branches, into memory for the case that all are new.
        nodes.resize(next + ids.len(), 0);
        for (i, (&v, out)) in ids.iter().zip(out).enumerate() {
            if let Some(&ahead) = ids.get(i + AHEAD) {
                prefetch(&self.entries, ahead as usize, 1);
            }
            let entry = &mut self.entries[v as usize];
            // Entries before `first` wrap around to numbers that no row has.
            let known = entry.wrapping_sub(first);
            let is_new = known as usize >= next;
            *out = if is_new { next as u32 } else { known };
            *entry = first + *out;
            nodes[next] = v;
            next += usize::from(is_new);
        }
        nodes.truncate(next);
    }

    /// Begins the next batch after one of `nodes` nodes.
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

/// As [`Rows`], where a node has one row for every root that it was reached from.
#[derive(Debug, Default)]
pub(crate) struct RootedRows {
    row: HashMap<(u32, u32), u32>,
}

impl RootedRows {
    /// The row of `node` below `root`; a new one goes to the end of `nodes` and `roots`.
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
