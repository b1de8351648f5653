//! Predicts the memory of training an R-GCN on a whole graph.

use burn_gnn_graph::{Graph, NodeKey, Relation};

use super::{F32, MemoryPlan, layout_bytes};
use crate::type_map::TypeMap;
use crate::{ModelError, RelWeights, RgcnConfig, TypeInput};

/// Predicts the memory of training an [`Rgcn`](crate::Rgcn) on a whole typed graph, a step per epoch: full batch, f32
/// features for all nodes of the types that have some, cross entropy on the nodes of type `target`,
/// [`FusedAdam`](crate::FusedAdam).
///
/// ```text
/// peak = structure + features + 4 · parameters + step
/// ```
/// Structure, per edge into a node type: 8 bytes for endpoints in the graph, 12 for those of all relations concatenated
/// and their numbers, the layouts by destination and by source, 12 for each of them grouped by relation and 8 for edges
/// by relation and their degrees; and 8 for each pair of a relation and an endpoint. Parameters hold a row per node of the
/// types without features. A step keeps the result of each layer and the source features of relations from several types,
/// concatenated, and holds their gradients; gradients of parameters that are not made yet are taken off.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{RgcnConfig, TypeInput, plan_rgcn};
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0])
///     .edges(("paper", "written by", "author"), vec![0, 0], vec![0, 1])
///     .build()?;
/// let plan = plan_rgcn(&RgcnConfig::new(2).with_hidden(8), &g, [("paper", TypeInput::Features(4))], "paper")?;
/// assert_eq!(plan.features, 4 * 4);
/// println!("{plan}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A type that `g` does not have; a size of 0, or dropout outside `0.0..1.0`; one-hot inputs, which are not predicted.
///
/// # Cost
/// Two passes over the edges.
pub fn plan_rgcn(
    config: &RgcnConfig,
    g: &Graph,
    inputs: impl Into<TypeMap<TypeInput>>,
    target: impl NodeKey,
) -> Result<MemoryPlan, ModelError> {
    if config.one_hot {
        return Err(ModelError::OutOfRange { arg: "one_hot".into(), range: "false for a prediction".into(), value: "true".into() });
    }
    let sizes = [("num_layers", config.num_layers), ("hidden", config.hidden), ("num_classes", config.num_classes)];
    ModelError::check_sizes(&sizes, config.dropout)?;
    let schema = g.schema();
    let target = schema.ntype(target)?;
    let nodes = g.node_counts();
    let inputs: Vec<Option<usize>> = inputs
        .into()
        .into_list(schema)?
        .into_iter()
        .map(|input| match input {
            Some(TypeInput::Features(d)) => Some(d),
            Some(TypeInput::Embedding) | None => None,
        })
        .collect();
    let into: Vec<Incoming> = (0..nodes.len()).map(|t| Incoming::new(g, t)).collect();
    let features: usize = inputs.iter().zip(nodes).map(|(d, n)| n * d.unwrap_or(0) * F32).sum();
    let parameters = parameters(config, schema.etypes().len(), &inputs, nodes);
    Ok(MemoryPlan {
        structure: g.relations().iter().map(|r| 8 * r.num_edges()).chain(into.iter().map(|i| i.bytes)).sum(),
        features,
        parameters: 4 * F32 * parameters,
        batches: 0,
        step: Step { config, nodes, inputs: &inputs, into: &into, target }.bytes(F32 * parameters),
    })
}

fn parameters(config: &RgcnConfig, relations: usize, inputs: &[Option<usize>], nodes: &[usize]) -> usize {
    let h = config.hidden;
    let first: usize = inputs.iter().zip(nodes).map(|(d, n)| d.unwrap_or(*n) * h).sum();
    let layer = |i: usize| {
        let last = i + 1 == config.num_layers;
        let o = if last { config.num_classes } else { h };
        let weights = match config.weights {
            RelWeights::Basis(b) => b * h * o + relations * b,
            // The last layer has full weights where blocks do not divide the classes.
            RelWeights::BlockDiagonal(b) if !last || o % b.max(1) == 0 => relations * h * o / b.max(1),
            RelWeights::Full | RelWeights::BlockDiagonal(_) => relations * h * o,
        };
        weights + if config.self_loop { h * o } else { 0 } + o
    };
    first + (0..config.num_layers).map(layer).sum::<usize>()
}

/// The relations into one node type.
struct Incoming {
    /// Node types of sources, each once.
    tables: Vec<usize>,
    /// Bytes of their structure beyond the graph's own.
    bytes: usize,
}

