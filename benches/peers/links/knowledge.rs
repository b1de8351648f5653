//! Measures epochs of embeddings of knowledge graphs: all answers of a query against all entities.
//!
//! `benches/links/kge.py` trains the same models in PyKEEN.

use std::path::Path;

use anyhow::{Context, Result};
use burn_gnn::data::load_knowledge_graph;
use burn_gnn::links::{KgeConfig, KgeOptimizer, KgeTraining, KvsAllObjective, train_kge};
use serde_json::json;

use crate::measure::{Entry, Times, cpu_time, device, emit, memory_mb};

/// Epochs, of which the first one is not measured.
const EPOCHS: usize = 4;

/// Trains the decoder `kind` of `d` numbers per entity, with reciprocal relations, binary cross entropy and Adam.
pub(crate) fn run(folder: &Path, kind: &str, d: usize, batch: usize) -> Result<()> {
    let mut kg = load_knowledge_graph(folder)?;
    (kg.valid, kg.test) = (vec![], vec![]);
    let kind = serde_json::from_value(json!(kind)).with_context(|| format!("decoder `{kind}`"))?;
    let training = KgeTraining::KvsAll { objective: KvsAllObjective::Bce, answer_power: 0.0 };
    let config = KgeConfig {
        d,
        batch,
        training,
        epochs: EPOCHS,
        optimizer: KgeOptimizer::Adam,
        lr: 1e-3,
        ..KgeConfig::new(kind)
    };
    let (mut times, mut cpu) = (Times::default(), cpu_time());
    train_kge(&kg, &config, &device(), |epoch| {
        let now = cpu_time();
        if epoch.epoch > 1 {
            times.put(epoch.seconds, now - cpu);
        }
        cpu = now;
    })?;
    let more = [
        ("dim", json!(d)),
        ("batch", json!(batch)),
        ("triples", json!(kg.train.len())),
        ("peak_mb", json!(memory_mb().1.round())),
    ];
    let op = format!("{kind:?}").to_lowercase();
    emit(Entry { group: "knowledge", graph: &kg.name, op: &op }, Some(&times), &more);
    Ok(())
}
