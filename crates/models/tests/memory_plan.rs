//! Predicted memory of training compared with the measured peak.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::{
    BatchSizes, FusedAdamConfig, GatConfig, GcnConfig, LayerViews, MemoryPlan, ModelSizes,
    NodeClassifier, NodeTensors, RelWeights, RgcnConfig, Rows, SageConfig, TypeInput, Whole,
    plan_full_batch, plan_mini_batch, plan_rgcn, plan_rgcn_mini_batch,
};
use burn_gnn_ops::{GraphView, Stream};
use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, RowType, Seeds};
use burn_gnn_testutil::counting_allocator::{CountingAllocator, live, peak};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn graph(nodes: usize, degree: usize) -> Graph {
    let s = Stream::new(3, "edges", 0);
    let end = |side: u64| {
        (0..(nodes * degree) as u64).map(|e| (s.uniform(e, side) * nodes as f64) as u32).collect()
    };
    Graph::homogeneous(nodes, end(0), end(1)).unwrap()
}

/// One step of training.
fn step<M: NodeClassifier, V: LayerViews + ?Sized>(
    model: M,
    optimizer: &mut burn::optim::ModuleOptimizer,
    views: &V,
    (x, target): (&NodeTensors, &str),
    rows: &Rows,
) -> M {
    let logits = model.logits_over(&views, x, target);
    let grads = rows.cross_entropy(logits).backward();
    let grads = GradientsParams::from_grads(grads, &model);
    optimizer.step(0.01, model, grads)
}

/// Prints both and holds them against each other.
fn compare(what: &str, plan: MemoryPlan, measured: usize) {
    let off = plan.peak() as f64 / measured as f64 - 1.0;
    println!(
        "{what}: predicted {:.2} MB, measured {:.2} MB, {:+.1} % {plan:?}",
        plan.peak() as f64 / 1e6,
        measured as f64 / 1e6,
        100.0 * off
    );
    assert!(
        off.abs() <= 0.15,
        "{what}: predicted {} bytes, measured {measured}\n{plan}",
        plan.peak()
    );
}

/// A graph, features and labels that training holds, and its last step; three steps in all.
fn full_batch<M: NodeClassifier>(
    what: &str,
    sizes: &ModelSizes,
    model: impl FnOnce(&Device) -> M,
    nodes: usize,
    degree: usize,
    compared: bool,
) {
    let (device, before) = (Device::flex().autodiff(), live());
    let g = graph(nodes, degree);
    let x = Tensor::<2>::ones([nodes, sizes.widths()[0]], &device);
    let labels: Vec<i64> = (0..nodes as i64).map(|v| v % 4).collect();
    let rows = Rows::new(&(0..nodes as u32 / 2).collect::<Vec<_>>(), &labels, 4).unwrap();
    drop(labels);
    let (model, mut optimizer) = (model(&device), FusedAdamConfig::new().init());
    let measured = peak(before, || {
        let mut model = model;
        for i in 0..3 {
            model = step(
                model,
                &mut optimizer,
                &Whole(&g.at_step(1, i)),
                (&[("_N", x.clone())].into(), "_N"),
                &rows,
            );
        }
    });
    if compared {
        compare(what, plan_full_batch(sizes, &g).unwrap(), measured);
    }
}

fn mini_batch<M: NodeClassifier>(
    what: &str,
    sizes: &ModelSizes,
    model: impl FnOnce(&Device) -> M,
    nodes: usize,
    degree: usize,
    fanouts: [i64; 2],
) {
    let (device, before) = (Device::flex().autodiff(), live());
    let batch = BatchSizes { batch_size: 512, ahead: 0, sampled: 4 };
    let seeds: Vec<u32> = (0..nodes as u32).step_by(8).collect();
    let (g, width) = (graph(nodes, degree), sizes.widths()[0]);
    let source = MemoryRows::new(&vec![1.0; nodes * width], width, RowType::F32).unwrap();
    let sampler = NeighborSampler::new(&g, fanouts).unwrap();
    let features = GraphFeatures::new(&g, &Device::flex()).with_nodes(.., source).unwrap();
    let loader =
        Loader::new(sampler, Seeds::nodes(&g, [("_N", &seeds)]).unwrap(), batch.batch_size)
            .unwrap();
    let loader = loader.with_prefetch(0).with_features(features);
    let (model, mut optimizer) = (model(&device), FusedAdamConfig::new().init());
    let measured = peak(before, || {
        let mut model = model;
        for b in loader.epoch(0) {
            let b = b.unwrap();
            let labels: Vec<i64> = b.seeds(0).unwrap().iter().map(|&v| i64::from(v % 4)).collect();
            let rows =
                Rows::new(&(0..labels.len() as u32).collect::<Vec<_>>(), &labels, 4).unwrap();
            let x = Tensor::from_inner(b.x(0).unwrap());
            model = step(
                model,
                &mut optimizer,
                &b.batch.blocks[..],
                (&[("_N", x)].into(), "_N"),
                &rows,
            );
        }
    });
    compare(what, plan_mini_batch(sizes, loader.sampler(), "_N", &seeds, batch).unwrap(), measured);
}

