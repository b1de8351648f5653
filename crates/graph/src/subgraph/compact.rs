//! Removes nodes without edges.

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::internal::check_len;
use burn_gnn_structure::{GraphError, NodeKey, OriginalIds};

impl Graph {
    /// Removes isolated nodes, except those in `always_preserve`. The remaining nodes keep their order.
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E)`.
    pub fn compact<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        always_preserve: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Subgraph, GraphError> {
        let preserved = self.node_selection("always_preserve", always_preserve)?;
        let edges = self.every_edge();
        self.restrict(self.touched(&edges, &preserved)?, edges)
    }
}

/// Removes the nodes that are isolated in all `graphs`, so that the graphs still share one numbering: for example the graphs
/// of positive and of negative edges. Nodes in `always_preserve` are kept.
///
/// ```
/// use burn_gnn_graph::{Graph, compact_graphs};
/// let positive = Graph::homogeneous(6, vec![1], vec![4])?;
/// let negative = Graph::homogeneous(6, vec![1], vec![2])?;
/// let both = compact_graphs([&positive, &negative], [("_N", [5])])?;
/// assert_eq!(both[0].original_nodes("_N")?.to_vec(), [1, 2, 4, 5]);
/// assert_eq!(both[1].graph.relation("_E")?.dst(), [1]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// Graphs with different numbers of nodes of a type; an unknown or repeated type or an id out of range in
/// `always_preserve`; edges in a file that cannot be read.
///
/// # Cost
/// `O(V + E)` over all graphs.
pub fn compact_graphs<'a, N: NodeKey, I: AsRef<[u32]>>(
    graphs: impl IntoIterator<Item = &'a Graph>,
    always_preserve: impl IntoIterator<Item = (N, I)>,
) -> Result<Vec<Subgraph>, GraphError> {
    let graphs: Vec<&Graph> = graphs.into_iter().collect();
    let mut keep: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for (i, g) in graphs.iter().enumerate() {
        for (name, &n) in g.schema().ntypes().iter().zip(g.node_counts()) {
            let expected = keep.entry(name).or_insert_with(|| vec![false; n]).len();
            let arg = format!("graphs[{i}], node type {name}");
            check_len(&arg, "as in the graphs before", expected, n)
                .map_err(|e| e.in_relation(""))?;
        }
        let touched = g.touched(&g.every_edge(), &[])?;
        for (name, ids) in g.schema().ntypes().iter().zip(&touched) {
            let keep = keep.entry(name).or_default();
            ids.iter().for_each(|v| keep[v as usize] = true);
        }
    }
    let mut all = Graph::builder();
    for (name, keep) in &keep {
        all = all.nodes(*name, keep.len());
    }
    let all = all.build()?;
    for (name, ids) in
        all.schema().ntypes().iter().zip(all.node_selection("always_preserve", always_preserve)?)
    {
        let keep = keep.entry(name).or_default();
        ids.iter().for_each(|&v| keep[v as usize] = true);
    }
    let ids: BTreeMap<&str, OriginalIds> =
        keep.iter().map(|(name, k)| (*name, OriginalIds::marked(k))).collect();
    graphs
        .iter()
        .map(|g| {
            g.restrict(
                g.schema().ntypes().iter().map(|t| ids[t.as_str()].clone()).collect(),
                g.every_edge(),
            )
        })
        .collect()
}
