//! Defines `EdgeTypes`, the input of heterogeneous layers: the edges of all types with their weights and features.

use burn::tensor::Tensor;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_graph::{EdgeKey, GraphError};

use crate::view::GraphView;
use crate::view::edges::Edges;

/// The edges of all types of a graph, block or partition, with optional weights and features per type: the input of
/// layers on several relations, and a view for models, whose layers read the weights and features from it.
///
/// [`GraphView::edge_types`] returns them. Without weights and features a view can be passed directly
/// (`conv.forward(&g, x)`). A layer panics with its name and the edge type if it does not read weights or features that
/// are set. `EdgeTypes` is a view, so it can be used like a graph: `model.forward(&edges, x)`, in a `NodeTask` for
/// training and evaluation, in `infer`. In `g.edge_types().with_weight(.., w)?` the two dots stand for the only edge
/// type.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::GraphView;
/// let g = Graph::builder()
///     .edges(("author", "writes", "paper"), vec![0, 1, 1], vec![0, 0, 1])
///     .edges(("paper", "cites", "paper"), vec![0], vec![1])
///     .build()?;
/// let edges = g.edge_types().with_weight("writes", Tensor::<1>::ones([3], &Device::flex()))?;
/// assert!(edges.get("writes")?.weight().is_some() && edges.get("cites")?.weight().is_none());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct EdgeTypes<'a> {
    view: &'a dyn GraphView,
    weights: Vec<Option<Tensor<1>>>,
    features: Vec<Option<Tensor<2>>>,
}

impl std::fmt::Debug for EdgeTypes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..self.weights.len()).map(|r| self.at(r))).finish()
    }
}

impl<'a> EdgeTypes<'a> {
    /// All edge types of `view`, with the weights and features of the view ([`GraphView::edge_weight`]).
    pub fn new(view: &'a dyn GraphView) -> Self {
        let etypes = 0..view.schema().etypes().len();
        Self {
            view,
            weights: etypes.clone().map(|r| view.edge_weight(r)).collect(),
            features: etypes.map(|r| view.edge_features(r)).collect(),
        }
    }

    /// Sets edge weights of a type, `[num_edges]` in the order of edge ids, by which layers multiply messages.
    ///
    /// # Errors
    /// An unknown edge type; a relation name that several edge types share; not one entry per edge of the type.
    pub fn with_weight(
        mut self,
        etype: impl EdgeKey,
        weight: impl Into<Option<Tensor<1>>>,
    ) -> Result<Self, GraphError> {
        let (r, weight) = (self.view.schema().etype(etype)?, weight.into());
        self.check_rows(r, "edge weight", weight.as_ref().map(|w| w.dims()[0]))?;
        self.weights[r] = weight;
        Ok(self)
    }

    /// Sets the float column `name` of a graph or partition as weights of every edge type that has this column.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_ops::GraphView;
    /// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
    /// g.edges_mut("_E")?.insert("weight", Tensor::<1>::from_data([0.5, 2.0], &Device::flex()))?;
    /// assert!(g.edge_types().get("_E")?.weight().is_none()); // columns are not weights by default
    /// assert!(g.edge_types().with_weight_column("weight")?.get("_E")?.weight().is_some());
    /// assert!(g.edge_types().with_weight_column("w").unwrap_err().to_string().contains("`w`"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// No edge type has this column; a column of another kind or shape.
    pub fn with_weight_column(mut self, name: &str) -> Result<Self, GraphError> {
        let mut missing = None;
        let mut found = false;
        for r in 0..self.weights.len() {
            let Some(frame) = self.view.edge_columns(r) else { continue };
            match frame.column(name) {
                Ok(_) => {
                    self.weights[r] = Some(frame.get::<1>(name)?);
                    found = true;
                }
                Err(e) => missing = Some(e),
            }
        }
        match missing {
            Some(e) if !found => Err(e),
            None if !found => Err(GraphError::UnknownColumn {
                frame: "edges of a view without columns (a block, or no edge type)".into(),
                name: name.to_owned(),
                known: vec![],
            }),
            _ => Ok(self),
        }
    }

    /// Sets features of the edges of a type, `[num_edges, d_edge]` in the order of edge ids.
    ///
    /// # Errors
    /// As [`with_weight`](Self::with_weight).
    pub fn with_features(
        mut self,
        etype: impl EdgeKey,
        features: impl Into<Option<Tensor<2>>>,
    ) -> Result<Self, GraphError> {
        let (r, features) = (self.view.schema().etype(etype)?, features.into());
        self.check_rows(r, "edge features", features.as_ref().map(|f| f.dims()[0]))?;
        self.features[r] = features;
        Ok(self)
    }

    /// Checks that there is one row per edge of a type. A layer that concatenates the edges of all types could check only
    /// their total number.
    fn check_rows(
        &self,
        etype: usize,
        arg: &'static str,
        rows: Option<usize>,
    ) -> Result<(), GraphError> {
        let expected = self.view.relation(etype).num_edges();
        match rows {
            Some(actual) if actual != expected => Err(GraphError::Length {
                relation: self.view.schema().etypes()[etype].to_string(),
                arg: arg.into(),
                why: "one per edge of the type",
                expected,
                actual,
            }),
            _ => Ok(()),
        }
    }

    /// The edges of one type.
    ///
    /// # Errors
    /// As [`with_weight`](Self::with_weight).
    pub fn get(&self, etype: impl EdgeKey) -> Result<Edges<'a>, GraphError> {
        Ok(self.at(self.view.schema().etype(etype)?))
    }

    /// The edges of the type with this number in the schema.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn at(&self, etype: usize) -> Edges<'a> {
        let edges = Edges::new(self.view, etype).or_panic();
        edges.with_weight(self.weights[etype].clone()).with_features(self.features[etype].clone())
    }

    /// The graph, block or partition.
    pub fn view(&self) -> &'a dyn GraphView {
        self.view
    }

    /// Edge weights by edge type, in the order of the schema.
    pub fn weights(&self) -> &[Option<Tensor<1>>] {
        &self.weights
    }

    /// Edge features by edge type, in the order of the schema.
    pub fn features(&self) -> &[Option<Tensor<2>>] {
        &self.features
    }

    /// Moves weights and features to the device without autodiff, for a pass without gradients.
    #[must_use]
    pub fn without_autodiff(mut self) -> Self {
        self.weights.iter_mut().for_each(|w| *w = w.take().map(Tensor::without_autodiff));
        self.features.iter_mut().for_each(|f| *f = f.take().map(Tensor::without_autodiff));
        self
    }

    /// Checks that there are no weights and features, for layers that read neither.
    ///
    /// # Panics
    /// There are weights or features. The message contains `layer` and the edge type.
    #[track_caller]
    pub fn expect_bare(&self, layer: &str) {
        for (r, (w, f)) in self.weights.iter().zip(&self.features).enumerate() {
            let what = if w.is_some() { "weights" } else { "features" };
            let etype = &self.view.schema().etypes()[r];
            assert!(
                w.is_none() && f.is_none(),
                "{layer}: expected no edge {what}, got some of `{etype}`; remove them, this layer does not use them"
            );
        }
    }
}

/// All edge types, with the weights and features of the view.
impl<'a, G: GraphView> From<&'a G> for EdgeTypes<'a> {
    fn from(view: &'a G) -> Self {
        Self::new(view)
    }
}

/// As for a reference to a sized view.
impl<'a> From<&'a dyn GraphView> for EdgeTypes<'a> {
    fn from(view: &'a dyn GraphView) -> Self {
        Self::new(view)
    }
}
