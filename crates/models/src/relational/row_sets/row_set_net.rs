//! Pools sets of rows along paths of foreign keys.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_graph::Stream;
use burn_gnn_ops::{
    BinaryOp, DropoutKey, Reduce, Side, attention, cat_features, dropout, gspmm, gspmm_copy,
};
use burn_gnn_sampling::SampleKey;

use crate::layers::attention::heads::split;
use crate::layers::dense::mlp::{apply, gelu, normalise};
use crate::params::autodiff::to_device_of;
use crate::params::init::Init;
use crate::relational::columns::table_encoder::TableEncoder;
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::row_sets::row_set_input::{RowSet, RowSets, SEED_NUMBERS, SET_NUMBERS};

/// Half-lives of the decayed means at the start of training, in days.
const HALF_LIVES: [f64; 4] = [60.0, 250.0, 1000.0, 4000.0];

/// Pools one set of rows per path and joins the results of all paths.
///
/// ```text
/// x[i] = gelu(enc(row i) P_0 + Σ over joined rows j of row i  enc(j) P_j)       a composite message
/// x[i] = layer_norm(x[i] + x[i] W)
/// s    = [Σ_i 2^(-age_i / h_k) x[i] / Σ_i 2^(-age_i / h_k)  for half-lives h_1 … h_4;
///         Σ_i softmax_i(x[i] A - age_i / 2000) x[i]  per head;   max_i x[i];   x[latest]]
/// h    = gelu(layer_norm([gelu(s_1 R_1) … gelu(s_p R_p); gelu(numbers of the seed)]) W_o)
/// ```
/// Ages are in days. Half-lives are learned.
///
/// # Source
/// Composite messages: Chen et al., "RelGNN: composite message passing for relational deep learning", ICML 2025.
/// Attention over sampled rows with time encodings: Dwivedi et al., "Relational graph transformer", 2025. Decayed means
/// of the latest rows are ours.
#[derive(Module, Debug)]
pub struct RowSetNet {
    /// A pool per path.
    pub pools: Vec<RowSetPool>,
    /// From numbers of the seed.
    pub seed: Linear,
    /// Over the results of all paths.
    pub norm: LayerNorm,
    /// To the result.
    pub output: Linear,
    #[module(skip)]
    tables: Vec<PathTables>,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

/// Encoders of the rows of a path and of the rows that join them, as numbers of tables.
#[derive(Clone, Debug)]
struct PathTables {
    rows: usize,
    joined: Vec<usize>,
}

/// Parameters of a path in a [`RowSetNet`].
#[derive(Module, Debug)]
pub struct RowSetPool {
    /// Of the rows.
    pub rows: Linear,
    /// Of the rows that join them, by path.
    pub joined: Vec<Linear>,
    /// `W`.
    pub mix: Linear,
    /// Over rows.
    pub norm: LayerNorm,
    /// `A`, one column per head.
    pub scores: Linear,
    /// Logarithms of the half-lives.
    pub half_lives: Param<Tensor<1>>,
    /// `R`.
    pub output: Linear,
}

impl RowSetNet {
    /// Initializes a net for paths between tables whose names are `ntypes`, which have an encoder each.
    pub(crate) fn new(
        paths: &[RowPath],
        ntypes: &[String],
        hidden: usize,
        heads: usize,
        prob: f64,
        device: &Device,
    ) -> Self {
        let init = Init::glorot(device);
        let square = |bias| init.linear([hidden, hidden], bias);
        let number = |table: &str| ntypes.iter().position(|t| t == table).unwrap_or_default();
        let tables = paths.iter().map(|path| PathTables {
            rows: number(&path.table),
            joined: path
                .joined
                .iter()
                .map(|steps| steps.last().map_or(0, |step| number(&step.refers_to)))
                .collect(),
        });
        let half_lives = || {
            let logs = HALF_LIVES.map(|days| days.ln() as f32).to_vec();
            let data = TensorData::new(logs, [HALF_LIVES.len()]);
            Param::from_tensor(Tensor::from_data(data, device))
        };
        let pool = |path: &RowPath| RowSetPool {
            rows: square(true),
            joined: path.joined.iter().map(|_| square(false)).collect(),
            mix: square(true),
            norm: LayerNormConfig::new(hidden).init(device),
            scores: init.linear([hidden, heads], false),
            half_lives: half_lives(),
            output: init.linear([hidden * (HALF_LIVES.len() + 3), hidden], true),
        };
        let all = hidden * (paths.len() + 1);
        Self {
            pools: paths.iter().map(pool).collect(),
            seed: init.linear([SEED_NUMBERS + SET_NUMBERS * paths.len(), hidden], true),
            norm: LayerNormConfig::new(all).init(device),
            output: init.linear([all, hidden], true),
            tables: tables.collect(),
            dropout: prob,
            key: DropoutKey::new(device),
        }
    }

