//! From messages to a row per destination.

use burn_gnn_graph::{Frame, Relation};

use super::batch::{EdgeBatch, MESSAGES, NodeBatch, Rows};
use super::by_degree::by_degree;
use super::function::{Message, Messages, Reduction};
use super::rows::{check_float, picking, reduce_copy, scattered};
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
    let (f, degrees) = match reducing.how {
        How::Builtin(reduction) => return receive_builtin(op, site, message, reduction, reduction.reduce),
        How::Ragged(f) => (f, false),
        How::ByDegree(f) => (f, true),
    };
    let (site, reached) = if degrees {
        let (ordered, reached) = site.by_degree()?;
        (ordered, Some((site, reached)))
    } else {
        (site.sorted(), None)
    };
    let messages = match message.messages() {
        Messages::Builtin(message) => {
            let rows = site.expression(message)?.rows(message.name, &site.relation)?;
            Fields::default().with_column(&message.out, rows)
        }
        Messages::User(f) => call(op, f, &site)?,
    };
    let Some((whole, reached)) = reached else {
        let mail = Mail::new(&site, messages)?;
        let made = mail.checked(op, f(&mail.batch())?)?;
        return mail.delivered(&site, made);
    };
    let Site { relation, dst, nodes, .. } = site;
    let mail = Mail { relation, messages, frame: dst, nodes, has_some: Some(reached) };
    let made = by_degree(op, f, &mail)?;
    mail.delivered(whole, made)
}

/// The destinations that have messages, with them.
pub(super) struct Mail {
    /// Edges by destination; every destination has one.
    pub(super) relation: Relation,
    pub(super) messages: Fields,
    pub(super) frame: Frame,
    /// Rows of the frame that destinations are; `None` for all.
    pub(super) nodes: Option<Relation>,
    /// Destinations of the site that have messages; `None` for all.
    has_some: Option<Vec<u32>>,
}

impl Mail {
    fn new(site: &Site, messages: Fields) -> Result<Self, OpsError> {
        let (relation, frame) = (&site.relation, site.dst.clone());
        let degrees = || relation.in_degrees();
        if degrees().all(|d| d > 0) {
            return Ok(Self { relation: relation.clone(), messages, frame, nodes: site.nodes.clone(), has_some: None });
        }
        let has_some: Vec<u32> = degrees().zip(0..).filter(|(d, _)| *d > 0).map(|(_, v)| v).collect();
        let mut dst = Vec::with_capacity(relation.num_edges());
        for (i, &v) in has_some.iter().enumerate() {
            dst.resize(dst.len() + relation.csc().row(v as usize).len(), i as u32);
        }
        let compact = Relation::from_coo(relation.num_src(), has_some.len(), relation.src().to_vec(), dst)?;
        let row = |&v: &u32| site.nodes.as_ref().map_or(v, |pick| pick.src()[v as usize]);
        let nodes = picking(frame.len(), has_some.iter().map(row).collect())?;
        Ok(Self { relation: compact, messages, frame, nodes: Some(nodes), has_some: Some(has_some) })
    }

    /// Node ids by destination.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.nodes.as_ref().map_or_else(|| (0..self.frame.len() as u32).collect(), |pick| pick.src().to_vec())
    }

    fn batch(&self) -> NodeBatch {
        let rows = Rows::Of(self.frame.clone(), self.nodes.clone());
        NodeBatch { rows, ids: self.ids(), mailbox: Some((self.relation.clone(), self.messages.clone())) }
    }

    fn checked(&self, op: &'static str, made: Fields) -> Result<Fields, OpsError> {
        made.checked(&format!("{op}: reduce function"), "one row per node of the batch", self.relation.num_dst())
    }

    /// Rows of the nodes with messages among 0 for the others.
    fn delivered(&self, site: &Site, made: Fields) -> Result<Fields, OpsError> {
        let Some(has_some) = &self.has_some else { return Ok(made) };
        let mut out = Fields::default();
        for (name, column) in made.iter() {
            out = out.with_column(name, scattered(site.relation.num_dst(), has_some, column)?);
        }
        Ok(out)
    }
}
