//! Predicts and evaluates with a trained model of a database.

use burn::module::Module;
use burn::tensor::Device;
use burn_gnn_data::{Database, DatabaseTask, Part};
use burn_gnn_sampling::SampleKey;

use crate::error::ModelError;
use crate::relational::database_sampler::DatabaseSampler;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::relational_data::RelationalData;
use crate::relational::relational_model::RelationalModel;
use crate::relational::relational_spec::RelationalSpec;
use crate::relational::task_score::{TaskScore, defined, labelled};
use crate::training::fit::evaluate;
use crate::training::history::Epoch;

/// A trained model of a database: [`predictor`](Self::predictor) prepares a database for it.
#[derive(Debug)]
pub struct TrainedDatabase {
    /// The model, on a plain device.
    pub model: RelationalModel,
    /// What it reads, how, and what it predicts.
    pub spec: RelationalSpec,
    /// Every epoch, of a refit after those of the first training; empty for a model that was loaded.
    pub history: Vec<Epoch>,
}

impl TrainedDatabase {
    /// Prepares a database for predictions: it may have more rows than the database of training, but must have its
    /// tables and columns.
    ///
    /// # Errors
    /// Tables or columns that the model reads are missing, or have values of another type.
    pub fn predictor(&self, db: &Database) -> Result<Predictor<'_>, ModelError> {
        let data = self.spec.data(db)?;
        let none = DatabaseSeeds::at(&[], 0);
        let sampler = self.spec.sampler(&data, none, &self.device())?;
        Ok(Predictor { trained: self, data, sampler })
    }

    /// Predictions for rows of the entity table at a time, by rows up to this time: values of a regression, the
    /// probability of class 1, or those of all classes or labels, row by row. To predict several times, prepare the
    /// database once by [`predictor`](Self::predictor).
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor); an entity that is not a row of its table.
    pub fn predict(
        &self,
        db: &Database,
        entities: &[u32],
        time: i64,
    ) -> Result<Vec<f64>, ModelError> {
        self.predictor(db)?.predict(entities, time)
    }

    /// Metric of a part of the task of the model, or of another task of the same type and entity table; `None` if no row
    /// has a target. Where the area under the ROC curve is not defined, because all rows have one class, the result is
    /// the loss, under this name.
    ///
    /// A refit ([`RelationalSpec::refit`]) has learned the validation labels: its metric of [`Part::Val`] is that of
    /// training data, and [`RelationalSpec::val`] is the one that was measured before.
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor); a task of another type or entity table.
    pub fn evaluate(
        &self,
        db: &Database,
        task: &str,
        part: Part,
    ) -> Result<Option<TaskScore>, ModelError> {
        let task = db.task(task)?;
        self.score(&self.predictor(db)?.data, db, task, part)
    }

    pub(crate) fn score(
        &self,
        data: &RelationalData,
        db: &Database,
        task: &DatabaseTask,
        part: Part,
    ) -> Result<Option<TaskScore>, ModelError> {
        let found = (task.task_type, &task.entity_table);
        let known = (self.spec.target.task_type, &self.spec.entity_table);
        let range = format!("a {} of rows of table `{}`", known.0, known.1);
        let value = format!("a {} of table `{}`", found.0, found.1);
        ModelError::check_range("task", &range, value, found == known)?;
        let seeds = DatabaseSeeds::of_task(db, task, part, self.spec.protocol);
        if !labelled(seeds.targets.as_ref()) {
            return Ok(None);
        }
        let metric = defined(self.spec.target.metric(), seeds.targets.as_ref());
        let loader = self.spec.loader(data, seeds, &self.device())?.with_seed(self.spec.seed);
        let learned = self.spec.heads();
        let value = evaluate(&self.model, &learned, &loader)?.score(&metric)?;
        Ok(Some(TaskScore::new(task.task_type, &metric, value)))
    }

    pub(crate) fn device(&self) -> Device {
        self.model.devices().first().cloned().unwrap_or_default().without_autodiff()
    }
}

/// A model and a database that is prepared for it.
pub struct Predictor<'a> {
    trained: &'a TrainedDatabase,
    data: RelationalData,
    sampler: DatabaseSampler,
}

impl Predictor<'_> {
    /// Predictions for rows of the entity table at a time, as [`TrainedDatabase::predict`].
    ///
    /// A prediction does not depend on the other entities of the call.
    ///
    /// # Errors
    /// An entity that is not a row of its table.
    pub fn predict(&self, entities: &[u32], time: i64) -> Result<Vec<f64>, ModelError> {
        self.predict_seeds(DatabaseSeeds::at(entities, time))
    }

    /// Predictions for seeds with a time each.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_seeds(&self, seeds: DatabaseSeeds) -> Result<Vec<f64>, ModelError> {
        let (spec, model) = (&self.trained.spec, &self.trained.model);
        let count = seeds.len();
        let sampler = self.sampler.with_seeds(seeds)?;
        let positions: Vec<u32> = (0..count as u32).collect();
        let mut predicted = Vec::with_capacity(count * spec.target.outputs);
        for positions in positions.chunks(spec.batch_size.max(1)) {
            let batch = sampler.batch(positions, SampleKey::new(spec.seed))?;
            predicted.extend(spec.target.predictions(model.forward(&batch, 0)));
        }
        Ok(predicted)
    }

    /// The prepared database.
    pub fn data(&self) -> &RelationalData {
        &self.data
    }
}
