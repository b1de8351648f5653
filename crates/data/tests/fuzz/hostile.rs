//! Files of about a megabyte that took a reader minutes or gigabytes, and errors that contained them whole.

use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;

use burn::tensor::Device;
use burn_gnn_data::datasets::{DataHome, Known};
use burn_gnn_data::{
    AttrType, Csv, Decoder, EdgeListFormat, Npz, RdfOptions, Topology, load_chunked, load_dataset,
    load_dgl_csv, load_edge_list, load_graph, load_knowledge_graph, load_matrix_market, load_ogb,
    load_tu_dataset, map_graph, open_chunked, read_edges, read_nodes, read_npy, read_rdf,
    read_scipy_npz, read_torch,
};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_sampling::MappedRows;
use burn_gnn_sampling::Placement;

use super::{ALONE, counting_allocator, put, sets, watchdog};

/// Reads `bytes` bytes of files in time and with no more memory than `fixed` and `per_byte` for each of them.
fn bounded<T>(
    what: &str,
    bytes: usize,
    (fixed, per_byte): (usize, usize),
    read: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    let _watch = watchdog::watch(what.to_owned(), bytes);
    counting_allocator::reset();
    let begin = watchdog::thread_seconds();
    let result = read();
    let (seconds, used) = (watchdog::thread_seconds() - begin, counting_allocator::above_reset());
    println!("{what}: {bytes} bytes, {used} bytes of memory, {seconds:.3} s");
    assert!(seconds <= watchdog::seconds(bytes), "{what}: {seconds} s for {bytes} bytes");
    assert!(used <= fixed + per_byte * bytes, "{what}: {used} bytes of memory for {bytes} bytes");
    if let Err(e) = &result {
        let text = e.to_string();
        assert!(text.len() < 2_000, "{what}: an error of {} bytes", text.len());
    }
    result
}

const USUAL: (usize, usize) = (8 << 20, 64);
/// What damaged tables and matrices may take.
const SMALL: (usize, usize) = (8 << 20, 4);

fn gzip(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    parts.for_each(|p| out.write_all(&p).unwrap());
    out.finish().unwrap()
}

fn text_of(e: DataError) -> String {
    e.to_string()
}

#[test]
fn files_that_grow() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tmp = tempfile::tempdir().unwrap();
    // One thread, as the limits are for any number of them.
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        pickles(tmp.path());
        checkpoints(tmp.path());
        tensor_headers(tmp.path());
        rdf(tmp.path());
        csv_files(tmp.path());
        digits(tmp.path());
        compressed(tmp.path());
        descriptions(tmp.path());
    });
}

/// Lists of types held a text for each line and name.
#[test]
fn lists_of_types() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tmp = tempfile::tempdir().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        lists_of_ogb(tmp.path());
    });
}

fn lists_of_ogb(dir: &Path) {
    /// Files that are no list of types are never held whole.
    const SMALL: (usize, usize) = (8 << 20, 4);
    let dir = dir.join("lists");
    let [dict, list, ..] = &sets::ogb_typed(&dir)[..] else { unreachable!("five files at least") };
    let whole = [dict, list].map(|file| std::fs::read(file).unwrap());
    let names: String = (0..20_000).map(|i| format!("{i:x},")).collect();
    let triples: String = (0..11_000).map(|i| format!("author,r{i:x},paper\n")).collect();
    let columns = |names: &str| format!("{names}\n{}1\n", "1,".repeat(names.matches(',').count()));
    for (file, texts) in [
        (
            dict,
            [
                columns(&names),
                ",".repeat(1 << 20),
                columns(&",".repeat(100_000)),
                "\n".repeat(1 << 20),
            ],
        ),
        (
            list,
            [
                triples,
                "\n".repeat(1 << 20),
                "author,writes,paper\n".repeat(10_000),
                ",,\n".repeat(80_000),
            ],
        ),
    ] {
        for text in texts {
            std::fs::write(file, &text).unwrap();
            bounded("lists of OGB", text.len(), SMALL, || load_ogb(&dir)).unwrap_err();
        }
        for (file, bytes) in [dict, list].iter().zip(&whole) {
            std::fs::write(file, bytes).unwrap();
        }
    }
}

