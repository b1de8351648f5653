//! Writes tables and reads them again.

use std::path::Path;

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Graph, Ids, NodeIds, Ragged, Texts};

use super::{write_edge_table, write_node_table};
use crate::{AttrType, Builder, Csv, Decoder, NpyValues, ReadOptions, read_nodes, read_npy};

/// People and papers with every kind of column.
fn library(rows: usize) -> Graph {
    let device = Device::flex();
    let mut g = Graph::builder()
        .nodes("person", rows)
        .nodes("paper", 3)
        .edges(("person", "reads", "paper"), vec![0, rows as u32 - 1, 0], vec![2, 0, 2])
        .build()
        .unwrap();
    let f = g.nodes_mut("person").unwrap();
    let x: Vec<f32> = (0..rows * 2).map(|i| i as f32 / 3.0).collect();
    f.insert("x", Tensor::<2>::from_data(TensorData::new(x, [rows, 2]), &device)).unwrap();
    let age: Vec<i64> = (0..rows as i64).map(|i| i - 7).collect();
    f.insert(
        "age",
        Tensor::<1, Int>::from_data(TensorData::new(age, [rows]), (&device, DType::I64)),
    )
    .unwrap();
    let half: Vec<f64> = (0..rows).map(|i| i as f64 / 7.0).collect();
    f.insert("half", Tensor::<1>::from_data(TensorData::new(half, [rows]), (&device, DType::F64)))
        .unwrap();
    let alive: Vec<bool> = (0..rows).map(|i| i % 3 == 0).collect();
    f.insert("alive", Tensor::<1, Bool>::from_data(TensorData::new(alive, [rows]), &device))
        .unwrap();
    f.insert_text(
        "name",
        (0..rows)
            .map(|i| format!("p, \"{i}\"\nköln"))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect::<Texts>(),
    )
    .unwrap();
    let lists =
        Ragged::new((0..=rows as u64).map(|i| i * 2).collect(), (0..rows as i64 * 2).collect())
            .unwrap();
    f.insert_list("tags", lists).unwrap();
    let papers = NodeIds::new(Ids::Text(["a:1", "b,2", "c"].into_iter().collect()));
    g.nodes_mut("paper").unwrap().set_ids(papers).unwrap();
    let weight = Tensor::<1>::from_data([0.25, f32::INFINITY, -1.0], &device);
    g.edges_mut("reads").unwrap().insert("weight", weight).unwrap();
    g
}

/// CSV and Parquet files are read by the names that the writer returns.
#[test]
fn written_nodes_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    // More rows than a part of CSV and than a group of Parquet.
    for (file, rows) in [("p.csv", 5000), ("p.parquet", 70_000)] {
        let (g, path) = (library(rows), dir.path().join(file));
        let columns = write_node_table(&path, &g, "person").unwrap();
        assert_eq!(columns, ["age", "alive", "half", "x_0", "x_1", "name", "tags"]);
        let types = [
            AttrType::Int,
            AttrType::Int,
            AttrType::Float,
            AttrType::Float,
            AttrType::Float,
            AttrType::Text,
            AttrType::Text,
        ];
        let read = read_nodes(&path, &Decoder::new().with_attributes(types).csv(Csv::new(columns)))
            .unwrap();
        assert_eq!(read.ids.len(), rows);
        let f = &read.columns.attributes;
        for i in [0, 1, 4095, 4096, rows - 1] {
            assert_eq!(read.ids.id(i as u32), Some(FileId::Int(i as i64)));
            assert_eq!(
                f.floats[3 * i..][..3],
                [(i as f64 / 7.0) as f32, (2 * i) as f32 / 3.0, (2 * i + 1) as f32 / 3.0],
                "{file}, row {i}"
            );
            assert_eq!(f.texts[0].get(i), format!("p, \"{i}\"\nköln"), "{file}, row {i}");
            assert_eq!(f.texts[1].get(i), format!("{},{}", 2 * i, 2 * i + 1), "{file}, row {i}");
            assert_eq!(
                f.ints[2 * i..][..2],
                [i as i64 - 7, i64::from(i % 3 == 0)],
                "{file}, row {i}"
            );
        }
    }
}

