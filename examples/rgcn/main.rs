//! Trains an R-GCN on a heterogeneous graph in two parts, a rank for each; losses are those of one machine.
//!
//! `h_v' = relu( Σ_r 1/|N_r(v)| Σ_{u in N_r(v)} W_r h_u + W_0 h_v )` (Schlichtkrull et al., ESWC 2018)
//!
//! ```sh
//! cargo run --release --example rgcn
//! ```
//!
//! Predicts the category of crates from their keywords, authors and licences, and compares the accuracy with that of
//! the same model without edges and with that of the most frequent class.

use std::error::Error;

use burn::tensor::Device;
use burn_gnn::data::crates_graph;
use burn_gnn::dist::{PartitionConfig, partition_graph};
use burn_gnn::models::{ModelError, Trained, majority_class};
use burn_gnn::prelude::*;
use burn_gnn::ranks::fit_parts;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let data = crates_graph();
    let g = data.to_graph(&device)?.with_inverse_relations("-inv")?;
    let nodes = g.schema().ntypes().iter().zip(g.node_counts());
    let nodes: Vec<String> = nodes.map(|(ntype, count)| format!("{count} {ntype}")).collect();
    let (edges, etypes) = (g.total_edges(), g.schema().etypes().len());
    println!("nodes: {}; {edges} edges of {etypes} types", nodes.join(", "));
    let mut no_edges = g.clone();
    for etype in g.schema().etypes() {
        let all: Vec<u32> = (0..g.num_edges(etype)? as u32).collect();
        no_edges = no_edges.remove_edges(etype, &all)?.graph;
    }

    println!("\nR-GCN on two parts");
    let with_edges = train_on_parts(&g, 2, data.num_classes)?;
    println!("\nthe same model without edges");
    let without = train_on_parts(&no_edges, 1, data.num_classes)?;

    let task = NodeTask::from_columns(&g, "crate")?;
    let most_frequent = majority_class(&task.train, &task.test, data.num_classes);
    let percent = |trained: &Trained<Rgcn>, g: &Graph| -> Result<f64, ModelError> {
        let task = NodeTask::from_columns(g, "crate")?;
        Ok(100.0 * evaluate(&trained.model, &task, &task.test)?.accuracy())
    };
    let (first, second) = (percent(&with_edges, &g)?, percent(&without, &no_edges)?);
    println!("\naccuracy on test nodes, of the epoch that is best on validation nodes");
    println!("  R-GCN on two parts      {first:.1} %  (epoch {})", with_edges.kept_epoch);
    println!("  the same without edges  {second:.1} %  (epoch {})", without.kept_epoch);
    println!("  most frequent class     {:.1} %", 100.0 * most_frequent.1);
    Ok(())
}

/// Partitions a graph with METIS and trains a model with a rank per part.
fn train_on_parts(
    g: &Graph,
    num_parts: usize,
    num_classes: usize,
) -> Result<Trained<Rgcn>, Box<dyn Error>> {
    let parts = partition_graph(g, &PartitionConfig::new("crates", num_parts))?;
    for (i, part) in parts.table()?.parts.iter().enumerate().filter(|(_, p)| p.edges > 0) {
        let (nodes, edges, cut) = (part.nodes, part.edges, part.cut);
        println!("  part {i}: {nodes} nodes, {edges} edges, {cut} of them from the other part");
    }
    let model = RgcnConfig::new(num_classes).with_hidden(64).with_dropout(0.5);
    let config = FitConfig::new().with_epochs(50).with_weight_decay(5e-4).on_epoch(|epoch| {
        if epoch.epoch % 10 == 0 {
            println!("  epoch {:>2}  {epoch}", epoch.epoch);
        }
    });
    // Features of nodes that another rank owns are received from it, and their gradients are sent back.
    let build =
        |task: &NodeTask<'_, _>, device: &Device| model.try_init(task.graph, task.inputs(), device);
    Ok(fit_parts(num_parts, |rank| parts.part(rank), "crate", &config, &Device::flex(), build)?)
}
