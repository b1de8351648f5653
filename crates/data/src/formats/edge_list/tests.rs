//! Tests of edge lists.

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Graph, GraphError, Ids};
use proptest::prelude::*;

use crate::tables::schema::column_names::WEIGHT;
use crate::tables::table::EdgeTable;
use crate::{EdgeListFormat, load_edge_list, read_edge_list};

fn read(text: &str, format: &EdgeListFormat) -> Result<EdgeTable, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("e");
    std::fs::write(&path, text).unwrap();
    read_edge_list(&path, format)
}

fn load(text: &str, format: &EdgeListFormat) -> Graph {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("e");
    std::fs::write(&path, text).unwrap();
    load_edge_list(&path, format, &Device::flex()).unwrap()
}

fn ints(ids: &Ids) -> Vec<i64> {
    if let Ids::Int(ids) = ids { ids.clone() } else { panic!("texts") }
}

proptest! {
    /// Written edges are read back, with any delimiter and any line end.
    #[test]
    fn written_edges_are_read_back(
        edges in prop::collection::vec((-50i64..50, -50i64..50, -9i32..9), 0..40),
        between in prop::sample::select(vec![" ", "\t", "  \t", ",", ";", "::", " , "]),
        end in prop::sample::select(vec!["\n", "\r\n", "\n\n", "\n# a comment 1 2\n", "\n  % other\r\n"]),
        weighted: bool,
        undirected: bool,
    ) {
        let line = |(u, v, w): &(i64, i64, i32)| {
            let weight = if weighted { format!("{between}{}", f64::from(*w) / 2.0) } else { String::new() };
            format!("{u}{between}{v}{weight}{end}")
        };
        let text: String = edges.iter().map(line).collect();
        let mut format = EdgeListFormat { weighted, undirected, ..EdgeListFormat::new() };
        if !between.trim().is_empty() {
            format = format.with_delimiter(between);
        }
        let t = read(&text, &format).unwrap();
        prop_assert_eq!(ints(&t.src), edges.iter().map(|e| e.0).collect::<Vec<_>>());
        prop_assert_eq!(ints(&t.dst), edges.iter().map(|e| e.1).collect::<Vec<_>>());
        let weights: Vec<f32> = edges.iter().map(|e| e.2 as f32 / 2.0).collect();
        prop_assert_eq!(&t.columns.weights, &weighted.then_some(weights));
        let g = load(&text, &format);
        let ids = g.nodes("_N").unwrap().ids().unwrap();
        prop_assert!(ints(ids.ids()).windows(2).all(|w| w[0] < w[1]));
        let r = g.relation("_E").unwrap();
        for (i, e) in edges.iter().enumerate() {
            prop_assert_eq!((ids.number(e.0), ids.number(e.1)), (Some(r.src()[i]), Some(r.dst()[i])));
        }
        let loops = edges.iter().filter(|e| e.0 == e.1).count();
        prop_assert_eq!(r.num_edges(), if undirected { 2 * edges.len() - loops } else { edges.len() });
    }
}

#[test]
fn texts_numbers_and_headers() {
    let g = load("b;a\nköln;b\n", &EdgeListFormat::new().with_text_ids().with_delimiter(";"));
    assert_eq!(
        (g.relation("_E").unwrap().src(), g.relation("_E").unwrap().dst()),
        (&[1, 2][..], &[0, 1][..])
    );
    assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("köln"), Some(2));
    let g = load("src dst\n4 0\n", &EdgeListFormat::new().with_header_lines(1).with_num_nodes(6));
    assert_eq!(
        (g.node_counts(), g.relation("_E").unwrap().src(), g.nodes("_N").unwrap().ids()),
        (&[6][..], &[4][..], None)
    );
    assert_eq!(load("", &EdgeListFormat::new()).node_counts(), [0]);
    assert_eq!(load("x\ny\n", &EdgeListFormat::new().with_header_lines(9)).total_edges(), 0);
    let none: [&str; 0] = [];
    assert_eq!(
        load("#1 2\n", &EdgeListFormat::new().with_comments(none).with_text_ids()).total_edges(),
        1
    );
}

