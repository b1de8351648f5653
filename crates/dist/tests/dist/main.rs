//! Partitioning, communicators, halo exchange and training on parts, end to end.

// Burn deprecates its NdArray backend; users still ask for it.
#![allow(deprecated)]

mod collectives;
mod comm;
mod dist_graph;
mod exchange;
mod graphs;
mod links;
mod loaders;
mod minibatch;
mod partition;
mod refusals;
mod sampling;
mod tensors;
mod training;
