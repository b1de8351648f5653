//! Implements graph attention with dynamic scores (GATv2).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{ConvInput, DropoutKey, Edges, attention, matmul_rows, u_add_v, u_mul_e_sum};

use crate::error::ModelError;
use crate::layers::attention::heads::{edge_shares, mean_heads, split};
use crate::layers::conv::{Conv, Endpoints, edge_rows, endpoints, multiplies_first, residual};
use crate::layers::dense::mlp::{add_bias, apply};
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// Describes a [`Gatv2Conv`].
#[derive(Config, Debug)]
pub struct Gatv2ConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Feature size of destination nodes where it differs from that of source nodes.
    pub d_dst: Option<usize>,
    /// Feature size of edges in the attention scores, if there are any (`edge_dim` of PyTorch Geometric).
    pub d_edge: Option<usize>,
    /// Whether source and destination share one weight.
    #[config(default = false)]
    pub share_weights: bool,
    /// What LeakyReLU multiplies numbers below 0 by.
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
    /// Whether the products have biases.
    #[config(default = true)]
    pub bias: bool,
    /// Whether a bias is added to the result, as in PyTorch Geometric; the residual has none then.
    #[config(default = false)]
    pub output_bias: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Dynamic graph attention. Per head, with `z[u] = x[u] W_src + b_src`, `t[v] = x[v] W_dst + b_dst`:
///
/// ```text
/// s[e] = a · leaky_relu(z[u] + t[v] + f[e] W_e)        the last with `d_edge`
/// y[v] = Σ_(u,v,e) m_e · softmax(s)[e] · z[u]         m_e: dropout
/// ```
/// plus `x[v]` or `x[v] W_res + b_res` with `residual`, plus `b` with `output_bias`.
///
/// # Shapes
/// As [`GatConv`](crate::GatConv), without edge weights. A destination without in-edges gets 0 (and the residual and
/// `b`).
///
/// # Departures from the paper
/// Biases stand in the products, as in DGL; one behind the sum only with `output_bias`.
///
/// # Cost
/// Scores are not sums of a number per endpoint, so one row of `num_heads · d_head` per edge is made (and kept for the
/// gradient); softmax and weighted sum are one pass. The halo exchange moves `min(d_input, num_heads · d_head)`
/// columns.
///
/// # Paper
/// Brody, Alon, Yahav, "How attentive are graph attention networks?", ICLR 2022.
#[derive(Module, Debug)]
pub struct Gatv2Conv {
    /// `[d_input, num_heads · d_head]`, of sources.
    pub fc_src: Linear,
    /// `[d_dst, num_heads · d_head]`, of destinations; none where `fc_src` serves both.
    pub fc_dst: Option<Linear>,
    /// `[1, heads, d_head]`.
    pub attn: Param<Tensor<3>>,
    /// `W_e: [d_edge, num_heads · d_head]`, no bias.
    pub lin_edge: Option<Linear>,
    /// `[d_dst, num_heads · d_head]`, where a residual changes the feature size.
    pub res_fc: Option<Linear>,
    /// `[num_heads · d_head]`, of the result.
    pub bias: Option<Param<Tensor<1>>>,
    key: DropoutKey,
    #[module(skip)]
    config: Gatv2ConvConfig,
}

impl Gatv2ConvConfig {
    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// No heads or features, a dropout probability outside `0.0..1.0`, a slope that is not finite, one weight for
    /// endpoints of different feature sizes.
    pub fn try_init(&self, device: &Device) -> Result<Gatv2Conv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        ModelError::check_finite("negative_slope", self.negative_slope)?;
        let (width, d_dst) = (self.num_heads * self.d_head, self.d_dst.unwrap_or(self.d_input));
        if self.share_weights {
            let why = "the weight of sources serves destinations too";
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
            (y, Some(attention)) => (edges.finish(y, None), attention),
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
        let Gatv2ConvConfig { num_heads: heads, d_head, negative_slope: slope, dropout, .. } =
            self.config;
        let relation = edges.relation();
        let product = |x: Tensor<2>| apply(&self.fc_src, x);
        let z = if multiplies_first(&self.fc_src.weight.val()) {
            rows.src.clone()
        } else {
            product(rows.src.clone())
        };
        let t = match &self.fc_dst {
            Some(fc) => apply(fc, rows.dst.clone()),
            None => rows.projected_dst(&z, product),
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
        let (y, shares) = if show {
            let shares = edge_shares(relation, logits, drop);
            let y: Tensor<3> = u_mul_e_sum(relation, z, shares.clone().unsqueeze_dim::<3>(2));
            (y, Some(shares))
        } else {
            (attention(relation, logits, z, drop.as_ref()), None)
        };
        let y = y.reshape([relation.num_dst(), heads * d_head]);
        let y = residual(y, self.config.residual, self.res_fc.as_ref(), rows.dst);
        let bias = self.bias.as_ref().map(|b| b.val());
        let y = add_bias(y, bias);
        (if self.config.concat { y } else { mean_heads(y, [heads, d_head]) }, shares)
    }
}

impl Conv for Gatv2Conv {
    const NAME: &'static str = "gatv2_conv";
    const READS_FEATURES: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input), Some(self.config.d_dst.unwrap_or(self.config.d_input))]
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        let is_first = multiplies_first(&self.fc_src.weight.val());
        if is_first { apply(&self.fc_src, x) } else { x }
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        self.attend(edges, x, false).0
    }
}

impl Pretrained for Gatv2Conv {
    /// PyG's default has a bias of the result (`output_bias`), which it adds, with the residual, behind the mean of
    /// heads: every head has them here.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let (shared, heads) =
            (self.fc_dst.is_none(), if self.config.concat { 1 } else { self.config.num_heads });
        match (from, path.split_once('.')) {
            // A weight shared by both endpoints has two names.
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
