//! Reports whether a partitioning on disk is consistent.

use std::fmt;
use std::path::Path;

use burn_gnn_graph::Graph;
use burn_gnn_graph::internal::count_noun;

use super::verifier::Verifier;
use crate::error::DistError;
use crate::partition::read::parts::PartitionFiles;

/// Result of [`verify_partition`]. `Display` prints a summary and all violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// Name of the graph.
    pub graph_name: String,
    /// Number of parts.
    pub num_parts: usize,
    /// Number of nodes of all types.
    pub num_nodes: u64,
    /// Number of edges of all types.
    pub num_edges: u64,
    /// One line for each violated invariant. Violations of the same kind in one part share a line: the first and the
    /// number of further ones.
    pub violations: Vec<String>,
}

impl PartitionReport {
    /// Whether all invariants hold.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { graph_name, num_parts, num_nodes, num_edges, violations } = self;
        let parts = count_noun(*num_parts, "part");
        let [nodes, edges] =
            [(*num_nodes, "node"), (*num_edges, "edge")].map(|(n, what)| count_noun(n, what));
        write!(f, "`{graph_name}`, {parts}, {nodes}, {edges}: ")?;
        match violations.len() {
            0 => write!(f, "every invariant holds"),
            1 => write!(f, "1 invariant is violated"),
            n => write!(f, "{n} invariants are violated"),
        }?;
        violations.iter().try_for_each(|v| write!(f, "\n  {v}"))
    }
}

/// Verifies a partitioning that [`PartitionedGraph::write`](crate::PartitionedGraph::write) wrote:
///
/// * Every file exists, has the checksum in the metadata, and has valid content.
/// * Every node and edge is inner in exactly one part, and every original id occurs exactly once.
/// * A part contains all in-edges of its inner nodes. The destinations of inner edges are inner nodes.
/// * Halo nodes and copies of edges match those of their owner. The halo has exactly the edges and nodes of its depth.
/// * All parts have the same feature columns, with one row per inner node or edge. The edge cut matches the metadata.
/// * If the input `graph` is given: types and counts match, each edge matches its input edge, and features, lists,
///   texts and ids match the input rows.
///
/// # Errors
/// The metadata cannot be read. All other problems are in the report.
///
/// # Cost
/// `O(V + E)`. All files are read twice, one part at a time. Memory: 4 bytes per node and 12 per edge.
///
/// ```
/// use burn_gnn_dist::{PartitionConfig, partition_graph, verify_partition};
/// use burn_gnn_graph::Graph;
/// # let dir = tempfile::tempdir().unwrap();
/// let ring = Graph::homogeneous(4, vec![0, 1, 2, 3], vec![1, 2, 3, 0])?;
/// let json = partition_graph(&ring, &PartitionConfig::new("ring", 2))?.write(&dir)?;
/// let report = verify_partition(&json, Some(&ring))?;
/// assert!(report.is_ok());
/// assert_eq!(report.to_string(), "`ring`, 2 parts, 4 nodes, 4 edges: every invariant holds");
/// # Ok::<(), burn_gnn_dist::DistError>(())
/// ```
pub fn verify_partition(
    json: impl AsRef<Path>,
    graph: Option<&Graph>,
) -> Result<PartitionReport, DistError> {
    let opened = PartitionFiles::new(json.as_ref())?;
    let violations = Verifier::new(&opened, graph).run()?;
    let meta = &opened.meta;
    Ok(PartitionReport {
        graph_name: meta.graph_name.clone(),
        num_parts: meta.num_parts,
        num_nodes: meta.num_nodes,
        num_edges: meta.num_edges,
        violations,
    })
}
