//! Classifies nodes and graphs with a GIN.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_graph::Batch;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{
    DropoutKey, GraphView, RowDropout, SegmentReduce, Segments, dropout, segment_reduce,
};

use crate::error::ModelError;
use crate::layers::conv::Conv;
use crate::layers::convolution::gin_conv::{GinConv, GinConvConfig};
use crate::layers::dense::mlp::{apply, normalised};
use crate::layers::layer_views::LayerViews;
use crate::layers::type_map::{NodeTensors, features_of};
use crate::networks::homogeneous::{homogeneous_model, layer_sizes};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, buffers_of_layers, in_layers};
use crate::training::tasks::graph_task::GraphClassifier;

/// Describes a [`Gin`].
#[derive(Config, Debug)]
pub struct GinConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Hidden size, of layers and of the perceptrons inside them.
    #[config(default = 64)]
    pub hidden: usize,
    /// Number of layers.
    #[config(default = 5)]
    pub num_layers: usize,
    /// Whether ε is learned.
    #[config(default = true)]
    pub learn_eps: bool,
    /// Whether logits are a sum of linear readouts of the input and of every layer, as in the paper. Otherwise the last
    /// layer computes them, as in PyTorch Geometric.
    #[config(default = true)]
    pub heads: bool,
    /// Whether batch normalisation is applied to the output of every layer before ReLU.
    #[config(default = false)]
    pub batch_norm: bool,
    /// Dropout probability of the logits of nodes.
    #[config(default = 0.5)]
    pub dropout: f64,
}

/// Classifier of nodes or graphs of [`GinConv`] layers with perceptrons of two layers.
///
/// Logits are `Σ_k readout(hᵏ) W_k + b_k` over the input and the outputs of all layers, with dropout of the logits of each
/// term. Without `heads`, the last layer computes the logits (their sum over a graph), and dropout precedes every layer
/// but the first.
///
/// # Differences from the paper
/// Batch normalisation is optional (`batch_norm`) and follows each layer instead of being inside its perceptron. In
/// training its statistics are those of the rows that a view computes: a partition normalises by its own nodes and a
/// block by those of its batch, so training on them differs from training on the whole graph. A module that does not
/// train ([`valid`](Module::valid), [`freeze`](Module::freeze), [`evaluate`](crate::evaluate), [`infer`](crate::infer))
/// uses running statistics, which are the same on every view.
///
/// # Paper
/// Xu, Hu, Leskovec, Jegelka, ICLR 2019.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::GinConfig;
/// use burn_gnn_ops::GraphView;
/// let device = Device::flex().autodiff();
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
/// let model = GinConfig::new(4, 2).with_hidden(16).with_dropout(0.5).init(&device);
/// let logits = model.forward(&g.at_step(7, 0), Tensor::ones([3, 4], &device)); // dropout of step 0 of seed 7
/// let predicted = model.valid().forward(&g, Tensor::ones([3, 4], &Device::flex())); // without dropout and gradients
/// assert_eq!((logits.dims(), predicted.dims()), ([3, 2], [3, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Gin {
    /// The layers, input first.
    pub layers: Vec<GinConv>,
    /// With `batch_norm`, one per layer that ReLU follows.
    pub norms: Vec<BatchNorm>,
    /// With `heads`, readouts of the input and of each layer.
    pub heads: Vec<Linear>,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

impl GinConfig {
    /// Initializes a model, weights by Glorot.
    ///
    /// # Errors
    /// A size is 0, or `dropout` is not in `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gin, ModelError> {
        let sizes = [self.d_input, self.hidden, self.num_classes];
        let sizes = layer_sizes(sizes, self.num_layers, self.dropout)?;
        let layer = |[i, o]: [usize; 2]| {
            let o = if self.heads { self.hidden } else { o };
            GinConvConfig::new(vec![i, o, o]).with_learn_eps(self.learn_eps).try_init(device)
        };
        let head = |i: usize| {
            let width = if i == 0 { self.d_input } else { self.hidden };
            Init::glorot(device).linear([width, self.num_classes], true)
        };
        let layers = sizes.into_iter().map(layer).collect::<Result<_, _>>()?;
        let inner = if self.heads { self.num_layers } else { self.num_layers - 1 };
        let norms = (0..inner)
            .filter(|_| self.batch_norm)
            .map(|_| BatchNormConfig::new(self.hidden).init(device))
            .collect();
        let heads = (0..=self.num_layers).filter(|_| self.heads).map(head).collect();
        Ok(Gin { layers, norms, heads, dropout: self.dropout, key: DropoutKey::new(device) })
    }
}

panicking_init!(GinConfig => Gin);

