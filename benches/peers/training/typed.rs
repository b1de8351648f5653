//! Measures training and message passing on heterogeneous graphs.
//!
//! R-GCN with bases on learned embeddings (am-slice), one graph convolution per relation (mag-slice), and messages
//! over all relations at once.

use std::time::Instant;

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use burn_gnn::graph::{Graph, RelationStack};
use burn_gnn::models::{FusedAdamConfig, Rows};
use burn_gnn::ops::{
    Activation, CrossReduce, Reduce, RelationalIndex, RelationalWeight, Stream, bias_activation,
    glorot_uniform, multi_gspmm_cross, relational_aggregate, stack_rows,
};
use serde_json::json;

use crate::graphs::{Task, Typed};
use crate::measure::{Entry, Times, bench, device, emit, memory_mb, wanted};

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

/// A learned embedding for every node, type by type.
fn embeddings(graph: &Graph, width: usize, device: &Device) -> Vec<Param<Tensor<2>>> {
    let row = |&n: &usize| {
        Param::from_tensor(Tensor::random([n, width], Distribution::Normal(0.0, 1.0), device))
    };
    graph.node_counts().iter().map(row).collect()
}

/// Trains `net` by Adam; one call is an epoch.
fn epochs<N: Module>(net: N, loss: impl Fn(&N) -> Tensor<1>) -> impl FnMut() {
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let mut net = Some(net);
    move || {
        let old = net.take().expect("put back at the end of every epoch");
        let grads = GradientsParams::from_grads(loss(&old).backward(), &old);
        net = Some(optimizer.step(0.01, old, grads));
    }
}

