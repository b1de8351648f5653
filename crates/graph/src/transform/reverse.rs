//! Reverses edge types, and adds inverse relations and reverse edges.

use crate::graph::Graph;
use burn_gnn_structure::internal::check_counts;
use burn_gnn_structure::{EdgeKey, EdgeType, GraphError, Relation};

impl Graph {
    /// Reverses every edge type under the same relation name. Nodes, edge ids and features are unchanged.
    ///
    /// # Errors
    /// None in practice: reversed edge types are distinct if the edge types are.
    pub fn reverse(&self) -> Result<Self, GraphError> {
        let reversed = |(i, t): (usize, &EdgeType)| {
            (EdgeType::new(&*t.dst, &*t.relation, &*t.src), self.relations()[i].reverse(), Some(i))
        };
        self.rebuild(
            &self.all_ntypes(),
            self.schema().etypes().iter().enumerate().map(reversed).collect(),
        )
    }

    /// Adds the inverse edge type `b:r{suffix}:a` of every edge type `a:r:b`, with the same edge ids and columns (tensors are
    /// shared). R-GCN and other relational models need it for data sets that store only one direction.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::builder().nodes("a", 2).nodes("b", 1).edges(("a", "r", "b"), vec![1], vec![0]).build()?;
    /// let g = g.with_inverse_relations("-inv")?;
    /// assert_eq!(g.relation("r-inv")?.dst(), [1]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An edge type of the new name exists already.
    pub fn with_inverse_relations(&self, suffix: &str) -> Result<Self, GraphError> {
        let mut relations = vec![];
        for (i, (t, r)) in self.schema().etypes().iter().zip(self.relations()).enumerate() {
            relations.push((t.clone(), r.clone(), Some(i)));
            relations.push((
                EdgeType::new(&*t.dst, format!("{}{suffix}", t.relation), &*t.src),
                r.reverse(),
                Some(i),
            ));
        }
        self.rebuild(&self.all_ntypes(), relations)
    }

    /// Appends the reverse `v -> u` of every edge `u -> v` of a type, except self loops, in order of edge ids. Existing ids do
    /// not change; a reverse edge gets the features of its edge.
    ///
    /// For edge types between different node types see [`with_inverse_relations`](Self::with_inverse_relations); for at most
    /// one edge per pair of nodes see [`to_bidirected`](Self::to_bidirected).
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; more than `u32::MAX - 1` edges; edges in a file that
    /// cannot be read.
    pub fn add_reverse_edges(&self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let t = self.one_node_type(etype, "adding reverse edges")?;
        let (relation, origin) =
            with_reverse_edges(self.in_memory(t)?).map_err(|e| self.in_etype(t, e))?;
        let mut g = self.with_relation(t, relation);
        for (name, c) in self.edge_frames()[t].columns() {
            g.edges_mut(t)?.insert_column(name, c.select(&origin))?;
        }
        g.edges_mut(t)?.take_lists(&self.edge_frames()[t], &origin)?;
        Ok(g)
    }

    fn all_ntypes(&self) -> Vec<usize> {
        (0..self.node_counts().len()).collect()
    }
}

/// Appends reverse edges; returns the relation, and the original edge of each of its edges.
pub(crate) fn with_reverse_edges(r: &Relation) -> Result<(Relation, Vec<u32>), GraphError> {
    let mut origin: Vec<u32> = (0..r.num_edges() as u32).collect();
    origin
        .extend((0..r.num_edges() as u32).filter(|&e| r.src()[e as usize] != r.dst()[e as usize]));
    check_counts(r.num_src(), r.num_dst(), origin.len())?;
    let endpoints = |first: &[u32], second: &[u32]| {
        let back = origin[r.num_edges()..].iter().map(|&e| second[e as usize]);
        first.iter().copied().chain(back).collect()
    };
    Ok((
        Relation::from_coo(
            r.num_src(),
            r.num_dst(),
            endpoints(r.src(), r.dst()),
            endpoints(r.dst(), r.src()),
        )?,
        origin,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Tensor};

    fn graph() -> Graph {
        let device = Device::flex();
        let b = Graph::builder().nodes("a", 3).nodes("b", 2);
        let mut g = b
            .edges(("a", "r", "b"), vec![0, 2], vec![1, 1])
            .edges(("a", "s", "a"), vec![0, 1, 2], vec![1, 1, 0])
            .build()
            .unwrap();
        g.nodes_mut("a")
            .unwrap()
            .insert("h", Tensor::<1>::from_data([1.0f32, 2.0, 3.0], &device))
            .unwrap();
        g.edges_mut("r")
            .unwrap()
            .insert("w", Tensor::<1>::from_data([0.5f32, 0.25], &device))
            .unwrap();
        g.edges_mut("s").unwrap().insert("w", Tensor::<1>::ones([3], &device)).unwrap();
        g
    }

    fn weights(g: &Graph, etype: &str) -> Vec<f32> {
        g.edges(etype).unwrap().get::<1>("w").unwrap().into_data().try_to_vec().unwrap()
    }

    #[test]
    fn reverse_twice_is_the_same_graph() {
        let g = graph();
        let r = g.reverse().unwrap();
        assert_eq!(r.schema().etypes()[1].to_string(), "b:r:a");
        assert_eq!(
            (r.relation("r").unwrap().src(), r.relation("r").unwrap().dst()),
            (&[1, 1][..], &[0, 2][..])
        );
        assert_eq!(weights(&r, "r"), [0.5, 0.25]);
        assert_eq!(r.nodes("a").unwrap().get::<1>("h").unwrap().dims(), [3]);
        let back = r.reverse().unwrap();
        assert_eq!(back.schema(), g.schema());
        for (x, y) in back.relations().iter().zip(g.relations()) {
            assert_eq!((x.src(), x.dst()), (y.src(), y.dst()));
        }
    }

    #[test]
    fn inverse_relations_are_added_once() {
        let g = graph().with_inverse_relations("-inv").unwrap();
        assert_eq!(g.schema().etypes().len(), 4);
        assert_eq!(g.relation(("b", "r-inv", "a")).unwrap().dst(), [0, 2]);
        assert_eq!(weights(&g, "r"), [0.5, 0.25]);
        assert_eq!(weights(&g, "r-inv"), [0.5, 0.25]);
        assert!(matches!(graph().with_inverse_relations("__x"), Err(GraphError::BadName { .. })));
        let clash = Graph::builder()
            .edges(("a", "r", "a"), vec![], vec![])
            .edges(("a", "r-inv", "a"), vec![], vec![])
            .build()
            .unwrap();
        assert!(matches!(clash.with_inverse_relations("-inv"), Err(GraphError::Duplicate { .. })));
    }

    #[test]
    fn reverse_edges_are_appended_with_their_features() {
        let mut g = graph();
        g.edges_mut("s")
            .unwrap()
            .insert("w", Tensor::<1>::from_data([1.0f32, 2.0, 3.0], &Device::flex()))
            .unwrap();
        let b = g.add_reverse_edges("s").unwrap();
        let s = b.relation("s").unwrap();
        assert_eq!((s.src(), s.dst()), (&[0, 1, 2, 1, 0][..], &[1, 1, 0, 0, 2][..]));
        assert_eq!(weights(&b, "s"), [1.0, 2.0, 3.0, 1.0, 3.0]);
        assert_eq!(weights(&b, "r"), [0.5, 0.25]);
        let e = g.add_reverse_edges("r").unwrap_err();
        assert_eq!(
            e.to_string(),
            "relation `a:r:b`: adding reverse edges needs the same source and destination node type; \
             choose an edge type between nodes of one type"
        );
    }
}
