//! Recommends and evaluates with a trained model of a recommendation task.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{Database, Part, Targets};
use burn_gnn_models::{
    DatabaseSampler, DatabaseSeeds, Epoch, ModelError, RelationalData, TaskScore, select_rows,
};
use burn_gnn_sampling::SampleKey;

use crate::database::destinations::Destinations;
use crate::database::model::RecommendationModel;
use crate::database::seen_rows::SeenTerms;
use crate::database::spec::RecommendationSpec;
use crate::ranking::id_lists::IdLists;
use crate::ranking::metrics::MetricsAt;
use crate::ranking::top_k::{TopK, top_k_by};

/// A trained model of a recommendation task: [`recommender`](Self::recommender) prepares a database for it.
#[derive(Debug)]
pub struct TrainedRecommendation {
    /// The model, on a plain device.
    pub model: RecommendationModel,
    /// What it reads, how, and what it recommends.
    pub spec: RecommendationSpec,
    /// Every epoch, of a refit after those of the first training; empty for a model that was loaded.
    pub history: Vec<Epoch>,
}

impl TrainedRecommendation {
    /// Prepares a database for recommendations: it may have more rows than the database of training, but must have its
    /// tables and columns.
    ///
    /// # Errors
    /// Tables or columns that the model reads are missing, or have values of another type.
    pub fn recommender(&self, db: &Database) -> Result<Recommender<'_>, ModelError> {
        let data = self.spec.data(db)?;
        let samplers = self.spec.samplers(&data, &self.device())?;
        let (table, keys) = (&self.spec.destination_table, &self.spec.keys);
        let destinations = Destinations::new(db, table, keys)?;
        Ok(Recommender { trained: self, data, samplers, destinations })
    }

    /// The `k` best destinations of rows of the entity table at a time, by rows up to this time. To recommend several
    /// times, prepare the database once by [`recommender`](Self::recommender).
    ///
    /// # Errors
    /// As [`recommender`](Self::recommender); an entity that is not a row of its table; `k = 0`.
    pub fn recommend(
        &self,
        db: &Database,
        entities: &[u32],
        time: i64,
        k: usize,
    ) -> Result<TopK, ModelError> {
        self.recommender(db)?.recommend(&DatabaseSeeds::at(entities, time), k)
    }

    /// Mean average precision of the first `k` destinations ([`RecommendationSpec::k`]) of a part of the task of the model,
    /// or of another task of the same tables; `None` if no row has a label.
    ///
    /// # Errors
    /// As [`recommender`](Self::recommender); a task of other tables.
    pub fn evaluate(
        &self,
        db: &Database,
        task: &str,
        part: Part,
    ) -> Result<Option<TaskScore>, ModelError> {
        let metric = db.task(task)?.metric().to_owned();
        let metrics = self.metrics(db, task, part)?;
        Ok(metrics.map(|at| TaskScore { metric, value: at.map }))
    }

    /// Metrics of the lists of a part of a task: recall, precision, NDCG and mean average precision at `k`. Rows without a
    /// label do not count; `None` if there are no others.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn metrics(
        &self,
        db: &Database,
        task: &str,
        part: Part,
    ) -> Result<Option<MetricsAt>, ModelError> {
        let (task, spec) = (db.task(task)?, &self.spec);
        let found = task.destination.as_ref().map(|of| (&*task.entity_table, &*of.table));
        let known = (&*spec.entity_table, &*spec.destination_table);
        let range = format!("a recommendation of rows of `{}` to rows of `{}`", known.1, known.0);
        let value = format!("task `{}`", task.name);
        ModelError::check_range("task", &range, value, found == Some(known))?;
        let mut seeds = DatabaseSeeds::of_task(db, task, part, spec.protocol);
        let Some(Targets::Lists(lists)) = seeds.targets.take() else { return Ok(None) };
        if lists.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let best = self.recommender(db)?.recommend(&seeds, spec.k)?;
        Ok(Some(best.metrics(&id_lists(&lists)?)?))
    }

    fn device(&self) -> Device {
        self.model.devices().first().cloned().unwrap_or_default().without_autodiff()
    }
}

/// Labels as lists of ids.
pub(super) fn id_lists(lists: &[Vec<u32>]) -> Result<IdLists, ModelError> {
    let pairs = lists.iter().zip(0u32..);
    let pairs = pairs.flat_map(|(list, row)| list.iter().map(move |&id| (row, id)));
    IdLists::from_pairs(lists.len(), pairs)
}

/// A trained model and a database that is prepared for it.
pub struct Recommender<'a> {
    trained: &'a TrainedRecommendation,
    data: RelationalData,
    samplers: [DatabaseSampler; 2],
    destinations: Destinations,
}

