//! Chooses `k` of the in-edges of a node, by any [`Strategy`].
//!
//! # Algorithm
//! A row (the in-edges of one node, in ascending edge id) is reduced to its candidates: edges that the mask allows, that
//! are not excluded, and that are earlier than the seed. A choice returns positions in ascending order.
//!
//! ```text
//! candidates = [p for p in row if mask[p] and p not in excluded and time[p] < seed time]      # 1
//! n = candidates.len()
//! Uniform           Floyd's algorithm: k draws, every subset of size k equally likely         # 2
//!   replacement     k draws of below(n), sorted
//! Weighted          key[i] = Exp(1) / weight[i]; the k candidates of the smallest keys        # 3
//!   replacement     k draws from the alias table of the row                                   # 4
//! TopK, Latest      the k candidates of the largest weights or times
//! Labor             key[i] = Exp(1) of the SOURCE / weight[i]; the k smallest keys            # 5
//! ```
//!
//! 1. Without mask, exclusion and times the row itself is the list of candidates: nothing is copied, and a uniform
//!    choice costs `O(k)` for a node of any degree.
//! 2. Floyd's algorithm needs `k` draws for any `n`; a shuffle would need `O(n)` time or memory.
//! 3. Dividing exponential variables by the weights gives sequential sampling without replacement exactly (Efraimidis
//!    and Spirakis, IPL 2006). Keys are independent, so no prefix sum has to be updated after a draw.
//! 4. An alias table costs `O(1)` per draw. It contains all edges of the row, so that it is used only if all of them are
//!    candidates; otherwise a draw is a binary search in the prefix sums of the candidates' weights.
//! 5. The number belongs to the source and not to the edge. All destinations therefore prefer the same sources, and a
//!    batch has fewer distinct nodes (LABOR, Balın and Çatalyürek, NeurIPS 2023).
//!
//! Draws depend on the position of a candidate among the candidates, not among all edges. Edges that are no candidates
//! therefore have no influence: a graph without them gives the same batch.

use std::ops::Range;

use crate::choice::edge_attributes::EdgeAttributes;
use crate::choice::fanout::ALL;
use crate::choice::strategy::Strategy;
use crate::random::generator::{Draws, exponential};
use crate::random::subset::Chooser;
use burn_gnn_graph::{OriginalIds, Stream};

/// Describes how the edges of one relation are chosen at one hop.
pub(crate) struct Choice<'a> {
    pub(crate) rule: &'a EdgeAttributes,
    /// Times by position in CSC, if edges have times. For a relation in a file, those of the row that is sampled.
    pub(crate) times: Option<&'a [i64]>,
    pub(crate) strategy: Strategy,
    pub(crate) replace: bool,
    pub(crate) fanout: u32,
    /// Random stream keyed by destination.
    pub(crate) stream: Stream,
    /// Random stream keyed by source, for LABOR.
    pub(crate) by_source: Stream,
    pub(crate) source_ids: &'a OriginalIds,
    /// Excluded edges as `(destination, edge id)`, ascending.
    pub(crate) excluded: &'a [(u32, u32)],
    pub(crate) indices: &'a [u32],
    pub(crate) edge_ids: Option<&'a [u32]>,
}

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct RowMemory {
    chooser: Chooser,
    candidates: Vec<u32>,
    sums: Vec<f64>,
}

