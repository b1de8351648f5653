//! Scores triples by RESCAL.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::ModelError;
use burn_gnn_models::internal::Init;

use super::check::{accept_query, panicking_init};
use super::decoder::{Decoder, Side};
use super::relation_matrices::multiply;

/// Describes a [`Rescal`] decoder.
#[derive(Config, Debug)]
pub struct RescalConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities.
    pub d: usize,
}

/// `h R_r t`, with one matrix per relation.
///
/// # Cost
/// A query costs one product of rows and matrices, grouped by relation. The decoder has `relations · d²` parameters.
///
/// # Source
/// Nickel, Tresp, Kriegel, "A three-way model for collective learning on multi-relational data", ICML 2011.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, RescalConfig};
/// let device = Device::flex();
/// let decoder = RescalConfig::new(3, 8).init(&device);
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([2, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(decoder.score(heads, Some(relations), tails).dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct Rescal {
    /// `[relations, d, d]`.
    pub relations: Param<Tensor<3>>,
}

impl RescalConfig {
    /// Initializes matrices by Glorot, each as a matrix `d × d`.
    ///
    /// # Errors
    /// A size of 0.
    pub fn try_init(&self, device: &Device) -> Result<Rescal, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        let shape = [self.num_relations, self.d, self.d];
        Ok(Rescal { relations: Init::glorot(device).weight(shape, (self.d, self.d)) })
    }
}

panicking_init!(RescalConfig => Rescal, "rescal");

impl Decoder for Rescal {
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [count, d, _] = self.relations.dims();
        let (_, ids) = accept_query("rescal", d, count, &given, relations);
        multiply(given, self.relations.val(), &ids, replaced)
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        let [count, d, _] = self.relations.dims();
        Some(self.relations.val().reshape([count, d * d]))
    }
}
