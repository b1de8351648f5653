//! Tests of DGL's CSV data sets.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{ColumnKind, FileId, Graph};
use proptest::prelude::*;

use super::load_dgl_csv;
use crate::GraphSet;
use crate::files::corrupt_file::{damage, spoil};

const META: &str =
    "dataset_name: club\nnode_data:\n- file_name: nodes.csv\nedge_data:\n- file_name: edges.csv\n";

fn put(dir: &Path, files: &[(&str, &str)]) {
    files.iter().for_each(|(name, text)| std::fs::write(dir.join(name), text).unwrap());
}

fn load(files: &[(&str, &str)]) -> Result<GraphSet, DataError> {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), files);
    load_dgl_csv(dir.path(), &Device::flex())
}

fn floats(g: &Graph, name: &str) -> Vec<f32> {
    g.node_frames()[0].column(name).unwrap().to_data().try_to_vec().unwrap()
}

/// The set of DGL's user guide: vectors in quotes, masks, labels.
#[test]
fn one_graph() {
    let nodes = "node_id,label,train_mask,feat\n5,1,True,\"0.5, -1\"\n1,0,False,\"[2, 3]\"\n3,2,True,\"1e-1,4\"\n";
    let edges = "src_id,dst_id,weight,\n5,1,1,0\n3,5,2.5,1\n5,1,-1,2\n";
    let set = load(&[("meta.yaml", META), ("nodes.csv", nodes), ("edges.csv", edges)]).unwrap();
    assert_eq!((set.name.as_str(), set.graphs.len(), set.graph_ids), ("club", 1, vec![0]));
    let g = &set.graphs[0];
    assert_eq!(
        (g.schema().ntypes(), g.schema().etypes()[0].to_string()),
        (&["_V".to_owned()][..], "_V:_E:_V".to_owned())
    );
    // Nodes by ascending id: 1, 3, 5.
    let r = &g.relations()[0];
    assert_eq!((r.src(), r.dst()), (&[2, 1, 2][..], &[0, 2, 0][..]));
    assert_eq!(g.nodes("_V").unwrap().ids().unwrap().id(2), Some(FileId::Int(5)));
    assert_eq!(floats(g, "feat"), [2., 3., 0.1, 4., 0.5, -1.]);
    let f = g.nodes("_V").unwrap();
    assert_eq!(
        f.get_int::<1>("label").unwrap().into_data().try_to_vec::<i64>().unwrap(),
        [0, 2, 1]
    );
    let mask = f.column("train_mask").unwrap();
    assert_eq!(
        (mask.kind(), mask.to_data().iter::<bool>().collect::<Vec<_>>()),
        (ColumnKind::Bool, vec![false, true, true])
    );
    let e = g.edges("_E").unwrap();
    assert_eq!(
        e.get::<1>("weight").unwrap().into_data().try_to_vec::<f32>().unwrap(),
        [1., 2.5, -1.]
    );
    assert_eq!(e.columns().count(), 1, "a column without a name is left out");
}

#[test]
fn many_graphs_of_several_types_in_the_order_of_the_graph_file() {
    let meta = "version: 1.0.0\ndataset_name: many\nseparator: ';'\nnode_data:\n\
        - {file_name: u.csv, ntype: user, node_id_field: name}\n- {file_name: i.csv, ntype: item}\nedge_data:\n\
        - {file_name: e.csv, etype: [user, likes, item], src_id_field: who, dst_id_field: what}\n\
        - {file_name: f.csv, etype: [user, knows, user]}\ngraph_data: {file_name: g.csv}\n";
    let files = [
        ("meta.yaml", meta),
        ("u.csv", "graph_id;name\n7;bo\n2;ann\n7;ann\n7;cy\n"),
        ("i.csv", "graph_id;node_id\n7;10\n2;30\n2;20\n"),
        ("e.csv", "graph_id;who;what\n2;ann;30\n7;cy;10\n"),
        ("f.csv", "graph_id;src_id;dst_id;w\n7;cy;ann;1\n7;bo;cy;2\n"),
        ("g.csv", "graph_id;label;hot\n7;1;0,1\n9;0;1,0\n2;5;0,0\n"),
    ];
    let set = load(&files).unwrap();
    assert_eq!(set.graph_ids, [7, 9, 2]);
    assert_eq!(
        set.data.get_int::<1>("label").unwrap().into_data().try_to_vec::<i64>().unwrap(),
        [1, 0, 5]
    );
    assert_eq!(set.data.get_int::<2>("hot").unwrap().dims(), [3, 2]);
    let counts: Vec<&[usize]> = set.graphs.iter().map(Graph::node_counts).collect();
    assert_eq!(counts, [&[1, 3][..], &[0, 0], &[2, 1]]);
    let knows = set.graphs[0].relation("knows").unwrap();
    assert_eq!((knows.src(), knows.dst()), (&[2, 1][..], &[0, 2][..]));
    let likes = set.graphs[2].relation("likes").unwrap();
    assert_eq!((likes.src(), likes.dst()), (&[0][..], &[1][..]));
    assert_eq!(
        set.graphs[0]
            .edges("knows")
            .unwrap()
            .get_int::<1>("w")
            .unwrap()
            .into_data()
            .try_to_vec::<i64>()
            .unwrap(),
        [1, 2]
    );
    assert!(set.graphs.iter().all(|g| g.schema() == set.graphs[0].schema()));
    let no_table = meta.replace("graph_data: {file_name: g.csv}\n", "");
    let mut files = files;
    files[0].1 = &no_table;
    assert_eq!(load(&files).unwrap().graph_ids, [2, 7]);
}

