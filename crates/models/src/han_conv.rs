//! Hierarchical attention: over the neighbours in a relation, and over relations.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_graph::Schema;
use burn_gnn_ops::{Activation, GatOptions, GraphView, gat_attention};

use crate::heads::{HeadScores, split};
use crate::mlp::{apply, linear};
use crate::{Mode, ModelError, init};

/// Describes a [`HanConv`].
#[derive(Config, Debug)]
pub struct HanConvConfig {
    /// Columns of the input of each node type.
    pub d_inputs: Vec<usize>,
    /// Columns of each head.
    pub d_head: usize,
    /// Number of heads.
    pub heads: usize,
    /// What LeakyReLU multiplies scores below 0 by.
    #[config(default = 0.2)]
    pub slope: f64,
    /// Probability that an attention weight is dropped.
    #[config(default = 0.0)]
    pub attn_dropout: f64,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights and dropout; give layers of one model different names.
    #[config(default = "String::from(\"han_conv\")")]
    pub name: String,
}

/// Heterogeneous graph attention. With `z = x W_t + b_t` by the node's type, for every relation `r` into a node type
///
/// ```text
/// h_r[v] = relu( Σ_(u,v,e) in r softmax(leaky_relu(a_r · z[u] + c_r · z[v]))[e] · z[u] )      per head
/// w_r    = mean over v of q · tanh(h_r[v] K + k)
/// y[v]   = Σ_r softmax(w)_r · h_r[v]
/// ```
/// Relations are the paper's meta-paths: give the graph one edge type for each.
///
/// # Shapes
/// `x[t]: [num_input of type t, d_inputs[t]]`, result `[num_dst of type t, heads · d_head]` for types in which a relation
/// with edges ends.
///
/// # Departures from the paper
/// Several node types, as in PyTorch Geometric; ReLU where the paper has ELU.
///
/// # Whole graphs
/// `w_r` is a mean over the destination rows of this view: on a block, the nodes of the batch. A partition would take the
/// mean over its own nodes, so this layer on partitions is another one than on the whole graph.
///
/// # Cost
/// One [`gat_attention`] per relation, one exchange of projected rows.
///
/// # Paper
/// Wang, Ji, Shi, Wang, Cui, Yu, Ye, "Heterogeneous graph attention network", WWW 2019.
#[derive(Module, Debug)]
pub struct HanConv {
    /// `W_t: [d_inputs[t], heads · d_head]` and `b_t`, per node type.
    pub proj: Vec<Linear>,
    /// `a_r: [1, heads, d_head]`, per edge type.
    pub lin_src: Vec<Param<Tensor<3>>>,
    /// `c_r: [1, heads, d_head]`, per edge type.
    pub lin_dst: Vec<Param<Tensor<3>>>,
    /// `K: [heads · d_head, heads · d_head]` and `k`.
    pub k_lin: Linear,
    /// `q: [heads · d_head, 1]`.
    pub q: Linear,
    #[module(skip)]
    config: HanConvConfig,
}

impl HanConvConfig {
    /// Weights by Glorot's rule, biases 0, for the types of `schema`.
    ///
    /// # Errors
    /// No heads or columns, not one width per node type, dropout outside `0.0..1.0`, a slope that is not finite.
    pub fn try_init(&self, schema: &Schema, device: &Device) -> Result<HanConv, ModelError> {
        ModelError::check_sizes(&[("heads", self.heads), ("d_head", self.d_head)], self.attn_dropout)?;
        ModelError::check_finite("slope", self.slope)?;
        if self.d_inputs.len() != schema.ntypes().len() {
            let (why, expected, actual) = ("one per node type".into(), schema.ntypes().len(), self.d_inputs.len());
            return Err(ModelError::Length { arg: "d_inputs".into(), why, expected, actual });
        }
        let width = self.heads * self.d_head;
        let name = |part: &str, of: &dyn std::fmt::Display| format!("{}/{part}/{of}", self.name);
        let attn = |part: &str| {
            let vector = |t| init::glorot(self.seed, &name(part, t), [1, self.heads, self.d_head], (self.d_head, 1), device);
            schema.etypes().iter().map(|t| vector(t)).collect()
        };
        let proj = |(t, &d): (&String, &usize)| linear(self.seed, &name("proj", t), [d, width], true, device);
        Ok(HanConv {
            proj: schema.ntypes().iter().zip(&self.d_inputs).map(proj).collect(),
            lin_src: attn("lin_src"),
            lin_dst: attn("lin_dst"),
            k_lin: linear(self.seed, &format!("{}/k_lin", self.name), [width, width], true, device),
            q: linear(self.seed, &format!("{}/q", self.name), [width, 1], false, device),
            config: self.clone(),
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, schema: &Schema, device: &Device) -> HanConv {
        self.try_init(schema, device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl HanConv {
    /// Rows of the node types in which relations with edges end.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Vec<Tensor<2>>, mode: Mode) -> Vec<Option<Tensor<2>>> {
        let (schema, config) = (g.schema(), &self.config);
        assert_eq!(schema.etypes().len(), self.lin_src.len(), "edge types of the layer and of the graph");
        assert_eq!((schema.ntypes().len(), x.len()), (self.proj.len(), self.proj.len()), "node types of graph and `x`, and of the layer");
        let z: Vec<Tensor<2>> = x.into_iter().zip(&self.proj).map(|(x, proj)| apply(proj, x, Activation::None)).collect();
        let src = g.src_rows("han_conv", z.clone());
        let dst: Vec<Tensor<2>> = z.into_iter().enumerate().map(|(t, z)| g.dst_rows(t, z)).collect();
        let by_relation = |r: usize| {
            let (s, d) = schema.ends(r);
            let (a_src, a_dst) = (src[s].clone().head_scores(&self.lin_src[r]), dst[d].clone().head_scores(&self.lin_dst[r]));
            let options = GatOptions { slope: config.slope, dropout: mode.edge_dropout(g, r, &config.name, config.attn_dropout) };
            let h = gat_attention(g.relation(r), split(src[s].clone(), [config.heads, config.d_head]), a_src, a_dst, &options);
            activation::relu(h.reshape([g.num_dst(d), config.heads * config.d_head]))
        };
        (0..schema.ntypes().len())
            .map(|t| {
                let h: Vec<Tensor<2>> = schema.etypes_into(t).filter(|&r| g.total_edges(r) > 0).map(by_relation).collect();
                (!h.is_empty()).then(|| self.over_relations(h))
            })
            .collect()
    }

    fn over_relations(&self, mut h: Vec<Tensor<2>>) -> Tensor<2> {
        if h.len() == 1 {
            return h.swap_remove(0);
        }
        let rows = h[0].dims()[0].max(1) as f64;
        let score = |h: &Tensor<2>| {
            let of_rows = apply(&self.q, apply(&self.k_lin, h.clone(), Activation::None).tanh(), Activation::None);
            of_rows.sum() / rows
        };
        let shares = activation::softmax(Tensor::cat(h.iter().map(score).collect(), 0), 0);
        let weighed = h.into_iter().enumerate().map(|(r, h)| h * shares.clone().slice_dim(0, r..r + 1).unsqueeze());
        match weighed.reduce(|a, b| a + b) {
            Some(y) => y,
            None => unreachable!("at least two relations"),
        }
    }
}
