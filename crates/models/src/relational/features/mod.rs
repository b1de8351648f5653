//! Aggregates of the rows around a seed, for tabular models.

pub(crate) mod featurize;
