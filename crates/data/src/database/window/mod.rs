//! Tasks whose labels are declared: aggregates over the rows of a window after each seed time.

pub(crate) mod condition;
pub(crate) mod declaration;
mod labels;
mod seed_times;
mod time_span;
