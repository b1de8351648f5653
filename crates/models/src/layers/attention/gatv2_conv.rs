//! Implements graph attention with dynamic scores (GATv2).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{ConvInput, DropoutKey, Edges, Endpoints, matmul_rows, u_add_v};

use crate::error::ModelError;
use crate::layers::attention::heads::{AttentionConv, HeadOutput, attend, split};
use crate::layers::conv::{Conv, edge_rows, project_after_exchange, project_before_exchange};
use crate::layers::dense::mlp::apply;
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`Gatv2Conv`].
#[derive(Config, Debug)]
pub struct Gatv2ConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Feature size of destination nodes. `None`: `d_input`.
    pub d_dst: Option<usize>,
    /// Feature size of edges, if attention scores depend on edge features (`edge_dim` of PyTorch Geometric).
    pub d_edge: Option<usize>,
    /// Whether source and destination share one weight.
    #[config(default = false)]
    pub share_weights: bool,
    /// Slope of LeakyReLU for negative numbers.
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
    /// Whether the products have biases.
    #[config(default = true)]
    pub bias: bool,
    /// Whether a bias is added to the result, as in PyTorch Geometric. The residual then has no bias.
    #[config(default = false)]
    pub output_bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Dynamic graph attention layer (GATv2): attention whose ranking of neighbours depends on the destination, which
/// [`GatConv`](crate::GatConv) cannot express.
///
/// Per head, with `z[u] = x[u] W_src + b_src` and `t[v] = x[v] W_dst + b_dst`:
///
/// ```text
/// s[e] = a · leaky_relu(z[u] + t[v] + f[e] W_e)        the last term with `d_edge`
/// y[v] = Σ_(u,v,e) m_e · softmax(s)[e] · z[u]         m_e: dropout
/// ```
/// With `residual`, `x[v]` or `x[v] W_res + b_res` is added; with `output_bias`, `b` is added.
///
/// # Shapes
/// As in [`GatConv`](crate::GatConv), without edge weights. The output of a destination without in-edges is 0 plus the
/// residual and `b`.
///
/// # Differences from the paper and from other libraries
/// The products have the biases, as in DGL. PyG has a bias of the result instead: set `output_bias`. The caller adds
/// self loops, which PyG's layer adds by default.
///
/// # Cost
/// A score is not a sum of one number per endpoint. One row of `num_heads · d_head` features per edge is therefore
/// computed and kept for backward; softmax and weighted sum are one operator. The halo exchange moves
/// `min(d_input, num_heads · d_head)` features.
///
/// # Paper
/// Brody, Alon, Yahav, "How attentive are graph attention networks?", ICLR 2022.
#[derive(Module, Debug)]
pub struct Gatv2Conv {
    /// `W_src: [d_input, num_heads · d_head]` and `b_src`.
    pub fc_src: Linear,
    /// `W_dst: [d_dst, num_heads · d_head]` and `b_dst`; `None` with `share_weights`.
    pub fc_dst: Option<Linear>,
    /// `a: [1, heads, d_head]`.
    pub attn: Param<Tensor<3>>,
    /// `W_e: [d_edge, num_heads · d_head]`, no bias.
    pub lin_edge: Option<Linear>,
    /// `W_res: [d_dst, num_heads · d_head]` and `b_res`, if the residual has a weight.
    pub res_fc: Option<Linear>,
    /// `b: [num_heads · d_head]`, with `output_bias`.
    pub bias: Option<Param<Tensor<1>>>,
    key: DropoutKey,
    #[module(skip)]
    config: Gatv2ConvConfig,
}

