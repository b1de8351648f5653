//! Defines `GraphBuilder`: validates node counts and edges, and builds a graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn_gnn_structure::internal::{check_len, check_limit};

use crate::graph::Graph;
use crate::graph::{ONE_NODE_TYPE, ONE_RELATION};
use burn_gnn_structure::{EdgeType, GlobalIds, GraphError, Relation, Schema};

/// Collects node counts and edges; see [`Graph::builder`].
#[derive(Debug, Default)]
pub struct GraphBuilder {
    nodes: Vec<(String, usize)>,
    edges: Vec<(EdgeType, Edges)>,
    edge_ids: Vec<(EdgeType, Vec<u64>)>,
}

#[derive(Debug)]
enum Edges {
    U32(Vec<u32>, Vec<u32>),
    I64(Vec<i64>, Vec<i64>),
    Ready(Relation),
}

impl GraphBuilder {
    /// Adds a node type with `count` nodes.
    #[must_use]
    pub fn nodes(mut self, ntype: impl Into<String>, count: usize) -> Self {
        self.nodes.push((ntype.into(), count));
        self
    }
    /// Adds an edge type with its edges; entry `i` of the lists is edge `i`.
    #[must_use]
    pub fn edges(mut self, etype: impl Into<EdgeType>, src: Vec<u32>, dst: Vec<u32>) -> Self {
        self.edges.push((etype.into(), Edges::U32(src, dst)));
        self
    }
    /// [`edges`](Self::edges) from signed 64-bit ids.
    #[must_use]
    pub fn edges_i64(mut self, etype: impl Into<EdgeType>, src: Vec<i64>, dst: Vec<i64>) -> Self {
        self.edges.push((etype.into(), Edges::I64(src, dst)));
        self
    }
    /// Adds an edge type with an existing relation.
    #[must_use]
    pub fn relation(mut self, etype: impl Into<EdgeType>, relation: Relation) -> Self {
        self.edges.push((etype.into(), Edges::Ready(relation)));
        self
    }
    /// Sets user-defined ids of the edges of a type: entry `i` is the id of edge `i`. Ids must be distinct. They are stored
    /// in [`Frame::global_ids`](crate::Frame::global_ids) of the edges, for graphs that are parts of another graph, or whose
    /// features are stored by other ids. All methods of this library still number edges `0..num_edges`.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::builder()
    ///     .edges(("a", "r", "a"), vec![0, 1, 1], vec![1, 0, 2])
    ///     .edge_ids(("a", "r", "a"), vec![1 << 40, 7, u64::MAX])
    ///     .build()?;
    /// let ids = g.edges("r")?.global_ids().unwrap();
    /// assert_eq!((ids.as_slice()[2], ids.position(7)), (u64::MAX, Some(1)));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    #[must_use]
    pub fn edge_ids(mut self, etype: impl Into<EdgeType>, ids: impl Into<Vec<u64>>) -> Self {
        self.edge_ids.push((etype.into(), ids.into()));
        self
    }
    /// Validates everything and builds the graph. A node type that occurs only in edges gets `largest id + 1` nodes.
    ///
    /// # Errors
    /// A repeated type; an invalid name; an id out of range; lists of different lengths; [edge ids](Self::edge_ids) of a type
    /// without edges, or repeated ones; [`GraphError::TooLarge`] for more than `u32::MAX - 1` nodes of a type or edges of a
    /// relation.
    pub fn build(self) -> Result<Graph, GraphError> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (name, n) in self.nodes {
            if counts.insert(name.clone(), n).is_some() {
                return Err(GraphError::Duplicate { what: "node type", name });
            }
        }
        let mut inferred: BTreeMap<&str, usize> = BTreeMap::new();
        for (t, e) in &self.edges {
            let top = |ids: &[u32]| ids.iter().max().map_or(0, |&m| m as usize + 1);
            let top_i64 =
                |ids: &[i64]| ids.iter().max().map_or(0, |&m| m.saturating_add(1).max(0) as usize);
            let (s, d) = match e {
                Edges::U32(s, d) => (top(s), top(d)),
                Edges::I64(s, d) => (top_i64(s), top_i64(d)),
                Edges::Ready(r) => (r.num_src(), r.num_dst()),
            };
            for (name, n) in [(t.src.as_str(), s), (t.dst.as_str(), d)] {
                let c = inferred.entry(name).or_default();
                *c = (*c).max(n);
            }
        }
        for (name, n) in inferred {
            counts.entry(name.to_owned()).or_insert(n);
        }
        // Also for types without relations: node ids are `u32` everywhere, and sums of counts must not overflow.
        for (name, &n) in &counts {
            check_limit("nodes", n as u64)
                .map_err(|e| e.in_relation(&format!("node type {name}")))?;
        }
        let schema = Schema::new(
            counts.keys().cloned().collect(),
            self.edges.iter().map(|e| e.0.clone()).collect(),
        )?;
        let num_nodes: Vec<usize> = counts.into_values().collect();
        let mut relations: Vec<Option<Relation>> = vec![None; schema.etypes().len()];
        for (t, e) in self.edges {
            let name = t.to_string();
            let i = schema.etype(&t)?;
            let (s, d) = schema.endpoints(i);
            let (s, d) = (num_nodes[s], num_nodes[d]);
            let r = match e {
                Edges::U32(src, dst) => Relation::from_coo(s, d, src, dst),
                Edges::I64(src, dst) => Relation::from_coo_i64(s, d, &src, &dst),
                Edges::Ready(r) => check_len("num_src", "the node type's count", s, r.num_src())
                    .and_then(|()| check_len("num_dst", "the node type's count", d, r.num_dst()))
                    .map(|()| r),
            };
            relations[i] = Some(r.map_err(|e| e.in_relation(&name))?);
        }
        let mut graph =
            Graph::assemble(Arc::new(schema), num_nodes, relations.into_iter().flatten().collect());
        for (t, ids) in self.edge_ids {
            let ids = GlobalIds::new(ids)?;
            let frame = graph.edges_mut(&t)?;
            if frame.global_ids().is_some() {
                return Err(GraphError::Duplicate {
                    what: "list of ids of edge type",
                    name: t.to_string(),
                });
            }
            frame.set_global_ids(ids)?;
        }
        Ok(graph)
    }
}

