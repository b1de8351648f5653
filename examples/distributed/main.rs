//! Trains GraphSAGE by sampled mini-batches on a partitioned graph; losses are those of one machine.
//!
//! ```sh
//! cargo run --release --example distributed                     # two threads
//! cargo build --release --features mpi --example distributed
//! mpirun -n 2 target/release/examples/distributed               # two processes
//! ```

use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_gnn::dist::*;
use burn_gnn::models::{Counts, Rows};
use burn_gnn::prelude::*;

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
    let (comm, device) = (&**g.comm(), Device::flex().autodiff());
    let loader = |mask| -> Result<_, DistError> {
        let seeds = g.node_split("paper", SplitOf::Mask(mask), SplitBy::Owner)?;
        let features = DistFeatures::new(g).with_nodes("paper", "x")?.with_labels("paper", "y")?;
        let sampler = DistSampler::new(g, [10, 10])?;
        Ok(Loader::new(sampler, g.split_seeds("paper", &seeds)?, 32)?.with_features(features))
    };
    let (train, test) = (loader("train_mask")?, loader("test_mask")?);
    let report = |line: String| (comm.rank() == 0).then(|| println!("{line}"));
    let config = SageConfig::new(1433, 7).with_hidden(64).with_dropout(0.5);
    let mut model = seeded(0, || config.init(&device));
    let mut optimizer = AdamConfig::new().init();
    for epoch in 0..20 {
        let mut sum = [0.0];
        for batch in train.epoch(epoch) {
            let batch = batch?;
            let (x, labels) = (Tensor::from_inner(batch.x("paper")?), batch.labels("paper")?);
            let rows = Rows::of_batch(batch.batch.seed_rows("paper"), labels, batch.global_seeds)?;
            let loss = rows.cross_entropy(model.forward_blocks(&batch.batch.mini.blocks, x));
            sum[0] += loss.clone().into_scalar::<f64>() * rows.total as f64;
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            let gradients = all_reduce_gradients(comm, &model, gradients)?;
            model = optimizer.step(0.01, model, gradients);
        }
        comm.all_reduce("loss", &mut sum)?;
        report(format!("epoch {epoch:>2}  loss {:.5}", sum[0] / train.seeds().total() as f64));
    }
    let mut counts = [0.0; 2]; // correct test papers, and all
    for batch in test.epoch(0) {
        let batch = batch?;
        let (x, labels) = (batch.x("paper")?, batch.labels("paper")?);
        let rows = Rows::of_batch(batch.batch.seed_rows("paper"), labels, batch.global_seeds)?;
        let found = Counts::new(&model.valid().forward_blocks(&batch.batch.mini.blocks, x), &rows);
        counts = [counts[0] + found.correct, counts[1] + found.rows];
    }
    comm.all_reduce("accuracy", &mut counts)?;
    report(format!("test accuracy {:.1} %", 100.0 * counts[0] / counts[1]));
    Ok(())
}
