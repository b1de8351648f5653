//! Predicts the memory of training an R-GCN.

use burn_gnn_graph::{Graph, NodeKey, Relation, Schema};
use burn_gnn_sampling::{Block, NeighborSampler, SampleKey};

use crate::encoders::type_input::TypeInput;
use crate::error::ModelError;
use crate::layers::heterogeneous::rel_weights::RelWeights;
use crate::layers::type_map::TypeMap;
use crate::memory_plan::plan::{BatchSizes, F32, MemoryPlan, layout_bytes, structure_bytes};
use crate::networks::rgcn::RgcnConfig;

/// Predicts the memory of full-batch training of an [`Rgcn`](crate::Rgcn): f32 features of all nodes, cross entropy on the
/// nodes of type `target`, and [`FusedAdam`](crate::FusedAdam).
///
/// ```text
/// peak = structure + features + 4 · parameters + step
/// ```
/// * Structure, per edge into a node type: 8 bytes for the endpoints in the graph; 12 for the endpoints of the
///   concatenated relations and the relation; the layouts by destination and by source; 12 for each layout grouped by
///   relation; 8 for edges by relation and their degrees. In addition 8 bytes per pair of a relation and an endpoint.
/// * Parameters include a row per node of the types without features.
/// * A step keeps the result of each layer and the concatenated source features of relations from several types, and
///   allocates their gradients. Gradients of parameters that are allocated later are subtracted.
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
/// `g` does not have a node type, a size is 0, `dropout` is not in `0.0..1.0`, or `one_hot` is set, for which there is no
/// formula.
///
/// # Cost
/// Two passes over the edges.
pub fn plan_rgcn(
    config: &RgcnConfig,
    g: &Graph,
    inputs: impl Into<TypeMap<TypeInput>>,
    target: impl NodeKey,
) -> Result<MemoryPlan, ModelError> {
    let sizes = Checked::new(config, g, inputs, target)?;
    let nodes = || g.node_counts().to_vec();
    let layer = LayerTypes::of(g.schema(), nodes(), nodes(), g.relations());
    let structure = g.relations().iter().map(|r| 8 * r.num_edges()).sum::<usize>() + layer.bytes();
    let layers = vec![&layer; config.num_layers];
    Ok(MemoryPlan { structure, batches: 0, ..sizes.plan(&layers) })
}

/// Predicts the memory of mini-batch training of an [`Rgcn`](crate::Rgcn): as [`plan_rgcn`], with the nodes and edges of the
/// largest of some batches that are sampled for the prediction, and with prefetched batches. A batch copies the rows of
/// its embeddings, and the destination rows of each type that has more sources than destinations.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{BatchSizes, RgcnConfig, TypeInput, plan_rgcn_mini_batch};
/// use burn_gnn_sampling::NeighborSampler;
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0])
///     .edges(("paper", "written by", "author"), vec![0, 0], vec![0, 1])
///     .build()?;
/// let sampler = NeighborSampler::new(&g, [5, 5])?;
/// let batches = BatchSizes { batch_size: 1, ahead: 2, sampled: 1 };
/// let inputs = [("paper", TypeInput::Features(4))];
/// let plan = plan_rgcn_mini_batch(&RgcnConfig::new(2).with_hidden(8), &sampler, inputs, "paper", &[0], batches)?;
/// assert!(plan.batches > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`plan_rgcn`]; a seed is out of range, or the sampler does not have one hop per layer.
///
/// # Cost
/// Sampling of `sampled` batches, and two passes over their edges.
pub fn plan_rgcn_mini_batch(
    config: &RgcnConfig,
    sampler: &NeighborSampler,
    inputs: impl Into<TypeMap<TypeInput>>,
    target: impl NodeKey,
    seeds: &[u32],
    batches: BatchSizes,
) -> Result<MemoryPlan, ModelError> {
    let g = sampler.graph();
    let sizes = Checked::new(config, g, inputs, target)?;
    let mut plan = MemoryPlan::default();
    for of_batch in batches.of(seeds) {
        let batch =
            sampler.sample([(sizes.target, of_batch.1)], SampleKey::new(0).at(0, of_batch.0))?;
        let layer = |b: &Block| {
            let types = 0..g.schema().ntypes().len();
            let sources = types.clone().map(|t| b.src_nodes(t).len()).collect();
            let destinations = types.map(|t| b.dst_nodes(t).len()).collect();
            LayerTypes::of(g.schema(), sources, destinations, b.relations())
        };
        let layers: Vec<LayerTypes> = batch.blocks.iter().map(layer).collect();
        if layers.len() != config.num_layers {
            let range = format!("{} for the hops of the sampler", layers.len());
            return Err(ModelError::out_of_range("num_layers", range, config.num_layers));
        }
        let of_layers: Vec<&LayerTypes> = layers.iter().collect();
        let of_batch = sizes.plan(&of_layers);
        let blocks: usize = batch.blocks.iter().map(|b| 12 * b.total_edges()).sum();
        let rows: usize = sizes
            .inputs
            .iter()
            .zip(&layers[0].sources)
            .map(|(d, n)| n * (4 + d.unwrap_or(0) * F32))
            .sum();
        let made: usize = layers.iter().map(LayerTypes::bytes).sum();
        plan.step = plan.step.max(of_batch.step + made);
        plan.batches = plan.batches.max((blocks + rows) * (batches.ahead + 1));
        (plan.features, plan.parameters) = (of_batch.features, of_batch.parameters);
    }
    plan.structure = g.relations().iter().map(|r| structure_bytes(r, false)).sum();
    Ok(plan)
}

