//! Maps ranks to parts and trainers.

use crate::comm::Communicator;
use crate::error::DistError;

/// The error of a rank that does not belong to a part with `trainers` trainers.
pub(crate) fn wrong_rank(
    comm: &dyn Communicator,
    part: usize,
    num_parts: usize,
    trainers: usize,
) -> DistError {
    DistError::WrongRank { rank: comm.rank(), size: comm.size(), part, num_parts, trainers }
}

/// The part of a rank and its number among the trainers of the part: rank `r` of `parts · trainers` ranks is trainer
/// `r % trainers` of part `r / trainers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrainerRank {
    pub(crate) part: usize,
    /// Number of trainers per part in this run.
    pub(crate) trainers: usize,
    /// Number of this rank among the trainers of its part.
    pub(crate) trainer: usize,
}

impl TrainerRank {
    /// Part and trainer of a rank, for a graph of `parts` parts with `trainers` trainers each. A run has one rank per
    /// part or one rank per trainer; `None` for any other `size`.
    pub(crate) fn of(rank: usize, size: usize, parts: usize, trainers: usize) -> Option<Self> {
        let trainers = match size {
            _ if size == parts => 1,
            _ if Some(size) == parts.checked_mul(trainers) => trainers,
            _ => return None,
        };
        Some(Self { part: rank / trainers, trainers, trainer: rank % trainers })
    }
    /// The rank that this rank queries for data of another part: its trainer of the same number, so that the load is
    /// spread over all trainers.
    pub(crate) fn rank_of(self, part: usize) -> usize {
        part * self.trainers + self.trainer
    }
}
