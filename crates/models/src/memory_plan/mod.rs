//! Predicts the memory of training before it begins.

mod rgcn;

pub use rgcn::{plan_rgcn, plan_rgcn_mini_batch};

use std::fmt;

use burn_gnn_graph::internal::readable_bytes;
use burn_gnn_graph::{Graph, GraphError, NodeKey, Relation};
use burn_gnn_sampling::{Block, NeighborSampler, SampleKey};

/// Bytes of an f32.
const F32: usize = 4;

/// Rows and edges that one layer computes with: of a graph, a block, or a part of a partitioned graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerRows {
    /// Source rows; on a part its own nodes and those it borrows.
    pub sources: usize,
    /// Destination rows.
    pub destinations: usize,
    /// Edges.
    pub edges: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gcn,
    Sage,
    Gat { heads: usize },
}

/// The sizes of a model of which [`plan_full_batch`] and [`plan_mini_batch`] predict the memory: layers one after the
/// other with ReLU (GAT: ELU or ReLU) between them, trained with cross entropy and [`FusedAdam`](crate::FusedAdam).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSizes {
    kind: Kind,
    widths: Vec<usize>,
    dropout: bool,
}

impl ModelSizes {
    /// [`Gcn`](crate::Gcn): `widths[i]` is the feature size before layer `i`, the last entry the number of classes.
    pub fn gcn(widths: impl Into<Vec<usize>>) -> Self {
        Self { kind: Kind::Gcn, widths: widths.into(), dropout: false }
    }
    /// [`Sage`](crate::Sage) with the mean aggregator; widths as for [`gcn`](Self::gcn).
    pub fn sage(widths: impl Into<Vec<usize>>) -> Self {
        Self { kind: Kind::Sage, widths: widths.into(), dropout: false }
    }
    /// [`Gat`](crate::Gat) with `heads` concatenated heads in hidden layers, one in the last (`out_heads` 1), and
    /// without residuals: `widths[i]` is the feature size of all heads before layer `i`, the last entry the number
    /// of classes.
    pub fn gat(widths: impl Into<Vec<usize>>, heads: usize) -> Self {
        Self { kind: Kind::Gat { heads }, widths: widths.into(), dropout: false }
    }
    /// With dropout between layers, and of the features of a GCN or GAT.
    #[must_use]
    pub fn with_dropout(mut self) -> Self {
        self.dropout = true;
        self
    }
    /// Feature sizes before each layer, and the number of classes.
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }
    /// Whether there is dropout.
    pub fn has_dropout(&self) -> bool {
        self.dropout
    }
    /// Number of layers.
    pub fn num_layers(&self) -> usize {
        self.widths.len().saturating_sub(1)
    }
    /// Number of parameters: weights and biases.
    pub fn num_parameters(&self) -> usize {
        // Matrices, and vectors of the output size: a bias, and two that attention scores are products with.
        let (matrices, vectors) = match self.kind {
            Kind::Gcn => (1, 1),
            Kind::Sage => (2, 1),
            Kind::Gat { .. } => (1, 3),
        };
        self.widths.windows(2).map(|w| matrices * w[0] * w[1] + vectors * w[1]).sum()
    }
    /// Bytes that a step holds beyond parameters, optimizer, structure and features: what layers keep for backward, and
    /// the most that one operator holds beside it. Layer `i` runs on `rows[i]`.
    ///
    /// With `S`, `D` the source and destination rows of a layer and `I`, `O` its feature sizes, all in f32:
    ///
    /// * It multiplies first where `I > O`: `p = x W` takes `S·O`, the sum over neighbours `D·O`, and its input is
    ///   kept. Backward holds the gradients of result and `p`, `D·O + S·O`, then those of `p` and input, `S·O + S·I`.
    /// * Else it aggregates first: the sums `D·I` are kept, the product takes `D·O`. Backward holds the gradients of
    ///   result and sums, `D·O + D·I`, then those of sums and input, `D·I + S·I`.
    /// * SAGE keeps its input in both cases, and backward holds the gradient of destination rows, `D·I`, beside the
    ///   others.
    /// * GAT keeps its input, `z = x W` with `S·O`, scores with `(S + D)·H` for `H` heads, sums and result,
    ///   `2·D·O`, and two numbers per destination and head. Backward holds the gradients of sums and `z`,
    ///   `D·O + S·O`, of scores, `(S + D)·H`, and of each edge, `E·H`; then that of `z` twice; then those of `z`
    ///   and input. Where `D < S`, on blocks, a copy of the first rows of `z` is added.
    /// * A ReLU after a product is kept as a bit per entry, after a sum over neighbours as the result, and backward
    ///   holds the gradient of the latter twice, `D·O` more. Dropout keeps its key; it copies the features of a GCN,
    ///   and the result of a sum over neighbours.
    ///
    /// # Panics
    /// Not one entry per layer.
    #[track_caller]
    pub fn step_bytes(&self, rows: &[LayerRows]) -> usize {
        self.step(rows, (0..rows.len()).map(|i| self.layer(i, rows[i])).collect())
    }

    /// The feature size that each layer exchanges between ranks, and whether gradients come back.
    pub fn exchanges(&self) -> Vec<(usize, bool)> {
        let of = |(i, w): (usize, &[usize])| if w[0] > w[1] { (w[1], true) } else { (w[0], i > 0) };
        self.widths.windows(2).enumerate().map(of).collect()
    }

    /// [`step_bytes`](Self::step_bytes) of a rank that owns `inner` nodes, borrows `halo` nodes and has `edges`
    /// in-edges: with the rows that it sends and receives.
    ///
    /// With `w` the feature size of an [exchange](Self::exchanges): forward has the rows before it, those after it
    /// and the messages, `inner·w + 2·halo·w` more, and backward their gradients.
    pub fn step_bytes_of_part(&self, inner: usize, halo: usize, edges: usize) -> usize {
        let rows = vec![
            LayerRows { sources: inner + halo, destinations: inner, edges };
            self.num_layers()
        ];
        let layer = |(i, (w, tracked)): (usize, (usize, bool))| {
            let (mut layer, messages) = (self.layer(i, rows[i]), 2 * halo * w * F32);
            if w < self.widths[i] {
                // The product is exchanged: its input has no rows of others.
                let borrowed = halo * self.widths[i] * F32;
                let of_input = borrowed.min(layer.input);
                layer.input -= of_input;
                layer.forward = layer.forward.saturating_sub(of_input) + inner * w * F32;
                layer.backward_of_input =
                    layer.backward_of_input.saturating_sub(if i == 0 { 0 } else { borrowed });
            } else if layer.input == 0 {
                // The features of the first layer and those that were received are one tensor.
                layer.forward += (inner + halo) * w * F32;
            }
            layer.forward += messages;
            layer.backward_of_input += if tracked { inner * w * F32 + messages } else { 0 };
            layer
        };
        self.step(&rows, self.exchanges().into_iter().enumerate().map(layer).collect())
    }

    #[track_caller]
    fn step(&self, rows: &[LayerRows], layers: Vec<Layer>) -> usize {
        assert_eq!(rows.len(), self.num_layers(), "`rows` must have one entry per layer");
        let mut step = Step::default();
        for layer in &layers {
            step.holds(layer.forward);
            step.kept += layer.kept();
        }
        if let (Some(rows), Some(classes)) = (rows.last(), self.widths.last()) {
            // Logits, and the gradient that takes their place.
            step.holds(2 * rows.destinations * classes * F32);
        }
        for layer in layers.iter().rev() {
            step.holds(layer.backward);
            step.kept -= layer.freed();
            step.holds(layer.backward_of_input);
            step.kept -= layer.kept() - layer.freed();
        }
        step.most
    }

    fn layer(&self, i: usize, rows: LayerRows) -> Layer {
        match self.kind {
            Kind::Gat { heads } => self.gat_layer(i, rows, heads),
            Kind::Gcn | Kind::Sage => self.sum_layer(i, rows),
        }
    }

    /// Of attention. The result is the input of the next layer, which keeps it too.
    fn gat_layer(&self, i: usize, rows: LayerRows, heads: usize) -> Layer {
        let (s, d) = (rows.sources * F32, rows.destinations * F32);
        let (i_size, o_size) = (self.widths[i], self.widths[i + 1]);
        let (is_first, is_last) = (i == 0, i + 1 == self.num_layers());
        let heads = if is_last { 1 } else { heads };
        let (z, sums, scores) = (s * o_size, d * o_size, (s + d) * heads);
        let input = if is_first && self.dropout { s * i_size } else { 0 };
        let d_input = if is_first { 0 } else { s * i_size };
        // Logits are a copy with the bias, and the mean over heads, which become the gradient.
        let result = if is_last { 0 } else { sums };
        let of_sums = sums + 2 * d * heads;
        // Rows of `z` that are destinations too, where others are not: a copy, whose gradient is made of zeros and
        // of it.
        let (copy, spread) = if d < s { (sums, z) } else { (0, 0) };
        let kept = z + copy + scores + of_sums;
        let attention = sums + z + scores + rows.edges * heads * F32;
        let of_scores = (2 * z + spread + copy + scores).saturating_sub(of_sums);
        Layer {
            input,
            keeps_input: true,
            kept_sums: kept,
            kept_result: result,
            forward: input + kept + if is_last { 2 * sums } else { result },
            backward: attention.max(of_scores).saturating_sub(result),
            backward_of_input: (z + d_input).saturating_sub(result),
        }
    }

    /// Of sums over neighbours, before or after a product.
    fn sum_layer(&self, i: usize, rows: LayerRows) -> Layer {
        let (s, d) = (rows.sources * F32, rows.destinations * F32);
        let (i_size, o_size) = (self.widths[i], self.widths[i + 1]);
        let (is_first, is_last) = (i == 0, i + 1 == self.num_layers());
        let (sage, first_product) = (self.kind == Kind::Sage, i_size > o_size);
        // The input: features are the caller's unless dropout copies them, and the result of a layer that keeps it is
        // counted there.
        let is_kept_there = !is_first && !sage && self.widths[i - 1] > i_size && !self.dropout;
        let input =
            if (is_first && (sage || !self.dropout)) || is_kept_there { 0 } else { s * i_size };
        let bits = if is_last { 0 } else { rows.destinations * o_size.div_ceil(8) };
        let (result, product, sums) = (d * o_size, s * o_size, d * i_size);
        let d_input = if is_first { 0 } else { s * i_size };
        // The gradient of destination rows, which waits for that of sources.
        let d_self = if is_first || !sage { 0 } else { d * i_size };
        let mut layer = Layer { input, keeps_input: sage || first_product, ..Layer::default() };
        if first_product {
            let copy = if self.dropout && !is_last { result } else { 0 };
            layer.kept_result = if sage {
                bits
            } else if is_last {
                0
            } else {
                result
            };
            layer.forward = input
                + if sage {
                    product + result + bits
                } else {
                    (product + result).max(result + copy)
                };
            // A gradient that a ReLU has cut is another tensor than that of the result.
            let cut = if sage || is_last { 0 } else { result };
            layer.backward = result + cut + d_self + product;
            layer.backward_of_input = d_self + product + d_input;
        } else {
            layer.kept_sums = sums;
            layer.kept_result = bits;
            let product = sums + result + bits;
            // An input that nobody keeps is freed before the product.
            layer.forward =
                if layer.keeps_input { input + product } else { product.max(input + sums) };
            let d_sums = if is_first { 0 } else { sums };
            layer.backward = result + d_self;
            layer.backward_of_input = d_self + d_sums + result.max(d_input);
        }
        layer
    }
}

