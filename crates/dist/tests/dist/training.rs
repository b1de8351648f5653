//! Training on parts equals training on one machine.

use std::borrow::Cow;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_gnn_dist::{
    Communicator, DistError, LocalPartition, PartitionConfig, PartitionMethod, PartitionedGraph,
    all_reduce_gradients_except, all_reduce_scalar, halo_exchange, partition_graph,
};
use burn_gnn_graph::{Graph, Relation, Schema};
use burn_gnn_ops::{GraphView, Stream};

use crate::graphs::{owners, rows, typed};
use crate::ranks;

const CLASSES: usize = 3;
const HIDDEN: usize = 5;

/// Two relational layers; type `c` has learned embeddings, which are distributed over their owners.
#[derive(Module, Debug)]
struct Net {
    first: Vec<Param<Tensor<2>>>,
    second: Vec<Param<Tensor<2>>>,
    own: Vec<Param<Tensor<2>>>,
    embedding: Param<Tensor<2>>,
}

fn width(schema: &Schema, ntype: usize) -> usize {
    match schema.ntypes()[ntype].as_str() {
        "a" => 4,
        "b" => 3,
        _ => 2,
    }
}

impl Net {
    /// Each rank creates its parameters; those of equal names get equal values.
    fn new(view: &dyn GraphView, dtype: DType, device: &Device) -> Self {
        let schema = view.schema();
        let weight = |name: &str, n: usize, from: usize, to: usize| {
            let s = Stream::new(3, &format!("{name}{n}"), 0);
            let v: Vec<f64> =
                (0..from * to).map(|i| 0.5 * s.normal((i / to) as u64, (i % to) as u64)).collect();
            Param::from_tensor(
                Tensor::<2>::from_data(TensorData::new(v, [from, to]), (device, dtype))
                    .require_grad(),
            )
        };
        let relations = 0..schema.etypes().len();
        let c = schema.ntype("c").unwrap();
        Self {
            first: relations
                .clone()
                .map(|e| weight("first", e, width(schema, schema.endpoints(e).0), HIDDEN))
                .collect(),
            second: relations.map(|e| weight("second", e, HIDDEN, CLASSES)).collect(),
            own: (0..schema.ntypes().len())
                .map(|t| weight("own", t, width(schema, t), HIDDEN))
                .collect(),
            embedding: Param::from_tensor(
                rows("embedding", &ids(view, c), 2, dtype, device).require_grad(),
            ),
        }
    }

    fn forward(
        &self,
        view: &dyn GraphView,
        weights: &[Tensor<2>],
        dtype: DType,
        device: &Device,
    ) -> Vec<Tensor<2>> {
        let schema = view.schema();
        let input = (0..schema.ntypes().len()).map(|t| match schema.ntypes()[t].as_str() {
            "c" => self.embedding.val(),
            // Constants are on the device without autodiff.
            name => rows(name, &ids(view, t), width(schema, t), dtype, &device.clone().inner()),
        });
        let input: Vec<_> = input.collect();
        let mut hidden = layer(view, "first", &self.first, input.clone(), HIDDEN, weights);
        for (t, h) in hidden.iter_mut().enumerate() {
            *h = relu(h.clone() + input[t].clone().matmul(self.own[t].val()));
        }
        layer(view, "second", &self.second, hidden, CLASSES, weights)
    }
}

fn ids(view: &dyn GraphView, ntype: usize) -> Vec<u64> {
    view.original_ids(ntype)
        .map_or_else(|| (0..view.num_dst(ntype) as u64).collect(), |ids| ids.to_vec())
}

fn index(ids: &[u32], device: &Device) -> Tensor<1, Int> {
    let v: Vec<i64> = ids.iter().map(|&i| i64::from(i)).collect();
    Tensor::from_data(TensorData::new(v, [ids.len()]), (&device.clone().inner(), DType::I64))
}

fn column(values: Vec<f64>, like: &Tensor<2>) -> Tensor<2> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n, 1]), (&like.device().inner(), like.dtype()))
}

