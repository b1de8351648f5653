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
use crate::layers::heterogeneous::hetero_layer::{
    HeteroLayer, check_graph_types, check_num_etypes,
};
use crate::layers::heterogeneous::rel_weights::RelWeights;
use crate::layers::heterogeneous::stacked_relations::{Incoming, Sorted, cat_rows};
use crate::layers::type_map::{NodeTensors, of_all_types};
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// How messages of one relation are normalised.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelNorm {
    /// The mean of the messages that `v` receives in the relation, as in the paper:
    /// `1 / in-degree of v in the relation`, and on a sampled block 1 by the number of edges sampled for `v`, as in
    /// [`DegreeNorm::Right`](crate::DegreeNorm::Right).
    Right,
    /// None: plain sums.
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
    /// The edge types in the order of the schema, so that a graph of others is refused;
    /// [`from_graph`](Self::from_graph) knows them. Empty: any graph of `num_relations` edge types.
    #[config(default = "vec![]")]
    pub etypes: Vec<EdgeType>,
    /// How relations share weights.
    #[config(default = "RelWeights::Full")]
    pub weights: RelWeights,
    /// Normalisation of messages.
    #[config(default = "RelNorm::Right")]
    pub norm: RelNorm,
    /// Whether a node's own row takes part, by one weight shared by all types.
    #[config(default = true)]
    pub self_loop: bool,
    /// Whether sums of messages are normalised over their features, before bias and self loop.
    #[config(default = false)]
    pub layer_norm: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Relational graph convolution, `y[v] = Σ_r Σ_(u,v,e) in r c_e · x[u] W_r + x[v] W_0 + b`.
///
/// With `layer_norm` the double sum is normalised over its features (Ba, Kiros, Hinton, 2016) before the rest is added.
/// `c_e` is `1 / in-degree of v in r` ([`RelNorm::Right`]) or 1, times the edge's weight where weights
/// are given. The caller must add inverse relations (`Graph::with_inverse_relations`).
///
/// # Shapes
/// `x[t]: [num_input of type t, d_input]`; the result has one `[num_dst of type t, d_output]` per node type.
/// A node that no relation reaches gets its own term and the bias.
///
/// # Departures from the paper
/// None in the formula. Blocks of the block-diagonal form follow DGL: consecutive features.
///
/// # Cost
/// One [`relational_aggregate`] per node type over all relations into it; one halo exchange per
/// layer for all node types. The edges are sorted by relation at the first call with a graph; the layer
/// (and its clones) keeps that for the two graphs seen last. A relation without edges anywhere is skipped
/// on every rank.
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
    /// `[d_input, d_output]`.
    pub loop_weight: Option<Param<Tensor<2>>>,
    /// `[d_output]` each.
    pub layer_norm: Option<LayerNorm>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    config: RelGraphConvConfig,
    #[module(skip)]
    sorted: Sorted,
}

impl RelGraphConvConfig {
    /// A layer for all edge types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, d_input: usize, d_output: usize) -> Self {
        let etypes = g.schema().etypes();
        Self::new(d_input, d_output, etypes.len()).with_etypes(etypes.to_vec())
    }

    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, bias 0.
    ///
    /// # Errors
    /// No bases or blocks, or blocks that do not divide both feature sizes.
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
            sorted: Sorted::default(),
        })
    }
}

panicking_init!(RelGraphConvConfig => RelGraphConv);

