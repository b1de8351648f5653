//! Saves and loads trained recommendation models.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_data::{Database, write_atomic};
use burn_gnn_files::internal::{create_dirs, format_error, io_error, read_file};
use burn_gnn_models::{ModelError, load_weights, save_weights};

use crate::database::spec::RecommendationSpec;
use crate::database::trained::TrainedRecommendation;

/// Description and statistics.
const SPEC: &str = "recommendation.json";
/// Parameters.
const WEIGHTS: &str = "weights.bpk";

impl TrainedRecommendation {
    /// Saves the model to a folder, which is created if it does not exist: `recommendation.json` with its description and
    /// the statistics of the encoders, and `weights.bpk`.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), ModelError> {
        let folder = folder.as_ref();
        create_dirs(folder).map_err(|e| io_error(folder, e))?;
        save_weights(&self.model, folder.join(WEIGHTS))?;
        let path = folder.join(SPEC);
        let text = serde_json::to_vec_pretty(&self.spec).map_err(|e| {
            format_error(&path, format!("expected a description that JSON can hold: {e}"))
        })?;
        Ok(write_atomic(&path, |file| file.write_all(&text))?)
    }

    /// Loads a model that [`save`](Self::save) wrote. `db` is a database with the tables and foreign keys of training.
    ///
    /// # Errors
    /// A file that cannot be read or has another format; a database with other tables.
    pub fn load(
        folder: impl AsRef<Path>,
        db: &Database,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let path = folder.as_ref().join(SPEC);
        let text = read_file(&path)?;
        let spec: RecommendationSpec = serde_json::from_slice(&text).map_err(|e| {
            let why = format!("expected the description of a recommendation model, found an error: {e}; save the model again");
            format_error(&path, why)
        })?;
        let new = spec.init(&spec.data(db)?, device)?;
        let model = load_weights(new, folder.as_ref().join(WEIGHTS))?;
        Ok(Self { model, spec, history: vec![] })
    }
}
