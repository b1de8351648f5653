//! Trains node classifiers on the full graph, on one machine or on ranks.

use std::fmt;
use std::time::Instant;

use burn::config::Config;
use burn::module::Module;
use burn::optim::{GradientsParams, decay::WeightDecayConfig};
use burn::tensor::Tensor;
use burn_gnn_files::internal::Progress;
use burn_gnn_ops::{EdgeTypes, GraphView};
use burn_gnn_sampling::Block;

use crate::encoders::node_embedding::NodeEmbedding;
use crate::error::ModelError;
use crate::inference::features::feature_of_size;
use crate::layers::layer_views::{LayerViews, Whole};
use crate::layers::type_map::NodeTensors;
use crate::metrics::classification::Counts;
use crate::metrics::rows::Rows;
use crate::params::param_ids::check_param_ids;
use crate::training::fused_adam::FusedAdamConfig;
use crate::training::gradient_sync::GradientSync;
use crate::training::node_task::NodeTask;

/// A model that classifies the nodes of one type.
pub trait NodeClassifier: Module {
    /// The parameters that every rank holds alike, whose gradients are summed over ranks. Parameters
    /// outside it are owned by this rank.
    type Dense: Module;

    /// Logits `[num_dst, num_classes]` of node type `target`, layer `i` on view `i`; `x` holds the features of the
    /// input nodes by type.
    ///
    /// This is what a model states; [`logits`](Self::logits) and [`logits_blocks`](Self::logits_blocks) are it on a
    /// graph and on the blocks of a batch.
    ///
    /// # Panics
    /// Not one view for each layer, features that are missing or disagree with the first view.
    #[track_caller]
    fn logits_over<V: LayerViews + ?Sized>(
        &self,
        views: &V,
        x: &NodeTensors,
        target: &str,
    ) -> Tensor<2>;

    /// Logits `[num_dst, num_classes]` of node type `target`; `x` holds the features of the input nodes by type.
    ///
    /// # Panics
    /// As [`logits_over`](Self::logits_over).
    #[track_caller]
    fn logits<G: GraphView + ?Sized>(&self, g: &G, x: &NodeTensors, target: &str) -> Tensor<2> {
        self.logits_over(&Whole(g), x, target)
    }

    /// Logits `[output nodes, num_classes]` of the nodes of type `target` that the last block of a
    /// [`MiniBatch`](burn_gnn_sampling::MiniBatch) computes; `x` holds the features of the input nodes by type. Rows of
    /// seeds are named by `MiniBatch::seeds`. With all neighbours they are those of the graph ([`LayerViews`]).
    ///
    /// # Panics
    /// As [`logits_over`](Self::logits_over).
    #[track_caller]
    fn logits_blocks(&self, blocks: &[Block], x: &NodeTensors, target: &str) -> Tensor<2> {
        self.logits_over(blocks, x, target)
    }

    /// See [`Dense`](Self::Dense).
    fn dense(&self) -> &Self::Dense;

    /// Node types whose features the model reads, and the size that it was made for: [`train`] refuses others before
    /// the first pass. Empty by default; then layers panic where they meet another size.
    fn feature_sizes(&self, _target: &str) -> Vec<(String, usize)> {
        vec![]
    }

    /// The embeddings that only this rank holds, where the model has some.
    fn embedding_mut(&mut self) -> Option<&mut NodeEmbedding> {
        None
    }
}

/// Settings of [`train`].
#[derive(Config, Debug)]
pub struct TrainConfig {
    /// Passes over the graph, at most.
    #[config(default = 50)]
    pub epochs: usize,
    /// Learning rate of Adam.
    #[config(default = 0.01)]
    pub lr: f64,
    /// L2 penalty, added to gradients.
    #[config(default = 0.0)]
    pub weight_decay: f64,
    /// Ends training after this many epochs in a row without a better one on the validation rows; none: never. Without
    /// validation rows it has no effect.
    pub patience: Option<usize>,
    /// Seed of dropout; that of initial weights is the scope in which the model is made ([`seeded`](crate::seeded)).
    #[config(default = 0)]
    pub seed: u64,
    /// Whether a progress bar is drawn (on a terminal); a line remains of it, that of [`Trained`]'s `Display`.
    #[config(default = true)]
    pub progress: bool,
}

