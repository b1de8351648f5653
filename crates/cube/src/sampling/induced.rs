//! Subgraphs that are induced by the nodes of a batch, on a device.

use burn::tensor::{Int, Tensor};
use burn_gnn_graph::internal::{etype_number, ntype_number};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, KHop, NodeKey, of_etype, of_ntype};
use burn_gnn_sampling::NeighborSampler;
use cubecl::prelude::*;

use super::batch::{DeviceBatch, edge_ids};
use super::device_sampler::{DeviceSampler, Tables};
use super::draw::{Candidates, CandidatesLaunch};
use super::hops::check_arrays_of_batch;
use super::ids::{Ids, number_at};
use crate::device::launch::{address, arg, grid};
use crate::message::layout::csc;
use crate::numeric::scan::exclusive_sums;

/// An induced subgraph of [`DeviceSampler`](crate::DeviceSampler) on its device: nodes and all edges between them, with
/// tensors as arrays.
///
/// Edges are sorted by the row of their destination, then by id. Ids have the element type i32, or u32 if i32 is too small.
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind, Int, Tensor};
/// use burn_gnn_cube::DeviceSampler;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// let device = Device::wgpu(DeviceKind::DefaultDevice);
/// let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 0, 1, 4])?;
/// let sampler = DeviceSampler::new(NeighborSampler::new(&g, [2, -1])?, &device)?;
/// let seeds = Tensor::<1, Int>::from_ints([0, 4], &device);
/// let none: [(&str, Tensor<1, Int>); 0] = [];
/// let subgraph = sampler.induced_tensors([("_N", seeds)], none, SampleKey::new(7))?;
/// let (nodes, src, dst) = (subgraph.nodes("_N"), subgraph.src("_E"), subgraph.dst("_E"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceSubgraph {
    graph: Graph,
    nodes: Vec<Ids>,
    seeds: Vec<Ids>,
    edges: Vec<Edges>,
}

/// The edges of one relation.
#[derive(Clone, Debug)]
struct Edges {
    src: Ids,
    dst: Ids,
    ids: Ids,
}

/// Counts the in-edges of every node whose source has a row.
#[cube(launch_unchecked, address_type = "dynamic")]
fn count_kernel(candidates: &Candidates, indices: &[u32], rows: &[u32], counts: &mut [u32]) {
    let node = candidates.own_node();
    let mut count = 0u32;
    for p in node.start..node.end {
        if candidates.admits(&node, p) {
            count += select(rows[indices[p as usize] as usize] == 0xffff_ffffu32, 0u32, 1u32);
        }
    }
    counts[node.i] = count;
}

/// Writes the rows and positions of these edges.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments)]
fn fill_kernel(
    candidates: &Candidates,
    indices: &[u32],
    rows: &[u32],
    starts: &[u32],
    src: &mut [u32],
    dst: &mut [u32],
    positions: &mut [u32],
) {
    let node = candidates.own_node();
    let mut at = starts[node.i] as usize;
    for p in node.start..node.end {
        if candidates.admits(&node, p) {
            let row = rows[indices[p as usize] as usize];
            if row != 0xffff_ffffu32 {
                src[at] = row;
                dst[at] = node.i as u32;
                positions[at] = p;
                at += 1;
            }
        }
    }
}

