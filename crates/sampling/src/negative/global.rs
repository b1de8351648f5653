//! Draws negatives uniformly from all pairs of nodes.

use std::collections::HashSet;

use crate::negative::adjacency::outside;
use crate::negative::free_pairs::FreePairs;
use crate::negative::sampler::{NegativeBy, NegativeSampler, Negatives};
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{GraphError, Stream};

impl NegativeSampler {
    /// Samples `count` pairs uniformly from all pairs without an edge (GraphBolt and DGL: global uniform). `(u, v)` and
    /// `(v, u)` are different pairs, unless the sampler is [`undirected`](Self::undirected).
    ///
    /// # Errors
    /// A sampler of sources, with another distribution or with conditions; a relation without pairs of nodes;
    /// [`GraphError::OutOfMemory`].
    pub fn global(&self, count: usize, key: SampleKey) -> Result<Negatives, GraphError> {
        self.check_global(count)?;
        let free = self.free_pairs(None);
        let all = self.num_pairs();
        let total = if self.strict { free.total() } else { all };
        let stream = self.global_stream(key);
        let (mut met, mut out) = (HashSet::new(), Negatives::with_room(count as u128)?);
        for i in 0..count as u64 {
            let mut draws = Draws::new(&stream, i);
            // Floyd's algorithm for distinct ranks: see `Chooser::distinct`.
            let top = if self.unique {
                (total + i).checked_sub(count as u64).map(|top| top + 1)
            } else {
                Some(total)
            };
            let rank = top.filter(|&top| top > 0).map(|top| {
                let rank = draws.below_wide(top);
                if self.unique && !met.insert(rank) {
                    met.insert(top - 1);
                    top - 1
                } else {
                    rank
                }
            });
            match rank {
                Some(rank) if self.strict => {
                    let (u, place) = free.find(rank);
                    out.push(u, self.free(u, place, None), true);
                }
                rank => {
                    let (u, v) = self.pair(rank.unwrap_or_else(|| draws.below_wide(all)));
                    out.push(u, v, false);
                }
            }
        }
        Ok(out)
    }

    /// Samples one pair for each time, uniformly from all pairs without an edge up to that time.
    pub(crate) fn global_at(&self, times: &[i64], key: SampleKey) -> Result<Negatives, GraphError> {
        self.check_global(times.len())?;
        if self.unique {
            let expected =
                "a sampler without unique pairs, or negatives per source, as seeds have times";
            return Err(setting("negatives", expected, "`with_unique`"));
        }
        let all = self.num_pairs();
        let stream = self.global_stream(key);
        let mut out = Negatives::with_room(times.len() as u128)?;
        for (i, &time) in (0..).zip(times) {
            let mut draws = Draws::new(&stream, i);
            let fits = |&(u, v): &(u32, u32)| !self.has_edge(u, v, Some(time));
            let tries = if self.strict { Self::TRIES } else { 0 };
            let found = (0..tries)
                .map(|_| self.pair(draws.below_wide(all)))
                .find(fits)
                .or_else(|| self.global_exactly(time, &mut draws));
            let (u, v) = found.unwrap_or_else(|| self.pair(draws.below_wide(all)));
            out.push(u, v, found.is_some());
        }
        Ok(out)
    }

    /// Draws one of all pairs without an edge up to a time, in `O(V)`.
    fn global_exactly(&self, time: i64, draws: &mut Draws<'_>) -> Option<(u32, u32)> {
        let free = self.free_pairs(Some(time));
        if free.total() == 0 {
            return None;
        }
        let (u, place) = free.find(draws.below_wide(free.total()));
        Some((u, self.free(u, place, Some(time))))
    }

    /// Random stream of global pairs: pair `i` of a batch uses the draws of id `i`.
    #[doc(hidden)]
    pub fn global_stream(&self, key: SampleKey) -> Stream {
        key.stream(&format!("global negatives/{}", self.name))
    }
    /// Whether there is an edge; with times, up to `time`.
    #[doc(hidden)]
    pub fn has_edge(&self, src: u32, dst: u32, time: Option<i64>) -> bool {
        self.adjacency.contains(src, dst, time)
    }
    /// Number of destinations to which a source has no edge; with times, up to `time`. For undirected pairs, only
    /// destinations from `src` on count.
    #[doc(hidden)]
    pub fn num_free(&self, src: u32, time: Option<i64>) -> u64 {
        let (row, first) = (self.adjacency.row(src, time), self.first_of(src));
        (self.relation.num_dst() - first as usize - from(&row, first).len()) as u64
    }
    /// Returns the destination number `place` of those that [`num_free`](Self::num_free) counts.
    #[doc(hidden)]
    pub fn free(&self, src: u32, place: u32, time: Option<i64>) -> u32 {
        let (row, first) = (self.adjacency.row(src, time), self.first_of(src));
        outside(from(&row, first), first, place)
    }

    /// The smallest destination of global pairs of a source.
    fn first_of(&self, src: u32) -> u32 {
        if self.undirected { src } else { 0 }
    }
    /// Number of pairs of nodes, with or without an edge.
    fn num_pairs(&self) -> u64 {
        let (n, m) = (self.relation.num_src() as u64, self.relation.num_dst() as u64);
        if self.undirected { self.pairs_before(n) } else { n * m }
    }
    /// Number of undirected pairs whose source is below `src`: `n` pairs for node 0, one less for each following node.
    fn pairs_before(&self, src: u64) -> u64 {
        let n = self.relation.num_src() as u64;
        (u128::from(src) * u128::from(2 * n + 1 - src) / 2) as u64
    }
    /// Pair number `rank`, below [`num_pairs`](Self::num_pairs).
    fn pair(&self, rank: u64) -> (u32, u32) {
        let m = self.relation.num_dst() as u64;
        if !self.undirected {
            return ((rank / m) as u32, (rank % m) as u32);
        }
        let (mut low, mut high) = (0, m - 1);
        while low < high {
            let u = (low + high).div_ceil(2);
            if self.pairs_before(u) <= rank { low = u } else { high = u - 1 }
        }
        (low as u32, (low + rank - self.pairs_before(low)) as u32)
    }

    /// Enumerates the pairs without an edge; with times, up to `time`. Empty if the sampler allows false negatives.
    pub(super) fn free_pairs(&self, time: Option<i64>) -> FreePairs {
        let sources = if self.strict { 0..self.relation.num_src() as u32 } else { 0..0 };
        FreePairs::new(sources.map(|u| self.num_free(u, time)))
    }

    pub(super) fn check_global(&self, count: usize) -> Result<(), GraphError> {
        if self.of_sources {
            let expected = "a sampler of destinations (`NegativeSampler::new`) for global pairs";
            return Err(setting(
                "negatives",
                expected,
                "a sampler of sources (`NegativeSampler::of_sources`)",
            ));
        }
        if self.by != NegativeBy::Uniform || !self.conditions.is_empty() {
            return Err(setting(
                "distribution",
                "a uniform distribution without conditions for global pairs",
                "another one (use `per_source`)",
            ));
        }
        if (self.relation.num_src() == 0 || self.relation.num_dst() == 0) && count > 0 {
            return Err(setting(
                "count",
                "0, as the relation has no pair of nodes",
                &count.to_string(),
            ));
        }
        Ok(())
    }
}

/// The entries of an ascending row that are at least `first`.
fn from(row: &[u32], first: u32) -> &[u32] {
    &row[row.partition_point(|&v| v < first)..]
}
