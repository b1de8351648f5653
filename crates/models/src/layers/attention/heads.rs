//! Splits, averages and scores multi-head features.

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{EdgeDropout, NormBy, dropout, edge_softmax, matmul_rows};

/// `[rows, heads · d]` as `[rows, heads, d]`.
pub(crate) fn split(x: Tensor<2>, [heads, d]: [usize; 2]) -> Tensor<3> {
    let [rows, _] = x.dims();
    x.reshape([rows, heads, d])
}

/// The mean over heads of `[rows, heads · d]`.
pub(crate) fn mean_heads(x: Tensor<2>, [heads, d]: [usize; 2]) -> Tensor<2> {
    let [rows, _] = x.dims();
    split(x, [heads, d]).mean_dim(1).reshape([rows, d])
}

/// Softmax of `[num_edges, heads]` over in-edges, then dropout.
#[track_caller]
pub(crate) fn edge_shares(
    relation: &Relation,
    logits: Tensor<2>,
    drop: Option<EdgeDropout>,
) -> Tensor<2> {
    let shares = edge_softmax(relation, logits, NormBy::Dst);
    match drop {
        Some(d) => dropout(shares, d.prob, d.stream, d.ids),
        None => shares,
    }
}

pub(crate) trait HeadScores {
    /// `⟨x[i, h, :], a[h, :]⟩` for every row and head, `[rows, heads]`.
    ///
    /// An infinity or NaN in one head of a row makes the scores of all its heads NaN: they are met by the zeros beside
    /// the blocks.
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2>;
}

impl HeadScores for Tensor<2> {
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2> {
        let a = a.val();
        let [_, heads, d] = a.dims();
        // As a product with the blocks of `a` on the diagonal: nothing as wide as the rows is made, forward or
        // backward.
        let own: Vec<f32> = (0..heads * d * heads)
            .map(|i| if i / heads / d == i % heads { 1.0f32 } else { 0.0 })
            .collect();
        let own = Tensor::<2>::from_data(
            TensorData::new(own, [heads * d, heads]),
            (&a.device(), a.dtype()),
        );
        matmul_rows(self, a.reshape([heads * d, 1]) * own)
    }
}
