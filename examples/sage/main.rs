//! Trains GraphSAGE on sampled mini-batches of the citation graph Cora.
//!
//! `h_v' = relu( W_self h_v + W_neigh · mean over sampled u in N(v) of h_u )` (Hamilton, Ying, Leskovec, NeurIPS 2017)
//!
//! ```sh
//! cargo run --release --example sage
//! ```
//!
//! Workers sample batches and gather their features while the model trains. Seconds; 82 % of the test papers.

use std::error::Error;

use burn::tensor::Device;
use burn_gnn::graph::GraphError;
use burn_gnn::prelude::*;
use burn_gnn::sampling::RowType;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let cora = load_dataset(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cora"))?;
    let (g, x, split) =
        (&cora.graph, cora.features["paper"].row_normalized(), &cora.splits["public"]);
    println!("{g}");

    // At most ten in-edges of each seed, and ten of each of their sources; features are gathered per batch.
    let rows = MemoryRows::new(&x.try_to_dense()?, x.cols(), RowType::F32)?;
    let features = GraphFeatures::new(g, &device)
        .with_nodes("paper", rows)?
        .with_labels("paper", &cora.labels)?;
    let loader = |papers: &[u32]| -> Result<_, GraphError> {
        let seeds = Seeds::nodes(g, [("paper", papers)])?;
        let loader = Loader::new(NeighborSampler::new(g, [10, 10])?, seeds, 32)?;
        Ok(loader.with_features(features.clone()))
    };

    let config = SageConfig::new(x.cols(), cora.num_classes).with_hidden(64).with_dropout(0.5);
    let model = seeded(0, || config.init(&device.clone().autodiff()));
    let settings = FitConfig::new()
        .with_epochs(20)
        .with_weight_decay(5e-4)
        .on_epoch(|epoch| println!("epoch {:>2}  {epoch}", epoch.epoch));
    let (train, val) = (loader(&split.train)?, loader(&split.val)?);
    let trained = fit(model, &SeedTask::classes("paper"), &train, &val, &settings)?;

    // All nodes from all of their neighbours, layer by layer, in bounded memory.
    let logits = infer(&trained.model, g, x.to_tensor(&device)?, "paper", &InferenceConfig::new())?;
    println!("test accuracy {:.1} %", 100.0 * accuracy(logits, &cora.labels, &split.test));
    Ok(())
}