/// Papers, authors and places, and edges in both directions.
fn typed_graph([papers, authors, places]: [usize; 3]) -> Graph {
    let s = Stream::new(4, "typed", 0);
    let endpoints = |etype: u64, m: usize, n: usize| {
        (0..m as u64).map(|e| (s.uniform(e, etype) * n as f64) as u32).collect::<Vec<_>>()
    };
    let [writes, cites, at] = [3 * papers, 5 * papers, authors];
    let g = Graph::builder()
        .nodes("paper", papers)
        .nodes("author", authors)
        .nodes("place", places)
        .edges(
            ("author", "writes", "paper"),
            endpoints(0, writes, authors),
            endpoints(1, writes, papers),
        )
        .edges(
            ("paper", "cites", "paper"),
            endpoints(2, cites, papers),
            endpoints(3, cites, papers),
        )
        .edges(
            ("author", "works at", "place"),
            endpoints(4, at, authors),
            endpoints(5, at, places),
        );
    g.build().unwrap().with_inverse_relations("_inv").unwrap()
}

/// Papers have features, authors and places an embedding.
fn typed(what: &str, config: &RgcnConfig, nodes: [usize; 3], width: usize) {
    let before = live();
    let (g, papers) = (typed_graph(nodes), nodes[0]);
    let device = Device::flex().autodiff();
    let x: NodeTensors = [("paper", Tensor::<2>::ones([papers, width], &device))].into();
    let labels: Vec<i64> = (0..papers as i64).map(|v| v % config.num_classes as i64).collect();
    let rows = Rows::new(&(0..papers as u32 / 2).collect::<Vec<_>>(), &labels, config.num_classes)
        .unwrap();
    drop(labels);
    let inputs = [("paper", TypeInput::Features(width))];
    let (model, mut optimizer) =
        (config.try_init(&g, inputs, &device).unwrap(), FusedAdamConfig::new().init());
    let measured = peak(before, || {
        let mut model = model;
        for i in 0..3 {
            model = step(model, &mut optimizer, &Whole(&g.at_step(1, i)), (&x, "paper"), &rows);
        }
    });
    compare(what, plan_rgcn(config, &g, inputs, "paper").unwrap(), measured);
}

fn typed_mini_batch(
    what: &str,
    config: &RgcnConfig,
    nodes: [usize; 3],
    width: usize,
    fanouts: [i64; 2],
) {
    let (device, before) = (Device::flex().autodiff(), live());
    let batch = BatchSizes { batch_size: 512, ahead: 0, sampled: 4 };
    let g = typed_graph(nodes);
    let seeds: Vec<u32> = (0..nodes[0] as u32).step_by(8).collect();
    let source = MemoryRows::new(&vec![1.0; nodes[0] * width], width, RowType::F32).unwrap();
    let sampler = NeighborSampler::new(&g, fanouts).unwrap();
    let features = GraphFeatures::new(&g, &Device::flex()).with_nodes("paper", source).unwrap();
    let loader =
        Loader::new(sampler, Seeds::nodes(&g, [("paper", &seeds)]).unwrap(), batch.batch_size)
            .unwrap();
    let loader = loader.with_prefetch(0).with_features(features);
    let inputs = [("paper", TypeInput::Features(width))];
    let (model, mut optimizer) =
        (config.try_init(&g, inputs, &device).unwrap(), FusedAdamConfig::new().init());
    let paper = g.schema().ntype("paper").unwrap();
    let measured = peak(before, || {
        let mut model = model;
        for b in loader.epoch(0) {
            let b = b.unwrap();
            let labels: Vec<i64> = b
                .seeds(paper)
                .unwrap()
                .iter()
                .map(|&v| i64::from(v) % config.num_classes as i64)
                .collect();
            let rows = Rows::new(
                &(0..labels.len() as u32).collect::<Vec<_>>(),
                &labels,
                config.num_classes,
            )
            .unwrap();
            let x = Tensor::from_inner(b.x(paper).unwrap());
            model = step(
                model,
                &mut optimizer,
                &b.batch.blocks[..],
                (&[("paper", x)].into(), "paper"),
                &rows,
            );
        }
    });
    compare(
        what,
        plan_rgcn_mini_batch(config, loader.sampler(), inputs, "paper", &seeds, batch).unwrap(),
        measured,
    );
}