/// Bytes of one layer.
#[derive(Clone, Copy, Debug, Default)]
struct Layer {
    /// Its input, where nobody else is counted for it.
    input: usize,
    keeps_input: bool,
    /// Sums over neighbours that a product keeps.
    kept_sums: usize,
    /// What tells where a ReLU was 0.
    kept_result: usize,
    /// Most that forward holds at once, its input included.
    forward: usize,
    /// Most that backward allocates before inputs of products are freed, and after.
    backward: usize,
    backward_of_input: usize,
}

impl Layer {
    fn kept(&self) -> usize {
        self.freed() + self.kept_result
    }
    /// What products keep: freed before the gradient of it is made.
    fn freed(&self) -> usize {
        self.kept_sums + if self.keeps_input { self.input } else { 0 }
    }
}

/// What layers keep so far, and the most that was held at once.
#[derive(Debug, Default)]
struct Step {
    kept: usize,
    most: usize,
}

impl Step {
    fn holds(&mut self, beside: usize) {
        self.most = self.most.max(self.kept + beside);
    }
}

/// Memory of a training run in bytes, by what holds it. `Display` is a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Edges, and the layouts by destination and by source that forward and backward read.
    pub structure: usize,
    /// Features and labels.
    pub features: usize,
    /// Parameters, their gradients and the two moments of Adam.
    pub parameters: usize,
    /// Batches that are prefetched, and the one in use: blocks and feature rows.
    pub batches: usize,
    /// What a step keeps for backward, and the most that an operator holds beside it.
    pub step: usize,
}

