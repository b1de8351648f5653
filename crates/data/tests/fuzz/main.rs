//! Damaged files, many of them: every reader answers with a value or an error, never a panic, in time and with memory
//! that grow with the size of the files.
//!
//! Two kinds of damage, both functions of the number of the case. Bytes:
//! `BURN_GNN_FUZZ=1000000 cargo test -p burn-gnn-data --test fuzz` damages a million files for each reader; a thousand
//! by default. Structure (`structure.rs`): header fields, lengths, types, nesting, entries of archives, in files of up
//! to some hundred kilobytes: `BURN_GNN_FUZZ_BYTES=100000000` writes so many bytes over all readers; four million by
//! default. `BURN_GNN_FUZZ_READER=npz` runs the readers whose names begin so alone.
//!
//! `hostile.rs` has the files that were found to be too much for a reader once, `memory.rs` the arguments that were too
//! much for a graph transform.

mod hostile;
mod memory;
mod sets;
mod structure;
mod watchdog;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Tensor};
use burn_gnn_data::datasets::{DataHome, Known};
use burn_gnn_data::{
    AttrType, Csv, Database, DatabaseOptions, Decoder, EdgeListFormat, Encoding, Npz, RdfOptions,
    ReadOptions, TimeUnit, Topology, load_chunked, load_dataset, load_dgl_csv, load_edge_list,
    load_gnn_benchmark, load_graph, load_graphml, load_knowledge_graph, load_matrix_market,
    load_node_link, load_ogb, load_ogb_graph, load_tu_dataset, map_graph, read_edges_with,
    read_nodes_with, read_npy, read_rdf, read_scipy_npz, read_torch, save_graph, write_atomic,
};
use burn_gnn_graph::{GlobalIds, Graph, Ids, NodeIds, Ragged};
use burn_gnn_sampling::{FeatureSource, MappedRows, MemoryRows, write_rows};
use burn_gnn_sampling::{Placement, RowType};
use burn_gnn_testutil::counting_allocator::{self, CountingAllocator};
use burn_gnn_testutil::damage::Damage;
use structure::{
    CSV as COMMAS, DIALECT as DIALECT_PARTS, Form, LIST, RDF, TABLE, XML, YAML, damaged,
};
use watchdog::Worst;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Bytes of memory that a reader may take: for any file, and for each byte of it. `docs/reliability.md` has the same
/// numbers.
fn limit(reader: &str) -> (usize, usize) {
    match reader {
        // A tensor for every column and graph, a relation for every predicate.
        "dgl csv" | "tu" | "database" | "relbench" => (40 << 20, 64),
        "planetoid" => (8 << 20, 16),
        "torch" | "torch before 1.6" | "rows" | "topology" | "topology mapped" | "graph"
        | "mapped" => (8 << 20, 4),
        "rdf triples" | "rdf lenient" | "rdf turtle" | "rdf turtle lenient" | "entities" => {
            (64 << 20, 192)
        }
        _ => (4 << 20, 64),
    }
}

/// Readers that [`readers`] runs, among which the bytes of structured damage are divided.
const READERS: usize = if cfg!(feature = "parquet") { 46 } else { 43 };
/// Readers that ran or were left out.
static CALLED: AtomicUsize = AtomicUsize::new(0);

const NODES: &str = "id:int64\tweight:float\tlabel:int32\ttime:int64\tfeature:string\n10001\t0.5\t2\t99\tred:1:0.1:a,b:7\n-7\t1e3\t-1\t0\tblue:2:0.2::9\n\
                     9223372036854775807\tinf\t0\t5\t:-3:nan:c,,c:0\n3\t0\t1\t1\tx y:4:4:d:8\n";
const EDGES: &str = "src_id:string\tdst_id:string\tweight:double\r\na\tb\t1.5\r\nköln\tb\t2\r\nc\tb\t-0\r\na\ta\t3\r\n";
const CSV: &str = "\u{feff}name,id,height,label\r\n\"Ann, \"\"A\"\"\",7,1.5,0\r\n\"two\nlines\",-3,2,1\r\nCy,9,0.5,2\r\n";

