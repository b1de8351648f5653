//! Seeds of loaders over all parts.

use burn_gnn_graph::{EdgeKey, GraphError, NodeKey};
use burn_gnn_sampling::{SeedKind, Seeds};

use crate::error::DistError;
use crate::exchange::{agree, digest, require_equal};
use crate::graph::{DistGraph, Owners, PartitionPolicy};
use crate::seed_split::SeedSplit;

/// Placeholder for a seed that another rank owns.
pub(crate) const ELSEWHERE: u64 = u64::MAX;

/// Ids per type, and optionally the time of each.
pub(crate) type SeedLists = (Vec<Vec<u64>>, Option<Vec<Vec<i64>>>);

impl DistGraph {
    /// Node seeds of a loader, per node type by ids in the input graph. The lists are the same on all ranks, and each
    /// rank gets the batches of the seeds that it owns. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or one that occurs twice; an id out of range; 2³² seeds or more; lists that differ
    /// between ranks.
    pub fn node_seeds<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Seeds<u64>, DistError> {
        self.own_seeds(self.select_nodes(seeds).map(|ids| (ids, None)))
    }
    /// [`node_seeds`](Self::node_seeds) with a time for each seed: batches contain only edges strictly before it. Times
    /// are sent along with the seeds when ranks request neighbours. Collective.
    ///
    /// # Errors
    /// As [`node_seeds`](Self::node_seeds); the number of times differs from that of seeds, on all ranks.
    pub fn node_seeds_before<N: NodeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<Seeds<u64>, DistError> {
        self.own_seeds(self.select_nodes_before(seeds))
    }
    /// Node seeds of a loader from a [`SeedSplit`]: every rank divides its own list into batches, so the batch size is
    /// per rank and losses depend on the number of ranks.
    ///
    /// # Errors
    /// Unknown type; an id out of range; 2³² seeds or more on a rank.
    pub fn split_seeds(
        &self,
        ntype: impl NodeKey,
        split: &SeedSplit,
    ) -> Result<Seeds<u64>, DistError> {
        let ids = self.select_nodes([(ntype, &split.ids)])?;
        Ok(Seeds::new(SeedKind::Nodes, ids, None)?
            .with_schema(self.schema())
            .of_each_process(&split.counts)?)
    }
    /// Edge seeds of a loader, per edge type by ids in the input graph. The lists are the same on all ranks, and each
    /// rank gets the batches of the seeds that it owns. Collective.
    ///
    /// # Errors
    /// As [`node_seeds`](Self::node_seeds).
    pub fn edge_seeds<K: EdgeKey, I: AsRef<[u64]>>(
        &self,
        seeds: impl IntoIterator<Item = (K, I)>,
    ) -> Result<Seeds<u64>, DistError> {
        self.same_seeds(SeedKind::Edges, self.select_edges(seeds).map(|ids| (ids, None)))
    }
    /// [`edge_seeds`](Self::edge_seeds) with a time for each seed, which replaces the time of the edge. Collective.
    ///
    /// # Errors
    /// As [`edge_seeds`](Self::edge_seeds); the number of times differs from that of seeds, on all ranks.
    pub fn edge_seeds_before<K: EdgeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (K, I, T)>,
    ) -> Result<Seeds<u64>, DistError> {
        self.same_seeds(SeedKind::Edges, self.select_edges_before(seeds))
    }

    /// Checks that the lists are the same on all ranks. Collective.
    fn same_seeds(
        &self,
        kind: SeedKind,
        lists: Result<SeedLists, DistError>,
    ) -> Result<Seeds<u64>, DistError> {
        let seeds = lists
            .and_then(|(ids, times)| Ok(Seeds::new(kind, ids, times)?.with_schema(self.schema())));
        let seeds = agree(&*self.comm, "seeds: list", seeds)?;
        let lists = seeds
            .ids()
            .iter()
            .flat_map(|ids| std::iter::once(ids.len() as u64).chain(ids.iter().copied()));
        let all =
            lists.chain(seeds.times().into_iter().flatten().flatten().map(|&time| time as u64));
        let what = if kind == SeedKind::Edges { "the list of edges" } else { "the list of seeds" };
        require_equal(&*self.comm, "seeds: digest", what, digest(all).to_le_bytes().to_vec())?;
        Ok(seeds)
    }
    /// Converts nodes to type-wise ids; those of other ranks become [`ELSEWHERE`]. Collective.
    fn own_seeds(&self, lists: Result<SeedLists, DistError>) -> Result<Seeds<u64>, DistError> {
        let seeds = self.same_seeds(SeedKind::Nodes, lists)?;
        let of_type = |(t, seeds): (usize, &Vec<u64>)| {
            let (of, own) = (PartitionPolicy { is_node: true, ty: t }, self.inner.own_originals(t));
            let row = |seed: &u64| {
                own.binary_search(seed).ok().filter(|&row| self.inner.is_own(of, row as u32))
            };
            seeds
                .iter()
                .map(|seed| row(seed).map_or(ELSEWHERE, |row| self.inner.nodes.id(t, row as u64)))
                .collect()
        };
        let ids = seeds.ids().iter().enumerate().map(of_type).collect();
        Ok(Seeds::new(SeedKind::Nodes, ids, seeds.times().map(<[_]>::to_vec))?
            .with_schema(self.schema()))
    }

    /// Validates ids of nodes per node type, and their times.
    pub(crate) fn select_nodes_before<N: NodeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        given: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<SeedLists, DistError> {
        self.select_before(&self.inner.nodes, given, |key| self.schema().ntype(key))
    }
    /// Validates ids of edges per edge type, and their times.
    pub(crate) fn select_edges_before<K: EdgeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        given: impl IntoIterator<Item = (K, I, T)>,
    ) -> Result<SeedLists, DistError> {
        self.select_before(&self.inner.edges, given, |key| self.schema().etype(key))
    }
    /// Validates ids per type, and their times.
    fn select_before<K, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        owners: &Owners,
        given: impl IntoIterator<Item = (K, I, T)>,
        number: impl Fn(K) -> Result<usize, GraphError>,
    ) -> Result<SeedLists, DistError> {
        let (mut times, mut named) = (vec![vec![]; owners.names().len()], vec![]);
        for (key, ids, of) in given {
            let t = number(key)?;
            owners.check_times(t, ids.as_ref(), of.as_ref())?;
            times[t] = of.as_ref().to_vec();
            named.push((t, ids));
        }
        Ok((self.select(owners, named, Ok)?, Some(times)))
    }
}
