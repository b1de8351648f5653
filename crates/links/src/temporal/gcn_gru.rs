//! Defines `GcnGru`: graph convolutions and a recurrent unit for signals on the nodes of a fixed graph.

use std::ops::Range;

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use burn_gnn_data::NodeSeries;
use burn_gnn_models::{FusedAdamConfig, ModelError, select_rows};
use burn_gnn_ops::{Activation, Stream, cat_features, next_stream, seeded, uniform_rows};

use super::checks::at_least_one;
use super::layers::{GruCell, affine, apply, linear, matrix};

/// Settings of [`GcnGru`] and of its training by [`fit_series`].
#[derive(Clone, Debug)]
pub struct GcnGruConfig {
    /// Size of the state.
    pub hidden: usize,
    /// Size of a learned vector per node; 0 for none.
    pub embedding: usize,
    /// Number of predicted steps.
    pub horizon: usize,
    /// Training steps.
    pub steps: usize,
    /// Windows of nodes per training step.
    pub batch: usize,
    /// Learning rate of Adam at the first step; it falls linearly to 0.
    pub lr: f64,
    /// Weight decay of Adam, decoupled from the gradient.
    pub decay: f32,
    /// Steps between validations; the model of the best validation is kept.
    pub eval_every: usize,
    /// Share of the training times, at their end, that is used for validation.
    pub val: f64,
    /// Seed of initial values and batches.
    pub seed: u64,
}

impl GcnGruConfig {
    /// A model that predicts the next `horizon` values.
    pub fn new(horizon: usize) -> Self {
        Self {
            hidden: 32,
            embedding: 4,
            horizon,
            steps: 600,
            batch: 1024,
            lr: 3e-3,
            decay: 1e-4,
            eval_every: 100,
            val: 0.1,
            seed: 0,
        }
    }
    /// Initializes a model for `nodes` nodes.
    pub fn init(&self, nodes: usize, device: &Device) -> GcnGru {
        let rows = uniform_rows(next_stream(device), None, nodes, self.embedding, -0.1, 0.1);
        GcnGru {
            nodes: (self.embedding > 0)
                .then(|| Param::from_tensor(Tensor::from_data(rows, device))),
            convolution: linear(CHANNELS + self.embedding, self.hidden, true, device),
            cell: GruCell::new(self.hidden, self.hidden, device),
            output: linear(self.hidden, self.horizon, true, device),
        }
    }
}

/// Values per time and node that the model reads: the signal, and its weighted means over in- and out-neighbours.
const CHANNELS: usize = 3;

/// A graph convolution of the signal at each time step, followed by a gated recurrent unit over time, as in T-GCN (Zhao
/// et al., IEEE TITS 2020):
///
/// ```text
/// u[t] = relu(W_0 x[t] + W_1 (Â x[t]) + W_2 (Âᵀ x[t]) + W_3 e)      e: a learned vector of the node
/// h[t] = GRU(u[t], h[t - 1]);   prediction = x[T] + W h[T] + b
/// ```
/// `Â` is the matrix of weights, each row divided by its sum. A convolution of the signal itself is linear, so `Â x` is
/// computed once for the whole series.
#[derive(Module, Debug)]
pub struct GcnGru {
    nodes: Option<Param<Tensor<2>>>,
    convolution: Linear,
    cell: GruCell,
    output: Linear,
}

impl GcnGru {
    /// Predicted values, `[windows, horizon]`, of windows that end at time `end` of node `node`.
    ///
    /// # Panics
    /// A window that begins before the series or ends after it, or an unknown node.
    #[track_caller]
    pub fn forward(&self, signals: &GraphSignals, windows: &[(u32, u32)]) -> Tensor<2> {
        let device = self.output.weight.val().device().without_autodiff();
        let nodes: Vec<u32> = windows.iter().map(|w| w.1).collect();
        let embedding = self.nodes.as_ref().map(|e| select_rows(e.val(), &nodes));
        let hidden = self.output.weight.dims()[0];
        let mut h = Tensor::zeros([windows.len(), hidden], &device);
        for lag in (0..signals.lags).rev() {
            let of = |&(end, node): &(u32, u32)| signals.at(end as usize - lag, node as usize);
            let x = matrix(windows.iter().flat_map(of).collect(), CHANNELS, &device);
            let x = match &embedding {
                None => x,
                Some(e) => cat_features(vec![x, e.clone()]),
            };
            h = self.cell.forward(apply(&self.convolution, x, Activation::Relu), h);
        }
        let last = windows.iter().map(|w| signals.at(w.0 as usize, w.1 as usize)[0]).collect();
        affine(&self.output, h) + matrix(last, 1, &device)
    }
}

