//! Computes filtered ranking metrics of link prediction.

use std::fmt;

use burn::tensor::Tensor;
use burn_gnn_data::Triple;
use burn_gnn_models::ModelError;

use crate::errors::{check_length, check_range, out_of_range};
use crate::ranking::config::RankingConfig;
use crate::ranking::id_lists::IdLists;
use crate::ranking::true_tails::TrueTails;

/// Averages over ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkMetrics {
    /// Number of ranks.
    pub queries: usize,
    /// Mean reciprocal rank, in `0.0..=1.0`.
    pub mrr: f64,
    /// Mean rank, from 1.
    pub mean_rank: f64,
    /// Share of ranks that are at most 1, in `0.0..=1.0`.
    pub hits_at_1: f64,
    /// Of those at most 3.
    pub hits_at_3: f64,
    /// Of those at most 10.
    pub hits_at_10: f64,
}

impl LinkMetrics {
    /// Of ranks counted from 1; all 0 without ranks.
    pub fn new(ranks: &[f64]) -> Self {
        let n = ranks.len().max(1) as f64;
        let hits = |k: f64| ranks.iter().filter(|&&r| r <= k).count() as f64 / n;
        Self {
            queries: ranks.len(),
            mrr: ranks.iter().map(|r| 1.0 / r).sum::<f64>() / n,
            mean_rank: ranks.iter().sum::<f64>() / n,
            hits_at_1: hits(1.0),
            hits_at_3: hits(3.0),
            hits_at_10: hits(10.0),
        }
    }
}

impl fmt::Display for LinkMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queries, mrr, mean_rank, hits_at_1, hits_at_3, hits_at_10 } = self;
        let queries = if *queries == 1 { "1 query".into() } else { format!("{queries} queries") };
        write!(
            f,
            "MRR {mrr:.4}, Hits@1 {hits_at_1:.4}, Hits@3 {hits_at_3:.4}, Hits@10 {hits_at_10:.4}, mean rank \
             {mean_rank:.1} ({queries})"
        )
    }
}

/// The filtered rank of the tail of every triple among all entities.
///
/// ```text
/// rank[i] = 1 + |{e : s[i, e] > s[i, t]}| + |{e ≠ t : s[i, e] = s[i, t]}| / 2        t = tail of triples[i]
/// ```
/// where `e` runs over all entities but the other true tails that `known` has for the head and relation of triple `i`.
/// To rank heads, give reciprocal triples ([`Triple::reciprocal`]) and their scores.
///
/// # Shapes
/// `scores`: `[triples, entities]`, larger is likelier.
///
/// # Semantics
/// - Equal scores share their mean rank, so a model that gives every entity the same score ranks in the middle, not
///   first.
/// - A score that is NaN counts as larger than that of the tail, and a tail whose score is NaN comes last: a model that
///   has diverged looks bad.
///
/// # Errors
/// Another number of rows than triples; a tail, or a tail in `known`, that is no column of `scores`.
///
/// # Cost
/// One pass over `scores`, in parallel over rows, and one over the known tails of each query.
///
/// # Source
/// Bordes et al., "Translating embeddings for modeling multi-relational data", NeurIPS 2013 (filtered setting); Sun et
/// al., "A re-evaluation of knowledge graph completion methods", ACL 2020 (ties).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::{TrueTails, filtered_ranks};
/// let (asked, other) = (Triple { head: 0, relation: 0, tail: 1 }, Triple { head: 0, relation: 0, tail: 2 });
/// let scores = Tensor::<2>::from_data([[0.9, 0.5, 0.7, 0.5]], &Device::flex());
/// // Entity 0 is ahead; entity 2 is ahead too, but true; entity 3 shares the score.
/// let known = TrueTails::new([asked, other]);
/// assert_eq!(filtered_ranks(scores, &[asked], &known)?, [2.5]);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn filtered_ranks(
    scores: Tensor<2>,
    triples: &[Triple],
    known: &TrueTails,
) -> Result<Vec<f64>, ModelError> {
    let [rows, entities] = scores.dims();
    check_length("scores", "one row per triple", triples.len(), rows)?;
    for t in triples {
        // Known tails ascend.
        let last = known.of(t.head, t.relation).last();
        for (arg, id) in [("tail", Some(&t.tail)), ("known tail", last)] {
            if let Some(&id) = id.filter(|&&id| id as usize >= entities) {
                let arg = format!("{arg} of ({}, {})", t.head, t.relation);
                return Err(out_of_range(arg, format!("0..{entities}"), id));
            }
        }
    }
    let targets = IdLists::single(triples.iter().map(|t| t.tail).collect());
    let known = |q: usize| known.of(triples[q].head, triples[q].relation);
    let all = RankingConfig::new().with_blocks(rows.max(1), entities.max(1));
    let ranks = all.rank(entities, &targets, known, |_, _| scores.clone())?;
    Ok(ranks.all().to_vec())
}

