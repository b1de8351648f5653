//! Messages by the number of messages that their nodes have.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use burn_gnn_graph::{Column, Relation};

use super::Fields;
use super::batch::MESSAGES;
use super::by_degree::cut;
use super::reached::Reached;
use super::rows::{check_float, reduce_copy};
use crate::OpsError;
use crate::gspmm::{Reduce, Side};

/// Messages of nodes by degree, cut into buckets of one degree. What buckets ask for is made once for all of them, when the first one
/// asks: on their own they would each pay for the start of an operator and for a gradient.
#[derive(Debug)]
pub(super) struct Sorted {
    reached: Arc<Reached>,
    messages: Fields,
    /// Where each bucket starts among messages and among nodes, and where the last ends.
    message_bounds: Vec<usize>,
    node_bounds: Vec<usize>,
    /// Rows of messages by field and bucket.
    parts: RefCell<BTreeMap<String, Vec<Column>>>,
    /// Rows of nodes by field and bucket.
    reduced: RefCell<Vec<(Reduction, Vec<Column>)>>,
}

/// Of a field.
type Reduction = (String, Reduce);

impl Sorted {
    pub(super) fn new(reached: Arc<Reached>, messages: Fields, message_bounds: Vec<usize>, node_bounds: Vec<usize>) -> Self {
        Self { reached, messages, message_bounds, node_bounds, parts: RefCell::default(), reduced: RefCell::default() }
    }

    /// The edges of a bucket.
    pub(super) fn relation(&self, bucket: usize) -> Relation {
        self.reached.buckets[bucket].relation.clone()
    }

    /// A field of the messages of a bucket.
    pub(super) fn column(&self, name: &str, bucket: usize) -> Result<Column, OpsError> {
        let whole = self.messages.column(MESSAGES, name)?;
        let mut parts = self.parts.borrow_mut();
        let parts = parts.entry(name.to_owned()).or_insert_with(|| cut(whole, &self.message_bounds));
        Ok(parts[bucket].clone())
    }

    /// The reduction of a field of the messages of a bucket.
    pub(super) fn reduced(&self, op: &'static str, name: &str, reduce: Reduce, bucket: usize) -> Result<Column, OpsError> {
        if let Some((_, parts)) = self.reduced.borrow().iter().find(|((n, r), _)| n == name && *r == reduce) {
            return Ok(parts[bucket].clone());
        }
        let whole = self.messages.column(MESSAGES, name)?;
        check_float(MESSAGES, name, whole)?;
        let parts = cut(&reduce_copy(op, &self.reached.relation, Side::Rhs, reduce, whole)?, &self.node_bounds);
        let part = parts[bucket].clone();
        self.reduced.borrow_mut().push(((name.to_owned(), reduce), parts));
        Ok(part)
    }
}
