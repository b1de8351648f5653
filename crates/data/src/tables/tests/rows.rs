use burn_gnn_files::DataError;
use burn_gnn_graph::{Ids, Texts};

use super::Files;
use crate::{
    AttrType, Attributes, Decoder, NodeTable, ReadOptions, read_edges, read_nodes, read_nodes_with,
};
use AttrType::{Float, Int, Text};

fn nodes(text: impl AsRef<[u8]>, d: &Decoder) -> Result<NodeTable, DataError> {
    read_nodes(Files::new().put("t", text), d)
}

fn texts(all: &[&str]) -> Texts {
    all.iter().collect()
}

#[test]
fn every_form_of_node_and_edge_table() {
    for bits in 0..16 {
        let on = [true, bits & 1 > 0, bits & 2 > 0, bits & 4 > 0, bits & 8 > 0];
        let types = if on[4] { vec![Int, Text] } else { vec![] };
        let d = Decoder {
            weighted: on[1],
            labeled: on[2],
            timestamped: on[3],
            attr_types: types,
            ..Decoder::default()
        };
        let d = d.with_delimiter_set("|:");
        let pick = |parts: [&str; 5]| {
            parts.iter().zip(on).filter(|p| p.1).map(|p| *p.0).collect::<Vec<_>>().join("\t") + "\n"
        };
        let (head, row) = (
            ["id:int64", "w:float", "l:int32", "t:int64", "f:string"],
            ["7", "0.5", "-1", "99", "3|x"],
        );
        let t = nodes(pick(head) + &pick(row), &d).unwrap();
        let attributes = Attributes {
            ints: if on[4] { vec![3] } else { vec![] },
            texts: if on[4] { vec![texts(&["x"])] } else { vec![] },
            ..Attributes::default()
        };
        let rest = (
            on[1].then(|| vec![0.5]),
            on[2].then(|| vec![-1]),
            on[3].then(|| vec![99]),
            attributes,
        );
        assert_eq!(t.ids.ids(), &Ids::Int(vec![7]));
        assert_eq!(
            (t.columns.weights, t.columns.labels, t.columns.timestamps, t.columns.attributes),
            rest
        );
        let path = Files::new();
        let e = read_edges(path.put("e", format!("dst:int64\t{}8\t{}", pick(head), pick(row))), &d)
            .unwrap();
        assert_eq!((e.src, e.dst), (Ids::Int(vec![8]), Ids::Int(vec![7])));
        assert_eq!(
            (e.columns.weights, e.columns.labels, e.columns.timestamps, e.columns.attributes),
            rest
        );
        // Each column is there if and only if the decoder says so.
        for flip in 1..4 {
            let mut other = d.clone();
            let flag = [&mut other.weighted, &mut other.labeled, &mut other.timestamped];
            let flag = flag.into_iter().nth(flip - 1).unwrap();
            *flag = !*flag;
            let e = nodes(pick(head) + &pick(row), &other).unwrap_err();
            assert!(matches!(e, DataError::Table { line: 1, .. }), "{e}");
        }
    }
}

#[test]
fn documented_tables() {
    let d = Decoder::new().with_attributes([Text, Int, Text, Int, Float, Float]);
    let rows = "0\tshanghai:0:s2:10:0.1:0.5\n1\tbeijing:1:s2:11:0.1:0.5\n2\thangzhou:2:s2:12:0.1:0.5\n3\tshanghai:3:s2:13:0.1:0.5\n";
    let t = nodes(format!("id:int64\tfeature:string\n{rows}"), &d).unwrap().columns.attributes;
    assert_eq!(
        t.texts,
        [texts(&["shanghai", "beijing", "hangzhou", "shanghai"]), texts(&["s2"; 4])]
    );
    assert_eq!(t.ints, [0, 10, 1, 11, 2, 12, 3, 13]);
    assert_eq!(t.floats, [0.1, 0.5].repeat(4));
    let rows = "0\t5\t0.215340\tred:0:s2:10:0.1:0.5\n0\t7\t0.933091\tgrey:0:s2:10:0.1:0.5\n0\t1\t0.362519\tblue:0:s2:10:0.1:0.5\n\
                0\t9\t0.097545\tyellow:0:s2:10:0.1:0.5\n";
    let files = Files::new();
    let e = read_edges(
        files.put("e", format!("src_id:int64\tdst_id:int64\tweight:float\tfeature:string\n{rows}")),
        &d.weighted(),
    )
    .unwrap();
    assert_eq!((e.src, e.dst), (Ids::Int(vec![0; 4]), Ids::Int(vec![5, 7, 1, 9])));
    assert_eq!(e.columns.weights.unwrap(), [0.215340, 0.933091, 0.362519, 0.097545]);
    assert_eq!(e.columns.attributes.texts[0], texts(&["red", "grey", "blue", "yellow"]));
}

