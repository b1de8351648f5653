//! Defines `Conv`, the trait of layers on one edge type, and what their implementations share.

use burn::module::{Module, ModuleDisplay};
use burn::nn::Linear;
use burn::tensor::{Bool, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{
    BinaryOp, ConvInput, Edges, Endpoints, MessagePassing, Reduce, Side, gspmm, gspmm_copy,
};

use crate::layers::dense::mlp::apply;

/// Whether a weight reduces the feature size. Features are then multiplied before the halo exchange and the sum, which
/// move and add fewer numbers.
pub(crate) fn multiplies_first(weight: &Tensor<2>) -> bool {
    let [d_input, d_output] = weight.dims();
    d_input > d_output
}

/// Applies `layer` to sources before the halo exchange, if it reduces the feature size.
pub(crate) fn project_before_exchange(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    if multiplies_first(&layer.weight.val()) { apply(layer, x) } else { x }
}

/// Applies `layer` to sources after the halo exchange, unless [`project_before_exchange`] has.
pub(crate) fn project_after_exchange(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    if multiplies_first(&layer.weight.val()) { x } else { apply(layer, x) }
}

/// A layer on one edge type: `conv.forward(&edges, x)` on a graph, a block or a partition.
///
/// The book: [layers](https://github.com/burn-gnn/burn-gnn/blob/main/docs/layers.md).
///
/// `edges` are the [`Edges`] of one type, `g.edge_type("writes")?`, or a view of a single edge type, `&g`. Edge weights,
/// edge features, and an activation and dropout of the result are options of the edges. `x` is one tensor, or a pair
/// `(source, destination)` if the edge type joins two node types. Dropout is active on autodiff devices, in modules that
/// are not frozen ([`DropoutKey`](burn_gnn_ops::DropoutKey)).
///
/// A custom layer implements [`MessagePassing`], not this trait: every Burn module with an `impl MessagePassing`
/// implements `Conv` and [`Pretrained`](crate::Pretrained). It then supports all options of the edges, runs inside
/// [`HeteroGraphConv`](crate::HeteroGraphConv), and loads weights.
///
/// Implement `Conv` directly for a layer whose computation is not message passing, or that calls operators of
/// [`burn_gnn_ops`] itself to fuse steps, as the layers of this crate do.
///
/// ```
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::Conv;
/// use burn_gnn_ops::{Activation, GraphView, MessagePassing, Reduce};
///
/// /// `y[v] = W (x[v] + mean of x[u] over (u, v))`
/// #[derive(Module, Debug)]
/// struct MeanConv {
///     linear: Linear,
/// }
///
/// impl MessagePassing for MeanConv {
///     fn aggr(&self) -> Reduce {
///         Reduce::Mean
///     }
///     fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
///         self.linear.forward(x + aggregated)
///     }
/// }
///
/// fn main() -> Result<(), burn_gnn_graph::GraphError> {
///     let (g, device) = (Graph::homogeneous(3, vec![0, 1], vec![1, 2])?, Device::flex());
///     let conv = MeanConv { linear: LinearConfig::new(4, 2).init(&device) };
///     let y = conv.forward(&g, Tensor::ones([3, 4], &device));
///     let relu = conv.forward(g.edge_type("_E")?.then(Activation::Relu), Tensor::ones([3, 4], &device));
///     assert_eq!((y.dims(), relu.dims()), ([3, 2], [3, 2]));
///     Ok(())
/// }
/// ```
pub trait Conv: Module + ModuleDisplay {
    /// Name of the layer in error messages and in exchanges between ranks.
    const NAME: &'static str = "conv";
    /// Whether the layer reads edge weights. Otherwise [`forward`](Self::forward) panics if there are some.
    const READS_WEIGHT: bool = false;
    /// Whether the layer reads edge features. Otherwise [`forward`](Self::forward) panics if there are some.
    const READS_FEATURES: bool = false;
    /// Whether [`aggregate`](Self::aggregate) applies the activation and dropout of the edges ([`Edges::finish`]).
    /// Otherwise [`forward`](Self::forward) applies them in a separate pass.
    const FUSES_EPILOGUE: bool = false;

    /// Returns the feature sizes of sources and destinations that the layer requires. `None`: any size, or the features are
    /// not read. [`forward`](Self::forward) panics on other sizes.
    fn input_sizes(&self) -> [Option<usize>; 2] {
        [None, None]
    }

    /// Transforms source features before messages are computed. It runs before the halo exchange, so that a projection to
    /// a smaller feature size reduces the traffic; in [`HeteroGraphConv`](crate::HeteroGraphConv), whose layers share one
    /// exchange, it runs after it.
    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        x
    }

    /// Computes features of destinations, `[num_dst, d_output]`, from the features of both endpoints.
    ///
    /// # Panics
    /// Shapes differ from those of the graph.
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2>;

    /// Computes features of destinations, `[num_dst, d_output]`, from the features of input nodes.
    ///
    /// # Panics
    /// * Shapes differ from those of the graph or from [`input_sizes`](Self::input_sizes).
    /// * `x` is one tensor, and the edge type joins two node types.
    /// * Edges have weights or features that the layer does not read.
    /// * `edges` is a view of several edge types.
    #[track_caller]
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: impl Into<ConvInput>) -> Tensor<2> {
        let edges = edges.into();
        let x = endpoints(self, &edges, x.into());
        let y = self.aggregate(&edges, x);
        if Self::FUSES_EPILOGUE { y } else { edges.finish(y, None) }
    }
}

