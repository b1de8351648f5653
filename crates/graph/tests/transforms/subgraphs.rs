use burn_gnn_graph::{Relabel, compact_graphs};
use proptest::prelude::*;

use crate::random::{Case, ENDS, ETYPES, case, check_rows, devices, named, once, pick, sorted};

fn picks() -> impl Strategy<Value = Vec<Vec<u16>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u16>(), 0..5), 6)
}

fn nodes_of(c: &Case, raw: &[Vec<u16>]) -> Vec<Vec<u32>> {
    c.nodes.iter().zip(raw).map(|(&n, raw)| pick(raw, n)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nodes_induce_the_edges_between_them(c in case(), raw in picks()) {
        let nodes: Vec<_> = nodes_of(&c, &raw).iter().map(|ids| once(ids)).collect();
        let edges = c.edges_where(|t, u, v| nodes[ENDS[t].0].contains(&u) && nodes[ENDS[t].1].contains(&v));
        for device in devices() {
            let g = c.graph(&device);
            c.check(&g.node_subgraph(named(&nodes), Relabel::Yes).unwrap(), &nodes, &edges);
            c.check(&g.node_subgraph(named(&nodes), Relabel::No).unwrap(), &c.all_nodes(), &edges);
        }
    }

    #[test]
    fn edges_come_in_the_order_given_with_their_ends(c in case(), raw in picks()) {
        let edges: Vec<_> = c.edges.iter().zip(&raw).map(|(e, raw)| pick(raw, e.len())).collect();
        let g = c.graph(&devices()[0]);
        let named = || edges.iter().enumerate();
        c.check(&g.edge_subgraph(named(), Relabel::Yes).unwrap(), &c.touched(&edges, &vec![vec![]; 3]), &edges);
        c.check(&g.edge_subgraph(named(), Relabel::No).unwrap(), &c.all_nodes(), &edges);
    }

    #[test]
    fn in_and_out_subgraphs_keep_the_edges_at_the_nodes(c in case(), raw in picks()) {
        let nodes = nodes_of(&c, &raw);
        let g = c.graph(&devices()[0]);
        let into = c.edges_where(|t, _, v| nodes[ENDS[t].1].contains(&v));
        c.check(&g.in_subgraph(named(&nodes), Relabel::No).unwrap(), &c.all_nodes(), &into);
        c.check(&g.in_subgraph(named(&nodes), Relabel::Yes).unwrap(), &c.touched(&into, &nodes), &into);
        let out = c.edges_where(|t, u, _| nodes[ENDS[t].0].contains(&u));
        c.check(&g.out_subgraph(named(&nodes), Relabel::No).unwrap(), &c.all_nodes(), &out);
        c.check(&g.out_subgraph(named(&nodes), Relabel::Yes).unwrap(), &c.touched(&out, &nodes), &out);
    }

    #[test]
    fn compact_keeps_every_edge_and_no_isolated_node(c in case(), raw in picks()) {
        let g = c.graph(&devices()[0]);
        let none: [(&str, Vec<u32>); 0] = [];
        c.check(&g.compact(none).unwrap(), &c.touched(&c.all_edges(), &vec![vec![]; 3]), &c.all_edges());
        let kept = nodes_of(&c, &raw);
        c.check(&g.compact(named(&kept)).unwrap(), &c.touched(&c.all_edges(), &kept), &c.all_edges());
    }

    #[test]
    fn several_graphs_are_compacted_with_one_numbering(c in case(), cut in any::<u16>(), raw in picks()) {
        // Two graphs with the same nodes, each with a part of the edges.
        let (mut first, mut second) = (c.clone(), c.clone());
        for t in 0..ETYPES.len() {
            let at = usize::from(cut) % (c.edges[t].len() + 1);
            second.edges[t] = first.edges[t].split_off(at);
        }
        let kept = nodes_of(&c, &raw);
        let nodes = c.touched(&c.all_edges(), &kept);
        let (g, h) = (first.graph(&devices()[0]), second.graph(&devices()[0]));
        let both = compact_graphs([&g, &h], named(&kept)).unwrap();
        first.check(&both[0], &nodes, &first.all_edges());
        second.check(&both[1], &nodes, &second.all_edges());
    }

    #[test]
    fn types_are_kept_or_left(c in case(), keep in proptest::collection::vec(any::<bool>(), 6)) {
        let g = c.graph(&devices()[0]);
        let etypes: Vec<usize> = (0..ETYPES.len()).filter(|&t| keep[t]).collect();
        let sub = g.edge_type_subgraph(etypes.iter().copied()).unwrap();
        let endpoints = sorted(&etypes.iter().flat_map(|&t| [ENDS[t].0 as u32, ENDS[t].1 as u32]).collect::<Vec<_>>());
        prop_assert_eq!(sub.schema().etypes().len(), etypes.len());
        for (i, &t) in etypes.iter().enumerate() {
            prop_assert_eq!((&sub.schema().etypes()[i], &sub.relations()[i]), (&g.schema().etypes()[t], &g.relations()[t]));
            check_rows(&sub.edge_frames()[i], 10 + t, &c.all_edges()[t]);
        }
        prop_assert_eq!(sub.node_counts().len(), endpoints.len());
        for (i, &t) in endpoints.iter().enumerate() {
            check_rows(&sub.node_frames()[i], t as usize, &c.all_nodes()[t as usize]);
        }
        let ab = g.node_type_subgraph(&["b", "a"]).unwrap();
        prop_assert_eq!(ab.schema().ntypes(), &["a", "b"]);
        prop_assert_eq!(ab.relations(), &g.relations()[..4]);
        prop_assert_eq!(g.node_type_subgraph(&["b"]).unwrap().relations().len(), 0);
    }
}
