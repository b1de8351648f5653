//! Compares predicted memory and traffic of training with measured ones.
//!
//! Memory is compared on the set-ups of the training entries, traffic on two ranks. Each set-up
//! runs in a separate process, with `BENCH_ALLOCATOR=counted`.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_gnn::dist::{
    Communicator, DistError, LocalPartition, Metered, PartitionConfig, partition_graph, run_ranks,
};
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    BatchSizes, FitConfig, FusedAdamConfig, GatConfig, GcnConfig, LayerViews, MemoryPlan,
    ModelSizes, NodeClassifier, NodeTask, NodeTensors, RelWeights, RgcnConfig, Rows, SageConfig,
    TypeInput, Whole, fit_on_ranks, plan_full_batch, plan_mini_batch, plan_rgcn,
    plan_rgcn_mini_batch, seeded,
};
use burn_gnn::ops::GraphView;
use burn_gnn::ranks::{RankSync, plan_parts};
use burn_gnn::sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, RowType, Seeds};
use serde_json::json;

use crate::alloc::{begin, most, name};
use crate::graphs::{Homogeneous, Task};
use crate::measure::{Entry, device, emit, memory_mb};
use crate::training::sampling;

pub(crate) const KINDS: [&str; 9] = [
    "gcn",
    "sage",
    "gat",
    "sage.minibatch",
    "rgcn",
    "rgcn.minibatch",
    "gcn.ranks",
    "sage.ranks",
    "gat.ranks",
];
const BATCH: usize = 1024;
const RANKS: usize = 2;

/// One set-up, before its prediction is printed.
struct Run<'a> {
    graph: &'a str,
    kind: &'a str,
    /// Bytes in use before the set-up.
    base: usize,
    imports: f64,
}

impl Run<'_> {
    fn report(&self, predicted: usize, sent: Option<(u64, u64)>) {
        let (measured, mb) =
            (most() - self.base, |bytes: usize| json!((bytes as f64 / 1e5).round() / 10.0));
        let off = |predicted: f64, measured: f64| {
            json!((1e4 * (predicted / measured - 1.0)).round() / 100.0)
        };
        let mut more = vec![
            ("predicted_mb", mb(predicted)),
            ("measured_mb", mb(measured)),
            ("off_percent", off(predicted as f64, measured as f64)),
            ("resident_mb", json!((memory_mb().1 - self.imports).round())),
        ];
        if let Some((predicted, counted)) = sent {
            more.extend([("predicted_sent", json!(predicted)), ("sent", json!(counted))]);
            more.push(("sent_off_percent", off(predicted as f64, counted as f64)));
        }
        emit(Entry { group: "plan", graph: self.graph, op: self.kind }, None, &more);
    }
}

fn step<M: NodeClassifier, V: LayerViews + ?Sized>(
    model: M,
    optimizer: &mut ModuleOptimizer,
    views: &V,
    (x, target): (&NodeTensors, &str),
    rows: &Rows,
) -> M {
    let grads = rows.cross_entropy(model.logits_over(&views, x, target)).backward();
    let grads = GradientsParams::from_grads(grads, &model);
    optimizer.step(0.01, model, grads)
}

/// Runs three epochs. Counts the memory of the inputs, but not temporary memory of their creation.
fn full_batch<M: NodeClassifier>(model: M, g: &Graph, x: &NodeTensors, target: &str, rows: &Rows) {
    let (mut model, mut optimizer) = (model, FusedAdamConfig::new().init());
    begin();
    for i in 0..3 {
        model = step(model, &mut optimizer, &Whole(&g.at_step(0, i)), (x, target), rows);
    }
}

pub(crate) fn run(
    graph: &str,
    kind: &str,
    homogeneous: impl Fn() -> Result<Homogeneous>,
    imports: f64,
) -> Result<()> {
    if name() != "counted" {
        bail!(
            "plan: expected the allocator `counted`, found `{}`; set BENCH_ALLOCATOR=counted",
            name()
        );
    }
    // Warm up: threads and their buffers are created once.
    drop(
        Tensor::<2>::ones([512, 512], &device())
            .matmul(Tensor::ones([512, 512], &device()))
            .into_data(),
    );
    let run = Run { graph, kind, base: begin(), imports };
    match kind.split_once('.').unwrap_or((kind, "")) {
        (kind @ ("gcn" | "sage" | "gat"), "") => homogeneous_epochs(&run, kind, homogeneous()?),
        (kind @ ("gcn" | "sage" | "gat"), "ranks") => on_ranks(&run, kind, homogeneous()?),
        ("sage", "minibatch") => mini_batch(&run),
        ("rgcn", how @ ("" | "minibatch")) => typed(&run, how == "minibatch"),
        _ => bail!("unknown set-up `{kind}`; there are {}", KINDS.join(", ")),
    }
}

