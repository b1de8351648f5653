//! Fits the linear model of window means, and chooses its penalty by backtests.

use std::time::Instant;

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_data::{Targets, TaskType};

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::metrics::scores::roc_auc_of;
use crate::relational::database_sampler::{DatabaseBatch, DatabaseLoader};
use crate::relational::linear::ridge::{
    LinearLoss, LinearRows, LinearWeights, Moments, feature_rows, slopes,
};
use crate::relational::relational_model::{RelationalModel, RelationalNet};
use crate::relational::relational_task::{RelationalTask, TargetEncoding};
use crate::relational::row_sets::window_means::WindowMeans;
use crate::training::batches::Batches;
use crate::training::fit::evaluate;
use crate::training::history::{Epoch, Trained};

/// L2 penalties among which backtests choose: the strongest one first.
const PENALTIES: [f64; 7] = [30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03];
/// The penalty without backtests.
const PENALTY: f64 = 1.0;
/// Gains of a step at which solutions end: of backtests, and of the model.
const TOLERANCES: [f64; 2] = [1e-5, 1e-9];
/// Most features that a model reads; those with the largest squared correlation with a target are kept.
const MOST_FEATURES: usize = 1500;
/// Deviation below which a feature is left out.
const LEAST_DEVIATION: f64 = 1e-4;

/// A past time at which the database is taken to be frozen.
pub(crate) struct Backtest {
    /// Training seeds before this time count: their windows have ended at the time of the backtest.
    pub(crate) before: i64,
    /// The seeds to predict.
    pub(crate) seeds: DatabaseLoader,
}

/// What a linear model is fitted to.
pub(crate) struct LinearFit<'a> {
    pub(crate) learned: &'a RelationalTask,
    /// Training seeds of each head.
    pub(crate) heads: &'a [&'a DatabaseLoader],
    /// Validation seeds of the first head.
    pub(crate) val: Option<&'a DatabaseLoader>,
    /// By which the penalty is chosen, unless it is given.
    pub(crate) backtests: &'a [Backtest],
    pub(crate) penalty: Option<f64>,
    /// Time after which the weight of an older seed is half that of a later one.
    pub(crate) half_life: Option<i64>,
    /// Passes over the training seeds, each with other gaps, whose rows are solved together.
    pub(crate) epochs: usize,
    pub(crate) metric: &'a Metric,
}

/// The seeds of a head, with features that are not standardised yet.
struct Seeds {
    /// Features and outputs of a seed.
    width: usize,
    outputs: usize,
    /// `[seeds, width]`.
    x: Vec<f32>,
    /// `[seeds, outputs]`.
    targets: Vec<f32>,
    /// Factor of the loss of each seed.
    weights: Vec<f32>,
    times: Vec<i64>,
}

/// The rows of a head in the order of time, with the times of their seeds.
struct HeadRows {
    rows: LinearRows,
    times: Vec<i64>,
}

impl Seeds {
    /// Features, targets and weights of each seed.
    fn iter(&self) -> impl Iterator<Item = (&[f32], &[f32], f64)> {
        let of = self.x.chunks(self.width.max(1)).zip(self.targets.chunks(self.outputs));
        of.zip(&self.weights).map(|((x, y), &weight)| (x, y, f64::from(weight)))
    }

    /// Some columns in the order of time: standardised as the model does, times their gains.
    fn sorted(&self, columns: &[Column]) -> HeadRows {
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        order.sort_by_key(|&i| self.times[i]);
        let (width, outputs) = (self.width, self.outputs);
        let write = |row: usize, to: &mut Vec<f32>| {
            let x = &self.x[order[row] * width..(order[row] + 1) * width];
            to.extend(columns.iter().map(|column| column.of(x)));
        };
        let targets = order.iter().flat_map(|&i| &self.targets[i * outputs..(i + 1) * outputs]);
        let weights = order.iter().map(|&i| self.weights[i]).collect();
        let targets = targets.copied().collect();
        let rows = LinearRows::new(columns.len(), outputs, targets, weights, write);
        HeadRows { rows, times: order.iter().map(|&i| self.times[i]).collect() }
    }
}

