//! Holds the nodes that user-defined reduce and apply functions take (DGL's `NodeBatch`).

use std::rc::Rc;

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use burn_gnn_graph::{Column, Frame, GraphError, Relation};

use crate::error::OpsError;
use crate::message::batch::degree_buckets::DegreeBuckets;
use crate::message::batch::mailbox::Mailbox;
use crate::message::columns::{check_float, picked, picked_ids, typed};
use crate::message::fields::{Fields, MESSAGES};

/// Name of a reduce function in errors.
pub(crate) const REDUCE: &str = "reduce function";

/// A function of a batch of nodes, by reference.
pub(crate) type NodeFn<'a> = &'a dyn Fn(&NodeBatch) -> Result<Fields, OpsError>;

/// Origin of the fields of a batch of nodes.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// Selected or all rows of a frame. Messages have one row per edge of a relation that is sorted by destination and
    /// whose destinations are the nodes.
    Of(Frame, Option<Relation>, Option<(Relation, Fields)>),
    /// A bucket of nodes of one degree.
    Bucket(Rc<DegreeBuckets>, usize),
}

/// Nodes with their features for an apply function, and with their messages for a reduce function.
///
/// A reduce function gets only nodes with messages.
#[derive(Clone, Debug)]
pub struct NodeBatch {
    pub(crate) rows: Rows,
    pub(crate) ids: Vec<u32>,
}

impl NodeBatch {
    /// Selected or all nodes of a frame; for a reduce function with messages, one row per edge of a relation.
    pub(crate) fn of(
        frame: &Frame,
        pick: Option<&Relation>,
        messages: Option<(Relation, Fields)>,
    ) -> Self {
        let ids = picked_ids(frame.len(), pick);
        Self { rows: Rows::Of(frame.clone(), pick.cloned(), messages), ids }
    }
    /// Calls `f` and checks its fields. `what` is the name of `f` in errors.
    pub(crate) fn call(
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
    /// An unknown field; a field of another rank or kind.
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
    /// The messages of the nodes with the name `message`; `D` is the rank of `[messages, ..]`.
    ///
    /// # Errors
    /// An unknown message; another rank; a batch of an apply function, which has no messages.
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
