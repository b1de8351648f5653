//! Scores triples (head, relation, tail).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_ops::matmul_rows;

use crate::error::ModelError;
use crate::layers::dense::mlp::root;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Score function of a [`LinkScorer`].
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum LinkScore {
    /// `Σ h · r · t` (Yang, Yih, He, Gao, Deng, ICLR 2015), which is symmetric in head and tail.
    DistMult,
    /// `Re Σ h · r · conj(t)` (Trouillon et al., ICML 2016). The first half of the columns are real parts, the second half
    /// imaginary parts.
    ComplEx,
    /// `-Σ |h + r - t|` (Bordes et al., NeurIPS 2013).
    TransEL1,
    /// `-sqrt(Σ (h + r - t)² + 1e-12)`. The constant keeps the gradient finite if `h + r = t`.
    TransEL2,
}

/// Describes a [`LinkScorer`].
#[derive(Config, Debug)]
pub struct LinkScorerConfig {
    /// Score function.
    pub score: LinkScore,
    /// Number of relations.
    pub num_relations: usize,
    /// Embedding size of nodes and relations.
    pub d: usize,
}

/// Scores triples (head, relation, tail) for link prediction in knowledge graphs, by a [`LinkScore`] and one learned
/// embedding per relation.
///
/// # Shapes
/// Heads and tails `[n, d]`, relations `[n]`, scores `[n]`. A larger score means a more likely triple.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_gnn_models::{LinkScore, LinkScorerConfig};
/// let device = Device::flex();
/// let scorer = LinkScorerConfig::new(LinkScore::DistMult, 3, 8).init(&device); // three relations, 8 features
/// let (heads, tails) = (Tensor::ones([2, 8], &device), Tensor::ones([5, 8], &device));
/// let relations = Tensor::<1, Int>::from_data([0, 2], &device);
/// assert_eq!(scorer.against_all(heads, relations, tails).dims(), [2, 5]); // of each query against each tail
/// ```
#[derive(Module, Debug)]
pub struct LinkScorer {
    /// `[relations, d]`.
    pub relations: Param<Tensor<2>>,
    #[module(skip)]
    score: LinkScore,
}

impl LinkScorerConfig {
    /// Initializes relation embeddings by Glorot.
    ///
    /// # Errors
    /// `num_relations` or `d` is 0, or `d` is odd with [`LinkScore::ComplEx`].
    pub fn try_init(&self, device: &Device) -> Result<LinkScorer, ModelError> {
        ModelError::check_sizes(&[("num_relations", self.num_relations), ("d", self.d)], 0.0)?;
        if self.score == LinkScore::ComplEx {
            ModelError::check_divides(("parts of a complex number", 2), ("d", self.d))?;
        }
        let relations = Init::glorot(device).matrix([self.num_relations, self.d]);
        Ok(LinkScorer { relations, score: self.score })
    }
}

panicking_init!(LinkScorerConfig => LinkScorer);

impl LinkScorer {
    /// Scores triples.
    ///
    /// # Panics
    /// Shapes differ, or a relation is out of range.
    #[track_caller]
    pub fn forward(
        &self,
        heads: Tensor<2>,
        relations: Tensor<1, Int>,
        tails: Tensor<2>,
    ) -> Tensor<1> {
        let [rows, _] = heads.dims();
        let length =
            ModelError::check_length("rows of tails", "one per head", rows, tails.dims()[0]);
        if let Err(e) = length.and_then(|()| self.check(&heads, &relations, &tails)) {
            panic!("link_scorer: {e}");
        }
        let query = self.query(heads, relations);
        let scores = match self.score {
            LinkScore::DistMult | LinkScore::ComplEx => (query * tails).sum_dim(1),
            LinkScore::TransEL1 => (query - tails).abs().sum_dim(1).neg(),
            LinkScore::TransEL2 => root((query - tails).powi_scalar(2).sum_dim(1), 1e-12).neg(),
        };
        scores.squeeze_dim(1)
    }

