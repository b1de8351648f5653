//! Makes line graphs.

use std::collections::HashMap;

use crate::graph::Graph;
use burn_gnn_structure::internal::{by_group, check_limit, room, setting};
use burn_gnn_structure::{EdgeKey, GraphError, OriginalIds};

/// Whether a line graph has an edge from `u -> v` to `v -> u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtracking {
    /// It has.
    Yes,
    /// It has not: there are edges from `u -> v` to `v -> w` only for `w != u`.
    No,
}

impl Graph {
    /// The line graph of an edge type, as a homogeneous graph: node `e` is edge `e`, and there is an edge from `u -> v` to
    /// every other edge `v -> w`. Edges are sorted by (source, destination). A self loop has no edge to itself. Node
    /// features are the features of the edges.
    ///
    /// ```
    /// use burn_gnn_graph::{Backtracking, Graph};
    /// let g = Graph::homogeneous(3, vec![0, 1, 1], vec![1, 0, 2])?;
    /// let line = g.line_graph("_E", Backtracking::Yes)?;
    /// assert_eq!((line.relation("_E")?.src(), line.relation("_E")?.dst()), (&[0, 0, 1][..], &[1, 2, 0][..]));
    /// assert_eq!(g.line_graph("_E", Backtracking::No)?.relation("_E")?.dst(), [2]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; more than `u32::MAX - 1` edges (a node with `i` in-edges
    /// and `o` out-edges makes `i · o`); [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E + edges of the line graph)`; without backtracking, the pairs that are left out cost time, too.
    pub fn line_graph(
        &self,
        etype: impl EdgeKey,
        backtracking: Backtracking,
    ) -> Result<Self, GraphError> {
        let t = self.one_node_type(etype, "a line graph")?;
        let r = self.in_memory(t)?;
        let out = r.csr();
        let followers = |e: usize| {
            let (u, v) = (r.src()[e], r.dst()[e] as usize);
            let joined = move |p: &usize| {
                out.edge_id(*p) as usize != e
                    && (backtracking == Backtracking::Yes || out.indices()[*p] != u)
            };
            out.row(v).filter(joined).map(|p| out.edge_id(p))
        };
        // Counts all edges before it makes any, in `O(E)`, to fail early.
        let mut parallel: HashMap<(u32, u32), u64> = HashMap::new();
        if backtracking == Backtracking::No {
            r.src()
                .iter()
                .zip(r.dst())
                .for_each(|(&u, &v)| *parallel.entry((u, v)).or_default() += 1);
        }
        let dropped = |u: u32, v: u32| match backtracking {
            Backtracking::Yes => u64::from(u == v),
            Backtracking::No => parallel.get(&(v, u)).copied().unwrap_or(0),
        };
        let endpoints = r.src().iter().zip(r.dst());
        let count: u64 =
            endpoints.map(|(&u, &v)| out.row(v as usize).len() as u64 - dropped(u, v)).sum();
        check_limit("edges", count)
            .map_err(|e| e.in_relation(&format!("line graph of {}", self.schema().etypes()[t])))?;
        let (what, remedy) = (|| format!("a line graph of {count} edges"), "make it of a subgraph");
        let (mut src, mut dst) =
            (room(count.into(), what, remedy)?, room(count.into(), what, remedy)?);
        for e in 0..r.num_edges() {
            dst.extend(followers(e));
            src.resize(dst.len(), e as u32);
        }
        let mut line = Self::homogeneous(r.num_edges(), src, dst)?;
        line.frames_mut().0[0].copy_rows(&self.edge_frames()[t])?;
        Ok(line)
    }

