//! Shares an MPI communicator between threads, and aborts all processes.

use std::time::Duration;

use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;

/// An MPI communicator that can be moved between threads.
pub(super) struct Handle(pub(super) SimpleCommunicator);

// SAFETY: a handle refers to an object of the MPI library, which `MpiRanks::run` initialises with
// `MPI_THREAD_MULTIPLE`, so any thread may use it. A mutex around it allows one thread at a time.
#[expect(unsafe_code, reason = "a handle of the MPI library")]
unsafe impl Send for Handle {}

/// Reports the reason to the panic hook and aborts all ranks.
pub(super) fn fail(rank: usize, message: &str) -> ! {
    let report = || panic!("rank {rank}: {message}; ending all ranks");
    let _: Result<(), _> = std::panic::catch_unwind(report);
    end()
}

/// Aborts all ranks. This process ends even if the other ranks cannot be reached.
fn end() -> ! {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(1));
        std::process::abort();
    });
    SimpleCommunicator::world().abort(1)
}
