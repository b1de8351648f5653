//! Partitioning, communicators, halo exchange and training on parts, end to end.

// Burn deprecates its NdArray backend; users still ask for it.
#![allow(deprecated)]

mod collectives;
mod comm;
mod exchange;
mod graphs;
mod partition;
mod refusals;
mod training;
