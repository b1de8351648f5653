//! Holds the batches of edges and nodes that user-defined functions take (DGL's `EdgeBatch`).

use std::rc::Rc;

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use burn_gnn_graph::{Column, Frame, GraphError, Relation};

use crate::error::OpsError;
use crate::message::batch::degree_buckets::DegreeBuckets;
use crate::message::batch::mailbox::Mailbox;
use crate::message::columns::{check_float, picked, picked_ids, typed};
use crate::message::fields::{Fields, MESSAGES};

/// What errors call a reduce function.
pub(crate) const REDUCE: &str = "reduce function";

/// A function of a batch of nodes, by reference.
pub(crate) type NodeFn<'a> = &'a dyn Fn(&NodeBatch) -> Result<Fields, OpsError>;

/// Where the fields of a batch of nodes come from.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
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
    pub(crate) rows: Rows,
    pub(crate) ids: Vec<u32>,
}

impl NodeBatch {
    /// Some nodes of a frame, or all, with messages if there are any, one row per edge of a relation.
    pub(crate) fn of(
        frame: &Frame,
        pick: Option<&Relation>,
        messages: Option<(Relation, Fields)>,
    ) -> Self {
        let ids = picked_ids(frame.len(), pick);
        Self { rows: Rows::Of(frame.clone(), pick.cloned(), messages), ids }
    }
    /// What `f` makes of the batch; `what` is how errors call it.
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
