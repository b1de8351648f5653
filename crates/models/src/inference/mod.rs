//! Infers all nodes of a graph layer by layer, in bounded memory.

mod block;
pub(crate) mod features;

use std::time::Instant;

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_files::internal::Progress;
use burn_gnn_graph::{Graph, NodeKey};
use burn_gnn_ops::{EdgeTypes, GraphView};

use crate::error::ModelError;
use crate::layers::type_map::NodeTensors;
use block::Blocks;

/// A model as a chain of layers, each of which computes some nodes from the rows of all nodes before it: what [`infer`]
/// runs.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, InferenceConfig, Layerwise, ModelError, NodeTensors, SageConv, SageConvConfig, infer};
/// use burn_gnn_ops::GraphView;
///
/// #[derive(Module, Debug)]
/// struct Mine {
///     layers: Vec<SageConv>,
/// }
///
/// impl Layerwise for Mine {
///     fn num_layers(&self) -> usize {
///         self.layers.len()
///     }
///     fn inputs(&self, _g: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
///         Ok(features.clone())
///     }
///     fn layer<G: GraphView>(&self, layer: usize, g: &G, x: NodeTensors) -> NodeTensors {
///         x.map(|_, x| self.layers[layer].forward(&g, x).tanh())
///     }
/// }
///
/// let (device, path) = (Device::flex(), Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?);
/// let layers = [[3, 8], [8, 2]].map(|[i, o]| SageConvConfig::new(i, o).init(&device)).into();
/// let model = Mine { layers };
/// let x = Tensor::<2>::ones([4, 3], &device);
/// let y = infer(&model, &path, [("_N", x)], "_N", &InferenceConfig::new().with_max_nodes(2))?;
/// assert_eq!(y.dims(), [4, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Layerwise: Module {
    /// Number of layers.
    fn num_layers(&self) -> usize;

    /// Whether a layer reads features of neighbours. One that does not (a projection) runs on nodes without edges, so
    /// that no row is computed twice.
    fn reads_neighbours(&self, _layer: usize) -> bool {
        true
    }

    /// What the first layer reads, one row per node, for every node type: features, learned embeddings.
    ///
    /// # Errors
    /// Features that the model or the graph does not fit.
    fn inputs(&self, g: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError>;

    /// Rows `[num_dst, columns]` of every node type after layer `layer`, without dropout; `x` holds the input rows of
    /// `g`. What a model needs of several layers (a sum of readouts) is passed on as features.
    fn layer<G: GraphView>(&self, layer: usize, g: &G, x: NodeTensors) -> NodeTensors;
}

/// How many nodes [`infer`] computes at a time.
#[derive(Config, Debug)]
pub struct InferenceConfig {
    /// Most nodes of a chunk.
    #[config(default = 65_536)]
    pub max_nodes: usize,
    /// Most in-edges of a chunk; a node with more is a chunk of its own.
    #[config(default = 1_048_576)]
    pub max_edges: usize,
    /// Whether a bar with rate and time left is drawn (on a terminal); a line with the time remains of it.
    #[config(default = true)]
    pub progress: bool,
}

