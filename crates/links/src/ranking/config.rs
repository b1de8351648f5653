//! Defines `RankingConfig`, and ranks the targets of queries among all candidates.
//!
//! # Algorithm
//! Scores are computed by blocks of queries × candidates, counted, and dropped.
//!
//! ```text
//! sort the queries by their first target, if there are several blocks of candidates                     # 1
//! for each block of queries:
//!     for each block of candidates that has a target of these queries: read the scores of the targets
//!     for each block of candidates: for each query, in parallel:
//!         ahead += |{e : s[e] > own}|;  same += |{e : s[e] = own}|;  subtract excluded ids               # 2
//! ```
//!
//! 1. The score of a target must be known before others are compared with it. It is read from the block that is compared
//!    later, because a product of another shape may round differently, and equal scores must stay equal. Sorted queries
//!    have their targets in one or two blocks of candidates, which are scored twice.
//! 2. The comparison of a row is one loop without branches; the few excluded ids are subtracted afterwards.

use std::ops::Range;

use burn::tensor::Tensor;
use burn_gnn_models::ModelError;

use crate::errors::{check_range, out_of_range};
use crate::ranking::count::{BlockPass, Counter, Pass};
use crate::ranking::id_lists::IdLists;
use crate::ranking::ranks::Ranks;
use crate::ranking::scores::Block;

/// Rank among candidates with equal scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// The mean of the first and the last rank: a model that gives every candidate one score ranks in the middle.
    #[default]
    Mean,
    /// The first rank.
    Optimistic,
    /// The last rank.
    Pessimistic,
}

impl Ties {
    pub(super) fn rank(self, ahead: u32, same: u32) -> f64 {
        1.0 + f64::from(ahead)
            + match self {
                Self::Mean => f64::from(same) / 2.0,
                Self::Optimistic => 0.0,
                Self::Pessimistic => f64::from(same),
            }
    }
}

/// Ranks the targets of queries among all candidates, exactly and in bounded memory.
///
/// ```text
/// rank(q, t) = 1 + |{e : s[q, e] > s[q, t]}| + ties        e over the competitors of t
/// ```
///
/// Competitors are all candidates except the excluded ids of the query and, by default, its other targets.
///
/// # Semantics
/// - A score that is NaN counts as larger than that of the target, and a target whose score is NaN comes last: a model
///   that has diverged looks bad.
/// - A target is ranked even if it is excluded, so that one list of all true answers serves as the filter.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{IdLists, RankingConfig, dot_scores};
/// let device = Device::flex();
/// let users = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 1.0]], &device);
/// let items = Tensor::<2>::from_data([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0]], &device);
/// // User 0 bought item 1, and has seen item 0; user 1 bought items 0 and 2.
/// let (bought, seen) = (IdLists::from_pairs(2, [(0, 1), (1, 0), (1, 2)])?, IdLists::from_pairs(2, [(0, 0)])?);
/// let ranking = RankingConfig::new().with_competing_targets();
/// let ranks = ranking.rank(3, &bought, |user| seen.of(user), dot_scores(users, items))?;
/// assert_eq!((ranks.of(0), ranks.of(1)), (&[1.0][..], &[3.0, 1.0][..]));
/// assert_eq!(ranks.metrics(&[1]).at[0].recall, 0.75);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
///
/// # Source
/// Bordes et al., "Translating embeddings for modeling multi-relational data", NeurIPS 2013 (filtered setting); Sun et
/// al., "A re-evaluation of knowledge graph completion methods", ACL 2020 (ties).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankingConfig {
    /// Rule for equal scores. Default: the mean.
    pub ties: Ties,
    /// Whether the targets of one query compete with each other, as in recommendation. Default: no, as in knowledge
    /// graphs.
    pub targets_compete: bool,
    /// Number of queries per block. Default: 256.
    pub query_block: usize,
    /// Number of candidates per block. Default: all of them up to `2^24` scores per block, otherwise 16,384.
    pub candidate_block: Option<usize>,
}

impl Default for RankingConfig {
    fn default() -> Self {
        Self { ties: Ties::Mean, targets_compete: false, query_block: 256, candidate_block: None }
    }
}

