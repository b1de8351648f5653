//! Partitioning, communicators, halo exchange and training on parts, end to end.

#[macro_use]
mod list;

mod batches;
mod collectives;
mod comm;
mod dist_graph;
mod exchange;
mod graphs;
mod partitioning;
#[cfg(feature = "mpi")]
mod processes;
mod ranks;
mod replicas;
mod robustness;
mod tensors;
mod traffic;
mod training;

use batches::{links, loaders, minibatch, sampling, times, trainers};
use partitioning::{chunked, errors, partition};

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

/// Tests with processes as ranks (`processes.rs`, run by `tests/mpi.sh`) need the feature `mpi`.
#[cfg(not(feature = "mpi"))]
#[test]
fn ranks_as_processes() {
    use burn_gnn_testutil::{Kind, skip};
    skip(Kind::Mpi, "built without the feature `mpi`: ranks are threads");
}
