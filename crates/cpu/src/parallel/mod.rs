//! Splits kernels into runs of rows for threads, and gives every run the part of the outputs that it writes.

pub(crate) mod adjacency;
pub(crate) mod collect;
pub(crate) mod output_buffer;
pub(crate) mod output_rows;
pub(crate) mod runs;
pub(crate) mod scatter;
