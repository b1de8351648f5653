//! Holds what a model predicted for a batch, with the labels and the loss.

use std::sync::Arc;

use burn::tensor::activation::{log_sigmoid, log_softmax};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_gnn_graph::row_index;
use burn_gnn_ops::div_by;

use crate::error::ModelError;
use crate::metrics::rows::Rows;

/// The scores of a batch with their labels: what a [`Task`](crate::Task) makes of a batch.
///
/// It has a loss, whose gradient trains the model, and enters an [`Evaluation`](crate::Evaluation), of which metrics
/// are computed.
///
/// | constructor | scores and labels | loss |
/// | --- | --- | --- |
/// | [`classes`](Self::classes) | logits, one class per row: nodes, graphs, the true one among candidates | cross entropy |
/// | [`binary`](Self::binary) | logits, 0 or 1 per entry: several labels per row, pairs of nodes | binary cross entropy |
/// | [`links`](Self::links) | scores of edges and of pairs without an edge | binary cross entropy, both halves equally |
/// | [`values`](Self::values) | real values | squared error |
///
/// [`with_loss`](Self::with_loss) sets another loss.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::Outcome;
/// let device = Device::flex();
/// let (edges, others) = (Tensor::<1>::from_data([2.0, 1.0], &device), Tensor::<1>::from_data([-1.0], &device));
/// let loss = Outcome::links(edges, others).loss().into_scalar::<f32>();
/// assert!((loss - 0.533).abs() < 1e-3);
/// ```
#[derive(Clone, Debug)]
pub struct Outcome {
    scores: Tensor<2>,
    labels: Labels,
    /// Rows or entries with a label, on this rank.
    own: usize,
    /// The same over all ranks.
    total: usize,
    loss: Option<Tensor<1>>,
    class_weights: Option<Arc<[f32]>>,
}

/// The labels of scores.
#[derive(Clone, Debug)]
pub(crate) enum Labels {
    /// A class for some of the rows.
    Classes(Rows),
    /// 0 or 1 for each score; NaN where the label is missing.
    Binary(Vec<f64>),
    /// A number for each score; NaN where it is missing.
    Values(Vec<f64>),
}

impl Outcome {
    /// One class per row, learned by the mean cross entropy of `rows`.
    ///
    /// A ranking is a classification: the candidates of a query are its columns, and the class is the column of the
    /// true one ([`Metric::mrr`](crate::Metric::mrr)).
    ///
    /// # Shapes
    /// `logits`: `[nodes, classes]`; `rows` selects rows of it and has their classes.
    pub fn classes(logits: Tensor<2>, rows: &Rows) -> Self {
        let (own, total) = (rows.index.len(), rows.total);
        Self::new(logits, Labels::Classes(rows.clone()), own, total)
    }

    /// 0 or 1 per score, learned by the mean binary cross entropy; a label of NaN is missing and does not count.
    ///
    /// # Shapes
    /// `logits` and `labels`: `[rows, columns]`.
    ///
    /// # Errors
    /// Other shapes.
    pub fn binary(logits: Tensor<2>, labels: Tensor<2>) -> Result<Self, ModelError> {
        Self::entries(logits, labels, Labels::Binary)
    }

    /// Real values, learned by the mean squared error; a target of NaN is missing and does not count.
    ///
    /// # Shapes
    /// `predicted` and `targets`: `[rows, columns]`.
    ///
    /// # Errors
    /// Other shapes.
    pub fn values(predicted: Tensor<2>, targets: Tensor<2>) -> Result<Self, ModelError> {
        Self::entries(predicted, targets, Labels::Values)
    }

    /// Scores of edges and of pairs without an edge, learned by `-mean log σ(positive) - mean log σ(-negative)`. Each
    /// score is a row, with the label 1 or 0.
    ///
    /// # Shapes
    /// `positive`: `[edges]`, `negative`: `[pairs]`; either may be empty.
    pub fn links(positive: Tensor<1>, negative: Tensor<1>) -> Self {
        let [p, n] = [positive.dims()[0], negative.dims()[0]];
        let halves = [(p, positive.clone()), (n, negative.clone().neg())];
        let loss =
            halves.into_iter().filter(|half| half.0 > 0).map(|half| -log_sigmoid(half.1).mean());
        let loss = loss.reduce(|a, b| a + b).unwrap_or_else(|| positive.clone().sum());
        let scores = match (p, n) {
            (_, 0) => positive,
            (0, _) => negative,
            _ => Tensor::cat(vec![positive, negative], 0),
        };
        let labels = (0..p + n).map(|i| f64::from(u8::from(i < p))).collect();
        Self::new(scores.unsqueeze_dim(1), Labels::Binary(labels), p + n, p + n).with_loss(loss)
    }

