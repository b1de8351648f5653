//! Tests of DGL's chunked graph format.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::HomoId;
use serde_json::{Value, json};

use super::{ChunkedDataset, load_chunked};
use crate::arrays::npy::npy_bytes;

fn npy(dir: &Path, name: &str, descr: &str, shape: &str, data: &[u8]) {
    std::fs::write(dir.join(name), npy_bytes(descr, false, shape, data)).unwrap();
}

/// Types in an order that is not the sorted one, each array in two pieces, with `edit` applied last.
fn toy(device: &Device, edit: impl FnOnce(&Path, &mut Value)) -> Result<ChunkedDataset, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    std::fs::write(dir.join("w0.csv"), "0 4\n").unwrap();
    std::fs::write(dir.join("w1.csv"), "2 0\n1 1\n").unwrap();
    npy(dir, "c.npy", "<i8", "(2, 2)", bytemuck::cast_slice(&[0i64, 1, 4, 3]));
    npy(dir, "f0.npy", "<f4", "(2, 2)", bytemuck::cast_slice(&[0f32, 1., 2., 3.]));
    npy(dir, "f1.npy", "<f4", "(3, 2)", bytemuck::cast_slice(&[4f32, 5., 6., 7., 8., 9.]));
    npy(dir, "year.npy", "<i8", "(5,)", bytemuck::cast_slice(&[1i64, 2, 3, 4, 5]));
    std::fs::write(dir.join("p.csv"), "0.5|1\n2|3\n4|5\n").unwrap();
    let mut meta = json!({
        "graph_name": "mag",
        "node_type": ["paper", "author"], "num_nodes_per_chunk": [[2, 3], [3, 0]],
        "edge_type": ["author:writes:paper", "paper:cites:paper"], "num_edges_per_chunk": [[1, 2], [2, 0]],
        "edges": {
            "author:writes:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["w0.csv", "w1.csv"]},
            "paper:cites:paper": {"format": {"name": "numpy"}, "data": ["c.npy"]}
        },
        "node_data": {
            "paper": {"feat": {"format": {"name": "numpy"}, "data": ["f0.npy", "f1.npy"]},
                      "year": {"format": {"name": "numpy"}, "data": ["year.npy"]}}
        },
        "edge_data": {"author:writes:paper": {"p": {"format": {"name": "csv", "delimiter": "|"}, "data": ["p.csv"]}}}
    });
    edit(dir, &mut meta);
    std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    load_chunked(dir, device)
}

#[test]
fn arrays_in_other_orders_and_types() {
    let device = Device::flex();
    let plain = toy(&device, |_, _| {}).unwrap().graph;
    // `edge_index.T` big endian, features in Fortran order.
    let other = toy(&device, |dir, _| {
        let pairs = npy_bytes(">u2", true, "(2, 2)", &[0, 0, 0, 4, 0, 1, 0, 3]);
        std::fs::write(dir.join("c.npy"), pairs).unwrap();
        let rows = npy_bytes("<f4", true, "(2, 2)", bytemuck::cast_slice(&[0f32, 2., 1., 3.]));
        std::fs::write(dir.join("f0.npy"), rows).unwrap();
    });
    let other = other.unwrap().graph;
    assert_eq!(plain.relation("cites").unwrap(), other.relation("cites").unwrap());
    let feat = |g: &burn_gnn_graph::Graph| {
        g.nodes("paper").unwrap().get::<2>("feat").unwrap().into_data().try_to_vec::<f32>().unwrap()
    };
    assert_eq!(feat(&plain), feat(&other));
}

