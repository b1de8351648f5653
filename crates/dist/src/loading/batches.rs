//! Batches of nodes.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::{Int, Tensor};
use burn_gnn_graph::{EdgeKey, GraphError, NodeKey, SampleKey, Traversal};
use hashbrown::HashMap;

use super::{DistBatchMaker, LoaderTimes};
use crate::exchange::{agree, digest, same};
use crate::graph::WantedRows;
use crate::{Communicator, DistBatch, DistError, DistGraph, DistSampler, HotRows, Split};

/// This rank's share of a batch with what a network reads.
#[derive(Clone, Debug)]
pub struct DistLoaded<B> {
    /// Blocks (and pairs).
    pub batch: B,
    /// Own seeds: type-wise ids of nodes, per node type, or ids of edges in the input graph, per edge type.
    pub seeds: Vec<Vec<u64>>,
    /// Seeds of the batch on all ranks. A mean over the batch divides sums over own seeds by it; an empty share adds nothing.
    pub global_seeds: usize,
    /// Features of the input nodes, per node type, where there are any, on the graph's device.
    pub x: Vec<Option<Tensor<2>>>,
    /// Features of the edges of each block, per edge type, where there are any.
    pub edge_x: Vec<Vec<Option<Tensor<2>>>>,
    /// Features of own seed edges, per edge type as [`seeds`](Self::seeds), where there are any; empty where seeds are nodes.
    pub seed_x: Vec<Option<Tensor<2>>>,
    /// Labels of own seeds, per type as [`seeds`](Self::seeds), where there are any.
    pub labels: Vec<Option<Tensor<1, Int>>>,
}

impl<B> DistLoaded<B> {
    /// Own seeds of all types.
    pub fn num_seeds(&self) -> usize {
        self.seeds.iter().map(Vec::len).sum()
    }
    /// Own seeds as a share of all, in `0.0..=1.0`.
    pub fn weight(&self) -> f64 {
        self.num_seeds() as f64 / self.global_seeds.max(1) as f64
    }
}

/// Columns that go with a batch, by type and name, and caches of those of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    nodes: Vec<(usize, String)>,
    edges: Vec<(usize, String)>,
    /// Of seeds, which are nodes or edges.
    labels: Vec<(usize, String)>,
    caches: Arc<Vec<HotRows>>,
}

/// What is read from the columns for a batch; see [`DistLoaded`].
pub(super) struct Rows {
    pub(super) x: Vec<Option<Tensor<2>>>,
    pub(super) edge_x: Vec<Vec<Option<Tensor<2>>>>,
    pub(super) seed_x: Vec<Option<Tensor<2>>>,
    pub(super) labels: Vec<Option<Tensor<1, Int>>>,
}

/// What a column is read as.
#[derive(Clone, Copy)]
enum ReadAs {
    Features,
    Labels,
}

/// Adds a column of nodes or edges of type `ty` to those of other types.
fn add(
    columns: &mut Vec<(usize, String)>,
    graph: &DistGraph,
    (is_node, ty): (bool, usize),
    column: &str,
    as_: ReadAs,
) -> Result<(), DistError> {
    let (rows, owners) = (graph.column_rows(is_node, ty, column)?, graph.owners(is_node));
    let (row, dtype) = (rows.row_shape(), rows.dtype());
    let (fits, expected) = match as_ {
        ReadAs::Features => (row.len() == 1 && dtype.is_float(), "Float tensor of rank 2"),
        ReadAs::Labels => (row.is_empty() && (dtype.is_int() || dtype.is_uint()), "Int tensor of rank 1"),
    };
    let name = &owners.names()[ty];
    if !fits {
        let frame = format!("{}s of `{name}`", owners.what());
        let (expected, actual) = (expected.into(), format!("{dtype:?} tensor with rows of shape {row:?}"));
        return Err(GraphError::ColumnType { frame, name: column.into(), expected, actual }.into());
    }
    if columns.iter().any(|c| c.0 == ty) {
        let what = if is_node { "node type" } else { "edge type" };
        return Err(GraphError::Duplicate { what, name: name.clone() }.into());
    }
    columns.push((ty, column.to_owned()));
    Ok(())
}

