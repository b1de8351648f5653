//! A linear model of means over the last rows along paths of foreign keys.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_ops::{BinaryOp, Reduce, Side, gspmm, gspmm_copy, matmul_rows};

use crate::layers::dense::mlp::apply;
use crate::params::autodiff::to_device_of;
use crate::params::init::Init;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_rows::TableInput;
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::row_sets::row_set_input::{
    RowSet, RowSets, SEED_NUMBERS, SET_NUMBERS, WINDOWS,
};

/// Sums linear functions of shrunk means over the last rows of each path.
///
/// ```text
/// x[i]   = numbers, ages and vocabulary entries of row i
/// m_w[p] = Σ over the last w rows i of path p  x[i] / (n_w + 4)       n_w: how many there are, at most w
/// h      = Σ_p Σ_w (m_w[p] M_pw + n_w / (n_w + 4) c_pw) + numbers of the seed S + b          w = 6, 20, 60
/// ```
/// The mean of few rows is drawn towards `c`, so that an entity without rows is an average one. The model is linear up to
/// its heads, and `M` and `c` are 0 at the start of training: it generalises to a database whose last rows are years old,
/// where a deep model does not. The entity's own row counts without its vocabulary entries, by which it could be learned
/// by heart.
#[derive(Module, Debug)]
pub struct WindowMeans {
    /// A function per path.
    pub paths: Vec<PathMeans>,
    /// `S` and `b`.
    pub seed: Linear,
    #[module(skip)]
    hidden: usize,
}

/// Parameters of a path in [`WindowMeans`], with the windows after each other.
#[derive(Module, Debug)]
pub struct PathMeans {
    /// `[features, windows · hidden]`; none without numbers.
    pub numbers: Option<Param<Tensor<2>>>,
    /// `[ages, windows · hidden]`; none without times.
    pub ages: Option<Param<Tensor<2>>>,
    /// `[vocabulary, windows · hidden]`; none without a vocabulary, and of the entity itself.
    pub vocabulary: Option<Param<Tensor<2>>>,
    /// `c`, `[windows, hidden]`.
    pub shares: Param<Tensor<2>>,
}

impl WindowMeans {
    /// Initializes a model of paths between tables that `encoders` describe.
    pub(crate) fn new(
        paths: &[RowPath],
        encoders: &[TableEncoderConfig],
        hidden: usize,
        device: &Device,
    ) -> Self {
        let columns = WINDOWS.len() * hidden;
        let zeros = |rows: usize, columns: usize| {
            (rows > 0).then(|| Param::from_tensor(Tensor::zeros([rows, columns], device)))
        };
        let of = |path: &RowPath| {
            let encoder = encoders.iter().find(|encoder| encoder.table == path.table);
            let size = |f: fn(&TableEncoderConfig) -> usize| encoder.map_or(0, f);
            let vocabulary =
                if path.steps.is_empty() { 0 } else { size(TableEncoderConfig::vocabulary) };
            PathMeans {
                numbers: zeros(size(TableEncoderConfig::features), columns),
                ages: zeros(size(TableEncoderConfig::ages), columns),
                vocabulary: zeros(vocabulary, columns),
                shares: Param::from_tensor(Tensor::zeros([WINDOWS.len(), hidden], device)),
            }
        };
        let seed = [SEED_NUMBERS + SET_NUMBERS * paths.len(), hidden];
        Self {
            paths: paths.iter().map(of).collect(),
            seed: Init::glorot(device).linear(seed, true),
            hidden,
        }
    }

    /// Computes `[seeds, hidden]`.
    pub(crate) fn forward(&self, sets: &RowSets) -> Tensor<2> {
        let numbers = to_device_of(sets.numbers.clone(), &self.seed.weight.val());
        let mut sum = apply(&self.seed, numbers);
        for (path, set) in self.paths.iter().zip(&sets.sets) {
            let shares = path.shares.val();
            sum = sum + matmul_rows(to_device_of(set.shares.clone(), &shares), shares.clone());
            if let Some(x) = path.rows(&set.rows) {
                sum = sum + pooled(set, x, &shares, self.hidden);
            }
        }
        sum
    }
}

/// Sums rows `[rows, windows · hidden]` over windows and seeds, with the weights of the windows.
fn pooled(set: &RowSet, x: Tensor<2>, like: &Tensor<2>, hidden: usize) -> Tensor<2> {
    let rows = x.dims()[0];
    let weights = to_device_of(set.windows.clone(), like).reshape([rows, WINDOWS.len(), 1]);
    let weighted = x.reshape([rows, WINDOWS.len(), hidden]) * weights;
    let of_rows = weighted.sum_dim(1).reshape([rows, hidden]);
    gspmm_copy(&set.pool, Side::Lhs, Reduce::Sum, of_rows)
}

impl PathMeans {
    /// Rows `[rows, windows · hidden]`; `None` if there is nothing to read.
    fn rows(&self, input: &TableInput) -> Option<Tensor<2>> {
        if input.rows() == 0 {
            return None;
        }
        let dtype = FloatDType::from(self.shares.val().dtype());
        let mut sum: Option<Tensor<2>> = None;
        let add = |sum: Option<Tensor<2>>, x: Tensor<2>| Some(sum.map_or(x.clone(), |y| y + x));
        if let Some(w) = &self.numbers {
            let w = w.val();
            let x = to_device_of(input.numbers().clone().cast(dtype), &w);
            sum = add(sum, matmul_rows(x, w));
        }
        if let (Some(w), Some((relation, weights))) = (&self.vocabulary, input.entries()) {
            let w = w.val();
            let weights = weights.clone().cast(dtype);
            let weights = if w.is_autodiff() { Tensor::from_inner(weights) } else { weights };
            sum = add(sum, gspmm(relation, BinaryOp::Mul, Reduce::Sum, w, weights));
        }
        if let Some(relation) = input.distinct() {
            sum = sum.map(|x| gspmm_copy(relation, Side::Lhs, Reduce::Sum, x));
        }
        if let Some(w) = &self.ages {
            let w = w.val();
            let x = to_device_of(input.ages().clone().cast(dtype), &w);
            sum = add(sum, matmul_rows(x, w));
        }
        sum
    }
}