/// A relational convolution with bases, on the homogeneous graph.
#[derive(Module, Debug)]
struct BasisLayer {
    bases: Param<Tensor<3>>,
    coeff: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl BasisLayer {
    fn new(
        [relations, bases]: [usize; 2],
        i: usize,
        o: usize,
        name: &str,
        device: &Device,
    ) -> Self {
        let stream = |part: &str| Stream::new(0, &format!("{name}/{part}"), 0);
        Self {
            bases: Param::from_tensor(Tensor::from_data(
                glorot_uniform(stream("bases"), i, o, [bases, i, o]),
                device,
            )),
            coeff: Param::from_tensor(Tensor::from_data(
                glorot_uniform(stream("coeff"), relations, bases, [relations, bases]),
                device,
            )),
            bias: Param::from_tensor(Tensor::zeros([o], device)),
        }
    }

    fn forward(
        &self,
        index: &RelationalIndex,
        x: Tensor<2>,
        norm: &Tensor<1>,
        f: Activation,
    ) -> Tensor<2> {
        let weight = RelationalWeight::Basis { bases: self.bases.val(), coeff: self.coeff.val() };
        bias_activation(
            relational_aggregate(index, x, weight, Some(norm.clone())),
            Some(self.bias.val()),
            f,
            None,
        )
    }
}

/// Two such layers on learned embeddings.
#[derive(Module, Debug)]
struct Rgcn {
    rows: Param<Tensor<2>>,
    first: BasisLayer,
    second: BasisLayer,
}

/// The peer converts to a homogeneous graph with edge types; a message has weight `1 / in-degree`
/// of its destination over all relations.
pub(crate) fn am(graph: &str, make: impl Fn() -> Typed) {
    const WIDTH: usize = 16;
    const BASES: usize = 30;
    let names = ["rgcn.homogeneous.epoch", "rgcn.homogeneous.presorted.epoch"];
    let (source, device) = (make(), device());
    let start = Instant::now();
    let (g, task, target) = build(source);
    let homogeneous =
        g.to_homogeneous(&[], &[]).expect("the node count of the homogeneous graph fits");
    let sizes = [("edges", json!(g.total_edges())), ("rels", json!(g.relations().len()))];
    let build_time = Times::once(start.elapsed().as_secs_f64());
    emit(
        Entry { group: "build", graph, op: "heterograph+to_homogeneous" },
        Some(&build_time),
        &sizes,
    );

    let relation = &homogeneous.graph.relations()[0];
    let types: Vec<u32> = g
        .relations()
        .iter()
        .enumerate()
        .flat_map(|(t, r)| std::iter::repeat_n(t as u32, r.num_edges()))
        .collect();
    let index = RelationalIndex::new(relation, &types, g.relations().len());
    let degrees: Vec<u32> = relation.in_degrees().collect();
    let norm: Vec<f32> = relation.dst().iter().map(|&v| 1.0 / degrees[v as usize] as f32).collect();
    let norm = Tensor::<1>::from_data(TensorData::new(norm, [types.len()]), &device);
    let start = homogeneous.node_ids.range(target).expect("a node type").start as u32;
    let mut rows = Rows::new(&task.train, &task.labels, task.classes)
        .expect("labels are below the number of classes");
    rows.index = rows.index.iter().map(|id| id + start).collect();

    let more = [("hidden", json!(WIDTH)), ("bases", json!(BASES))];
    // The index sorts edges by relation once, so both entries of the peer correspond to the same
    // entry here.
    for op in names.into_iter().filter(|op| wanted(op, &more)) {
        let autodiff = device.clone().autodiff();
        let layer =
            |o, name| BasisLayer::new([g.relations().len(), BASES], WIDTH, o, name, &autodiff);
        let n = homogeneous.graph.node_counts()[0];
        let net = Rgcn {
            rows: Param::from_tensor(Tensor::random(
                [n, WIDTH],
                Distribution::Normal(0.0, 1.0),
                &autodiff,
            )),
            first: layer(WIDTH, "first"),
            second: layer(task.classes, "second"),
        };
        let epoch = epochs(net, |net: &Rgcn| {
            let h = net.first.forward(&index, net.rows.val(), &norm, Activation::Relu);
            rows.cross_entropy(net.second.forward(&index, h, &norm, Activation::None))
        });
        bench(Entry { group: "train", graph, op }, &more, epoch);
    }
    let (rss, peak) = memory_mb();
    emit(
        Entry { group: "memory", graph, op: "rgcn" },
        None,
        &[("rss_mb", json!(rss.round())), ("peak_mb", json!(peak.round()))],
    );
}

/// The relations into one node type, concatenated once.
struct Incoming {
    stack: RelationStack,
    /// Edge types in the order of the stack.
    etypes: Vec<usize>,
    /// Source node types in the order of its tables.
    tables: Vec<usize>,
    index: RelationalIndex,
}

fn incoming(g: &Graph) -> Vec<Incoming> {
    let of = |d: usize| {
        let etypes: Vec<usize> =
            (0..g.relations().len()).filter(|&t| g.schema().endpoints(t).1 == d).collect();
        let mut tables: Vec<usize> = etypes.iter().map(|&t| g.schema().endpoints(t).0).collect();
        tables.sort_unstable();
        tables.dedup();
        let rows: Vec<usize> = tables.iter().map(|&t| g.node_counts()[t]).collect();
        let table = |t: usize| {
            tables
                .iter()
                .position(|&s| s == g.schema().endpoints(t).0)
                .expect("a source type of this stack")
        };
        let relations: Vec<_> =
            etypes.iter().map(|&t| (table(t), g.relations()[t].clone())).collect();
        let stack = RelationStack::new(g.node_counts()[d], &rows, &relations)
            .expect("relations of one graph fit together");
        let index = RelationalIndex::from_stack(&stack).mean();
        Incoming { stack, etypes, tables, index }
    };
    (0..g.node_counts().len()).map(of).collect()
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
            biases: (0..relations)
                .map(|_| Param::from_tensor(Tensor::zeros([o], device)))
                .collect(),
        }
    }

    fn forward(&self, incoming: &[Incoming], x: &[Tensor<2>], f: Activation) -> Vec<Tensor<2>> {
        let of = |i: &Incoming| {
            let rows = stack_rows(&i.stack, i.tables.iter().map(|&t| x[t].clone()).collect());
            let weight =
                Tensor::stack(i.etypes.iter().map(|&t| self.weights[t].val()).collect(), 0);
            let bias = i.etypes.iter().map(|&t| self.biases[t].val()).reduce(|a, b| a + b);
            bias_activation(
                relational_aggregate(&i.index, rows, RelationalWeight::Full(weight), None),
                bias,
                f,
                None,
            )
        };
        incoming.iter().map(of).collect()
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
    let (source, device) = (make(), device());
    let start = Instant::now();
    let (g, task, target) = build(source);
    layouts(&g);
    let sizes = [("edges", json!(g.total_edges())), ("rels", json!(g.relations().len()))];
    emit(
        Entry { group: "build", graph, op: "heterograph+formats" },
        Some(&Times::once(start.elapsed().as_secs_f64())),
        &sizes,
    );

    let incoming = incoming(&g);
    let more = [("hidden", json!(WIDTH))];
    if wanted("rgcn.heterograph.epoch", &more) {
        let autodiff = device.clone().autodiff();
        let layer = |o, name| HeteroConv::new(g.relations().len(), WIDTH, o, name, &autodiff);
        let net = HeteroNet {
            rows: embeddings(&g, WIDTH, &autodiff),
            first: layer(WIDTH, "first"),
            second: layer(task.classes, "second"),
        };
        let rows = Rows::new(&task.train, &task.labels, task.classes)
            .expect("labels are below the number of classes");
        let epoch = epochs(net, |net: &HeteroNet| {
            let x: Vec<_> = net.rows.iter().map(Param::val).collect();
            let h = net.first.forward(&incoming, &x, Activation::Relu);
            rows.cross_entropy(
                net.second.forward(&incoming, &h, Activation::None).swap_remove(target),
            )
        });
        bench(Entry { group: "train", graph, op: "rgcn.heterograph.epoch" }, &more, epoch);
    }

    let x: Vec<Tensor<2>> = g
        .node_counts()
        .iter()
        .map(|&n| Tensor::random([n, WIDTH], Distribution::Normal(0.0, 1.0), &device))
        .collect();
    let dim = [("dim", json!(WIDTH))];
    for (name, cross) in [("sum", CrossReduce::Sum), ("max", CrossReduce::Max)] {
        let entry =
            Entry { group: "hetero", graph, op: &format!("multi_update_all.copy_u.sum/{name}") };
        let update = |i: &Incoming| {
            let sources = i.tables.iter().map(|&t| x[t].clone()).collect();
            multi_gspmm_cross(&i.stack, sources, Reduce::Sum, cross)
        };
        bench(entry, &dim, || drop(incoming.iter().map(update).collect::<Vec<_>>()));
    }
}