#[test]
fn line_ends_spaces_and_free_names() {
    let d = Decoder::new().weighted().with_attributes([Text]);
    for end in ["\n", "\r\n"] {
        for last in ["", end] {
            let text =
                format!("ID: int64{end}").replace(end, &format!("\tx:double \ty:string{end}"));
            let t =
                nodes(format!("{text} 3 \t 1e2\tä b{end}-9223372036854775808\tinf\t{last}"), &d)
                    .unwrap();
            assert_eq!(t.ids.ids(), &Ids::Int(vec![3, i64::MIN]));
            assert_eq!(
                (t.columns.weights.unwrap(), &t.columns.attributes.texts[0]),
                (vec![100.0, f32::INFINITY], &texts(&["ä b", ""]))
            );
        }
    }
    assert_eq!(nodes("id:int64\tw:float\ty:string\n", &d).unwrap().ids.len(), 0);
}

#[test]
fn ids_of_any_value_and_text_ids() {
    let far = "id:int64\n10001\n-5\n9223372036854775807\n";
    assert_eq!(nodes(far, &Decoder::new()).unwrap().ids.number(i64::MAX), Some(2));
    let t = nodes("id:string\nbonn\n köln\n7\n", &Decoder::new()).unwrap();
    assert_eq!(
        (t.ids.number(" köln"), t.ids.number("7"), t.ids.number(7), t.ids.number("köln")),
        (Some(1), Some(2), None, None)
    );
}

#[test]
fn delimiters_exact_and_as_a_set() {
    let text = |part: &str| format!("id:int64\tf:string\n0\t{part}\n");
    let of = |d: &Decoder, part: &str| {
        nodes(text(part), d).map(|t| {
            t.columns.attributes.texts.iter().map(|t| t.get(0).to_owned()).collect::<Vec<_>>()
        })
    };
    let (two, three) =
        (Decoder::new().with_attributes([Text; 2]), Decoder::new().with_attributes([Text; 3]));
    // GraphLearn's reading of "::" and "|:": any of these characters.
    assert_eq!(of(&three.clone().with_delimiter_set("::"), "a::b").unwrap(), ["a", "", "b"]);
    assert_eq!(of(&three.clone().with_delimiter_set("|:"), "a|:b").unwrap(), ["a", "", "b"]);
    // What is written is what is meant, by default.
    assert_eq!(of(&two.clone().with_delimiter("::"), "a::b").unwrap(), ["a", "b"]);
    assert!(
        of(&two.clone().with_delimiter("|:"), "a|b")
            .unwrap_err()
            .to_string()
            .contains("2 attributes separated by \"|:\", not 1")
    );
    for d in [two.clone(), two.with_delimiter_set(":")] {
        assert_eq!(of(&d, "a:").unwrap(), ["a", ""]);
    }
    // One empty attribute can be written, but not for GraphLearn.
    let one = Decoder::new().with_attributes([Text]);
    assert_eq!(of(&one, "").unwrap(), [""]);
    assert!(
        of(&one.with_delimiter_set(":"), "")
            .unwrap_err()
            .to_string()
            .contains("1 attributes separated by \":\", not 0")
    );
}