/// Line numbers are right in a file of several blocks.
#[test]
fn lines_are_counted_over_blocks() {
    let many = "10 11\n# x\n".repeat(300_000);
    let t = read(&many, &EdgeListFormat::new()).unwrap();
    assert_eq!((t.src.len(), t.dst.get(299_999)), (300_000, burn_gnn_graph::FileId::Int(11)));
    let e = read(&format!("{many}1 x\n{many}"), &EdgeListFormat::new()).unwrap_err();
    assert!(e.to_string().contains("e:600001:2: expected an int64, got \"x\""), "{e}");
    assert_eq!(
        read(&many, &EdgeListFormat::new().with_header_lines(599_998)).unwrap().src.len(),
        1
    );
}

/// Files of NetworkX 3: `write_edgelist(g, path)`, with `data=["weight"]`, with `delimiter=","`.
#[test]
fn files_of_networkx() {
    let text = "1 2 {'weight': 3, 'color': 'dark red', 'kept': True}\n2 7 {'kept': False, 'weight': 0.5, 'color': ''}\n";
    let g = load(text, &EdgeListFormat::networkx().undirected());
    assert_eq!(g.relation("_E").unwrap().src(), [0, 1, 1, 2]);
    let edges = g.edges("_E").unwrap();
    let weights: Vec<f32> = edges.get::<1>(WEIGHT).unwrap().into_data().try_to_vec().unwrap();
    assert_eq!(weights, [3.0, 0.5, 3.0, 0.5]);
    let color: Vec<&str> = edges.text("color").unwrap().iter().collect();
    assert_eq!(color, ["dark red", "", "dark red", ""]);
    let kept = edges.column("kept").unwrap().to_data();
    assert_eq!(kept.iter::<bool>().collect::<Vec<_>>(), [true, false, true, false]);

    let g = load("0 1 {}\n1 2 {}\n", &EdgeListFormat::networkx());
    assert_eq!((g.total_edges(), g.edges("_E").unwrap().columns().count()), (2, 0));
    let g = load("0 1 3.5\n", &EdgeListFormat::new().weighted());
    assert_eq!(g.total_edges(), 1);
    let commas = EdgeListFormat::networkx().with_delimiter(",").with_text_ids();
    let g = load("New York,Oslo,{'km': 5900, 'a': 1}\n", &commas);
    assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("Oslo"), Some(1));
    assert_eq!(g.edges("_E").unwrap().to_ints("km").unwrap(), [5900]);
    let t = read("1 2 {'weight': 3}\n", &EdgeListFormat::networkx()).unwrap();
    assert_eq!(t.columns.weights, Some(vec![3.0]));

    // All edges must have the same attributes, also in different blocks.
    let many = "10 11 {'weight': 1}\n".repeat(100_000);
    let t = read(&format!("{many}1 2 {{'weight': 0.5}}\n"), &EdgeListFormat::networkx());
    assert_eq!(t.unwrap().columns.weights.unwrap()[100_000], 0.5);
    for (text, part) in [
        (
            "1 2 {'w': 1}\n2 3 {}\n".to_owned(),
            "e:2:3: expected the attribute `w`, which other rows have",
        ),
        (
            "1 2 {}\n2 3 {'w': 1}\n".into(),
            "e:2:3: expected the attributes of the first row, not the new one `w`",
        ),
        (
            "1 2 {'w': 1}\n2 3 {'w': 'x'}\n".into(),
            "e:2:3: expected a number as in the first row (`w`)",
        ),
        ("1 2 {'w': 1, 'w': 2}\n".into(), "expected the attribute `w` once"),
        ("1 2 {'w': None}\n".into(), "e:1:3: expected a dictionary of booleans, numbers"),
        ("1 2\n".into(), "e:1:3: expected a dictionary"),
        (format!("{many}1 2 {{}}\n"), "e:100001:3: expected the attribute `weight`"),
        (format!("{many}1 2 {{'weight': 'x'}}\n"), ":100001:3: expected "),
    ] {
        let e = read(&text, &EdgeListFormat::networkx()).unwrap_err().to_string();
        assert!(e.contains(part), "expected {part:?} in {e}");
    }
    let e = read("1 2 {'km': 3}\n", &EdgeListFormat::networkx()).unwrap_err().to_string();
    assert!(e.contains("`load_edge_list` reads each attribute as a column"), "{e}");
}

