//! Predicts the memory and the traffic of ranks.

use burn_gnn_dist::{DistError, PartitionedGraph, StepTraffic};
use burn_gnn_models::{MemoryPlan, ModelSizes};

/// Predicted memory and traffic of one rank in full-graph training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartPlan {
    /// Memory of the rank.
    pub memory: MemoryPlan,
    /// Bytes that the rank sends per step: features of halo nodes, their gradients, and gradients
    /// of parameters.
    pub bytes_sent: u64,
}

/// Predicts the memory of each rank, and the bytes that it sends in a step, of training `model` on
/// the whole graph, with one rank per part ([`fit_parts`](super::fit_parts)) and f32 features. It
/// neither writes parts nor sends data.
///
/// ```
/// use burn_gnn::dist::{PartitionConfig, partition_graph};
/// use burn_gnn::models::ModelSizes;
/// use burn_gnn::ranks::plan_parts;
/// let g = burn_gnn::data::karate_club().graph;
/// let parts = partition_graph(&g, &PartitionConfig::new("karate", 2))?;
/// for (rank, plan) in plan_parts(&ModelSizes::gcn([34, 16, 2]), &parts)?.iter().enumerate() {
///     println!("rank {rank}: {} bytes a step\n{}", plan.bytes_sent, plan.memory);
/// }
/// # Ok::<(), burn_gnn::dist::DistError>(())
/// ```
///
/// # Errors
/// The graph has several node types or edge types.
///
/// # Cost
/// As [`PartitionedGraph::plan_step`].
pub fn plan_parts(
    model: &ModelSizes,
    parts: &PartitionedGraph,
) -> Result<Vec<PartPlan>, DistError> {
    let schema = parts.book().schema();
    schema.expect_one_type("parts", "`PartitionedGraph::plan_step` is for several")?;
    let (ntype, name) = (0, &schema.ntypes()[0]);
    let traffic = model
        .exchanges()
        .into_iter()
        .fold(StepTraffic::new(), |t, (w, back)| t.exchange([(name.clone(), w)], back));
    let step = parts.plan_step(&traffic.parameters(model.num_parameters()))?;
    let width = model.widths().first().copied().unwrap_or(0);
    let plan = |rank: &burn_gnn_dist::RankPlan| {
        let [inner, halo, edges] =
            [rank.inner_nodes[ntype], rank.halo_nodes[ntype], rank.edges[0]].map(|n| n as usize);
        let layouts = 8 * edges + 4 * (inner + 1) + 8 * edges + 4 * (inner + halo + 1);
        let memory = MemoryPlan {
            // Endpoints and both layouts; original ids of edges and nodes; degrees, here and in the whole graph.
            structure: 8 * edges + layouts + 8 * (edges + inner + halo) + 16 * inner,
            features: 4 * inner * width,
            parameters: 16 * model.num_parameters(),
            batches: 0,
            step: model.step_bytes_of_part(inner, halo, edges),
        };
        PartPlan { memory, bytes_sent: rank.bytes_sent }
    };
    Ok(step.ranks.iter().map(plan).collect())
}