impl DeviceSampler {
    /// The subgraph induced by the nodes of a batch, whose rows are in `tables`.
    ///
    /// # Errors
    /// A kernel has more arrays than the device binds.
    pub(super) fn edges_between(
        &self,
        batch: DeviceBatch,
        excluded: &[Ids],
        tables: &Tables,
    ) -> Result<DeviceSubgraph, GraphError> {
        let DeviceBatch { graph, nodes, seeds, .. } = batch;
        let one = |t: usize| {
            let (relation, (s, d)) = (&graph.relations()[t], graph.schema().endpoints(t));
            let none = || Ids { list: self.ints(0), len: 0 };
            let n = nodes[d].len;
            if n == 0 || nodes[s].len == 0 || relation.num_edges() == 0 {
                return Ok(Edges { src: none(), dst: none(), ids: none() });
            }
            let (layout, list, rows) =
                (csc(relation, &self.device), &nodes[d].list, &tables.rows[s]);
            let left_out = tables.excluded(t, excluded);
            let edge_ids_of = left_out.and(layout.edge_ids.as_ref());
            // The kernel that writes the edges has the most arrays.
            check_arrays_of_batch(
                8 + [left_out, edge_ids_of].into_iter().flatten().count(),
                &self.device,
            )?;
            let candidates = || {
                CandidatesLaunch::new(
                    arg(list),
                    arg(&layout.indptr),
                    None.into(),
                    None.into(),
                    left_out.map(arg).into(),
                    edge_ids_of.map(arg).into(),
                    None.into(),
                    None.into(),
                    n,
                    left_out.is_some(),
                )
            };
            let (client, counts) = (list.client.clone(), self.ints(n));
            let (count, dim) = grid(&client, n);
            // SAFETY: nodes of a batch are nodes of the graph, for which the layout has offsets and they positions of
            // edges, for which there are ids and bits; their sources have rows; threads beyond `n` return early.
            unsafe {
                count_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([&layout.indices, rows], n),
                    candidates(),
                    arg(&layout.indices),
                    arg(rows),
                    arg(&counts),
                );
            }
            let starts = exclusive_sums(&counts, n);
            let len = number_at(&starts, n) as usize;
            if len == 0 {
                return Ok(Edges { src: none(), dst: none(), ids: none() });
            }
            let [src, dst, positions] = [(); 3].map(|()| Ids { list: self.ints(len), len });
            let (count, dim) = grid(&client, n);
            // SAFETY: as above; outputs have a place for every edge counted, those of a node from its offset on.
            unsafe {
                fill_kernel::launch_unchecked(
                    &client,
                    count,
                    dim,
                    address([&layout.indices, rows, &positions.list], n),
                    candidates(),
                    arg(&layout.indices),
                    arg(rows),
                    arg(&starts),
                    arg(&src.list),
                    arg(&dst.list),
                    arg(&positions.list),
                );
            }
            let ids = edge_ids(&positions, layout.edge_ids.as_ref());
            Ok(Edges { src, dst, ids })
        };
        let edges = (0..graph.relations().len()).map(one).collect::<Result<_, GraphError>>()?;
        Ok(DeviceSubgraph { edges, graph, nodes, seeds })
    }
}

impl DeviceSubgraph {
    /// Ids of the nodes of a type, `[nodes]`: the distinct seeds, then the other nodes in the order in which they were found.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn nodes(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.nodes, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// Row of each seed among [`nodes`](Self::nodes), `[seeds]`, in the order of the request.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn seeds(&self, ntype: impl NodeKey) -> Tensor<1, Int> {
        let ntype = ntype_number(self.graph.schema(), ntype);
        of_ntype(&self.seeds, ntype).tensor(self.graph.node_counts()[ntype])
    }
    /// Row of the source of each edge of a type, `[edges]`.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn src(&self, etype: impl EdgeKey) -> Tensor<1, Int> {
        let etype = etype_number(self.graph.schema(), etype);
        of_etype(&self.edges, etype)
            .src
            .tensor(self.graph.node_counts()[self.graph.schema().endpoints(etype).0])
    }
    /// Row of the destination of each edge of a type, `[edges]`.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn dst(&self, etype: impl EdgeKey) -> Tensor<1, Int> {
        let etype = etype_number(self.graph.schema(), etype);
        of_etype(&self.edges, etype)
            .dst
            .tensor(self.graph.node_counts()[self.graph.schema().endpoints(etype).1])
    }
    /// Id of each edge of a type in the graph, `[edges]`.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn edge_ids(&self, etype: impl EdgeKey) -> Tensor<1, Int> {
        let etype = etype_number(self.graph.schema(), etype);
        of_etype(&self.edges, etype).ids.tensor(self.graph.relations()[etype].num_edges())
    }

    /// Converts to a subgraph on the host, with edges sorted by id; `sampler` must be the sampler of the subgraph.
    ///
    /// # Errors
    /// `sampler` has another graph.
    pub fn to_khop(&self, sampler: &NeighborSampler) -> Result<KHop, GraphError> {
        let read = |lists: &[Ids]| lists.iter().map(Ids::read).collect();
        let edges = self.edges.iter().map(|edges| edges.ids.read()).collect();
        sampler.device_induced(read(&self.nodes), edges, read(&self.seeds))
    }
}