fn rdf(dir: &Path) {
    // Predicates that end alike: each name was looked for from 1 on.
    let lines: String = (0..14_000).map(|i| format!("<u:a> <http://x/{i}#p> <u:b> .\n")).collect();
    let file = put(dir, "alike.nt", &lines);
    let g = bounded("names of relations", lines.len(), (48 << 20, 128), || {
        read_rdf(&file, &RdfOptions::new())
    })
    .unwrap();
    assert_eq!((g.predicates.len(), g.graph.relations().len()), (14_000, 14_000));
    assert!(g.predicates.contains_key("p") && g.predicates.contains_key("p-14000"));
    let lines: String = (0..40_000).map(|i| format!("<u:a> <u:{i}> <u:b> .\n")).collect();
    let file = put(dir, "many.nt", &lines);
    let e =
        bounded("predicates", lines.len(), (48 << 20, 128), || read_rdf(&file, &RdfOptions::new()))
            .unwrap_err();
    assert!(text_of(e).contains(" predicates in "), "a relation for each predicate");
    for (name, open) in [("round", "("), ("square", "[ <u:p> "), ("subject", "(")] {
        let start = if name == "subject" { "" } else { "<u:a> <u:b> " };
        let text = format!("{start}{}", open.repeat(1 << 20));
        let file = put(dir, &format!("{name}.ttl"), &text);
        let e = bounded("brackets", text.len(), (48 << 20, 128), || {
            read_rdf(&file, &RdfOptions::new())
        })
        .unwrap_err();
        assert!(text_of(e).contains("brackets inside each other"), "{name}");
    }
    // A prefix of half a megabyte in ten thousand terms.
    let text = format!(
        "@prefix x: <u:{}> . {}",
        "p".repeat(1 << 19),
        (0..50_000).map(|i| format!("x:{i} x:p x:o .\n")).collect::<String>()
    );
    let file = put(dir, "prefix.ttl", &text);
    let e =
        bounded("a prefix", text.len(), (64 << 20, 192), || read_rdf(&file, &RdfOptions::new()))
            .unwrap_err();
    assert!(text_of(e).contains("shorten the prefixes"));
    // A long list is no deep one.
    let text = format!("<u:a> <u:b> ( {} ) .", "1 ".repeat(1 << 18));
    let file = put(dir, "list.ttl", &text);
    bounded("a list", text.len(), (48 << 20, 128), || read_rdf(&file, &RdfOptions::new())).unwrap();
}