/// A series with the means over neighbours, standardised by its training part.
#[derive(Clone, Debug)]
pub struct GraphSignals {
    nodes: usize,
    lags: usize,
    /// Mean and deviation of the training part.
    scale: [f64; 2],
    /// `[steps, nodes]` of `CHANNELS` values.
    values: Vec<[f32; CHANNELS]>,
}

impl GraphSignals {
    /// Standardises a series by the mean and deviation over the times `train`. A neighbourhood whose weights have the sum 0
    /// has the mean 0.
    ///
    /// # Panics
    /// `train` is not within the series, or there is not one weight per edge.
    ///
    /// # Cost
    /// `O(steps · (nodes + edges))`.
    pub fn new(series: &NodeSeries, train: Range<usize>) -> Self {
        let n = series.nodes;
        let part = &series.values[train.start * n..train.end * n];
        let count = part.len().max(1) as f64;
        let mean = part.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let square = part.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
        let scale = [mean, square.sqrt().max(1e-12)];
        let (src, dst) = (series.edges.src(), series.edges.dst());
        // Sums of weights over in- and out-neighbours.
        let mut totals = vec![[0.0f64; 2]; n];
        for (e, &w) in series.weights.iter().enumerate() {
            totals[dst[e] as usize][0] += f64::from(w);
            totals[src[e] as usize][1] += f64::from(w);
        }
        let mut sums = vec![[0.0f64; 2]; n];
        let mut values = Vec::with_capacity(series.values.len());
        for row in series.values.chunks(n.max(1)) {
            let x: Vec<f64> = row.iter().map(|&v| (f64::from(v) - mean) / scale[1]).collect();
            sums.fill([0.0; 2]);
            for (e, &w) in series.weights.iter().enumerate() {
                let (u, v, w) = (src[e] as usize, dst[e] as usize, f64::from(w));
                sums[v][0] += w * x[u];
                sums[u][1] += w * x[v];
            }
            let ratio = |a: f64, b: f64| if b == 0.0 { 0.0 } else { (a / b) as f32 };
            let of_node = |((&x, s), t): ((&f64, &[f64; 2]), &[f64; 2])| {
                [x as f32, ratio(s[0], t[0]), ratio(s[1], t[1])]
            };
            values.extend(x.iter().zip(&sums).zip(&totals).map(of_node));
        }
        Self { nodes: n, lags: series.lags, scale, values }
    }

    fn at(&self, time: usize, node: usize) -> [f32; CHANNELS] {
        self.values[time * self.nodes + node]
    }

    /// Windows whose inputs and targets lie within `times`: the last time of the inputs and the node.
    fn windows(&self, times: Range<usize>, horizon: usize) -> Vec<(u32, u32)> {
        let first = (times.start + self.lags).saturating_sub(1);
        let last = times.end.saturating_sub(horizon);
        let of = |end: usize| (0..self.nodes as u32).map(move |node| (end as u32, node));
        (first..last).flat_map(of).collect()
    }

    /// Standardised targets, `[windows, horizon]`.
    fn targets(&self, windows: &[(u32, u32)], horizon: usize) -> Vec<f32> {
        let of = |&(end, node): &(u32, u32)| {
            (1..=horizon).map(move |step| self.at(end as usize + step, node as usize)[0])
        };
        windows.iter().flat_map(of).collect()
    }
}

/// Errors of predictions, over all windows, nodes and predicted steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesMetrics {
    /// Mean squared error.
    pub mse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

impl SeriesMetrics {
    /// Root of the mean squared error.
    pub fn rmse(&self) -> f64 {
        self.mse.sqrt()
    }
}

/// A trained model of a series.
#[derive(Clone, Debug)]
pub struct FittedSeries {
    /// The model of the best validation.
    pub model: GcnGru,
    /// The signals that it reads.
    pub signals: GraphSignals,
    /// Errors on the times of validation.
    pub val: SeriesMetrics,
}

impl FittedSeries {
    /// Errors on windows whose inputs and targets lie within `times`; not a number if no window does.
    ///
    /// # Panics
    /// `times` is not within the series.
    #[track_caller]
    pub fn evaluate(&self, times: Range<usize>) -> SeriesMetrics {
        evaluate(&self.model, &self.signals, times)
    }
}