/// Attributes of NetworkX that f32 cannot represent are errors, or rounded with `round_weights`.
#[test]
fn attributes_beyond_f32() {
    for (values, expected) in [
        (["1e300", "1"], [f32::INFINITY, 1.0]),
        (["0.5", "-1e300"], [0.5, f32::NEG_INFINITY]),
        (["1e-60", "2"], [0.0, 2.0]),
        (["16777217.0", "0.5"], [16_777_216.0, 0.5]),
        (["0.5", "16777217"], [0.5, 16_777_216.0]),
        // Integers of `weight` become floats, alone and next to a fraction.
        (["16777217", "0.5"], [16_777_216.0, 0.5]),
        (["16777217", "1"], [16_777_216.0, 1.0]),
    ] {
        let text = format!("1 2 {{'weight': {}}}\n2 3 {{'weight': {}}}\n", values[0], values[1]);
        let e = read(&text, &EdgeListFormat::networkx()).unwrap_err();
        let is_typed = match e.cause() {
            DataError::Table { column: 3, .. } => true,
            DataError::Graph(GraphError::Setting { arg, .. }) => *arg == "attributes",
            _ => false,
        };
        assert!(is_typed && e.to_string().contains("f32 can"), "{values:?}: {e:?}");
        let format = EdgeListFormat::networkx().round_weights();
        let rounded = read(&text, &format).unwrap();
        assert_eq!(rounded.columns.weights.unwrap(), expected, "{values:?}");
        assert_eq!(format.rounded.get(), 1, "{values:?}");
    }
    // Integer attributes other than `weight` are int64.
    let g = load("1 2 {'n': 16777217}\n", &EdgeListFormat::networkx());
    assert_eq!(g.edges("_E").unwrap().to_ints("n").unwrap(), [16_777_217]);
}

/// A file of another format is an error that names the format, for any options.
#[test]
fn files_of_other_formats() {
    let xml = "<?xml version='1.0'?>\n";
    let cycle = "4 4\n2 4\n1 3\n2 4\n1 3\n";
    for (text, part) in [
        (
            "%%MatrixMarket matrix coordinate pattern general\n3 3\n1 2\n",
            "a Matrix Market file; read it with `load_matrix_market`",
        ),
        (&format!("{xml}<graphml>\n"), "GraphML; read it with `load_graphml`"),
        (&format!("{xml}<gexf>\n"), "GEXF; not supported"),
        ("graph [\nnode [\nid 0\n]\n]\n", "GML; not supported"),
        ("*Vertices 2\n1 \"a\"\n2 \"b\"\n*Arcs\n1 2 1\n", "a Pajek file; not supported"),
        ("digraph g {\na b\n}\n", "a DOT file of Graphviz; not supported"),
        (
            "{\"directed\": false, \"nodes\": [], \"links\": []}",
            "node-link JSON; read it with `load_node_link`",
        ),
        (">>graph6<<DQc\n", "a graph6 or sparse6 file; not supported"),
        ("p edge 2 1\ne 1 2\n", "a DIMACS file; not supported"),
        (cycle, "a graph in METIS's format"),
        ("7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n", "a graph in METIS's format"),
        ("DQc\n", "this may be graph6, which is not supported"),
    ] {
        for format in [
            EdgeListFormat::new(),
            EdgeListFormat::new().with_text_ids(),
            EdgeListFormat::new().weighted(),
        ] {
            let e = read(text, &format).unwrap_err().to_string();
            assert!(e.contains(part), "expected {part:?} in {e}");
            assert!(e.contains("a list of edges") || e.contains("graph6"), "{e}");
        }
    }
    let e = read("2 1 11\n5 2 7\n5 1 7\n", &EdgeListFormat::new().weighted()).unwrap_err();
    assert!(e.to_string().contains("METIS"), "{e}");
    // After skipped header lines the content is not inspected.
    let banner = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n";
    assert_eq!(load(banner, &EdgeListFormat::new().with_header_lines(2)).total_edges(), 1);
    assert_eq!(read("4 4\n2 4\n1 3\n2 4\n1 2\n", &EdgeListFormat::new()).unwrap().src.len(), 5);
    let e = read("1 2 {}\n", &EdgeListFormat::new()).unwrap_err().to_string();
    assert!(e.contains("use `EdgeListFormat::networkx` for the dictionaries"), "{e}");
}

