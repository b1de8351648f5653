//! Graph attention with scores that look at both ends together.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{Activation, GraphView, NormBy, attention, dropout, edge_softmax, u_add_v, u_mul_e_sum};

use crate::conv::{EndRows, Ends, RelationConv, end_rows};
use crate::heads::{mean_heads, residual, split};
use crate::mlp::{apply, linear};
use crate::pretrained::{Framework, Pretrained, Their};
use crate::{Mode, ModelError, init};

/// Describes a [`Gatv2Conv`].
#[derive(Config, Debug)]
pub struct Gatv2ConvConfig {
    /// Columns of source rows.
    pub d_input: usize,
    /// Columns of each head.
    pub d_head: usize,
    /// Number of heads.
    pub heads: usize,
    /// Columns of destination rows where they differ from those of sources.
    pub d_dst: Option<usize>,
    /// Whether one weight serves both ends.
    #[config(default = false)]
    pub share_weights: bool,
    /// What LeakyReLU multiplies numbers below 0 by.
    #[config(default = 0.2)]
    pub slope: f64,
    /// Probability that an attention weight is dropped.
    #[config(default = 0.0)]
    pub attn_dropout: f64,
    /// Whether destination rows are added to the result, through a weight where widths differ.
    #[config(default = false)]
    pub residual: bool,
    /// Whether heads stand beside each other in the result (`heads · d_head` columns) or are averaged (`d_head`).
    #[config(default = true)]
    pub concat: bool,
    /// Whether the products have biases.
    #[config(default = true)]
    pub bias: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights and dropout; give layers of one model different names.
    #[config(default = "String::from(\"gatv2_conv\")")]
    pub name: String,
}

/// Dynamic graph attention. Per head, with `z[u] = x[u] W_src + b_src`, `t[v] = x[v] W_dst + b_dst`:
///
/// ```text
/// s[e] = a · leaky_relu(z[u] + t[v])
/// y[v] = Σ_(u,v,e) m_e · softmax(s)[e] · z[u]         m_e: dropout
/// ```
/// plus `x[v]` or `x[v] W_res + b_res` with `residual`.
///
/// # Shapes
/// As [`GatConv`](crate::GatConv). A destination without in-edges gets 0 (and the residual).
///
/// # Departures from the paper
/// Biases stand in the products, as in DGL, and there is none behind the sum.
///
/// # Cost
/// Scores are not sums of a number per end, so one row of `heads · d_head` per edge is made (and kept for the
/// gradient); softmax and weighted sum are one pass. The halo exchange moves `min(d_input, heads · d_head)` columns.
///
/// # Paper
/// Brody, Alon, Yahav, "How attentive are graph attention networks?", ICLR 2022.
#[derive(Module, Debug)]
pub struct Gatv2Conv {
    /// `[d_input, heads · d_head]`, of sources.
    pub fc_src: Linear,
    /// `[d_dst, heads · d_head]`, of destinations; none where `fc_src` serves both.
    pub fc_dst: Option<Linear>,
    /// `[1, heads, d_head]`.
    pub attn: Param<Tensor<3>>,
    /// `[d_dst, heads · d_head]`, where a residual changes width.
    pub res_fc: Option<Linear>,
    #[module(skip)]
    config: Gatv2ConvConfig,
}

