//! Models of databases: tables with keys and times, without a future row.

pub(crate) mod columns;
pub(crate) mod database_sampler;
pub(crate) mod database_seeds;
pub(crate) mod features;
pub(crate) mod joint_loader;
mod label_history;
pub(crate) mod linear;
pub(crate) mod relational_data;
pub(crate) mod relational_model;
pub(crate) mod relational_spec;
pub(crate) mod relational_task;
pub(crate) mod row_sets;
mod saved;
pub(crate) mod task_score;
pub(crate) mod train_database;
pub(crate) mod train_options;
pub(crate) mod trained_database;
pub(crate) mod typed_sage;
pub(crate) mod verify;
