//! Defines `Seeds`: the seeds of an epoch or of a batch.

use std::sync::Arc;

use burn_gnn_graph::internal::{check_len, setting};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, NodeKey, Schema};

/// What seeds are. It decides which labels and features belong to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeedKind {
    /// Nodes, a list per node type.
    Nodes,
    /// Edges, a list per edge type.
    Edges,
    /// Objects that only the sampler interprets, such as parts of a graph.
    Other,
}

/// Seeds per type, optionally with times: all seeds that a [`Loader`](crate::Loader) splits into batches, or the seeds of
/// one batch.
///
/// A loader concatenates the seeds of all types in schema order, orders them by its [`Traversal`](crate::Traversal), and
/// splits the result into batches. A shuffled batch therefore mixes types in proportion to their numbers of seeds.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Loader, NeighborSampler, Seeds};
/// let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0])?;
/// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20])?;
/// // Without times a batch would hold later edges.
/// assert!(Loader::new(sampler.clone(), Seeds::nodes(&g, [("_N", [0])])?, 2).is_err());
/// let seeds = Seeds::nodes_before(&g, [("_N", [0, 0], [15, 25])])?;
/// let batch = Loader::new(sampler, seeds, 2)?.epoch(0).next().expect("a batch")?.batch;
/// assert_eq!(batch.total_edges(), 3); // one edge before 15, two before 25
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds<T = u32> {
    kind: SeedKind,
    ids: Vec<Vec<T>>,
    times: Option<Vec<Vec<i64>>>,
    /// Number of seeds of each rank, if ranks have different lists.
    of_each: Option<Vec<u64>>,
    total: usize,
    /// Names of the types, if known.
    schema: Option<Arc<Schema>>,
}

impl Seeds {
    /// Nodes as seeds, given by id per node type.
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; 2³² seeds or more.
    pub fn nodes<N: NodeKey, I: AsRef<[u32]>>(
        g: &Graph,
        seeds: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Self, GraphError> {
        Ok(Self::new(SeedKind::Nodes, g.node_selection("seeds", seeds)?, None)?
            .with_schema(g.schema()))
    }

    /// Nodes with times as seeds, given per node type. Batches contain only edges strictly before the time of the seed. Each
    /// seed has a separate tree, as in [`NeighborSampler::sample_before`](crate::NeighborSampler::sample_before), so that
    /// seeds of different times can be in one batch.
    ///
    /// # Errors
    /// As [`nodes`](Self::nodes); a number of times other than that of seeds.
    pub fn nodes_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        g: &Graph,
        seeds: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<Self, GraphError> {
        let types = g.schema().ntypes();
        let (named, times) = with_times(
            types.len(),
            seeds,
            |key| g.schema().ntype(key),
            |t, e| e.in_relation(&types[t]),
        )?;
        Ok(Self::new(SeedKind::Nodes, g.node_selection("seeds", named)?, Some(times))?
            .with_schema(g.schema()))
    }

    /// Edges as seeds, given by id per edge type.
    ///
    /// # Errors
    /// An unknown or repeated type; an id out of range; 2³² seeds or more.
    pub fn edges<K: EdgeKey, I: AsRef<[u32]>>(
        g: &Graph,
        seeds: impl IntoIterator<Item = (K, I)>,
    ) -> Result<Self, GraphError> {
        Ok(Self::new(SeedKind::Edges, g.edge_selection("edges", seeds)?, None)?
            .with_schema(g.schema()))
    }

    /// Edges with given times as seeds, instead of the times of the edges.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{LinkSampler, Loader, NeighborSampler, Seeds, Traversal};
    /// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?;
    /// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20, 30])?;
    /// // What was known of the edge 2 -> 3 at two moments.
    /// let seeds = Seeds::edges_before(&g, [("_E", [2, 2], [15, 25])])?;
    /// let loader = Loader::new(LinkSampler::new(sampler, "_E")?, seeds, 1)?.with_traversal(Traversal::ByOrder);
    /// let edges = loader.epoch(0).map(|b| Ok(b?.batch.batch.total_edges())).collect::<Result<Vec<_>, burn_gnn_graph::GraphError>>()?;
    /// assert_eq!(edges, [0, 1]); // 1 -> 2 from 20 on
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`edges`](Self::edges); a number of times other than that of seeds.
    pub fn edges_before<K: EdgeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        g: &Graph,
        seeds: impl IntoIterator<Item = (K, I, T)>,
    ) -> Result<Self, GraphError> {
        let (named, times) = with_times(
            g.relations().len(),
            seeds,
            |key| g.schema().etype(key),
            |t, e| g.in_etype(t, e),
        )?;
        Ok(Self::new(SeedKind::Edges, g.edge_selection("edges", named)?, Some(times))?
            .with_schema(g.schema()))
    }
}