    /// Computes `[seeds, hidden]`.
    pub(crate) fn forward(
        &self,
        encoders: &[TableEncoder],
        sets: &RowSets,
        key: SampleKey,
    ) -> Tensor<2> {
        let drop = |place: &str, i: usize, x: Tensor<2>| {
            if self.dropout <= 0.0 || !x.is_autodiff() || !self.key.training.is_enabled() {
                return x;
            }
            let stream = Stream::new(key.seed, &format!("row sets {place} {i}"), key.step);
            dropout(x, self.dropout, stream, None)
        };
        let weight = self.seed.weight.val();
        let seed = to_device_of(sets.numbers.clone(), &weight);
        let mut all = vec![gelu(apply(&self.seed, seed))];
        for (i, ((pool, set), tables)) in
            self.pools.iter().zip(&sets.sets).zip(&self.tables).enumerate()
        {
            let x = pool.rows(encoders, set, tables, |x| drop("rows", i, x));
            let s = drop("pools", i, pool.pool(set, x));
            all.push(gelu(apply(&pool.output, s)));
        }
        let h = normalise(Some(&self.norm), cat_features(all));
        gelu(apply(&self.output, drop("output", 0, h)))
    }
}

impl RowSetPool {
    /// Composite messages `[rows, hidden]`.
    fn rows(
        &self,
        encoders: &[TableEncoder],
        set: &RowSet,
        tables: &PathTables,
        drop: impl Fn(Tensor<2>) -> Tensor<2>,
    ) -> Tensor<2> {
        let mut x = apply(&self.rows, encoders[tables.rows].forward(&set.rows));
        for ((linear, (input, relation)), &table) in
            self.joined.iter().zip(&set.joined).zip(&tables.joined)
        {
            if input.rows() > 0 {
                let joined = apply(linear, encoders[table].forward(input));
                x = x + gspmm_copy(relation, Side::Lhs, Reduce::Sum, joined);
            }
        }
        let x = drop(gelu(x));
        let mixed = x.clone() + apply(&self.mix, x);
        normalise(Some(&self.norm), mixed)
    }

    /// Pools rows to `[seeds, 7 · hidden]`.
    fn pool(&self, set: &RowSet, x: Tensor<2>) -> Tensor<2> {
        let ([rows, hidden], seeds) = (x.dims(), set.pool.num_dst());
        let like = self.half_lives.val();
        let ages = to_device_of(set.ages.clone(), &like);
        let lives = like.dims()[0];
        // 2^(-age / h), and its sum per seed.
        let rates = (like.neg().exp() * -std::f64::consts::LN_2).unsqueeze::<2>();
        let decay = (ages.clone() * rates).exp();
        let sums = gspmm_copy(&set.pool, Side::Rhs, Reduce::Sum, decay.clone()) + 1e-3;
        let weighted: Tensor<3> = gspmm(
            &set.pool,
            BinaryOp::Mul,
            Reduce::Sum,
            x.clone().reshape([rows, 1, hidden]),
            decay.reshape([rows, lives, 1]),
        );
        let means = weighted / sums.reshape([seeds, lives, 1]);
        let heads = self.scores.weight.val().dims()[1];
        let logits = apply(&self.scores, x.clone()) - ages / 2000.0;
        let attended =
            attention(&set.pool, logits, split(x.clone(), [heads, hidden / heads]), None);
        let most = gspmm_copy(&set.pool, Side::Lhs, Reduce::Max, x.clone());
        let latest = gspmm_copy(&set.latest, Side::Lhs, Reduce::Sum, x);
        cat_features(vec![
            means.reshape([seeds, lives * hidden]),
            attended.reshape([seeds, hidden]),
            most,
            latest,
        ])
    }
}
