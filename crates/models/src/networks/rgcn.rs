//! Classifies nodes of heterogeneous graphs with an R-GCN.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_graph::Graph;
use burn_gnn_ops::{DropoutKey, GraphView};

use crate::encoders::node_embedding::NodeEmbedding;
use crate::encoders::type_input::{InputProjections, TypeInput};
use crate::error::ModelError;
use crate::inference::Layerwise;
use crate::layers::heterogeneous::hetero_layer::HeteroLayer;
use crate::layers::heterogeneous::one_hot_conv::OneHotConv;
use crate::layers::heterogeneous::rel_graph_conv::{RelGraphConv, RelGraphConvConfig};
use crate::layers::heterogeneous::rel_weights::RelWeights;
use crate::layers::layer_views::LayerViews;
use crate::layers::type_map::{NodeTensors, TypeMap};
use crate::networks::heterogeneous::heterogeneous_model;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes an [`Rgcn`].
#[derive(Config, Debug)]
pub struct RgcnConfig {
    /// Number of classes.
    pub num_classes: usize,
    /// Hidden size.
    #[config(default = 16)]
    pub hidden: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub num_layers: usize,
    /// How relations share weights.
    #[config(default = "RelWeights::Full")]
    pub weights: RelWeights,
    /// Whether each layer adds the self-loop term `x[v] W_0`.
    #[config(default = true)]
    pub self_loop: bool,
    /// Whether the input of the first layer are one-hot node ids ([`OneHotConv`]), as in the paper, instead of a learned
    /// embedding per node. Requires [`RelWeights::Basis`], at least two layers, and no type with features. Every node has
    /// `hidden · bases` learned numbers.
    #[config(default = false)]
    pub one_hot: bool,
    /// Dropout probability before every layer.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// The parameters of an [`Rgcn`] that are replicated on all ranks.
#[derive(Module, Debug)]
pub struct RgcnLayers {
    /// `[d, hidden]` per node type with features.
    pub projections: Vec<Param<Tensor<2>>>,
    /// The first layer, with `one_hot`.
    pub one_hot: Option<OneHotConv>,
    /// The other layers, input first.
    pub convs: Vec<RelGraphConv>,
}

/// Node classifier for heterogeneous graphs of [`RelGraphConv`] layers with ReLU between them. The input are projected
/// features, or learned embeddings of node types without features.
///
/// # Paper
/// Schlichtkrull et al., ESWC 2018. Learned embeddings follow DGL's example; the paper uses one-hot inputs
/// ([`RgcnConfig::one_hot`]).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{RgcnConfig, TypeInput};
/// let device = Device::flex();
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0])
///     .edges(("paper", "written by", "author"), vec![0, 0], vec![0, 1])
///     .build()?;
/// // Papers have 4 features; authors, without features, learn a row each.
/// let model = RgcnConfig::new(2).with_hidden(8).init(&g, [("paper", TypeInput::Features(4))], &device);
/// let y = model.forward(&g, [("paper", Tensor::ones([1, 4], &device))]);
/// assert_eq!(y["paper"].dims()[0], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Rgcn {
    /// Embeddings of the node types without features. A rank has the rows of its own nodes.
    pub embedding: NodeEmbedding,
    /// All other parameters, replicated on all ranks.
    pub net: RgcnLayers,
    #[module(skip)]
    projected: Vec<String>,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

