//! Defines the collective calls between ranks.

use std::fmt::Debug;
use std::sync::Arc;

/// Why a distributed run failed: the rank at fault and its message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: {message}")]
pub struct Failure {
    /// The rank at fault.
    pub rank: usize,
    /// Its message.
    pub message: String,
}

burn_gnn_graph::internal::debug_is_message!(Failure);

/// Numbers per rank up to which a sum is taken of everybody's numbers at once.
const ALL_AT_ONCE: usize = 1024;

/// The sum of all parts, in rank order.
fn add_all(sums: &mut [f64], parts: &[Vec<u8>]) {
    sums.fill(0.0);
    for part in parts {
        for (sum, b) in sums.iter_mut().zip(part.chunks_exact(size_of::<f64>())) {
            *sum += bytemuck::pod_read_unaligned::<f64>(b);
        }
    }
}

/// Calls that all ranks make together, in the same order.
///
/// Every call carries a name, which ranks compare on arrival: two ranks in different calls are an
/// error naming both, not a hang or mixed-up rows. Every call returns an error on every rank once one
/// rank has failed. Sums add in rank order, so all ranks hold the same bits.
///
/// Collectives may run on any thread of a rank, one at a time; never inside a parallel iterator. Two threads of a rank
/// that communicate at the same time need a communicator each: [`duplicate`](Self::duplicate).
pub trait Communicator: Debug + Send + Sync {
    /// This rank, in `0..size()`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Every rank's bytes, by rank, on every rank. Lengths may differ.
    ///
    /// # Errors
    /// Some rank failed, is in another call, has returned, or did not come in time.
    fn all_gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure>;

    /// Sends `send[p]` to rank `p`; returns what each rank sent here, by rank. Lengths may differ.
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
                "`{name}` reduces {own} values here and rank {p} sent {bytes} bytes of its own, as if it had another number"
            );
            Err(Failure { rank, message })
        };
        if own < ALL_AT_ONCE * size {
            let parts = self.all_gather(name, bytemuck::cast_slice(values).to_vec())?;
            if let Some(p) = parts.iter().position(|b| b.len() != size_of_val(values)) {
                return differs(p, parts[p].len());
            }
            add_all(values, &parts);
            return Ok(());
        }
        // Every rank adds up its own slice: two thirds of the bytes on three ranks, half on four.
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

    /// The bytes of rank `root` on every rank; what the others pass is ignored.
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

    /// Waits until every rank is here.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather).
    fn barrier(&self, name: &str) -> Result<(), Failure> {
        self.all_gather(name, Vec::new()).map(drop)
    }

    /// Another communicator between the same ranks, whose calls neither wait for nor meet those of this one: for
    /// another thread (MPI's `MPI_Comm_dup`). A failure on one ends both. Collective.
    ///
    /// # Errors
    /// As [`all_gather`](Self::all_gather); also where an implementation has no such communicators, which is what it
    /// says by default.
    fn duplicate(&self, name: &str) -> Result<Arc<dyn Communicator>, Failure> {
        Err(Failure {
            rank: self.rank(),
            message: format!("`{name}`: this communicator cannot be duplicated"),
        })
    }
}

/// Ends this rank from inside an operation that cannot return a `Result`.
///
/// Unwinds without the panic hook, so that only the rank at fault prints.
pub(crate) fn unwind(failure: Failure) -> ! {
    std::panic::resume_unwind(Box::new(failure))
}
