//! Graphs with a name, for tables of tests.

use std::ops::Range;

use burn_gnn_graph::Relation;
use proptest::prelude::*;

pub(crate) fn relation(num_src: usize, num_dst: usize, edges: &[(u32, u32)]) -> Relation {
    let (src, dst) = edges.iter().copied().unzip();
    Relation::from_coo(num_src, num_dst, src, dst).unwrap()
}

/// Self loops, parallel edges, a source and a destination without edges, edges not sorted.
pub(crate) fn small() -> Relation {
    relation(5, 4, &[(0, 1), (4, 0), (1, 1), (1, 1), (2, 3), (0, 0), (4, 3), (2, 1)])
}

pub(crate) fn named() -> Vec<(&'static str, Relation)> {
    vec![
        ("small", small()),
        ("sorted", relation(3, 3, &[(2, 0), (1, 0), (0, 1), (0, 1), (2, 2)])),
        ("one node", relation(1, 1, &[(0, 0), (0, 0)])),
        ("no edges", relation(3, 2, &[])),
        ("no sources", relation(0, 2, &[])),
        ("no destinations", relation(2, 0, &[])),
        ("star", relation(40, 2, &(0..40).map(|u| (u, 1)).collect::<Vec<_>>())),
    ]
}

/// `num_edges` edges, degrees skewed by `skew` (1 is uniform).
pub(crate) fn random(num_src: usize, num_dst: usize, num_edges: usize, skew: f64) -> Relation {
    let stream = burn_gnn_ops::Stream::new(5, "graph", 0);
    let end = |e: u64, side: u64, n: usize| {
        ((stream.uniform(e, side).powf(skew) * n as f64) as u32).min(n as u32 - 1)
    };
    let edges: Vec<_> =
        (0..num_edges as u64).map(|e| (end(e, 0, num_src), end(e, 1, num_dst))).collect();
    relation(num_src, num_dst, &edges)
}

/// A third of the edges end in node 0: skewed degrees, parallel edges and, where both sides have as many nodes, self
/// loops.
pub(crate) fn any(edges: Range<usize>) -> impl Strategy<Value = Relation> {
    (1usize..9, 1usize..9, proptest::bool::ANY).prop_flat_map(move |(a, b, square)| {
        let b = if square { a } else { b };
        let edge = (0..a as u32, prop_oneof![1 => Just(0), 2 => 0..b as u32]);
        proptest::collection::vec(edge, edges.clone()).prop_map(move |edges| relation(a, b, &edges))
    })
}