impl HeteroLayer for RelGraphConv {
    /// Features of every node type from those of the input nodes of every type. Edge weights of some types
    /// ([`EdgeTypes::with_weight`]) multiply messages and do not enter degrees.
    ///
    /// # Panics
    /// Shapes or edge types that disagree with the graph; edge features.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        let (g, edge_weights) = (edges.view(), edges.weights());
        let schema = g.schema();
        check_graph_types("rel_graph_conv", schema, &[], &self.config.etypes);
        check_num_etypes("`num_relations`", schema, self.config.num_relations);
        let RelGraphConvConfig { d_input, d_output, .. } = self.config;
        let x = of_all_types("rel_graph_conv", g, x.into(), |_| d_input);
        let (x, own): (Vec<_>, Vec<_>) =
            x.into_iter().enumerate().map(|(t, x)| g.with_dst_rows(t, x)).unzip();
        let src = g.src_rows("rel_graph_conv", x);
        let sorted = self.sorted.of(&g);
        // Without columns there is nothing to sum.
        let mut weights =
            if d_input > 0 && d_output > 0 { self.weights_by_dst(&sorted) } else { vec![] }
                .into_iter();
        let sums = sorted.iter().map(|incoming| {
            let incoming = incoming.as_ref()?;
            Some(self.aggregate(g, incoming, weights.next()?, &src, edge_weights))
        });
        let finish = |(t, (sum, own)): (usize, (Option<Tensor<2>>, Tensor<2>))| {
            let (device, dtype) = (own.device(), own.dtype());
            let zeros = || Tensor::zeros([g.num_dst(t), d_output], (&device, dtype));
            let norm = self.layer_norm.as_ref();
            let sum = sum.or_else(|| norm.map(|_| zeros())).map(|sum| normalise(norm, sum));
            let y = match (sum, &self.loop_weight) {
                (Some(sum), Some(w)) => matmul_rows_onto(own, w.val(), sum),
                (None, Some(w)) => matmul_rows(own, w.val()),
                (Some(sum), None) => sum,
                (None, None) => zeros(),
            };
            add_bias(y, self.bias.as_ref().map(|b| b.val()))
        };
        NodeTensors::from_list(schema, sums.zip(own).enumerate().map(finish).map(Some))
    }
}

impl RelGraphConv {
    pub(crate) fn num_relations(&self) -> usize {
        self.config.num_relations
    }

    /// All messages into one node type.
    fn aggregate(
        &self,
        g: &dyn GraphView,
        incoming: &Incoming,
        weight: RelationalWeight,
        src: &[Tensor<2>],
        edge_weights: &[Option<Tensor<1>>],
    ) -> Tensor<2> {
        let Incoming { etypes, tables, index } = incoming;
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

    /// The weights of the relations into each node type that has some, in the order of types.
    fn weights_by_dst(&self, sorted: &[Option<Incoming>]) -> Vec<RelationalWeight> {
        let weight = self.weight.val();
        match (self.config.weights, &self.coeff) {
            (RelWeights::BlockDiagonal(b), _) => {
                let [_, i, o] = weight.dims();
                let parts = by_dst(weight.reshape([self.config.num_relations, b, i, o]), sorted);
                parts.into_iter().map(RelationalWeight::BlockDiagonal).collect()
            }
            (_, Some(coeff)) => {
                let parts = by_dst(coeff.val(), sorted);
                parts
                    .into_iter()
                    .map(|coeff| RelationalWeight::Basis { bases: weight.clone(), coeff })
                    .collect()
            }
            _ => by_dst(weight, sorted).into_iter().map(RelationalWeight::Full).collect(),
        }
    }

    /// Lets this layer share sorted relations with another.
    pub(crate) fn share(&mut self, other: &Self) {
        self.sorted = other.sorted.clone();
    }
}

/// Rows of relations, grouped by destination node type: one gradient for all types, however many there are.
fn by_dst<const D: usize>(rows: Tensor<D>, sorted: &[Option<Incoming>]) -> Vec<Tensor<D>> {
    let (mut order, mut bounds) = (vec![], vec![0]);
    for Incoming { etypes, .. } in sorted.iter().flatten() {
        order.extend(etypes.iter().copied());
        bounds.push(order.len());
    }
    if order.is_empty() {
        return vec![];
    }
    let as_they_are = order.len() == rows.dims()[0] && order.is_sorted();
    let rows = if as_they_are {
        rows
    } else {
        rows.clone().select(0, row_index(order.into_iter(), &rows.device().without_autodiff()))
    };
    split_rows(rows, &bounds)
}

impl Pretrained for RelGraphConv {
    /// Relations of the state dict must stand in the order of the schema's edge types. Blocks are one row of
    /// all their entries in DGL, an axis of their own in PyG.
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
