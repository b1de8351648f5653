//! Implements hierarchical attention (HAN): over the neighbours of a relation, and over relations.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_graph::{EdgeType, Schema};
use burn_gnn_ops::{DropoutKey, EdgeTypes, GatOptions, GraphView, div_by, gat_attention};

use crate::error::ModelError;
use crate::layers::attention::heads::{HeadScores, split};
use crate::layers::dense::mlp::apply;
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes};
use crate::layers::type_map::{NodeTensors, TypeMap, list_of};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, indexed, pyg_key};

/// Describes a [`HanConv`].
#[derive(Config, Debug)]
pub struct HanConvConfig {
    /// Input feature size of every node type, by name.
    pub d_inputs: TypeMap<usize>,
    /// Edge types of the graph ([`from_graph`](Self::from_graph) sets them).
    pub etypes: Vec<EdgeType>,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Slope of LeakyReLU for negative scores.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Dropout probability of attention weights.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether scores of relations are averaged over the nodes that a view computes, as PyTorch Geometric does on
    /// mini-batches, instead of over all nodes of a type.
    #[config(default = false)]
    pub local_scores: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Heterogeneous graph attention layer (HAN): attention over the neighbours of each relation, then attention over
/// relations.
///
/// With `z = x W_t + b_t` by node type, for every relation `r` into a node type:
///
/// ```text
/// h_r[v] = relu( Σ_(u,v,e) in r softmax(leaky_relu(a_r · z[u] + c_r · z[v]))[e] · z[u] )      per head
/// s_r    = Σ_v q · tanh(h_r[v] K + k)                    over all nodes of the type
/// y[v]   = Σ_r softmax(s / nodes of the type)_r · h_r[v]
/// ```
/// Relations are the meta-paths of the paper: add one edge type per meta-path to the graph.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_inputs[t]]`, result `[num_dst of type t, num_heads · d_head]` for node types with
/// in-edges.
///
/// # Differences from the paper and from other libraries
/// Several node types, as in PyTorch Geometric. The activation is ReLU, where the paper has ELU. PyG averages scores over
/// the nodes of a mini-batch; here this is an option (`local_scores`).
///
/// # Parts of a graph
/// `s_r` is a sum over all nodes of a type, but a block or a partition computes only some of them. For node types with
/// several incoming relations:
///
/// * Exact: [`relation_scores`](Self::relation_scores) computes the sum over the nodes of a view. Add the results of all
///   ranks and pass them to [`forward_with_scores`](Self::forward_with_scores). [`forward`](Self::forward) returns an
///   error on such a view.
/// * `local_scores`: sum and mean are over the nodes that the view computes, on any view. The weights of relations, and
///   with them the result of a node, then depend on the batch or the partition.
///
/// # Cost
/// One [`gat_attention`] per relation, one halo exchange of projected features.
///
/// # Paper
/// Wang, Ji, Shi, Wang, Cui, Yu, Ye, "Heterogeneous graph attention network", WWW 2019.
#[derive(Module, Debug)]
pub struct HanConv {
    /// `W_t: [d_inputs[t], num_heads · d_head]` and `b_t`, per node type.
    pub proj: Vec<Linear>,
    /// `a_r: [1, heads, d_head]`, per edge type.
    pub lin_src: Vec<Param<Tensor<3>>>,
    /// `c_r: [1, heads, d_head]`, per edge type.
    pub lin_dst: Vec<Param<Tensor<3>>>,
    /// `K: [num_heads · d_head, num_heads · d_head]` and `k`.
    pub k_lin: Linear,
    /// `q: [num_heads · d_head, 1]`.
    pub q: Linear,
    key: DropoutKey,
    #[module(skip)]
    config: HanConvConfig,
    #[module(skip)]
    schema: Schema,
}

/// By node type: the results of the relations with edges into it, in the order of the schema.
type ByRelation = Vec<Vec<Tensor<2>>>;

impl HanConvConfig {
    /// Describes a layer for all types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(
        g: &G,
        d_inputs: impl Into<TypeMap<usize>>,
        d_head: usize,
        num_heads: usize,
    ) -> Self {
        Self::new(d_inputs.into(), g.schema().etypes().to_vec(), d_head, num_heads)
    }

    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `num_heads` or `d_head` is 0, `etypes` contains an edge type twice or one whose node types have no input size,
    /// `dropout` is not in `0.0..1.0`, or `negative_slope` is not finite.
    pub fn try_init(&self, device: &Device) -> Result<HanConv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        ModelError::check_finite("negative_slope", self.negative_slope)?;
        let schema = Schema::new(
            self.d_inputs.iter().map(|(name, _)| name.to_owned()).collect(),
            self.etypes.clone(),
        )?;
        let width = self.num_heads * self.d_head;
        let init = Init { initializer: &self.initializer, device };
        let vector = |_| init.weight([1, self.num_heads, self.d_head], (self.d_head, 1));
        let attn = || schema.etypes().iter().map(vector).collect();
        Ok(HanConv {
            proj: self.d_inputs.iter().map(|(_, &d)| init.linear([d, width], true)).collect(),
            lin_src: attn(),
            lin_dst: attn(),
            k_lin: init.linear([width, width], true),
            q: init.linear([width, 1], false),
            key: DropoutKey::new(device),
            config: self.clone(),
            schema,
        })
    }
}