impl MemoryPlan {
    /// The most bytes in use at one moment.
    pub fn peak(&self) -> usize {
        self.structure + self.features + self.parameters + self.batches + self.step
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("structure", self.structure),
            ("features", self.features),
            ("parameters and optimizer", self.parameters),
            ("batches", self.batches),
            ("step", self.step),
        ];
        for (what, bytes) in rows.into_iter().filter(|r| r.1 > 0) {
            writeln!(f, "{what:<26}{:>12}", readable_bytes(bytes))?;
        }
        write!(f, "{:<26}{:>12}", "peak", readable_bytes(self.peak()))
    }
}

/// Bytes of a layout by one end of the edges: an offset per node, a neighbour per edge, and an edge id where the edges
/// do not stand in that order.
fn layout_bytes(nodes: usize, edges: usize, is_sorted: bool) -> usize {
    4 * (nodes + 1) + if is_sorted { 4 } else { 8 } * edges
}

/// Endpoints of all edges, and the layouts by destination and, for gradients, by source.
fn structure_bytes(r: &Relation, gradients: bool) -> usize {
    let by = |nodes, ids: &[u32]| layout_bytes(nodes, ids.len(), ids.is_sorted());
    8 * r.num_edges()
        + by(r.num_dst(), r.dst())
        + if gradients { by(r.num_src(), r.src()) } else { 0 }
}