/// Mean over in-edges of `weight * x[src] W / sqrt(out-degree)`, summed over relations.
fn layer(
    view: &dyn GraphView,
    call: &'static str,
    weights: &[Param<Tensor<2>>],
    x: Vec<Tensor<2>>,
    width: usize,
    edge_weights: &[Tensor<2>],
) -> Vec<Tensor<2>> {
    let schema = view.schema();
    let src = view.src_rows(call, x);
    let (device, dtype) = (weights[0].val().device(), weights[0].val().dtype());
    let mut out: Vec<_> = (0..schema.ntypes().len())
        .map(|t| Tensor::<2>::zeros([view.num_dst(t), width], (&device, dtype)))
        .collect();
    for e in 0..schema.etypes().len() {
        // Only counts of the whole graph: every rank skips the same relations.
        if view.total_edges(e) == 0 {
            continue;
        }
        let (s, d) = schema.endpoints(e);
        let r = view.relation(e);
        let norm = view.out_degrees(e).iter().map(|&n| 1.0 / f64::from(n.max(1)).sqrt()).collect();
        let mean = view.in_degrees(e).iter().map(|&n| 1.0 / f64::from(n.max(1))).collect();
        let h = src[s].clone().matmul(weights[e].val());
        let h = h.clone() * column(norm, &h);
        let messages = h.select(0, index(r.src(), &device)) * edge_weights[e].clone();
        let sums = Tensor::<2>::zeros([view.num_dst(d), width], (&device, dtype));
        let sums = sums.select_assign(0, index(r.dst(), &device), messages, IndexingUpdateOp::Add);
        out[d] = out[d].clone() + sums.clone() * column(mean, &sums);
    }
    out
}

/// Training data of one rank, or of the single machine.
struct Task {
    /// Training rows of type `a` on this rank, their labels, and the number of training nodes of all ranks.
    train: Vec<u32>,
    labels: Vec<usize>,
    count: usize,
    edge_weights: Vec<Tensor<2>>,
}

fn label(id: u64) -> usize {
    (Stream::new(9, "label", 0).uniform(id, 0) * CLASSES as f64) as usize
}

fn edge_weights(
    original: impl Fn(usize) -> Vec<u64>,
    view: &dyn GraphView,
    dtype: DType,
    device: &Device,
) -> Vec<Tensor<2>> {
    let of = |e: usize| {
        let s = Stream::new(4, "edge", e as u64);
        let v: Vec<f64> = original(e).iter().map(|&i| 0.5 + s.uniform(i, 0)).collect();
        let n = v.len();
        Tensor::<2>::from_data(TensorData::new(v, [n, 1]), (&device.clone().inner(), dtype))
    };
    (0..view.schema().etypes().len()).map(of).collect()
}

fn train(
    view: &dyn GraphView,
    task: &Task,
    comm: Option<&dyn Communicator>,
    epochs: usize,
    dtype: DType,
    device: &Device,
) -> Result<(Vec<f64>, Vec<u64>), DistError> {
    let mut net = Net::new(view, dtype, device);
    let mut optimizer = AdamConfig::new().init();
    let a = view.schema().ntype("a").unwrap();
    let mut losses = vec![];
    for _ in 0..epochs {
        let out = net.forward(view, &task.edge_weights, dtype, device).swap_remove(a);
        let mut hot = vec![0.0; task.train.len() * CLASSES];
        task.labels
            .iter()
            .enumerate()
            .for_each(|(i, l)| hot[i * CLASSES + l] = -1.0 / task.count as f64);
        let hot = Tensor::<2>::from_data(
            TensorData::new(hot, [task.train.len(), CLASSES]),
            (&device.clone().inner(), dtype),
        );
        let loss = (log_softmax(out, 1).select(0, index(&task.train, device)) * hot).sum();
        let value = loss.clone().into_data().convert::<f64>().iter::<f64>().next().unwrap();
        let mut grads = GradientsParams::from_grads(loss.backward(), &net);
        losses.push(match comm {
            Some(comm) => {
                grads = all_reduce_gradients_except(comm, &net, grads, |path| path == "embedding")?;
                all_reduce_scalar(comm, "loss", value)?
            }
            None => value,
        });
        net = optimizer.step(0.02, net, grads);
    }
    // Replicated parameters, to compare between ranks bit by bit.
    let mut bits = vec![];
    for p in net.first.iter().chain(&net.second).chain(&net.own) {
        bits.extend(p.val().into_data().convert::<f64>().iter::<f64>().map(f64::to_bits));
    }
    Ok((losses, bits))
}