#[test]
fn byte_order_marks() {
    let format = EdgeListFormat::new();
    assert_eq!(ints(&read("\u{feff}1 2\n3 4\n", &format).unwrap().src), [1, 3]);
    let g = load("\u{feff}a b\n", &EdgeListFormat::new().with_text_ids());
    assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("a"), Some(0));
    assert_eq!(ints(&read("\u{feff}# c\n1 2\n", &format).unwrap().src), [1]);
    let marked = "\u{feff}%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n";
    assert!(read(marked, &format).unwrap_err().to_string().contains("load_matrix_market"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("e");
    let utf16: Vec<u8> = "\u{feff}1 2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, utf16).unwrap();
    let e = read_edge_list(&path, &format).unwrap_err().to_string();
    assert!(e.contains("expected UTF-8, found the byte order mark of UTF-16"), "{e}");
}

#[test]
fn errors_name_line_field_and_remedy() {
    let refused = |text: &str, format: EdgeListFormat, end: &str| {
        let e = read(text, &format).unwrap_err().to_string();
        assert!(e.ends_with(end), "expected {end:?} at the end of {e}");
    };
    let new = EdgeListFormat::new;
    refused(
        "1 2\n3\n",
        new(),
        "e:2: expected 2 fields separated by white space, got \"3\"; set delimiter, weights and extra fields in `EdgeListFormat`",
    );
    refused(
        "1 2 3\n",
        new(),
        "e:1: expected 2 fields separated by white space, got \"1 2 3\"; set delimiter, weights and extra fields in `EdgeListFormat`",
    );
    refused(
        "1,2\n",
        new().with_delimiter(",").weighted(),
        "e:1: expected 3 fields separated by \",\", got \"1,2\"; set delimiter, weights and extra fields in `EdgeListFormat`",
    );
    refused(
        "1,2,x\n",
        new().with_delimiter(",").weighted(),
        "e:1:3: expected a float (weight), got \"x\"",
    );
    for (weight, near) in [("1e300", f32::INFINITY), ("1e-60", 0.0), ("16777217", 16_777_216.0)] {
        let text = format!("1 2 {weight} 1289241911.72836\n");
        let weighted = new().weighted().with_extra_fields();
        refused(
            &text,
            weighted.clone(),
            &format!(
                "e:1:3: expected a number that f32 can represent (weight), got {weight:?}; use `EdgeListFormat::round_weights` to round to the nearest f32"
            ),
        );
        let rounding = weighted.round_weights();
        assert_eq!(read(&text, &rounding).unwrap().columns.weights.unwrap(), [near]);
        assert_eq!(rounding.rounded.get(), 1);
    }
    refused("1,,2\n", new().with_delimiter(","), "e:1:2: expected an int64, got \"\"");
    refused("0 3\n", new().with_num_nodes(3), "e:1:2: expected a node number in 0..3, got \"3\"");
    refused("-1 0\n", new().with_num_nodes(3), "e:1:1: expected a node number in 0..3, got \"-1\"");
    refused(
        "",
        new().with_delimiter(""),
        "`delimiter`: expected non-empty text without line breaks, got Some(\"\")",
    );
    refused(
        "",
        new().with_comments([""]),
        "`comments`: expected non-empty prefixes, got an empty one",
    );
    refused(
        "",
        new().with_text_ids().with_num_nodes(1),
        "`num_nodes`: expected none for text ids, got a number",
    );
    assert!(matches!(read_edge_list("no/such/file", &new()), Err(DataError::Io { .. })));
}
