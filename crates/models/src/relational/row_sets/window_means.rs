//! The features of a linear model: means over the last rows along paths of foreign keys.

use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn_gnn_ops::{BinaryOp, Reduce, Side, gspmm, gspmm_copy};

use crate::params::autodiff::to_device_of;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_rows::TableInput;
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::row_sets::row_set_input::{
    OVERTONES, RowSets, SEED_NUMBERS, SET_NUMBERS, WINDOWS,
};

/// Standard deviations after which a feature is clipped.
const CLIP: f32 = 4.0;
/// How much larger than others the weights of features of the seed itself may be.
const SEED_GAIN: f32 = 8.0;

/// Standardised, shrunk means over the last rows of each path: the features of a linear model.
///
/// ```text
/// x[i]   = numbers, ages and vocabulary entries of row i
/// m_w[p] = Σ over the last w rows i of path p  (x[i] - c) / (n_w + 4)        n_w: how many there are, at most w
/// h      = clip((m_w[p], n_w / (n_w + 4), numbers of the seed) / deviation, -4, 4)         w = 1, 6, 20, 60
/// y      = h W + b                                                            b: without a penalty
/// ```
/// `c` is the mean over the rows of all training seeds: the mean of few rows is drawn towards it, so that an entity without
/// rows is an average one. Numbers of the seed are its phase of the year with three overtones, the gap between its time
/// and what it sees, and the size and freshness of each path's rows. The entity's own row counts by its numbers and ages,
/// without its vocabulary entries, by which it could be learned by heart.
///
/// [`train_database`](crate::train_database) finds `W` as the solution of a convex problem with an L2 penalty, which is
/// 64 times weaker for the phases, the gap and the ages of the entity's own row: there are few of them, and no other
/// feature says the same. The penalty is chosen by backtests ([`RelationalOptions::weight_decay`]). A strongly
/// penalised linear model generalises to a database whose last rows are years old, where a deep model does not.
///
/// [`RelationalOptions::weight_decay`]: crate::RelationalOptions::weight_decay
#[derive(Module, Debug)]
pub struct WindowMeans {
    /// `c` of each feature, `[features]`; the mean of features that are no means of rows.
    pub centers: Param<Tensor<1>>,
    /// One over the deviation of each feature, `[features]`; 0 of features of one value.
    pub scales: Param<Tensor<1>>,
    #[module(skip)]
    paths: Vec<PathColumns>,
}

/// What a path contributes.
#[derive(Clone, Debug)]
struct PathColumns {
    /// Features of a row.
    columns: usize,
    /// Ages among them, the last ones.
    ages: usize,
    /// Vocabulary entries among them.
    entries: usize,
    /// Whether it is the path of the entity itself, of which all windows are the same.
    is_entity: bool,
}

impl PathColumns {
    /// Windows, the first ones of all.
    fn windows(&self) -> usize {
        if self.is_entity { 1 } else { WINDOWS.len() }
    }
}

impl WindowMeans {
    /// Initializes a model of paths between tables that `encoders` describe.
    pub(crate) fn new(paths: &[RowPath], encoders: &[TableEncoderConfig], device: &Device) -> Self {
        let of = |path: &RowPath| {
            let encoder = encoders.iter().find(|encoder| encoder.table == path.table);
            let size = |f: fn(&TableEncoderConfig) -> usize| encoder.map_or(0, f);
            let is_entity = path.steps.is_empty();
            let entries = if is_entity { 0 } else { size(TableEncoderConfig::vocabulary) };
            let ages = size(TableEncoderConfig::ages);
            let columns = size(TableEncoderConfig::features) + entries + ages;
            PathColumns { columns, ages, entries, is_entity }
        };
        let paths: Vec<PathColumns> = paths.iter().map(of).collect();
        let width = shares(&paths).len();
        Self {
            centers: Param::from_tensor(Tensor::zeros([width], device)),
            scales: Param::from_tensor(Tensor::ones([width], device)),
            paths,
        }
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.centers.val().dims()[0]
    }

    /// For each feature, the one that is the share `n / (n + 4)` of its window; none of features that are no means.
    pub(crate) fn shares(&self) -> Vec<Option<usize>> {
        shares(&self.paths)
    }

    /// By which factor the weight of each feature may be larger at the same penalty.
    pub(crate) fn gains(&self) -> Vec<f32> {
        let mut all = vec![SEED_GAIN; SEED_NUMBERS];
        let seed_numbers = seed_numbers(&self.paths);
        all.resize(seed_numbers - OVERTONES, 1.0);
        all.resize(seed_numbers, SEED_GAIN);
        for path in &self.paths {
            all.resize(all.len() + WINDOWS.len(), 1.0);
            for _ in 0..path.windows() {
                all.resize(all.len() + path.columns - path.ages, 1.0);
                let gain = if path.is_entity { SEED_GAIN } else { 1.0 };
                all.resize(all.len() + path.ages, gain);
            }
        }
        all
    }

