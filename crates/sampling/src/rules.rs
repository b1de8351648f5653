//! Selects candidate edges of a node by time, mask and exclusion, and chooses among them.

use std::ops::Range;
use std::sync::Arc;

use crate::alias::AliasTables;
use crate::choose_neighbors::Chooser;
use crate::draws::{Draws, exponential};
use crate::fanout::ALL;
use burn_gnn_graph::{OriginalIds, Stream};

/// How edges are chosen where a node has more than its fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Every candidate is equally likely.
    #[default]
    Uniform,
    /// In proportion to weights. Without replacement: one draw after the other from what is left (exactly, by
    /// exponential keys: Efraimidis and Spirakis, IPL 2006), `O(degree)` per node. With replacement: by alias tables,
    /// `O(fan-out)`.
    Weighted,
    /// In proportion to how many edges of the relation lead to the neighbour from this side: its degree there. These
    /// degrees count all edges, later ones too, so edges with times cannot be drawn this way.
    InDegree,
    /// The candidates of the largest weights, of equal ones the first in edge-id order.
    TopK,
    /// The candidates of the latest times, of equal ones the last in edge-id order, as if edges had been added in the
    /// order of their ids (PyG: `temporal_strategy="last"`).
    Latest,
    /// LABOR (Balın and Çatalyürek, NeurIPS 2023): a node draws one number for all who may choose it, so destinations
    /// agree on their neighbours and a batch has fewer nodes. Each destination takes the candidates of the smallest
    /// numbers (sequential Poisson sampling), so its neighbours are distributed as under `Uniform`, or under `Weighted`
    /// where there are weights. `O(degree)` per node.
    Labor {
        /// Whether all layers share the numbers, which makes batches smaller still.
        layer_dependent: bool,
    },
}

impl Strategy {
    pub(crate) fn needs_weights(self) -> bool {
        matches!(self, Self::Weighted | Self::TopK)
    }
    pub(crate) fn can_replace(self) -> bool {
        matches!(self, Self::Uniform | Self::Weighted | Self::InDegree)
    }
}

/// What is known about the edges of one relation, by position in CSC.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeRule {
    pub(crate) weights: Option<Vec<f32>>,
    /// Whether weights are in the file of the relation.
    pub(crate) stored_weights: bool,
    /// Where draws go with replacement.
    pub(crate) alias: Option<AliasTables>,
    pub(crate) mask: Option<Vec<bool>>,
    pub(crate) times: Option<EdgeTimes>,
}

/// Times of the edges of one relation.
#[derive(Clone, Debug)]
pub(crate) struct EdgeTimes {
    pub(crate) by_edge: Arc<[i64]>,
    /// By position in CSC; the same list where positions are edge ids.
    pub(crate) by_position: Arc<[i64]>,
}

/// How the edges of one relation are chosen at one hop.
pub(crate) struct Choice<'a> {
    pub(crate) rule: &'a EdgeRule,
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
