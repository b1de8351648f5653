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
use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::graph::{GraphError, Stream, batch};
use burn_gnn::models::{GraphTask, LabelledGraphs};
use burn_gnn::prelude::*;

const NODES: usize = 12;

/// Rings as one graph, with the feature `[1, 0]` of a red node and `[0, 1]` of others, and the class of each ring.
fn rings(numbers: Range<u64>, device: &Device) -> Result<LabelledGraphs, GraphError> {
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
    let mut graphs = batch(numbers.map(|_| &ring))?;
    let x = Tensor::<2>::from_data(TensorData::new(x, [labels.len() * NODES, 2]), device);
    graphs.nodes_mut("_N")?.insert("x", x)?;
    Ok(LabelledGraphs { graphs, labels })
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let batches = |numbers: Range<u64>| -> Result<Vec<_>, GraphError> {
        numbers.step_by(80).map(|first| rings(first..first + 80, &device)).collect()
    };
    let (train, test) = (batches(0..800)?, batches(1000..1240)?);
    let config = GinConfig::new(2, 2).with_hidden(32).with_num_layers(2);
    let model = seeded(0, || config.init(&device.clone().autodiff()));
    let settings = FitConfig::new()
        .with_epochs(10)
        .with_lr(0.005)
        .on_epoch(|epoch| println!("epoch {}  {epoch}", epoch.epoch));
    let trained = fit(model, &GraphTask, &train, &(), &settings)?; // `()`: no validation
    let test = evaluate(&trained.model, &GraphTask, &test)?;
    println!("test accuracy {:.1} %", 100.0 * test.accuracy());
    Ok(())
}