impl Choice<'_> {
    /// Appends the chosen positions of `row`, the in-edges of node `v`, to `found` in ascending order. `id` keys the
    /// draws. If edges have times, only those before `time` are candidates.
    #[inline]
    pub(crate) fn row(
        &self,
        v: u32,
        id: u64,
        time: Option<i64>,
        row: Range<usize>,
        memory: &mut RowMemory,
        found: &mut Vec<u32>,
    ) {
        let before = time.zip(self.times);
        let from = self.excluded.partition_point(|e| e.0 < v);
        let excluded = &self.excluded[from..];
        let excluded = &excluded[..excluded.partition_point(|e| e.0 == v)];
        let start = row.start as u32;
        if excluded.is_empty() && self.rule.mask.is_none() && before.is_none() {
            let RowMemory { chooser, .. } = memory;
            if self.strategy == Strategy::Uniform && !self.replace {
                let mut draws = Draws::new(&self.stream, id);
                chooser
                    .distinct(&mut draws, row.len() as u32, self.fanout, |i| found.push(start + i));
            } else {
                self.choose(id, start, row.len() as u32, |i| start + i, true, memory, found);
            }
            return;
        }
        let mut candidates = std::mem::take(&mut memory.candidates);
        candidates.clear();
        candidates.extend(
            row.clone()
                .map(|p| p as u32)
                .filter(|&p| self.is_candidate(p as usize, before, excluded)),
        );
        // Alias tables contain later edges. Timed rows never use them, not even rows without later edges: otherwise a
        // later edge would change the draws.
        let whole = before.is_none() && candidates.len() == row.len();
        self.choose(
            id,
            start,
            candidates.len() as u32,
            |i| candidates[i as usize],
            whole,
            memory,
            found,
        );
        memory.candidates = candidates;
    }

    #[inline]
    fn is_candidate(
        &self,
        p: usize,
        before: Option<(i64, &[i64])>,
        excluded: &[(u32, u32)],
    ) -> bool {
        let edge = self.edge_ids.map_or(p as u32, |ids| ids[p]);
        self.rule.mask.as_ref().is_none_or(|m| m[p])
            && before.is_none_or(|(time, of)| of[p] < time)
            && excluded.binary_search_by_key(&edge, |e| e.1).is_err()
    }

    /// Chooses among `n` candidates at positions `at(0..n)`. `whole`: the candidates are all edges of the row, which
    /// begins at `start`.
    #[allow(clippy::too_many_arguments)] // In the innermost loop, where a struct would be built per row.
    fn choose(
        &self,
        id: u64,
        start: u32,
        n: u32,
        at: impl Fn(u32) -> u32,
        whole: bool,
        memory: &mut RowMemory,
        found: &mut Vec<u32>,
    ) {
        let RowMemory { chooser, sums, .. } = memory;
        let k = self.fanout;
        let mut draws = Draws::new(&self.stream, id);
        let weighs = !matches!(self.strategy, Strategy::Uniform | Strategy::Latest);
        let weights = self.rule.weights.as_deref().filter(|_| weighs);
        let take = |i| found.push(at(i));
        let weight = |i: u32| weights.map_or(1.0, |w| f64::from(w[at(i) as usize]));
        // Non-negative floats have the order of their bits.
        let key = |draw: f64, w: f64| (w > 0.0).then(|| (draw / w).to_bits());
        match self.strategy {
            _ if k == ALL => {
                (0..n).filter(|&i| weights.is_none() || weight(i) > 0.0).for_each(take)
            }
            Strategy::Uniform if self.replace => {
                if n > 0 {
                    chooser.repeated(k, || draws.below(n), take);
                }
            }
            Strategy::Uniform => chooser.distinct(&mut draws, n, k, take),
            Strategy::Weighted | Strategy::InDegree if self.replace => match &self.rule.alias {
                Some(alias) if whole => {
                    let row = start as usize..(start + n) as usize;
                    // A row of zero weights has no draw at all, so that the first draw decides.
                    if alias.draw(row.clone(), &mut Draws::new(&self.stream, id)).is_some() {
                        chooser.repeated(
                            k,
                            || alias.draw(row.clone(), &mut draws).unwrap_or(0),
                            take,
                        );
                    }
                }
                _ => {
                    let mut sum = 0.0;
                    sums.clear();
                    sums.extend((0..n).map(|i| {
                        sum += weight(i);
                        sum
                    }));
                    if sum > 0.0 {
                        // Rounding may place a draw at `sum`: it goes to the last candidate with a weight.
                        let last = sums.partition_point(|&s| s < sum) as u32;
                        let draw = || {
                            let x = draws.unit() * sum;
                            (sums.partition_point(|&s| s <= x) as u32).min(last)
                        };
                        chooser.repeated(k, draw, take);
                    }
                }
            },
            Strategy::Weighted | Strategy::InDegree => {
                // Keyed by position among the candidates, so that other edges have no influence.
                chooser.smallest(
                    n,
                    k,
                    |i| key(exponential(&self.stream, id, u64::from(i)), weight(i)),
                    take,
                );
            }
            Strategy::TopK => {
                chooser.smallest(n, k, |i| (weight(i) > 0.0).then(|| !weight(i).to_bits()), take)
            }
            Strategy::Latest => {
                let times = self.times.unwrap_or_default();
                // Maps signed times to unsigned keys in reverse order. Iterating from the last candidate makes equal
                // times prefer the last edge.
                chooser.smallest_of(
                    (0..n).rev(),
                    k,
                    |i| Some(!((times[at(i) as usize] as u64) ^ (1 << 63))),
                    take,
                );
            }
            Strategy::Labor { .. } => {
                let source =
                    |i| u64::from(self.source_ids.get(self.indices[at(i) as usize] as usize));
                chooser.smallest(
                    n,
                    k,
                    |i| key(exponential(&self.by_source, source(i), 0), weight(i)),
                    take,
                );
            }
        }
    }
}
