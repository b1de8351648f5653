//! Models of knowledge graphs: embeddings of entities and a decoder.

use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{KnowledgeGraph, Triple};
use burn_gnn_models::internal::Init;
use burn_gnn_models::{ModelError, id_tensor, seeded, select_rows};

use super::config::{KgeConfig, KgeInit, KgeKind};
use super::kge_decoder::KgeDecoder;
use super::queries::{both_ways, check_triples};
use super::type_constraints::TypeConstraints;
use crate::decoders::decoder::{Decoder, Side};
use crate::ranking::links::{LinkMetrics, filtered_ranks};
use crate::ranking::true_tails::TrueTails;

/// Scores of a block of triples that are ranked at a time: about 64 MiB in f32.
const BLOCK: usize = 1 << 24;

/// A model of a knowledge graph: one embedding per entity, and a decoder.
///
/// Relation `r` in `0..num_relations` stands for the tails of a relation, `r + num_relations` for its heads, as in
/// [`Triple::reciprocal`]. A model with reciprocal relations has a decoder for `2 · num_relations` relations and only
/// ranks tails; otherwise the decoder ranks both sides.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::{Kge, KgeConfig, KgeKind};
/// let config = KgeConfig { d: 8, ..KgeConfig::new(KgeKind::DistMult) };
/// let model = Kge::try_new(&config, 5, 2, &Device::flex())?; // five entities, two relations
/// let triple = Triple { head: 0, relation: 1, tail: 3 };
/// assert_eq!(model.score_tails(&[triple, triple.reciprocal(2)])?.dims(), [2, 5]);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Module, Debug)]
pub struct Kge<D: Module = KgeDecoder> {
    /// `[entities, d]`.
    pub entities: Param<Tensor<2>>,
    /// Decoder.
    pub decoder: D,
    num_relations: usize,
    reciprocal: bool,
}

/// Filtered ranks of triples in both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KgeRanks {
    /// Ranks of tails, in the order of the triples.
    pub tails: Vec<f64>,
    /// Ranks of heads.
    pub heads: Vec<f64>,
}

impl KgeRanks {
    /// Averages over both directions.
    pub fn metrics(&self) -> LinkMetrics {
        LinkMetrics::new(&[&self.tails[..], &self.heads[..]].concat())
    }
}

impl Kge<KgeDecoder> {
    /// Initializes the model of `config` for a number of entities and relations.
    ///
    /// # Errors
    /// An option out of range, or a size of 0.
    pub fn try_new(
        config: &KgeConfig,
        num_entities: usize,
        num_relations: usize,
        device: &Device,
    ) -> Result<Self, ModelError> {
        config.check()?;
        ModelError::check_sizes(&[("num_entities", num_entities)], 0.0)?;
        let count = if config.reciprocal { 2 * num_relations } else { num_relations };
        seeded(config.seed, || {
            let initializer = match config.init {
                KgeInit::Glorot => Initializer::XavierUniform { gain: 1.0 },
                KgeInit::Normal(std) => Initializer::Normal { mean: 0.0, std },
                KgeInit::Uniform(bound) => Initializer::Uniform { min: -bound, max: bound },
            };
            let init = Init { initializer: &initializer, device };
            let entities = init.matrix([num_entities, config.d]);
            let mut decoder = KgeDecoder::try_new(config.kind, count, config.d, device)?;
            if config.init != KgeInit::Glorot {
                match &mut decoder {
                    KgeDecoder::DistMult(x) => x.relations = init.matrix([count, config.d]),
                    KgeDecoder::ComplEx(x) => x.relations = init.matrix([count, config.d]),
                    KgeDecoder::TransE(x) => x.relations = init.matrix([count, config.d]),
                    KgeDecoder::Rescal(x) => {
                        let d = config.d;
                        x.relations = init.weight([count, d, d], (d, d));
                    }
                    KgeDecoder::TuckEr(x) => {
                        if let KgeKind::TuckEr { d_relation } = config.kind {
                            x.relations = init.matrix([count, d_relation]);
                        }
                    }
                    KgeDecoder::RotatE(_) => {}
                }
            }
            Ok(Self { entities, decoder, num_relations, reciprocal: config.reciprocal })
        })
    }
}

impl<D: Decoder> Kge<D> {
    /// A model of a user-defined decoder, which has `2 · num_relations` relations if `reciprocal`.
    pub fn from_parts(
        entities: Param<Tensor<2>>,
        decoder: D,
        num_relations: usize,
        reciprocal: bool,
    ) -> Self {
        Self { entities, decoder, num_relations, reciprocal }
    }

    /// Number of entities.
    pub fn num_entities(&self) -> usize {
        self.entities.dims()[0]
    }

    /// Number of relations, without reciprocal ones.
    pub fn num_relations(&self) -> usize {
        self.num_relations
    }

    /// Whether heads are ranked by reciprocal relations.
    pub fn is_reciprocal(&self) -> bool {
        self.reciprocal
    }

