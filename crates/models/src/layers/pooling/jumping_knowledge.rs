//! Combines the outputs of all layers (jumping knowledge).

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::cat_features;

use crate::error::ModelError;
use crate::layers::dense::lstm::LstmCell;
use crate::layers::dense::mlp::apply;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// How [`JumpingKnowledge`] combines layers.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum Jumping {
    /// Concatenation: `num_layers · d` features.
    Cat,
    /// Element-wise maximum over layers.
    Max,
    /// A weighted sum, with weights of each node computed by a bidirectional LSTM over layers.
    Lstm,
}

/// Describes a [`JumpingKnowledge`].
#[derive(Config, Debug)]
pub struct JumpingKnowledgeConfig {
    /// How layers are combined.
    pub mode: Jumping,
    /// Number of layers; used with [`Jumping::Lstm`].
    #[config(default = 2)]
    pub num_layers: usize,
    /// Feature size of each layer; used with [`Jumping::Lstm`].
    #[config(default = 1)]
    pub d: usize,
}

/// Jumping knowledge: combines the outputs `h¹ .. hᵏ` of all layers of a model, so that every node can use the
/// neighbourhood size that suits it.
///
/// The result is `[h¹, .., hᵏ]`, `max_l hˡ`, or `Σ_l α_l[v] hˡ[v]` with
/// `α[v] = softmax over l of (LSTM states of layer l) · w + b`. The LSTM has hidden size `k · d / 2` per direction.
///
/// # Shapes
/// Every layer `[rows, d]`; the result `[rows, k · d]` for [`Jumping::Cat`], otherwise `[rows, d]`.
///
/// # Paper
/// Xu, Li, Tian, Sonobe, Kawarabayashi, Jegelka, "Representation learning on graphs with jumping knowledge networks",
/// ICML 2018.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::{Jumping, JumpingKnowledgeConfig};
/// let device = Device::flex();
/// let layers = vec![Tensor::<2>::ones([3, 4], &device), Tensor::zeros([3, 4], &device)];
/// let jk = JumpingKnowledgeConfig::new(Jumping::Cat).init(&device);
/// assert_eq!(jk.forward(layers).dims(), [3, 8]);
/// ```
#[derive(Module, Debug)]
pub struct JumpingKnowledge {
    /// LSTM from the first layer to the last.
    pub lstm: Option<LstmCell>,
    /// LSTM from the last layer to the first.
    pub lstm_reverse: Option<LstmCell>,
    /// `w: [2 · hidden size, 1]` and `b`.
    pub att: Option<Linear>,
    #[module(skip)]
    mode: Jumping,
}

impl JumpingKnowledgeConfig {
    /// Initializes weights by Glorot, biases with 0.
    ///
    /// # Errors
    /// The hidden size of the LSTM (`num_layers · d / 2`) is 0.
    pub fn try_init(&self, device: &Device) -> Result<JumpingKnowledge, ModelError> {
        let (is_lstm, hidden) = (self.mode == Jumping::Lstm, self.num_layers * self.d / 2);
        if is_lstm {
            ModelError::check_sizes(&[("num_layers · d / 2", hidden)], 0.0)?;
        }
        let cell = || is_lstm.then(|| LstmCell::new([self.d, hidden], device));
        let att = is_lstm.then(|| Init::glorot(device).linear([2 * hidden, 1], true));
        Ok(JumpingKnowledge { lstm: cell(), lstm_reverse: cell(), att, mode: self.mode })
    }
}

panicking_init!(JumpingKnowledgeConfig => JumpingKnowledge);

impl JumpingKnowledge {
    /// Combines the outputs of all layers.
    ///
    /// # Panics
    /// `layers` is empty, or has tensors of different shapes (with [`Jumping::Cat`]: different numbers of rows).
    #[track_caller]
    pub fn forward(&self, layers: Vec<Tensor<2>>) -> Tensor<2> {
        assert!(
            !layers.is_empty(),
            "jumping_knowledge: `layers` is empty; pass the output of at least one layer"
        );
        let (Some(forward), Some(backward), Some(att)) =
            (&self.lstm, &self.lstm_reverse, &self.att)
        else {
            return match self.mode {
                Jumping::Cat => cat_features(layers),
                _ => layers
                    .into_iter()
                    .reduce(Tensor::max_pair)
                    .unwrap_or_else(|| unreachable!("checked above")),
            };
        };
        let [rows, _] = layers[0].dims();
        let states = |cell: &LstmCell, order: &mut dyn Iterator<Item = &Tensor<2>>| {
            let zeros = Tensor::<2>::zeros(
                [rows, cell.hidden()],
                (&layers[0].device().without_autodiff(), layers[0].dtype()),
            );
            let mut state = (zeros.clone(), zeros);
            order
                .map(|x| {
                    state = cell.step(x.clone(), state.clone());
                    state.0.clone()
                })
                .collect::<Vec<_>>()
        };
        let ascending = states(forward, &mut layers.iter());
        let mut descending = states(backward, &mut layers.iter().rev());
        descending.reverse();
        let score = |(a, b): (Tensor<2>, Tensor<2>)| apply(att, cat_features(vec![a, b]));
        let weights = activation::softmax(
            cat_features(ascending.into_iter().zip(descending).map(score).collect()),
            1,
        );
        let weighted =
            layers.into_iter().enumerate().map(|(l, x)| x * weights.clone().slice_dim(1, l..l + 1));
        weighted.reduce(|a, b| a + b).unwrap_or_else(|| unreachable!("checked above"))
    }
}

impl Pretrained for JumpingKnowledge {
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        if let Some(rest) = path.strip_prefix("lstm_reverse.") {
            return LstmCell::param_mapping("lstm.", rest).followed_by("_reverse");
        }
        match path.strip_prefix("lstm.") {
            Some(rest) => LstmCell::param_mapping("lstm.", rest),
            None => ParamMapping::same(path),
        }
    }
}
