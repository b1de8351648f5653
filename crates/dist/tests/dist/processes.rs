//! Tests with processes as ranks, run by `tests/mpi.sh` under `mpirun`; without it there is one rank.
//!
//! The variable `BURN_GNN_MPI_CASE` selects what runs:
//!
//! * unset: the tests in `list.rs` that take this number of ranks
//! * a name of [`broken`]: the last rank breaks the run, which must end with an error on all ranks
//! * `traffic`: messages for a minute, during which a script kills a process

use std::sync::Arc;
use std::time::{Duration, Instant};

use burn_gnn_dist::{Communicator, Failure, MpiRanks};

use crate::batches::{links, loaders, minibatch, sampling, times, trainers};
use crate::{collectives, dist_graph, ranks, replicas, tensors, traffic, training};

#[test]
#[ignore = "run by tests/mpi.sh"]
fn as_processes() {
    let case = std::env::var("BURN_GNN_MPI_CASE").ok();
    let ranks = MpiRanks::new()
        .threads(1)
        .timeout(Duration::from_secs(if case.as_deref() == Some("missing") { 3 } else { 60 }));
    let done = ranks.run(|comm| match case.as_deref() {
        None => all(&comm),
        Some("traffic") => exchange_for_a_minute(&*comm),
        Some(case) => broken(case, &*comm),
    });
    if let Err(e) = done {
        panic!("{e}");
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

fn exchange_for_a_minute(comm: &dyn Communicator) -> Result<(), Failure> {
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
