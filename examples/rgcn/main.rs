//! Trains an R-GCN on a heterogeneous graph in two parts, a rank for each; losses are those of one machine.
//!
//! `h_v' = relu( Σ_r 1/|N_r(v)| Σ_{u in N_r(v)} W_r h_u + W_0 h_v )` (Schlichtkrull et al., ESWC 2018)
//!
//! ```sh
//! cargo run --release --example rgcn
//! ```
//!
//! Predicts the category of crates from their keywords, authors and licences, beside the same model without the graph.

use std::{error::Error, sync::Arc};

use burn::optim::{AdamConfig, GradientsParams, decay::WeightDecayConfig};
use burn::tensor::Device;
use burn_gnn::data::crates_graph;
use burn_gnn::dist::*;
use burn_gnn::models::{NoSync, NodeClassifier, NodeTask, evaluate, majority_class};
use burn_gnn::prelude::*;
use burn_gnn::ranks::{RankSync, gather_model};

fn main() -> Result<(), Box<dyn Error>> {
    let data = crates_graph();
    let g = data.to_graph(&Device::flex())?.with_inverse_relations("-inv")?;
    let parts = partition_graph(&g, &PartitionConfig::new("crates", 2))?;
    println!("{g}\n{}", parts.table()?);
    let percent = |g: &Graph, parts: &PartitionedGraph| -> Result<f64, Box<dyn Error>> {
        let train = |comm| train(parts, comm, data.num_classes).map_err(|e| e.to_string());
        let model = run_ranks(parts.book().num_parts(), train)?.swap_remove(0);
        let task = NodeTask::from_columns(g, "crate")?;
        Ok(100.0 * evaluate(&model, &task, &task.test, &NoSync).accuracy())
    };
    println!("test accuracy      {:.1} %", percent(&g, &parts)?);
    let mut bare = g.clone();
    for etype in g.schema().etypes() {
        let all: Vec<u32> = (0..g.num_edges(etype)? as u32).collect();
        bare = bare.remove_edges(etype, &all)?.graph;
    }
    let whole = partition_graph(&bare, &PartitionConfig::new("nodes", 1))?;
    println!("without the graph  {:.1} %", percent(&bare, &whole)?);
    let task = NodeTask::from_columns(&g, "crate")?;
    let most_common = majority_class(&task.train, &task.test, data.num_classes);
    println!("majority class     {:.1} %", 100.0 * most_common.1);
    Ok(())
}

/// One rank: the model of the whole graph, learned on its part.
fn train(
    parts: &PartitionedGraph,
    comm: Arc<dyn Communicator>,
    num_classes: usize,
) -> Result<Rgcn, Box<dyn Error>> {
    let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), &Device::flex())?;
    let task = NodeTask::on_ranks(&part, "crate", &RankSync::new(comm.clone()))?;
    let config = RgcnConfig::new(num_classes).with_hidden(64).with_dropout(0.5);
    let device = Device::flex().autodiff();
    let mut model = seeded(0, || config.init(&part, task.inputs(), &device));
    let decay = WeightDecayConfig::new(5e-4);
    let mut optimizer = AdamConfig::new().with_weight_decay(Some(decay)).init();
    for epoch in 0..50 {
        // Rows of neighbours in the other part come from their rank, and their gradients go back to it.
        let logits = model.logits(&part.at_step(0, epoch), &task.features, &task.target);
        let loss = task.train.cross_entropy(logits);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        // Learned node embeddings belong to the rank that owns the node; all other parameters are the same everywhere.
        let own = |path: &str| path.starts_with("embedding");
        let gradients = all_reduce_gradients_except(&*comm, &model, gradients, own)?;
        model = optimizer.step(0.01, model, gradients);
    }
    Ok(gather_model(&part, model)?)
}