const DIALECT: &[u8] =
    b"about\n# a comment\n1::'a\\'b'::1,5::2014-01-31::y\n-2::NA::7::1289241911.72836::\xe9\n";

/// Every option of a dialect.
fn dialect() -> Decoder {
    let csv = Csv::new(["x", "name"])
        .with_delimiter("::")
        .with_columns(["id", "name", "x", "time"])
        .with_timestamp("time")
        .with_time_unit(TimeUnit::Microseconds)
        .with_skipped_lines(1)
        .with_comment("#")
        .with_quote('\'')
        .with_escape('\\')
        .with_decimal(',')
        .with_missing(["NA"])
        .with_encoding(Encoding::Latin1);
    Decoder::new().with_attributes([AttrType::Float, AttrType::Text]).csv(csv)
}

fn decoder() -> Decoder {
    let types = [
        AttrType::string_buckets(7),
        AttrType::Int,
        AttrType::Float,
        AttrType::multi_string(5),
        AttrType::hashed_int(9),
    ];
    Decoder::new().weighted().labeled().timestamped().with_attributes(types)
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Tests measure the memory of the process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What a file of a reader is.
fn form(reader: &str, file: &Path) -> Form {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let end = name.rsplit('.').next().unwrap_or_default();
    match (reader, end) {
        ("gzip", _) => Form::Gzip(&["\t", "\n", ":", "0"]),
        ("zstd", _) => Form::Zstd(&["\t", "\n", ":", "0"]),
        ("nodes" | "edges", _) | (_, "tsv") => TABLE,
        ("rows" | "topology" | "topology mapped", _) | (_, "safetensors") => Form::Safetensors,
        ("planetoid", "index") => LIST,
        ("planetoid" | "torch before 1.6", _) => Form::Pickle,
        (_, "json") => Form::Json,
        ("parquet table" | "parquet array", _) | (_, "parquet") => Form::Parquet,
        (_, "npy") => Form::Npy,
        (_, "npz" | "pt") => Form::Zip,
        (_, "yaml") => YAML,
        (_, "graphml") => XML,
        ("csv dialect", _) => DIALECT_PARTS,
        ("csv", _) | (_, "csv") => COMMAS,
        (_, "nt" | "ttl" | "gz") => RDF,
        ("tables", _) => TABLE,
        _ => LIST,
    }
}

/// Damages one file after the other, reads, and repairs it.
fn fuzz(name: &str, files: &[PathBuf], read: impl Fn() -> bool) {
    CALLED.fetch_add(1, Ordering::Relaxed);
    if std::env::var("BURN_GNN_FUZZ_READER").is_ok_and(|only| !name.starts_with(&only)) {
        return;
    }
    let whole: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let total: usize = whole.iter().map(Vec::len).sum();
    assert!(read(), "{name}: undamaged");
    let mut bytes = Worst::default();
    for case in 0..setting("BURN_GNN_FUZZ").unwrap_or(1_000) {
        let mut damage = Damage::new(case);
        let at = damage.below(files.len());
        let spoilt = damage.spoil(&whole[at]);
        std::fs::write(&files[at], &spoilt).unwrap();
        bytes.read(name, case, total + spoilt.len(), limit(name), &read);
        std::fs::write(&files[at], &whole[at]).unwrap();
    }
    // Every number of a topology is checked: of a thousand damaged files none is accepted, of a million some with other
    // white space.
    let spared = name.starts_with("topology") || bytes.accepted > 0;
    assert!(
        spared && bytes.accepted < bytes.cases || bytes.cases < 1_000,
        "{name}: damage is too weak or too strong to show anything"
    );
    let (mut inside, budget) =
        (Worst::default(), setting("BURN_GNN_FUZZ_BYTES").unwrap_or(4_000_000) / READERS as u64);
    while inside.bytes < budget {
        let case = inside.cases;
        let mut damage = Damage::new(case.wrapping_add(1 << 40));
        let at = damage.below(files.len());
        let (made, looked_at) = damaged(form(name, &files[at]), &whole[at], &mut damage);
        std::fs::write(&files[at], &made).unwrap();
        inside.bytes += made.len().max(1) as u64;
        inside.read(name, case, total + looked_at, limit(name), &read);
        std::fs::write(&files[at], &whole[at]).unwrap();
    }
    println!(
        "{name:<15} {:>7} bytes damaged, {:>6} read | {:>9} bytes of {:>6} structures, {:>6} read, {:>5.1} bytes/byte, {:>6.3} s/MB | at most {} bytes",
        bytes.cases,
        bytes.accepted,
        inside.bytes,
        inside.cases,
        inside.accepted,
        inside.memory,
        inside.time,
        bytes.most.max(inside.most)
    );
}

fn options() -> ReadOptions {
    ReadOptions { max_problems: 3, max_expansion: 8, ..ReadOptions::default() }.with_progress(false)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_atomic(&path, |w| w.write_all(bytes.as_ref())).unwrap();
    path
}

fn graph(dir: &Path, device: &Device) -> Vec<PathBuf> {
    let mut g = Graph::builder()
        .nodes("a", 4)
        .nodes("b", 2)
        .edges(("a", "r", "b"), vec![0, 2, 3], vec![1, 1, 0])
        .build()
        .unwrap();
    let a = g.nodes_mut("a").unwrap();
    a.insert("x", Tensor::<2>::ones([4, 3], device)).unwrap();
    a.insert_list("l", Ragged::new(vec![0, 2, 2, 3, 3], vec![7, 8, 9]).unwrap()).unwrap();
    a.set_ids(NodeIds::new(Ids::Text(["a", "", "köln", "d"].into_iter().collect()))).unwrap();
    g.nodes_mut("b").unwrap().set_ids(NodeIds::new(Ids::Int(vec![5, 4]))).unwrap();
    let edges = g.edges_mut("r").unwrap();
    edges.insert_text("t", ["x", "", "ä"].into_iter().collect()).unwrap();
    edges.set_global_ids(GlobalIds::new(vec![7, u64::MAX, 0]).unwrap()).unwrap();
    save_graph(&g, dir).unwrap();
    ["graph.json", "graph.safetensors"].map(|f| dir.join(f)).to_vec()
}

/// A data set of arrays: three papers that cite each other.
fn arrays(dir: &Path) -> Vec<PathBuf> {
    let i64s = |v: &[i64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let json = r#"{"layout": "nodes", "layout_version": 1, "name": "tiny", "target_node_type": "paper", "inverse_edges_stored": false,
        "node_types": {"paper": {"count": 3}},
        "edge_types": [{"src": "paper", "relation": "cites", "dst": "paper", "count": 2, "file": "edges/paper__cites__paper.npy"}],
        "labels": {"paper": {"num_classes": 2, "file": "labels/paper.npy"}}, "splits": {}}"#;
    vec![
        put(dir, "metadata.json", json),
        put(dir, "edges/paper__cites__paper.npy", sets::npy("<i8", "(2, 2)", &i64s(&[0, 1, 1, 2]))),
        put(dir, "labels/paper.npy", sets::npy("<i8", "(3,)", &i64s(&[0, 1, -1]))),
    ]
}

/// A knowledge graph of three entities and two relations.
fn triples(dir: &Path) -> Vec<PathBuf> {
    let json = r#"{"layout": "triples", "layout_version": 1, "name": "toy", "task": "link prediction", "num_relations": 2,
        "node_types": {"entity": {"count": 3, "names_file": "entities.txt"}}, "relation_names_file": "relations.txt",
        "splits": {"x": {"train": {"file": "triples/train.npy", "count": 2}, "valid": {"file": "triples/valid.npy", "count": 1},
        "test": {"file": "triples/test.npy", "count": 0}}}}"#;
    let bytes = |v: &[i32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    vec![
        put(dir, "metadata.json", json),
        put(dir, "entities.txt", "a\nb\nköln\n"),
        put(dir, "relations.txt", "r\ns\n"),
        put(dir, "triples/train.npy", sets::npy("<i4", "(3, 2)", &bytes(&[0, 2, 1, 0, 1, 0]))),
        put(dir, "triples/valid.npy", sets::npy("<i4", "(3, 1)", &bytes(&[1, 0, 2]))),
        put(dir, "triples/test.npy", sets::npy("<i4", "(3, 0)", &[])),
    ]
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let json = r#"{"format_version": 1, "name": "t", "target": "a", "inverse_edges_stored": false, "class_names": ["x", "y"],
        "node_types": {"a": {"file": "a", "count": 2, "labeled": true, "features": {"kind": "dense", "size": 2}}},
        "edge_types": [{"src": "a", "relation": "r", "dst": "a", "file": "e", "count": 1}], "splits": {}}"#;
    vec![
        put(dir, "tables.json", json),
        put(dir, "a", "id:int64\tlabel:int\tfeature:string\n5\t1\t0.5:1\n9\t-1\t2:3\n"),
        put(dir, "e", "s:int64\td:int64\n9\t5\n"),
    ]
}

