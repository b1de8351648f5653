//! Features of nodes and edges: frames, columns, lists, and reductions over groups of rows.

pub(crate) mod by_column;
pub(crate) mod column;
pub(crate) mod combine;
pub(crate) mod frame;
mod lists;
pub(crate) mod row_index;
pub(crate) mod rows;
