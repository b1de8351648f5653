//! Defines a custom layer by the trait `MessagePassing`, with parameters and gates on edges.
//!
//! `y_i = x_i W₁ + mean over j of σ(⟨x_j, x_i⟩) · x_j W₂`
//!
//! ```sh
//! cargo run --release --example custom_layer
//! ```
//!
//! Two such layers learn from the two leaders of Zachary's karate club which side the others took. The same layer runs
//! on a graph, on sampled blocks and on a partition.

use burn::module::{Initializer, Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{relu, sigmoid};
use burn::tensor::{Device, Tensor};
use burn_gnn::data::karate_club;
use burn_gnn::prelude::*;

#[derive(Module, Debug)]
struct Gated {
    own: Param<Tensor<2>>,
    neighbor: Param<Tensor<2>>,
}

impl Gated {
    fn new(d_input: usize, d_output: usize, device: &Device) -> Self {
        let glorot = Initializer::XavierUniform { gain: 1.0 };
        let weight =
            || glorot.init_with([d_input, d_output], Some(d_input), Some(d_output), device);
        Self { own: weight(), neighbor: weight() }
    }

    fn forward<G: GraphView>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.propagate(g, x)
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
        x.matmul(self.own.val()) + aggregated.matmul(self.neighbor.val())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(0);
    let club = karate_club();
    let (g, x) = (&club.graph, Tensor::<2>::eye(34, &device));
    let forward = |net: &(Gated, Gated), x| net.1.forward(g, relu(net.0.forward(g, x)));
    let mut net = (Gated::new(34, 8, &device), Gated::new(8, 2, &device));
    let mut optimizer = AdamConfig::new().init();
    for epoch in 0..60 {
        let loss = cross_entropy(forward(&net, x.clone()), &club.labels, [0, 33]);
        if epoch % 10 == 0 {
            println!("epoch {epoch:>2}  loss {:.6}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(0.02, net, gradients);
    }
    let correct = accuracy(forward(&net.valid(), x.inner()), &club.labels, ..);
    println!("accuracy {:.1} % of 34 members, two of them labelled", 100.0 * correct);
    Ok(())
}
