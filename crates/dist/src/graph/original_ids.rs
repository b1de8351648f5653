//! Maps type-wise ids to original ids and back.

use burn_gnn_graph::NodeKey;

use super::directory::place;
use super::dist_graph::DistGraph;
use super::fetch::Wanted;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, ask, broken};

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
