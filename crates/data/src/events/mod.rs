//! Streams of events: timed links between nodes, sorted by time.

pub(crate) mod event_graph;
pub(crate) mod event_split;
pub(crate) mod event_stream;
pub(crate) mod event_table;
#[cfg(test)]
mod tests;
