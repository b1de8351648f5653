//! Maps type-wise ids to original ids and back.

use burn_gnn_graph::NodeKey;

use super::{DistGraph, Owners, Wanted};
use crate::exchange::{Pack, Unpack, agree, ask, broken, exchange};
use crate::{Communicator, DistError};

impl DistGraph {
    /// Ids in the input graph of nodes of a type. Collective.
    ///
    /// # Errors
    /// Unknown type, an id out of range; on all ranks.
    pub fn original_nodes(&self, ntype: impl NodeKey, ids: &[u64]) -> Result<Vec<u64>, DistError> {
        let table = self.schema().ntype(ntype).map_err(DistError::from).and_then(|t| {
            let originals = self.inner.own_originals(t);
            Wanted::made(&self.inner.nodes, t, ids, move |row| originals[row])
        });
        self.read_rows("original nodes", table)
    }

    /// Type-wise ids of nodes of a type, given by their ids in the input graph. Collective.
    ///
    /// # Errors
    /// Unknown type, an id out of range; on all ranks.
    pub fn find_nodes(
        &self,
        ntype: impl NodeKey,
        originals: &[u64],
    ) -> Result<Vec<u64>, DistError> {
        let (comm, nodes) = (&*self.comm, &self.inner.nodes);
        let t = self
            .schema()
            .ntype(ntype)
            .map_err(DistError::from)
            .and_then(|t| nodes.check(t, originals).map(|()| t));
        let t = agree(comm, "find nodes: arguments", t)?;
        let at = place(nodes.total(t), comm.size());
        let directory = &self.inner.directories[t];
        let mut asked = vec![vec![]; comm.size()];
        originals.iter().for_each(|&id| asked[at(id).0].push(at(id).1));
        let asked = asked.iter().map(|places| Pack::numbers::<u64>(places)).collect();
        let answer = |asked: Unpack| {
            let ids =
                asked.numbers::<u64>().into_iter().map(|i| directory.get(i as usize).copied());
            let ids = ids.collect::<Option<Vec<u64>>>().ok_or_else(|| asked.broken())?;
            Ok(Pack::numbers(&ids))
        };
        let answers = ask(comm, ["find nodes: ids", "find nodes"], Ok(asked), answer)?;
        let mut answers: Vec<_> = answers.iter().map(|a| a.numbers::<u64>().into_iter()).collect();
        let found = originals.iter().map(|&id| answers[at(id).0].next());
        found.collect::<Option<_>>().ok_or_else(|| broken(0, comm.rank()).into())
    }
}

/// Rank and position of the directory entry of an original id: rank `p` has those from `p * share` on.
fn place(total: u64, ranks: usize) -> impl Fn(u64) -> (usize, u64) {
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
