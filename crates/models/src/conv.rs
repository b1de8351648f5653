//! What layers on one relation share: rows of both ends, and how they come there.

use burn::config::Config;
use burn::module::{Module, ModuleDisplay};
use burn::nn::Linear;
use burn::tensor::{Bool, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{GraphView, Reduce};

use crate::Mode;

/// Input rows for the two ends of a relation.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Tensors are handles; a box would be one more for every user to write.
pub enum Ends {
    /// The relation joins nodes of one type: the same rows at both ends.
    Same(Tensor<2>),
    /// Rows of the source type and rows of the destination type.
    Pair(Tensor<2>, Tensor<2>),
}

impl From<Tensor<2>> for Ends {
    fn from(x: Tensor<2>) -> Self {
        Self::Same(x)
    }
}

impl From<(Tensor<2>, Tensor<2>)> for Ends {
    fn from((src, dst): (Tensor<2>, Tensor<2>)) -> Self {
        Self::Pair(src, dst)
    }
}

/// What edges bring to a layer, in the order of edge ids: weights, features, both or nothing.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::EdgeInput;
/// let device = Device::flex();
/// let (weight, features) = (Tensor::<1>::ones([5], &device), Tensor::<2>::ones([5, 3], &device));
/// assert!(EdgeInput::from(None).weight.is_none());
/// assert!(EdgeInput::from(weight.clone()).features.is_none());
/// assert_eq!(EdgeInput::from((weight, features)).features.unwrap().dims(), [5, 3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct EdgeInput {
    /// One number per edge, `[num_edges]`.
    pub weight: Option<Tensor<1>>,
    /// One row per edge, `[num_edges, d_edge]`.
    pub features: Option<Tensor<2>>,
}

impl From<Option<Tensor<1>>> for EdgeInput {
    fn from(weight: Option<Tensor<1>>) -> Self {
        Self { weight, features: None }
    }
}

impl From<Tensor<1>> for EdgeInput {
    fn from(weight: Tensor<1>) -> Self {
        Self { weight: Some(weight), features: None }
    }
}

impl From<Tensor<2>> for EdgeInput {
    fn from(features: Tensor<2>) -> Self {
        Self { weight: None, features: Some(features) }
    }
}

impl From<(Tensor<1>, Tensor<2>)> for EdgeInput {
    fn from((weight, features): (Tensor<1>, Tensor<2>)) -> Self {
        Self { weight: Some(weight), features: Some(features) }
    }
}

/// Edge features and the layer that reads them first, both or neither.
#[track_caller]
pub(crate) fn edge_rows<'a>(
    call: &str,
    relation: &Relation,
    layer: Option<&'a Linear>,
    edge: Option<Tensor<2>>,
) -> Option<(&'a Linear, Tensor<2>)> {
    match (layer, edge) {
        (Some(layer), Some(f)) => {
            let (rows, edges) = (f.dims()[0], relation.num_edges());
            assert!(rows == edges, "{call}: edge features: expected {edges} rows (one per edge of the relation), got {rows}");
            Some((layer, f))
        }
        (None, None) => None,
        (Some(layer), None) => {
            let [d, _] = layer.weight.val().dims();
            panic!("{call}: expected edge features of size {d} (`d_edge`), got none; pass a tensor `[num_edges, {d}]`")
        }
        (None, Some(f)) => {
            let d = f.dims()[1];
            panic!("{call}: expected no edge features, got some of size {d}; describe the layer with `d_edge` {d}")
        }
    }
}

/// Rows of both ends of a relation, where the relation needs them.
#[derive(Clone, Debug)]
pub struct EndRows {
    /// One per source node, as [`RelationConv::project`] leaves them.
    pub src: Tensor<2>,
    /// One per destination node, as they were given.
    pub dst: Tensor<2>,
    /// Whether both ends were given the same rows: then destinations are the first of the sources.
    pub shared: bool,
}

impl EndRows {
    /// What `project` makes of destination rows: the first of the projected sources where both ends share
    /// rows, which saves the product.
    pub(crate) fn projected_dst(&self, src: &Tensor<2>, project: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        if self.shared { first_rows(src, self.dst.dims()[0]) } else { project(self.dst.clone()) }
    }
}

/// The first rows of a tensor.
pub(crate) fn first_rows(x: &Tensor<2>, rows: usize) -> Tensor<2> {
    if x.dims()[0] == rows { x.clone() } else { x.clone().slice_dim(0, 0..rows) }
}