/// Columns of whole numbers stay int64, those with fractions become f32.
#[test]
fn numbers_that_f32_cannot_represent() {
    let with = |cells: [&str; 2]| {
        let nodes = format!("node_id,x\n0,{}\n1,{}\n", cells[0], cells[1]);
        load(&[("meta.yaml", META), ("nodes.csv", &nodes), ("edges.csv", "src_id,dst_id\n0,1\n")])
    };
    let set = with(["16777217", "-3"]).unwrap();
    let ints = set.graphs[0].nodes("_V").unwrap().to_ints("x").unwrap();
    assert_eq!(ints, [16_777_217, -3]);
    for (cells, part) in [
        (
            ["0.5", "1e300"],
            "nodes.csv:3:2: expected a number that f32 can represent (`x`), got \"1e300\"",
        ),
        (["1e-60", "1"], "nodes.csv:2:2: expected a number that f32 can represent"),
        (["0.5", "16777217"], "nodes.csv:3:2: expected a number that f32 can represent"),
        (
            ["16777217", "0.5"],
            "nodes.csv:3:2: expected an integer, since f32 cannot represent 16777217 of an earlier row",
        ),
    ] {
        let e = with(cells).unwrap_err().to_string();
        assert!(e.contains(part), "expected {part} in {e}");
    }
}

#[test]
fn ids_are_numbers_only_if_all_are() {
    let nodes = "node_id\n10\n9\nx\n";
    let set =
        load(&[("meta.yaml", META), ("nodes.csv", nodes), ("edges.csv", "src_id,dst_id\n9,10\n")])
            .unwrap();
    let r = &set.graphs[0].relations()[0];
    assert_eq!((r.src(), r.dst()), (&[1][..], &[0][..])); // "10" < "9" < "x"
}