impl Inputs {
    pub(super) fn add_nodes(&mut self, graph: &DistGraph, ntype: impl NodeKey, column: &str) -> Result<(), DistError> {
        let ty = graph.schema().ntype(ntype)?;
        add(&mut self.nodes, graph, (true, ty), column, ReadAs::Features)
    }
    pub(super) fn add_edges(&mut self, graph: &DistGraph, etype: impl EdgeKey, column: &str) -> Result<(), DistError> {
        let ty = graph.schema().etype(etype)?;
        add(&mut self.edges, graph, (false, ty), column, ReadAs::Features)
    }
    pub(super) fn add_labels(&mut self, graph: &DistGraph, is_node: bool, ty: usize, column: &str) -> Result<(), DistError> {
        add(&mut self.labels, graph, (is_node, ty), column, ReadAs::Labels)
    }
    pub(super) fn cache(&mut self, graph: &DistGraph, rows: usize) -> Result<(), DistError> {
        let hot = self.stored(graph).map(|(t, column)| graph.hot_rows(&graph.ntypes()[*t], column, rows));
        self.caches = Arc::new(hot.collect::<Result<_, _>>()?);
        Ok(())
    }
    /// Columns of nodes whose rows do not change.
    fn stored<'a>(&'a self, graph: &'a DistGraph) -> impl Iterator<Item = &'a (usize, String)> {
        self.nodes.iter().filter(|(t, column)| graph.stored(true, *t, column).is_ok())
    }
    /// Keeps the rows of other ranks that were asked for most often, equal ones by id.
    fn cache_asked(&mut self, graph: &DistGraph, asked: &[HashMap<u64, u32>], rows: usize) -> Result<(), DistError> {
        let hot = self.stored(graph).map(|(t, column)| {
            let mut ids: Vec<(u64, u32)> = asked[*t].iter().map(|(&id, &count)| (id, count)).collect();
            ids.sort_unstable_by_key(|&(id, count)| (std::cmp::Reverse(count), id));
            graph.keep_rows(&graph.ntypes()[*t], column, Ok(ids.into_iter().take(rows).map(|i| i.0).collect()))
        });
        self.caches = Arc::new(hot.collect::<Result<_, _>>()?);
        Ok(())
    }
    pub(super) fn caches(&self) -> &[HotRows] {
        &self.caches
    }
    /// Features of the input nodes, of the edges of each block and of own seeds that are edges, and labels of own seeds, given by type-wise
    /// id per node type or edge type. Collective.
    pub(super) fn gather(&self, graph: &DistGraph, batch: &DistBatch, (of_nodes, seeds): (bool, &[Vec<u64>])) -> Result<Rows, DistError> {
        let blocks = batch.mini.blocks.len();
        let mut wanted: Vec<WantedRows<'_>> = vec![];
        wanted.extend(self.nodes.iter().map(|(t, column)| (true, *t, column.as_str(), batch.input_nodes(*t))));
        for block in 0..blocks {
            wanted.extend(self.edges.iter().map(|(t, column)| (false, *t, column.as_str(), batch.edge_ids(block, *t))));
        }
        if !of_nodes {
            wanted.extend(self.edges.iter().map(|(t, column)| (false, *t, column.as_str(), &seeds[*t][..])));
        }
        wanted.extend(self.labels.iter().map(|(t, column)| (of_nodes, *t, column.as_str(), &seeds[*t][..])));
        let columns = if wanted.is_empty() { vec![] } else { graph.gather_many(&wanted, &self.caches)? };
        let mut columns = columns.into_iter();
        let (ntypes, etypes) = (graph.ntypes().len(), graph.etypes().len());
        let (edge_x, seed_x) = (vec![vec![None; etypes]; blocks], vec![None; if of_nodes { 0 } else { etypes }]);
        let mut out = Rows { x: vec![None; ntypes], edge_x, seed_x, labels: vec![None; seeds.len()] };
        for ((t, _), column) in self.nodes.iter().zip(columns.by_ref()) {
            out.x[*t] = column.tensor();
        }
        for edge_x in out.edge_x.iter_mut().chain(Some(&mut out.seed_x).filter(|_| !of_nodes)) {
            for ((t, _), column) in self.edges.iter().zip(columns.by_ref()) {
                edge_x[*t] = column.tensor();
            }
        }
        for ((t, _), column) in self.labels.iter().zip(columns.by_ref()) {
            out.labels[*t] = column.tensor();
        }
        Ok(out)
    }
}

