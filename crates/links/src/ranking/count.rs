//! Counts the candidates that are ahead of the targets of a query.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

use crate::ranking::scores::{Reader, Score};

/// The targets of one query, and the candidates counted so far.
pub(super) struct Counter<'a> {
    targets: &'a [u32],
    /// Ids that do not compete, ascending and distinct; no target is among them.
    excluded: Vec<u32>,
    /// Score of each target.
    own: Vec<f64>,
    /// Number of competitors with a larger score, or one that is NaN, per target.
    pub(super) ahead: Vec<u32>,
    /// Number of competitors with an equal score, per target.
    pub(super) same: Vec<u32>,
    targets_compete: bool,
}

impl<'a> Counter<'a> {
    /// `candidates` is the number of candidates; excluded ids beyond them are ignored.
    pub(super) fn new(
        targets: &'a [u32],
        excluded: &[u32],
        candidates: usize,
        targets_compete: bool,
    ) -> Self {
        // Lists of targets ascend.
        let competes = |id: &u32| (*id as usize) < candidates && targets.binary_search(id).is_err();
        let mut excluded: Vec<u32> = excluded.iter().copied().filter(competes).collect();
        if !excluded.is_sorted_by(|a, b| a < b) {
            excluded.sort_unstable();
            excluded.dedup();
        }
        let n = targets.len();
        Self {
            targets,
            excluded,
            own: vec![f64::NAN; n],
            ahead: vec![0; n],
            same: vec![0; n],
            targets_compete,
        }
    }

    /// Number of competitors of each target.
    pub(super) fn rivals(&self, candidates: usize) -> usize {
        let others = if self.targets_compete { 1 } else { self.targets.len() };
        candidates - self.excluded.len() - others
    }

    /// Takes over the scores of the targets in `block`, whose scores are `row`.
    fn take_own<T: Score>(&mut self, row: &[T], block: &Range<usize>) {
        for (own, &t) in self.own.iter_mut().zip(self.targets) {
            if block.contains(&(t as usize)) {
                *own = row[t as usize - block.start].wide();
            }
        }
    }

    /// Counts the candidates of `block`, whose scores are `row`.
    fn count<T: Score>(&mut self, row: &[T], block: &Range<usize>) {
        let inside = |ids: &'_ [u32]| {
            let from = ids.partition_point(|&id| (id as usize) < block.start);
            from..from + ids[from..].partition_point(|&id| (id as usize) < block.end)
        };
        let excluded = &self.excluded[inside(&self.excluded)];
        for (i, &target) in self.targets.iter().enumerate() {
            let own = T::of(self.own[i]);
            // Not `>`: NaN is ahead as well.
            let is_ahead = |s: T| s.partial_cmp(&own).is_none_or(Ordering::is_gt);
            let (mut ahead, mut same) = (0u32, 0u32);
            for &s in row {
                #[expect(
                    clippy::neg_cmp_op_on_partial_ord,
                    reason = "true for NaN; a loop of vectors"
                )]
                let is_ahead = !(s <= own);
                ahead += u32::from(is_ahead);
                same += u32::from(s == own);
            }
            let others = self.targets.iter().filter(|&&t| !self.targets_compete || t == target);
            for &id in excluded.iter().chain(others.filter(|&&t| block.contains(&(t as usize)))) {
                let s = row[id as usize - block.start];
                ahead -= u32::from(is_ahead(s));
                same -= u32::from(s == own);
            }
            self.ahead[i] += ahead;
            self.same[i] += same;
        }
    }
}

/// What a pass over a block does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Reads the scores of targets.
    Own,
    /// Counts candidates.
    Count,
    /// Both: the block has all candidates.
    Whole,
}

/// Reads a block of scores of the queries of `counters`, in parallel over queries.
pub(super) struct BlockPass<'a, 'b> {
    pub(super) counters: &'a mut [Counter<'b>],
    pub(super) block: Range<usize>,
    pub(super) pass: Pass,
}

impl Reader for BlockPass<'_, '_> {
    fn read<T: Score>(&mut self, scores: &[T], candidates: usize) {
        let (block, pass) = (&self.block, self.pass);
        self.counters.par_iter_mut().zip(scores.par_chunks(candidates.max(1))).for_each(
            |(counter, row)| {
                if pass != Pass::Count {
                    counter.take_own(row, block);
                }
                if pass != Pass::Own {
                    counter.count(row, block);
                }
            },
        );
    }
}
