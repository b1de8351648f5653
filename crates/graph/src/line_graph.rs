//! Makes line graphs.

use std::collections::HashMap;

use crate::{EdgeKey, Graph, GraphError};
use burn_gnn_structure::internal::{check_limit, room};

/// Whether a line graph joins `u -> v` to `v -> u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtracking {
    /// It does.
    Yes,
    /// It does not: `u -> v` is joined to `v -> w` for `w != u` only.
    No,
}

impl Graph {
    /// The line graph of an edge type, homogeneous: node `e` is edge `e`, and there is an edge from `u -> v` to every
    /// other edge `v -> w`. Edges are sorted by (source, destination); a self loop is not joined to itself. Node
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
    /// Unknown type, different source and destination node types, or a line graph of more than `u32::MAX - 1` edges (a
    /// node with `i` in-edges and `o` out-edges makes `i · o` of them); [`GraphError::OutOfMemory`].
    ///
    /// # Cost
    /// `O(V + E + edges of the line graph)`; without backtracking pairs that fall away are met too.
    pub fn line_graph(
        &self,
        etype: impl EdgeKey,
        backtracking: Backtracking,
    ) -> Result<Self, GraphError> {
        let t = self.one_node_type(etype, "a line graph")?;
        let r = &self.relations()[t];
        let out = r.csr();
        let followers = |e: usize| {
            let (u, v) = (r.src()[e], r.dst()[e] as usize);
            let joined = move |p: &usize| {
                out.edge_id(*p) as usize != e
                    && (backtracking == Backtracking::Yes || out.indices()[*p] != u)
            };
            out.row(v).filter(joined).map(|p| out.edge_id(p))
        };
        // Counted before any is made, without walking over those that fall away.
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
}