impl Gatv2ConvConfig {
    /// Weights by Glorot's rule, biases 0.
    ///
    /// # Errors
    /// No heads or columns, a dropout probability outside `0.0..1.0`, a slope that is not finite, one weight for
    /// ends of different widths.
    pub fn try_init(&self, device: &Device) -> Result<Gatv2Conv, ModelError> {
        ModelError::check_sizes(&[("heads", self.heads), ("d_head", self.d_head)], self.attn_dropout)?;
        ModelError::check_finite("slope", self.slope)?;
        let (width, d_dst) = (self.heads * self.d_head, self.d_dst.unwrap_or(self.d_input));
        if self.share_weights && d_dst != self.d_input {
            let why = "the weight of sources serves destinations too".into();
            return Err(ModelError::Length { arg: "d_dst".into(), why, expected: self.d_input, actual: d_dst });
        }
        let linear = |part: &str, d, bias| linear(self.seed, &format!("{}/{part}", self.name), [d, width], bias, device);
        let attn = format!("{}/attn", self.name);
        Ok(Gatv2Conv {
            fc_src: linear("fc_src", self.d_input, self.bias),
            fc_dst: (!self.share_weights).then(|| linear("fc_dst", d_dst, self.bias)),
            attn: init::glorot(self.seed, &attn, [1, self.heads, self.d_head], (self.d_head, 1), device),
            res_fc: (self.residual && d_dst != width).then(|| linear("res_fc", d_dst, self.bias)),
            config: self.clone(),
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Gatv2Conv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Gatv2Conv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        self.forward_on(g, 0, x, mode)
    }

    /// On one edge type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: impl Into<Ends>, mode: Mode) -> Tensor<2> {
        let rows = end_rows(g, "gatv2_conv", etype, x.into(), |x| self.project(x));
        self.attend(g, etype, rows, false, mode).0
    }

    /// As [`forward_on`](Self::forward_on), with the attention weights `m_e · α[e]`, `[num_edges, heads]`.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_with_attention<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: usize,
        x: impl Into<Ends>,
        mode: Mode,
    ) -> (Tensor<2>, Tensor<2>) {
        let rows = end_rows(g, "gatv2_conv", etype, x.into(), |x| self.project(x));
        match self.attend(g, etype, rows, true, mode) {
            (y, Some(attention)) => (y, attention),
            (_, None) => unreachable!("asked for"),
        }
    }

    /// Whether rows are multiplied before they travel.
    fn multiplies_first(&self) -> bool {
        let [i, o] = self.fc_src.weight.val().dims();
        i > o
    }

    #[track_caller]
    fn attend<G: GraphView + ?Sized>(&self, g: &G, etype: usize, rows: EndRows, show: bool, mode: Mode) -> (Tensor<2>, Option<Tensor<2>>) {
        let Gatv2ConvConfig { heads, d_head, slope, attn_dropout, .. } = self.config;
        let relation = g.relation(etype);
        let product = |x: Tensor<2>| apply(&self.fc_src, x, Activation::None);
        let z = if self.multiplies_first() { rows.src.clone() } else { product(rows.src.clone()) };
        let t = match &self.fc_dst {
            Some(fc) => apply(fc, rows.dst.clone(), Activation::None),
            None => rows.projected_dst(&z, product),
        };
        let (z, t) = (split(z, [heads, d_head]), split(t, [heads, d_head]));
        let both: Tensor<3> = u_add_v(relation, z.clone(), t);
        let logits = (activation::leaky_relu(both, slope) * self.attn.val()).sum_dim(2).reshape([relation.num_edges(), heads]);
        let drop = mode.edge_dropout(g, etype, &self.config.name, attn_dropout);
        let (y, shares) = if show {
            let shares = edge_softmax(relation, logits, NormBy::Dst);
            let shares = match drop {
                Some(d) => dropout(shares, d.prob, d.stream, d.ids),
                None => shares,
            };
            let y: Tensor<3> = u_mul_e_sum(relation, z, shares.clone().unsqueeze_dim::<3>(2));
            (y, Some(shares))
        } else {
            (attention(relation, logits, z, drop.as_ref()), None)
        };
        let y = y.reshape([relation.num_dst(), heads * d_head]);
        let y = residual(y, self.config.residual, self.res_fc.as_ref(), rows.dst);
        (if self.config.concat { y } else { mean_heads(y, [heads, d_head]) }, shares)
    }
}

impl RelationConv for Gatv2Conv {
    fn project(&self, x: Tensor<2>) -> Tensor<2> {
        if self.multiplies_first() { apply(&self.fc_src, x, Activation::None) } else { x }
    }

    #[track_caller]
    fn aggregate<G: GraphView + ?Sized>(&self, g: &G, etype: usize, rows: EndRows, mode: Mode) -> Tensor<2> {
        self.attend(g, etype, rows, false, mode).0
    }
}

impl Pretrained for Gatv2Conv {
    fn their(&self, from: Framework, path: &str) -> Their {
        if from == Framework::Dgl {
            return Their::same(path);
        }
        match path.split_once('.') {
            Some(("fc_src", field)) => Their::same(format!("lin_l.{field}")),
            Some(("fc_dst", field)) => Their::same(format!("lin_r.{field}")),
            Some(("res_fc", field)) => Their::same(format!("res.{field}")),
            _ => Their::same(if path == "attn" { "att" } else { path }),
        }
    }
}
