//! A layer of one's own, written both ways: by the names of fields, as DGL has it, and as a trait, as PyG has it.
//!
//! `y_i = x_i W₁ + mean over j of σ(⟨x_j, x_i⟩) · x_j W₂`
//!
//! ```sh
//! cargo run --release --example custom_layer
//! ```
//!
//! Two such layers learn from the two leaders of Zachary's karate club which side the other 32 members took. Nothing is
//! downloaded. Both ways start from the same weights; it prints the loss of each, the accuracy on the 32 (93.8 %
//! for both), and fails if losses are more than 1e-4 apart.

#![forbid(unsafe_code)]

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::activation::{relu, sigmoid};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::data::karate_club;
use burn_gnn::models::{FusedAdamConfig, next_stream};
use burn_gnn::ops::function::{mean, u_dot_v, u_mul_e};
use burn_gnn::ops::{EdgeBatch, Fields, NodeBatch};
use burn_gnn::ops::{LossReduction, Reduce, cross_entropy_rows, glorot_uniform};
use burn_gnn::ops::{MessageOps, ReduceFunction};
use burn_gnn::prelude::*;

/// The layer's parameters.
#[derive(Module, Debug)]
struct Gated {
    own: Param<Tensor<2>>,
    other: Param<Tensor<2>>,
}

impl Gated {
    fn new([rows, columns]: [usize; 2], device: &Device) -> Self {
        let weight = || {
            let data = glorot_uniform(next_stream(device), rows, columns, [rows, columns]);
            Param::from_tensor(Tensor::from_data(data, device))
        };
        Self { own: weight(), other: weight() }
    }

    /// By names: a graph with fields goes in, one with another field comes out.
    fn by_names(&self, g: &Graph, x: Tensor<2>) -> Result<Tensor<2>> {
        let mut g = g.clone();
        g.nodes_mut("_N")?.insert("x", x)?;
        let gate = |edges: &EdgeBatch| Ok(Fields::of("gate", sigmoid(edges.data::<2>("score")?)));
        let own = |nodes: &NodeBatch| {
            let (heard, x) = (nodes.data::<2>("heard")?, nodes.data::<2>("x")?);
            Ok(Fields::of("y", x.matmul(self.own.val()) + heard.matmul(self.other.val())))
        };
        let g = g.apply_edges(.., u_dot_v("x", "x", "score"))?.apply_edges(.., gate)?;
        let g = g.update_all(u_mul_e("x", "gate", "m"), mean("m", "heard").then(own))?;
        Ok(g.nodes("_N")?.get::<2>("y")?)
    }
}

/// As a trait: `propagate` calls these, on a graph, a block or a partition.
impl MessagePassing for Gated {
    fn aggr(&self) -> Reduce {
        Reduce::Mean
    }
    fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, _edge_attr: Option<EdgeTensor>) -> EdgeTensor {
        let gate = x_j.clone().dot(x_i).map(sigmoid);
        x_j * gate
    }
    fn update(&self, heard: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.own.val()) + heard.matmul(self.other.val())
    }
}

#[derive(Module, Debug)]
struct Net {
    first: Gated,
    second: Gated,
}

/// One layer on a graph.
type Forward = fn(&Gated, &Graph, Tensor<2>) -> Result<Tensor<2>>;

/// Losses by epoch, and the share of the nodes `rest` that end on their side.
fn train(forward: Forward, g: &Graph, x: &Tensor<2>, labels: &[u32], known: &[u32], rest: &[u32]) -> Result<(Vec<f32>, f64)> {
    let (device, columns) = (x.device(), x.dims()[1]);
    // A scope of its own: both ways start from the same weights.
    let mut net = seeded(0, || Net { first: Gated::new([columns, 8], &device), second: Gated::new([8, 2], &device) });
    let mut optimizer = FusedAdamConfig::new().init();
    let logits = |net: &Net| forward(&net.second, g, relu(forward(&net.first, g, x.clone())?));
    let (rows, targets): (Arc<[u32]>, Arc<[u32]>) = (known.into(), known.iter().map(|&i| labels[i as usize]).collect());
    let mut losses = Vec::new();
    for _ in 0..60 {
        let loss = cross_entropy_rows(logits(&net)?, &rows, &targets, LossReduction::Mean);
        losses.push(loss.clone().into_scalar::<f32>());
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(0.02, net, grads);
    }
    let said: Vec<u32> = logits(&net)?.argmax(1).into_data().iter::<u32>().collect();
    let right = rest.iter().filter(|&&i| said[i as usize] == labels[i as usize]).count();
    Ok((losses, right as f64 / rest.len() as f64))
}

fn main() -> Result<()> {
    let device = Device::flex().autodiff();
    let club = karate_club();
    let features = club.features.get(&club.target).context("the club has features")?;
    let x = Tensor::<2>::from_data(TensorData::new(features.try_to_dense()?, [features.rows(), features.cols()]), &device);
    let labels: Vec<u32> = club.labels.iter().map(|&l| l as u32).collect();
    let split = club.splits.get("public").context("the club has a split")?;

    let by_names = train(Gated::by_names, &club.graph, &x, &labels, &split.train, &split.test)?;
    let by_trait = train(|layer, g, x| Ok(layer.propagate(g, 0, x, None)), &club.graph, &x, &labels, &split.train, &split.test)?;
    println!("epoch   loss by names   loss by trait");
    for epoch in [0, 10, 20, 40, 59] {
        println!("{epoch:>5}   {:>13.6}   {:>13.6}", by_names.0[epoch], by_trait.0[epoch]);
    }
    println!("accuracy on the other {}: {:.1} % by names, {:.1} % by trait", split.test.len(), 100.0 * by_names.1, 100.0 * by_trait.1);
    let apart = by_names.0.iter().zip(&by_trait.0).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    ensure!(apart < 1e-4, "losses of the same layer are {apart} apart");
    Ok(())
}