impl Gin {
    /// Computes logits: layer `i` runs on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        let layers = self.layers.len();
        views.count("gin", layers);
        if self.heads.is_empty() {
            return (0..layers).fold(x, |x, i| {
                let g = views.view(i);
                let x = if i == 0 {
                    x
                } else {
                    self.key.at(i).dropout(&g, g.schema().endpoints(0).0, self.dropout, x)
                };
                self.state(i, g, x)
            });
        }
        let last = views.view(layers - 1);
        let (ntype, _) = last.schema().endpoints(0);
        let term = |k: usize, dst: Tensor<2>| {
            let y = apply(&self.heads[k], dst);
            match self.key.at(k).of_outputs(&last, ntype, self.dropout, &y) {
                Some(RowDropout { prob, stream, ids }) => dropout(y, prob, stream, ids),
                None => y,
            }
        };
        let (x, dst) = last.with_dst_rows(ntype, x);
        let (_, logits) = (0..layers).fold((x, term(0, dst)), |(x, logits), i| {
            let (h, dst) = last.with_dst_rows(ntype, self.state(i, views.view(i), x));
            (h, logits + term(i + 1, dst))
        });
        logits
    }

    /// Computes logits of the graphs of a batch, `[graphs, num_classes]`, by a sum over the nodes of each graph. `graphs`
    /// contains the rows of each graph. There is no dropout, because it is keyed by original ids, which graphs do not
    /// have.
    pub fn forward_graphs<G: GraphView + ?Sized>(
        &self,
        g: &G,
        x: Tensor<2>,
        graphs: &Segments,
    ) -> Tensor<2> {
        if self.heads.is_empty() {
            let logits = (0..self.layers.len()).fold(x, |x, i| self.state(i, g, x));
            return segment_reduce(logits, graphs, SegmentReduce::Sum);
        }
        let term = |(k, h): (usize, Tensor<2>)| {
            apply(&self.heads[k], segment_reduce(h, graphs, SegmentReduce::Sum))
        };
        let mut states = vec![x];
        for i in 0..self.layers.len() {
            states.push(self.state(i, g, states[i].clone()));
        }
        let logits = states.into_iter().enumerate().map(term).reduce(|a, b| a + b);
        logits.unwrap_or_else(|| unreachable!("`states` contains the input"))
    }

    /// Computes the output of layer `i`, without ReLU if it is the logits.
    fn state<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        let h = self.layers[i].forward(&g, x);
        if self.heads.is_empty() && i + 1 == self.layers.len() {
            return h;
        }
        activation::relu(match self.norms.get(i) {
            Some(norm) => normalised(norm, h),
            None => h,
        })
    }

    /// Runs layer `i` for layer-wise inference. With `heads`, rows between layers are the output of a layer concatenated
    /// with the sum of the readouts so far.
    fn layer<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        if self.heads.is_empty() {
            return self.state(i, g, x);
        }
        let width = self.heads[i].weight.val().dims()[0];
        let read = |k: usize, h: Tensor<2>| apply(&self.heads[k], h);
        let dst = g.dst_rows(g.schema().endpoints(0).1, x.clone());
        let columns = x.dims()[1];
        let (h, logits) = match i {
            0 => (x, read(0, dst)),
            _ => (x.slice_dim(1, 0..width), dst.slice_dim(1, width..columns)),
        };
        let h = self.state(i, g, h);
        let logits = logits + read(i + 1, h.clone());
        if i + 1 == self.layers.len() { logits } else { Tensor::cat(vec![h, logits], 1) }
    }

    fn d_input(&self) -> usize {
        let first = self.layers[0]
            .nn
            .as_ref()
            .unwrap_or_else(|| unreachable!("`try_init` creates a perceptron"));
        first.layers[0].weight.val().dims()[0]
    }
}

homogeneous_model!(
    Gin,
    "gin",
    "In training, batch normalisation uses the statistics of the batch."
);

impl GraphClassifier for Gin {
    #[track_caller]
    fn graph_logits(&self, graphs: &Batch, x: &NodeTensors) -> Tensor<2> {
        let g = graphs.graph();
        let ntype = &g.schema().ntypes()[0];
        let rows = graphs.num_nodes(ntype).map(Segments::from_lengths).or_panic();
        self.forward_graphs(g, features_of("gin", g.schema(), x, ntype), &rows)
    }
}

impl Pretrained for Gin {
    /// PyG's `GIN` without norms and jumping knowledge (set `heads` to false, and `learn_eps` to its `train_eps`), and DGL
    /// models with lists `layers`, `norms` and `heads`.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        // PyG's `MLP` has a list `lins`.
        if let (Framework::Pyg, ["layers", i, "nn", "layers", k, field]) =
            (from, &path.split('.').collect::<Vec<_>>()[..])
        {
            return ParamMapping::same(format!("convs.{i}.nn.lins.{k}.{field}"));
        }
        let norm = path
            .strip_prefix("norms.")
            .and_then(|rest| rest.split_once('.'))
            .filter(|_| from == Framework::Pyg);
        if let Some((i, field)) = norm {
            return ParamMapping::same(format!("norms.{i}.module.{field}"));
        }
        in_layers(&self.layers, from, path)
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        buffers_of_layers(&self.layers, from)
    }
}
