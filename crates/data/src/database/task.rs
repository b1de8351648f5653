//! Tasks on a database: entities, seed times and targets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is predicted, which determines the default metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    /// A number: [`Targets::Values`].
    Regression,
    /// 0 or 1: [`Targets::Classes`].
    BinaryClassification,
    /// One of several classes, numbered from 0: [`Targets::Classes`].
    MulticlassClassification,
    /// Any number of labels: [`Targets::Labels`].
    MultilabelClassification,
    /// Rows of the destination table: [`Targets::Lists`].
    Recommendation,
}

impl TaskType {
    /// The default metric: `mae`, `roc_auc`, `accuracy`, `roc_auc` (mean over labels), `map` (mean average precision of the
    /// first [`Destination::k`] rows).
    pub fn metric(self) -> &'static str {
        match self {
            Self::Regression => "mae",
            Self::BinaryClassification | Self::MultilabelClassification => "roc_auc",
            Self::MulticlassClassification => "accuracy",
            Self::Recommendation => "map",
        }
    }
    /// The name in files and messages, such as `binary_classification`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::BinaryClassification => "binary_classification",
            Self::MulticlassClassification => "multiclass_classification",
            Self::MultilabelClassification => "multilabel_classification",
            Self::Recommendation => "recommendation",
        }
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the labels of a task come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// An aggregate over rows after the seed time.
    Forecast,
    /// An existing column of the entity table.
    Autocomplete,
    /// Label tables made elsewhere.
    #[default]
    External,
}

/// Part of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Training rows.
    Train,
    /// Validation rows.
    Val,
    /// Test rows.
    Test,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Train, Self::Val, Self::Test];
    /// `train`, `val` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The table of which a recommendation task ranks the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Table.
    pub table: String,
    /// Column of the label table with the list of keys.
    pub column: String,
    /// Number of recommended rows.
    pub k: usize,
}

/// A prediction task: for rows of an entity table, at a seed time each, the targets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DatabaseTask {
    /// Name, such as `driver-dnf`.
    pub name: String,
    /// Description for readers.
    pub description: String,
    /// Where the labels come from.
    pub kind: TaskKind,
    /// What is predicted.
    pub task_type: TaskType,
    /// Table of the entities.
    pub entity_table: String,
    /// Column of the label tables with the key of the entity.
    pub entity_column: String,
    /// Column of the label tables with the target; empty for recommendation.
    pub target_column: String,
    /// Column of the label tables with the seed time; empty for a task without times.
    pub time_column: String,
    /// What is recommended; `None` for other tasks.
    pub destination: Option<Destination>,
    /// Columns `(table, column)` that a model of this task must not see.
    pub remove_columns: Vec<(String, String)>,
    /// Microseconds after the seed time from which the label is computed.
    pub timedelta: Option<i64>,
    /// Number of seed times of validation and of test.
    pub num_eval_timestamps: usize,
    /// The query that computes the labels, kept for RelBench's tools; this library does not execute it.
    pub sql: Option<String>,
    /// Training rows.
    pub train: TaskRows,
    /// Validation rows.
    pub val: TaskRows,
    /// Test rows.
    pub test: TaskRows,
}

impl DatabaseTask {
    /// A task without rows. Other fields are set afterwards.
    pub fn new(
        name: impl Into<String>,
        task_type: TaskType,
        entity_table: impl Into<String>,
        entity_column: impl Into<String>,
        target_column: impl Into<String>,
    ) -> Self {
        let rows = || TaskRows::empty(task_type);
        Self {
            name: name.into(),
            description: String::new(),
            kind: TaskKind::default(),
            task_type,
            entity_table: entity_table.into(),
            entity_column: entity_column.into(),
            target_column: target_column.into(),
            time_column: "timestamp".into(),
            destination: None,
            remove_columns: vec![],
            timedelta: None,
            num_eval_timestamps: 1,
            sql: None,
            train: rows(),
            val: rows(),
            test: rows(),
        }
    }
    /// The rows of a part.
    pub fn rows(&self, part: Part) -> &TaskRows {
        match part {
            Part::Train => &self.train,
            Part::Val => &self.val,
            Part::Test => &self.test,
        }
    }
    /// The rows of a part, to be changed.
    pub fn rows_mut(&mut self, part: Part) -> &mut TaskRows {
        match part {
            Part::Train => &mut self.train,
            Part::Val => &mut self.val,
            Part::Test => &mut self.test,
        }
    }
    /// Columns `(table, column)` that a model of this task must not see: [`remove_columns`](Self::remove_columns), and the
    /// target column of an autocomplete task.
    pub fn hidden_columns(&self) -> Vec<(String, String)> {
        let mut columns = self.remove_columns.clone();
        let target = (self.entity_table.clone(), self.target_column.clone());
        if self.kind == TaskKind::Autocomplete && !columns.contains(&target) {
            columns.push(target);
        }
        columns
    }
    /// The default metric, [`TaskType::metric`].
    pub fn metric(&self) -> &'static str {
        self.task_type.metric()
    }
}

