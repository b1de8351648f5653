//! Selects the `k` best candidates of every query, exactly and in bounded memory.
//!
//! # Algorithm
//! ```text
//! for each block of queries, for each block of candidates: for each query, in parallel:
//!     for each 64 candidates: skip them if their largest score is not above the k-th of the list so far
//!         otherwise insert those that are above it and not seen                       # a heap with the worst on top
//! ```
//! After the first blocks nearly all candidates are skipped by the comparison of a maximum, so that the selection costs
//! one read of the scores while they are in cache.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use burn::tensor::Tensor;
use burn_gnn_models::ModelError;
use rayon::prelude::*;

use crate::errors::{check_length, check_range};
use crate::ranking::config::RankingConfig;
use crate::ranking::dot::dot_scores;
use crate::ranking::id_lists::IdLists;
use crate::ranking::metrics::{MetricsAt, RankingMetrics, Sums};
use crate::ranking::scores::{Block, Reader, Score};

/// The best candidates of every query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopK {
    /// Largest length of a list.
    pub k: usize,
    lists: Vec<Vec<(u32, f64)>>,
}

impl TopK {
    /// Lists of candidates, best first.
    pub(crate) fn from_lists(k: usize, lists: Vec<Vec<(u32, f64)>>) -> Self {
        Self { k, lists }
    }
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.lists.len()
    }
    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
    /// Candidates and scores of a query, best first; none for a query beyond the last.
    pub fn of(&self, query: usize) -> &[(u32, f64)] {
        self.lists.get(query).map_or(&[], |list| list)
    }
    /// Share of `candidates` that are in at least one list, in `0.0..=1.0`; 0 without candidates.
    pub fn coverage(&self, candidates: usize) -> f64 {
        let mut listed = vec![false; candidates];
        for &(id, _) in self.lists.iter().flatten() {
            if let Some(slot) = listed.get_mut(id as usize) {
                *slot = true;
            }
        }
        listed.iter().filter(|&&l| l).count() as f64 / candidates.max(1) as f64
    }
    /// Metrics of the lists at the cut [`k`](Self::k): the position in a list is the rank of a target.
    ///
    /// # Errors
    /// Another number of rows of `targets` than queries.
    pub fn metrics(&self, targets: &IdLists) -> Result<MetricsAt, ModelError> {
        check_length("targets", "one list per query", self.len(), targets.len())?;
        let mut sums = Sums::new(&[self.k]);
        for (q, list) in self.lists.iter().enumerate() {
            let wanted = targets.of(q);
            let mut ranks: Vec<f64> = (1..)
                .zip(list)
                .filter(|(_, (id, _))| wanted.binary_search(id).is_ok())
                .map(|(rank, _)| f64::from(rank))
                .collect();
            // Targets outside the list do not count at this cut.
            ranks.resize(wanted.len(), f64::INFINITY);
            sums.add(&ranks, wanted.len(), true);
        }
        let RankingMetrics { at, .. } = sums.metrics();
        Ok(at.into_iter().next().unwrap_or_default())
    }
}

/// The `k` candidates with the largest dot product of every query, except those that it has seen.
///
/// Neither a matrix of queries × candidates nor a sorted list of all candidates is made: see [`top_k_by`].
///
/// # Shapes
/// `queries`: `[queries, d]`; `candidates`: `[candidates, d]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{IdLists, top_k};
/// let device = Device::flex();
/// let users = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 1.0]], &device);
/// let items = Tensor::<2>::from_data([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0]], &device);
/// let seen = IdLists::from_pairs(2, [(0, 0)])?;
/// let best = top_k(users, items, 2, |user| seen.of(user))?;
/// assert_eq!(best.of(0), [(1, 2.0), (2, 1.0)]);
/// assert_eq!(best.of(1), [(2, 2.0), (1, 1.0)]);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
///
/// # Errors
/// As [`top_k_by`]; sizes of embeddings that differ.
pub fn top_k<'a>(
    queries: Tensor<2>,
    candidates: Tensor<2>,
    k: usize,
    seen: impl Fn(usize) -> &'a [u32] + Sync,
) -> Result<TopK, ModelError> {
    let ([n, d], [m, of_candidates]) = (queries.dims(), candidates.dims());
    check_length("candidates", "the size of the embeddings of queries", d, of_candidates)?;
    top_k_by(n, m, k, seen, dot_scores(queries, candidates))
}

