//! Identifies the node or edge type by whose owners rows are distributed.

/// The node or edge type whose owners hold the rows of a tensor (DGL's `PartitionPolicy`).
///
/// A graph has one policy for each node type and edge type. Policies cannot be created otherwise, because all ranks
/// must agree on the owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionPolicy {
    pub(crate) is_node: bool,
    pub(crate) ty: usize,
}
