//! Defines a custom layer by one `impl MessagePassing`, and trains it inside a heterogeneous model.
//!
//! `y[v] = x[v] W₁ + mean over u of σ(⟨x[u], x[v]⟩) · x[u] W₂`
//!
//! ```sh
//! cargo run --release --example custom_layer
//! ```
//!
//! The data set has crates, keywords, authors and licences. A model of two `HeteroGraphConv`, each with one such layer per
//! edge type, predicts the category of a crate. The same layer runs on a homogeneous graph (`layer.forward(&g, x)`), on
//! sampled blocks and on partitions, reads edge weights, and loads weights (`load_weights`, `StateDict`).

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{relu, sigmoid};
use burn::tensor::{Device, Tensor};
use burn_gnn::data::crates_graph;
use burn_gnn::models::NodeEmbedding;
use burn_gnn::prelude::*;

const HIDDEN: usize = 32;

#[derive(Module, Debug)]
struct Gated {
    own: Linear,
    neighbor: Linear,
}

impl Gated {
    fn new(d_input: usize, d_output: usize, device: &Device) -> Self {
        let linear = || LinearConfig::new(d_input, d_output).init(device);
        Self { own: linear(), neighbor: linear() }
    }
}

impl MessagePassing for Gated {
    fn aggr(&self) -> Reduce {
        Reduce::Mean
    }
    fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, _: Option<EdgeTensor>) -> EdgeTensor {
        x_j.clone() * x_j.dot(x_i).map(sigmoid)
    }
    fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        self.own.forward(x) + self.neighbor.forward(aggregated)
    }
}

/// Words of crates are projected to the hidden size; nodes of the other types have learned embeddings.
#[derive(Module, Debug)]
struct Net {
    words: Linear,
    embedding: NodeEmbedding,
    hidden: HeteroGraphConv<Gated>,
    output: HeteroGraphConv<Gated>,
}

impl Net {
    fn forward(&self, g: &Graph, words: Tensor<2>) -> Tensor<2> {
        let mut x = NodeTensors::from([("crate", self.words.forward(words))]);
        for ntype in self.embedding.ntypes() {
            self.embedding.rows(ntype).map(|rows| x.insert(ntype, rows));
        }
        let h = self.hidden.forward(g, x).map(|_, h| relu(h));
        self.output.forward(g, h)["crate"].clone()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(0);
    let set = crates_graph();
    let g = set.graph.with_inverse_relations("-inv")?;
    let words = set.features["crate"].to_tensor(&Device::flex())?;
    let split = &set.splits["name_hash"];

    let conv = |d_output| {
        let layers = HeteroGraphConvConfig::new().with_aggregate(Reduce::Mean);
        layers.init(g.schema(), |_| Gated::new(HIDDEN, d_output, &device))
    };
    let mut net = Net {
        words: LinearConfig::new(words.dims()[1], HIDDEN).init(&device),
        embedding: NodeEmbedding::new(&g, ["author", "keyword", "license"], HIDDEN, &device)?,
        hidden: conv(HIDDEN),
        output: conv(set.num_classes),
    };
    let mut optimizer = AdamConfig::new().init();
    for epoch in 0..30 {
        let logits = net.forward(&g, Tensor::from_inner(words.clone()));
        let loss = cross_entropy(logits, &set.labels, split.train.as_slice());
        if epoch % 10 == 0 {
            println!("epoch {epoch:>2}  loss {:.6}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(0.01, net, gradients);
    }
    let logits = net.valid().forward(&g, words);
    let test = accuracy(logits, &set.labels, split.test.as_slice());
    println!("test accuracy {:.1} % of {} crates", 100.0 * test, split.test.len());
    Ok(())
}