impl LinearFit<'_> {
    /// Standardises features by the training seeds of the first head, chooses the penalty, and solves the model with it:
    /// one epoch, without a learning rate. Returns it with the penalty.
    pub(crate) fn fit(
        &self,
        mut model: RelationalModel,
    ) -> Result<(Trained<RelationalModel>, f64), ModelError> {
        let start = Instant::now();
        let (mut penalty, mut loss, mut columns) = (self.penalty, 0.0, vec![]);
        for (i, (loader, target)) in self.heads.iter().zip(&self.learned.heads).enumerate() {
            let seeds = self.seeds(&model, loader, target)?;
            if let RelationalNet::WindowMeans(net) = &mut model.net {
                if i == 0 {
                    standardise(net, &seeds);
                }
                columns = columns_of(net);
            }
            let head = seeds.sorted(&columns);
            drop(seeds);
            let kind = loss_of(target.task_type);
            let mut moments = Moments::new(head.rows.width);
            let solved_with = match penalty {
                Some(penalty) => penalty,
                None => self.choose(&model, &columns, &head, &mut moments, target)?,
            };
            penalty = Some(solved_with);
            moments.extend(&head.rows, head.rows.len());
            let zeros = vec![0.0; (head.rows.width + 1) * head.rows.outputs];
            let (solved, value) =
                head.rows.solve(kind, &moments, solved_with, TOLERANCES[1], zeros);
            set_head(&mut model, i, &columns, &head.rows, &solved);
            loss = if i == 0 { value } else { loss };
        }
        let mut row = Epoch {
            epoch: 0,
            lr: 0.0,
            loss,
            train_score: None,
            val_score: None,
            val_loss: None,
            metric: self.metric.name(),
        };
        if let Some(val) = self.val {
            let measured = evaluate(&model, self.learned, val)?;
            row.val_score = Some(measured.score(self.metric)?);
        }
        let seconds_per_epoch = start.elapsed().as_secs_f64();
        let trained = Trained { model, kept_epoch: 0, history: vec![row], seconds_per_epoch };
        Ok((trained, penalty.unwrap_or(PENALTY)))
    }

    /// The penalty with the best mean score over all backtests, of equal ones the strongest.
    fn choose(
        &self,
        model: &RelationalModel,
        columns: &[Column],
        head: &HeadRows,
        moments: &mut Moments,
        target: &TargetEncoding,
    ) -> Result<f64, ModelError> {
        let kind = loss_of(target.task_type);
        let mut sums = [0.0; PENALTIES.len()];
        let mut count = 0;
        // Moments grow from the earliest backtest on.
        let mut backtests: Vec<&Backtest> = self.backtests.iter().collect();
        backtests.sort_by_key(|backtest| backtest.before);
        for backtest in backtests {
            let (mut x, mut targets) = (vec![], vec![]);
            for batch in backtest.seeds.batches(0) {
                let batch = batch?.batch;
                x.extend(floats(model.embed(&batch)));
                targets.extend(targets_of(&batch, target));
            }
            let seeds = targets.len() / target.outputs;
            let width = x.len() / seeds.max(1);
            let x = feature_rows(columns.len(), 0..seeds, |row, to| {
                let h = &x[row * width..(row + 1) * width];
                to.extend(columns.iter().map(|column| h[column.at] * column.gain));
            });
            moments.extend(&head.rows, head.times.partition_point(|&t| t < backtest.before));
            let mut weights = vec![0.0; (head.rows.width + 1) * head.rows.outputs];
            let mut scores = [0.0; PENALTIES.len()];
            for (score, penalty) in scores.iter_mut().zip(PENALTIES) {
                (weights, _) = head.rows.solve(kind, moments, penalty, TOLERANCES[0], weights);
                let outputs = head.rows.outputs(&x, &weights);
                *score = score_of(kind, outputs, &targets, target.outputs).unwrap_or(f64::NAN);
            }
            // Defined by the targets, so for all penalties or none.
            if scores.iter().all(|score| score.is_finite()) {
                sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(PENALTY);
        }
        let mut best = 0;
        for i in 1..sums.len() {
            if sums[i] > sums[best] {
                best = i;
            }
        }
        Ok(PENALTIES[best])
    }

    /// All passes over the seeds of a head that have a target.
    fn seeds(
        &self,
        model: &RelationalModel,
        loader: &DatabaseLoader,
        target: &TargetEncoding,
    ) -> Result<Seeds, ModelError> {
        let (outputs, mut width) = (target.outputs, 0);
        let (mut x, mut all_targets, mut weights, mut times) = (vec![], vec![], vec![], vec![]);
        for epoch in 0..self.epochs as u64 {
            for batch in loader.batches(epoch) {
                let batch = batch?.batch;
                let (RelationalNet::WindowMeans(net), Some(sets)) = (&model.net, &batch.sets)
                else {
                    continue;
                };
                width = net.width();
                let features = floats(net.features(sets));
                let targets = targets_of(&batch, target);
                let of_rows = features.chunks(width).zip(targets.chunks(outputs));
                for ((features, y), &time) in of_rows.zip(&batch.seeds.times) {
                    if y.iter().all(|y| !y.is_nan()) {
                        x.extend(features);
                        all_targets.extend(y);
                        weights.push(weight_of(y, target));
                        times.push(time);
                    }
                }
            }
        }
        if let (Some(half_life), Some(&latest)) = (self.half_life, times.iter().max()) {
            for (weight, &time) in weights.iter_mut().zip(&times) {
                let age = (latest as f64 - time as f64) / half_life as f64;
                *weight *= (-age).exp2() as f32;
            }
        }
        Ok(Seeds { width, outputs, x, targets: all_targets, weights, times })
    }
}

