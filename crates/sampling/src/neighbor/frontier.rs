//! Samples neighbours and makes blocks in two steps, like DGL's `sample_neighbors` and `to_block`.

use std::sync::Arc;

use crate::batch::block::{Block, Source};
use crate::choice::fanout::Fanouts;
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{Graph, GraphError, NodeKey, OriginalIds, Relation, Subgraph};

/// Extension trait of [`Graph`] that samples one hop.
pub trait SampleNeighbors {
    /// Samples in-edges of `nodes` without replacement, and returns a graph with all nodes and the sampled edges, and their
    /// features. [`ToBlock::to_block`] makes a block of it. [`NeighborSampler`] does both in one pass.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{SampleKey, SampleNeighbors, ToBlock};
    /// let g = Graph::homogeneous(4, vec![1, 2, 3, 0], vec![0, 0, 0, 3])?;
    /// let frontier = g.sample_neighbors([("_N", [0])], [2], SampleKey::new(1))?;
    /// assert_eq!(frontier.graph.in_degrees("_E", &[0, 3])?, [2, 0]);
    /// let block = frontier.to_block(&g, [("_N", [0])])?;
    /// assert_eq!((block.dst_nodes(0), block.relation("_E")?.num_edges()), (&[0][..], 2));
    /// assert_eq!(block.in_degrees(0), [3]); // in the whole graph, of which two edges were sampled
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`NeighborSampler::new`] and [`NeighborSampler::sample`]; fan-outs for another number of hops than 1.
    fn sample_neighbors<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        fanouts: impl Into<Fanouts>,
        key: SampleKey,
    ) -> Result<Subgraph, GraphError>;
}

impl SampleNeighbors for Graph {
    fn sample_neighbors<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        fanouts: impl Into<Fanouts>,
        key: SampleKey,
    ) -> Result<Subgraph, GraphError> {
        let sampler = NeighborSampler::new(self, fanouts)?;
        if sampler.hops() != 1 {
            let found = format!("{} hops", sampler.hops());
            return Err(setting("fanouts", "a fan-out for one hop", &found));
        }
        sampler.sample(nodes, key)?.blocks[0].to_frontier()
    }
}

impl Block {
    /// A graph with all nodes and the edges of the block in ascending id, with their features.
    ///
    /// # Errors
    /// Edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + edges · log)`.
    pub fn to_frontier(&self) -> Result<Subgraph, GraphError> {
        let g = self.graph();
        let edges = (0..g.relations().len()).map(|t| {
            let mut ids = self.edge_ids(t).to_vec();
            ids.sort_unstable();
            ids
        });
        g.restrict(g.every_node(), g.edges_at(edges))
    }
}

/// Extension trait of [`Subgraph`] that makes a block of its edges.
pub trait ToBlock {
    /// Makes a block of all edges of the subgraph, with destinations `dst` per node type. Sources are the destinations,
    /// followed by other nodes in the order in which the edges of the destinations reach them. Nodes and edges keep their
    /// ids in the subgraph.
    ///
    /// `whole` is the graph of which this is a subgraph. [Degrees](Block#degrees), totals and original ids of the block
    /// are those of `whole`, as for blocks that [`NeighborSampler`] makes. For degrees in the subgraph, sample the subgraph.
    ///
    /// # Errors
    /// An unknown or repeated type; an id that is out of range or repeated; an edge whose destination is not in `dst`;
    /// `whole` has other types, or other endpoints of an edge.
    fn to_block<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        whole: &Graph,
        dst: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Block, GraphError>;
}

impl ToBlock for Subgraph {
    fn to_block<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        whole: &Graph,
        dst: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Block, GraphError> {
        let g = &self.graph;
        check_whole(self, whole)?;
        let seeds = g.node_selection("dst", dst)?;
        let mut sampler = NeighborSampler::new(g, Fanouts::all(1))?;
        let (node_ids, edge_ids) = (self.node_ids.clone(), self.edge_ids.clone());
        sampler.source =
            Arc::new(Source { graph: g.clone(), whole: Some(whole.clone()), node_ids, edge_ids });
        let mut batch = sampler.run(&seeds, None, &[], SampleKey::new(0))?;
        for (t, rows) in batch.seeds.iter().enumerate() {
            if let Some(position) = rows.iter().enumerate().position(|(i, &row)| row as usize != i)
            {
                let what = format!("`dst` of node type `{}`:", g.schema().ntypes()[t]);
                return Err(GraphError::RepeatedId {
                    what,
                    position,
                    id: u64::from(seeds[t][position]),
                });
            }
        }
        let block = batch.blocks.swap_remove(0).with_key(None);
        for (t, (all, found)) in g.relations().iter().zip(block.relations()).enumerate() {
            if all.num_edges() != found.num_edges() {
                let dst = &seeds[g.schema().endpoints(t).1];
                let edge = all.dst().iter().position(|v| !dst.contains(v)).unwrap_or(0);
                let expected =
                    format!("the destinations of all edges of `{}`", g.schema().etypes()[t]);
                let found = format!("no {}, where edge {edge} ends", all.dst()[edge]);
                return Err(setting("dst", &expected, &found));
            }
        }
        Ok(block)
    }
}

/// Checks that every node and edge of the subgraph exists in `whole`.
fn check_whole(part: &Subgraph, whole: &Graph) -> Result<(), GraphError> {
    let g = &part.graph;
    let refuse =
        |found: &str| Err(setting("whole", "the graph of which this is a subgraph", found));
    if g.schema() != whole.schema() {
        return refuse(&format!("one with the edge types {:?}", whole.schema().etypes()));
    }
    let fits =
        |ids: &[OriginalIds], counts: Vec<usize>| ids.iter().map(OriginalIds::len).eq(counts);
    if !fits(&part.node_ids, g.node_counts().to_vec())
        || !fits(&part.edge_ids, g.relations().iter().map(Relation::num_edges).collect())
    {
        return refuse("a subgraph that does not have one original id per node and edge");
    }
    for ((ids, &count), name) in
        part.node_ids.iter().zip(whole.node_counts()).zip(g.schema().ntypes())
    {
        let largest = ids
            .as_slice()
            .map_or(ids.len().checked_sub(1), |ids| ids.iter().max().map(|&id| id as usize));
        if let Some(id) = largest.filter(|&id| id >= count) {
            return refuse(&format!("one of {count} nodes `{name}`, without node {id}"));
        }
    }
    for t in 0..g.relations().len() {
        let (own, all) = (g.in_memory(t)?, whole.in_memory(t)?);
        let (s, d) = g.schema().endpoints(t);
        let endpoints =
            own.src().iter().zip(own.dst()).map(|(&u, &v)| {
                (part.node_ids[s].get(u as usize), part.node_ids[d].get(v as usize))
            });
        let (src, dst) = (all.src(), all.dst());
        let is_there = |(e, (u, v)): (u32, (u32, u32))| {
            src.get(e as usize) == Some(&u) && dst[e as usize] == v
        };
        if let Some(e) = part.edge_ids[t].iter().zip(endpoints).position(|edge| !is_there(edge)) {
            return refuse(&format!(
                "one without the nodes of edge {e} of `{}`",
                g.schema().etypes()[t]
            ));
        }
    }
    Ok(())
}
