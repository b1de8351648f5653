//! Saves and loads trained models of databases.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_data::{Database, write_atomic};
use burn_gnn_files::internal::{create_dirs, format_error, io_error, read_file};

use crate::error::ModelError;
use crate::pretrained::weight_files::{load_weights, save_weights};
use crate::relational::relational_spec::RelationalSpec;
use crate::relational::trained_database::TrainedDatabase;

/// Description and statistics.
const SPEC: &str = "model.json";
/// Parameters.
const WEIGHTS: &str = "weights.bpk";

impl TrainedDatabase {
    /// Saves the model to a folder, which is created if it does not exist: `model.json` with its description and the
    /// statistics of the encoders, and `weights.bpk`. A model that is killed while it writes leaves the files of before
    /// or of after.
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

    /// Loads a model that [`save`](Self::save) wrote. `db` is a database with the tables and foreign keys of training,
    /// of which the model takes its edge types.
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
        let spec: RelationalSpec = serde_json::from_slice(&text).map_err(|e| {
            let why = format!("expected the description of a trained model, found an error: {e}; save the model again");
            format_error(&path, why)
        })?;
        let new = spec.init(&spec.data(db)?, device)?;
        let model = load_weights(new, folder.as_ref().join(WEIGHTS))?;
        Ok(Self { model, spec, history: vec![] })
    }
}
