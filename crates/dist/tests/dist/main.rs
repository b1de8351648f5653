//! Partitioning, communicators, halo exchange and training on parts, end to end.

// Burn deprecates its NdArray backend; users still ask for it.
#![allow(deprecated)]

#[macro_use]
mod list;

mod chunked;
mod collectives;
mod comm;
mod dist_graph;
mod exchange;
mod faults;
mod fuzz;
mod golden;
mod graphs;
mod links;
mod loaders;
mod minibatch;
mod options;
mod partition;
mod ranks;
mod refusals;
mod replicas;
mod sampling;
mod stress;
mod tensors;
mod times;
mod traffic;
mod trainers;
mod training;
mod verify;

macro_rules! on_threads {
    ($($module:ident { $($test:ident: $ranks:expr,)* })*) => {
        mod on_threads {
            $(mod $module {
                $(#[test]
                fn $test() {
                    $ranks.into_iter().for_each(crate::$module::$test);
                })*
            })*
        }
    };
}
shared_tests!(on_threads);

/// Their tests, `tests/mpi` run by `tests/mpi.sh`, are there with the feature only.
#[cfg(not(feature = "mpi"))]
#[test]
fn ranks_as_processes() {
    use burn_gnn_testutil::{Kind, skip};
    skip(Kind::Mpi, "built without the feature `mpi`: ranks are threads");
}