panicking_init!(HanConvConfig => HanConv);

impl HeteroLayer for HanConv {
    /// Computes features of the node types that have incoming relations with edges. Without `local_scores` the view must
    /// be a whole graph.
    ///
    /// # Panics
    /// [`try_forward`](Self::try_forward) returns an error, or shapes or types differ from those of the graph.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        self.try_forward(edges, x).or_panic()
    }
}

impl HanConv {
    /// As [`forward`](Self::forward), but returns an error for a part of a graph.
    ///
    /// # Errors
    /// `local_scores` is false, and the view computes only some nodes of a type with several incoming relations.
    ///
    /// # Panics
    /// Shapes or types differ from those of the graph.
    #[track_caller]
    pub fn try_forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> Result<NodeTensors, ModelError> {
        let edges = edges.into();
        let g = edges.view();
        for (t, ntype) in g.schema().ntypes().iter().enumerate() {
            let (rows, total) = (g.num_dst(t), g.total_nodes(t));
            if !self.config.local_scores && rows as u64 != total && relations_into(g, t).count() > 1
            {
                let remedy = "add up `relation_scores` over all parts and call `forward_with_scores`, or set `local_scores`";
                return Err(ModelError::PartOfGraph {
                    layer: "han_conv",
                    ntype: ntype.clone(),
                    rows,
                    total,
                    remedy,
                });
            }
        }
        let h = self.by_relation(&edges, x.into());
        let scores = self.scores_of(&h);
        let nodes = |t: usize| {
            if self.config.local_scores { g.num_dst(t) as u64 } else { g.total_nodes(t) }
        };
        Ok(NodeTensors::from_list(g.schema(), over_relations(h, &scores, nodes)))
    }

    /// Computes `s_r` over the destination nodes of this view, `[relations with edges into the type]` per node type. Node
    /// types with fewer than two such relations have no entry.
    ///
    /// # Panics
    /// Shapes or types differ from those of the graph.
    #[track_caller]
    pub fn relation_scores<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> TypeMap<Tensor<1>> {
        let edges = edges.into();
        TypeMap::from_list(
            edges.view().schema(),
            self.scores_of(&self.by_relation(&edges, x.into())),
        )
    }

