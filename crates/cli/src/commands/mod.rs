//! The commands, one per file.

mod classify;
pub(crate) mod completions;
pub(crate) mod evaluate;
pub(crate) mod featurize;
mod figures;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod predict;
mod recommend;
mod seed_columns;
pub(crate) mod train;
pub(crate) mod verify;
