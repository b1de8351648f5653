//! Stores features of nodes and edges.

pub(crate) mod by_column;
pub(crate) mod column;
pub(crate) mod combine;
pub(crate) mod frame;
mod lists;
pub(crate) mod row_index;
pub(crate) mod rows;
