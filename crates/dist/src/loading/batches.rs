//! Batches of nodes.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::Tensor;
use burn_gnn_graph::{GraphError, SampleKey, Traversal};
use hashbrown::HashMap;

use super::{DistBatchMaker, LoaderTimes};
use crate::exchange::{agree, digest, same};
use crate::{Communicator, DistBatch, DistError, DistGraph, DistSampler, HotRows, Split};

/// This rank's share of a batch with what a network reads.
#[derive(Clone, Debug)]
pub struct DistLoaded<B> {
    /// Blocks (and pairs).
    pub batch: B,
    /// Own seeds: type-wise ids of nodes, or ids of edges in the input graph.
    pub seeds: Vec<u64>,
    /// Seeds of the batch on all ranks. A mean over the batch divides sums over own seeds by it; an empty share adds nothing.
    pub global_seeds: usize,
    /// Features of the input nodes, per node type, where there are any, on the graph's device.
    pub x: Vec<Option<Tensor<2>>>,
}

impl<B> DistLoaded<B> {
    /// Own seeds as a share of all, in `0.0..=1.0`.
    pub fn weight(&self) -> f64 {
        self.seeds.len() as f64 / self.global_seeds.max(1) as f64
    }
}

/// Feature columns that go with a batch, and their caches.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    columns: Vec<(usize, String)>,
    caches: Arc<Vec<HotRows>>,
}

