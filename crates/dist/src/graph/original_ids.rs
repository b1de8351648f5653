//! Converts type-wise ids to original ids and back.

use burn_gnn_graph::NodeKey;

use super::directory::directory_entry;
use super::dist_graph::DistGraph;
use super::fetch::Wanted;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, malformed, round_trip};

impl DistGraph {
    /// Converts type-wise ids of nodes to ids in the input graph. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type; an id out of range.
    pub fn original_nodes(&self, ntype: impl NodeKey, ids: &[u64]) -> Result<Vec<u64>, DistError> {
        let table = self.schema().ntype(ntype).map_err(DistError::from).and_then(|t| {
            let originals = self.inner.own_originals(t);
            Wanted::made(&self.inner.nodes, t, ids, move |row| originals[row])
        });
        self.read_rows("original nodes", table)
    }

    /// Converts ids of nodes in the input graph to type-wise ids. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type; an id out of range.
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
        let at = directory_entry(nodes.total(t), comm.size());
        let directory = &self.inner.directories[t];
        let mut requests = vec![vec![]; comm.size()];
        originals.iter().for_each(|&id| requests[at(id).0].push(at(id).1));
        let requests = requests.iter().map(|positions| Pack::numbers::<u64>(positions)).collect();
        let answer = |request: Unpack| {
            let ids =
                request.numbers::<u64>().into_iter().map(|i| directory.get(i as usize).copied());
            let ids = ids.collect::<Option<Vec<u64>>>().ok_or_else(|| request.malformed())?;
            Ok(Pack::numbers(&ids))
        };
        let answers = round_trip(comm, ["find nodes: ids", "find nodes"], Ok(requests), answer)?;
        let mut answers: Vec<_> = answers.iter().map(|a| a.numbers::<u64>().into_iter()).collect();
        let found = originals.iter().map(|&id| answers[at(id).0].next());
        found.collect::<Option<_>>().ok_or_else(|| malformed(0, comm.rank()).into())
    }
}
