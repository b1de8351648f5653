//! Tests with processes as ranks, run by `tests/mpi.sh`. Without `mpirun` there is one rank.
//!
//! * `mpi` runs the tests in `list.rs` that take this number of ranks.
//! * `mpi CASE` lets the last rank break the run, which must end with an error on all ranks.
//! * `mpi traffic` exchanges messages for a minute, during which the script kills a process.

// Functions that only tests with threads use are dead code here.
#![allow(dead_code, deprecated, unused_imports)]

#[macro_use]
#[path = "../dist/list.rs"]
mod list;

#[path = "../dist/batches/mod.rs"]
mod batches;
#[path = "../dist/collectives.rs"]
mod collectives;
#[path = "../dist/dist_graph.rs"]
mod dist_graph;
#[path = "../dist/graphs.rs"]
mod graphs;
#[path = "../dist/ranks.rs"]
mod ranks;
#[path = "../dist/replicas.rs"]
mod replicas;
#[path = "../dist/tensors.rs"]
mod tensors;
#[path = "../dist/traffic.rs"]
mod traffic;
#[path = "../dist/training.rs"]
mod training;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use batches::{links, loaders, minibatch, sampling, times, trainers};
use burn_gnn_dist::{Communicator, Failure, MpiRanks};

fn main() -> ExitCode {
    // The test runner's own options.
    let case = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let ranks = MpiRanks::new()
        .threads(1)
        .timeout(Duration::from_secs(if case.as_deref() == Some("missing") { 3 } else { 60 }));
    let done = ranks.run(|comm| match &case {
        None => all(&comm),
        Some(case) if case == "traffic" => traffic(&*comm),
        Some(case) => broken(case, &*comm),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// A test, its name, and the numbers of ranks it takes.
type Test = (&'static str, &'static [usize], fn(usize));

macro_rules! listed {
    ($($module:ident { $($test:ident: $ranks:expr,)* })*) => {
        const TESTS: &[Test] = &[$($((concat!(stringify!($module), "::", stringify!($test)), &$ranks, $module::$test),)*)*];
    };
}
shared_tests!(listed);

fn all(comm: &Arc<dyn Communicator>) -> Result<(), Failure> {
    collectives::collectives(&**comm)?;
    collectives::ring(comm)?;
    collectives::duplicates(&**comm)?;
    // A caught panic, as in readers of damaged files and loaders, is not a failure.
    let rank = comm.rank();
    let caught = std::panic::catch_unwind(|| panic!("caught on rank {rank}"));
    comm.barrier("after a panic that was caught")?;
    if caught.is_ok() {
        return Err(Failure { rank: comm.rank(), message: "did not panic".into() });
    }
    ranks::set_world(Some(comm.clone()));
    let mut run = 0;
    for (name, _, test) in TESTS.iter().filter(|t| t.1.contains(&comm.size())) {
        let start = Instant::now();
        test(comm.size());
        comm.barrier(name)?;
        if comm.rank() == 0 {
            println!(
                "mpi: {name} on {} ranks, {:.1} s",
                comm.size(),
                start.elapsed().as_secs_f64()
            );
        }
        run += 1;
    }
    ranks::set_world(None);
    if comm.rank() == 0 {
        println!(
            "mpi: {} ranks, {run} tests and all checks of the communicator passed",
            comm.size()
        );
    }
    Ok(())
}

fn traffic(comm: &dyn Communicator) -> Result<(), Failure> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        comm.all_to_all_v("traffic", vec![vec![1; 1 << 16]; comm.size()])?;
    }
    // The clocks of ranks differ, so one of them may already be in another call.
    Err(Failure { rank: comm.rank(), message: "the run was not broken".into() })
}

fn broken(case: &str, comm: &dyn Communicator) -> Result<(), Failure> {
    let last = comm.rank() + 1 == comm.size();
    comm.barrier("start")?;
    match (case, last) {
        ("error", true) => return Err(Failure { rank: comm.rank(), message: "bad file".into() }),
        ("panic", true) => panic!("no rows"),
        ("panic-in-task", true) => rayon::scope(|s| s.spawn(|_| panic!("task"))),
        ("other-call", true) => drop(comm.all_gather("theirs", vec![])?),
        ("killed", true) => std::process::abort(),
        ("missing", true) => std::thread::sleep(Duration::from_secs(30)),
        ("error" | "panic" | "panic-in-task" | "other-call" | "killed" | "missing", _) => {}
        _ => {
            return Err(Failure {
                rank: comm.rank(),
                message: format!("no case is called `{case}`"),
            });
        }
    }
    comm.barrier("ours")
}
