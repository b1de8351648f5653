//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.
//!
//! A model is an encoder, which computes embeddings of nodes, and a decoder, which scores pairs of them.

#![forbid(unsafe_code)]

mod decoders;
mod inductive;
mod knowledge;
mod losses;
mod negatives;
mod pairs;
mod ranking;
mod recommend;
mod temporal;
