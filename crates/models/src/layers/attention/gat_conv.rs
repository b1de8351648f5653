//! Implements the graph attention layer (GAT).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{
    ConvInput, DropoutKey, Edges, GatOptions, attention, gat_attention, gat_attention_weights,
    matmul_rows, u_add_v, u_mul_e_sum,
};

use crate::error::ModelError;
use crate::layers::attention::heads::{HeadScores, edge_shares, mean_heads, split};
use crate::layers::conv::{Conv, Endpoints, edge_rows, endpoints, multiplies_first, residual};
use crate::layers::dense::mlp::{add_bias, apply};
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// Describes a [`GatConv`].
#[derive(Config, Debug)]
pub struct GatConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Feature size of destination nodes where they have a separate weight (two node types); none: one weight
    /// is shared by source and destination.
    pub d_dst: Option<usize>,
    /// Feature size of edges in the attention scores, if there are any (`edge_dim` of PyTorch Geometric).
    pub d_edge: Option<usize>,
    /// What LeakyReLU multiplies scores below 0 by.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Probability that an attention weight is dropped.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether destination features are added to the result (residual), through a weight where feature sizes differ.
    #[config(default = false)]
    pub residual: bool,
    /// Whether destination features are added through a weight whatever their size, as in PyTorch Geometric.
    #[config(default = false)]
    pub residual_weight: bool,
    /// Whether heads are concatenated in the result (`num_heads · d_head` features) or averaged (`d_head`).
    #[config(default = true)]
    pub concat: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph attention. Per head, with `z[u] = x[u] W`:
///
/// ```text
/// s[e] = leaky_relu(a_l · z[u] + a_r · z[v] + a_e · (f[e] W_e))        the last with `d_edge`
/// α[e] = softmax of s over the in-edges of v
/// y[v] = Σ_(u,v,e) m_e · w_e · α[e] · z[u] + b        m_e: dropout, w_e: edge weights or 1
/// ```
/// plus `x[v]` or `x[v] W_res` with `residual`.
///
/// # Shapes
/// Sources `[num_input, d_input]`, destinations `[num_input, d_dst]`, `w: [num_edges]`, `f: [num_edges, d_edge]`,
/// output `[num_dst, num_heads · d_head]`, or `[num_dst, d_head]` where heads are averaged. A destination without
/// in-edges gets the bias (and the residual). Edge features enter scores alone, as in PyTorch Geometric, not what is
/// summed.
///
/// # Departures from the paper
/// None: the caller must apply dropout to input features, apply the activation, and add self loops
/// (`Graph::add_self_loops`). The bias is added before heads are averaged, as in DGL.
///
/// # Cost
/// One [`gat_attention`]: nothing of the size edges × features. Edge weights, edge features, or asking for `α`, store
/// one number per edge and head: features are multiplied by the `[d_edge, heads]` that `W_e` and `a_e` make. The halo
/// exchange moves `min(d_input, num_heads · d_head)` features.
///
/// # Paper
/// Veličković, Cucurull, Casanova, Romero, Liò, Bengio, "Graph attention networks", ICLR 2018.
#[derive(Module, Debug)]
pub struct GatConv {
    /// `[d_input, num_heads · d_head]`, no bias.
    pub fc: Linear,
    /// Of destinations, `[d_dst, num_heads · d_head]`, where they have their own.
    pub fc_dst: Option<Linear>,
    /// `[1, heads, d_head]`, of sources.
    pub attn_l: Param<Tensor<3>>,
    /// `[1, heads, d_head]`, of destinations.
    pub attn_r: Param<Tensor<3>>,
    /// `W_e: [d_edge, num_heads · d_head]`, no bias.
    pub lin_edge: Option<Linear>,
    /// `a_e: [1, heads, d_head]`, of edges.
    pub attn_edge: Option<Param<Tensor<3>>>,
    /// `[d_dst, num_heads · d_head]` and the layer's bias, where a residual changes the feature size.
    pub res_fc: Option<Linear>,
    /// `[num_heads · d_head]`, where `res_fc` does not hold it.
    pub bias: Option<Param<Tensor<1>>>,
    key: DropoutKey,
    #[module(skip)]
    config: GatConvConfig,
}