/// Sets centres and scales of features to weighted means and deviations over seeds.
/// A mean over rows of a table is centred by its share: few rows are drawn towards the centre.
fn standardise(net: &mut WindowMeans, seeds: &Seeds) {
    let shares = net.shares();
    let width = seeds.width;
    // Weighted sums of f · share and share².
    let (mut sums, mut share_sums) = (vec![0.0; width], vec![0.0; width]);
    let share = |x: &[f32], f: usize| shares[f].map_or(1.0, |share| f64::from(x[share]));
    for (x, _, weight) in seeds.iter() {
        for f in 0..width {
            sums[f] += weight * f64::from(x[f]);
            share_sums[f] += weight * share(x, f);
        }
    }
    let center = |(sum, share): (&f64, &f64)| if *share > 0.0 { sum / share } else { 0.0 };
    let centers: Vec<f64> = sums.iter().zip(&share_sums).map(center).collect();
    let (mut squares, mut total) = (vec![0.0; width], 0.0);
    for (x, _, weight) in seeds.iter() {
        for f in 0..width {
            let centred = f64::from(x[f]) - centers[f] * share(x, f);
            squares[f] += weight * centred * centred;
        }
        total += weight;
    }
    let scale = |square: &f64| {
        let deviation = (square / f64::max(total, f64::MIN_POSITIVE)).sqrt();
        if deviation > LEAST_DEVIATION { (1.0 / deviation) as f32 } else { 0.0 }
    };
    let mut scales: Vec<f32> = squares.iter().map(scale).collect();
    let mut order: Vec<usize> = (0..width).filter(|&f| scales[f] > 0.0).collect();
    if order.len() > MOST_FEATURES {
        // Σ over outputs of (Σ_i f · (target - mean))², of standardised features.
        let outputs = seeds.outputs;
        let (mut products, mut means) = (vec![0.0; width * outputs], vec![0.0; outputs]);
        for (_, y, weight) in seeds.iter() {
            means.iter_mut().zip(y).for_each(|(m, &y)| *m += weight * f64::from(y) / total);
        }
        for (x, y, weight) in seeds.iter() {
            for f in 0..width {
                let centred = f64::from(x[f]) - centers[f] * share(x, f);
                for (o, &y) in y.iter().enumerate() {
                    products[f * outputs + o] += weight * centred * (f64::from(y) - means[o]);
                }
            }
        }
        let score = |f: usize| {
            let of = &products[f * outputs..(f + 1) * outputs];
            of.iter().map(|x| x * x).sum::<f64>() * f64::from(scales[f]).powi(2)
        };
        order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        let dropped = order.split_off(MOST_FEATURES);
        dropped.into_iter().for_each(|f| scales[f] = 0.0);
    }
    net.set(centers.iter().map(|&c| c as f32).collect(), scales);
}

/// A feature that the solution reads.
struct Column {
    at: usize,
    gain: f32,
    center: f32,
    scale: f32,
    share: Option<usize>,
}

impl Column {
    /// The feature that is kept of features that are not centred.
    fn of(&self, x: &[f32]) -> f32 {
        let share = self.share.map_or(1.0, |share| x[share]);
        self.gain * WindowMeans::clip((x[self.at] - self.center * share) * self.scale)
    }
}