/// Predicts the memory of training on a whole graph of one node type and one edge type, a step per epoch, with f32
/// features of `x`'s size kept for all nodes.
///
/// ```text
/// peak = structure + features + 4 · parameters + step        (ModelSizes::step_bytes)
/// ```
/// Structure: source and destination of each edge, 8 bytes, and for both layouts 4 bytes per node and 4 per edge, 8
/// where edges do not stand in that order; factors of degrees, 8 bytes per node. Not counted: the program, threads,
/// buffers of products (some MiB) and what an allocator keeps of freed memory.
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
/// Several node types or edge types.
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

/// How batches are made, for [`plan_mini_batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSizes {
    /// Seeds of a batch.
    pub batch_size: usize,
    /// Batches that wait to be taken: workers · prefetch of the loader.
    pub ahead: usize,
    /// Batches that are sampled for the prediction, spread over the seeds.
    pub sampled: usize,
}

impl BatchSizes {
    /// Some batches, spread over the seeds: their numbers and seeds.
    fn of<'a>(&self, seeds: &'a [u32]) -> impl Iterator<Item = (u64, &'a [u32])> + use<'a> {
        let size = self.batch_size.max(1);
        let count = seeds.len().div_ceil(size);
        let some = self.sampled.clamp(1, count.max(1));
        (0..some).map(move |i| {
            let from = (i * count / some * size).min(seeds.len());
            (i as u64, &seeds[from..(from + size).min(seeds.len())])
        })
    }
}

/// Predicts the memory of training in batches of sampled neighbours: as [`plan_full_batch`], with the rows and edges of
/// the largest of some batches that are sampled for it, and the batches that wait.
///
/// # Errors
/// Several node types or edge types; seeds out of range.
///
/// # Cost
/// That of sampling `sampled` batches.
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
        // A GCN asks for out-degrees, which the layout by source has.
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

/// Bytes of a block: its edges, which stand by destination, both layouts, and the place of each edge in the graph.
fn block_bytes(rows: &LayerRows) -> usize {
    12 * rows.edges
        + layout_bytes(rows.destinations, rows.edges, true)
        + layout_bytes(rows.sources, rows.edges, false)
}
