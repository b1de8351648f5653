//! Runs ranks as MPI processes.

use std::fmt::{Debug, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;

use super::exchange::{self, MessageHeader, swap};
use super::handle::{Handle, fail};
use super::watchdog::{Calls, Watch};
use crate::comm::communicator::{Communicator, Failure};
use crate::comm::local::describe;

/// A [`Communicator`] over MPI.
struct MpiComm {
    rank: usize,
    size: usize,
    handle: Mutex<Handle>,
    calls: Arc<Calls>,
}

impl Debug for MpiComm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MpiComm {{ rank: {}, size: {} }}", self.rank, self.size)
    }
}

impl MpiComm {
    fn new(handle: SimpleCommunicator, calls: Arc<Calls>) -> Self {
        let (rank, size) = (handle.rank() as usize, handle.size() as usize);
        Self { rank, size, handle: Mutex::new(Handle(handle)), calls }
    }
    fn lock(&self) -> MutexGuard<'_, Handle> {
        // A panic under the lock aborts the process.
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Sends `bytes[p]` to every other rank `p`, and returns the received messages by rank. The entry of this rank is
    /// empty.
    fn exchange(&self, call: &str, bytes: &[&[u8]]) -> Result<Vec<Vec<u8>>, Failure> {
        let handle = self.lock();
        let _call = self.calls.enter(call);
        let heads: Vec<MessageHeader> =
            bytes.iter().map(|b| MessageHeader::new(call, b.len())).collect();
        let theirs = exchange::heads(&handle.0, &heads);
        let own = &heads[self.rank];
        if let Some((p, other)) = theirs.iter().enumerate().find(|(_, h)| !h.is_call_of(own)) {
            let message = format!(
                "is in {} while rank {p} is in {}; all ranks must make the same calls in the same order",
                own.call(),
                other.call()
            );
            return Err(Failure { rank: self.rank, message });
        }
        Ok(swap(&handle.0, self.rank, bytes, &theirs))
    }
}

impl Communicator for MpiComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn all_gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
        let mut all =
            self.exchange(&format!("all_gather `{name}`"), &vec![bytes.as_slice(); self.size])?;
        all[self.rank] = bytes;
        Ok(all)
    }
    fn all_to_all_v(&self, name: &str, mut send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        if send.len() != self.size {
            let message = format!(
                "`{name}` sends {} messages, expected one for each of {} ranks",
                send.len(),
                self.size
            );
            return Err(Failure { rank: self.rank, message });
        }
        let mut all = self.exchange(
            &format!("all_to_all_v `{name}`"),
            &send.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        )?;
        all[self.rank] = std::mem::take(&mut send[self.rank]);
        Ok(all)
    }
    fn duplicate(&self, name: &str) -> Result<Arc<dyn Communicator>, Failure> {
        // The barrier detects ranks in other calls, which would deadlock in `MPI_Comm_dup`.
        self.barrier(&format!("duplicate {name}"))?;
        let handle = self.lock();
        let _call = self.calls.enter(&format!("duplicate `{name}`"));
        Ok(Arc::new(Self::new(handle.0.duplicate(), self.calls.clone())))
    }
}

/// Settings of a run with processes as ranks; see [`run_mpi`].
#[derive(Clone, Debug)]
pub struct MpiRanks {
    threads: Option<usize>,
    timeout: Duration,
    silence: Duration,
}

impl Default for MpiRanks {
    fn default() -> Self {
        Self::new()
    }
}