fn csv_files(dir: &Path) {
    let device = Device::flex();
    let meta = "dataset_name: d\nnode_data:\n- file_name: n.csv\nedge_data:\n- file_name: e.csv\n";
    let folder = dir.join("wide");
    let load = |nodes: &str, meta: &str| {
        put(&folder, "meta.yaml", meta);
        put(&folder, "n.csv", nodes);
        put(&folder, "e.csv", "src_id,dst_id\n");
        bounded("DGL's CSV", nodes.len(), (40 << 20, 64), || load_dgl_csv(&folder, &device))
    };
    let wide =
        |n: usize| format!("node_id{}\n", (0..n).map(|i| format!(",c{i}")).collect::<String>());
    assert!(
        text_of(load(&wide(100_000), meta).unwrap_err())
            .contains("n.csv:1:16385: expected at most 16384 columns")
    );
    assert_eq!(
        load(&wide(16_000), meta).unwrap().graphs[0].node_frames()[0].columns().count(),
        16_000
    );
    // Columns of one file times graphs of another.
    let graphs: String = std::iter::once("graph_id\n".to_owned())
        .chain((0..50_000).map(|i| format!("{i}\n")))
        .collect();
    put(&folder, "g.csv", &graphs);
    let e = load(&wide(5_000), &format!("{meta}graph_data: {{file_name: g.csv}}\n")).unwrap_err();
    assert!(text_of(e).contains("meta.yaml: expected graphs with at most"));

    let names = Decoder::new().csv(Csv::default());
    let delimiters = ",".repeat(4 << 20);
    for (name, text) in [
        ("head.csv", delimiters.clone()),
        ("row.csv", format!("id\n{delimiters}")),
        ("quote.csv", format!("id\n\"{delimiters}")),
        ("lines.csv", format!("id\n{}\"", "\n".repeat(4 << 20))),
    ] {
        let file = put(dir, name, &text);
        let read = || read_nodes(&file, &names);
        assert!(bounded("CSV of commas", text.len(), SMALL, read).is_err());
    }
    let tabs = "\t".repeat(4 << 20);
    for (name, text) in [("head", tabs.clone()), ("row", format!("id:int64\n{tabs}"))] {
        let file = put(dir, name, &text);
        let read = || read_nodes(&file, &Decoder::new());
        assert!(bounded("a table of tabs", text.len(), SMALL, read).is_err());
    }
    // The shortest entries there are, all of them right but the last.
    for (kind, last) in
        [("pattern general", "1 x\n"), ("pattern symmetric", ""), ("pattern general", "")]
    {
        let body = "1 1\n".repeat(1 << 20);
        let entries = (1 << 20) + usize::from(last.is_empty());
        let text = format!("%%MatrixMarket matrix coordinate {kind}\n9 9 {entries}\n{body}{last}");
        let file = put(dir, "m.mtx", &text);
        let read = || load_matrix_market(&file, &device);
        assert!(bounded("Matrix Market", text.len(), SMALL, read).is_err());
    }
    let text = "0,".repeat(2 << 20);
    put(dir, "ogb/raw/num-node-list.csv", "1\n");
    put(dir, "ogb/raw/edge.csv", &text);
    assert!(bounded("OGB", text.len(), USUAL, || load_ogb(dir.join("ogb"))).is_err());
}

/// What a data set of many short numbers may take; one with an error takes at most [`SMALL`]. The documents of
/// `load_dgl_csv` and `load_tu_dataset` state the same numbers.
const DIGITS: (usize, usize) = (8 << 20, 16);

