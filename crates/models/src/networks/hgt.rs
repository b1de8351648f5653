//! Classifies nodes of heterogeneous graphs with an HGT.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_ops::GraphView;

use crate::encoders::node_embedding::NodeEmbedding;
use crate::encoders::type_input::{InputProjections, TypeInput};
use crate::error::ModelError;
use crate::inference::Layerwise;
use crate::layers::dense::mlp::{apply, gelu};
use crate::layers::heterogeneous::hetero_layer::HeteroLayer;
use crate::layers::heterogeneous::hgt_conv::{HgtConv, HgtConvConfig};
use crate::layers::layer_views::LayerViews;
use crate::layers::type_map::{NodeTensors, TypeMap};
use crate::networks::heterogeneous::heterogeneous_model;
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes an [`Hgt`].
#[derive(Config, Debug)]
pub struct HgtConfig {
    /// Number of classes.
    pub num_classes: usize,
    /// Hidden size, a multiple of `num_heads`.
    #[config(default = 64)]
    pub hidden: usize,
    /// Number of heads of each layer.
    #[config(default = 4)]
    pub num_heads: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub num_layers: usize,
    /// Dropout probability inside every layer.
    #[config(default = 0.2)]
    pub dropout: f64,
    /// Whether layers apply layer normalisation.
    #[config(default = true)]
    pub layer_norm: bool,
}

/// The parameters of an [`Hgt`] that are replicated on all ranks.
#[derive(Module, Debug)]
pub struct HgtLayers {
    /// `[d, hidden]` per node type with features.
    pub projections: Vec<Param<Tensor<2>>>,
    /// The layers, input first.
    pub convs: Vec<HgtConv>,
    /// `[hidden, num_classes]` and a bias.
    pub head: Linear,
}

/// Node classifier for heterogeneous graphs of [`HgtConv`] layers. The input are projected features, or learned embeddings
/// of node types without features, with GELU; a linear layer computes the logits.
///
/// # Paper
/// Hu, Dong, Wang, Sun, WWW 2020. The composition follows DGL's example.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{HgtConfig, TypeInput};
/// let device = Device::flex();
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0])
///     .edges(("paper", "written by", "author"), vec![0, 0], vec![0, 1])
///     .build()?;
/// // Papers have 4 features; authors, without features, learn a row each.
/// let model = HgtConfig::new(2).with_hidden(8).with_num_heads(2).init(&g, [("paper", TypeInput::Features(4))], &device);
/// let y = model.forward(&g, [("paper", Tensor::ones([1, 4], &device))]);
/// assert_eq!(y["paper"].dims()[0], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Hgt {
    /// Embeddings of the node types without features. A rank has the rows of its own nodes.
    pub embedding: NodeEmbedding,
    /// All other parameters, replicated on all ranks.
    pub net: HgtLayers,
    #[module(skip)]
    projected: Vec<String>,
}

impl HgtConfig {
    /// Initializes a model for `g` with a [`TypeInput`] per node type; node types without one get a learned embedding per
    /// node. On a partition, the embeddings are those of the nodes that it owns; all other parameters are the same on
    /// every rank.
    ///
    /// # Errors
    /// `inputs` has an entry for an unknown node type, a size is 0, or `num_heads` does not divide `hidden`.
    pub fn try_init<G: GraphView + ?Sized>(
        &self,
        g: &G,
        inputs: impl Into<TypeMap<TypeInput>>,
        device: &Device,
    ) -> Result<Hgt, ModelError> {
        let sizes = [
            ("num_layers", self.num_layers),
            ("hidden", self.hidden),
            ("num_heads", self.num_heads),
            ("num_classes", self.num_classes),
        ];
        ModelError::check_sizes(&sizes, self.dropout)?;
        ModelError::check_divides(("num_heads", self.num_heads), ("hidden", self.hidden))?;
        let InputProjections { projections, projected, embedded } =
            InputProjections::new(g, inputs.into(), self.hidden, device)?;
        let conv = |_| {
            HgtConvConfig::from_graph(g, self.hidden, self.hidden / self.num_heads, self.num_heads)
                .with_dropout(self.dropout)
                .with_layer_norm(self.layer_norm)
                .try_init(device)
        };
        let mut convs = (0..self.num_layers).map(conv).collect::<Result<Vec<_>, _>>()?;
        if let Some((first, rest)) = convs.split_first_mut() {
            rest.iter_mut().for_each(|conv| conv.share_relations(first));
        }
        let embedding = NodeEmbedding::new(g, &embedded, self.hidden, device)?;
        let head = Init::glorot(device).linear([self.hidden, self.num_classes], true);
        Ok(Hgt { embedding, net: HgtLayers { projections, convs, head }, projected })
    }
}

impl Hgt {
    fn classes(&self, h: Tensor<2>) -> Tensor<2> {
        apply(&self.net.head, h)
    }

    /// Computes the output of the last layer: layer `i` runs on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: &NodeTensors) -> NodeTensors {
        views.count("hgt", self.net.convs.len());
        let h = self.input().encode(views, x, |_, x| x).map(|_, h| gelu(h));
        self.net.convs.iter().enumerate().fold(h, |h, (i, conv)| conv.forward(&views.view(i), h))
    }
}

/// Layer 0 is the projection of features.
impl Layerwise for Hgt {
    fn num_layers(&self) -> usize {
        self.net.convs.len() + 1
    }
    fn reads_neighbours(&self, layer: usize) -> bool {
        layer > 0
    }
    fn inputs(&self, g: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
        self.input().rows(g, features, self.net.convs[0].num_etypes())
    }
    fn layer<G: GraphView>(&self, layer: usize, g: &G, x: NodeTensors) -> NodeTensors {
        if layer == 0 {
            return self.input().encode_rows(g, x).map(|_, h| gelu(h));
        }
        let y = self.net.convs[layer - 1].forward(g, x);
        match layer == self.net.convs.len() {
            true => y.map(|_, y| self.classes(y)),
            false => y,
        }
    }
}

heterogeneous_model!(HgtConfig => Hgt);

impl Pretrained for Hgt {
    /// Models with a list `layers` (PyG: `convs`), `project.linears.<node type>.weight` (PyG: `project.lins.…`) for
    /// features, `embed.embeds.<node type>.weight` (PyG: `embed.…`) for embeddings, and `head`.
    /// [Rename](crate::StateDict::renamed) other names first.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        self.input().param_mapping(from, path, &self.net.convs)
    }
}
