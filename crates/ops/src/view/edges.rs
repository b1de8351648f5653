//! Defines `Edges`, the input of layers on one relation: the edges of one type with their options.

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeKey, EdgeType, GraphError, Relation};
use burn_gnn_plan::{Activation, DegreeScale, DegreesOf, EdgeDropout, RowDropout};

use crate::dense::epilogue::bias_activation;
use crate::view::GraphView;
use crate::view::dropout_key::DropoutKey;

/// The edges of one type of a graph, block or partition with their options: the input of layers on one relation,
/// `conv.forward(&edges, x)`.
///
/// [`GraphView::edge_type`] returns them by name. A view of a single edge type can be passed directly
/// (`conv.forward(&g, x)`).
///
/// | option | |
/// | --- | --- |
/// | [`with_weight`](Self::with_weight) | one number per edge, by which its message is multiplied |
/// | [`with_features`](Self::with_features) | one feature vector per edge |
/// | [`then`](Self::then), [`then_dropout`](Self::then_dropout) | activation and dropout of the result, in the layer's last pass |
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::{Activation, GraphView};
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1, 1], vec![0, 0, 1])
///     .edges(("paper", "cites", "paper"), vec![0], vec![1])
///     .build()?;
/// let edges = g.edge_type("writes")?.with_weight(Tensor::<1>::ones([3], &Device::flex())).then(Activation::Relu);
/// assert_eq!((edges.relation().num_edges(), edges.edge_type().dst.as_str()), (3, "paper"));
/// let unknown = g.edge_type("reads").err().unwrap().to_string();
/// assert!(unknown.contains("reads") && unknown.contains("paper:cites:paper"));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct Edges<'a> {
    view: &'a dyn GraphView,
    etype: usize,
    weight: Option<Tensor<1>>,
    features: Option<Tensor<2>>,
    activation: Activation,
    dropout: Option<(DropoutKey, f64)>,
}

impl std::fmt::Debug for Edges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edges")
            .field("edge_type", &self.edge_type().to_string())
            .field("num_edges", &self.relation().num_edges())
            .field("weight", &self.weight.is_some())
            .field("features", &self.features.as_ref().map(|f| f.dims()[1]))
            .field("then", &self.activation)
            .field("dropout", &self.dropout.as_ref().map(|d| d.1))
            .finish()
    }
}

impl<'a> Edges<'a> {
    /// The edges of a type of `view`, with the weights and features of the view ([`GraphView::edge_weight`]).
    ///
    /// # Errors
    /// An unknown edge type; a relation name that several edge types share.
    pub fn new(view: &'a dyn GraphView, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let etype = view.schema().etype(etype)?;
        Ok(Self {
            view,
            etype,
            weight: view.edge_weight(etype),
            features: view.edge_features(etype),
            activation: Activation::None,
            dropout: None,
        })
    }

    /// Sets edge weights, `[num_edges]` in the order of edge ids, by which layers multiply messages.
    #[must_use]
    pub fn with_weight(self, weight: impl Into<Option<Tensor<1>>>) -> Self {
        Self { weight: weight.into(), ..self }
    }

    /// Sets edge features, `[num_edges, d_edge]` in the order of edge ids.
    #[must_use]
    pub fn with_features(self, features: impl Into<Option<Tensor<2>>>) -> Self {
        Self { features: features.into(), ..self }
    }