/// Every module with an `impl MessagePassing` is a layer.
impl<L: MessagePassing + Module + ModuleDisplay> Conv for L {
    const NAME: &'static str = <L as MessagePassing>::NAME;
    const READS_WEIGHT: bool = true;
    const READS_FEATURES: bool = <L as MessagePassing>::READS_FEATURES;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        MessagePassing::input_sizes(self)
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        MessagePassing::project(self, x)
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        self.try_pass(edges, x).or_panic()
    }
}

/// Checks that edges have no weights or features that a layer does not read.
#[track_caller]
pub(crate) fn check_options<M: Conv>(edges: &Edges<'_>) {
    let unread = |what: &str| {
        panic!(
            "{}: expected no edge {what}, got some; remove them, this layer does not use them",
            M::NAME
        )
    };
    if !M::READS_WEIGHT && edges.weight().is_some() {
        unread("weights");
    }
    if !M::READS_FEATURES && edges.features().is_some() {
        unread("features");
    }
}

/// Checks a feature size.
#[track_caller]
pub(crate) fn check_size(
    call: &str,
    edges: &Edges<'_>,
    what: &str,
    expected: Option<usize>,
    x: &Tensor<2>,
) {
    let size = x.dims()[1];
    if let Some(expected) = expected.filter(|&d| d != size) {
        panic!(
            "{call}: edge type `{}`: expected {what} features of size {expected}, got {:?}",
            edges.edge_type(),
            x.dims()
        );
    }
}

/// Checks the feature sizes of sources and destinations.
#[track_caller]
pub(crate) fn check_sizes<M: Conv>(layer: &M, edges: &Edges<'_>, src: &Tensor<2>, dst: &Tensor<2>) {
    let [of_src, of_dst] = layer.input_sizes();
    check_size(M::NAME, edges, "source", of_src, src);
    check_size(M::NAME, edges, "destination", of_dst, dst);
}

/// Checks the input of a layer, projects sources and exchanges them between ranks.
#[track_caller]
pub(crate) fn endpoints<M: Conv>(layer: &M, edges: &Edges<'_>, x: ConvInput) -> Endpoints {
    check_options::<M>(edges);
    let (s, d) = edges.endpoints();
    let (src, dst, shared) = match x {
        ConvInput::Same(x) => {
            let (call, name) = (M::NAME, edges.edge_type());
            assert!(
                s == d,
                "{call}: edge type `{name}` joins two node types; pass the features of both, `(src, dst)`"
            );
            check_sizes(layer, edges, &x, &x);
            let (src, dst) = edges.view().with_dst_rows(d, x);
            (src, dst, true)
        }
        ConvInput::Pair(src, dst) => {
            check_sizes(layer, edges, &src, &dst);
            (src, edges.dst_rows(dst), false)
        }
    };
    let rows = Endpoints { src: edges.src_rows(M::NAME, layer.project(edges, src)), dst, shared };
    let r = edges.relation();
    for (what, expected, got) in
        [("source", r.num_src(), &rows.src), ("destination", r.num_dst(), &rows.dst)]
    {
        assert!(
            got.dims()[0] == expected,
            "{}: edge type `{}`: expected {expected} rows of {what} features (one per node), got {}; \
             in a mini-batch pass the features of its input nodes, not those of the graph",
            M::NAME,
            edges.edge_type(),
            got.dims()[0]
        );
    }
    rows
}

