//! Tests with files of pyarrow in `tests/data`, files written here, and invalid files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::Ids;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::array::read_parquet_array;
use super::cells::Cell;
use super::file::ParquetFile;
use crate::files::corrupt_file::{damage, spoil};
use crate::{AttrType, Csv, Decoder, ReadOptions, Source, read_edges, read_nodes, read_nodes_with};

fn stored(name: &str) -> PathBuf {
    Path::new("tests/data").join(name)
}

/// Values of a column, `None` for a null.
enum Written {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
}

fn write(path: &Path, schema: &str, groups: &[Vec<Written>]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    fn split<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        (
            values.iter().flatten().cloned().collect(),
            values.iter().map(|v| i16::from(v.is_some())).collect(),
        )
    }
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        for column in group {
            let mut to = rows.next_column().unwrap().unwrap();
            match column {
                Written::Int(v) => {
                    let (values, levels) = split(v);
                    to.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap();
                }
                Written::Float(v) => {
                    let (values, levels) = split(v);
                    to.typed::<DoubleType>().write_batch(&values, Some(&levels), None).unwrap();
                }
                Written::Text(v) => {
                    let (values, levels) = split(v);
                    let values: Vec<ByteArray> = values.into_iter().map(ByteArray::from).collect();
                    to.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
                }
            }
            to.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.close().unwrap();
}

fn people() -> Decoder {
    let types = [AttrType::Float, AttrType::Text, AttrType::Text];
    Decoder::new()
        .labeled()
        .timestamped()
        .with_attributes(types)
        .csv(Csv::new(["height", "name", "colour"]).with_timestamp("born"))
}

#[test]
fn a_table_of_pandas() {
    let path = stored("people.parquet");
    let e = read_nodes(&path, &people()).unwrap_err();
    assert!(
        e.to_string().ends_with(
            "people.parquet:2:3: expected a float (`height`), got \"nothing\"; \
             `Decoder::empty_as_zero` reads an empty number as 0"
        ),
        "{e}"
    );
    let t = read_nodes(&path, &people().empty_as_zero()).unwrap();
    // Unsigned ids above 2^31, two groups of rows and a half, a null, a dictionary.
    assert_eq!(t.ids.ids(), &Ids::Int(vec![7, 4_000_000_000, 9, 10, 11]));
    assert_eq!(t.columns.labels.unwrap(), [0, 1, 2, 1, 0]);
    assert_eq!(t.columns.attributes.floats, [1.5, 0.0, 0.25, -3.0, 2.0]);
    let texts = |i: usize| t.columns.attributes.texts[i].iter().collect::<Vec<_>>();
    assert_eq!(
        (texts(0), texts(1)),
        (vec!["Ann", "Bo", "", "Köln", "Ann"], vec!["red", "blue", "red", "red", "blue"])
    );
    let unit = t.columns.timestamps.as_ref().unwrap()[0];
    assert!([1, 1_000, 1_000_000, 1_000_000_000].contains(&unit));
    assert_eq!(t.columns.timestamps.unwrap(), (1..=5).map(|s| s * unit).collect::<Vec<_>>());
}

#[test]
fn ids_are_texts_if_their_column_is() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("e");
    let schema = "message m { optional binary to (STRING); optional binary from (STRING); optional double weight; }";
    let texts = |v: &[&'static str]| Written::Text(v.iter().map(|&t| Some(t)).collect());
    let groups = [
        vec![texts(&["b", "a"]), texts(&["a", "köln"]), Written::Float(vec![Some(0.5), Some(2.0)])],
        vec![texts(&["c"]), texts(&["c"]), Written::Float(vec![None])],
    ];
    write(&path, schema, &groups);
    let decoder = Decoder::new().weighted().csv(Csv::default().with_endpoints("from", "to"));
    let e = read_edges(&path, &decoder).unwrap_err();
    assert!(e.to_string().contains("e:3:3: expected a float (`weight`), got \"nothing\""), "{e}");
    let e = read_edges(&path, &decoder.empty_as_zero()).unwrap();
    let texts = |v: &[&str]| Ids::Text(v.iter().copied().collect());
    assert_eq!(
        (e.src, e.dst, e.columns.weights),
        (texts(&["a", "köln", "c"]), texts(&["b", "a", "c"]), Some(vec![0.5, 2.0, 0.0]))
    );
    let labels = Csv::default().with_endpoints("from", "to").with_label("from");
    let e = read_edges(&path, &Decoder::new().csv(labels.clone()).text_labels()).unwrap();
    assert_eq!(e.columns.labels.unwrap(), [0, 2, 1]);
    let e = Decoder::new().csv(labels.with_label("weight")).text_labels();
    let e = read_edges(&path, &e).unwrap_err().to_string();
    assert!(e.contains("expected a text (`label`), got \"0.5 (float64)\""), "{e}");
}