impl Gatv2ConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `num_heads` or `d_head` is 0, `dropout` is not in `0.0..1.0`, `negative_slope` is not finite, or
    /// `share_weights` with `d_dst` different from `d_input`.
    pub fn try_init(&self, device: &Device) -> Result<Gatv2Conv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        ModelError::check_finite("negative_slope", self.negative_slope)?;
        let (width, d_dst) = (self.num_heads * self.d_head, self.d_dst.unwrap_or(self.d_input));
        if self.share_weights {
            let why = "sources and destinations share a weight";
            ModelError::check_length("d_dst", why, self.d_input, d_dst)?;
        }
        let init = Init { initializer: &self.initializer, device };
        let linear = |d, bias| init.linear([d, width], bias);
        Ok(Gatv2Conv {
            fc_src: linear(self.d_input, self.bias),
            fc_dst: (!self.share_weights).then(|| linear(d_dst, self.bias)),
            attn: init.weight([1, self.num_heads, self.d_head], (self.d_head, 1)),
            lin_edge: self.d_edge.map(|d| linear(d, false)),
            res_fc: (self.residual_weight || self.residual && d_dst != width)
                .then(|| linear(d_dst, self.bias && !self.output_bias)),
            bias: self.output_bias.then(|| init::zeros(width, device)),
            key: DropoutKey::new(device),
            config: self.clone(),
        })
    }
}

panicking_init!(Gatv2ConvConfig => Gatv2Conv);

impl Gatv2Conv {
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

impl AttentionConv for Gatv2Conv {
    #[track_caller]
    fn attend(
        &self,
        edges: &Edges<'_>,
        x: Endpoints,
        returns_weights: bool,
    ) -> (Tensor<2>, Option<Tensor<2>>) {
        let Gatv2ConvConfig { num_heads: heads, d_head, negative_slope: slope, dropout, .. } =
            self.config;
        let relation = edges.relation();
        let z = project_after_exchange(&self.fc_src, x.src.clone());
        let t = match &self.fc_dst {
            Some(fc) => apply(fc, x.dst.clone()),
            None => x.projected_dst(&z, |x| apply(&self.fc_src, x)),
        };
        let (z, t) = (split(z, [heads, d_head]), split(t, [heads, d_head]));
        let both: Tensor<3> = u_add_v(relation, z.clone(), t);
        let both = match edge_rows(Self::NAME, edges, self.lin_edge.as_ref()) {
            Some((lin, f)) => both + split(matmul_rows(f, lin.weight.val()), [heads, d_head]),
            None => both,
        };
        let logits = (activation::leaky_relu(both, slope) * self.attn.val())
            .sum_dim(2)
            .reshape([relation.num_edges(), heads]);
        let drop = self.key.of_edges(edges, dropout, &logits);
        let (sums, weights) = attend(relation, logits, z, drop, None, returns_weights);
        let output = HeadOutput {
            residual: self.config.residual,
            res_fc: self.res_fc.as_ref(),
            bias: self.bias.as_ref(),
            concat: self.config.concat,
        };
        (output.finish(edges, sums, x.dst), weights)
    }
}

impl Conv for Gatv2Conv {
    const NAME: &'static str = "gatv2_conv";
    const READS_FEATURES: bool = true;
    const FUSES_EPILOGUE: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input), Some(self.config.d_dst.unwrap_or(self.config.d_input))]
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        project_before_exchange(&self.fc_src, x)
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        self.attend(edges, x, false).0
    }
}

impl Pretrained for Gatv2Conv {
    /// PyG's layer has a bias of the result (`output_bias`). PyG adds bias and residual after the mean over heads; here
    /// every head has a copy of both.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let (shared, heads) =
            (self.fc_dst.is_none(), if self.config.concat { 1 } else { self.config.num_heads });
        match (from, path.split_once('.')) {
            // A state dict contains a shared weight under two names.
            (Framework::Dgl, Some(("fc_src", field))) if shared => {
                ParamMapping::same(path).also(format!("fc_dst.{field}"))
            }
            (Framework::Dgl, _) => ParamMapping::same(path),
            (Framework::Pyg, Some(("fc_src", field))) if shared => {
                ParamMapping::same(format!("lin_l.{field}")).also(format!("lin_r.{field}"))
            }
            (Framework::Pyg, Some(("fc_src", field))) => {
                ParamMapping::same(format!("lin_l.{field}"))
            }
            (Framework::Pyg, Some(("fc_dst", field))) => {
                ParamMapping::same(format!("lin_r.{field}"))
            }
            (Framework::Pyg, Some(("res_fc", field))) => {
                ParamMapping::same(format!("res.{field}")).repeated(heads)
            }
            (Framework::Pyg, _) if path == "bias" => ParamMapping::same(path).repeated(heads),
            (Framework::Pyg, _) => ParamMapping::same(if path == "attn" { "att" } else { path }),
        }
    }
}
