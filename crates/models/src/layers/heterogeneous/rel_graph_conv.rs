//! Implements relational graph convolution (R-GCN).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{EdgeType, row_index};
use burn_gnn_ops::{
    EdgeTypes, GraphView, RelationalWeight, matmul_rows, matmul_rows_onto, relational_aggregate,
    split_rows,
};

use crate::error::ModelError;
use crate::layers::dense::mlp::{add_bias, normalise};
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes, exchange};
use crate::layers::heterogeneous::rel_weights::RelWeights;
use crate::layers::heterogeneous::stacked_relations::{
    IncomingRelations, StackedRelations, cat_rows,
};
use crate::layers::type_map::NodeTensors;
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// How [`RelGraphConv`] normalises the messages of one relation.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelNorm {
    /// The mean of the messages that `v` receives in the relation, as in the paper: `1 / in-degree of v in the
    /// relation`. On a sampled block it is 1 divided by the number of edges sampled for `v`, as in
    /// [`DegreeNorm::Right`](crate::DegreeNorm::Right).
    Right,
    /// No normalisation: sums.
    None,
}

/// Describes a [`RelGraphConv`].
#[derive(Config, Debug)]
pub struct RelGraphConvConfig {
    /// Input feature size of every node type.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Number of edge types of the schema.
    pub num_relations: usize,
    /// The edge types, in the order of the schema, that graphs must have ([`from_graph`](Self::from_graph) sets them).
    /// Empty: any `num_relations` edge types.
    #[config(default = "vec![]")]
    pub etypes: Vec<EdgeType>,
    /// How relations share weights.
    #[config(default = "RelWeights::Full")]
    pub weights: RelWeights,
    /// Normalisation of messages.
    #[config(default = "RelNorm::Right")]
    pub norm: RelNorm,
    /// Whether `x[v] W_0` is added, with one weight for all node types.
    #[config(default = true)]
    pub self_loop: bool,
    /// Whether layer normalisation is applied to the sums of messages, before self loop and bias.
    #[config(default = false)]
    pub layer_norm: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Relational graph convolution (R-GCN): sums neighbour features with a separate weight matrix for each edge type.
///
/// `y[v] = Σ_r Σ_(u,v,e) in r c_e · x[u] W_r + x[v] W_0 + b`
///
/// `c_e` is `1 / in-degree of v in r` ([`RelNorm::Right`]) or 1, multiplied by the edge weight if there is one. With
/// `layer_norm`, layer normalisation (Ba, Kiros, Hinton, 2016) is applied to the double sum before the other terms are
/// added. Add inverse relations to the graph (`Graph::with_inverse_relations`), as the paper does.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_input]`; the result has one `[num_dst of type t, d_output]` per node type. The output
/// of a node without in-edges is `x[v] W_0 + b`.
///
/// # Differences from the paper and from other libraries
/// None in the formula. Blocks of block-diagonal weights are consecutive features, as in DGL. DGL and PyG take one
/// tensor for all nodes and the edge type of every edge; this layer takes one tensor per node type.
///
/// # Cost
/// One [`relational_aggregate`] per node type over all relations into it, and one halo exchange per layer for all node
/// types. The first call with a graph sorts its edges by relation. The layer and its clones keep the result for the last
/// two graphs. Relations without edges on any rank are skipped.
///
/// # Paper
/// Schlichtkrull, Kipf, Bloem, van den Berg, Titov, Welling, "Modeling relational data with graph
/// convolutional networks", ESWC 2018.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{HeteroLayer, RelGraphConvConfig};
/// let device = Device::flex();
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0])
///     .edges(("paper", "cites", "paper"), vec![1], vec![0])
///     .build()?;
/// let conv = RelGraphConvConfig::from_graph(&g, 4, 2).init(&device);
/// let y = conv.forward(&g, [("author", Tensor::ones([2, 4], &device)), ("paper", Tensor::ones([2, 4], &device))]);
/// assert_eq!(y["paper"].dims(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct RelGraphConv {
    /// `[R, d_input, d_output]`; bases: `[B, d_input, d_output]`; blocks: `[R · B, d_input / B, d_output / B]`.
    pub weight: Param<Tensor<3>>,
    /// Bases only: `[R, B]`.
    pub coeff: Option<Param<Tensor<2>>>,
    /// `W_0: [d_input, d_output]`, with `self_loop`.
    pub loop_weight: Option<Param<Tensor<2>>>,
    /// Over `d_output` features, with `layer_norm`.
    pub layer_norm: Option<LayerNorm>,
    /// `b: [d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    config: RelGraphConvConfig,
    #[module(skip)]
    relations: StackedRelations,
}