/// Sets whose cells are single digits, the shortest that there are: whole files, and files with an error at the end.
fn digits(dir: &Path) {
    let device = Device::flex();
    let n = 1 << 20;
    let columns = |count: usize| (0..count).map(|i| format!(",c{i}")).collect::<String>();
    let rows = |count: usize, row: &str| row.repeat(count);
    let numbered: String = (0..n / 7).map(|i| format!("{i}\n")).collect();
    let ids = |with: &str| (0..n / 40).map(|i| format!("{i}{with}\n")).collect::<String>();
    let meta = "dataset_name: d\nnode_data:\n- file_name: n.csv\nedge_data:\n- file_name: e.csv\n";
    let folder = dir.join("digits");
    put(&folder, "meta.yaml", meta);
    let short = "node_id\n0\n".to_owned();
    let no_edges = "src_id,dst_id\n".to_owned();
    for (what, nodes, edges) in [
        ("ids of nodes", format!("node_id\n{numbered}"), no_edges.clone()),
        (
            "columns of nodes",
            format!("node_id{}\n{}", columns(64), ids(&",1".repeat(64))),
            no_edges.clone(),
        ),
        (
            "vectors of nodes",
            format!("node_id,x\n{}", ids(&format!(",\"1{}\"", ",1".repeat(30)))),
            no_edges.clone(),
        ),
        ("edges", short.clone(), format!("src_id,dst_id\n{}", rows(n / 4, "0,0\n"))),
        (
            "columns of edges",
            short,
            format!("src_id,dst_id{}\n{}", columns(8), rows(n / 20, "0,0,1,1,1,1,1,1,1,1\n")),
        ),
    ] {
        for (last, limit) in [("", DIGITS), ("x\n", SMALL)] {
            put(&folder, "n.csv", &nodes);
            put(&folder, "e.csv", format!("{edges}{last}"));
            let read = || load_dgl_csv(&folder, &device);
            let result =
                bounded(&format!("DGL's CSV, {what}"), nodes.len() + edges.len(), limit, read);
            assert_eq!(result.is_ok(), last.is_empty(), "{what}: {result:?}");
        }
    }
    let folder = dir.join("digits-tu");
    let ones = |count: usize| "1\n".repeat(count);
    for (what, nodes, edges) in [("nodes", n, 1), ("edges", 1, n / 4), ("both", n / 4, n / 4)] {
        for (last, limit) in [("", DIGITS), ("x\n", SMALL)] {
            let files = [
                ("A", format!("{}{last}", "1,1\n".repeat(edges))),
                ("graph_indicator", ones(nodes)),
                ("graph_labels", ones(1)),
                ("node_labels", ones(nodes)),
                ("edge_labels", ones(edges)),
                ("node_attributes", "1,1,1,1\n".repeat(nodes)),
                ("edge_attributes", "1,1\n".repeat(edges)),
            ];
            let bytes = files.iter().map(|(_, text)| text.len()).sum();
            for (name, text) in files {
                put(&folder, &format!("T_{name}.txt"), text);
            }
            let read = || load_tu_dataset(&folder, &device);
            let result = bounded(&format!("TUDataset, {what}"), bytes, limit, read);
            assert_eq!(result.is_ok(), last.is_empty(), "{what}: {result:?}");
        }
    }
}

/// A megabyte that expands to a gigabyte is refused at its beginning.
fn compressed(dir: &Path) {
    let line = b"0\t0\n".repeat(1 << 18);
    let bytes = gzip((0..300).map(|_| line.clone()));
    let header = gzip(std::iter::once(b"src_id:int64\tdst_id:int64\n".to_vec()));
    let table = put(dir, "bomb.gz", [header, bytes.clone()].concat());
    let most = (256 << 20, 0);
    let e = bounded("gzip, table", bytes.len(), most, || read_edges(&table, &Decoder::new()))
        .unwrap_err();
    assert!(text_of(e).contains("raise `max_expansion`"));
    let list = put(dir, "list.gz", &bytes);
    let format = EdgeListFormat::new();
    let e = bounded("gzip, edge list", bytes.len(), most, || {
        load_edge_list(&list, &format, &Device::flex())
    })
    .unwrap_err();
    assert!(text_of(e).contains("raise `max_expansion`"));
    // An archive whose arrays are zeros.
    let zeros = sets::npy("|i1", "(33554432,)", &vec![0; 32 << 20]);
    let arrays: Vec<(String, Vec<u8>)> = (0..4).map(|i| (format!("a{i}"), zeros.clone())).collect();
    let arrays: Vec<(&str, Vec<u8>)> =
        arrays.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    let bytes = sets::npz(&arrays, true);
    let file = put(dir, "zeros.npz", &bytes);
    let e = bounded("npz", bytes.len(), (1 << 20, 64), || Npz::open(&file)).unwrap_err();
    assert!(text_of(e).contains("save it without compression"));
}

