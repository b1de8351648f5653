//! Writers that are killed, and writers on full disks. `tests/faults.sh` kills each a hundred times.

use std::path::Path;

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_sampling::{FeatureSource, MappedRows, MemoryRows, write_rows};
use burn_gnn_sampling::{Placement, RowType};

use crate::{
    AttrType, Csv, DataError, Decoder, NpyValues, Topology, load_graph, map_graph, read_edges,
    read_nodes, read_npy, save_graph, write_atomic, write_edge_table, write_node_table,
};
use burn_gnn_testutil::faults::{files, full_disk, killed, small_disk, write_until_killed};

const NODES: usize = 1000;

/// A graph that says its version in every row of features and by its number of edges.
fn graph(version: u64) -> Graph {
    let n = NODES + (version % 50) as usize;
    let src: Vec<u32> = (0..n).map(|i| (i % NODES) as u32).collect();
    let mut g = Graph::homogeneous(NODES, src.clone(), src).unwrap();
    let rows = Tensor::<2>::full([NODES, 8], version as f32, &Device::flex());
    g.nodes_mut("_N").unwrap().insert("h", rows).unwrap();
    g
}

fn version_of(g: &Graph, rows: &[f32]) -> u64 {
    let version = rows[0] as u64;
    assert!(rows.len() == NODES * 8 && rows.iter().all(|x| *x == version as f32));
    assert_eq!(g.relation("_E").unwrap().src(), graph(version).relation("_E").unwrap().src());
    version
}

fn saved(dir: &Path) -> Option<u64> {
    dir.join("graph.json").exists().then(|| {
        let g = load_graph(dir, &Device::flex()).unwrap();
        let rows: Vec<f32> =
            g.nodes("_N").unwrap().get::<2>("h").unwrap().into_data().iter::<f32>().collect();
        let mapped = map_graph(dir, &Device::flex()).unwrap();
        let all: Vec<u32> = (0..NODES as u32).collect();
        assert_eq!(mapped.node_rows["_N"]["h"].gather(&all).unwrap(), rows);
        version_of(&g, &rows)
    })
}

fn opened(dir: &Path) -> Option<u64> {
    let file = dir.join("topology");
    file.exists().then(|| {
        let edges = |p| Topology::open(&file, p).unwrap().graph().total_edges() as u64;
        assert_eq!(edges(Placement::Memory), edges(Placement::Mapped));
        edges(Placement::Memory)
    })
}

fn topology(dir: &Path, version: u64) -> Result<(), burn_gnn_files::DataError> {
    let edges = vec![0; version as usize];
    Topology::write(&Graph::homogeneous(2, edges.clone(), edges).unwrap(), dir.join("topology"))
}

fn rows(dir: &Path, version: u64) -> Result<(), burn_gnn_files::DataError> {
    let source = MemoryRows::new(&vec![version as f32; NODES * 8], 8, RowType::F32).unwrap();
    write_rows(dir.join("rows"), &source, RowType::F32).map(drop)
}

fn mapped(dir: &Path) -> Option<u64> {
    let file = dir.join("rows");
    file.exists().then(|| {
        let all: Vec<u32> = (0..NODES as u32).collect();
        let rows = MappedRows::open(&file).unwrap().gather(&all).unwrap();
        assert!(rows.iter().all(|x| *x == rows[0]));
        rows[0] as u64
    })
}

/// Tables in every format, and the tests that write them until they are killed.
const TABLES: [(&str, &str); 6] = [
    ("nodes.csv", "tests::faults::csv_nodes_to_be_killed"),
    ("edges.csv", "tests::faults::csv_edges_to_be_killed"),
    ("nodes.parquet", "tests::faults::parquet_nodes_to_be_killed"),
    ("edges.parquet", "tests::faults::parquet_edges_to_be_killed"),
    ("nodes", "tests::faults::npy_nodes_to_be_killed"),
    ("edges", "tests::faults::npy_edges_to_be_killed"),
];

/// A table of nodes or edges that says its version in every row.
fn table(dir: &Path, name: &str, version: u64) -> Result<(), DataError> {
    let mut g = Graph::homogeneous(NODES, vec![0; NODES], vec![1; NODES])?;
    let (path, h) = (dir.join(name), Tensor::<1>::full([NODES], version as f32, &Device::flex()));
    if name.starts_with("nodes") {
        g.nodes_mut("_N")?.insert("h", h)?;
        write_node_table(path, &g, "_N").map(drop)
    } else {
        g.edges_mut("_E")?.insert("h", h)?;
        write_edge_table(path, &g, "_E").map(drop)
    }
}