    /// Computes [`forward`](Self::forward) on any view from `s_r` of the whole graph. Gradients flow to `scores` if they
    /// are tracked.
    ///
    /// # Panics
    /// `scores` does not have one number per relation with edges into a type, or shapes or types differ from those of
    /// the graph.
    #[track_caller]
    pub fn forward_with_scores<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
        scores: impl Into<TypeMap<Tensor<1>>>,
    ) -> NodeTensors {
        let edges = edges.into();
        let (g, schema) = (edges.view(), edges.view().schema());
        let h = self.by_relation(&edges, x.into());
        let scores = list_of("han_conv", schema, scores.into());
        NodeTensors::from_list(schema, over_relations(h, &scores, |t| g.total_nodes(t)))
    }

    #[track_caller]
    fn by_relation(&self, edges: &EdgeTypes<'_>, x: NodeTensors) -> ByRelation {
        edges.expect_bare("han_conv");
        let g = edges.view();
        let (schema, config) = (g.schema(), &self.config);
        let types = LayerTypes {
            layer: "han_conv",
            ntypes: self.schema.ntypes(),
            etypes: self.schema.etypes(),
            num_ntypes: None,
            num_etypes: None,
        };
        let x = types.inputs(g, x, |t| self.proj[t].weight.val().dims()[0]);
        let z: Vec<Tensor<2>> =
            x.into_iter().zip(&self.proj).map(|(x, proj)| apply(proj, x)).collect();
        let src = g.src_rows("han_conv", z.clone());
        let dst: Vec<Tensor<2>> =
            z.into_iter().enumerate().map(|(t, z)| g.dst_rows(t, z)).collect();
        let attend = |r: usize| {
            let (s, d) = schema.endpoints(r);
            let (a_src, a_dst) = (
                src[s].clone().head_scores(&self.lin_src[r]),
                dst[d].clone().head_scores(&self.lin_dst[r]),
            );
            let dropout = self.key.of_edges(&edges.at(r), config.dropout, &a_src);
            let options = GatOptions { slope: config.negative_slope, dropout };
            let h = gat_attention(
                g.relation(r),
                split(src[s].clone(), [config.num_heads, config.d_head]),
                a_src,
                a_dst,
                &options,
            );
            activation::relu(h.reshape([g.num_dst(d), config.num_heads * config.d_head]))
        };
        (0..schema.ntypes().len()).map(|t| relations_into(g, t).map(attend).collect()).collect()
    }

    fn scores_of(&self, h: &ByRelation) -> Vec<Option<Tensor<1>>> {
        let score = |h: &Tensor<2>| {
            let of_rows = apply(&self.q, apply(&self.k_lin, h.clone()).tanh());
            of_rows.sum()
        };
        h.iter()
            .map(|h| (h.len() > 1).then(|| Tensor::cat(h.iter().map(score).collect(), 0)))
            .collect()
    }
}

/// Sums the results of relations by the softmax of their mean scores; `nodes` is the number of nodes by type.
#[track_caller]
fn over_relations(
    h: ByRelation,
    scores: &[Option<Tensor<1>>],
    nodes: impl Fn(usize) -> u64,
) -> Vec<Option<Tensor<2>>> {
    assert_eq!(h.len(), scores.len(), "han_conv: `scores` holds one entry per node type");
    let join = |(t, (mut h, scores)): (usize, (Vec<Tensor<2>>, &Option<Tensor<1>>))| {
        if h.len() < 2 {
            return h.pop();
        }
        let found = scores.as_ref().map_or(0, |s| s.dims()[0]);
        assert_eq!(
            h.len(),
            found,
            "han_conv: `scores[{t}]` holds one number per relation with edges into the type"
        );
        let weights = activation::softmax(div_by(scores.clone()?, nodes(t).max(1) as f64), 0);
        let weighted = h
            .into_iter()
            .enumerate()
            .map(|(r, h)| h * weights.clone().slice_dim(0, r..r + 1).unsqueeze());
        weighted.reduce(|a, b| a + b)
    };
    h.into_iter().zip(scores).enumerate().map(join).collect()
}

/// Edge types into a node type that have edges on any rank.
fn relations_into(g: &dyn GraphView, t: usize) -> impl Iterator<Item = usize> + '_ {
    g.schema().etypes_into(t).filter(|&r| g.total_edges(r) > 0)
}

impl Pretrained for HanConv {
    /// Names of PyG's `HANConv`, which replaces a dot in the name of a type by `#`. DGL has no such layer.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        let of_relation = |(part, r): (&str, &str)| {
            let r = r.parse::<usize>().ok().filter(|_| matches!(part, "lin_src" | "lin_dst"))?;
            let EdgeType { src, relation, dst } = self.schema.etypes().get(r)?;
            Some(format!("{part}.{}", pyg_key(&format!("{src}__{relation}__{dst}"))))
        };
        let name = match indexed(path) {
            Some(("proj", t, field)) => {
                self.schema.ntypes().get(t).map(|ntype| format!("proj.{}.{field}", pyg_key(ntype)))
            }
            _ if path == "q.weight" => Some("q".to_owned()),
            _ => path.split_once('.').and_then(of_relation),
        };
        ParamMapping::same(name.unwrap_or_else(|| path.to_owned()))
    }
}
