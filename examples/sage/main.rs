//! Trains GraphSAGE on sampled mini-batches of the citation graph Cora.
//!
//! `h_v' = relu( W_self h_v + W_neigh · mean over sampled u in N(v) of h_u )` (Hamilton, Ying, Leskovec, NeurIPS 2017)
//!
//! ```sh
//! cargo run --release --example sage
//! ```
//!
//! Workers sample batches and gather their features while the model trains. A second; 81 % of the test papers.

use std::error::Error;

use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, decay::WeightDecayConfig};
use burn::tensor::Device;
use burn_gnn::prelude::*;
use burn_gnn::sampling::RowType;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let cora = load_dataset(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cora"))?;
    let (g, features, split) =
        (&cora.graph, cora.features["paper"].row_normalized(), &cora.splits["public"]);
    println!("{g}");

    // At most ten in-edges of each seed, and ten of each of their sources; features stay on the CPU and are gathered
    // per batch.
    let sampler = NeighborSampler::new(g, [10, 10])?;
    let rows = MemoryRows::new(&features.try_to_dense()?, features.cols(), RowType::F32)?;
    let rows = GraphFeatures::new(g, &device.clone().autodiff()).with_nodes("paper", rows)?;
    let loader = Loader::new(sampler, Seeds::nodes(g, [("paper", &split.train)])?, 32)?
        .with_features(rows)
        .with_workers(1);

    let config =
        SageConfig::new(features.cols(), cora.num_classes).with_hidden(64).with_dropout(0.5);
    let mut model = seeded(0, || config.init(&device.clone().autodiff()));
    let mut optimizer =
        AdamConfig::new().with_weight_decay(Some(WeightDecayConfig::new(5e-4))).init();
    for epoch in 0..20 {
        let mut sum = 0.0;
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            let logits = model.forward_blocks(&batch.batch.blocks, batch.x("paper")?); // from all nodes of the batch
            let labels: Vec<i64> =
                batch.seeds("paper")?.iter().map(|&v| cora.labels[v as usize]).collect();
            let loss = cross_entropy(logits, &labels, ..);
            sum += loss.clone().into_scalar::<f64>() * labels.len() as f64;
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(0.01, model, gradients);
        }
        println!("epoch {epoch:>2}  loss {:.4}", sum / split.train.len() as f64);
    }

    // All nodes from all of their neighbours, layer by layer, in bounded memory.
    let logits =
        infer(&model.valid(), g, features.to_tensor(&device)?, "paper", &InferenceConfig::new())?;
    println!("test accuracy {:.1} %", 100.0 * accuracy(logits, &cora.labels, &split.test));
    Ok(())
}