/// Whether something is so on this rank or another.
fn on_any_rank(here: bool, sync: &impl GradientSync) -> bool {
    let mut ranks = [f64::from(u8::from(here))];
    sync.sum(&mut ranks);
    ranks[0] > 0.0
}

/// Fails on every rank where one has no features of a size that the model was made for.
fn check_features<M: NodeClassifier, G: GraphView + ?Sized>(
    model: &M,
    task: &NodeTask<'_, G>,
    sync: &impl GradientSync,
) -> Result<(), ModelError> {
    let of_type = |(ntype, size): &(String, usize)| {
        feature_of_size(task.graph.schema(), &task.features, ntype, *size).map(drop)
    };
    let here = model.feature_sizes(&task.target).iter().try_for_each(of_type);
    let anywhere = on_any_rank(here.is_err(), sync);
    match here {
        Ok(()) if anywhere => Err(ModelError::Ranks(
            "features of another rank do not fit the model; its error names them".into(),
        )),
        here => here,
    }
}

/// Fails on every rank where one has features that are no numbers: their loss is none either, whatever the learning
/// rate.
fn check_finite<G: GraphView + ?Sized>(
    task: &NodeTask<'_, G>,
    sync: &impl GradientSync,
) -> Result<(), ModelError> {
    let schema = task.graph.schema();
    let features = task.features.clone().into_list(schema)?;
    let of_type = |(ntype, x): (&String, Option<Tensor<2>>)| {
        let Some(x) = x.filter(|x| x.shape().num_elements() > 0) else { return Ok(()) };
        let wrong = x.without_autodiff().is_finite().bool_not();
        if !wrong.clone().any().into_scalar::<bool>() {
            return Ok(());
        }
        let [_, columns] = wrong.dims();
        let first = wrong.into_data().iter::<bool>().position(|wrong| wrong).unwrap_or(0);
        let (row, column) = (first / columns, first % columns);
        let message = format!(
            "expected finite features, found NaN or an infinity, first in column {column} of node {row}; \
             replace them (0, or the mean of the column), the learning rate is not the cause"
        );
        Err(ModelError::input(ntype, message))
    };
    let here = schema.ntypes().iter().zip(features).try_for_each(of_type);
    let anywhere = on_any_rank(here.is_err(), sync);
    match here {
        Ok(()) if anywhere => Err(ModelError::Ranks(
            "features of another rank hold NaN or an infinity; its error names the node".into(),
        )),
        here => here,
    }
}

/// Fails on every rank where one has a label that the model has no logit for.
fn check_classes<G: ?Sized>(
    task: &NodeTask<'_, G>,
    classes: usize,
    sync: &impl GradientSync,
) -> Result<(), ModelError> {
    let all = [&task.train, &task.val, &task.test].into_iter().flat_map(|rows| rows.labels.iter());
    let largest = all.copied().max().filter(|&l| l as usize >= classes);
    if !on_any_rank(largest.is_some(), sync) {
        return Ok(());
    }
    let value = largest.map_or("one beyond it on another rank".to_owned(), |l| l.to_string());
    let range = format!("0..{classes}, the classes of the model");
    Err(ModelError::out_of_range(format!("label of {}", task.target), range, value))
}

/// What one epoch showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// From 0.
    pub epoch: usize,
    /// Mean cross entropy of the training rows before the step, dropout in effect.
    pub loss: f64,
    /// Accuracy on the training rows of the same pass.
    pub train_accuracy: f64,
    /// Accuracy on the validation rows after the step, if there are any.
    pub val_accuracy: Option<f64>,
    /// Mean cross entropy on the validation rows.
    pub val_loss: Option<f64>,
}

