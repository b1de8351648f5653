//! Sampling and making blocks in two steps, as DGL has them.

use std::sync::Arc;

use super::block::{Block, Source};
use super::neighbor::NeighborSampler;
use super::{Fanouts, SampleKey};
use crate::{Graph, GraphError, OriginalIds, Subgraph};

impl Graph {
    /// The graph of all nodes and of some in-edges of `nodes`, chosen without replacement: `fanouts` for one hop. Features
    /// follow. [`Subgraph::to_block`] makes a block of it; [`NeighborSampler`] does both in one pass.
    ///
    /// ```
    /// use burn_gnn_graph::{Graph, SampleKey};
    /// let g = Graph::homogeneous(4, vec![1, 2, 3, 0], vec![0, 0, 0, 3])?;
    /// let frontier = g.sample_neighbors([("_N", [0])], [2], SampleKey::new(1))?;
    /// assert_eq!(frontier.graph.in_degrees("_E", &[0, 3])?, [2, 0]);
    /// let block = frontier.to_block([("_N", [0])])?;
    /// assert_eq!(block.dst_nodes(0), [0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`NeighborSampler::new`] and [`NeighborSampler::sample`]; not one hop.
    pub fn sample_neighbors<N: AsRef<str>, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        fanouts: impl Into<Fanouts>,
        key: SampleKey,
    ) -> Result<Subgraph, GraphError> {
        let sampler = NeighborSampler::new(self, fanouts)?;
        if sampler.hops() != 1 {
            let (expected, found) = ("a fan-out for one hop".into(), format!("{} hops", sampler.hops()));
            return Err(GraphError::Setting { arg: "fanouts", expected, found });
        }
        sampler.sample(nodes, key)?.blocks[0].to_frontier()
    }
}

impl Block {
    /// The sampled edges in a graph of all nodes, in ascending id; features follow.
    ///
    /// # Errors
    /// None for a block that was sampled.
    ///
    /// # Cost
    /// `O(V + edges · log)`.
    pub fn to_frontier(&self) -> Result<Subgraph, GraphError> {
        let g = self.graph();
        let edges = (0..g.relations().len()).map(|t| {
            let mut ids = self.edge_ids(t).to_vec();
            ids.sort_unstable();
            OriginalIds::new(ids, g.relations()[t].num_edges())
        });
        g.restrict(g.every_node(), edges.collect())
    }
}

impl Subgraph {
    /// The block of all edges, whose destinations are `dst`, given per node type, first among the sources; the others follow in the
    /// order in which the edges of these destinations meet them.
    ///
    /// # Errors
    /// Unknown type or one named twice, an id out of range or given twice, an edge that ends elsewhere.
    pub fn to_block<N: AsRef<str>, I: AsRef<[u32]>>(&self, dst: impl IntoIterator<Item = (N, I)>) -> Result<Block, GraphError> {
        let g = &self.graph;
        let seeds = g.node_selection("dst", dst)?;
        let mut sampler = NeighborSampler::new(g, Fanouts::all(1))?;
        sampler.source = Arc::new(Source { graph: g.clone(), node_ids: self.node_ids.clone(), edge_ids: self.edge_ids.clone() });
        let mut batch = sampler.run(&seeds, None, &[], SampleKey::new(0));
        for (t, rows) in batch.seeds.iter().enumerate() {
            if let Some(position) = rows.iter().enumerate().position(|(i, &row)| row as usize != i) {
                let what = format!("`dst` of node type `{}`:", g.schema().ntypes()[t]);
                return Err(GraphError::RepeatedId { what, position, id: u64::from(seeds[t][position]) });
            }
        }
        let block = batch.blocks.swap_remove(0);
        for (t, (all, found)) in g.relations().iter().zip(block.relations()).enumerate() {
            if all.num_edges() != found.num_edges() {
                let dst = &seeds[g.schema().ends(t).1];
                let edge = all.dst().iter().position(|v| !dst.contains(v)).unwrap_or(0);
                let expected = format!("the destinations of all edges of `{}`", g.schema().etypes()[t]);
                let found = format!("no {}, where edge {edge} ends", all.dst()[edge]);
                return Err(GraphError::Setting { arg: "dst", expected, found });
            }
        }
        Ok(block)
    }
}
