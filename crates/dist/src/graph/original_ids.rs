//! Maps type-wise ids to original ids and back.

use burn_gnn_graph::NodeKey;

use super::{DistGraph, Owners};
use crate::exchange::{Pack, Unpack, agree, exchange};
use crate::{Communicator, DistError};

impl DistGraph {
    /// Ids in the input graph of nodes of a type. Collective.
    ///
    /// # Errors
    /// Unknown type, an id out of range; on all ranks.
    pub fn original_nodes(&self, ntype: impl NodeKey, ids: &[u64]) -> Result<Vec<u64>, DistError> {
        let table = self.schema().ntype(ntype).map_err(DistError::from).and_then(|t| {
            let originals = self.inner.own_originals(t);
            self.rows_of_nodes(t, ids, 8, move |row: usize, out: &mut [u8]| {
                out.copy_from_slice(&originals[row].to_ne_bytes())
            })
        });
        self.read_rows("original nodes", table).map(|b| bytemuck::pod_collect_to_vec(&b))
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
        let asked = exchange(
            comm,
            "find nodes: ids",
            Ok(asked.iter().map(|ids| bytemuck::cast_slice(ids).to_vec()).collect()),
        )?;
        let answer = |(p, asked): (usize, &Vec<u8>)| {
            let places: Vec<u64> = bytemuck::pod_collect_to_vec(&asked[..asked.len() / 8 * 8]);
            let ids = places
                .iter()
                .map(|&i| directory.get(i as usize).copied())
                .collect::<Option<Vec<u64>>>();
            let ids = ids.ok_or_else(|| Unpack::new(&[], p, comm.rank()).broken())?;
            Ok(bytemuck::cast_slice(&ids).to_vec())
        };
        let answers = exchange(comm, "find nodes", asked.iter().enumerate().map(answer).collect())?;
        let mut answers: Vec<_> = answers
            .iter()
            .map(|b| bytemuck::pod_collect_to_vec::<u8, u64>(&b[..b.len() / 8 * 8]).into_iter())
            .collect();
        let found = originals.iter().map(|&id| answers[at(id).0].next());
        found.collect::<Option<_>>().ok_or_else(|| Unpack::new(&[], 0, comm.rank()).broken().into())
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
    let mut packs: Vec<Pack> = (0..comm.size()).map(|_| Pack::default()).collect();
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
    let packs = exchange(
        comm,
        "open graph: directory",
        Ok(packs.into_iter().map(Pack::into_bytes).collect()),
    )?;
    let share = |t: usize| nodes.total(t).div_ceil(comm.size() as u64) as usize;
    let mut out: Vec<Vec<u64>> = (0..node_ids.len()).map(|t| vec![0; share(t)]).collect();
    for (p, message) in packs.iter().enumerate() {
        let mut message = Unpack::new(message, p, comm.rank());
        for directory in &mut out {
            let places = message.list::<u64>()?;
            for (place, id) in places.iter().zip(message.list_of::<u64>(places.len())?) {
                *directory.get_mut(*place as usize).ok_or_else(|| message.broken())? = id;
            }
        }
    }
    Ok(out)
}
