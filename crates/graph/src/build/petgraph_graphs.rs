//! Converts from and to `petgraph` graphs.

use petgraph::graph::DiGraph;
use petgraph::visit::{EdgeRef, GraphProp, IntoEdgeReferences, NodeCompactIndexable};

use crate::graph::Graph;
use crate::graph::{ONE_NODE_TYPE, ONE_RELATION};
use burn_gnn_structure::{EdgeKey, GraphError};

impl Graph {
    /// Converts a `petgraph` graph to a homogeneous graph. Node `i` is the node of index `i`, and edge `j` is the `j`-th
    /// edge of `edge_references`. For an undirected graph, the reverse edges follow (none for self loops). Accepts any graph
    /// with compact indices, such as `Graph`, `GraphMap` and `Csr`. Weights are ignored, as they can have any type.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let triangle = petgraph::graph::UnGraph::<(), ()>::from_edges([(0, 1), (1, 2), (2, 0)]);
    /// let g = Graph::from_petgraph(&triangle)?;
    /// assert_eq!(g.relation("_E")?.src(), [0, 1, 2, 1, 2, 0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::TooLarge`] for more nodes or edges than a relation can number.
    pub fn from_petgraph<G: GraphProp + IntoEdgeReferences + NodeCompactIndexable>(
        graph: G,
    ) -> Result<Self, GraphError> {
        let (mut src, mut dst) = (vec![], vec![]);
        for e in graph.edge_references() {
            src.push(graph.to_index(e.source()) as i64);
            dst.push(graph.to_index(e.target()) as i64);
        }
        let edges = (ONE_NODE_TYPE, ONE_RELATION, ONE_NODE_TYPE);
        let out = Self::builder()
            .nodes(ONE_NODE_TYPE, graph.node_count())
            .edges_i64(edges, src, dst)
            .build()?;
        if graph.is_directed() { Ok(out) } else { out.add_reverse_edges(ONE_RELATION) }
    }

    /// Converts the edges of one type to a directed `petgraph` graph. Indices equal the ids in this graph; node and edge
    /// weights are these ids.
    ///
    /// For an edge type between different node types, convert the graph first by
    /// [`to_homogeneous`](Self::to_homogeneous).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use petgraph::{algo::dijkstra, graph::NodeIndex};
    /// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?.to_petgraph("_E")?;
    /// assert_eq!(dijkstra(&g, NodeIndex::new(0), None, |_| 1)[&NodeIndex::new(2)], 2);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown or ambiguous type; [`GraphError::Bipartite`] for different source and destination node types.
    pub fn to_petgraph(&self, etype: impl EdgeKey) -> Result<DiGraph<u32, u32>, GraphError> {
        let r = self.in_memory(self.one_node_type(etype, "a graph of `petgraph`")?)?;
        let mut out = DiGraph::with_capacity(r.num_src(), r.num_edges());
        for v in 0..r.num_src() as u32 {
            out.add_node(v);
        }
        for (e, (&u, &v)) in r.src().iter().zip(r.dst()).enumerate() {
            out.add_edge(u.into(), v.into(), e as u32);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petgraph::csr::Csr;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_and_back(n in 1u32..9, edges in prop::collection::vec((0u32..9, 0u32..9), 0..30)) {
            let (src, dst): (Vec<u32>, Vec<u32>) = edges.iter().map(|&(u, v)| (u % n, v % n)).unzip();
            let g = Graph::homogeneous(n as usize, src.clone(), dst.clone()).unwrap();
            let p = g.to_petgraph("_E").unwrap();
            prop_assert_eq!((p.node_count(), p.edge_count()), (n as usize, src.len()));
            for (i, e) in p.edge_references().enumerate() {
                prop_assert_eq!((*e.weight() as usize, e.source().index() as u32, e.target().index() as u32), (i, src[i], dst[i]));
            }
            let back = Graph::from_petgraph(&p).unwrap();
            prop_assert_eq!(back.relations(), g.relations());
            // Undirected: the graph that `add_reverse_edges` makes.
            let both = Graph::from_petgraph(&p.into_edge_type::<petgraph::Undirected>()).unwrap();
            let expected = g.add_reverse_edges("_E").unwrap();
            prop_assert_eq!(both.relations(), expected.relations());
        }
    }

    #[test]
    fn other_kinds_and_refusals() {
        let csr = Csr::<(), ()>::from_sorted_edges(&[(0, 2), (2, 1)]).unwrap();
        let g = Graph::from_petgraph(&csr).unwrap();
        assert_eq!(
            (g.node_counts(), g.relations()[0].src(), g.relations()[0].dst()),
            (&[3][..], &[0, 2][..], &[2, 1][..])
        );
        let g = Graph::builder().edges(("a", "r", "b"), vec![0], vec![0]).build().unwrap();
        assert!(matches!(g.to_petgraph("r"), Err(GraphError::Bipartite { .. })));
        assert!(matches!(g.to_petgraph("x"), Err(GraphError::UnknownEdgeType { .. })));
    }
}