    /// Sets centres and scales, one per feature.
    pub(crate) fn set(&mut self, centers: Vec<f32>, scales: Vec<f32>) {
        let like = self.centers.val();
        let on = (&like.device(), like.dtype());
        let param = |values: Vec<f32>| {
            let width = values.len();
            Param::from_tensor(Tensor::from_data(TensorData::new(values, [width]), on))
        };
        self.centers = param(centers);
        self.scales = param(scales);
    }

    /// Centres and scales.
    pub(crate) fn moments(&self) -> (Vec<f32>, Vec<f32>) {
        let of = |param: &Param<Tensor<1>>| param.val().into_data().iter::<f32>().collect();
        (of(&self.centers), of(&self.scales))
    }

    /// Clips a standardised feature.
    pub(crate) fn clip(x: f32) -> f32 {
        x.clamp(-CLIP, CLIP)
    }

    /// Computes `h`, `[seeds, features]`.
    pub(crate) fn forward(&self, sets: &RowSets) -> Tensor<2> {
        let scales = self.scales.val().unsqueeze::<2>();
        (self.features(sets) * scales).clamp(-f64::from(CLIP), f64::from(CLIP))
    }

    /// Computes centred features, `[seeds, features]`.
    pub(crate) fn features(&self, sets: &RowSets) -> Tensor<2> {
        let centers = self.centers.val();
        let dtype = FloatDType::from(centers.dtype());
        let cast = |x: &Tensor<2>| to_device_of(x.clone().cast(dtype), &centers);
        let mut at = 0;
        let mut center = |columns: usize| {
            at += columns;
            centers.clone().narrow(0, at - columns, columns).unsqueeze::<2>()
        };
        let mut all = vec![];
        let numbers = Tensor::cat(vec![cast(&sets.numbers), cast(&sets.overtones)], 1);
        let mean = center(numbers.dims()[1]);
        all.push(numbers - mean);
        for (path, set) in self.paths.iter().zip(&sets.sets) {
            let shares = cast(&set.shares);
            let ([seeds, windows], device) = (shares.dims(), shares.device());
            all.push(shares.clone() - center(windows));
            let columns = path.columns;
            if columns == 0 {
                continue;
            }
            let count = set.rows.rows();
            if count == 0 {
                // Sums of no rows; their shares are 0 too.
                center(path.windows() * columns);
                let none = [seeds, path.windows() * columns];
                all.push(Tensor::zeros(none, (&device, centers.dtype())));
                continue;
            }
            let x = rows(&set.rows, path.entries, dtype).reshape([count, 1, columns]);
            let weights = set.windows.clone().cast(dtype).narrow(1, 0, path.windows());
            let weights = weights.reshape([count, path.windows(), 1]);
            let sums: Tensor<3> = gspmm(&set.pool, BinaryOp::Mul, Reduce::Sum, x, weights);
            let sums = to_device_of(sums.reshape([seeds, path.windows() * columns]), &centers);
            for window in 0..path.windows() {
                let of_window = sums.clone().narrow(1, window * columns, columns);
                all.push(of_window - shares.clone().narrow(1, window, 1) * center(columns));
            }
        }
        Tensor::cat(all, 1)
    }
}

/// How many numbers describe a seed and its sets of rows.
fn seed_numbers(paths: &[PathColumns]) -> usize {
    SEED_NUMBERS + SET_NUMBERS * paths.len() + OVERTONES
}

/// See [`WindowMeans::shares`].
fn shares(paths: &[PathColumns]) -> Vec<Option<usize>> {
    let mut all = vec![None; seed_numbers(paths)];
    for path in paths {
        let first = all.len();
        all.resize(first + WINDOWS.len(), None);
        for window in 0..path.windows() {
            all.resize(all.len() + path.columns, Some(first + window));
        }
    }
    all
}

/// Numbers, vocabulary entries and ages of rows.
fn rows(input: &TableInput, entries: usize, dtype: FloatDType) -> Tensor<2> {
    let mut all = vec![input.numbers().clone().cast(dtype)];
    if let Some((relation, weights)) = input.entries().filter(|_| entries > 0) {
        let weights = weights.clone().cast(dtype);
        let each = Tensor::<2>::eye(entries, &weights.device()).cast(dtype);
        all.push(gspmm(relation, BinaryOp::Mul, Reduce::Sum, each, weights));
    }
    let mut x = Tensor::cat(all, 1);
    if let Some(relation) = input.distinct() {
        x = gspmm_copy(relation, Side::Lhs, Reduce::Sum, x);
    }
    Tensor::cat(vec![x, input.ages().clone().cast(dtype)], 1)
}