fn pickles(dir: &Path) {
    let home = DataHome::at(dir.join("home")).offline();
    sets::planetoid(&dir.join("home/cora"));
    let n = 4 << 20;
    let programs: [(&str, Vec<u8>); 11] = [
        ("lists", b"]".repeat(n)),
        ("the memo", [b"N".to_vec(), b"\x94".repeat(n)].concat()),
        ("lists of nothing", b"](e".repeat(n / 3)),
        ("dictionaries of one", b"}NNs".repeat(n / 4)),
        ("dictionaries in the memo", b"}\x94".repeat(n / 2)),
        ("marks", b"(".repeat(n)),
        ("numbers in a list", [b"](K\x01".to_vec(), b"2".repeat(n), b"e.".to_vec()].concat()),
        ("lists of one", b"]K\x01a".repeat(n / 4)),
        ("tuples of one", [b"N".to_vec(), b"\x85".repeat(n)].concat()),
        ("texts", b"U\x00".repeat(n / 2)),
        (
            "places of the memo",
            (0..n as u32 / 5).flat_map(|i| [b'r'].into_iter().chain(i.to_le_bytes())).collect(),
        ),
    ];
    for (what, program) in programs {
        let bytes = [b"\x80\x02N".to_vec(), program].concat();
        put(dir, "home/cora/ind.cora.allx", &bytes);
        assert!(
            bounded(what, bytes.len(), SMALL, || Known::Cora.load_from(&home)).is_err(),
            "{what}"
        );
    }
    // A dictionary with a list of neighbours that are one number.
    sets::planetoid(&dir.join("home/cora"));
    let bytes = [b"\x80\x02}(K\x00](K\x01".to_vec(), b"2".repeat(n / 4), b"eu.".to_vec()].concat();
    put(dir, "home/cora/ind.cora.graph", &bytes);
    bounded("neighbours", bytes.len(), (8 << 20, 16), || Known::Cora.load_from(&home)).unwrap();
}

