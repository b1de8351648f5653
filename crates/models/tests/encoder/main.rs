//! The feature encoder compared with plain loops, on both CPU backends, in f64.

mod relational;
mod sparse;

use AttrType::{Float, Int, Text};
use approx::assert_relative_eq;
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_data::{
    AttrType, Builder, DataError, Decoder, FLOAT_ATTRS, Features, INT_ATTRS, IntBuckets, Split,
    load_dataset,
};
use burn_gnn_graph::{Frame, Graph, GraphError};
use burn_gnn_models::*;
use burn_gnn_testutil::{data, devices, values};

/// A graph of one node type read from a table with these attributes.
fn graph(decoder: &Decoder, rows: &[&str], device: &Device) -> Graph {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let rows: String = rows.iter().enumerate().map(|(i, r)| format!("{i}\t{r}\n")).collect();
    std::fs::write(&path, format!("id:int64\tf:string\n{rows}")).unwrap();
    Builder::new().node(path, "a", decoder.clone()).build(device).unwrap()
}

fn decoder(types: impl IntoIterator<Item = AttrType>, dims: &[usize]) -> Decoder {
    Decoder::new().with_attributes(types).with_dims(dims.iter().map(|&d| (d > 0).then_some(d)))
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .for_each(|(x, y)| assert_relative_eq!(x, y, epsilon = 1e-6, max_relative = 1e-6));
}

const ROWS: [&str; 4] =
    ["2.5:red,blue:7:bonn:3", "-1:red:9:köln:3", "0.5:blue,blue,red:7:bonn:-4", "4::0:bonn:5"];

/// A float, a bag, a bucketed number, a bucketed text, a number.
fn mixed() -> Decoder {
    let identity =
        AttrType::IntBuckets { buckets: 10, by: IntBuckets::Identity, missing_row: false };
    decoder(
        [
            Float,
            AttrType::multi_string(6).with_missing_row(),
            identity,
            AttrType::string_buckets(5),
            Int,
        ],
        &[0, 3, 2, 4, 0],
    )
}

/// Row of the table that each value of each node names, by attribute.
fn named(f: &Frame) -> [Vec<Vec<i64>>; 3] {
    let ints: Vec<i64> = f.column(INT_ATTRS).unwrap().to_data().try_to_vec().unwrap();
    let list = f.list("list_attr_0").unwrap();
    let column = |c: usize| ints.chunks(3).map(|r| vec![r[c]]).collect();
    [(0..4).map(|i| list.row(i).to_vec()).collect(), column(0), column(1)]
}

#[test]
fn rows_and_gradients_are_plain_sums() {
    for device in devices() {
        let g = graph(&mixed(), &ROWS, &device);
        let f = g.nodes("a").unwrap();
        let named = named(f);
        assert_eq!((named[0][2].len(), &named[0][3], &named[1][0]), (3, &vec![6], &vec![7]));
        for combiner in [Reduce::Sum, Reduce::Mean] {
            let config = FeatureEncoderConfig::new(mixed()).with_combiner(combiner);
            let encoder = to_dtype(
                seeded(4, || config.try_init(&device.clone().autodiff())).unwrap(),
                FloatDType::F64,
            );
            assert_eq!(
                encoder.tables.iter().map(|t| t.val().dims()).collect::<Vec<_>>(),
                [[7, 3], [10, 2], [5, 4]]
            );
            let y = encoder.forward(&encoder.input(f).unwrap());
            let tables: Vec<Vec<f64>> = encoder.tables.iter().map(|t| values(&t.val())).collect();
            let share =
                |list: &[i64]| if combiner == Reduce::Mean { 1.0 / list.len() as f64 } else { 1.0 };
            let mut expected = vec![];
            for v in 0..4 {
                expected.push([2.5, -1.0, 0.5, 4.0][v]);
                for ((table, lists), d) in tables.iter().zip(&named).zip([3, 2, 4]) {
                    let list = &lists[v];
                    expected.extend((0..d).map(|c| {
                        list.iter().map(|&r| table[r as usize * d + c]).sum::<f64>() * share(list)
                    }));
                }
                expected.push([3.0, 3.0, -4.0, 5.0][v]);
            }
            close(&values(&y), &expected);
            // d(Σ y · k), k the column + 1: each table row gets its columns' k from every node that names it.
            let k = Tensor::<2>::from_data(
                [std::array::from_fn::<f64, 11, _>(|c| c as f64 + 1.0)],
                (&device, DType::F64),
            );
            let grads = (y * k.autodiff()).sum().backward();
            for ((param, lists), (d, first)) in
                encoder.tables.iter().zip(&named).zip([(3, 2.0), (2, 5.0), (4, 7.0)])
            {
                let mut expected = vec![0.0; param.val().dims().iter().product()];
                for list in lists {
                    for &r in list {
                        (0..d).for_each(|c| {
                            expected[r as usize * d + c] += (first + c as f64) * share(list)
                        });
                    }
                }
                close(&values(&param.val().grad(&grads).unwrap()), &expected);
            }
        }
    }
}

