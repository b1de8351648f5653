//! Tests accuracy on real data with the settings of the examples: the results of BENCHMARKS.md, for
//! a few seeds.
//!
//! The mean over some seeds must reach the mean of ten seeds minus one standard deviation. The
//! deviation is that of single runs. A mean over `n` seeds has a deviation that is smaller by `√n`,
//! so a row of several seeds rarely fails by chance.
//!
//! `BURN_GNN_ACCURACY_SEEDS=10 cargo test --release -p burn-gnn-tests --test training accuracy --
//! --nocapture` measures every row with ten seeds and prints the table, without assertions.

use std::collections::HashMap;
use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn::data::{Dataset, crates_graph, karate_club};
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    Counts, FitConfig, FusedAdamConfig, GatConfig, GcnConfig, NodeClassifier, RelWeights,
    RgcnConfig, Rows, SageConfig, evaluate, fit, majority_class, seeded,
};
use burn_gnn::sampling::RowType;
use burn_gnn::sampling::{
    FeatureSource, GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds,
};

use crate::common::data::{Loaded, load};
use crate::dataset;

/// Model and settings of an example.
enum Model {
    Gcn {
        hidden: usize,
        dropout: f64,
    },
    Gat,
    Rgcn(Rgcn),
    /// Mini-batches of `reproduce sage-minibatch`, with its default options.
    Sage,
}

struct Rgcn {
    hidden: usize,
    dropout: f64,
    /// Number of bases, with one-hot input.
    bases: Option<usize>,
    mean_features: bool,
    /// Whether messages are used; otherwise nodes use only their own features.
    edges: bool,
}

impl Rgcn {
    fn new(hidden: usize, dropout: f64) -> Self {
        Self { hidden, dropout, bases: None, mean_features: false, edges: true }
    }
}

/// A row of the table "Accuracy" in BENCHMARKS.md: `mean` and `deviation` in percent over seeds 0 to 9.
struct Row {
    /// First cell of the row.
    command: &'static str,
    data: &'static str,
    split: Option<&'static str>,
    model: Model,
    training: FitConfig,
    mean: f64,
    deviation: Option<f64>,
    /// Number of seeds, from 0, whose mean must reach `mean - deviation`; 0 for no assertion.
    seeds: u64,
}

impl Row {
    fn figure(&self) -> String {
        let deviation = self.deviation.map_or(String::new(), |d| format!(" ± {d:.1}"));
        format!("{:.1}{deviation} %", self.mean)
    }
}

fn rows() -> Vec<Row> {
    let gcn = |hidden, dropout| Model::Gcn { hidden, dropout };
    let training = FitConfig::new().with_progress(false);
    let citations = || training.clone().with_epochs(200).with_weight_decay(5e-4);
    let gat = || {
        training
            .clone()
            .with_epochs(1000)
            .with_patience(Some(100))
            .with_lr(0.005)
            .with_weight_decay(5e-4)
    };
    vec![
        Row {
            command: "`reproduce rgcn --data aifb`",
            data: "aifb",
            split: None,
            model: Model::Rgcn(Rgcn::new(32, 0.3)),
            training: training.clone(),
            mean: 95.3,
            deviation: Some(2.9),
            seeds: 5,
        },
        Row {
            command: "`reproduce rgcn --data mutag --one-hot --bases 30 --hidden 16 --dropout 0 --weight-decay 5e-4`",
            data: "mutag",
            split: None,
            model: Model::Rgcn(Rgcn { bases: Some(30), ..Rgcn::new(16, 0.0) }),
            training: training.clone().with_weight_decay(5e-4),
            mean: 72.8,
            deviation: Some(1.9),
            seeds: 0,
        },
        Row {
            command: "`reproduce gcn --data cora`",
            data: "cora",
            split: None,
            model: gcn(16, 0.5),
            training: citations(),
            mean: 81.9,
            deviation: Some(0.7),
            seeds: 5,
        },
        Row {
            command: "`reproduce gcn --data citeseer`",
            data: "citeseer",
            split: None,
            model: gcn(16, 0.5),
            training: citations(),
            mean: 71.1,
            deviation: Some(1.0),
            seeds: 3,
        },
        Row {
            command: "`reproduce gat --data cora`",
            data: "cora",
            split: None,
            model: Model::Gat,
            training: gat(),
            mean: 82.5,
            deviation: Some(1.2),
            seeds: 3,
        },
        Row {
            command: "`reproduce gat --data citeseer`",
            data: "citeseer",
            split: None,
            model: Model::Gat,
            training: gat(),
            mean: 71.5,
            deviation: Some(1.0),
            seeds: 2,
        },
        Row {
            command: "`reproduce gcn --data facebook_pages --hidden 64 --lr 0.05 --weight-decay 0 --dropout 0 --epochs 100`",
            data: "facebook_pages",
            split: None,
            model: gcn(64, 0.0),
            training: training.clone().with_epochs(100).with_lr(0.05),
            mean: 94.7,
            deviation: Some(0.1),
            seeds: 0,
        },
        Row {
            command: "`reproduce sage-minibatch --data facebook_pages`",
            data: "facebook_pages",
            split: None,
            model: Model::Sage,
            training: training.clone().with_epochs(10),
            mean: 94.9,
            deviation: None,
            seeds: 0,
        },
        Row {
            command: "`reproduce rgcn --data acm --split 60 --mean-features --weight-decay 5e-4`",
            data: "acm",
            split: Some("60"),
            model: Model::Rgcn(Rgcn { mean_features: true, ..Rgcn::new(32, 0.3) }),
            training: training.clone().with_weight_decay(5e-4),
            mean: 91.4,
            deviation: Some(0.5),
            seeds: 3,
        },
        Row {
            command: "`reproduce rgcn` (crates graph)",
            data: "crates",
            split: None,
            model: Model::Rgcn(Rgcn::new(64, 0.5)),
            training: training.clone().with_weight_decay(5e-4),
            mean: 60.2,
            deviation: Some(3.2),
            seeds: 10,
        },
        Row {
            command: "`reproduce rgcn` (crates graph), without the graph",
            data: "crates",
            split: None,
            model: Model::Rgcn(Rgcn { edges: false, ..Rgcn::new(64, 0.5) }),
            training: training.clone().with_weight_decay(5e-4),
            mean: 38.4,
            deviation: Some(4.4),
            seeds: 10,
        },
        Row {
            command: "`reproduce gcn` (karate club, two labelled members)",
            data: "karate",
            split: None,
            model: gcn(16, 0.5),
            training: citations(),
            mean: 95.6,
            deviation: Some(2.2),
            seeds: 10,
        },
    ]
}

