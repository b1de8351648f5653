//! Projects the inputs of heterogeneous models to the hidden size.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{GraphView, matmul_rows};

use crate::encoders::node_embedding::NodeEmbedding;
use crate::error::ModelError;
use crate::inference::features::{check_types, feature};
use crate::layers::layer_views::LayerViews;
use crate::layers::type_map::{NodeTensors, TypeMap};
use crate::params::autodiff::to_device_of;
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, in_layers, pyg_key};

/// Input of a node type in a heterogeneous model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeInput {
    /// Features of this size, which the model projects to the hidden size.
    Features(usize),
    /// A learned embedding per node.
    Embedding,
}

/// The inputs of a new model: projections, and the node types with embeddings.
pub(crate) struct InputProjections {
    /// `[d, hidden]` per node type of `projected`.
    pub(crate) projections: Vec<Param<Tensor<2>>>,
    /// Node types with features.
    pub(crate) projected: Vec<String>,
    /// Node types with learned embeddings.
    pub(crate) embedded: Vec<String>,
}

impl InputProjections {
    /// Initializes projections. Node types of `g` without an entry in `inputs` have embeddings.
    pub(crate) fn new<G: GraphView + ?Sized>(
        g: &G,
        inputs: TypeMap<TypeInput>,
        hidden: usize,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let mut all = Self { projections: vec![], projected: vec![], embedded: vec![] };
        for (ntype, input) in g.schema().ntypes().iter().zip(inputs.into_list(g.schema())?) {
            match input {
                Some(TypeInput::Features(d)) => {
                    all.projections.push(Init::glorot(device).matrix([d, hidden]));
                    all.projected.push(ntype.clone());
                }
                Some(TypeInput::Embedding) | None => all.embedded.push(ntype.clone()),
            }
        }
        Ok(all)
    }
}

/// The input layer of a model: a projection for each node type of `projected`, an embedding for the other types.
pub(crate) struct InputLayer<'a> {
    pub(crate) projected: &'a [String],
    pub(crate) projections: &'a [Param<Tensor<2>>],
    pub(crate) embedding: &'a NodeEmbedding,
}

impl InputLayer<'_> {
    /// Returns the projection `[d, hidden]` of a node type with features.
    fn projection(&self, ntype: &str) -> Option<Tensor<2>> {
        let i = self.projected.iter().position(|p| p == ntype)?;
        Some(self.projections[i].val())
    }

    /// Computes the input of the first layer by node type. `dropout` is applied to features before the projection.
    #[track_caller]
    pub(crate) fn encode<V: LayerViews + ?Sized>(
        &self,
        views: &V,
        x: &NodeTensors,
        dropout: impl Fn(&str, Tensor<2>) -> Tensor<2>,
    ) -> NodeTensors {
        let schema = views.view(0).schema();
        let embedded = |t: usize, ntype: &str| match views.input_nodes(t) {
            Some(nodes) => self.embedding.rows_of(ntype, nodes),
            None => self.embedding.rows(ntype),
        };
        let x = x.clone().into_list(schema).or_panic();
        let of_type = |(t, (ntype, x)): (usize, (&String, Option<Tensor<2>>))| {
            let Some(w) = self.projection(ntype) else {
                let none = || format!("node type `{ntype}` has neither features nor embedding");
                return embedded(t, ntype).ok_or_else(none).map(|x| (ntype.clone(), x));
            };
            let none = || {
                format!(
                    "expected features of node type `{ntype}` (`TypeInput::Features`), got none; add them to `x`"
                )
            };
            let x = x.ok_or_else(none)?;
            let ([rows, size], expected) = (x.dims(), w.dims()[0]);
            if size != expected {
                return Err(format!(
                    "node type `{ntype}`: expected features of size {expected}, got {:?}; initialize the model for features of size {size}",
                    x.dims()
                ));
            }
            if let Some(n) = views.input_rows(t).filter(|&n| n != rows) {
                return Err(format!(
                    "node type `{ntype}`: expected {n} rows (one per input node of the batch), got {rows}; \
                     pass the features of the batch, not those of the graph"
                ));
            }
            Ok((ntype.clone(), matmul_rows(dropout(ntype, to_device_of(x, &w)), w)))
        };
        let inputs = schema.ntypes().iter().zip(x).enumerate().map(of_type);
        inputs.collect::<Result<_, String>>().or_panic()
    }

    /// Returns the input of [`encode_rows`](Self::encode_rows) by node type: features or embeddings. `etypes` is the number
    /// of edge types that the model was initialized for.
    pub(crate) fn rows(
        &self,
        g: &Graph,
        features: &NodeTensors,
        etypes: usize,
    ) -> Result<NodeTensors, ModelError> {
        check_types(g, self.projected.len() + self.embedding.ntypes().len(), etypes)?;
        let input = |ntype: &String| {
            let x = match self.projection(ntype) {
                Some(w) => feature(g, features, ntype, w.dims()[0])?,
                None => {
                    let message = "the model has no embedding for it; initialize the model for a graph with this node type";
                    self.embedding.rows(ntype).ok_or_else(|| ModelError::input(ntype, message))?
                }
            };
            Ok((ntype.clone(), x))
        };
        g.schema().ntypes().iter().map(input).collect()
    }

    /// As [`encode`](Self::encode) for some nodes of each type, without dropout.
    pub(crate) fn encode_rows<G: GraphView + ?Sized>(&self, g: &G, x: NodeTensors) -> NodeTensors {
        x.map(|ntype, x| {
            let x = g.dst_rows(g.schema().ntype(ntype).or_panic(), x);
            match self.projection(ntype) {
                Some(w) => matmul_rows(x, w),
                None => x,
            }
        })
    }

    /// Returns the node types with features, and their feature sizes.
    pub(crate) fn sizes(&self) -> Vec<(String, usize)> {
        let sizes = self.projections.iter().map(|w| w.val().dims()[0]);
        self.projected.iter().cloned().zip(sizes).collect()
    }

    /// Maps a parameter of a heterogeneous model to its name in a state dict. Projections and embeddings are named by type,
    /// as in DGL's `HeteroLinear` and `HeteroEmbedding` and PyG's `HeteroDictLinear`; layers are in a list.
    pub(crate) fn param_mapping<M: Pretrained>(
        &self,
        from: Framework,
        path: &str,
        convs: &[M],
    ) -> ParamMapping {
        let [project, embed] = match from {
            Framework::Dgl => ["project.linears", "embed.embeds"],
            Framework::Pyg => ["project.lins", "embed"],
        };
        let of_type = |start: &str, types: &[String], module: &str| {
            let ntype = types.get(path.strip_prefix(start)?.parse::<usize>().ok()?)?;
            let key = match from {
                Framework::Dgl => ntype.clone(),
                Framework::Pyg => pyg_key(ntype),
            };
            Some(format!("{module}.{key}.weight"))
        };
        if let Some(name) = of_type("net.projections.", self.projected, project) {
            return ParamMapping::transposed(name);
        }
        if let Some(name) = of_type("embedding.weights.", self.embedding.ntypes(), embed) {
            return ParamMapping::same(name);
        }
        let path = path.strip_prefix("net.").unwrap_or(path);
        match path.strip_prefix("convs.") {
            Some(rest) => in_layers(convs, from, &format!("layers.{rest}")),
            None => ParamMapping::same(path),
        }
    }
}