#[test]
fn buckets_lists_and_missing_values() {
    let types = [
        AttrType::string_buckets(800),
        AttrType::multi_string(800),
        AttrType::hashed_int(1000),
        AttrType::multi_string(None),
    ];
    let read = |types: [AttrType; 4], row: &str| {
        nodes(format!("id:int64\tf:string\n0\t{row}\n"), &Decoder::new().with_attributes(types))
            .map(|t| t.columns.attributes)
    };
    let a = read(types, "shanghai:shanghai,shanghai:7:a").unwrap();
    assert_eq!((a.ints, a.lists[0].row(0)), (vec![768, 88], &[184, 184][..]));
    assert_eq!(a.lists[1].row(0), [(0xb345_4265_b6df_75e3_u64 % i64::MAX as u64) as i64]);
    // An empty value is a value, and shares a bucket, unless it has a row of its own.
    let a = read(types, ":,:7:a").unwrap();
    let empty = (0x9ae1_6a3b_2f90_404f_u64 % 800) as i64;
    assert_eq!((a.ints, a.lists[0].row(0)), (vec![699, 88], &[empty, empty][..]));
    assert!(
        read(types, "a:b::c")
            .unwrap_err()
            .to_string()
            .contains("expected an int64 as attribute 2, got \"\"")
    );
    let own = types.map(|t| if t.rows().is_some() { t.with_missing_row() } else { t });
    let a = read(own, ":,b::a").unwrap();
    assert_eq!((a.ints, a.lists[0].row(0)[0]), (vec![800, 1000], 800));
}

#[test]
fn empty_numbers_are_errors_or_zero() {
    let d = Decoder::new().weighted().labeled().timestamped().with_attributes([
        Int,
        Float,
        AttrType::hashed_int(1000),
    ]);
    let text = "id:int64\tw:float\tl:int\tt:int64\tf:string\n4\t\t\t\t::\n";
    assert!(nodes(text, &d).unwrap_err().to_string().ends_with(
        ":2:2: expected a float (`weight`), got \"\"; \
                 `Decoder::empty_as_zero` reads an empty number as 0"
    ));
    let d = d.empty_as_zero();
    let label = nodes(text, &d).unwrap_err().to_string();
    assert!(
        label.ends_with(
            ":2:3: expected an int32 (`label`), got \"\"; \
             `Decoder::empty_label_as(-1)` reads an empty label as no class"
        ),
        "{label}"
    );
    let t = nodes(text, &d.empty_label_as(-1)).unwrap();
    let zero = (0xd2ed_9607_3b81_823f_u64 % 1000) as i64;
    assert_eq!(
        (t.columns.weights, t.columns.labels, t.columns.timestamps),
        (Some(vec![0.0]), Some(vec![-1]), Some(vec![0]))
    );
    assert_eq!(
        (t.columns.attributes.ints, t.columns.attributes.floats),
        (vec![0, zero], vec![0.0])
    );
    assert!(
        nodes("id:int64\n\n", &Decoder::new().empty_as_zero()).is_err(),
        "an id is never made up"
    );
}

fn refused(
    text: impl AsRef<[u8]>,
    d: &Decoder,
    line: u64,
    column: usize,
    expected: &str,
    found: &str,
) {
    match nodes(text, d).unwrap_err() {
        DataError::Table { line: l, column: c, expected: e, found: f, .. } => {
            assert_eq!((l, c), (line, column), "{e}, {f}");
            assert!(e.contains(expected), "expected {expected:?} in {e:?}");
            assert_eq!(f, found);
        }
        e => panic!("{e:?}"),
    }
}

#[test]
fn invalid_headers_are_errors() {
    let d = Decoder::new().weighted().with_attributes([Text]);
    let bad = |text: &[u8], column, expected, found| refused(text, &d, 1, column, expected, found);
    bad(b"", 0, "a header of 3", "an empty file");
    bad(
        b"id:int64\tw:float\n",
        0,
        "3 columns `id:int64 weight:float attributes:string` as the decoder says",
        "id:int64\tw:float",
    );
    bad(
        b"id:int64\tw:float\ts:string\tx:int\n",
        0,
        "3 columns",
        "id:int64\tw:float\ts:string\tx:int",
    );
    bad(b"id:int64\tw:string\ts:string\n", 2, "a column like `weight:float`", "w:string");
    bad(b"id:float\tw:float\ts:string\n", 1, "a column like `id:int64` or `id:string`", "id:float");
    bad(b"id\tw:float\ts:string\n", 1, "a column like `id:int64`", "id");
    bad(b"id:int64:x\tw:float\ts:string\n", 1, "a column like", "id:int64:x");
    bad(b"id:int128\tw:float\ts:string\n", 1, "a column like", "id:int128");
    bad(b"\xff\tw:float\ts:string\n", 0, "a header in UTF-8", "\u{fffd}\tw:float\ts:string");
}

