//! Holds the settings of training.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::constant::ConstantLr;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::ModuleOptimizer;
use burn::optim::decay::WeightDecayConfig;

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::training::fused_adam::FusedAdamConfig;
use crate::training::history::Epoch;

/// Settings of [`fit`](crate::fit).
///
/// ```
/// use burn::grad_clipping::GradientClippingConfig;
/// use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
/// use burn_gnn_models::{FitConfig, Metric};
/// let config = FitConfig::new()
///     .with_epochs(200)
///     .with_lr_schedule(CosineAnnealingLrSchedulerConfig::new(0.01, 200).init()?)
///     .with_weight_decay(5e-4)
///     .with_metric(Metric::macro_f1())
///     .with_patience(20)
///     .with_grad_clipping(GradientClippingConfig::Norm(1.0))
///     .with_checkpoint("run.bpk")
///     .on_epoch(|epoch| println!("{epoch}"));
/// # let _ = config;
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct FitConfig {
    /// Passes over the training batches, at most; 50 by default.
    pub epochs: usize,
    /// Learning rate; 0.01 by default.
    pub lr: f64,
    /// L2 penalty, added to gradients; 0 by default.
    pub weight_decay: f64,
    /// Ends training after this many epochs in a row without a better one on the validation batches; none by default.
    /// Without validation it has no effect.
    pub patience: Option<usize>,
    /// Seed of dropout and of the draws of tasks; 0 by default. That of initial weights is the scope in which the model
    /// is made ([`seeded`](crate::seeded)), that of batches belongs to the loader.
    pub seed: u64,
    /// Whether a progress bar is drawn (on a terminal); its summary, the `Display` of [`Trained`](crate::Trained),
    /// stays. True by default.
    pub progress: bool,
    /// What chooses the epoch; by default the accuracy where labels are classes, else the loss.
    pub metric: Option<Metric>,
    /// Share of the epochs, the last ones, over whose ends the parameters are averaged; 0 by default: none.
    pub weight_averaging: f64,
    /// Factor of the training loss of each class.
    pub class_weights: Option<Arc<[f32]>>,
    /// Where the state of training is written after each epoch.
    pub checkpoint: Option<PathBuf>,
    /// Whether training goes on from the checkpoint, if there is one.
    pub resume: bool,
    optimizer: Option<ModuleOptimizer>,
    schedule: Option<ModuleLrScheduler>,
    grad_clipping: Option<GradientClippingConfig>,
    on_epoch: Option<Arc<OnEpoch>>,
}

type OnEpoch = dyn Fn(&Epoch) + Send + Sync;

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            epochs: 50,
            lr: 0.01,
            weight_decay: 0.0,
            patience: None,
            seed: 0,
            progress: true,
            metric: None,
            weight_averaging: 0.0,
            class_weights: None,
            checkpoint: None,
            resume: false,
            optimizer: None,
            schedule: None,
            grad_clipping: None,
            on_epoch: None,
        }
    }
}

impl fmt::Debug for FitConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epochs, lr, weight_decay, patience, seed, .. } = self;
        f.debug_struct("FitConfig")
            .field("epochs", epochs)
            .field("lr", lr)
            .field("weight_decay", weight_decay)
            .field("patience", patience)
            .field("seed", seed)
            .field("metric", &self.metric)
            .field("weight_averaging", &self.weight_averaging)
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

impl FitConfig {
    /// The defaults of the fields: 50 epochs of Adam (β 0.9 and 0.999, ε 1e-8) with a learning rate of 0.01.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes over the training batches, at most.
    #[must_use]
    pub fn with_epochs(self, epochs: usize) -> Self {
        Self { epochs, ..self }
    }

    /// A constant learning rate.
    #[must_use]
    pub fn with_lr(self, lr: f64) -> Self {
        Self { lr, ..self }
    }

    /// A learning rate for each step, in place of the constant one: any scheduler of Burn
    /// (`CosineAnnealingLrSchedulerConfig::new(0.01, steps).init()?`), or one of the caller. It takes a step for each
    /// batch that trains, as in Burn's `Learner`.
    #[must_use]
    pub fn with_lr_schedule(self, schedule: impl Into<ModuleLrScheduler>) -> Self {
        Self { schedule: Some(schedule.into()), ..self }
    }

    /// Another optimizer than Adam, with its state and its weight decay (`SgdConfig::new().init()`).
    #[must_use]
    pub fn with_optimizer(self, optimizer: impl Into<ModuleOptimizer>) -> Self {
        Self { optimizer: Some(optimizer.into()), ..self }
    }

