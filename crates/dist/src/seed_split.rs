//! Distributes seeds over ranks.

use burn_gnn_graph::{EdgeKey, NodeKey};

use crate::error::DistError;
use crate::exchange::{Pack, agree, exchange};
use crate::graph::{DistGraph, PartitionPolicy};

/// Rule that assigns seeds to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy<'a> {
    /// Each rank gets the seeds that it owns. No features of seeds are sent, and the numbers of seeds differ.
    Owner,
    /// Each rank gets the same number of seeds, up to one (DGL's `force_even`), in ranges of ascending type-wise ids,
    /// so most seeds stay on their owner. (If ids were kept, ids ascend inside the seeds of each owner.) Batches are
    /// formed per rank instead of from one order of all seeds, so losses depend on the number of ranks.
    Even,
    /// An integer column contains the rank of each seed. Graphs with several trainers per part have such a column,
    /// `trainer_id`; with one rank per trainer it gives the same result as [`Owner`](Self::Owner).
    Trainer(&'a str),
}

/// Seeds to choose from.
#[derive(Clone, Copy, Debug)]
pub enum SplitOf<'a> {
    /// All nodes or edges of the type.
    All,
    /// Nodes or edges whose value in a column is neither 0 nor false. The column has one value each. For an inserted
    /// tensor ([`DataSpace::insert`](crate::DataSpace::insert)), its values at the time of the call.
    Mask(&'a str),
    /// The given type-wise ids, in any order. Every rank lists the seeds that it owns.
    Own(&'a [u64]),
}

/// The seeds of this rank, and the number of seeds of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSplit {
    /// Type-wise ids, ascending.
    pub ids: Vec<u64>,
    /// Number of seeds by rank; the same on all ranks.
    pub counts: Vec<u64>,
}

impl SeedSplit {
    /// Number of seeds of all ranks.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
    /// Number of steps of an epoch with batches of `batch_size` seeds per rank. It is the same on all ranks, some of
    /// which have empty batches at the end.
    ///
    /// # Panics
    /// `batch_size` is 0.
    pub fn steps(&self, batch_size: u64) -> u64 {
        assert!(batch_size > 0, "`batch_size` must be at least 1");
        self.counts.iter().map(|n| n.div_ceil(batch_size)).max().unwrap_or(0)
    }
}

impl DistGraph {
    /// Distributes nodes of a type over ranks. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; an id that is out of range, that another rank owns, or that occurs
    /// twice; a trainer that is not a rank.
    pub fn node_split(
        &self,
        ntype: impl NodeKey,
        of: SplitOf<'_>,
        by: SplitBy<'_>,
    ) -> Result<SeedSplit, DistError> {
        self.split(self.node_policy(ntype), of, by)
    }
    /// Distributes edges of a type over ranks, as [`node_split`](Self::node_split). Collective.
    ///
    /// # Errors
    /// As [`node_split`](Self::node_split).
    pub fn edge_split(
        &self,
        etype: impl EdgeKey,
        of: SplitOf<'_>,
        by: SplitBy<'_>,
    ) -> Result<SeedSplit, DistError> {
        self.split(self.edge_policy(etype), of, by)
    }

    fn split(
        &self,
        policy: Result<PartitionPolicy, DistError>,
        of: SplitOf<'_>,
        by: SplitBy<'_>,
    ) -> Result<SeedSplit, DistError> {
        let comm = &*self.comm;
        let chosen = policy.and_then(|policy| Ok((policy, self.chosen(policy, of)?)));
        let (policy, own) = agree(comm, "split: seeds", chosen)?;
        let counts = |n: usize| -> Result<Vec<u64>, DistError> {
            let all = comm.all_gather("split: counts", (n as u64).to_le_bytes().to_vec())?;
            Ok(all.iter().map(|b| bytemuck::pod_read_unaligned::<u64>(b)).collect())
        };
        if by == SplitBy::Owner {
            return Ok(SeedSplit { counts: counts(own.len())?, ids: own });
        }
        let ranks = match by {
            SplitBy::Trainer(column) => {
                agree(comm, "split: trainers", self.trainers(policy, column, &own))?
            }
            _ => {
                let counts = counts(own.len())?;
                let total: u64 = counts.iter().sum();
                let before: u64 = counts[..comm.rank()].iter().sum();
                // Own ids are ascending, and those of earlier ranks come first: seed number `i` of all goes to rank
                // `i · size / total`.
                let rank = |i: u64| {
                    (u128::from(before + i) * comm.size() as u128 / u128::from(total)) as usize
                };
                (0..own.len() as u64).map(rank).collect()
            }
        };
        let mut messages = vec![vec![]; comm.size()];
        own.iter().zip(ranks).for_each(|(&id, rank)| messages[rank].push(id));
        let messages = messages.iter().map(|ids| Pack::default().with::<u64>(ids)).collect();
        let mut ids = vec![];
        for mut message in exchange(comm, "split", Ok(messages))? {
            ids.extend(message.list::<u64>()?);
        }
        // Without reshuffling the ids of two owners are interleaved.
        ids.sort_unstable();
        agree(comm, "split: result", self.owners(policy).check(policy.ty, &ids))?;
        Ok(SeedSplit { counts: counts(ids.len())?, ids })
    }

