//! Adds and removes nodes and edges with their features. The result is a new graph.

use crate::features::column::Column;
use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::internal::{check_counts, check_ids, check_len, check_limit, check_nodes};
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey, OriginalIds, Relation};

impl Graph {
    /// Appends `count` nodes of a type with features `data`: columns by name, one row per new node. Existing ids do not
    /// change. Missing values, of new nodes in old columns and of old nodes in new columns, are 0 (`false`).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{Column, Graph};
    /// let mut g = Graph::homogeneous(2, vec![0], vec![1])?;
    /// g.nodes_mut("_N")?.insert("h", Tensor::<1>::from_data([1.0, 2.0], &Device::flex()))?;
    /// let h = Tensor::<1>::from_data([3.0], &Device::flex());
    /// let g = g.add_nodes("_N", 1, &[("h", Column::new(h))])?.add_edges("_E", &[2], &[0], &[])?;
    /// assert_eq!(g.nodes("_N")?.get::<1>("h")?.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; more than `u32::MAX - 1` nodes; a column with another number of rows than `count`; a repeated column; a
    /// column with another shape or dtype than the existing one; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E)` of this type and its edge types, which are copied: add many nodes per call.
    pub fn add_nodes(
        &self,
        ntype: impl NodeKey,
        count: usize,
        data: &[(&str, Column)],
    ) -> Result<Self, GraphError> {
        let t = self.schema().ntype(ntype)?;
        let mut counts = self.node_counts().to_vec();
        counts[t] = counts[t].saturating_add(count);
        check_limit("nodes", counts[t] as u64)
            .map_err(|e| e.in_relation(&format!("node type {}", self.schema().ntypes()[t])))?;
        let grown = self.relations().iter().enumerate().map(|(i, r)| {
            let (s, d) = self.schema().endpoints(i);
            if s != t && d != t {
                return Ok(r.clone());
            }
            let r = self.in_memory(i)?;
            Relation::from_coo(counts[s], counts[d], r.src().to_vec(), r.dst().to_vec())
        });
        let grown = grown.collect::<Result<_, _>>()?;
        let mut g = Self::assemble(self.schema().clone(), counts, grown);
        let (nodes, edges) = g.frames_mut();
        for (i, (new, old)) in nodes.iter_mut().zip(self.node_frames()).enumerate() {
            if i == t {
                let label = old.label();
                new.extend_rows(old, data, |name, c| c.filled(label, name, count, 0.0))?;
            } else {
                new.clone_from(old);
            }
        }
        edges.clone_from_slice(self.edge_frames());
        Ok(g)
    }

    /// Appends edges of a type with features `data`, as in [`add_nodes`](Self::add_nodes). Existing ids do not change; the
    /// `i`-th new edge has id `num_edges + i`.
    ///
    /// # Errors
    /// Unknown type; `src` and `dst` of different lengths; an id that is not a node (add nodes first); more than
    /// `u32::MAX - 1` edges; columns as in [`add_nodes`](Self::add_nodes); edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E)` of this type, which is copied: add many edges per call.
    pub fn add_edges(
        &self,
        etype: impl EdgeKey,
        src: &[u32],
        dst: &[u32],
        data: &[(&str, Column)],
    ) -> Result<Self, GraphError> {
        let t = self.schema().etype(etype)?;
        let r = self.in_memory(t)?;
        let add = || {
            check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
            check_nodes("src", src, r.num_src())?;
            check_nodes("dst", dst, r.num_dst())?;
            check_counts(r.num_src(), r.num_dst(), r.num_edges().saturating_add(src.len()))?;
            Relation::from_coo(
                r.num_src(),
                r.num_dst(),
                [r.src(), src].concat(),
                [r.dst(), dst].concat(),
            )
        };
        let mut g = self.with_relation(t, add().map_err(|e| self.in_etype(t, e))?);
        let old = &self.edge_frames()[t];
        g.frames_mut().1[t]
            .extend_rows(old, data, |name, c| c.filled(old.label(), name, src.len(), 0.0))?;
        Ok(g)
    }

    /// Removes nodes of a type and their edges. The remaining nodes and edges keep their order and are renumbered from 0. Ids
    /// may be repeated.
    ///
    /// # Errors
    /// Unknown type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E)` of this type and its edge types.
    pub fn remove_nodes(&self, ntype: impl NodeKey, ids: &[u32]) -> Result<Subgraph, GraphError> {
        let t = self.schema().ntype(ntype)?;
        let n = self.node_counts()[t];
        check_ids("ids", &format!("node type `{}`", self.schema().ntypes()[t]), ids, n)?;
        let keep = complement(ids, n);
        let edges = self.relations().iter().enumerate().map(|(i, r)| {
            let (s, d) = self.schema().endpoints(i);
            if s != t && d != t {
                return Ok(OriginalIds::unchanged(r.num_edges()));
            }
            let r = self.in_memory(i)?;
            let stays = |(&u, &v): (&u32, &u32)| {
                (s != t || keep[u as usize]) && (d != t || keep[v as usize])
            };
            let kept: Vec<bool> = r.src().iter().zip(r.dst()).map(stays).collect();
            Ok(OriginalIds::marked(&kept))
        });
        let edges = edges.collect::<Result<_, GraphError>>()?;
        let mut nodes = self.every_node();
        nodes[t] = OriginalIds::marked(&keep);
        self.restrict(nodes, edges)
    }

    /// Removes edges of a type. The remaining edges keep their order and are renumbered from 0; all nodes stay. Ids may be
    /// repeated.
    ///
    /// # Errors
    /// Unknown type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(E)` of this type.
    pub fn remove_edges(&self, etype: impl EdgeKey, ids: &[u32]) -> Result<Subgraph, GraphError> {
        let t = self.schema().etype(etype)?;
        let n = self.relations()[t].num_edges();
        self.check_edges("ids", t, ids)?;
        self.keep_edges(t, &complement(ids, n))
    }

    /// Keeps the edges of type `t` for which `keep` is true.
    pub(crate) fn keep_edges(&self, t: usize, keep: &[bool]) -> Result<Subgraph, GraphError> {
        let mut edges = self.every_edge();
        edges[t] = OriginalIds::marked(keep);
        self.restrict(self.every_node(), edges)
    }
}

fn complement(ids: &[u32], bound: usize) -> Vec<bool> {
    let mut keep = vec![true; bound];
    ids.iter().for_each(|&id| keep[id as usize] = false);
    keep
}
