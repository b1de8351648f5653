//! Implements the graph transformer layer: dot-product attention over neighbours.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{
    DropoutKey, Edges, Endpoints, attention, copy_e_sum, div_by, e_dot_v, matmul_rows,
    matmul_rows_onto, u_dot_v, u_mul_e_sum,
};

use crate::error::ModelError;
use crate::layers::attention::heads::{attention_weights, mean_heads, split};
use crate::layers::conv::{Conv, edge_rows};
use crate::layers::dense::mlp::{apply, sigmoid};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`TransformerConv`].
#[derive(Config, Debug)]
pub struct TransformerConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size of each head.
    pub d_head: usize,
    /// Number of heads.
    pub num_heads: usize,
    /// Feature size of destination nodes. `None`: `d_input`.
    pub d_dst: Option<usize>,
    /// Feature size of edges, if the layer reads edge features.
    pub d_edge: Option<usize>,
    /// Whether heads are concatenated (`num_heads · d_head` output features) or averaged (`d_head`).
    #[config(default = true)]
    pub concat: bool,
    /// Whether `x[v] W_r` is added.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether keys, queries, values and the added destination features have biases.
    #[config(default = true)]
    pub bias: bool,
    /// Whether a gate `β` weights the sum with destination features.
    #[config(default = false)]
    pub beta: bool,
    /// Dropout probability of attention weights.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph transformer layer: scaled dot-product attention of a node over its neighbours.
///
/// Per head, with `q, k, v = x W_q, x W_k, x W_v` and `g = f W_e`:
///
/// ```text
/// α[e] = softmax of q[v] · (k[u] + g[e]) / √d_head over the in-edges of v
/// h[v] = Σ_(u,v,e) m_e · α[e] · (v[u] + g[e])           m_e: dropout
/// y[v] = h[v] + r[v]                                    r[v] = x[v] W_r
/// y[v] = β r[v] + (1 - β) h[v],  β = σ([h[v], r[v], h[v] - r[v]] w)        with `beta`
/// ```
///
/// # Shapes
/// Sources `[num_input, d_input]`, destinations `[num_input, d_dst]`, `f: [num_edges, d_edge]`, output
/// `[num_dst, num_heads · d_head]`, or `[num_dst, d_head]` if heads are averaged. A node without in-edges has `h = 0`.
///
/// # Differences from the paper
/// As in PyTorch Geometric, no layer normalisation and no activation follow the gate.
///
/// # Cost
/// Without edge features, one dot product per edge and head and one attention; nothing of the size edges × features is
/// allocated. With edge features, their projections take that size. The halo exchange moves input features.
///
/// # Paper
/// Shi, Huang, Feng, Zhong, Wang, Sun, "Masked label prediction", IJCAI 2021.
#[derive(Module, Debug)]
pub struct TransformerConv {
    /// `W_k: [d_input, num_heads · d_head]` and a bias.
    pub lin_key: Linear,
    /// `W_q: [d_dst, num_heads · d_head]` and a bias.
    pub lin_query: Linear,
    /// `W_v: [d_input, num_heads · d_head]` and a bias.
    pub lin_value: Linear,
    /// `W_e: [d_edge, num_heads · d_head]`.
    pub lin_edge: Option<Linear>,
    /// `W_r`, from `d_dst` to the output feature size, and a bias.
    pub lin_skip: Option<Linear>,
    /// `w: [3 · output feature size, 1]`.
    pub lin_beta: Option<Linear>,
    key: DropoutKey,
    #[module(skip)]
    config: TransformerConvConfig,
}

