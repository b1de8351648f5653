//! Defines `ByColumn`: a setting per feature column.

use std::collections::BTreeMap;

use crate::features::frame::Frame;
use burn_gnn_structure::GraphError;

/// A default setting for all feature columns, with exceptions by name.
///
/// ```
/// use burn_gnn_graph::{ByColumn, Combine};
/// let rule = ByColumn::all(Combine::Sum).with("year", Combine::Max);
/// assert_eq!((*rule.get("weight"), *rule.get("year")), (Combine::Sum, Combine::Max));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ByColumn<T> {
    default: T,
    exceptions: BTreeMap<String, T>,
}

impl<T> ByColumn<T> {
    /// The same setting for every column.
    pub fn all(default: T) -> Self {
        Self { default, exceptions: BTreeMap::new() }
    }
    /// Sets another value for column `name`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, choice: T) -> Self {
        self.exceptions.insert(name.into(), choice);
        self
    }
    /// The setting of column `name`.
    pub fn get(&self, name: &str) -> &T {
        self.exceptions.get(name).unwrap_or(&self.default)
    }
    /// Checks that every exception names a column of at least one frame.
    pub(crate) fn check(&self, frames: &[Frame]) -> Result<(), GraphError> {
        match self.exceptions.keys().find(|name| frames.iter().all(|f| f.column(name).is_err())) {
            None => Ok(()),
            Some(name) => {
                let labels: Vec<&str> = frames.iter().map(Frame::label).collect();
                let mut known: Vec<String> =
                    frames.iter().flat_map(|f| f.columns().map(|(n, _)| n.to_owned())).collect();
                known.sort();
                known.dedup();
                Err(GraphError::UnknownColumn {
                    frame: labels.join(", "),
                    name: name.clone(),
                    known,
                })
            }
        }
    }
}

impl<T> From<T> for ByColumn<T> {
    fn from(default: T) -> Self {
        Self::all(default)
    }
}
