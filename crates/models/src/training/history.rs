//! Holds what training recorded.

use std::fmt;

/// One epoch of training.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// From 0.
    pub epoch: usize,
    /// Learning rate of its last step; 0 of a model that is solved in one step.
    pub lr: f64,
    /// Mean loss of the training rows, each before the step of its batch, dropout in effect.
    pub loss: f64,
    /// Metric of the training rows in the same pass; none where it is not defined.
    pub train_score: Option<f64>,
    /// Metric of the validation rows after the epoch, if there are any.
    pub val_score: Option<f64>,
    /// Mean loss of the validation rows.
    pub val_loss: Option<f64>,
    /// Name of the metric.
    pub metric: &'static str,
}

impl Epoch {
    /// A value of the metric: `91.4 %`, `ROC AUC 0.9140`.
    fn score(&self, value: f64) -> String {
        match self.metric {
            "accuracy" => format!("{:.1} %", 100.0 * value),
            "loss" => format!("{value:.4}"),
            name => format!("{name} {value:.4}"),
        }
    }
}

/// `loss 0.4321  training 91.4 %  validation 78.2 %`.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss {:.4}", self.loss)?;
        if let Some(score) = self.train_score.filter(|_| self.metric != "loss") {
            write!(f, "  training {}", self.score(score))?;
        }
        match self.val_score {
            Some(score) => write!(f, "  validation {}", self.score(score)),
            None => Ok(()),
        }
    }
}

/// A trained model.
#[derive(Debug)]
pub struct Trained<M> {
    /// Parameters after the epoch with the best metric of the validation rows (of equal ones the lower validation
    /// loss); after the last epoch where there are no validation rows. On the plain device.
    pub model: M,
    /// Epoch that `model` is from.
    pub kept_epoch: usize,
    /// Every epoch.
    pub history: Vec<Epoch>,
    /// Wall time per epoch, validation included.
    pub seconds_per_epoch: f64,
}

/// One line: epochs, time, the last losses and metrics, and the kept epoch with its validation metric. Epochs count
/// from 0.
impl<M> fmt::Display for Trained<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs = self.history.len();
        let seconds = self.seconds_per_epoch * epochs as f64;
        let plural = if epochs == 1 { "" } else { "s" };
        write!(f, "trained {epochs} epoch{plural} in {seconds:.1} s")?;
        let Some(last) = self.history.last() else { return Ok(()) };
        write!(f, ": {last}")?;
        let kept = self.history.get(self.kept_epoch).and_then(|e| Some(e.score(e.val_score?)));
        match kept {
            Some(best) => write!(f, "; kept epoch {} (validation {best})", self.kept_epoch),
            None => write!(f, "; kept the last epoch, as there is no validation"),
        }
    }
}
