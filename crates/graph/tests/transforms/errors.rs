//! Error texts of wrong arguments.

use burn::tensor::{Bool, DType, Int, Tensor};
use burn_gnn_graph::{
    Backtracking, ByColumn, Column, Combine, Graph, GraphError, LoopFill, LoopsAt, Relabel,
    compact_graphs,
};

use crate::random::devices;

fn graph() -> Graph {
    let b = Graph::builder().nodes("a", 3).nodes("b", 2);
    b.edges(("a", "r", "b"), vec![0, 2], vec![1, 1])
        .edges(("a", "s", "a"), vec![0, 1, 1], vec![1, 0, 0])
        .build()
        .unwrap()
}

fn text<T>(r: Result<T, GraphError>) -> String {
    r.err().expect("must be refused").to_string()
}

#[test]
fn selections() {
    let g = graph();
    let sub = |nodes: Vec<(&str, Vec<u32>)>| text(g.node_subgraph(nodes, Relabel::Yes));
    assert_eq!(
        sub(vec![("x", vec![])]),
        "unknown node type `x`; the graph has [\"a\", \"b\"]: name one of these"
    );
    assert_eq!(
        sub(vec![("b", vec![1, 2])]),
        "`nodes` of node type `b`, position 1: id 2 is out of range 0..2; give ids that are numbered from 0"
    );
    assert_eq!(
        sub(vec![("b", vec![1, 0, 1])]),
        "`nodes` of node type `b`: id 1 was given twice (again at position 2); give every id once"
    );
    assert_eq!(
        sub(vec![("b", vec![1]), ("b", vec![0])]),
        "node type `b` was given twice; give it once"
    );
    let t = text(g.edge_subgraph([("s", [3])], Relabel::No));
    assert_eq!(
        t,
        "`edges` of edge type `a:s:a`, position 0: id 3 is out of range 0..3; give ids that are numbered from 0"
    );
    assert!(matches!(
        g.edge_subgraph([("q", [0])], Relabel::No),
        Err(GraphError::UnknownEdgeType { .. })
    ));
    assert!(matches!(
        g.edge_subgraph([("s", [0]), ("s", [1])], Relabel::No),
        Err(GraphError::Duplicate { .. })
    ));
    assert!(text(g.in_subgraph([("a", [7])], Relabel::No)).contains("`nodes` of node type `a`"));
    assert!(text(g.out_subgraph([("a", [7])], Relabel::No)).contains("`nodes` of node type `a`"));
    assert!(text(g.khop_in_subgraph([("a", [7])], 1)).contains("`seeds` of node type `a`"));
    assert!(text(g.khop_out_subgraph([("a", [7])], 1)).contains("`seeds` of node type `a`"));
    assert!(text(g.compact([("a", [7])])).contains("`always_preserve` of node type `a`"));
    assert!(matches!(g.node_type_subgraph(&["a", "a"]), Err(GraphError::Duplicate { .. })));
    assert!(matches!(g.edge_type_subgraph(["r", "r"]), Err(GraphError::Duplicate { .. })));
    let none: [(&str, [u32; 0]); 0] = [];
    let two = Graph::builder().nodes("a", 4).build().unwrap();
    assert_eq!(
        text(compact_graphs([&g, &two], none)),
        "`graphs[1], node type a`: expected length 3 (as in the graphs before), got 4; give 3 entries"
    );
}

#[test]
fn edits() {
    let (g, device) = (graph(), &devices()[0]);
    assert_eq!(
        text(g.remove_nodes("a", &[0, 3])),
        "`ids` of node type `a`, position 1: id 3 is out of range 0..3; give ids that are numbered from 0"
    );
    assert_eq!(
        text(g.remove_edges("r", &[2])),
        "`ids` of edge type `a:r:b`, position 0: id 2 is out of range 0..2; give ids that are numbered from 0"
    );
    let t = text(g.add_edges("r", &[0, 1], &[1], &[]));
    assert_eq!(
        t,
        "`dst` of relation `a:r:b`: expected length 2 (one entry per entry of `src`), got 1; give 2 entries"
    );
    assert_eq!(
        text(g.add_edges("r", &[0, 1], &[1, 2], &[])),
        "relation `a:r:b`, position 1: `dst` must lie in 0..2, got 2; number nodes from 0, or give the graph more nodes"
    );
    let y = || Column::new(Tensor::<1>::zeros([2], device));
    let t = text(g.add_nodes("b", 1, &[("y", y())]));
    assert_eq!(
        t,
        "nodes of `b`: new rows of column `y`: expected length 1 (one row per new node or edge), got 2; give 1 entries"
    );
    assert!(matches!(
        g.add_nodes("b", 2, &[("y", y()), ("y", y())]),
        Err(GraphError::Duplicate { what: "column", .. })
    ));
    assert!(matches!(
        g.add_nodes("b", u32::MAX as usize - 2, &[]),
        Err(GraphError::TooLarge { what: "nodes", .. })
    ));
    assert!(matches!(
        g.add_nodes("b", usize::MAX, &[]),
        Err(GraphError::TooLarge { what: "nodes", .. })
    ));
    let mut g = g;
    g.nodes_mut("b").unwrap().insert("y", Tensor::<2>::zeros([2, 2], device)).unwrap();
    assert!(matches!(
        g.add_nodes("b", 2, &[("y", y())]),
        Err(GraphError::ColumnMismatch { what: "row shape", .. })
    ));
    g.nodes_mut("a")
        .unwrap()
        .insert("deep", Tensor::<6>::zeros([3, 1, 1, 1, 1, 1], device))
        .unwrap();
    assert!(text(g.add_nodes("a", 1, &[])).contains("expected a tensor of rank 5 at most"));
    let far = Column::new(Tensor::<1>::zeros([2], &devices()[1]));
    assert!(matches!(
        g.add_nodes("b", 2, &[("z", far)]),
        Err(GraphError::ColumnMismatch { what: "device", .. })
    ));
}

