//! Defines `HeteroLayer`, the trait of layers on all edge types of a graph.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeType, Schema};
use burn_gnn_ops::{EdgeTypes, GraphView};

use crate::layers::type_map::{NodeTensors, of_all_types};

/// A layer on several edge types: `layer.forward(&g, x)` on a graph, a block or a partition. [`Conv`](crate::Conv) is the
/// corresponding trait for one edge type.
///
/// The book: [heterogeneous graphs](https://github.com/burn-gnn/burn-gnn/blob/main/docs/heterogeneous.md).
///
/// `edges` are the [`EdgeTypes`] of a view: `g.edge_types()`, to which weights and features can be added, or the view
/// itself, `&g`. Features and results are [`NodeTensors`], which map names of node types to tensors. Dropout is active on
/// autodiff devices, in modules that are not frozen ([`DropoutKey`](burn_gnn_ops::DropoutKey)).
///
/// [`RelGraphConv`](crate::RelGraphConv), [`HgtConv`](crate::HgtConv), [`HanConv`](crate::HanConv) and
/// [`GatedGraphConv`](crate::GatedGraphConv) have separate parameters for each edge type.
/// [`HeteroGraphConv`](crate::HeteroGraphConv), the container that PyG calls `HeteroConv`, applies one
/// [`Conv`](crate::Conv) per edge type; a custom layer on one edge type
/// ([`MessagePassing`](burn_gnn_ops::MessagePassing)) enters heterogeneous models through it. A custom layer that joins
/// edge types in another way implements [`forward`](Self::forward).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{HeteroLayer, HgtConvConfig, NodeTensors, RelGraphConvConfig};
///
/// /// Two layers of any kind.
/// fn twice(conv: [&impl HeteroLayer; 2], g: &Graph, x: NodeTensors) -> NodeTensors {
///     conv[1].forward(g, conv[0].forward(g, x))
/// }
///
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1, 1], vec![0, 0, 1])
///     .edges(("paper", "cites", "paper"), vec![0], vec![1])
///     .build()?;
/// let device = Device::flex();
/// let x = NodeTensors::from([("author", Tensor::ones([2, 4], &device)), ("paper", Tensor::ones([2, 4], &device))]);
/// let rgcn = RelGraphConvConfig::from_graph(&g, 4, 4).init(&device);
/// let hgt = HgtConvConfig::from_graph(&g, 4, 2, 2).init(&device);
/// let y = [twice([&rgcn, &rgcn], &g, x.clone()), twice([&hgt, &hgt], &g, x)];
/// assert_eq!((y[0]["paper"].dims(), y[1]["author"].dims()), ([2, 4], [2, 4]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub trait HeteroLayer: Module + ModuleDisplay {
    /// Computes features of destination nodes, by node type, from features of input nodes.
    ///
    /// # Panics
    /// Shapes or types differ from those of the graph, or edges have weights or features that the layer does not read.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors;
}

/// The node and edge types that a layer was initialized for, because its parameters belong to types.
pub(crate) struct LayerTypes<'a> {
    pub(crate) layer: &'static str,
    /// Names of node types, in the order of the schema. Empty: any.
    pub(crate) ntypes: &'a [String],
    /// Edge types, in the order of the schema. Empty: any.
    pub(crate) etypes: &'a [EdgeType],
    /// Number of node types, and the option of the config that sets it.
    pub(crate) num_ntypes: Option<(&'static str, usize)>,
    /// Number of edge types, and the option of the config that sets it.
    pub(crate) num_etypes: Option<(&'static str, usize)>,
}

impl LayerTypes<'_> {
    /// # Panics
    /// The graph has other types.
    #[track_caller]
    pub(crate) fn check(&self, schema: &Schema) {
        let Self { layer, ntypes, etypes, .. } = *self;
        assert!(
            ntypes.is_empty() || ntypes == schema.ntypes(),
            "{layer}: expected the node types {ntypes:?}, got a graph with {:?}",
            schema.ntypes()
        );
        if !etypes.is_empty() && etypes != schema.etypes() {
            let names = |of: &[EdgeType]| {
                of.iter().map(ToString::to_string).collect::<Vec<_>>().join("`, `")
            };
            panic!(
                "{layer}: expected the edge types `{}`, got a graph with `{}`",
                names(etypes),
                names(schema.etypes())
            );
        }
        if let Some((option, expected)) = self.num_etypes {
            let found = schema.etypes().len();
            assert_eq!(found, expected, "{option} of the layer and edge types of the graph");
        }
        if let Some((option, expected)) = self.num_ntypes {
            let found = schema.ntypes().len();
            assert_eq!(found, expected, "{option} of the layer and node types of the graph");
        }
    }

    /// Checks types, and returns the features of every node type; `size` is the feature size by node type.
    ///
    /// # Panics
    /// The graph has other types, or features are missing or of another size.
    #[track_caller]
    pub(crate) fn inputs(
        &self,
        g: &dyn GraphView,
        x: NodeTensors,
        size: impl Fn(usize) -> usize,
    ) -> Vec<Tensor<2>> {
        self.check(g.schema());
        of_all_types(self.layer, g, x, size)
    }
}

/// Source and destination features of every node type from input features, by one halo exchange.
#[track_caller]
pub(crate) fn exchange(
    layer: &'static str,
    g: &dyn GraphView,
    x: Vec<Tensor<2>>,
) -> [Vec<Tensor<2>>; 2] {
    let (x, dst) = x.into_iter().enumerate().map(|(t, x)| g.with_dst_rows(t, x)).unzip();
    [g.src_rows(layer, x), dst]
}
