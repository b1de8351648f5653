//! Draws negatives of triples: corrupted heads or tails.
//!
//! # Algorithm
//! ```text
//! for each triple, for each of its negatives:
//!     side = head or tail
//!     repeat 32 times: e = a draw of the distribution; stop if the corrupted triple is no known fact
//!     otherwise: one exact draw over all candidates that qualify; without one, a uniform draw, is_strict = false
//! ```
//! The bound keeps queries to which nearly every entity is an answer from looping. Every draw is a function of the key, the
//! id of the triple and the number of the negative, so that neither batches nor threads change it.

use std::sync::Arc;

use burn_gnn_data::Triple;
use burn_gnn_graph::Stream;
use burn_gnn_models::ModelError;
use burn_gnn_sampling::SampleKey;
use rayon::prelude::*;

use crate::errors::{check_length, check_range, out_of_range};
use crate::negatives::fact_filter::FactFilter;
use crate::ranking::id_lists::IdLists;

/// Endpoint of a triple that is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorruptedSide {
    /// Heads.
    Heads,
    /// Tails.
    Tails,
    /// Tails and heads in turn: the first negative of a triple has another tail.
    #[default]
    Both,
}

/// Entities that replace an endpoint, and their probabilities.
#[derive(Clone, Debug)]
pub struct NegativeDistribution(Distribution);

#[derive(Clone, Debug)]
enum Distribution {
    Uniform,
    /// Sums of weights up to each entity.
    Weights(Vec<f64>),
    /// Entities among which all are equally likely.
    Among(Vec<u32>),
    /// The same, per id of a triple.
    Lists(IdLists),
    Past,
}

impl NegativeDistribution {
    /// All entities are equally likely.
    pub fn uniform() -> Self {
        Self(Distribution::Uniform)
    }

    /// Probabilities are proportional to `count^exponent`, such as the number of facts of an entity and 0.75.
    ///
    /// # Errors
    /// An exponent that is not finite; no count above 0.
    pub fn popularity(counts: &[u32], exponent: f64) -> Result<Self, ModelError> {
        check_range("exponent", "finite numbers", exponent, exponent.is_finite())?;
        let mut sum = 0.0;
        let weight = |&n: &u32| if n == 0 { 0.0 } else { f64::from(n).powf(exponent) };
        let sums: Vec<f64> = counts
            .iter()
            .map(|n| {
                sum += weight(n);
                sum
            })
            .collect();
        if sum > 0.0 && sum.is_finite() {
            return Ok(Self(Distribution::Weights(sums)));
        }
        Err(out_of_range("counts", "lists with a count above 0", sum))
    }

    /// Inductive negatives: only the given entities, such as those that training has not seen.
    ///
    /// # Errors
    /// No entity.
    pub fn among(entities: Vec<u32>) -> Result<Self, ModelError> {
        check_range("entities", "lists with at least one entity", "none", !entities.is_empty())?;
        Ok(Self(Distribution::Among(entities)))
    }

    /// Hard negatives: a list of candidates for the id of each triple, such as the best of
    /// [`top_k`](crate::top_k), which excludes known answers.
    pub fn lists(candidates: IdLists) -> Self {
        Self(Distribution::Lists(candidates))
    }

    /// Historical negatives: entities that the filter has as an answer of the query before the time of the triple, and not
    /// at it. A query without a past has no such entity, and its negatives are uniform and not strict.
    pub fn past() -> Self {
        Self(Distribution::Past)
    }
}

/// Draws negatives of triples.
///
/// ```
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::{Corruption, CorruptedSide, FactFilter, NegativeDistribution};
/// use burn_gnn_sampling::SampleKey;
/// let facts = [Triple { head: 0, relation: 0, tail: 1 }, Triple { head: 0, relation: 0, tail: 2 }];
/// let corruption = Corruption::new(4, CorruptedSide::Tails, NegativeDistribution::uniform())?
///     .with_filter(FactFilter::new(facts));
/// let drawn = corruption.draw(&facts[..1], &[0], None, 3, SampleKey::new(7))?;
/// assert!(drawn.triples.iter().all(|t| t.head == 0 && [0, 3].contains(&t.tail)));
/// assert_eq!(drawn.is_strict, [true; 3]);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
///
/// # Cost
/// `O(1)` per uniform negative, `O(log entities)` by popularity; `O(entities)` where 32 draws are known facts.
#[derive(Clone, Debug)]
pub struct Corruption {
    num_entities: usize,
    side: CorruptedSide,
    distribution: NegativeDistribution,
    filter: Option<Arc<FactFilter>>,
}

