//! Samples the rows that seeds of a database see, with the inputs of the encoders.

use std::sync::Arc;

use burn::tensor::Device;
use burn_gnn_graph::Stream;
use burn_gnn_graph::internal::check_ids;
use burn_gnn_sampling::{
    Block, Fanouts, Loader, MiniBatch, NeighborSampler, SampleKey, SampledBatch, Sampler, SeedKind,
    Seeds, Strategy,
};

use crate::error::ModelError;
use crate::relational::columns::table_rows::TableInput;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::relational_data::RelationalData;
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::row_sets::row_set_input::{RowSets, check_paths, row_sets};

/// Reads rows around each seed of a task, up to the time that the seed sees, and prepares the inputs of the encoders:
/// sampled trees for message passing ([`new`](Self::new)), or the latest rows along paths of foreign keys
/// ([`of_paths`](Self::of_paths)).
///
/// Seeds are numbers of rows of [`DatabaseSeeds`]. Each seed has a separate tree, so that a row that two seeds reach is
/// encoded twice, with its age at the time of either.
///
/// # Repeatability
/// A batch is a function of its seeds and its key, and of the rows that its seeds see: no later row changes a bit of it.
#[derive(Clone)]
pub struct DatabaseSampler {
    reading: Reading,
    data: RelationalData,
    /// Node type of the entities.
    entity: usize,
    seeds: Arc<DatabaseSeeds>,
    head: usize,
    gaps: Option<Gaps>,
    recency: Option<Recency>,
    /// Rank and number of ranks.
    share: Option<(usize, usize)>,
    device: Device,
}

/// How rows are read.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)] // one per sampler
enum Reading {
    Trees(NeighborSampler),
    Paths(Arc<[RowPath]>),
}

/// How the latest rows are hidden from training seeds.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    longest: i64,
    probability: f64,
}

/// How seeds are drawn by their times.
#[derive(Clone, Debug)]
struct Recency {
    half_life: i64,
    /// Sums of the weights of the seeds up to each one.
    sums: Arc<[f64]>,
}

impl Recency {
    fn new(times: &[i64], half_life: i64) -> Self {
        let latest = times.iter().copied().max().unwrap_or_default();
        let weight = |&time: &i64| (-(latest as f64 - time as f64) / half_life as f64).exp2();
        let sums = times.iter().map(weight).scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { half_life, sums: sums.collect() }
    }

    /// The seed at a share of the sum of all weights.
    fn position(&self, share: f64) -> u32 {
        let total = self.sums.last().copied().unwrap_or_default();
        let above = self.sums.partition_point(|sum| *sum <= share * total);
        above.min(self.sums.len().saturating_sub(1)) as u32
    }
}

/// Batches of a task of a database, for [`fit`](crate::fit): see [`DatabaseSampler::loader`].
pub type DatabaseLoader = Loader<DatabaseSampler>;

/// Rows around some seeds of a database.
#[derive(Clone, Debug)]
pub struct DatabaseBatch {
    /// Blocks, one per hop, with a separate tree per seed; none of a sampler of paths.
    pub sample: MiniBatch,
    /// Rows along paths; `None` of a sampler of trees.
    pub sets: Option<RowSets>,
    /// The seeds, with their targets.
    pub seeds: DatabaseSeeds,
    /// Node type of the entities.
    pub entity: usize,
    /// Key of the batch, by which dropout is keyed.
    pub key: SampleKey,
    /// Input of the encoder of each table, for the input nodes of the first block.
    pub inputs: Vec<TableInput>,
    /// Seed of each input node by table, as position among [`seeds`](Self::seeds).
    pub roots: Vec<Vec<u32>>,
    /// Head of the model that the seeds are for; 0 by default.
    pub head: usize,
    /// Labels of the batch over all ranks; `None` where the batch is not shared.
    pub labelled: Option<usize>,
}

impl DatabaseSampler {
    /// A sampler of `seeds` (rows of `entity_table` of the database) whose batches are on `device`. `fanouts` counts the
    /// rows that each hop draws per row and foreign key; [`Strategy::Latest`] takes the latest ones, instead of a uniform
    /// draw.
    ///
    /// # Errors
    /// An unknown table, seeds that do not fit it, fan-outs that do not fit the graph, another strategy than these two.
    pub fn new(
        data: &RelationalData,
        entity_table: &str,
        seeds: DatabaseSeeds,
        fanouts: impl Into<Fanouts>,
        strategy: Strategy,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let is_known = matches!(strategy, Strategy::Uniform | Strategy::Latest);
        let range = "`Uniform` and `Latest`";
        ModelError::check_range("strategy", range, format!("{strategy:?}"), is_known)?;
        let entity = data.graph().graph().schema().ntype(entity_table)?;
        seeds.check(data.tables()[entity].rows())?;
        let sampler = data.graph().sampler(fanouts)?.with_strategy(strategy)?.with_disjoint();
        Self::reading(data, entity, seeds, Reading::Trees(sampler), device)
    }

