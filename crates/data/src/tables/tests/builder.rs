use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{FileId, Graph};

use super::Files;
use crate::{AttrType, Builder, Decoder, Duplicates, ReadOptions, UnknownNodes};
use AttrType::{Float, Int};

/// The second example of GraphLearn's documentation, whose ids are not contiguous.
fn shop(files: &Files, edges: &str) -> Builder {
    let items = files.put("items", "id:int64\tfeature:string\n10001\tfeature1:1:0.1\n10002\tfeature2:2:0.2\n10003\tfeature3:3:0.3\n");
    let users = files.put(
        "users",
        "id:int64\tfeature:string\n123\t0.1:0.2:0.3\n124\t0.4:0.5:0.6\n125\t0.7:0.8:0.9\n",
    );
    let edges = files.put("edges", format!("src_id:int64\tdst_id:int64\tweight:float\n{edges}"));
    Builder::new()
        .node(
            items,
            "item",
            Decoder::new().with_attributes([AttrType::string_buckets(100), Int, Float]),
        )
        .node(users, "user", Decoder::new().with_attributes([Float; 3]))
        .edge(edges, ("user", "buys", "item"), Decoder::new().weighted(), true)
}

const EDGES: &str = "123\t10001\t0.1\n124\t10001\t0.2\n124\t10002\t0.3\n";

fn floats(g: &Graph, ntype: &str, name: &str) -> Vec<f32> {
    g.nodes(ntype).unwrap().column(name).unwrap().to_data().try_to_vec().unwrap()
}

fn ints(g: &Graph, ntype: &str, name: &str) -> Vec<i64> {
    g.nodes(ntype).unwrap().column(name).unwrap().to_data().try_to_vec().unwrap()
}

