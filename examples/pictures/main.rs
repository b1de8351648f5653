//! Draws the pictures of the README and of the book into `docs/img`.
//!
//! ```sh
//! cargo run --release --features plot --example pictures
//! ```

use std::error::Error;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn::data::{crates_graph, karate_club};
use burn_gnn::dist::{PartitionConfig, partition_graph};
use burn_gnn::graph::{Drawing, GraphError, Relabel};
use burn_gnn::models::plot::{learning_curves, write_svg};
use burn_gnn::models::{FitConfig, NodeTask, fit};
use burn_gnn::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/img");
    std::fs::write(dir.join("graph.svg"), neighbours_of_a_crate()?)?;
    std::fs::write(dir.join("partition.svg"), partition_of_the_club()?)?;
    draw_learning_curve(&dir.join("learning-curve.svg"))
}

/// A crate with its keywords, authors and licences, and the crates that depend on it.
pub(crate) fn neighbours_of_a_crate() -> Result<String, Box<dyn Error>> {
    let etypes = ["depends", "has_keyword", "written_by", "licensed_under"];
    let g = crates_graph().graph.edge_type_subgraph(etypes)?;
    // The first crate that six others depend on.
    let dependents = g.relation("depends")?.in_degrees();
    let center = dependents.take(g.num_nodes("crate")?).position(|n| n == 6).unwrap_or(0) as u32;
    let both_ways = g.with_inverse_relations("-inv")?;
    let around = both_ways.khop_in_subgraph([("crate", [center])], 1)?;
    let ids = |ntype: &String| Ok((ntype.clone(), around.subgraph.original_nodes(ntype)?.to_vec()));
    let ids: Result<Vec<_>, GraphError> = g.schema().ntypes().iter().map(ids).collect();
    let drawn = g.node_subgraph(ids?, Relabel::Yes)?.graph;
    let drawing = Drawing::new(&drawn)?
        .with_title("A crate, its keywords, authors and licences, and the crates that depend on it")
        .with_highlighted("crate", &around.seeds[drawn.schema().ntype("crate")?])?;
    Ok(drawing.to_svg())
}

/// Zachary's karate club in three parts.
pub(crate) fn partition_of_the_club() -> Result<String, Box<dyn Error>> {
    let g = karate_club().graph;
    let parts = partition_graph(&g, &PartitionConfig::new("karate", 3))?;
    let drawing = Drawing::new(&g)?
        .with_title("Zachary's karate club in three parts by METIS")
        .with_groups("_N", parts.assignment("_N"))?;
    Ok(drawing.to_svg())
}

/// An R-GCN on the crates graph.
fn draw_learning_curve(path: &Path) -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    let data = crates_graph();
    let g = data.to_graph(&device)?.with_inverse_relations("-inv")?;
    let task = NodeTask::from_columns(&g, "crate")?;
    let config = RgcnConfig::new(data.num_classes).with_hidden(64).with_dropout(0.5);
    let model = seeded(0, || config.init(&g, task.inputs(), &device.clone().autodiff()));
    let settings = FitConfig::new().with_epochs(50).with_weight_decay(5e-4);
    let trained = fit(model, &task, &task.train, &task.val, &settings)?;
    write_svg(path, "R-GCN on the crates graph", &learning_curves(&trained.history))?;
    Ok(())
}