    /// Sets the activation of the layer's result.
    #[must_use]
    pub fn then(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Sets dropout of the layer's result after the activation. `key` is the [`DropoutKey`] of this layer in the model.
    #[must_use]
    pub fn then_dropout(self, key: &DropoutKey, prob: f64) -> Self {
        Self { dropout: Some((key.clone(), prob)), ..self }
    }

    /// The graph, block or partition.
    pub fn view(&self) -> &'a dyn GraphView {
        self.view
    }
    /// Number of the edge type in the schema.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// Names of the edge type.
    pub fn edge_type(&self) -> &'a EdgeType {
        &self.view.schema().etypes()[self.etype]
    }
    /// Numbers of the node types of sources and of destinations.
    pub fn endpoints(&self) -> (usize, usize) {
        self.view.schema().endpoints(self.etype)
    }
    /// Sources and destinations, for operators.
    pub fn relation(&self) -> &'a Relation {
        self.view.relation(self.etype)
    }
    /// Edge weights, if they are set.
    pub fn weight(&self) -> Option<Tensor<1>> {
        self.weight.clone()
    }
    /// Edge features, if they are set.
    pub fn features(&self) -> Option<Tensor<2>> {
        self.features.clone()
    }
    /// The activation of the layer's result.
    pub fn activation(&self) -> Activation {
        self.activation
    }
    /// See [`GraphView::num_dst`].
    pub fn num_dst(&self) -> usize {
        self.view.num_dst(self.endpoints().1)
    }
    /// See [`GraphView::in_degrees`].
    pub fn in_degrees(&self) -> Cow<'a, [u32]> {
        self.view.in_degrees(self.etype)
    }
    /// See [`GraphView::input_in_degrees`].
    pub fn input_in_degrees(&self) -> Option<Cow<'a, [u32]>> {
        self.view.input_in_degrees(self.etype)
    }
    /// See [`GraphView::out_degrees`].
    pub fn out_degrees(&self) -> Cow<'a, [u32]> {
        self.view.out_degrees(self.etype)
    }
    /// See [`GraphView::degree_scale`].
    pub fn degree_scale(&self, of: DegreesOf, power: f64) -> DegreeScale {
        self.view.degree_scale(self.etype, of, power)
    }
    /// See [`GraphView::original_edge_ids`].
    pub fn original_edge_ids(&self) -> Option<Arc<[u64]>> {
        self.view.original_edge_ids(self.etype)
    }

    /// Features of the source rows from input features of the source type, by one exchange ([`GraphView::src_rows`]).
    #[track_caller]
    pub fn src_rows(&self, call: &'static str, x: Tensor<2>) -> Tensor<2> {
        let s = self.endpoints().0;
        // The exchange takes all node types: the remaining types have no features.
        let mut rows: Vec<Tensor<2>> = (0..self.view.schema().ntypes().len())
            .map(|t| {
                if t == s {
                    x.clone()
                } else {
                    Tensor::zeros([self.view.num_dst(t), 0], (&x.device(), x.dtype()))
                }
            })
            .collect();
        rows = self.view.src_rows(call, rows);
        rows.swap_remove(s)
    }

    /// Features of the destination rows from input features of their type ([`GraphView::dst_rows`]).
    pub fn dst_rows(&self, x: Tensor<2>) -> Tensor<2> {
        self.view.dst_rows(self.endpoints().1, x)
    }

    /// The [dropout](Self::then_dropout) of result `y`; `None` if no entries are dropped.
    pub fn output_dropout(&self, y: &Tensor<2>) -> Option<RowDropout> {
        let (key, prob) = self.dropout.as_ref()?;
        key.of_outputs(self.view, self.endpoints().1, *prob, y)
    }

    /// Applies the dropout to a result `y` that includes the activation already.
    #[track_caller]
    pub fn drop(&self, y: Tensor<2>) -> Tensor<2> {
        match self.output_dropout(&y) {
            Some(dropout) => bias_activation(y, None, Activation::None, Some(&dropout)),
            None => y,
        }
    }

    /// Applies a bias, the activation and the dropout to a result `y`, in one pass.
    #[track_caller]
    pub fn finish(&self, y: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
        let dropout = self.output_dropout(&y);
        if bias.is_none() && self.activation == Activation::None && dropout.is_none() {
            return y;
        }
        bias_activation(y, bias, self.activation, dropout.as_ref())
    }
}

impl DropoutKey {
    /// Dropout of values on edges (weights, attention), keyed by original edge ids; `None` if no entries are dropped. `x`
    /// is a tensor of the pass, whose device decides about dropout.
    pub fn of_edges<const D: usize>(
        &self,
        edges: &Edges<'_>,
        prob: f64,
        x: &Tensor<D>,
    ) -> Option<EdgeDropout> {
        let stream = self.stream(edges.view(), &edges.edge_type().to_string(), prob, x)?;
        Some(EdgeDropout { prob, stream, ids: edges.original_edge_ids() })
    }
}

/// The single edge type of a view. The panic message lists the edge types otherwise.
#[track_caller]
fn only(view: &dyn GraphView) -> Edges<'_> {
    Edges::new(view, ..).unwrap_or_else(|e| {
        panic!("edges of a graph: {e}; take one by name, `g.edge_type(\"name\")?`")
    })
}

/// The edges of a view of one edge type.
///
/// # Panics
/// The view has several edge types. [`GraphView::edge_type`] selects one by name.
impl<'a, G: GraphView> From<&'a G> for Edges<'a> {
    #[track_caller]
    fn from(view: &'a G) -> Self {
        only(view)
    }
}

/// As for a reference to a sized view.
impl<'a> From<&'a dyn GraphView> for Edges<'a> {
    #[track_caller]
    fn from(view: &'a dyn GraphView) -> Self {
        only(view)
    }
}

/// A copy; tensors are shared.
impl<'a> From<&Edges<'a>> for Edges<'a> {
    fn from(edges: &Edges<'a>) -> Self {
        edges.clone()
    }
}
