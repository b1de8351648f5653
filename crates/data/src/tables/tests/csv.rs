use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::Ids;

use super::Files;
use crate::{
    AttrType, Builder, Csv, Decoder, ReadOptions, Source, read_edges, read_nodes, read_nodes_with,
};
use AttrType::{Float, Int, Text};

fn people() -> Decoder {
    Decoder::new()
        .labeled()
        .with_attributes([Float, Text])
        .csv(Csv::new(["height", "name"]).with_label("group"))
}

const PEOPLE: &str = "\u{feff}name,id,height,group,unread\r\n\"Ann, \"\"A\"\"\",7,1.5,0,x\r\n\"two\nlines\",-3,2,1,\r\nCy,9,0.5,2,\"\"";

#[test]
fn columns_by_name_in_any_order() {
    let files = Files::new();
    let t = read_nodes(files.put("p.csv", PEOPLE), &people()).unwrap();
    assert_eq!(t.ids.ids(), &Ids::Int(vec![7, -3, 9]));
    assert_eq!(
        (t.columns.labels.unwrap(), t.columns.attributes.floats),
        (vec![0, 1, 2], vec![1.5, 2.0, 0.5])
    );
    assert_eq!(
        t.columns.attributes.texts[0].iter().collect::<Vec<_>>(),
        ["Ann, \"A\"", "two\nlines", "Cy"]
    );
    let edges = Decoder::new().weighted().timestamped().csv(
        Csv::new([""; 0])
            .with_endpoints("from", "to")
            .with_text_ids()
            .with_delimiter('|')
            .with_weight("w"),
    );
    let e =
        read_edges(files.put("e", "w|to|timestamp|from\n0.5|b|4|a\n1|a|5|b\n"), &edges).unwrap();
    assert_eq!(
        (e.src, e.dst),
        (Ids::Text(["a", "b"].into_iter().collect()), Ids::Text(["b", "a"].into_iter().collect()))
    );
    assert_eq!(
        (e.columns.weights.unwrap(), e.columns.timestamps.unwrap()),
        (vec![0.5, 1.0], vec![4, 5])
    );
}

#[test]
fn a_graph_of_compressed_and_split_csv_files() {
    let files = Files::new();
    files.put("n/1.csv", "id,x\n10,1\n20,2\n");
    files.put("n/2.csv.zst", zstd::encode_all("x,id\n3,30\n".as_bytes(), 1).unwrap());
    let e = files.put("e.csv", "dst_id,src_id\n30,10\n");
    let nodes = Decoder::new().with_attributes([Int]).csv(Csv::new(["x"]));
    let b = Builder::new().node(files.0.path().join("n"), "a", nodes).edge(
        e,
        ("a", "r", "a"),
        Decoder::new().csv(Csv::default()),
        true,
    );
    let g = b.build(&Device::flex()).unwrap();
    assert_eq!(
        (g.relation("r").unwrap().src(), g.relation("r").unwrap().dst()),
        (&[0][..], &[2][..])
    );
    assert_eq!(
        g.nodes("a").unwrap().column("int_attrs").unwrap().to_data().try_to_vec::<i64>().unwrap(),
        [1, 2, 3]
    );
}