impl TransformerConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `num_heads` or `d_head` is 0, `dropout` is not in `0.0..1.0`, or `beta` is set without `root_weight`.
    pub fn try_init(&self, device: &Device) -> Result<TransformerConv, ModelError> {
        ModelError::check_heads(self.num_heads, self.d_head, self.dropout)?;
        if self.beta && !self.root_weight {
            let range = "false without `root_weight`, because the gate needs both terms";
            return Err(ModelError::out_of_range("beta", range, true));
        }
        let (width, d_dst) = (self.num_heads * self.d_head, self.d_dst.unwrap_or(self.d_input));
        let out = if self.concat { width } else { self.d_head };
        let init = Init { initializer: &self.initializer, device };
        Ok(TransformerConv {
            lin_key: init.linear([self.d_input, width], self.bias),
            lin_query: init.linear([d_dst, width], self.bias),
            lin_value: init.linear([self.d_input, width], self.bias),
            lin_edge: self.d_edge.map(|d| init.linear([d, width], false)),
            lin_skip: self.root_weight.then(|| init.linear([d_dst, out], self.bias)),
            lin_beta: self.beta.then(|| init.linear([3 * out, 1], false)),
            key: DropoutKey::new(device),
            config: self.clone(),
        })
    }
}

panicking_init!(TransformerConvConfig => TransformerConv);

impl Conv for TransformerConv {
    const NAME: &'static str = "transformer_conv";
    const READS_FEATURES: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input), Some(self.config.d_dst.unwrap_or(self.config.d_input))]
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, rows: Endpoints) -> Tensor<2> {
        let TransformerConvConfig { num_heads: heads, d_head, dropout, concat, .. } = self.config;
        let relation = edges.relation();
        let product =
            |layer: &Linear, x: &Tensor<2>| split(apply(layer, x.clone()), [heads, d_head]);
        let (k, v, q) = (
            product(&self.lin_key, &rows.src),
            product(&self.lin_value, &rows.src),
            product(&self.lin_query, &rows.dst),
        );
        let q = div_by(q, (d_head as f64).sqrt());
        let logits: Tensor<3> = u_dot_v(relation, k, q.clone());
        let drop = self.key.of_edges(edges, dropout, &logits);
        let h = match edge_rows(Self::NAME, edges, self.lin_edge.as_ref()) {
            None => {
                attention(relation, logits.reshape([relation.num_edges(), heads]), v, drop.as_ref())
            }
            Some((lin, f)) => {
                let f = split(matmul_rows(f, lin.weight.val()), [heads, d_head]);
                let logits: Tensor<3> = logits + e_dot_v(relation, f.clone(), q);
                let shares = attention_weights(
                    relation,
                    logits.reshape([relation.num_edges(), heads]),
                    drop,
                )
                .unsqueeze_dim::<3>(2);
                let nodes: Tensor<3> = u_mul_e_sum(relation, v, shares.clone());
                nodes + copy_e_sum(relation, f * shares)
            }
        };
        let h = h.reshape([relation.num_dst(), heads * d_head]);
        let h = if concat { h } else { mean_heads(h, [heads, d_head]) };
        let Some(skip) = &self.lin_skip else { return h };
        let r = apply(skip, rows.dst);
        match &self.lin_beta {
            Some(gate) => {
                let [_, width] = h.dims();
                // `[h, r, h - r] w` without the concatenation.
                let w = |i: usize| gate.weight.val().slice_dim(0, i * width..(i + 1) * width);
                let both =
                    matmul_rows_onto(h.clone(), w(0) + w(2), matmul_rows(r.clone(), w(1) - w(2)));
                let beta = sigmoid(both);
                beta.clone() * r + (beta.neg() + 1.0) * h
            }
            None => h + r,
        }
    }
}

impl Pretrained for TransformerConv {
    /// Names of PyTorch Geometric. DGL has no such layer.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        ParamMapping::same(path)
    }
    /// PyG creates `lin_skip` even without `root_weight`, and does not use it then.
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        if self.lin_skip.is_some() {
            return vec![];
        }
        let TransformerConvConfig { num_heads: heads, d_head, concat, bias, .. } = self.config;
        let [d_dst, _] = self.lin_query.weight.val().dims();
        let out = if concat { heads * d_head } else { d_head };
        let bias = bias.then(|| Buffer::unread("lin_skip.bias").zeros([out]));
        [Buffer::unread("lin_skip.weight").zeros([out, d_dst])].into_iter().chain(bias).collect()
    }
}
