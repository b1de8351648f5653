//! Defines `TimedTails`, the true answers of queries (head, relation) by time.

use burn_gnn_data::Triple;
use rayon::prelude::*;

/// All true tails of every query (head, relation) with their times: the filter of rankings in time.
///
/// ```
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::TimedTails;
/// let fact = |tail, time| (Triple { head: 0, relation: 0, tail }, time);
/// let known = TimedTails::new([fact(4, 20), fact(7, 10), fact(2, 20), fact(4, 30)]);
/// assert_eq!(known.at(0, 0, 20), [2, 4]); // true at that time
/// assert_eq!(known.before(0, 0, 20), [7]); // first true before that time
/// assert_eq!(known.before(0, 0, 21), [7, 2, 4]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedTails {
    /// (head, relation, time), ascending.
    queries: Vec<(u32, u32, i64)>,
    /// Tails of query `q`: `tails[starts[q]..starts[q + 1]]`, ascending.
    starts: Vec<usize>,
    tails: Vec<u32>,
    /// (head, relation), ascending.
    pairs: Vec<(u32, u32)>,
    /// Tails of pair `p`, by their first time: `first_tails[first_starts[p]..first_starts[p + 1]]`.
    first_starts: Vec<usize>,
    first_tails: Vec<u32>,
    first_times: Vec<i64>,
}

impl TimedTails {
    /// Of facts and their times, in any order; repeated ones count once.
    ///
    /// # Cost
    /// `O(n log n)`; 24 bytes per fact during the call.
    pub fn new(facts: impl IntoIterator<Item = (Triple, i64)>) -> Self {
        let key = |(t, time): (Triple, i64)| (t.head, t.relation, time, t.tail);
        let mut facts: Vec<(u32, u32, i64, u32)> = facts.into_iter().map(key).collect();
        facts.par_sort_unstable();
        facts.dedup();
        let mut out = Self { starts: vec![0], first_starts: vec![0], ..Self::default() };
        for group in facts.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
            out.queries.push((group[0].0, group[0].1, group[0].2));
            out.tails.extend(group.iter().map(|f| f.3));
            out.starts.push(out.tails.len());
        }
        for group in facts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let mut first: Vec<(u32, i64)> = group.iter().map(|f| (f.3, f.2)).collect();
            first.sort_unstable();
            first.dedup_by_key(|f| f.0);
            first.sort_unstable_by_key(|f| (f.1, f.0));
            out.pairs.push((group[0].0, group[0].1));
            out.first_tails.extend(first.iter().map(|f| f.0));
            out.first_times.extend(first.iter().map(|f| f.1));
            out.first_starts.push(out.first_tails.len());
        }
        out
    }

    /// Tails of facts of (head, relation) at `time`, ascending: what a ranking filtered by time leaves out.
    pub fn at(&self, head: u32, relation: u32, time: i64) -> &[u32] {
        let found = self.queries.binary_search(&(head, relation, time));
        found.map_or(&[], |q| &self.tails[self.starts[q]..self.starts[q + 1]])
    }

    /// Tails of (head, relation) with a fact before `time`, by the time of the first: the past of a query.
    pub fn before(&self, head: u32, relation: u32, time: i64) -> &[u32] {
        let Ok(p) = self.pairs.binary_search(&(head, relation)) else { return &[] };
        let range = self.first_starts[p]..self.first_starts[p + 1];
        let past = self.first_times[range.clone()].partition_point(|&t| t < time);
        &self.first_tails[range.start..range.start + past]
    }
}
