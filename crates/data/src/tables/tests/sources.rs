use std::io::Write;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::Ids;
use proptest::prelude::*;

use super::Files;
use crate::{AttrType, Decoder, EdgeTable, Source, read_edges, read_nodes};

const HEADER: &str = "src_id:int64\tdst_id:int64\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn pairs(table: &EdgeTable) -> Vec<(i64, i64)> {
    let (Ids::Int(s), Ids::Int(d)) = (&table.src, &table.dst) else { panic!("{table:?}") };
    s.iter().copied().zip(d.iter().copied()).collect()
}

fn read(source: impl Into<Source>) -> Result<Vec<(i64, i64)>, DataError> {
    read_edges(source, &Decoder::new()).map(|t| pairs(&t))
}

#[test]
fn every_row_of_a_folder_once() {
    let files = Files::new();
    let b = files.put("edges/b", format!("{HEADER}3\t0\n4\t0\n5\t0\n"));
    let a = files.put("edges/a", format!("{HEADER}0\t0\n1\t0\n2\t0"));
    let all: Vec<(i64, i64)> = (0..6).map(|i| (i, 0)).collect();
    assert_eq!(read(files.0.path().join("edges")).unwrap(), all);
    assert_eq!(read(Source::list([&a, &b])).unwrap(), all);
    assert_eq!(
        read(Source::graphlearn(&format!(" {} , {}", a.display(), b.display()))).unwrap(),
        all
    );
    assert_eq!(read(Source::list([&b, &b])).unwrap().len(), 6, "a file named twice is read twice");
}

#[test]
fn plain_gzip_and_zstd() {
    let files = Files::new();
    let text = |from: i64| {
        format!(
            "{HEADER}{}",
            (from..from + 3000).map(|i| format!("{i}\t{}\n", i * 7)).collect::<String>()
        )
    };
    files.put("e/1", text(0));
    // Two members and two frames, as appended files have.
    let (start, end) = (text(3000), text(6000));
    let half = start.len() / 2;
    files.put("e/2.gz", [gzip(&start[..half]), gzip(&start[half..])].concat());
    let frame = |t: &str| zstd::encode_all(t.as_bytes(), 1).unwrap();
    files.put("e/3.zst", [frame(&end[..half]), frame(&end[half..])].concat());
    assert_eq!(
        read(files.0.path().join("e")).unwrap(),
        (0..9000).map(|i| (i, i * 7)).collect::<Vec<_>>()
    );
}

#[test]
fn damaged_and_exploding_compressed_files() {
    let files = Files::new();
    let rows = format!("{HEADER}{}", "1\t1\n".repeat(50_000));
    let whole = gzip(&rows);
    let mut flipped = whole.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    for (name, bytes) in [
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("checksum", flipped),
        ("zstd", b"\x28\xb5\x2f\xfdnonsense".to_vec()),
    ] {
        let e = read(files.put(name, bytes)).unwrap_err();
        assert!(matches!(e, DataError::Io { .. } | DataError::Format { .. }), "{e:?}");
        assert!(e.to_string().contains(name), "{e}");
    }
    // 80 MiB of rows in a few hundred kilobytes, and of one line.
    for line in ["1\t1\n", "1"] {
        let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        out.write_all(HEADER.as_bytes()).unwrap();
        let block = line.repeat((1 << 20) / line.len());
        (0..80).for_each(|_| out.write_all(block.as_bytes()).unwrap());
        let path = files.put("bomb", out.finish().unwrap());
        let options = crate::ReadOptions { max_expansion: 1, ..Default::default() };
        let e = crate::read_edges_with(path, &Decoder::new(), &options).unwrap_err().to_string();
        assert!(e.contains("expands to more than") && e.contains("raise `max_expansion`"), "{e}");
    }
}

