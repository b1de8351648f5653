//! Describes a trained model of a database, without its weights.

use burn::serde::{Deserialize, Serialize};
use burn::tensor::Device;
use burn_gnn_data::{Database, DatabaseTask, Protocol};
use burn_gnn_sampling::{Fanouts, Strategy};

use crate::error::ModelError;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::database_sampler::{DatabaseLoader, DatabaseSampler};
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::label_history::with_label_history;
use crate::relational::relational_data::RelationalData;
use crate::relational::relational_model::{RelationalConfig, RelationalModel};
use crate::relational::relational_task::{RelationalTask, TargetEncoding};
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::task_score::TaskScore;

/// All of a trained model but its weights: what it reads, how, and what it predicts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct RelationalSpec {
    /// Name of the task.
    pub task: String,
    /// Table whose rows the model predicts for.
    pub entity_table: String,
    /// Columns `(table, column)` that the model must not see: [`DatabaseTask::hidden_columns`].
    pub remove_columns: Vec<(String, String)>,
    /// Whether a seed sees earlier labels of its entity.
    pub label_history: bool,
    /// Which rows validation and test seeds saw.
    pub protocol: Protocol,
    /// Seed of the run.
    pub seed: u64,
    /// The model.
    pub model: RelationalConfig,
    /// The encoder of each table, with its statistics.
    pub encoders: Vec<TableEncoderConfig>,
    /// Paths that the model reads ([`RelationalConfig::paths`]).
    pub paths: Vec<RowPath>,
    /// What the first head predicts.
    pub target: TargetEncoding,
    /// What the heads of other tasks predict.
    pub other_targets: Vec<TargetEncoding>,
    /// Rows that each hop draws.
    pub fanouts: Vec<i64>,
    /// Whether a hop takes the latest rows.
    pub latest: bool,
    /// Seeds of a batch.
    pub batch_size: usize,
    /// Epoch that the weights are from; with averaged weights the last one. Epochs of a refit count from 0.
    pub kept_epoch: usize,
    /// L2 penalty of a linear model, given or chosen by backtests; `None` for other models.
    #[serde(default)]
    pub penalty: Option<f64>,
    /// Whether the weights are from a second training, on training and validation seeds.
    pub refit: bool,
    /// Metric of the validation seeds, if there are labelled ones; of a refit, that of the training before it.
    pub val: Option<TaskScore>,
    /// Metric of the test seeds, if there are labelled ones.
    pub test: Option<TaskScore>,
}

impl RelationalSpec {
    /// Prepares a database for the model.
    pub(crate) fn data(&self, db: &Database) -> Result<RelationalData, ModelError> {
        let removing = self.removing();
        if !self.label_history {
            return RelationalData::new(db, Some(&removing), &self.encoders);
        }
        let db = with_label_history(db, db.task(&self.task)?)?;
        RelationalData::new(&db, Some(&removing), &self.encoders)
    }

    /// A task without rows that removes the same columns.
    fn removing(&self) -> DatabaseTask {
        let (entity, target) = (&self.entity_table, self.target.task_type);
        let mut task = DatabaseTask::new(&self.task, target, entity, "", "");
        task.remove_columns = self.remove_columns.clone();
        task
    }

    /// What all heads learn.
    pub(crate) fn heads(&self) -> RelationalTask {
        let all = std::iter::once(&self.target).chain(&self.other_targets);
        RelationalTask::new(all.cloned().collect())
    }

    /// The strategy of the sampler.
    pub(crate) fn strategy(&self) -> Strategy {
        if self.latest { Strategy::Latest } else { Strategy::Uniform }
    }

    /// A new model.
    pub(crate) fn init(
        &self,
        data: &RelationalData,
        device: &Device,
    ) -> Result<RelationalModel, ModelError> {
        let all = std::iter::once(&self.target).chain(&self.other_targets);
        let outputs: Vec<usize> = all.map(|target| target.outputs).collect();
        let graph = data.graph().graph();
        self.model.try_init(graph, &self.paths, &self.encoders, &outputs, device)
    }

    /// A sampler of seeds.
    pub(crate) fn sampler(
        &self,
        data: &RelationalData,
        seeds: DatabaseSeeds,
        device: &Device,
    ) -> Result<DatabaseSampler, ModelError> {
        if self.model.kind.reads_paths() {
            let (table, paths) = (&self.entity_table, &self.paths);
            return DatabaseSampler::of_paths(data, table, seeds, paths, device);
        }
        let (layers, hops) = (self.model.num_layers, self.fanouts.len());
        ModelError::check_length("fanouts", "one per layer of the model", layers, hops)?;
        let fanouts = Fanouts::from(self.fanouts.clone());
        DatabaseSampler::new(data, &self.entity_table, seeds, fanouts, self.strategy(), device)
    }

    /// A loader of seeds.
    pub(crate) fn loader(
        &self,
        data: &RelationalData,
        seeds: DatabaseSeeds,
        device: &Device,
    ) -> Result<DatabaseLoader, ModelError> {
        self.sampler(data, seeds, device)?.loader(self.batch_size)
    }
}