// One test on one thread, so that no other thread's memory is counted and no time goes into waking threads for tiny
// files.
#[test]
fn every_reader() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(readers);
    assert_eq!(CALLED.load(Ordering::Relaxed), READERS, "`READERS` counts them");
}

fn readers() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, device, options) = (tmp.path(), Device::flex(), options());
    for (name, text) in [
        ("nodes", NODES.as_bytes().to_vec()),
        ("gzip", gzip(NODES)),
        ("zstd", zstd::encode_all(NODES.as_bytes(), 3).unwrap()),
    ] {
        let file = put(dir, name, text);
        let decoder = decoder();
        fuzz(name, std::slice::from_ref(&file), || {
            read_nodes_with(&file, &decoder, &options).is_ok()
        });
    }
    let file = put(dir, "edges", EDGES);
    fuzz("edges", std::slice::from_ref(&file), || {
        read_edges_with(&file, &Decoder::new().weighted(), &options).is_ok()
    });
    let file = put(dir, "csv", CSV);
    let decoder = Decoder::new()
        .labeled()
        .with_attributes([AttrType::Float, AttrType::Text])
        .csv(Csv::new(["height", "name"]));
    fuzz("csv", std::slice::from_ref(&file), || read_nodes_with(&file, &decoder, &options).is_ok());
    let file = put(dir, "dialect.csv", DIALECT);
    let decoder = dialect();
    fuzz("csv dialect", std::slice::from_ref(&file), || {
        read_nodes_with(&file, &decoder, &options).is_ok()
    });
    let folder = dir.join("graph");
    fuzz("graph", &graph(&folder, &device), || load_graph(&folder, &device).is_ok());
    let folder = dir.join("tables");
    fuzz("tables", &tables(&folder), || load_dataset(&folder).is_ok());
    let folder = dir.join("arrays");
    fuzz("arrays", &arrays(&folder), || load_dataset(&folder).is_ok());
    let folder = dir.join("triples");
    fuzz("triples", &triples(&folder), || load_knowledge_graph(&folder).is_ok());
    let file = dir.join("rows");
    write_rows(
        &file,
        &MemoryRows::new(&[0.5; 12], 3, RowType::I8 { scale: 0.25 }).unwrap(),
        RowType::I8 { scale: 0.25 },
    )
    .unwrap();
    fuzz("rows", std::slice::from_ref(&file), || {
        MappedRows::open(&file).is_ok_and(|rows| rows.gather(&[0]).is_ok())
    });
    let file = put(dir, "rows.npy", sets::npy("<f2", "(4, 3)", &[0; 24]));
    fuzz("rows npy", std::slice::from_ref(&file), || {
        MappedRows::open(&file).is_ok_and(|rows| rows.gather(&[0]).is_ok())
    });
    let folder = dir.join("mapped");
    fuzz("mapped", &graph(&folder, &device), || map_graph(&folder, &device).is_ok());
    let file = dir.join("topology");
    Topology::write(&load_graph(dir.join("graph"), &device).unwrap(), &file).unwrap();
    fuzz("topology", std::slice::from_ref(&file), || {
        Topology::open(&file, Placement::Memory).is_ok()
    });
    fuzz("topology mapped", std::slice::from_ref(&file), || {
        Topology::open(&file, Placement::Mapped).is_ok()
    });
    other_formats(dir, &device);
    #[cfg(feature = "parquet")]
    parquet(dir, &device, &options);
    published_sets(dir);
}