#[test]
fn repeated_ids_and_other_columns_are_named() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("n");
    let schema = "message m { optional int64 id; optional double x; }";
    let ids = |v: &[i64]| Written::Int(v.iter().map(|&t| Some(t)).collect());
    write(
        &path,
        schema,
        &[
            vec![ids(&[4, 5]), Written::Float(vec![Some(1.0); 2])],
            vec![ids(&[6, 5]), Written::Float(vec![Some(2.5); 2])],
        ],
    );
    let refused = |decoder: Decoder, what: &str| {
        let e = read_nodes(&path, &decoder).unwrap_err();
        assert!(e.to_string().contains(what), "expected {what:?} in {e}");
    };
    let by = |names: Csv| Decoder::new().csv(names);
    refused(by(Csv::default()), "n:4:1: expected an id that occurs once");
    refused(
        by(Csv::default().with_id("x")),
        "n:1:2: expected an int64 (`id`), got \"1.0 (float64)\"",
    );
    refused(by(Csv::default().with_id("node")), "expected a column `node`, got \"`id`, `x`\"");
    refused(
        by(Csv::new(["x"]).with_id("id")).with_attributes([AttrType::Int]),
        "n:3:2: expected an int64 (`x`), got \"2.5 (float64)\"",
    );
    refused(Decoder::new(), "found a Parquet file; name its columns with `Decoder::csv`");
    let shard = Source::from(&path).shard(0, 2);
    assert!(read_nodes_with(shard, &by(Csv::default()), &ReadOptions::new()).is_err());
    let lists = by(Csv::default().with_id("vector.list.element"));
    let e = read_nodes(stored("vectors.parquet"), &lists).unwrap_err();
    assert!(matches!(e, DataError::Format { .. } | DataError::Table { .. }), "{e}");
}

#[test]
fn arrays_as_dgl_writes_them() {
    let a = read_parquet_array(&stored("pairs.parquet")).unwrap();
    assert_eq!(a.shape, [3, 2]);
    assert_eq!(a.into_i64().unwrap(), [0, 4, 2, 0, 1, 1]);
    let floats = |name: &str| {
        let a = read_parquet_array(&stored(name)).unwrap();
        (a.shape.clone(), format!("{:?}", a.values))
    };
    assert_eq!(
        floats("cubes.parquet"),
        (vec![3, 2, 2], format!("F32({:?})", (0..12).map(|i| i as f32).collect::<Vec<_>>()))
    );
    assert_eq!(
        floats("vectors.parquet"),
        (vec![3, 2], format!("F64({:?})", (0..6).map(f64::from).collect::<Vec<_>>()))
    );
    let e = read_parquet_array(&stored("people.parquet")).unwrap_err();
    assert!(e.to_string().contains("expected"), "{e}");
}

#[test]
fn cells_are_in_the_order_of_rows() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("n");
    write(
        &path,
        "message m { optional int64 id; }",
        &[vec![Written::Int(vec![None, Some(3), None, Some(-4)])]],
    );
    let cells = ParquetFile::open(&path, 1).unwrap().read(0, 0).unwrap();
    assert_eq!(
        cells.iter().collect::<Vec<_>>(),
        [Cell::Null, Cell::Int(3), Cell::Null, Cell::Int(-4)]
    );
}

proptest! {
    /// Reading a damaged file returns a value or an error.
    #[test]
    fn damaged_files(which in 0usize..4, damage in damage()) {
        let name = ["people.parquet", "pairs.parquet", "cubes.parquet", "vectors.parquet"][which];
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("p");
        std::fs::copy(stored(name), &path).unwrap();
        spoil(tmp.path(), damage);
        let _ = if which == 0 { read_nodes(&path, &people()).map(drop) } else { read_parquet_array(&path).map(drop) };
    }
}

/// Rows of a column of a stored file.
fn column(name: &str, column: &str) -> Result<Vec<String>, DataError> {
    let file = ParquetFile::open(&stored(name), 64)?;
    let at = file.names().iter().position(|n| n == column).unwrap();
    let mut all = vec![];
    for group in file.groups() {
        all.extend(file.read(group, at)?.iter().map(|cell| format!("{cell:?}")));
    }
    Ok(all)
}

