//! Graph transforms against naive models on random typed graphs.

mod batches;
mod edits;
mod errors;
mod hops;
mod merging;
mod paths;
mod products;
mod queries;
mod random;
mod subgraphs;
mod unreadable;