/// Batches of nodes, of one type or several; see [`NodeBatches`](burn_gnn_graph::NodeBatches), where the same is said of times.
#[derive(Clone, Debug)]
pub struct DistNodeBatches {
    sampler: DistSampler,
    seeds: Arc<Seeds>,
    inputs: Inputs,
}

#[derive(Debug)]
enum Seeds {
    /// One list for all ranks, type after type; here the type-wise id of each seed that is own, else [`ELSEWHERE`].
    Shared {
        ids: Vec<u64>,
        /// Where the seeds of each node type begin, and the end.
        offsets: Vec<usize>,
        times: Option<Vec<i64>>,
    },
    /// A list per rank of nodes of one type, and how many each has.
    Each { ntype: usize, split: Split },
}

const ELSEWHERE: u64 = u64::MAX;

/// Seeds per node type, and the times of all of them.
type SeedList = (Vec<Vec<u64>>, Option<Vec<i64>>);

/// Own seeds of a batch, per node type.
struct Own {
    seeds: Vec<Vec<u64>>,
    times: Option<Vec<Vec<i64>>>,
    /// Seeds on all ranks.
    global: usize,
}

impl DistNodeBatches {
    /// Blocks around seeds, given per node type by their ids in the input graph: the same lists on all ranks, each of which takes
    /// those that it owns. Collective.
    ///
    /// # Errors
    /// Unknown type or one named twice, an id out of range, other lists on another rank, edges of the sampler have times; on all ranks.
    pub fn new<N: NodeKey, I: AsRef<[u64]>>(sampler: DistSampler, seeds: impl IntoIterator<Item = (N, I)>) -> Result<Self, DistError> {
        let checked = sampler.whole.check_untimed().map_err(DistError::from);
        let seeds = checked.and_then(|()| sampler.graph().select_nodes(seeds));
        Self::shared(sampler, seeds.map(|seeds| (seeds, None)))
    }
    /// Blocks around seeds over edges before a time of each seed; otherwise as [`new`](Self::new). Times travel with the seeds to the
    /// owners of what is found. Collective.
    ///
    /// # Errors
    /// As [`new`](Self::new); not one time per seed; no edges of the sampler have times; on all ranks.
    pub fn before<N: NodeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        sampler: DistSampler,
        seeds: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<Self, DistError> {
        let seeds = sampler.seeds_before(seeds);
        Self::shared(sampler, seeds.map(|(seeds, times)| (seeds, Some(times.concat()))))
    }
    /// Seeds per node type, and times of all.
    fn shared(sampler: DistSampler, seeds: Result<SeedList, DistError>) -> Result<Self, DistError> {
        let g = sampler.graph();
        let narrow = |seeds: SeedList| {
            let count = seeds.0.iter().map(|ids| ids.len() as u64).sum::<u64>();
            let limit = u64::from(u32::MAX);
            if count <= limit { Ok(seeds) } else { Err(DistError::TooLarge { what: "seeds", count, limit }) }
        };
        let (seeds, times) = agree(&**g.comm(), "seeds: list", seeds.and_then(narrow))?;
        let lists = seeds.iter().flat_map(|ids| std::iter::once(ids.len() as u64).chain(ids.iter().copied()));
        let all = lists.chain(times.iter().flatten().map(|&time| time as u64));
        same(&**g.comm(), "seeds: digest", "the list of seeds", digest(all).to_le_bytes().to_vec())?;
        let (mut ids, mut offsets) = (vec![], vec![0]);
        for (t, seeds) in seeds.iter().enumerate() {
            let own = g.inner.own_originals(t);
            let row = |seed: &u64| own.binary_search(seed).ok().filter(|&row| g.inner.is_own(true, t, row as u32));
            ids.extend(seeds.iter().map(|seed| row(seed).map_or(ELSEWHERE, |row| g.inner.nodes.id(t, row as u64))));
            offsets.push(ids.len());
        }
        Ok(Self { sampler, seeds: Arc::new(Seeds::Shared { ids, offsets, times }), inputs: Inputs::default() })
    }
    /// Blocks around the seeds of a [`Split`]: every rank cuts its own list into batches, whose size counts per rank. Losses
    /// then depend on the number of ranks.
    ///
    /// # Errors
    /// Unknown type; edges of the sampler have times, for which seeds are given to [`before`](Self::before).
    pub fn from_split(sampler: DistSampler, ntype: impl NodeKey, split: Split) -> Result<Self, DistError> {
        sampler.whole.check_untimed()?;
        let ntype = sampler.graph().schema().ntype(ntype)?;
        sampler.graph().inner.nodes.check(ntype, &split.ids)?;
        Ok(Self { sampler, seeds: Arc::new(Seeds::Each { ntype, split }), inputs: Inputs::default() })
    }
    /// Features of the nodes of a type, in a float column of rank 2. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_features(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_nodes(self.sampler.graph(), ntype, column)?;
        Ok(self)
    }
    /// Features of the edges of a type, in a float column of rank 2, for the edges of the blocks. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_edges(self.sampler.graph(), etype, column)?;
        Ok(self)
    }
    /// Label of each node of a type, in an integer column of rank 1: seeds of the type come with theirs. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_labels(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        let ty = self.sampler.graph().schema().ntype(ntype)?;
        self.inputs.add_labels(self.sampler.graph(), true, ty, column)?;
        Ok(self)
    }
    /// Keeps at most `rows` of the hottest rows of other ranks for each column; see [`DistGraph::hot_rows`]. Collective.
    ///
    /// # Errors
    /// Some rank failed.
    pub fn with_cache(mut self, rows: usize) -> Result<Self, DistError> {
        self.inputs.cache(self.sampler.graph(), rows)?;
        Ok(self)
    }
    /// Keeps at most `rows` of the rows of other ranks for each column: those that `trial.batches` batches of `trial.batch_size` seeds ask
    /// for most often. How often a row is asked for there estimates the probability that a batch needs it, beyond the neighbours of the
    /// part too (pre-sampling: Yang et al., "GNNLab: a factored system for sample-based GNN training over GPUs", EuroSys 2022). The draws
    /// are others than those of training. Call it when all columns are named. Collective, with the same arguments on all ranks.
    ///
    /// # Errors
    /// [`DistError::Config`] for a batch size of 0; some rank failed.
    ///
    /// # Cost
    /// Samples the batches without fetching features; 12 bytes per row of another rank that was met.
    pub fn with_presampled_cache(mut self, rows: usize, trial: Presampling) -> Result<Self, DistError> {
        if trial.batch_size == 0 {
            return Err(DistError::Config { arg: "batch_size", expected: "at least one seed".into(), found: "0".into() });
        }
        let g = self.sampler.graph().clone();
        let mut asked: Vec<HashMap<u64, u32>> = vec![HashMap::new(); g.ntypes().len()];
        let mut order = Traversal::Shuffled.positions(self.num_seeds(), trial.seed, TRIAL);
        order.truncate(trial.batches.saturating_mul(trial.batch_size));
        for (step, positions) in (0..).zip(order.chunks(trial.batch_size)) {
            let batch = self.blocks(&self.own(positions), SampleKey::new(trial.seed).at(TRIAL, step))?;
            for (t, asked) in asked.iter_mut().enumerate() {
                let remote = |id: &&u64| g.inner.nodes.own_row(t, **id).is_none();
                batch.input_nodes(t).iter().filter(remote).for_each(|&id| *asked.entry(id).or_default() += 1);
            }
        }
        self.inputs.cache_asked(&g, &asked, rows)?;
        Ok(self)
    }
    /// The caches, one per stored column.
    pub fn caches(&self) -> &[HotRows] {
        self.inputs.caches()
    }
    /// The graph that is sampled.
    pub fn graph(&self) -> &DistGraph {
        self.sampler.graph()
    }

    /// Own seeds at these positions.
    fn own(&self, positions: &[u32]) -> Own {
        let mut seeds = vec![vec![]; self.sampler.graph().ntypes().len()];
        match &*self.seeds {
            Seeds::Shared { ids, offsets, times: all } => {
                let mut times = all.as_ref().map(|_| vec![vec![]; seeds.len()]);
                for i in positions.iter().map(|&i| i as usize).filter(|&i| ids[i] != ELSEWHERE) {
                    let t = offsets.partition_point(|&first| first <= i) - 1;
                    seeds[t].push(ids[i]);
                    times.iter_mut().zip(all).for_each(|(times, all)| times[t].push(all[i]));
                }
                Own { seeds, times, global: positions.len() }
            }
            Seeds::Each { ntype, split } => {
                let on_ranks = |&i: &u32| split.counts.iter().filter(|&&n| n > u64::from(i)).count();
                seeds[*ntype] = positions.iter().filter_map(|&i| split.ids.get(i as usize).copied()).collect();
                Own { seeds, times: None, global: positions.iter().map(on_ranks).sum() }
            }
        }
    }
    /// Blocks around own seeds. Collective.
    fn blocks(&self, own: &Own, key: SampleKey) -> Result<DistBatch, DistError> {
        let excluded = vec![vec![]; self.sampler.graph().etypes().len()];
        self.sampler.grow(&own.seeds, own.times.as_deref(), &excluded, key)
    }
}