impl RelGraphConvConfig {
    /// Describes a layer for all edge types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, d_input: usize, d_output: usize) -> Self {
        let etypes = g.schema().etypes();
        Self::new(d_input, d_output, etypes.len()).with_etypes(etypes.to_vec())
    }

    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), bias 0.
    ///
    /// # Errors
    /// The number of bases or blocks is 0, or blocks do not divide both feature sizes.
    pub fn try_init(&self, device: &Device) -> Result<RelGraphConv, ModelError> {
        let (r, i, o) = (self.num_relations, self.d_input, self.d_output);
        let init = Init { initializer: &self.initializer, device };
        let (weight, coeff) = self.weights.init([r, i, o], init)?;
        Ok(RelGraphConv {
            weight,
            coeff,
            loop_weight: self.self_loop.then(|| init.matrix([i, o])),
            layer_norm: self.layer_norm.then(|| LayerNormConfig::new(o).init(device)),
            bias: self.bias.then(|| init::zeros(o, device)),
            config: self.clone(),
            relations: StackedRelations::default(),
        })
    }
}

panicking_init!(RelGraphConvConfig => RelGraphConv);

impl HeteroLayer for RelGraphConv {
    /// Computes features of every node type from features of every node type. Edge weights
    /// ([`EdgeTypes::with_weight`]) multiply messages; degrees count edges.
    ///
    /// # Panics
    /// Shapes or edge types differ from those of the graph, or edges have features.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        let (g, edge_weights) = (edges.view(), edges.weights());
        let RelGraphConvConfig { d_input, d_output, num_relations, ref etypes, .. } = self.config;
        let types = LayerTypes {
            layer: "rel_graph_conv",
            ntypes: &[],
            etypes,
            num_ntypes: None,
            num_etypes: Some(("`num_relations`", num_relations)),
        };
        let x = types.inputs(g, x.into(), |_| d_input);
        let [src, dst] = exchange(types.layer, g, x);
        let relations = self.relations.of(&g);
        // With a feature size of 0 there are no sums.
        let mut weights =
            if d_input > 0 && d_output > 0 { self.weights_by_dst(&relations) } else { vec![] }
                .into_iter();
        let sums = relations.iter().map(|incoming| {
            let incoming = incoming.as_ref()?;
            Some(self.aggregate(g, incoming, weights.next()?, &src, edge_weights))
        });
        let finish = |(t, (sum, dst)): (usize, (Option<Tensor<2>>, Tensor<2>))| {
            let (device, dtype) = (dst.device(), dst.dtype());
            let zeros = || Tensor::zeros([g.num_dst(t), d_output], (&device, dtype));
            let norm = self.layer_norm.as_ref();
            let sum = sum.or_else(|| norm.map(|_| zeros())).map(|sum| normalise(norm, sum));
            let y = match (sum, &self.loop_weight) {
                (Some(sum), Some(w)) => matmul_rows_onto(dst, w.val(), sum),
                (None, Some(w)) => matmul_rows(dst, w.val()),
                (Some(sum), None) => sum,
                (None, None) => zeros(),
            };
            add_bias(y, self.bias.as_ref().map(|b| b.val()))
        };
        NodeTensors::from_list(g.schema(), sums.zip(dst).enumerate().map(finish).map(Some))
    }
}

impl RelGraphConv {
    pub(crate) fn num_relations(&self) -> usize {
        self.config.num_relations
    }

