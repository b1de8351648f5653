//! Holds the edges that a user-defined message function takes (DGL's `EdgeBatch`).

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use burn_gnn_graph::Relation;
use burn_gnn_plan::Target;

use crate::error::OpsError;
use crate::message::batch::edge_selection::EdgeSelection;
use crate::message::columns::{picked_ids, spread, typed};

/// Edges with features of their endpoints and of themselves: the argument of a message closure or of `apply_edges`.
///
/// All tensors have one row per edge of the batch, in one order, which [`ids`](Self::ids) returns. For a message function
/// it is by destination and then by edge id (by number of messages first if the reduce function is
/// [`by_degree`](crate::function::by_degree)). For `apply_edges` it is the order of the ids in the call.
#[derive(Clone, Debug)]
pub struct EdgeBatch {
    selection: EdgeSelection,
}

impl EdgeBatch {
    pub(crate) fn new(selection: EdgeSelection) -> Self {
        Self { selection }
    }
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.selection.relation.num_edges()
    }
    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Id of every edge.
    pub fn ids(&self) -> Vec<u32> {
        picked_ids(self.len(), self.selection.eids.as_ref())
    }
    /// The edges of the batch, numbered by its rows, for operators such as [`edge_softmax`](crate::edge_softmax). Its
    /// destinations are those of the call, not all nodes of the type.
    pub fn relation(&self) -> &Relation {
        &self.selection.relation
    }
    /// A float field of every edge's source, `[edges, ..]`.
    ///
    /// # Errors
    /// An unknown field; a field of another rank or kind.
    pub fn src<const D: usize>(&self, field: &str) -> Result<Tensor<D>, OpsError> {
        self.endpoints(Target::Src, field)
    }
    /// A float field of every edge's destination, `[edges, ..]`.
    ///
    /// # Errors
    /// As [`src`](Self::src).
    pub fn dst<const D: usize>(&self, field: &str) -> Result<Tensor<D>, OpsError> {
        self.endpoints(Target::Dst, field)
    }
    /// A float field of the edges, `[edges, ..]`.
    ///
    /// # Errors
    /// As [`src`](Self::src).
    pub fn data<const D: usize>(&self, field: &str) -> Result<Tensor<D>, OpsError> {
        self.endpoints(Target::Edge, field)
    }
    /// A field of kind `K` of sources, destinations or edges: [`src`](Self::src), [`dst`](Self::dst) and
    /// [`data`](Self::data) for integers and booleans.
    ///
    /// # Errors
    /// As [`src`](Self::src).
    pub fn endpoints<const D: usize, K: Basic>(
        &self,
        target: Target,
        field: &str,
    ) -> Result<Tensor<D, K>, OpsError> {
        let frame = self.selection.frame(target);
        frame.get_as::<D, K>(field)?;
        typed(
            frame.label(),
            field,
            spread(&self.selection.relation, target, &self.selection.column(target, field)?),
        )
    }
}
