//! Trains GraphSAGE by sampled mini-batches on a partitioned graph; losses are those of one machine.
//!
//! ```sh
//! cargo run --release --example distributed                     # two threads
//! cargo build --release --features mpi --example distributed
//! mpirun -n 2 target/release/examples/distributed               # two processes
//! ```

use burn::tensor::Device;
use burn_gnn::dist::*;
use burn_gnn::models::{evaluate_on_ranks, fit_on_ranks};
use burn_gnn::prelude::*;
use burn_gnn::ranks::RankSync;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("burn-gnn-parts-{}", std::process::id()));
    launch(2, |comm| {
        let index = on_first_rank(&*comm, || {
            let cora = load_dataset(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cora"))?;
            let g = cora.to_graph(&Device::flex())?;
            let parts = partition_graph(&g, &PartitionConfig::new("cora", comm.size()))?;
            println!("{}", parts.table()?);
            Ok(parts.write(&dir)?)
        })?;
        train(&DistGraph::open("cora", &index, comm)?)
    })?;
    std::fs::remove_dir_all(&dir).ok(); // only the first process has written one
    Ok(())
}

fn train(g: &DistGraph) -> Result<(), Box<dyn std::error::Error>> {
    let loader = |mask| -> Result<_, DistError> {
        let seeds = g.node_split("paper", SplitOf::Mask(mask), SplitBy::Owner)?;
        let features = DistFeatures::new(g).with_nodes("paper", "x")?.with_labels("paper", "y")?;
        let sampler = DistSampler::new(g, [10, 10])?;
        Ok(Loader::new(sampler, g.split_seeds("paper", &seeds)?, 32)?.with_features(features))
    };
    let (task, ranks) = (SeedTask::classes("paper"), RankSync::new(g.comm().clone()));
    let is_first = g.comm().rank() == 0;
    let settings = FitConfig::new().with_epochs(20).on_epoch(move |epoch| {
        if is_first {
            println!("epoch {:>2}  {epoch}", epoch.epoch);
        }
    });
    let config = SageConfig::new(1433, 7).with_hidden(64).with_dropout(0.5);
    let model = seeded(0, || config.init(&Device::flex().autodiff())); // the same on all ranks
    let (train, val) = (loader("train_mask")?, loader("val_mask")?);
    let trained = fit_on_ranks(model, &task, &train, &val, &settings, &ranks)?;
    let test = evaluate_on_ranks(&trained.model, &task, &loader("test_mask")?, &ranks)?;
    if is_first {
        println!("test accuracy {:.1} %", 100.0 * test.accuracy());
    }
    Ok(())
}
