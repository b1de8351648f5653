//! Extracts k-hop subgraphs.

use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use crate::subgraph::induced::Relabel;
use crate::subgraph::induced::Side;
use burn_gnn_structure::internal::filled;
use burn_gnn_structure::{GraphError, NodeKey};

/// The k-hop subgraph around seeds.
#[derive(Clone, Debug)]
pub struct KHop {
    /// The induced subgraph; nodes are in ascending order of original ids.
    pub subgraph: Subgraph,
    /// Id of each seed in the subgraph, per node type in schema order.
    pub seeds: Vec<Vec<u32>>,
}

impl Graph {
    /// The subgraph induced by all nodes from which a seed can be reached in at most `k` steps along edges of any type. It
    /// contains every edge between these nodes.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?; // a path
    /// let hood = g.khop_in_subgraph([("_N", [3, 3])], 2)?;
    /// assert_eq!(hood.subgraph.original_nodes("_N")?.to_vec(), [1, 2, 3]);
    /// assert_eq!(hood.seeds, [[2, 2]]); // repeated seeds are allowed
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + edges found · log)` and 4 bytes per node, `O(V + E)` once for CSC.
    pub fn khop_in_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        k: usize,
    ) -> Result<KHop, GraphError> {
        self.khop(self.node_selection("seeds", seeds)?, k, Side::In)
    }

    /// The subgraph induced by all nodes that can be reached from a seed in at most `k` steps; otherwise as
    /// [`khop_in_subgraph`](Self::khop_in_subgraph).
    ///
    /// # Errors
    /// As [`khop_in_subgraph`](Self::khop_in_subgraph).
    pub fn khop_out_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        k: usize,
    ) -> Result<KHop, GraphError> {
        self.khop(self.node_selection("seeds", seeds)?, k, Side::Out)
    }

    fn khop(&self, seeds: Vec<Vec<u32>>, k: usize, side: Side) -> Result<KHop, GraphError> {
        let ids = |&n: &usize| {
            let remedy = "free memory: neighbourhoods take 4 bytes per node of the graph";
            filled(
                u32::MAX,
                n as u128,
                || format!("a neighbourhood in a graph of {n} nodes of a type"),
                remedy,
            )
        };
        let mut new_id: Vec<Vec<u32>> =
            self.node_counts().iter().map(ids).collect::<Result<_, _>>()?;
        let mut visit =
            |t: usize, v: u32| std::mem::replace(&mut new_id[t][v as usize], 0) == u32::MAX;
        let mut frontier: Vec<Vec<u32>> = seeds
            .iter()
            .enumerate()
            .map(|(t, ids)| ids.iter().copied().filter(|&v| visit(t, v)).collect())
            .collect();
        for _ in 0..k {
            let mut next = vec![vec![]; frontier.len()];
            for t in 0..self.relations().len() {
                let (near, far) = side.endpoints(self, t);
                if frontier[near].is_empty() {
                    continue;
                }
                let layout = side.layout(self, t)?;
                for &v in &frontier[near] {
                    next[far].extend(
                        layout.indices()[layout.row(v as usize)]
                            .iter()
                            .copied()
                            .filter(|&u| visit(far, u)),
                    );
                }
            }
            frontier = next;
            if frontier.iter().all(Vec::is_empty) {
                break;
            }
        }
        let mut nodes = vec![];
        for ids in &mut new_id {
            let mut found = vec![];
            for (v, id) in ids.iter_mut().enumerate().filter(|(_, id)| **id != u32::MAX) {
                *id = found.len() as u32;
                found.push(v as u32);
            }
            nodes.push(found);
        }
        let seeds = seeds
            .iter()
            .zip(&new_id)
            .map(|(ids, new)| ids.iter().map(|&v| new[v as usize]).collect())
            .collect();
        Ok(KHop { subgraph: self.induced(nodes, Relabel::Yes)?, seeds })
    }
}
