//! Recommends rows of one table to rows of another, by the rows of a database up to a time.

pub(crate) mod baseline;
pub(crate) mod batches;
pub(crate) mod destinations;
pub(crate) mod model;
pub(crate) mod options;
pub(crate) mod saved;
pub(crate) mod seen_rows;
pub(crate) mod spec;
pub(crate) mod train;
pub(crate) mod trained;
