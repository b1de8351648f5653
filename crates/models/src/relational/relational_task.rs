//! Turns batches of a database into losses and scores.

use std::sync::Arc;

use burn::serde::{Deserialize, Serialize};
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_data::{Targets, TaskType};
use burn_gnn_ops::div_by;
use burn_gnn_sampling::{LoadedBatch, SampleKey};

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::metrics::outcome::Outcome;
use crate::metrics::rows::Rows;
use crate::relational::database_sampler::DatabaseBatch;
use crate::relational::joint_loader::JointBatch;
use crate::relational::relational_model::RelationalModel;
use crate::training::task::Task;

/// Largest number of classes: each has an output of the model.
const MOST_CLASSES: i64 = 1 << 20;
/// Logit of a class without an output.
const UNSEEN_CLASS: f64 = -1e4;

/// What a head of a [`RelationalModel`] learns, with the statistics of its training targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct TargetEncoding {
    /// What is predicted.
    pub task_type: TaskType,
    /// Outputs of the head: 1, the number of classes, or that of labels.
    pub outputs: usize,
    /// Median of the training targets of a regression, which is added to the output; 0 otherwise.
    pub center: f64,
    /// Standard deviation of the training targets of a regression, by which the output is multiplied; 1 otherwise.
    pub scale: f64,
    /// Factor of the loss of each class; empty: 1. Several labels per row have none.
    pub class_weights: Vec<f32>,
}

impl TargetEncoding {
    /// Computes the statistics of training targets. With `balanced`, the classes of a classification have weights
    /// `rows / (classes · rows of the class)`, so that all count alike; several labels per row have no weights. Targets
    /// that are NaN or infinite do not count.
    ///
    /// # Errors
    /// No target that is known; targets of a recommendation; a class below -1 or from 2²⁰ on.
    pub fn fit(task_type: TaskType, targets: &Targets, balanced: bool) -> Result<Self, ModelError> {
        let mut new =
            Self { task_type, outputs: 1, center: 0.0, scale: 1.0, class_weights: vec![] };
        match (task_type, targets) {
            (TaskType::Regression, Targets::Values(values)) => {
                let mut known: Vec<f64> =
                    values.iter().copied().filter(|x| x.is_finite()).collect();
                known.sort_by(f64::total_cmp);
                let n = known.len();
                ModelError::check_range("training targets", "at least one number", n, n > 0)?;
                let mean = known.iter().sum::<f64>() / n as f64;
                let variance = known.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
                let deviation = (variance / n as f64).sqrt();
                new.center = known[n / 2];
                new.scale = if deviation > 0.0 && deviation.is_finite() { deviation } else { 1.0 };
            }
            (
                TaskType::BinaryClassification | TaskType::MulticlassClassification,
                Targets::Classes(classes),
            ) => {
                let most = classes.iter().copied().max().unwrap_or(-1);
                let range = "classes from 0, and -1 where the class is missing; at least one class";
                let least = classes.iter().copied().min().unwrap_or(-1);
                let is_valid = least >= -1 && most >= 0;
                ModelError::check_range("training targets", range, least.min(most), is_valid)?;
                let binary = task_type == TaskType::BinaryClassification;
                let range = "0, 1 and -1, the classes of a binary classification";
                ModelError::check_range("training targets", range, most, !binary || most <= 1)?;
                let range = "classes below 1048576; number them from 0";
                ModelError::check_range("training targets", range, most, most < MOST_CLASSES)?;
                let count = if binary { 2 } else { most as usize + 1 };
                new.outputs = if binary { 1 } else { count };
                if balanced {
                    new.class_weights = weights(classes, count);
                }
            }
            (TaskType::MultilabelClassification, Targets::Labels { columns, .. }) => {
                let range = "at least one label";
                ModelError::check_range("training targets", range, columns, *columns > 0)?;
                new.outputs = *columns;
            }
            (task, _) => {
                let range = "targets of regression or classification";
                return Err(ModelError::out_of_range("training targets", range, task));
            }
        }
        Ok(new)
    }

    /// The metric that selects the epoch: mean absolute error, area under the ROC curve, or accuracy.
    pub fn metric(&self) -> Metric {
        match self.task_type {
            TaskType::Regression => Metric::mae(),
            TaskType::MulticlassClassification => Metric::accuracy(),
            _ => Metric::roc_auc(),
        }
    }

