//! Implements the graph attention layer (GAT).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{
    ConvInput, DropoutKey, Edges, Endpoints, GatOptions, gat_attention, gat_attention_weights,
    matmul_rows, u_add_v,
};

use crate::error::ModelError;
use crate::layers::attention::heads::{
    AttentionConv, HeadOutput, HeadScores, attend, split, weighted_sum,
};
use crate::layers::conv::{Conv, edge_rows, project_after_exchange, project_before_exchange};
use crate::layers::dense::mlp::apply;
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`GatConv`].
#[derive(Config, Debug)]
pub struct GatConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Feature size of destination nodes, which then have a separate weight (two node types). `None`: sources and
    /// destinations share one weight.
    pub d_dst: Option<usize>,
    /// Feature size of edges, if attention scores depend on edge features (`edge_dim` of PyTorch Geometric).
    pub d_edge: Option<usize>,
    /// Slope of LeakyReLU for negative scores.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Dropout probability of attention weights.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether destination features are added to the result (residual), multiplied by a weight if feature sizes differ.
    #[config(default = false)]
    pub residual: bool,
    /// Whether the residual always has a weight, as in PyTorch Geometric.
    #[config(default = false)]
    pub residual_weight: bool,
    /// Whether heads are concatenated (`num_heads · d_head` output features) or averaged (`d_head`).
    #[config(default = true)]
    pub concat: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph attention layer (GAT): sums neighbour features by learned weights that depend on both endpoints of an edge.
///
/// Per head, with `z[u] = x[u] W`:
///
/// ```text
/// s[e] = leaky_relu(a_l · z[u] + a_r · z[v] + a_e · (f[e] W_e))        the last term with `d_edge`
/// α[e] = softmax of s over the in-edges of v
/// y[v] = Σ_(u,v,e) m_e · w_e · α[e] · z[u] + b        m_e: dropout, w_e: edge weights or 1
/// ```
/// With `residual`, `x[v]` or `x[v] W_res` is added.
///
/// # Shapes
/// Sources `[num_input, d_input]`, destinations `[num_input, d_dst]`, `w: [num_edges]`, `f: [num_edges, d_edge]`,
/// output `[num_dst, num_heads · d_head]`, or `[num_dst, d_head]` if heads are averaged. The output of a destination
/// without in-edges is the bias plus the residual. As in PyTorch Geometric, edge features change only the scores, not
/// the summed messages.
///
/// # Differences from the paper and from other libraries
/// The caller applies dropout to the input features, applies the activation, and adds self loops
/// (`Graph::add_self_loops`; PyG's layer adds them by default). The bias is added before heads are averaged, as in DGL.
///
/// # Cost
/// One [`gat_attention`], which allocates nothing of the size edges × features. With edge weights, edge features or
/// returned attention weights, one number per edge and head is stored; edge features are multiplied by the
/// `[d_edge, heads]` product of `W_e` and `a_e`. The halo exchange moves `min(d_input, num_heads · d_head)` features.
///
/// # Paper
/// Veličković, Cucurull, Casanova, Romero, Liò, Bengio, "Graph attention networks", ICLR 2018.
#[derive(Module, Debug)]
pub struct GatConv {
    /// `W: [d_input, num_heads · d_head]`, no bias.
    pub fc: Linear,
    /// `[d_dst, num_heads · d_head]`, the weight of destinations if `d_dst` is set.
    pub fc_dst: Option<Linear>,
    /// `a_l: [1, heads, d_head]`, scores of sources.
    pub attn_l: Param<Tensor<3>>,
    /// `a_r: [1, heads, d_head]`, scores of destinations.
    pub attn_r: Param<Tensor<3>>,
    /// `W_e: [d_edge, num_heads · d_head]`, no bias.
    pub lin_edge: Option<Linear>,
    /// `a_e: [1, heads, d_head]`, scores of edges.
    pub attn_edge: Option<Param<Tensor<3>>>,
    /// `W_res: [d_dst, num_heads · d_head]` and the bias of the layer, if the residual has a weight.
    pub res_fc: Option<Linear>,
    /// `b: [num_heads · d_head]`, if `res_fc` does not contain it.
    pub bias: Option<Param<Tensor<1>>>,
    key: DropoutKey,
    #[module(skip)]
    config: GatConvConfig,
}

impl GatConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `num_heads` or `d_head` is 0, `dropout` is not in `0.0..1.0`, or `negative_slope` is not finite.
    pub fn try_init(&self, device: &Device) -> Result<GatConv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        ModelError::check_finite("negative_slope", self.negative_slope)?;
        let width = self.num_heads * self.d_head;
        let d_dst = self.d_dst.unwrap_or(self.d_input);
        let init = Init { initializer: &self.initializer, device };
        let linear = |d, bias| init.linear([d, width], bias);
        let attn = || init.weight([1, self.num_heads, self.d_head], (self.d_head, 1));
        let res_fc = (self.residual_weight || self.residual && d_dst != width)
            .then(|| linear(d_dst, self.bias));
        Ok(GatConv {
            fc: linear(self.d_input, false),
            fc_dst: self.d_dst.map(|d| linear(d, false)),
            attn_l: attn(),
            attn_r: attn(),
            lin_edge: self.d_edge.map(|d| linear(d, false)),
            attn_edge: self.d_edge.map(|_| attn()),
            bias: (self.bias && res_fc.is_none()).then(|| init::zeros(width, device)),
            res_fc,
            key: DropoutKey::new(device),
            config: self.clone(),
        })
    }
}