fn other_formats(dir: &Path, device: &Device) {
    let file = put(dir, "a.npy", sets::npy("<f4", "(3, 2)", &[0; 24]));
    fuzz("npy", std::slice::from_ref(&file), || read_npy(&file).is_ok());
    for (name, compressed) in [("npz", true), ("npz stored", false)] {
        let file = put(dir, &format!("{name}.npz"), sets::matrix(compressed));
        let all = || {
            Npz::open(&file).and_then(|mut npz| {
                npz.names().to_vec().iter().try_for_each(|n| npz.read(n).map(drop))
            })
        };
        fuzz(name, std::slice::from_ref(&file), || read_scipy_npz(&file).is_ok() & all().is_ok());
    }
    // What PyTorch wrote: views, every element type, a dictionary of an optimizer.
    let file = put(
        dir,
        "checkpoint.pt",
        include_bytes!("../../../models/tests/layers/pytorch/files/checkpoint.pt"),
    );
    fuzz("torch", std::slice::from_ref(&file), || read_torch(&file).is_ok());
    let file = put(dir, "legacy.pt", include_bytes!("../data/legacy.pt"));
    fuzz("torch before 1.6", std::slice::from_ref(&file), || read_torch(&file).is_ok());
    let file = put(dir, "edges.txt", "# a list\n7\t1000 0.5\n1000 8\t2\n\n% more\r\n-3 7 1e3\n");
    fuzz("list", std::slice::from_ref(&file), || {
        load_edge_list(&file, &EdgeListFormat::new().weighted().undirected(), device).is_ok()
    });
    let file = put(dir, "texts.txt", "a;;b\nköln;;a\nc;;b\n");
    let format = EdgeListFormat::new().with_text_ids().with_delimiter(";;");
    fuzz("list of texts", std::slice::from_ref(&file), || {
        load_edge_list(&file, &format, device).is_ok()
    });
    let text = "1 2 {'weight': 3, 'color': 'red', 'kept': True}\n2 7 {'weight': 0.5, 'color': '', 'kept': False}\n";
    let file = put(dir, "networkx.txt", text);
    fuzz("list networkx", std::slice::from_ref(&file), || {
        load_edge_list(&file, &EdgeListFormat::networkx(), device).is_ok()
    });
    let file = put(dir, "g.json", sets::NODE_LINK);
    fuzz("node link", std::slice::from_ref(&file), || load_node_link(&file, device).is_ok());
    let file = put(dir, "g.graphml", sets::GRAPHML);
    fuzz("graphml", std::slice::from_ref(&file), || load_graphml(&file, device).is_ok());
    let file = put(dir, "amazon.npz", sets::gnn_benchmark());
    fuzz("gnn benchmark", std::slice::from_ref(&file), || load_gnn_benchmark(&file).is_ok());
    let folder = dir.join("tu");
    fuzz("tu", &sets::tu(&folder), || load_tu_dataset(&folder, device).is_ok());
    let folder = dir.join("triple names");
    fuzz("triple names", &sets::triple_names(&folder), || load_knowledge_graph(&folder).is_ok());
    let folder = dir.join("openke");
    fuzz("openke", &sets::triple_numbers(&folder), || load_knowledge_graph(&folder).is_ok());
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n% a matrix\n4 4 3\n1 1 0.5\n4 2 1e3\n3 1 -2\n";
    let file = put(dir, "matrix.mtx", matrix);
    fuzz("matrix market", std::slice::from_ref(&file), || {
        load_matrix_market(&file, device).is_ok()
    });
    let folder = dir.join("dgl");
    fuzz("dgl csv", &sets::dgl_csv(&folder), || load_dgl_csv(&folder, device).is_ok());
    let folder = dir.join("database");
    let mut few = DatabaseOptions::new();
    few.max_expansion = 8;
    fuzz("database", &sets::database(&folder), || Database::open_with(&folder, &few).is_ok());
    let folder = dir.join("chunked");
    fuzz("chunked", &sets::chunked(&folder), || load_chunked(&folder, device).is_ok());
    let nt = "<http://x/#a> <http://x/#knows> _:b .\n# more\n_:b <http://x/#name> \"B\\u00e4r\"@de .\n<u:a> <u:r> \"7\"^^<u:int> .\n";
    let file = put(dir, "a.nt", nt);
    for (name, options) in
        [("rdf triples", RdfOptions::new()), ("rdf lenient", RdfOptions::new().lenient())]
    {
        fuzz(name, std::slice::from_ref(&file), || read_rdf(&file, &options).is_ok());
    }
    let ttl = "@prefix x: <http://x/#> .\nx:a x:knows [ x:age 7 ; x:name \"B\" ] , (x:b 1.5 true) .\nx:b a x:c ; x:\\~p '''q\"''' .\n";
    let file = put(dir, "a.ttl", ttl);
    let based = RdfOptions::new().with_base("http://x/y");
    for (name, options) in
        [("rdf turtle", RdfOptions::new()), ("rdf turtle lenient", based.lenient())]
    {
        fuzz(name, std::slice::from_ref(&file), || read_rdf(&file, &options).is_ok());
    }
}

