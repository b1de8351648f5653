//! Queries edges by id, by endpoints and by node.

use crate::graph::Graph;
use burn_gnn_structure::internal::{check_len, check_nodes};
use burn_gnn_structure::{Compressed, EdgeKey, GraphError, Relation};

/// A list of edges of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeList {
    /// Sources.
    pub src: Vec<u32>,
    /// Destinations.
    pub dst: Vec<u32>,
    /// Edge ids.
    pub ids: Vec<u32>,
}

impl Graph {
    /// Returns the sources and destinations of edges.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(3, vec![0, 2, 0], vec![1, 1, 1])?;
    /// assert_eq!(g.find_edges("_E", &[2, 1])?, (vec![0, 2], vec![1, 1]));
    /// assert_eq!(g.has_edges("_E", &[0, 1], &[1, 0])?, [true, false]);
    /// assert_eq!(g.edge_ids("_E", &[0, 2], &[1, 1])?, [0, 1]); // the first of parallel edges
    /// assert_eq!(g.all_edge_ids("_E", &[0, 1], &[1, 2])?, [(0, 0), (0, 2)]);
    /// assert_eq!(g.predecessors("_E", 1)?, [0, 2, 0]);
    /// assert_eq!(g.in_degrees("_E", &[1, 0])?, [3, 0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; an edge id out of range; edges in a file that cannot be read.
    pub fn find_edges(
        &self,
        etype: impl EdgeKey,
        ids: &[u32],
    ) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
        let (t, r) = self.numbered(etype)?;
        self.check_edges("ids", t, ids)?;
        let endpoints = |of: &[u32]| ids.iter().map(|&e| of[e as usize]).collect();
        Ok((endpoints(r.src()), endpoints(r.dst())))
    }

    /// Tests for each pair `u[i] -> v[i]` whether there is an edge.
    ///
    /// # Errors
    /// Unknown type; lists of different lengths; an id that is not a node; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(n log n)` for `n` pairs, plus for each distinct source the smaller of its out-degree and the total in-degree of its
    /// destinations; `O(V + E)` once for CSR and CSC.
    pub fn has_edges(
        &self,
        etype: impl EdgeKey,
        u: &[u32],
        v: &[u32],
    ) -> Result<Vec<bool>, GraphError> {
        let mut has = vec![false; u.len()];
        self.all_edge_ids(etype, u, v)?.into_iter().for_each(|(i, _)| has[i] = true);
        Ok(has)
    }

    /// Returns the edge id of each pair `u[i] -> v[i]`, the smallest of parallel edges.
    ///
    /// # Errors
    /// As [`has_edges`](Self::has_edges); [`GraphError::NoSuchEdge`] for a pair without an edge.
    pub fn edge_ids(
        &self,
        etype: impl EdgeKey,
        u: &[u32],
        v: &[u32],
    ) -> Result<Vec<u32>, GraphError> {
        let t = self.schema().etype(etype)?;
        let mut first: Vec<Option<u32>> = vec![None; u.len()];
        for (i, e) in self.all_edge_ids(t, u, v)? {
            first[i].get_or_insert(e);
        }
        let missing = |i: usize| GraphError::NoSuchEdge {
            relation: String::new(),
            position: i,
            src: u[i],
            dst: v[i],
        };
        first
            .into_iter()
            .enumerate()
            .map(|(i, e)| e.ok_or_else(|| self.in_etype(t, missing(i))))
            .collect()
    }

    /// Returns all edges of the pairs `u[i] -> v[i]` as `(i, edge id)`, ascending. A pair without edges has no entry.
    ///
    /// # Errors
    /// As [`has_edges`](Self::has_edges).
    pub fn all_edge_ids(
        &self,
        etype: impl EdgeKey,
        u: &[u32],
        v: &[u32],
    ) -> Result<Vec<(usize, u32)>, GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_len("v", "one entry per entry of `u`", u.len(), v.len())
            .map_err(|e| self.in_etype(t, e))?;
        check_nodes("u", u, r.num_src()).map_err(|e| self.in_etype(t, e))?;
        check_nodes("v", v, r.num_dst()).map_err(|e| self.in_etype(t, e))?;
        Ok(between(r, u, v))
    }

    /// Sources of the in-edges of `node`, one per edge, in ascending order of edge ids.
    ///
    /// # Errors
    /// Unknown type; an id that is not a destination node; edges in a file that cannot be read.
    pub fn predecessors(&self, etype: impl EdgeKey, node: u32) -> Result<&[u32], GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("node", &[node], r.num_dst()).map_err(|e| self.in_etype(t, e))?;
        Ok(&r.csc().indices()[r.csc().row(node as usize)])
    }

    /// Destinations of the out-edges of `node`, one per edge, in ascending order of edge ids.
    ///
    /// # Errors
    /// Unknown type; an id that is not a source node; edges in a file that cannot be read.
    pub fn successors(&self, etype: impl EdgeKey, node: u32) -> Result<&[u32], GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("node", &[node], r.num_src()).map_err(|e| self.in_etype(t, e))?;
        Ok(&r.csr().indices()[r.csr().row(node as usize)])
    }

    /// In-edges of `nodes`, in the order of `nodes`, then in ascending order of edge ids.
    ///
    /// # Errors
    /// Unknown type; an id that is not a destination node; edges in a file that cannot be read.
    pub fn in_edges(&self, etype: impl EdgeKey, nodes: &[u32]) -> Result<EdgeList, GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("nodes", nodes, r.num_dst()).map_err(|e| self.in_etype(t, e))?;
        let (dst, src, ids) = rows(r.csc(), nodes);
        Ok(EdgeList { src, dst, ids })
    }

    /// Out-edges of `nodes`, in the order of `nodes`, then in ascending order of edge ids.
    ///
    /// # Errors
    /// Unknown type; an id that is not a source node; edges in a file that cannot be read.
    pub fn out_edges(&self, etype: impl EdgeKey, nodes: &[u32]) -> Result<EdgeList, GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("nodes", nodes, r.num_src()).map_err(|e| self.in_etype(t, e))?;
        let (src, dst, ids) = rows(r.csr(), nodes);
        Ok(EdgeList { src, dst, ids })
    }

    /// In-degrees of `nodes`. For all nodes see [`Relation::in_degrees`].
    ///
    /// # Errors
    /// Unknown type; an id that is not a destination node; edges in a file that cannot be read.
    pub fn in_degrees(&self, etype: impl EdgeKey, nodes: &[u32]) -> Result<Vec<u32>, GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("nodes", nodes, r.num_dst()).map_err(|e| self.in_etype(t, e))?;
        Ok(nodes.iter().map(|&v| r.csc().row(v as usize).len() as u32).collect())
    }

    /// Out-degrees of `nodes`. For all nodes see [`Relation::out_degrees`].
    ///
    /// # Errors
    /// Unknown type; an id that is not a source node; edges in a file that cannot be read.
    pub fn out_degrees(&self, etype: impl EdgeKey, nodes: &[u32]) -> Result<Vec<u32>, GraphError> {
        let (t, r) = self.numbered(etype)?;
        check_nodes("nodes", nodes, r.num_src()).map_err(|e| self.in_etype(t, e))?;
        Ok(nodes.iter().map(|&u| r.csr().row(u as usize).len() as u32).collect())
    }

    /// The number of an edge type, and its relation in memory.
    fn numbered(&self, etype: impl EdgeKey) -> Result<(usize, &Relation), GraphError> {
        let t = self.schema().etype(etype)?;
        Ok((t, self.in_memory(t)?))
    }
}

