//! Lists of the best candidates equal those of a sorted row.

use burn::tensor::{DType, Device, Tensor};
use burn_gnn_links::{IdLists, RankingConfig, dot_scores, top_k, top_k_by};
use burn_gnn_testutil::matrix;
use proptest::prelude::*;

use super::ranks::case;

proptest! {
    #[test]
    fn lists_equal_sorted_rows(case in case(), k in 1usize..20) {
        let seen = |q: usize| case.excluded[q].as_slice();
        let score = case.score(DType::F32);
        let best = top_k_by(case.queries, case.candidates, k, seen, score).unwrap();
        prop_assert_eq!((best.len(), best.k), (case.queries, k));
        for q in 0..case.queries {
            let row = case.row(q);
            let mut ids: Vec<u32> = (0..case.candidates as u32)
                .filter(|e| !row[*e as usize].is_nan() && !case.excluded[q].contains(e))
                .collect();
            ids.sort_by(|&a, &b| row[b as usize].partial_cmp(&row[a as usize]).unwrap());
            ids.truncate(k);
            let expected: Vec<(u32, f64)> = ids.iter().map(|&e| (e, row[e as usize])).collect();
            prop_assert_eq!(best.of(q), expected, "query {}", q);
        }
        let listed: std::collections::BTreeSet<u32> =
            (0..case.queries).flat_map(|q| best.of(q)).map(|entry| entry.0).collect();
        let coverage = listed.len() as f64 / case.candidates as f64;
        prop_assert_eq!(best.coverage(case.candidates), coverage);
    }
}

/// More candidates than a block, so that lists grow over blocks.
#[test]
fn lists_over_several_blocks() {
    let device = Device::flex();
    let table = |name, rows| matrix(&device, name, rows, 8).cast(DType::F32);
    let (queries, candidates) = (table("queries", 300), table("candidates", 9001));
    let seen = IdLists::from_pairs(300, (0..300).map(|q| (q, q * 30))).unwrap();
    let best = top_k(queries.clone(), candidates.clone(), 7, |q| seen.of(q)).unwrap();
    let scores = queries.clone().matmul(candidates.clone().transpose());
    let scores: Vec<f32> = scores.into_data().try_to_vec().unwrap();
    for (q, row) in scores.chunks(9001).enumerate() {
        let mut ids: Vec<u32> = (0..9001).filter(|&e| e != q as u32 * 30).collect();
        ids.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
        let found: Vec<u32> = best.of(q).iter().map(|e| e.0).collect();
        assert_eq!(found, ids[..7], "query {q}");
    }
    assert!(best.coverage(9001) > 0.05 && best.coverage(9001) < 300.0 * 7.0 / 9001.0);
    // The same metrics by ranks and by lists.
    let targets = IdLists::from_pairs(300, (0..900).map(|i| (i % 300, i * 9 + 1))).unwrap();
    let ranking = RankingConfig::new().with_competing_targets();
    let ranks = ranking.rank(9001, &targets, |q| seen.of(q), dot_scores(queries, candidates));
    let (by_rank, by_list) = (ranks.unwrap().metrics(&[7]), best.metrics(&targets).unwrap());
    assert_eq!(by_rank.at(7), by_list);
}

#[test]
fn invalid_arguments() {
    let device = Device::flex();
    let zeros = |shape: [usize; 2]| Tensor::<2>::zeros(shape, &device);
    let text = |a, b, k| top_k(zeros(a), zeros(b), k, |_| &[]).unwrap_err().to_string();
    assert_eq!(text([1, 2], [3, 2], 0), "`k` must lie in 1.., got 0");
    assert_eq!(
        text([1, 2], [3, 4], 1),
        "`candidates`: expected 2 (the size of the embeddings of queries), got 4; give 2"
    );
    let none = top_k(zeros([2, 2]), zeros([0, 2]), 3, |_| &[]).unwrap();
    assert_eq!((none.of(0).len(), none.coverage(0)), (0, 0.0));
}
