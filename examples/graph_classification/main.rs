//! Classifies graphs with a GIN on batches of graphs: are two red nodes of a ring neighbours?
//!
//! `h_v' = MLP( (1 + ε) h_v + Σ over u in N(v) of h_u )`, logits `Σ over layers k of W_k Σ over v of h_v^k + b_k`
//! (Xu, Hu, Leskovec, Jegelka, ICLR 2019)
//!
//! ```sh
//! cargo run --release --example graph_classification
//! ```
//!
//! Every ring has twelve nodes, three of them red; half of the rings have red neighbours, so a model without edges is
//! right for 50 %. For `burn::train` with its dashboard, metrics and checkpoints see `examples/learner`.

use std::error::Error;

use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::graph::{GraphError, Stream, batch};
use burn_gnn::ops::Segments;
use burn_gnn::prelude::*;

const NODES: usize = 12;

/// Many rings as one graph, `[1, 0]` for a red node and `[0, 1]` for others, and the class of each ring.
fn rings(
    numbers: std::ops::Range<u64>,
    device: &Device,
) -> Result<(Graph, Tensor<2>, Vec<i64>), GraphError> {
    let next = |v: usize| (v + 1) % NODES;
    let endpoints = |f: &dyn Fn(usize) -> [usize; 2]| {
        (0..NODES).flat_map(f).map(|v| v as u32).collect::<Vec<_>>()
    };
    let ring =
        Graph::homogeneous(NODES, endpoints(&|v| [v, next(v)]), endpoints(&|v| [next(v), v]))?;
    let (mut x, mut labels) = (vec![], vec![]);
    for number in numbers.clone() {
        let draws = Stream::new(0, "red nodes", number);
        let mut order: Vec<usize> = (0..NODES).collect();
        order.sort_by_key(|&v| draws.words(v as u64, 0));
        let red = |v: usize| order[..3].contains(&v);
        labels.push(i64::from((0..NODES).any(|v| red(v) && red(next(v)))));
        x.extend((0..NODES).flat_map(|v| if red(v) { [1.0f32, 0.0] } else { [0.0, 1.0] }));
    }
    let x = Tensor::from_data(TensorData::new(x, [labels.len() * NODES, 2]), device);
    Ok((batch(numbers.map(|_| &ring))?.into_graph(), x, labels))
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex().autodiff();
    let mut model =
        seeded(0, || GinConfig::new(2, 2).with_hidden(32).with_num_layers(2).init(&device));
    let mut optimizer = AdamConfig::new().init();
    for epoch in 0..10 {
        let mut sum = 0.0;
        for first in (0..800).step_by(80) {
            let (g, x, labels) = rings(first..first + 80, &device)?;
            let logits = model.forward_graphs(&g, x, &Segments::from_lengths(&[NODES; 80]));
            let loss = cross_entropy(logits, &labels, ..);
            sum += loss.clone().into_scalar::<f64>();
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(0.005, model, gradients);
        }
        println!("epoch {epoch}  loss {:.4}", sum / 10.0);
    }
    let (g, x, labels) = rings(1000..1200, &device)?;
    let logits =
        model.valid().forward_graphs(&g, x.inner(), &Segments::from_lengths(&[NODES; 200]));
    println!("test accuracy {:.1} %", 100.0 * accuracy(logits, &labels, ..));
    Ok(())
}