/// A model and a graph with matching types.
struct Checked<'a> {
    config: &'a RgcnConfig,
    g: &'a Graph,
    /// Feature size of each node type with features.
    inputs: Vec<Option<usize>>,
    target: usize,
}

impl<'a> Checked<'a> {
    fn new(
        config: &'a RgcnConfig,
        g: &'a Graph,
        inputs: impl Into<TypeMap<TypeInput>>,
        target: impl NodeKey,
    ) -> Result<Self, ModelError> {
        if config.one_hot {
            return Err(ModelError::out_of_range("one_hot", "false for a prediction", true));
        }
        config.check()?;
        let width = |input| match input {
            Some(TypeInput::Features(d)) => Some(d),
            Some(TypeInput::Embedding) | None => None,
        };
        let inputs = inputs.into().into_list(g.schema())?.into_iter().map(width).collect();
        Ok(Self { config, g, inputs, target: g.schema().ntype(target)? })
    }

    /// Predicts features, parameters and a step whose layer `i` runs on `layers[i]`.
    fn plan(&self, layers: &[&LayerTypes]) -> MemoryPlan {
        let (inputs, nodes) = (&self.inputs, self.g.node_counts());
        let parameters = self.parameters();
        let embeddings = inputs
            .iter()
            .zip(nodes)
            .filter(|i| i.0.is_none())
            .map(|i| i.1 * self.config.hidden)
            .sum::<usize>();
        MemoryPlan {
            features: inputs.iter().zip(nodes).map(|(d, n)| n * d.unwrap_or(0) * F32).sum(),
            parameters: 4 * F32 * parameters,
            step: self.step(layers, F32 * parameters, F32 * embeddings),
            ..MemoryPlan::default()
        }
    }

    fn parameters(&self) -> usize {
        let Self { config, g, inputs, .. } = self;
        let (h, relations) = (config.hidden, g.schema().etypes().len());
        let nodes = g.node_counts();
        let first: usize = inputs.iter().zip(nodes).map(|(d, n)| d.unwrap_or(*n) * h).sum();
        let layer = |i: usize| {
            let (o, weights) = config.layer(i);
            let weights = match weights {
                RelWeights::Basis(b) => b * h * o + relations * b,
                RelWeights::BlockDiagonal(b) => relations * h * o / b.max(1),
                RelWeights::Full => relations * h * o,
            };
            weights + if config.self_loop { h * o } else { 0 } + o
        };
        first + (0..config.num_layers).map(layer).sum::<usize>()
    }

