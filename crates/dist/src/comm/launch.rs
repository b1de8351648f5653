//! Starts ranks as threads or, under `mpirun`, as processes, from the same program.

use std::error::Error;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use super::communicator::{Communicator, Failure};
use super::local::run_ranks;

/// Environment variables that contain the rank of a process: those of Open MPI, PMIx (Slurm's `srun --mpi=pmix`) and
/// PMI (MPICH, Intel MPI, Slurm's `--mpi=pmi2`).
const RANK_OF_PROCESS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// Runs `f` on all ranks and returns the values of the ranks in this process.
///
/// Without a launcher, ranks are `num_ranks` threads ([`run_ranks`]). Under `mpirun` or a scheduler, with the feature
/// `mpi`, this process is one rank (`run_mpi`) and the launcher determines their number. A launcher is detected by one
/// of the environment variables `OMPI_COMM_WORLD_RANK`, `PMIX_RANK` and `PMI_RANK`.
///
/// ```
/// use burn_gnn_dist::{Failure, launch};
/// let sizes = launch(2, |comm| Ok::<_, Failure>(comm.size()))?;
/// assert_eq!(sizes, [2, 2]);
/// # Ok::<(), Failure>(())
/// ```
///
/// # Errors
/// As [`run_ranks`] and `run_mpi`. Also if a launcher started a program that was built without the feature `mpi`, since
/// every process would be a separate run.
pub fn launch<R, E, F>(num_ranks: usize, f: F) -> Result<Vec<R>, Failure>
where
    R: Send,
    E: Display,
    F: Fn(Arc<dyn Communicator>) -> Result<R, E> + Sync + Send,
{
    match RANK_OF_PROCESS.into_iter().find(|name| std::env::var_os(name).is_some()) {
        None => run_ranks(num_ranks, f),
        #[cfg(feature = "mpi")]
        Some(_) => super::run_mpi(f).map(|value| vec![value]),
        #[cfg(not(feature = "mpi"))]
        Some(name) => {
            let message = format!(
                "`mpirun` or `srun` has started this process (`{name}` is set), but the program is built without the feature `mpi`; build \
                 it with `--features mpi`, or start it without a launcher (Slurm: `srun --mpi=none`)"
            );
            Err(Failure { rank: 0, message })
        }
    }
}

/// Runs `write` on rank 0 only and returns its path on all ranks, for files that all ranks then read, such as a
/// partitioning. Collective.
///
/// ```
/// use burn_gnn_dist::{PartitionConfig, launch, load_partition, on_first_rank, partition_graph};
/// # use std::error::Error;
/// let dir = tempfile::tempdir()?;
/// let nodes = launch(2, |comm| -> Result<_, Box<dyn Error>> {
///     let index = on_first_rank(&*comm, || {
///         let ring = burn_gnn_graph::Graph::homogeneous(4, vec![0, 1, 2, 3], vec![1, 2, 3, 0])?;
///         Ok(partition_graph(&ring, &PartitionConfig::new("ring", comm.size()))?.write(dir.path())?)
///     })?;
///     Ok(load_partition(index, comm.rank())?.num_inner_nodes())
/// })?;
/// assert_eq!(nodes, [2, 2]);
/// # Ok::<(), Box<dyn Error>>(())
/// ```
///
/// # Errors
/// `write` returns an error, which is a failure of all ranks; the path is not UTF-8.
pub fn on_first_rank(
    comm: &dyn Communicator,
    write: impl FnOnce() -> Result<PathBuf, Box<dyn Error>>,
) -> Result<PathBuf, Failure> {
    let failed = |message: String| Failure { rank: comm.rank(), message };
    let bytes = match comm.rank() {
        0 => {
            let path = write().map_err(|e| failed(e.to_string()))?;
            let not_text = || failed(format!("expected a path in UTF-8, found {}", path.display()));
            path.to_str().ok_or_else(not_text)?.as_bytes().to_vec()
        }
        _ => vec![],
    };
    let bytes = comm.broadcast("path of the first rank", 0, bytes)?;
    String::from_utf8(bytes).map(PathBuf::from).map_err(|e| failed(e.to_string()))
}