/// The epoch of pre-sampling, which no training reaches.
const TRIAL: u64 = u64::MAX;

/// Batches that are sampled before training, to learn what they ask for; see [`DistNodeBatches::with_presampled_cache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presampling {
    /// How many; no more than an epoch has.
    pub batches: usize,
    /// Seeds of a batch, as [`DistLoader::new`](crate::DistLoader::new) counts them.
    pub batch_size: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl DistBatchMaker for DistNodeBatches {
    type Batch = DistLoaded<DistBatch>;

    fn comm(&self) -> &Arc<dyn Communicator> {
        self.sampler.graph().comm()
    }
    fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.sampler = self.sampler.with_communicator(comm);
        self
    }
    fn num_seeds(&self) -> usize {
        match &*self.seeds {
            Seeds::Shared { ids, .. } => ids.len(),
            Seeds::Each { split, .. } => split.counts.iter().max().map_or(0, |&n| n as usize),
        }
    }
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError> {
        let own = self.own(positions);
        let g = self.sampler.graph();
        let begin = Instant::now();
        let batch = self.blocks(&own, key)?;
        times.sampling += begin.elapsed();
        let begin = Instant::now();
        let Rows { x, edge_x, seed_x, labels } = self.inputs.gather(g, &batch, (true, &own.seeds))?;
        times.fetching += begin.elapsed();
        let loaded = DistLoaded { batch, seeds: own.seeds, global_seeds: own.global, x, edge_x, seed_x, labels };
        times.seeds += loaded.num_seeds();
        times.edges += loaded.batch.total_edges();
        Ok(loaded)
    }
}