/// Corrupted triples, those of a triple next to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorruptedTriples {
    /// The triples.
    pub triples: Vec<Triple>,
    /// Whether a triple is from the distribution and no known fact. False where a query has no such candidate: its
    /// negatives are then uniform over all entities, and may be known facts or the triple itself.
    pub is_strict: Vec<bool>,
}

/// Draws before the exact one.
const TRIES: u64 = 32;

impl Corruption {
    /// Corrupts triples of `num_entities` entities.
    ///
    /// # Errors
    /// No entity; a distribution with an entity that is out of range.
    pub fn new(
        num_entities: usize,
        side: CorruptedSide,
        distribution: NegativeDistribution,
    ) -> Result<Self, ModelError> {
        check_range(
            "num_entities",
            "1..=4294967295",
            num_entities,
            u32::try_from(num_entities).is_ok_and(|n| n > 0),
        )?;
        let range = format!("0..{num_entities}");
        let far = |ids: &[u32]| ids.iter().copied().find(|&id| id as usize >= num_entities);
        match &distribution.0 {
            Distribution::Weights(sums) => {
                check_length("counts", "one per entity", num_entities, sums.len())?;
            }
            Distribution::Among(ids) => {
                far(ids).map_or(Ok(()), |id| Err(out_of_range("entities", range, id)))?;
            }
            Distribution::Lists(lists) => {
                far(lists.ids()).map_or(Ok(()), |id| Err(out_of_range("candidates", range, id)))?;
            }
            Distribution::Uniform | Distribution::Past => {}
        }
        Ok(Self { num_entities, side, distribution, filter: None })
    }

    /// Leaves known facts out. In training, give the filter training facts only: a filter with validation or test facts
    /// never draws these as negatives, which tells a model which of the unseen triples are true.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Into<Arc<FactFilter>>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Draws `per_triple` negatives of each triple. `ids` are the numbers of the triples in their data set: with the key
    /// and the number of the negative they determine the draw.
    ///
    /// # Errors
    /// Other numbers of ids or times than triples; a filter with times, or historical negatives, without times;
    /// historical negatives without a filter with times; a triple with an entity out of range.
    pub fn draw(
        &self,
        triples: &[Triple],
        ids: &[u64],
        times: Option<&[i64]>,
        per_triple: usize,
        key: SampleKey,
    ) -> Result<CorruptedTriples, ModelError> {
        check_length("ids", "one per triple", triples.len(), ids.len())?;
        let is_timed = self.filter.as_ref().is_some_and(|f| f.is_timed());
        if matches!(self.distribution.0, Distribution::Past) && !is_timed {
            return Err(out_of_range(
                "filter",
                "facts with times for historical negatives",
                "none",
            ));
        }
        match times {
            Some(times) => check_length("times", "one per triple", triples.len(), times.len())?,
            None if is_timed => {
                return Err(out_of_range(
                    "times",
                    "a time per triple for facts with times",
                    "none",
                ));
            }
            None => {}
        }
        let entities = triples.iter().flat_map(|t| [t.head, t.tail]);
        if let Some(id) = entities.into_iter().find(|&id| id as usize >= self.num_entities) {
            return Err(out_of_range("entity", format!("0..{}", self.num_entities), id));
        }
        let stream = Stream::new(key.seed, &format!("corruption/{}", key.epoch), key.step);
        let of_triple = |i: usize| {
            let (triple, time) = (triples[i], times.map(|t| t[i]));
            let one = move |k: usize| self.corrupt(triple, ids[i], time, k, &stream);
            (0..per_triple).map(one)
        };
        let drawn: Vec<(Triple, bool)> =
            (0..triples.len()).into_par_iter().flat_map_iter(of_triple).collect();
        let (triples, is_strict) = drawn.into_iter().unzip();
        Ok(CorruptedTriples { triples, is_strict })
    }

