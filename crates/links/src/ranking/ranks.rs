//! Defines `Ranks`, the ranks of the targets of queries.

use std::collections::BTreeMap;

use burn_gnn_models::ModelError;

use crate::errors::check_length;
use crate::ranking::id_lists::IdLists;
use crate::ranking::metrics::{RankingMetrics, Sums};

/// The rank of every target of every query, from 1; half ranks are means over equal scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// Targets of query `q`: `starts[q]..starts[q + 1]`.
    starts: Vec<usize>,
    ranks: Vec<f64>,
    /// Number of competitors of a target, per query.
    rivals: Vec<u32>,
    /// Ranks of the targets of a query count its other targets.
    targets_compete: bool,
}

impl Ranks {
    pub(super) fn new(targets: &IdLists, targets_compete: bool) -> Self {
        Self {
            starts: targets.starts().to_vec(),
            ranks: vec![0.0; targets.total()],
            rivals: vec![0; targets.len()],
            targets_compete,
        }
    }

    pub(super) fn set(&mut self, query: usize, ranks: impl Iterator<Item = f64>, rivals: usize) {
        let of_query = &mut self.ranks[self.starts[query]..self.starts[query + 1]];
        of_query.iter_mut().zip(ranks).for_each(|(slot, rank)| *slot = rank);
        self.rivals[query] = rivals as u32;
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.rivals.len()
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.rivals.is_empty()
    }

    /// Ranks of the targets of a query, in the order of its list; none for a query beyond the last.
    pub fn of(&self, query: usize) -> &[f64] {
        match self.starts.get(query..query.saturating_add(2)) {
            Some(&[from, to]) => &self.ranks[from..to],
            _ => &[],
        }
    }

    /// Ranks of all targets, query by query.
    pub fn all(&self) -> &[f64] {
        &self.ranks
    }

    /// Number of candidates that each target of a query competes with; 0 for a query without targets.
    pub fn competitors(&self, query: usize) -> usize {
        self.rivals.get(query).map_or(0, |&r| r as usize)
    }

    /// Metrics over all queries with targets; those at a cut for each of `ks`.
    pub fn metrics(&self, ks: &[usize]) -> RankingMetrics {
        let mut sums = Sums::new(ks);
        (0..self.len()).for_each(|q| self.add(q, &mut sums));
        sums.metrics()
    }

    /// Metrics of groups of queries: by relation, degree or time, in the order of the keys.
    ///
    /// ```
    /// use burn_gnn_links::{IdLists, RankingConfig, dot_scores};
    /// use burn::tensor::{Device, Tensor};
    /// let one = Tensor::<2>::ones([3, 1], &Device::flex());
    /// let items = Tensor::<2>::from_data([[3.0], [2.0], [1.0]], &Device::flex());
    /// let targets = IdLists::single(vec![0, 1, 2]);
    /// let ranks = RankingConfig::new().rank(3, &targets, |_| &[], dot_scores(one, items))?;
    /// let relations = ["buys", "buys", "likes"];
    /// let by_relation = ranks.grouped(&relations, &[10])?;
    /// assert_eq!((by_relation["buys"].mrr, by_relation["likes"].mean_rank), (0.75, 3.0));
    /// # Ok::<(), burn_gnn_models::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// Another number of keys than queries.
    pub fn grouped<K: Ord + Clone>(
        &self,
        keys: &[K],
        ks: &[usize],
    ) -> Result<BTreeMap<K, RankingMetrics>, ModelError> {
        check_length("keys", "one per query", self.len(), keys.len())?;
        let mut groups: BTreeMap<K, Sums> = BTreeMap::new();
        for (q, key) in keys.iter().enumerate() {
            let sums = groups.entry(key.clone()).or_insert_with(|| Sums::new(ks));
            self.add(q, sums);
        }
        Ok(groups.into_iter().map(|(key, sums)| (key, sums.metrics())).collect())
    }

    fn add(&self, query: usize, sums: &mut Sums) {
        sums.add(self.of(query), self.rivals[query] as usize, self.targets_compete);
    }
}