fn train_ids(graph: &Graph, keep: impl Fn(u64) -> bool) -> Vec<u64> {
    (0..graph.num_nodes("a").unwrap() as u64).filter(|&i| i % 3 != 2 && keep(i)).collect()
}

fn single(graph: &Graph, train_on: &[u64], dtype: DType, device: &Device) -> Vec<f64> {
    let task = Task {
        train: train_on.iter().map(|&i| i as u32).collect(),
        labels: train_on.iter().map(|&i| label(i)).collect(),
        count: train_on.len(),
        edge_weights: edge_weights(
            |e| (0..graph.relations()[e].num_edges() as u64).collect(),
            graph,
            dtype,
            device,
        ),
    };
    train(graph, &task, None, 20, dtype, device).unwrap().0
}

/// A part that discards halo gradients.
struct WithoutHaloGradients(LocalPartition);

impl GraphView for WithoutHaloGradients {
    fn schema(&self) -> &Schema {
        GraphView::schema(&self.0)
    }
    fn relation(&self, etype: usize) -> &Relation {
        self.0.relation(etype)
    }
    fn num_src(&self, ntype: usize) -> usize {
        self.0.num_src(ntype)
    }
    fn num_dst(&self, ntype: usize) -> usize {
        self.0.num_dst(ntype)
    }
    fn total_nodes(&self, ntype: usize) -> u64 {
        self.0.total_nodes(ntype)
    }
    fn total_edges(&self, etype: usize) -> u64 {
        self.0.total_edges(etype)
    }
    fn src_rows(&self, call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        let halo =
            halo_exchange(self.0.plan(), call, x.iter().map(|x| x.clone().detach()).collect());
        let join = |(x, h): (Tensor<2>, Tensor<2>)| {
            let ([n, _], [all, d]) = (x.dims(), h.dims());
            if n == all { x } else { Tensor::cat(vec![x, h.slice([n..all, 0..d])], 0) }
        };
        x.into_iter().zip(halo).map(join).collect()
    }
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        self.0.in_degrees(etype)
    }
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        self.0.out_degrees(etype)
    }
    fn original_ids(&self, ntype: usize) -> Option<Arc<[u64]>> {
        self.0.original_ids(ntype)
    }
    fn original_edge_ids(&self, etype: usize) -> Option<Arc<[u64]>> {
        self.0.original_edge_ids(etype)
    }
}

fn on_parts(
    parts: &PartitionedGraph,
    train_on: &[u64],
    deaf: bool,
    dtype: DType,
    device: &Device,
) -> Vec<f64> {
    let runs = ranks::run(parts.book().num_parts(), |comm| -> Result<_, DistError> {
        let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), device)?;
        let a = parts.book().schema().ntype("a")?;
        let train_rows = part.inner_rows(a, train_on);
        let task = Task {
            labels: train_rows.iter().map(|&r| label(part.inner_nodes(a)[r as usize])).collect(),
            train: train_rows,
            count: train_on.len(),
            edge_weights: edge_weights(
                |e| part.edge_original_ids(e).to_vec(),
                &part,
                dtype,
                device,
            ),
        };
        if deaf {
            train(&WithoutHaloGradients(part), &task, Some(&*comm), 20, dtype, device)
        } else {
            train(&part, &task, Some(&*comm), 20, dtype, device)
        }
    });
    assert!(runs.iter().all(|r| *r == runs[0]), "ranks drifted apart");
    runs.into_iter().next().unwrap().0
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| ((a - b) / a).abs()).fold(0.0, f64::max)
}

