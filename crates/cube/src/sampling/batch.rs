//! Sampled batches in device memory, and their conversion to batches on the host.

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

/// A batch of [`DeviceSampler`](crate::DeviceSampler) on its device: the blocks of a [`MiniBatch`], with tensors as arrays.
///
/// Blocks are numbered in the order of layers, so the last block computes the seeds. Ids have the element type i32, or u32
/// if i32 is too small.
#[derive(Clone, Debug)]
pub struct DeviceBatch {
    pub(super) graph: Graph,
    pub(super) key: SampleKey,
    /// By node type, in the order in which they were found.
    pub(super) nodes: Vec<Ids>,
    /// For disjoint trees: the tree of each node, and the time of each tree, if seeds have times.
    pub(super) roots: Option<Vec<Ids>>,
    pub(super) times: Option<Vec<i64>>,
    /// Row of each seed, by node type.
    pub(super) seeds: Vec<Ids>,
    /// Hops, starting with the hop of the seeds.
    pub(super) hops: Vec<Hop>,
}

/// One hop.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    /// The edges of each relation with a fan-out.
    pub(super) found: Vec<Found>,
    /// Number of nodes of each type before the hop (`num_dst`) and after it (`num_src`).
    pub(super) num_dst: Vec<usize>,
    pub(super) num_src: Vec<usize>,
}

/// The edges of one relation that a hop has drawn.
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
    /// The nodes of a type in the whole batch, `[nodes]`: the input nodes of the first layer. The distinct seeds are first.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn nodes(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.nodes, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// Row of each seed among the destinations of the last block, `[seeds]`, in the order of the request.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn seeds(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.seeds, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// For disjoint trees: the position of the seed of each of the [`nodes`](Self::nodes) in the concatenated seeds of all
    /// types, `[nodes]`.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn roots(&self, ntype: impl NodeKey) -> Option<Tensor<1, Int>> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        let seeds = self.seeds.iter().map(|seeds| seeds.len).sum();
        self.roots.as_ref().map(|roots| of_ntype(roots, ntype).tensor(seeds))
    }
    /// Number of sources of a block, which are the first [`nodes`](Self::nodes).
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn num_src(&self, block: usize, ntype: impl NodeKey) -> usize {
        let ntype = ntype_number(self.graph.schema(), ntype);
        *of_ntype(&self.hop(block).num_src, ntype)
    }
    /// Number of destinations of a block, which are its first sources.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn num_dst(&self, block: usize, ntype: impl NodeKey) -> usize {
        let ntype = ntype_number(self.graph.schema(), ntype);
        *of_ntype(&self.hop(block).num_dst, ntype)
    }
    /// Edge offsets of the destinations, `[destinations + 1]`; `None` if the edge type has no fan-out.
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
    /// Row of the source of each edge, `[edges]`, sorted by destination; `None` if the edge type has no fan-out.
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
    /// Id of each edge in the graph, `[edges]`, in the order of [`src`](Self::src); `None` if the edge type has no fan-out.
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

    /// Converts to a batch on the host, which layers read; `sampler` must be the sampler of the batch.
    ///
    /// # Errors
    /// `sampler` has another graph or other hops.
    ///
    /// # Cost
    /// Copies and validates all arrays: `O(nodes + edges)` of the batch.
    pub fn to_batch(&self, sampler: &NeighborSampler) -> Result<MiniBatch, GraphError> {
        self.clone().into_batch(sampler)
    }

    pub(super) fn into_batch(self, sampler: &NeighborSampler) -> Result<MiniBatch, GraphError> {
        let etypes = self.graph.relations().len();
        let hops = self.hops.into_iter().map(|hop| {
            let mut edges: Vec<Option<HopEdges>> = vec![None; etypes];
            for Found { etype, num_dst, indptr, src, positions } in hop.found {
                let len = positions.len;
                // Without edges the array of sources is uninitialised.
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

/// Ids are copied to the host on every call.
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

/// The ids of the edges at positions of a layout.
pub(super) fn edge_ids(positions: &Ids, of: Option<&CubeTensor>) -> Ids {
    of.map_or_else(|| positions.clone(), |of| pick(positions, of))
}

/// `table[at[i]]`; the positions must be valid.
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
