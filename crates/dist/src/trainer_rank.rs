//! Maps ranks to parts and trainers.

use crate::comm::Communicator;
use crate::error::DistError;

/// The error of a rank that cannot take a part of a graph that was cut for `trainers` trainers each.
pub(crate) fn wrong_rank(
    comm: &dyn Communicator,
    part: usize,
    num_parts: usize,
    trainers: usize,
) -> DistError {
    DistError::WrongRank { rank: comm.rank(), size: comm.size(), part, num_parts, trainers }
}

/// Which part and which of its trainers a rank is: rank `r` of `parts · trainers` ranks is trainer `r % trainers` of
/// part `r / trainers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrainerRank {
    pub(crate) part: usize,
    /// Trainers per part in this run.
    pub(crate) trainers: usize,
    /// This rank among the trainers of its part.
    pub(crate) trainer: usize,
}

impl TrainerRank {
    /// The part and trainer of a rank of a graph in `parts` parts that was cut for `trainers` trainers each: one per
    /// part, or all of them.
    pub(crate) fn of(rank: usize, size: usize, parts: usize, trainers: usize) -> Option<Self> {
        let trainers = match size {
            _ if size == parts => 1,
            _ if Some(size) == parts.checked_mul(trainers) => trainers,
            _ => return None,
        };
        Some(Self { part: rank / trainers, trainers, trainer: rank % trainers })
    }
    /// The rank that this one queries for data of a part: the trainer of the same index there, which spreads the load
    /// over all of them.
    pub(crate) fn rank_of(self, part: usize) -> usize {
        part * self.trainers + self.trainer
    }
}
