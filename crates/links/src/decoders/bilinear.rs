//! Scores pairs by a bilinear form.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::ModelError;
use burn_gnn_models::internal::Init;
use burn_gnn_ops::matmul_rows;

use super::check::{accept, check_no_relations, check_size, panicking_init};
use super::decoder::{Decoder, Side};

/// Describes a [`Bilinear`] decoder.
#[derive(Config, Debug)]
pub struct BilinearConfig {
    /// Embedding size of sources.
    pub d_src: usize,
    /// Embedding size of destinations.
    pub d_dst: usize,
}

/// Bilinear form of both embeddings, `h W t`, with one learned matrix; the embeddings may have different sizes.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{BilinearConfig, Decoder};
/// let device = Device::flex();
/// let decoder = BilinearConfig::new(4, 3).init(&device);
/// let scores = decoder.score(Tensor::ones([2, 4], &device), None, Tensor::ones([2, 3], &device));
/// assert_eq!(scores.dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct Bilinear {
    /// `[d_src, d_dst]`.
    pub weight: Param<Tensor<2>>,
}

impl BilinearConfig {
    /// Initializes the matrix by Glorot.
    ///
    /// # Errors
    /// A size of 0.
    pub fn try_init(&self, device: &Device) -> Result<Bilinear, ModelError> {
        ModelError::check_sizes(&[("d_src", self.d_src), ("d_dst", self.d_dst)], 0.0)?;
        Ok(Bilinear { weight: Init::glorot(device).matrix([self.d_src, self.d_dst]) })
    }
}

panicking_init!(BilinearConfig => Bilinear, "bilinear");

impl Decoder for Bilinear {
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [d_src, d_dst] = self.weight.dims();
        let d = if replaced == Side::Tail { d_src } else { d_dst };
        accept(
            "bilinear",
            check_no_relations(relations.as_ref())
                .and_then(|()| check_size("the embeddings", d, &given)),
        );
        let weight = self.weight.val();
        match replaced {
            Side::Tail => matmul_rows(given, weight),
            Side::Head => matmul_rows(given, weight.transpose()),
        }
    }
}
