//! Measures the accuracy of a GCN or an R-GCN with features in 32, 8 and 4 bits.
//!
//! ```sh
//! cargo run --release --example quantised -- --seeds 10
//! cargo run --release --example quantised -- --data DIR/facebook_pages --hidden 64 --lr 0.05 --weight-decay 0 --dropout 0 --epochs 100
//! cargo run --release --example quantised -- --data DIR/aifb --weight-decay 0 --dropout 0 --epochs 50
//! ```
//!
//! Features go through files of each format, so that training sees what a gather of them gives. Rows of words
//! (Cora, facebook_pages) have one number besides 0, which a scale per row keeps. So there is a second set of
//! features, in which every number is rounded: 128 random projections of the first (sums of its columns with random
//! signs). A graph without features (AIFB) gets the logarithms of the in- and out-degrees of each node by relation,
//! and an R-GCN that projects them.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::data::{Dataset, load_dataset};
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    FitConfig, GcnConfig, NodeClassifier, NodeTask, RgcnConfig, Rows, TypeInput, evaluate, fit,
    seeded,
};
use burn_gnn_store::{RowFormat, RowWriter, StoredRows};
use clap::Parser;

/// Trains a GCN, or an R-GCN on several relations, with features in each format.
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
    /// Hidden size.
    #[arg(long, default_value_t = 16)]
    hidden: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// Weight decay of Adam.
    #[arg(long, default_value_t = 5e-4)]
    weight_decay: f64,
    /// Dropout before every layer.
    #[arg(long, default_value_t = 0.5)]
    dropout: f64,
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
        let of =
            set.features.values().next().context("the data set has features")?.row_normalized();
        Ok(Self { rows: of.rows(), width: of.cols(), values: of.to_dense() })
    }

    /// `ln(1 + degree)` of every node of the only type, in and out, by relation.
    fn degrees(g: &Graph) -> Result<Self> {
        let [rows] = g.node_counts() else {
            anyhow::bail!(
                "expected features, or one node type, found {} types",
                g.node_counts().len()
            )
        };
        let (rows, width) = (*rows, 2 * g.relations().len());
        let mut values = vec![0.0f32; rows * width];
        for (t, r) in g.relations().iter().enumerate() {
            r.dst().iter().for_each(|&v| values[v as usize * width + 2 * t] += 1.0);
            r.src().iter().for_each(|&u| values[u as usize * width + 2 * t + 1] += 1.0);
        }
        values.iter_mut().for_each(|x| *x = x.ln_1p());
        Ok(Self { rows, width, values })
    }

    /// Those of a data set, by what they are.
    fn of(set: &Dataset) -> Result<Vec<(&'static str, Self)>> {
        if set.features.is_empty() {
            return Ok(vec![("degrees by relation", Self::degrees(&set.graph)?)]);
        }
        let words = Self::words(set)?;
        let projected = ("128 random projections", words.projected(128));
        // Words of many nodes are long to train on, and a scale per row keeps them.
        let short = words.values.len() < 50_000_000;
        Ok(short.then_some(("words", words)).into_iter().chain([projected]).collect())
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
            for (&x, signs) in row.iter().zip(signs.chunks_exact(width)).filter(|(x, _)| **x != 0.0)
            {
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
fn accuracy(set: &Dataset, features: &Features, seed: u64, args: &Args) -> Result<f64> {
    let device = Device::flex();
    let learning = device.clone().autodiff();
    let relational = set.graph.relations().len() > 1;
    let graph = if relational {
        set.graph.with_inverse_relations("-inv")?
    } else {
        set.graph.add_self_loops(0)?
    };
    let split = set
        .splits
        .get("public")
        .or_else(|| set.splits.values().next())
        .context("the data set has a split")?;
    let rows = |ids: &[u32]| Rows::new(ids, &set.labels, set.num_classes);
    let x = Tensor::<2>::from_data(
        TensorData::new(features.values.clone(), [features.rows, features.width]),
        &device,
    );
    let task = NodeTask {
        graph: &graph,
        features: x.into(),
        target: set.target.clone(),
        train: rows(&split.train)?,
        val: rows(&split.val)?,
        test: rows(&split.test)?,
    };
    if relational {
        let config =
            RgcnConfig::new(set.num_classes).with_hidden(args.hidden).with_dropout(args.dropout);
        let input = [(&*set.target, TypeInput::Features(features.width))];
        trained(seeded(seed, || config.try_init(&graph, input, &learning))?, &task, seed, args)
    } else {
        let config = GcnConfig::new(features.width, set.num_classes)
            .with_hidden(args.hidden)
            .with_dropout(args.dropout);
        trained(seeded(seed, || config.try_init(&learning))?, &task, seed, args)
    }
}

/// The accuracy of a model after its training.
fn trained<M: NodeClassifier>(
    model: M,
    task: &NodeTask<'_, Graph>,
    seed: u64,
    args: &Args,
) -> Result<f64> {
    let config = FitConfig::new()
        .with_epochs(args.epochs)
        .with_lr(args.lr)
        .with_weight_decay(args.weight_decay);
    let trained =
        fit(model, task, &task.train, &task.val, &config.with_seed(seed).with_progress(false))?;
    Ok(evaluate(&trained.model, task, &task.test)?.accuracy())
}

/// Percent: mean and deviation of the sample.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (100.0 * mean, 100.0 * (squares / (n - 1.0).max(1.0)).sqrt())
}

/// Accuracies of every seed by format, and the bytes of a row. Features that a format keeps bit for bit train as
/// they did.
fn accuracies(
    set: &Dataset,
    features: &Features,
    args: &Args,
) -> Result<Vec<(RowFormat, usize, Vec<f64>)>> {
    let path = std::env::temp_dir().join(format!("burn-gnn-quantised-{}", std::process::id()));
    let mut all: Vec<(RowFormat, usize, Vec<f64>)> = vec![];
    for format in FORMATS {
        let (kept, bytes) = features.kept(&path, format)?;
        let exact =
            kept.values.iter().map(|x| x.to_bits()).eq(features.values.iter().map(|x| x.to_bits()));
        let of = match all.first() {
            Some(first) if exact => first.2.clone(),
            _ => (0..args.seeds)
                .map(|seed| accuracy(set, &kept, seed, args))
                .collect::<Result<_>>()?,
        };
        all.push((format, bytes, of));
    }
    Ok(all)
}

fn run(args: &Args) -> Result<()> {
    let set = load_dataset(&args.data)?;
    for (name, features) in Features::of(&set)? {
        println!("{}, {name}, {} seeds", set.name, args.seeds);
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
    for ((_, features), most) in Features::of(&set).unwrap().into_iter().zip([1.5, 3.0]) {
        let all = accuracies(&set, &features, &args).unwrap();
        let exact = mean_and_deviation(&all[0].2).0;
        assert!(exact > 60.0, "{exact}");
        for (format, _, of) in &all {
            let mean = mean_and_deviation(of).0;
            assert!((mean - exact).abs() <= most, "{format:?}: {mean} against {exact}");
        }
    }
}