panicking_init!(GatConvConfig => GatConv);

impl GatConv {
    /// Computes [`forward`](Conv::forward) and returns the attention weights `m_e · α[e]`, `[num_edges, num_heads]`.
    ///
    /// # Panics
    /// As [`forward`](Conv::forward).
    #[track_caller]
    pub fn forward_with_attention<'a>(
        &self,
        edges: impl Into<Edges<'a>>,
        x: impl Into<ConvInput>,
    ) -> (Tensor<2>, Tensor<2>) {
        self.forward_and_weights(edges.into(), x.into())
    }
}

impl AttentionConv for GatConv {
    #[track_caller]
    fn attend(
        &self,
        edges: &Edges<'_>,
        x: Endpoints,
        returns_weights: bool,
    ) -> (Tensor<2>, Option<Tensor<2>>) {
        let GatConvConfig { num_heads: heads, d_head, negative_slope: slope, dropout, .. } =
            self.config;
        let (relation, weight) = (edges.relation(), edges.weight());
        let z = project_after_exchange(&self.fc, x.src.clone());
        let a_src = z.clone().head_scores(&self.attn_l);
        let a_dst = match &self.fc_dst {
            Some(fc) => apply(fc, x.dst.clone()),
            None => x.projected_dst(&z, |x| apply(&self.fc, x)),
        }
        .head_scores(&self.attn_r);
        let z = split(z, [heads, d_head]);
        let options = GatOptions { slope, dropout: self.key.of_edges(edges, dropout, &z) };
        // `a_e · (f W_e)` is a product of `f` with a matrix of one column per head.
        let a_edge = edge_rows(Self::NAME, edges, self.lin_edge.as_ref())
            .zip(self.attn_edge.as_ref())
            .map(|((lin, f), attn)| matmul_rows(f, lin.weight.val().head_scores(attn)));
        let (sums, weights) = match a_edge {
            Some(a_edge) => {
                let both: Tensor<2> = u_add_v(relation, a_src, a_dst);
                let logits = activation::leaky_relu(both + a_edge, slope);
                attend(relation, logits, z, options.dropout, weight, returns_weights)
            }
            None if returns_weights || weight.is_some() => {
                let weights = gat_attention_weights(relation, a_src, a_dst, &options);
                (weighted_sum(relation, z, &weights, weight), Some(weights))
            }
            None => (gat_attention(relation, z, a_src, a_dst, &options), None),
        };
        let output = HeadOutput {
            residual: self.config.residual,
            res_fc: self.res_fc.as_ref(),
            bias: self.bias.as_ref(),
            concat: self.config.concat,
        };
        (output.finish(edges, sums, x.dst), weights)
    }
}

impl Conv for GatConv {
    const NAME: &'static str = "gat_conv";
    const READS_WEIGHT: bool = true;
    const READS_FEATURES: bool = true;
    const FUSES_EPILOGUE: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input), Some(self.config.d_dst.unwrap_or(self.config.d_input))]
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        project_before_exchange(&self.fc, x)
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        self.attend(edges, x, false).0
    }
}

impl Pretrained for GatConv {
    /// PyG adds bias and residual after the mean over heads. Here every head has a copy of both.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let heads = if self.config.concat { 1 } else { self.config.num_heads };
        match (from, path) {
            (Framework::Dgl, "fc.weight") if self.fc_dst.is_some() => {
                ParamMapping::same("fc_src.weight")
            }
            (Framework::Dgl, _) => ParamMapping::same(path),
            (Framework::Pyg, "fc.weight") if self.fc_dst.is_some() => {
                ParamMapping::same("lin_src.weight")
            }
            // PyG before 2.5 writes the second name.
            (Framework::Pyg, "fc.weight") => {
                ParamMapping::same("lin.weight").or("lin_src.weight").also("lin_dst.weight")
            }
            (Framework::Pyg, "fc_dst.weight") => ParamMapping::same("lin_dst.weight"),
            (Framework::Pyg, "attn_l") => ParamMapping::same("att_src"),
            (Framework::Pyg, "attn_r") => ParamMapping::same("att_dst"),
            (Framework::Pyg, "attn_edge") => ParamMapping::same("att_edge"),
            (Framework::Pyg, "res_fc.weight") => ParamMapping::same("res.weight").repeated(heads),
            (Framework::Pyg, "res_fc.bias" | "bias") => ParamMapping::same("bias").repeated(heads),
            (Framework::Pyg, _) => ParamMapping::same(path),
        }
    }
}