#[test]
fn the_documented_widths_and_a_layout_in_the_order_of_attributes() {
    let device = Device::flex();
    let width = |types: Vec<AttrType>, dims: &[usize]| {
        FeatureEncoderConfig::new(decoder(types, dims)).try_init(&device).unwrap().width()
    };
    assert_eq!(width(vec![Float; 20], &[0; 20]), 20);
    assert_eq!(width(vec![Float, Int, Int], &[0; 3]), 3);
    assert_eq!(width(vec![Float, Int, AttrType::hashed_int(1000)], &[0, 0, 16]), 18);
    assert_eq!(
        width(
            vec![
                AttrType::string_buckets(500),
                AttrType::string_buckets(800),
                AttrType::hashed_int(1000)
            ],
            &[8, 12, 16]
        ),
        36
    );
    assert_eq!(
        width(vec![AttrType::string_buckets(500), AttrType::multi_string(800)], &[8, 12]),
        20
    );
    let text = FeatureEncoderConfig::new(mixed()).try_init(&device).unwrap().spec().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "attribute 1  columns 1..4    embedding bag, 7 rows");
    assert_eq!(lines[4], "attribute 4  columns 10..11  number");
}

#[test]
fn a_batch_of_ids_is_rows_of_the_whole() {
    for device in devices() {
        let g = graph(&mixed(), &ROWS, &device);
        let f = g.nodes("a").unwrap();
        let encoder = FeatureEncoderConfig::new(mixed())
            .fit_numbers(f, &[0, 1])
            .unwrap()
            .try_init(&device)
            .unwrap();
        let whole = values(&encoder.forward(&encoder.input(f).unwrap()));
        let some = values(&encoder.forward(&encoder.input_rows(f, &[3, 0, 3]).unwrap()));
        assert_eq!(some, [&whole[33..44], &whole[..11], &whole[33..44]].concat());
        let none = encoder.input_rows(f, &[]).unwrap();
        assert_eq!((none.rows(), encoder.forward(&none).dims()), (0, [0, 11]));
    }
}