/// One test: another one's memory would be counted too.
#[test]
fn what_is_predicted_is_used() {
    let gcn = |w: [usize; 3], dropout: f64| {
        move |d: &Device| GcnConfig::new(w[0], w[2]).with_hidden(w[1]).with_dropout(dropout).init(d)
    };
    let sage = |w: [usize; 3], dropout: f64| {
        move |d: &Device| {
            SageConfig::new(w[0], w[2]).with_hidden(w[1]).with_dropout(dropout).init(d)
        }
    };
    let gat = |w: [usize; 3], heads: usize, dropout: f64| {
        let of = GatConfig::new(w[0], w[2])
            .with_num_heads(heads)
            .with_hidden(w[1])
            .with_dropout(dropout)
            .with_attn_dropout(dropout);
        move |d: &Device| of.init(d)
    };
    // What is made once: threads and their buffers.
    full_batch("warm-up", &ModelSizes::gcn([64, 64, 8]), gcn([64, 64, 8], 0.0), 2_000, 4, false);
    let n = 20_000;
    for w in [[128, 64, 8], [64, 128, 16], [32, 32, 4]] {
        full_batch(&format!("gcn {w:?}"), &ModelSizes::gcn(w), gcn(w, 0.0), n, 12, true);
        full_batch(&format!("sage {w:?}"), &ModelSizes::sage(w), sage(w, 0.0), n, 4, true);
        full_batch(
            &format!("gcn {w:?}, dropout"),
            &ModelSizes::gcn(w).with_dropout(),
            gcn(w, 0.5),
            n,
            6,
            true,
        );
        full_batch(
            &format!("sage {w:?}, dropout"),
            &ModelSizes::sage(w).with_dropout(),
            sage(w, 0.5),
            n,
            6,
            true,
        );
    }
    for (w, heads) in [([128, 64, 8], 8), ([64, 128, 16], 4), ([32, 32, 4], 1)] {
        full_batch(
            &format!("gat {w:?}, {heads} heads"),
            &ModelSizes::gat(w, heads),
            gat(w, heads, 0.0),
            n,
            12,
            true,
        );
        full_batch(
            &format!("gat {w:?}, {heads} heads, dropout"),
            &ModelSizes::gat(w, heads).with_dropout(),
            gat(w, heads, 0.5),
            n,
            4,
            true,
        );
    }
    for (hidden, classes, layers) in [(64, 8, 2), (32, 32, 2), (16, 100, 3)] {
        let config = RgcnConfig::new(classes).with_hidden(hidden).with_num_layers(layers);
        for (name, config) in [
            ("full", config.clone()),
            ("bases, dropout", config.clone().with_weights(RelWeights::Basis(2)).with_dropout(0.5)),
            ("blocks", config.with_weights(RelWeights::BlockDiagonal(4))),
        ] {
            typed(
                &format!("rgcn {name}, {hidden}, {classes} classes, {layers} layers"),
                &config,
                [20_000, 30_000, 500],
                128,
            );
        }
    }
    for (w, fanouts) in [([128, 64, 8], [10, 10]), ([64, 128, 16], [15, 5])] {
        mini_batch(
            &format!("gcn {w:?}, fan-outs {fanouts:?}"),
            &ModelSizes::gcn(w),
            gcn(w, 0.0),
            40_000,
            12,
            fanouts,
        );
        mini_batch(
            &format!("sage {w:?}, fan-outs {fanouts:?}"),
            &ModelSizes::sage(w),
            sage(w, 0.0),
            40_000,
            12,
            fanouts,
        );
        mini_batch(
            &format!("gat {w:?}, fan-outs {fanouts:?}"),
            &ModelSizes::gat(w, 8),
            gat(w, 8, 0.0),
            40_000,
            12,
            fanouts,
        );
    }
    for (hidden, width, fanouts) in [(64, 128, [10, 10]), (32, 32, [15, 5])] {
        let config = RgcnConfig::new(8).with_hidden(hidden);
        for (name, config) in [
            ("full", config.clone()),
            ("bases, dropout", config.with_weights(RelWeights::Basis(2)).with_dropout(0.5)),
        ] {
            let what = format!("rgcn {name}, {hidden} of {width}, fan-outs {fanouts:?}");
            typed_mini_batch(&what, &config, [40_000, 60_000, 500], width, fanouts);
        }
    }
}
