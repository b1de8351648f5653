//! Distributes the directory from original ids to type-wise ids over ranks.

use super::owners::Owners;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::{Pack, exchange};

/// Rank and position of the directory entry of an original id: rank `p` has those from `p * share` on.
pub(super) fn place(total: u64, ranks: usize) -> impl Fn(u64) -> (usize, u64) {
    let share = total.div_ceil(ranks as u64).max(1);
    move |id| ((id / share) as usize, id % share)
}

/// Per node type the type-wise ids of this rank's share of the ids of the input graph. Collective.
///
/// All trainers of one part send the same entries, which is cheaper than electing one of them.
pub(super) fn directories(
    comm: &dyn Communicator,
    nodes: &Owners,
    node_ids: &[Vec<u64>],
) -> Result<Vec<Vec<u64>>, DistError> {
    let mut packs = vec![Pack::default(); comm.size()];
    for (t, ids) in node_ids.iter().enumerate() {
        let at = place(nodes.total(t), comm.size());
        let mut lists = vec![(vec![], vec![]); comm.size()];
        for (original, id) in ids.iter().zip(nodes.own(t)) {
            let (rank, place) = at(*original);
            lists[rank].0.push(place);
            lists[rank].1.push(id);
        }
        for (pack, (places, ids)) in packs.iter_mut().zip(&lists) {
            pack.list(places);
            pack.list(ids);
        }
    }
    let packs = exchange(comm, "open graph: directory", Ok(packs))?;
    let share = |t: usize| nodes.total(t).div_ceil(comm.size() as u64) as usize;
    let mut out: Vec<Vec<u64>> = (0..node_ids.len()).map(|t| vec![0; share(t)]).collect();
    for mut message in packs {
        for directory in &mut out {
            let places = message.list::<u64>()?;
            for (place, id) in places.iter().zip(message.list_of::<u64>(places.len())?) {
                *directory.get_mut(*place as usize).ok_or_else(|| message.broken())? = id;
            }
        }
    }
    Ok(out)
}
