//! Draws negative pairs over all pairs of nodes.

use super::*;

impl NegativeSampler {
    /// `count` pairs out of all that have no edge, each equally likely (GraphBolt and DGL: global uniform).
    ///
    /// # Errors
    /// The sampler is not uniform, has conditions, or is one of sources; the relation has no pair of nodes;
    /// [`GraphError::OutOfMemory`].
    pub fn global(&self, count: usize, key: SampleKey) -> Result<Negatives, GraphError> {
        self.check_global(count)?;
        let (n, m) = (self.relation.num_src() as u64, self.relation.num_dst() as u64);
        let free = self.free_pairs(None);
        let total = if self.strict { free.total() } else { n * m };
        let stream = self.global_stream(key);
        let (mut met, mut out) = (HashSet::new(), Negatives::with_room(count as u128)?);
        for i in 0..count as u64 {
            let mut draws = Draws::new(&stream, i);
            // Floyd's way to ranks that all differ: see `Chooser::distinct`.
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
                    let (u, v) = rank.map_or_else(
                        || draws.pair(n, m),
                        |rank| ((rank / m) as u32, (rank % m) as u32),
                    );
                    out.push(u, v, false);
                }
            }
        }
        Ok(out)
    }

    /// A pair for each of these times, out of all that have no edge up to then, each equally likely.
    pub(crate) fn global_at(&self, times: &[i64], key: SampleKey) -> Result<Negatives, GraphError> {
        self.check_global(times.len())?;
        if self.unique {
            let expected = "pairs that may repeat where seeds have times, or negatives per source";
            return Err(setting("negatives", expected, "`with_unique(true)`"));
        }
        let (n, m) = (self.relation.num_src() as u64, self.relation.num_dst() as u64);
        let stream = self.global_stream(key);
        let mut out = Negatives::with_room(times.len() as u128)?;
        for (i, &time) in (0..).zip(times) {
            let mut draws = Draws::new(&stream, i);
            let fits = |&(u, v): &(u32, u32)| !self.has_edge(u, v, Some(time));
            let tries = if self.strict { Self::TRIES } else { 0 };
            let found = (0..tries)
                .map(|_| draws.pair(n, m))
                .find(fits)
                .or_else(|| self.global_exactly(time, &mut draws));
            let (u, v) = found.unwrap_or_else(|| draws.pair(n, m));
            out.push(u, v, found.is_some());
        }
        Ok(out)
    }

    /// One of all pairs without an edge up to a time.
    fn global_exactly(&self, time: i64, draws: &mut Draws<'_>) -> Option<(u32, u32)> {
        let free = self.free_pairs(Some(time));
        if free.total() == 0 {
            return None;
        }
        let (u, place) = free.find(draws.below_wide(free.total()));
        Some((u, self.free(u, place, Some(time))))
    }

    /// What global pairs are drawn by: pair `i` of a batch by the draws of id `i`.
    #[doc(hidden)]
    pub fn global_stream(&self, key: SampleKey) -> Stream {
        key.stream(&format!("global negatives/{}", self.name))
    }
    /// Whether there is an edge, up to a time where edges have times.
    #[doc(hidden)]
    pub fn has_edge(&self, src: u32, dst: u32, time: Option<i64>) -> bool {
        self.adjacency.contains(src, dst, time)
    }
    /// Destinations to which a source has no edge, up to a time where edges have times.
    #[doc(hidden)]
    pub fn num_free(&self, src: u32, time: Option<i64>) -> u64 {
        (self.relation.num_dst() - self.adjacency.row(src, time).len()) as u64
    }
    /// The one of them at a place below [`num_free`](Self::num_free), in ascending order.
    #[doc(hidden)]
    pub fn free(&self, src: u32, place: u32, time: Option<i64>) -> u32 {
        outside(&self.adjacency.row(src, time), place)
    }

    /// All pairs without an edge, up to a time where edges have times; none where edges do not count.
    pub(super) fn free_pairs(&self, time: Option<i64>) -> FreePairs {
        let sources = if self.strict { 0..self.relation.num_src() as u32 } else { 0..0 };
        FreePairs::new(sources.map(|u| self.num_free(u, time)))
    }

    pub(super) fn check_global(&self, count: usize) -> Result<(), GraphError> {
        if self.of_sources {
            let expected = "a sampler of destinations (`NegativeSampler::new`), which draws both nodes of global pairs";
            return Err(setting(
                "negatives",
                expected,
                "one of sources (`NegativeSampler::of_sources`)",
            ));
        }
        if self.by != NegativeBy::Uniform || !self.conditions.is_empty() {
            return Err(setting(
                "distribution",
                "uniform pairs without conditions",
                "another; draw per source",
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
