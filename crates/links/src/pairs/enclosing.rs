//! Extracts the subgraph around a pair of nodes, with the labels of SEAL.

use burn_gnn_data::NodePair;
use burn_gnn_graph::{GraphError, UNREACHED, double_radius_label};
use burn_gnn_ops::Stream;
use rayon::prelude::*;

use crate::pairs::heuristics::sum_over_common;
use crate::pairs::link_graph::LinkGraph;

/// Number of features of a pair.
pub(super) const PAIR_FEATURES: usize = 5;

/// The subgraph around a pair of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct EnclosingSubgraph {
    /// Nodes of the graph: the pair first, then nodes by distance.
    pub nodes: Vec<u32>,
    /// [`double_radius_label`] of each node: distances to one node of the pair are measured without the other one.
    pub labels: Vec<u32>,
    /// Links between these nodes by position, each once; never the link of the pair.
    pub links: Vec<NodePair>,
    /// Number of neighbours of each node in the whole graph, without the link of the pair.
    pub degrees: Vec<u32>,
    /// Logarithms of one plus: common neighbours, Adamic-Adar, ten times resource allocation, and the smaller and larger
    /// degree of the pair.
    pub pair_features: [f32; 5],
}

/// Settings for subgraphs around pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnclosingSubgraphs {
    /// Largest distance from one of the two nodes.
    pub hops: usize,
    /// Largest number of nodes that are added per hop. If there are more, a random part is taken, which depends on the seed
    /// and the pair only.
    pub max_nodes_per_hop: usize,
    /// Seed of this choice.
    pub seed: u64,
}

impl EnclosingSubgraphs {
    /// Extracts the subgraph around each pair, in parallel. If the pair is linked, this link is left out.
    ///
    /// # Errors
    /// A node of a pair is not in the graph, or a pair contains one node twice.
    pub fn extract(
        &self,
        graph: &LinkGraph,
        pairs: &[NodePair],
    ) -> Result<Vec<EnclosingSubgraph>, GraphError> {
        graph.check(pairs)?;
        if let Some(pair) = pairs.iter().find(|[a, b]| a == b) {
            return Err(GraphError::IdOutOfRange {
                what: "second node of a pair, which must differ from the first".into(),
                id: u64::from(pair[1]),
                bound: u64::from(pair[1]),
            });
        }
        let new = || vec![u32::MAX; graph.num_nodes()];
        let one = |position: &mut Vec<u32>, &pair: &NodePair| self.around(graph, pair, position);
        Ok(pairs.par_iter().with_min_len(16).map_init(new, one).collect())
    }

    fn around(&self, graph: &LinkGraph, pair: NodePair, position: &mut [u32]) -> EnclosingSubgraph {
        let [low, high] = [pair[0].min(pair[1]), pair[0].max(pair[1])].map(u64::from);
        let mut nodes = pair.to_vec();
        position[pair[0] as usize] = 0;
        position[pair[1] as usize] = 1;
        let mut first = 0;
        for hop in 0..self.hops as u64 {
            let end = nodes.len();
            let mut added = Vec::new();
            for &v in &nodes[first..end] {
                for &u in graph.neighbors(v) {
                    if position[u as usize] == u32::MAX {
                        position[u as usize] = 0;
                        added.push(u);
                    }
                }
            }
            if added.len() > self.max_nodes_per_hop {
                let stream = Stream::new(self.seed, "nodes of a subgraph", hop);
                let key = |v: u32| stream.words(low << 32 | high, u64::from(v));
                added.sort_by_cached_key(|&v| key(v));
                for v in added.drain(self.max_nodes_per_hop..) {
                    position[v as usize] = u32::MAX;
                }
            }
            added.sort_unstable();
            for (i, &v) in (end as u32..).zip(&added) {
                position[v as usize] = i;
            }
            nodes.extend(added);
            first = end;
        }
        let mut links = Vec::new();
        for (i, &v) in (0..).zip(&nodes) {
            for &u in graph.neighbors(v) {
                let j = position[u as usize];
                if j != u32::MAX && i < j && (i, j) != (0, 1) {
                    links.push([i, j]);
                }
            }
        }
        for &v in &nodes {
            position[v as usize] = u32::MAX;
        }
        let labels = labels(nodes.len(), &links);
        let mut degrees: Vec<u32> = nodes.iter().map(|&v| graph.degree(v) as u32).collect();
        if graph.contains(pair[0], pair[1]) {
            degrees[0] -= 1;
            degrees[1] -= 1;
        }
        let degree = |v| graph.degree(v) as f64;
        let features: [f64; PAIR_FEATURES] = [
            sum_over_common(graph, pair, |_| 1.0),
            sum_over_common(graph, pair, |v| 1.0 / degree(v).max(2.0).ln()),
            10.0 * sum_over_common(graph, pair, |v| 1.0 / degree(v)),
            f64::from(degrees[0].min(degrees[1])),
            f64::from(degrees[0].max(degrees[1])),
        ];
        let pair_features = features.map(|x| x.ln_1p() as f32);
        EnclosingSubgraph { nodes, labels, links, degrees, pair_features }
    }
}

