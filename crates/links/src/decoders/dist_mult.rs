//! Scores triples by DistMult.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{Framework, ModelError, ParamMapping, Pretrained};

use super::check::{panicking_init, relation_rows};
use super::decoder::{Decoder, Side};

/// Describes a [`DistMult`] decoder.
#[derive(Config, Debug)]
pub struct DistMultConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities and relations.
    pub d: usize,
}

/// `Σ h r t`, which is symmetric in head and tail.
///
/// # Source
/// Yang, Yih, He, Gao, Deng, "Embedding entities and relations for learning and inference in knowledge bases",
/// ICLR 2015.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, DistMultConfig, Side};
/// let device = Device::flex();
/// let decoder = DistMultConfig::new(3, 8).init(&device); // three relations, 8 features
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([5, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// let queries = decoder.query(heads, Some(relations), Side::Tail);
/// assert_eq!(decoder.score_all(queries, tails, Side::Tail).dims(), [2, 5]); // of each query with each tail
/// ```
#[derive(Module, Debug)]
pub struct DistMult {
    /// `[relations, d]`.
    pub relations: Param<Tensor<2>>,
}

impl DistMultConfig {
    /// Initializes relation embeddings by Glorot.
    ///
    /// # Errors
    /// A size of 0.
    pub fn try_init(&self, device: &Device) -> Result<DistMult, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        Ok(DistMult { relations: Init::glorot(device).matrix([self.num_relations, self.d]) })
    }
}

panicking_init!(DistMultConfig => DistMult, "dist_mult");

impl Decoder for DistMult {
    #[track_caller]
    fn query(&self, given: Tensor<2>, relations: Option<Tensor<1, Int>>, _: Side) -> Tensor<2> {
        let [_, d] = self.relations.dims();
        let r = relation_rows("dist_mult", d, &self.relations, &given, relations);
        given * r
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        Some(self.relations.val())
    }
}

impl Pretrained for DistMult {
    /// PyG's `DistMult` (`rel_emb.weight`). Its node embeddings are `node_emb.weight`: load the decoder from
    /// `state.without("node_emb")`.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        match path {
            "relations" => ParamMapping::same("rel_emb.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