#[test]
fn errors_have_the_line_after_records_of_several_lines() {
    let files = Files::new();
    let refused = |text: &str, end: &str| {
        let e = read_nodes(files.put("p.csv", text), &people()).unwrap_err();
        assert!(
            matches!(e, DataError::Table { .. }) && e.to_string().ends_with(end),
            "expected {end:?} at the end of {e}"
        );
    };
    let row = |r: &str| format!("name,id,height,group\n\"two\nlines\",1,1,1\n{r}\n");
    refused(
        &row("x,z,1,1"),
        "p.csv:4:2: expected an int64 (`id`), got \"z\"; `Csv::with_text_ids` reads ids that are texts (`with_text_src_ids`, `with_text_dst_ids` those of one endpoint), in GraphLearn's format `:string` in the header",
    );
    refused(&row("x,2,tall,1"), "p.csv:4:3: expected a float (`height`), got \"tall\"");
    refused(
        &row("x,2,1"),
        "p.csv:4: expected 4 fields, not 3, got \"x,2,1\"; complete the row; an empty field is nothing between two delimiters",
    );
    refused(
        &row("x,1,1,1"),
        "(p.csv:2 has it), got \"1\"; `ReadOptions::with_duplicates` keeps the first or the last of them"
            .replace("(p.csv", &format!("({}", files.0.path().join("p.csv").display()))
            .as_str(),
    );
    refused(
        "name,id,group\n",
        "p.csv:1: expected a column `height`, got \"`name`, `id`, `group`\"; the methods of `Csv` name the columns; names are compared with their spaces",
    );
    refused("name,id,id,height,group\n", "p.csv:1:3: expected one column `id`, got \"id\"");
    refused("", "expected a header with a column `id`, got \"an empty file\"");
    let several = read_nodes_with(
        files.put("p.csv", row("x,z,1,1\ny,2,1,q")),
        &people(),
        &ReadOptions::new().with_max_problems(9),
    );
    assert!(matches!(several, Err(DataError::Problems { problems }) if problems.len() == 2));
    let path = files.put("p.csv", PEOPLE);
    assert!(matches!(
        read_nodes(Source::from(&path).shard(0, 2), &people()),
        Err(DataError::Format { .. })
    ));
    for csv in [Csv::new(["height"]), Csv::new(["height", "name"]).with_delimiter("\n")] {
        assert!(matches!(
            read_nodes(&path, &people().csv(csv.with_label("group"))),
            Err(DataError::Decoder { .. })
        ));
    }
}

/// Line ends of all kinds and empty lines before the row. Also errors about duplicate ids, whose lines are computed after
/// reading, and about the header.
#[test]
fn errors_have_the_line_after_any_line_ends() {
    let files = Files::new();
    for (end, empty, rows) in ["\n", "\r\n", "\r"]
        .into_iter()
        .flat_map(|end| (0..4).flat_map(move |n| [0, 1, 3000].map(|rows| (end, n, rows))))
    {
        // More rows than a buffer of the parser holds.
        let good: String = (0..rows).map(|i| format!("\"a{end}b\",{i},1,1{end}")).collect();
        let text =
            |last: &str| format!("name,id,height,group{end}{good}{}{last}{end}", end.repeat(empty));
        let line = 2 + 2 * rows + empty;
        let e = read_nodes(files.put("p.csv", text("x,z,1,1")), &people()).unwrap_err();
        assert!(
            matches!(e, DataError::Table { line: found, column: 2, .. } if found == line as u64),
            "{end:?} {empty} {rows}: {e}"
        );
        let head = format!("{}name,id,group{end}", end.repeat(empty));
        let e = read_nodes(files.put("p.csv", head), &people()).unwrap_err().to_string();
        assert!(
            e.contains(&format!("p.csv:{}: expected a column `height`", 1 + empty)),
            "{end:?} {empty}: {e}"
        );
        if rows > 0 {
            let e =
                read_nodes(files.put("p.csv", text("x,0,1,1")), &people()).unwrap_err().to_string();
            assert!(
                e.contains(&format!("p.csv:{line}:")) && e.contains("p.csv:2 has it"),
                "{end:?} {empty} {rows}: {e}"
            );
        }
    }
}