#[cfg(feature = "parquet")]
#[test]
fn chunks_in_parquet_without_rows() {
    use parquet::schema::parser::parse_message_type;
    let empty = |path: &Path, schema: &str| {
        let schema = std::sync::Arc::new(parse_message_type(schema).unwrap());
        let file = std::fs::File::create(path).unwrap();
        let writer =
            parquet::file::writer::SerializedFileWriter::new(file, schema, Default::default());
        writer.unwrap().close().unwrap();
    };
    let device = Device::flex();
    let copy = |dir: &Path, name: &str| {
        std::fs::copy(Path::new("tests/data").join(name), dir.join(name)).unwrap();
    };
    let c = toy(&device, |dir, meta| {
        copy(dir, "pairs.parquet");
        copy(dir, "cubes.parquet");
        empty(&dir.join("no-pairs.parquet"), "message m { optional int64 a; optional int64 b; }");
        empty(&dir.join("no-cubes.parquet"), "message m { optional int32 a; }");
        meta["num_edges_per_chunk"][0] = json!([0, 3, 0]);
        let pairs = ["no-pairs.parquet", "pairs.parquet", "no-pairs.parquet"];
        meta["edges"]["author:writes:paper"] =
            json!({"format": {"name": "parquet"}, "data": pairs});
        let cubes = ["no-cubes.parquet", "cubes.parquet"];
        meta["edge_data"]["author:writes:paper"] =
            json!({"cube": {"format": {"name": "parquet"}, "data": cubes}});
    });
    let g = c.unwrap().graph;
    assert_eq!(g.relation("writes").unwrap().num_edges(), 3);
    assert_eq!(g.edges("writes").unwrap().column("cube").unwrap().shape().as_slice(), [3, 2, 2]);
}

#[cfg(feature = "parquet")]
#[test]
fn chunks_in_parquet() {
    let device = Device::flex();
    let put = |dir: &Path, name: &str| {
        let from = Path::new("tests/data").join(name);
        std::fs::copy(from, dir.join(name)).unwrap();
    };
    let c = toy(&device, |dir, meta| {
        put(dir, "pairs.parquet");
        put(dir, "cubes.parquet");
        meta["num_edges_per_chunk"][0] = json!([3]);
        meta["edges"]["author:writes:paper"] =
            json!({"format": {"name": "parquet"}, "data": ["pairs.parquet"]});
        meta["num_nodes_per_chunk"][1] = json!([3]);
        meta["node_data"]["author"] =
            json!({"cube": {"format": {"name": "parquet"}, "data": ["cubes.parquet"]}});
    });
    let c = c.unwrap();
    assert_eq!(c.graph.relation("writes").unwrap().dst(), [4, 0, 1]);
    assert_eq!(c.graph.nodes("author").unwrap().get::<3>("cube").unwrap().dims(), [3, 2, 2]);
}

