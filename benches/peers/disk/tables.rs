//! Measures reading tables of ten million weighted edges, compared with `wc -l` on the same file, and CSV, Parquet and
//! Matrix Market files compared with pandas and SciPy.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn::data::{
    Builder, Csv, DataError, Decoder, load_matrix_market, read_edges, write_edge_table,
};
use burn_gnn::graph::{Graph, Ids};
use serde_json::json;

use crate::measure::{Entry, Times, emit};

const EDGES: i64 = 10_000_000;
const NODES: i64 = 1_000_003;
const RUNS: usize = 3;

/// Reads tables of GraphLearn's format, and CSV, Parquet and Matrix Market files. With the interpreter `python`, whose
/// environment has pandas, pyarrow and SciPy, these read the same files in turns.
pub(crate) fn run(python: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    readers(folder.path(), python)?;
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

/// Prints the CPU time of a statement that reads the file `f`, in milliseconds.
const PEER: &str = "import sys, time, pandas, pyarrow.parquet, scipy.io\nf = sys.argv[1]\nt = time.process_time()\n";

fn readers(folder: &Path, python: Option<&str>) -> Result<()> {
    const ROWS: i64 = 1_500_000;
    let [csv, parquet, matrix] = ["edges.csv", "edges.parquet", "m.mtx"].map(|f| folder.join(f));
    write(&csv, "src_id,dst_id,weight,timestamp", ROWS, |i| {
        let (src, dst) = (i * 2_654_435_761 % NODES, i * 40_503 % 999_983);
        format!(
            "{src},{dst},0.{:04},{}",
            i * 7919 % 10_000,
            1_300_000_000 + i * 104_729 % 400_000_000
        )
    })?;
    let head = format!("%%MatrixMarket matrix coordinate real general\n{NODES} {NODES} {ROWS}");
    write(&matrix, &head, ROWS, |i| {
        let (row, column) = (1 + i * 2_654_435_761 % NODES, 1 + i * 40_503 % 999_983);
        format!("{row} {column} {:E}", (i * 7919 % 1_000_003) as f64 / 1e6)
    })?;
    let names = Csv::default().with_weight("weight").with_timestamp("timestamp");
    let decoder = Decoder::new().csv(names);
    // The Parquet file has the content of the CSV file.
    let tables = read_edges(&csv, &decoder)?;
    let ids = |ids: &Ids| match ids {
        Ids::Int(ids) => ids.iter().map(|&id| id as u32).collect::<Vec<_>>(),
        Ids::Text(_) => unreachable!("the ids in the file are numbers"),
    };
    let mut g = Graph::homogeneous(NODES as usize, ids(&tables.src), ids(&tables.dst))?;
    let column = |v: Vec<f32>| Tensor::<1>::from_data(TensorData::from(&v[..]), &Device::flex());
    let times = tables.columns.timestamps.unwrap_or_default();
    let times =
        Tensor::<1, Int>::from_data(TensorData::from(&times[..]), (&Device::flex(), DType::I64));
    let frame = g.edges_mut(0)?;
    frame.insert("weight", column(tables.columns.weights.unwrap_or_default()))?;
    frame.insert("timestamp", times)?;
    write_edge_table(&parquet, &g, ..)?;
    drop(g);
    let read_csv = || read_edges(&csv, &decoder).map(|t| t.src.len());
    let read_parquet = || read_edges(&parquet, &decoder).map(|t| t.src.len());
    let read_matrix = || load_matrix_market(&matrix, &Device::flex()).map(|g| g.total_edges());
    /// Reads a file and returns its number of rows.
    type Read<'a> = &'a dyn Fn() -> Result<usize, DataError>;
    let entries: [(&str, &Path, &str, Read<'_>); 3] = [
        ("csv", &csv, "pandas.read_csv(f)", &read_csv),
        ("parquet", &parquet, "pandas.read_parquet(f)", &read_parquet),
        ("matrix-market", &matrix, "scipy.io.mmread(f)", &read_matrix),
    ];
    for (op, path, statement, read) in entries {
        let (mut ours, mut peer) = (Times::default(), f64::INFINITY);
        for _ in 0..RUNS {
            let mut rows = Ok(0);
            ours.add(&Times::one(|| rows = read()), 1);
            ensure!(rows? == ROWS as usize, "rows were lost");
            if let Some(python) = python {
                let code = format!("{PEER}{statement}\nprint((time.process_time() - t) * 1e3)");
                let out = Command::new(python).args(["-c", &code]).arg(path).output()?;
                let text = String::from_utf8_lossy(&out.stdout).into_owned();
                let error = || String::from_utf8_lossy(&out.stderr).into_owned();
                peer = peer.min(text.trim().parse::<f64>().with_context(error)?);
            }
        }
        let more = [("peer_min_cpu_ms", json!(peer.is_finite().then_some(peer)))];
        emit(Entry { group: "tables", graph: "million", op }, Some(&ours), &more);
    }
    Ok(())
}

fn write(path: &Path, header: &str, rows: i64, row: impl Fn(i64) -> String) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{header}")?;
    for i in 0..rows {
        writeln!(file, "{}", row(i))?;
    }
    Ok(file.flush()?)
}

fn count_lines(path: &Path) -> Result<()> {
    ensure!(Command::new("wc").arg("-l").arg(path).output()?.status.success(), "wc failed");
    Ok(())
}
