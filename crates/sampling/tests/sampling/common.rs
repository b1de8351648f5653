//! Graphs to sample from, and the test for distributions.

use burn_gnn_graph::{Graph, Stream};
use burn_gnn_sampling::{LoadedBatch, MiniBatch};

/// A graph of one type with skewed degrees: node `v` is met about like `1 / v`.
pub(crate) fn skewed(nodes: usize, edges: usize, seed: u64) -> Graph {
    let s = Stream::new(seed, "skewed", 0);
    let skew = |x: f64| ((nodes as f64).powf(x) - 1.0) as u32 % nodes as u32;
    let src = (0..edges as u64).map(|e| skew(s.uniform(e, 0))).collect();
    let dst =
        (0..edges as u64).map(|e| (s.uniform(e, 1) * nodes as f64) as u32 % nodes as u32).collect();
    Graph::homogeneous(nodes, src, dst).unwrap()
}

/// Two node types, three relations, one of them between nodes of one type.
pub(crate) fn typed(papers: usize, authors: usize, seed: u64) -> Graph {
    let s = Stream::new(seed, "typed", 0);
    let ids = |edges: usize, column: u64, n: usize| -> Vec<u32> {
        (0..edges as u64).map(|e| (s.uniform(e, column).powi(2) * n as f64) as u32).collect()
    };
    let (cites, writes) = (papers * 6, papers * 3);
    let (w, p) = (ids(writes, 2, authors), ids(writes, 3, papers));
    Graph::builder()
        .nodes("paper", papers)
        .nodes("author", authors)
        .edges(("paper", "cites", "paper"), ids(cites, 0, papers), ids(cites, 1, papers))
        .edges(("author", "writes", "paper"), w.clone(), p.clone())
        .edges(("paper", "written", "author"), p, w)
        .build()
        .unwrap()
}

/// `leaves` edges into node 0, from nodes `1..=leaves`.
pub(crate) fn star(leaves: usize) -> Graph {
    Graph::homogeneous(leaves + 1, (1..=leaves as u32).collect(), vec![0; leaves]).unwrap()
}

/// `Σ (observed - expected)² / expected`.
pub(crate) fn chi_square(observed: &[f64], expected: &[f64]) -> f64 {
    observed.iter().zip(expected).map(|(o, e)| (o - e).powi(2) / e).sum()
}

/// The 99.99 % point of the chi-square distribution (Wilson and Hilferty 1931), so that a right sampler fails one
/// test in ten thousand, and as seeds are fixed none that has passed once.
pub(crate) fn limit(degrees: usize) -> f64 {
    let (k, z) = (degrees as f64, 3.719);
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

/// All that a batch consists of, to compare.
pub(crate) fn content(batch: &MiniBatch) -> Vec<Vec<u64>> {
    let wide = |ids: &[u32]| ids.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
    let mut all: Vec<Vec<u64>> = batch.seeds.iter().map(|s| wide(s)).collect();
    for b in &batch.blocks {
        all.extend((0..b.schema().ntypes().len()).map(|t| b.original_ids(t).to_vec()));
        all.extend((0..b.schema().ntypes().len()).map(|t| vec![b.dst_nodes(t).len() as u64]));
        all.extend((0..b.relations().len()).map(|t| b.original_edge_ids(t).to_vec()));
        all.extend(b.relations().iter().flat_map(|r| [wide(r.src()), wide(r.dst())]));
    }
    all
}

/// Own seeds of the first type.
pub(crate) fn own<B>(b: &LoadedBatch<B>) -> Vec<u32> {
    b.own_seeds().ids()[0].clone()
}
