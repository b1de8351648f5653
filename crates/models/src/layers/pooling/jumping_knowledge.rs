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
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// How [`JumpingKnowledge`] joins layers.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum Jumping {
    /// Concatenated: `num_layers · d` features.
    Cat,
    /// Largest entry over layers.
    Max,
    /// A weighted sum, with weights from an LSTM that reads layers in both directions.
    Lstm,
}

/// Describes a [`JumpingKnowledge`].
#[derive(Config, Debug)]
pub struct JumpingKnowledgeConfig {
    /// How layers are joined.
    pub mode: Jumping,
    /// Number of layers (for the LSTM).
    #[config(default = 2)]
    pub num_layers: usize,
    /// Feature size of each layer (for the LSTM).
    #[config(default = 1)]
    pub d: usize,
}

/// Combines the outputs `h¹ .. hᵏ` of all layers of a model: `[h¹, .., hᵏ]`, `max_l hˡ`, or `Σ_l α_l[v] hˡ[v]` with
/// `α[v] = softmax over l of (LSTM states of layer l) · w + b`, hidden size `k · d / 2` per direction.
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
    /// Forward in layers.
    pub lstm: Option<LstmCell>,
    /// Backward in layers.
    pub lstm_reverse: Option<LstmCell>,
    /// `[2 · states, 1]` and a bias.
    pub att: Option<Linear>,
    #[module(skip)]
    mode: Jumping,
}

impl JumpingKnowledgeConfig {
    /// Initializes weights by Glorot, biases with 0.
    ///
    /// # Errors
    /// An LSTM without states (`num_layers · d / 2 = 0`).
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
    /// One row for all layers.
    ///
    /// # Panics
    /// No layers, or layers of different shapes where they are compared.
    #[track_caller]
    pub fn forward(&self, layers: Vec<Tensor<2>>) -> Tensor<2> {
        assert!(!layers.is_empty(), "jumping_knowledge: give the rows of at least one layer");
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
        let there = states(forward, &mut layers.iter());
        let mut back = states(backward, &mut layers.iter().rev());
        back.reverse();
        let score = |(a, b): (Tensor<2>, Tensor<2>)| apply(att, cat_features(vec![a, b]));
        let shares =
            activation::softmax(cat_features(there.into_iter().zip(back).map(score).collect()), 1);
        let weighed =
            layers.into_iter().enumerate().map(|(l, x)| x * shares.clone().slice_dim(1, l..l + 1));
        weighed.reduce(|a, b| a + b).unwrap_or_else(|| unreachable!("checked above"))
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