    /// Scores of all entities as tails of triples, and as heads for relations from [`num_relations`](Self::num_relations)
    /// on. The tails of the triples are not read.
    ///
    /// # Shapes
    /// `[triples, entities]`.
    ///
    /// # Errors
    /// An entity or relation out of range.
    pub fn score_tails(&self, triples: &[Triple]) -> Result<Tensor<2>, ModelError> {
        self.check(triples)?;
        let is_tail = |t: &&Triple| self.side(t.relation).0 == Side::Tail;
        let (tails, heads): (Vec<_>, Vec<_>) = triples.iter().partition::<Vec<_>, _>(is_tail);
        let of = |part: &[&Triple], side| {
            let entities = self.entities.val();
            let given: Vec<u32> = part.iter().map(|t| t.head).collect();
            let relations: Vec<u32> = part.iter().map(|t| self.side(t.relation).1).collect();
            let relations = id_tensor(&relations, &entities.device().without_autodiff());
            let given = select_rows(entities.clone(), &given);
            let queries = self.decoder.query(given, Some(relations), side);
            self.decoder.score_all(queries, entities, side)
        };
        if heads.is_empty() {
            return Ok(of(&tails, Side::Tail));
        }
        if tails.is_empty() {
            return Ok(of(&heads, Side::Head));
        }
        let both = Tensor::cat(vec![of(&tails, Side::Tail), of(&heads, Side::Head)], 0);
        let (mut next_tail, mut next_head) = (0u32, tails.len() as u32);
        let places: Vec<u32> = triples
            .iter()
            .map(|t| {
                let next = if is_tail(&t) { &mut next_tail } else { &mut next_head };
                *next += 1;
                *next - 1
            })
            .collect();
        Ok(select_rows(both, &places))
    }

    /// Filtered ranks of the tails and heads of triples among all entities; equal scores share their mean rank.
    ///
    /// `known` contains the triples of all parts and their reciprocals ([`known_both_ways`]). With `types`, all entities
    /// that do not occur at this end of the relation rank last, except for the answer itself.
    ///
    /// # Errors
    /// An entity or relation out of range.
    ///
    /// # Cost
    /// Blocks of triples whose scores have at most 2²⁴ numbers.
    pub fn ranks(
        &self,
        triples: &[Triple],
        known: &TrueTails,
        types: Option<&TypeConstraints>,
    ) -> Result<KgeRanks, ModelError> {
        let n = self.num_entities();
        let one_way = |triples: &[Triple]| -> Result<Vec<f64>, ModelError> {
            let mut ranks = Vec::with_capacity(triples.len());
            for part in triples.chunks((BLOCK / n.max(1)).max(1)) {
                let mut scores = self.score_tails(part)?;
                if let Some(types) = types {
                    let mut mask = vec![f32::NEG_INFINITY; part.len() * n];
                    for (row, t) in mask.chunks_mut(n).zip(part) {
                        for &e in types.of(t.relation) {
                            // Constraints may contain entities that the model does not have.
                            if let Some(x) = row.get_mut(e as usize) {
                                *x = 0.0;
                            }
                        }
                        row[t.tail as usize] = 0.0;
                    }
                    let data = TensorData::new(mask, [part.len(), n]);
                    scores = scores.clone()
                        + Tensor::from_data(data, (&scores.device(), scores.dtype()));
                }
                ranks.extend(filtered_ranks(scores, part, known)?);
            }
            Ok(ranks)
        };
        self.check(triples)?;
        let heads: Vec<Triple> =
            triples.iter().map(|t| t.reciprocal(self.num_relations as u32)).collect();
        Ok(KgeRanks { tails: one_way(triples)?, heads: one_way(&heads)? })
    }

    /// Scores of triples.
    ///
    /// # Errors
    /// An entity or relation out of range.
    pub fn score(&self, triples: &[Triple]) -> Result<Tensor<1>, ModelError> {
        self.check(triples)?;
        let entities = self.entities.val();
        let ids = |of: fn(&Triple) -> u32| -> Vec<u32> { triples.iter().map(of).collect() };
        let relations = id_tensor(ids(|t| t.relation), &entities.device().without_autodiff());
        let rows = |of| select_rows(entities.clone(), ids(of));
        Ok(self.decoder.score(rows(|t| t.head), Some(relations), rows(|t| t.tail)))
    }

    /// Side that candidates replace, and the relation of the decoder.
    pub(super) fn side(&self, relation: u32) -> (Side, u32) {
        let count = self.num_relations as u32;
        match self.reciprocal || relation < count {
            true => (Side::Tail, relation),
            false => (Side::Head, relation - count),
        }
    }

    fn check(&self, triples: &[Triple]) -> Result<(), ModelError> {
        check_triples("triples", triples, self.num_entities(), 2 * self.num_relations)
    }
}

/// Training, validation and test triples of a knowledge graph and their reciprocals, which filtered ranks leave out.
pub fn known_both_ways(kg: &KnowledgeGraph) -> TrueTails {
    let all: Vec<Triple> =
        [&kg.train, &kg.valid, &kg.test].into_iter().flatten().copied().collect();
    TrueTails::new(both_ways(&all, kg.relations.len()))
}
