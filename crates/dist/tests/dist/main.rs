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
mod stress;
mod tensors;
mod training;
mod verify;
#[path = "../../../graph/tests/sampling/watchdog.rs"]
mod watchdog;

/// Their tests, `tests/mpi` run by `tests/mpi.sh`, are there with the feature only.
#[cfg(not(feature = "mpi"))]
#[test]
fn ranks_as_processes() {
    use burn_gnn_testutil::{Kind, skip};
    skip(Kind::Mpi, "built without the feature `mpi`: ranks are threads");
}
