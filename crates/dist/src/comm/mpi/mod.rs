//! Ranks as MPI processes.

mod exchange;
mod handle;
mod processes;
mod watchdog;

pub use processes::{MpiRanks, run_mpi};