impl<T> Seeds<T> {
    /// Seeds from one list per type, in the order of types of the sampler, optionally with the time of each seed.
    ///
    /// # Errors
    /// A number of times other than that of seeds; 2³² seeds or more.
    pub fn new(
        kind: SeedKind,
        ids: Vec<Vec<T>>,
        times: Option<Vec<Vec<i64>>>,
    ) -> Result<Self, GraphError> {
        let total = check_positions(ids.iter().map(Vec::len))?;
        if let Some(times) = &times {
            check_len("times", "one list per type", ids.len(), times.len())?;
            ids.iter().zip(times).try_for_each(|(ids, times)| {
                check_len("times", "one per seed", ids.len(), times.len())
            })?;
        }
        Ok(Self { kind, ids, times, of_each: None, total, schema: None })
    }

    /// Seeds of kind [`SeedKind::Other`], from one list.
    ///
    /// # Errors
    /// 2³² seeds or more.
    pub fn of(seeds: Vec<T>) -> Result<Self, GraphError> {
        Self::new(SeedKind::Other, vec![seeds], None)
    }

    /// Sets the names of the types, for samplers whose graph is not in memory.
    #[must_use]
    pub fn with_schema(self, schema: &Arc<Schema>) -> Self {
        Self { schema: Some(schema.clone()), ..self }
    }

    /// Sets the number of seeds of each rank, if ranks have different lists. A batch takes the same positions of all lists,
    /// and [`total`](Self::total) counts the seeds of all ranks.
    ///
    /// # Errors
    /// A rank with 2³² seeds or more.
    pub fn of_each_process(mut self, of_each: &[u64]) -> Result<Self, GraphError> {
        let longest = of_each.iter().copied().max().unwrap_or(0);
        check_positions(std::iter::once(usize::try_from(longest).unwrap_or(usize::MAX)))?;
        (self.total, self.of_each) = (of_each.iter().sum::<u64>() as usize, Some(of_each.to_vec()));
        Ok(self)
    }

