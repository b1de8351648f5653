//! Shares an MPI communicator between threads, and aborts all processes.

use std::time::Duration;

use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;

/// A communicator of MPI that threads hand to each other.
pub(super) struct Handle(pub(super) SimpleCommunicator);

// SAFETY: a handle names an object of the MPI library, which was started with `MPI_THREAD_MULTIPLE` (`MpiRanks::run`
// makes sure of it), so any thread may use it; a mutex around it lets in one thread at a time.
#[expect(unsafe_code, reason = "a handle of the MPI library")]
unsafe impl Send for Handle {}

/// Says why and ends all ranks.
pub(super) fn fail(rank: usize, message: &str) -> ! {
    eprintln!("rank {rank}: {message}; ending all ranks");
    end()
}

/// Ends all ranks, this one also if the others cannot be reached.
fn end() -> ! {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(1));
        std::process::abort();
    });
    SimpleCommunicator::world().abort(1)
}
