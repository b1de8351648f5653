//! Measures exact ranking and top k of many queries against many candidates: time and peak memory.

use anyhow::{Result, ensure};
use burn::tensor::{Tensor, TensorData};
use burn_gnn::links::{IdLists, RankingConfig, dot_scores, top_k};
use serde_json::json;

use super::draw;
use crate::measure::{Entry, Times, device, emit, memory_mb};

/// Length of the list of excluded answers of a query, and of a list of the best candidates.
const EXCLUDED: u64 = 5;
const K: usize = 10;

/// Ranks one target per query among all candidates, filtered, and selects the best candidates of every query.
pub(crate) fn run(queries: usize, candidates: usize, d: usize) -> Result<()> {
    ensure!(queries > 0 && candidates > 100, "ranking: expected queries, and over 100 candidates");
    let table = |column: u64, rows: usize| {
        let value = |i: u64| draw(i, column, 2048) as f32 / 1024.0 - 1.0;
        let values: Vec<f32> = (0..(rows * d) as u64).map(value).collect();
        Tensor::<2>::from_data(TensorData::new(values, [rows, d]), &device())
    };
    let (of_queries, of_candidates) = (table(0, queries), table(1, candidates));
    let n = candidates as u64;
    let targets = IdLists::single((0..queries as u64).map(|q| draw(q, 2, n) as u32).collect());
    let excluded = (0..queries as u64).flat_map(|q| (0..EXCLUDED).map(move |i| (q, i)));
    let excluded = excluded.map(|(q, i)| (q as u32, draw(q * EXCLUDED + i, 3, n) as u32));
    let excluded = IdLists::from_pairs(queries, excluded)?;
    let graph = format!("{queries}x{candidates}");
    let entry = |op| Entry { group: "ranking", graph: &graph, op };
    let put = |op, times: &Times, more: (&str, f64)| {
        let (now, peak) = memory_mb();
        let of = [
            ("dim", json!(d)),
            ("resident_mb", json!(now.round())),
            ("peak_mb", json!(peak.round())),
            (more.0, json!((more.1 * 1e6).round() / 1e6)),
        ];
        emit(entry(op), Some(times), &of);
    };
    put("tables", &Times::once(0.0), ("bytes", (4 * d * (queries + candidates)) as f64));

    let mut ranks = None;
    let times = Times::one(|| {
        let score = dot_scores(of_queries.clone(), of_candidates.clone());
        let config = RankingConfig::new();
        ranks = Some(config.rank(candidates, &targets, |q| excluded.of(q), score));
    });
    if let Some(ranks) = ranks {
        put("rank", &times, ("mrr", ranks?.metrics(&[]).mrr));
    }

    let mut best = None;
    let times = Times::one(|| {
        best = Some(top_k(of_queries.clone(), of_candidates.clone(), K, |q| excluded.of(q)));
    });
    if let Some(best) = best {
        put("top_k", &times, ("coverage", best?.coverage(candidates)));
    }
    Ok(())
}
