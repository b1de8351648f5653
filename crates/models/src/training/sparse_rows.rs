//! Trains large tables of a [`FeatureEncoder`] by the rows that a batch reads.

use std::sync::Arc;

use burn::config::Config;
use burn::module::{Module, Param, ParamId};
use burn::tensor::{DType, Device, Gradients, Int, Tensor, TensorData};
use burn_gnn_graph::{Relation, row_index};
use burn_gnn_ops::{AdamDecay, AdamStep, adam_step_rows};

use crate::encoders::encoder_input::EncoderInput;
use crate::encoders::feature_encoder::FeatureEncoder;
use crate::encoders::feature_encoder::no_rows;

/// The rows of sparse tables that [`FeatureEncoder::forward_rows`] read: leaves of autodiff, whose gradients have as
/// many rows.
#[derive(Clone, Debug)]
pub struct EncoderRows {
    tables: Vec<TableRows>,
}

#[derive(Clone, Debug)]
struct TableRows {
    table: usize,
    /// Rows of the table, ascending, each once.
    ids: Arc<[u32]>,
    rows: Tensor<2>,
}

impl EncoderRows {
    /// Of each sparse table that was read: its place in [`FeatureEncoder::tables`], the rows, and their values
    /// `[rows, dim]`.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u32], Tensor<2>)> {
        self.tables.iter().map(|t| (t.table, &*t.ids, t.rows.clone()))
    }
}

impl FeatureEncoder {
    /// [`forward`](Self::forward), with the rows of sparse tables
    /// ([`sparse_from`](crate::FeatureEncoderConfig::sparse_from)) that the input names as leaves of their own. After
    /// `backward`, [`SparseAdam::step`] steps these rows; an optimizer of Burn steps the other tables. The values are
    /// those of `forward`, to the bit.
    ///
    /// # Gradients
    /// `[rows that the input names, dim]` per sparse table: memory and time of the batch, not of the table.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::{AttrType, Builder, Decoder};
    /// use burn_gnn_models::{FeatureEncoderConfig, SparseAdamConfig};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("users");
    /// std::fs::write(&path, "id:int64\tcity:string\n7\tbonn\n9\tköln\n").unwrap();
    /// let decoder = Decoder::new().with_attributes([AttrType::string_buckets(1_000_000)]).with_dims([Some(8)]);
    /// let g = Builder::new().node(&path, "user", decoder.clone()).build(&Device::flex())?;
    /// let config = FeatureEncoderConfig::new(decoder).with_sparse_from(Some(100_000));
    /// let encoder = config.init(&Device::flex().autodiff());
    /// let mut optimizer = SparseAdamConfig::new().init(&encoder, &Device::flex());
    /// let (y, rows) = encoder.forward_rows(&encoder.input(g.nodes("user")?)?);
    /// let grads = y.sum().backward();
    /// assert_eq!(rows.iter().next().unwrap().2.grad(&grads).unwrap().dims(), [2, 8]); // not a million rows
    /// let encoder = optimizer.step(0.01, encoder, &rows, &grads);
    /// # assert_eq!(encoder.tables[0].val().dims(), [1_000_000, 8]);
    /// # Ok::<(), burn_gnn_models::ModelError>(())
    /// ```
    ///
    /// # Panics
    /// The input was made by another encoder.
    #[track_caller]
    pub fn forward_rows(&self, input: &EncoderInput) -> (Tensor<2>, EncoderRows) {
        let mut tables = vec![];
        let y = self.assemble(input, |i, relation, table| {
            if !self.is_sparse(i) {
                return (relation.clone(), table);
            }
            let mut ids = relation.src().to_vec();
            ids.sort_unstable();
            ids.dedup();
            let place = |row: &u32| ids.binary_search(row).unwrap_or_default() as u32;
            let src: Vec<u32> = relation.src().iter().map(place).collect();
            let (rows, dst) = (ids.len(), relation.dst().to_vec());
            let compact = Relation::from_coo(rows, relation.num_dst(), src, dst)
                .unwrap_or_else(|e| unreachable!("places are below the number of rows: {e}"));
            let rows = rows_of(table.clone().without_autodiff(), &ids);
            let rows = if table.is_autodiff() { rows.autodiff().require_grad() } else { rows };
            tables.push(TableRows { table: i, ids: ids.into(), rows: rows.clone() });
            (compact, rows)
        });
        (y, EncoderRows { tables })
    }
}

/// Rows of a table on the plain device.
fn rows_of(table: Tensor<2>, ids: &[u32]) -> Tensor<2> {
    // Backends need not take no rows.
    if ids.is_empty() {
        let dim = table.dims()[1];
        return table.slice([0..0, 0..dim]);
    }
    let index = row_index(ids.iter().map(|&v| v as usize), &table.device());
    table.select(0, index)
}

/// Settings of [`SparseAdam`].
#[derive(Config, Debug)]
pub struct SparseAdamConfig {
    /// Decay of the first moment.
    #[config(default = 0.9)]
    pub beta_1: f32,
    /// Decay of the second moment.
    #[config(default = 0.999)]
    pub beta_2: f32,
    /// Added to the root of the corrected second moment.
    #[config(default = 1e-8)]
    pub epsilon: f32,
}