    /// A sampler of `seeds` (rows of `entity_table` of the database) that reads the latest rows along paths
    /// ([`RelationalConfig::paths`](crate::RelationalConfig::paths)). It draws no random numbers.
    ///
    /// # Errors
    /// An unknown table, seeds that do not fit it, a path along keys that the graph does not have.
    pub fn of_paths(
        data: &RelationalData,
        entity_table: &str,
        seeds: DatabaseSeeds,
        paths: &[RowPath],
        device: &Device,
    ) -> Result<Self, ModelError> {
        let entity = data.graph().graph().schema().ntype(entity_table)?;
        seeds.check(data.tables()[entity].rows())?;
        check_paths(data, paths)?;
        Self::reading(data, entity, seeds, Reading::Paths(paths.into()), device)
    }

    #[allow(clippy::unnecessary_wraps)] // as the constructors
    fn reading(
        data: &RelationalData,
        entity: usize,
        seeds: DatabaseSeeds,
        reading: Reading,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let (data, device) = (data.clone(), device.clone());
        Ok(Self {
            reading,
            data,
            entity,
            seeds: seeds.into(),
            head: 0,
            gaps: None,
            recency: None,
            share: None,
            device,
        })
    }

    /// Sets the head of the model that the seeds are for, where a model learns several tasks; 0 by default.
    #[must_use]
    pub fn with_head(self, head: usize) -> Self {
        Self { head, ..self }
    }

    /// Hides the latest rows from some seeds: with probability `probability`, a seed sees rows up to its time minus a gap
    /// that is uniform in `0..=longest` microseconds. Gaps are a function of the seed of the loader, the epoch and the
    /// seed. A model that is evaluated on a frozen database learns from seeds with such gaps.
    ///
    /// # Errors
    /// A negative gap; a probability outside of `0.0..=1.0`.
    pub fn with_gaps(self, longest: i64, probability: f64) -> Result<Self, ModelError> {
        ModelError::check_range("longest", "0..", longest, longest >= 0)?;
        let is_valid = (0.0..=1.0).contains(&probability);
        ModelError::check_range("probability", "0.0..=1.0", probability, is_valid)?;
        Ok(Self { gaps: Some(Gaps { longest, probability }), ..self })
    }

    /// Draws seeds by their times: each place of an epoch gets a seed with a probability proportional to
    /// `2^(-age / half_life)`, with replacement, where the age is the time between the seed and the latest one. Draws are
    /// a function of the seed of the loader, the epoch and the place. Where the world changes, a model that is to predict
    /// the next years learns more from recent seeds.
    ///
    /// # Errors
    /// A half-life that is not positive.
    pub fn with_recency(self, half_life: i64) -> Result<Self, ModelError> {
        ModelError::check_range("half_life", "1..", half_life, half_life > 0)?;
        let recency = Some(Recency::new(&self.seeds.times, half_life));
        Ok(Self { recency, ..self })
    }

    /// Keeps every `size`-th seed of each batch, from seed number `rank` of the batch on: the share of one of several ranks.
    /// Draws of seeds and gaps are those of one rank. A rank without a seed gets the first one, without its label.
    ///
    /// # Errors
    /// A rank that is not below `size`.
    pub fn with_share(self, rank: usize, size: usize) -> Result<Self, ModelError> {
        ModelError::check_range("rank", &format!("0..{size}"), rank, rank < size)?;
        Ok(Self { share: (size > 1).then_some((rank, size)), ..self })
    }

    /// The same sampler with other seeds.
    ///
    /// # Errors
    /// Seeds that do not fit the entity table.
    pub fn with_seeds(&self, seeds: DatabaseSeeds) -> Result<Self, ModelError> {
        seeds.check(self.data.tables()[self.entity].rows())?;
        let of = |recency: &Recency| Recency::new(&seeds.times, recency.half_life);
        let recency = self.recency.as_ref().map(of);
        Ok(Self { seeds: seeds.into(), recency, ..self.clone() })
    }

    /// The seeds.
    pub fn seed_rows(&self) -> &DatabaseSeeds {
        &self.seeds
    }

