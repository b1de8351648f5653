//! Reduces messages to one row per destination.

use burn_gnn_graph::Relation;

use super::batch::{EdgeBatch, MESSAGES, NodeBatch, NodeFn, REDUCE};
use super::by_degree::by_degree;
use super::degree_buckets::DegreeBuckets;
use super::destinations::{ByDegree, Destinations};
use super::dynamic_rank::{check_float, placed, reduce_copy};
use super::edge_selection::{EdgeSelection, compose};
use super::function::{Message, Messages, Reduction};
use super::{Fields, MessageFunction, ReduceFunction};
use crate::OpsError;
use crate::gspmm::{Reduce, Side};

/// A reduce function by reference, and what is applied afterwards.
#[doc(hidden)]
pub struct Reducing<'a> {
    pub(super) how: Reducer<'a>,
    pub(super) apply: Vec<NodeFn<'a>>,
}

pub(super) enum Reducer<'a> {
    Builtin(&'a Reduction),
    Ragged(NodeFn<'a>),
    ByDegree(NodeFn<'a>),
}

impl Reducing<'_> {
    /// The builtin that reduces, if one does.
    pub(super) fn builtin(&self) -> Option<&Reduction> {
        match self.how {
            Reducer::Builtin(reduction) => Some(reduction),
            Reducer::Ragged(_) | Reducer::ByDegree(_) => None,
        }
    }
}

/// One call: its name in errors, its message function and its reduce function.
pub(super) struct Call<'a> {
    pub(super) op: &'static str,
    pub(super) message: &'a dyn MessageFunction,
    pub(super) reducing: Reducing<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        op: &'static str,
        message: &'a dyn MessageFunction,
        reduce: &'a dyn ReduceFunction,
    ) -> Self {
        Self { op, message, reducing: reduce.reducing() }
    }
}

/// The messages of a closure, one row per edge of the selection.
pub(super) fn messages_of(
    op: &'static str,
    f: &dyn Fn(&EdgeBatch) -> Result<Fields, OpsError>,
    selection: &EdgeSelection,
) -> Result<Fields, OpsError> {
    let batch = EdgeBatch::new(selection.clone());
    f(&batch)?.checked(
        &format!("{op}: message function"),
        "one row per edge of the batch",
        batch.len(),
    )
}

fn differ(op: &'static str, reads: &str, made: Vec<String>) -> OpsError {
    OpsError::MessageField { op, reads: reads.to_owned(), made }
}

/// One builtin message, `reduce` given in its place: for reductions over several relations, which change it.
pub(super) fn receive_builtin(
    &Call { op, message, .. }: &Call<'_>,
    selection: &EdgeSelection,
    reduction: &Reduction,
    reduce: Reduce,
) -> Result<Fields, OpsError> {
    let column = match message.messages() {
        Messages::Builtin(Message { out, .. }) if *out != reduction.message => {
            return Err(differ(op, &reduction.message, vec![out.clone()]));
        }
        Messages::Builtin(message) => {
            selection.expression(message)?.reduce(message.name, &selection.relation, reduce)?
        }
        Messages::User(f) => {
            let selection = selection.sorted();
            let made = messages_of(op, f, &selection)?;
            let Ok(messages) = made.column(MESSAGES, &reduction.message) else {
                return Err(differ(op, &reduction.message, made.owned_names()));
            };
            check_float(MESSAGES, &reduction.message, messages)?;
            reduce_copy(op, &selection.relation, Side::Rhs, reduce, messages)?
        }
    };
    Ok(Fields::default().with_column(&reduction.out, column))
}

/// Fields of the destinations of a selection, one row for each; 0 without messages.
pub(super) fn receive(call: &Call<'_>, selection: &EdgeSelection) -> Result<Fields, OpsError> {
    let op = call.op;
    let messages = |selection: &EdgeSelection| match call.message.messages() {
        Messages::Builtin(message) => selection.fields(message),
        Messages::User(f) => messages_of(op, f, selection),
    };
    match call.reducing.how {
        Reducer::Builtin(reduction) => {
            receive_builtin(call, selection, reduction, reduction.reduce)
        }
        Reducer::Ragged(f) => {
            let selection = selection.sorted();
            let (frame, messages) = (&selection.dst, messages(&selection)?);
            let received = |nodes: Option<&Relation>, relation: &Relation| {
                NodeBatch::of(frame, nodes, Some((relation.clone(), messages))).call(op, REDUCE, f)
            };
            // A closure sees the destinations that have messages only.
            if selection.relation.in_degrees().all(|d| d > 0) {
                return received(selection.nodes.as_ref(), &selection.relation);
            }
            let reached = Destinations::ascending(&selection.relation)?;
            let nodes = compose(selection.nodes.as_ref(), &reached.nodes)?;
            delivered(&reached, &received(Some(&nodes), &reached.relation)?)
        }
        Reducer::ByDegree(f) => {
            let order = ByDegree::of(&selection.relation)?;
            let (selection, nodes) = selection.by_degree(&order)?;
            let messages = messages(&selection)?;
            delivered(
                &order.reached,
                &by_degree(op, f, DegreeBuckets::new(order.clone(), selection, nodes, messages))?,
            )
        }
    }
}

/// Rows of the nodes with messages among 0 for the others.
fn delivered(reached: &Destinations, made: &Fields) -> Result<Fields, OpsError> {
    made.iter().try_fold(Fields::default(), |out, (name, column)| {
        Ok(out.with_column(name, placed(&reached.delivery, column)?))
    })
}
