//! Measures full-graph epochs, inference and peak memory on homogeneous graphs.

use anyhow::Result;
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use burn_gnn::graph::Graph;
use burn_gnn::models::{FusedAdamConfig, Rows};
use burn_gnn::ops::{GraphView, Precision, with_precision};
use serde_json::json;

use crate::graphs::Homogeneous;
use crate::measure::{Entry, bench, device, emit, measure, memory_mb, wanted};
use crate::training::nets::{Gat, Gcn, Network, Sage, Sizes};

/// Data and labelled rows of a training.
struct Task {
    graph: Graph,
    features: Tensor<2>,
    rows: Rows,
    sizes: Sizes,
}

pub(crate) const KINDS: [&str; 3] = ["gcn", "sage", "gat"];

fn task(graph: &str, kind: &str, g: Homogeneous) -> Result<Task> {
    let device = device();
    let Homogeneous { nodes, src, dst, task } = g;
    let mut structure = Graph::homogeneous(nodes, src, dst)?;
    if kind != "sage" {
        structure = structure.add_self_loops(0)?;
    }
    let _ = (structure.relations()[0].csr(), structure.relations()[0].csc());
    let hidden = if graph == "cora-like" { 16 } else { 256 };
    Ok(Task {
        graph: structure,
        features: Tensor::from_data(TensorData::new(task.features, [nodes, task.width]), &device),
        rows: Rows::new(&task.train, &task.labels, task.classes)?,
        sizes: Sizes { input: task.width, hidden, classes: task.classes },
    })
}

/// Closures of a network with its optimiser: one call of the first is an epoch, of the second an
/// inference.
fn with<N: Network>(net: N, t: &Task, use_them: impl FnOnce(&mut dyn FnMut(), &mut dyn FnMut())) {
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let state = std::cell::RefCell::new(Some(net));
    let mut step = 0;
    let mut epoch = || {
        let net = state.take().expect("put back at the end of every epoch");
        step += 1;
        let loss = t.rows.cross_entropy(net.forward(&t.graph.at_step(0, step), t.features.clone()));
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        let net = optimizer.step(0.01, net, grads);
        let loss = loss.inner().into_scalar::<f32>();
        assert!(loss.is_finite(), "the loss is {loss}");
        state.replace(Some(net));
    };
    let mut infer = || {
        let net = state.borrow().as_ref().expect("put back at the end of every epoch").valid();
        drop(net.forward(&t.graph, t.features.clone()));
    };
    use_them(&mut epoch, &mut infer);
}

fn by_kind(kind: &str, t: &Task, use_them: impl FnOnce(&mut dyn FnMut(), &mut dyn FnMut())) {
    let device = device().autodiff();
    match kind {
        "gcn" => with(Gcn::new(t.sizes, &device), t, use_them),
        "sage" => with(Sage::new(t.sizes, &device), t, use_them),
        "gat" => with(Gat::new(t.sizes, &device), t, use_them),
        other => panic!("unknown network `{other}`; there are gcn, sage and gat"),
    }
}

/// Hidden size that the peer prints.
fn hidden(kind: &str, t: &Task) -> usize {
    if kind == "gat" { 64 } else { t.sizes.hidden }
}

/// `make` is called for every network, because a network consumes the graph.
pub(crate) fn run(graph: &str, make: impl Fn() -> Result<Homogeneous>) -> Result<()> {
    for kind in KINDS {
        let (epoch_name, infer_name) = (format!("{kind}.epoch"), format!("{kind}.infer"));
        if !wanted(&epoch_name, &[]) && !wanted(&infer_name, &[]) {
            continue;
        }
        let t = task(graph, kind, make()?)?;
        let more = [("hidden", json!(hidden(kind, &t)))];
        by_kind(kind, &t, |epoch, infer| {
            bench(Entry { group: "train", graph, op: &epoch_name }, &more, epoch);
            bench(Entry { group: "train", graph, op: &infer_name }, &more, infer);
        });
    }
    Ok(())
}

/// Resident memory before and after loading, and the peak of three epochs; their median time too where
/// operators cast their inputs.
pub(crate) fn memory(
    graph: &str,
    kind: &str,
    precision: Precision,
    g: Homogeneous,
    before: f64,
) -> Result<()> {
    let t = task(graph, kind, g)?;
    let loaded = memory_mb().0;
    let mut times = None;
    by_kind(kind, &t, |epoch, _| {
        let mut epoch = || with_precision(precision, &mut *epoch);
        match precision {
            Precision::Full => (0..3).for_each(|_| epoch()),
            Precision::F16 | Precision::BF16 => times = Some(measure(epoch)),
        }
    });
    let mb = [("imports_mb", before), ("loaded_mb", loaded), ("peak_mb", memory_mb().1)];
    let mut more: Vec<_> = mb.iter().map(|(name, mb)| (*name, json!(mb.round()))).collect();
    more.push(("hidden", json!(hidden(kind, &t))));
    let op = match precision {
        Precision::Full => format!("{kind}.epoch"),
        other => format!("{kind}.epoch.{other:?}"),
    };
    emit(Entry { group: "memory", graph, op: &op }, times.as_ref(), &more);
    Ok(())
}
