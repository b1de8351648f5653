//! Defines `HeteroLayer`, the trait of layers on all edge types of a graph.

use burn::module::{Module, ModuleDisplay};
use burn_gnn_graph::{EdgeType, Schema};
use burn_gnn_ops::EdgeTypes;

use crate::layers::type_map::NodeTensors;

/// A layer on several edge types: `conv.forward(&g, x)`, on a graph, a block and a partition alike. What
/// [`Conv`](crate::Conv) is for one edge type.
///
/// The book: [heterogeneous graphs](https://github.com/burn-gnn/burn-gnn/blob/main/docs/heterogeneous.md).
///
/// `edges` are the [`EdgeTypes`] of a view, `g.edge_types()` with weights and features of some, or the view itself,
/// `&g`. Features and results are [`NodeTensors`], by the names of node types. Dropout is in effect on autodiff devices,
/// in modules that are not frozen ([`DropoutKey`](burn_gnn_ops::DropoutKey)).
///
/// [`RelGraphConv`](crate::RelGraphConv), [`HgtConv`](crate::HgtConv), [`HanConv`](crate::HanConv) and
/// [`GatedGraphConv`](crate::GatedGraphConv) have parameters of their own for each edge type;
/// [`HeteroGraphConv`](crate::HeteroGraphConv) is made of one [`Conv`](crate::Conv) for each. A custom layer implements
/// [`forward`](Self::forward).
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
    /// Features of every node type that the layer computes, from those of the input nodes of every type.
    ///
    /// # Panics
    /// Shapes or types that disagree with the graph; edge weights or features that the layer does not read.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors;
}

/// Refuses a graph of other types than a layer was made for, as parameters belong to types; the node types or edge
/// types of a layer that does not know their names are left empty.
#[track_caller]
pub(crate) fn check_graph_types(
    layer: &str,
    schema: &Schema,
    ntypes: &[String],
    etypes: &[EdgeType],
) {
    let known = ntypes.is_empty() || ntypes == schema.ntypes();
    assert!(
        known,
        "{layer}: expected the node types {ntypes:?}, got a graph with {:?}",
        schema.ntypes()
    );
    if !etypes.is_empty() && etypes != schema.etypes() {
        let names =
            |of: &[EdgeType]| of.iter().map(ToString::to_string).collect::<Vec<_>>().join("`, `");
        panic!(
            "{layer}: expected the edge types `{}`, got a graph with `{}`",
            names(etypes),
            names(schema.etypes())
        );
    }
}

/// `option` is where the layer was given its number of edge types.
#[track_caller]
pub(crate) fn check_num_etypes(option: &str, schema: &Schema, expected: usize) {
    let found = schema.etypes().len();
    assert_eq!(found, expected, "{option} of the layer and edge types of the graph");
}