    fn corrupt(
        &self,
        t: Triple,
        id: u64,
        time: Option<i64>,
        k: usize,
        stream: &Stream,
    ) -> (Triple, bool) {
        let of_head = match self.side {
            CorruptedSide::Heads => true,
            CorruptedSide::Tails => false,
            CorruptedSide::Both => k % 2 == 1,
        };
        let known = self.filter.as_ref().map_or(&[][..], |f| {
            if of_head {
                f.heads(t.tail, t.relation, time)
            } else {
                f.tails(t.head, t.relation, time)
            }
        });
        let own = if of_head { t.head } else { t.tail };
        let fits = |e: u32| e != own && known.binary_search(&e).is_err();
        let with = |e: u32| if of_head { Triple { head: e, ..t } } else { Triple { tail: e, ..t } };
        let past = || match (&self.filter, time) {
            (Some(f), Some(time)) if of_head => f.past_heads(t.tail, t.relation, time),
            (Some(f), Some(time)) => f.past_tails(t.head, t.relation, time),
            _ => &[],
        };
        let n = self.num_entities;
        let uniform = |u: f64| ((u * n as f64) as u32).min(n as u32 - 1);
        let among = |ids: &[u32], u: f64| ids.get((u * ids.len() as f64) as usize).copied();
        let choose = |u: f64| match &self.distribution.0 {
            Distribution::Uniform => Some(uniform(u)),
            Distribution::Weights(sums) => {
                let at = u * sums.last().copied().unwrap_or(0.0);
                Some((sums.partition_point(|&s| s <= at) as u32).min(n as u32 - 1))
            }
            Distribution::Among(ids) => among(ids, u),
            Distribution::Lists(lists) => {
                among(lists.of(usize::try_from(id).unwrap_or(usize::MAX)), u)
            }
            Distribution::Past => among(past(), u),
        };
        // Draws of negative `k` are the columns from `k · (TRIES + 2)` on.
        let column = |i: u64| stream.uniform(id, k as u64 * (TRIES + 2) + i);
        if let Some(e) = (0..TRIES).filter_map(|i| choose(column(i))).find(|&e| fits(e)) {
            return (with(e), true);
        }
        let all: Vec<u32> = match &self.distribution.0 {
            Distribution::Uniform => (0..n as u32).filter(|&e| fits(e)).collect(),
            Distribution::Weights(sums) => {
                let weight = |e: usize| sums[e] - if e == 0 { 0.0 } else { sums[e - 1] };
                return self.exact_weighted(weight, fits, column(TRIES)).map_or_else(
                    || (with(uniform(column(TRIES + 1))), false),
                    |e| (with(e), true),
                );
            }
            Distribution::Among(ids) => ids.iter().copied().filter(|&e| fits(e)).collect(),
            Distribution::Lists(lists) => {
                let of = lists.of(usize::try_from(id).unwrap_or(usize::MAX));
                of.iter().copied().filter(|&e| fits(e)).collect()
            }
            Distribution::Past => past().iter().copied().filter(|&e| fits(e)).collect(),
        };
        match among(&all, column(TRIES)) {
            Some(e) => (with(e), true),
            None => (with(uniform(column(TRIES + 1))), false),
        }
    }

    fn exact_weighted(
        &self,
        weight: impl Fn(usize) -> f64,
        fits: impl Fn(u32) -> bool,
        u: f64,
    ) -> Option<u32> {
        let candidates = || (0..self.num_entities).filter(|&e| weight(e) > 0.0 && fits(e as u32));
        let total: f64 = candidates().map(&weight).sum();
        let mut left = u * total;
        let mut last = None;
        for e in candidates() {
            last = Some(e as u32);
            left -= weight(e);
            if left < 0.0 {
                break;
            }
        }
        last
    }
}
