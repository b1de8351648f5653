//! Repeats a training with several seeds on the whole graph, and reports mean and deviation.

use anyhow::{Result, ensure};
use burn_gnn::models::{FitConfig, NodeClassifier, Rows, evaluate, fit, seeded};
use clap::Args;
use serde_json::json;

use super::data::Loaded;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SeedArgs {
    /// Train once with each of this many seeds, from 0, on the whole graph, and print mean and deviation.
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// With `--seeds`: choose settings without a look at test nodes. Judges by the validation nodes; where there are
    /// none, by a fifth of the training nodes that the training does not see, another fifth for each of five seeds.
    #[arg(long, requires = "seeds")]
    pub(crate) tune: bool,
}

/// Parts that a fifth of the training nodes is one of.
const FOLDS: u64 = 5;

impl SeedArgs {
    /// One line per seed, then `mean ± deviation` (of the sample), then with `json` one object. `build` makes the
    /// model on the autodiff device, in a scope of the seed.
    pub(crate) fn run<M: NodeClassifier>(
        self,
        data: &Loaded,
        training: &FitConfig,
        json: bool,
        build: impl Fn() -> Result<M>,
    ) -> Result<()> {
        let seeds = self.seeds.unwrap_or(1);
        ensure!(seeds > 0, "`--seeds` must be at least 1");
        let judged_by = if self.tune { "validation" } else { "test" };
        let mut accuracies = vec![];
        for seed in 0..seeds {
            let mut task = data.task(&data.graph);
            let rows = match (self.tune, data.val.total) {
                (false, _) => data.test.clone(),
                (true, 0) => hold_out(&mut task.train, seed % FOLDS),
                (true, _) => data.val.clone(),
            };
            let trained = fit(
                seeded(seed, &build)?,
                &task,
                &task.train,
                &task.val,
                &training.clone().with_seed(seed),
            )?;
            let accuracy = evaluate(&trained.model, &task, &rows)?.accuracy();
            let (kept, epochs) = (trained.kept_epoch + 1, trained.history.len());
            println!(
                "seed {seed:>2}  {judged_by} {:5.1} %  epoch {kept} of {epochs}",
                100.0 * accuracy
            );
            accuracies.push(accuracy);
        }
        let (mean, deviation) = mean_and_deviation(&accuracies);
        println!(
            "{judged_by} accuracy {:.2} ± {:.2} % over {seeds} seeds",
            100.0 * mean,
            100.0 * deviation
        );
        if json {
            println!(
                "{}",
                json!({"data": data.name, "judged_by": judged_by, "accuracies": accuracies, "mean": mean, "deviation": deviation})
            );
        }
        Ok(())
    }
}

/// Takes every fifth row out, from row `fold`.
fn hold_out(train: &mut Rows, fold: u64) -> Rows {
    let of = |held: bool| -> Rows {
        let chosen = |i: &usize| (*i as u64 % FOLDS == fold) == held;
        let at: Vec<usize> = (0..train.index.len()).filter(chosen).collect();
        Rows {
            index: at.iter().map(|&i| train.index[i]).collect(),
            labels: at.iter().map(|&i| train.labels[i]).collect(),
            total: at.len(),
        }
    };
    let (rest, held) = (of(false), of(true));
    *train = rest;
    held
}

/// Mean, and standard deviation of the sample.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
