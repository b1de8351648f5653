//! Holds sampled batches in device memory, and copies them to the host.

use std::borrow::Cow;

use burn::tensor::{Int, Shape, Tensor};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::internal::{etype_number, ntype_number};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, NodeKey, of_etype, of_ntype};
use burn_gnn_sampling::internal::{FoundTrees, HopEdges, HopFound};
use burn_gnn_sampling::{MiniBatch, NeighborSampler, SampleKey, SampledBatch};

use super::ids::Ids;
use super::renumber::pick_kernel;
use crate::device::launch::{address, arg, empty, grid};
use crate::message::layout::csc;

/// A batch of [`DeviceSampler`](crate::DeviceSampler), on its device: blocks as [`MiniBatch`] has them, each array a
/// tensor.
///
/// Blocks are numbered as there, in the order of layers, so the last one computes the seeds. Ids are of element type
/// i32, of u32 where one does not fit.
#[derive(Clone, Debug)]
pub struct DeviceBatch {
    pub(super) graph: Graph,
    pub(super) key: SampleKey,
    /// By node type, in the order in which they were found.
    pub(super) nodes: Vec<Ids>,
    /// Tree of each of them, where every seed has its own, and the time of each tree, if any.
    pub(super) roots: Option<Vec<Ids>>,
    pub(super) times: Option<Vec<i64>>,
    /// Row of each seed, by node type.
    pub(super) seeds: Vec<Ids>,
    /// The one of the seeds first.
    pub(super) hops: Vec<Hop>,
}

/// One hop.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    /// Of the relations that were drawn from.
    pub(super) found: Vec<Found>,
    /// Nodes of each type before and after.
    pub(super) num_dst: Vec<usize>,
    pub(super) num_src: Vec<usize>,
}

/// What was found of a relation.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) etype: usize,
    pub(super) num_dst: usize,
    pub(super) indptr: CubeTensor,
    pub(super) src: CubeTensor,
    pub(super) positions: Ids,
}

