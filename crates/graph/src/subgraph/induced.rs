//! Extracts subgraphs by nodes, edges, types and neighbourhoods.

use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::Compressed;
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey, OriginalIds};

/// Whether a subgraph renumbers its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relabel {
    /// Keep only the nodes that take part and number them from 0.
    Yes,
    /// Keep all nodes and their ids.
    No,
}

/// Which way edges are followed from given nodes.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    /// Edges into them.
    In,
    /// Edges that start in them.
    Out,
}

impl Side {
    /// One row for each given node of edge type `t`.
    pub(crate) fn layout(self, g: &Graph, t: usize) -> Result<&Compressed, GraphError> {
        let relation = g.in_memory(t)?;
        Ok(match self {
            Self::In => relation.csc(),
            Self::Out => relation.csr(),
        })
    }
    /// Node types `(given, other)` of edge type `t`.
    pub(crate) fn endpoints(self, g: &Graph, t: usize) -> (usize, usize) {
        let (s, d) = g.schema().endpoints(t);
        match self {
            Self::In => (d, s),
            Self::Out => (s, d),
        }
    }
}

impl Graph {
    /// The subgraph induced by nodes: these nodes and every edge with both endpoints among them.
    ///
    /// With [`Relabel::Yes`] nodes are numbered in the order given, per type; a type that is not named has none. Edges
    /// stand in ascending original id, whatever the order of the nodes.
    ///
    /// ```
    /// use burn_gnn_graph::{Graph, Relabel};
    /// let g = Graph::homogeneous(4, vec![0, 1, 2, 3], vec![1, 2, 3, 0])?; // a ring
    /// let sub = g.node_subgraph([("_N", [3, 0, 1])], Relabel::Yes)?;
    /// let r = sub.graph.relation("_E")?;
    /// assert_eq!((r.src(), r.dst()), (&[1, 0][..], &[2, 1][..])); // 0 -> 1 and 3 -> 0
    /// assert_eq!(sub.original_edges("_E")?.to_vec(), [0, 3]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type or one named twice, an id out of range, an id given twice (its edges would
    /// be ambiguous).
    ///
    /// # Cost
    /// `O(V + in-edges of the nodes · log)`, `O(V + E)` once for CSC.
    pub fn node_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        self.induced(self.node_selection("nodes", nodes)?, relabel)
    }

    /// [`node_subgraph`](Self::node_subgraph) of ids in range, per node type.
    #[doc(hidden)]
    pub fn induced(&self, nodes: Vec<Vec<u32>>, relabel: Relabel) -> Result<Subgraph, GraphError> {
        let mut member: Vec<Vec<bool>> =
            self.node_counts().iter().map(|&n| vec![false; n]).collect();
        for (t, ids) in nodes.iter().enumerate() {
            for (position, &id) in ids.iter().enumerate() {
                if std::mem::replace(&mut member[t][id as usize], true) {
                    let what = format!("`nodes` of node type `{}`:", self.schema().ntypes()[t]);
                    return Err(GraphError::RepeatedId { what, position, id: u64::from(id) });
                }
            }
        }
        let edges = (0..self.relations().len()).map(|t| {
            let (d, s) = Side::In.endpoints(self, t);
            let mut ids = vec![];
            if nodes[s].is_empty() || nodes[d].is_empty() {
                return Ok(ids);
            }
            let layout = Side::In.layout(self, t)?;
            for &v in &nodes[d] {
                ids.extend(
                    layout
                        .row(v as usize)
                        .filter(|&p| member[s][layout.indices()[p] as usize])
                        .map(|p| layout.edge_id(p)),
                );
            }
            ids.sort_unstable();
            Ok(ids)
        });
        let edges = self.edges_at(edges.collect::<Result<Vec<_>, GraphError>>()?);
        let kept = match relabel {
            Relabel::Yes => self.nodes_at(nodes),
            Relabel::No => self.every_node(),
        };
        self.restrict(kept, edges)
    }

    /// The subgraph of edges: edge `i` of a type is the `i`-th one given (repeats make parallel edges); a type that is
    /// not named has none.
    ///
    /// [`Relabel::Yes`] keeps the nodes that are endpoints of these edges, in ascending original id.
    ///
    /// # Errors
    /// Unknown type or one named twice, an id out of range.
    ///
    /// # Cost
    /// `O(V + edges given)`.
    pub fn edge_subgraph<K: EdgeKey, I: AsRef<[u32]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        let edges = self.edge_selection("edges", edges)?;
        self.around(self.edges_at(edges), &[], relabel)
    }

    /// All edges into the given nodes, of every edge type, in ascending original id. Repeated ids count once.
    ///
    /// [`Relabel::Yes`] keeps the given nodes, also those without in-edges, and the sources, in ascending original id.
    ///
    /// # Errors
    /// Unknown type or one named twice, an id out of range.
    ///
    /// # Cost
    /// `O(V + edges found · log)`, `O(V + E)` once for CSC.
    pub fn in_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        self.beside(self.node_selection("nodes", nodes)?, relabel, Side::In)
    }

    /// All edges that start in the given nodes; otherwise as [`in_subgraph`](Self::in_subgraph).
    ///
    /// # Errors
    /// As [`in_subgraph`](Self::in_subgraph).
    pub fn out_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        self.beside(self.node_selection("nodes", nodes)?, relabel, Side::Out)
    }

    fn beside(
        &self,
        mut nodes: Vec<Vec<u32>>,
        relabel: Relabel,
        side: Side,
    ) -> Result<Subgraph, GraphError> {
        for ids in &mut nodes {
            ids.sort_unstable();
            ids.dedup();
        }
        let edges = (0..self.relations().len()).map(|t| {
            let (near, _) = side.endpoints(self, t);
            let mut ids = vec![];
            if !nodes[near].is_empty() {
                let layout = side.layout(self, t)?;
                ids.extend(
                    nodes[near]
                        .iter()
                        .flat_map(|&v| layout.row(v as usize))
                        .map(|p| layout.edge_id(p)),
                );
                ids.sort_unstable();
            }
            Ok(ids)
        });
        let edges = edges.collect::<Result<Vec<_>, GraphError>>()?;
        self.around(self.edges_at(edges), &nodes, relabel)
    }

    /// These edges, with the nodes that are their endpoints and `extra` or with all nodes.
    fn around(
        &self,
        edges: Vec<OriginalIds>,
        extra: &[Vec<u32>],
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        let nodes = match relabel {
            Relabel::Yes => self.touched(&edges, extra)?,
            Relabel::No => self.every_node(),
        };
        self.restrict(nodes, edges)
    }

    /// The given node types and every edge type between them; ids and features stay.
    ///
    /// # Errors
    /// Unknown type, or one named twice.
    pub fn node_type_subgraph(&self, ntypes: &[impl NodeKey]) -> Result<Self, GraphError> {
        let ids = ntypes.iter().map(|t| self.schema().ntype(t)).collect::<Result<Vec<_>, _>>()?;
        let etypes: Vec<usize> = (0..self.relations().len())
            .filter(|&t| {
                let (s, d) = self.schema().endpoints(t);
                ids.contains(&s) && ids.contains(&d)
            })
            .collect();
        self.with_types(&ids, &etypes)
    }

    /// The given edge types and their endpoint node types; ids and features stay.
    ///
    /// # Errors
    /// Unknown or ambiguous type, or one named twice.
    pub fn edge_type_subgraph<K: EdgeKey>(
        &self,
        etypes: impl IntoIterator<Item = K>,
    ) -> Result<Self, GraphError> {
        let etypes =
            etypes.into_iter().map(|t| self.schema().etype(t)).collect::<Result<Vec<_>, _>>()?;
        let mut ntypes: Vec<usize> =
            etypes.iter().flat_map(|&t| <[usize; 2]>::from(self.schema().endpoints(t))).collect();
        ntypes.sort_unstable();
        ntypes.dedup();
        self.with_types(&ntypes, &etypes)
    }

    fn with_types(&self, ntypes: &[usize], etypes: &[usize]) -> Result<Self, GraphError> {
        let relation =
            |&t: &usize| (self.schema().etypes()[t].clone(), self.relations()[t].clone(), Some(t));
        self.rebuild(ntypes, etypes.iter().map(relation).collect())
    }
}
