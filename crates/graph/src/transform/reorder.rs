//! Renumbers nodes and edges for memory locality.

use std::collections::VecDeque;

use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use crate::subgraph::induced::Relabel;
use burn_gnn_structure::GraphError;
use burn_gnn_structure::internal::{check_len, check_limit, scan};

/// The order of nodes after [`Graph::reorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrder<'a> {
    /// Unchanged.
    Kept,
    /// By descending in-degree over all edge types, equal ones by id.
    InDegree,
    /// Reverse Cuthill–McKee (Cuthill and McKee 1969; George 1971) over all types and both directions, so that neighbours
    /// get close ids. Each component starts from a node of smallest degree.
    ReverseCuthillMcKee,
    /// By part, then by id. Holds the part of each node, per node type in schema order, for example from METIS.
    Parts(&'a [Vec<u32>]),
}

/// The order of edges after [`Graph::reorder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeOrder {
    /// Unchanged.
    #[default]
    Kept,
    /// By destination, in unchanged order within a destination, so that CSC needs no permutation.
    ByDst,
}

impl Graph {
    /// Renumbers nodes and edges with their features. The result contains the original ids.
    ///
    /// The in-edges of a node keep their order. Sums over neighbours are therefore bit-identical, and
    /// `NeighborSampler::with_original_ids` draws the same samples.
    ///
    /// ```
    /// use burn_gnn_graph::{EdgeOrder, Graph, NodeOrder};
    /// let g = Graph::homogeneous(3, vec![0, 1, 0], vec![2, 2, 1])?;
    /// let new = g.reorder(NodeOrder::InDegree, EdgeOrder::ByDst)?;
    /// assert_eq!(new.original_nodes("_N")?.to_vec(), [2, 1, 0]);
    /// assert_eq!(new.graph.relation("_E")?.dst(), [0, 0, 1]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A number of parts other than that of nodes; for Cuthill–McKee more than `u32::MAX - 1` nodes of all types; edges in a
    /// file that cannot be read.
    ///
    /// # Cost
    /// `O(V log V + E)`; Cuthill–McKee also sorts the neighbours of each node.
    pub fn reorder(&self, nodes: NodeOrder<'_>, edges: EdgeOrder) -> Result<Subgraph, GraphError> {
        self.read_stored()?;
        let order = match nodes {
            NodeOrder::Kept => None,
            NodeOrder::InDegree => Some(self.by_in_degree()),
            NodeOrder::ReverseCuthillMcKee => {
                check_limit("nodes", self.total_nodes() as u64)
                    .map_err(|e| e.in_relation("all types together"))?;
                Some(self.cuthill_mckee())
            }
            NodeOrder::Parts(parts) => {
                check_len(
                    "parts",
                    "one list per node type",
                    self.node_counts().len(),
                    parts.len(),
                )?;
                for (t, parts) in parts.iter().enumerate() {
                    self.check_per_node("parts", "one per node", t, parts.len())?;
                }
                let by_part = |parts: &Vec<u32>| {
                    let mut order: Vec<u32> = (0..parts.len() as u32).collect();
                    order.sort_by_key(|&v| parts[v as usize]);
                    order
                };
                Some(parts.iter().map(by_part).collect())
            }
        };
        let node_ids = match order {
            None => self.every_node(),
            Some(order) if edges == EdgeOrder::Kept => return self.induced(order, Relabel::Yes),
            Some(order) => self.nodes_at(order),
        };
        let edge_ids = match edges {
            EdgeOrder::Kept => self.every_edge(),
            EdgeOrder::ByDst => self.edges_at(self.relations().iter().enumerate().map(|(t, r)| {
                let (csc, (_, d)) = (r.csc(), self.schema().endpoints(t));
                let positions = node_ids[d].iter().flat_map(|v| csc.row(v as usize));
                positions.map(|p| csc.edge_id(p)).collect()
            })),
        };
        self.restrict(node_ids, edge_ids)
    }

    fn by_in_degree(&self) -> Vec<Vec<u32>> {
        let mut degree: Vec<Vec<u64>> = self.node_counts().iter().map(|&n| vec![0; n]).collect();
        for (t, r) in self.relations().iter().enumerate() {
            let (_, d) = self.schema().endpoints(t);
            degree[d].iter_mut().zip(r.in_degrees()).for_each(|(sum, n)| *sum += u64::from(n));
        }
        let order = |degree: Vec<u64>| {
            let mut order: Vec<u32> = (0..degree.len() as u32).collect();
            order.sort_by_key(|&v| std::cmp::Reverse(degree[v as usize]));
            order
        };
        degree.into_iter().map(order).collect()
    }

    fn cuthill_mckee(&self) -> Vec<Vec<u32>> {
        // Numbers the nodes of all types consecutively.
        let mut start: Vec<u32> =
            std::iter::once(0).chain(self.node_counts().iter().map(|&n| n as u32)).collect();
        scan(&mut start);
        let start = &start[..];
        let type_of = |v: usize| start.partition_point(|&s| s as usize <= v) - 1;
        let neighbours = |v: usize| {
            let t = type_of(v);
            let local = v - start[t] as usize;
            (0..self.relations().len()).flat_map(move |e| {
                let ((s, d), r) = (self.schema().endpoints(e), &self.relations()[e]);
                let out = if s == t { &r.csr().indices()[r.csr().row(local)] } else { &[] };
                let into = if d == t { &r.csc().indices()[r.csc().row(local)] } else { &[] };
                let (to_d, to_s) = (start[d], start[s]);
                out.iter().map(move |&u| u + to_d).chain(into.iter().map(move |&u| u + to_s))
            })
        };
        let n = self.total_nodes();
        let degree: Vec<usize> = (0..n).map(|v| neighbours(v).count()).collect();
        let mut by_degree: Vec<u32> = (0..n as u32).collect();
        by_degree.sort_by_key(|&v| degree[v as usize]);
        let (mut met, mut order, mut queue) =
            (vec![false; n], Vec::with_capacity(n), VecDeque::new());
        for root in by_degree {
            if std::mem::replace(&mut met[root as usize], true) {
                continue;
            }
            queue.push_back(root);
            while let Some(v) = queue.pop_front() {
                order.push(v);
                let mut new: Vec<u32> = neighbours(v as usize)
                    .filter(|&u| !std::mem::replace(&mut met[u as usize], true))
                    .collect();
                new.sort_by_key(|&u| (degree[u as usize], u));
                queue.extend(new);
            }
        }
        let mut out: Vec<Vec<u32>> = vec![vec![]; self.node_counts().len()];
        for &v in order.iter().rev() {
            let t = type_of(v as usize);
            out[t].push(v - start[t]);
        }
        out
    }
}