    /// The line graph of an undirected edge type, which stores each edge in both directions. An edge and its reverse are one
    /// node; two nodes have edges in both directions if their edges share an endpoint (PyG's `LineGraph` for undirected
    /// graphs). A self loop is one node. Returns the homogeneous graph, and for each node its edge from the endpoint with
    /// the smaller id, in ascending order. Node features are those of these edges. Edges are sorted by (source,
    /// destination).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let path = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?.add_reverse_edges("_E")?;
    /// let (line, edges) = path.undirected_line_graph("_E")?;
    /// assert_eq!(edges, [0, 1, 2]); // 0 - 1, 1 - 2, 2 - 3
    /// assert_eq!((line.relation("_E")?.src(), line.relation("_E")?.dst()), (&[0, 1, 1, 2][..], &[1, 0, 2, 1][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; an edge without its reverse (add them by
    /// [`add_reverse_edges`](Self::add_reverse_edges)); more than `u32::MAX - 1` edges (a node with `d` edges makes
    /// `d · (d - 1)`); [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E log E + edges of the line graph)`.
    pub fn undirected_line_graph(
        &self,
        etype: impl EdgeKey,
    ) -> Result<(Self, Vec<u32>), GraphError> {
        let t = self.one_node_type(etype, "a line graph")?;
        let (r, name) = (self.in_memory(t)?, self.schema().etypes()[t].to_string());
        let endpoints = |e: u32| (r.src()[e as usize], r.dst()[e as usize]);
        let (mut edges, mut reverses) = (vec![], vec![]);
        for e in 0..r.num_edges() as u32 {
            let (u, v) = endpoints(e);
            if u <= v {
                edges.push(e);
            }
            if u >= v {
                reverses.push((v, u));
            }
        }
        let mut there: Vec<(u32, u32)> = edges.iter().map(|&e| endpoints(e)).collect();
        there.sort_unstable();
        reverses.sort_unstable();
        if there != reverses {
            let differ = there.iter().zip(&reverses).find(|(a, b)| a != b);
            let longer = there.get(reverses.len()).or_else(|| reverses.get(there.len()));
            let (u, v) = differ.map(|(a, b)| *a.min(b)).or(longer.copied()).unwrap_or_default();
            let expected = format!(
                "both directions of every edge of `{name}` (`add_reverse_edges` adds them)"
            );
            let found = format!("an edge between {u} and {v} in one direction only");
            return Err(setting("etype", &expected, &found));
        }
        // Nodes of the line graph by endpoint; a self loop occurs once.
        let (mut ends, mut nodes) = (vec![], vec![]);
        for (i, &e) in (0u32..).zip(&edges) {
            let (u, v) = endpoints(e);
            ends.extend([u, v].into_iter().take(if u == v { 1 } else { 2 }));
            nodes.resize(ends.len(), i);
        }
        let (starts, order) = by_group(&ends, r.num_src(), |place| nodes[place]);
        let at = |v: u32| &order[starts[v as usize] as usize..starts[v as usize + 1] as usize];
        let parallel = |pair: (u32, u32)| {
            there.partition_point(|&p| p <= pair) - there.partition_point(|&p| p < pair)
        };
        let degree = |&e: &u32| {
            let (u, v) = endpoints(e);
            let others = at(u).len() - 1;
            // Parallel edges share both endpoints, so that they occur twice.
            let met = if u == v { 0 } else { at(v).len() - parallel((u, v)) };
            (others + met) as u64
        };
        let count: u64 = edges.iter().map(degree).sum();
        check_limit("edges", count).map_err(|e| e.in_relation(&format!("line graph of {name}")))?;
        let (what, remedy) = (|| format!("a line graph of {count} edges"), "make it of a subgraph");
        let (mut src, mut dst) =
            (room(count.into(), what, remedy)?, room(count.into(), what, remedy)?);
        let mut near = vec![];
        for (i, &e) in (0u32..).zip(&edges) {
            let (u, v) = endpoints(e);
            near.clear();
            near.extend(at(u).iter().chain(at(v)).copied().filter(|&j| j != i));
            near.sort_unstable();
            near.dedup();
            dst.extend_from_slice(&near);
            src.resize(dst.len(), i);
        }
        let mut line = Self::homogeneous(edges.len(), src, dst)?;
        let ids = OriginalIds::new(edges.clone(), r.num_edges());
        line.frames_mut().0[0].take_rows(&self.edge_frames()[t], &ids)?;
        Ok((line, edges))
    }
}
