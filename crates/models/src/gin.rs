//! Graph isomorphism network, for nodes and for whole graphs.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_graph::Graph;
use burn_gnn_ops::{Activation, GraphView, SegmentReduce, Segments, segment_reduce};

use crate::inference::{Layerwise, one_input, only};
use crate::mlp::{apply, linear};
use crate::{GinConv, GinConvConfig, Mode, ModelError, NodeClassifier};

/// Describes a [`Gin`].
#[derive(Config, Debug)]
pub struct GinConfig {
    /// Columns of the input features.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Columns between layers, and inside their perceptrons.
    #[config(default = 64)]
    pub hidden: usize,
    /// Number of layers.
    #[config(default = 5)]
    pub layers: usize,
    /// Whether ε is learned.
    #[config(default = true)]
    pub learn_eps: bool,
    /// Whether rows of every layer are normalised over the nodes (or batch) before ReLU, as in the paper.
    #[config(default = false)]
    pub batch_norm: bool,
    /// Dropout of the logits of nodes.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
}

/// `layers` isomorphism convolutions with perceptrons of two layers; logits are read from the rows of every layer,
/// `Σ_k readout(hᵏ) W_k + b_k`, with dropout of each term's logits.
///
/// # Departures from the paper
/// Batch normalisation is asked for (`batch_norm`), and then behind each layer, not inside its perceptron. Its means and
/// variances in training are those of the rows of this view: a partition normalises by its own nodes, so that training on
/// parts is not training on the whole graph. Without gradients ([`Mode::Eval`], a model that is [`valid`](Module::valid)) it
/// takes the running ones, which are the same on every view.
///
/// # Paper
/// Xu, Hu, Leskovec, Jegelka, ICLR 2019.
#[derive(Module, Debug)]
pub struct Gin {
    /// The layers, input first.
    pub layers: Vec<GinConv>,
    /// One per layer, or none.
    pub norms: Vec<BatchNorm>,
    /// Logits from the input and from each layer.
    pub heads: Vec<Linear>,
    #[module(skip)]
    dropout: f64,
}

impl GinConfig {
    /// Weights by Glorot's rule.
    ///
    /// # Errors
    /// A size of 0, or dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gin, ModelError> {
        let sizes = [("d_input", self.d_input), ("layers", self.layers), ("hidden", self.hidden), ("num_classes", self.num_classes)];
        ModelError::check_sizes(&sizes, self.dropout)?;
        let width = |i: usize| if i == 0 { self.d_input } else { self.hidden };
        let layer = |i: usize| {
            let config = GinConvConfig::new(vec![width(i), self.hidden, self.hidden]).with_learn_eps(self.learn_eps);
            config.with_seed(self.seed).with_name(format!("gin/{i}")).try_init(device)
        };
        let head = |i: usize| linear(self.seed, &format!("gin/head/{i}"), [width(i), self.num_classes], true, device);
        let layers = (0..self.layers).map(layer).collect::<Result<_, _>>()?;
        let norms = (0..self.layers).filter(|_| self.batch_norm).map(|_| BatchNormConfig::new(self.hidden).init(device)).collect();
        Ok(Gin { layers, norms, heads: (0..=self.layers).map(head).collect(), dropout: self.dropout })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Gin {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Gin {
    /// Logits of nodes, `[num_dst, num_classes]`, from `x: [num_input, d_input]`.
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        let (ntype, _) = g.schema().ends(0);
        let term = |(k, h): (usize, Tensor<2>)| {
            mode.dropout(g, ntype, &format!("gin/head/{k}"), self.dropout, apply(&self.heads[k], h, Activation::None))
        };
        sum(self
            .states(g, x, |norm, h| if mode == Mode::Eval { running(norm, h) } else { norm.forward(h) })
            .into_iter()
            .enumerate()
            .map(term))
    }

    /// Logits of the graphs of a batch, `[graphs, num_classes]`; `graphs` are the rows of each. Rows of a graph are summed.
    /// No dropout: graphs have no original ids to key it by. Batch normalisation trains where gradients are tracked.
    pub fn forward_graphs<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, graphs: &Segments) -> Tensor<2> {
        let term = |(k, h): (usize, Tensor<2>)| apply(&self.heads[k], segment_reduce(h, graphs, SegmentReduce::Sum), Activation::None);
        sum(self.states(g, x, BatchNorm::forward::<2>).into_iter().enumerate().map(term))
    }

    /// The input and the rows of every layer, all of the computed nodes.
    fn states<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, norm: impl Fn(&BatchNorm, Tensor<2>) -> Tensor<2>) -> Vec<Tensor<2>> {
        let mut states = vec![x];
        for i in 0..self.layers.len() {
            states.push(self.state(i, g, states[i].clone(), &norm));
        }
        states
    }

    /// Rows of layer `i`.
    fn state<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>, norm: impl Fn(&BatchNorm, Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let h = self.layers[i].forward(g, x);
        activation::relu(match self.norms.get(i) {
            Some(with) => norm(with, h),
            None => h,
        })
    }
}

/// Rows between layers are those of the layer and, beside them, the logits read so far.
impl Layerwise for Gin {
    fn num_layers(&self) -> usize {
        self.layers.len()
    }
    fn inputs(&self, g: &Graph, features: &[Option<Tensor<2>>]) -> Result<Vec<Tensor<2>>, ModelError> {
        one_input(g, features, self.heads[0].weight.val().dims()[0])
    }
    fn layer<G: GraphView + ?Sized>(&self, layer: usize, g: &G, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        let (x, width) = (only(x), self.heads[layer].weight.val().dims()[0]);
        let read = |k: usize, h: Tensor<2>| apply(&self.heads[k], h, Activation::None);
        let own = g.dst_rows(g.schema().ends(0).1, x.clone());
        let columns = x.dims()[1];
        let (h, logits) = match layer {
            0 => (x, read(0, own)),
            _ => (x.slice_dim(1, 0..width), own.slice_dim(1, width..columns)),
        };
        let h = self.state(layer, g, h, running);
        let logits = logits + read(layer + 1, h.clone());
        vec![if layer + 1 == self.layers.len() { logits } else { Tensor::cat(vec![h, logits], 1) }]
    }
}

/// Normalisation by the running means and variances, whether or not gradients are tracked; of no rows too.
fn running(norm: &BatchNorm, x: Tensor<2>) -> Tensor<2> {
    let row = |t: Tensor<1>| t.without_autodiff().cast(x.dtype()).unsqueeze::<2>();
    let (mean, variance) = (row(norm.running_mean.value_sync()), row(norm.running_var.value_sync()));
    let scale = (variance + norm.epsilon).sqrt().recip() * norm.gamma.val().unsqueeze();
    (x - mean) * scale + norm.beta.val().unsqueeze()
}

fn sum(terms: impl Iterator<Item = Tensor<2>>) -> Tensor<2> {
    terms.reduce(|a, b| a + b).unwrap_or_else(|| unreachable!("the input has a head"))
}

impl NodeClassifier for Gin {
    type Dense = Self;
    fn logits<G: GraphView + ?Sized>(&self, g: &G, x: &[Option<Tensor<2>>], target: usize, mode: Mode) -> Tensor<2> {
        let x = x[target].clone().unwrap_or_else(|| panic!("`Gin` needs features of node type {target}"));
        self.forward(g, x, mode)
    }
    fn dense(&self) -> &Self {
        self
    }
}
