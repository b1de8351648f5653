//! Measures one partitioning with its files: time, edge cut, balance and peak memory.
//!
//! Methods: `metis` (its own settings, node types balanced), `metis-plain` (types not balanced), `metis-fast` (DGL's
//! settings of METIS), `metis-edges` (in-edges balanced too), `random`, `ldg`, `fennel`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_gnn::dist::{MetisEffort, PartitionConfig, PartitionMethod, partition_graph};
use serde_json::json;

use crate::measure::{Entry, cpu_time, emit, memory_mb};
use crate::training::sampling;

pub(crate) const METHODS: [&str; 7] =
    ["metis", "metis-plain", "metis-fast", "metis-edges", "random", "ldg", "fennel"];

pub(crate) fn run(name: &str, parts: usize, method: &str) -> Result<()> {
    let (mut g, target, task) = sampling::graph(name)?;
    let (device, n) = (Device::flex(), task.labels.len());
    // As in the script for DGL: features of the target, and for homogeneous graphs also labels and
    // the training mask.
    let frame = g.nodes_mut(target)?;
    frame.insert(
        "feat",
        Tensor::<2>::from_data(TensorData::new(task.features, [n, task.width]), &device),
    )?;
    if target == "_N" {
        let mut train = vec![false; n];
        task.train.iter().for_each(|&v| train[v as usize] = true);
        frame.insert(
            "label",
            Tensor::<1, Int>::from_data(TensorData::new(task.labels, [n]), &device),
        )?;
        frame.insert(
            "train_mask",
            Tensor::<1, Bool>::from_data(TensorData::new(train, [n]), &device),
        )?;
    }
    let config = PartitionConfig::new(name, parts);
    let config = match method {
        "metis" => config,
        "metis-plain" => config.with_balance_ntypes(false),
        "metis-fast" => config.with_effort(MetisEffort::Fast),
        "metis-edges" => config.with_balance_edges(true),
        "random" => config.with_method(PartitionMethod::Random),
        "ldg" => config.with_method(PartitionMethod::Ldg { passes: 10 }),
        "fennel" => config.with_method(PartitionMethod::Fennel { passes: 10 }),
        other => bail!("no method `{other}`; there are {}", METHODS.join(", ")),
    };
    let dir = tempfile::tempdir().context("creating a temporary folder")?;
    let before = memory_mb().0;
    let (cpu, wall) = (cpu_time(), Instant::now());
    let cut = partition_graph(&g, &config)?;
    let assigned = wall.elapsed().as_secs_f64();
    cut.write(&dir)?;
    let (cpu, wall) = (cpu_time() - cpu, wall.elapsed().as_secs_f64());
    let peak = memory_mb().1;
    let table = cut.table()?;
    let round = |x: f64, by: f64| (x * by).round() / by;
    let more = [
        ("wall_s", json!(round(wall, 100.0))),
        ("cpu_s", json!(round(cpu, 100.0))),
        ("partition_s", json!(round(assigned, 100.0))),
        ("edges", json!(g.total_edges())),
        ("cut", json!(cut.edge_cut())),
        ("cut_share", json!(round(table.cut_share(), 1e4))),
        ("balance", json!(round(table.node_balance(), 1e3))),
        ("edge_balance", json!(round(table.edge_balance(), 1e3))),
        ("halo", json!(table.total().halo)),
        ("rss_before_mb", json!(before.round())),
        ("peak_mb", json!(peak.round())),
        ("disk_mb", json!(round(size(dir.path())? as f64 / f64::from(1 << 20), 10.0))),
    ];
    emit(Entry { group: "partition", graph: name, op: &format!("{method}.{parts}") }, None, &more);
    Ok(())
}

/// Bytes of all files in a folder and those in it.
fn size(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() { size(&entry.path())? } else { meta.len() };
    }
    Ok(sum)
}
