//! Defines the metrics by which training chooses an epoch.

use std::fmt;
use std::sync::Arc;

use crate::error::ModelError;
use crate::metrics::classification::predicted;
use crate::metrics::evaluation::{Evaluation, Kind};
use crate::metrics::outcome::{Labels, Outcome};
use crate::metrics::scores::{average_precision_of, roc_auc_of};

/// A number computed from the scores and labels of a whole data set, and whether larger is better.
///
/// | metric | labels | value |
/// | --- | --- | --- |
/// | [`accuracy`](Self::accuracy) | classes, 0 or 1 | share of correct rows |
/// | [`macro_f1`](Self::macro_f1) | classes, 0 or 1 | mean of the F1 of each class (or column) that occurs |
/// | [`roc_auc`](Self::roc_auc), [`average_precision`](Self::average_precision) | 0 or 1, two classes | mean over the columns in which both values occur |
/// | [`mrr`](Self::mrr), [`hits`](Self::hits) | the true one among the candidates of a query, as its class | mean reciprocal rank; share of ranks up to `k` |
/// | [`rmse`](Self::rmse), [`mae`](Self::mae) | real values | root of the mean squared error, mean absolute error |
/// | [`loss`](Self::loss) | any | mean loss |
/// | [`maximise`](Self::maximise), [`minimise`](Self::minimise) | any | a function of the caller |
///
/// ```
/// use burn_gnn_models::Metric;
/// let worst = Metric::minimise("largest error", |all| {
///     let errors = all.scores().iter().zip(all.labels()).map(|(x, y)| (x - y).abs());
///     Ok(errors.fold(0.0, f64::max))
/// });
/// assert_eq!(worst.name(), "largest error");
/// ```
#[derive(Clone)]
pub struct Metric {
    name: &'static str,
    larger_is_better: bool,
    needs_rows: bool,
    value: Arc<Value>,
}

type Value = dyn Fn(&Evaluation) -> Result<f64, ModelError> + Send + Sync;

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metric({})", self.name)
    }
}

impl Metric {
    /// A function of all rows of which larger values are better.
    pub fn maximise(
        name: &'static str,
        value: impl Fn(&Evaluation) -> Result<f64, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, larger_is_better: true, needs_rows: true, value: Arc::new(value) }
    }

    /// A function of all rows of which smaller values are better.
    pub fn minimise(
        name: &'static str,
        value: impl Fn(&Evaluation) -> Result<f64, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self { larger_is_better: false, ..Self::maximise(name, value) }
    }

    /// Share of correct rows: the largest logit is that of the class, or the sign of the logit is that of the label.
    pub fn accuracy() -> Self {
        let value = |all: &Evaluation| match all.kind() {
            Some(Kind::Values) => Err(unsuitable("accuracy", "classes, or 0 and 1", "real values")),
            _ => Ok(all.accuracy()),
        };
        Self { needs_rows: false, ..Self::maximise("accuracy", value) }
    }

    /// Mean loss.
    pub fn loss() -> Self {
        Self { needs_rows: false, ..Self::minimise("loss", |all| Ok(all.mean_loss())) }
    }

    /// Mean over the classes that are labels or predictions of `2 · precision · recall / (precision + recall)`, as
    /// scikit-learn's `f1_score` with `average="macro"`; of labels 0 and 1 the mean over columns.
    pub fn macro_f1() -> Self {
        Self::maximise("macro F1", macro_f1)
    }

    /// Area under the ROC curve ([`roc_auc`](crate::roc_auc)).
    pub fn roc_auc() -> Self {
        Self::maximise("ROC AUC", |all| mean_over_columns(all, "ROC AUC", roc_auc_of))
    }

    /// Average precision ([`average_precision`](crate::average_precision)).
    pub fn average_precision() -> Self {
        let name = "average precision";
        Self::maximise(name, move |all| mean_over_columns(all, name, average_precision_of))
    }

    /// Mean reciprocal rank of the class among the columns of a row; equal scores share their mean rank.
    pub fn mrr() -> Self {
        Self::maximise("MRR", |all| {
            let ranks = ranks(all, "MRR")?;
            Ok(ranks.iter().map(|rank| 1.0 / rank).sum::<f64>() / ranks.len().max(1) as f64)
        })
    }

    /// Share of rows whose class has a rank of at most `k`, as in [`mrr`](Self::mrr).
    pub fn hits(k: usize) -> Self {
        Self::maximise("hits", move |all| {
            let ranks = ranks(all, "hits")?;
            let hits = ranks.iter().filter(|&&rank| rank <= k as f64).count();
            Ok(hits as f64 / ranks.len().max(1) as f64)
        })
    }

    /// Root of the mean squared error.
    pub fn rmse() -> Self {
        Self::minimise("RMSE", |all| Ok(mean_error(all, "RMSE", |e| e * e)?.sqrt()))
    }

    /// Mean absolute error.
    pub fn mae() -> Self {
        Self::minimise("MAE", |all| mean_error(all, "MAE", f64::abs))
    }

    /// Name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether `a` is better than `b`.
    pub fn is_better(&self, a: f64, b: f64) -> bool {
        if self.larger_is_better { a > b } else { a < b }
    }

    /// Whether scores and labels of all rows must be kept.
    pub(crate) fn needs_rows(&self) -> bool {
        self.needs_rows
    }
}