/// Trains a model on the training times of a series, by Adam on the squared error of random windows. Validation is the end
/// of the training times; no window reads beyond them, and the series is standardised by the times before validation.
/// `report` is called with the number of steps after each validation.
///
/// # Errors
/// A size of 0; a learning rate that is not a number above 0; a share of validation outside `0..1`; training times that are not within the series or too short for a
/// window; another number of values or weights than the series declares; an error on validation that is not finite
/// ([`ModelError::Diverged`], whose batch is the number of the step).
pub fn fit_series(
    series: &NodeSeries,
    config: &GcnGruConfig,
    device: &Device,
    mut report: impl FnMut(usize, SeriesMetrics),
) -> Result<FittedSeries, ModelError> {
    for (arg, value) in
        [("horizon", config.horizon), ("steps", config.steps), ("batch", config.batch)]
    {
        at_least_one(arg, value)?;
    }
    for (arg, value) in [("hidden", config.hidden), ("series: lags", series.lags)] {
        at_least_one(arg, value)?;
    }
    let lr = config.lr;
    ModelError::check_range("lr", "finite numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
    ModelError::check_range("val", "0..1", config.val, (0.0..1.0).contains(&config.val))?;
    if series.train.start > series.train.end || series.train.end > series.steps {
        let (range, value) =
            (format!("0..{} (steps)", series.steps), format!("{:?}", series.train));
        return Err(ModelError::OutOfRange { arg: "series: train".into(), range, value });
    }
    let values = series.steps.saturating_mul(series.nodes);
    let counts = [
        ("series: values", "steps · nodes", values, series.values.len()),
        ("series: weights", "one per edge", series.edges.src().len(), series.weights.len()),
    ];
    for (arg, why, expected, actual) in counts {
        if expected != actual {
            let (arg, why) = (arg.into(), why.into());
            return Err(ModelError::Length { arg, why, expected, actual });
        }
    }
    let end = series.train.end;
    let held = (config.val * series.train.len() as f64).ceil() as usize;
    let cut = end.saturating_sub(held).max(series.train.start);
    let signals = GraphSignals::new(series, series.train.start..cut);
    let windows = signals.windows(series.train.start..cut, config.horizon);
    // Inputs of validation may lie before the cut.
    let val = cut.saturating_sub(series.lags - 1).max(series.train.start)..end;
    at_least_one("series: windows of training", windows.len())?;
    at_least_one(
        "series: windows of validation",
        signals.windows(val.clone(), config.horizon).len(),
    )?;
    let autodiff = device.clone().autodiff();
    let mut model = seeded(config.seed, || config.init(series.nodes, &autodiff));
    let mut optimizer = FusedAdamConfig::new()
        .with_epsilon(1e-8)
        .with_decoupled_weight_decay(Some(config.decay))
        .init();
    let mut best: Option<(SeriesMetrics, GcnGru)> = None;
    for step in 0..config.steps {
        let stream = Stream::new(config.seed, "windows", step as u64);
        let draw = |i: usize| {
            let at = (stream.uniform(i as u64, 0) * windows.len() as f64) as usize;
            windows[at.min(windows.len() - 1)]
        };
        let batch: Vec<(u32, u32)> = (0..config.batch).map(draw).collect();
        let targets = signals.targets(&batch, config.horizon);
        let targets = matrix(targets, config.horizon, &device.clone().without_autodiff());
        let loss = (model.forward(&signals, &batch) - targets).square().mean();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(lr * (1.0 - step as f64 / config.steps as f64), model, grads);
        if (step + 1).is_multiple_of(config.eval_every.max(1)) || step + 1 == config.steps {
            let plain = model.valid();
            let found = evaluate(&plain, &signals, val.clone());
            if !found.mse.is_finite() {
                let (epoch, pass, batch, loss) = (0, "validation", step, found.mse);
                return Err(ModelError::Diverged { epoch, pass, batch, loss, lr });
            }
            report(step + 1, found);
            if best.as_ref().is_none_or(|b| found.mse < b.0.mse) {
                best = Some((found, plain));
            }
        }
    }
    match best {
        Some((val, model)) => Ok(FittedSeries { model, signals, val }),
        None => unreachable!("the last step is validated"),
    }
}

fn evaluate(model: &GcnGru, signals: &GraphSignals, times: Range<usize>) -> SeriesMetrics {
    let horizon = model.output.weight.dims()[1];
    let (mut square, mut absolute, mut count) = (0.0, 0.0, 0usize);
    for windows in signals.windows(times, horizon).chunks(8192) {
        let found: Vec<f32> = model.forward(signals, windows).into_data().iter::<f32>().collect();
        for (a, b) in found.iter().zip(signals.targets(windows, horizon)) {
            let difference = (f64::from(*a) - f64::from(b)) * signals.scale[1];
            square += difference * difference;
            absolute += difference.abs();
            count += 1;
        }
    }
    let n = count as f64;
    SeriesMetrics { mse: square / n, mae: absolute / n }
}