impl Incoming {
    fn new(g: &Graph, dst: usize) -> Self {
        let etypes = g.schema().etypes_into(dst).filter(|&r| g.relations()[r].num_edges() > 0);
        let (mut tables, mut edges, mut pairs) = (vec![], 0, 0);
        for r in etypes {
            let relation: &Relation = &g.relations()[r];
            tables.push(g.schema().ends(r).0);
            edges += relation.num_edges();
            pairs += distinct(relation.src(), relation.num_src()) + distinct(relation.dst(), relation.num_dst());
        }
        tables.sort_unstable();
        tables.dedup();
        let rows: usize = tables.iter().map(|&t| g.node_counts()[t]).sum();
        let layouts = layout_bytes(g.node_counts()[dst], edges, false) + layout_bytes(rows, edges, false);
        let bytes = if edges == 0 { 0 } else { (12 + 2 * 12 + 8) * edges + 8 * pairs + layouts };
        Self { tables, bytes }
    }
    /// Source rows.
    fn rows(&self, nodes: &[usize]) -> usize {
        self.tables.iter().map(|&t| nodes[t]).sum()
    }
    /// Source rows that are concatenated: those of several types.
    fn copied(&self, nodes: &[usize]) -> usize {
        if self.tables.len() > 1 { self.rows(nodes) } else { 0 }
    }
}

/// How many ids there are, each counted once.
fn distinct(ids: &[u32], bound: usize) -> usize {
    let mut seen = vec![false; bound];
    ids.iter().filter(|&&id| !std::mem::replace(&mut seen[id as usize], true)).count()
}

/// One step.
struct Step<'a> {
    config: &'a RgcnConfig,
    nodes: &'a [usize],
    inputs: &'a [Option<usize>],
    into: &'a [Incoming],
    target: usize,
}

impl Step<'_> {
    /// The most that is held at once, less the gradients of parameters that are not there yet.
    fn bytes(&self, gradients: usize) -> usize {
        let Self { config, nodes, inputs, into, target } = *self;
        let (h, layers, drops) = (F32 * config.hidden, config.num_layers, config.dropout > 0.0);
        let all: usize = nodes.iter().sum();
        let (mut kept, mut most) = (0, 0);
        // Features that are dropped are copies; embeddings are parameters, unless dropped.
        let projected: usize = inputs.iter().zip(nodes).map(|(d, n)| if d.is_some() || drops { n * h } else { 0 }).sum();
        kept += projected + if drops { inputs.iter().zip(nodes).map(|(d, n)| n * d.unwrap_or(0) * F32).sum() } else { 0 };
        let out = |i: usize| F32 * if i + 1 == layers { config.num_classes } else { config.hidden };
        let copied = |i: usize| {
            let last = i + 1 == layers;
            let types = (0..nodes.len()).filter(|&t| !last || t == target);
            types.map(|t| into[t].copied(nodes) * h).sum::<usize>()
        };
        // Forward: results of all types, of which the last layer leaves those of the target.
        let every: usize = into.iter().map(|i| i.copied(nodes) * h).sum();
        for i in 0..layers {
            most = most.max(kept + every + all * out(i));
            kept += copied(i) + if i + 1 == layers { 0 } else { all * out(i) };
        }
        let logits = nodes[target] * out(layers - 1);
        most = most.max(kept + 2 * logits).saturating_sub(gradients);
        // Backward, layer by layer, type by type: from gradients of results to those of inputs.
        let mut wanted = vec![false; nodes.len()];
        wanted[target] = true;
        for i in (0..layers).rev() {
            let mut results: usize = (0..nodes.len()).filter(|&t| wanted[t]).map(|t| nodes[t] * out(i)).sum();
            let mut reached = vec![false; nodes.len()];
            for t in (0..nodes.len()).filter(|&t| wanted[t]) {
                into[t].tables.iter().for_each(|&s| reached[s] = true);
                reached[t] |= config.self_loop;
                // Rows of embeddings have their gradients among those of parameters.
                let counted = |s: usize| reached[s] && (i > 0 || inputs[s].is_some() || drops);
                let inputs_so_far: usize = (0..nodes.len()).filter(|&s| counted(s)).map(|s| nodes[s] * h).sum();
                let concatenated = into[t].copied(nodes) * h;
                let missing = if i == 0 { 0 } else { gradients };
                most = most.max((kept + results + inputs_so_far + 2 * concatenated).saturating_sub(missing));
                results -= nodes[t] * out(i);
            }
            kept -= copied(i) + if i == 0 { 0 } else { all * out(i - 1) };
            wanted = reached;
        }
        most
    }
}
