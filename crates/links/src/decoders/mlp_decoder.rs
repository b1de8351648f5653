//! Scores pairs by a multi-layer perceptron.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{Mlp, MlpConfig, ModelError};
use burn_gnn_ops::matmul_rows;

use super::check::{
    accept, accept_pairs, check_no_relations, check_size, panicking_init, relation_rows,
};
use super::decoder::{Decoder, Side};

/// Numbers that a block of candidates may allocate.
const BLOCK: usize = 1 << 20;

/// Describes an [`MlpDecoder`].
#[derive(Config, Debug)]
pub struct MlpDecoderConfig {
    /// Embedding size.
    pub d: usize,
    /// Sizes of hidden layers, at least one.
    pub hidden: Vec<usize>,
    /// Number of relations; 0 for pairs without relations.
    #[config(default = 0)]
    pub num_relations: usize,
}

/// Perceptron on both embeddings and the relation.
///
/// ```text
/// score = MLP(relu(h A + t B + r + b))
/// ```
/// This is a perceptron on the concatenation of both embeddings. `A`, `B` and `b` are its first layer, so that the
/// product of the first layer is computed once per entity and not once per pair.
///
/// # Cost
/// Scores of `n` queries against `m` candidates cost `n · m` perceptrons, in blocks of candidates that allocate at most
/// 2²⁰ numbers per layer, or `n · hidden`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{Decoder, MlpDecoderConfig};
/// let device = Device::flex();
/// let decoder = MlpDecoderConfig::new(8, vec![16]).init(&device);
/// let scores = decoder.score(Tensor::ones([2, 8], &device), None, Tensor::ones([2, 8], &device));
/// assert_eq!(scores.dims(), [2]);
/// ```
#[derive(Module, Debug)]
pub struct MlpDecoder {
    /// First layer for sources, `[d, hidden[0]]`.
    pub src: Param<Tensor<2>>,
    /// First layer for destinations, `[d, hidden[0]]`.
    pub dst: Param<Tensor<2>>,
    /// First layer for relations, `[relations, hidden[0]]`.
    pub relations: Option<Param<Tensor<2>>>,
    /// `[1, hidden[0]]`.
    pub bias: Param<Tensor<2>>,
    /// Layers after the first.
    pub rest: Mlp,
}

impl MlpDecoderConfig {
    /// Initializes weights by Glorot, and biases by 0.
    ///
    /// # Errors
    /// A size of 0, or no hidden layer.
    pub fn try_init(&self, device: &Device) -> Result<MlpDecoder, ModelError> {
        let count = self.hidden.len();
        ModelError::check_range("number of hidden layers", "1..", count, count > 0)?;
        let hidden = self.hidden[0];
        ModelError::check_sizes(&[("d", self.d)], 0.0)?;
        self.hidden.iter().try_for_each(|&h| ModelError::check_sizes(&[("hidden", h)], 0.0))?;
        let init = Init::glorot(device);
        // Glorot for the concatenation.
        let first = || init.weight([self.d, hidden], (2 * self.d, hidden));
        let widths = self.hidden.iter().copied().chain([1]).collect();
        Ok(MlpDecoder {
            src: first(),
            dst: first(),
            relations: (self.num_relations > 0).then(|| init.matrix([self.num_relations, hidden])),
            bias: Param::from_tensor(Tensor::zeros([1, hidden], device)),
            rest: MlpConfig::new(widths).try_init(device)?,
        })
    }
}

panicking_init!(MlpDecoderConfig => MlpDecoder, "mlp_decoder");

impl MlpDecoder {
    /// First layer for candidates.
    fn candidates(&self, candidates: Tensor<2>, replaced: Side) -> Tensor<2> {
        accept("mlp_decoder", check_size("candidates", self.src.dims()[0], &candidates));
        let weight = if replaced == Side::Tail { &self.dst } else { &self.src };
        matmul_rows(candidates, weight.val())
    }
}

impl Decoder for MlpDecoder {
    #[track_caller]
    fn query(
        &self,
        given: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        replaced: Side,
    ) -> Tensor<2> {
        let d = self.src.dims()[0];
        let of_relations = match &self.relations {
            None => {
                let checked = check_no_relations(relations.as_ref())
                    .and_then(|()| check_size("the embeddings", d, &given));
                accept("mlp_decoder", checked);
                None
            }
            Some(table) => Some(relation_rows("mlp_decoder", d, table, &given, relations)),
        };
        let weight = if replaced == Side::Tail { &self.src } else { &self.dst };
        let query = matmul_rows(given, weight.val()) + self.bias.val();
        match of_relations {
            Some(r) => query + r,
            None => query,
        }
    }
    fn relation_embeddings(&self) -> Option<Tensor<2>> {
        self.relations.as_ref().map(|r| r.val())
    }
    #[track_caller]
    fn score(
        &self,
        src: Tensor<2>,
        relations: Option<Tensor<1, Int>>,
        dst: Tensor<2>,
    ) -> Tensor<1> {
        accept_pairs("mlp_decoder", &src, &dst);
        let query = self.query(src, relations, Side::Tail);
        self.rest.forward(relu(query + self.candidates(dst, Side::Tail))).squeeze_dim(1)
    }
    #[track_caller]
    fn score_all(&self, queries: Tensor<2>, candidates: Tensor<2>, replaced: Side) -> Tensor<2> {
        let candidates = self.candidates(candidates, replaced);
        let ([n, hidden], [m, _]) = (queries.dims(), candidates.dims());
        if n == 0 || m == 0 {
            return matmul_rows(queries, candidates.transpose());
        }
        let block = (BLOCK / (n * hidden)).max(1);
        let rows = queries.unsqueeze_dim::<3>(1);
        let of_block = |from: usize| {
            let to = m.min(from + block);
            let part = candidates.clone().slice_dim(0, from..to).unsqueeze_dim::<3>(0);
            let first = relu((rows.clone() + part).reshape([n * (to - from), hidden]));
            self.rest.forward(first).reshape([n, to - from])
        };
        Tensor::cat((0..m).step_by(block).map(of_block).collect(), 1)
    }
}
