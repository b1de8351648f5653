//! Collective calls between ranks.

use std::fmt::Debug;
use std::sync::Arc;

/// Failure of a distributed run: the rank at fault and its message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: {message}")]
pub struct Failure {
    /// The rank at fault.
    pub rank: usize,
    /// Error message of that rank.
    pub message: String,
}

burn_gnn_graph::internal::debug_is_message!(Failure);

/// Below this number of values per rank, a sum gathers all values on every rank, in one call instead of two.
const GATHER_BELOW: usize = 1024;

/// Sums all parts in rank order.
fn add_all(sums: &mut [f64], parts: &[Vec<u8>]) {
    sums.fill(0.0);
    for part in parts {
        for (sum, b) in sums.iter_mut().zip(part.chunks_exact(size_of::<f64>())) {
            *sum += bytemuck::pod_read_unaligned::<f64>(b);
        }
    }
}

/// Collective calls, which all ranks must make in the same order.
///
/// Every call has a name, which ranks compare. If two ranks are in different calls, both return an error that names the
/// calls, instead of a deadlock or mixed-up data. Once a rank has failed, all calls return an error on every rank. Sums
/// are computed in rank order, so all ranks get the same bits.
///
/// A collective may be called from any thread of a rank, but only from one at a time, and not inside a parallel
/// iterator. Threads of a rank that communicate at the same time need separate communicators: see
/// [`duplicate`](Self::duplicate).
pub trait Communicator: Debug + Send + Sync {
    /// This rank, in `0..size()`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Returns the bytes of all ranks, by rank, on every rank. Lengths may differ.
    ///
    /// # Errors
    /// Some rank failed, is in another call, has returned, or did not enter the call before the time-out.
    fn all_gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure>;

    /// Sends `send[p]` to rank `p`, and returns the messages that this rank receives, by sender. Lengths may differ.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather); also if `send` does not have one entry per rank.
    fn all_to_all_v(&self, name: &str, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure>;

    /// Replaces `values` by its sum over ranks, added in rank order.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather); also if lengths differ between ranks.
    fn all_reduce(&self, name: &str, values: &mut [f64]) -> Result<(), Failure> {
        let (size, rank, own) = (self.size(), self.rank(), values.len());
        let differs = |p: usize, bytes: usize| {
            let message = format!(
                "`{name}` reduces {own} values on this rank, but rank {p} sent {bytes} bytes; all ranks must reduce the same number of values"
            );
            Err(Failure { rank, message })
        };
        if own < GATHER_BELOW * size {
            let parts = self.all_gather(name, bytemuck::cast_slice(values).to_vec())?;
            if let Some(p) = parts.iter().position(|b| b.len() != size_of_val(values)) {
                return differs(p, parts[p].len());
            }
            add_all(values, &parts);
            return Ok(());
        }
        // Each rank sums one slice, which halves the bytes on four ranks compared with a gather of all values.
        let slice = |p: usize| own * p / size..own * (p + 1) / size;
        let parts = self.all_to_all_v(
            name,
            (0..size).map(|p| bytemuck::cast_slice(&values[slice(p)]).to_vec()).collect(),
        )?;
        let mine = &mut values[slice(rank)];
        if let Some(p) = parts.iter().position(|b| b.len() != size_of_val(mine)) {
            return differs(p, parts[p].len());
        }
        add_all(mine, &parts);
        let sums = self.all_gather(name, bytemuck::cast_slice(mine).to_vec())?;
        for (p, part) in sums.iter().enumerate() {
            values[slice(p)]
                .iter_mut()
                .zip(part.chunks_exact(size_of::<f64>()))
                .for_each(|(v, b)| *v = bytemuck::pod_read_unaligned(b));
        }
        Ok(())
    }

    /// Returns the bytes of rank `root` on every rank. The argument of all other ranks is ignored.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather); also if `root` is not a rank.
    fn broadcast(&self, name: &str, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
        if root >= self.size() {
            let message = format!("`{name}`: root must lie in 0..{}, got {root}", self.size());
            return Err(Failure { rank: self.rank(), message });
        }
        let own = if self.rank() == root { bytes } else { Vec::new() };
        let mut all = self.all_gather(&format!("{name} (from {root})"), own)?;
        Ok(std::mem::take(&mut all[root]))
    }

    /// Waits until all ranks have entered the call.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather).
    fn barrier(&self, name: &str) -> Result<(), Failure> {
        self.all_gather(name, Vec::new()).map(drop)
    }

    /// Creates an independent communicator of the same ranks for another thread (MPI's `MPI_Comm_dup`): its calls do
    /// not wait for those of this one. A failure on one ends both. Collective.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather). The default implementation always returns an error.
    fn duplicate(&self, name: &str) -> Result<Arc<dyn Communicator>, Failure> {
        Err(Failure {
            rank: self.rank(),
            message: format!("`{name}`: this communicator cannot be duplicated"),
        })
    }
}

/// Fails this rank from inside an operation that cannot return a `Result`.
///
/// Unwinds without the panic hook, so that only the rank at fault prints a message.
pub(crate) fn unwind(failure: Failure) -> ! {
    std::panic::resume_unwind(Box::new(failure))
}