    /// A loader of all seeds in batches of `batch_size`, for [`fit`](crate::fit). Order, prefetching and resuming are as
    /// for every [`Loader`].
    ///
    /// # Errors
    /// `batch_size` is 0.
    pub fn loader(self, batch_size: usize) -> Result<DatabaseLoader, ModelError> {
        let positions = (0..self.seeds.len() as u32).collect();
        let seeds = Seeds::of(positions)?;
        // Worker threads make batches in parallel.
        let reading = match self.reading {
            Reading::Trees(sampler) => Reading::Trees(sampler.with_one_thread()),
            Reading::Paths(paths) => Reading::Paths(paths),
        };
        Loader::new(Self { reading, ..self }, seeds, batch_size)
    }

    /// The batch of the seeds at some positions.
    ///
    /// # Errors
    /// A position that is out of range.
    pub fn batch(&self, positions: &[u32], key: SampleKey) -> Result<DatabaseBatch, ModelError> {
        check_ids("seeds", "the task", positions, self.seeds.len())?;
        let mut seeds = match &self.recency {
            Some(recency) => {
                let draws = Stream::new(key.seed, "recency", key.epoch);
                let draw = |&at: &u32| recency.position(draws.uniform(at.into(), 0));
                self.seeds.select(&positions.iter().map(draw).collect::<Vec<_>>())
            }
            None => self.seeds.select(positions),
        };
        if let Some(Gaps { longest, probability }) = self.gaps {
            let draws = Stream::new(key.seed, "gaps", key.epoch);
            for (i, &position) in positions.iter().enumerate() {
                let draw = |column| draws.uniform(position.into(), column);
                if draw(0) < probability {
                    let gap = (draw(1) * longest as f64) as i64;
                    let until = seeds.times[i].saturating_sub(gap);
                    seeds.visible[i] = seeds.visible[i].min(until);
                }
            }
        }
        let mut labelled = None;
        if let Some((rank, size)) = self.share {
            labelled = Some(seeds.num_labels());
            let own: Vec<u32> = (rank as u32..seeds.len() as u32).step_by(size).collect();
            seeds = match own.is_empty() && !seeds.is_empty() {
                true => seeds.select(&[0]).without_labels(),
                false => seeds.select(&own),
            };
        }
        let sampler = match &self.reading {
            Reading::Trees(sampler) => sampler,
            Reading::Paths(paths) => {
                let sets = row_sets(&self.data, paths, self.entity, &seeds, &self.device)?;
                return Ok(DatabaseBatch {
                    sample: MiniBatch { blocks: vec![], seeds: vec![], roots: None },
                    sets: Some(sets),
                    seeds,
                    entity: self.entity,
                    key,
                    inputs: vec![],
                    roots: vec![],
                    head: self.head,
                    labelled,
                });
            }
        };
        let mut sample = if sampler.is_timed() {
            sampler.sample_before([(self.entity, &seeds.entities, &seeds.visible)], key)?
        } else {
            // No row has a time, so every seed sees all rows.
            sampler.sample([(self.entity, &seeds.entities)], key)?
        };
        let roots = sample.roots.take().unwrap_or_default();
        let input = |t: usize| {
            let (nodes, roots) = (sample.input_nodes(t), &roots[t]);
            let of_roots = |of: &[i64]| roots.iter().map(|&i| of[i as usize]).collect::<Vec<i64>>();
            let (times, seen) = (of_roots(&seeds.times), of_roots(&seeds.visible));
            self.data.tables()[t].input(nodes, &times, &seen, &self.device)
        };
        let inputs = (0..self.data.tables().len()).map(input).collect::<Result<_, _>>()?;
        Ok(DatabaseBatch {
            sample,
            sets: None,
            seeds,
            entity: self.entity,
            key,
            inputs,
            roots,
            head: self.head,
            labelled,
        })
    }
}

impl Sampler for DatabaseSampler {
    type Seed = u32;
    type Batch = DatabaseBatch;
    type Error = ModelError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<DatabaseBatch, ModelError> {
        seeds.expect(SeedKind::Other, 1)?;
        self.batch(&seeds.ids()[0], key)
    }

    fn check(&self, seeds: &Seeds) -> Result<(), ModelError> {
        seeds.expect(SeedKind::Other, 1)?;
        Ok(check_ids("seeds", "the task", &seeds.ids()[0], self.seeds.len())?)
    }
}

impl SampledBatch for DatabaseBatch {
    type Id = u32;

    fn num_blocks(&self) -> usize {
        self.sample.blocks.len()
    }
    fn num_edges(&self) -> usize {
        self.sample.total_edges()
    }
    fn blocks(&self) -> &[Block] {
        &self.sample.blocks
    }
    fn seed_rows(&self, ntype: usize) -> &[u32] {
        self.sample.seeds.get(ntype).map_or(&[], |rows| rows)
    }
}
