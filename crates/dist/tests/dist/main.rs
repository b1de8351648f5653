//! Partitioning, communicators, halo exchange and training on parts, end to end.

// Burn deprecates its NdArray backend; users still ask for it.
#![allow(deprecated)]

mod chunked;
mod comm;
mod exchange;
mod golden;
mod graphs;
mod options;
mod partition;
mod refusals;
mod training;
mod verify;