#[test]
fn chunks_are_concatenated() {
    for device in burn_gnn_testutil::devices() {
        let c = toy(&device, |_, _| {}).unwrap();
        let writes = c.graph.relation("writes").unwrap();
        assert_eq!(
            (c.name.as_str(), writes.src(), writes.dst()),
            ("mag", &[0, 2, 1][..], &[4, 0, 1][..])
        );
        assert_eq!(c.graph.relation("cites").unwrap().dst(), [1, 3]);
        let paper = c.graph.nodes("paper").unwrap();
        let feat: Vec<f32> = paper.get::<2>("feat").unwrap().into_data().try_to_vec().unwrap();
        assert_eq!(feat, (0..10).map(|x| x as f32).collect::<Vec<_>>());
        assert_eq!(
            paper.get_int::<1>("year").unwrap().into_data().try_to_vec::<i64>().unwrap(),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(c.graph.edges("writes").unwrap().get::<2>("p").unwrap().dims(), [3, 2]);
        // `author` sorts before `paper`, but the description has papers first.
        assert_eq!(c.graph.schema().ntypes(), ["author", "paper"]);
        assert_eq!(c.ids.nodes().names(), ["paper", "author"]);
        assert_eq!(
            (
                c.ids.nodes().to_typed(HomoId(4)).unwrap(),
                c.ids.nodes().to_typed(HomoId(5)).unwrap()
            ),
            (("paper", 4), ("author", 0))
        );
        assert_eq!(c.ids.edges().to_typed(HomoId(3)).unwrap(), ("paper:cites:paper", 0));
    }
}

/// Files and description as `tools/chunk_graph.py` of DGL writes them: edge types in file names, paths from the root.
fn chunk_graph(dir: &Path, written_to: &Path) {
    let writes = "author:writes:paper";
    for folder in ["edge_index", "node_data/paper", "edge_data/author:writes:paper"] {
        std::fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let index = |i: usize| format!("edge_index/{writes}{i}.txt");
    std::fs::write(dir.join(index(0)), "0 4\n2 0\n").unwrap();
    std::fs::write(dir.join(index(1)), "1 1\n").unwrap();
    let floats = |v: &[f32]| bytemuck::cast_slice(v).to_vec();
    npy(dir, "node_data/paper/feat-0.npy", "<f4", "(3, 1)", &floats(&[0., 1., 2.]));
    npy(dir, "node_data/paper/feat-1.npy", "<f4", "(2, 1)", &floats(&[3., 4.]));
    npy(dir, &format!("edge_data/{writes}/year-0.npy"), "<f4", "(2,)", &floats(&[7., 8.]));
    npy(dir, &format!("edge_data/{writes}/year-1.npy"), "<f4", "(1,)", &floats(&[9.]));
    let at = written_to.display();
    let json = format!(
        "{{\"graph_name\": \"mag240m\", \"node_type\": [\"author\", \"paper\"], \"num_nodes_per_chunk\": [[2, 1], [3, 2]], \
         \"edge_type\": [\"{writes}\"], \"num_edges_per_chunk\": [[2, 1]], \"edges\": {{\"{writes}\": {{\"format\": {{\"name\": \
         \"csv\", \"delimiter\": \" \"}}, \"data\": [\"{at}/{}\", \"{at}/{}\"]}}}}, \"node_data\": {{\"paper\": {{\"feat\": \
         {{\"format\": {{\"name\": \"numpy\"}}, \"data\": [\"{at}/node_data/paper/feat-0.npy\", \
         \"{at}/node_data/paper/feat-1.npy\"]}}}}}}, \"edge_data\": {{\"{writes}\": {{\"year\": {{\"format\": {{\"name\": \
         \"numpy\"}}, \"data\": [\"{at}/edge_data/{writes}/year-0.npy\", \"{at}/edge_data/{writes}/year-1.npy\"]}}}}}}}}",
        index(0),
        index(1)
    );
    std::fs::write(dir.join("metadata.json"), json).unwrap();
}

#[cfg(unix)]
#[test]
fn files_of_chunk_graph() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("output");
    chunk_graph(&dir, &dir);
    let c = load_chunked(&dir, &Device::flex()).unwrap();
    let writes = c.graph.relation("writes").unwrap();
    assert_eq!((writes.src(), writes.dst()), (&[0, 2, 1][..], &[4, 0, 1][..]));
    let floats = |t: burn::tensor::TensorData| t.try_to_vec::<f32>().unwrap();
    let feat = c.graph.nodes("paper").unwrap().get::<2>("feat").unwrap().into_data();
    assert_eq!(floats(feat), [0., 1., 2., 3., 4.]);
    let year = c.graph.edges("writes").unwrap().get::<1>("year").unwrap().into_data();
    assert_eq!(floats(year), [7., 8., 9.]);
    // Through a link, the folder has another name than the one written down.
    let link = tmp.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    assert!(load_chunked(&link, &Device::flex()).is_ok());
    // Elsewhere the paths are those of a folder that is none of ours, and with relative ones all is well.
    for outside in ["/data/output", "/", "/etc"] {
        chunk_graph(&dir, Path::new(outside));
        let e = load_chunked(&dir, &Device::flex()).unwrap_err().to_string();
        assert!(
            e.contains("expected a path inside the folder") && e.contains("chunk_graph.py"),
            "{e}"
        );
    }
    chunk_graph(&dir, &dir.join("../output/.."));
    let e = load_chunked(&dir, &Device::flex()).unwrap_err().to_string();
    assert!(e.contains("inside the folder"), "{e}");
    chunk_graph(&dir, &dir);
    let json = dir.join("metadata.json");
    let text = std::fs::read_to_string(&json).unwrap();
    std::fs::write(&json, text.replace(&format!("{}/", dir.display()), "")).unwrap();
    assert!(load_chunked(&dir, &Device::flex()).is_ok());
}

#[test]
fn invalid_descriptions_are_errors() {
    let refused = |edit: &dyn Fn(&Path, &mut Value), part: &str| {
        let e = toy(&Device::flex(), edit).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        e
    };
    refused(
        &|_, m| m["num_nodes_per_chunk"] = json!([[2, 3]]),
        "num_nodes_per_chunk: number of types: expected 2",
    );
    refused(
        &|_, m| m["num_nodes_per_chunk"][0] = json!([u64::MAX, 3]),
        "expected a sum that fits in 64 bits",
    );
    refused(
        &|_, m| m["num_nodes_per_chunk"][0] = json!([3, 2]),
        "f0.npy: number of rows: expected 3",
    );
    refused(
        &|_, m| m["num_nodes_per_chunk"][0] = json!([2, 1_000_000_000]),
        "expected at most 67108864 nodes",
    );
    refused(
        &|_, m| m["num_edges_per_chunk"][0] = json!([2, 1]),
        "w0.csv: number of edges: expected 2",
    );
    refused(&|_, m| m["num_edges_per_chunk"][1] = json!([3]), "c.npy: number of edges: expected 3");
    refused(
        &|_, m| m["edge_type"][0] = json!("writes"),
        "expected `src:relation:dst`, found `writes`",
    );
    refused(
        &|_, m| m["edges"]["a:b:c"] = m["edges"]["paper:cites:paper"].clone(),
        "unknown edge type `a:b:c`",
    );
    refused(
        &|_, m| drop(m["edges"].as_object_mut().unwrap().remove("paper:cites:paper")),
        "edges: expected an entry `paper:cites:paper`",
    );
    refused(
        &|_, m| m["node_data"]["x"] = json!({"f": m["node_data"]["paper"]["feat"].clone()}),
        "unknown node type `x`",
    );
    refused(
        &|_, m| m["node_data"]["paper"]["feat"]["format"]["name"] = json!("feather"),
        "format: expected numpy, csv or",
    );
    refused(
        &|_, m| m["edges"]["paper:cites:paper"]["format"]["name"] = json!("feather"),
        "format: expected csv, numpy or",
    );
    refused(
        &|_, m| m["node_data"]["paper"]["feat"]["data"] = json!(["/etc/passwd"]),
        "inside the folder",
    );
    refused(
        &|_, m| m["node_data"]["paper"]["feat"]["data"] = json!([]),
        "expected at least one file",
    );
    refused(
        &|_, m| m["edge_data"]["author:writes:paper"]["p"]["format"]["delimiter"] = json!("||"),
        "expected one ASCII character",
    );
    refused(
        &|d, _| npy(d, "f1.npy", "<f4", "(3, 1)", &[0; 12]),
        "expected F32 [2] per row as in the first piece, found F32 [1]",
    );
    refused(&|d, _| npy(d, "c.npy", "<i8", "(2, 3)", &[0; 48]), "expected shape [any, 2]");
    let e = refused(
        &|d, _| std::fs::write(d.join("w1.csv"), "2 0\n1 x\n").unwrap(),
        "w1.csv:2:2: expected an int64, got \"x\"",
    );
    assert!(matches!(e, DataError::Table { .. }));
    let e = refused(
        &|d, _| std::fs::write(d.join("w1.csv"), "3 0\n1 1\n").unwrap(),
        "`src` must lie in 0..3, got 3",
    );
    assert!(matches!(e.cause(), DataError::Graph(GraphError::NodeOutOfRange { .. })));
}