    /// Loss, scores and labels from the outputs of a head. Scores of a regression are values of the target, those of a
    /// classification logits. A class that no training row has, and so no output, has a logit of -10000: its rows count as
    /// wrong. A number that is not finite counts as missing.
    ///
    /// # Errors
    /// Targets of another type; a class above 1 of a binary classification.
    pub fn outcome(&self, outputs: Tensor<2>, targets: &Targets) -> Result<Outcome, ModelError> {
        let [rows, columns] = outputs.dims();
        let like = (outputs.device(), outputs.dtype());
        let tensor = |values: Vec<f64>| {
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), (&like.0, like.1))
        };
        match (self.task_type, targets) {
            (TaskType::Regression, Targets::Values(values)) => {
                // The absolute error of standardised targets: its minimum is the median, which the metric rewards, and
                // single large targets do not dominate it.
                let known: Vec<f64> =
                    values.iter().map(|x| f64::from(u8::from(x.is_finite()))).collect();
                let filled = values.iter().map(|&x| if x.is_finite() { x } else { self.center });
                let standardised = filled.map(|x| (x - self.center) / self.scale).collect();
                let targets = values.iter().map(|&x| if x.is_finite() { x } else { f64::NAN });
                let count = known.iter().sum::<f64>().max(1.0);
                let errors = (outputs.clone() - tensor(standardised)).abs() * tensor(known);
                let loss = div_by(errors.sum(), count);
                let predicted = outputs * self.scale + self.center;
                Ok(Outcome::values(predicted, tensor(targets.collect()))?.with_loss(loss))
            }
            (TaskType::BinaryClassification, Targets::Classes(classes)) => {
                let most = classes.iter().copied().max().unwrap_or(-1);
                let range = "0, 1 and -1, the classes of a binary classification";
                ModelError::check_range("targets", range, most, most <= 1)?;
                let label = |&class: &i64| if class < 0 { f64::NAN } else { class as f64 };
                let labels: Vec<f64> = classes.iter().map(label).collect();
                let outcome = Outcome::binary(outputs.clone(), tensor(labels))?;
                if self.class_weights.is_empty() {
                    return Ok(outcome);
                }
                let weight = |&class: &i64| {
                    usize::try_from(class).map_or(0.0, |class| f64::from(self.class_weights[class]))
                };
                let sign = |&class: &i64| if class > 0 { 1.0 } else { -1.0 };
                let weights = tensor(classes.iter().map(weight).collect());
                let signs = tensor(classes.iter().map(sign).collect());
                let count = classes.iter().filter(|class| **class >= 0).count().max(1) as f64;
                let losses = -log_sigmoid(outputs * signs) * weights;
                Ok(outcome.with_loss(div_by(losses.sum(), count)))
            }
            (TaskType::MulticlassClassification, Targets::Classes(classes)) => {
                let most = classes.iter().copied().max().unwrap_or(-1);
                // All classes without an output share one column, however large their numbers are.
                let unseen = columns as i64;
                let outputs = if most < unseen {
                    outputs
                } else {
                    let none = Tensor::full([rows, 1], UNSEEN_CLASS, (&like.0, like.1));
                    Tensor::cat(vec![outputs, none], 1)
                };
                let known = classes.iter().zip(0u32..).filter(|(class, _)| **class >= 0);
                let (labels, index): (Vec<u32>, Vec<u32>) =
                    known.map(|(&class, row)| (class.min(unseen) as u32, row)).unzip();
                let total = labels.len();
                let rows = Rows { index: index.into(), labels: labels.into(), total };
                let outcome = Outcome::classes(outputs, &rows);
                let weights: Option<Arc<[f32]>> =
                    (!self.class_weights.is_empty()).then(|| self.class_weights.as_slice().into());
                Ok(outcome.with_class_weights(weights.as_ref()))
            }
            (TaskType::MultilabelClassification, Targets::Labels { values, .. }) => {
                let labels = values.iter().map(|&y| f64::from(y)).collect();
                Outcome::binary(outputs, tensor(labels))
            }
            (task, _) => {
                let range = format!("those of a {task}");
                Err(ModelError::out_of_range("targets", range, "others"))
            }
        }
    }

    /// Predictions for users: values of a regression, the probability of class 1, or of every class or label.
    ///
    /// # Shapes
    /// `[rows, outputs]`, row by row.
    pub fn predictions(&self, outputs: Tensor<2>) -> Vec<f64> {
        let columns = outputs.dims()[1].max(1);
        let values: Vec<f64> = outputs.into_data().iter::<f64>().collect();
        let sigmoid = |x: &f64| 1.0 / (1.0 + (-x).exp());
        match self.task_type {
            TaskType::Regression => values.iter().map(|x| x * self.scale + self.center).collect(),
            TaskType::MulticlassClassification => {
                values.chunks(columns).flat_map(softmax).collect()
            }
            _ => values.iter().map(sigmoid).collect(),
        }
    }
}