/// Filtered ranks of the tails of all `triples`, averaged: [`filtered_ranks`] in batches of `batch` triples, whose
/// scores `[batch, entities]` come from `score`.
///
/// # Errors
/// A batch of 0, and as [`filtered_ranks`].
pub fn rank_links(
    triples: &[Triple],
    known: &TrueTails,
    batch: usize,
    mut score: impl FnMut(&[Triple]) -> Tensor<2>,
) -> Result<LinkMetrics, ModelError> {
    check_range("batch", "1..", batch, batch > 0)?;
    let mut ranks = Vec::with_capacity(triples.len());
    for part in triples.chunks(batch) {
        ranks.extend(filtered_ranks(score(part), part, known)?);
    }
    Ok(LinkMetrics::new(&ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};
    use burn_gnn_ops::Stream;

    fn triple(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head, relation, tail }
    }

    /// `n` triples of 11 entities and 3 relations, some repeated.
    fn random(purpose: &str, n: u64) -> Vec<Triple> {
        let s = Stream::new(5, purpose, 0);
        let below = |i: u64, column: u64, bound: f64| (s.uniform(i, column) * bound) as u32;
        (0..n).map(|i| triple(below(i, 0, 11.0), below(i, 1, 3.0), below(i, 2, 11.0))).collect()
    }

    /// Scores of few different values, so that many are equal.
    fn scores(rows: usize, dtype: DType) -> Tensor<2> {
        let s = Stream::new(6, "scores", 0);
        let values: Vec<f64> =
            (0..rows * 11).map(|i| (s.uniform(i as u64, 0) * 4.0).floor()).collect();
        Tensor::from_data(TensorData::new(values, [rows, 11]), (&Device::flex(), dtype))
    }

    /// The rank by its definition: competitors are put in every order, and the places of the tail averaged.
    fn oracle(row: &[f64], t: &Triple, all: &[Triple]) -> f64 {
        let rival =
            |e: usize| e != t.tail as usize && !all.contains(&triple(t.head, t.relation, e as u32));
        let rivals: Vec<f64> = (0..row.len()).filter(|&e| rival(e)).map(|e| row[e]).collect();
        let own = row[t.tail as usize];
        let (best, equal) = (
            1 + rivals.iter().filter(|&&s| s > own).count(),
            rivals.iter().filter(|&&s| s == own).count(),
        );
        (best..=best + equal).map(|place| place as f64).sum::<f64>() / (equal + 1) as f64
    }

    #[test]
    fn ranks_equal_those_of_the_definition() {
        let (asked, more) = (random("asked", 60), random("more", 90));
        let all: Vec<Triple> = asked.iter().chain(&more).copied().collect();
        let known = TrueTails::new(all.iter().copied());
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let s = scores(asked.len(), dtype);
            let rows: Vec<f64> = s.clone().into_data_dtype(DType::F64).try_to_vec().unwrap();
            let expected: Vec<f64> =
                asked.iter().zip(rows.chunks(11)).map(|(t, row)| oracle(row, t, &all)).collect();
            assert!(
                expected.iter().any(|r| r.fract() == 0.5) && expected.iter().any(|&r| r > 5.0),
                "{expected:?}"
            );
            assert_eq!(filtered_ranks(s.clone(), &asked, &known).unwrap(), expected);
            let mut from = 0;
            let batched = rank_links(&asked, &known, 7, |part| {
                from += part.len();
                s.clone().slice_dim(0, from - part.len()..from)
            });
            assert_eq!(batched.unwrap(), LinkMetrics::new(&expected));
        }
    }

    #[test]
    fn without_known_triples_every_entity_competes() {
        let s = Tensor::<2>::from_data([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]], &Device::flex());
        let asked = [triple(0, 0, 2), triple(1, 0, 0)];
        assert_eq!(filtered_ranks(s.clone(), &asked, &TrueTails::default()).unwrap(), [3.0, 2.0]);
        assert_eq!(
            filtered_ranks(s, &asked, &TrueTails::new([triple(0, 0, 0), triple(1, 1, 1)])).unwrap(),
            [2.0, 2.0]
        );
    }

    #[test]
    fn scores_that_are_no_numbers_do_not_help() {
        let nan = f32::NAN;
        let s = Tensor::<2>::from_data(
            [[nan, 2.0, 1.0], [nan, 2.0, 1.0], [nan; 3], [f32::INFINITY, 1.0, f32::INFINITY]],
            &Device::flex(),
        );
        let asked = [triple(0, 0, 1), triple(0, 0, 0), triple(0, 0, 2), triple(0, 0, 0)];
        assert_eq!(filtered_ranks(s, &asked, &TrueTails::default()).unwrap(), [2.0, 3.0, 3.0, 1.5]);
    }

    #[test]
    fn averages() {
        let m = LinkMetrics::new(&[1.0, 2.0, 2.5, 4.0, 20.0]);
        assert!((m.mrr - (1.0 + 0.5 + 0.4 + 0.25 + 0.05) / 5.0).abs() < 1e-12);
        assert_eq!(
            (m.queries, m.mean_rank, m.hits_at_1, m.hits_at_3, m.hits_at_10),
            (5, 5.9, 0.2, 0.6, 0.8)
        );
        assert_eq!(LinkMetrics::new(&[]), LinkMetrics::default());
        assert_eq!(
            m.to_string(),
            "MRR 0.4400, Hits@1 0.2000, Hits@3 0.6000, Hits@10 0.8000, mean rank 5.9 (5 queries)"
        );
    }

    #[test]
    fn refusals() {
        let s = || Tensor::<2>::zeros([1, 3], &Device::flex());
        let ask = |s, t: &[Triple], known: &[Triple]| {
            filtered_ranks(s, t, &TrueTails::new(known.to_vec())).unwrap_err().to_string()
        };
        assert_eq!(ask(s(), &[], &[]), "`scores`: expected 0 (one row per triple), got 1; give 0");
        assert_eq!(ask(s(), &[triple(7, 1, 3)], &[]), "`tail of (7, 1)` must lie in 0..3, got 3");
        assert_eq!(
            ask(s(), &[triple(7, 1, 0)], &[triple(7, 1, 4)]),
            "`known tail of (7, 1)` must lie in 0..3, got 4"
        );
        let e = rank_links(&[], &TrueTails::default(), 0, |_| s()).unwrap_err();
        assert!(matches!(e, ModelError::OutOfRange { ref arg, .. } if arg == "batch"), "{e}");
    }
}
