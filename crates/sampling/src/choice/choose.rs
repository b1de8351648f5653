//! Selects candidate edges of a node by time, mask and exclusion, and chooses among them.

use std::ops::Range;

use crate::choice::edge_attributes::{EdgeAttributes, EdgeTimes};
use crate::choice::fanout::ALL;
use crate::choice::strategy::Strategy;
use crate::random::generator::{Draws, exponential};
use crate::random::subset::Chooser;
use burn_gnn_graph::{OriginalIds, Stream};

/// How the edges of one relation are chosen at one hop.
pub(crate) struct Choice<'a> {
    pub(crate) rule: &'a EdgeAttributes,
    pub(crate) strategy: Strategy,
    pub(crate) replace: bool,
    pub(crate) fanout: u32,
    /// Draws by destination.
    pub(crate) stream: Stream,
    /// Draws by source, for LABOR.
    pub(crate) by_source: Stream,
    pub(crate) source_ids: &'a OriginalIds,
    /// `(destination, edge id)`, ascending: never drawn.
    pub(crate) excluded: &'a [(u32, u32)],
    pub(crate) indices: &'a [u32],
    pub(crate) edge_ids: Option<&'a [u32]>,
}

/// Memory for one thread.
#[derive(Default)]
pub(crate) struct RowMemory {
    chooser: Chooser,
    candidates: Vec<u32>,
    sums: Vec<f64>,
}

impl Choice<'_> {
    /// Writes the positions taken out of `row`, the edges of node `v`, to `found`, ascending. `id` keys the draws;
    /// where edges have times, only those before `time` are candidates, and the others have no influence on the draws.
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
        let before = time.zip(self.rule.times.as_ref());
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
        // An alias table holds later edges too: that a row has none of them must not change how it is drawn from.
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
        before: Option<(i64, &EdgeTimes)>,
        excluded: &[(u32, u32)],
    ) -> bool {
        let edge = self.edge_ids.map_or(p as u32, |ids| ids[p]);
        self.rule.mask.as_ref().is_none_or(|m| m[p])
            && before.is_none_or(|(time, of)| of.by_position[p] < time)
            && excluded.binary_search_by_key(&edge, |e| e.1).is_err()
    }

    /// Out of `n` candidates at positions `at(0..n)`; `whole` says that they are the row from `start` on.
    #[allow(clippy::too_many_arguments)] // One row is described by all of them, in the innermost loop.
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
        // Keys are not negative, so their bits have their order.
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
                    // A row draws always or never: the first draw tells.
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
                        // The last candidate with a weight stands for a draw that rounding put at the end.
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
                // By place among the candidates: what is none has no influence.
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
                let times = self.rule.times.as_ref().map_or(&[][..], |of| &of.by_position);
                // Order of signed times, reversed; candidates from the last to the first.
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