    /// Predicts the peak of a step, less the gradients of parameters that are not allocated at that time: `gradients` are
    /// the bytes of all of them, `embeddings` those of embeddings.
    fn step(&self, layers: &[&LayerTypes], gradients: usize, embeddings: usize) -> usize {
        let Self { config, ref inputs, target, .. } = *self;
        let (h, last, drops) = (F32 * config.hidden, layers.len() - 1, config.dropout > 0.0);
        let types = 0..inputs.len();
        let first = &layers[0].sources;
        let is_block = types.clone().any(|t| layers[0].own(t) > 0);
        let (mut kept, mut most) = (0, 0);
        // Dropout copies features. Embeddings are parameters, but dropout and blocks copy their rows. On a block, layers
        // copy rows (concatenated types and destinations), so the autodiff graph keeps the input only if a single type
        // is read.
        let is_copy = |t: usize| inputs[t].is_some() || drops || is_block;
        let is_kept = |t: usize| !is_block || layers[0].into.iter().any(|i| i.tables == [t]);
        let rows = |which: &dyn Fn(usize) -> bool| {
            types.clone().filter(|&t| which(t)).map(|t| first[t] * h).sum::<usize>()
        };
        kept += rows(&|t| is_copy(t) && is_kept(t));
        let passing = rows(&|t| is_copy(t) && !is_kept(t));
        if drops {
            kept += types.clone().map(|t| first[t] * inputs[t].unwrap_or(0) * F32).sum::<usize>();
        }
        let out = |i: usize| F32 * config.layer(i).0;
        let results = |i: usize| layers[i].destinations.iter().sum::<usize>() * out(i);
        let own = |i: usize, t: usize| layers[i].own(t) * h;
        let copied = |i: usize| {
            let wanted = types.clone().filter(|&t| i < last || t == target);
            wanted.map(|t| layers[i].concatenated(t) * h + own(i, t)).sum::<usize>()
        };
        // Forward: results of all types; after the last layer only those of the target remain.
        for (i, layer) in layers.iter().enumerate() {
            let every: usize = types.clone().map(|t| layer.concatenated(t) * h + own(i, t)).sum();
            most = most.max(kept + every + results(i) + if i == 0 { passing } else { 0 });
            kept += copied(i) + if i == last { 0 } else { results(i) };
        }
        let logits = layers[last].destinations[target] * out(last);
        most = most.max(kept + 2 * logits).saturating_sub(gradients);
        // Backward, by layer and node type: from gradients of results to gradients of inputs.
        let mut wanted = vec![false; inputs.len()];
        wanted[target] = true;
        for i in (0..=last).rev() {
            let layer = layers[i];
            let mut waiting: usize =
                types.clone().filter(|&t| wanted[t]).map(|t| layer.destinations[t] * out(i)).sum();
            let mut reached = vec![false; inputs.len()];
            for t in types.clone().filter(|&t| wanted[t]) {
                layer.into[t].tables.iter().for_each(|&s| reached[s] = true);
                reached[t] |= config.self_loop;
                // `gradients` contains the gradients of embeddings.
                let has_gradient = |s: usize| reached[s] && (i > 0 || is_copy(s));
                let inputs_so_far: usize =
                    types.clone().filter(|&s| has_gradient(s)).map(|s| layer.sources[s] * h).sum();
                let missing = match i {
                    0 if is_block => embeddings,
                    0 => 0,
                    _ => gradients,
                };
                most = most.max(
                    (kept + waiting + inputs_so_far + 2 * layer.concatenated(t) * h + own(i, t))
                        .saturating_sub(missing),
                );
                waiting -= layer.destinations[t] * out(i);
            }
            kept -= copied(i) + if i == 0 { 0 } else { results(i - 1) };
            wanted = reached;
        }
        // At the end, the gradients of the embeddings of a block are scattered to all rows.
        most.max(if is_block { kept + rows(&|t| inputs[t].is_none()) } else { 0 })
    }
}

/// Sizes of a layer by node type, on a whole graph or a block.
struct LayerTypes {
    sources: Vec<usize>,
    destinations: Vec<usize>,
    into: Vec<Incoming>,
}

impl LayerTypes {
    fn of(
        schema: &Schema,
        sources: Vec<usize>,
        destinations: Vec<usize>,
        relations: &[Relation],
    ) -> Self {
        let into = (0..sources.len())
            .map(|t| Incoming::new(schema, (&sources, destinations[t]), t, relations))
            .collect();
        Self { sources, destinations, into }
    }
    /// Bytes of structure that the layer allocates.
    fn bytes(&self) -> usize {
        self.into.iter().map(|i| i.bytes).sum()
    }
    /// Number of destination rows that are copied from source rows.
    fn own(&self, t: usize) -> usize {
        if self.destinations[t] < self.sources[t] { self.destinations[t] } else { 0 }
    }
    /// Number of source rows that are concatenated, because relations into the type come from several types.
    fn concatenated(&self, t: usize) -> usize {
        let tables = &self.into[t].tables;
        if tables.len() > 1 { tables.iter().map(|&s| self.sources[s]).sum() } else { 0 }
    }
}

/// The relations into one node type.
struct Incoming {
    /// Node types of sources, each once.
    tables: Vec<usize>,
    /// Bytes of their structure beyond the graph's own.
    bytes: usize,
}

impl Incoming {
    fn new(
        schema: &Schema,
        (sources, num_dst): (&[usize], usize),
        dst: usize,
        relations: &[Relation],
    ) -> Self {
        let (mut tables, mut edges, mut pairs) = (vec![], 0, 0);
        for r in schema.etypes_into(dst) {
            let of = &relations[r];
            if of.num_edges() > 0 {
                tables.push(schema.endpoints(r).0);
                edges += of.num_edges();
                pairs += distinct(of.src(), of.num_src()) + distinct(of.dst(), of.num_dst());
            }
        }
        tables.sort_unstable();
        tables.dedup();
        let rows: usize = tables.iter().map(|&t| sources[t]).sum();
        let layouts = layout_bytes(num_dst, edges, false) + layout_bytes(rows, edges, false);
        let bytes = if edges == 0 { 0 } else { (12 + 2 * 12 + 8) * edges + 8 * pairs + layouts };
        Self { tables, bytes }
    }
}

/// How many ids there are, each counted once.
fn distinct(ids: &[u32], bound: usize) -> usize {
    let mut seen = vec![false; bound];
    ids.iter().filter(|&&id| !std::mem::replace(&mut seen[id as usize], true)).count()
}