/// Headers of many tensors of nothing.
fn tensor_headers(dir: &Path) {
    let file = dir.join("headers");
    for (what, entry) in [
        ("tensors of nothing", r#""{}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#),
        ("texts of nothing", r#""{}":"""#),
    ] {
        let entries: Vec<String> =
            (0..50_000).map(|i| entry.replace("{}", &format!("{i:x}"))).collect();
        let entries = entries.join(",");
        let json = if what.starts_with("texts") {
            format!(r#"{{"__metadata__":{{{entries}}}}}"#)
        } else {
            format!("{{{entries}}}")
        };
        let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
        std::fs::write(&file, &bytes).unwrap();
        let rows = || MappedRows::open(&file);
        assert!(bounded(what, bytes.len(), SMALL, rows).is_err());
        let topology = || Topology::open(&file, Placement::Memory);
        assert!(bounded(what, bytes.len(), SMALL, topology).is_err());
    }
}

/// Checkpoints whose pickles repeat values, and storages that several entries of the archive share.
fn checkpoints(dir: &Path) {
    let n = 1 << 20;
    let archive = |program: &[u8]| {
        let mut out = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in
            [("a/data.pkl", [b"\x80\x02", program, b"."].concat()), ("a/data/0", vec![0; 64])]
        {
            out.start_file(name, options).unwrap();
            out.write_all(&bytes).unwrap();
        }
        out.finish().unwrap().into_inner()
    };
    let text = |t: &str| [b"X", &(t.len() as u32).to_le_bytes()[..], t.as_bytes()].concat();
    // A tensor of 16 numbers at place 0 of the memo.
    let storage = [
        b"(".to_vec(),
        text("storage"),
        b"ctorch\nFloatStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        b"K\x10tQ".to_vec(),
    ]
    .concat();
    let tensor = [
        b"ctorch._utils\n_rebuild_tensor_v2\n(".to_vec(),
        storage,
        b"K\x00K\x10\x85K\x01\x85\x89Ntq\x01Rq\x000".to_vec(),
    ]
    .concat();
    let long = text(&"n".repeat(n));
    let doubled = (2..40u8)
        .flat_map(|i| [b"(h", &[i - 1][..], b"h", &[i - 1], b"tq", &[i], b"0"].concat())
        .collect::<Vec<u8>>();
    let program = |rest: &[&[u8]]| [&[&tensor[..]], rest].concat().concat();
    for (what, program) in [
        ("tuples of two tuples", program(&[b"(h\x00tq\x010", &doubled, b"h\x27"])),
        (
            "one long name",
            program(&[&long, b"q\x020}(", &b"h\x02}h\x02h\x00s".repeat(n / 8), b"u"]),
        ),
        ("a list in itself", program(&[b"]q\x02h\x02ah\x02h\x00a"])),
        (
            "tensors without a storage",
            program(&[b"(", &b"ctorch._utils\n_rebuild_tensor_v2\nNR".repeat(n / 64), b"t"]),
        ),
    ] {
        let bytes = archive(&program);
        let file = put(dir, "a.pt", &bytes);
        assert!(bounded(what, bytes.len(), SMALL, || read_torch(&file)).is_err(), "{what}");
    }
    // One tensor under many names.
    for names in [10_000, n] {
        let bytes = archive(&program(&[b"(", &b"h\x00".repeat(names), b"t"]));
        let file = put(dir, "a.pt", &bytes);
        let all = bounded("one tensor many times", bytes.len(), SMALL, || read_torch(&file));
        assert_eq!(all.map(|all| all.len()).ok(), (names < n).then_some(names));
    }
}

/// Descriptions that name much, or one file again and again.
fn descriptions(dir: &Path) {
    let device = Device::flex();
    let long = "n".repeat(4 << 20);
    let folder = dir.join("long");
    for json in [
        format!(r#"{{"layout": "{long}"}}"#),
        format!(r#"{{"layout_version": "{long}"}}"#),
        format!(r#"{{"layout_version": 1, "name": "x", "{long}": }}"#),
        format!(r#"{{"layout_version": 1, "name": {{"{long}": 1}}}}"#),
        format!(
            r#"{{"layout_version": 1, "name": "x", "target_node_type": "{long}", "inverse_edges_stored": false, "node_types": {{}}, "edge_types": [], "labels": {{}}, "splits": {{}}}}"#
        ),
        format!(
            r#"{{"layout_version": 1, "name": "x", "target_node_type": "a", "inverse_edges_stored": false, "node_types": {{"a": {{"count": 2}}}},
            "edge_types": [{{"src": "{long}", "relation": "r", "dst": "a", "count": 0, "file": "e"}}], "labels": {{}}, "splits": {{}}}}"#
        ),
        format!(
            r#"{{"layout_version": 1, "name": "x", "target_node_type": "a", "inverse_edges_stored": false, "node_types": {{"a": {{"count": 2}}}},
            "edge_types": [{{"src": "a", "relation": "r", "dst": "a", "count": 0, "file": "{long}/../x"}}], "labels": {{}}, "splits": {{}}}}"#
        ),
    ] {
        let file = put(&folder, "metadata.json", &json);
        for e in [
            load_dataset(&folder).map(drop).unwrap_err(),
            load_knowledge_graph(&folder).map(drop).unwrap_err(),
            load_chunked(&folder, &device).map(drop).unwrap_err(),
        ] {
            let text = text_of(e);
            assert!(
                text.len() < 2_000 && text.contains(&file.display().to_string()),
                "{} bytes: {:.200}",
                text.len(),
                text
            );
            assert!(!text.contains(&long[..200]), "{text:.300}");
        }
    }
    // One file under many names: a table of a megabyte a thousand times.
    let folder = dir.join("again");
    put(&folder, "x.csv", "0 0\n".repeat(1 << 18));
    let names = vec![r#""x.csv""#; 1000].join(",");
    let counts = vec!["262144"; 1000].join(",");
    let json = format!(
        r#"{{"graph_name": "g", "node_type": ["a"], "num_nodes_per_chunk": [[1]], "edge_type": ["a:r:a"], "num_edges_per_chunk": [[{counts}]],
        "edges": {{"a:r:a": {{"format": {{"name": "csv"}}, "data": [{names}]}}}}}}"#
    );
    put(&folder, "metadata.json", &json);
    let e = bounded("one file again and again", json.len() + (1 << 20), USUAL, || {
        open_chunked(folder.join("metadata.json"))
    })
    .unwrap_err();
    assert!(text_of(e).contains("named at most 4 times on average"));
}

/// Errors that are about what a file holds, and did not say which.
#[test]
fn errors_name_the_file() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tmp = tempfile::tempdir().unwrap();
    let (dir, device) = (tmp.path(), Device::flex());
    let named = |e: DataError, file: &str| {
        let text = e.to_string();
        assert!(text.contains(&dir.join(file).display().to_string()), "expected {file} in {text}");
    };
    let edges = |v: &[i64]| {
        sets::npy(
            "<i8",
            &format!("(2, {})", v.len() / 2),
            &v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>(),
        )
    };
    let json = r#"{"layout_version": 1, "name": "x", "target_node_type": "a", "inverse_edges_stored": false, "node_types": {"a": {"count": 2}},
        "edge_types": [{"src": "a", "relation": "r", "dst": "a", "count": 1, "file": "e.npy"}], "labels": {}, "splits": {}}"#;
    put(dir, "arrays/metadata.json", json);
    put(dir, "arrays/e.npy", edges(&[0, 2]));
    named(load_dataset(dir.join("arrays")).unwrap_err(), "arrays/e.npy");
    put(dir, "arrays/metadata.json", json.replace("\"relation\": \"r\"", "\"relation\": \"a:b\""));
    put(dir, "arrays/e.npy", edges(&[0, 1]));
    named(load_dataset(dir.join("arrays")).unwrap_err(), "arrays/metadata.json");
    sets::ogb(&dir.join("ogb"));
    put(dir, "ogb/raw/edge.csv", "0,9\n");
    named(load_ogb(dir.join("ogb")).unwrap_err(), "ogb/raw/edge.csv");
    sets::ogb_typed(&dir.join("typed"));
    put(dir, "typed/raw/triplet-type-list.csv", "author,writes,book\n");
    named(load_ogb(dir.join("typed")).unwrap_err(), "typed/raw/triplet-type-list.csv");
    sets::dgl_csv(&dir.join("dgl"));
    let meta = std::fs::read_to_string(dir.join("dgl/meta.yaml")).unwrap();
    put(dir, "dgl/meta.yaml", meta.replace("[user, knows, user]", "[user, knows, robot]"));
    named(load_dgl_csv(dir.join("dgl"), &device).unwrap_err(), "dgl/meta.yaml");
    sets::chunked(&dir.join("chunked"));
    put(dir, "chunked/w0.csv", "0,9\n");
    named(load_chunked(dir.join("chunked"), &device).unwrap_err(), "chunked/metadata.json");
    super::graph(&dir.join("graph"), &device);
    let description = std::fs::read_to_string(dir.join("graph/graph.json")).unwrap();
    put(dir, "graph/graph.json", description.replacen("\"src\": \"a\"", "\"src\": \"z\"", 1));
    named(load_graph(dir.join("graph"), &device).unwrap_err(), "graph/graph.json");
    named(map_graph(dir.join("graph"), &device).map(drop).unwrap_err(), "graph/graph.json");
    put(dir, "graph/graph.json", description.replacen("\"count\": 2", "\"count\": 1", 1));
    let e = load_graph(dir.join("graph"), &device).unwrap_err();
    assert!(matches!(e.cause(), DataError::Graph(GraphError::NodeOutOfRange { .. })), "{e}");
    named(e, "graph/graph.safetensors");
    put(dir, "list.txt", "0 0\n");
    let e = load_edge_list(
        dir.join("list.txt"),
        &EdgeListFormat::new().with_num_nodes(u32::MAX as usize),
        &device,
    )
    .unwrap_err();
    assert!(matches!(e.cause(), DataError::Graph(GraphError::TooLarge { .. })));
    named(e, "list.txt");
}