    /// L2 penalty of Adam, added to gradients.
    #[must_use]
    pub fn with_weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }

    /// Clips the gradient of each parameter before the step.
    #[must_use]
    pub fn with_grad_clipping(self, clipping: GradientClippingConfig) -> Self {
        Self { grad_clipping: Some(clipping), ..self }
    }

    /// Ends training after `patience` epochs in a row without a better one on the validation batches.
    #[must_use]
    pub fn with_patience(self, patience: impl Into<Option<usize>>) -> Self {
        Self { patience: patience.into(), ..self }
    }

    /// Seed of dropout and of the draws of tasks.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether a progress bar is drawn (on a terminal).
    #[must_use]
    pub fn with_progress(self, progress: bool) -> Self {
        Self { progress, ..self }
    }

    /// The metric that chooses the epoch, reported for training and validation.
    #[must_use]
    pub fn with_metric(self, metric: Metric) -> Self {
        Self { metric: Some(metric), ..self }
    }

    /// Averages the parameters over the ends of the last epochs, a share `share` of all: the model that is validated and
    /// kept is the mean so far, and the last epoch is kept. 0 turns it off.
    ///
    /// ```text
    /// first = ceil(epochs · (1 - share)), at most epochs - 1
    /// kept  = mean over epochs e ≥ first of the parameters after epoch e
    /// ```
    /// With a learning rate that falls, the mean varies less with the seed than any single epoch, and needs no
    /// validation rows to choose one. It excludes `patience`. Running statistics of batch normalisation are averaged in
    /// the same way, and not computed again for the mean. A checkpoint of a run whose mean began at another epoch is an
    /// error once the mean has begun.
    ///
    /// # Source
    /// Izmailov et al., "Averaging weights leads to wider optima and better generalization", UAI 2018.
    #[must_use]
    pub fn with_weight_averaging(self, share: f64) -> Self {
        Self { weight_averaging: share, ..self }
    }

    /// Multiplies the training loss of each row by the weight of its class; the mean still divides by the number of
    /// rows, as in Keras. Weights `rows / (classes · rows of the class)` make all classes count alike.
    #[must_use]
    pub fn with_class_weights(self, weights: impl Into<Arc<[f32]>>) -> Self {
        Self { class_weights: Some(weights.into()), ..self }
    }

    /// Writes the state of training to a file after each epoch: model, best model, optimizer, schedule and history. It
    /// replaces an older file in one step. Files of equal states have equal bytes. On several ranks each writes two
    /// files of this name and an extension.
    #[must_use]
    pub fn with_checkpoint(self, file: impl Into<PathBuf>) -> Self {
        Self { checkpoint: Some(file.into()), ..self }
    }

    /// Whether training goes on from the checkpoint, if there is one: with the same model, task, batches and settings
    /// the result has the bits of a run that was not interrupted.
    #[must_use]
    pub fn with_resume(self, resume: bool) -> Self {
        Self { resume, ..self }
    }

    /// Calls `f` after each epoch, on every rank.
    #[must_use]
    pub fn on_epoch(self, f: impl Fn(&Epoch) + Send + Sync + 'static) -> Self {
        Self { on_epoch: Some(Arc::new(f)), ..self }
    }

    /// The same settings without progress bar and `on_epoch`, such as for all ranks but one.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { progress: false, on_epoch: None, ..self }
    }

    pub(crate) fn report(&self, epoch: &Epoch) {
        if let Some(f) = &self.on_epoch {
            f(epoch);
        }
    }

    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let (epochs, lr, decay) = (self.epochs, self.lr, self.weight_decay);
        let positive = "positive finite numbers";
        ModelError::check_range("epochs", positive, epochs, epochs > 0)?;
        if let Some(patience) = self.patience {
            ModelError::check_range("patience", positive, patience, patience > 0)?;
        }
        ModelError::check_range("lr", positive, lr, lr.is_finite() && lr > 0.0)?;
        let is_valid = decay.is_finite() && decay >= 0.0;
        ModelError::check_range("weight_decay", "finite numbers from 0", decay, is_valid)?;
        let is_used = decay == 0.0 || self.optimizer.is_none();
        let range = "0 with an optimizer of the caller; set the penalty in the optimizer";
        ModelError::check_range("weight_decay", range, decay, is_used)?;
        let share = self.weight_averaging;
        let is_valid = (0.0..=1.0).contains(&share);
        ModelError::check_range("weight_averaging", "0.0..=1.0", share, is_valid)?;
        let range = "none with `weight_averaging`, which keeps the last epoch";
        let is_used = share == 0.0 || self.patience.is_none();
        ModelError::check_range("patience", range, self.patience.unwrap_or(0), is_used)?;
        let weights = self.class_weights.iter().flat_map(|w| w.iter());
        let wrong = weights.copied().find(|w| !(w.is_finite() && *w >= 0.0));
        let value = wrong.unwrap_or_default();
        ModelError::check_range("class_weights", "finite numbers from 0", value, wrong.is_none())?;
        let has_file = !self.resume || self.checkpoint.is_some();
        ModelError::check_range("resume", "false without `checkpoint`", self.resume, has_file)
    }

    /// The first epoch of the mean of parameters, if there is one.
    pub(crate) fn first_averaged(&self) -> Option<usize> {
        let first = (self.epochs as f64 * (1.0 - self.weight_averaging)).ceil() as usize;
        (self.weight_averaging > 0.0).then(|| first.min(self.epochs.saturating_sub(1)))
    }

    pub(crate) fn optimizer(&self) -> ModuleOptimizer {
        let optimizer = self.optimizer.clone().unwrap_or_else(|| {
            let mut adam = FusedAdamConfig::new().with_epsilon(1e-8);
            if self.weight_decay > 0.0 {
                adam =
                    adam.with_weight_decay(Some(WeightDecayConfig::new(self.weight_decay as f32)));
            }
            adam.init()
        });
        match &self.grad_clipping {
            Some(clipping) => optimizer.with_grad_clipping(clipping.init()),
            None => optimizer,
        }
    }

    pub(crate) fn schedule(&self) -> ModuleLrScheduler {
        self.schedule.clone().unwrap_or_else(|| ModuleLrScheduler::new(ConstantLr::new(self.lr)))
    }
}
