//! Scores pairs of nodes without learning: common neighbours, degrees, and paths.

use std::collections::BTreeMap;

use burn_gnn_data::NodePair;
use burn_gnn_graph::GraphError;
use rayon::prelude::*;

use crate::pairs::link_graph::LinkGraph;

/// Sums `weight` over the common neighbours of a pair.
pub(super) fn sum_over_common(
    graph: &LinkGraph,
    [a, b]: NodePair,
    weight: impl Fn(u32) -> f64,
) -> f64 {
    let (mut a, mut b) = (graph.neighbors(a), graph.neighbors(b));
    if a.len() > b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    let mut sum = 0.0;
    // A binary search in a long list is cheaper than a walk through it.
    if a.len() * 16 < b.len() {
        for &v in a {
            if b.binary_search(&v).is_ok() {
                sum += weight(v);
            }
        }
        return sum;
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                sum += weight(a[i]);
                i += 1;
                j += 1;
            }
        }
    }
    sum
}

/// Sums `weight` over the common neighbours of each pair.
fn over_common(
    graph: &LinkGraph,
    pairs: &[NodePair],
    weight: impl Fn(u32) -> f64 + Sync,
) -> Result<Vec<f64>, GraphError> {
    graph.check(pairs)?;
    let score = |&pair: &NodePair| sum_over_common(graph, pair, &weight);
    Ok(pairs.par_iter().with_min_len(64).map(score).collect())
}

/// Number of common neighbours of each pair, `|N(a) ∩ N(b)|`.
///
/// # Errors
/// A node of a pair is not in the graph.
///
/// # Cost
/// `O(deg(a) + deg(b))` per pair, in parallel.
///
/// ```
/// use burn_gnn_links::{LinkGraph, adamic_adar, common_neighbors, resource_allocation};
/// let graph = LinkGraph::new(4, &[[0, 1], [1, 2], [0, 3], [3, 2]])?;
/// assert_eq!(common_neighbors(&graph, &[[0, 2], [0, 1]])?, [2.0, 0.0]);
/// assert_eq!(resource_allocation(&graph, &[[0, 2]])?, [1.0]);
/// assert_eq!(adamic_adar(&graph, &[[0, 2]])?, [2.0 / 2f64.ln()]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub fn common_neighbors(graph: &LinkGraph, pairs: &[NodePair]) -> Result<Vec<f64>, GraphError> {
    over_common(graph, pairs, |_| 1.0)
}

/// Adamic-Adar index of each pair: `Σ over common neighbours v of 1 / ln deg(v)`. Errors and cost are those of
/// [`common_neighbors`].
///
/// # Errors
/// A node of a pair is not in the graph.
///
/// # Source
/// Adamic and Adar, "Friends and neighbors on the web", Social Networks 2003.
pub fn adamic_adar(graph: &LinkGraph, pairs: &[NodePair]) -> Result<Vec<f64>, GraphError> {
    // A common neighbour has a degree of at least 2, except in a pair of a node with itself.
    over_common(graph, pairs, |v| 1.0 / (graph.degree(v).max(2) as f64).ln())
}

/// Resource allocation index of each pair: `Σ over common neighbours v of 1 / deg(v)`.
///
/// # Errors
/// A node of a pair is not in the graph.
///
/// # Source
/// Zhou, Lü, Zhang, "Predicting missing links via local information", European Physical Journal B 2009.
pub fn resource_allocation(graph: &LinkGraph, pairs: &[NodePair]) -> Result<Vec<f64>, GraphError> {
    over_common(graph, pairs, |v| 1.0 / graph.degree(v) as f64)
}

/// Preferential attachment of each pair: the product of the degrees.
///
/// # Errors
/// A node of a pair is not in the graph.
pub fn preferential_attachment(
    graph: &LinkGraph,
    pairs: &[NodePair],
) -> Result<Vec<f64>, GraphError> {
    graph.check(pairs)?;
    Ok(pairs.iter().map(|&[a, b]| (graph.degree(a) * graph.degree(b)) as f64).collect())
}