/// Loads the data set with inverse relations or self loops, as the examples do.
fn ready(row: &Row) -> Option<Loaded> {
    let mut set: Dataset = match row.data {
        "crates" => crates_graph(),
        "karate" => karate_club(),
        name => dataset(name)?,
    };
    set.graph = match row.model {
        Model::Rgcn(_) if set.inverse_edges_stored => set.graph,
        Model::Rgcn(_) => set.graph.with_inverse_relations("-inv").unwrap(),
        Model::Sage => set.graph,
        _ => set.graph.add_self_loops(0).unwrap(),
    };
    let mut data = load(set, row.split, &Device::flex(), FloatDType::F32).unwrap();
    if matches!(row.model, Model::Rgcn(Rgcn { mean_features: true, .. })) {
        data.mean_features().unwrap();
    }
    Some(data)
}

/// Returns test accuracies in percent, for seeds 0 to `seeds - 1`.
fn accuracies(row: &Row, data: &Loaded, seeds: u64) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let width = || data.width().unwrap();
    match &row.model {
        Model::Gcn { hidden, dropout } => {
            let config = GcnConfig::new(width(), data.num_classes)
                .with_hidden(*hidden)
                .with_dropout(*dropout);
            trained(row, data, &data.graph, seeds, || config.init(&device))
        }
        Model::Sage => (0..seeds).map(|seed| minibatches(row, data, seed)).collect(),
        Model::Gat => trained(row, data, &data.graph, seeds, || {
            GatConfig::new(width(), data.num_classes).init(&device)
        }),
        Model::Rgcn(model) => {
            let weights = model.bases.map_or(RelWeights::Full, RelWeights::Basis);
            let config =
                RgcnConfig::new(data.num_classes).with_hidden(model.hidden).with_weights(weights);
            let config = config.with_dropout(model.dropout).with_one_hot(model.bases.is_some());
            let bare = data.without_edges().unwrap();
            let graph = if model.edges { &data.graph } else { &bare };
            trained(row, data, graph, seeds, || {
                config.try_init(graph, data.inputs(), &device).unwrap()
            })
        }
    }
}