/// `loss 0.4321  training 91.4 %  validation 78.2 %`.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss {:.4}  training {:.1} %", self.loss, 100.0 * self.train_accuracy)?;
        match self.val_accuracy {
            Some(accuracy) => write!(f, "  validation {:.1} %", 100.0 * accuracy),
            None => Ok(()),
        }
    }
}

/// A trained model.
#[derive(Debug)]
pub struct Trained<M> {
    /// Parameters after the epoch with the best validation accuracy (ties: the lower validation loss);
    /// after the last epoch where there are no validation rows. On the plain device.
    pub model: M,
    /// Epoch that `model` is from.
    pub kept_epoch: usize,
    /// Every epoch.
    pub history: Vec<Epoch>,
    /// Wall time per epoch, validation included.
    pub seconds_per_epoch: f64,
}

/// One line: epochs, time, the last losses and accuracies, and the kept epoch with its validation accuracy.
/// Epochs count from 0.
impl<M> fmt::Display for Trained<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs = self.history.len();
        let seconds = self.seconds_per_epoch * epochs as f64;
        let plural = if epochs == 1 { "" } else { "s" };
        write!(f, "trained {epochs} epoch{plural} in {seconds:.1} s")?;
        let Some(last) = self.history.last() else { return Ok(()) };
        write!(f, ": {last}")?;
        let kept = self.history.get(self.kept_epoch).and_then(|e| e.val_accuracy);
        match kept {
            Some(best) => {
                write!(f, "; kept epoch {} (validation {:.1} %)", self.kept_epoch, 100.0 * best)
            }
            None => write!(f, "; kept the last epoch, as there are no validation nodes"),
        }
    }
}

