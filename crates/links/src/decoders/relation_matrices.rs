//! Multiplies embeddings by the matrices of their relations.

use burn::tensor::Tensor;
use burn_gnn_ops::{TypeIndex, gather_mm};

use super::decoder::Side;

/// `given[i] · M` with the matrix `M = matrices[ids[i]]`, transposed for heads.
pub(super) fn multiply(
    given: Tensor<2>,
    matrices: Tensor<3>,
    ids: &[u32],
    replaced: Side,
) -> Tensor<2> {
    let index = TypeIndex::new(ids, matrices.dims()[0]);
    let matrices = match replaced {
        Side::Tail => matrices,
        Side::Head => matrices.swap_dims(1, 2),
    };
    gather_mm(given, matrices, &index)
}