/// Scores of a block if all candidates are in one block.
const WHOLE: usize = 1 << 24;
/// Candidates per block otherwise: 16 MiB of f32 with 256 queries.
const CANDIDATES: usize = 1 << 14;

impl RankingConfig {
    /// Mean ranks; the targets of a query do not compete.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the rule for equal scores.
    #[must_use]
    pub fn with_ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }
    /// Lets the targets of a query compete with each other.
    #[must_use]
    pub fn with_competing_targets(mut self) -> Self {
        self.targets_compete = true;
        self
    }
    /// Sets the numbers of queries and of candidates per block.
    #[must_use]
    pub fn with_blocks(mut self, queries: usize, candidates: usize) -> Self {
        (self.query_block, self.candidate_block) = (queries, Some(candidates));
        self
    }

    /// Ranks the targets of every query among candidates `0..candidates`.
    ///
    /// `excluded(q)` lists ids that do not compete for query `q`, in any order: other true answers, items that a user has
    /// seen, what was true at the time of the query. `score(queries, candidates)` computes the scores of a block, larger
    /// is likelier: one row per query, one column per candidate. [`dot_scores`](crate::dot_scores) scores embeddings.
    ///
    /// # Errors
    /// A target that is no candidate; blocks of 0; scores of another shape.
    ///
    /// # Cost
    /// Each pair is scored once, and the blocks of candidates with targets of a block of queries twice. Memory: a block
    /// of scores, `4 · query_block · candidate_block` bytes, and 16 bytes per target.
    pub fn rank<'a>(
        &self,
        candidates: usize,
        targets: &IdLists,
        excluded: impl Fn(usize) -> &'a [u32] + Sync,
        mut score: impl FnMut(&[usize], Range<usize>) -> Tensor<2>,
    ) -> Result<Ranks, ModelError> {
        let width = self.candidates_per_block(candidates);
        check_range("query_block", "1..", self.query_block, self.query_block > 0)?;
        check_range("candidate_block", "1..", width, width > 0)?;
        if let Some(&id) = targets.ids().iter().find(|&&id| id as usize >= candidates) {
            return Err(out_of_range("target", format!("0..{candidates}"), id));
        }
        let mut order: Vec<usize> =
            (0..targets.len()).filter(|&q| !targets.of(q).is_empty()).collect();
        if candidates > width {
            order.sort_by_key(|&q| targets.of(q)[0]);
        }
        let mut ranks = Ranks::new(targets, self.targets_compete);
        for queries in order.chunks(self.query_block) {
            let new = |&q: &usize| {
                Counter::new(targets.of(q), excluded(q), candidates, self.targets_compete)
            };
            let mut counters: Vec<Counter<'_>> = queries.iter().map(new).collect();
            let mut run = |block: Range<usize>, pass: Pass| -> Result<(), ModelError> {
                let scores = Block::new(score(queries, block.clone()), queries.len(), block.len())?;
                scores.read(&mut BlockPass { counters: &mut counters, block, pass });
                Ok(())
            };
            if candidates <= width {
                run(0..candidates, Pass::Whole)?;
            } else {
                let mut blocks: Vec<usize> = queries
                    .iter()
                    .flat_map(|&q| targets.of(q))
                    .map(|&id| id as usize / width)
                    .collect();
                blocks.sort_unstable();
                blocks.dedup();
                let range = |b: usize| b * width..((b + 1) * width).min(candidates);
                for b in blocks {
                    run(range(b), Pass::Own)?;
                }
                for b in 0..candidates.div_ceil(width) {
                    run(range(b), Pass::Count)?;
                }
            }
            for (&q, counter) in queries.iter().zip(&counters) {
                let counts = counter.ahead.iter().zip(&counter.same);
                let of_query = counts.map(|(&ahead, &same)| self.ties.rank(ahead, same));
                ranks.set(q, of_query, counter.rivals(candidates));
            }
        }
        Ok(ranks)
    }

    pub(super) fn candidates_per_block(&self, candidates: usize) -> usize {
        let whole = self.query_block.saturating_mul(candidates) <= WHOLE;
        let chosen = if whole { candidates.max(1) } else { CANDIDATES };
        self.candidate_block.unwrap_or(chosen)
    }
}
