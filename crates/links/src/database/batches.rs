//! Makes training batches: entities of about one time, and the destinations that they are compared with.

use std::collections::{BTreeSet, HashMap};

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::Targets;
use burn_gnn_graph::Stream;
use burn_gnn_models::{DatabaseBatch, DatabaseSampler, DatabaseSeeds, ModelError};
use burn_gnn_sampling::SampleKey;

use crate::database::destinations::Destinations;
use crate::database::options::RecommendationOptions;
use crate::database::seen_rows::SeenRows;

/// Seeds that a batch has at least, where seeds with later times are left.
const LEAST_SEEDS: usize = 16;

/// Training seeds with the destinations that they are compared with.
pub(super) struct RecommendationBatch {
    pub(super) entities: DatabaseBatch,
    pub(super) destinations: DatabaseBatch,
    /// Learned embedding of each destination.
    pub(super) embeddings: Vec<Option<u32>>,
    /// Terms of rows that refer to both, `[entities · destinations, terms]`; none without terms.
    pub(super) terms: Option<Tensor<2>>,
    /// Entity and destination of each label.
    pub(super) links: Vec<(u32, u32)>,
    /// The first destinations, which are drawn, are the negatives of all links.
    pub(super) num_negatives: usize,
    /// 1 where a negative is a label of the entity of the link, `[links, negatives]`.
    pub(super) masked: Vec<f32>,
    /// Logarithm of the expected number of times that a negative is drawn.
    pub(super) log_q: f64,
}

/// Makes batches of seeds.
pub(super) struct BatchMaker<'a> {
    pub(super) samplers: [DatabaseSampler; 2],
    pub(super) seen: SeenRows<'a>,
    pub(super) destinations: Destinations,
    pub(super) seeds: DatabaseSeeds,
    pub(super) options: &'a RecommendationOptions,
    /// Longest time between a batch and the latest row that it sees.
    pub(super) gap: i64,
    pub(super) device: Device,
}

