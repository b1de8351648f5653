//! Runs a call along one edge type: messages, reduced to one row per destination.

use burn_gnn_graph::Relation;
use burn_gnn_plan::{Reduce, Side};

use crate::error::OpsError;
use crate::message::batch::by_degree::by_degree;
use crate::message::batch::degree_buckets::DegreeBuckets;
use crate::message::batch::destinations::{ByDegree, Destinations};
use crate::message::batch::edge_batch::EdgeBatch;
use crate::message::batch::edge_selection::{EdgeSelection, compose};
use crate::message::batch::node_batch::{NodeBatch, REDUCE};
use crate::message::builtin::{Message, Reduction};
use crate::message::columns::{check_float, placed, reduce_copy};
use crate::message::fields::{Fields, MESSAGES};
use crate::message::function::{MessageFunction, Messages, ReduceFunction, Reducer, Reducing};

/// A call: its name in errors, its message function and its reduce function.
pub(crate) struct Call<'a> {
    pub(crate) op: &'static str,
    pub(crate) message: &'a dyn MessageFunction,
    pub(crate) reducing: Reducing<'a>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        op: &'static str,
        message: &'a dyn MessageFunction,
        reduce: &'a dyn ReduceFunction,
    ) -> Self {
        Self { op, message, reducing: reduce.reducing() }
    }
}

/// Calls a message closure. Returns one row per edge of the selection.
pub(crate) fn messages_of(
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

fn unknown_message(op: &'static str, reads: &str, made: Vec<String>) -> OpsError {
    OpsError::MessageField { op, reads: reads.to_owned(), made }
}

/// Runs a builtin reduce function with another reducer: reductions over several relations replace a mean by a sum.
pub(crate) fn receive_builtin(
    &Call { op, message, .. }: &Call<'_>,
    selection: &EdgeSelection,
    reduction: &Reduction,
    reduce: Reduce,
) -> Result<Fields, OpsError> {
    let column = match message.messages() {
        Messages::Builtin(Message { out, .. }) if *out != reduction.message => {
            return Err(unknown_message(op, &reduction.message, vec![out.clone()]));
        }
        Messages::Builtin(message) => {
            selection.expression(message)?.reduce(message.name, &selection.relation, reduce)?
        }
        Messages::User(f) => {
            let selection = selection.sorted();
            let made = messages_of(op, f, &selection)?;
            let Ok(messages) = made.column(MESSAGES, &reduction.message) else {
                return Err(unknown_message(op, &reduction.message, made.owned_names()));
            };
            check_float(MESSAGES, &reduction.message, messages)?;
            reduce_copy(op, &selection.relation, Side::Rhs, reduce, messages)?
        }
    };
    Ok(Fields::default().with_column(&reduction.out, column))
}

/// Computes fields of the destinations of a selection; a destination without messages gets 0.
pub(crate) fn receive(call: &Call<'_>, selection: &EdgeSelection) -> Result<Fields, OpsError> {
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
            // Closures get only destinations with messages.
            if selection.relation.in_degrees().all(|d| d > 0) {
                return received(selection.nodes.as_ref(), &selection.relation);
            }
            let reached = Destinations::ascending(&selection.relation)?;
            let nodes = compose(selection.nodes.as_ref(), &reached.nodes)?;
            with_zeros(&reached, &received(Some(&nodes), &reached.relation)?)
        }
        Reducer::ByDegree(f) => {
            let order = ByDegree::of(&selection.relation)?;
            let (selection, nodes) = selection.by_degree(&order)?;
            let messages = messages(&selection)?;
            with_zeros(
                &order.reached,
                &by_degree(op, f, DegreeBuckets::new(order.clone(), selection, nodes, messages))?,
            )
        }
    }
}

/// Scatters rows of the nodes with messages to all destinations; the other rows are 0.
fn with_zeros(reached: &Destinations, made: &Fields) -> Result<Fields, OpsError> {
    made.iter().try_fold(Fields::default(), |out, (name, column)| {
        Ok(out.with_column(name, placed(&reached.delivery, column)?))
    })
}