impl Outcome {
    /// Accuracy where labels are classes, else the loss.
    pub(crate) fn default_metric(&self) -> Metric {
        match self.labels() {
            Labels::Classes(_) => Metric::accuracy(),
            _ => Metric::loss(),
        }
    }
}

impl Evaluation {
    /// A metric of these rows.
    ///
    /// # Errors
    /// The metric is not defined for them, such as an area under the ROC curve without a negative row.
    pub fn score(&self, metric: &Metric) -> Result<f64, ModelError> {
        let value = (metric.value)(self)?;
        let arg = format!("metric `{}`", metric.name);
        ModelError::check_range(&arg, "numbers", value, !value.is_nan())?;
        Ok(value)
    }
}

fn unsuitable(metric: &str, expected: &str, found: &str) -> ModelError {
    let range = format!("{expected}, which {metric} is computed from");
    ModelError::out_of_range("labels", range, found)
}

fn found(all: &Evaluation) -> &'static str {
    match all.kind() {
        Some(Kind::Classes) => "classes",
        Some(Kind::Binary) => "0 and 1",
        Some(Kind::Values) => "real values",
        None => "no rows",
    }
}

/// Rank of the class of each row among the scores of the row, from 1.
fn ranks(all: &Evaluation, metric: &str) -> Result<Vec<f64>, ModelError> {
    if all.kind() != Some(Kind::Classes) {
        return Err(unsuitable(metric, "classes (the column of the true candidate)", found(all)));
    }
    let rank = |(row, &label): (&[f64], &f64)| {
        let score = row[label as usize];
        // NaN is worse than every other score.
        let larger = row.iter().filter(|s| **s > score || (score.is_nan() && !s.is_nan())).count();
        let equal = row.iter().filter(|s| **s == score || (score.is_nan() && s.is_nan())).count();
        larger as f64 + (equal as f64 + 1.0) / 2.0
    };
    Ok(all.scores().chunks_exact(all.columns().max(1)).zip(all.labels()).map(rank).collect())
}

fn mean_error(all: &Evaluation, metric: &str, f: fn(f64) -> f64) -> Result<f64, ModelError> {
    if all.kind() != Some(Kind::Values) {
        return Err(unsuitable(metric, "real values", found(all)));
    }
    let errors = all.scores().iter().zip(all.labels()).filter(|(_, y)| !y.is_nan());
    let (count, sum) = errors.fold((0, 0.0), |(n, sum), (x, y)| (n + 1, sum + f(x - y)));
    Ok(sum / f64::from(count).max(1.0))
}

/// Mean of a metric of scores and labels over the columns in which both labels occur.
fn mean_over_columns(
    all: &Evaluation,
    metric: &str,
    of: fn(Vec<f64>, &[bool]) -> Result<f64, ModelError>,
) -> Result<f64, ModelError> {
    let columns = all.columns().max(1);
    let (scores, labels): (Vec<f64>, &[f64]) = match all.kind() {
        Some(Kind::Binary) => (all.scores().to_vec(), all.labels()),
        // Two logits: the difference orders rows as the probability of class 1 does.
        Some(Kind::Classes) if columns == 2 => {
            (all.scores().chunks_exact(2).map(|s| s[1] - s[0]).collect(), all.labels())
        }
        _ => return Err(unsuitable(metric, "0 and 1, or two classes", found(all))),
    };
    let columns = if all.kind() == Some(Kind::Classes) { 1 } else { columns };
    let mut values = vec![];
    for column in 0..columns {
        let rows = scores.iter().zip(labels).skip(column).step_by(columns);
        let known = rows.filter(|(_, y)| !y.is_nan());
        let (scores, labels): (Vec<f64>, Vec<bool>) = known.map(|(x, y)| (*x, *y > 0.5)).unzip();
        if labels.contains(&true) && labels.contains(&false) {
            values.push(of(scores, &labels)?);
        }
    }
    if values.is_empty() {
        let range = format!("both 0 and 1, without which {metric} is not defined");
        return Err(ModelError::out_of_range("labels", range, "one of them alone"));
    }
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

fn macro_f1(all: &Evaluation) -> Result<f64, ModelError> {
    let columns = all.columns().max(1);
    // True positives, predicted, and actual members of each class.
    let mut counts = vec![[0.0; 3]; columns];
    match all.kind() {
        Some(Kind::Classes) => {
            for (row, &label) in all.scores().chunks_exact(columns).zip(all.labels()) {
                let label = label as usize;
                counts[label][2] += 1.0;
                if let Some(class) = predicted(row) {
                    counts[class][1] += 1.0;
                    counts[class][0] += f64::from(u8::from(class == label));
                }
            }
        }
        Some(Kind::Binary) => {
            let known =
                all.scores().iter().zip(all.labels()).enumerate().filter(|e| !e.1.1.is_nan());
            for (i, (x, y)) in known {
                let (p, y) = (f64::from(u8::from(*x > 0.0)), f64::from(u8::from(*y > 0.5)));
                let of = &mut counts[i % columns];
                *of = [of[0] + p * y, of[1] + p, of[2] + y];
            }
        }
        _ => return Err(unsuitable("macro F1", "classes, or 0 and 1", found(all))),
    }
    let occurring = counts.iter().filter(|c| c[1] + c[2] > 0.0);
    let (n, sum) = occurring.fold((0, 0.0), |(n, sum), [t, p, y]| (n + 1, sum + 2.0 * t / (p + y)));
    Ok(sum / f64::from(n).max(1.0))
}
