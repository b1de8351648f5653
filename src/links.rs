//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.

pub use burn_gnn_links::*;
