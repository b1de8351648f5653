//! Trains GraphSAGE by sampled mini-batches on a partitioned graph.
//!
//! Ranks are threads, or processes under `mpirun`.
//!
//! ```sh
//! cargo run --release --example distributed                     # two threads
//! cargo build --release --features mpi --example distributed
//! mpirun -n 2 target/release/examples/distributed               # two processes
//! ```
//!
//! Rank 0 reads and partitions the graph; each rank then holds only its part, and losses are those of one machine.

use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_gnn::dist::*;
use burn_gnn::graph::GraphError;
use burn_gnn::models::{Counts, Rows};
use burn_gnn::prelude::*;
use burn_gnn::sampling::{Block, LoadedBatch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("burn-gnn-parts-{}", std::process::id()));
    launch(2, |comm| {
        let index = on_first_rank(&*comm, || {
            let cora = load_dataset(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cora"))?;
            let parts = partition_graph(
                &cora.to_graph(&Device::flex())?,
                &PartitionConfig::new("cora", comm.size()),
            )?;
            println!("{}", parts.table()?);
            Ok(parts.write(&dir)?)
        })?;
        train(&DistGraph::open("cora", &index, comm)?)
    })?;
    std::fs::remove_dir_all(&dir).ok(); // only the first process has written one
    Ok(())
}

fn train(g: &DistGraph) -> Result<(), Box<dyn std::error::Error>> {
    let (comm, device) = (&**g.comm(), Device::flex().autodiff());
    let loader = |mask| -> Result<_, DistError> {
        let seeds = g.node_split("paper", SplitOf::Mask(mask), SplitBy::Owner)?;
        let features = DistFeatures::new(g).with_nodes("paper", "x")?.with_labels("paper", "y")?;
        let loader =
            Loader::new(DistSampler::new(g, [10, 10])?, g.split_seeds("paper", &seeds)?, 32)?;
        Ok((seeds.total() as f64, loader.with_features(features)))
    };
    let ((num_train, train), (num_test, test)) = (loader("train_mask")?, loader("test_mask")?);
    let mut model =
        seeded(0, || SageConfig::new(1433, 7).with_hidden(64).with_dropout(0.5).init(&device));
    let mut optimizer = AdamConfig::new().init();
    for epoch in 0..20 {
        let mut sums = [0.0; 2]; // of losses, and of correct test papers
        for batch in train.epoch(epoch) {
            let (blocks, x, rows) = parts_of(batch?)?;
            let loss = rows.cross_entropy(model.forward_blocks(&blocks, Tensor::from_inner(x)));
            sums[0] += loss.clone().into_scalar::<f64>() * rows.total as f64;
            let gradients = all_reduce_gradients(
                comm,
                &model,
                GradientsParams::from_grads(loss.backward(), &model),
            )?;
            model = optimizer.step(0.01, model, gradients);
        }
        for batch in test.epoch(0) {
            let (blocks, x, rows) = parts_of(batch?)?;
            sums[1] +=
                100.0 * Counts::new(&model.valid().forward_blocks(&blocks, x), &rows).correct;
        }
        comm.all_reduce("epoch", &mut sums)?;
        if comm.rank() == 0 {
            println!(
                "epoch {epoch:>2}  loss {:.5}  test accuracy {:.1} %",
                sums[0] / num_train,
                sums[1] / num_test
            );
        }
    }
    Ok(())
}

/// Blocks, features of their input nodes, and the own seeds of a batch, whose loss is a mean over those of all ranks.
fn parts_of(
    batch: LoadedBatch<DistBatch, u64>,
) -> Result<(Vec<Block>, Tensor<2>, Rows), GraphError> {
    let (x, labels) =
        (batch.x("paper")?, batch.labels("paper")?.into_data().iter::<u32>().collect());
    let index = batch.batch.seed_rows("paper").into();
    Ok((batch.batch.mini.blocks, x, Rows { index, labels, total: batch.global_seeds }))
}
