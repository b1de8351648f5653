//! Starts a program's ranks, as threads or as processes, by one text.

use std::error::Error;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use super::communicator::{Communicator, Failure};
use super::local::run_ranks;

/// Environment variables with the rank of a process: of Open MPI, PMIx (Slurm's `srun --mpi=pmix`) and PMI (MPICH,
/// Intel MPI, Slurm's `--mpi=pmi2`).
const RANK_OF_PROCESS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// Runs `f` on all ranks and returns the values of those in this process, by rank: `num_ranks` threads ([`run_ranks`]);
/// under `mpirun`, in a build with the feature `mpi`, this process as one rank (`run_mpi`), of as many as `mpirun` has
/// started.
///
/// A process is under `mpirun`, or a scheduler in its place, where its environment has one of `OMPI_COMM_WORLD_RANK`,
/// `PMIX_RANK` and `PMI_RANK`.
///
/// ```
/// use burn_gnn_dist::{Failure, launch};
/// let sizes = launch(2, |comm| Ok::<_, Failure>(comm.size()))?;
/// assert_eq!(sizes, [2, 2]);
/// # Ok::<(), Failure>(())
/// ```
///
/// # Errors
/// As [`run_ranks`] and `run_mpi`; under `mpirun` in a build without the feature `mpi`, where every process would be a
/// separate run.
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
                "`mpirun` or `srun` has started this process (`{name}` is set), and the program is built without the feature `mpi`; build \
                 it with `--features mpi`, or start it without them (Slurm: `srun --mpi=none`)"
            );
            Err(Failure { rank: 0, message })
        }
    }
}

/// Writes files on rank 0 and gives their path to all ranks: `write` runs there alone, for files that all ranks then
/// read (a partitioning). Collective.
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
/// The error of `write`, by which all ranks end; a path that is not UTF-8.
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
