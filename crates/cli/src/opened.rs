//! Opens a database with its settings.

use std::path::Path;

use burn_gnn::data::{Database, Protocol};
use burn_gnn::links::TrainedRecommendation;
use burn_gnn::models::{ModelError, RelationalOptions, TrainedDatabase};

use crate::args::{ModelOf, Source, TaskOf};
use crate::config::{CONFIG, Config};
use crate::failure::{Failure, Kind};
use crate::output::Output;

/// Description of a saved model.
const MODEL: &str = "model.json";
/// Description of a saved model of a recommendation task.
const RECOMMENDATION: &str = "recommendation.json";

/// A saved model.
#[allow(clippy::large_enum_variant)] // one per run
pub(crate) enum Model {
    /// Of a classification or regression.
    Values(TrainedDatabase),
    /// Of a recommendation.
    Lists(TrainedRecommendation),
}

/// A database with the tasks that its settings declare.
pub(crate) struct Opened {
    pub(crate) db: Database,
    pub(crate) config: Config,
}

impl Opened {
    pub(crate) fn new(source: &Source, out: &Output) -> Result<Self, Failure> {
        let default = existing(&source.folder)?.join(CONFIG);
        let config = match &source.config {
            Some(path) => Config::read(path)?,
            None if default.exists() => Config::read(&default)?,
            None => Config::default(),
        };
        let what = format!("reading {}", source.folder.display());
        let _bar = out.elapsed(&what);
        let mut db = Database::open_with(&source.folder, &config.database()?)?;
        for declared in &config.tasks {
            let task = declared.to_task(&db).map_err(|e| {
                Failure::new(Kind::Data, format!("task `{}` of the settings: {e}", declared.name))
            })?;
            db = db.with_task(task)?;
        }
        Ok(Self { db, config })
    }

    /// A database with the task and the protocol of a command.
    pub(crate) fn with_task(
        of: &TaskOf,
        out: &Output,
    ) -> Result<(Self, String, Protocol), Failure> {
        let opened = Self::new(&of.source, out)?;
        let task = opened.task(of.task.as_deref())?;
        let protocol = of.protocol.map_or(opened.config.protocol, Protocol::from);
        Ok((opened, task, protocol))
    }

    /// A database with a model that was trained on its tables.
    pub(crate) fn with_model(of: &ModelOf, out: &Output) -> Result<(Database, Model), Failure> {
        let Self { db, .. } = Self::new(&of.source, out)?;
        let (folder, model) = (of.source.folder.display(), of.model.display());
        let has = |file: &str| !matches!(of.model.join(file).try_exists(), Ok(false));
        let is_list = has(RECOMMENDATION);
        if !is_list && !has(MODEL) {
            let why = format!(
                "{model}: expected the folder of a model, found no `{MODEL}` in it; `burn-gnn train --out` writes one"
            );
            return Err(Failure::new(Kind::Data, why));
        }
        let device = RelationalOptions::default().device;
        let misfit = |e: ModelError| match e {
            ModelError::OutOfRange { .. } => Failure::new(
                Kind::Model,
                format!(
                    "{model} does not fit {folder}: {e}; use the tables that it was trained on"
                ),
            ),
            e => e.into(),
        };
        let trained = if is_list {
            TrainedRecommendation::load(&of.model, &db, &device).map(Model::Lists)
        } else {
            TrainedDatabase::load(&of.model, &db, &device).map(Model::Values)
        };
        let trained = trained.map_err(misfit)?;
        Ok((db, trained))
    }

    /// The name of the task: that of the command line, else of the settings, else the only one.
    fn task(&self, given: Option<&str>) -> Result<String, Failure> {
        if let Some(name) = given.or(self.config.task.as_deref()) {
            return Ok(self.db.task(name)?.name.clone());
        }
        let names: Vec<_> = self.db.tasks().iter().map(|task| task.name.as_str()).collect();
        match names[..] {
            [one] => Ok(one.to_owned()),
            [] => {
                let why = "the database has no task; declare one in `burn-gnn.toml` (`burn-gnn init --help`)";
                Err(Failure::new(Kind::Data, why))
            }
            _ => {
                let why = format!("expected --task with one of the tasks {}", names.join(", "));
                Err(Failure::new(Kind::Usage, why))
            }
        }
    }
}

/// The folder of a database, if there is one.
pub(crate) fn existing(folder: &Path) -> Result<&Path, Failure> {
    if matches!(folder.try_exists(), Ok(false)) {
        let why = "expected the folder of a database, found no folder of this name; check the path";
        return Err(Failure::new(Kind::Data, format!("{}: {why}", folder.display())));
    }
    Ok(folder)
}
