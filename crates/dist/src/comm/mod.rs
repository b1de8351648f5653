//! Collective calls between ranks, which are threads or MPI processes.

mod communicator;
mod launch;
mod local;
mod metered;
#[cfg(feature = "mpi")]
mod mpi;

#[cfg(feature = "mpi")]
pub use self::mpi::{MpiRanks, run_mpi};
pub(crate) use communicator::unwind;
pub use communicator::{Communicator, Failure};
pub use launch::{launch, on_first_rank};
pub use local::{Ranks, run_ranks};
pub use metered::{Metered, Traffic};
