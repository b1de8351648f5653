//! Typed graphs: R-GCN with bases and learned input rows (am-slice), one graph convolution per relation
//! (mag-slice), and messages over all relations at once.

use std::time::Instant;

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor, TensorData, activation};
use burn_gnn::graph::{Graph, Relation};
use burn_gnn::models::{RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights, Rows, cross_entropy};
use burn_gnn::ops::{Stream, copy_u_mean, copy_u_sum, glorot_uniform};
use serde_json::json;

use crate::graphs::{Task, Typed};
use crate::measure::{Entry, Times, bench, emit, memory_mb, wanted};

fn build(g: Typed) -> (Graph, Task, usize) {
    let mut b = Graph::builder();
    for (name, n) in &g.ntypes {
        b = b.nodes(*name, *n);
    }
    for e in g.edges {
        b = b.edges((e.name.0, e.name.1, e.name.2), e.src, e.dst);
    }
    let graph = b.build().expect("the recipe keeps ids in range");
    let target = graph.schema().ntype(g.target).expect("a type of the graph");
    (graph, g.task, target)
}

fn layouts(graph: &Graph) {
    for r in graph.relations() {
        let _ = (r.csr(), r.csc());
    }
}

/// A learned row for every node, type by type.
fn embeddings(graph: &Graph, width: usize, device: &Device) -> Vec<Param<Tensor<2>>> {
    let row = |&n: &usize| Param::from_tensor(Tensor::random([n, width], Distribution::Normal(0.0, 1.0), device));
    graph.node_counts().iter().map(row).collect()
}

/// Trains `net` by Adam; one call is an epoch.
fn epochs<N: Module>(net: N, loss: impl Fn(&N) -> Tensor<1>) -> impl FnMut() {
    let mut optimizer = AdamConfig::new().with_epsilon(1e-8).init();
    let mut net = Some(net);
    move || {
        let old = net.take().expect("put back at the end of every epoch");
        let grads = GradientsParams::from_grads(loss(&old).backward(), &old);
        net = Some(optimizer.step(0.01, old, grads));
    }
}

fn relu_all(x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
    x.into_iter().map(activation::relu).collect()
}

/// Two relational convolutions with 30 bases on learned rows.
#[derive(Module, Debug)]
struct Rgcn {
    rows: Vec<Param<Tensor<2>>>,
    first: RelGraphConv,
    second: RelGraphConv,
}

/// The peer joins all types in one graph and passes edge types along; a message counts `1 / in-degree` of its
/// destination over all relations.
pub(crate) fn am(graph: &str, make: impl Fn() -> Typed) {
    const WIDTH: usize = 16;
    const BASES: usize = 30;
    let names = ["rgcn.homogeneous.epoch", "rgcn.homogeneous.presorted.epoch"];
    let (source, device) = (make(), Device::flex());
    let start = Instant::now();
    let (g, task, target) = build(source);
    let joint = g.to_homogeneous(&[], &[]).expect("the numbers of a joint graph fit");
    let sizes = [("edges", json!(g.total_edges())), ("rels", json!(g.relations().len()))];
    let build_time = Times::once(start.elapsed().as_secs_f64());
    emit(Entry { group: "build", graph, op: "heterograph+to_homogeneous" }, Some(&build_time), &sizes);
    drop(joint);
    layouts(&g);

    // In-degrees over all relations, by destination type.
    let mut degrees: Vec<Vec<u32>> = g.node_counts().iter().map(|&n| vec![0; n]).collect();
    for (t, r) in g.relations().iter().enumerate() {
        r.dst().iter().for_each(|&v| degrees[g.schema().ends(t).1][v as usize] += 1);
    }
    let norm = |(t, r): (usize, &Relation)| {
        let degrees = &degrees[g.schema().ends(t).1];
        let values: Vec<f32> = r.dst().iter().map(|&v| 1.0 / degrees[v as usize] as f32).collect();
        let n = values.len();
        Some(Tensor::from_data(TensorData::new(values, [n]), &device))
    };
    let norm: Vec<Option<Tensor<1>>> = g.relations().iter().enumerate().map(norm).collect();
    let rows = Rows::new(&task.train, &task.labels, task.classes).expect("labels are below the number of classes");

    let more = [("hidden", json!(WIDTH)), ("bases", json!(BASES))];
    // Edges are kept sorted by relation, so both entries of the peer are one and the same here.
    for op in names.into_iter().filter(|op| wanted(op, &more)) {
        let layer = |o, name: &str| {
            RelGraphConvConfig::new(WIDTH, o, g.relations().len())
                .with_weights(RelWeights::Basis(BASES))
                .with_norm(RelNorm::None)
                .with_self_loop(false)
                .with_name(name.into())
                .init(&device.clone().autodiff())
        };
        let net = Rgcn {
            rows: embeddings(&g, WIDTH, &device.clone().autodiff()),
            first: layer(WIDTH, "first"),
            second: layer(task.classes, "second"),
        };
        let epoch = epochs(net, |net: &Rgcn| {
            let x = net.rows.iter().map(Param::val).collect();
            let h = relu_all(net.first.forward_weighted(&g, x, &norm));
            let out = net.second.forward_weighted(&g, h, &norm).swap_remove(target);
            cross_entropy(out, &rows)
        });
        bench(Entry { group: "train", graph, op }, &more, epoch);
    }
    let (rss, peak) = memory_mb();
    emit(Entry { group: "memory", graph, op: "rgcn" }, None, &[("rss_mb", json!(rss.round())), ("peak_mb", json!(peak.round()))]);
}