/// Sizes of a network and how it is built.
fn sizes(kind: &str, graph: &str, task: &Task) -> ModelSizes {
    let hidden = if graph == "cora-like" { 16 } else { 256 };
    match kind {
        "gcn" => ModelSizes::gcn([task.width, hidden, task.classes]),
        "sage" => ModelSizes::sage([task.width, hidden, task.classes]),
        _ => ModelSizes::gat([task.width, 64, task.classes], 8),
    }
    .with_dropout()
}

fn prepare(kind: &str, g: &mut Homogeneous) -> Result<Graph> {
    let graph =
        Graph::homogeneous(g.nodes, std::mem::take(&mut g.src), std::mem::take(&mut g.dst))?;
    Ok(if kind == "sage" { graph } else { graph.add_self_loops(0)? })
}

fn homogeneous_epochs(run: &Run<'_>, kind: &str, mut g: Homogeneous) -> Result<()> {
    let graph = prepare(kind, &mut g)?;
    let Homogeneous { nodes, task, .. } = g;
    let sizes = sizes(kind, run.graph, &task);
    let rows = Rows::new(&task.train, &task.labels, task.classes)?;
    let [i, h, c] = [0, 1, 2].map(|at| sizes.widths()[at]);
    let x: NodeTensors =
        [("_N", Tensor::<2>::from_data(TensorData::new(task.features, [nodes, i]), &device()))]
            .into();
    drop(task.labels);
    let on = device().autodiff();
    match kind {
        "gcn" => full_batch(GcnConfig::new(i, c).with_hidden(h).init(&on), &graph, &x, "_N", &rows),
        "sage" => {
            full_batch(SageConfig::new(i, c).with_hidden(h).init(&on), &graph, &x, "_N", &rows)
        }
        _ => full_batch(
            GatConfig::new(i, c).with_num_heads(8).with_hidden(h).init(&on),
            &graph,
            &x,
            "_N",
            &rows,
        ),
    }
    run.report(plan_full_batch(&sizes, &graph)?.peak(), None);
    Ok(())
}

/// Trains one network on two ranks, which are threads of this process; measures the memory of both
/// and their traffic per epoch.
fn on_ranks(run: &Run<'_>, kind: &str, mut g: Homogeneous) -> Result<()> {
    const EPOCHS: usize = 3;
    let mut graph = prepare(kind, &mut g)?;
    let Homogeneous { nodes, task, .. } = g;
    let (sizes, on) = (sizes(kind, run.graph, &task), device());
    let mut train_mask = vec![false; nodes];
    task.train.iter().for_each(|&v| train_mask[v as usize] = true);
    let frame = graph.nodes_mut(0)?;
    frame.insert(
        "x",
        Tensor::<2>::from_data(TensorData::new(task.features, [nodes, task.width]), &on),
    )?;
    frame.insert("y", Tensor::<1, Int>::from_data(TensorData::new(task.labels, [nodes]), &on))?;
    frame.insert(
        "train_mask",
        Tensor::<1, Bool>::from_data(TensorData::new(train_mask, [nodes]), &on),
    )?;
    let parts = partition_graph(&graph, &PartitionConfig::new(run.graph, RANKS))?;
    let plans = plan_parts(&sizes, &parts)?;
    let dir = tempfile::tempdir().context("creating a temporary folder")?;
    let index = parts.write(&dir)?;
    drop((parts, graph));
    let [i, h, c] = [0, 1, 2].map(|at| sizes.widths()[at]);
    let config = FitConfig::new().with_epochs(EPOCHS).with_progress(false);
    let rank = |comm: Arc<dyn Communicator>| -> Result<u64> {
        let metered = Arc::new(Metered::new(comm.clone()));
        let part = LocalPartition::new(
            &burn_gnn::dist::load_partition(&index, comm.rank())?,
            metered.clone(),
            &on,
        )?;
        let sync = RankSync::new(metered.clone());
        let task = NodeTask::on_ranks(&part, "_N", &sync)?;
        comm.barrier("ready").map_err(DistError::from)?;
        if comm.rank() == 0 {
            begin();
        }
        comm.barrier("set").map_err(DistError::from)?;
        let before = metered.traffic().bytes_sent;
        let to = on.clone().autodiff();
        match kind {
            "gcn" => drop(fit_on_ranks(
                seeded(0, || GcnConfig::new(i, c).with_hidden(h).init(&to)),
                &task,
                &task.train,
                &task.val,
                &config,
                &sync,
            )?),
            "sage" => drop(fit_on_ranks(
                seeded(0, || SageConfig::new(i, c).with_hidden(h).init(&to)),
                &task,
                &task.train,
                &task.val,
                &config,
                &sync,
            )?),
            _ => {
                let model =
                    seeded(0, || GatConfig::new(i, c).with_num_heads(8).with_hidden(h).init(&to));
                drop(fit_on_ranks(model, &task, &task.train, &task.val, &config, &sync)?);
            }
        }
        Ok(metered.traffic().bytes_sent - before)
    };
    let sent: u64 = run_ranks(RANKS, |comm| rank(comm).map_err(|e| format!("{e:#}")))?.iter().sum();
    let predicted = plans.iter().map(|p| p.memory.peak()).sum();
    run.report(
        predicted,
        Some((EPOCHS as u64 * plans.iter().map(|p| p.bytes_sent).sum::<u64>(), sent)),
    );
    Ok(())
}