/// Trains with Adam (β 0.9 and 0.999, ε 1e-8) on the whole graph, one step per epoch.
///
/// On several ranks each holds its part in `task`; losses, accuracies and gradients are summed by
/// `sync`, so all ranks see the same numbers and end at the same epoch. `on_epoch` sees each epoch on
/// every rank. Every rank makes `model` itself, with the same dense parameters ([`seeded`](crate::seeded)).
///
/// # Errors
/// Dense parameters that differ between ranks ([`GradientSync::check_replicas`]), no training row on any rank, no
/// epochs, patience of 0, a learning rate that is not positive, a model whose parameters are on a device without
/// autodiff, parameters that share an id ([`check_param_ids`]), features that are missing, not finite, or of another
/// size than the model was made for ([`NodeClassifier::feature_sizes`]), a class that the model has no logit for, or a loss that is no longer finite.
///
/// # Panics
/// Features with other rows than the graph's nodes; what a model panics with.
#[track_caller]
pub fn train<M, G, S>(
    mut model: M,
    task: &NodeTask<'_, G>,
    config: &TrainConfig,
    sync: &S,
    mut on_epoch: impl FnMut(&Epoch),
) -> Result<Trained<M>, ModelError>
where
    M: NodeClassifier,
    G: GraphView + ?Sized,
    S: GradientSync,
{
    if task.train.total == 0 {
        return Err(ModelError::NothingToTrain);
    }
    let (epochs, lr, decay) = (config.epochs, config.lr, config.weight_decay);
    let positive = "positive finite numbers";
    ModelError::check_range("epochs", positive, epochs, epochs > 0)?;
    if let Some(patience) = config.patience {
        ModelError::check_range("patience", positive, patience, patience > 0)?;
    }
    ModelError::check_range("lr", positive, lr, lr.is_finite() && lr > 0.0)?;
    let is_valid = decay.is_finite() && decay >= 0.0;
    ModelError::check_range("weight_decay", "finite numbers from 0", decay, is_valid)?;
    check_param_ids(&model)?;
    sync.check_replicas(model.dense())?;
    let devices = model.devices();
    if let Some(plain) = devices.first().filter(|_| devices.iter().all(|d| !d.is_autodiff())) {
        let range = "devices that record gradients (make the model on `device.autodiff()`)";
        return Err(ModelError::out_of_range("device of the model", range, format!("{plain:?}")));
    }
    check_features(&model, task, sync)?;
    check_finite(task, sync)?;
    let mut adam = FusedAdamConfig::new().with_epsilon(1e-8);
    if config.weight_decay > 0.0 {
        adam = adam.with_weight_decay(Some(WeightDecayConfig::new(config.weight_decay as f32)));
    }
    let mut optimizer = adam.init();
    let draw = config.progress && sync.reports();
    let bar = Progress::steps(draw, "training", "epochs", config.epochs as u64);
    let mut history = Vec::with_capacity(config.epochs);
    let mut best: Option<(f64, f64, usize, M)> = None;
    let start = Instant::now();
    for epoch in 0..config.epochs {
        let view = GraphView::at_step(&task.graph, config.seed, epoch as u64);
        let logits = model.logits(&view, &task.features, &task.target);
        if epoch == 0 {
            check_classes(task, logits.dims()[1], sync)?;
        }
        let loss = task.train.cross_entropy(logits.clone());
        let mut grads = loss.backward();
        let counts = Counts::new(&logits.inner(), &task.train);
        let dense = GradientsParams::from_module(&mut grads, model.dense());
        let dense = sync.sum_gradients(model.dense(), dense);
        let owned = GradientsParams::from_module(&mut grads, &model);
        model = optimizer.step(config.lr, model, dense);
        if !owned.is_empty() {
            model = optimizer.step(config.lr, model, owned);
        }
        let mut sums = [loss.inner().into_scalar::<f64>(), counts.correct];
        sync.sum(&mut sums);
        let mut row = Epoch {
            epoch,
            loss: sums[0],
            train_accuracy: sums[1] / task.train.total as f64,
            val_accuracy: None,
            val_loss: None,
        };
        if !row.loss.is_finite() {
            return Err(ModelError::Diverged { epoch, loss: row.loss, lr: config.lr });
        }
        if task.val.total > 0 {
            let kept = model.valid();
            let c = evaluate(&kept, task, &task.val, sync);
            if !c.loss.is_finite() {
                return Err(ModelError::Diverged { epoch, loss: c.mean_loss(), lr: config.lr });
            }
            (row.val_accuracy, row.val_loss) = (Some(c.accuracy()), Some(c.mean_loss()));
            let better =
                best.as_ref().is_none_or(|(a, l, ..)| (c.accuracy(), -c.mean_loss()) > (*a, -*l));
            if better {
                best = Some((c.accuracy(), c.mean_loss(), epoch, kept));
            }
        }
        bar.say(row.to_string());
        bar.inc(1);
        bar.suspend(|| on_epoch(&row));
        history.push(row);
        // Every rank has the same sums, so all end here together.
        let waited = best.as_ref().map_or(0, |b| epoch - b.2);
        if config.patience.is_some_and(|p| waited >= p) {
            break;
        }
    }
    let seconds_per_epoch = start.elapsed().as_secs_f64() / history.len().max(1) as f64;
    let (kept_epoch, model) = match best {
        Some((_, _, epoch, m)) => (epoch, m),
        None => (config.epochs.saturating_sub(1), model.valid()),
    };
    let trained = Trained { model, kept_epoch, history, seconds_per_epoch };
    bar.finish(trained.to_string());
    Ok(trained)
}

/// Accuracy and loss of `rows` over all ranks. The model runs as [`valid`](Module::valid), whatever device it is on:
/// without dropout, batch normalisation by running means, which do not change, and without a graph for a backward.
pub fn evaluate<M, G, S>(model: &M, task: &NodeTask<'_, G>, rows: &Rows, sync: &S) -> Counts
where
    M: NodeClassifier,
    G: GraphView + ?Sized,
    S: GradientSync,
{
    let x = task.features.clone().map(|_, x| x.without_autodiff());
    let edges = EdgeTypes::new(&task.graph).without_autodiff();
    let logits = model.valid().logits(&edges, &x, &task.target);
    let c = Counts::new(&logits, rows);
    let mut sums = [c.correct, c.loss, c.rows];
    sync.sum(&mut sums);
    Counts { correct: sums[0], loss: sums[1], rows: sums[2] }
}