/// Files that pyarrow wrote.
#[cfg(feature = "parquet")]
fn parquet(dir: &Path, device: &Device, options: &ReadOptions) {
    let stored = |name: &str| std::fs::read(Path::new("tests/data").join(name)).unwrap();
    let file = put(dir, "people.parquet", stored("people.parquet"));
    let names = Csv::new(["height", "name"]).with_timestamp("born");
    let decoder = Decoder::new()
        .labeled()
        .timestamped()
        .empty_as_zero()
        .with_attributes([AttrType::Float, AttrType::Text])
        .csv(names);
    fuzz("parquet table", std::slice::from_ref(&file), || {
        read_nodes_with(&file, &decoder, options).is_ok()
    });
    let folder = dir.join("parquet");
    let format = r#"{"name": "parquet"}"#;
    let json = format!(
        r#"{{"graph_name": "g", "node_type": ["a"], "num_nodes_per_chunk": [[3]], "edge_type": ["a:r:a"], "num_edges_per_chunk": [[3]],
        "edges": {{"a:r:a": {{"format": {format}, "data": ["e"]}}}},
        "node_data": {{"a": {{"x": {{"format": {format}, "data": ["x"]}}, "y": {{"format": {format}, "data": ["y"]}}}}}}}}"#
    );
    let pieces = [("e", "ends.parquet"), ("x", "cubes.parquet"), ("y", "vectors.parquet")];
    let mut files: Vec<PathBuf> =
        pieces.iter().map(|(to, from)| put(&folder, to, stored(from))).collect();
    files.push(put(&folder, "metadata.json", json));
    fuzz("parquet array", &files, || load_chunked(&folder, device).is_ok());
    let folder = dir.join("relbench");
    Database::open(dir.join("database")).unwrap().write(&folder).unwrap();
    let files = ["manifest.yaml", "db/p.parquet", "db/r.parquet", "keys/p.parquet"];
    let mut files = files.map(|f| folder.join(f)).to_vec();
    files.extend(["manifest.yaml", "val.parquet"].map(|f| folder.join("tasks/t").join(f)));
    let mut few = DatabaseOptions::new();
    few.max_expansion = 8;
    fuzz("relbench", &files, || Database::open_with(&folder, &few).is_ok());
}

fn published_sets(dir: &Path) {
    let folder = dir.join("arxiv");
    fuzz("ogb", &sets::ogb(&folder), || load_ogb(&folder).is_ok());
    let folder = dir.join("mag");
    fuzz("ogb typed", &sets::ogb_typed(&folder), || load_ogb(&folder).is_ok());
    let (folder, device) = (dir.join("proteins"), Device::flex());
    fuzz("ogb graph", &sets::ogb_graph(&folder), || load_ogb_graph(&folder, &device).is_ok());
    let home = DataHome::at(dir.join("home")).offline();
    fuzz("planetoid", &sets::planetoid(&dir.join("home/cora")), || {
        Known::Cora.load_from(&home).is_ok()
    });
    fuzz("entities", &sets::entities(&dir.join("home/aifb")), || {
        Known::Aifb.load_from(&home).is_ok()
    });
    fuzz("reddit", &sets::reddit(&dir.join("home/reddit")), || {
        Known::Reddit.load_from(&home).is_ok()
    });
}
