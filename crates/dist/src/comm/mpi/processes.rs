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

/// Collectives of one MPI communicator.
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
        // A panic under the lock ends the process.
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Sends `bytes(p)` to every other rank `p`; what they sent here, by rank, with nothing instead of this rank.
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
        // Ranks in other calls would leave each other in `MPI_Comm_dup`.
        self.barrier(&format!("duplicate {name}"))?;
        let handle = self.lock();
        let _call = self.calls.enter(&format!("duplicate `{name}`"));
        Ok(Arc::new(Self::new(handle.0.duplicate(), self.calls.clone())))
    }
}

/// Settings of a run of ranks that are processes; see [`run_mpi`].
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
    /// Cores shared evenly by the ranks of a host, ten minutes of patience in a collective call, eight seconds with a
    /// rank that gives no sign of life.
    pub fn new() -> Self {
        Self { threads: None, timeout: Duration::from_secs(600), silence: Duration::from_secs(8) }
    }
    /// Threads of this rank's rayon pool. By default the cores that `mpirun` has bound the rank to, or, where it is not
    /// bound, its share of those of the host.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }
    /// How long a rank waits in a collective call before all ranks are ended.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
    /// How long a rank may be silent (a killed process, a network failure) before all ranks are aborted. Every rank
    /// says each second that it is there, whatever its threads compute.
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
                "MPI was started before; `run_mpi` starts and ends it and can be called once"
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
        // A panic that leaves the closure is the end of all ranks: unwinding on would reach `MPI_Finalize`, which waits
        // for ranks that wait for this one. One that is caught inside (by a reader of damaged files, by a loader) is an
        // error there and nothing else.
        let outcome =
            catch_unwind(AssertUnwindSafe(|| pool.install(|| f(for_f).map_err(|e| e.to_string()))));
        let value = match outcome {
            Ok(Ok(value)) => value,
            Ok(Err(message)) => fail(rank, &message),
            Err(payload) => fail(rank, &describe(rank, &*payload).to_string()),
        };
        // No rank finishes while others may still need an answer or a heartbeat.
        if let Err(e) = comm.barrier("end of the run") {
            fail(rank, &e.to_string());
        }
        watch.stop();
        drop(comm);
        Ok(value)
    }
}

/// Cores this process may use, divided by the ranks of the host unless `mpirun` has bound it to its share.
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

/// Runs `f` as one rank among those that `mpirun` or a cluster's scheduler has started, and ends MPI after it. Without
/// a launcher there is one rank.
///
/// The communicator behaves as that of [`run_ranks`](crate::run_ranks) does while all goes well. A rank whose `f`
/// panics, returns an error or makes another collective call than the others prints its reason and ends all processes
/// with `MPI_Abort`: on MPI a failed run is over, to be started again from its last checkpoint. A panic that is caught
/// inside of `f` ends nothing. So does a rank that waits longer than the time-out in one call, and one that receives no
/// heartbeat of another for some seconds (a killed process, a network failure).
///
/// # Needs
/// An MPI library with `MPI_THREAD_MULTIPLE`, to build and to run. In containers:
/// `mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 4 PROGRAM`.
///
/// # Errors
/// MPI was started before in this process, or does not allow calls from several threads. A failure of a rank does not
/// return.
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
