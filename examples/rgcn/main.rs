//! Trains an R-GCN on a heterogeneous graph in two parts, a rank for each.
//!
//! Losses are those of one machine.
//!
//! `h_v' = relu( Σ_r 1/|N_r(v)| Σ_{u in N_r(v)} W_r h_u + W_0 h_v )` (Schlichtkrull et al., ESWC 2018)
//!
//! ```sh
//! cargo run --release --example rgcn
//! ```
//!
//! The graph: crates that this project depends on, with their keywords, authors and licences. Predicted is the top
//! level of a crate's first category. The same model without the graph, and the most common class, are what to compare
//! with.

use std::error::Error;
use std::sync::Arc;

use burn::optim::{AdamConfig, GradientsParams, decay::WeightDecayConfig};
use burn::tensor::Device;
use burn_gnn::data::crates_graph;
use burn_gnn::dist::{
    Communicator, LocalPartition, PartitionConfig, PartitionedGraph, all_reduce_gradients_except,
    partition_graph, run_ranks,
};
use burn_gnn::models::{NoSync, NodeClassifier, NodeTask, evaluate, majority_class};
use burn_gnn::prelude::*;
use burn_gnn::ranks::{RankSync, gather_model};

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let data = crates_graph();
    let g = data.to_graph(&device)?.with_inverse_relations("-inv")?;
    println!("{g}");
    let parts = partition_graph(&g, &PartitionConfig::new("crates", 2))?;
    println!("{}", parts.table()?);

    let config = RgcnConfig::new(data.num_classes).with_hidden(64).with_dropout(0.5);
    let mut ranks =
        run_ranks(2, |comm| train(&parts, comm, &config, &device).map_err(|e| e.to_string()))?;
    let task = NodeTask::from_columns(&g, "crate")?;
    let percent = |model: &Rgcn, task: &NodeTask<'_, Graph>| {
        100.0 * evaluate(model, task, &task.test, &NoSync).accuracy()
    };
    println!("test accuracy      {:.1} %", percent(&ranks.swap_remove(0), &task));
    let mut bare = g.clone();
    for etype in g.schema().etypes() {
        bare =
            bare.remove_edges(etype, &(0..g.num_edges(etype)? as u32).collect::<Vec<_>>())?.graph;
    }
    let alone = partition_graph(&bare, &PartitionConfig::new("nodes", 1))?;
    let mut alone =
        run_ranks(1, |comm| train(&alone, comm, &config, &device).map_err(|e| e.to_string()))?;
    println!(
        "without the graph  {:.1} %",
        percent(&alone.swap_remove(0), &NodeTask::from_columns(&bare, "crate")?)
    );
    println!(
        "majority class     {:.1} %",
        100.0 * majority_class(&task.train, &task.test, data.num_classes).1
    );
    Ok(())
}

/// One rank: the model of the whole graph, learned on its part.
fn train(
    parts: &PartitionedGraph,
    comm: Arc<dyn Communicator>,
    config: &RgcnConfig,
    device: &Device,
) -> Result<Rgcn, Box<dyn Error>> {
    let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), device)?;
    let task = NodeTask::on_ranks(&part, "crate", &RankSync::new(comm.clone()))?;
    let mut model = seeded(0, || config.init(&part, task.inputs(), &device.clone().autodiff()));
    let mut optimizer =
        AdamConfig::new().with_weight_decay(Some(WeightDecayConfig::new(5e-4))).init();
    for epoch in 0..50 {
        // Rows of neighbours in the other part come from their rank, and their gradients go back to it.
        let logits = model.logits(&part.at_step(0, epoch), &task.features, &task.target);
        let loss = task.train.cross_entropy(logits);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        // Learned node embeddings belong to the rank that owns the node; all other parameters are the same everywhere.
        let gradients = all_reduce_gradients_except(&*comm, &model, gradients, |path| {
            path.starts_with("embedding")
        })?;
        model = optimizer.step(0.01, model, gradients);
    }
    Ok(gather_model(&part, model)?)
}