/// Names of classes are numbered in ascending order over all files. An empty label is no class; so is that of added nodes.
#[test]
fn labels_that_are_texts() {
    let files = Files::new();
    files.put("n/1.csv", "id,kind\n1,toys\n2,books\n3,\n");
    files.put("n/2.csv", "id,kind\n4,Älteres\n5,books\n5,art\n");
    let decoder = Decoder::new().csv(Csv::default().with_label("kind")).text_labels();
    let folder = files.0.path().join("n");
    let options = ReadOptions::new().with_duplicates(crate::Duplicates::Last);
    let t = read_nodes_with(&folder, &decoder, &options).unwrap();
    assert_eq!(t.columns.labels.unwrap(), [2, 1, -1, 3, 0]);
    let texts = t.columns.label_texts.unwrap();
    assert_eq!(texts.iter().collect::<Vec<_>>(), ["toys", "books", "", "Älteres", "art"]);
    assert_eq!(crate::class_names(&texts), ["art", "books", "toys", "Älteres"]);

    // A class of rows that are not kept is none.
    let path = files.put("d.csv", "id,kind\n1,toys\n1,art\n");
    for (keep, name) in [(crate::Duplicates::First, "toys"), (crate::Duplicates::Last, "art")] {
        let options = ReadOptions::new().with_duplicates(keep);
        let t = read_nodes_with(&path, &decoder, &options).unwrap();
        let names = crate::class_names(&t.columns.label_texts.unwrap());
        assert_eq!((t.columns.labels.unwrap(), names), (vec![0], vec![name.to_owned()]));
    }

    let e = files.put("e.csv", "src_id,dst_id,how\n1,9,far\n1,2,near\n");
    let by = Decoder::new().csv(Csv::default().with_label("how")).text_labels();
    let options = options.with_unknown_nodes(crate::UnknownNodes::Add);
    let g = Builder::new()
        .node(&folder, "item", decoder.clone().empty_label_as(-7))
        .edge(&e, ("item", "to", "item"), by, false)
        .with_options(options)
        .build(&Device::flex())
        .unwrap();
    let ints = |frame: &burn_gnn_graph::Frame| {
        frame.get_int::<1>("label").unwrap().into_data().try_to_vec::<i64>().unwrap()
    };
    let items = g.nodes("item").unwrap();
    assert_eq!(ints(items), [2, 1, -7, 3, 0, -1]);
    assert_eq!(crate::class_names(items.text(crate::LABEL_TEXT).unwrap()).len(), 4);
    // Reverses have the labels of their edges.
    let edges = g.edges("to").unwrap();
    assert_eq!(ints(edges), [0, 1, 0, 1]);
    assert_eq!(edges.text("label_text").unwrap().iter().last(), Some("near"));

    // GraphLearn's format says the type in the header.
    let path = files.put("t", "id:int64\tlabel:string\n1\tb\n2\ta\n");
    assert_eq!(
        read_nodes(&path, &Decoder::new().text_labels()).unwrap().columns.labels.unwrap(),
        [1, 0]
    );
    let e = read_nodes(&path, &Decoder::new().labeled()).unwrap_err().to_string();
    assert!(e.contains("a column like `label:int64`"), "{e}");
    // Every shard would number the classes that it has.
    let shard = Source::from(&folder).shard(0, 2);
    let e = read_nodes(shard, &decoder).unwrap_err().to_string();
    assert!(e.contains("text_labels") && e.contains("a shard"), "{e}");
}

