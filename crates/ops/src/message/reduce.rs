//! Reduces messages to one row per destination.

use std::sync::Arc;

use burn_gnn_graph::{Frame, Relation};

use super::batch::{EdgeBatch, MESSAGES, NodeBatch, Rows};
use super::by_degree::by_degree;
use super::degree_buckets::DegreeBuckets;
use super::destinations::{ByDegree, Destinations};
use super::dynamic_rank::{check_float, placed, reduce_copy};
use super::edge_selection::{EdgeSelection, compose};
use super::function::{Message, Messages, Reduction};
use super::{Fields, MessageFunction};
use crate::OpsError;
use crate::gspmm::{Reduce, Side};

/// A function of a batch of nodes, by reference.
pub(super) type NodeFn<'a> = &'a dyn Fn(&NodeBatch) -> Result<Fields, OpsError>;

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

/// The messages of a closure, one row per edge of the selection.
pub(super) fn call(
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
    op: &'static str,
    selection: &EdgeSelection,
    message: &dyn MessageFunction,
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
            let made = call(op, f, &selection)?;
            let Ok(messages) = made.column(MESSAGES, &reduction.message) else {
                return Err(differ(
                    op,
                    &reduction.message,
                    made.names().into_iter().map(str::to_owned).collect(),
                ));
            };
            check_float(MESSAGES, &reduction.message, messages)?;
            reduce_copy(op, &selection.relation, Side::Rhs, reduce, messages)?
        }
    };
    Ok(Fields::default().with_column(&reduction.out, column))
}

/// Fields of the destinations of a selection, one row for each; 0 without messages.
pub(super) fn receive(
    op: &'static str,
    selection: &EdgeSelection,
    message: &dyn MessageFunction,
    reducing: &Reducing<'_>,
) -> Result<Fields, OpsError> {
    let messages = |selection: &EdgeSelection| match message.messages() {
        Messages::Builtin(message) => {
            let rows = selection.expression(message)?.rows(message.name, &selection.relation)?;
            Ok(Fields::default().with_column(&message.out, rows))
        }
        Messages::User(f) => call(op, f, selection),
    };
    match reducing.how {
        Reducer::Builtin(reduction) => {
            receive_builtin(op, selection, message, reduction, reduction.reduce)
        }
        Reducer::Ragged(f) => {
            let selection = selection.sorted();
            let mail = ReceivedMessages::new(&selection, messages(&selection)?)?;
            let made = mail.checked(op, f(&mail.batch())?)?;
            match &mail.reached {
                None => Ok(made),
                Some(reached) => delivered(reached, &made),
            }
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

/// The destinations that have messages, with them.
struct ReceivedMessages {
    /// Edges by destination; every destination has one.
    relation: Relation,
    messages: Fields,
    frame: Frame,
    /// Rows of the frame that destinations are; `None` for all.
    nodes: Option<Relation>,
    /// Which destinations of the selection those are; `None` for all.
    reached: Option<Arc<Destinations>>,
}

impl ReceivedMessages {
    fn new(selection: &EdgeSelection, messages: Fields) -> Result<Self, OpsError> {
        let (relation, frame) = (selection.relation.clone(), selection.dst.clone());
        if relation.in_degrees().all(|d| d > 0) {
            return Ok(Self {
                relation,
                messages,
                frame,
                nodes: selection.nodes.clone(),
                reached: None,
            });
        }
        let reached = Destinations::ascending(&relation)?;
        let nodes = Some(compose(selection.nodes.as_ref(), &reached.nodes)?);
        Ok(Self {
            relation: reached.relation.clone(),
            messages,
            frame,
            nodes,
            reached: Some(reached),
        })
    }

    /// Node ids by destination.
    fn ids(&self) -> Vec<u32> {
        self.nodes
            .as_ref()
            .map_or_else(|| (0..self.frame.len() as u32).collect(), |pick| pick.src().to_vec())
    }

    fn batch(&self) -> NodeBatch {
        let messages = Some((self.relation.clone(), self.messages.clone()));
        NodeBatch {
            rows: Rows::Of(self.frame.clone(), self.nodes.clone(), messages),
            ids: self.ids(),
        }
    }

    fn checked(&self, op: &'static str, made: Fields) -> Result<Fields, OpsError> {
        made.checked(
            &format!("{op}: reduce function"),
            "one row per node of the batch",
            self.relation.num_dst(),
        )
    }
}
