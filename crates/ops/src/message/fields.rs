//! Holds the named tensors that message, reduce and apply functions return.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use burn_gnn_graph::{Column, GraphError};

use crate::error::OpsError;

/// Name of the frame of messages in errors.
pub(crate) const MESSAGES: &str = "messages";

/// Named tensors with one row per edge or node of a batch: the result of a closure.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::Fields;
/// let x = Tensor::<2>::zeros([3, 4], &Device::flex());
/// let fields = Fields::of("h", x.clone()).with("gate", x.sum_dim(1));
/// assert_eq!(fields.names(), ["gate", "h"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fields(BTreeMap<String, Column>);

impl Fields {
    /// A single field.
    pub fn of<const D: usize, K: Basic>(name: impl Into<String>, tensor: Tensor<D, K>) -> Self {
        Self::default().with(name, tensor)
    }
    /// Adds or replaces a field.
    #[must_use]
    pub fn with<const D: usize, K: Basic>(
        self,
        name: impl Into<String>,
        tensor: Tensor<D, K>,
    ) -> Self {
        self.with_column(name, Column::new(tensor))
    }
    /// [`with`](Self::with) for a tensor whose rank and kind are known only at run time.
    #[must_use]
    pub fn with_column(mut self, name: impl Into<String>, column: Column) -> Self {
        self.0.insert(name.into(), column);
        self
    }
    /// Names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
    /// Names, sorted, as owned strings for errors.
    pub(crate) fn owned_names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
    /// Columns by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.0.iter().map(|(name, column)| (name.as_str(), column))
    }
    /// The field `name`. `frame` is the name of the fields in errors.
    pub(crate) fn column(&self, frame: &str, name: &str) -> Result<&Column, OpsError> {
        let unknown = || GraphError::UnknownColumn {
            frame: frame.to_owned(),
            name: name.to_owned(),
            known: self.owned_names(),
        };
        Ok(self.0.get(name).ok_or_else(unknown)?)
    }
    /// Checks that every column has `rows` rows. `what` is the name of the fields in errors.
    pub(crate) fn checked(
        self,
        what: &str,
        why: &'static str,
        rows: usize,
    ) -> Result<Self, OpsError> {
        match self.0.iter().find(|(_, column)| column.len() != rows) {
            None => Ok(self),
            Some((name, column)) => {
                let (relation, arg) = (String::new(), format!("{what}: field `{name}`"));
                Err(GraphError::Length { relation, arg, why, expected: rows, actual: column.len() }
                    .into())
            }
        }
    }
}
