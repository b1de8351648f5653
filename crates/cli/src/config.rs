//! Settings in `burn-gnn.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn::data::{ColumnKind, DatabaseOptions, Protocol, WindowTask};
use burn_gnn::models::RelationalOptions;
use burn_gnn_files::internal::read_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::failure::{Failure, Kind};

/// Name of the file in a folder.
pub(crate) const CONFIG: &str = "burn-gnn.toml";

/// The settings of a file; what is left out has its default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Name of the task.
    pub(crate) task: Option<String>,
    pub(crate) protocol: Protocol,
    pub(crate) seed: u64,
    training: Table,
    model: Table,
    encoder: Table,
    database: DatabaseSettings,
    /// Tasks that are declared here.
    pub(crate) tasks: Vec<WindowTask>,
    /// Where the settings are from.
    #[serde(skip)]
    path: PathBuf,
}

/// How a model is trained: fields of `RelationalOptions`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Training {
    epochs: usize,
    patience: usize,
    batch_size: usize,
    lr: f64,
    warm_up: f64,
    weight_decay: f64,
    weight_averaging: f64,
    refit: bool,
    fanouts: Vec<i64>,
    latest: bool,
    balanced: bool,
    label_history: bool,
    other_tasks: Vec<String>,
    other_weight: f64,
    workers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_life_days: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_gap_days: Option<f64>,
}

/// Fields of [`Training`] without a value by default.
const OPTIONAL: [&str; 2] = ["half_life_days", "longest_gap_days"];

/// Microseconds of a day.
const DAY: f64 = 86_400e6;

impl Training {
    fn of(of: &RelationalOptions) -> Self {
        let days = |time: i64| time as f64 / DAY;
        Self {
            epochs: of.epochs,
            patience: of.patience,
            batch_size: of.batch_size,
            lr: of.lr,
            warm_up: of.warm_up,
            weight_decay: of.weight_decay,
            weight_averaging: of.weight_averaging,
            refit: of.refit,
            fanouts: of.fanouts.clone(),
            latest: of.latest,
            balanced: of.balanced,
            label_history: of.label_history,
            other_tasks: of.other_tasks.clone(),
            other_weight: of.other_weight,
            workers: of.workers,
            half_life_days: of.half_life.map(days),
            longest_gap_days: of.longest_gap.map(days),
        }
    }
}

/// How the folder is read: fields of `DatabaseOptions`, with columns as `table.column`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DatabaseSettings {
    lenient_keys: bool,
    kinds: BTreeMap<String, ColumnKind>,
    ignored: Vec<String>,
}

impl Config {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = read_file(path)?;
        let text = String::from_utf8(bytes).map_err(|_| at(path, "expected text in UTF-8"))?;
        let config: Self = toml::from_str(&text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start));
            let line =
                before.map_or(String::new(), |t| format!("line {}: ", t.matches('\n').count() + 1));
            at(path, format!("{line}{}", e.message()))
        })?;
        let config = Self { path: path.to_owned(), ..config };
        // Sections are checked before a database is read.
        config.options(RelationalOptions::default())?;
        config.database()?;
        Ok(config)
    }

    /// How the folder is read.
    pub(crate) fn database(&self) -> Result<DatabaseOptions, Failure> {
        let DatabaseSettings { lenient_keys, kinds, ignored } = &self.database;
        let split = |name: &str| {
            let parts =
                name.split_once('.').map(|(table, column)| (table.to_owned(), column.to_owned()));
            let why = || format!("database: expected `table.column`, found `{name}`");
            parts.ok_or_else(|| at(&self.path, why()))
        };
        let mut options = DatabaseOptions::new();
        for (name, kind) in kinds {
            let (table, column) = split(name)?;
            options = options.with_kind(table, column, *kind);
        }
        for name in ignored {
            let (table, column) = split(name)?;
            options = options.with_ignored(table, column);
        }
        Ok(if *lenient_keys { options.with_lenient_keys() } else { options })
    }

    /// Whether the file chooses the model, or its size.
    pub(crate) fn has_model(&self) -> bool {
        !self.model.is_empty()
    }

    /// Options of training: `base`, and what the file has in place of it.
    pub(crate) fn options(&self, base: RelationalOptions) -> Result<RelationalOptions, Failure> {
        let of: Training = self.with_defaults("training", &Training::of(&base), &self.training)?;
        // Rounded, so that a time of `base` stays what it is.
        let time = |days: f64| (days * DAY).round() as i64;
        Ok(RelationalOptions {
            protocol: self.protocol,
            seed: self.seed,
            model: self.with_defaults("model", &base.model, &self.model)?,
            encoder: self.with_defaults("encoder", &base.encoder, &self.encoder)?,
            fanouts: of.fanouts,
            latest: of.latest,
            other_tasks: of.other_tasks,
            other_weight: of.other_weight,
            label_history: of.label_history,
            epochs: of.epochs,
            patience: of.patience,
            batch_size: of.batch_size,
            lr: of.lr,
            warm_up: of.warm_up,
            weight_decay: of.weight_decay,
            weight_averaging: of.weight_averaging,
            refit: of.refit,
            half_life: of.half_life_days.map(time),
            longest_gap: of.longest_gap_days.map(time),
            balanced: of.balanced,
            workers: of.workers,
            ..base
        })
    }

    /// The defaults of a section, replaced by what the file has.
    fn with_defaults<T: Serialize + DeserializeOwned>(
        &self,
        section: &str,
        default: &T,
        given: &Table,
    ) -> Result<T, Failure> {
        let mut all = table_of(default)?;
        for (name, value) in given {
            let optional = OPTIONAL.into_iter().filter(|_| section == "training");
            let is_known =
                all.keys().map(String::as_str).chain(optional).any(|known| known == name);
            if !is_known {
                let known = all.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>();
                let why =
                    format!("[{section}]: expected one of {}, found `{name}`", known.join(", "));
                return Err(at(&self.path, why));
            }
            all.insert(name.clone(), value.clone());
        }
        all.try_into()
            .map_err(|e: toml::de::Error| at(&self.path, format!("[{section}]: {}", e.message())))
    }
}

/// Fields that [`RelationalOptions::for_task`] chooses by task, protocol and size: `init` leaves them out.
pub(crate) const CHOSEN: [&str; 6] =
    ["epochs", "lr", "warm_up", "weight_averaging", "half_life_days", "refit"];

/// The settings of a section that `burn-gnn init` writes, as lines of TOML.
pub(crate) fn section(name: &str) -> Result<String, Failure> {
    let of = RelationalOptions::default();
    let mut table = match name {
        "training" => table_of(&Training::of(&of))?,
        _ => table_of(&of.encoder)?,
    };
    table.retain(|field, _| !CHOSEN.contains(&field));
    toml::to_string(&table).map_err(|e| Failure::new(Kind::Internal, e.to_string()))
}

fn table_of(value: &impl Serialize) -> Result<Table, Failure> {
    Table::try_from(value).map_err(|e| Failure::new(Kind::Internal, e.to_string()))
}

fn at(path: &Path, why: impl AsRef<str>) -> Failure {
    Failure::new(Kind::Data, format!("{}: {}", path.display(), why.as_ref()))
}
