//! Compares scores of links with scores of absent pairs, and draws absent pairs.

use std::collections::BTreeSet;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_data::NodePair;
use burn_gnn_models::{ModelError, average_precision, roc_auc};
use burn_gnn_ops::Stream;

use crate::pairs::link_graph::LinkGraph;

/// How well scores separate links from absent pairs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct LinkScores {
    /// Area under the ROC curve.
    pub auc: f64,
    /// Average precision.
    pub average_precision: f64,
}

/// Area under the ROC curve and average precision of the scores of links and of absent pairs.
///
/// # Errors
/// No links, no absent pairs, or a score that is NaN.
pub fn link_scores(links: &[f64], absent: &[f64]) -> Result<LinkScores, ModelError> {
    let rows = links.len() + absent.len();
    let truth: Vec<bool> = (0..rows).map(|i| i < links.len()).collect();
    let scores = || {
        let data = TensorData::new([links, absent].concat(), [rows]);
        Tensor::<1>::from_data(data, (&Device::flex(), DType::F64))
    };
    Ok(LinkScores {
        auc: roc_auc(scores(), &truth)?,
        average_precision: average_precision(scores(), &truth)?,
    })
}

/// Draws `count` distinct pairs of nodes that are not linked, smaller number first; all of them if the graph has fewer.
/// The same seed draws the same pairs.
///
/// # Cost
/// Pairs are drawn until enough are not linked. If `count` is more than half of the unlinked pairs, these are listed.
pub fn absent_pairs(graph: &LinkGraph, count: usize, seed: u64) -> Vec<NodePair> {
    let nodes = graph.num_nodes() as u64;
    let all = nodes * nodes.saturating_sub(1) / 2;
    let absent = all - graph.num_links() as u64;
    let count = count.min(usize::try_from(absent).unwrap_or(usize::MAX));
    let mut found = BTreeSet::new();
    let mut pairs = Vec::with_capacity(count);
    if count as u64 > absent / 2 {
        // Rejection would take long: draw an order of all absent pairs.
        let of = |a: u32| (a + 1..nodes as u32).map(move |b| [a, b]);
        let absent = |&[a, b]: &NodePair| !graph.contains(a, b);
        let mut all: Vec<NodePair> = (0..nodes as u32).flat_map(of).filter(absent).collect();
        let stream = Stream::new(seed, "order of absent pairs", 0);
        all.sort_by_cached_key(|&[a, b]| stream.words(u64::from(a) << 32 | u64::from(b), 0));
        all.truncate(count);
        return all;
    }
    let stream = Stream::new(seed, "absent pairs", 0);
    for i in 0.. {
        if pairs.len() == count {
            break;
        }
        let draw = |column| (stream.uniform(i, column) * nodes as f64) as u32;
        let (a, b) = (draw(0), draw(1));
        let pair = [a.min(b), a.max(b)];
        if a != b && !graph.contains(a, b) && found.insert(pair) {
            pairs.push(pair);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_pairs_are_distinct_and_not_linked() {
        let graph = LinkGraph::new(6, &[[0, 1], [2, 3], [4, 5]]).unwrap();
        for count in [3, 11, 12, 40] {
            let pairs = absent_pairs(&graph, count, 7);
            assert_eq!(pairs.len(), count.min(12));
            assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
            assert!(pairs.iter().all(|&[a, b]| a < b && !graph.contains(a, b)));
            assert_eq!(pairs, absent_pairs(&graph, count, 7));
        }
    }

    #[test]
    fn scores_of_links_and_absent_pairs_are_compared() {
        let scores = link_scores(&[2.0, 1.0], &[1.0, 0.0]).unwrap();
        assert_eq!(scores.auc, 0.875);
        assert!(link_scores(&[], &[1.0]).is_err());
    }
}
