//! Scores triples by TransE.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{Framework, ModelError, ParamMapping, Pretrained};

use super::check::{panicking_init, relation_rows};
use super::comparison::Comparison;
use super::decoder::{Decoder, Side};

/// Norm of the difference of a [`TransE`] decoder.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum TransENorm {
    /// `Σ |h + r - t|`.
    L1,
    /// `√(Σ (h + r - t)² + 1e-12)`. The constant keeps the gradient finite if `h + r = t`.
    L2,
}

/// Describes a [`TransE`] decoder.
#[derive(Config, Debug)]
pub struct TransEConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities and relations.
    pub d: usize,
    /// Norm of the difference.
    #[config(default = "TransENorm::L2")]
    pub norm: TransENorm,
}

/// `-‖h + r - t‖`: a relation translates the head.
///
/// # Source
/// Bordes, Usunier, Garcia-Durán, Weston, Yakhnenko, "Translating embeddings for modeling multi-relational data",
/// NeurIPS 2013.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, TransEConfig};
/// let device = Device::flex();
/// let decoder = TransEConfig::new(3, 8).init(&device);
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([2, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(decoder.score(heads, Some(relations), tails).dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct TransE {
    /// `[relations, d]`.
    pub relations: Param<Tensor<2>>,
    #[module(skip)]
    norm: TransENorm,
}

impl TransEConfig {
    /// Initializes relation embeddings by Glorot.
    ///
    /// # Errors
    /// A size of 0.
    pub fn try_init(&self, device: &Device) -> Result<TransE, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        let relations = Init::glorot(device).matrix([self.num_relations, self.d]);
        Ok(TransE { relations, norm: self.norm })
    }
}

panicking_init!(TransEConfig => TransE, "trans_e");

impl Decoder for TransE {
    /// With `replaced` tails, `h + r`; with `replaced` heads, `t - r`.
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [_, d] = self.relations.dims();
        let r = relation_rows("trans_e", d, &self.relations, &given, relations);
        match replaced {
            Side::Tail => given + r,
            Side::Head => given - r,
        }
    }
    fn comparison(&self) -> Comparison {
        match self.norm {
            TransENorm::L1 => Comparison::L1,
            TransENorm::L2 => Comparison::L2,
        }
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        Some(self.relations.val())
    }
}

impl Pretrained for TransE {
    /// PyG's `TransE` (`rel_emb.weight`). Its node embeddings are `node_emb.weight`: load the decoder from
    /// `state.without("node_emb")`.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        match path {
            "relations" => ParamMapping::same("rel_emb.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