/// Returns edge features and the linear layer that reads them, or `None` if the layer has no edge features.
#[track_caller]
pub(crate) fn edge_rows<'a>(
    call: &str,
    edges: &Edges<'_>,
    layer: Option<&'a Linear>,
) -> Option<(&'a Linear, Tensor<2>)> {
    let f = edge_features(call, edges, layer.map(|layer| layer.weight.val().dims()[0]))?;
    let (rows, edges) = (f.dims()[0], edges.relation().num_edges());
    assert!(
        rows == edges,
        "{call}: edge features: expected {edges} rows (one per edge of the relation), got {rows}"
    );
    layer.map(|layer| (layer, f))
}

/// Returns edge features, which must be present if and only if the layer has a `d_edge`.
#[track_caller]
pub(crate) fn edge_features(
    call: &str,
    edges: &Edges<'_>,
    d_edge: Option<usize>,
) -> Option<Tensor<2>> {
    match (edges.features(), d_edge) {
        (Some(f), None) => panic!(
            "{call}: expected no edge features, got some of size {0}; set `d_edge` of the layer to {0}",
            f.dims()[1]
        ),
        (None, Some(d)) => panic!(
            "{call}: edge features of size {d} (`d_edge`) are required; set them with `Edges::with_features`, `[num_edges, {d}]`"
        ),
        (f, _) => f,
    }
}

/// Reduces the source features of in-edges, multiplied by edge weights if there are some.
#[track_caller]
pub(crate) fn reduce_sources(edges: &Edges<'_>, by: Reduce, x: Tensor<2>) -> Tensor<2> {
    match edges.weight() {
        Some(w) => gspmm(edges.relation(), BinaryOp::Mul, by, x, w),
        None => gspmm_copy(edges.relation(), Side::Lhs, by, x),
    }
}

/// Returns the input of a layer with several hops, whose edge type must join nodes of one type.
#[track_caller]
pub(crate) fn hop_input(call: &str, edges: &Edges<'_>, x: ConvInput) -> Tensor<2> {
    let (s, d) = edges.endpoints();
    assert!(
        s == d,
        "{call}: edge type `{}` joins two node types; several hops need one",
        edges.edge_type()
    );
    match x {
        ConvInput::Same(x) => x,
        ConvInput::Pair(..) => panic!("{call}: expected one tensor of node features, got a pair"),
    }
}

/// Checks that a view computes all its input rows, which several hops on one view require.
#[track_caller]
pub(crate) fn check_computed(call: &str, computed: usize, x: &Tensor<2>) {
    let rows = x.dims()[0];
    assert!(
        rows == computed,
        "{call}: `x` has {rows} rows, of which the view computes {computed}; several hops need a whole graph, a partition, or a block \
         for each hop (`forward_hops`)"
    );
}

/// Adds destination features to `y`: multiplied by `fc` if there is one, otherwise if `is_added`.
pub(crate) fn residual(
    y: Tensor<2>,
    is_added: bool,
    fc: Option<&Linear>,
    dst: Tensor<2>,
) -> Tensor<2> {
    match (is_added, fc) {
        (_, Some(fc)) => y + apply(fc, dst),
        (true, None) => y + dst,
        (false, None) => y,
    }
}

/// Sets the rows of nodes without in-edges to 0.
pub(crate) fn where_reached(relation: &Relation, y: Tensor<2>) -> Tensor<2> {
    let without_edges: Vec<bool> = relation.in_degrees().map(|d| d == 0).collect();
    if !without_edges.contains(&true) {
        return y;
    }
    let [rows, columns] = y.dims();
    let mask = Tensor::<2, Bool>::from_data(
        TensorData::new(without_edges, [rows, 1]),
        &y.device().without_autodiff(),
    );
    y.mask_fill(mask.expand([rows, columns]), 0.0)
}