#[test]
fn invalid_rows_are_errors() {
    let d = Decoder::new().weighted().with_attributes([Text]);
    const HEADER: &str = "id:int64\tweight:float\ttext:string\n";
    let row = |r: &str| format!("{HEADER}1\t2\tx\n{r}\n4\t5\ty\n");
    refused(row(""), &d, 3, 0, "3 tab-separated fields", "");
    refused(row("1\t2"), &d, 3, 0, "3 tab-separated fields", "1\t2");
    refused(row("1\t2\tx\t"), &d, 3, 0, "3 tab-separated fields", "1\t2\tx\t");
    refused(row("1x\t2\tx"), &d, 3, 1, "an int64 (`id`)", "1x");
    refused(row("\t2\tx"), &d, 3, 1, "an int64 (`id`)", "");
    refused(row("9223372036854775808\t2\tx"), &d, 3, 1, "an int64", "9223372036854775808");
    refused(row("1.0\t2\tx"), &d, 3, 1, "an int64", "1.0");
    refused(row("1\t2,5\tx"), &d, 3, 2, "a float (`weight`)", "2,5");
    refused(
        HEADER.replace("int64", "int32") + "2147483648\t1\tx",
        &d,
        2,
        1,
        "an int32",
        "2147483648",
    );
    refused(
        [HEADER.as_bytes(), b"1\t2\t\xff\xfe"].concat(),
        &d,
        2,
        3,
        "UTF-8 text (`attributes`)",
        "\u{fffd}\u{fffd}",
    );
    refused(
        row(&format!("1\t{}\tx", "9x".repeat(500))),
        &d,
        3,
        2,
        "a float",
        &format!("{}… (1000 bytes)", "9x".repeat(40)),
    );
    // A blank line at the end is a row as well.
    refused(format!("{HEADER}1\t2\tx\n\n"), &d, 3, 0, "3 tab-separated fields", "");
    refused("id:int64\n1\n\n", &Decoder::new(), 3, 0, "1 tab-separated fields", "");
}

#[test]
fn invalid_attributes_are_errors() {
    let d = Decoder::new().labeled().with_attributes([Int, Float]);
    let head = "id:int64\tl:int\tf:string\n";
    refused(
        format!("{head}0\t0\t1:2:3"),
        &d,
        2,
        3,
        "2 attributes separated by \":\", not 3",
        "1:2:3",
    );
    refused(format!("{head}0\t0\t"), &d, 2, 3, "not 0", "");
    refused(format!("{head}0\t0\t1:2\n1\t0\tx:2"), &d, 3, 3, "an int64 as attribute 0", "x");
    refused(format!("{head}0\t0\t1:y"), &d, 2, 3, "a float as attribute 1", "y");
    let identity =
        AttrType::IntBuckets { buckets: 3, by: crate::IntBuckets::Identity, missing_row: false };
    refused(
        "id:int64\tf:string\n0\t3",
        &Decoder::new().with_attributes([identity]),
        2,
        2,
        "a number in 0..3 as attribute 0",
        "3",
    );
    let none =
        AttrType::IntBuckets { buckets: 0, by: crate::IntBuckets::Modulo, missing_row: false };
    let e = nodes("id:int64\tf:string\n0\t3", &Decoder::new().with_attributes([none])).unwrap_err();
    assert!(matches!(e, DataError::Decoder { .. }), "{e}");
}

#[test]
fn several_invalid_rows_are_reported_together() {
    let files = Files::new();
    let wrong: String =
        (0..30).map(|i| if i % 10 == 3 { "x\n".to_owned() } else { format!("{i}\n") }).collect();
    let (a, b) =
        (files.put("d/a", format!("id:int64\n{wrong}")), files.put("d/b", "id:float\n1\n"));
    let read = |n| {
        read_nodes_with(
            files.0.path().join("d"),
            &Decoder::new(),
            &ReadOptions::new().with_max_problems(n),
        )
        .unwrap_err()
    };
    assert!(matches!(read(1), DataError::Table { line: 5, .. }));
    let DataError::Problems { problems } = read(3) else { panic!() };
    assert!(problems.iter().all(|p| matches!(p, DataError::Table { path, .. } if *path == a)));
    let text = read(9).to_string();
    assert!(text.starts_with("4 problems (there may be more):\n"), "{text}");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert!(
        [5, 15, 25]
            .iter()
            .zip(&lines)
            .all(|(n, l)| l.contains(&format!("{}:{n}:1: expected an int64", a.display()))),
        "{text}"
    );
    assert!(lines[3].contains(&format!("{}:1:1: expected a column like", b.display())), "{text}");
}