/// An edge table whose sources have numbers and whose destinations have texts as ids.
#[test]
fn a_written_graph_is_read_again() {
    let g = library(6);
    let dir = tempfile::tempdir().unwrap();
    for ending in ["csv", "parquet"] {
        let path = |name: &str| dir.path().join(format!("{name}.{ending}"));
        write_node_table(path("person"), &g, "person").unwrap();
        write_node_table(path("paper"), &g, "paper").unwrap();
        assert_eq!(write_edge_table(path("reads"), &g, "reads").unwrap(), ["weight"]);
        let read = Builder::new()
            .node(path("person"), "person", Decoder::new().csv(Csv::default()))
            .node(path("paper"), "paper", Decoder::new().csv(Csv::default().with_text_ids()))
            .edge(
                path("reads"),
                ("person", "reads", "paper"),
                Decoder::new().weighted().csv(Csv::default().with_text_dst_ids()),
                true,
            )
            .build(&Device::flex())
            .unwrap();
        assert_eq!(read.relation("reads").unwrap(), g.relation("reads").unwrap(), "{ending}");
        assert_eq!(read.nodes("paper").unwrap().ids().unwrap().number("b,2"), Some(1));
        let weights = read
            .edges("reads")
            .unwrap()
            .get::<1>("weight")
            .unwrap()
            .into_data()
            .try_to_vec::<f32>()
            .unwrap();
        assert_eq!(weights, [0.25, f32::INFINITY, -1.0], "{ending}");
    }
    // The other endpoint as a text is refused by the text of its first row.
    let wrong = Decoder::new().csv(Csv::default().with_text_src_ids());
    let table = Builder::new()
        .node(dir.path().join("person.csv"), "person", Decoder::new().csv(Csv::default()))
        .node(
            dir.path().join("paper.csv"),
            "paper",
            Decoder::new().csv(Csv::default().with_text_ids()),
        )
        .edge(dir.path().join("reads.csv"), ("person", "reads", "paper"), wrong, true)
        .with_options(ReadOptions::new().with_progress(false));
    let e = table.build(&Device::flex()).unwrap_err().to_string();
    assert!(e.contains("reads.csv") && e.contains("an int64 (`dst_id`)"), "{e}");
}

#[test]
fn folders_of_arrays() {
    let g = library(4);
    let dir = tempfile::tempdir().unwrap();
    let person = dir.path().join("tables").join("person");
    write_node_table(&person, &g, "person").unwrap();
    let read = |folder: &Path, name: &str| {
        let array = read_npy(folder.join(format!("{name}.npy"))).unwrap();
        (array.shape().to_vec(), array.values().clone())
    };
    assert_eq!(read(&person, "id"), (vec![4], NpyValues::I64(vec![0, 1, 2, 3])));
    assert_eq!(read(&person, "x").0, [4, 2]);
    assert_eq!(read(&person, "alive"), (vec![4], NpyValues::Bool(vec![true, false, false, true])));
    assert_eq!(read(&person, "tags.indptr"), (vec![5], NpyValues::I64(vec![0, 2, 4, 6, 8])));
    assert_eq!(read(&person, "tags.values").0, [8]);
    assert!(matches!(read(&person, "name").1, NpyValues::Text(t) if t[3] == "p, \"3\"\nköln"));
    let reads = dir.path().join("reads");
    write_edge_table(&reads, &g, ..).unwrap();
    assert_eq!(read(&reads, "src_id"), (vec![3], NpyValues::I64(vec![0, 3, 0])));
    assert_eq!(
        read(&reads, "dst_id"),
        (vec![3], NpyValues::Text(vec!["c".into(), "a:1".into(), "c".into()]))
    );
}

#[test]
fn invalid_tables_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let mut g = library(2);
    let text = |g: &Graph, name: &str| {
        write_node_table(dir.path().join(name), g, "person").unwrap_err().to_string()
    };
    assert!(text(&g, "a.xlsx").contains("expected an extension `.csv` or `.parquet`"));
    assert!(matches!(
        write_node_table(dir.path().join("a.csv"), &g, "cat"),
        Err(DataError::Graph(_))
    ));
    assert!(text(&g, "none/a.csv").contains("none/a.csv"));
    let f = g.nodes_mut("person").unwrap();
    f.insert("x_1", Tensor::<1>::zeros([2], &Device::flex())).unwrap();
    assert!(text(&g, "a.csv").contains("found `x_1` twice"));
    let f = g.nodes_mut("person").unwrap();
    f.remove("x_1");
    f.insert("a/b", Tensor::<1>::zeros([2], &Device::flex())).unwrap();
    assert!(text(&g, "folder").contains("found \"a/b\""));
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left of what was refused"
    );
}

/// Attributes keep the names of the header, unless another column has one of them.
#[test]
fn attributes_keep_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("items.csv");
    let text = "id,price,stock,title,tags,large,place\n7,0.5,3,a,\"x,y\",1e300,\"1,2\"\n";
    std::fs::write(&path, text).unwrap();
    let types = [
        AttrType::Float,
        AttrType::Int,
        AttrType::Text,
        AttrType::multi_string(5),
        AttrType::Double,
        AttrType::vector(2),
    ];
    let names = ["price", "stock", "title", "tags", "large", "place"];
    let items = Decoder::new().with_attributes(types).csv(Csv::new(names));
    let mut g = Builder::new().node(&path, "item", items).build(&Device::flex()).unwrap();
    assert_eq!(g.nodes("item").unwrap().list("tags").unwrap().row(0).len(), 2);
    for file in ["out.csv", "out.parquet"] {
        let written = write_node_table(dir.path().join(file), &g, "item").unwrap();
        let expected =
            ["large", "price", "place[0]", "place[1]", "stock", "text_keys_0", "title", "tags"];
        assert_eq!(written, expected, "{file}");
    }
    let price = Tensor::<1>::from_data([2.0], &Device::flex());
    g.nodes_mut("item").unwrap().insert("price", price).unwrap();
    let written = write_node_table(dir.path().join("both.csv"), &g, "item").unwrap();
    let floats = ["float_attrs_0", "float_attrs_1", "float_attrs_2"];
    assert_eq!(written[1..4], floats);
    assert_eq!(written[5], "price");
}