/// Rows `[nodes of type, columns]` of node type `target` after the last layer of `model`: what its forward gives for
/// the whole graph without dropout, up to rounding.
///
/// Every layer runs over chunks of consecutive destination nodes with all their in-edges. A chunk is a block: a view
/// whose source rows are the chunk's nodes and their in-neighbours, and whose degrees are those of the whole graph. Its
/// result is written into one matrix for all nodes before the next chunk begins. `g` is a graph, or its
/// [`EdgeTypes`](burn_gnn_ops::EdgeTypes) with weights or features for layers that read them.
///
/// # Memory
/// The inputs of a layer, its outputs, and the intermediate values of one chunk: about `max_nodes + max_edges`
/// rows of its feature size, however large the graph. Features, edge weights and parameters are the caller's. One
/// number per node, and per edge of the CSC layout, which the graph keeps.
///
/// # Cost
/// `O(layers · (nodes + edges))`; a row is gathered once for each chunk that has an edge from it, and a layer that
/// multiplies sources first multiplies it as often. The model runs as [`valid`](Module::valid), whatever device it is
/// on: nothing is tracked for a backward, and the result is on the plain device.
///
/// # Errors
/// A view that is not a whole graph, a budget of 0, no node type `target`, no layers, weights or features of edges that
/// are not one per edge, features that do not fit the graph or the model, a layer that returns other rows than those of
/// its block.
///
/// # Panics
/// As the layers of the model do.
///
/// # Source
/// The inference of GraphSAGE's authors as DGL and PyG ship it (`inference` in their examples).
#[track_caller]
pub fn infer<M: Layerwise, G: GraphView + ?Sized>(
    model: &M,
    g: &G,
    features: impl Into<NodeTensors>,
    target: impl NodeKey,
    config: &InferenceConfig,
) -> Result<Tensor<2>, ModelError> {
    let sizes = [
        ("max_nodes", config.max_nodes),
        ("max_edges", config.max_edges),
        ("layers of the model", model.num_layers()),
    ];
    ModelError::check_sizes(&sizes, 0.0)?;
    let model = &model.valid();
    let edges = EdgeTypes::new(&g).without_autodiff();
    let Some(g) = g.whole_graph() else {
        let range = "whole graphs, plain or as `edge_types()` with weights (a block or partition has a part)";
        return Err(ModelError::out_of_range("g", range, "a part of a graph"));
    };
    let (schema, types) = (g.schema(), g.node_counts().len());
    for (r, relation) in g.relations().iter().enumerate() {
        let rows = [
            ("weights", edges.weights()[r].as_ref().map(|w| w.dims()[0])),
            ("features", edges.features()[r].as_ref().map(|f| f.dims()[0])),
        ];
        for (what, rows) in rows {
            let arg = format!("edge {what} of {}", schema.etypes()[r]);
            let expected = relation.num_edges();
            ModelError::check_length(&arg, "one per edge", expected, rows.unwrap_or(expected))?;
        }
    }
    let target = schema.ntype(target)?;
    let inputs = model.inputs(g, &features.into())?.into_list(schema)?;
    let mut x = vec![];
    for ((ntype, &n), input) in schema.ntypes().iter().zip(g.node_counts()).zip(inputs) {
        let message = "the model has no input features for it; build the model for a graph with this node type";
        let none = || ModelError::input(ntype, message);
        let input = input.ok_or_else(none)?.without_autodiff();
        let rows = format!("rows of the input features of {ntype}");
        ModelError::check_length(&rows, "one per node", n, input.dims()[0])?;
        x.push(input);
    }
    let mut blocks = Blocks::new(g, &edges);
    // Every node once per layer, the last layer for one type alone.
    let total =
        (model.num_layers() - 1) as u64 * g.total_nodes() as u64 + g.node_counts()[target] as u64;
    let start = Instant::now();
    let bar = Progress::steps(config.progress, "inferring layer by layer", "rows", total);
    for layer in 0..model.num_layers() - 1 {
        x = (0..types)
            .map(|t| rows_of(model, layer, t, &mut blocks, &x, config, &bar))
            .collect::<Result<_, _>>()?;
    }
    let last = rows_of(model, model.num_layers() - 1, target, &mut blocks, &x, config, &bar)?;
    let (rows, seconds) = (last.dims()[0], start.elapsed().as_secs_f64());
    bar.finish(format!("inferred {rows} nodes by {} layers in {seconds:.1} s", model.num_layers()));
    Ok(last)
}

/// Outputs of a layer for all nodes of type `t`.
fn rows_of<M: Layerwise>(
    model: &M,
    layer: usize,
    t: usize,
    blocks: &mut Blocks<'_>,
    x: &[Tensor<2>],
    config: &InferenceConfig,
    bar: &Progress,
) -> Result<Tensor<2>, ModelError> {
    let reads = model.reads_neighbours(layer);
    let graph = blocks.graph();
    let (schema, n) = (graph.schema(), graph.node_counts()[t]);
    let ntype = &schema.ntypes()[t];
    let mut all: Option<Tensor<2>> = None;
    for range in blocks.chunks(t, reads, config) {
        let block = blocks.block(t, range.clone(), reads);
        let y = model.layer(
            layer,
            &block,
            NodeTensors::from_list(schema, block.input(x).into_iter().map(Some)),
        );
        let none = || {
            let remedy = "let the layer compute this node type";
            ModelError::input(ntype, format!("layer {layer} gives no result for it; {remedy}"))
        };
        let y = y.into_list(schema)?.swap_remove(t).ok_or_else(none)?.without_autodiff();
        let [rows, columns] = y.dims();
        bar.inc(range.len() as u64);
        let (arg, why) = (
            format!("rows of layer {layer} for node type {ntype}"),
            "one per destination of the block",
        );
        ModelError::check_length(&arg, why, range.len(), rows)?;
        if rows == n {
            return Ok(y);
        }
        // A repeated row becomes a matrix when it is written to; `Tensor::empty` takes twice the memory for a moment
        // (Flex).
        let into = all.take().unwrap_or_else(|| y.clone().slice_dim(0, 0..1).expand([n, columns]));
        let size = format!("feature size of layer {layer} for node type {ntype}");
        ModelError::check_length(&size, "as for the nodes before", into.dims()[1], columns)?;
        // In place, because there is no other reference to this matrix.
        all = Some(into.slice_assign([range, 0..columns], y));
    }
    Ok(all.unwrap_or_else(|| {
        unreachable!("a type without nodes is one chunk, and the chunks of another cover it")
    }))
}
