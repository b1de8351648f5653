//! Breadth-first, depth-first and topological traversal of a relation.

use crate::error::GraphError;
use crate::error::graph_error::UNNAMED;
use crate::relation::Relation;
use crate::relation::checks::check_nodes;

/// The label of an edge in a depth-first traversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DfsLabel {
    /// The edge leads to a node that was not visited yet.
    Forward,
    /// The traversal returns over the edge, after it has visited everything below. Each `Forward` edge appears once more
    /// with this label.
    Reverse,
    /// The edge leads to a node that was visited already.
    NonTree,
}

impl Relation {
    /// Breadth-first traversal: nodes by their distance from `sources`. Front 0 is the sources; front `i + 1` is every
    /// destination of an edge out of front `i` that is in no earlier front. To traverse edges backwards, call it on
    /// [`reverse`](Self::reverse). It corresponds to DGL's `bfs_nodes_generator`.
    ///
    /// The nodes of a front are ordered by the position of their predecessor in the previous front, then by edge id.
    /// Duplicate sources count once.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let r = Relation::from_coo(6, 6, vec![0, 1, 1, 2, 2, 3], vec![1, 2, 3, 3, 4, 5])?;
    /// assert_eq!(r.bfs_nodes(&[0])?, [vec![0], vec![1], vec![2, 3], vec![4, 5]]);
    /// assert_eq!(r.bfs_edges(&[0])?, [vec![0], vec![1, 2], vec![4, 5]]);
    /// assert_eq!(r.reverse().bfs_nodes(&[3])?, [vec![3], vec![1, 2], vec![0]]);
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::Bipartite`] if the numbers of sources and destinations differ; a source is out of range.
    ///
    /// # Cost
    /// `O(V + out-edges of the visited nodes)`, and CSR if it is not built yet.
    pub fn bfs_nodes(&self, sources: &[u32]) -> Result<Vec<Vec<u32>>, GraphError> {
        Ok(map_steps(self.breadth_first(sources)?, |(node, _)| node))
    }

    /// The edges by which [`bfs_nodes`](Self::bfs_nodes) reaches each node of the fronts after the first. They form one
    /// tree per source, and can be passed to `prop_edges`. It corresponds to DGL's `bfs_edges_generator`.
    ///
    /// # Errors
    /// As [`bfs_nodes`](Self::bfs_nodes).
    pub fn bfs_edges(&self, sources: &[u32]) -> Result<Vec<Vec<u32>>, GraphError> {
        Ok(map_steps(self.breadth_first(sources)?.into_iter().skip(1), |(_, edge)| edge))
    }

    /// Fronts of nodes, each with the edge by which it was reached.
    fn breadth_first(&self, sources: &[u32]) -> Result<Vec<Vec<(u32, u32)>>, GraphError> {
        self.check_square("breadth-first traversal")?;
        check_nodes("sources", sources, self.num_src())?;
        let csr = self.csr();
        let mut visited = vec![false; self.num_src()];
        let mut is_new = |v: u32| !std::mem::replace(&mut visited[v as usize], true);
        let mut front: Vec<(u32, u32)> =
            sources.iter().filter(|&&v| is_new(v)).map(|&v| (v, u32::MAX)).collect();
        let mut fronts = vec![];
        while !front.is_empty() {
            let mut next = vec![];
            for &(v, _) in &front {
                next.extend(
                    csr.row(v as usize)
                        .map(|p| (csr.indices()[p], csr.edge_id(p)))
                        .filter(|&(u, _)| is_new(u)),
                );
            }
            fronts.push(std::mem::replace(&mut front, next));
        }
        Ok(fronts)
    }

    /// Topological traversal: all nodes in fronts such that every edge leads to a later front. Each node is in the first
    /// possible front; front 0 is the nodes without in-edges. A recursive network over a directed acyclic graph computes
    /// front after front. It corresponds to DGL's `topological_nodes_generator`.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let r = Relation::from_coo(6, 6, vec![0, 1, 1, 2, 2, 3], vec![1, 2, 3, 3, 4, 5])?;
    /// assert_eq!(r.topological_nodes()?, [vec![0], vec![1], vec![2], vec![3, 4], vec![5]]);
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::Cycle`] if there is a cycle or a self loop; [`GraphError::Bipartite`] as for
    /// [`bfs_nodes`](Self::bfs_nodes).
    ///
    /// # Cost
    /// `O(V + E)`, and CSC and CSR if they are not built yet.
    pub fn topological_nodes(&self) -> Result<Vec<Vec<u32>>, GraphError> {
        self.check_square("topological traversal")?;
        let csr = self.csr();
        let mut missing: Vec<u32> = self.in_degrees().collect();
        let mut front: Vec<u32> =
            (0..missing.len() as u32).filter(|&v| missing[v as usize] == 0).collect();
        let (mut fronts, mut left) = (vec![], missing.len());
        while !front.is_empty() {
            left -= front.len();
            let mut next = vec![];
            for &v in &front {
                for &u in &csr.indices()[csr.row(v as usize)] {
                    missing[u as usize] -= 1;
                    if missing[u as usize] == 0 {
                        next.push(u);
                    }
                }
            }
            fronts.push(std::mem::replace(&mut front, next));
        }
        match missing.iter().position(|&edges| edges > 0) {
            None => Ok(fronts),
            Some(node) => {
                Err(GraphError::Cycle { relation: UNNAMED.into(), node: node as u32, nodes: left })
            }
        }
    }

    /// Depth-first traversal: the edges that lead to unvisited nodes, in the order of the traversal. Out-edges of a node
    /// are visited by edge id. These are the `Forward` edges of [`dfs_labeled_edges`](Self::dfs_labeled_edges). It
    /// corresponds to DGL's `dfs_edges_generator`.
    ///
    /// # Errors
    /// As [`bfs_nodes`](Self::bfs_nodes).
    pub fn dfs_edges(&self, sources: &[u32]) -> Result<Vec<Vec<u32>>, GraphError> {
        Ok(map_steps(self.dfs_labeled_edges(sources, &[DfsLabel::Forward])?, |(edge, _)| edge))
    }

    /// The steps of a depth-first traversal that have one of `labels`. Front `i` has step `i` of each source, so with one
    /// source every front is one edge. The traversals of several sources run sequentially and share the set of visited
    /// nodes. It corresponds to DGL's `dfs_labeled_edges_generator`, which has the labels of NetworkX.
    ///
    /// ```
    /// use burn_gnn_structure::{DfsLabel::*, Relation};
    /// let r = Relation::from_coo(6, 6, vec![0, 1, 1, 2, 2, 3], vec![1, 2, 3, 3, 4, 5])?;
    /// assert_eq!(r.dfs_edges(&[0])?, [[0], [1], [3], [5], [4]]);
    /// let steps = r.dfs_labeled_edges(&[2], &[Forward, Reverse, NonTree])?.concat();
    /// assert_eq!(steps, [(3, Forward), (5, Forward), (5, Reverse), (3, Reverse), (4, Forward), (4, Reverse)]);
    /// assert_eq!(r.dfs_labeled_edges(&[0], &[NonTree])?, [[(2, NonTree)]]); // 1 -> 3: node 3 was reached from 2
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`bfs_nodes`](Self::bfs_nodes).
    ///
    /// # Cost
    /// `O(V + out-edges of the visited nodes)`. It does not recurse.
    pub fn dfs_labeled_edges(
        &self,
        sources: &[u32],
        labels: &[DfsLabel],
    ) -> Result<Vec<Vec<(u32, DfsLabel)>>, GraphError> {
        self.check_square("depth-first traversal")?;
        check_nodes("sources", sources, self.num_src())?;
        let csr = self.csr();
        let mut visited = vec![false; self.num_src()];
        let mut fronts: Vec<Vec<(u32, DfsLabel)>> = vec![];
        for &source in sources {
            if std::mem::replace(&mut visited[source as usize], true) {
                continue;
            }
            let mut step = 0;
            let mut met = |edge: u32, label: DfsLabel| {
                if labels.contains(&label) {
                    if step == fronts.len() {
                        fronts.push(vec![]);
                    }
                    fronts[step].push((edge, label));
                    step += 1;
                }
            };
            // For every node of the path: its remaining out-edges, and the edge to it.
            let mut path = vec![(csr.row(source as usize), None)];
            while let Some((left, edge_to)) = path.last_mut() {
                match left.next() {
                    Some(p) => {
                        let (node, edge) = (csr.indices()[p], csr.edge_id(p));
                        if std::mem::replace(&mut visited[node as usize], true) {
                            met(edge, DfsLabel::NonTree);
                        } else {
                            met(edge, DfsLabel::Forward);
                            path.push((csr.row(node as usize), Some(edge)));
                        }
                    }
                    None => {
                        if let Some(edge) = *edge_to {
                            met(edge, DfsLabel::Reverse);
                        }
                        path.pop();
                    }
                }
            }
        }
        Ok(fronts)
    }

    fn check_square(&self, op: &'static str) -> Result<(), GraphError> {
        if self.num_src() == self.num_dst() {
            Ok(())
        } else {
            Err(GraphError::Bipartite { relation: UNNAMED.into(), op })
        }
    }
}