    /// Own seeds, ascending.
    fn chosen(&self, policy: PartitionPolicy, of: SplitOf<'_>) -> Result<Vec<u64>, DistError> {
        let (owners, t) = (self.owners(policy), policy.ty);
        match of {
            SplitOf::All => Ok(self.own_ids(policy)),
            SplitOf::Mask(column) => {
                let ids = owners.own(t).zip(self.one_each(policy, column)?).zip(0..);
                let is_chosen =
                    |&((_, v), row): &((u64, f64), u32)| v != 0.0 && self.inner.is_own(policy, row);
                Ok(ids.filter(is_chosen).map(|((id, _), _)| id).collect())
            }
            SplitOf::Own(ids) => {
                owners.check(t, ids)?;
                let what = format!("{} of `{}`", owners.what(), owners.names()[t]);
                for &id in ids {
                    match owners.own_row(t, id) {
                        None => return Err(self.not_owned(what, id, owners.locate(t, id).0)),
                        Some(row) if self.inner.is_own(policy, row) => {}
                        Some(_) => {
                            let expected = format!(
                                "seeds whose `trainer_id` is this rank, {}",
                                self.comm.rank()
                            );
                            return Err(DistError::Config {
                                arg: "ids",
                                expected,
                                found: format!("{what} {id} of another trainer of the part"),
                            });
                        }
                    }
                }
                let mut ids = ids.to_vec();
                ids.sort_unstable();
                if let Some(position) = ids.windows(2).position(|w| w[0] == w[1]) {
                    let what = format!("seeds of `{}`:", owners.names()[t]);
                    return Err(burn_gnn_graph::GraphError::RepeatedId {
                        what,
                        position,
                        id: ids[position],
                    }
                    .into());
                }
                Ok(ids)
            }
        }
    }
    /// The error of an id that `rank` owns.
    pub(crate) fn not_owned(&self, what: String, id: u64, rank: usize) -> DistError {
        let trainer = self.inner.trainer;
        DistError::NotOwned { what, id, part: trainer.part, owner: rank / trainer.trainers }
    }
    fn trainers(
        &self,
        policy: PartitionPolicy,
        column: &str,
        own: &[u64],
    ) -> Result<Vec<usize>, DistError> {
        let (values, owners) = (self.one_each(policy, column)?, self.owners(policy));
        let rank = |&id: &u64| {
            let value = values[owners.own_row(policy.ty, id).map_or(0, |r| r as usize)];
            let size = self.comm.size();
            if value >= 0.0 && value < size as f64 && value.fract() == 0.0 {
                return Ok(value as usize);
            }
            let (expected, found) =
                (format!("a rank in 0..{size}"), format!("{value} for {} {id}", owners.what()));
            Err(DistError::Config { arg: "trainer", expected, found })
        };
        own.iter().map(rank).collect()
    }
    /// Reads a column with one value per node or edge.
    fn one_each(&self, policy: PartitionPolicy, column: &str) -> Result<Vec<f64>, DistError> {
        let (data, owners) = (self.part_values(policy, column)?, self.owners(policy));
        let values: Vec<f64> = data.iter::<f64>().collect();
        if values.len() == owners.count(policy.ty) {
            return Ok(values);
        }
        let (expected, found) = (
            format!("one value per {} in column `{column}`", owners.what()),
            format!("shape {:?}", data.shape()),
        );
        Err(DistError::Config { arg: "column", expected, found })
    }
}