#[test]
fn the_example_of_the_documentation() {
    let g = shop(&Files::new(), EDGES).build(&Device::flex()).unwrap();
    let buys = g.relation(("user", "buys", "item")).unwrap();
    assert_eq!(
        (buys.src(), buys.dst(), g.node_counts()),
        (&[0, 1, 1][..], &[0, 0, 1][..], &[3, 3][..])
    );
    assert_eq!(
        g.edges("buys")
            .unwrap()
            .get::<1>("weight")
            .unwrap()
            .into_data()
            .try_to_vec::<f32>()
            .unwrap(),
        [0.1, 0.2, 0.3]
    );
    assert_eq!(floats(&g, "user", "float_attrs"), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
    assert_eq!(floats(&g, "item", "float_attrs"), [0.1, 0.2, 0.3]);
    let item = Decoder::new().with_attributes([AttrType::string_buckets(100)]);
    let bucket = |t| item.bucket(0, t).unwrap();
    assert_eq!(
        ints(&g, "item", "int_attrs"),
        [bucket("feature1"), 1, bucket("feature2"), 2, bucket("feature3"), 3]
    );
    let items = g.nodes("item").unwrap().ids().unwrap();
    assert_eq!(
        (items.number(10003), items.id(1), items.number(0), items.id(3)),
        (Some(2), Some(FileId::Int(10002)), None, None)
    );
}

#[test]
fn unknown_nodes_are_errors_or_added() {
    let edges = format!("{EDGES}999\t10001\t1\n124\t5\t1\n999\t5\t1\n");
    let e = shop(&Files::new(), &edges).build(&Device::flex()).unwrap_err();
    assert!(
        e.to_string().ends_with(
            "edges:5:1: expected the id of a `user` node, got \"999\"; \
             compare the ids of both tables; where the node table is not complete, \
             `ReadOptions::with_unknown_nodes(UnknownNodes::Add)`, given to `Builder::with_options`, adds the nodes"
        ),
        "{e}"
    );
    let options = ReadOptions::new().with_max_problems(10);
    let e = shop(&Files::new(), &edges)
        .with_options(options.clone())
        .build(&Device::flex())
        .unwrap_err();
    assert!(matches!(&e, DataError::Problems { problems } if problems.len() == 4), "{e}");
    let g = shop(&Files::new(), &edges)
        .with_options(options.with_unknown_nodes(UnknownNodes::Add))
        .build(&Device::flex())
        .unwrap();
    assert_eq!(g.node_counts(), [4, 4]);
    assert_eq!(
        (g.relation("buys").unwrap().src(), g.relation("buys").unwrap().dst()),
        (&[0, 1, 1, 3, 1, 3][..], &[0, 0, 1, 0, 3, 3][..])
    );
    assert_eq!(g.nodes("item").unwrap().ids().unwrap().id(3), Some(FileId::Int(5)));
    assert_eq!(ints(&g, "item", "int_attrs")[6..], [0, 0]);
    assert_eq!(floats(&g, "user", "float_attrs")[9..], [0.0; 3]);
}

#[test]
fn added_nodes_get_default_values() {
    let files = Files::new();
    let d = Decoder::new().weighted().labeled().timestamped();
    let types = [
        AttrType::string_buckets(5).with_missing_row(),
        AttrType::multi_string(7).with_missing_row(),
        AttrType::multi_string(7),
        AttrType::Text,
    ];
    let a = files.put("a", "id:int64\tw:float\tl:int\tt:int64\tf:string\n1\t0.5\t2\t3\tx:y:z:t\n");
    let e = files.put("e", "src_id:int64\tdst_id:int64\n2\t1\n");
    let build = |options| {
        let b = Builder::new().node(&a, "a", d.clone().with_attributes(types)).edge(
            &e,
            ("a", "r", "a"),
            Decoder::new(),
            true,
        );
        b.with_options(options).build(&Device::flex())
    };
    let g = build(ReadOptions::new().with_unknown_nodes(UnknownNodes::Add)).unwrap();
    assert_eq!(
        (floats(&g, "a", "weight"), ints(&g, "a", "label"), ints(&g, "a", "timestamp")),
        (vec![0.5, 0.0], vec![2, -1], vec![3, -1])
    );
    assert_eq!(ints(&g, "a", "int_attrs")[1], 5);
    let lists =
        |i: usize| g.nodes("a").unwrap().list(&crate::list_attr(i)).unwrap().row(1).to_vec();
    assert_eq!((lists(0), lists(1)), (vec![7], vec![]));
    // Texts without buckets are kept, together with their keys.
    assert_eq!(
        g.nodes("a").unwrap().text(&crate::text_attr(0)).unwrap().iter().collect::<Vec<_>>(),
        ["t", ""]
    );
    assert_eq!(ints(&g, "a", "text_keys")[1], (0x9ae1_6a3b_2f90_404f_u64 % i64::MAX as u64) as i64);
    assert!(build(ReadOptions::new()).is_err(), "options of one call leave the next alone");
}

#[test]
fn duplicate_nodes_by_option() {
    let files = Files::new();
    let a = files.put("a", "id:string\tl:int\tf:string\nx\t0\t1\ny\t1\t2\nx\t2\t3\nx\t3\t4\n");
    let build = |duplicates, problems| {
        let options = ReadOptions::new().with_duplicates(duplicates).with_max_problems(problems);
        Builder::new()
            .node(&a, "a", Decoder::new().labeled().with_attributes([Int]))
            .with_options(options)
            .build(&Device::flex())
    };
    let of = |d| {
        build(d, 1).map(|g| {
            (
                ints(&g, "a", "label"),
                ints(&g, "a", "int_attrs"),
                g.nodes("a").unwrap().ids().unwrap().number("y"),
            )
        })
    };
    assert_eq!(of(Duplicates::First).unwrap(), (vec![0, 1], vec![1, 2], Some(1)));
    assert_eq!(of(Duplicates::Last).unwrap(), (vec![3, 1], vec![4, 2], Some(1)));
    let e = of(Duplicates::Refuse).unwrap_err().to_string();
    assert!(
        e.ends_with(&format!(
            "a:4:1: expected an id that occurs once ({}:2 has it), got \"x\"; \
             `ReadOptions::with_duplicates` keeps the first or the last of them",
            a.display()
        )),
        "{e}"
    );
    assert!(
        matches!(build(Duplicates::Refuse, 5).unwrap_err(), DataError::Problems { problems } if problems.len() == 2)
    );
}

#[test]
fn undirected_edges() {
    let files = Files::new();
    let a = files.put("a", "id:string\nx\ny\nz\n");
    let b = files.put("b", "id:int64\n7\n");
    let ab = files.put("ab", "s:string\td:int64\tw:float\tf:string\ny\t7\t0.5\tp,q\n");
    let aa = files
        .put("aa", "s:string\td:string\tw:float\tf:string\nx\ty\t1\tp\nz\tz\t2\tq\ny\tx\t3\tr,s\n");
    let d = || Decoder::new().weighted().with_attributes([AttrType::multi_string(9)]);
    let g = Builder::new().node(a, "a", Decoder::new()).node(b, "b", Decoder::new());
    let g = g
        .edge(ab, ("a", "r", "b"), d(), false)
        .edge(aa, ("a", "s", "a"), d(), false)
        .build(&Device::flex())
        .unwrap();
    let back = g.relation(("b", "r_reverse", "a")).unwrap();
    assert_eq!((back.src(), back.dst()), (&[0][..], &[1][..]));
    let f = |etype| g.edges(etype).unwrap();
    assert_eq!(f("r_reverse").list("list_attr_0").unwrap(), f("r").list("list_attr_0").unwrap());
    // Same type: reversed edges follow the edges, a self loop occurs once; both directions in the file stay parallel edges.
    let s = g.relation("s").unwrap();
    assert_eq!((s.src(), s.dst()), (&[0, 2, 1, 1, 0][..], &[1, 2, 0, 0, 1][..]));
    assert_eq!(
        f("s").get::<1>("weight").unwrap().into_data().try_to_vec::<f32>().unwrap(),
        [1., 2., 3., 1., 3.]
    );
    assert_eq!(
        f("s").list("list_attr_0").unwrap().row(4),
        f("s").list("list_attr_0").unwrap().row(2)
    );
}

#[test]
fn invalid_graphs_are_errors() {
    let files = Files::new();
    let text = files.put("t", "s:string\td:string\tw:float\n123\t10001\t1\n");
    let e = |b: Builder, part: &str| {
        let e = b.build(&Device::flex()).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        e
    };
    let d = || Decoder::new().weighted();
    let kinds = e(
        shop(&files, EDGES).edge(&text, ("user", "x", "item"), d(), true),
        "t:2:1: expected int64 ids as in the table of `user`",
    );
    assert!(matches!(kinds, DataError::Table { .. }));
    let added =
        shop(&files, EDGES).with_options(ReadOptions::new().with_unknown_nodes(UnknownNodes::Add));
    e(added.edge(&text, ("user", "x", "item"), d(), true), "expected int64 ids");
    let none = e(
        shop(&files, EDGES).edge(&text, ("user", "x", "shop"), d(), true),
        "`shop`; the graph has [\"item\", \"user\"]",
    );
    assert!(matches!(none, DataError::Graph(GraphError::UnknownNodeType { .. })));
    let twice = e(
        shop(&files, EDGES).node(files.put("u", "id:int64\n"), "user", Decoder::new()),
        "node type `user` was given twice; give it once",
    );
    assert!(matches!(twice, DataError::Graph(GraphError::Duplicate { .. })));
    // A wrong decoder loads nothing at all, and says so.
    let wrong = Builder::new().node(
        files.put("w", "id:int64\tf:string\n1\ta:b\n"),
        "w",
        Decoder::new().with_attributes([Int, Int]),
    );
    assert!(matches!(
        e(wrong, "w:2:2: expected an int64 as attribute 0, got \"a\""),
        DataError::Table { .. }
    ));
}

#[test]
fn node_types_that_only_edges_name_can_be_added() {
    let files = Files::new();
    let edges = files.put("e", "s:int64\td:string\n9\tb\n8\ta\n9\ta\n");
    let b = Builder::new().edge(edges, ("u", "r", "v"), Decoder::new(), true);
    let g = b
        .with_options(ReadOptions::new().with_unknown_nodes(UnknownNodes::Add))
        .build(&Device::flex())
        .unwrap();
    assert_eq!(
        (g.relation("r").unwrap().src(), g.relation("r").unwrap().dst()),
        (&[0, 1, 0][..], &[0, 1, 1][..])
    );
    assert_eq!(g.nodes("v").unwrap().ids().unwrap().number("a"), Some(1));
}
