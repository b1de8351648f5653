use std::collections::BTreeSet;

use burn::tensor::{Int, Tensor, TensorData};
use burn_gnn_graph::{Backtracking, Graph, GraphError};
use proptest::prelude::*;

use crate::random::{ENDS, NTYPES, SQUARE, case, check_rows, devices};

/// Metapaths that hold together, by edge type number.
const METAPATHS: [&[usize]; 7] =
    [&[0], &[1, 3], &[3, 1], &[0, 2, 0], &[3, 0, 1, 4], &[4, 5, 5], &[1, 4]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn line_graphs_join_edges_that_follow(c in case(), k in 0usize..3, back in any::<bool>()) {
        let t = SQUARE[k];
        let edges = &c.edges[t];
        let line = c.graph(&devices()[0]).line_graph(t, if back { Backtracking::Yes } else { Backtracking::No }).unwrap();
        let mut want = vec![];
        for (i, &(u, v)) in edges.iter().enumerate() {
            for (j, &(v2, w)) in edges.iter().enumerate() {
                if i != j && v == v2 && (back || u != w) {
                    want.push((i as u32, j as u32));
                }
            }
        }
        let r = &line.relations()[0];
        prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), want);
        prop_assert_eq!(line.node_counts(), &[edges.len()]);
        check_rows(&line.node_frames()[0], 10 + t, &c.all_edges()[t]);
    }

    /// Of an undirected graph, by all pairs of its edges.
    #[test]
    fn undirected_line_graphs_join_edges_that_meet(raw in prop::collection::vec((0u32..6, 0u32..6), 0..14)) {
        let pairs: Vec<(u32, u32)> = raw.iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
        // Each edge in both directions, in some order.
        let both: Vec<(u32, u32)> = pairs.iter().copied().chain(pairs.iter().rev().filter(|(u, v)| u != v).map(|&(u, v)| (v, u))).collect();
        let (src, dst) = both.iter().copied().unzip();
        let mut g = Graph::homogeneous(6, src, dst).unwrap();
        let ids: Vec<i64> = (0..both.len() as i64).collect();
        let n = ids.len();
        g.edges_mut("_E").unwrap().insert("id", Tensor::<1, Int>::from_data(TensorData::new(ids, [n]), &devices()[0])).unwrap();
        let (line, edges) = g.undirected_line_graph("_E").unwrap();
        prop_assert_eq!(&edges, &(0..pairs.len() as u32).collect::<Vec<_>>());
        let mut want = vec![];
        for (i, a) in pairs.iter().enumerate() {
            for (j, b) in pairs.iter().enumerate() {
                if i != j && (a.0 == b.0 || a.0 == b.1 || a.1 == b.0 || a.1 == b.1) {
                    want.push((i as u32, j as u32));
                }
            }
        }
        let r = &line.relations()[0];
        prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), want);
        let features = line.nodes("_N").unwrap().to_ints("id").unwrap();
        prop_assert_eq!(features, edges.iter().map(|&e| i64::from(e)).collect::<Vec<_>>());
    }

    #[test]
    fn metapaths_reach_what_paths_reach(c in case(), m in 0..METAPATHS.len()) {
        let path = METAPATHS[m];
        let mut want: BTreeSet<(u32, u32)> = c.edges[path[0]].iter().copied().collect();
        for &t in &path[1..] {
            want = want.iter().flat_map(|&(u, v)| c.edges[t].iter().filter(move |e| e.0 == v).map(move |e| (u, e.1))).collect();
        }
        let g = c.graph(&devices()[0]).metapath_reachable_graph(path).unwrap();
        let (s, d) = (ENDS[path[0]].0, ENDS[path[path.len() - 1]].1);
        let r = g.relation((NTYPES[s], "_E", NTYPES[d])).unwrap();
        prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<BTreeSet<_>>(), want.clone());
        prop_assert_eq!(r.num_edges(), want.len());
        for t in [s, d] {
            check_rows(g.nodes(NTYPES[t]).unwrap(), t, &c.all_nodes()[t]);
        }
        prop_assert_eq!(g.node_counts().len(), if s == d { 1 } else { 2 });
    }
}

#[test]
fn an_undirected_line_graph_needs_both_directions() {
    let one = Graph::homogeneous(3, vec![0, 1, 1], vec![1, 0, 2]).unwrap();
    let e = one.undirected_line_graph("_E").unwrap_err().to_string();
    assert!(
        e.contains("`add_reverse_edges`") && e.contains("between 1 and 2 in one direction"),
        "{e}"
    );
    // A star: as many pairs as its edges have.
    let leaves: Vec<u32> = (1..=70_000).collect();
    let hub = vec![0; leaves.len()];
    let star =
        Graph::homogeneous(70_001, [leaves.clone(), hub.clone()].concat(), [hub, leaves].concat())
            .unwrap();
    let e = star.undirected_line_graph("_E").unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { count: 4_899_930_000, .. }), "{e}");
}

#[test]
fn metapaths_do_not_depend_on_threads() {
    let n = 500u32;
    let edges = |k: u32| {
        (0..4 * n)
            .map(move |i| (i.wrapping_mul(2_654_435_761).wrapping_add(k) >> 7) % n)
            .collect::<Vec<u32>>()
    };
    let g = Graph::homogeneous(n as usize, edges(1), edges(9)).unwrap();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| g.metapath_reachable_graph(&["_E", "_E"]).unwrap().relations()[0].clone())
    };
    let one = run(1);
    assert!(one.num_edges() > 0);
    for threads in [2, 5] {
        assert!(run(threads) == one);
    }
}

/// Of a hub with 100,000 in- and out-edges every leaf reaches every leaf: more edges than there are ids, which is known
/// before any is made.
#[test]
fn a_star_has_too_many_paths() {
    let n = 100_000u32;
    let leaves: Vec<u32> = (1..=n).collect();
    let (hub, to_hub) = (vec![0; n as usize], leaves.clone());
    let src = [to_hub, hub.clone()].concat();
    let dst = [hub, leaves].concat();
    let g = Graph::homogeneous(n as usize + 1, src, dst).unwrap();
    let e = g.metapath_reachable_graph(&["_E", "_E"]).unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { count: 10_000_000_001, .. }), "{e}");
    // Along one edge there are as many as edges; a small star has all pairs.
    assert_eq!(g.metapath_reachable_graph(&["_E"]).unwrap().total_edges(), 2 * n as usize);
    let small = Graph::homogeneous(4, vec![1, 2, 3, 0, 0, 0], vec![0, 0, 0, 1, 2, 3]).unwrap();
    let pairs = small.metapath_reachable_graph(&["_E", "_E"]).unwrap();
    assert_eq!(pairs.relation("_E").unwrap().src(), [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(pairs.relation("_E").unwrap().dst(), [0, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
}
