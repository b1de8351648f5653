//! Distributes the directory from original ids to type-wise ids over ranks.

use super::owners::Owners;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::{Pack, exchange};

/// Rank and position of the directory entry of an original id. Rank `p` holds the entries from `p * share` on.
pub(super) fn directory_entry(total: u64, ranks: usize) -> impl Fn(u64) -> (usize, u64) {
    let share = total.div_ceil(ranks as u64).max(1);
    move |id| ((id / share) as usize, id % share)
}

/// Builds this rank's share of the directory: the type-wise ids of a range of original ids, per node type. Collective.
///
/// All trainers of a part send the same entries, which is cheaper than electing one of them.
pub(super) fn directories(
    comm: &dyn Communicator,
    nodes: &Owners,
    node_ids: &[Vec<u64>],
) -> Result<Vec<Vec<u64>>, DistError> {
    let mut packs = vec![Pack::default(); comm.size()];
    for (t, ids) in node_ids.iter().enumerate() {
        let at = directory_entry(nodes.total(t), comm.size());
        let mut lists = vec![(vec![], vec![]); comm.size()];
        for (original, id) in ids.iter().zip(nodes.own(t)) {
            let (rank, position) = at(*original);
            lists[rank].0.push(position);
            lists[rank].1.push(id);
        }
        for (pack, (positions, ids)) in packs.iter_mut().zip(&lists) {
            pack.list(positions);
            pack.list(ids);
        }
    }
    let packs = exchange(comm, "open graph: directory", Ok(packs))?;
    let share = |t: usize| nodes.total(t).div_ceil(comm.size() as u64) as usize;
    let mut out: Vec<Vec<u64>> = (0..node_ids.len()).map(|t| vec![0; share(t)]).collect();
    for mut message in packs {
        for directory in &mut out {
            let positions = message.list::<u64>()?;
            for (position, id) in positions.iter().zip(message.list_of::<u64>(positions.len())?) {
                *directory.get_mut(*position as usize).ok_or_else(|| message.malformed())? = id;
            }
        }
    }
    Ok(out)
}