impl DeviceBatch {
    /// Number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.hops.len()
    }
    /// The nodes of a type in the whole batch, `[nodes]`: those of the first layer, the seeds, each once, first of
    /// them.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn nodes(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.nodes, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// Row of each seed among the destinations of the last block, `[seeds]`, in the order given.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn seeds(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.seeds, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// Where trees are disjoint: for each of the [`nodes`](Self::nodes) the position of its seed in the
    /// concatenated list of seeds, type after type, `[nodes]`.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn roots(&self, ntype: impl NodeKey) -> Option<Tensor<1, Int>> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        let seeds = self.seeds.iter().map(|seeds| seeds.len).sum();
        self.roots.as_ref().map(|roots| of_ntype(roots, ntype).tensor(seeds))
    }
    /// Sources of a block: so many of the first [`nodes`](Self::nodes).
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn num_src(&self, block: usize, ntype: impl NodeKey) -> usize {
        let ntype = ntype_number(self.graph.schema(), ntype);
        *of_ntype(&self.hop(block).num_src, ntype)
    }
    /// Destinations of a block: so many of its first sources.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn num_dst(&self, block: usize, ntype: impl NodeKey) -> usize {
        let ntype = ntype_number(self.graph.schema(), ntype);
        *of_ntype(&self.hop(block).num_dst, ntype)
    }
    /// Where the edges of each destination begin, `[destinations + 1]`, the end last; `None` where nothing is drawn of
    /// the type.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn indptr(&self, block: usize, etype: impl EdgeKey) -> Option<Tensor<1, Int>> {
        let etype = etype_number(self.graph.schema(), etype);
        let found = self.found(block, etype)?;
        Some(
            Ids { list: found.indptr.clone(), len: found.num_dst + 1 }
                .tensor(found.positions.len + 1),
        )
    }
    /// Row of the source of each edge, `[edges]`, in the order of destinations; `None` where nothing is drawn of the
    /// type.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn src(&self, block: usize, etype: impl EdgeKey) -> Option<Tensor<1, Int>> {
        let etype = etype_number(self.graph.schema(), etype);
        let (found, (s, _)) = (self.found(block, etype)?, self.graph.schema().endpoints(etype));
        Some(
            Ids { list: found.src.clone(), len: found.positions.len }
                .tensor(self.graph.node_counts()[s]),
        )
    }
    /// Id of each edge in the graph, `[edges]`, in the order of [`src`](Self::src); `None` where nothing is drawn of
    /// the type.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn edge_ids(&self, block: usize, etype: impl EdgeKey) -> Option<Tensor<1, Int>> {
        let etype = etype_number(self.graph.schema(), etype);
        let Found { positions, .. } = self.found(block, etype)?;
        let relation = &self.graph.relations()[etype];
        Some(
            edge_ids(positions, csc(relation, &positions.list.device).edge_ids.as_ref())
                .tensor(relation.num_edges()),
        )
    }

    #[track_caller]
    fn hop(&self, block: usize) -> &Hop {
        let blocks = self.hops.len();
        assert!(
            block < blocks,
            "`block` must lie in 0..{blocks}, in the order of layers, got {block}"
        );
        &self.hops[blocks - 1 - block]
    }
    #[track_caller]
    fn found(&self, block: usize, etype: usize) -> Option<&Found> {
        of_etype(self.graph.relations(), etype);
        self.hop(block).found.iter().find(|found| found.etype == etype)
    }

    /// The batch on the host, as layers take it; `sampler` is that which the batch was made by.
    ///
    /// # Errors
    /// A sampler of another graph or with other hops.
    ///
    /// # Cost
    /// Copies all arrays, and checks every number: `O(nodes + edges)` of the batch.
    pub fn to_batch(&self, sampler: &NeighborSampler) -> Result<MiniBatch, GraphError> {
        self.clone().into_batch(sampler)
    }

    pub(super) fn into_batch(self, sampler: &NeighborSampler) -> Result<MiniBatch, GraphError> {
        let etypes = self.graph.relations().len();
        let hops = self.hops.into_iter().map(|hop| {
            let mut edges: Vec<Option<HopEdges>> = vec![None; etypes];
            for Found { etype, num_dst, indptr, src, positions } in hop.found {
                let len = positions.len;
                // Without edges nothing was written where sources would be.
                let found = if len == 0 {
                    HopEdges { indptr: vec![0; num_dst + 1], ..HopEdges::default() }
                } else {
                    let read = |list, len| Ids { list, len }.read();
                    HopEdges {
                        indptr: read(indptr, num_dst + 1),
                        src: read(src, len),
                        positions: positions.read(),
                    }
                };
                edges[etype] = Some(found);
            }
            HopFound { edges, num_dst: hop.num_dst, num_src: hop.num_src }
        });
        let hops = hops.collect();
        let read = |lists: Vec<Ids>| lists.iter().map(Ids::read).collect();
        let times = self.times;
        let trees = self.roots.map(|roots| FoundTrees { roots: read(roots), times });
        Ok(sampler
            .device_batch(read(self.nodes), hops, read(self.seeds), trees)?
            .with_key(self.key))
    }
}

/// Ids come to the host when they are asked for.
impl SampledBatch for DeviceBatch {
    type Id = u32;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(of_ntype(&self.nodes, ntype).read())
    }
    fn num_blocks(&self) -> usize {
        self.hops.len()
    }
    fn edges(&self, block: usize, etype: usize) -> Cow<'_, [u32]> {
        let ids = |found: &Found| {
            let layout = csc(&self.graph.relations()[etype], &found.positions.list.device);
            edge_ids(&found.positions, layout.edge_ids.as_ref()).read()
        };
        Cow::Owned(self.found(block, etype).map(ids).unwrap_or_default())
    }
    fn num_edges(&self) -> usize {
        self.hops.iter().flat_map(|hop| &hop.found).map(|found| found.positions.len).sum()
    }
}

/// Ids of the edges at positions of a layout.
pub(super) fn edge_ids(positions: &Ids, of: Option<&CubeTensor>) -> Ids {
    of.map_or_else(|| positions.clone(), |of| pick(positions, of))
}

/// `table[at[i]]` for places that the table has.
pub(super) fn pick(at: &Ids, table: &CubeTensor) -> Ids {
    let (Ids { list, len }, n) = (at, at.len);
    if n == 0 {
        return at.clone();
    }
    let out = empty(list, Shape::from([n.max(4)]), list.dtype);
    let (count, dim) = grid(&list.client, n);
    // SAFETY: the table has these places, `out` an entry for each; threads beyond them return early.
    unsafe {
        pick_kernel::launch_unchecked(
            &list.client,
            count,
            dim,
            address([list, table], n),
            arg(list),
            arg(table),
            arg(&out),
            n,
        );
    }
    Ids { list: out, len: *len }
}