    /// Scores every pair of head and relation with every tail, `[n, tails]`, for ranking. The cost is one matrix product;
    /// [`LinkScore::TransEL1`] allocates `n · tails · d` numbers.
    ///
    /// # Panics
    /// Shapes differ, or a relation is out of range.
    #[track_caller]
    pub fn against_all(
        &self,
        heads: Tensor<2>,
        relations: Tensor<1, Int>,
        tails: Tensor<2>,
    ) -> Tensor<2> {
        if let Err(e) = self.check(&heads, &relations, &tails) {
            panic!("link_scorer: {e}");
        }
        let query = self.query(heads, relations);
        match self.score {
            LinkScore::DistMult | LinkScore::ComplEx => matmul_rows(query, tails.transpose()),
            LinkScore::TransEL1 => {
                let difference: Tensor<3> =
                    query.unsqueeze_dim::<3>(1) - tails.unsqueeze_dim::<3>(0);
                difference.abs().sum_dim(2).squeeze_dim::<2>(2).neg()
            }
            LinkScore::TransEL2 => {
                let squares = |x: &Tensor<2>| x.clone().powi_scalar(2).sum_dim(1);
                let both = squares(&query) + squares(&tails).transpose();
                root(both - matmul_rows(query, tails.transpose()) * 2.0, 1e-12).neg()
            }
        }
    }

    /// Validates sizes and relation ids. Ids are copied to the host, because some backends do not check the index of a
    /// `select` and would read other memory.
    fn check(
        &self,
        heads: &Tensor<2>,
        relations: &Tensor<1, Int>,
        tails: &Tensor<2>,
    ) -> Result<(), ModelError> {
        let ([count, d], [rows, of_heads]) = (self.relations.val().dims(), heads.dims());
        let (check, why) = (ModelError::check_length, "those of the relations");
        check("feature size of heads", why, d, of_heads)?;
        check("feature size of tails", why, d, tails.dims()[1])?;
        check("relations", "one per head", rows, relations.dims()[0])?;
        let ids = relations.to_data();
        match ids
            .iter::<i64>()
            .enumerate()
            .find(|(_, id)| !usize::try_from(*id).is_ok_and(|id| id < count))
        {
            None => Ok(()),
            Some((at, id)) => {
                Err(ModelError::out_of_range(format!("relations[{at}]"), format!("0..{count}"), id))
            }
        }
    }

    /// Combines heads and relations to the tensor that tails are compared with.
    fn query(&self, heads: Tensor<2>, relations: Tensor<1, Int>) -> Tensor<2> {
        let r = self.relations.val().select(0, relations);
        match self.score {
            LinkScore::DistMult => heads * r,
            LinkScore::TransEL1 | LinkScore::TransEL2 => heads + r,
            LinkScore::ComplEx => {
                let half = heads.dims()[1] / 2;
                let parts = |x: &Tensor<2>| {
                    (x.clone().slice_dim(1, 0..half), x.clone().slice_dim(1, half..2 * half))
                };
                let ((a, b), (c, d)) = (parts(&heads), parts(&r));
                // Re(h r conj(t)) = Re(h r) Re(t) + Im(h r) Im(t)
                Tensor::cat(vec![a.clone() * c.clone() - b.clone() * d.clone(), a * d + b * c], 1)
            }
        }
    }
}

impl Pretrained for LinkScorer {
    /// PyG's `DistMult`, `TransE` (`rel_emb.weight`) and `ComplEx` (imaginary parts in `rel_emb_im.weight`). These models
    /// contain the node embeddings too (`node_emb.weight`, and `node_emb_im.weight` for ComplEx): load the scorer from
    /// `state.without("node_emb")`.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        match (path, self.score) {
            ("relations", LinkScore::ComplEx) => {
                ParamMapping::same("rel_emb.weight").second_half("rel_emb_im.weight")
            }
            ("relations", _) => ParamMapping::same("rel_emb.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
