//! Scores blocks of pairs by dot products of embeddings.

use std::ops::Range;

use burn::tensor::Tensor;
use burn_gnn_models::select_rows;

/// Scores of blocks by dot products: what [`RankingConfig::rank`](crate::RankingConfig::rank) and
/// [`top_k_by`](crate::top_k_by) call.
///
/// ```text
/// s[q, e] = ⟨queries[q], candidates[e]⟩
/// ```
///
/// # Shapes
/// `queries`: `[queries, d]`; `candidates`: `[candidates, d]`. A block is one matrix product.
///
/// # Panics
/// Calls with a query or candidate that is no row.
pub fn dot_scores(
    queries: Tensor<2>,
    candidates: Tensor<2>,
) -> impl FnMut(&[usize], Range<usize>) -> Tensor<2> {
    move |rows, columns| {
        let of_block = if columns == (0..candidates.dims()[0]) {
            candidates.clone()
        } else {
            candidates.clone().slice_dim(0, columns)
        };
        select_rows(queries.clone(), rows).matmul(of_block.transpose())
    }
}
