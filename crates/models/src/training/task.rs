//! Defines what training learns from a batch.

use burn_gnn_sampling::SampleKey;

use crate::error::ModelError;
use crate::metrics::outcome::Outcome;

/// How a batch `B` becomes a loss and a metric for a model `M`: it runs the model and pairs its scores with the labels.
///
/// | task | batch | model |
/// | --- | --- | --- |
/// | [`NodeTask`](crate::NodeTask) | labelled nodes of a full graph or of a rank's part | [`NodeClassifier`](crate::NodeClassifier) |
/// | [`SeedTask`](crate::SeedTask) | a loaded batch whose seeds are nodes | [`NodeClassifier`](crate::NodeClassifier) |
/// | [`LinkTask`](crate::LinkTask) | pairs of nodes of a full graph | [`NodeClassifier`](crate::NodeClassifier), as encoder |
/// | [`GraphTask`](crate::GraphTask) | many graphs as one | [`GraphClassifier`](crate::GraphClassifier) |
/// | a function `(&M, &B, SampleKey) -> Result<Outcome, ModelError>` | any | any |
///
/// A task of the caller is one `impl` of [`step`](Self::step), or such a function:
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::{FitConfig, Metric, Mlp, MlpConfig, ModelError, Outcome, fit, seeded};
/// use burn_gnn_sampling::SampleKey;
///
/// /// `y = x_0 + x_1`.
/// fn sum(model: &Mlp, x: &Tensor<2>, _: SampleKey) -> Result<Outcome, ModelError> {
///     Outcome::values(model.forward(x.clone()), x.clone().sum_dim(1))
/// }
///
/// let x = Tensor::<2>::from_data([[0.0, 1.0], [2.0, 1.0], [1.0, 3.0]], &Device::flex());
/// let model = seeded(0, || MlpConfig::new(vec![2, 1]).init(&Device::flex().autodiff()));
/// let config = FitConfig::new().with_epochs(200).with_lr(0.05).with_metric(Metric::rmse()).with_progress(false);
/// let trained = fit(model, &sum, &vec![x.clone()], &vec![x], &config)?;
/// assert!(trained.history[trained.kept_epoch].val_score.unwrap() < 0.1);
/// # Ok::<(), ModelError>(())
/// ```
pub trait Task<M, B> {
    /// Runs the model on a batch. In training `model` is on an autodiff device, and the loss of the outcome has a
    /// gradient; in validation it is [`valid`](burn::module::Module::valid), on the plain device.
    ///
    /// `key` holds the seed, the epoch and the number of the batch over all epochs: random draws, such as negatives and
    /// dropout ([`GraphView::at_step`](burn_gnn_ops::GraphView::at_step)), must be a function of it. In validation it
    /// counts from 0 in every epoch.
    ///
    /// # Errors
    /// The batch does not fit the model. On ranks all must return an error together.
    fn step(&self, model: &M, batch: &B, key: SampleKey) -> Result<Outcome, ModelError>;

    /// Checks the model before the first step.
    ///
    /// # Errors
    /// The model does not fit the task. On several ranks an error of one ends all.
    fn check(&self, _model: &M) -> Result<(), ModelError> {
        Ok(())
    }

    /// Whether only this rank has the parameter at `path` (field names joined by dots), such as an embedding of the
    /// nodes that it owns. Gradients of other parameters are summed over ranks.
    fn is_rank_owned(&self, _model: &M, _path: &str) -> bool {
        false
    }
}

impl<M, B, F: Fn(&M, &B, SampleKey) -> Result<Outcome, ModelError>> Task<M, B> for F {
    fn step(&self, model: &M, batch: &B, key: SampleKey) -> Result<Outcome, ModelError> {
        self(model, batch, key)
    }
}
