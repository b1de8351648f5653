//! Scores triples by TuckER.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::ModelError;
use burn_gnn_models::id_tensor;
use burn_gnn_models::internal::Init;
use burn_gnn_ops::matmul_rows;

use super::check::{accept_query, panicking_init};
use super::decoder::{Decoder, Side};
use super::relation_matrices::multiply;

/// Describes a [`TuckEr`] decoder.
#[derive(Config, Debug)]
pub struct TuckErConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities.
    pub d: usize,
    /// Embedding size of relations.
    pub d_relation: usize,
}

/// `W ×₁ r ×₂ h ×₃ t`, with a learned core tensor `W`: the matrix of a relation is `Σ_k r[k] W[k]`.
///
/// # Cost
/// A query computes the matrix of each different relation once, in `d_relation · d²` operations, and multiplies rows by
/// the matrices of their relations. The core has `d_relation · d²` parameters.
///
/// # Source
/// Balažević, Allen, Hospedales, "TuckER: tensor factorization for knowledge graph completion", EMNLP 2019.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, TuckErConfig};
/// let device = Device::flex();
/// let decoder = TuckErConfig::new(3, 8, 4).init(&device);
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([2, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(decoder.score(heads, Some(relations), tails).dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct TuckEr {
    /// `[relations, d_relation]`.
    pub relations: Param<Tensor<2>>,
    /// `[d_relation, d · d]`: row `k` is the matrix `W[k]`, row by row.
    pub core: Param<Tensor<2>>,
    d: usize,
}

impl TuckErConfig {
    /// Initializes relation embeddings by Glorot, and each matrix of the core by Glorot as a matrix `d × d`.
    ///
    /// # Errors
    /// A size of 0.
    pub fn try_init(&self, device: &Device) -> Result<TuckEr, ModelError> {
        let Self { num_relations, d, d_relation } = *self;
        ModelError::check_sizes(
            &[("num_relations", num_relations), ("d", d), ("d_relation", d_relation)],
            0.0,
        )?;
        let init = Init::glorot(device);
        let relations = init.matrix([num_relations, d_relation]);
        let core = init.weight([d_relation, d * d], (d, d));
        Ok(TuckEr { relations, core, d })
    }
}

panicking_init!(TuckErConfig => TuckEr, "tuck_er");

impl Decoder for TuckEr {
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [count, _] = self.relations.dims();
        let (relations, ids) = accept_query("tuck_er", self.d, count, &given, relations);
        let mut different = ids.clone();
        different.sort_unstable();
        different.dedup();
        // The first row stands for all relations of a query without rows.
        if different.is_empty() {
            different.push(0);
        }
        let place = |id: &u32| different.partition_point(|other| other < id) as u32;
        let local: Vec<u32> = ids.iter().map(place).collect();
        let rows = id_tensor(&different, &relations.device());
        let matrices = matmul_rows(self.relations.val().select(0, rows), self.core.val());
        let matrices = matrices.reshape([different.len(), self.d, self.d]);
        multiply(given, matrices, &local, replaced)
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        Some(self.relations.val())
    }
}