#[test]
fn invalid_sets_are_errors() {
    let (nodes, edges) = ("node_id,x\n1,2\n2,3\n", "src_id,dst_id\n1,2\n");
    let refused = |name: &str, text: &str, end: &str| {
        let mut files = vec![("meta.yaml", META), ("nodes.csv", nodes), ("edges.csv", edges)];
        files.iter_mut().find(|f| f.0 == name).unwrap().1 = text;
        let e = load(&files).unwrap_err();
        assert!(e.to_string().contains(end), "expected {end:?} in {e}");
        e
    };
    let wrong_id = "nodes.csv:3:1: expected the id of a node that no row before has, got \"1\"";
    assert!(matches!(
        refused("nodes.csv", "node_id,x\n1,2\n1,3\n", wrong_id),
        DataError::Table { .. }
    ));
    refused("nodes.csv", "id,x\n1,2\n", "expected a column `node_id`, found none");
    refused("nodes.csv", "node_id,x\n1\n", "nodes.csv:2: expected 2 fields, not 1");
    refused(
        "nodes.csv",
        "node_id,x\n1,red\n",
        "nodes.csv:2:2: expected a number, `True`, `False`, or numbers joined by commas (`x`), got \"red\"",
    );
    refused("nodes.csv", "node_id,x\n1,\n", "nodes.csv:2:2: expected a number");
    refused(
        "nodes.csv",
        "node_id,x\n1,\"1,2\"\n2,\"1,2,3\"\n",
        "nodes.csv:3:2: expected 2 numbers joined by commas as in the first row (`x`)",
    );
    refused(
        "nodes.csv",
        "node_id,x\n1,True\n2,1\n",
        "nodes.csv:3:2: expected `True` or `False` as in the first row",
    );
    refused(
        "nodes.csv",
        "node_id,x\n1,1\n2,True\n",
        "nodes.csv:3:2: expected a number as in the first row",
    );
    refused(
        "nodes.csv",
        "node_id,x,x\n1,2,3\n",
        "nodes.csv:1:3: expected columns of different names, got \"x\"",
    );
    refused(
        "nodes.csv",
        "node_id,graph_id\n1,a\n",
        "nodes.csv:2:2: expected the number of a graph, an int64, got \"a\"",
    );
    refused(
        "edges.csv",
        "src_id,dst_id\n1,3\n",
        "edges.csv:2:2: expected the id of a `_V` node of graph 0, got \"3\"",
    );
    refused(
        "edges.csv",
        "src_id,dst_id\nx,1\n",
        "edges.csv:2:1: expected the id of a `_V` node of graph 0, got \"x\"",
    );
    refused("edges.csv", "src_id,dst_id,graph_id\n1,2,4\n", "the id of a `_V` node of graph 4");
    assert!(matches!(
        refused("meta.yaml", &format!("version: 2.0.0\n{META}"), "format version 2.0.0"),
        DataError::Version { .. }
    ));
    refused("meta.yaml", &META.replace("nodes.csv", "../nodes.csv"), "inside the folder");
    refused(
        "meta.yaml",
        &format!("separator: '--'\n{META}"),
        "separator: expected one ASCII character, found \"--\"",
    );
    refused(
        "meta.yaml",
        &format!("colour: red\n{META}"),
        "expected a description of a CSV data set",
    );
    refused("meta.yaml", "- 1\n- 2\n", "expected a description of a CSV data set");
    let twice = META
        .replace("- file_name: nodes.csv\n", "- file_name: nodes.csv\n- file_name: nodes.csv\n");
    assert!(matches!(
        refused("meta.yaml", &twice, "node type `_V` was given twice").cause(),
        DataError::Graph(GraphError::Duplicate { .. })
    ));
    let other =
        META.replace("- file_name: edges.csv\n", "- file_name: edges.csv\n  etype: [a, b, _V]\n");
    assert!(matches!(
        refused("meta.yaml", &other, "unknown node type `a`").cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    let graphs = |text: &str| {
        let meta = format!("{META}graph_data:\n  file_name: graphs.csv\n");
        load(&[
            ("meta.yaml", &meta),
            ("nodes.csv", nodes),
            ("edges.csv", edges),
            ("graphs.csv", text),
        ])
        .unwrap_err()
        .to_string()
    };
    assert!(
        graphs("graph_id\n1\n")
            .contains("expected a row for each graph that has nodes, found none for graph 0")
    );
    assert!(
        graphs("graph_id\n0\n0\n")
            .contains("graphs.csv:3:1: expected a graph that occurs once, got \"0\"")
    );
    assert!(graphs("id\n0\n").contains("expected a column `graph_id`, found none"));
    assert!(matches!(load(&[("meta.yaml", META)]), Err(DataError::Io { .. })));
}

proptest! {
    /// Random graphs, written with ids in any order, come back edge for edge.
    #[test]
    fn there_and_back(n in 1usize..9, graphs in 1i64..4, edges in prop::collection::vec((0usize..9, 0usize..9, 0i64..4), 0..20), seed in 0u64..100) {
        // Node v of graph k has the id 100 - 7 v + k, so that ascending ids turn the order round.
        let id = |v: usize, k: i64| 100 - 7 * v as i64 + k;
        let mut nodes = String::from("node_id,graph_id,x\n");
        for v in (0..n).map(|v| (v + seed as usize) % n) {
            (0..graphs).for_each(|k| nodes += &format!("{},{k},{}\n", id(v, k), v as f32 + 0.5));
        }
        let edges: Vec<_> = edges.into_iter().map(|(u, v, k)| (u % n, v % n, k % graphs)).collect();
        let mut text = String::from("src_id,dst_id,graph_id\n");
        edges.iter().for_each(|&(u, v, k)| text += &format!("{},{},{k}\n", id(u, k), id(v, k)));
        let set = load(&[("meta.yaml", META), ("nodes.csv", &nodes), ("edges.csv", &text)]).unwrap();
        prop_assert_eq!(&set.graph_ids, &(0..graphs).collect::<Vec<_>>());
        for (k, g) in set.graphs.iter().enumerate() {
            let number = |v: usize| (n - 1 - v) as u32;
            let expected: Vec<_> = edges.iter().filter(|e| e.2 == k as i64).map(|e| (number(e.0), number(e.1))).collect();
            let r = &g.relations()[0];
            prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), expected);
            prop_assert_eq!(floats(g, "x"), (0..n).rev().map(|v| v as f32 + 0.5).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_damaged_file_never_panics(d in damage()) {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &[("meta.yaml", META), ("nodes.csv", "node_id,x\n1,\"2,3\"\n2,\"3,4\"\n"), ("edges.csv", "src_id,dst_id\n1,2\n")]);
        spoil(dir.path(), d);
        let _ = load_dgl_csv(dir.path(), &Device::flex());
    }
}