impl Inputs {
    pub(super) fn add(&mut self, graph: &DistGraph, ntype: &str, column: &str) -> Result<(), DistError> {
        let t = graph.schema().ntype(ntype)?;
        let data = graph.stored(true, t, column)?;
        let shape = data.shape();
        if shape.num_dims() != 2 || !data.dtype().is_float() {
            let (expected, actual) = ("Float tensor of rank 2".into(), format!("{:?} tensor of shape {shape:?}", data.dtype()));
            return Err(GraphError::ColumnType { frame: format!("nodes of `{ntype}`"), name: column.into(), expected, actual }.into());
        }
        if self.columns.iter().any(|c| c.0 == t) {
            return Err(GraphError::Duplicate { what: "node type", name: ntype.to_owned() }.into());
        }
        self.columns.push((t, column.to_owned()));
        Ok(())
    }
    pub(super) fn cache(&mut self, graph: &DistGraph, rows: usize) -> Result<(), DistError> {
        let hot = self.columns.iter().map(|(t, column)| graph.hot_rows(&graph.ntypes()[*t], column, rows));
        self.caches = Arc::new(hot.collect::<Result<_, _>>()?);
        Ok(())
    }
    /// Keeps the rows of other ranks that were asked for most often, equal ones by id.
    fn cache_asked(&mut self, graph: &DistGraph, asked: &[HashMap<u64, u32>], rows: usize) -> Result<(), DistError> {
        let hot = self.columns.iter().map(|(t, column)| {
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
    /// Features of the input nodes. Collective.
    pub(super) fn gather(&self, graph: &DistGraph, batch: &DistBatch) -> Result<Vec<Option<Tensor<2>>>, DistError> {
        let mut x = vec![None; graph.ntypes().len()];
        if self.columns.is_empty() {
            return Ok(x);
        }
        let wanted: Vec<_> = self.columns.iter().map(|(t, column)| (*t, column.as_str(), batch.input_nodes(*t))).collect();
        for ((t, _), column) in self.columns.iter().zip(graph.gather_many(&wanted, &self.caches)?) {
            x[*t] = column.tensor();
        }
        Ok(x)
    }
}

/// Batches of nodes of one type.
#[derive(Clone, Debug)]
pub struct DistNodeBatches {
    sampler: DistSampler,
    ntype: usize,
    seeds: Arc<Seeds>,
    inputs: Inputs,
}

#[derive(Debug)]
enum Seeds {
    /// One list for all ranks; here the type-wise id of each seed that is own, else [`ELSEWHERE`].
    Shared(Vec<u64>),
    /// A list per rank, and how many each has.
    Each(Split),
}

const ELSEWHERE: u64 = u64::MAX;

impl DistNodeBatches {
    /// Blocks around seeds, given by their ids in the input graph: the same list on all ranks, each of which takes those that it owns.
    /// Collective.
    ///
    /// # Errors
    /// Unknown type, an id out of range, another list on another rank; on all ranks.
    pub fn new(sampler: DistSampler, ntype: &str, seeds: &[u64]) -> Result<Self, DistError> {
        let g = sampler.graph();
        let check = || {
            let t = g.schema().ntype(ntype)?;
            g.inner.nodes.check(t, seeds)?;
            u32::try_from(seeds.len()).map_err(|_| DistError::TooLarge {
                what: "seeds",
                count: seeds.len() as u64,
                limit: u64::from(u32::MAX),
            })?;
            Ok(t)
        };
        let t = agree(&**g.comm(), "seeds: list", check())?;
        same(&**g.comm(), "seeds: digest", "the list of seeds", digest(seeds.iter().copied()).to_le_bytes().to_vec())?;
        let (own, first) = (g.inner.own_originals(t), g.inner.nodes.first(t));
        let id = |seed: &u64| own.binary_search(seed).map_or(ELSEWHERE, |row| first + row as u64);
        let seeds = Arc::new(Seeds::Shared(seeds.iter().map(id).collect()));
        Ok(Self { sampler, ntype: t, seeds, inputs: Inputs::default() })
    }
    /// Blocks around the seeds of a [`Split`]: every rank cuts its own list into batches, whose size counts per rank. Losses
    /// then depend on the number of ranks.
    ///
    /// # Errors
    /// Unknown type.
    pub fn from_split(sampler: DistSampler, ntype: &str, split: Split) -> Result<Self, DistError> {
        let t = sampler.graph().schema().ntype(ntype)?;
        sampler.graph().inner.nodes.check(t, &split.ids)?;
        Ok(Self { sampler, ntype: t, seeds: Arc::new(Seeds::Each(split)), inputs: Inputs::default() })
    }
    /// Features of the nodes of a type, in a float column of rank 2. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_features(mut self, ntype: &str, column: &str) -> Result<Self, DistError> {
        self.inputs.add(self.sampler.graph(), ntype, column)?;
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
            let batch = self.blocks(&self.own(positions).0, SampleKey::new(trial.seed).at(TRIAL, step))?;
            for (t, asked) in asked.iter_mut().enumerate() {
                let own = g.inner.nodes.own(t);
                batch.input_nodes(t).iter().filter(|id| !own.contains(id)).for_each(|&id| *asked.entry(id).or_default() += 1);
            }
        }
        self.inputs.cache_asked(&g, &asked, rows)?;
        Ok(self)
    }
    /// The caches, one per column.
    pub fn caches(&self) -> &[HotRows] {
        self.inputs.caches()
    }
    /// The graph that is sampled.
    pub fn graph(&self) -> &DistGraph {
        self.sampler.graph()
    }

    /// Own seeds at these positions, and how many there are on all ranks.
    fn own(&self, positions: &[u32]) -> (Vec<u64>, usize) {
        match &*self.seeds {
            Seeds::Shared(ids) => (positions.iter().map(|&i| ids[i as usize]).filter(|&id| id != ELSEWHERE).collect(), positions.len()),
            Seeds::Each(split) => {
                let on_ranks = |&i: &u32| split.counts.iter().filter(|&&n| n > u64::from(i)).count();
                let own = positions.iter().filter_map(|&i| split.ids.get(i as usize).copied()).collect();
                (own, positions.iter().map(on_ranks).sum())
            }
        }
    }
    /// Blocks around own seeds. Collective.
    fn blocks(&self, seeds: &[u64], key: SampleKey) -> Result<DistBatch, DistError> {
        let g = self.sampler.graph();
        let mut by_type = vec![vec![]; g.ntypes().len()];
        by_type[self.ntype] = seeds.to_vec();
        self.sampler.grow(&by_type, &vec![vec![]; g.etypes().len()], key)
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
            Seeds::Shared(ids) => ids.len(),
            Seeds::Each(split) => split.counts.iter().max().map_or(0, |&n| n as usize),
        }
    }
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError> {
        let (seeds, global_seeds) = self.own(positions);
        let g = self.sampler.graph();
        let begin = Instant::now();
        let batch = self.blocks(&seeds, key)?;
        times.sampling += begin.elapsed();
        let begin = Instant::now();
        let x = self.inputs.gather(g, &batch)?;
        times.fetching += begin.elapsed();
        times.seeds += seeds.len();
        times.edges += batch.total_edges();
        Ok(DistLoaded { batch, seeds, global_seeds, x })
    }
}
