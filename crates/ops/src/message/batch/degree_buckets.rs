//! Groups nodes into buckets by degree, as DGL does for reduce functions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use burn_gnn_graph::{Column, Frame, Relation};
use burn_gnn_plan::{Reduce, Side};

use crate::error::OpsError;
use crate::message::batch::destinations::ByDegree;
use crate::message::batch::edge_selection::EdgeSelection;
use crate::message::columns::{check_float, cut, picked, reduce_copy};
use crate::message::fields::{Fields, MESSAGES};

/// Columns of one kind, once read, by name and bucket.
type Cuts<K> = RefCell<HashMap<K, Vec<Column>>>;

/// Nodes by degree with their messages, cut into buckets of one degree. What buckets ask for is made once for all of
/// them, when the first one asks: on their own they would each pay for the start of an operator and for a gradient as
/// large as the whole.
#[derive(Debug)]
pub(crate) struct DegreeBuckets {
    pub(crate) order: Arc<ByDegree>,
    pub(crate) frame: Frame,
    /// Rows of the frame that the nodes are.
    pub(crate) nodes: Relation,
    messages: Fields,
    of_nodes: Cuts<String>,
    of_messages: Cuts<String>,
    reduced: Cuts<(String, Reduce)>,
}

/// The part of a bucket of what `make` makes for all of them.
fn part<K: Eq + Hash>(
    cuts: &Cuts<K>,
    key: K,
    bucket: usize,
    make: impl FnOnce() -> Result<Vec<Column>, OpsError>,
) -> Result<Column, OpsError> {
    if let Some(parts) = cuts.borrow().get(&key) {
        return Ok(parts[bucket].clone());
    }
    let parts = make()?;
    let part = parts[bucket].clone();
    cuts.borrow_mut().insert(key, parts);
    Ok(part)
}

impl DegreeBuckets {
    /// `messages` are those of the edges of `selection`, which is that of `order`.
    pub(crate) fn new(
        order: Arc<ByDegree>,
        selection: EdgeSelection,
        nodes: Relation,
        messages: Fields,
    ) -> Self {
        let (of_nodes, of_messages, reduced) = Default::default();
        Self { order, frame: selection.dst, nodes, messages, of_nodes, of_messages, reduced }
    }

    /// The edges of a bucket.
    pub(crate) fn relation(&self, bucket: usize) -> Relation {
        self.order.buckets[bucket].1.clone()
    }

    /// A field of the nodes of a bucket.
    pub(crate) fn node_column(&self, name: &str, bucket: usize) -> Result<Column, OpsError> {
        let make = || {
            Ok(cut(&picked(self.frame.column(name)?, Some(&self.nodes)), &self.order.node_bounds))
        };
        part(&self.of_nodes, name.to_owned(), bucket, make)
    }

    /// A field of the messages of a bucket.
    pub(crate) fn message_column(&self, name: &str, bucket: usize) -> Result<Column, OpsError> {
        let make = || Ok(cut(self.messages.column(MESSAGES, name)?, &self.order.edge_bounds));
        part(&self.of_messages, name.to_owned(), bucket, make)
    }

    /// The reduction of a field of the messages of a bucket.
    pub(crate) fn reduced(
        &self,
        op: &'static str,
        name: &str,
        reduce: Reduce,
        bucket: usize,
    ) -> Result<Column, OpsError> {
        let make = || {
            let messages = self.messages.column(MESSAGES, name)?;
            check_float(MESSAGES, name, messages)?;
            Ok(cut(
                &reduce_copy(op, &self.order.reached.relation, Side::Rhs, reduce, messages)?,
                &self.order.node_bounds,
            ))
        };
        part(&self.reduced, (name.to_owned(), reduce), bucket, make)
    }
}