fn table_of(dir: &Path, name: &str) -> Option<u64> {
    let (path, array) = (dir.join(name), dir.join(name).join("h.npy"));
    let is_folder = !name.contains('.');
    (if is_folder { &array } else { &path }).exists().then(|| {
        let decoder = Decoder::new().with_attributes([AttrType::Float]).csv(Csv::new(["h"]));
        let all = match is_folder {
            true => match read_npy(array).unwrap().values() {
                NpyValues::F32(all) => all.clone(),
                other => panic!("{other:?}"),
            },
            false if name.starts_with("nodes") => {
                read_nodes(path, &decoder).unwrap().columns.attributes.floats
            }
            false => read_edges(path, &decoder).unwrap().columns.attributes.floats,
        };
        assert!(all.len() == NODES && all.iter().all(|x| *x == all[0]), "{name}");
        all[0] as u64
    })
}

fn write_table_until_killed(number: usize) {
    write_until_killed(|dir, version| table(dir, TABLES[number].0, version).unwrap());
}

#[test]
fn csv_nodes_to_be_killed() {
    write_table_until_killed(0);
}

#[test]
fn csv_edges_to_be_killed() {
    write_table_until_killed(1);
}

#[test]
fn parquet_nodes_to_be_killed() {
    write_table_until_killed(2);
}

#[test]
fn parquet_edges_to_be_killed() {
    write_table_until_killed(3);
}

#[test]
fn npy_nodes_to_be_killed() {
    write_table_until_killed(4);
}

#[test]
fn npy_edges_to_be_killed() {
    write_table_until_killed(5);
}

/// Arrays of a folder are whole, each by itself.
#[test]
fn tables_killed_at_any_moment() {
    for (name, test) in TABLES {
        let dir = killed(&format!("table {name}"), test, |dir| table_of(dir, name));
        table(dir.path(), name, 0).unwrap();
        let left = files(dir.path());
        let is_temporary =
            |f: &std::path::PathBuf| f.file_name().unwrap().to_str().unwrap().starts_with('.');
        assert!(!left.iter().any(is_temporary), "{left:?}");
    }
}

#[test]
fn graphs_to_be_killed() {
    write_until_killed(|dir, version| save_graph(&graph(version), dir).unwrap());
}

#[test]
fn topologies_to_be_killed() {
    write_until_killed(|dir, version| topology(dir, version).unwrap());
}

#[test]
fn rows_to_be_killed() {
    write_until_killed(|dir, version| rows(dir, version).unwrap());
}

#[test]
fn writers_killed_at_any_moment() {
    let left = |dir: &tempfile::TempDir| {
        files(dir.path())
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let dir = killed("graph", "tests::faults::graphs_to_be_killed", saved);
    save_graph(&graph(0), &dir).unwrap();
    assert_eq!(left(&dir), ["graph.json", "graph.safetensors"]);
    let dir = killed("topology", "tests::faults::topologies_to_be_killed", opened);
    topology(dir.path(), 0).unwrap();
    assert_eq!(left(&dir), ["topology"]);
    let dir = killed("rows", "tests::faults::rows_to_be_killed", mapped);
    rows(dir.path(), 0).unwrap();
    assert_eq!(left(&dir), ["rows"]);
}

#[test]
fn writers_on_a_full_disk() {
    let Some(disk) = small_disk("tests::faults::writers_on_a_full_disk", 512) else { return };
    let text = |e: burn_gnn_files::DataError| e.to_string();
    let name = |version: Option<u64>, old| if version == Some(old) { "old" } else { "new" };
    let g = [graph(1), graph(2)];
    let save = |i: usize, dir: &Path| save_graph(&g[i], dir).map_err(text);
    full_disk("graph", &disk, |d| save(0, d).unwrap(), |d| save(1, d), |d| name(saved(d), 1));
    let write = |edges, dir: &Path| topology(dir, edges).map_err(text);
    full_disk(
        "topology",
        &disk,
        |d| write(1000, d).unwrap(),
        |d| write(2000, d),
        |d| name(opened(d), 1000),
    );
    let write = |version, dir: &Path| rows(dir, version).map_err(text);
    full_disk("rows", &disk, |d| write(1, d).unwrap(), |d| write(2, d), |d| name(mapped(d), 1));
    for (name, _) in TABLES {
        let write = |version| move |dir: &Path| table(dir, name, version).map_err(text);
        full_disk(
            &format!("table {name}"),
            &disk,
            |d| write(1)(d).unwrap(),
            write(2),
            |d| if table_of(d, name) == Some(1) { "old" } else { "new" },
        );
    }
    let write = |byte: u8, dir: &Path| {
        write_atomic(dir.join("x"), |w| w.write_all(&[byte; 20_000])).map_err(text)
    };
    let read = |dir: &Path| std::fs::read(dir.join("x")).unwrap();
    let version = |d: &Path| match read(d) {
        bytes if bytes == [1; 20_000] => "old",
        bytes if bytes == [2; 20_000] => "new",
        _ => "damaged",
    };
    full_disk("write_atomic", &disk, |d| write(1, d).unwrap(), |d| write(2, d), version);
}
