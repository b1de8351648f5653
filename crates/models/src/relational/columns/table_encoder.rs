//! Implements the encoder of a table's rows.

use burn::module::{Module, Param};
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, Linear};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn_gnn_ops::{
    Activation, BinaryOp, Reduce, Side, bias_activation, gspmm, gspmm_copy, matmul_rows,
};

use crate::error::ModelError;
use crate::layers::dense::mlp::{apply_then, normalise};
use crate::params::autodiff::to_device_of;
use crate::params::init::{Init, panicking_init, zeros};
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_rows::TableInput;

/// Encodes rows of a table, each as seen at its seed's time, as `[rows, hidden]`.
///
/// ```text
/// z = numbers W + Σ over vocabulary entries e of the row  weight(e) · V[e] + ages W_a + b
/// y = z + relu(layer_norm(z)) W_2 + b_2
/// ```
/// A category that the rows of the statistics do not have contributes 0, because no training row has it either.
///
/// # Cost
/// One matrix product over the numbers and one sparse product over the vocabulary, whatever the number of columns, both
/// once per distinct row; one product over ages and one of `hidden · hidden` per row.
#[derive(Module, Debug)]
pub struct TableEncoder {
    /// `[features, hidden]`; none without numbers.
    pub numbers: Option<Param<Tensor<2>>>,
    /// `[ages, hidden]`; none without times.
    pub ages: Option<Param<Tensor<2>>>,
    /// `[vocabulary, hidden]`; none without a vocabulary.
    pub vocabulary: Option<Param<Tensor<2>>>,
    /// `[hidden]`.
    pub bias: Param<Tensor<1>>,
    /// Over `hidden`.
    pub norm: LayerNorm,
    /// `[hidden, hidden]`.
    pub residual: Linear,
    #[module(skip)]
    config: TableEncoderConfig,
}

impl TableEncoderConfig {
    /// Initializes an encoder: matrices by Glorot, vocabulary entries from a normal distribution of deviation 0.1,
    /// biases 0.
    ///
    /// # Errors
    /// `hidden` is 0.
    pub fn try_init(&self, device: &Device) -> Result<TableEncoder, ModelError> {
        ModelError::check_sizes(&[("hidden", self.hidden)], 0.0)?;
        let (features, entries) = (self.features(), self.vocabulary());
        let glorot = Init::glorot(device);
        let normal = Initializer::Normal { mean: 0.0, std: 0.1 };
        let table = || {
            let init = Init { initializer: &normal, device };
            zero_rows(init.matrix([entries, self.hidden]), &self.unseen(), device)
        };
        Ok(TableEncoder {
            numbers: (features > 0).then(|| glorot.matrix([features, self.hidden])),
            ages: (self.ages() > 0).then(|| glorot.matrix([self.ages(), self.hidden])),
            vocabulary: (entries > 0).then(table),
            bias: zeros(self.hidden, device),
            norm: LayerNormConfig::new(self.hidden).init(device),
            residual: glorot.linear([self.hidden, self.hidden], true),
            config: self.clone(),
        })
    }
}

panicking_init!(TableEncoderConfig => TableEncoder);

/// Sets some rows of an initial table to 0.
fn zero_rows(table: Param<Tensor<2>>, rows: &[u32], device: &Device) -> Param<Tensor<2>> {
    if rows.is_empty() {
        return table;
    }
    let shape = table.val().dims();
    let mut values: Vec<f32> = table.val().without_autodiff().into_data().iter::<f32>().collect();
    for &row in rows {
        let first = row as usize * shape[1];
        values[first..first + shape[1]].fill(0.0);
    }
    Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), device))
}

impl TableEncoder {
    /// The description of this encoder, with its statistics.
    pub fn config(&self) -> &TableEncoderConfig {
        &self.config
    }

    /// Computes `[rows, hidden]`.
    ///
    /// # Panics
    /// `input` was made for another table.
    #[track_caller]
    pub fn forward(&self, input: &TableInput) -> Tensor<2> {
        let hidden = self.config.hidden;
        let like = self.bias.val();
        let dtype = FloatDType::from(like.dtype());
        let mut z = None;
        if let Some(w) = &self.numbers {
            let w = w.val();
            z = Some(matmul_rows(to_device_of(input.dense.clone().cast(dtype), &w), w));
        }
        if let (Some(table), Some((relation, weights))) = (&self.vocabulary, &input.bag) {
            let weights = weights.clone().cast(dtype);
            let weights = if like.is_autodiff() { Tensor::from_inner(weights) } else { weights };
            let sum = gspmm(relation, BinaryOp::Mul, Reduce::Sum, table.val(), weights);
            z = Some(match z {
                Some(z) => z + sum,
                None => sum,
            });
        }
        if let Some(relation) = &input.distinct {
            z = z.map(|z| gspmm_copy(relation, Side::Lhs, Reduce::Sum, z));
        }
        if let Some(w) = &self.ages {
            let w = w.val();
            let ages = matmul_rows(to_device_of(input.ages.clone().cast(dtype), &w), w);
            z = Some(match z {
                Some(z) => z + ages,
                None => ages,
            });
        }
        let z = z
            .unwrap_or_else(|| Tensor::zeros([input.rows, hidden], (&like.device(), like.dtype())));
        let z = bias_activation(z, Some(like), Activation::None, None);
        let h =
            bias_activation(normalise(Some(&self.norm), z.clone()), None, Activation::Relu, None);
        z + apply_then(&self.residual, h, Activation::None)
    }
}
