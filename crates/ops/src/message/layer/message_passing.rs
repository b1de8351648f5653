//! Defines `MessagePassing`, the trait of custom layers.

use burn::tensor::Tensor;
use burn_gnn_graph::EdgeKey;
use burn_gnn_plan::{Reduce, Target};

use crate::check::{accept, check_rows};
use crate::error::OpsError;
use crate::message::layer::edge_tensor::EdgeTensor;
use crate::view::GraphView;
use crate::view::edges::Edges;

const NAME: &str = "propagate";

/// Features of the input nodes of an edge type: one tensor where it joins nodes of one type, else
/// `(source, destination)`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Tensors are handles; a box would be one more for every user to write.
pub enum ConvInput {
    /// The edge type joins nodes of one type: the same features at both endpoints.
    Same(Tensor<2>),
    /// Features of the source type and features of the destination type.
    Pair(Tensor<2>, Tensor<2>),
}

impl From<Tensor<2>> for ConvInput {
    fn from(x: Tensor<2>) -> Self {
        Self::Same(x)
    }
}
impl From<(Tensor<2>, Tensor<2>)> for ConvInput {
    fn from((src, dst): (Tensor<2>, Tensor<2>)) -> Self {
        Self::Pair(src, dst)
    }
}

/// A layer as PyG writes it: `y_i = update(aggregate over j of message(x_j, x_i, edge_attr), x_i)`, on a graph, a block
/// or a partition.
///
/// The book: [message passing](https://github.com/burn-gnn/burn-gnn/blob/main/docs/message-passing.md).
///
/// Every method has a default; a layer overrides those that differ and calls [`propagate`](Self::propagate) in its
/// `forward`. A message that is `x_j`, or `x_j` and `edge_attr` under `+ - * /`, is reduced by one fused kernel with
/// nothing made per edge, without the layer asking for it: see [`EdgeTensor`].
///
/// A layer with its parameters, `y_i = W₁ x_i + max over j of W₂ (x_j - x_i)`:
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::{EdgeTensor, GraphView, MessagePassing, Reduce};
///
/// struct Relative {
///     own: Tensor<2>,
///     other: Tensor<2>,
/// }
///
/// impl MessagePassing for Relative {
///     fn aggr(&self) -> Reduce {
///         Reduce::Max
///     }
///     fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, _edge_attr: Option<EdgeTensor>) -> EdgeTensor {
///         (x_j - x_i).map(|difference| difference.matmul(self.other.clone()))
///     }
///     fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
///         aggregated + x.matmul(self.own.clone())
///     }
/// }
///
/// impl Relative {
///     fn forward<G: GraphView>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
///         self.propagate(g, 0, x, None)
///     }
/// }
///
/// let device = Device::flex();
/// let layer = Relative { own: Tensor::from_data([[1.0]], &device), other: Tensor::from_data([[10.0]], &device) };
/// let g = Graph::homogeneous(3, vec![0, 1], vec![2, 2])?;
/// let y = layer.forward(&g, Tensor::from_data([[1.0], [2.0], [5.0]], &device));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, -25.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub trait MessagePassing {
    /// Reducer messages become one row; the sum by default.
    fn aggr(&self) -> Reduce {
        Reduce::Sum
    }

    /// The message along every edge: by default `x_j`, times `edge_attr` if there is one.
    ///
    /// `x_j` are the features of the edge's source, `x_i` those of its destination.
    #[allow(unused_variables)]
    fn message(
        &self,
        x_j: EdgeTensor,
        x_i: EdgeTensor,
        edge_attr: Option<EdgeTensor>,
    ) -> EdgeTensor {
        match edge_attr {
            None => x_j,
            Some(w) => x_j * w,
        }
    }

    /// Messages to one row per destination; by default reduced as [`aggr`](Self::aggr) says. A destination without
    /// messages should get 0.
    #[track_caller]
    fn aggregate(&self, messages: EdgeTensor) -> Tensor<2> {
        messages.reduce(self.aggr())
    }

    /// The result from aggregated messages and destination features; by default the former.
    #[allow(unused_variables)]
    fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        aggregated
    }

    /// Runs [`message`](Self::message), [`aggregate`](Self::aggregate) and [`update`](Self::update) along one edge
    /// type.
    ///
    /// # Shapes
    /// `x`: input features of both endpoints; `edge_attr`: `[num_edges, d_edge]` in edge-id order; returns one row per
    /// destination of the view.
    ///
    /// On a partition this is one halo exchange of source features.
    ///
    /// # Panics
    /// With the text of the error that [`try_propagate`](Self::try_propagate) returns, and where operators on
    /// [`EdgeTensor`]s panic.
    #[track_caller]
    fn propagate<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: impl EdgeKey,
        x: impl Into<ConvInput>,
        edge_attr: Option<Tensor<2>>,
    ) -> Tensor<2> {
        accept(self.try_propagate(g, etype, x, edge_attr))
    }

    /// [`propagate`](Self::propagate) that returns what is wrong with its arguments.
    ///
    /// # Errors
    /// An unknown or ambiguous edge type, one tensor for an edge type that joins two node types, numbers of rows that
    /// are not those of the view.
    fn try_propagate<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: impl EdgeKey,
        x: impl Into<ConvInput>,
        edge_attr: Option<Tensor<2>>,
    ) -> Result<Tensor<2>, OpsError> {
        // A sized view of it.
        let edges = Edges::new(&g, etype)?;
        let ((src, dst), relation) = (edges.endpoints(), edges.relation());
        let (x_j, x_i) = match x.into() {
            ConvInput::Same(x) if src == dst => (x.clone(), x),
            ConvInput::Same(_) => {
                return Err(OpsError::TwoTables { op: NAME, etype: edges.edge_type().to_string() });
            }
            ConvInput::Pair(x_j, x_i) => (x_j, x_i),
        };
        let rows =
            |arg, why, expected, x: &Tensor<2>| check_rows(NAME, arg, why, expected, x.dims()[0]);
        if let Some(w) = &edge_attr {
            rows("edge_attr", "one per edge of the relation", relation.num_edges(), w)?;
        }
        let x_i = edges.dst_rows(x_i);
        rows("x", "one per destination of the relation", relation.num_dst(), &x_i)?;
        let x_j = edges.src_rows(NAME, x_j);
        rows("x", "one per source of the relation", relation.num_src(), &x_j)?;
        let edge = |target, x: Tensor<2>, name| EdgeTensor::of(relation, target, x, name);
        let edge_attr = edge_attr.map(|w| edge(Target::Edge, w, "`edge_attr`"));
        let messages = self.message(
            edge(Target::Src, x_j, "`x_j`"),
            edge(Target::Dst, x_i.clone(), "`x_i`"),
            edge_attr,
        );
        Ok(self.update(self.aggregate(messages), x_i))
    }
}
