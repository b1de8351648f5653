//! Accuracy of a GCN on Cora whose features were kept in 32, 8 and 4 bits.
//!
//! ```sh
//! cargo run --release --example quantised -- --seeds 10
//! ```
//!
//! Features go through files of each format, so that training sees what a gather of them gives. Rows of Cora are words that a paper has, divided by
//! their number: one number per row besides 0, which a scale per row keeps. So there is a second set of features, in which every number
//! is rounded: 128 random projections of the first (sums of its columns with random signs).

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::data::{Dataset, load_dataset};
use burn_gnn::models::{GcnConfig, NoSync, NodeTask, Rows, TrainConfig, evaluate, seeded, train};
use burn_gnn_store::{RowFormat, RowWriter, StoredRows};
use clap::Parser;

/// Trains a GCN on Cora, with features in each format.
#[derive(Debug, Parser)]
struct Args {
    /// Folder of the data set.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/cora"))]
    data: std::path::PathBuf,
    /// Trainings, with seeds from 0 on.
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Passes over the graph.
    #[arg(long, default_value_t = 200)]
    epochs: usize,
}

const FORMATS: [RowFormat; 3] = [RowFormat::F32, RowFormat::Int8, RowFormat::Int4];

/// Rows of features.
#[derive(Clone)]
struct Features {
    rows: usize,
    width: usize,
    values: Vec<f32>,
}

impl Features {
    /// Words, divided by their number.
    fn words(set: &Dataset) -> Result<Self> {
        let of = set.features.values().next().context("the data set has features")?.row_normalized();
        Ok(Self { rows: of.rows(), width: of.cols(), values: of.to_dense() })
    }

    /// Sums of all columns with random signs.
    fn projected(&self, width: usize) -> Self {
        let mut signs = 0x9e37_79b9_7f4a_7c15u64;
        let mut sign = || {
            // xorshift64
            signs ^= signs << 13;
            signs ^= signs >> 7;
            signs ^= signs << 17;
            if signs >> 63 == 0 { 1.0 } else { -1.0 }
        };
        let signs: Vec<f32> = (0..self.width * width).map(|_| sign()).collect();
        let mut values = vec![0.0; self.rows * width];
        for (row, out) in self.values.chunks_exact(self.width).zip(values.chunks_exact_mut(width)) {
            for (&x, signs) in row.iter().zip(signs.chunks_exact(width)).filter(|(x, _)| **x != 0.0) {
                out.iter_mut().zip(signs).for_each(|(o, s)| *o += x * s);
            }
        }
        Self { rows: self.rows, width, values }
    }

    /// What a file of a format gives of them, and the bytes of a row.
    fn kept(&self, path: &Path, format: RowFormat) -> Result<(Self, usize)> {
        let mut out = RowWriter::create(path, self.rows, self.width, format)?;
        out.put(&self.values)?;
        out.finish()?;
        let file = StoredRows::open(path)?;
        let values = file.gather(&(0..self.rows as u32).collect::<Vec<_>>())?;
        std::fs::remove_file(path)?;
        Ok((Self { values, ..*self }, file.row_bytes()))
    }
}

/// Share of test nodes in their class.
fn accuracy(set: &Dataset, features: &Features, seed: u64, epochs: usize) -> Result<f64> {
    let device = Device::flex();
    let classes = set.num_classes;
    let graph = set.graph.add_self_loops(0)?;
    let split = set.splits.get("public").or_else(|| set.splits.values().next()).context("the data set has a split")?;
    let rows = |ids: &[u32]| Rows::new(ids, &set.labels, classes);
    let x = Tensor::<2>::from_data(TensorData::new(features.values.clone(), [features.rows, features.width]), &device);
    let task = NodeTask {
        graph: &graph,
        features: x.into(),
        target: graph.schema().ntypes()[0].clone(),
        train: rows(&split.train)?,
        val: rows(&split.val)?,
        test: rows(&split.test)?,
    };
    let config = GcnConfig::new(features.width, classes).with_hidden(16).with_dropout(0.5);
    let model = seeded(seed, || config.try_init(&device.clone().autodiff()))?;
    let training = TrainConfig::new().with_epochs(epochs).with_lr(0.01).with_weight_decay(5e-4).with_seed(seed).with_progress(false);
    let trained = train(model, &task, &training, &NoSync, |_| {})?;
    Ok(evaluate(&trained.model, &task, &rows(&split.test)?, &NoSync).accuracy())
}

/// Percent: mean and deviation of the sample.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (100.0 * mean, 100.0 * (squares / (n - 1.0).max(1.0)).sqrt())
}

/// Accuracies of every seed by format, and the bytes of a row.
fn accuracies(set: &Dataset, features: &Features, args: &Args) -> Result<Vec<(RowFormat, usize, Vec<f64>)>> {
    let path = std::env::temp_dir().join(format!("burn-gnn-quantised-{}", std::process::id()));
    let of = |&format: &RowFormat| {
        let (kept, bytes) = features.kept(&path, format)?;
        let all = (0..args.seeds).map(|seed| accuracy(set, &kept, seed, args.epochs)).collect::<Result<_>>()?;
        Ok((format, bytes, all))
    };
    FORMATS.iter().map(of).collect()
}

fn run(args: &Args) -> Result<()> {
    let set = load_dataset(&args.data)?;
    let words = Features::words(&set)?;
    for (name, features) in [("words", words.clone()), ("128 random projections", words.projected(128))] {
        println!("{name}, {} seeds", args.seeds);
        let all = accuracies(&set, &features, args)?;
        for (format, bytes, of) in &all {
            let (mean, deviation) = mean_and_deviation(of);
            let differences: Vec<f64> = of.iter().zip(&all[0].2).map(|(a, b)| a - b).collect();
            let (less, spread) = mean_and_deviation(&differences);
            println!(
                "{:>5}  {bytes:>5} bytes per row  {mean:.2} ± {deviation:.2} %  against f32 {less:+.2} ± {spread:.2}",
                format!("{format:?}")
            );
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Two seeds: that of a thousand test nodes some change their side. The documents have ten seeds.
#[test]
fn few_bits_train_as_well() {
    let args = Args { seeds: 2, epochs: 40, ..Args::parse_from(["quantised"]) };
    let set = load_dataset(&args.data).unwrap();
    let words = Features::words(&set).unwrap();
    for (features, most) in [(words.clone(), 1.5), (words.projected(128), 3.0)] {
        let all = accuracies(&set, &features, &args).unwrap();
        let exact = mean_and_deviation(&all[0].2).0;
        assert!(exact > 60.0, "{exact}");
        for (format, _, of) in &all {
            let mean = mean_and_deviation(of).0;
            assert!((mean - exact).abs() <= most, "{format:?}: {mean} against {exact}");
        }
    }
}