/// Maps every step of every front.
fn map_steps<A>(fronts: impl IntoIterator<Item = Vec<A>>, f: impl Fn(A) -> u32) -> Vec<Vec<u32>> {
    fronts.into_iter().map(|front| front.into_iter().map(&f).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relation(edges: &[(u32, u32)]) -> Relation {
        let (src, dst) = edges.iter().copied().unzip();
        Relation::from_coo(9, 9, src, dst).unwrap()
    }

    proptest! {
        /// On a random acyclic graph (edges from smaller to larger ids).
        #[test]
        fn topological_front_is_the_length_of_the_longest_path(edges in prop::collection::vec((0u32..9, 0u32..9), 0..20)) {
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(u, v)| u != v).map(|(u, v)| (u.min(v), u.max(v))).collect();
            let mut longest = [0; 9];
            for v in 0..9 {
                longest[v] = edges.iter().filter(|e| e.1 as usize == v).map(|e| longest[e.0 as usize] + 1).max().unwrap_or(0);
            }
            let fronts = relation(&edges).topological_nodes().unwrap();
            for (v, &front) in longest.iter().enumerate() {
                prop_assert_eq!(fronts.iter().position(|f| f.contains(&(v as u32))), Some(front));
            }
            prop_assert_eq!(fronts.iter().flatten().count(), 9);
            if let Some(&(u, v)) = edges.first() {
                let e = relation(&[edges.clone(), vec![(v, u)]].concat()).topological_nodes().unwrap_err();
                let is_cycle = matches!(e, GraphError::Cycle { .. });
                prop_assert!(is_cycle);
            }
        }

        /// Compared with the recursive definition.
        #[test]
        fn depth_first_equals_recursion(edges in prop::collection::vec((0u32..9, 0u32..9), 0..20), source in 0u32..9) {
            fn visit(edges: &[(u32, u32)], v: u32, seen: &mut [bool; 9], out: &mut Vec<(u32, DfsLabel)>) {
                seen[v as usize] = true;
                for (e, &(_, to)) in edges.iter().enumerate().filter(|(_, e)| e.0 == v) {
                    if seen[to as usize] {
                        out.push((e as u32, DfsLabel::NonTree));
                    } else {
                        out.push((e as u32, DfsLabel::Forward));
                        visit(edges, to, seen, out);
                        out.push((e as u32, DfsLabel::Reverse));
                    }
                }
            }
            let mut expected = vec![];
            visit(&edges, source, &mut [false; 9], &mut expected);
            let (r, all) = (relation(&edges), [DfsLabel::Forward, DfsLabel::Reverse, DfsLabel::NonTree]);
            let steps = r.dfs_labeled_edges(&[source], &all).unwrap();
            prop_assert!(steps.iter().all(|front| front.len() == 1));
            prop_assert_eq!(steps.concat(), expected.clone());
            let forward: Vec<u32> = expected.iter().filter(|s| s.1 == DfsLabel::Forward).map(|s| s.0).collect();
            prop_assert_eq!(r.dfs_edges(&[source]).unwrap().concat(), forward);
        }
    }

    #[test]
    fn fronts_have_one_step_per_source() {
        // Two paths, and a source that the first path visits.
        let r = relation(&[(0, 1), (1, 2), (5, 6), (6, 7), (7, 8)]);
        assert_eq!(r.dfs_edges(&[0, 5, 1]).unwrap(), [vec![0, 2], vec![1, 3], vec![4]]);
        assert_eq!(r.bfs_edges(&[0, 5, 5]).unwrap(), [vec![0, 2], vec![1, 3], vec![4]]);
        // Deep enough to overflow the stack of a recursion.
        let n = 300_000;
        let path =
            Relation::from_coo(n, n, (0..n as u32 - 1).collect(), (1..n as u32).collect()).unwrap();
        assert_eq!(
            (path.dfs_edges(&[0]).unwrap().len(), path.topological_nodes().unwrap().len()),
            (n - 1, n)
        );
    }

    #[test]
    fn cycles_and_bipartite_relations_are_errors() {
        let text = |e: GraphError| e.in_relation("a:r:a").to_string();
        let r = relation(&[(0, 1), (1, 2), (2, 1), (2, 3)]);
        let expected = "relation `a:r:a`: expected no cycle for topological traversal, found 3 nodes on or downstream of a cycle, \
                        such as node 1; remove the edges that close cycles";
        assert_eq!(text(r.topological_nodes().unwrap_err()), expected);
        assert!(text(r.bfs_nodes(&[9]).unwrap_err()).contains("`sources` must lie in 0..9, got 9"));
        let block = Relation::from_coo(2, 3, vec![0], vec![2]).unwrap();
        for result in [
            block.bfs_nodes(&[0]),
            block.bfs_edges(&[0]),
            block.dfs_edges(&[0]),
            block.topological_nodes(),
        ] {
            assert!(
                text(result.unwrap_err())
                    .ends_with("needs the same source and destination node type; choose an edge type between nodes of one type")
            );
        }
    }
}