/// Row, index and edge id of every position in the rows of `nodes`.
fn rows(layout: &Compressed, nodes: &[u32]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let count = nodes.iter().map(|&v| layout.row(v as usize).len()).sum();
    let (mut row, mut index, mut ids) =
        (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
    for &v in nodes {
        let at = layout.row(v as usize);
        index.extend_from_slice(&layout.indices()[at.clone()]);
        ids.extend(at.map(|p| layout.edge_id(p)));
        row.resize(ids.len(), v);
    }
    (row, index, ids)
}

fn between(r: &Relation, u: &[u32], v: &[u32]) -> Vec<(usize, u32)> {
    let mut sorted: Vec<usize> = (0..u.len()).collect();
    sorted.sort_unstable_by_key(|&i| (u[i], v[i]));
    let mut found = vec![];
    for of_src in sorted.chunk_by(|&a, &b| u[a] == u[b]) {
        let (src, out, into) = (u[of_src[0]], r.csr(), r.csc());
        let pairs: Vec<&[usize]> = of_src.chunk_by(|&a, &b| v[a] == v[b]).collect();
        let dst = |pair: &&[usize]| v[pair[0]];
        if pairs.iter().map(|p| into.row(dst(p) as usize).len()).sum::<usize>()
            < out.row(src as usize).len()
        {
            for pair in &pairs {
                for p in into.row(dst(pair) as usize).filter(|&p| into.indices()[p] == src) {
                    found.extend(pair.iter().map(|&i| (i, into.edge_id(p))));
                }
            }
        } else {
            for p in out.row(src as usize) {
                if let Ok(at) = pairs.binary_search_by_key(&out.indices()[p], dst) {
                    found.extend(pairs[at].iter().map(|&i| (i, out.edge_id(p))));
                }
            }
        }
    }
    found.sort_unstable();
    found
}
