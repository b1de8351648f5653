//! Node classification on one view of a graph.

use std::sync::Arc;

use crate::{ModelError, NodeTensors};

/// Labelled rows of one part of a split that this rank holds.
///
/// A clone shares the lists, and devices copy them once for as long as one of them lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Input-row numbers of the target type.
    pub index: Arc<[u32]>,
    /// Class of each row.
    pub labels: Arc<[u32]>,
    /// Number of rows over all ranks.
    pub total: usize,
}

impl Rows {
    /// Rows of a whole graph: `ids` with their labels.
    ///
    /// # Errors
    /// An id without a label (-1), out of range, or a label not below `num_classes`.
    pub fn new(ids: &[u32], labels: &[i64], num_classes: usize) -> Result<Self, ModelError> {
        let label = |&id: &u32| {
            let Some(&l) = labels.get(id as usize) else {
                return Err(ModelError::OutOfRange {
                    arg: "node of the split".into(),
                    range: format!("0..{}", labels.len()),
                    value: id.to_string(),
                });
            };
            if l < 0 || l as usize >= num_classes {
                return Err(ModelError::OutOfRange {
                    arg: format!("label of node {id}"),
                    range: format!("0..{num_classes}"),
                    value: l.to_string(),
                });
            }
            Ok(l as u32)
        };
        Ok(Self { index: ids.into(), labels: ids.iter().map(label).collect::<Result<_, _>>()?, total: ids.len() })
    }

    /// The rows that a rank holds: `local[id]` is the rank's row of node `id`, if it owns it. The order of
    /// the split is kept, the total stays.
    #[must_use]
    pub fn on_rank(&self, local: impl Fn(u32) -> Option<u32>) -> Self {
        let local = |(&i, &l): (&u32, &u32)| Some((local(i)?, l));
        let (index, labels): (Vec<_>, Vec<_>) = self.index.iter().zip(&*self.labels).filter_map(local).unzip();
        Self { index: index.into(), labels: labels.into(), total: self.total }
    }
}

/// A graph (or this rank's part), features, and the rows to learn from.
#[derive(Debug)]
pub struct NodeTask<'a, G: ?Sized> {
    /// What layers run on.
    pub graph: &'a G,
    /// Features of the input nodes by node type, on the plain device.
    pub features: NodeTensors,
    /// The node type to classify.
    pub target: String,
    /// Rows of the loss.
    pub train: Rows,
    /// Rows that choose the epoch to keep; may be empty.
    pub val: Rows,
}
