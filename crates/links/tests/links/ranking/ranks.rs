//! Ranks and metrics equal those of the definition, for any size of blocks.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_links::{IdLists, MetricsAt, RankingConfig, Ties, TimedTails};
use burn_gnn_models::select_rows;
use burn_gnn_testutil::assert_close;
use proptest::prelude::*;

/// A score of few values, so that many are equal, some no numbers.
pub(super) fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-2i32..3).prop_map(f64::from),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

/// Scores of queries and candidates, lists of two kinds per query.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) queries: usize,
    pub(super) candidates: usize,
    pub(super) scores: Vec<f64>,
    pub(super) targets: IdLists,
    pub(super) excluded: Vec<Vec<u32>>,
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    (0usize..7, 1usize..14).prop_flat_map(|(queries, candidates)| {
        let n = candidates as u32;
        let lists = |longest| {
            prop::collection::vec(prop::collection::vec(0..n, 0..longest), queries..=queries)
        };
        let scores = prop::collection::vec(score(), queries * candidates);
        (scores, lists(5), lists(16)).prop_map(move |(scores, targets, excluded)| {
            let pairs = targets.iter().enumerate();
            let pairs = pairs.flat_map(|(q, ids)| ids.iter().map(move |&id| (q as u32, id)));
            let targets = IdLists::from_pairs(queries, pairs).unwrap();
            Case { queries, candidates, scores, targets, excluded }
        })
    })
}

impl Case {
    pub(super) fn row(&self, q: usize) -> &[f64] {
        &self.scores[q * self.candidates..][..self.candidates]
    }

    pub(super) fn score(&self, dtype: DType) -> impl FnMut(&[usize], Range<usize>) -> Tensor<2> {
        let data = TensorData::new(self.scores.clone(), [self.queries, self.candidates]);
        let all = Tensor::<2>::from_data(data, (&Device::flex(), dtype));
        move |queries, candidates| select_rows(all.clone(), queries).slice_dim(1, candidates)
    }

    /// Competitors of a target.
    fn rivals(&self, q: usize, target: u32, compete: bool) -> Vec<f64> {
        let targets = self.targets.of(q);
        let competes = |e: &u32| {
            *e != target
                && if targets.contains(e) { compete } else { !self.excluded[q].contains(e) }
        };
        (0..self.candidates as u32).filter(competes).map(|e| self.row(q)[e as usize]).collect()
    }

    fn rank(&self, q: usize, target: u32, ties: Ties, compete: bool) -> f64 {
        let (own, rivals) = (self.row(q)[target as usize], self.rivals(q, target, compete));
        if own.is_nan() {
            return 1.0 + rivals.len() as f64;
        }
        let ahead = rivals.iter().filter(|s| s.is_nan() || **s > own).count() as f64;
        let same = rivals.iter().filter(|s| **s == own).count() as f64;
        match ties {
            Ties::Mean => 1.0 + ahead + same / 2.0,
            Ties::Optimistic => 1.0 + ahead,
            Ties::Pessimistic => 1.0 + ahead + same,
        }
    }
}