impl GatConvConfig {
    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// No heads or features, a dropout probability outside `0.0..1.0`, a slope that is not finite.
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
    /// [`forward`](Conv::forward) with the attention weights `m_e · α[e]`, `[num_edges, num_heads]`.
    ///
    /// # Panics
    /// As [`forward`](Conv::forward).
    #[track_caller]
    pub fn forward_with_attention<'a>(
        &self,
        edges: impl Into<Edges<'a>>,
        x: impl Into<ConvInput>,
    ) -> (Tensor<2>, Tensor<2>) {
        let edges = edges.into();
        let x = endpoints(self, &edges, x.into());
        match self.attend(&edges, x, true) {
            (y, Some(attention)) => (self.finish(&edges, y), attention),
            (_, None) => unreachable!("asked for"),
        }
    }

    #[track_caller]
    fn attend(
        &self,
        edges: &Edges<'_>,
        rows: Endpoints,
        show: bool,
    ) -> (Tensor<2>, Option<Tensor<2>>) {
        let GatConvConfig { num_heads: heads, d_head, negative_slope: slope, dropout, .. } =
            self.config;
        let (relation, weight) = (edges.relation(), edges.weight());
        let z = if multiplies_first(&self.fc.weight.val()) {
            rows.src.clone()
        } else {
            matmul_rows(rows.src.clone(), self.fc.weight.val())
        };
        let a_src = z.clone().head_scores(&self.attn_l);
        let a_dst = match &self.fc_dst {
            Some(fc) => matmul_rows(rows.dst.clone(), fc.weight.val()),
            None => rows.projected_dst(&z, |x| matmul_rows(x, self.fc.weight.val())),
        }
        .head_scores(&self.attn_r);
        let z = split(z, [heads, d_head]);
        let options = GatOptions { slope, dropout: self.key.of_edges(edges, dropout, &z) };
        // `a_e · (f W_e)` as `f` by a matrix with one column per head.
        let a_edge = edge_rows(Self::NAME, edges, self.lin_edge.as_ref())
            .zip(self.attn_edge.as_ref())
            .map(|((lin, f), attn)| matmul_rows(f, lin.weight.val().head_scores(attn)));
        let logits = a_edge.map(|a_edge| {
            let both: Tensor<2> = u_add_v(relation, a_src.clone(), a_dst.clone());
            activation::leaky_relu(both + a_edge, slope)
        });
        let (y, shares) = match (logits, show || weight.is_some()) {
            (None, false) => (gat_attention(relation, z, a_src, a_dst, &options), None),
            (Some(logits), false) => {
                (attention(relation, logits, z, options.dropout.as_ref()), None)
            }
            (logits, true) => {
                let shares = match logits {
                    Some(logits) => edge_shares(relation, logits, options.dropout),
                    None => gat_attention_weights(relation, a_src, a_dst, &options),
                };
                let weighed = match weight {
                    Some(w) => shares.clone() * w.unsqueeze_dim(1),
                    None => shares.clone(),
                };
                let y: Tensor<3> = u_mul_e_sum(relation, z, weighed.unsqueeze_dim::<3>(2));
                (y, Some(shares))
            }
        };
        let y = y.reshape([relation.num_dst(), heads * d_head]);
        (residual(y, self.config.residual, self.res_fc.as_ref(), rows.dst), shares)
    }

    /// Bias, heads side by side or their mean, activation and dropout.
    fn finish(&self, edges: &Edges<'_>, y: Tensor<2>) -> Tensor<2> {
        let bias = self.bias.as_ref().map(|b| b.val());
        if self.config.concat {
            return edges.finish(y, bias);
        }
        let y = add_bias(y, bias);
        edges.finish(mean_heads(y, [self.config.num_heads, self.config.d_head]), None)
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
        let is_first = multiplies_first(&self.fc.weight.val());
        if is_first { apply(&self.fc, x) } else { x }
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let (y, _) = self.attend(edges, x, false);
        self.finish(edges, y)
    }
}

impl Pretrained for GatConv {
    /// PyG adds bias and residual behind the mean of heads: every head has them here.
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
            // The second before PyG 2.5.
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
