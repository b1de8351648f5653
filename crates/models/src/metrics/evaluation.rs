//! Accumulates scores and labels over batches.

use burn::tensor::DType;

use crate::error::ModelError;
use crate::metrics::classification::Counts;
use crate::metrics::outcome::{Labels, Outcome};

/// Scores and labels of a data set, accumulated batch by batch: what [`evaluate`](crate::evaluate) returns and a
/// [`Metric`](crate::Metric) reads.
///
/// A metric is computed once over the rows of all batches, so it is exact, and does not depend on the batch size. Rows
/// of a batch come in the order of the batch, batches in theirs, ranks by number.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    kind: Option<Kind>,
    columns: usize,
    count: f64,
    correct: f64,
    loss: f64,
    scores: Vec<f64>,
    labels: Vec<f64>,
}

/// What the labels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Classes,
    Binary,
    Values,
}

impl Evaluation {
    /// Adds the rows of a batch; `keep` their scores and labels, which most metrics need.
    ///
    /// # Errors
    /// Another kind of labels, or another number of columns, than the batches before.
    pub(crate) fn add(&mut self, outcome: &Outcome, keep: bool) -> Result<(), ModelError> {
        let scores = outcome.scores().clone().without_autodiff();
        let [_, columns] = scores.dims();
        let kind = match outcome.labels() {
            Labels::Classes(_) => Kind::Classes,
            Labels::Binary(_) => Kind::Binary,
            Labels::Values(_) => Kind::Values,
        };
        if let Some(before) = self.kind {
            ModelError::check_length(
                "scores",
                "columns, as in batches before",
                self.columns,
                columns,
            )?;
            let range = format!("{before:?} as in batches before");
            ModelError::check_range("labels", &range, format!("{kind:?}"), before == kind)?;
        }
        (self.kind, self.columns) = (Some(kind), columns);
        let values: Vec<f64> = scores.into_data_dtype(DType::F64).try_to_vec().unwrap_or_default();
        let mut loss = None;
        match outcome.labels() {
            Labels::Classes(of) => {
                let counts = Counts::of_values(&values, columns, of);
                (self.correct, loss) = (self.correct + counts.correct, Some(counts.loss));
                if keep {
                    let row = |&r: &u32| &values[r as usize * columns..(r as usize + 1) * columns];
                    self.scores.extend(of.index.iter().flat_map(row));
                    self.labels.extend(of.labels.iter().map(|&l| f64::from(l)));
                }
            }
            Labels::Binary(labels) => {
                let is_correct = |(x, y): &(&f64, &f64)| !y.is_nan() && (**x > 0.0) == (**y > 0.5);
                self.correct += values.iter().zip(labels).filter(is_correct).count() as f64;
                self.keep(keep, values, labels);
            }
            Labels::Values(labels) => self.keep(keep, values, labels),
        }
        let loss = match loss.filter(|_| !outcome.has_own_loss()) {
            Some(loss) => loss,
            None if outcome.own() == 0 => 0.0,
            // A share of the mean over all ranks.
            None => outcome.loss().into_scalar::<f64>() * outcome.total() as f64,
        };
        self.loss += loss;
        self.count += outcome.own() as f64;
        Ok(())
    }

    fn keep(&mut self, keep: bool, scores: Vec<f64>, labels: &[f64]) {
        if keep {
            self.scores.extend(scores);
            self.labels.extend(labels);
        }
    }

    /// Adds up the parts of all ranks by functions that sum and concatenate numbers over ranks.
    pub(crate) fn reduce(
        &mut self,
        sum: impl Fn(&mut [f64]),
        gather: impl Fn(Vec<f64>) -> Vec<f64>,
        keep: bool,
    ) {
        // A rank without a batch learns the kind of labels and the number of columns from the others.
        let mut sums = [self.correct, self.loss, self.count, 0.0, 0.0, 0.0, 0.0, 0.0];
        if let Some(kind) = self.kind {
            sums[3..5].copy_from_slice(&[1.0, self.columns as f64]);
            sums[5 + kind as usize] = 1.0;
        }
        sum(&mut sums);
        [self.correct, self.loss, self.count] = [sums[0], sums[1], sums[2]];
        if self.kind.is_none() && sums[3] > 0.0 {
            self.columns = (sums[4] / sums[3]) as usize;
            let kinds = [Kind::Classes, Kind::Binary, Kind::Values];
            self.kind = kinds.into_iter().find(|&kind| sums[5 + kind as usize] > 0.0);
        }
        if keep {
            self.scores = gather(std::mem::take(&mut self.scores));
            self.labels = gather(std::mem::take(&mut self.labels));
        }
    }

    /// Labelled rows with classes, else labelled entries.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Share of rows whose largest logit is that of their class, or of entries whose logit has the sign of their 0 or 1
    /// label, in `0.0..=1.0`; 0 without rows.
    pub fn accuracy(&self) -> f64 {
        self.correct / self.count.max(1.0)
    }

    /// Mean loss; 0 without rows.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.count.max(1.0)
    }

    /// Number of scores of a row: classes, candidates, or columns of labels.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Scores `[rows, columns]` of the labelled rows, row by row.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The class of each row, or a label for each score (NaN where it is missing).
    pub fn labels(&self) -> &[f64] {
        &self.labels
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.kind
    }
}
