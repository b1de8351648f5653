//! Holds the batches of edges and nodes that user-defined functions take (DGL's `EdgeBatch`).

use std::rc::Rc;

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use burn_gnn_graph::{Column, Frame, GraphError, Relation};

use super::degree_buckets::DegreeBuckets;
use super::dynamic_rank::{check_float, picked, picked_ids, spread};
use super::edge_selection::EdgeSelection;
use super::{Fields, Mailbox};
use crate::OpsError;
use crate::gsddmm::Target;

/// Reducer errors call the fields of messages.
pub(super) const MESSAGES: &str = "messages";

/// What errors call a reduce function.
pub(super) const REDUCE: &str = "reduce function";

/// A column as a tensor of the rank and kind asked for.
fn typed<const D: usize, K: Basic>(
    frame: &str,
    name: &str,
    column: Column,
) -> Result<Tensor<D, K>, OpsError> {
    let mut one = Frame::new(frame, column.len());
    one.insert_column(name, column)?;
    Ok(one.get_as::<D, K>(name)?)
}

/// Some edges, with the features of their endpoints and their own, for a message function or `apply_edges`.
///
/// Rows of every tensor are the edges of the batch, in one order: by destination and then by edge id for a message
/// function (destinations by their number of messages where the reduce function works
/// [`by_degree`](crate::function::by_degree)), in the order asked for in `apply_edges`. [`ids`](Self::ids) are the ids
/// of these edges.
#[derive(Clone, Debug)]
pub struct EdgeBatch {
    selection: EdgeSelection,
}

impl EdgeBatch {
    pub(super) fn new(selection: EdgeSelection) -> Self {
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
    /// The edges of the batch, numbered by its rows: for operators such as [`edge_softmax`](crate::edge_softmax).
    /// Its destinations are those that the call is about, not all nodes of the type.
    pub fn relation(&self) -> &Relation {
        &self.selection.relation
    }
    /// A float field of every edge's source, `[edges, ..]`.
    ///
    /// # Errors
    /// No such field, or another rank or kind.
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

/// A function of a batch of nodes, by reference.
pub(super) type NodeFn<'a> = &'a dyn Fn(&NodeBatch) -> Result<Fields, OpsError>;

/// Where the fields of a batch of nodes come from.
#[derive(Clone, Debug)]
pub(super) enum Rows {
    /// Of a frame, those picked or all; their messages, one row per edge of a relation that is sorted by destination
    /// and ends in the nodes.
    Of(Frame, Option<Relation>, Option<(Relation, Fields)>),
    /// Of a bucket of nodes of one degree.
    Bucket(Rc<DegreeBuckets>, usize),
}

/// Some nodes with their features, for an apply function, and with their messages for a reduce function.
///
/// A reduce function sees the nodes that have messages only.
#[derive(Clone, Debug)]
pub struct NodeBatch {
    pub(super) rows: Rows,
    pub(super) ids: Vec<u32>,
}

impl NodeBatch {
    /// Some nodes of a frame, or all, with messages if there are any, one row per edge of a relation.
    pub(super) fn of(
        frame: &Frame,
        pick: Option<&Relation>,
        messages: Option<(Relation, Fields)>,
    ) -> Self {
        let ids = picked_ids(frame.len(), pick);
        Self { rows: Rows::Of(frame.clone(), pick.cloned(), messages), ids }
    }
    /// What `f` makes of the batch; `what` is how errors call it.
    pub(super) fn call(
        &self,
        op: &'static str,
        what: &str,
        f: NodeFn<'_>,
    ) -> Result<Fields, OpsError> {
        f(self)?.checked(&format!("{op}: {what}"), "one row per node of the batch", self.len())
    }
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
    /// Id of every node.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
    /// A float field of the nodes, `[nodes, ..]`.
    ///
    /// # Errors
    /// No such field, or another rank or kind.
    pub fn data<const D: usize>(&self, field: &str) -> Result<Tensor<D>, OpsError> {
        self.data_as(field)
    }
    /// A field of kind `K`.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    pub fn data_as<const D: usize, K: Basic>(&self, field: &str) -> Result<Tensor<D, K>, OpsError> {
        match &self.rows {
            Rows::Of(frame, pick, _) => {
                typed(frame.label(), field, picked(frame.column(field)?, pick.as_ref()))
            }
            Rows::Bucket(sorted, i) => {
                typed(sorted.frame.label(), field, sorted.node_column(field, *i)?)
            }
        }
    }
    /// Field `message` of the messages of the nodes, as message functions named it; `D` is the rank of the messages,
    /// `[messages, ..]`.
    ///
    /// # Errors
    /// No such field, another rank, or a batch of an apply function, which has no messages.
    pub fn mailbox<const D: usize>(&self, message: &str) -> Result<Mailbox<D>, OpsError> {
        let tensor = |column: Column| {
            check_float(MESSAGES, message, &column)?;
            typed(MESSAGES, message, column)
        };
        match &self.rows {
            Rows::Of(_, _, None) => Err(GraphError::UnknownColumn {
                frame: MESSAGES.into(),
                name: message.to_owned(),
                known: vec![],
            }
            .into()),
            Rows::Of(_, _, Some((relation, fields))) => Ok(Mailbox::new(
                relation.clone(),
                tensor(fields.column(MESSAGES, message)?.clone())?,
            )),
            Rows::Bucket(sorted, i) => Ok(Mailbox::of_bucket(
                sorted,
                tensor(sorted.message_column(message, *i)?)?,
                message,
                *i,
            )),
        }
    }
}
