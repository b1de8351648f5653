//! Prints and saves results of the examples.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    Epoch, FitConfig, ModelError, NodeClassifier, Rows, Trained, evaluate, fit, majority_class,
};
use serde_json::{Value, json};

use super::data::Loaded;

pub(crate) fn epoch(e: &Epoch) {
    let val = match (e.val_score, e.val_loss) {
        (Some(a), Some(l)) => format!("  val loss {l:.4}  val {:5.1} %", 100.0 * a),
        _ => String::new(),
    };
    println!(
        "epoch {:>3}  loss {:.4}  train {:5.1} %{val}",
        e.epoch + 1,
        e.loss,
        100.0 * e.train_score.unwrap_or(f64::NAN)
    );
}

/// The message with its causes, without a backtrace, and the exit status.
pub(crate) fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

/// Test accuracy of `model`, trained on `graph` in place of the data's own.
pub(crate) fn accuracy_on<M: NodeClassifier>(
    graph: &Graph,
    data: &Loaded,
    model: M,
    training: &FitConfig,
) -> Result<f64> {
    let task = data.task(graph);
    let trained =
        fit(model, &task, &task.train, &task.val, &training.clone().with_progress(false))?;
    Ok(evaluate(&trained.model, &task, &data.test)?.accuracy())
}

/// What a run showed, in text and as JSON.
pub(crate) struct Outcome {
    pub(crate) data: String,
    pub(crate) parts: usize,
    pub(crate) seed: u64,
    pub(crate) edge_cut: u64,
    pub(crate) test_accuracy: f64,
    pub(crate) val_accuracy: Option<f64>,
    pub(crate) majority_accuracy: f64,
    pub(crate) no_graph_accuracy: f64,
    pub(crate) losses: Vec<f64>,
    pub(crate) kept_epoch: usize,
    pub(crate) seconds_per_epoch: f64,
}

impl Outcome {
    /// Judges `model` on the whole graph without partitions; `trained` is a rank's record of the training.
    pub(crate) fn new<M: NodeClassifier, T>(
        model: &M,
        trained: &Trained<T>,
        data: &Loaded,
        no_graph_accuracy: f64,
    ) -> Result<Self> {
        let task = data.task(&data.graph);
        let accuracy = |rows: &Rows| Ok::<_, ModelError>(evaluate(model, &task, rows)?.accuracy());
        Ok(Self {
            data: data.name.clone(),
            parts: 1,
            seed: 0,
            edge_cut: 0,
            test_accuracy: accuracy(&data.test)?,
            val_accuracy: (data.val.total > 0).then(|| accuracy(&data.val)).transpose()?,
            majority_accuracy: majority_class(&data.train, &data.test, data.num_classes).1,
            no_graph_accuracy,
            losses: trained.history.iter().map(|e| e.loss).collect(),
            kept_epoch: trained.kept_epoch,
            seconds_per_epoch: trained.seconds_per_epoch,
        })
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "data": self.data, "parts": self.parts, "seed": self.seed, "edge_cut": self.edge_cut,
            "test_accuracy": self.test_accuracy, "val_accuracy": self.val_accuracy, "majority_accuracy": self.majority_accuracy,
            "no_graph_accuracy": self.no_graph_accuracy, "losses": self.losses, "kept_epoch": self.kept_epoch,
            "seconds_per_epoch": self.seconds_per_epoch,
        })
    }

    /// `weights` is named where the user chose the folder; with `json` the object is the last line.
    pub(crate) fn print(&self, weights: Option<&Path>, json: bool) {
        let (kept, epochs) = (self.kept_epoch + 1, self.losses.len());
        println!();
        println!(
            "test accuracy          {}  (epoch {kept} of {epochs}, weights read back from a file)",
            percent(self.test_accuracy)
        );
        println!("without the graph      {}", percent(self.no_graph_accuracy));
        println!("majority class         {}", percent(self.majority_accuracy));
        println!("time per epoch         {:.1} ms", 1e3 * self.seconds_per_epoch);
        if let Some(weights) = weights {
            println!("weights                {}", weights.display());
        }
        if json {
            println!("{}", self.json());
        }
    }
}