/// The features that are not the same for all seeds.
fn columns_of(net: &WindowMeans) -> Vec<Column> {
    let (centers, scales) = net.moments();
    let all = net.gains().into_iter().zip(net.shares()).enumerate();
    let all = all.map(|(at, (gain, share))| Column {
        at,
        gain,
        center: centers[at],
        scale: scales[at],
        share,
    });
    all.filter(|column| column.scale > 0.0).collect()
}

fn floats(x: Tensor<2>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

/// How well outputs predict targets: the mean area under the ROC curve of classes that are there or not, else the negative
/// mean loss. `None` without targets, or where no area is defined.
fn score_of(
    kind: LinearLoss,
    mut outputs: Vec<f32>,
    targets: &[f32],
    columns: usize,
) -> Option<f64> {
    let mean = |of: Vec<f64>| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
    if kind == LinearLoss::Logistic {
        let of_column = |column: usize| {
            let each =
                || (column..targets.len()).step_by(columns).filter(|&i| !targets[i].is_nan());
            let is_positive: Vec<bool> = each().map(|i| targets[i] > 0.5).collect();
            roc_auc_of(each().map(|i| f64::from(outputs[i])).collect(), &is_positive).ok()
        };
        return mean((0..columns).filter_map(of_column).collect());
    }
    let rows = outputs.chunks_mut(columns).zip(targets.chunks(columns));
    let known = rows.filter(|(_, y)| y.iter().all(|y| !y.is_nan()));
    mean(known.map(|(z, y)| -slopes(kind, z, y)).collect())
}

/// The factor of the loss of a row, by its class.
fn weight_of(y: &[f32], target: &TargetEncoding) -> f32 {
    let class = match target.task_type {
        TaskType::BinaryClassification => usize::from(y[0] > 0.5),
        _ => y.iter().position(|&y| y > 0.5).unwrap_or(0),
    };
    target.class_weights.get(class).copied().unwrap_or(1.0)
}

fn loss_of(task: TaskType) -> LinearLoss {
    match task {
        TaskType::Regression => LinearLoss::Absolute,
        TaskType::MulticlassClassification => LinearLoss::Softmax,
        _ => LinearLoss::Logistic,
    }
}

/// Targets `[seeds, outputs]` of a batch as a linear model learns them; NaN where they are missing.
fn targets_of(batch: &DatabaseBatch, target: &TargetEncoding) -> Vec<f32> {
    let is_binary = target.task_type == TaskType::BinaryClassification;
    match &batch.seeds.targets {
        Some(Targets::Values(values)) => {
            let of = |y: &f64| ((y - target.center) / target.scale) as f32;
            values.iter().map(of).map(|y| if y.is_finite() { y } else { f32::NAN }).collect()
        }
        Some(Targets::Classes(classes)) if is_binary => {
            classes.iter().map(|&y| if y < 0 { f32::NAN } else { y as f32 }).collect()
        }
        Some(Targets::Classes(classes)) => {
            let one = |class: i64| {
                let of =
                    move |o| if class < 0 { f32::NAN } else { f32::from(u8::from(class == o)) };
                (0..target.outputs as i64).map(of)
            };
            classes.iter().flat_map(|&class| one(class)).collect()
        }
        Some(Targets::Labels { values, .. }) => values.clone(),
        _ => vec![f32::NAN; batch.seeds.len() * target.outputs],
    }
}

/// Writes weights of features with gains into a head, which reads features without them.
fn set_head(
    model: &mut RelationalModel,
    head: usize,
    columns: &[Column],
    rows: &LinearRows,
    weights: &LinearWeights,
) {
    let Some(layer) = model.heads[head].layers.first_mut() else { return };
    let like = layer.weight.val();
    let on = (&like.device(), like.dtype());
    let (width, outputs) = (like.dims()[0], rows.outputs);
    let of = |j: usize| weights.chunks(rows.width + 1).map(move |w| w[j] as f32);
    let mut weight = vec![0.0; width * outputs];
    for (j, column) in columns.iter().enumerate() {
        let to = &mut weight[column.at * outputs..(column.at + 1) * outputs];
        to.iter_mut().zip(of(j)).for_each(|(to, w)| *to = w * column.gain);
    }
    let data = TensorData::new(weight, [width, outputs]);
    layer.weight = Param::from_tensor(Tensor::from_data(data, on));
    let data = TensorData::new(of(rows.width).collect::<Vec<f32>>(), [rows.outputs]);
    layer.bias = Some(Param::from_tensor(Tensor::from_data(data, on)));
}
