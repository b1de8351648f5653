//! Extracts subgraphs by nodes, edges, types and incident edges.

use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::Compressed;
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey, OriginalIds};

/// Whether a subgraph renumbers its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relabel {
    /// Keep only the selected nodes and number them from 0.
    Yes,
    /// Keep all nodes and their ids.
    No,
}

/// Direction in which edges are followed from given nodes.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    /// In-edges.
    In,
    /// Out-edges.
    Out,
}

impl Side {
    /// The layout of edge type `t` with one row per given node.
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
    /// The subgraph induced by nodes: the nodes and every edge between them.
    ///
    /// With [`Relabel::Yes`], nodes are numbered in the given order per type; a type without an entry has no nodes. Edges are
    /// in ascending order of original ids.
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
    /// An unknown or repeated type; an id that is out of range or repeated (its edges would be ambiguous); edges in a file
    /// that cannot be read.
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

    /// [`node_subgraph`](Self::node_subgraph) of validated ids per node type.
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

    /// The subgraph of some edges, in the given order per type. Repeated ids make parallel edges; a type without an entry has
    /// no edges.
    ///
    /// [`Relabel::Yes`] keeps only the endpoints of these edges, in ascending order of original ids.
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; edges in a file that cannot be read.
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

    /// The subgraph of all in-edges of the given nodes, of every edge type, in ascending order of original ids. Ids may be
    /// repeated.
    ///
    /// [`Relabel::Yes`] keeps the given nodes and the sources of these edges, in ascending order of original ids.
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + edges found · log)`, `O(V + E)` once for CSC.
    pub fn in_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        self.incident(self.node_selection("nodes", nodes)?, relabel, Side::In)
    }

    /// The subgraph of all out-edges of the given nodes; otherwise as [`in_subgraph`](Self::in_subgraph).
    ///
    /// # Errors
    /// As [`in_subgraph`](Self::in_subgraph).
    pub fn out_subgraph<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        nodes: impl IntoIterator<Item = (N, I)>,
        relabel: Relabel,
    ) -> Result<Subgraph, GraphError> {
        self.incident(self.node_selection("nodes", nodes)?, relabel, Side::Out)
    }

    fn incident(
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

    /// The subgraph of these edges, with all nodes or only their endpoints and `extra`.
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

    /// The subgraph of some node types and all edge types between them, with unchanged ids and features.
    ///
    /// # Errors
    /// An unknown or repeated type.
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

    /// The subgraph of some edge types and their node types, with unchanged ids and features.
    ///
    /// # Errors
    /// An unknown, ambiguous or repeated type.
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
