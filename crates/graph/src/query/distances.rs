//! Shortest distances, and the node labels of SEAL.

use crate::graph::Graph;
use crate::subgraph::induced::Side;
use burn_gnn_structure::{GraphError, NodeKey};

/// Distance of a node that cannot be reached.
pub const UNREACHED: u32 = u32::MAX;

/// The label of a node at distances `a` and `b` from the two endpoints of a pair: `1 + min(a, b) + (d/2) · (d/2 + d%2 - 1)`
/// with `d = a + b`. It is 1 for an endpoint, and 0 if an endpoint cannot be reached (double-radius node labeling: Zhang and
/// Chen, "Link prediction based on graph neural networks", NeurIPS 2018).
///
/// ```
/// use burn_gnn_graph::{UNREACHED, double_radius_label};
/// assert_eq!([(0, 4), (1, 1), (1, 2), (1, 3), (2, 2)].map(|(a, b)| double_radius_label(a, b)), [1, 2, 3, 4, 5]);
/// assert_eq!(double_radius_label(1, UNREACHED), 0);
/// ```
pub fn double_radius_label(a: u32, b: u32) -> u32 {
    if a == 0 || b == 0 {
        return 1;
    }
    if a == UNREACHED || b == UNREACHED {
        return 0;
    }
    // Larger distances do not occur, and would overflow the product.
    let d = u64::from(a) + u64::from(b);
    let label = 1 + u64::from(a.min(b)) + (d / 2) * (d / 2 + d % 2 - 1);
    u32::try_from(label).unwrap_or(UNREACHED - 1)
}

impl Graph {
    /// Shortest distances from a node to every node, along edges of all types in both directions, or [`UNREACHED`]. Per node
    /// type in schema order. Paths do not pass through `avoided`; if that is `from` itself, no node is reached.
    ///
    /// ```
    /// use burn_gnn_graph::{Graph, UNREACHED};
    /// let g = Graph::homogeneous(5, vec![0, 2, 2], vec![1, 1, 3])?; // 0 - 1 - 2 - 3 and 4
    /// assert_eq!(g.distances(("_N", 0), None)?, [[0, 1, 2, 3, UNREACHED]]);
    /// assert_eq!(g.distances(("_N", 0), Some(("_N", 2)))?, [[0, 1, UNREACHED, UNREACHED, UNREACHED]]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V · edge types + E)`; the first call builds both layouts of every relation.
    pub fn distances<N: NodeKey>(
        &self,
        from: (N, u32),
        avoided: Option<(N, u32)>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        let avoided =
            avoided.map(|v| self.node_selection("avoided", [(v.0, [v.1])])).transpose()?;
        self.distances_along(&[Side::In, Side::Out], from, avoided.as_deref())
    }

    /// Shortest distances from a node to every node, along the direction of edges of all types, or [`UNREACHED`] (-1 in DGL's
    /// `shortest_dist`). Per node type in schema order. For distances to a node, use the [`reverse`](Self::reverse) graph.
    ///
    /// ```
    /// use burn_gnn_graph::{Graph, UNREACHED};
    /// let g = Graph::homogeneous(4, vec![0, 1, 2, 0], vec![1, 2, 0, 2])?;
    /// assert_eq!(g.shortest_dist(("_N", 1))?, [[2, 0, 1, UNREACHED]]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V · edge types + E)`; the first call builds CSR of every relation.
    pub fn shortest_dist(&self, from: (impl NodeKey, u32)) -> Result<Vec<Vec<u32>>, GraphError> {
        self.distances_along(&[Side::Out], from, None)
    }

