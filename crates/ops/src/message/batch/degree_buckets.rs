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

/// Cache of columns by key; each entry has one column per bucket.
type Cuts<K> = RefCell<HashMap<K, Vec<Column>>>;

/// Nodes with their messages, sorted by degree and divided into buckets of one degree.
///
/// A field or reduction is computed for all buckets when the first bucket reads it. Separate computations would cost the
/// overhead of an operator and a gradient of full size per bucket.
#[derive(Debug)]
pub(crate) struct DegreeBuckets {
    pub(crate) order: Arc<ByDegree>,
    pub(crate) frame: Frame,
    /// Rows of the frame at which the nodes are; see [`picking`](crate::message::columns::picking).
    pub(crate) nodes: Relation,
    messages: Fields,
    of_nodes: Cuts<String>,
    of_messages: Cuts<String>,
    reduced: Cuts<(String, Reduce)>,
}

/// The column of a bucket. `make` computes the columns of all buckets if they are not cached.
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
    /// `messages` are the messages of the edges of `selection`, which are in the order `order`.
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
