//! Numbers types that callers name.

use burn_gnn_graph::{EdgeKey, Graph, NodeKey};

/// The number of a node type.
#[track_caller]
pub(super) fn ntype_number(graph: &Graph, key: impl NodeKey) -> usize {
    graph.schema().ntype(key).unwrap_or_else(|e| panic!("{e}"))
}

/// The number of an edge type.
#[track_caller]
pub(super) fn etype_number(graph: &Graph, key: impl EdgeKey) -> usize {
    graph.schema().etype(key).unwrap_or_else(|e| panic!("{e}"))
}
