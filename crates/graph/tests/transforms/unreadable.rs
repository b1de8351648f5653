//! Edges in a file that cannot be read are typed errors with the name of the edge type.

use burn_gnn_graph::{
    Backtracking, Batch, Combine, Drawing, EdgeOrder, Graph, GraphError, LoopFill, LoopsAt,
    NodeOrder, Relabel, batch, compact_graphs, merge, to_heterogeneous,
};
use burn_gnn_testutil::graphs::unreadable;

#[test]
fn every_method_returns_the_error() {
    let g = Graph::builder().relation(("_N", "_E", "_N"), unreadable(4, 5)).build().unwrap();
    let seeds = || [("_N", [0u32])];
    let errors: Vec<(&str, Option<GraphError>)> = vec![
        ("read_stored", g.read_stored().err()),
        ("find_edges", g.find_edges("_E", &[0]).err()),
        ("has_edges", g.has_edges("_E", &[0], &[1]).err()),
        ("edge_ids", g.edge_ids("_E", &[0], &[1]).err()),
        ("predecessors", g.predecessors("_E", 0).map(<[u32]>::to_vec).err()),
        ("successors", g.successors("_E", 0).map(<[u32]>::to_vec).err()),
        ("in_edges", g.in_edges("_E", &[0]).err()),
        ("out_edges", g.out_edges("_E", &[0]).err()),
        ("in_degrees", g.in_degrees("_E", &[0]).err()),
        ("out_degrees", g.out_degrees("_E", &[0]).err()),
        ("node_subgraph", g.node_subgraph(seeds(), Relabel::Yes).err()),
        ("edge_subgraph", g.edge_subgraph([("_E", [0])], Relabel::Yes).err()),
        ("in_subgraph", g.in_subgraph(seeds(), Relabel::Yes).err()),
        ("out_subgraph", g.out_subgraph(seeds(), Relabel::No).err()),
        ("khop_in_subgraph", g.khop_in_subgraph(seeds(), 2).err()),
        ("khop_out_subgraph", g.khop_out_subgraph(seeds(), 2).err()),
        ("compact_graphs", compact_graphs([&g], [("_N", [0])]).err()),
        ("add_nodes", g.add_nodes("_N", 1, &[]).err()),
        ("add_edges", g.add_edges("_E", &[0], &[1], &[]).err()),
        ("remove_nodes", g.remove_nodes("_N", &[0]).err()),
        ("remove_edges", g.remove_edges("_E", &[0]).err()),
        ("line_graph", g.line_graph("_E", Backtracking::Yes).err()),
        ("undirected_line_graph", g.undirected_line_graph("_E").err()),
        ("to_simple", g.to_simple(Combine::First).err()),
        ("to_bidirected", g.to_bidirected(Combine::First).err()),
        ("khop_graph", g.khop_graph("_E", 2).err()),
        ("add_reverse_edges", g.add_reverse_edges("_E").err()),
        ("metapath_reachable_graph", g.metapath_reachable_graph(&["_E"]).err()),
        ("reorder", g.reorder(NodeOrder::InDegree, EdgeOrder::ByDst).err()),
        ("to_homogeneous", g.to_homogeneous(&[], &[]).err()),
        ("to_heterogeneous", to_heterogeneous(&g, &["a"], &[0; 4], &["r"], &[0; 5]).err()),
        ("add_self_loops", g.add_self_loops("_E").err()),
        (
            "add_self_loops_with",
            g.add_self_loops_with("_E", LoopsAt::NodesWithout, LoopFill::Value(1.0)).err(),
        ),
        ("remove_self_loops", g.remove_self_loops("_E").err()),
        ("batch", batch([&g, &g]).err()),
        ("Batch::new", Batch::new(g.clone(), vec![vec![4]], vec![vec![5]]).err()),
        ("merge", merge([&g, &g]).err()),
        ("distances", g.distances(("_N", 0), None).err()),
        ("shortest_dist", g.shortest_dist(("_N", 0)).err()),
        ("compact", g.compact(seeds()).err()),
        ("Drawing::new", Drawing::new(&g).err()),
    ];
    for (name, e) in errors {
        let e = e.unwrap_or_else(|| panic!("{name} must fail")).to_string();
        assert!(e.contains("the disk is broken") && e.contains("_E"), "{name}: {e}");
    }
}
