use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::random::{Case, ENDS, case, devices, named, pick};

/// All nodes within `k` steps, by looking at every edge `k` times; `out`: along edges.
fn within(c: &Case, seeds: &[Vec<u32>], k: usize, out: bool) -> Vec<Vec<u32>> {
    let mut found: Vec<BTreeSet<u32>> = seeds.iter().map(|s| s.iter().copied().collect()).collect();
    for _ in 0..k {
        let before = found.clone();
        for (t, &(s, d)) in ENDS.iter().enumerate() {
            for &(u, v) in &c.edges[t] {
                let (near, far) = if out { ((s, u), (d, v)) } else { ((d, v), (s, u)) };
                if before[near.0].contains(&near.1) {
                    found[far.0].insert(far.1);
                }
            }
        }
    }
    found.into_iter().map(|s| s.into_iter().collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn neighbourhoods_are_induced_and_find_their_seeds(
        c in case(),
        raw in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 0..3), 3),
        k in 0usize..4,
    ) {
        let seeds: Vec<Vec<u32>> = c.nodes.iter().zip(&raw).map(|(&n, raw)| pick(raw, n)).collect();
        let g = c.graph(&devices()[0]);
        for out in [false, true] {
            let hood = if out { g.khop_out_subgraph(named(&seeds), k) } else { g.khop_in_subgraph(named(&seeds), k) }.unwrap();
            let nodes = within(&c, &seeds, k, out);
            let edges = c.edges_where(|t, u, v| nodes[ENDS[t].0].contains(&u) && nodes[ENDS[t].1].contains(&v));
            c.check(&hood.subgraph, &nodes, &edges);
            for (t, seeds) in seeds.iter().enumerate() {
                let back: Vec<u32> = hood.seeds[t].iter().map(|&i| hood.subgraph.node_ids[t].get(i as usize)).collect();
                prop_assert_eq!(&back, seeds);
            }
        }
    }
}
