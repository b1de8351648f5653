//! From messages to a row per destination.

use std::sync::Arc;

use burn_gnn_graph::{Frame, Relation};

use super::batch::{EdgeBatch, Letters, MESSAGES, NodeBatch, Rows};
use super::by_degree::by_degree;
use super::function::{Message, Messages, Reduction};
use super::reached::{Order, Reached};
use super::rows::{check_float, delivered, reduce_copy};
use super::site::Site;
use super::{Fields, MessageFunction};
use crate::OpsError;
use crate::gspmm::{Reduce, Side};

/// A function of a batch of nodes, by reference.
pub(super) type NodeFn<'a> = &'a dyn Fn(&NodeBatch) -> Result<Fields, OpsError>;

/// A reduce function by reference, and what is applied afterwards.
#[doc(hidden)]
pub struct Reducing<'a> {
    pub(super) how: How<'a>,
    pub(super) apply: Vec<NodeFn<'a>>,
}

pub(super) enum How<'a> {
    Builtin(&'a Reduction),
    Ragged(NodeFn<'a>),
    ByDegree(NodeFn<'a>),
}

impl Reducing<'_> {
    /// The builtin that reduces, if one does.
    pub(super) fn builtin(&self) -> Option<&Reduction> {
        match self.how {
            How::Builtin(reduction) => Some(reduction),
            How::Ragged(_) | How::ByDegree(_) => None,
        }
    }
}

/// The messages of a closure, one row per edge of the site.
pub(super) fn call(op: &'static str, f: &dyn Fn(&EdgeBatch) -> Result<Fields, OpsError>, site: &Site) -> Result<Fields, OpsError> {
    let batch = EdgeBatch::new(site.clone());
    f(&batch)?.checked(&format!("{op}: message function"), "one row per edge of the batch", batch.len())
}

fn differ(op: &'static str, reads: &str, made: Vec<String>) -> OpsError {
    OpsError::MessageField { op, reads: reads.to_owned(), made }
}

/// One builtin message, `reduce` given in its place: for reductions over several relations, which change it.
pub(super) fn receive_builtin(
    op: &'static str,
    site: &Site,
    message: &dyn MessageFunction,
    reduction: &Reduction,
    reduce: Reduce,
) -> Result<Fields, OpsError> {
    let column = match message.messages() {
        Messages::Builtin(Message { out, .. }) if *out != reduction.message => {
            return Err(differ(op, &reduction.message, vec![out.clone()]));
        }
        Messages::Builtin(message) => site.expression(message)?.reduce(message.name, &site.relation, reduce)?,
        Messages::User(f) => {
            let site = site.sorted();
            let made = call(op, f, &site)?;
            let Ok(messages) = made.column(MESSAGES, &reduction.message) else {
                return Err(differ(op, &reduction.message, made.names().into_iter().map(str::to_owned).collect()));
            };
            check_float(MESSAGES, &reduction.message, messages)?;
            reduce_copy(op, &site.relation, Side::Rhs, reduce, messages)?
        }
    };
    Ok(Fields::default().with_column(&reduction.out, column))
}

/// Fields of the destinations of a site, one row for each; 0 without messages.
pub(super) fn receive(op: &'static str, site: &Site, message: &dyn MessageFunction, reducing: &Reducing<'_>) -> Result<Fields, OpsError> {
    let (f, order) = match reducing.how {
        How::Builtin(reduction) => return receive_builtin(op, site, message, reduction, reduction.reduce),
        How::Ragged(f) => (f, Order::Ascending),
        How::ByDegree(f) => (f, Order::ByDegree),
    };
    let (ordered, reached) = match order {
        Order::Ascending => (site.sorted(), None),
        Order::ByDegree => {
            let reached = Reached::of(&site.relation, order);
            (site.reached(&reached)?, Some(reached))
        }
    };
    let messages = match message.messages() {
        Messages::Builtin(message) => {
            let rows = ordered.expression(message)?.rows(message.name, &ordered.relation)?;
            Fields::default().with_column(&message.out, rows)
        }
        Messages::User(f) => call(op, f, &ordered)?,
    };
    let mail = match reached {
        Some(reached) => Mail { messages, frame: ordered.dst, nodes: ordered.nodes, relation: ordered.relation, reached: Some(reached) },
        None => Mail::new(&ordered, messages)?,
    };
    let made = match order {
        Order::Ascending => mail.checked(op, f(&mail.batch())?)?,
        Order::ByDegree => by_degree(op, f, &mail)?,
    };
    mail.delivered(made)
}

/// The destinations that have messages, with them.
pub(super) struct Mail {
    /// Edges by destination; every destination has one.
    pub(super) relation: Relation,
    pub(super) messages: Fields,
    pub(super) frame: Frame,
    /// Rows of the frame that destinations are; `None` for all.
    pub(super) nodes: Option<Relation>,
    /// Which destinations of the site those are; `None` where they are all of them in their order.
    pub(super) reached: Option<Arc<Reached>>,
}

impl Mail {
    fn new(site: &Site, messages: Fields) -> Result<Self, OpsError> {
        let (relation, frame) = (site.relation.clone(), site.dst.clone());
        if relation.in_degrees().all(|d| d > 0) {
            return Ok(Self { relation, messages, frame, nodes: site.nodes.clone(), reached: None });
        }
        let reached = Reached::of(&relation, Order::Ascending);
        let nodes = Some(site.reached_nodes(&reached)?);
        Ok(Self { relation: reached.relation.clone(), messages, frame, nodes, reached: Some(reached) })
    }

    /// Node ids by destination.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.nodes.as_ref().map_or_else(|| (0..self.frame.len() as u32).collect(), |pick| pick.src().to_vec())
    }

    fn batch(&self) -> NodeBatch {
        let rows = Rows::Of(self.frame.clone(), self.nodes.clone());
        NodeBatch { rows, ids: self.ids(), mail: Some(Letters::All(self.relation.clone(), self.messages.clone())) }
    }

    fn checked(&self, op: &'static str, made: Fields) -> Result<Fields, OpsError> {
        made.checked(&format!("{op}: reduce function"), "one row per node of the batch", self.relation.num_dst())
    }

    /// Rows of the nodes with messages among 0 for the others.
    fn delivered(&self, made: Fields) -> Result<Fields, OpsError> {
        let Some(reached) = &self.reached else { return Ok(made) };
        let mut out = Fields::default();
        for (name, column) in made.iter() {
            out = out.with_column(name, delivered(&reached.delivery, column)?);
        }
        Ok(out)
    }
}
