//! Predicts the memory of training on graphs of one node type and one edge type.

use burn_gnn_graph::{Graph, GraphError, NodeKey};
use burn_gnn_sampling::{Block, NeighborSampler, SampleKey};

use crate::memory_plan::model_sizes::{Kind, LayerRows, ModelSizes};
use crate::memory_plan::plan::{BatchSizes, F32, MemoryPlan, layout_bytes, structure_bytes};

/// Predicts the memory of full-batch training on a graph of one node type and one edge type, with f32 features of all
/// nodes.
///
/// ```text
/// peak = structure + features + 4 · parameters + step        (ModelSizes::step_bytes)
/// ```
/// Structure: 8 bytes per edge for its endpoints; for each of two layouts 4 bytes per node and 4 bytes per edge, or 8 if
/// edges are not sorted in that order; 8 bytes per node for degree factors. The prediction does not include the program,
/// threads, buffers of matrix products (some MiB) and freed memory that the allocator keeps.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{ModelSizes, plan_full_batch};
/// let g = Graph::homogeneous(100_000, vec![0; 1_000_000], vec![1; 1_000_000])?;
/// let plan = plan_full_batch(&ModelSizes::gcn([128, 64, 40]).with_dropout(), &g)?;
/// assert_eq!(plan.features, 100_000 * 128 * 4);
/// println!("{plan}");
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// The graph has several node types or edge types.
pub fn plan_full_batch(model: &ModelSizes, g: &Graph) -> Result<MemoryPlan, GraphError> {
    g.schema().expect_one_type("g", "`plan_rgcn` is for several")?;
    let (relation, nodes) = (g.relation(..)?, g.num_nodes(..)?);
    let rows = LayerRows { sources: nodes, destinations: nodes, edges: relation.num_edges() };
    Ok(MemoryPlan {
        structure: structure_bytes(relation, true) + 8 * nodes,
        features: nodes * model.widths.first().copied().unwrap_or(0) * F32,
        parameters: 4 * F32 * model.num_parameters(),
        batches: 0,
        step: model.step_bytes(&vec![rows; model.num_layers()]),
    })
}

/// Predicts the memory of mini-batch training: as [`plan_full_batch`], with the rows and edges of the largest of some batches
/// that are sampled for the prediction, and with prefetched batches.
///
/// # Errors
/// The graph has several node types or edge types, or a seed is out of range.
///
/// # Cost
/// Sampling of `sampled` batches.
pub fn plan_mini_batch(
    model: &ModelSizes,
    sampler: &NeighborSampler,
    ntype: impl NodeKey,
    seeds: &[u32],
    sizes: BatchSizes,
) -> Result<MemoryPlan, GraphError> {
    let g = sampler.graph();
    g.schema().expect_one_type("sampler", "`plan_rgcn_mini_batch` is for several")?;
    let (relation, nodes, t) = (g.relation(..)?, g.num_nodes(..)?, g.schema().ntype(ntype)?);
    let width = model.widths.first().copied().unwrap_or(0);
    let (mut step, mut largest) = (0, 0);
    for (i, of_batch) in sizes.of(seeds) {
        let batch = sampler.sample([(t, of_batch)], SampleKey::new(0).at(0, i))?;
        let rows: Vec<LayerRows> = batch.blocks.iter().map(|b| rows_of(b, t)).collect();
        step = step.max(model.step_bytes(&rows));
        let blocks: usize = rows.iter().map(block_bytes).sum();
        largest = largest.max(blocks + rows.first().map_or(0, |r| r.sources * (4 + width * F32)));
    }
    Ok(MemoryPlan {
        // A GCN reads out-degrees, which are computed from the layout by source.
        structure: structure_bytes(relation, model.kind == Kind::Gcn),
        features: nodes * width * F32,
        parameters: 4 * F32 * model.num_parameters(),
        batches: largest * (sizes.ahead + 1),
        step,
    })
}

fn rows_of(block: &Block, ntype: usize) -> LayerRows {
    let edges = block.total_edges();
    LayerRows {
        sources: block.src_nodes(ntype).len(),
        destinations: block.dst_nodes(ntype).len(),
        edges,
    }
}

/// Bytes of a block: its edges, sorted by destination, both layouts, and the id of each edge in the graph.
fn block_bytes(rows: &LayerRows) -> usize {
    12 * rows.edges
        + layout_bytes(rows.destinations, rows.edges, true)
        + layout_bytes(rows.sources, rows.edges, false)
}