impl BatchMaker<'_> {
    /// Positions of labelled seeds, batch by batch, in the order of an epoch. Seeds of a batch have one time, or follow
    /// each other in time where few have the same.
    pub(super) fn groups(&self, epoch: u64) -> Vec<Vec<u32>> {
        let of = |position: u32| &self.lists()[position as usize];
        let times = &self.seeds.times;
        let mut positions: Vec<u32> = (0..self.seeds.len() as u32).collect();
        positions.retain(|&at| !of(at).is_empty());
        let seed = self.options.base.seed;
        let order = Stream::new(seed, "order of seeds", epoch);
        let draw = |&at: &u32| (times[at as usize], order.words(at.into(), 0), at);
        positions.sort_by_cached_key(draw);
        let mut groups: Vec<Vec<u32>> = vec![];
        for at in positions {
            match groups.last_mut() {
                Some(group)
                    if group.len() < self.options.base.batch_size
                        && (group.len() < LEAST_SEEDS
                            || times[group[0] as usize] == times[at as usize]) =>
                {
                    group.push(at);
                }
                _ => groups.push(vec![at]),
            }
        }
        let order = Stream::new(seed, "order of batches", epoch);
        let mut numbers: Vec<usize> = (0..groups.len()).collect();
        numbers.sort_by_cached_key(|&i| (order.words(i as u64, 0), i));
        numbers.into_iter().map(|i| std::mem::take(&mut groups[i])).collect()
    }

    fn lists(&self) -> &[Vec<u32>] {
        match &self.seeds.targets {
            Some(Targets::Lists(lists)) => lists,
            _ => &[],
        }
    }

    /// The batch of a group, which is batch number `batch` of its epoch.
    ///
    /// The destinations are encoded once, by the rows that the earliest of the seeds sees.
    pub(super) fn batch(
        &self,
        positions: &[u32],
        epoch: u64,
        batch: u64,
    ) -> Result<RecommendationBatch, ModelError> {
        let seed = self.options.base.seed;
        let draws = Stream::new(seed, "recommendation batch", epoch);
        let mut seeds = self.seeds.select(positions);
        let Some(Targets::Lists(lists)) = seeds.targets.take() else {
            return Err(ModelError::out_of_range("seeds", "seeds with lists as targets", "others"));
        };
        let gap = (draws.uniform(batch, 0) * self.gap as f64) as i64;
        for (time, visible) in seeds.times.iter().zip(&mut seeds.visible) {
            *visible = (*visible).min(time.saturating_sub(gap));
        }
        let time = seeds.times.iter().copied().min().unwrap_or_default();
        let visible = seeds.visible.iter().copied().min().unwrap_or_default();
        let existing = self.destinations.at(visible);
        let mut rows = self.negatives(existing, epoch, batch);
        let num_negatives = rows.len();
        let mut column: HashMap<u32, u32> = rows.iter().copied().zip(0..).collect();
        // Destinations that do not exist yet cannot be learned without reading the future.
        let exists = |row: &u32| self.destinations.exists(*row, visible);
        let mut links = vec![];
        for (i, list) in lists.iter().enumerate() {
            let mut known: Vec<u32> = list.iter().copied().filter(exists).collect();
            let id = u64::from(positions[i]);
            let draws = Stream::new(seed, "labels", epoch << 32 | id);
            if known.len() > self.options.num_positives {
                known.sort_by_cached_key(|&row| (draws.words(row.into(), 0), row));
                known.truncate(self.options.num_positives);
            }
            for row in known {
                let at = *column.entry(row).or_insert_with(|| {
                    rows.push(row);
                    rows.len() as u32 - 1
                });
                links.push((i as u32, at));
            }
        }
        let mut masked = Vec::with_capacity(links.len() * num_negatives);
        for &(i, _) in &links {
            let first = masked.len();
            masked.resize(first + num_negatives, 0.0);
            for row in &lists[i as usize] {
                if let Some(&at) = column.get(row).filter(|&&at| (at as usize) < num_negatives) {
                    masked[first + at as usize] = 1.0;
                }
            }
        }
        let terms = self.terms(&seeds, &column, rows.len());
        let [entities, destinations] = &self.samplers;
        let key = SampleKey::new(seed).at(epoch, batch);
        let all = |n: usize| (0..n as u32).collect::<Vec<u32>>();
        let (n, m) = (seeds.len(), rows.len());
        let of_rows = DatabaseSeeds {
            times: vec![time; m],
            visible: vec![visible; m],
            entities: rows.clone(),
            targets: None,
        };
        let other_key = SampleKey::new(seed ^ OTHER_TOWER).at(epoch, batch);
        Ok(RecommendationBatch {
            entities: entities.with_seeds(seeds)?.batch(&all(n), key)?,
            destinations: destinations.with_seeds(of_rows)?.batch(&all(m), other_key)?,
            embeddings: self.destinations.embeddings(&rows),
            terms,
            links,
            num_negatives,
            masked,
            log_q: (num_negatives as f64 / existing.len().max(1) as f64).min(1.0).ln(),
        })
    }

    /// Distinct destinations, drawn uniformly; all if there are few.
    fn negatives(&self, existing: &[u32], epoch: u64, batch: u64) -> Vec<u32> {
        let (wanted, n) = (self.options.num_negatives, existing.len());
        if n <= wanted {
            return existing.to_vec();
        }
        let draws = Stream::new(self.options.base.seed, "negative destinations", epoch);
        let first = batch << 32;
        let at = |i: u64| (draws.uniform(first | i, 0) * n as f64) as usize;
        let drawn: BTreeSet<usize> = (0..wanted as u64).map(at).collect();
        drawn.into_iter().map(|at| existing[at]).collect()
    }

    /// Terms of all pairs.
    fn terms(
        &self,
        seeds: &DatabaseSeeds,
        column: &HashMap<u32, u32>,
        width: usize,
    ) -> Option<Tensor<2>> {
        let terms = self.seen.num_terms();
        if terms == 0 {
            return None;
        }
        let mut values = vec![0f32; seeds.len() * width * terms];
        for i in 0..seeds.len() {
            let of = self.seen.of(seeds.entities[i], seeds.times[i], seeds.visible[i]);
            for (row, found) in of {
                if let Some(&at) = column.get(&row) {
                    let first = (i * width + at as usize) * terms;
                    values[first..first + terms].copy_from_slice(&found);
                }
            }
        }
        let shape = [seeds.len() * width, terms];
        Some(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }
}

/// Sets the draws of the tower of destinations apart from those of the entities.
const OTHER_TOWER: u64 = 0x9e37_79b9_7f4a_7c15;