fn config(parts: usize, method: PartitionMethod) -> PartitionConfig {
    PartitionConfig::new("g", parts).with_method(method).with_seed(11)
}

fn equal_everywhere(n: usize, name: &str, device: &Device, with_empty_type: bool) {
    let graph = typed(1, with_empty_type);
    let train_on = train_ids(&graph, |_| true);
    for (dtype, tolerance) in [(DType::F64, 1e-9), (DType::F32, 1e-4)] {
        let alone = single(&graph, &train_on, dtype, device);
        assert!(alone[19] < 0.9 * alone[0], "nothing was learned: {alone:?}");
        for method in [PartitionMethod::Metis, PartitionMethod::Random] {
            let parts = partition_graph(&graph, &config(n, method.clone())).unwrap();
            let off = worst(&alone, &on_parts(&parts, &train_on, false, dtype, device));
            println!("{name} {dtype:?} {method:?} {n} parts, cut {}: {off:.1e}", parts.edge_cut());
            assert!(off <= tolerance, "{name} {dtype:?} {method:?} {n} parts: {off:e}");
        }
    }
}

pub(crate) fn equals_one_machine_on_flex(n: usize) {
    equal_everywhere(n, "flex", &Device::flex().autodiff(), true);
}

/// Without the empty type: Burn's matmul on NdArray does not support matrices without rows.
pub(crate) fn equals_one_machine_on_other_backends(n: usize) {
    for (name, device) in crate::graphs::devices().into_iter().skip(1) {
        equal_everywhere(n, name, &device, false);
    }
}

/// The test above depends on the backward pass of the exchange.
pub(crate) fn without_halo_gradients_losses_differ(n: usize) {
    let (graph, device) = (typed(1, true), Device::flex().autodiff());
    let train_on = train_ids(&graph, |_| true);
    let alone = single(&graph, &train_on, DType::F64, &device);
    let parts = partition_graph(&graph, &config(n, PartitionMethod::Random)).unwrap();
    let off = worst(&alone, &on_parts(&parts, &train_on, true, DType::F64, &device));
    println!("halo gradients dropped: {off:.1e}");
    assert!(off > 1e-4, "{off:e}");
}

/// A part without nodes, a part without training nodes, and a part without a halo.
pub(crate) fn ranks_with_nothing_to_do(n: usize) {
    let (graph, device) = (typed(2, true), Device::flex().autodiff());
    let counts = graph.node_counts().to_vec();
    let by = |f: &dyn Fn(usize, usize) -> u32| {
        owners(&graph, counts.iter().enumerate().map(|(t, &n)| (0..n).map(|i| f(t, i)).collect()))
    };
    // Part 1 is empty, part 2 holds the nodes without edges (no halo), part 3 nodes of odd ids.
    let last = |t: usize, i: usize| i >= counts[t] * 9 / 10;
    let cases = [
        ("an empty part", by(&|_, i| [0, 2, 3][i % 3])),
        ("a part without halo", by(&|t, i| if last(t, i) { 2 } else { [0, 1, 3][i % 3] })),
        ("one type each", by(&|t, _| t as u32)),
        ("all in one part", by(&|_, _| 2)),
    ];
    for (name, method) in cases {
        // Part 0 trains nothing.
        let train_on = train_ids(&graph, |i| i % 3 != 0);
        let alone = single(&graph, &train_on, DType::F64, &device);
        let parts = partition_graph(&graph, &config(n, method)).unwrap();
        let off = worst(&alone, &on_parts(&parts, &train_on, false, DType::F64, &device));
        println!("{name}: {off:.1e}");
        assert!(off <= 1e-9, "{name}: {off:e}");
    }
}
