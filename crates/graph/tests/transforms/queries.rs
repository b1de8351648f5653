use burn_gnn_graph::EdgeList;
use proptest::prelude::*;

use crate::random::{ENDS, case, pick};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn edges_between_pairs(c in case(), t in 0usize..6, us in proptest::collection::vec(any::<u16>(), 0..20), vs in proptest::collection::vec(any::<u16>(), 20)) {
        let g = c.bare();
        let (s, d) = ENDS[t];
        let (mut u, mut v) = (pick(&us, c.nodes[s]), pick(&vs[..us.len()], c.nodes[d]));
        let n = u.len().min(v.len());
        u.truncate(n);
        v.truncate(n);
        let mut want = vec![];
        for i in 0..n {
            want.extend(c.edges[t].iter().enumerate().filter(|(_, e)| **e == (u[i], v[i])).map(|(e, _)| (i, e as u32)));
        }
        prop_assert_eq!(&g.all_edge_ids(t, &u, &v).unwrap(), &want);
        let has: Vec<bool> = (0..n).map(|i| want.iter().any(|w| w.0 == i)).collect();
        prop_assert_eq!(&g.has_edges(t, &u, &v).unwrap(), &has);
        let (mut first_u, mut first_v, mut first) = (vec![], vec![], vec![]);
        for i in (0..n).filter(|&i| has[i]) {
            first_u.push(u[i]);
            first_v.push(v[i]);
            first.push(want.iter().find(|w| w.0 == i).unwrap().1);
        }
        let ids = g.edge_ids(t, &first_u, &first_v).unwrap();
        prop_assert_eq!(&ids, &first);
        prop_assert_eq!(g.find_edges(t, &ids).unwrap(), (first_u, first_v));
        prop_assert_eq!(g.edge_ids(t, &u, &v).is_err(), has.contains(&false));
    }

    #[test]
    fn edges_at_nodes(c in case(), t in 0usize..6, raw in proptest::collection::vec(any::<u16>(), 0..6)) {
        let g = c.bare();
        let (s, d) = ENDS[t];
        let (into, out) = (pick(&raw, c.nodes[d]), pick(&raw, c.nodes[s]));
        let list = |pass: &dyn Fn(&(u32, u32), u32) -> bool, nodes: &[u32]| {
            let mut l = EdgeList::default();
            for &n in nodes {
                for (e, &(u, v)) in c.edges[t].iter().enumerate().filter(|(_, e)| pass(e, n)) {
                    l.src.push(u);
                    l.dst.push(v);
                    l.ids.push(e as u32);
                }
            }
            l
        };
        prop_assert_eq!(g.in_edges(t, &into).unwrap(), list(&|e, n| e.1 == n, &into));
        prop_assert_eq!(g.out_edges(t, &out).unwrap(), list(&|e, n| e.0 == n, &out));
        let degrees = |nodes: &[u32], end: &dyn Fn(&(u32, u32)) -> u32| -> Vec<u32> {
            nodes.iter().map(|n| c.edges[t].iter().filter(|e| end(e) == *n).count() as u32).collect()
        };
        prop_assert_eq!(g.in_degrees(t, &into).unwrap(), degrees(&into, &|e| e.1));
        prop_assert_eq!(g.out_degrees(t, &out).unwrap(), degrees(&out, &|e| e.0));
        for &n in &into {
            prop_assert_eq!(g.predecessors(t, n).unwrap(), list(&|e, n| e.1 == n, &[n]).src);
        }
        for &n in &out {
            prop_assert_eq!(g.successors(t, n).unwrap(), list(&|e, n| e.0 == n, &[n]).dst);
        }
    }
}