#[test]
fn relations_between_two_types() {
    let g = graph();
    let refused = |r: Result<(), GraphError>, op: &str| {
        assert_eq!(
            text(r),
            format!(
                "relation `a:r:b`: {op} needs the same source and destination node type; choose an edge type between nodes of one type"
            )
        );
    };
    refused(g.add_self_loops("r").map(|_| ()), "adding self loops");
    refused(g.remove_self_loops("r").map(|_| ()), "removing self loops");
    refused(g.line_graph("r", Backtracking::Yes).map(|_| ()), "a line graph");
    refused(g.to_bidirected(Combine::First).map(|_| ()), "making edges run both ways");
}

#[test]
fn fills_and_rules_that_do_not_fit() {
    let (mut g, device) = (graph(), &devices()[0]);
    g.edges_mut("s")
        .unwrap()
        .insert("m", Tensor::<1, Bool>::from_data([true, false, true], device))
        .unwrap();
    let fill = |f: ByColumn<LoopFill>| text(g.add_self_loops_with("s", LoopsAt::EveryNode, f));
    let t = fill(LoopFill::Value(0.5).into());
    assert!(
        t.starts_with(
            "edges of `a:s:a`: column `m`: expected a column that holds the fill value 0.5"
        ) && t.contains("found a Bool tensor of rank 1"),
        "{t}"
    );
    assert!(fill(LoopFill::InEdges(Combine::Sum).into()).contains("give `m` a rule of its own"));
    assert!(
        fill(ByColumn::all(LoopFill::Value(1.0)).with("w", LoopFill::Value(2.0)))
            .contains("no column `w`")
    );
    assert!(matches!(g.to_simple(Combine::Mean), Err(GraphError::ColumnType { .. })));
    let int = Tensor::<1, Int>::from_data([1i64, 2, 3], (device, DType::U8));
    g.edges_mut("s").unwrap().insert("k", int).unwrap();
    for wrong in [0.5, -1.0, 256.0] {
        let rule = ByColumn::all(LoopFill::Value(1.0)).with("k", LoopFill::Value(wrong));
        assert!(
            matches!(g.add_self_loops_with("s", LoopsAt::EveryNode, rule), Err(GraphError::ColumnType { name, .. }) if name == "k")
        );
    }
    g.edges_mut("s").unwrap().remove("k");
    let rule = ByColumn::all(Combine::First).with("w", Combine::Sum);
    assert_eq!(
        text(g.to_simple(rule)),
        "edges of `a:r:b`, edges of `a:s:a`: no column `w`; there are [\"m\"]: name one of these"
    );
}

#[test]
fn questions() {
    let g = graph();
    assert_eq!(
        text(g.find_edges("r", &[0, 2])),
        "`ids` of edge type `a:r:b`, position 1: id 2 is out of range 0..2; give ids that are numbered from 0"
    );
    let t = text(g.edge_ids("r", &[0, 1], &[1, 0]));
    assert_eq!(
        t,
        "relation `a:r:b`, position 1: there is no edge 1 -> 0; find the pairs that have an edge with `has_edges`"
    );
    assert_eq!(
        text(g.has_edges("r", &[3], &[0])),
        "relation `a:r:b`, position 0: `u` must lie in 0..3, got 3; number nodes from 0, or give the graph more nodes"
    );
    assert_eq!(
        text(g.has_edges("r", &[0], &[])),
        "`v` of relation `a:r:b`: expected length 1 (one entry per entry of `u`), got 0; give 1 entries"
    );
    assert_eq!(
        text(g.all_edge_ids("r", &[0], &[2])),
        "relation `a:r:b`, position 0: `v` must lie in 0..2, got 2; number nodes from 0, or give the graph more nodes"
    );
    assert_eq!(
        text(g.predecessors("r", 2)),
        "relation `a:r:b`, position 0: `node` must lie in 0..2, got 2; number nodes from 0, or give the graph more nodes"
    );
    assert!(g.successors("r", 2).is_ok() && g.successors("r", 3).is_err());
    assert!(g.in_edges("r", &[2]).is_err() && g.out_edges("r", &[3]).is_err());
    assert!(g.in_degrees("r", &[2]).is_err() && g.out_degrees("r", &[3]).is_err());
}

#[test]
fn metapaths() {
    let g = graph();
    let t = text(g.metapath_reachable_graph(&["s", "r", "s"]));
    assert_eq!(
        t,
        "metapath, position 2: `a:s:a` must start in node type `b`, where the previous edge type ends; choose an edge type with source `b`"
    );
    assert_eq!(
        text(g.metapath_reachable_graph::<&str>(&[])),
        "`metapath` is empty; name at least one edge type"
    );
    assert!(matches!(g.metapath_reachable_graph(&["q"]), Err(GraphError::UnknownEdgeType { .. })));
}

/// 100 000 edges into one node and as many out of it: more edges than a relation holds, refused before any is made.
#[test]
fn a_line_graph_that_is_too_large() {
    let n = 100_000u32;
    let (src, dst): (Vec<u32>, Vec<u32>) = (1..=n).flat_map(|i| [(i, 0), (0, i)]).unzip();
    let g = Graph::homogeneous(n as usize + 1, src, dst).unwrap();
    let e = g.line_graph("_E", Backtracking::Yes).unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { what: "edges", count: 10_000_100_000, .. }), "{e}");
}
