//! Partitioning, communicators, halo exchange and training on parts, end to end.

// Burn deprecates its NdArray backend; users still ask for it.
#![allow(deprecated)]

mod chunked;
mod collectives;
mod comm;
mod dist_graph;
mod exchange;
mod faults;
mod golden;
mod graphs;
#[path = "../../../graph/tests/faults/harness.rs"]
mod harness;
mod links;
mod loaders;
mod minibatch;
mod options;
mod partition;
mod refusals;
mod sampling;
mod tensors;
mod training;
mod verify;
