//! Verifies every invariant of a partitioning on disk.

use std::fmt;
use std::path::Path;

use burn_gnn_graph::Graph;
use burn_gnn_graph::internal::counted;

use super::verifier::Verifier;
use crate::error::DistError;
use crate::partition::read::parts::PartitionFiles;

/// What [`verify_partition`] found; prints for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// Name of the graph.
    pub graph_name: String,
    /// Number of parts.
    pub num_parts: usize,
    /// Nodes of all types.
    pub num_nodes: u64,
    /// Edges of all types.
    pub num_edges: u64,
    /// What does not hold: a line each, of equal faults of one part the first and the number of the others.
    pub violations: Vec<String>,
}

impl PartitionReport {
    /// Whether everything holds.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { graph_name, num_parts, num_nodes, num_edges, violations } = self;
        let parts = counted(*num_parts, "part");
        let [nodes, edges] =
            [(*num_nodes, "node"), (*num_edges, "edge")].map(|(n, what)| counted(n, what));
        write!(f, "`{graph_name}`, {parts}, {nodes}, {edges}: ")?;
        match violations.len() {
            0 => write!(f, "every invariant holds"),
            1 => write!(f, "1 invariant is violated"),
            n => write!(f, "{n} invariants are violated"),
        }?;
        violations.iter().try_for_each(|v| write!(f, "\n  {v}"))
    }
}

/// Checks a partitioning that [`PartitionedGraph::write`](crate::PartitionedGraph::write) wrote:
///
/// * every file is there, of the checksum in the metadata, and says nothing impossible;
/// * every node and every edge is inner in exactly one part, its original ids are those of the input, each once;
/// * all in-edges of inner nodes are in the part; inner edges end in inner nodes;
/// * halo nodes and copies of edges agree with their owner's; the halo has exactly the edges and nodes that its depth
///   asks for;
/// * parts have the same feature columns, with a row per inner node or edge; the cut is what the metadata says;
/// * with `graph`, the input: types and counts agree, each edge leads back to its input edge, features, lists, texts
///   and ids are the input rows.
///
/// # Errors
/// The metadata cannot be read, so that there is nothing to check. All else is in the report.
///
/// # Cost
/// `O(V + E)`; files are read twice, one part at a time, and 4 bytes per node and 12 per edge kept.
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
