//! Predicts the size of parts and the communication of a step of full-graph training.

use std::fmt;

use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::readable_bytes;

use super::partitioned_graph::PartitionedGraph;
use crate::error::DistError;

/// Bytes of a message in addition to its rows.
const HEADER_BYTES: u64 = 2;

/// Communication of one step of full-graph training: halo exchanges of layers, and sums over ranks.
///
/// ```
/// use burn_gnn_dist::StepTraffic;
/// // A GCN of feature sizes 128, 64, 40 multiplies by its weights first: it exchanges 64 and 40 features per node, and
/// // the gradients of both.
/// let step = StepTraffic::new().exchange([("_N", 64)], true).exchange([("_N", 40)], true).parameters(128 * 64 + 64 + 64 * 40 + 40);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTraffic {
    exchanges: Vec<Exchange>,
    /// Number of values that are summed over ranks, one entry per call.
    sums: Vec<usize>,
    value_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Exchange {
    /// Feature size by node type; other types have size 0.
    columns: Vec<(String, usize)>,
    gradients: bool,
}

impl StepTraffic {
    /// A step without communication.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds the halo exchange of a layer.
    ///
    /// `columns` is the feature size of each node type in the exchange: for a layer that multiplies by its weights
    /// before it aggregates, the output size. `gradients` is whether `backward` sends gradients back, which is the case
    /// if some rank tracks its rows (input features are not tracked).
    #[must_use]
    pub fn exchange(
        mut self,
        columns: impl IntoIterator<Item = (impl Into<String>, usize)>,
        gradients: bool,
    ) -> Self {
        let columns = columns.into_iter().map(|(ntype, n)| (ntype.into(), n)).collect();
        self.exchanges.push(Exchange { columns, gradients });
        self
    }
    /// Adds the sum of the gradients of `count` parameters ([`all_reduce_gradients`](crate::all_reduce_gradients)).
    #[must_use]
    pub fn parameters(self, count: usize) -> Self {
        self.sum(count)
    }
    /// Adds one call that sums `numbers` values over ranks, such as a loss and a count.
    #[must_use]
    pub fn sum(mut self, numbers: usize) -> Self {
        self.sums.push(numbers);
        self
    }
    /// Sets the size of a value in exchanges; 4 bytes (f32) by default.
    #[must_use]
    pub fn value_bytes(mut self, bytes: usize) -> Self {
        self.value_bytes = Some(bytes as u64);
        self
    }
}

/// Size of the part of one rank, and the bytes that the rank sends in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankPlan {
    /// Nodes that the rank owns, by node type: the rows that its layers compute.
    pub inner_nodes: Vec<u64>,
    /// Nodes of other ranks that are sources of its edges, by node type: the rows that it receives.
    pub halo_nodes: Vec<u64>,
    /// Rows that the rank sends, by node type. A node counts once for each rank that has it in its halo.
    pub sent_rows: Vec<u64>,
    /// In-edges of its nodes, by edge type.
    pub edges: Vec<u64>,
    /// Bytes that the rank sends to other ranks in a step.
    pub bytes_sent: u64,
}

/// Prediction of [`PartitionedGraph::plan_step`] for each rank. `Display` prints a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// Prediction by rank.
    pub ranks: Vec<RankPlan>,
}

impl StepPlan {
    /// Bytes that all ranks send in a step.
    pub fn bytes_sent(&self) -> u64 {
        self.ranks.iter().map(|r| r.bytes_sent).sum()
    }
}

impl fmt::Display for StepPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |n: u64| readable_bytes(usize::try_from(n).unwrap_or(usize::MAX));
        writeln!(
            f,
            "{:>7} {:>12} {:>12} {:>12} {:>12} {:>14}",
            "rank", "inner nodes", "halo nodes", "edges", "rows sent", "sent per step"
        )?;
        for (rank, r) in self.ranks.iter().enumerate() {
            let sum = |of: &[u64]| of.iter().sum::<u64>();
            writeln!(
                f,
                "{rank:>7} {:>12} {:>12} {:>12} {:>12} {:>14}",
                sum(&r.inner_nodes),
                sum(&r.halo_nodes),
                sum(&r.edges),
                sum(&r.sent_rows),
                bytes(r.bytes_sent)
            )?;
        }
        write!(f, "{:>7} {:>66}", "all", bytes(self.bytes_sent()))
    }
}