/// Labels of the nodes of a subgraph whose pair is 0 and 1.
fn labels(nodes: usize, links: &[NodePair]) -> Vec<u32> {
    let mut neighbors = vec![Vec::new(); nodes];
    for &[a, b] in links {
        neighbors[a as usize].push(b);
        neighbors[b as usize].push(a);
    }
    let distances = |from: u32, without: u32| {
        let mut distance = vec![UNREACHED; nodes];
        distance[from as usize] = 0;
        let mut order = vec![from];
        let mut next = 0;
        while next < order.len() {
            let v = order[next];
            next += 1;
            for &u in &neighbors[v as usize] {
                if u != without && distance[u as usize] == UNREACHED {
                    distance[u as usize] = distance[v as usize] + 1;
                    order.push(u);
                }
            }
        }
        distance
    };
    let (a, b) = (distances(0, 1), distances(1, 0));
    let label =
        |(v, (a, b)): (usize, (u32, u32))| if v < 2 { 1 } else { double_radius_label(a, b) };
    a.into_iter().zip(b).enumerate().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hops: usize) -> EnclosingSubgraphs {
        EnclosingSubgraphs { hops, max_nodes_per_hop: 100, seed: 0 }
    }

    #[test]
    fn the_link_of_the_pair_is_left_out() {
        // A square with one diagonal: 0-1, 1-2, 2-3, 3-0, 0-2.
        let graph = LinkGraph::new(5, &[[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]).unwrap();
        let one = settings(1).extract(&graph, &[[0, 2], [4, 1]]).unwrap();
        assert_eq!(one[0].nodes, [0, 2, 1, 3]);
        // Nodes 1 and 3 are one link from both.
        assert_eq!(one[0].labels, [1, 1, 2, 2]);
        assert_eq!(one[0].links, [[0, 2], [0, 3], [1, 2], [1, 3]]);
        // The link of the pair does not count as a neighbour of either.
        assert_eq!(one[0].degrees, [2, 2, 2, 2]);
        assert_eq!(one[0].pair_features[0], 2f32.ln_1p());
        // Node 4 has no neighbour, so labels of other nodes are 0.
        assert_eq!((&*one[1].nodes, &*one[1].labels), (&[4, 1, 0, 2][..], &[1, 1, 0, 0][..]));
    }

    #[test]
    fn hops_and_nodes_are_limited() {
        let links: Vec<NodePair> = (1..50).map(|v| [0, v]).chain([[1, 50], [50, 51]]).collect();
        let graph = LinkGraph::new(52, &links).unwrap();
        let few = EnclosingSubgraphs { max_nodes_per_hop: 10, ..settings(1) };
        let [few] = &few.extract(&graph, &[[0, 50]]).unwrap()[..] else { panic!("one subgraph") };
        assert_eq!(few.nodes.len(), 12);
        // Neither the position in the list nor the direction of a pair changes the choice.
        let limited = EnclosingSubgraphs { max_nodes_per_hop: 10, ..settings(1) };
        let many = limited.extract(&graph, &[[0, 51], [0, 50], [50, 0]]).unwrap();
        assert_eq!(&many[1], few);
        assert_eq!(many[2].nodes[2..], few.nodes[2..]);
        assert_ne!(many[0].nodes[2..], few.nodes[2..]);
        let far = settings(2).extract(&graph, &[[1, 51]]).unwrap();
        assert_eq!(far[0].nodes.len(), 52);
        assert!(settings(1).extract(&graph, &[[3, 3]]).is_err());
    }
}