#[test]
fn long_lines_and_many_blocks() {
    let files = Files::new();
    // A line longer than several blocks between short ones.
    let long = "x".repeat(5 << 20);
    let path = files.put("t", format!("id:int64\tf:string\n1\ta\n2\t{long}\n3\tb"));
    let t = read_nodes(path, &Decoder::new().with_attributes([AttrType::Text])).unwrap();
    assert_eq!(
        (
            t.ids.len(),
            t.columns.attributes.texts[0].get(1).len(),
            t.columns.attributes.texts[0].get(2)
        ),
        (3, 5 << 20, "b")
    );
    // Some ten megabytes; the last line is wrong, and its number is right.
    let n = 1_000_000;
    let rows: String = (0..n).map(|i| format!("{i}\t{}\n", n - i)).collect();
    let path = files.put("e", format!("{HEADER}{rows}"));
    assert_eq!(read(&path).unwrap(), (0..n).map(|i| (i, n - i)).collect::<Vec<_>>());
    let path = files.put("bad", format!("{HEADER}{rows}7\n"));
    assert!(matches!(read(path).unwrap_err(), DataError::Table { line: 1_000_002, column: 0, .. }));
}

#[test]
fn results_do_not_depend_on_threads() {
    let files = Files::new();
    let text = format!(
        "{HEADER}{}",
        (0..400_000).map(|i| format!("{i}\t{}\n", i % 91)).collect::<String>()
    );
    let path = files.put("e", text);
    let on = |n| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .unwrap()
            .install(|| read(&path).unwrap())
    };
    let one = on(1);
    assert_eq!(one.len(), 400_000);
    assert!(one == on(3) && one == on(8));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Each row is in exactly one shard, in order, whether files are assigned to shards or split.
    #[test]
    fn each_row_is_in_one_shard(
        files in prop::collection::vec(prop::collection::vec(0i64..1_000_000_000, 0..12), 1..5), count in 1usize..7, crlf: bool, last: bool,
    ) {
        let dir = Files::new();
        let end = if crlf { "\r\n" } else { "\n" };
        for (i, rows) in files.iter().enumerate() {
            let mut text = rows.iter().fold(format!("{}{end}", HEADER.trim_end()), |t, r| format!("{t}{r}\t0{end}"));
            if !last && !rows.is_empty() {
                text.truncate(text.len() - end.len());
            }
            dir.put(&format!("{i}"), text);
        }
        let shard = |i| read(Source::from(dir.0.path()).shard(i, count)).unwrap();
        let mut found: Vec<i64> = (0..count).flat_map(shard).map(|p| p.0).collect();
        if files.len() < count && files.len() == 1 {
            prop_assert_eq!(&found, &files[0]);
        }
        let mut expected = files.concat();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn errors_of_a_shard_have_the_line_of_the_file() {
    let files = Files::new();
    let rows: String = (0..90)
        .map(|i| if i == 80 { "80\tx\n".to_owned() } else { format!("{i}\t{i}\n") })
        .collect();
    let path = files.put("e", format!("{HEADER}{rows}"));
    let e = read(Source::from(&path).shard(1, 2)).unwrap_err();
    assert!(matches!(e, DataError::Table { line: 82, column: 2, .. }), "{e}");
}

#[test]
fn invalid_sources_are_errors() {
    let files = Files::new();
    let path = files.put("e", HEADER);
    let gz = files.put("e.gz", gzip(HEADER));
    files.put("deep/er/file", HEADER);
    std::fs::create_dir(files.0.path().join("empty")).unwrap();
    let at = |name: &str| files.0.path().join(name);
    let e = |source: Source, part: &str| {
        let e = read(source).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        e
    };
    assert!(matches!(e(Source::from(at("none")), "none"), DataError::Io { .. }));
    assert!(matches!(
        e(Source::from(at("deep")), "found a folder in it; name each folder"),
        DataError::Format { .. }
    ));
    assert!(matches!(e(Source::from(at("empty")), "at least one file"), DataError::Format { .. }));
    assert!(matches!(
        e(Source::list([""; 0]), "name at least one file"),
        DataError::Graph(GraphError::Empty { .. })
    ));
    assert!(matches!(
        e(Source::from(&path).shard(2, 2), "shard id 2 is out of range 0..2"),
        DataError::Graph(GraphError::IdOutOfRange { .. })
    ));
    assert!(matches!(
        e(Source::from(&gz).shard(0, 2), "for 2 shards, found a compressed file; decompress it"),
        DataError::Format { .. }
    ));
    let mixed = Source::list([
        files.put("a", "src_id:int64\tdst_id:int64\n1\t2\n"),
        files.put("b", "s:string\td:string\nx\ty\n"),
    ]);
    assert!(matches!(e(mixed, "b:1:1: expected int64 ids as in"), DataError::Table { .. }));
}