impl PartitionedGraph {
    /// Predicts the size of each part and the bytes that each rank sends in one step of full-graph training, with one
    /// rank per part. No part is extracted or written.
    ///
    /// ```text
    /// sent = Σ over exchanges of b · Σ over node types of columns · (rows sent + halo rows, if gradients come back)
    ///      + 8 · numbers summed · (ranks - 1)
    /// ```
    /// where `b` is the size of a value in bytes; each message has two more bytes. To predict the memory of a rank,
    /// call `burn_gnn_models::ModelSizes::step_bytes` with its inner and halo nodes as sources and its inner nodes as
    /// destinations.
    ///
    /// ```
    /// use burn_gnn_dist::{PartitionConfig, StepTraffic, partition_graph};
    /// use burn_gnn_graph::Graph;
    /// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
    /// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 2))?;
    /// let plan = parts.plan_step(&StepTraffic::new().exchange([("_N", 16)], false))?;
    /// assert_eq!(plan.ranks[0].bytes_sent, 16 * 4 + 2); // the row of its last node
    /// # Ok::<(), burn_gnn_dist::DistError>(())
    /// ```
    ///
    /// # Errors
    /// An exchange names an unknown node type.
    ///
    /// # Cost
    /// `O(V + E)` and 4 bytes per node of the largest type.
    pub fn plan_step(&self, step: &StepTraffic) -> Result<StepPlan, DistError> {
        let (parts, schema) = (self.config.num_parts, self.book.schema());
        let ntypes = schema.ntypes().len();
        // Rows of a type that part `from` sends to part `to`: `borrowed[type][to * parts + from]`.
        let mut borrowed = vec![vec![0u64; parts * parts]; ntypes];
        for (t, borrowed) in borrowed.iter_mut().enumerate() {
            // The last part that counted each node.
            let mut seen = vec![u32::MAX; self.owner[t].len()];
            let mut at: Vec<usize> = vec![0; schema.etypes().len()];
            for to in 0..parts {
                for e in schema.etypes_from(t) {
                    let count = self.edges[e].counts[to] as usize;
                    for &edge in &self.edges[e].ids[at[e]..at[e] + count] {
                        let src = self.graph.relations()[e].src()[edge as usize] as usize;
                        let from = self.owner[t][src] as usize;
                        if from != to && std::mem::replace(&mut seen[src], to as u32) != to as u32 {
                            borrowed[to * parts + from] += 1;
                        }
                    }
                    at[e] += count;
                }
            }
        }
        let columns =
            step.exchanges.iter().map(|x| self.columns(x)).collect::<Result<Vec<_>, _>>()?;
        let value = step.value_bytes.unwrap_or(4);
        let travels = borrowed.iter().any(|b| b.iter().any(|&n| n > 0));
        let others = parts as u64 - 1;
        let rank = |p: usize| {
            let inner_nodes =
                (0..ntypes).map(|t| self.book.nodes.inner(p, t)).collect::<Result<Vec<_>, _>>()?;
            let edges = (0..schema.etypes().len())
                .map(|t| self.book.edges.inner(p, t))
                .collect::<Result<Vec<_>, _>>()?;
            let halo_nodes: Vec<u64> =
                borrowed.iter().map(|b| b[p * parts..(p + 1) * parts].iter().sum()).collect();
            let sent_rows: Vec<u64> =
                borrowed.iter().map(|b| (0..parts).map(|to| b[to * parts + p]).sum()).collect();
            let rows = |of: &[u64], columns: &[u64]| {
                of.iter().zip(columns).map(|(n, c)| n * c * value).sum::<u64>()
                    + HEADER_BYTES * others
            };
            let mut bytes_sent = 0;
            for (x, columns) in step.exchanges.iter().zip(&columns).filter(|_| travels) {
                bytes_sent += rows(&sent_rows, columns)
                    + if x.gradients { rows(&halo_nodes, columns) } else { 0 };
            }
            bytes_sent += step.sums.iter().map(|&n| 8 * n as u64 * others).sum::<u64>();
            Ok(RankPlan { inner_nodes, halo_nodes, sent_rows, edges, bytes_sent })
        };
        Ok(StepPlan { ranks: (0..parts).map(rank).collect::<Result<_, DistError>>()? })
    }

    /// Feature size of each node type in an exchange.
    fn columns(&self, exchange: &Exchange) -> Result<Vec<u64>, GraphError> {
        let mut columns = vec![0; self.book.ntypes().len()];
        for (ntype, n) in &exchange.columns {
            columns[self.book.schema().ntype(ntype)?] = *n as u64;
        }
        Ok(columns)
    }
}
