//! Code shared by attention layers with several heads.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{
    ConvInput, EdgeDropout, Edges, Endpoints, NormBy, attention, dropout, edge_softmax,
    matmul_rows, u_mul_e_sum,
};

use crate::layers::conv::{Conv, endpoints, residual};
use crate::layers::dense::mlp::add_bias;

/// A layer that can return its attention weights.
pub(crate) trait AttentionConv: Conv {
    /// Computes [`Conv::aggregate`], and returns the attention weights after dropout, `[num_edges, num_heads]`, if
    /// `returns_weights`.
    fn attend(
        &self,
        edges: &Edges<'_>,
        x: Endpoints,
        returns_weights: bool,
    ) -> (Tensor<2>, Option<Tensor<2>>);

    /// Computes [`Conv::forward`] and returns the attention weights.
    #[track_caller]
    fn forward_and_weights(&self, edges: Edges<'_>, x: ConvInput) -> (Tensor<2>, Tensor<2>) {
        let x = endpoints(self, &edges, x);
        let (y, weights) = self.attend(&edges, x, true);
        (y, weights.unwrap_or_else(|| unreachable!("`returns_weights` is true")))
    }
}

/// Reshapes `[rows, heads · d]` to `[rows, heads, d]`.
pub(crate) fn split(x: Tensor<2>, [heads, d]: [usize; 2]) -> Tensor<3> {
    let [rows, _] = x.dims();
    x.reshape([rows, heads, d])
}

/// Averages `[rows, heads · d]` over heads.
pub(crate) fn mean_heads(x: Tensor<2>, [heads, d]: [usize; 2]) -> Tensor<2> {
    let [rows, _] = x.dims();
    split(x, [heads, d]).mean_dim(1).reshape([rows, d])
}

/// Normalises `[num_edges, heads]` by a softmax over in-edges, then applies dropout.
#[track_caller]
pub(crate) fn attention_weights(
    relation: &Relation,
    logits: Tensor<2>,
    drop: Option<EdgeDropout>,
) -> Tensor<2> {
    let weights = edge_softmax(relation, logits, NormBy::Dst);
    match drop {
        Some(d) => dropout(weights, d.prob, d.stream, d.ids),
        None => weights,
    }
}

/// Sums source features `[num_src, heads, d]` by attention weights, each multiplied by the weight of its edge.
#[track_caller]
pub(crate) fn weighted_sum(
    relation: &Relation,
    z: Tensor<3>,
    attention: &Tensor<2>,
    edge_weight: Option<Tensor<1>>,
) -> Tensor<3> {
    let by = match edge_weight {
        Some(w) => attention.clone() * w.unsqueeze_dim(1),
        None => attention.clone(),
    };
    u_mul_e_sum(relation, z, by.unsqueeze_dim::<3>(2))
}

/// Sums source features `[num_src, heads, d]` by the softmax of logits `[num_edges, heads]`.
///
/// Attention weights are stored only if the caller needs them or edges have weights; otherwise softmax, dropout and sum
/// are one operator.
#[track_caller]
pub(crate) fn attend(
    relation: &Relation,
    logits: Tensor<2>,
    z: Tensor<3>,
    drop: Option<EdgeDropout>,
    edge_weight: Option<Tensor<1>>,
    returns_weights: bool,
) -> (Tensor<3>, Option<Tensor<2>>) {
    if !returns_weights && edge_weight.is_none() {
        return (attention(relation, logits, z, drop.as_ref()), None);
    }
    let weights = attention_weights(relation, logits, drop);
    (weighted_sum(relation, z, &weights, edge_weight), Some(weights))
}

/// The last steps of a GAT layer: residual, bias, and concatenation or mean of heads.
pub(crate) struct HeadOutput<'a> {
    pub(crate) residual: bool,
    pub(crate) res_fc: Option<&'a Linear>,
    pub(crate) bias: Option<&'a Param<Tensor<1>>>,
    pub(crate) concat: bool,
}

impl HeadOutput<'_> {
    /// Completes the sums of all heads `[num_dst, heads, d]`, then applies activation and dropout of the edges.
    pub(crate) fn finish(&self, edges: &Edges<'_>, sums: Tensor<3>, dst: Tensor<2>) -> Tensor<2> {
        let [rows, heads, d] = sums.dims();
        let y = residual(sums.reshape([rows, heads * d]), self.residual, self.res_fc, dst);
        let bias = self.bias.map(Param::val);
        if self.concat {
            return edges.finish(y, bias);
        }
        edges.finish(mean_heads(add_bias(y, bias), [heads, d]), None)
    }
}

pub(crate) trait HeadScores {
    /// Computes `⟨x[i, h, :], a[h, :]⟩` for every row and head, `[rows, heads]`.
    ///
    /// An infinity or NaN in one head of a row makes the scores of all its heads NaN, because the other heads multiply
    /// it by the zeros next to the blocks.
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2>;
}

impl HeadScores for Tensor<2> {
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2> {
        let a = a.val();
        let [_, heads, d] = a.dims();
        // A product with a block-diagonal matrix of the vectors in `a`: forward and backward allocate nothing of the
        // size of `x`.
        let diagonal: Vec<f32> = (0..heads * d * heads)
            .map(|i| if i / heads / d == i % heads { 1.0f32 } else { 0.0 })
            .collect();
        let diagonal = Tensor::<2>::from_data(
            TensorData::new(diagonal, [heads * d, heads]),
            (&a.device(), a.dtype()),
        );
        matmul_rows(self, a.reshape([heads * d, 1]) * diagonal)
    }
}
