//! Scores triples by RotatE.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{Framework, ModelError, ParamMapping, Pretrained};

use super::check::{panicking_init, relation_rows};
use super::comparison::Comparison;
use super::compl_ex::product;
use super::decoder::{Decoder, Side};

/// Norm of the difference of a [`RotatE`] decoder.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RotatENorm {
    /// Sum of the moduli of the complex differences, as in the paper.
    Moduli,
    /// Euclidean norm of all real and imaginary parts, as in PyG. Scores against all candidates are one matrix product.
    L2,
}

/// Describes a [`RotatE`] decoder.
#[derive(Config, Debug)]
pub struct RotatEConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities: real and imaginary parts, an even number.
    pub d: usize,
    /// Norm of the difference.
    #[config(default = "RotatENorm::Moduli")]
    pub norm: RotatENorm,
}

/// `-‖h e^(i r) - t‖`: a relation rotates each complex number of the head. The first half of the columns are real parts,
/// the second half imaginary parts.
///
/// # Source
/// Sun, Deng, Nie, Tang, "RotatE: knowledge graph embedding by relational rotation in complex space", ICLR 2019.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{Decoder, RotatEConfig};
/// let device = Device::flex();
/// let decoder = RotatEConfig::new(3, 8).init(&device); // four complex numbers
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([2, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(decoder.score(heads, Some(relations), tails).dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct RotatE {
    /// Phases in radians, `[relations, d / 2]`.
    pub phases: Param<Tensor<2>>,
    #[module(skip)]
    norm: RotatENorm,
}

impl RotatEConfig {
    /// Initializes phases uniformly in `-π..π`.
    ///
    /// # Errors
    /// A size of 0, or `d` is odd.
    pub fn try_init(&self, device: &Device) -> Result<RotatE, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        ModelError::check_divides(("parts of a complex number", 2), ("d", self.d))?;
        let pi = std::f64::consts::PI;
        let initializer = &Initializer::Uniform { min: -pi, max: pi };
        let phases = Init { initializer, device }.matrix([self.num_relations, self.d / 2]);
        Ok(RotatE { phases, norm: self.norm })
    }
}

panicking_init!(RotatEConfig => RotatE, "rotat_e");

impl Decoder for RotatE {
    /// With `replaced` tails, `h e^(i r)`; with `replaced` heads, `t e^(-i r)`, because a rotation keeps distances.
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [_, half] = self.phases.dims();
        let r = relation_rows("rotat_e", 2 * half, &self.phases, &given, relations);
        let (re, im) = (given.clone().slice_dim(1, 0..half), given.slice_dim(1, half..2 * half));
        product(re, im, r.clone().cos(), r.sin(), replaced)
    }
    fn comparison(&self) -> Comparison {
        match self.norm {
            RotatENorm::Moduli => Comparison::Modulus,
            RotatENorm::L2 => Comparison::L2,
        }
    }
    fn is_complex(&self) -> bool {
        true
    }
}

impl Pretrained for RotatE {
    /// PyG's `RotatE` (`rel_emb.weight`). Its node embeddings are `node_emb.weight` and `node_emb_im.weight`: load the
    /// decoder from `state.without("node_emb")`. PyG takes the L2 norm and adds a margin.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        match path {
            "phases" => ParamMapping::same("rel_emb.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
