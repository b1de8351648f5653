//! Defines `Subgraph`, and the selection and gathering of nodes and edges that transforms share.

use crate::graph::Graph;
use burn_gnn_structure::internal::{check_counts, check_ids, check_len};
use burn_gnn_structure::{EdgeKey, EdgeType, GraphError, NodeKey, OriginalIds, Relation};

/// A graph of some nodes and edges of another graph, with their original ids.
///
/// It has the types of the original graph, and the features of its nodes and edges.
///
/// ```
/// use burn_gnn_graph::{Graph, Relabel};
/// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?;
/// let sub = g.edge_subgraph([("_E", [2])], Relabel::Yes)?;
/// assert_eq!(sub.graph.node_counts(), [2]);
/// assert_eq!(sub.original_nodes("_N")?.to_vec(), [2, 3]);
/// assert_eq!(sub.original_edges("_E")?.to_vec(), [2]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// The graph.
    pub graph: Graph,
    /// Original ids of its nodes, per node type in schema order.
    pub node_ids: Vec<OriginalIds>,
    /// Original ids of its edges, per edge type in schema order.
    pub edge_ids: Vec<OriginalIds>,
}

impl Subgraph {
    /// Original ids of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn original_nodes(&self, ntype: impl NodeKey) -> Result<&OriginalIds, GraphError> {
        Ok(&self.node_ids[self.graph.schema().ntype(ntype)?])
    }
    /// Original ids of the edges of a type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn original_edges(&self, etype: impl EdgeKey) -> Result<&OriginalIds, GraphError> {
        Ok(&self.edge_ids[self.graph.schema().etype(etype)?])
    }
}

