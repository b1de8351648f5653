//! Defines `MemoryPlan`, and the sizes of graphs and batches.

use std::fmt;

use burn_gnn_graph::Relation;
use burn_gnn_graph::internal::readable_bytes;

/// Bytes of an f32.
pub(super) const F32: usize = 4;

/// Predicted memory of a training run in bytes, by purpose. `Display` formats a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Edges, and the layouts by destination and by source for forward and backward.
    pub structure: usize,
    /// Features and labels.
    pub features: usize,
    /// Parameters, their gradients and the two moments of Adam.
    pub parameters: usize,
    /// Blocks and features of the current batch and of prefetched batches.
    pub batches: usize,
    /// Tensors that a step keeps for backward, and the largest temporary memory of an operator.
    pub step: usize,
}

impl MemoryPlan {
    /// Largest number of bytes in use at the same time.
    pub fn peak(&self) -> usize {
        self.structure + self.features + self.parameters + self.batches + self.step
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("structure", self.structure),
            ("features", self.features),
            ("parameters and optimizer", self.parameters),
            ("batches", self.batches),
            ("step", self.step),
        ];
        for (what, bytes) in rows.into_iter().filter(|r| r.1 > 0) {
            writeln!(f, "{what:<26}{:>12}", readable_bytes(bytes))?;
        }
        write!(f, "{:<26}{:>12}", "peak", readable_bytes(self.peak()))
    }
}

/// Bytes of a layout by source or destination: an offset per node, a neighbour per edge, and an edge id unless edges are
/// sorted in that order.
pub(super) fn layout_bytes(nodes: usize, edges: usize, is_sorted: bool) -> usize {
    4 * (nodes + 1) + if is_sorted { 4 } else { 8 } * edges
}

/// Bytes of the endpoints of all edges, the layout by destination and, for gradients, the layout by source.
pub(super) fn structure_bytes(r: &Relation, gradients: bool) -> usize {
    let by = |nodes, ids: &[u32]| layout_bytes(nodes, ids.len(), ids.is_sorted());
    8 * r.num_edges()
        + by(r.num_dst(), r.dst())
        + if gradients { by(r.num_src(), r.src()) } else { 0 }
}

/// Sizes of mini-batches, for [`plan_mini_batch`](crate::plan_mini_batch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSizes {
    /// Number of seeds of a batch.
    pub batch_size: usize,
    /// Number of prefetched batches: workers · prefetch of the loader.
    pub ahead: usize,
    /// Number of batches that are sampled for the prediction, at equal distances among the seeds.
    pub sampled: usize,
}

impl BatchSizes {
    /// Returns indices and seeds of the batches to sample.
    pub(super) fn of<'a>(
        &self,
        seeds: &'a [u32],
    ) -> impl Iterator<Item = (u64, &'a [u32])> + use<'a> {
        let size = self.batch_size.max(1);
        let count = seeds.len().div_ceil(size);
        let some = self.sampled.clamp(1, count.max(1));
        (0..some).map(move |i| {
            let from = (i * count / some * size).min(seeds.len());
            (i as u64, &seeds[from..(from + size).min(seeds.len())])
        })
    }
}