/// The `k` best candidates of every query by any scores, except those that it has seen.
///
/// `score(queries, candidates)` computes a block of scores: one row per query, one column per candidate.
///
/// # Semantics
/// - Of equal scores the smaller id comes first.
/// - A candidate whose score is NaN is in no list. A list is shorter than `k` if fewer candidates remain.
///
/// # Errors
/// `k = 0`; scores of another shape.
///
/// # Cost
/// Each pair is scored once. Memory: a block of at most 256 × 4096 scores (4 MiB of f32), and 16 bytes per entry of the result.
pub fn top_k_by<'a>(
    num_queries: usize,
    num_candidates: usize,
    k: usize,
    seen: impl Fn(usize) -> &'a [u32] + Sync,
    mut score: impl FnMut(&[usize], Range<usize>) -> Tensor<2>,
) -> Result<TopK, ModelError> {
    check_range("k", "1..", k, k > 0)?;
    let config = RankingConfig::new();
    // Blocks that stay in cache between product and selection.
    let width = num_candidates.clamp(1, 4096);
    let ids: Vec<usize> = (0..num_queries).collect();
    let mut lists = Vec::with_capacity(num_queries);
    for queries in ids.chunks(config.query_block) {
        let mut of_block: Vec<Selection> =
            queries.iter().map(|&q| Selection::new(k.min(num_candidates), seen(q))).collect();
        for from in (0..num_candidates).step_by(width) {
            let block = from..(from + width).min(num_candidates);
            let scores = Block::new(score(queries, block.clone()), queries.len(), block.len())?;
            scores.read(&mut Select { lists: &mut of_block, from });
        }
        lists.extend(of_block.into_iter().map(Selection::into_list));
    }
    Ok(TopK { k, lists })
}

/// An entry of a list; the greatest is the one to drop first: smallest score, then largest id.
#[derive(Clone, Copy, PartialEq)]
struct Entry {
    score: f64,
    id: u32,
}

impl Eq for Entry {}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // No score is NaN, and 0.0 equals -0.0.
        let by_score = other.score.partial_cmp(&self.score).unwrap_or(Ordering::Equal);
        by_score.then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The list of one query.
struct Selection {
    k: usize,
    /// Ascending.
    seen: Vec<u32>,
    heap: BinaryHeap<Entry>,
}

impl Selection {
    fn new(k: usize, seen: &[u32]) -> Self {
        let mut seen = seen.to_vec();
        if !seen.is_sorted() {
            seen.sort_unstable();
        }
        Self { k, seen, heap: BinaryHeap::with_capacity(k + 1) }
    }

    /// Offers candidates from `from` on, whose ids are larger than those before.
    fn offer<T: Score>(&mut self, row: &[T], from: usize) {
        const LANES: usize = 64;
        for (chunk, scores) in row.chunks(LANES).enumerate() {
            if self.heap.len() == self.k {
                let worst = T::of(self.heap.peek().map_or(f64::NAN, |e| e.score));
                let any = scores.iter().fold(false, |any, &s| any | (s > worst));
                if !any {
                    continue;
                }
            }
            for (i, &s) in scores.iter().enumerate() {
                let (id, score) = ((from + chunk * LANES + i) as u32, s.wide());
                let full = self.heap.len() == self.k;
                let better = !full || self.heap.peek().is_some_and(|worst| score > worst.score);
                if !better || score.is_nan() || self.seen.binary_search(&id).is_ok() {
                    continue;
                }
                if full {
                    self.heap.pop();
                }
                self.heap.push(Entry { score, id });
            }
        }
    }

    fn into_list(self) -> Vec<(u32, f64)> {
        self.heap.into_sorted_vec().into_iter().map(|e| (e.id, e.score)).collect()
    }
}

struct Select<'a> {
    lists: &'a mut [Selection],
    from: usize,
}

impl Reader for Select<'_> {
    fn read<T: Score>(&mut self, scores: &[T], candidates: usize) {
        let from = self.from;
        let rows = scores.par_chunks(candidates.max(1));
        self.lists.par_iter_mut().zip(rows).for_each(|(list, row)| list.offer(row, from));
    }
}
