//! Defines `MessagePassing`, the trait of custom layers.

use burn::tensor::Tensor;
use burn_gnn_plan::{Reduce, Target};

use crate::check::{accept, check_rows};
use crate::error::OpsError;
use crate::message::layer::edge_tensor::EdgeTensor;
use crate::message::layer::endpoints::{ConvInput, Endpoints};
use crate::view::edges::Edges;

/// A custom layer in the form of PyG: `y_i = update(aggregate over j of message(x_j, x_i, edge_attr), x_i)`.
///
/// One `impl` is enough for everything that a layer of this library can do: [`propagate`](Self::propagate) runs it on a
/// graph, a block or a partition, with all options of [`Edges`]. A Burn `Module` that implements this trait is a
/// `Conv` of `burn-gnn-models` as well, so that `forward` calls it and `HeteroGraphConv` takes it.
///
/// The book: [message passing](https://github.com/burn-gnn/burn-gnn/blob/main/docs/message-passing.md).
///
/// Every method has a default, and a layer overrides those that differ. A message that is `x_j`, or `x_j` and
/// `edge_attr` under `+ - * /`, is reduced by one fused kernel that allocates nothing per edge: see [`EdgeTensor`].
///
/// | option of the edges | effect |
/// | --- | --- |
/// | [`with_features`](Edges::with_features) | `edge_attr` of [`message`](Self::message) |
/// | [`with_weight`](Edges::with_weight) | every message is multiplied by the weight of its edge |
/// | [`then`](Edges::then), [`then_dropout`](Edges::then_dropout) | activation and dropout of the result |
///
/// A layer with parameters, `y_i = W₁ x_i + max over j of W₂ (x_j - x_i)`:
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::{EdgeTensor, MessagePassing, Reduce};
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
/// fn main() -> Result<(), burn_gnn_graph::GraphError> {
///     let device = Device::flex();
///     let layer = Relative {
///         own: Tensor::from_data([[1.0]], &device),
///         other: Tensor::from_data([[10.0]], &device),
///     };
///     let g = Graph::homogeneous(3, vec![0, 1], vec![2, 2])?;
///     let y = layer.propagate(&g, Tensor::from_data([[1.0], [2.0], [5.0]], &device));
///     assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, -25.0]);
///     Ok(())
/// }
/// ```
pub trait MessagePassing {
    /// Name of the layer in errors and in exchanges between ranks.
    const NAME: &'static str = "message_passing";
    /// Whether [`message`](Self::message) reads `edge_attr`. Edge features are rejected where it does not.
    const READS_FEATURES: bool = true;

    /// Feature sizes of sources and of destinations; `None` for any size. `Conv` rejects other sizes.
    fn input_sizes(&self) -> [Option<usize>; 2] {
        [None, None]
    }

    /// Transforms node features before messages are computed: `x_j` and `x_i` are results of it, while
    /// [`update`](Self::update) gets the features that were given. On a partition it runs before the exchange between
    /// ranks. By default features are left as they are.
    fn project(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }

    /// Reducer that combines the messages of a node; the sum by default.
    fn aggr(&self) -> Reduce {
        Reduce::Sum
    }

    /// The message along every edge: by default `x_j`, times `edge_attr` if the edges have features.
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

    /// Combines messages to one row per destination, by default with [`aggr`](Self::aggr). A destination without
    /// messages should get 0.
    #[track_caller]
    fn aggregate(&self, messages: EdgeTensor) -> Tensor<2> {
        messages.reduce(self.aggr())
    }

    /// Computes the result from aggregated messages and destination features; by default the former.
    #[allow(unused_variables)]
    fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        aggregated
    }

    /// Runs the layer along the edges of one type: `g.edge_type("writes")?` with its options, or a view of a single
    /// edge type, `&g`.
    ///
    /// # Shapes
    /// `x`: features of the input nodes, `(source, destination)` where the edge type joins two node types. Returns one
    /// row per destination of the view.
    ///
    /// # Cost
    /// On a partition one halo exchange of source features.
    ///
    /// # Panics
    /// With the text of the error that [`try_propagate`](Self::try_propagate) returns; where operators on
    /// [`EdgeTensor`]s panic; where `edges` is a view of several edge types.
    #[track_caller]
    fn propagate<'a>(&self, edges: impl Into<Edges<'a>>, x: impl Into<ConvInput>) -> Tensor<2> {
        accept(self.try_propagate(edges, x))
    }

    /// [`propagate`](Self::propagate) that returns an error instead of panicking.
    ///
    /// # Errors
    /// One tensor for an edge type that joins two node types; wrong numbers of rows; edge features where
    /// [`READS_FEATURES`](Self::READS_FEATURES) is `false`.
    fn try_propagate<'a>(
        &self,
        edges: impl Into<Edges<'a>>,
        x: impl Into<ConvInput>,
    ) -> Result<Tensor<2>, OpsError> {
        let edges = edges.into();
        let x = Endpoints::exchange(Self::NAME, &edges, x.into(), |x| self.project(x))?;
        Ok(edges.finish(self.try_pass(&edges, x)?, None))
    }

    /// [`propagate`](Self::propagate) after the exchange of features and without the activation and dropout of the
    /// edges: `x` has the [projected](Self::project) rows of sources and the given rows of destinations.
    ///
    /// # Errors
    /// As [`try_propagate`](Self::try_propagate).
    fn try_pass(&self, edges: &Edges<'_>, x: Endpoints) -> Result<Tensor<2>, OpsError> {
        let relation = edges.relation();
        let per_edge = |arg, rows: usize| {
            check_rows(Self::NAME, arg, "one per edge of the relation", relation.num_edges(), rows)
        };
        let edge = |target, x: Tensor<2>, name| EdgeTensor::of(relation, target, x, name);
        let edge_attr = match edges.features() {
            Some(_) if !Self::READS_FEATURES => {
                return Err(OpsError::UnreadFeatures {
                    op: Self::NAME,
                    etype: edges.edge_type().to_string(),
                });
            }
            Some(attr) => {
                per_edge("edge_attr", attr.dims()[0])?;
                Some(edge(Target::Edge, attr, "`edge_attr`"))
            }
            None => None,
        };
        let x_i = x.projected_dst(&x.src, |dst| self.project(dst));
        let mut messages = self.message(
            edge(Target::Src, x.src, "`x_j`"),
            edge(Target::Dst, x_i, "`x_i`"),
            edge_attr,
        );
        if let Some(weight) = edges.weight() {
            per_edge("weight", weight.dims()[0])?;
            messages = messages * edge(Target::Edge, weight.unsqueeze_dim(1), "edge weight");
        }
        Ok(self.update(self.aggregate(messages), x.dst))
    }
}
