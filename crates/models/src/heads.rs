//! Rows of several attention heads.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;
use burn_gnn_ops::Activation;

use crate::mlp::apply;

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

/// `y` with destination rows added, through `fc` where there is one.
pub(crate) fn residual(y: Tensor<2>, wanted: bool, fc: Option<&Linear>, dst: Tensor<2>) -> Tensor<2> {
    match (wanted, fc) {
        (_, Some(fc)) => y + apply(fc, dst, Activation::None),
        (true, None) => y + dst,
        (false, None) => y,
    }
}

pub(crate) trait HeadScores {
    /// `⟨x[i, h, :], a[h, :]⟩` for every row and head, `[rows, heads]`.
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2>;
}

impl HeadScores for Tensor<2> {
    fn head_scores(self, a: &Param<Tensor<3>>) -> Tensor<2> {
        let a = a.val();
        let ([rows, _], [_, heads, d]) = (self.dims(), a.dims());
        (split(self, [heads, d]) * a).sum_dim(2).reshape([rows, heads])
    }
}
