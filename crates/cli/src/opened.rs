//! Opens a database with its settings.

use burn_gnn::data::{Database, Protocol};

use crate::args::{ProtocolName, Source};
use crate::config::{CONFIG, Config};
use crate::failure::{Failure, Kind};
use crate::output::Output;

/// A database with the tasks that its settings declare.
pub(crate) struct Opened {
    pub(crate) db: Database,
    pub(crate) config: Config,
}

impl Opened {
    pub(crate) fn new(source: &Source, out: &Output) -> Result<Self, Failure> {
        let default = source.folder.join(CONFIG);
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

    /// The name of the task: that of the command line, else of the settings, else the only one.
    pub(crate) fn task(&self, given: Option<&str>) -> Result<String, Failure> {
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

    pub(crate) fn protocol(&self, given: Option<ProtocolName>) -> Protocol {
        given.map_or(self.config.protocol, Protocol::from)
    }
}
