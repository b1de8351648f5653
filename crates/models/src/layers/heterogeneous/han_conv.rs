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
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, check_graph_types};
use crate::layers::type_map::{NodeTensors, TypeMap, list_of, of_all_types};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained, indexed, pyg_key};

/// Describes a [`HanConv`].
#[derive(Config, Debug)]
pub struct HanConvConfig {
    /// Input feature size of every node type, by name.
    pub d_inputs: TypeMap<usize>,
    /// Edge types of the graph; [`from_graph`](Self::from_graph) knows them.
    pub etypes: Vec<EdgeType>,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// What LeakyReLU multiplies scores below 0 by.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Probability that an attention weight is dropped.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether relations are weighed by the nodes that a view computes, as PyTorch Geometric does on mini-batches, and
    /// not by all nodes of a type.
    #[config(default = false)]
    pub local_scores: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Heterogeneous graph attention. With `z = x W_t + b_t` by the node's type, for every relation `r` into a node type
///
/// ```text
/// h_r[v] = relu( Σ_(u,v,e) in r softmax(leaky_relu(a_r · z[u] + c_r · z[v]))[e] · z[u] )      per head
/// s_r    = Σ_v q · tanh(h_r[v] K + k)                    over all nodes of the type
/// y[v]   = Σ_r softmax(s / nodes of the type)_r · h_r[v]
/// ```
/// Relations are the paper's meta-paths: give the graph one edge type for each.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_inputs[t]]`, result `[num_dst of type t, num_heads · d_head]` for types in which a
/// relation with edges ends.
///
/// # Departures from the paper
/// Several node types, as in PyTorch Geometric; ReLU where the paper has ELU.
///
/// # Parts of a graph
/// `s_r` runs over all nodes of a type. A block or a partition computes only some of them. Where a node type has two
/// relations or more there are two ways:
///
/// * exact: [`relation_scores`](Self::relation_scores) gives the part of the sum that a view has (on partitions, add up
///   those of all ranks), and [`forward_with_scores`](Self::forward_with_scores) takes the whole sums.
///   [`forward`](Self::forward) refuses such a view;
/// * `local_scores`: sum and mean run over the nodes that the view computes, on any view. Then weights of relations
///   depend on the batch or the partition, and the result of a node on what is computed with it.
///
/// # Cost
/// One [`gat_attention`] per relation, one exchange of projected rows.
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

/// Per node type what relations with edges into it give, in the order of the schema.
type ByRelation = Vec<Vec<Tensor<2>>>;

impl HanConvConfig {
    /// A layer for all types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(
        g: &G,
        d_inputs: impl Into<TypeMap<usize>>,
        d_head: usize,
        num_heads: usize,
    ) -> Self {
        Self::new(d_inputs.into(), g.schema().etypes().to_vec(), d_head, num_heads)
    }

    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// No heads or features, an edge type given twice or with a node type that has no input size, dropout outside
    /// `0.0..1.0`, a slope that is not finite.
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
    /// Rows of the node types that have incoming relations with edges, on a whole graph, with `local_scores` on any
    /// view.
    ///
    /// # Panics
    /// As [`try_forward`](Self::try_forward) errs; shapes or numbers of types that disagree with the graph.
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
    /// [`forward`](Self::forward) that returns its refusal of parts of a graph.
    ///
    /// # Errors
    /// A view that computes only some nodes of a type into which several relations lead, without `local_scores`.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
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

    /// `s_r` over the destination rows of this view, `[relations with edges into the type]` per node type; none where
    /// fewer than two compete.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
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

    /// [`forward`](Self::forward) on any view, with `s_r` of the whole graph. Gradients flow through `scores` if it is
    /// tracked.
    ///
    /// # Panics
    /// Scores that are missing or not as many as relations; shapes or numbers of types that disagree with the graph.
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
        check_graph_types("han_conv", schema, self.schema.ntypes(), self.schema.etypes());
        let x = of_all_types("han_conv", g, x, |t| self.proj[t].weight.val().dims()[0]);
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

/// Sums over relations, weighed by scores over so many nodes of each type.
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
        let shares = activation::softmax(div_by(scores.clone()?, nodes(t).max(1) as f64), 0);
        let weighed = h
            .into_iter()
            .enumerate()
            .map(|(r, h)| h * shares.clone().slice_dim(0, r..r + 1).unsqueeze());
        weighed.reduce(|a, b| a + b)
    };
    h.into_iter().zip(scores).enumerate().map(join).collect()
}

/// Relations into a node type that have edges on any rank.
fn relations_into(g: &dyn GraphView, t: usize) -> impl Iterator<Item = usize> + '_ {
    g.schema().etypes_into(t).filter(|&r| g.total_edges(r) > 0)
}

impl Pretrained for HanConv {
    /// PyG's names (`HANConv`), with `#` for a dot in the name of a type; DGL has no such layer. Types of the schema
    /// that the other model lacks have no tensors there.
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