/// One weight and bias per relation, messages averaged per relation, relations summed.
#[derive(Module, Debug)]
struct HeteroConv {
    weights: Vec<Param<Tensor<2>>>,
    biases: Vec<Param<Tensor<1>>>,
}

impl HeteroConv {
    fn new(relations: usize, i: usize, o: usize, name: &str, device: &Device) -> Self {
        let weight = |r| {
            let stream = Stream::new(0, &format!("{name}/{r}"), 0);
            Param::from_tensor(Tensor::from_data(glorot_uniform(stream, i, o, [i, o]), device))
        };
        Self {
            weights: (0..relations).map(weight).collect(),
            biases: (0..relations).map(|_| Param::from_tensor(Tensor::zeros([o], device))).collect(),
        }
    }

    fn forward(&self, g: &Graph, x: &[Tensor<2>]) -> Vec<Tensor<2>> {
        let mut out: Vec<Option<Tensor<2>>> = vec![None; x.len()];
        for (t, r) in g.relations().iter().enumerate() {
            let (s, d) = g.schema().ends(t);
            let (x, w) = (x[s].clone(), self.weights[t].val());
            let [i, o] = w.dims();
            let h = if i > o { copy_u_mean(r, x.matmul(w)) } else { copy_u_mean(r, x).matmul(w) };
            let h = h + self.biases[t].val().unsqueeze();
            out[d] = Some(match out[d].take() {
                Some(sum) => sum + h,
                None => h,
            });
        }
        out.into_iter().map(|h| h.expect("every type of this graph has relations into it")).collect()
    }
}

#[derive(Module, Debug)]
struct HeteroNet {
    rows: Vec<Param<Tensor<2>>>,
    first: HeteroConv,
    second: HeteroConv,
}

pub(crate) fn mag(graph: &str, make: impl Fn() -> Typed) {
    const WIDTH: usize = 64;
    let (source, device) = (make(), Device::flex());
    let start = Instant::now();
    let (g, task, target) = build(source);
    layouts(&g);
    let sizes = [("edges", json!(g.total_edges())), ("rels", json!(g.relations().len()))];
    emit(Entry { group: "build", graph, op: "heterograph+formats" }, Some(&Times::once(start.elapsed().as_secs_f64())), &sizes);

    let more = [("hidden", json!(WIDTH))];
    if wanted("rgcn.heterograph.epoch", &more) {
        let autodiff = device.clone().autodiff();
        let layer = |o, name| HeteroConv::new(g.relations().len(), WIDTH, o, name, &autodiff);
        let net = HeteroNet { rows: embeddings(&g, WIDTH, &autodiff), first: layer(WIDTH, "first"), second: layer(task.classes, "second") };
        let rows = Rows::new(&task.train, &task.labels, task.classes).expect("labels are below the number of classes");
        let epoch = epochs(net, |net: &HeteroNet| {
            let x: Vec<_> = net.rows.iter().map(Param::val).collect();
            let h = relu_all(net.first.forward(&g, &x));
            cross_entropy(net.second.forward(&g, &h).swap_remove(target), &rows)
        });
        bench(Entry { group: "train", graph, op: "rgcn.heterograph.epoch" }, &more, epoch);
    }

    let x: Vec<Tensor<2>> = g.node_counts().iter().map(|&n| Tensor::random([n, WIDTH], Distribution::Normal(0.0, 1.0), &device)).collect();
    let dim = [("dim", json!(WIDTH))];
    type Cross = fn(Tensor<2>, Tensor<2>) -> Tensor<2>;
    let cross: [(&str, Cross); 2] = [("sum", |a, b| a + b), ("max", |a, b| a.max_pair(b))];
    for (name, f) in cross {
        let entry = Entry { group: "hetero", graph, op: &format!("multi_update_all.copy_u.sum/{name}") };
        bench(entry, &dim, || drop(multi_update(&g, &x, f)));
    }
}

/// Sums of source rows per relation, joined across the relations that end in one type.
fn multi_update(g: &Graph, x: &[Tensor<2>], cross: fn(Tensor<2>, Tensor<2>) -> Tensor<2>) -> Vec<Option<Tensor<2>>> {
    let mut out: Vec<Option<Tensor<2>>> = vec![None; x.len()];
    for (t, r) in g.relations().iter().enumerate() {
        let (s, d) = g.schema().ends(t);
        let h = copy_u_sum(r, x[s].clone());
        out[d] = Some(match out[d].take() {
            Some(sum) => cross(sum, h),
            None => h,
        });
    }
    out
}