/// Probabilities of logits.
fn softmax(logits: &[f64]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exp: Vec<f64> = logits.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = exp.iter().sum();
    exp.into_iter().map(|x| x / sum).collect()
}

/// `rows / (classes · rows of the class)`; 1 of a class without rows.
fn weights(classes: &[i64], count: usize) -> Vec<f32> {
    let mut rows = vec![0usize; count];
    classes.iter().filter(|class| **class >= 0).for_each(|&class| rows[class as usize] += 1);
    let total: usize = rows.iter().sum();
    let weight = |&n: &usize| if n == 0 { 1.0 } else { total as f32 / (count * n) as f32 };
    rows.iter().map(weight).collect()
}

/// Learns the targets of the seeds of a [`DatabaseLoader`](crate::DatabaseLoader), or of the main task of a
/// [`JointLoader`](crate::JointLoader): one [`TargetEncoding`] per head of the model.
///
/// A batch belongs to the head [`DatabaseBatch::head`]. The loss of a joint batch is that of the main task plus
/// [`other_weight`](Self::other_weight) times those of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationalTask {
    /// What each head learns.
    pub heads: Vec<TargetEncoding>,
    /// Factor of the losses of other tasks.
    pub other_weight: f64,
}

impl RelationalTask {
    /// Creates a task with one target per head of the model, in the order of the heads. The losses of other tasks have a
    /// factor of 1 ([`other_weight`](Self::other_weight)).
    pub fn new(heads: Vec<TargetEncoding>) -> Self {
        Self { heads, other_weight: 1.0 }
    }

    fn outcome(
        &self,
        model: &RelationalModel,
        batch: &DatabaseBatch,
    ) -> Result<Outcome, ModelError> {
        let Some(targets) = &batch.seeds.targets else {
            return Err(ModelError::out_of_range("seeds", "seeds with targets", "none"));
        };
        let range = format!("below {}, the number of heads of the task", self.heads.len());
        let is_known = batch.head < self.heads.len();
        ModelError::check_range("head", &range, batch.head, is_known)?;
        let outputs = model.forward(batch, batch.head);
        let outcome = self.heads[batch.head].outcome(outputs.clone(), targets)?;
        let Some(total) = batch.labelled else { return Ok(outcome) };
        // A rank without labels has a gradient of 0.
        let loss = if batch.seeds.num_labels() == 0 { outputs.sum() * 0.0 } else { outcome.loss() };
        Ok(outcome.with_loss(loss).over(total))
    }

    fn check_heads(&self, model: &RelationalModel) -> Result<(), ModelError> {
        let why = "one per head of the model";
        ModelError::check_length("heads", why, model.heads.len(), self.heads.len())?;
        ModelError::check_finite("other_weight", self.other_weight)
    }
}

impl Task<RelationalModel, LoadedBatch<DatabaseBatch, u32>> for RelationalTask {
    fn step(
        &self,
        model: &RelationalModel,
        batch: &LoadedBatch<DatabaseBatch, u32>,
        _: SampleKey,
    ) -> Result<Outcome, ModelError> {
        self.outcome(model, &batch.batch)
    }

    fn check(&self, model: &RelationalModel) -> Result<(), ModelError> {
        self.check_heads(model)
    }
}

impl Task<RelationalModel, JointBatch> for RelationalTask {
    fn step(
        &self,
        model: &RelationalModel,
        batch: &JointBatch,
        _: SampleKey,
    ) -> Result<Outcome, ModelError> {
        let main = self.outcome(model, &batch.main.batch)?;
        let mut loss = None;
        for other in &batch.others {
            let other = self.outcome(model, &other.batch)?;
            if other.total() > 0 {
                let sum = loss.take().unwrap_or_else(|| main.loss());
                loss = Some(sum + other.loss() * self.other_weight);
            }
        }
        Ok(match loss {
            Some(loss) => main.with_loss(loss),
            None => main,
        })
    }

    fn check(&self, model: &RelationalModel) -> Result<(), ModelError> {
        self.check_heads(model)
    }
}
