//! Random graphs: zero degrees, self loops, parallel edges, one node, empty relations.

use burn_gnn_graph::Graph;
use proptest::prelude::*;

/// Edges between nodes of two types; a third of them end in node 0, so degrees are skewed and edges parallel.
fn edges(
    sources: usize,
    destinations: usize,
    most: usize,
) -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    let dst = prop_oneof![1 => Just(0), 2 => 0..destinations as u32];
    proptest::collection::vec((0..sources as u32, dst), 0..most)
        .prop_map(|edges| edges.into_iter().unzip())
}

/// One type, one node at least.
pub(crate) fn homogeneous() -> impl Strategy<Value = Graph> {
    (1usize..9).prop_flat_map(|n| {
        edges(n, n, 20).prop_map(move |(src, dst)| Graph::homogeneous(n, src, dst).unwrap())
    })
}

/// Three types; a relation between two, one inside a type, one back that is often empty, and one that always is.
pub(crate) fn hetero() -> impl Strategy<Value = Graph> {
    (1usize..6, 1usize..6, 1usize..4).prop_flat_map(|(a, b, c)| {
        (edges(a, b, 12), edges(a, a, 12), edges(b, a, 2)).prop_map(move |(r, s, t)| {
            Graph::builder()
                .nodes("a", a)
                .nodes("b", b)
                .nodes("c", c)
                .edges(("a", "r", "b"), r.0, r.1)
                .edges(("a", "s", "a"), s.0, s.1)
                .edges(("b", "t", "a"), t.0, t.1)
                .edges(("c", "u", "b"), vec![], vec![])
                .build()
                .unwrap()
        })
    })
}