/// A pipe without a writer, a device that never ends, a folder.
#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tmp = tempfile::tempdir().unwrap();
    let (dir, device) = (tmp.path(), Device::flex());
    let status = std::process::Command::new("mkfifo").arg(dir.join("pipe")).status();
    assert!(status.is_ok_and(|s| s.success()), "`mkfifo` makes pipes");
    for (special, kind) in [
        (dir.join("pipe"), "a pipe"),
        ("/dev/zero".into(), "a device"),
        (dir.to_owned(), "a directory"),
    ] {
        // Readers of folders meet it in place of each of their files.
        let link = |folder: &str, file: &str| {
            let path = dir.join(folder).join(file);
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(&special, &path).unwrap();
            dir.join(folder)
        };
        let refused = |what: &str, result: Result<(), DataError>| {
            let e = result.unwrap_err();
            // A folder stands for its files where tables are read.
            let expected = format!("expected a regular file, found {kind}");
            assert!(
                matches!(e, DataError::Format { .. }) && e.to_string().contains(&expected)
                    || kind == "a directory",
                "{what}: {e}"
            );
        };
        let _watch = watchdog::watch(format!("reading {}", special.display()), 0);
        refused("npy", read_npy(&special).map(drop));
        refused("npz", Npz::open(&special).map(drop));
        refused("scipy", read_scipy_npz(&special).map(drop));
        refused("torch", read_torch(&special).map(drop));
        refused("nodes", read_nodes(&special, &Decoder::new()).map(drop));
        refused(
            "csv",
            read_nodes(
                &special,
                &Decoder::new().with_attributes([AttrType::Int]).csv(Csv::new(["x"])),
            )
            .map(drop),
        );
        refused(
            "shard",
            read_nodes(burn_gnn_data::Source::from(&special).shard(0, 2), &Decoder::new())
                .map(drop),
        );
        refused("list", load_edge_list(&special, &EdgeListFormat::new(), &device).map(drop));
        refused(
            "rdf",
            read_rdf(&special, &RdfOptions::new().with_syntax(burn_gnn_data::RdfSyntax::Turtle))
                .map(drop),
        );
        refused("rows", MappedRows::open(&special).map(drop));
        for placement in [Placement::Memory, Placement::Mapped] {
            refused("topology", Topology::open(&special, placement).map(drop));
        }
        refused("chunked", open_chunked(&special).map(drop));
        super::graph(&dir.join("graph"), &device);
        refused("tensors", load_graph(link("graph", "graph.safetensors"), &device).map(drop));
        refused("mapped", map_graph(dir.join("graph"), &device).map(drop));
        refused("graph", load_graph(link("graph", "graph.json"), &device).map(drop));
        super::arrays(&dir.join("arrays"));
        refused("dataset", load_dataset(link("arrays", "labels/paper.npy")).map(drop));
        refused("dataset", load_dataset(link("arrays", "metadata.json")).map(drop));
        sets::dgl_csv(&dir.join("dgl"));
        refused("dgl", load_dgl_csv(link("dgl", "u.csv"), &device).map(drop));
        refused("dgl", load_dgl_csv(link("dgl", "meta.yaml"), &device).map(drop));
        sets::ogb(&dir.join("ogb"));
        refused("ogb", load_ogb(link("ogb", "raw/edge.csv")).map(drop));
        let home = DataHome::at(dir.join("home")).offline();
        sets::planetoid(&dir.join("home/cora"));
        link("home", "cora/ind.cora.graph");
        refused("pickle", Known::Cora.load_from(&home).map(drop));
        for folder in ["graph", "arrays", "dgl", "ogb", "home"] {
            std::fs::remove_dir_all(dir.join(folder)).unwrap();
        }
    }
}
