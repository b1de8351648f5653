//! Averages metrics over the ranks of queries.

use std::fmt;

/// Metrics over ranks, each in `0.0..=1.0` except the mean rank. All are 0 without targets.
///
/// `r_1 ≤ … ≤ r_m` are the ranks of the `m` targets of a query. Metrics over targets weight each target equally, metrics
/// over queries each query with targets.
///
/// Formulas are those of targets that compete with each other
/// ([`with_competing_targets`](crate::RankingConfig::with_competing_targets)): a query has one list of candidates, and its
/// targets have different ranks. Otherwise every target has a list of its own without the other targets. The metric of a
/// query is then the mean over its targets of the formula for `m = 1`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankingMetrics {
    /// Number of queries with targets.
    pub queries: usize,
    /// Number of targets.
    pub targets: usize,
    /// Mean of `1 / r` over targets.
    pub mrr: f64,
    /// Mean of `r` over targets, from 1.
    pub mean_rank: f64,
    /// Mean average precision over queries: the mean of `j / r_j` over the targets of a query.
    pub map: f64,
    /// Mean over queries of the area under the ROC curve: the share of pairs of a target and a candidate that is none in
    /// which the target is ahead. Queries without such a pair count 1.
    pub auc: f64,
    /// Metrics at cuts, in the given order.
    pub at: Vec<MetricsAt>,
}

/// Metrics of the `k` best candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricsAt {
    /// Length of the list.
    pub k: usize,
    /// Share of targets with `r ≤ k`, over targets.
    pub hits: f64,
    /// Targets in the list divided by targets, over queries.
    pub recall: f64,
    /// Targets in the list divided by `k`, over queries.
    pub precision: f64,
    /// Normalised discounted cumulative gain over queries: the sum of `1 / log2(1 + r_j)` over targets in the list,
    /// divided by its value for ranks `1, …, min(m, k)`.
    pub ndcg: f64,
    /// Average precision of the list over queries: the sum of `j / r_j` over targets in the list, divided by `min(m, k)`.
    pub map: f64,
}

impl RankingMetrics {
    /// Returns the metrics at the cut `k`.
    ///
    /// # Panics
    /// If `k` is none of the cuts.
    #[track_caller]
    pub fn at(&self, k: usize) -> MetricsAt {
        match self.at.iter().find(|at| at.k == k) {
            Some(&at) => at,
            None => {
                let ks: Vec<usize> = self.at.iter().map(|at| at.k).collect();
                panic!("metrics: `k` must be one of {ks:?}, got {k}; add it to the cuts")
            }
        }
    }
}

impl fmt::Display for RankingMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queries = if self.queries == 1 { "query" } else { "queries" };
        write!(
            f,
            "MRR {:.4}, mean rank {:.1}, MAP {:.4}, AUC {:.4}",
            self.mrr, self.mean_rank, self.map, self.auc
        )?;
        for at in &self.at {
            write!(
                f,
                ", Hits@{0} {1:.4}, Recall@{0} {2:.4}, NDCG@{0} {3:.4}",
                at.k, at.hits, at.recall, at.ndcg
            )?;
        }
        write!(f, " ({} {queries})", self.queries)
    }
}

/// Sums over queries, in their order.
pub(super) struct Sums {
    sums: RankingMetrics,
    /// Sum of the discounts of ranks 1, …, n.
    ideal: Vec<f64>,
    sorted: Vec<f64>,
}

impl Sums {
    pub(super) fn new(ks: &[usize]) -> Self {
        let at = ks.iter().map(|&k| MetricsAt { k, ..MetricsAt::default() }).collect();
        Self {
            sums: RankingMetrics { at, ..RankingMetrics::default() },
            ideal: vec![0.0],
            sorted: vec![],
        }
    }

    /// Adds a query. `rivals` is the number of competitors of each target, among them the other targets if they compete.
    pub(super) fn add(&mut self, ranks: &[f64], rivals: usize, targets_compete: bool) {
        let m = ranks.len();
        if m == 0 {
            return;
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(ranks);
        self.sorted.sort_unstable_by(f64::total_cmp);
        while self.ideal.len() <= m {
            let n = self.ideal.len();
            self.ideal.push(self.ideal[n - 1] + discount(n as f64));
        }
        let all = &mut self.sums;
        all.queries += 1;
        all.targets += m;
        // Targets of a query ahead of the `j`-th, whose rank they raise if they compete.
        let before = |j: usize| if targets_compete { j as f64 } else { 0.0 };
        let place = |j: usize| if targets_compete { (j + 1) as f64 } else { 1.0 };
        let negatives = if targets_compete { rivals + 1 - m } else { rivals } as f64;
        let (mut precision, mut wrong) = (0.0, 0.0);
        for (j, &r) in self.sorted.iter().enumerate() {
            all.mrr += 1.0 / r;
            all.mean_rank += r;
            precision += place(j) / r;
            wrong += r - 1.0 - before(j);
        }
        all.map += precision / m as f64;
        all.auc += if negatives > 0.0 { 1.0 - wrong / (negatives * m as f64) } else { 1.0 };
        for at in &mut all.at {
            let k = at.k as f64;
            let listed = self.sorted.iter().take_while(|&&r| r <= k).count();
            let (mut gain, mut precision) = (0.0, 0.0);
            for (j, &r) in self.sorted[..listed].iter().enumerate() {
                gain += discount(r);
                precision += place(j) / r;
            }
            // Largest number of targets in a list, and the number of lists.
            let (best, lists) = if targets_compete { (m.min(at.k).max(1), 1) } else { (1, m) };
            let lists = lists as f64;
            at.hits += listed as f64;
            at.recall += listed as f64 / m as f64;
            at.precision += listed as f64 / (k.max(1.0) * lists);
            at.ndcg += gain / (self.ideal[best] * lists);
            at.map += precision / (best as f64 * lists);
        }
    }

    pub(super) fn metrics(mut self) -> RankingMetrics {
        let all = &mut self.sums;
        let (queries, targets) = (all.queries.max(1) as f64, all.targets.max(1) as f64);
        all.mrr /= targets;
        all.mean_rank /= targets;
        all.map /= queries;
        all.auc /= queries;
        for at in &mut all.at {
            at.hits /= targets;
            at.recall /= queries;
            at.precision /= queries;
            at.ndcg /= queries;
            at.map /= queries;
        }
        self.sums
    }
}

fn discount(rank: f64) -> f64 {
    1.0 / (1.0 + rank).log2()
}