impl RgcnConfig {
    /// Initializes a model for `g` with a [`TypeInput`] per node type; node types without one get a learned embedding per
    /// node. On a partition, the embeddings are those of the nodes that it owns; all other parameters are the same on
    /// every rank.
    ///
    /// # Errors
    /// `inputs` has an entry for an unknown node type, a size is 0, bases or blocks are invalid, or `one_hot` is set with
    /// features, with one layer or without bases.
    pub fn try_init<G: GraphView + ?Sized>(
        &self,
        g: &G,
        inputs: impl Into<TypeMap<TypeInput>>,
        device: &Device,
    ) -> Result<Rgcn, ModelError> {
        let schema = g.schema();
        self.check()?;
        let InputProjections { projections, projected, embedded } =
            InputProjections::new(g, inputs.into(), self.hidden, device)?;
        let one_hot = self
            .one_hot
            .then(|| self.one_hot_conv(schema.etypes().len(), &projected, device))
            .transpose()?;
        let mut convs: Vec<RelGraphConv> = (usize::from(self.one_hot)..self.num_layers)
            .map(|i| {
                let (out, weights) = self.layer(i);
                RelGraphConvConfig::from_graph(g, self.hidden, out)
                    .with_weights(weights)
                    .with_self_loop(self.self_loop)
                    .try_init(device)
            })
            .collect::<Result<_, _>>()?;
        if let Some((first, rest)) = convs.split_first_mut() {
            rest.iter_mut().for_each(|conv| conv.share_relations(first));
        }
        let columns = one_hot.as_ref().map_or(self.hidden, OneHotConv::row_columns);
        let embedding = NodeEmbedding::new(g, &embedded, columns, device)?;
        let net = RgcnLayers { projections, one_hot, convs };
        Ok(Rgcn { embedding, net, projected, dropout: self.dropout, key: DropoutKey::new(device) })
    }

    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let sizes = [
            ("num_layers", self.num_layers),
            ("hidden", self.hidden),
            ("num_classes", self.num_classes),
        ];
        ModelError::check_sizes(&sizes, self.dropout)
    }

    /// Returns output feature size and weights of layer `i`.
    pub(crate) fn layer(&self, i: usize) -> (usize, RelWeights) {
        let is_last = i + 1 == self.num_layers;
        let out = if is_last { self.num_classes } else { self.hidden };
        // The last layer has full weights if blocks do not divide the number of classes, as in the code of the paper.
        let weights = match self.weights {
            RelWeights::BlockDiagonal(b) if is_last && b > 0 && out % b != 0 => RelWeights::Full,
            w => w,
        };
        (out, weights)
    }

    fn one_hot_conv(
        &self,
        relations: usize,
        projected: &[String],
        device: &Device,
    ) -> Result<OneHotConv, ModelError> {
        if let Some(ntype) = projected.first() {
            let message =
                "one-hot inputs have no features; remove the features or set `one_hot` to false";
            return Err(ModelError::input(ntype, message));
        }
        let layers = self.num_layers;
        ModelError::check_range("num_layers", "2.. with one-hot inputs", layers, layers >= 2)?;
        match self.weights {
            RelWeights::Basis(bases) if bases > 0 => {
                Ok(OneHotConv::new(relations, bases, self.hidden, self.self_loop, device))
            }
            other => Err(ModelError::out_of_range(
                "weights",
                "`RelWeights::Basis` of at least one base with one-hot inputs",
                format!("{other:?}"),
            )),
        }
    }
}

impl Rgcn {
    /// Number of layers that read neighbours.
    fn depth(&self) -> usize {
        self.net.convs.len() + usize::from(self.net.one_hot.is_some())
    }

    /// Returns the output of the last layer, which is one logit per class.
    fn classes(&self, h: Tensor<2>) -> Tensor<2> {
        h
    }

    /// Computes the output of the last layer: layer `i` runs on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: &NodeTensors) -> NodeTensors {
        views.count("rgcn", self.depth());
        let g = views.view(0);
        let dropout = |ntype: &str, x| self.key.at(0).dropout(&g, ntype, self.dropout, x);
        let mut h = self.input().encode(views, x, dropout);
        if let Some(conv) = &self.net.one_hot {
            h = conv.forward(&g, h);
        }
        let before = self.depth() - self.net.convs.len();
        for (i, conv) in self.net.convs.iter().enumerate().map(|(i, conv)| (i + before, conv)) {
            let (g, key) = (views.view(i), self.key.at(i + 1));
            h = h.map(|ntype, h| {
                let h = if i == 0 { h } else { activation::relu(h) };
                key.dropout(&g, ntype, self.dropout, h)
            });
            h = conv.forward(&g, h);
        }
        h
    }
}

/// Layer 0 is the projection of features, or the layer on one-hot inputs.
impl Layerwise for Rgcn {
    fn num_layers(&self) -> usize {
        self.net.convs.len() + 1
    }
    fn reads_neighbours(&self, layer: usize) -> bool {
        layer > 0 || self.net.one_hot.is_some()
    }
    fn inputs(&self, g: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
        self.input().rows(g, features, self.net.convs[0].num_relations())
    }
    fn layer<G: GraphView>(&self, layer: usize, g: &G, x: NodeTensors) -> NodeTensors {
        let y = match (layer, &self.net.one_hot) {
            (0, None) => return self.input().encode_rows(g, x),
            (0, Some(conv)) => conv.forward(g, x),
            _ => self.net.convs[layer - 1].forward(g, x),
        };
        if layer == self.net.convs.len() { y } else { y.map(|_, y| activation::relu(y)) }
    }
}

heterogeneous_model!(RgcnConfig => Rgcn);

impl Pretrained for Rgcn {
    /// Models with a list `layers` (PyG: `convs`), `project.linears.<node type>.weight` (PyG: `project.lins.…`) for
    /// features and `embed.embeds.<node type>.weight` (PyG: `embed.…`) for embeddings.
    /// [Rename](crate::StateDict::renamed) other names first.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        self.input().param_mapping(from, path, &self.net.convs)
    }
}