/// A layer on one relation, cut where rows travel to the relations that need them: what
/// [`HeteroGraphConv`](crate::HeteroGraphConv) is made of.
pub trait RelationConv: Module + ModuleDisplay {
    /// What becomes of a source row before messages are made of it. A layer on its own does this before rows
    /// travel where that makes them narrower.
    fn project(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }

    /// Rows `[num_dst, d_output]` from the rows of both ends.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    fn aggregate<G: GraphView + ?Sized>(&self, g: &G, etype: usize, rows: EndRows, mode: Mode) -> Tensor<2>;
}

/// Source rows of one node type from its input rows, by one exchange.
#[track_caller]
pub(crate) fn src_rows<G: GraphView + ?Sized>(g: &G, call: &'static str, ntype: usize, x: Tensor<2>) -> Tensor<2> {
    // One exchange for all types: the others travel with no columns.
    let mut rows: Vec<Tensor<2>> = (0..g.schema().ntypes().len())
        .map(|t| if t == ntype { x.clone() } else { Tensor::zeros([g.num_dst(t), 0], (&x.device(), x.dtype())) })
        .collect();
    rows = g.src_rows(call, rows);
    rows.swap_remove(ntype)
}

/// Rows of both ends of one relation, sources projected before they travel.
#[track_caller]
pub(crate) fn end_rows<G: GraphView + ?Sized>(
    g: &G,
    call: &'static str,
    etype: usize,
    x: Ends,
    project: impl FnOnce(Tensor<2>) -> Tensor<2>,
) -> EndRows {
    let (s, d) = g.schema().ends(etype);
    match x {
        Ends::Same(x) => {
            let name = &g.schema().etypes()[etype];
            assert!(s == d, "{call}: edge type `{name}` joins two node types; give the rows of both, `(src, dst)`");
            let (src, dst) = g.with_dst_rows(d, x);
            EndRows { dst, src: src_rows(g, call, s, project(src)), shared: true }
        }
        Ends::Pair(src, dst) => EndRows { dst: g.dst_rows(d, dst), src: src_rows(g, call, s, project(src)), shared: false },
    }
}

/// For layers that go several hops along one edge type: it must join nodes of one type.
#[track_caller]
pub(crate) fn check_one_type<G: GraphView + ?Sized>(g: &G, call: &str, etype: usize) {
    let (s, d) = g.schema().ends(etype);
    assert!(s == d, "{call}: edge type `{}` joins two node types; several hops need one", g.schema().etypes()[etype]);
}

/// For layers that go several hops on one view: every input row must be a row that is computed.
#[track_caller]
pub(crate) fn check_computed<G: GraphView + ?Sized>(g: &G, call: &str, ntype: usize, x: &Tensor<2>) {
    let (rows, computed) = (x.dims()[0], g.num_dst(ntype));
    assert!(
        rows == computed,
        "{call}: `x` has {rows} rows of which {computed} are computed; several hops need a whole graph, a partition or a block for each \
         (`forward_blocks`)"
    );
}

/// Weights of edges for each hop: one tensor for all, or one for each block.
#[track_caller]
pub(crate) fn check_weights(call: &str, views: usize, edge_weights: Option<&[Tensor<1>]>) {
    let found = edge_weights.map_or(views, <[_]>::len);
    assert!(found == views, "{call}: `edge_weights` must hold one tensor per block, {views}, got {found}");
}

/// `y` with 0 where no edge ends.
pub(crate) fn where_reached(relation: &Relation, y: Tensor<2>) -> Tensor<2> {
    let alone: Vec<bool> = relation.in_degrees().map(|d| d == 0).collect();
    if !alone.contains(&true) {
        return y;
    }
    let [rows, columns] = y.dims();
    let mask = Tensor::<2, Bool>::from_data(TensorData::new(alone, [rows, 1]), &y.device().without_autodiff());
    y.mask_fill(mask.expand([rows, columns]), 0.0)
}

/// How the rows of neighbours become one row.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum Aggregator {
    /// Sum.
    Sum,
    /// Sum divided by the number of messages.
    Mean,
    /// Largest entry.
    Max,
    /// Smallest entry.
    Min,
}

impl From<Aggregator> for Reduce {
    fn from(a: Aggregator) -> Self {
        match a {
            Aggregator::Sum => Self::Sum,
            Aggregator::Mean => Self::Mean,
            Aggregator::Max => Self::Max,
            Aggregator::Min => Self::Min,
        }
    }
}