proptest! {
    #[test]
    fn ranks_equal_the_definition(
        case in case(),
        blocks in (1usize..4, 1usize..15),
        compete: bool,
        wide: bool,
        ties in prop_oneof![Just(Ties::Mean), Just(Ties::Optimistic), Just(Ties::Pessimistic)],
    ) {
        let mut config = RankingConfig::new().with_ties(ties).with_blocks(blocks.0, blocks.1);
        config.targets_compete = compete;
        let dtype = if wide { DType::F64 } else { DType::F32 };
        let excluded = |q: usize| case.excluded[q].as_slice();
        let ranks =
            config.rank(case.candidates, &case.targets, excluded, case.score(dtype)).unwrap();
        prop_assert_eq!(ranks.len(), case.queries);
        for q in 0..case.queries {
            let targets = case.targets.of(q);
            let expected: Vec<f64> =
                targets.iter().map(|&t| case.rank(q, t, ties, compete)).collect();
            prop_assert_eq!(ranks.of(q), expected, "query {}", q);
            let rivals = targets.first().map_or(0, |&t| case.rivals(q, t, compete).len());
            prop_assert_eq!(ranks.competitors(q), rivals);
        }
        // The chosen sizes of blocks do not change the result.
        config.query_block = 256;
        config.candidate_block = None;
        let whole = config.rank(case.candidates, &case.targets, excluded, case.score(dtype));
        prop_assert_eq!(whole.unwrap(), ranks);
    }

    /// Targets that do not compete have the metrics of a query each.
    #[test]
    fn targets_with_lists_of_their_own(case in case(), k in 1usize..6) {
        for q in 0..case.queries {
            let targets = case.targets.of(q);
            if targets.is_empty() {
                continue;
            }
            let score = |rows: &[usize], columns: Range<usize>| {
                let n = rows.len();
                case.score(DType::F64)(&vec![q; n], columns)
            };
            let rank = |targets: &IdLists| {
                let all = [&case.excluded[q][..], case.targets.of(q)].concat();
                RankingConfig::new().rank(case.candidates, targets, |_| &all, score).unwrap()
            };
            let one = IdLists::from_pairs(1, targets.iter().map(|&t| (0, t))).unwrap();
            let together = rank(&one).metrics(&[k]);
            let apart = rank(&IdLists::single(targets.to_vec())).metrics(&[k]);
            let of = |m: &burn_gnn_links::RankingMetrics| {
                let at = m.at(k);
                [m.mrr, m.mean_rank, m.map, m.auc, at.hits, at.recall, at.precision, at.ndcg, at.map]
            };
            assert_close("metrics", &of(&together), &of(&apart), 1e-12);
            prop_assert!(together.at(k).ndcg <= 1.0 + 1e-12 && together.at(k).precision <= 1.0);
        }
    }

    #[test]
    fn metrics_equal_the_definition(case in case(), k in 1usize..6) {
        let finite = Case {
            scores: case.scores.iter().map(|s| if s.is_finite() { *s } else { 7.0 }).collect(),
            ..case
        };
        // Distinct scores: with each position one candidate.
        let distinct: Vec<f64> =
            finite.scores.iter().enumerate().map(|(i, s)| s * 1e3 + i as f64).collect();
        let case = Case { scores: distinct, ..finite };
        let config = RankingConfig::new().with_competing_targets();
        let excluded = |q: usize| case.excluded[q].as_slice();
        let ranks = config.rank(case.candidates, &case.targets, excluded, case.score(DType::F64));
        let found = ranks.unwrap().metrics(&[k]);
        let (mut sums, mut auc, mut map, mut mrr, mut queries, mut targets) =
            (MetricsAt { k, ..MetricsAt::default() }, 0.0, 0.0, 0.0, 0, 0);
        for q in 0..case.queries {
            let wanted = case.targets.of(q);
            if wanted.is_empty() {
                continue;
            }
            // The list that a user sees.
            let mut list: Vec<u32> = (0..case.candidates as u32)
                .filter(|e| wanted.contains(e) || !case.excluded[q].contains(e))
                .collect();
            let row = case.row(q);
            list.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
            let hit: Vec<bool> = list.iter().map(|e| wanted.contains(e)).collect();
            let m = wanted.len();
            let listed = hit.iter().take(k).filter(|&&h| h).count() as f64;
            let precision = |i: usize| hit[..=i].iter().filter(|&&h| h).count() as f64 / (i + 1) as f64;
            let discount = |i: usize| 1.0 / ((i + 2) as f64).log2();
            let hits: Vec<usize> = (0..hit.len()).filter(|&i| hit[i]).collect();
            let top: Vec<usize> = hits.iter().copied().filter(|&i| i < k).collect();
            sums.hits += listed;
            sums.recall += listed / m as f64;
            sums.precision += listed / k as f64;
            sums.ndcg += top.iter().map(|&i| discount(i)).sum::<f64>()
                / (0..m.min(k)).map(discount).sum::<f64>();
            sums.map += top.iter().map(|&i| precision(i)).sum::<f64>() / m.min(k) as f64;
            map += hits.iter().map(|&i| precision(i)).sum::<f64>() / m as f64;
            mrr += hits.iter().map(|&i| 1.0 / (i + 1) as f64).sum::<f64>();
            let negatives: Vec<usize> = (0..hit.len()).filter(|&i| !hit[i]).collect();
            let pairs = hits.iter().flat_map(|p| negatives.iter().map(move |n| p < n));
            let (right, all) = pairs.fold((0, 0), |(r, n), ahead| (r + usize::from(ahead), n + 1));
            auc += if all == 0 { 1.0 } else { f64::from(right as u32) / f64::from(all) };
            queries += 1;
            targets += m;
        }
        let (n, t) = (f64::from(queries.max(1)), targets.max(1) as f64);
        let at = found.at(k);
        prop_assert_eq!((found.queries, found.targets), (queries as usize, targets));
        assert_close(
            "metrics",
            &[at.hits, at.recall, at.precision, at.ndcg, at.map, found.map, found.auc, found.mrr],
            &[sums.hits / t, sums.recall / n, sums.precision / n, sums.ndcg / n, sums.map / n, map / n, auc / n, mrr / t],
            1e-12,
        );
    }
}