impl Graph {
    /// Starts a builder for a graph of any number of types.
    pub fn builder() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Builds a graph with one node type `_N` and one edge type `_E`.
    ///
    /// # Errors
    /// As [`Relation::from_coo`].
    pub fn homogeneous(num_nodes: usize, src: Vec<u32>, dst: Vec<u32>) -> Result<Self, GraphError> {
        Self::builder()
            .nodes(ONE_NODE_TYPE, num_nodes)
            .edges((ONE_NODE_TYPE, ONE_RELATION, ONE_NODE_TYPE), src, dst)
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_building_does_not_matter() {
        let a = Graph::builder()
            .nodes("b", 2)
            .nodes("a", 3)
            .edges(("b", "r", "a"), vec![1], vec![2])
            .edges(("a", "s", "b"), vec![], vec![]);
        let b = Graph::builder()
            .edges(("a", "s", "b"), vec![], vec![])
            .nodes("a", 3)
            .edges(("b", "r", "a"), vec![1], vec![2])
            .nodes("b", 2);
        let (a, b) = (a.build().unwrap(), b.build().unwrap());
        assert_eq!((a.schema(), a.node_counts()), (b.schema(), b.node_counts()));
        assert_eq!((a.total_nodes(), a.total_edges()), (5, 1));
        assert_eq!(a.relation("r").unwrap().src(), [1]);
    }

    #[test]
    fn isolated_nodes_empty_relations_and_empty_types() {
        let g = Graph::builder()
            .nodes("lonely", 4)
            .nodes("none", 0)
            .edges(("none", "r", "lonely"), vec![], vec![])
            .build()
            .unwrap();
        assert_eq!(
            (
                g.num_nodes("lonely").unwrap(),
                g.num_nodes("none").unwrap(),
                g.num_edges("r").unwrap()
            ),
            (4, 0, 0)
        );
        assert_eq!(g.relation("r").unwrap().csc().indptr(), [0; 5]);
        let nothing = Graph::builder().build().unwrap();
        assert_eq!((nothing.total_nodes(), nothing.total_edges()), (0, 0));
    }

    #[test]
    fn counts_are_inferred_where_only_edges_name_a_type() {
        let g = Graph::builder()
            .edges(("a", "r", "b"), vec![4, 0], vec![0, 1])
            .edges_i64(("b", "s", "c"), vec![6], vec![2])
            .build()
            .unwrap();
        assert_eq!(g.node_counts(), [5, 7, 3]);
        assert!(
            Graph::builder().edges_i64(("a", "r", "a"), vec![i64::MAX], vec![0]).build().is_err()
        );
        assert!(Graph::builder().edges_i64(("a", "r", "a"), vec![-1], vec![0]).build().is_err());
    }

    #[test]
    fn too_many_nodes_of_any_type() {
        for n in [u32::MAX as usize, usize::MAX] {
            for b in [
                Graph::builder().nodes("a", 1).nodes("lonely", n),
                Graph::builder().nodes("lonely", n).nodes("z", usize::MAX),
            ] {
                let e = b.build().unwrap_err();
                assert!(
                    matches!(&e, GraphError::TooLarge { what: "nodes", count, .. } if *count == n as u64),
                    "{e:?}"
                );
                assert!(e.to_string().contains("node type lonely"), "{e}");
            }
            let used = Graph::builder()
                .nodes("a", n)
                .edges(("a", "r", "a"), vec![0], vec![0])
                .build()
                .unwrap_err();
            assert!(matches!(used, GraphError::TooLarge { what: "nodes", .. }), "{used:?}");
        }
        let most = u32::MAX as usize - 1;
        assert_eq!(
            Graph::builder().nodes("a", most).nodes("b", most).build().unwrap().total_nodes(),
            2 * most
        );
    }

    #[test]
    fn refusals() {
        let twice = Graph::builder().nodes("a", 1).nodes("a", 2).build().unwrap_err();
        assert!(matches!(twice, GraphError::Duplicate { what: "node type", .. }));
        let twice = Graph::builder()
            .edges(("a", "r", "a"), vec![], vec![])
            .edges(("a", "r", "a"), vec![], vec![])
            .build()
            .unwrap_err();
        assert_eq!(twice.to_string(), "edge type `a:r:a` was given twice; give it once");
        let far = Graph::builder()
            .nodes("a", 2)
            .edges(("a", "r", "a"), vec![0], vec![2])
            .build()
            .unwrap_err();
        assert_eq!(
            far.to_string(),
            "relation `a:r:a`, position 0: `dst` must lie in 0..2, got 2; number nodes from 0, or give the graph more nodes"
        );
        let ready = Relation::from_coo(3, 2, vec![], vec![]).unwrap();
        let e =
            Graph::builder().nodes("a", 2).relation(("a", "r", "a"), ready).build().unwrap_err();
        assert_eq!(
            e.to_string(),
            "`num_src` of relation `a:r:a`: expected length 2 (the node type's count), got 3; give 2 entries"
        );
        let g = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
        assert!(matches!(g.num_nodes("x"), Err(GraphError::UnknownNodeType { .. })));
        assert!(matches!(g.relation("x"), Err(GraphError::UnknownEdgeType { .. })));
        assert!(matches!(g.relation(7), Err(GraphError::UnknownEdgeType { .. })));
    }

    /// Edges of any layout, by position; refused for types without edges and for other lengths.
    #[test]
    fn ids_of_edges() {
        let etype = ("a", "r", "a");
        let ids = vec![9u64, u64::MAX, 1 << 33];
        let by_source = Relation::from_csr(3, 3, &[0u64, 1, 1, 3], &[1i64, 0, 2], None).unwrap();
        let g = Graph::builder()
            .relation(etype, by_source)
            .edge_ids(etype, ids.clone())
            .build()
            .unwrap();
        let found = g.edges("r").unwrap().global_ids().unwrap();
        assert_eq!((found.as_slice(), found.position(1 << 33)), (&ids[..], Some(2)));
        // Samples and subgraphs name positions, which lead to the ids.
        let sub = g.edge_subgraph([("r", [2, 0])], crate::Relabel::Yes).unwrap();
        assert_eq!(sub.graph.edges("r").unwrap().global_ids().unwrap().as_slice(), [1 << 33, 9]);
        let build = |ids: Vec<u64>, of: (&str, &str, &str)| {
            Graph::builder()
                .edges(etype, vec![0, 2, 2], vec![1, 0, 2])
                .edge_ids(of, ids)
                .build()
                .map(drop)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            build(vec![1, 2], etype),
            "edges of `a:r:a`: global ids: expected length 3 (one row per node or edge), got 2; give 3 entries"
        );
        assert!(build(vec![1, 2, 1], etype).contains("global id 1 was given twice"));
        assert!(build(vec![1, 2, 3], ("a", "q", "a")).contains("unknown edge type `a:q:a`"));
        let twice = Graph::builder()
            .edges(etype, vec![0], vec![0])
            .edge_ids(etype, [1])
            .edge_ids(etype, [2])
            .build()
            .unwrap_err();
        assert!(matches!(twice, GraphError::Duplicate { .. }), "{twice}");
    }
}