    /// What the seeds are.
    pub fn kind(&self) -> SeedKind {
        self.kind
    }
    /// Seeds per type.
    pub fn ids(&self) -> &[Vec<T>] {
        &self.ids
    }
    /// [`ids`](Self::ids) by value.
    pub(crate) fn into_ids(self) -> Vec<Vec<T>> {
        self.ids
    }
    /// Names of the types, if known.
    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        self.schema.as_ref()
    }
    /// The time of each seed, in the shape of [`ids`](Self::ids).
    pub fn times(&self) -> Option<&[Vec<i64>]> {
        self.times.as_deref()
    }
    /// Number of positions of an epoch: the number of seeds, or the largest number of seeds of a rank.
    pub fn len(&self) -> usize {
        match &self.of_each {
            Some(of_each) => of_each.iter().copied().max().unwrap_or(0) as usize,
            None => self.ids.iter().map(Vec::len).sum(),
        }
    }
    /// Whether there are no seeds.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of seeds of all ranks.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Replaces the ids by those of the seeds that this rank owns, without times.
    #[must_use]
    pub fn with_own(self, ids: Vec<Vec<T>>) -> Self {
        Self { ids, times: None, ..self }
    }

    /// Checks that seeds have this kind and one list per type.
    ///
    /// # Errors
    /// Another kind, or another number of types.
    pub fn expect(&self, kind: SeedKind, types: usize) -> Result<(), GraphError> {
        self.expect_kind(kind)?;
        check_len("seeds", "one list per type of the graph", types, self.ids.len())
    }
    pub(crate) fn expect_kind(&self, kind: SeedKind) -> Result<(), GraphError> {
        if self.kind != kind {
            let name = |kind| match kind {
                SeedKind::Nodes => "nodes (`Seeds::nodes`)",
                SeedKind::Edges => "edges (`Seeds::edges`)",
                SeedKind::Other => "objects of another kind (`Seeds::of`)",
            };
            return Err(setting("seeds", name(kind), name(self.kind)));
        }
        Ok(())
    }
    /// Checks that seeds have no times, for a sampler without times.
    ///
    /// # Errors
    /// Seeds have times.
    pub fn expect_untimed(&self) -> Result<(), GraphError> {
        if self.times.is_some() {
            Err(setting(
                "times",
                "none, because the sampler has no times and samples edges of any time",
                "one per seed",
            ))
        } else {
            Ok(())
        }
    }
}

impl<T: Copy> Seeds<T> {
    /// Selects the seeds at positions of the concatenated list. Positions beyond its end, which exist if another rank has a
    /// longer list, select nothing.
    #[must_use]
    pub fn select(&self, positions: &[u32]) -> Self {
        let mut ends: Vec<usize> = self.ids.iter().map(Vec::len).collect();
        (1..ends.len()).for_each(|t| ends[t] += ends[t - 1]);
        let mut ids = vec![vec![]; self.ids.len()];
        let mut times = self.times.as_ref().map(|_| vec![vec![]; self.ids.len()]);
        for i in positions.iter().map(|&i| i as usize) {
            let t = ends.partition_point(|&end| end <= i);
            let Some(of_type) = self.ids.get(t) else { continue };
            let place = i + of_type.len() - ends[t];
            ids[t].push(of_type[place]);
            times.iter_mut().zip(&self.times).for_each(|(times, all)| times[t].push(all[t][place]));
        }
        let total = match &self.of_each {
            Some(of_each) => positions
                .iter()
                .map(|&i| of_each.iter().filter(|&&n| n > u64::from(i)).count())
                .sum(),
            None => positions.len(),
        };
        Self { kind: self.kind, ids, times, of_each: None, total, schema: self.schema.clone() }
    }

    /// The seeds at positions `start..end`, for loaders of a part of the seeds.
    ///
    /// # Panics
    /// `start` is greater than `end`.
    #[track_caller]
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        assert!(start <= end, "`start` must be at most `end`, got {start} and {end}");
        let positions: Vec<u32> =
            (start.min(self.len()) as u32..end.min(self.len()) as u32).collect();
        let cut = |n: &u64| (*n).clamp(start as u64, end as u64) - start as u64;
        let of_each = self.of_each.as_ref().map(|of_each| of_each.iter().map(cut).collect());
        Self { of_each, ..self.select(&positions) }
    }

    /// Keeps the seeds for which `keep` returns true, with their times. [`total`](Self::total) does not change.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(T) -> bool) -> Self {
        let all = self.ids.iter().flatten().zip(0u32..);
        let positions: Vec<u32> = all.filter(|(id, _)| keep(**id)).map(|(_, i)| i).collect();
        Self { of_each: self.of_each.clone(), total: self.total, ..self.select(&positions) }
    }
}