impl MpiRanks {
    /// Defaults: the ranks of a host share its cores evenly, a collective call times out after ten minutes, and a rank
    /// without heartbeats is considered lost after eight seconds.
    pub fn new() -> Self {
        Self { threads: None, timeout: Duration::from_secs(600), silence: Duration::from_secs(8) }
    }
    /// Sets the number of threads in the rayon pool of this rank. The default is the number of cores that `mpirun` has
    /// bound the rank to or, without binding, its share of the cores of the host.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }
    /// Sets how long a rank waits in a collective call before all ranks are aborted.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
    /// Sets after which time without heartbeats (a killed process, a network failure) all ranks are aborted. A separate
    /// thread of every rank sends a heartbeat each second.
    #[must_use]
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Runs `f` as this process' rank; see [`run_mpi`].
    ///
    /// # Errors
    /// As [`run_mpi`].
    pub fn run<R, E, F>(&self, f: F) -> Result<R, Failure>
    where
        R: Send,
        E: Display,
        F: FnOnce(Arc<dyn Communicator>) -> Result<R, E> + Send,
    {
        let failure = |message: String| Failure { rank: 0, message };
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Multiple)
        else {
            return Err(failure(
                "MPI was initialised before; `run_mpi` initialises and finalises it and can be called once"
                    .into(),
            ));
        };
        let world = universe.world();
        let rank = world.rank() as usize;
        if threading < Threading::Multiple {
            let message = format!(
                "this MPI library offers {threading:?}, expected Multiple (calls from several threads); build it with thread support"
            );
            return Err(Failure { rank, message });
        }
        let calls = Arc::new(Calls::new(self.timeout));
        let comm = Arc::new(MpiComm::new(world.duplicate(), calls.clone()));
        let watch = Watch::start(Handle(world.duplicate()), calls, self.silence);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or_else(default_threads))
            .stack_size(16 << 20)
            .thread_name(move |i| format!("rank{rank}-{i}"))
            .build()
            .unwrap_or_else(|e| fail(rank, &format!("thread pool: {e}")));
        let for_f: Arc<dyn Communicator> = comm.clone();
        // A panic that leaves the closure aborts all ranks: unwinding further would call `MPI_Finalize`, which waits
        // for ranks that wait for this one. A panic that `f` catches (in a reader of damaged files, in a loader) is not
        // a failure.
        let outcome =
            catch_unwind(AssertUnwindSafe(|| pool.install(|| f(for_f).map_err(|e| e.to_string()))));
        let value = match outcome {
            Ok(Ok(value)) => value,
            Ok(Err(message)) => fail(rank, &message),
            Err(payload) => fail(rank, &describe(rank, &*payload).to_string()),
        };
        // No rank finishes while other ranks may still need its messages or heartbeats.
        if let Err(e) = comm.barrier("end of the run") {
            fail(rank, &e.to_string());
        }
        watch.stop();
        drop(comm);
        Ok(value)
    }
}

/// Number of cores that this process may use, divided by the ranks of the host unless `mpirun` has bound it to a share.
fn default_threads() -> usize {
    let mine = std::thread::available_parallelism().map_or(1, usize::from);
    let local: usize = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
        .unwrap_or(1);
    let online = std::fs::read_to_string("/proc/cpuinfo")
        .map_or(mine, |s| s.lines().filter(|l| l.starts_with("processor")).count());
    if mine < online { mine } else { (mine / local.max(1)).max(1) }
}

/// Runs `f` as one of the ranks that `mpirun` or a scheduler has started, then finalises MPI. Without a launcher there
/// is one rank.
///
/// Without failures the communicator behaves as that of [`run_ranks`](crate::run_ranks). A failed run cannot continue
/// on MPI and must be restarted from its last checkpoint: the rank at fault prints the reason and aborts all processes
/// with `MPI_Abort`. A rank fails if
///
/// * `f` panics (a panic that `f` catches does not count), returns an error, or makes another collective call than the
///   other ranks,
/// * it waits in one call for longer than the time-out,
/// * it receives no heartbeat from another rank for some seconds (a killed process, a network failure).
///
/// # Needs
/// An MPI library with `MPI_THREAD_MULTIPLE`, at build time and at run time. In containers:
/// `mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 4 PROGRAM`.
///
/// # Errors
/// MPI was initialised before in this process, or does not support calls from several threads. A failure of a rank
/// aborts the process and does not return.
///
/// ```no_run
/// use burn_gnn_dist::{Failure, run_mpi};
/// let sum = run_mpi(|comm| {
///     let mut x = [comm.rank() as f64 + 1.0];
///     comm.all_reduce("sum", &mut x)?;
///     Ok::<_, Failure>(x[0])
/// })?;
/// println!("{sum}");
/// # Ok::<(), Failure>(())
/// ```
pub fn run_mpi<R, E, F>(f: F) -> Result<R, Failure>
where
    R: Send,
    E: Display,
    F: FnOnce(Arc<dyn Communicator>) -> Result<R, E> + Send,
{
    MpiRanks::new().run(f)
}
