//! Named and random relations for tests.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_structure::{EdgeReader, GraphError, Relation, Stream};
use proptest::prelude::*;

/// Creates a relation from edges `(src, dst)`.
pub fn relation(num_src: usize, num_dst: usize, edges: &[(u32, u32)]) -> Relation {
    let (src, dst) = edges.iter().copied().unzip();
    Relation::from_coo(num_src, num_dst, src, dst).expect("edges between nodes")
}

/// A relation with self loops, parallel edges, a source and a destination without edges, and
/// unsorted edges.
pub fn small() -> Relation {
    relation(5, 4, &[(0, 1), (4, 0), (1, 1), (1, 1), (2, 3), (0, 0), (4, 3), (2, 1)])
}

/// Edge cases that every operator is tested on, by name.
pub fn named() -> Vec<(&'static str, Relation)> {
    vec![
        ("small", small()),
        ("sorted", relation(3, 3, &[(2, 0), (1, 0), (0, 1), (0, 1), (2, 2)])),
        ("one node", relation(1, 1, &[(0, 0)])),
        ("one node, two edges", relation(1, 1, &[(0, 0), (0, 0)])),
        ("no edges", relation(4, 3, &[])),
        ("no sources", relation(0, 2, &[])),
        ("no destinations", relation(2, 0, &[])),
        ("no nodes", relation(0, 0, &[])),
        ("self loops", relation(3, 3, &[(0, 0), (1, 1), (2, 2), (0, 1)])),
        ("parallel edges", relation(2, 2, &[(0, 1), (1, 1), (0, 1), (0, 1), (1, 0)])),
        ("degree 0", relation(5, 5, &[(4, 0), (0, 4), (4, 4)])),
        ("bipartite", random(7, 3, 20, 1.5)),
        ("square", random(12, 12, 60, 2.0)),
        ("into one", relation(40, 2, &(0..40).map(|u| (u, 1)).collect::<Vec<_>>())),
    ]
}

/// A random relation of `num_edges` edges whose degrees are skewed by `skew` (1 is uniform).
pub fn random(num_src: usize, num_dst: usize, num_edges: usize, skew: f64) -> Relation {
    let stream = Stream::new(5, "graph", 0);
    let end = |e: u64, side: u64, n: usize| {
        ((stream.uniform(e, side).powf(skew) * n as f64) as u32).min(n as u32 - 1)
    };
    let edges: Vec<_> =
        (0..num_edges as u64).map(|e| (end(e, 0, num_src), end(e, 1, num_dst))).collect();
    relation(num_src, num_dst, &edges)
}

/// A random relation in which a third of the edges end in node 0 and a third start there.
pub fn with_hub(num_src: usize, num_dst: usize, num_edges: usize, seed: u64) -> Relation {
    let stream = Stream::new(seed, "hub", 0);
    let end = |e: u64, side: u64, n: usize| match stream.uniform(e, side) * 1.5 - 0.5 {
        x if x < 0.0 => 0,
        x => (x * n as f64) as u32,
    };
    let edges: Vec<_> =
        (0..num_edges as u64).map(|e| (end(e, 0, num_src), end(e, 1, num_dst))).collect();
    relation(num_src, num_dst, &edges)
}

/// A star: an edge from every leaf to node 0, and an edge back.
pub fn star(leaves: usize) -> Relation {
    let to = (1..=leaves as u32).map(|i| (i, 0));
    let edges: Vec<_> = to.clone().chain(to.map(|(i, _)| (0, i))).collect();
    relation(leaves + 1, leaves + 1, &edges)
}

/// A strategy for random relations in which a third of the edges end in node 0. They have skewed
/// degrees, parallel edges and, if both node types have the same size, self loops.
pub fn any_relation(edges: Range<usize>) -> impl Strategy<Value = Relation> {
    (1usize..9, 1usize..9, any::<bool>()).prop_flat_map(move |(a, b, square)| {
        let b = if square { a } else { b };
        let edge = (0..a as u32, prop_oneof![1 => Just(0), 2 => 0..b as u32]);
        proptest::collection::vec(edge, edges.clone()).prop_map(move |edges| relation(a, b, &edges))
    })
}

/// A relation of `num_edges` edges between `nodes` nodes, stored in a file that cannot be read.
pub fn unreadable(nodes: usize, num_edges: u64) -> Relation {
    Relation::from_stored_csc(Arc::new(Unreadable { nodes, num_edges })).expect("small counts")
}

/// Edge reader that fails, like a file on a broken disk.
#[derive(Debug)]
struct Unreadable {
    nodes: usize,
    num_edges: u64,
}

impl Unreadable {
    fn error<T>() -> Result<T, GraphError> {
        let found = "the disk is broken".to_owned();
        Err(GraphError::Layout { relation: String::new(), layout: "csc", found })
    }
}

impl EdgeReader for Unreadable {
    fn num_src(&self) -> usize {
        self.nodes
    }
    fn num_dst(&self) -> usize {
        self.nodes
    }
    fn num_edges(&self) -> u64 {
        self.num_edges
    }
    fn rows(&self, _: &[u32], _: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
        Self::error()
    }
    fn sources(&self, _: &[u64], _: &mut [u32]) -> Result<(), GraphError> {
        Self::error()
    }
    fn sources_of(&self, _: Range<u64>, _: &mut Vec<u32>) -> Result<(), GraphError> {
        Self::error()
    }
    fn edge_ids(&self, _: &[u64], _: &mut [u64]) -> Result<(), GraphError> {
        Self::error()
    }
}