/// Returns the test accuracy in percent of the epoch with the best validation accuracy.
fn minibatches(row: &Row, data: &Loaded, seed: u64) -> f64 {
    let (device, ntype) = (Device::flex(), &data.graph.schema().ntypes()[0]);
    let x = data.features()[data.target_type()].clone();
    let width = x.dims()[1];
    let rows =
        MemoryRows::new(&x.into_data().iter::<f32>().collect::<Vec<_>>(), width, RowType::F16)
            .unwrap();
    let x = rows
        .gather_tensor(&(0..data.graph.total_nodes() as u32).collect::<Vec<_>>(), &device)
        .unwrap();
    let label: HashMap<u32, u32> =
        data.train.index.iter().copied().zip(data.train.labels.iter().copied()).collect();
    let sampler = NeighborSampler::new(&data.graph, [10, 10]).unwrap();
    let features = GraphFeatures::new(&data.graph, &device).with_nodes(ntype, rows).unwrap();
    let seeds = Seeds::nodes(&data.graph, [(ntype, &data.train.index)]).unwrap();
    let loader = Loader::new(sampler, seeds, 512)
        .unwrap()
        .with_features(features)
        .with_seed(seed)
        .with_workers(1);
    let config = SageConfig::new(width, data.num_classes)
        .with_num_layers(2)
        .with_hidden(64)
        .with_dropout(0.5);
    let mut net = seeded(seed, || config.init(&device.clone().autodiff()));
    let mut optimizer = FusedAdamConfig::new().init();
    let mut best = (0.0, 0.0);
    for epoch in 0..row.training.epochs as u64 {
        for batch in loader.epoch(epoch).map(Result::unwrap) {
            let labels: Vec<u32> = batch.seeds(0).unwrap().iter().map(|v| label[v]).collect();
            let rows = Rows {
                index: (0..labels.len() as u32).collect(),
                total: labels.len(),
                labels: labels.into(),
            };
            let x = Tensor::from_inner(batch.x(0).unwrap());
            let loss = rows.cross_entropy(net.forward_blocks(&batch.batch.blocks, x));
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optimizer.step(row.training.lr, net, grads);
        }
        let logits = net.valid().forward(&data.graph, x.clone());
        let [val, test] = [&data.val, &data.test].map(|rows| Counts::new(&logits, rows).accuracy());
        if val > best.0 {
            best = (val, test);
        }
    }
    100.0 * best.1
}

fn trained<M: NodeClassifier>(
    row: &Row,
    data: &Loaded,
    graph: &Graph,
    seeds: u64,
    model: impl Fn() -> M,
) -> Vec<f64> {
    let task = data.task(graph);
    let accuracy = |seed| {
        let trained = fit(
            seeded(seed, &model),
            &task,
            &task.train,
            &task.val,
            &row.training.clone().with_seed(seed),
        )
        .unwrap();
        100.0 * evaluate(&trained.model, &task, &data.test).unwrap().accuracy()
    };
    (0..seeds).map(accuracy).collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

#[test]
fn accuracy_is_what_the_benchmarks_say() {
    let measured: Option<u64> =
        std::env::var("BURN_GNN_ACCURACY_SEEDS").ok().map(|n| n.parse().unwrap());
    let mut below = vec![];
    for row in rows() {
        let seeds = measured.unwrap_or(row.seeds);
        if seeds == 0 {
            continue;
        }
        let Some(data) = ready(&row) else { continue };
        let start = Instant::now();
        let (mean, deviation) = mean_and_deviation(&accuracies(&row, &data, seeds));
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{}: {mean:.2} ± {deviation:.2} % over {seeds} seeds, {seconds:.1} s; claimed {}",
            row.command,
            row.figure()
        );
        let claimed = row.deviation.map(|deviation| row.mean - deviation);
        if let Some(floor) = claimed.filter(|&floor| measured.is_none() && mean < floor) {
            below.push(format!("{}: {mean:.2} %, expected at least {floor:.1} %", row.command));
        }
    }
    assert!(below.is_empty(), "{}", below.join("\n"));
}

/// Parses the rows of the table in BENCHMARKS.md into cells.
fn table() -> Vec<Vec<&'static str>> {
    let (_, text) = include_str!("../../BENCHMARKS.md")
        .split_once("\n## Accuracy\n")
        .expect("a section of that name");
    text.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Rows that need no training.
#[test]
fn majority_class_of_the_crates_graph() {
    let data = load(crates_graph(), None, &Device::flex(), FloatDType::F32).unwrap();
    let (_, share) = majority_class(&data.train, &data.test, data.num_classes);
    let table = table();
    let row = table
        .iter()
        .find(|cells| cells[0] == "majority class of the crates graph")
        .expect("a row of that name");
    assert_eq!(row[1], format!("{:.1} %", 100.0 * share));
}

/// The table in BENCHMARKS.md has these rows, values and numbers of seeds.
#[test]
fn accuracy_rows_are_those_of_the_benchmarks() {
    let table = table();
    for row in rows() {
        let begins = |cell: &str| {
            cell.strip_prefix(row.command)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']))
        };
        let asserted = match row.seeds {
            0 => "no".to_owned(),
            1 => "1 seed".to_owned(),
            n => format!("{n} seeds"),
        };
        let found = table.iter().find(|cells| cells.len() == 4 && begins(cells[0]));
        let found = found.unwrap_or_else(|| panic!("BENCHMARKS.md has no row {}", row.command));
        let figure = found[1]
            .strip_prefix(&row.figure())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        assert!(figure, "{}: {} in BENCHMARKS.md, {} here", row.command, found[1], row.figure());
        assert_eq!(found[2], asserted, "{}", row.command);
    }
}