    /// Sums all messages into one node type.
    fn aggregate(
        &self,
        g: &dyn GraphView,
        incoming: &IncomingRelations,
        weight: RelationalWeight,
        src: &[Tensor<2>],
        edge_weights: &[Option<Tensor<1>>],
    ) -> Tensor<2> {
        let IncomingRelations { etypes, tables, index } = incoming;
        let x = cat_rows(tables.iter().map(|&t| src[t].clone()));
        let weight_of = |r: usize| edge_weights.get(r).cloned().flatten();
        let norm = etypes.iter().any(|&r| weight_of(r).is_some()).then(|| {
            let ones =
                |r: usize| Tensor::ones([g.relation(r).num_edges()], (&x.device(), x.dtype()));
            Tensor::cat(
                etypes.iter().map(|&r| weight_of(r).unwrap_or_else(|| ones(r))).collect(),
                0,
            )
        });
        let index = if self.config.norm == RelNorm::Right { index.mean() } else { index.clone() };
        relational_aggregate(&index, x, weight, norm)
    }

    /// Weights of the relations into each node type with incoming relations, in the order of node types.
    fn weights_by_dst(&self, relations: &[Option<IncomingRelations>]) -> Vec<RelationalWeight> {
        let weight = self.weight.val();
        match (self.config.weights, &self.coeff) {
            (RelWeights::BlockDiagonal(b), _) => {
                let [_, i, o] = weight.dims();
                let blocks = weight.reshape([self.config.num_relations, b, i, o]);
                let parts = by_dst(blocks, relations);
                parts.into_iter().map(RelationalWeight::BlockDiagonal).collect()
            }
            (_, Some(coeff)) => {
                let parts = by_dst(coeff.val(), relations);
                parts
                    .into_iter()
                    .map(|coeff| RelationalWeight::Basis { bases: weight.clone(), coeff })
                    .collect()
            }
            _ => by_dst(weight, relations).into_iter().map(RelationalWeight::Full).collect(),
        }
    }

    /// Shares the stacked relations of another layer, so that they are computed once per model.
    pub(crate) fn share_relations(&mut self, other: &Self) {
        self.relations = other.relations.clone();
    }
}

/// Splits a tensor with one row per relation by destination node type. Backward allocates one gradient for all types.
fn by_dst<const D: usize>(
    rows: Tensor<D>,
    relations: &[Option<IncomingRelations>],
) -> Vec<Tensor<D>> {
    let (mut order, mut bounds) = (vec![], vec![0]);
    for IncomingRelations { etypes, .. } in relations.iter().flatten() {
        order.extend(etypes.iter().copied());
        bounds.push(order.len());
    }
    if order.is_empty() {
        return vec![];
    }
    let is_in_order = order.len() == rows.dims()[0] && order.is_sorted();
    let rows = if is_in_order {
        rows
    } else {
        rows.clone().select(0, row_index(order.into_iter(), &rows.device().without_autodiff()))
    };
    split_rows(rows, &bounds)
}

impl Pretrained for RelGraphConv {
    /// Relations of the state dict must be in the order of the edge types of the schema. DGL stores all blocks of a
    /// relation in one row; PyG has a separate axis for blocks.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        if let ("weight", RelWeights::BlockDiagonal(b)) = (path, self.config.weights) {
            let [_, i, o] = self.weight.val().dims();
            return match from {
                Framework::Dgl => {
                    ParamMapping::same("linear_r.W").shaped([self.config.num_relations, b * i * o])
                }
                Framework::Pyg => {
                    ParamMapping::same("weight").shaped([self.config.num_relations, b, i, o])
                }
            };
        }
        ParamMapping::same(match (from, path) {
            (Framework::Dgl, "weight") => "linear_r.W",
            (Framework::Dgl, "coeff") => "linear_r.coeff",
            (Framework::Dgl, "bias") => "h_bias",
            (Framework::Dgl, "layer_norm.gamma") => "layer_norm_weight.gamma",
            (Framework::Dgl, "layer_norm.beta") => "layer_norm_weight.beta",
            (Framework::Pyg, "coeff") => "comp",
            (Framework::Pyg, "loop_weight") => "root",
            _ => path,
        })
    }
}
