use std::collections::BTreeSet;

use burn_gnn_graph::{Backtracking, Graph};
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