/// A weight, label or timestamp is read if `Csv` has its name.
#[test]
fn named_columns_are_read() {
    let files = Files::new();
    let path = files.put("e.csv", "src_id,dst_id,w,y,t\n1,2,0.5,3,7\n");
    let named = Csv::default().with_weight("w").with_label("y").with_timestamp("t");
    let e = read_edges(&path, &Decoder::new().csv(named.clone())).unwrap();
    assert_eq!(
        (e.columns.weights, e.columns.labels, e.columns.timestamps),
        (Some(vec![0.5]), Some(vec![3]), Some(vec![7]))
    );
    // A description in JSON sets no flag by itself.
    let described = r#"{"csv": {"weight": "w"}}"#;
    let decoder: Decoder = serde_json::from_str(described).unwrap();
    let e = read_edges(&path, &decoder).unwrap_err().to_string();
    assert!(e.contains("csv.weight") && e.contains("`weighted`") && e.contains("`w`"), "{e}");
    let e = read_edges(&path, &Decoder { text_labels: true, ..Decoder::new() }).unwrap_err();
    assert!(e.to_string().contains("text_labels"), "{e}");
    // The names that all descriptions of CSV files had once are no request.
    let described = r#"{"csv": {"weight": "weight", "label": "label", "timestamp": "timestamp"}}"#;
    let decoder: Decoder = serde_json::from_str(described).unwrap();
    assert_eq!(read_edges(&path, &decoder).unwrap().columns.weights, None);
    let decoder: Decoder =
        serde_json::from_str(r#"{"weighted": true, "csv": {"weight": "w"}}"#).unwrap();
    assert_eq!(decoder, Decoder::new().csv(Csv::default().with_weight("w")));
}

/// Other files than CSV files are errors that name the option or the conversion.
#[test]
fn errors_have_a_remedy() {
    let files = Files::new();
    let csv = || Decoder::new().csv(Csv::default().with_label("y"));
    let refused = |decoder: Decoder, bytes: &[u8]| {
        read_nodes(files.put("p.csv", bytes), &decoder).unwrap_err().to_string()
    };
    for (bytes, remedy) in [
        (&b""[..], "got \"an empty file\""),
        (b"id;y\n1;2\n", "`Csv::with_delimiter`"),
        (b"id\ty\n1\t2\n", "`Csv::with_delimiter`"),
        (
            b"id, y\n1,2\n",
            "got \"`id`, ` y`\"; the methods of `Csv` name the columns; names are compared with their spaces",
        ),
        (b"\xff\xfei\0d\0,\0y\0\n\0", "UTF-16"),
        (b"id,y\n1.0,2\n", "pandas"),
        (b"id,y\n1,2.0\n", "pandas"),
        (b"id,y\n1,toys\n", "`Decoder::text_labels`"),
        (b"id,y\nu1,2\n", "`Csv::with_text_ids`"),
        (b"id,y\n12e4,2\n", "`Csv::with_text_ids`"),
        (b"id,y\n1\n", "complete the row"),
        (b"id,y\n1,2,3\n", "quote fields"),
    ] {
        let e = refused(csv(), bytes);
        assert!(e.contains(remedy), "{e}");
    }
    let e =
        refused(Decoder::new().csv(Csv::default().with_timestamp("t")), b"id,t\n1,2024-01-05\n");
    assert!(e.contains("seconds since 1970"), "{e}");
    let e = refused(Decoder::new().labeled(), b"id,label\n1,2\n");
    assert!(e.contains("`Decoder::csv`"), "{e}");
}

/// Subgraphs, summaries and saved graphs keep the names of the attributes.
#[test]
fn attributes_keep_their_names() {
    let files = Files::new();
    let path = files.put("p.csv", "id,title,price,stock,kind,size\n7,a,0.5,3,x,\"1,2\"\n9,b,2,4,y,\"3,4\"\n8,c,1,5,x,\"5,6\"\n");
    let types = [Text, Float, Int, AttrType::string_buckets(9), AttrType::vector(2)];
    let csv = Csv::new(["title", "price", "stock", "kind", "size"]);
    let decoder = Decoder::new().with_attributes(types).csv(csv);
    let e = files.put("e.csv", "src_id,dst_id\n7,9\n");
    let g = Builder::new()
        .node(&path, "item", decoder)
        .edge(e, ("item", "to", "item"), Decoder::new().csv(Csv::default()), true)
        .build(&Device::flex())
        .unwrap();
    let folder = files.0.path().join("graph");
    crate::save_graph(&g, &folder).unwrap();
    let back = crate::load_graph(&folder, &Device::flex()).unwrap();
    let part = g.node_subgraph([("item", [2, 1])], burn_gnn_graph::Relabel::Yes).unwrap().graph;
    let both = burn_gnn_graph::batch([&g, &part]).unwrap();
    for g in [&g, &back, &part, both.graph()] {
        let items = g.nodes("item").unwrap();
        for (column, names) in [
            ("float_attrs", &["price", "size[0]", "size[1]"][..]),
            ("int_attrs", &["stock", "kind"]),
            ("text_keys", &["title"]),
        ] {
            assert_eq!(items.column(column).unwrap().names().unwrap(), names);
        }
        let shown = format!("int_attrs[{}, 2] (stock, kind)", items.len());
        assert!(g.to_string().contains(&shown), "{g}");
    }
    // A damaged description.
    let json = folder.join("graph.json");
    let text = std::fs::read_to_string(&json).unwrap().replace("\"stock\"", "\"stock\", \"more\"");
    std::fs::write(&json, text).unwrap();
    let e = crate::load_graph(&folder, &Device::flex()).unwrap_err().to_string();
    assert!(
        e.contains("one name for each entry of a row of shape [2]") && e.contains("3 names"),
        "{e}"
    );
}

/// Labels that are floats are errors with a remedy.
#[test]
fn labels_that_are_floats() {
    let files = Files::new();
    let decoder = Decoder::new().csv(Csv::default().with_label("y"));
    let path = files.put("p.csv", "id,y\n1,0.0\n2,1.0\n");
    let e = read_nodes(&path, &decoder).unwrap_err().to_string();
    assert!(
        e.ends_with(
            "p.csv:2:2: expected an int64 (`label`), got \"0.0\"; labels are classes, whole numbers without a point: convert the \
             column (pandas: `astype(\"Int64\")`), or number its texts by `Decoder::text_labels`"
        ),
        "{e}"
    );
    assert_eq!(
        read_nodes(&path, &decoder.clone().text_labels()).unwrap().columns.labels.unwrap(),
        [0, 1]
    );
}
