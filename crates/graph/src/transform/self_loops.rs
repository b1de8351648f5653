//! Adds and removes self loops.

use crate::features::by_column::ByColumn;
use crate::features::column::Column;
use crate::features::combine::Combine;
use crate::features::combine::Groups;
use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::internal::check_counts;
use burn_gnn_structure::{EdgeKey, GraphError, Relation};

/// Which nodes get a self loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopsAt {
    /// Every node; a node with a loop gets another one.
    #[default]
    EveryNode,
    /// Nodes without a loop. A second call adds nothing.
    NodesWithout,
}

/// Feature of a new self loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoopFill {
    /// A constant. It must be an integer in range for integer columns, and 0 or 1 for boolean columns.
    Value(f64),
    /// A reduction over the in-edges of the node, 0 without in-edges.
    InEdges(Combine),
}

impl Graph {
    /// Appends one self loop per node to an edge type, also to nodes with a loop. Existing ids do not change; the loop of node
    /// `v` has id `num_edges + v`. All its features are 1 (`true`).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(2, vec![0], vec![1])?.add_self_loops("_E")?;
    /// assert_eq!((g.relation("_E")?.src(), g.relation("_E")?.dst()), (&[0, 0, 1][..], &[1, 0, 1][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; more than `u32::MAX - 1` edges; a column of a rank above
    /// [`Column::MAX_RANK`]; edges in a file that cannot be read.
    pub fn add_self_loops(&self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        self.add_self_loops_with(etype, LoopsAt::EveryNode, LoopFill::Value(1.0))
    }

    /// [`add_self_loops`](Self::add_self_loops) with a choice of nodes and features. New loops are in ascending order of node
    /// ids.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{ByColumn, Combine, Graph, LoopFill, LoopsAt};
    /// let mut g = Graph::homogeneous(2, vec![0, 0, 0], vec![1, 1, 0])?;
    /// g.edges_mut("_E")?.insert("w", Tensor::<1>::from_data([2.0, 4.0, 6.0], &Device::flex()))?;
    /// let fill = ByColumn::all(LoopFill::Value(0.0)).with("w", LoopFill::InEdges(Combine::Mean));
    /// let g = g.add_self_loops_with("_E", LoopsAt::NodesWithout, fill)?;
    /// assert_eq!(g.edges("_E")?.get::<1>("w")?.into_data().try_to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 3.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`add_self_loops`](Self::add_self_loops); a fill that a column cannot hold, or one for a column that does not
    /// exist.
    pub fn add_self_loops_with(
        &self,
        etype: impl EdgeKey,
        at: LoopsAt,
        fill: impl Into<ByColumn<LoopFill>>,
    ) -> Result<Self, GraphError> {
        let t = self.one_node_type(etype, "adding self loops")?;
        let (r, old, fill) = (self.in_memory(t)?, &self.edge_frames()[t], fill.into());
        fill.check(std::slice::from_ref(old))?;
        let mut wanted = vec![true; r.num_dst()];
        if at == LoopsAt::NodesWithout {
            r.src()
                .iter()
                .zip(r.dst())
                .filter(|(u, v)| u == v)
                .for_each(|(_, &v)| wanted[v as usize] = false);
        }
        let nodes: Vec<u32> = (0..r.num_dst() as u32).filter(|&v| wanted[v as usize]).collect();
        check_counts(r.num_src(), r.num_dst(), r.num_edges().saturating_add(nodes.len()))
            .map_err(|e| self.in_etype(t, e))?;
        let joint = Relation::from_coo(
            r.num_src(),
            r.num_dst(),
            [r.src(), &nodes].concat(),
            [r.dst(), &nodes].concat(),
        );
        let mut g = self.with_relation(t, joint.map_err(|e| self.in_etype(t, e))?);
        g.frames_mut().1[t].extend_rows(old, &[], |name, c| {
            loop_rows(r, &nodes, old.label(), name, c, *fill.get(name))
        })?;
        Ok(g)
    }

    /// Removes the self loops of an edge type. The remaining edges keep their order and are renumbered from 0.
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; edges in a file that cannot be read.
    pub fn remove_self_loops(&self, etype: impl EdgeKey) -> Result<Subgraph, GraphError> {
        let t = self.one_node_type(etype, "removing self loops")?;
        let r = self.in_memory(t)?;
        self.keep_edges(t, &r.src().iter().zip(r.dst()).map(|(u, v)| u != v).collect::<Vec<_>>())
    }
}

/// Values of column `c` for new loops of `nodes`.
fn loop_rows(
    r: &Relation,
    nodes: &[u32],
    frame: &str,
    name: &str,
    c: &Column,
    fill: LoopFill,
) -> Result<Column, GraphError> {
    match fill {
        LoopFill::Value(x) => c.filled(frame, name, nodes.len(), x),
        LoopFill::InEdges(how) => {
            let groups = Groups { indptr: r.csc().indptr(), order: r.csc().edge_ids() };
            Ok(c.combine(frame, name, groups, how)?.select(nodes))
        }
    }
}
