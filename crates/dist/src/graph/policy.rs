//! Defines which rank keeps which node's or edge's data (DGL's `PartitionPolicy`).

/// Rows go with the nodes or edges of one type (DGL's `PartitionPolicy`).
///
/// There is one policy per type of the graph; no other can be made, for a row must have an owner that all ranks know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionPolicy {
    pub(crate) is_node: bool,
    pub(crate) ty: usize,
}