impl SparseAdamConfig {
    /// No step yet, for the sparse tables of an encoder; the count of steps lies on `device`.
    pub fn init(&self, encoder: &FeatureEncoder, device: &Device) -> SparseAdam {
        let moments = |_| {
            let sparse = encoder.tables.iter().enumerate().filter(|t| encoder.is_sparse(t.0));
            let zeros = |t: &Param<Tensor<2>>| fixed(t.val().without_autodiff().zeros_like());
            sparse.map(|t| zeros(t.1)).collect()
        };
        let [moments_1, moments_2] = [0, 1].map(moments);
        let device = device.clone().without_autodiff();
        let time = Param::initialized(ParamId::new(), count(0, &device));
        SparseAdam { time, moments_1, moments_2, config: self.clone() }
    }
}

fn count(steps: i64, device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(vec![steps], [1]), (device, DType::I64))
}

fn fixed(t: Tensor<2>) -> Param<Tensor<2>> {
    Param::from_tensor(t).set_require_grad(false)
}

/// Adam (Kingma and Ba, ICLR 2015) on the rows that have a gradient: rows that no batch names keep their values and
/// moments.
///
/// `m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²; w -= lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + epsilon)`, where `t`
/// counts the steps of the optimizer and `g` is the sum of the gradients of a row that a batch names several times, as
/// in torch's `SparseAdam`. Where every batch names every row it is [`FusedAdam`](crate::FusedAdam), to the bit. The
/// `SparseOptimizer::adam` of `burn_gnn_dist` has the same rule for embeddings that ranks own.
///
/// # Departures from torch
/// `epsilon` is added after the second moment is corrected, as in the paper and in torch's `Adam`; torch's `SparseAdam`
/// adds it before: its `eps` is `epsilon · √(1 - β₂ᵗ)`. All tables share `t`; torch counts for each table the steps in
/// which it took part.
///
/// A module of Burn, so that moments and count are saved and loaded together with the encoder.
#[derive(Module, Debug)]
pub struct SparseAdam {
    /// Steps so far, `[1]`.
    pub time: Param<Tensor<1, Int>>,
    /// First moments, `[rows, dim]` per sparse table.
    pub moments_1: Vec<Param<Tensor<2>>>,
    /// Second moments.
    pub moments_2: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    config: SparseAdamConfig,
}

impl SparseAdam {
    /// One step of the rows of a batch. Tables that have grown since ([`FeatureEncoder::grow`]) get moments of 0 for
    /// their new rows.
    ///
    /// # Panics
    /// If the optimizer was made for an encoder with another number of sparse tables, or `rows` were read by another
    /// encoder.
    ///
    /// # Cost
    /// `O(rows of the batch)` if the module owns the only reference to the tables; otherwise the backend copies them first.
    #[must_use]
    #[track_caller]
    pub fn step(
        &mut self,
        lr: f64,
        mut encoder: FeatureEncoder,
        rows: &EncoderRows,
        grads: &Gradients,
    ) -> FeatureEncoder {
        let sparse: Vec<usize> =
            (0..encoder.tables.len()).filter(|&i| encoder.is_sparse(i)).collect();
        assert_eq!(
            self.moments_1.len(),
            sparse.len(),
            "`encoder` has another number of sparse tables than the one `SparseAdam` was made for"
        );
        let time = self.time.val().into_scalar::<i64>() + 1;
        let device = self.time.val().device();
        self.time = Param::initialized(self.time.id, count(time, &device));
        let SparseAdamConfig { beta_1, beta_2, epsilon } = self.config;
        let step =
            AdamStep { lr, beta_1, beta_2, epsilon, time: time as usize, decay: AdamDecay::None };
        let mut tables: Vec<Option<Param<Tensor<2>>>> =
            encoder.tables.into_iter().map(Some).collect();
        for part in &rows.tables {
            let Some(grad) = part.rows.grad(grads).filter(|_| !part.ids.is_empty()) else {
                continue;
            };
            let (Some(k), Some(Some(param))) = (
                sparse.iter().position(|&i| i == part.table),
                tables.get_mut(part.table).map(Option::take),
            ) else {
                panic!(
                    "`rows` were read by another encoder: it has no sparse table {}",
                    part.table
                );
            };
            let tracked = param.val().is_autodiff();
            let (id, table) = (param.id, param.into_value().without_autodiff());
            let [rows, dim] = table.dims();
            let moments = [&mut self.moments_1[k], &mut self.moments_2[k]].map(|m| {
                let m = std::mem::replace(m, fixed(no_rows(dim, &table))).into_value();
                let known = m.dims()[0];
                if known < rows {
                    Tensor::cat(
                        vec![m, Tensor::zeros([rows - known, dim], (&device, table.dtype()))],
                        0,
                    )
                } else {
                    m
                }
            });
            let [m, v] = moments;
            let (table, m, v) =
                adam_step_rows(table, grad.without_autodiff(), m, v, &part.ids, step);
            (self.moments_1[k], self.moments_2[k]) = (fixed(m), fixed(v));
            let table = if tracked { table.autodiff() } else { table };
            tables[part.table] = Some(Param::initialized(id, table).set_require_grad(false));
        }
        encoder.tables = tables.into_iter().flatten().collect();
        encoder
    }
}