/// Katz index of each pair, truncated: `Σ over l in 1..=max_length of beta^l · (number of walks of length l)`.
///
/// # Errors
/// A node of a pair is not in the graph.
///
/// # Cost
/// `O(max_length · links)` for each distinct first node, in parallel; memory for one number per node and thread.
///
/// # Source
/// Katz, "A new status index derived from sociometric analysis", Psychometrika 1953.
///
/// ```
/// use burn_gnn_links::{LinkGraph, katz};
/// let graph = LinkGraph::new(3, &[[0, 1], [1, 2]])?;
/// // One walk of two links from 0 to 2; from 0 to 1 one walk of one link and two of three.
/// assert_eq!(katz(&graph, &[[0, 2], [0, 1]], 0.5, 3)?, [0.25, 0.5 + 2.0 * 0.125]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub fn katz(
    graph: &LinkGraph,
    pairs: &[NodePair],
    beta: f64,
    max_length: usize,
) -> Result<Vec<f64>, GraphError> {
    graph.check(pairs)?;
    let mut by_first: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, pair) in pairs.iter().enumerate() {
        by_first.entry(pair[0]).or_default().push(i);
    }
    let groups: Vec<(u32, Vec<usize>)> = by_first.into_iter().collect();
    let nodes = graph.num_nodes();
    let of_group = |(first, of): &(u32, Vec<usize>)| {
        let (mut walks, mut next) = (vec![0.0; nodes], vec![0.0; nodes]);
        let mut sums = vec![0.0; of.len()];
        walks[*first as usize] = 1.0;
        let mut factor = 1.0;
        for _ in 0..max_length {
            factor *= beta;
            for (v, sum) in (0..).zip(&mut next) {
                *sum = graph.neighbors(v).iter().map(|&u| walks[u as usize]).sum();
            }
            std::mem::swap(&mut walks, &mut next);
            for (sum, &i) in sums.iter_mut().zip(of) {
                *sum += factor * walks[pairs[i][1] as usize];
            }
        }
        sums
    };
    let sums: Vec<Vec<f64>> = groups.par_iter().map(of_group).collect();
    let mut scores = vec![0.0; pairs.len()];
    for ((_, of), sums) in groups.iter().zip(sums) {
        for (&i, sum) in of.iter().zip(sums) {
            scores[i] = sum;
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A star with 100 leaves, and a triangle of three leaves.
    fn star() -> LinkGraph {
        let mut links: Vec<NodePair> = (1..=100).map(|v| [0, v]).collect();
        links.extend([[1, 2], [2, 3], [1, 3]]);
        LinkGraph::new(101, &links).unwrap()
    }

    #[test]
    fn long_and_short_lists_have_the_same_intersection() {
        let graph = star();
        // (0, 1): common neighbours 2 and 3; node 0 has 100 neighbours, node 1 has 3.
        assert_eq!(
            common_neighbors(&graph, &[[0, 1], [1, 0], [1, 2], [4, 5]]).unwrap(),
            [2.0, 2.0, 2.0, 1.0]
        );
        let allocation = resource_allocation(&graph, &[[1, 2], [4, 5]]).unwrap();
        assert_eq!(allocation, [1.0 / 100.0 + 1.0 / 3.0, 1.0 / 100.0]);
        assert_eq!(preferential_attachment(&graph, &[[0, 1], [4, 5]]).unwrap(), [300.0, 1.0]);
    }

    #[test]
    fn unknown_nodes_are_errors() {
        let graph = star();
        for result in [
            common_neighbors(&graph, &[[0, 101]]),
            preferential_attachment(&graph, &[[101, 0]]),
            katz(&graph, &[[101, 0]], 0.1, 2),
        ] {
            let e = result.unwrap_err();
            assert!(matches!(e, GraphError::IdOutOfRange { id: 101, bound: 101, .. }), "{e}");
        }
        assert!(LinkGraph::new(2, &[[0, 2]]).is_err());
    }
}