#[test]
fn groups_partition_the_queries() {
    let scores = Tensor::<2>::from_data([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], &Device::flex());
    let targets = IdLists::single(vec![0, 2]);
    let score = |queries: &[usize], _| select_rows(scores.clone(), queries);
    let ranks = RankingConfig::new().rank(3, &targets, |_| &[], score).unwrap();
    let by_degree = ranks.grouped(&[5, 1], &[1]).unwrap();
    assert_eq!(by_degree.keys().copied().collect::<Vec<_>>(), [1, 5]);
    assert_eq!((by_degree[&1].mrr, by_degree[&5].at(1).hits), (1.0 / 3.0, 1.0));
    assert_eq!(
        by_degree[&5].to_string(),
        "MRR 1.0000, mean rank 1.0, MAP 1.0000, AUC 1.0000, Hits@1 1.0000, Recall@1 1.0000, NDCG@1 1.0000 (1 query)"
    );
    let e = ranks.grouped(&[1], &[]).unwrap_err().to_string();
    assert_eq!(e, "`keys`: expected 2 (one per query), got 1; give 2");
}

#[test]
fn filters_by_time() {
    let fact = |tail, time| (burn_gnn_data::Triple { head: 1, relation: 0, tail }, time);
    let known = TimedTails::new([fact(0, 5), fact(2, 5), fact(1, 4), fact(0, 9)]);
    let scores = Tensor::<2>::from_data([[4.0, 3.0, 2.0]; 3], &Device::flex());
    let targets = IdLists::single(vec![2; 3]);
    // True at the same time: 0. True before: nothing, then 1, then 1 and 0.
    let score = |queries: &[usize], _| select_rows(scores.clone(), queries);
    let at = |q: usize| known.at(1, 0, [4, 5, 9][q]);
    let ranks = RankingConfig::new().rank(3, &targets, at, score).unwrap();
    assert_eq!(ranks.all(), [2.0, 2.0, 2.0]);
    let before = |q: usize| known.before(1, 0, [4, 5, 9][q]);
    let score = |queries: &[usize], _| select_rows(scores.clone(), queries);
    let ranks = RankingConfig::new().rank(3, &targets, before, score).unwrap();
    assert_eq!(ranks.all(), [3.0, 2.0, 1.0]);
    assert_eq!((known.at(1, 1, 5), known.before(0, 0, 5)), (&[][..], &[][..]));
}

#[test]
fn invalid_arguments() {
    let scores = |_: &[usize], _| Tensor::<2>::zeros([1, 2], &Device::flex());
    let text = |config: RankingConfig, candidates, target| {
        let targets = IdLists::single(vec![target]);
        config.rank(candidates, &targets, |_| &[], scores).unwrap_err().to_string()
    };
    assert_eq!(text(RankingConfig::new(), 2, 2), "`target` must lie in 0..2, got 2");
    assert_eq!(
        text(RankingConfig::new(), 3, 2),
        "`scores`: expected 3 (one column per candidate), got 2; give 3"
    );
    assert_eq!(
        text(RankingConfig::new().with_blocks(0, 1), 2, 0),
        "`query_block` must lie in 1.., got 0"
    );
    let e = IdLists::from_pairs(2, [(2, 0)]).unwrap_err().to_string();
    assert_eq!(e, "`row of pairs` must lie in 0..2, got 2");
}
