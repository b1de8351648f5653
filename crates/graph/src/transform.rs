//! Changes of structure: reversed relations, self loops.

use crate::{EdgeKey, EdgeType, Graph, GraphError, Relation};

impl Relation {
    /// The relation with one edge `v -> v` per node appended after the existing edges (also where a
    /// node has a self loop already).
    ///
    /// # Errors
    /// `num_src != num_dst`, or too many edges.
    pub fn with_self_loops(&self) -> Result<Self, GraphError> {
        if self.num_src() != self.num_dst() {
            return Err(GraphError::Bipartite { relation: "(unnamed)".into(), op: "adding self loops" });
        }
        let extra = 0..self.num_src() as u32;
        let add = |ids: &[u32]| ids.iter().copied().chain(extra.clone()).collect();
        Self::from_coo(self.num_src(), self.num_dst(), add(self.src()), add(self.dst()))
    }

    /// The relation without its self loops, and the ids of the edges that stay.
    pub fn without_self_loops(&self) -> (Self, Vec<u32>) {
        let kept: Vec<u32> = (0..self.num_edges() as u32).filter(|&e| self.src()[e as usize] != self.dst()[e as usize]).collect();
        let pick = |ids: &[u32]| kept.iter().map(|&e| ids[e as usize]).collect();
        let r = Self::from_coo(self.num_src(), self.num_dst(), pick(self.src()), pick(self.dst()));
        // A subset of checked edges cannot be out of range.
        (r.unwrap_or_else(|_| self.clone()), kept)
    }
}

impl Graph {
    /// The same nodes and node features with every edge type turned round, under the same name; edge
    /// ids and edge features stay.
    ///
    /// # Errors
    /// None for a graph that was built: turned types differ as the given ones do.
    pub fn reverse(&self) -> Result<Self, GraphError> {
        let turned = self.schema().etypes().iter().map(|t| EdgeType::new(&*t.dst, &*t.relation, &*t.src)).collect();
        self.with_relations(
            turned,
            self.relations().iter().map(Relation::reverse).collect(),
            (0..self.relations().len()).map(Some).collect(),
        )
    }

    /// Adds, for every edge type `a:r:b`, its inverse `b:r{suffix}:a` (edge ids kept, edge features not
    /// copied). What R-GCN and other relational models need where a data set stores one direction only.
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
    /// A name made this way exists already.
    pub fn with_inverse_relations(&self, suffix: &str) -> Result<Self, GraphError> {
        let (mut types, mut relations) = (self.schema().etypes().to_vec(), self.relations().to_vec());
        let mut frames: Vec<Option<usize>> = (0..types.len()).map(Some).collect();
        for i in 0..frames.len() {
            let t = &types[i];
            types.push(EdgeType::new(&*t.dst, format!("{}{suffix}", t.relation), &*t.src));
            relations.push(relations[i].reverse());
            frames.push(None);
        }
        self.with_relations(types, relations, frames)
    }

    /// Appends one self loop per node to an edge type; its edge features are dropped, since the new
    /// edges have none.
    ///
    /// # Errors
    /// Unknown type, or different node types at both ends.
    pub fn with_self_loops(&self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let i = self.schema().etype(etype)?;
        let name = self.schema().etypes()[i].to_string();
        let (s, d) = self.schema().ends(i);
        if s != d {
            return Err(GraphError::Bipartite { relation: name, op: "adding self loops" });
        }
        let mut relations = self.relations().to_vec();
        relations[i] = relations[i].with_self_loops().map_err(|e| e.in_relation(&name))?;
        let frames = (0..relations.len()).map(|j| (j != i).then_some(j)).collect();
        self.with_relations(self.schema().etypes().to_vec(), relations, frames)
    }

    /// Same nodes and node frames, new relations; `frames[i]` is the edge frame of this graph that
    /// relation `i` keeps.
    fn with_relations(&self, types: Vec<EdgeType>, relations: Vec<Relation>, frames: Vec<Option<usize>>) -> Result<Self, GraphError> {
        let mut b = Self::builder();
        for (t, &n) in self.schema().ntypes().iter().zip(self.node_counts()) {
            b = b.nodes(t, n);
        }
        for (t, r) in types.iter().zip(relations) {
            b = b.relation(t.clone(), r);
        }
        let mut g = b.build()?;
        for (t, frame) in self.schema().ntypes().iter().zip(self.node_frames()) {
            for (name, c) in frame.columns() {
                g.nodes_mut(t)?.insert_column(name, c.clone())?;
            }
        }
        for (t, from) in types.iter().zip(frames) {
            let Some(from) = from else { continue };
            for (name, c) in self.edge_frames()[from].columns() {
                g.edges_mut(t)?.insert_column(name, c.clone())?;
            }
        }
        Ok(g)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Tensor};

    fn graph() -> Graph {
        let device = Device::flex();
        let b = Graph::builder().nodes("a", 3).nodes("b", 2);
        let mut g = b.edges(("a", "r", "b"), vec![0, 2], vec![1, 1]).edges(("a", "s", "a"), vec![0, 1, 2], vec![1, 1, 0]).build().unwrap();
        g.nodes_mut("a").unwrap().insert("h", Tensor::<1>::from_data([1.0f32, 2.0, 3.0], &device)).unwrap();
        g.edges_mut("r").unwrap().insert("w", Tensor::<1>::from_data([0.5f32, 0.25], &device)).unwrap();
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
        assert_eq!((r.relation("r").unwrap().src(), r.relation("r").unwrap().dst()), (&[1, 1][..], &[0, 2][..]));
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
        assert_eq!(g.edges("r-inv").unwrap().columns().count(), 0);
        assert!(matches!(graph().with_inverse_relations("__x"), Err(GraphError::BadName { .. })));
        let clash = Graph::builder().edges(("a", "r", "a"), vec![], vec![]).edges(("a", "r-inv", "a"), vec![], vec![]).build().unwrap();
        assert!(matches!(clash.with_inverse_relations("-inv"), Err(GraphError::Duplicate { .. })));
    }

    #[test]
    fn self_loops() {
        let g = graph().with_self_loops("s").unwrap();
        let s = g.relation("s").unwrap();
        assert_eq!((s.src(), s.dst()), (&[0, 1, 2, 0, 1, 2][..], &[1, 1, 0, 0, 1, 2][..]));
        assert_eq!(g.edges("s").unwrap().columns().count(), 0, "the new edges have no weights");
        assert_eq!(weights(&g, "r"), [0.5, 0.25]);
        let (without, kept) = s.without_self_loops();
        assert_eq!((without.src(), without.dst(), &*kept), (&[0, 2][..], &[1, 0][..], &[0, 2][..]));
        assert_eq!((without.num_src(), without.num_dst()), (3, 3));
    }

    #[test]
    fn a_bipartite_relation_has_no_self_loops() {
        let e = graph().with_self_loops("r").unwrap_err();
        assert!(matches!(e, GraphError::Bipartite { .. }));
        assert_eq!(e.to_string(), "relation `a:r:b`: adding self loops needs the same node type at both ends");
        let block = Relation::from_coo(3, 2, vec![], vec![]).unwrap();
        assert!(matches!(block.with_self_loops(), Err(GraphError::Bipartite { .. })));
    }
}
