//! Ids of the input graph, there and back.

use super::DistGraph;
use crate::DistError;
use crate::exchange::{Pack, Unpack, agree, exchange};

impl DistGraph {
    /// Ids in the input graph of nodes of a type. Collective.
    ///
    /// # Errors
    /// Unknown type, an id out of range; on all ranks.
    pub fn original_nodes(&self, ntype: &str, ids: &[u64]) -> Result<Vec<u64>, DistError> {
        let table = self.schema().ntype(ntype).map_err(DistError::from).and_then(|t| {
            let originals = self.inner.own_originals(t);
            self.rows_of_nodes(t, ids, 8, Box::new(move |row: usize, out: &mut [u8]| out.copy_from_slice(&originals[row].to_ne_bytes())))
        });
        self.read_rows("original nodes", table).map(|b| bytemuck::pod_collect_to_vec(&b))
    }

    /// Type-wise ids of nodes of a type, given by their ids in the input graph. Collective; the first call for a type makes a directory, of
    /// which every rank keeps an equal share.
    ///
    /// # Errors
    /// Unknown type, an id out of range; on all ranks.
    pub fn find_nodes(&self, ntype: &str, originals: &[u64]) -> Result<Vec<u64>, DistError> {
        let (comm, nodes) = (&*self.comm, &self.inner.nodes);
        let t = self.schema().ntype(ntype).map_err(DistError::from).and_then(|t| nodes.check(t, originals).map(|()| t));
        let t = agree(comm, "find nodes: arguments", t)?;
        // Rank `p` knows the ids `p * share ..`.
        let share = nodes.total(t).div_ceil(comm.size() as u64).max(1);
        let at = |id: u64| ((id / share) as usize, id % share);
        // All ranks fill theirs in the same call.
        if self.inner.directories[t].get().is_none() {
            let mut told: Vec<(Vec<u64>, Vec<u64>)> = vec![Default::default(); comm.size()];
            for (original, id) in self.inner.own_originals(t).iter().zip(nodes.own(t)) {
                let (rank, place) = at(*original);
                told[rank].0.push(place);
                told[rank].1.push(id);
            }
            let told = told.iter().map(|(places, ids)| {
                let mut p = Pack::default();
                p.list(places);
                p.list(ids);
                p.into_bytes()
            });
            let told = exchange(comm, "find nodes: directory", Ok(told.collect()))?;
            let mut directory = vec![u64::MAX; share as usize];
            for (p, message) in told.iter().enumerate() {
                let mut message = Unpack::new(message, p, comm.rank());
                let places = message.list::<u64>()?;
                for (place, id) in places.iter().zip(message.list_of::<u64>(places.len())?) {
                    *directory.get_mut(*place as usize).ok_or_else(|| message.broken())? = id;
                }
            }
            let _ = self.inner.directories[t].set(directory);
        }
        let directory = self.inner.directories[t].get().map_or(&[][..], Vec::as_slice);
        let mut asked = vec![vec![]; comm.size()];
        originals.iter().for_each(|&id| asked[at(id).0].push(at(id).1));
        let asked = exchange(comm, "find nodes: ids", Ok(asked.iter().map(|ids| bytemuck::cast_slice(ids).to_vec()).collect()))?;
        let answer = |(p, asked): (usize, &Vec<u8>)| {
            let places: Vec<u64> = bytemuck::pod_collect_to_vec(&asked[..asked.len() / 8 * 8]);
            let ids = places.iter().map(|&i| directory.get(i as usize).copied()).collect::<Option<Vec<u64>>>();
            let ids = ids.ok_or_else(|| Unpack::new(&[], p, comm.rank()).broken())?;
            Ok(bytemuck::cast_slice(&ids).to_vec())
        };
        let answers = exchange(comm, "find nodes", asked.iter().enumerate().map(answer).collect())?;
        let mut answers: Vec<_> =
            answers.iter().map(|b| bytemuck::pod_collect_to_vec::<u8, u64>(&b[..b.len() / 8 * 8]).into_iter()).collect();
        let found = originals.iter().map(|&id| answers[at(id).0].next().filter(|&id| id != u64::MAX));
        found.collect::<Option<_>>().ok_or_else(|| Unpack::new(&[], 0, comm.rank()).broken().into())
    }
}