/// Settings of both loaders of mini-batches: by default one worker keeps two batches ready and
/// prepares a third.
fn batches() -> BatchSizes {
    BatchSizes { batch_size: BATCH, ahead: 3, sampled: 8 }
}

fn mini_batch(run: &Run<'_>) -> Result<()> {
    let (g, ntype, task) = sampling::graph(run.graph)?;
    let (i, c) = (task.width, task.classes);
    let model = SageConfig::new(i, c).with_hidden(256).init(&device().autodiff());
    let plan = |sampler: &NeighborSampler| {
        Ok(plan_mini_batch(
            &ModelSizes::sage([i, 256, c]).with_dropout(),
            sampler,
            ntype,
            &task.train,
            batches(),
        )?)
    };
    epoch(run, &g, ntype, &task, model, &[15, 10], plan)
}

fn epoch<M: NodeClassifier>(
    run: &Run<'_>,
    g: &Graph,
    ntype: &str,
    task: &Task,
    model: M,
    fanouts: &[i64],
    plan: impl FnOnce(&NeighborSampler) -> Result<MemoryPlan>,
) -> Result<()> {
    let t = g.schema().ntype(ntype)?;
    let features = match task.width {
        0 => GraphFeatures::new(g, &device()),
        width => GraphFeatures::new(g, &device())
            .with_nodes(ntype, MemoryRows::new(&task.features, width, RowType::F32)?)?,
    };
    let seeds = Seeds::nodes(g, [(ntype, &task.train)])?;
    let loader =
        Loader::new(NeighborSampler::new(g, fanouts)?, seeds, BATCH)?.with_features(features);
    // Memory of the task, its features and labels, is not part of training.
    let own = 4 * task.features.len() + 8 * task.labels.len() + 4 * task.train.len();
    let (mut model, mut optimizer) = (model, FusedAdamConfig::new().init());
    begin();
    for b in loader.epoch(0) {
        let b = b?;
        let labels: Vec<i64> = b.seeds(t)?.iter().map(|&v| task.labels[v as usize]).collect();
        let rows = Rows::new(&(0..labels.len() as u32).collect::<Vec<_>>(), &labels, task.classes)?;
        let x: NodeTensors =
            b.features().map(|(ntype, x)| (ntype, Tensor::from_inner(x))).collect();
        model = step(model, &mut optimizer, &b.batch.blocks[..], (&x, ntype), &rows);
    }
    run.report(plan(loader.sampler())?.peak() + own, None);
    Ok(())
}

/// R-GCN on a typed graph: features of the target if the graph has some, otherwise an embedding;
/// bases if there are many relations.
fn typed(run: &Run<'_>, is_mini_batch: bool) -> Result<()> {
    let (g, ntype, task) = sampling::graph(run.graph)?;
    let config = match run.graph {
        "am-slice" => {
            RgcnConfig::new(task.classes).with_hidden(16).with_weights(RelWeights::Basis(30))
        }
        _ => RgcnConfig::new(task.classes).with_hidden(64),
    };
    let input = if task.width > 0 { TypeInput::Features(task.width) } else { TypeInput::Embedding };
    let inputs = [(ntype, input)];
    let on: Device = device().autodiff();
    let model = config.try_init(&g, inputs, &on)?;
    if is_mini_batch {
        let plan = |s: &NeighborSampler| {
            Ok(plan_rgcn_mini_batch(&config, s, inputs, ntype, &task.train, batches())?)
        };
        return epoch(run, &g, ntype, &task, model, &[10, 10], plan);
    }
    let rows = Rows::new(&task.train, &task.labels, task.classes)?;
    let x: NodeTensors = if task.width > 0 {
        let n = g.num_nodes(ntype)?;
        [(
            ntype,
            Tensor::<2>::from_data(TensorData::new(task.features, [n, task.width]), &device()),
        )]
        .into()
    } else {
        NodeTensors::default()
    };
    full_batch(model, &g, &x, ntype, &rows);
    run.report(plan_rgcn(&config, &g, inputs, ntype)?.peak(), None);
    Ok(())
}