/// Separates ids and times, by type number.
#[allow(clippy::type_complexity)] // The arguments, sorted.
fn with_times<K, I: AsRef<[u32]>, T: AsRef<[i64]>>(
    types: usize,
    seeds: impl IntoIterator<Item = (K, I, T)>,
    number: impl Fn(K) -> Result<usize, GraphError>,
    in_type: impl Fn(usize, GraphError) -> GraphError,
) -> Result<(Vec<(usize, I)>, Vec<Vec<i64>>), GraphError> {
    let (mut named, mut times) = (vec![], vec![vec![]; types]);
    for (key, ids, of) in seeds {
        let t = number(key)?;
        check_len("times", "one per seed", ids.as_ref().len(), of.as_ref().len())
            .map_err(|e| in_type(t, e))?;
        times[t] = of.as_ref().to_vec();
        named.push((t, ids));
    }
    Ok((named, times))
}

/// Sums the numbers of seeds, and checks that positions fit `u32`.
fn check_positions(counts: impl Iterator<Item = usize>) -> Result<usize, GraphError> {
    let (count, limit) = (counts.map(|n| n as u64).sum::<u64>(), u64::from(u32::MAX));
    if count <= limit {
        Ok(count as usize)
    } else {
        Err(GraphError::TooLarge { relation: String::new(), what: "seeds", count, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of so many seeds would take 16 GiB.
    #[test]
    fn seeds_beyond_32_bits() {
        let most = u32::MAX as usize;
        assert!(check_positions([most - 7, 0, 7].into_iter()).is_ok());
        let e = check_positions([most - 7, 8].into_iter()).unwrap_err();
        assert!(
            matches!(
                e,
                GraphError::TooLarge {
                    what: "seeds",
                    count: 4_294_967_296,
                    limit: 4_294_967_295,
                    ..
                }
            ),
            "{e}"
        );
        assert_eq!(
            e.to_string(),
            "4294967296 seeds exceed the limit of 4294967295; give fewer at a time"
        );
        let e = Seeds::of(vec![1u64]).unwrap().of_each_process(&[1, 1 << 32]).unwrap_err();
        assert!(matches!(e, GraphError::TooLarge { what: "seeds", .. }), "{e}");
    }

    #[test]
    fn positions_count_type_after_type() {
        let seeds = Seeds::new(
            SeedKind::Nodes,
            vec![vec![5, 6], vec![], vec![7, 8]],
            Some(vec![vec![0, 1], vec![], vec![2, 3]]),
        )
        .unwrap();
        let some = seeds.select(&[3, 0, 3, 2]);
        assert_eq!((some.ids(), some.total()), (&[vec![5], vec![], vec![8, 8, 7]][..], 4));
        assert_eq!(some.times(), Some(&[vec![0], vec![], vec![3, 3, 2]][..]));
        let even = some.filter(|id| id != 8);
        assert_eq!(
            (even.ids(), even.times(), even.total()),
            (&[vec![5], vec![], vec![7]][..], Some(&[vec![0], vec![], vec![2]][..]), 4)
        );
        let part = seeds.slice(1, 3);
        assert_eq!((part.ids(), part.len(), part.total()), (&[vec![6], vec![], vec![7]][..], 2, 2));
        assert_eq!(seeds.slice(3, 9).ids(), [vec![], vec![], vec![8]]);
    }

    #[test]
    fn each_process_has_a_list() {
        let seeds = Seeds::of(vec![10, 20]).unwrap().of_each_process(&[2, 5]).unwrap();
        assert_eq!((seeds.len(), seeds.total()), (5, 7));
        let some = seeds.select(&[4, 1]);
        assert_eq!((some.ids(), some.total()), (&[vec![20]][..], 3));
        let rest = seeds.slice(1, 4);
        assert_eq!((rest.len(), rest.total(), rest.ids()), (3, 4, &[vec![20]][..]));
    }

    #[test]
    fn what_is_refused() {
        let e = Seeds::new(SeedKind::Other, vec![vec![1]], Some(vec![vec![]])).unwrap_err();
        assert!(matches!(e, GraphError::Length { why: "one per seed", .. }), "{e}");
        let e = Seeds::of(vec![1]).unwrap().expect(SeedKind::Edges, 1).unwrap_err().to_string();
        assert_eq!(
            e,
            "`seeds`: expected edges (`Seeds::edges`), got objects of another kind (`Seeds::of`)"
        );
    }
}
