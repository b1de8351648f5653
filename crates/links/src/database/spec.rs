//! Describes a trained recommendation model, without its weights.

use burn::tensor::Device;
use burn_gnn_data::{Database, DatabaseGraph, DatabaseTask, Protocol, TaskType};
use burn_gnn_models::{
    DatabaseSampler, DatabaseSeeds, ModelError, RelationalConfig, RelationalData, RowPath,
    TableEncoderConfig, TaskScore,
};
use burn_gnn_sampling::{Fanouts, Strategy};
use serde::{Deserialize, Serialize};

use crate::database::model::RecommendationModel;
use crate::database::seen_rows::SeenRows;

/// All of a trained recommendation model but its weights: what it reads, how, and what it recommends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecommendationSpec {
    /// Name of the task.
    pub task: String,
    /// Table of the entities.
    pub entity_table: String,
    /// Table whose rows are recommended.
    pub destination_table: String,
    /// Columns `(table, column)` that the model must not see.
    pub remove_columns: Vec<(String, String)>,
    /// Which rows validation and test seeds saw.
    pub protocol: Protocol,
    /// Seed of the run.
    pub seed: u64,
    /// The model of both towers.
    pub model: RelationalConfig,
    /// The encoder of each table, with its statistics.
    pub encoders: Vec<TableEncoderConfig>,
    /// Paths that the tower of entities and that of destinations read.
    pub paths: [Vec<RowPath>; 2],
    /// Rows that each hop draws.
    pub fanouts: Vec<i64>,
    /// Whether a hop takes the latest rows.
    pub latest: bool,
    /// Seeds of a batch.
    pub batch_size: usize,
    /// Primary keys of the destinations that have a learned embedding; parts of a key are joined by U+001F.
    pub keys: Vec<String>,
    /// Whether scores have terms for rows that refer to both.
    pub seen_rows: bool,
    /// Length of the lists of which the metric is computed.
    pub k: usize,
    /// Whether the weights are from a second training, on training and validation seeds.
    pub refit: bool,
    /// Mean average precision of the validation seeds, if there are labelled ones; of a refit, that of the training before
    /// it.
    pub val: Option<TaskScore>,
    /// Mean average precision of the test seeds, if there are labelled ones.
    pub test: Option<TaskScore>,
}

impl RecommendationSpec {
    /// Prepares a database for the model.
    pub(super) fn data(&self, db: &Database) -> Result<RelationalData, ModelError> {
        let mut task =
            DatabaseTask::new(&self.task, TaskType::Recommendation, &self.entity_table, "", "");
        task.remove_columns = self.remove_columns.clone();
        RelationalData::new(db, Some(&task), &self.encoders)
    }

    /// Reads the rows that refer to an entity and to a destination.
    pub(super) fn seen<'a>(&self, graph: &'a DatabaseGraph) -> SeenRows<'a> {
        match self.seen_rows {
            true => SeenRows::between(graph, &self.entity_table, &self.destination_table),
            false => SeenRows::none(),
        }
    }

    /// Samplers of entities and of destinations, without seeds.
    pub(super) fn samplers(
        &self,
        data: &RelationalData,
        device: &Device,
    ) -> Result<[DatabaseSampler; 2], ModelError> {
        let of = |table: &str, paths: &[RowPath]| {
            let none = DatabaseSeeds::at(&[], 0);
            if !paths.is_empty() {
                return DatabaseSampler::of_paths(data, table, none, paths, device);
            }
            let (layers, hops) = (self.model.num_layers, self.fanouts.len());
            ModelError::check_length("fanouts", "one per layer of the model", layers, hops)?;
            let fanouts = Fanouts::from(self.fanouts.clone());
            let strategy = if self.latest { Strategy::Latest } else { Strategy::Uniform };
            DatabaseSampler::new(data, table, none, fanouts, strategy, device)
        };
        let [entities, destinations] = &self.paths;
        Ok([of(&self.entity_table, entities)?, of(&self.destination_table, destinations)?])
    }

    /// A new model.
    pub(super) fn init(
        &self,
        data: &RelationalData,
        device: &Device,
    ) -> Result<RecommendationModel, ModelError> {
        let graph = data.graph().graph();
        let hidden = self.model.hidden;
        let tower = |paths: &[RowPath]| {
            self.model.try_init(graph, paths, &self.encoders, &[hidden], device)
        };
        let [entities, destinations] = &self.paths;
        let towers = [tower(entities)?, tower(destinations)?];
        let terms = self.seen(data.graph()).num_terms();
        Ok(RecommendationModel::new(towers, [self.keys.len(), hidden], terms, device))
    }
}