impl Graph {
    /// Validates ids per node type and brings them into schema order. Types without an entry get an empty list.
    #[doc(hidden)]
    pub fn node_selection<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        arg: &str,
        given: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        let mut out: Vec<Option<Vec<u32>>> = vec![None; self.node_counts().len()];
        for (key, ids) in given {
            let (t, ids) = (self.schema().ntype(key)?, ids.as_ref());
            let name = &self.schema().ntypes()[t];
            check_ids(arg, &format!("node type `{name}`"), ids, self.node_counts()[t])?;
            if out[t].replace(ids.to_vec()).is_some() {
                return Err(GraphError::Duplicate { what: "node type", name: name.clone() });
            }
        }
        Ok(out.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Validates ids per edge type and brings them into schema order. Types without an entry get an empty list.
    #[doc(hidden)]
    pub fn edge_selection<K: EdgeKey, I: AsRef<[u32]>>(
        &self,
        arg: &str,
        given: impl IntoIterator<Item = (K, I)>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        let mut out: Vec<Option<Vec<u32>>> = vec![None; self.relations().len()];
        for (key, ids) in given {
            let (t, ids) = (self.schema().etype(key)?, ids.as_ref());
            self.check_edges(arg, t, ids)?;
            if out[t].replace(ids.to_vec()).is_some() {
                let name = self.schema().etypes()[t].to_string();
                return Err(GraphError::Duplicate { what: "edge type", name });
            }
        }
        Ok(out.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The number of an edge type; an error if its source and destination node types differ.
    #[doc(hidden)]
    pub fn one_node_type(
        &self,
        etype: impl EdgeKey,
        op: &'static str,
    ) -> Result<usize, GraphError> {
        let t = self.schema().etype(etype)?;
        let (s, d) = self.schema().endpoints(t);
        if s == d {
            Ok(t)
        } else {
            Err(self.in_etype(t, GraphError::Bipartite { relation: String::new(), op }))
        }
    }
    /// Checks that a list has one entry per node of type `t`.
    #[doc(hidden)]
    pub fn check_per_node(
        &self,
        arg: &str,
        why: &'static str,
        t: usize,
        len: usize,
    ) -> Result<(), GraphError> {
        check_len(arg, why, self.node_counts()[t], len)
            .map_err(|e| e.in_relation(&self.schema().ntypes()[t]))
    }
    /// Checks that a list has one entry per edge of type `t`.
    #[doc(hidden)]
    pub fn check_per_edge(
        &self,
        arg: &str,
        why: &'static str,
        t: usize,
        len: usize,
    ) -> Result<(), GraphError> {
        check_len(arg, why, self.relations()[t].num_edges(), len).map_err(|e| self.in_etype(t, e))
    }
    /// Checks that ids are edges of type `t`.
    #[doc(hidden)]
    pub fn check_edges(&self, arg: &str, t: usize, ids: &[u32]) -> Result<(), GraphError> {
        let of = format!("edge type `{}`", self.schema().etypes()[t]);
        check_ids(arg, &of, ids, self.relations()[t].num_edges())
    }
    /// Adds the name of edge type `t` to an error.
    #[doc(hidden)]
    pub fn in_etype(&self, t: usize, e: GraphError) -> GraphError {
        e.in_relation(&self.schema().etypes()[t].to_string())
    }
    /// Replaces the edges of type `t`; the new ones have no features.
    #[doc(hidden)]
    pub fn with_relation(&self, t: usize, relation: Relation) -> Self {
        let mut relations = self.relations().to_vec();
        relations[t] = relation;
        let mut g = Self::assemble(self.schema().clone(), self.node_counts().to_vec(), relations);
        let (nodes, edges) = g.frames_mut();
        nodes.clone_from_slice(self.node_frames());
        for i in (0..edges.len()).filter(|&i| i != t) {
            edges[i].clone_from(&self.edge_frames()[i]);
        }
        g
    }

    /// All nodes of every type.
    #[doc(hidden)]
    pub fn every_node(&self) -> Vec<OriginalIds> {
        self.node_counts().iter().map(|&n| OriginalIds::unchanged(n)).collect()
    }
    /// All edges of every type.
    #[doc(hidden)]
    pub fn every_edge(&self) -> Vec<OriginalIds> {
        self.relations().iter().map(|r| OriginalIds::unchanged(r.num_edges())).collect()
    }

    /// Original ids of nodes per type; ids are validated.
    #[doc(hidden)]
    pub fn nodes_at(&self, ids: impl IntoIterator<Item = Vec<u32>>) -> Vec<OriginalIds> {
        ids.into_iter().zip(self.node_counts()).map(|(ids, &n)| OriginalIds::new(ids, n)).collect()
    }
    /// Original ids of edges per type; ids are validated.
    #[doc(hidden)]
    pub fn edges_at(&self, ids: impl IntoIterator<Item = Vec<u32>>) -> Vec<OriginalIds> {
        let counts = self.relations().iter().map(Relation::num_edges);
        ids.into_iter().zip(counts).map(|(ids, n)| OriginalIds::new(ids, n)).collect()
    }
    /// The subgraph of these nodes and edges, in this order, with their features. Both endpoints of every edge must be among
    /// the nodes.
    #[doc(hidden)]
    pub fn restrict(
        &self,
        node_ids: Vec<OriginalIds>,
        edge_ids: Vec<OriginalIds>,
    ) -> Result<Subgraph, GraphError> {
        let renumbered: Vec<Option<Vec<u32>>> = node_ids
            .iter()
            .zip(self.node_counts())
            .map(|(ids, &n)| {
                let mut new = vec![u32::MAX; n];
                ids.as_slice()?.iter().enumerate().for_each(|(i, &id)| new[id as usize] = i as u32);
                Some(new)
            })
            .collect();
        let mut relations = Vec::with_capacity(edge_ids.len());
        for (t, (r, ids)) in self.relations().iter().zip(&edge_ids).enumerate() {
            let (s, d) = self.schema().endpoints(t);
            if ids.as_slice().is_none() && renumbered[s].is_none() && renumbered[d].is_none() {
                relations.push(r.clone());
                continue;
            }
            check_counts(node_ids[s].len(), node_ids[d].len(), ids.len())
                .map_err(|e| self.in_etype(t, e))?;
            let r = self.in_memory(t)?;
            let endpoints = |old: &[u32], new: &Option<Vec<u32>>| -> Vec<u32> {
                let old = ids.iter().map(|e| old[e as usize]);
                match new {
                    Some(new) => old.map(|v| new[v as usize]).collect(),
                    None => old.collect(),
                }
            };
            let (src, dst) =
                (endpoints(r.src(), &renumbered[s]), endpoints(r.dst(), &renumbered[d]));
            relations.push(
                Relation::from_coo(node_ids[s].len(), node_ids[d].len(), src, dst)
                    .map_err(|e| self.in_etype(t, e))?,
            );
        }
        self.with_rows(relations, node_ids, edge_ids)
    }
    /// A subgraph with the given relations; nodes and edges, which may be repeated, get the features of their original ids.
    #[doc(hidden)]
    pub fn with_rows(
        &self,
        relations: Vec<Relation>,
        node_ids: Vec<OriginalIds>,
        edge_ids: Vec<OriginalIds>,
    ) -> Result<Subgraph, GraphError> {
        let counts = node_ids.iter().map(OriginalIds::len).collect();
        let mut graph = Self::assemble(self.schema().clone(), counts, relations);
        let (nodes, edges) = graph.frames_mut();
        let old = self.node_frames().iter().chain(self.edge_frames());
        let ids = node_ids.iter().chain(&edge_ids);
        for ((new, old), ids) in nodes.iter_mut().chain(edges).zip(old).zip(ids) {
            new.take_rows(old, ids)?;
        }
        Ok(Subgraph { graph, node_ids, edge_ids })
    }

    /// A graph of the node types `ntypes` (type numbers) with their features and other relations between them. The third
    /// entry of a relation is the edge type of this graph whose features it gets.
    pub(crate) fn rebuild(
        &self,
        ntypes: &[usize],
        relations: Vec<(EdgeType, Relation, Option<usize>)>,
    ) -> Result<Self, GraphError> {
        let (mut b, names) = (Self::builder(), self.schema().ntypes());
        for &t in ntypes {
            b = b.nodes(&names[t], self.node_counts()[t]);
        }
        let mut frames = vec![];
        for (etype, relation, from) in relations {
            frames.extend(from.map(|from| (etype.clone(), from)));
            b = b.relation(etype, relation);
        }
        let mut g = b.build()?;
        for &t in ntypes {
            g.nodes_mut(&names[t])?.copy_rows(&self.node_frames()[t])?;
        }
        for (etype, from) in frames {
            g.edges_mut(etype)?.copy_rows(&self.edge_frames()[from])?;
        }
        Ok(g)
    }

    /// The nodes in `extra` and the endpoints of `edges`, ascending.
    pub(crate) fn touched(
        &self,
        edges: &[OriginalIds],
        extra: &[Vec<u32>],
    ) -> Result<Vec<OriginalIds>, GraphError> {
        let mut keep: Vec<Vec<bool>> = self.node_counts().iter().map(|&n| vec![false; n]).collect();
        for (keep, ids) in keep.iter_mut().zip(extra) {
            ids.iter().for_each(|&v| keep[v as usize] = true);
        }
        for (t, ids) in edges.iter().enumerate() {
            let ((s, d), r) = (self.schema().endpoints(t), self.in_memory(t)?);
            for e in ids.iter() {
                keep[s][r.src()[e as usize] as usize] = true;
                keep[d][r.dst()[e as usize] as usize] = true;
            }
        }
        Ok(keep.iter().map(|k| OriginalIds::marked(k)).collect())
    }
}