#[test]
fn numbers_are_standardised_by_the_training_rows_and_saved() {
    let d = decoder([Float, AttrType::string_buckets(3), Int, Float], &[0, 2, 0, 0]);
    for device in devices() {
        let g = graph(&d, &["1:x:10:5", "3:y:30:5", "100:z:100:7"], &device);
        let f = g.nodes("a").unwrap();
        let config = FeatureEncoderConfig::new(d.clone()).fit_numbers(f, &[0, 1]).unwrap();
        assert_eq!(
            (config.means.clone(), config.deviations.clone()),
            (vec![2.0, 20.0, 5.0], vec![1.0, 10.0, 0.0])
        );
        let encoder = config.try_init(&device.clone().autodiff()).unwrap();
        let y = encoder.forward(&encoder.input(f).unwrap());
        let numbers = |y: &[f64]| y.chunks(5).map(|r| [r[0], r[3], r[4]]).collect::<Vec<_>>();
        assert_eq!(numbers(&values(&y)), [[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [98.0, 8.0, 2.0]]);
        // Neither mean nor scale is trained.
        let mut grads = y.clone().sum().backward();
        assert_eq!(burn::optim::GradientsParams::from_module(&mut grads, &encoder).len(), 1);
        // The configuration as text and the weights as a file make the same encoder.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("w.bpk");
        let text = serde_json::to_string(encoder.config()).unwrap();
        encoder.valid().into_record().save(&file).unwrap();
        let other: FeatureEncoderConfig = serde_json::from_str(&text).unwrap();
        let back = other.try_init(&device).unwrap();
        assert_ne!(values(&back.tables[0].val()), values(&encoder.tables[0].val()));
        let back = back.load_record(ModuleRecord::load(&file).unwrap());
        assert_eq!(values(&back.forward(&back.input(f).unwrap())), values(&y));
    }
}

#[test]
fn growing_tables() {
    let d = decoder([Text, AttrType::multi_string(None), Int], &[2, 3, 4]);
    for device in devices() {
        let one = graph(&d, &["a:x,y:5", "b:y:6"], &device);
        let two = graph(&d, &["c:z,x:7", "a:w:5"], &device);
        let (first, second) = (one.nodes("a").unwrap(), two.nodes("a").unwrap());
        let config = FeatureEncoderConfig::new(d.clone()).learn_keys(first).unwrap();
        assert_eq!(config.keys.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
        assert_eq!(config.keys[2], [5, 6]);
        let encoder = seeded(3, || config.try_init(&device)).unwrap();
        let out = |e: &FeatureEncoder, f| values(&e.forward(&e.input(f).unwrap()));
        // What is not known adds nothing.
        let before = out(&encoder, second);
        assert!(
            before[..2].iter().chain(&before[5..9]).all(|&x| x == 0.0)
                && before[2..5].iter().any(|&x| x != 0.0)
        );
        assert!(
            before[9..11].iter().any(|&x| x != 0.0) && before[11..14].iter().all(|&x| x == 0.0)
        );
        let old = out(&encoder, first);
        let more = encoder.config().clone().learn_keys(second).unwrap();
        let grown = encoder.clone().grow(&more, &device).unwrap();
        assert_eq!(out(&grown, first), old, "known rows stay");
        assert_eq!(grown.tables.iter().map(|t| t.val().dims()[0]).collect::<Vec<_>>(), [3, 4, 3]);
        assert!(out(&grown, second)[..2].iter().all(|&x| x != 0.0));
        // First rows belong to keys, not to the order in which they came.
        let reversed = FeatureEncoderConfig::new(d.clone())
            .learn_keys(second)
            .unwrap()
            .learn_keys(first)
            .unwrap();
        let reversed = seeded(3, || reversed.try_init(&device)).unwrap();
        assert_eq!(out(&reversed, first), old);
        assert_eq!(out(&reversed, second), out(&grown, second), "rows of keys that came later");
        let e = grown.grow(&config, &device).unwrap_err();
        assert!(matches!(e, ModelError::Encoder { .. }), "{e}");
    }
}

#[test]
fn refusals() {
    let device = Device::flex();
    let g = graph(&mixed(), &ROWS, &device);
    let f = g.nodes("a").unwrap();
    let encoder = |d: Decoder| FeatureEncoderConfig::new(d).try_init(&device);
    let e = encoder(mixed()).unwrap().input_rows(f, &[4]).unwrap_err();
    assert!(
        matches!(e, ModelError::Graph(GraphError::IdOutOfRange { id: 4, bound: 4, .. })),
        "{e}"
    );
    let e = encoder(decoder([AttrType::hashed_int(9), AttrType::hashed_int(9)], &[1, 1]))
        .unwrap()
        .input(&Frame::new("bare", 2))
        .unwrap_err();
    assert!(matches!(e, ModelError::Graph(GraphError::UnknownColumn { .. })), "{e}");
    // A table of 3 rows does not have bucket 7.
    let few = decoder([AttrType::hashed_int(3)], &[2]);
    let mut narrow = f.clone();
    let ints = narrow.get_int::<2>("int_attrs").unwrap().narrow(1, 0, 1);
    narrow.insert("int_attrs", ints).unwrap();
    let e = encoder(few).unwrap().input(&narrow).unwrap_err();
    assert_eq!(
        e.to_string(),
        "`attribute 0 (Embedding { rows: 3 }), row 0` must lie in 0..3, got 7"
    );
    let e = encoder(decoder(vec![Float; 3], &[0; 3])).unwrap().input(f).unwrap_err();
    assert!(e.to_string().contains(&format!("`{FLOAT_ATTRS}`")), "{e}");
    assert!(
        matches!(encoder(decoder([Float], &[3])).unwrap_err(), ModelError::Data(e) if matches!(*e, DataError::Decoder { .. }))
    );
    let bad = |c: FeatureEncoderConfig, arg: &str| match c.try_init(&device).unwrap_err() {
        ModelError::Length { arg: a, .. } => assert_eq!(a, arg),
        e => panic!("{e}"),
    };
    let config = || FeatureEncoderConfig::new(mixed());
    bad(config().with_means(vec![1.0]), "means");
    bad(config().with_means(vec![1.0, 2.0]), "deviations");
    bad(config().with_keys(vec![vec![1]]), "keys");
    let mut wider = f.clone();
    let n = f.len();
    wider.insert("float_attrs", Tensor::<2>::zeros([n, 9], &Device::flex())).unwrap();
    let e = config().fit_numbers(&wider, &[0]).unwrap_err().to_string();
    assert!(e.contains("attributes (those of the decoder), found 9; pass the frame"), "{e}");
    assert!(matches!(config().fit_numbers(f, &[]).unwrap_err(), ModelError::OutOfRange { .. }));
    assert!(matches!(config().fit_numbers(f, &[9]).unwrap_err(), ModelError::Graph(_)));
    let mut holes = f.clone();
    let mut values = holes.get::<2>(FLOAT_ATTRS).unwrap();
    values = values.clone().slice_fill([1..2, 0..1], f32::NAN);
    holes.insert(FLOAT_ATTRS, values).unwrap();
    let e = config().fit_numbers(&holes, &[0, 1]).unwrap_err().to_string();
    assert!(e.contains("of node 1: expected a finite number, found NaN"), "{e}");
    assert!(config().fit_numbers(&holes, &[0]).is_ok());
}

/// Losses of a GCN on Cora; features divided by their sums, as the paper does.
fn cora_losses(graph: &Graph, features: &Features, labels: &[i64], split: &Split) -> Vec<f64> {
    let device = Device::flex();
    let x = features.row_normalized();
    let x = Tensor::<2>::from_data(TensorData::new(x.to_dense(), [x.rows(), x.cols()]), &device);
    let graph = graph.add_self_loops(0).unwrap();
    let rows = |ids: &[u32]| Rows::new(ids, labels, 7).unwrap();
    let task = NodeTask {
        graph: &graph,
        features: x.into(),
        target: graph.schema().ntypes()[0].clone(),
        train: rows(&split.train),
        val: rows(&split.val),
        test: Rows::default(),
    };
    let model = seeded(0, || GcnConfig::new(1_433, 7).init(&device.clone().autodiff()));
    let config = FitConfig::new().with_epochs(10).with_progress(false);
    fit(model, &task, &task.train, &task.val, &config)
        .unwrap()
        .history
        .iter()
        .map(|e| e.loss)
        .collect()
}

#[test]
fn cora_out_of_tables_trains_to_the_same_losses() {
    let (Some(tables), Some(arrays)) = (data("cora_graphlearn"), data("cora")) else { return };
    let cora = load_dataset(arrays).unwrap();
    let words = Decoder::new().labeled().with_attributes(vec![Float; 1_433]);
    let g = Builder::new()
        .node(tables.join("node_table.gz"), "paper", words.clone())
        .edge(
            tables.join("edge_table"),
            ("paper", "cites", "paper"),
            Decoder::new().weighted(),
            true,
        )
        .build(&Device::flex())
        .unwrap();
    let papers = g.nodes("paper").unwrap();
    let host = |name| papers.column(name).unwrap().to_data();
    let labels: Vec<i64> = host("label").try_to_vec().unwrap();
    let features = Features::Dense {
        rows: 2_708,
        cols: 1_433,
        values: host(FLOAT_ATTRS).try_to_vec().unwrap(),
    };
    let parts = ["train_table", "val_table", "test_table"].map(|t| Some(tables.join(t).into()));
    let split =
        Split::from_tables(papers.ids().unwrap(), parts, &Decoder::new().weighted()).unwrap();
    assert_eq!((&labels, &split), (&cora.labels, &cora.splits["public"]));
    // An encoder of numbers alone gives the features as they are.
    let encoder = FeatureEncoderConfig::new(words).try_init(&Device::flex()).unwrap();
    assert!(encoder.forward(&encoder.input(papers).unwrap()).into_data() == host(FLOAT_ATTRS));
    let losses = cora_losses(&g, &features, &labels, &split);
    assert_eq!(
        losses,
        cora_losses(&cora.graph, &cora.features["paper"], &cora.labels, &cora.splits["public"])
    );
    assert!(losses[9] < losses[0]);
}

/// The numbers of a vector are features next to each other; its attribute is left out whole.
#[test]
fn vectors() {
    let types = [Int, AttrType::vector(2), Float, AttrType::string_buckets(5)];
    let d = decoder(types, &[0, 0, 0, 3]);
    let device = Device::flex();
    let g = graph(&d, &["7:1,2:0.5:a", "8:[3, 4]:1.5:b"], &device);
    let f = g.nodes("a").unwrap();
    let config = FeatureEncoderConfig::new(d.clone());
    let spec = config.spec().unwrap();
    assert_eq!(spec.width(), 7);
    assert!(spec.to_string().contains("attribute 1  columns 1..3  2 numbers\n"), "{spec}");
    let encoder = config.clone().init(&device);
    let out = encoder.forward(&encoder.input(f).unwrap());
    let numbers = out.narrow(1, 0, 4);
    close(&values(&numbers), &[7.0, 1.0, 2.0, 0.5, 8.0, 3.0, 4.0, 1.5]);
    let encoder = config.fit_numbers(f, &[0, 1]).unwrap().init(&device);
    let out = encoder.forward(&encoder.input(f).unwrap()).narrow(1, 0, 4);
    close(&values(&out), &[-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0]);
    let embedded = decoder([AttrType::vector(2)], &[3]).feature_spec().unwrap_err().to_string();
    assert!(embedded.contains("expected none for a float, got 3"), "{embedded}");
    let none = decoder([AttrType::vector(0)], &[0]).feature_spec().unwrap_err().to_string();
    assert!(none.contains("expected 1 to 1048576 numbers in a vector, got 0"), "{none}");
}

/// Attributes that are left out, between numbers, are read by nothing; what was saved before there was such a setting
/// is read as before.
#[test]
fn excluded_attributes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "id,a,b,title,c\n1,1,nan,x,10\n2,3,7,y,30\n").unwrap();
    let csv = burn_gnn_data::Csv::new(["a", "b", "title", "c"]);
    let d = Decoder::new().with_attributes([Float, Float, Text, Float]).csv(csv);
    let device = Device::flex();
    let g = Builder::new().node(&path, "a", d.clone()).build(&device).unwrap();
    let f = g.nodes("a").unwrap();
    let config = FeatureEncoderConfig::new(d.clone()).without(["b", "title"]);
    let attributes: Vec<usize> =
        config.spec().unwrap().parts.iter().map(|part| part.attribute).collect();
    assert_eq!(attributes, [0, 3]);
    let encoder = config.clone().init(&device);
    close(&values(&encoder.forward(&encoder.input(f).unwrap())), &[1.0, 10.0, 3.0, 30.0]);
    // The NaN of `b` is of no one's concern.
    let encoder = config.clone().fit_numbers(f, &[0, 1]).unwrap().init(&device);
    close(&values(&encoder.forward(&encoder.input(f).unwrap())), &[-1.0, -1.0, 1.0, 1.0]);
    let e = FeatureEncoderConfig::new(d.clone()).without(["title"]).fit_numbers(f, &[1, 0]);
    assert!(e.unwrap_err().to_string().contains("attribute 1 of node 0"));
    let e = FeatureEncoderConfig::new(d.clone()).without(["price"]).spec().unwrap_err().to_string();
    assert!(e.contains("`price`") && e.contains("title"), "{e}");
    let e = FeatureEncoderConfig::new(d.clone()).spec().unwrap_err().to_string();
    assert!(e.contains("FeatureEncoderConfig::without"), "{e}");

    // Saved and read again, and a file without the setting.
    use burn::config::Config as _;
    let file = dir.path().join("encoder.json");
    config.save(&file).unwrap();
    assert_eq!(FeatureEncoderConfig::load(&file).unwrap().excluded, config.excluded);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json.as_object_mut().unwrap().remove("excluded").unwrap();
    std::fs::write(&file, json.to_string()).unwrap();
    assert_eq!(FeatureEncoderConfig::load(&file).unwrap().excluded, None);
}