/// Seed time of a task without times, which sees all rows that have a time.
pub const LATEST: i64 = i64::MAX - 1;

/// Rows of a part of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRows {
    /// Seed times, in microseconds since 1970; [`LATEST`] for a task without times.
    pub times: Vec<i64>,
    /// Rows of the entity table.
    pub entities: Vec<u32>,
    /// Targets.
    pub targets: Targets,
    /// Rows of the label table that were dropped, because their entity is not in its table.
    pub dropped: usize,
}

impl TaskRows {
    /// No rows, with targets of a task type.
    pub fn empty(task_type: TaskType) -> Self {
        let targets = match task_type {
            TaskType::Regression => Targets::Values(vec![]),
            TaskType::BinaryClassification | TaskType::MulticlassClassification => {
                Targets::Classes(vec![])
            }
            TaskType::MultilabelClassification => Targets::Labels { columns: 0, values: vec![] },
            TaskType::Recommendation => Targets::Lists(vec![]),
        };
        Self { times: vec![], entities: vec![], targets, dropped: 0 }
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.entities.len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
    /// The rows at these positions, in this order.
    ///
    /// # Panics
    /// If a position is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            times: rows.iter().map(|&i| self.times[i]).collect(),
            entities: rows.iter().map(|&i| self.entities[i]).collect(),
            targets: self.targets.select(rows),
            dropped: self.dropped,
        }
    }
    /// Renumbers entities and rows of the destination table; `u32::MAX` is a row that is no more. Rows without entity, or
    /// without any of their destinations, are dropped.
    pub(crate) fn renumber(&mut self, entities: Option<&[u32]>, destinations: Option<&[u32]>) {
        let mut kept: Vec<usize> = (0..self.len()).collect();
        if let Some(numbers) = entities {
            kept.retain(|&i| numbers[self.entities[i] as usize] != u32::MAX);
            // Rows that are dropped below get an invalid number.
            for entity in &mut self.entities {
                *entity = numbers[*entity as usize];
            }
        }
        if let (Some(numbers), Targets::Lists(lists)) = (destinations, &mut self.targets) {
            kept.retain(|&i| {
                let before = lists[i].len();
                lists[i] = lists[i].iter().map(|&r| numbers[r as usize]).collect();
                lists[i].retain(|&r| r != u32::MAX);
                lists[i].sort_unstable();
                before == 0 || !lists[i].is_empty()
            });
        }
        if kept.len() < self.len() {
            let dropped = self.dropped + self.len() - kept.len();
            *self = Self { dropped, ..self.select(&kept) };
        }
    }
}

/// Targets of task rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A class per row, from 0; -1 if it is missing (hidden test labels).
    Classes(Vec<i64>),
    /// A number per row; NaN if it is missing.
    Values(Vec<f64>),
    /// 0 or 1 for each label, row by row; NaN if the labels of a row are missing.
    Labels {
        /// Number of labels.
        columns: usize,
        /// `rows * columns` values.
        values: Vec<f32>,
    },
    /// Rows of the destination table, ascending; empty if they are missing.
    Lists(Vec<Vec<u32>>),
}

impl Targets {
    /// Number of rows; 0 for labels without columns.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(v) => v.len(),
            Self::Values(v) => v.len(),
            Self::Labels { columns, values } => values.len().checked_div(*columns).unwrap_or(0),
            Self::Lists(v) => v.len(),
        }
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Classes(v) => Self::Classes(rows.iter().map(|&i| v[i]).collect()),
            Self::Values(v) => Self::Values(rows.iter().map(|&i| v[i]).collect()),
            Self::Lists(v) => Self::Lists(rows.iter().map(|&i| v[i].clone()).collect()),
            Self::Labels { columns, values } => {
                let row = |&i: &usize| &values[i * columns..(i + 1) * columns];
                let values = rows.iter().flat_map(row).copied().collect();
                Self::Labels { columns: *columns, values }
            }
        }
    }
}