    /// Another loss: a mean over the labelled rows of this rank, shape `[1]`.
    #[must_use]
    pub fn with_loss(self, loss: Tensor<1>) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// Labelled rows of the batch over all ranks; those of this rank by default. A batch in which no rank has a
    /// labelled row trains nothing.
    #[must_use]
    pub fn over(self, total: usize) -> Self {
        Self { total, ..self }
    }

    fn new(scores: Tensor<2>, labels: Labels, own: usize, total: usize) -> Self {
        Self { scores, labels, own, total, loss: None, class_weights: None }
    }

    fn entries(
        scores: Tensor<2>,
        labels: Tensor<2>,
        kind: fn(Vec<f64>) -> Labels,
    ) -> Result<Self, ModelError> {
        let ([rows, columns], found) = (scores.dims(), labels.dims());
        ModelError::check_length("labels", "one row per row of scores", rows, found[0])?;
        ModelError::check_length("labels", "one column per column of scores", columns, found[1])?;
        let labels: Vec<f64> = labels.into_data_dtype(DType::F64).iter().collect();
        let own = labels.iter().filter(|y| !y.is_nan()).count();
        Ok(Self::new(scores, kind(labels), own, own))
    }

    /// Factor of the cross entropy of each class; `None` keeps those that the task has set, none by default.
    pub(crate) fn with_class_weights(mut self, weights: Option<&Arc<[f32]>>) -> Self {
        self.class_weights = weights.cloned().or(self.class_weights);
        self
    }

    /// This rank's share of the mean loss, shape `[1]`: shares of all ranks add up to the mean.
    pub fn loss(&self) -> Tensor<1> {
        let mean = match (&self.loss, &self.labels) {
            (Some(loss), _) => loss.clone(),
            (None, Labels::Classes(rows)) => {
                return match &self.class_weights {
                    None => rows.cross_entropy(self.scores.clone()),
                    Some(weights) => weighted_cross_entropy(self.scores.clone(), rows, weights),
                };
            }
            (None, Labels::Binary(labels)) => self.mean_of(labels, |x, y| {
                let positive = log_sigmoid(x.clone()) * y.clone();
                let negative = log_sigmoid(x.neg()) * (y.neg() + 1.0);
                -(positive + negative)
            }),
            (None, Labels::Values(targets)) => self.mean_of(targets, |x, y| (x - y).powi_scalar(2)),
        };
        if self.own == self.total {
            return mean;
        }
        mean * (self.own as f64 / self.total.max(1) as f64)
    }

    /// Mean of `f(score, label)` over the labels that are not missing.
    fn mean_of(&self, labels: &[f64], f: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>) -> Tensor<1> {
        let (device, dtype) = (self.scores.device(), self.scores.dtype());
        let tensor = |values: Vec<f64>| {
            Tensor::<2>::from_data(TensorData::new(values, self.scores.dims()), (&device, dtype))
        };
        let known = labels.iter().map(|y| f64::from(u8::from(!y.is_nan()))).collect();
        let filled = labels.iter().map(|y| if y.is_nan() { 0.0 } else { *y }).collect();
        let losses = f(self.scores.clone(), tensor(filled)) * tensor(known);
        div_by(losses.sum(), self.own.max(1) as f64)
    }

    /// Scores `[rows, columns]`: logits, or predicted values.
    pub fn scores(&self) -> &Tensor<2> {
        &self.scores
    }

    /// Labelled rows, or entries, over all ranks.
    pub fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// Whether the loss is the one of the labels, and not the caller's.
    pub(crate) fn has_own_loss(&self) -> bool {
        self.loss.is_some()
    }

    /// Whether every class has a logit.
    ///
    /// # Errors
    /// A class that has none.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let Labels::Classes(rows) = &self.labels else { return Ok(()) };
        let [_, classes] = self.scores.dims();
        match rows.labels.iter().find(|&&label| label as usize >= classes) {
            None => Ok(()),
            Some(label) => {
                let range = format!("0..{classes}, the classes of the model");
                Err(ModelError::out_of_range("label", range, label))
            }
        }
    }
}

/// `Σ_i w[label_i] · cross entropy of row i / total`.
fn weighted_cross_entropy(logits: Tensor<2>, rows: &Rows, weights: &[f32]) -> Tensor<1> {
    let (n, device) = (rows.index.len(), logits.device());
    let index =
        row_index(rows.index.iter().map(|&r| r as usize), &device.clone().without_autodiff());
    let of_label = |label: &u32| weights.get(*label as usize).copied().unwrap_or(1.0);
    let factors: Vec<f32> = rows.labels.iter().map(of_label).collect();
    let factors =
        Tensor::<2>::from_data(TensorData::new(factors, [n, 1]), (&device, logits.dtype()));
    let labels: Vec<i64> = rows.labels.iter().map(|&l| l.into()).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [n, 1]), &device);
    let chosen = log_softmax(logits.select(0, index), 1).gather(1, labels);
    div_by(-(chosen * factors).sum(), rows.total.max(1) as f64)
}