#[test]
fn every_annotation_that_changes_a_value() {
    let ints = |v: [i64; 2]| v.map(|v| format!("Int({v})")).to_vec();
    let floats = |v: [f64; 2]| v.map(|v| format!("F64({v:?})")).to_vec();
    for (name, values) in [
        ("id", ints([1, 4_000_000_001])),
        ("half", floats([0.5, 0.25])),
        ("price", floats([1.25, -0.01])),
        ("whole", ints([7, -7])),
        ("deep", floats([-3.75, 1.0])),
        ("huge", floats([12_345_678_901_234_567_890.5, -1.0])),
        ("u32", ints([4_000_000_000, 2_147_483_653])),
        ("flag", ints([1, 0])),
        ("d", ints([18_263, -1])),
        ("ts", ints([1_577_934_245_000_006, 0])),
        ("tm", ints([3_723_000_000, 0])),
    ] {
        assert_eq!(column("duckdb.parquet", name).unwrap(), values, "{name}");
    }
    for (name, values) in
        [("id", ints([7, 2_147_483_653])), ("u8", ints([1, 255])), ("u64", ints([1, 1 << 62]))]
    {
        assert_eq!(column("fastparquet.parquet", name).unwrap(), values, "{name}");
    }
    for (name, values) in [
        ("i8", ints([-1, 127])),
        ("i16", ints([-1, 32_767])),
        ("u8", ints([0, 255])),
        ("u16", ints([0, 65_535])),
        ("u32", ints([0, 2_147_483_653])),
        ("u64", ints([0, i64::MAX])),
        ("f16", vec!["F32(0.5)".into(), "F32(-2.0)".into()]),
        ("d5", floats([1.25, -0.01])),
        ("d18", floats([-3.75, 1.0])),
        ("d38", floats([1_234_567_890_123_456_789.5, -1.5])),
        ("d60", floats([7.5, -1.5])),
        ("whole", ints([7, -8])),
        ("date", ints([1, -1])),
        ("t_ms", ints([1, 2])),
        ("t_us", ints([1, 2])),
        ("t_ns", ints([1, 2])),
        ("s_ms", ints([1000, -1])),
        ("s_us", ints([1000, -1])),
        ("s_ns", ints([1000, -1])),
        ("dur", ints([5, 6])),
        ("nil", vec!["Null".into(), "Null".into()]),
        ("flag", ints([1, 0])),
    ] {
        assert_eq!(column("types.parquet", name).unwrap(), values, "{name}");
    }
    assert_eq!(column("int-decimals.parquet", "d5").unwrap(), floats([1.25, -0.01]));
    assert_eq!(column("int-decimals.parquet", "d18").unwrap(), floats([-3.75, 1.0]));
    let nanoseconds = [1_577_934_245_000_006_000, -1_000_000_000];
    assert_eq!(column("int96.parquet", "ts").unwrap(), ints(nanoseconds));
    for (name, text) in [
        (
            "u",
            "column `u`: expected numbers, dates, times or texts, found uuid in 16 bytes; cast it to text",
        ),
        ("iv", "found interval in 12 bytes; cast it to int64, such as milliseconds"),
    ] {
        let e = column("duckdb.parquet", name).unwrap_err().to_string();
        assert!(e.contains("duckdb.parquet: ") && e.contains(text), "{e}");
    }
}

#[test]
fn annotated_columns_of_a_table_and_of_an_array() {
    let csv = Csv::new(["price", "whole"]).with_id("u32");
    let decoder = Decoder::new().with_attributes([AttrType::Float, AttrType::Int]).csv(csv);
    let t = read_nodes(stored("duckdb.parquet"), &decoder).unwrap();
    assert_eq!(t.ids.ids(), &Ids::Int(vec![4_000_000_000, 2_147_483_653]));
    assert_eq!(t.columns.attributes.floats, [1.25, -0.01]);
    assert_eq!(t.columns.attributes.ints, [7, -7]);
    // A fraction is no id.
    let by_price = Decoder::new().csv(Csv::default().with_id("price"));
    let e = read_nodes(stored("duckdb.parquet"), &by_price).unwrap_err().to_string();
    assert!(e.contains("expected an int64 (`id`), got \"1.25"), "{e}");
    let a = read_parquet_array(&stored("fastparquet.parquet")).unwrap();
    assert_eq!(a.shape, [2, 3]);
    assert_eq!(a.into_i64().unwrap(), [7, 1, 1, 2_147_483_653, 255, 1 << 62]);
}

