//! Embeddings of knowledge graphs: models, training, evaluation.

pub(crate) mod classification;
pub(crate) mod config;
pub(crate) mod entity_table;
pub(crate) mod kge;
pub(crate) mod kge_decoder;
pub(crate) mod popularity;
mod queries;
pub(crate) mod recurrence;
mod steps;
mod table_optimizer;
pub(crate) mod train;
pub(crate) mod type_constraints;
