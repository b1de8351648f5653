//! Scores triples by ComplEx.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{Framework, ModelError, ParamMapping, Pretrained};

use super::check::{panicking_init, relation_rows};
use super::decoder::{Decoder, Side};

/// Describes a [`ComplEx`] decoder.
#[derive(Config, Debug)]
pub struct ComplExConfig {
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of entities and relations: real and imaginary parts, an even number.
    pub d: usize,
}

/// `Re Σ h r conj(t)` of complex embeddings. The first half of the columns are real parts, the second half imaginary
/// parts.
///
/// # Source
/// Trouillon, Welbl, Riedel, Gaussier, Bouchard, "Complex embeddings for simple link prediction", ICML 2016.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_links::{ComplExConfig, Decoder};
/// let device = Device::flex();
/// let decoder = ComplExConfig::new(3, 8).init(&device); // four complex numbers
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([2, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(decoder.score(heads, Some(relations), tails).dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct ComplEx {
    /// `[relations, d]`.
    pub relations: Param<Tensor<2>>,
}

impl ComplExConfig {
    /// Initializes relation embeddings by Glorot.
    ///
    /// # Errors
    /// A size of 0, or `d` is odd.
    pub fn try_init(&self, device: &Device) -> Result<ComplEx, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        ModelError::check_divides(("parts of a complex number", 2), ("d", self.d))?;
        Ok(ComplEx { relations: Init::glorot(device).matrix([self.num_relations, self.d]) })
    }
}

panicking_init!(ComplExConfig => ComplEx, "compl_ex");

impl Decoder for ComplEx {
    /// With `replaced` tails, `h r`; with `replaced` heads, `t conj(r)`, because `Re(h r conj(t)) = Re(h conj(t conj(r)))`.
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let [_, d] = self.relations.dims();
        let r = relation_rows("compl_ex", d, &self.relations, &given, relations);
        let half = d / 2;
        let parts = |x: Tensor<2>| (x.clone().slice_dim(1, 0..half), x.slice_dim(1, half..d));
        let ((re, im), (c, s)) = (parts(given), parts(r));
        product(re, im, c, s, replaced)
    }
    fn is_complex(&self) -> bool {
        true
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        Some(self.relations.val())
    }
}

/// `(re + i im) (c + i s)` for tails, `(re + i im) (c - i s)` for heads; real parts, then imaginary parts.
pub(super) fn product(
    re: Tensor<2>,
    im: Tensor<2>,
    c: Tensor<2>,
    s: Tensor<2>,
    replaced: Side,
) -> Tensor<2> {
    let (ac, bs) = (re.clone() * c.clone(), im.clone() * s.clone());
    let (as_, bc) = (re * s, im * c);
    let parts = match replaced {
        Side::Tail => vec![ac - bs, as_ + bc],
        Side::Head => vec![ac + bs, bc - as_],
    };
    Tensor::cat(parts, 1)
}

impl Pretrained for ComplEx {
    /// PyG's `ComplEx` (`rel_emb.weight`, and imaginary parts in `rel_emb_im.weight`). Its node embeddings are
    /// `node_emb.weight` and `node_emb_im.weight`: load the decoder from `state.without("node_emb")`.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        match path {
            "relations" => ParamMapping::same("rel_emb.weight").second_half("rel_emb_im.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