#[test]
fn files_and_groups_without_rows() {
    let by = |csv: Csv| Decoder::new().with_attributes([AttrType::Float]).csv(csv);
    let t = read_nodes(stored("pyarrow-groups.parquet"), &by(Csv::new(["x"]))).unwrap();
    assert_eq!(t.ids.ids(), &Ids::Int(vec![1, 2]));
    assert_eq!(t.columns.attributes.floats, [0.5, 1.5]);
    let t = read_nodes(stored("pandas-empty.parquet"), &by(Csv::new(["x"]))).unwrap();
    assert_eq!((t.ids.ids(), t.columns.attributes.floats), (&Ids::Int(vec![]), vec![]));
    // A part without rows has columns of other types than the parts with rows.
    let tmp = tempfile::tempdir().unwrap();
    let schema = "message m { required binary id (STRING); required double x; }";
    for part in ["part-0", "part-2"] {
        std::fs::copy(stored("pandas-empty.parquet"), tmp.path().join(part)).unwrap();
    }
    let rows = vec![Written::Text(vec![Some("a")]), Written::Float(vec![Some(2.5)])];
    write(&tmp.path().join("part-1"), &schema.replace("required", "optional"), &[rows]);
    // What Spark leaves in a folder.
    std::fs::write(tmp.path().join("_SUCCESS"), "").unwrap();
    std::fs::write(tmp.path().join(".part-1.crc"), "crc").unwrap();
    let t = read_nodes(tmp.path(), &by(Csv::new(["x"]))).unwrap();
    assert_eq!(t.ids.ids(), &Ids::Text(["a"].into_iter().collect()));
    assert_eq!(t.columns.attributes.floats, [2.5]);
    let a = read_parquet_array(&stored("pandas-empty.parquet"));
    assert!(a.unwrap_err().to_string().contains("columns of one type"));
    let empty = tmp.path().join("empty");
    write(&empty, "message m { optional int64 src; optional int64 dst; }", &[]);
    let a = read_parquet_array(&empty).unwrap();
    assert_eq!((a.shape.clone(), a.into_i64().unwrap()), (vec![0, 2], vec![]));
}

#[test]
fn lists_are_vectors() {
    let read = |names: &[&str], types: &[AttrType]| {
        let csv = Csv::new(names.iter().copied());
        let decoder = Decoder::new().with_attributes(types.iter().copied()).csv(csv);
        read_nodes(stored("lists.parquet"), &decoder)
    };
    let types = [AttrType::vector(3), AttrType::Float, AttrType::vector(2)];
    let t = read(&["var", "pages", "emb"], &types).unwrap();
    assert_eq!(
        t.columns.attributes.floats,
        [
            [1.5, 2.5, 3.5, 9.0, 0.0, 0.5],
            [4.5, 5.5, 6.5, 8.0, 1.0, 1.5],
            [7.5, 8.5, 9.5, 7.0, 2.0, 2.5]
        ]
        .concat()
    );
    let refused = |name: &str, ty, text: &str| {
        let e = read(&[name], &[ty]).unwrap_err().to_string();
        assert!(e.contains("lists.parquet") && e.contains(text), "expected {text:?} in {e}");
    };
    let one = AttrType::vector(1);
    refused("odd", one, ":3:5: expected a list of 1 number (`odd`), got \"a list of 2\"");
    refused("emb", one, ":1:3: expected a list of 1 number (`emb`), got \"a list of 2\"");
    refused(
        "none",
        AttrType::vector(2),
        ":2:7: expected a list of 2 numbers (`none`), got \"a list of 0\"",
    );
    refused("holes", AttrType::vector(2), "column `holes`: expected lists without nulls in row 2");
    refused("emb", AttrType::Float, "`AttrType::vector` reads lists of numbers");
    refused(
        "pages",
        AttrType::vector(2),
        ":1:2: expected 2 numbers joined by `,` (`pages`), got \"9",
    );
    let t = read_nodes(
        stored("duckdb.parquet"),
        &Decoder::new().with_attributes([AttrType::vector(2)]).csv(Csv::new(["vec"])),
    );
    assert_eq!(t.unwrap().columns.attributes.floats, [0.5, 1.5, 2.5, 3.5]);
}
