//! Measures reading tables of ten million weighted edges, beside `wc -l` on the same file.

use std::io::Write;
use std::process::Command;

use anyhow::{Result, ensure};
use burn::tensor::Device;
use burn_gnn::data::{Builder, Decoder};
use serde_json::json;

use crate::measure::{Entry, Times, emit};

const EDGES: i64 = 10_000_000;
const NODES: i64 = 1_000_003;
const RUNS: usize = 3;

pub(crate) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (nodes, edges) = (folder.path().join("nodes"), folder.path().join("edges"));
    // Ids of nodes in no order.
    write(&nodes, "id:int64", NODES, |i| (i * 1_000_000_007 % NODES).to_string())?;
    write(&edges, "src_id:int64\tdst_id:int64\tweight:float", EDGES, |i| {
        format!("{}\t{}\t0.{:03}", i * 2_654_435_761 % NODES, i * 40_503 % 999_983, i % 1000)
    })?;
    let bytes = std::fs::metadata(&edges)?.len() + std::fs::metadata(&nodes)?.len();
    let (mut ours, mut lines) = (Times::default(), Times::default());
    for _ in 0..RUNS {
        let mut counted = Ok(());
        let took = Times::one(|| counted = count_lines(&edges));
        counted?;
        lines.add(&took, 1);
        let mut total = Ok(0);
        let took = Times::one(|| {
            let tables = Builder::new().node(&nodes, "a", Decoder::new()).edge(
                &edges,
                ("a", "r", "a"),
                Decoder::new().weighted(),
                true,
            );
            total = tables.build(&Device::flex()).map(|g| g.total_edges());
        });
        ensure!(total? == EDGES as usize, "edges were lost");
        ours.add(&took, 1);
    }
    let per_s = |n: f64| (n / ours.least_ms() * 1e3).round();
    let more = [
        ("rows_per_s", json!(per_s((EDGES + NODES) as f64))),
        ("bytes_per_s", json!(per_s(bytes as f64))),
        ("wc_min_ms", json!(lines.least_ms())),
    ];
    emit(Entry { group: "tables", graph: "ten-million", op: "build" }, Some(&ours), &more);
    Ok(())
}

fn write(
    path: &std::path::Path,
    header: &str,
    rows: i64,
    row: impl Fn(i64) -> String,
) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{header}")?;
    for i in 0..rows {
        writeln!(file, "{}", row(i))?;
    }
    Ok(file.flush()?)
}

fn count_lines(path: &std::path::Path) -> Result<()> {
    ensure!(Command::new("wc").arg("-l").arg(path).output()?.status.success(), "wc failed");
    Ok(())
}