impl Recommender<'_> {
    /// The `k` best destinations of each seed, as rows of the destination table, by what the seed sees. A list is shorter
    /// where fewer destinations exist. It does not depend on the other seeds of the call.
    ///
    /// # Errors
    /// An entity that is not a row of its table; `k = 0`.
    ///
    /// # Cost
    /// Encodes all destinations once per pair of a time and what is seen at it.
    pub fn recommend(&self, seeds: &DatabaseSeeds, k: usize) -> Result<TopK, ModelError> {
        ModelError::check_range("k", "1..", k, k > 0)?;
        let mut groups: BTreeMap<(i64, i64), Vec<u32>> = BTreeMap::new();
        let times = seeds.times.iter().copied().zip(seeds.visible.iter().copied());
        times.zip(0..).for_each(|(key, i)| groups.entry(key).or_default().push(i));
        let mut lists = vec![vec![]; seeds.len()];
        for ((time, visible), positions) in groups {
            let of_group = seeds.select(&positions);
            let found = self.at(&of_group, time, visible, k)?;
            for (i, &position) in positions.iter().enumerate() {
                lists[position as usize] = found.of(i).to_vec();
            }
        }
        Ok(TopK::from_lists(k, lists))
    }

    /// Lists of seeds of one time.
    fn at(
        &self,
        seeds: &DatabaseSeeds,
        time: i64,
        visible: i64,
        k: usize,
    ) -> Result<TopK, ModelError> {
        let (spec, model) = (&self.trained.spec, &self.trained.model);
        let rows = self.destinations.at(visible);
        let [of_entities, of_destinations] = &self.samplers;
        let u = self.embed(of_entities, seeds, |batch, _| model.embed_entities(batch))?;
        let (Some(u), false) = (u, rows.is_empty()) else {
            return Ok(TopK::from_lists(k, vec![vec![]; seeds.len()]));
        };
        let all = DatabaseSeeds {
            entities: rows.to_vec(),
            times: vec![time; rows.len()],
            visible: vec![visible; rows.len()],
            targets: None,
        };
        let v = self.embed(of_destinations, &all, |batch, range| {
            model.embed_destinations(batch, &self.destinations.embeddings(&rows[range]))
        })?;
        let Some(v) = v else { return Ok(TopK::from_lists(k, vec![vec![]; seeds.len()])) };
        let seen = spec.seen(self.data.graph());
        let of = |i: usize| seen.of(seeds.entities[i], time, visible);
        let terms: Vec<SeenTerms> = match seen.num_terms() {
            0 => vec![],
            _ => (0..seeds.len()).map(of).collect(),
        };
        let weights = model.terms.as_ref().map(|w| w.val().into_data().iter::<f32>().collect());
        let weights: Vec<f32> = weights.unwrap_or_default();
        let column: std::collections::HashMap<u32, usize> = rows.iter().copied().zip(0..).collect();
        let device = u.device();
        let score = |queries: &[usize], range: Range<usize>| {
            let y = select_rows(u.clone(), queries)
                .matmul(v.clone().slice_dim(0, range.clone()).transpose());
            if terms.is_empty() {
                return y;
            }
            let mut more = vec![0f32; queries.len() * range.len()];
            for (i, &q) in queries.iter().enumerate() {
                for (row, of_pair) in &terms[q] {
                    let at = column.get(row).filter(|at| range.contains(at));
                    if let Some(at) = at {
                        let sum: f32 = of_pair.iter().zip(&weights).map(|(x, w)| x * w).sum();
                        more[i * range.len() + at - range.start] = sum;
                    }
                }
            }
            let shape = [queries.len(), range.len()];
            y + Tensor::from_data(TensorData::new(more, shape), &device)
        };
        let found = top_k_by(seeds.len(), rows.len(), k, |_| &[][..], score)?;
        let list = |i: usize| found.of(i).iter().map(|&(at, x)| (rows[at as usize], x)).collect();
        Ok(TopK::from_lists(k, (0..seeds.len()).map(list).collect()))
    }

    /// Embeddings of rows, batch by batch; `None` without rows.
    fn embed(
        &self,
        sampler: &DatabaseSampler,
        seeds: &DatabaseSeeds,
        embed: impl Fn(&burn_gnn_models::DatabaseBatch, Range<usize>) -> Tensor<2>,
    ) -> Result<Option<Tensor<2>>, ModelError> {
        let spec = &self.trained.spec;
        let mut seeds = seeds.clone();
        seeds.targets = None;
        let (count, size) = (seeds.len(), spec.batch_size.max(1));
        let sampler = sampler.with_seeds(seeds)?;
        let mut parts = vec![];
        for first in (0..count).step_by(size) {
            let range = first..(first + size).min(count);
            let positions: Vec<u32> = (range.start as u32..range.end as u32).collect();
            let batch = sampler.batch(&positions, SampleKey::new(spec.seed))?;
            parts.push(embed(&batch, range));
        }
        Ok((!parts.is_empty()).then(|| Tensor::cat(parts, 0)))
    }
}