    /// Breadth-first search along the given directions, without the nodes in `avoided` (lists per node type).
    fn distances_along(
        &self,
        sides: &[Side],
        from: (impl NodeKey, u32),
        avoided: Option<&[Vec<u32>]>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        let mut distance: Vec<Vec<u32>> =
            self.node_counts().iter().map(|&n| vec![UNREACHED; n]).collect();
        let starts = self.node_selection("from", [(from.0, [from.1])])?;
        let is_avoided = |t: usize, v: u32| avoided.is_some_and(|a| a[t].contains(&v));
        let mut frontier: Vec<(usize, u32)> = starts
            .iter()
            .enumerate()
            .flat_map(|(t, ids)| ids.iter().map(move |&v| (t, v)))
            .collect();
        frontier.retain(|&(t, v)| !is_avoided(t, v));
        frontier.iter().for_each(|&(t, v)| distance[t][v as usize] = 0);
        for step in 1.. {
            let mut next = vec![];
            for &(t, v) in &frontier {
                for (e, side) in (0..self.relations().len())
                    .flat_map(|e| sides.iter().map(move |side| (e, side)))
                {
                    let (near, far) = side.endpoints(self, e);
                    if near != t {
                        continue;
                    }
                    let layout = side.layout(self, e)?;
                    for &u in &layout.indices()[layout.row(v as usize)] {
                        if distance[far][u as usize] == UNREACHED && !is_avoided(far, u) {
                            distance[far][u as usize] = step;
                            next.push((far, u));
                        }
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            frontier = next;
        }
        Ok(distance)
    }

    /// [`double_radius_label`] of every node for a pair of nodes, per node type in schema order. For a subgraph around the pair
    /// without the edge between them, such as `NeighborSampler::induced` makes. The distance from one endpoint is computed
    /// without the other. If both endpoints are the same node, all other labels are 0.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(4, vec![0, 1, 1], vec![1, 2, 3])?; // 0 - 1 - 2, 1 - 3
    /// assert_eq!(g.double_radius_labels(("_N", 0), ("_N", 2))?, [[1, 2, 1, 5]]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`distances`](Self::distances).
    pub fn double_radius_labels(
        &self,
        a: (impl NodeKey, u32),
        b: (impl NodeKey, u32),
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        let [a, b] = [(self.schema().ntype(a.0)?, a.1), (self.schema().ntype(b.0)?, b.1)];
        let (of_a, of_b) = (self.distances(a, Some(b))?, self.distances(b, Some(a))?);
        let mut labels: Vec<Vec<u32>> = of_a
            .iter()
            .zip(&of_b)
            .map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| double_radius_label(a, b)).collect())
            .collect();
        for (t, v) in [a, b] {
            labels[t][v as usize] = 1;
        }
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_structure::Relation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_by_all_pairs(edges in proptest::collection::vec((0u32..8, 0u32..5), 0..12), loops in proptest::collection::vec((0u32..8, 0u32..8), 0..8), a in 0u32..8, b in 0u32..5) {
            // Nodes 0..8 are of one type, 8..13 of another.
            let g = Graph::builder().nodes("x", 8).nodes("y", 5)
                .edges(("x", "r", "y"), edges.iter().map(|e| e.0).collect(), edges.iter().map(|e| e.1).collect())
                .edges(("x", "s", "x"), loops.iter().map(|e| e.0).collect(), loops.iter().map(|e| e.1).collect())
                .build().unwrap();
            let pairs: Vec<(usize, usize)> = edges.iter().map(|e| (e.0 as usize, 8 + e.1 as usize)).chain(loops.iter().map(|e| (e.0 as usize, e.1 as usize))).collect();
            let all = |without: Option<usize>| {
                let mut d = [[u64::from(UNREACHED); 13]; 13];
                (0..13).filter(|&i| Some(i) != without).for_each(|i| d[i][i] = 0);
                for &(u, v) in pairs.iter().filter(|p| u_v_free(**p, without)) {
                    if u != v { d[u][v] = 1; d[v][u] = 1; }
                }
                for k in 0..13 { for i in 0..13 { for j in 0..13 { d[i][j] = d[i][j].min(d[i][k] + d[k][j]); } } }
                d
            };
            let flat = |d: Vec<Vec<u32>>| d.concat().into_iter().map(u64::from).collect::<Vec<_>>();
            prop_assert_eq!(flat(g.distances(("x", a), None).unwrap()), all(None)[a as usize].to_vec());
            let (end_a, end_b) = (a as usize, 8 + b as usize);
            let (of_a, of_b) = (all(Some(end_b))[end_a], all(Some(end_a))[end_b]);
            prop_assert_eq!(flat(g.distances(("x", a), Some(("y", b))).unwrap()), of_a.to_vec());
            let expected: Vec<u64> = (0..13).map(|i| match (of_a[i], of_b[i]) {
                _ if i == end_a || i == end_b => 1,
                (p, q) if p.max(q) == u64::from(UNREACHED) => 0,
                (p, q) => { let d = p + q; 1 + p.min(q) + (d / 2) * (d / 2 + d % 2 - 1) }
            }).collect();
            prop_assert_eq!(flat(g.double_radius_labels(("x", a), ("y", b)).unwrap()), expected);
        }
    }

    proptest! {
        #[test]
        fn directed_as_by_all_pairs(to in prop::collection::vec((0u32..6, 0u32..4), 0..12), back in prop::collection::vec((0u32..4, 0u32..6), 0..12), from in 0u32..6) {
            // Nodes 0..6 are of one type, 6..10 of another.
            let g = Graph::builder().nodes("x", 6).nodes("y", 4)
                .edges(("x", "r", "y"), to.iter().map(|e| e.0).collect(), to.iter().map(|e| e.1).collect())
                .edges(("y", "s", "x"), back.iter().map(|e| e.0).collect(), back.iter().map(|e| e.1).collect())
                .build().unwrap();
            let mut d = [[u64::from(UNREACHED); 10]; 10];
            (0..10).for_each(|i| d[i][i] = 0);
            to.iter().for_each(|e| d[e.0 as usize][6 + e.1 as usize] = 1);
            back.iter().for_each(|e| d[6 + e.0 as usize][e.1 as usize] = 1);
            for k in 0..10 { for i in 0..10 { for j in 0..10 { d[i][j] = d[i][j].min(d[i][k] + d[k][j]); } } }
            let found: Vec<u64> = g.shortest_dist(("x", from)).unwrap().concat().into_iter().map(u64::from).collect();
            prop_assert_eq!(found, d[from as usize].to_vec());
        }
    }

    fn relation(edges: &[(u32, u32)]) -> Relation {
        let (src, dst) = edges.iter().copied().unzip();
        Relation::from_coo(9, 9, src, dst).unwrap()
    }

    proptest! {
        /// Fronts of a breadth-first traversal.
        #[test]
        fn fronts_are_distances(edges in prop::collection::vec((0u32..9, 0u32..9), 0..20), source in 0u32..9, other in 0u32..9) {
            let r = relation(&edges);
            let g = Graph::builder().relation(("x", "r", "x"), r.clone()).build().unwrap();
            let from = |v| g.shortest_dist(("x", v)).unwrap().swap_remove(0);
            let nearest: Vec<u32> = from(source).into_iter().zip(from(other)).map(|(a, b)| a.min(b)).collect();
            let nodes = r.bfs_nodes(&[source, other]).unwrap();
            for v in 0..9u32 {
                let front = nodes.iter().position(|front| front.contains(&v)).map_or(UNREACHED, |f| f as u32);
                prop_assert_eq!(front, nearest[v as usize]);
            }
            prop_assert_eq!(nodes.iter().flatten().count(), nearest.iter().filter(|&&d| d != UNREACHED).count());
            // Each edge of the tree leads from the front before to its node.
            let tree = r.bfs_edges(&[source, other]).unwrap();
            prop_assert_eq!(tree.len(), nodes.len() - 1);
            for (i, front) in tree.iter().enumerate() {
                prop_assert_eq!(front.iter().map(|&e| edges[e as usize].1).collect::<Vec<_>>(), nodes[i + 1].clone());
                prop_assert!(front.iter().all(|&e| nodes[i].contains(&edges[e as usize].0)));
            }
            let back: Vec<(u32, u32)> = edges.iter().map(|&(u, v)| (v, u)).collect();
            prop_assert_eq!(r.reverse().bfs_nodes(&[source]).unwrap(), relation(&back).bfs_nodes(&[source]).unwrap());
        }
    }

    fn u_v_free((u, v): (usize, usize), without: Option<usize>) -> bool {
        Some(u) != without && Some(v) != without
    }

    #[test]
    fn bad_nodes() {
        let g = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
        assert!(g.distances(("_N", 2), None).unwrap_err().to_string().contains('2'));
        assert!(
            g.distances(("other", 0), None).is_err()
                && g.double_radius_labels(("_N", 0), ("_N", 9)).is_err()
        );
    }
}
