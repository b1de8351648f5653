//! Declarations of tasks whose labels are aggregates over the rows of a window after each seed time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::condition::{Comparison, Condition, ConditionValue};
use super::time_span;
use crate::database::task::TaskType;

/// A task whose label is an aggregate over the rows of a child table in a window after the seed time, such as the number
/// of orders of a customer in the next 30 days.
///
/// For a seed at time `t`, the aggregate is over the child rows that refer to the entity, have a time in
/// `(t, t + window]` and pass the filter. It reads `column` of the child table, without rows in which it is missing.
///
/// * **Seed times**, as in RelBench: training seeds run back from `val_timestamp - window` in steps to the first time
///   of the database. Validation seeds run from `val_timestamp` in steps, as long as their window ends by `test_timestamp`;
///   test seeds from `test_timestamp`, as long as it ends by the last time of the database; each of them at most
///   `num_eval_timestamps`. No training window ends after the validation time.
/// * **Entities** are chosen by [`WindowEntities`]. An entity whose own row is later than the seed time is no seed.
/// * **Order.** Rows are in the order of seed times, then of entities.
///
/// It can be read from TOML or JSON (serde); `remove_columns`, `filter` and all options may be left out:
///
/// ```toml
/// name = "driver-dnf"
/// entity_table = "drivers"
/// table = "results"
/// aggregate = "exists"                                           # count, sum, mean, min, max, exists, distinct, list
/// filter = [{ column = "statusId", op = "!=", value = 1 }]       # all must hold
/// window = "30 days"
/// num_eval_timestamps = 40
/// entities = "with-rows"                                         # or "all", or { active = "365 days" }
/// ```
///
/// ```
/// use burn_gnn_data::{Aggregate, ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, Targets, WindowTask};
/// # let ids = |name, ids| DatabaseColumn::new(name, ColumnKind::Key, ColumnValues::Ints(ids));
/// # let users = DatabaseTable::new("users", [ids("id", vec![7, 3])?])?.with_primary_key(["id"])?;
/// # let times = DatabaseColumn::new("date", ColumnKind::Time, ColumnValues::Times(vec![10, 20, 30, 30]))?;
/// # let paid = DatabaseColumn::new("paid", ColumnKind::Number, ColumnValues::Ints(vec![1, 2, 3, 5]))?;
/// # let orders = DatabaseTable::new("orders", [ids("user", vec![3, 7, 3, 3])?, times, paid])?;
/// # let orders = orders.with_foreign_key(["user"], "users")?.with_time_column("date")?;
/// # let db = Database::new("shop", [users, orders])?;
/// let window = std::time::Duration::from_micros(15);
/// let task = WindowTask::new("spent", "users", "orders", Aggregate::Sum, window).with_column("paid");
/// let rows = task.rows(&db, &[10, 15])?;
/// assert_eq!((rows.times, rows.entities), (vec![10, 15, 15], vec![0, 0, 1]));
/// assert_eq!(rows.targets, Targets::Values(vec![2.0, 2.0, 8.0]));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WindowTask {
    /// Name, such as `driver-dnf`.
    pub name: String,
    /// Description for readers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Table of the entities, which has a primary key.
    pub entity_table: String,
    /// Child table whose rows are aggregated. It has a time column and a foreign key to the entity table.
    pub table: String,
    /// Columns of the foreign key, joined by `+`; needed if the child table has several to the entity table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is computed.
    pub aggregate: Aggregate,
    /// Column that is aggregated. [`Aggregate::Count`] and [`Aggregate::Exists`] can do without, and then count rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Conditions that a row must fulfil.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Makes the label binary: whether the comparison of the aggregate with a number holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// Length of the window.
    #[serde(with = "time_span")]
    pub window: Duration,
    /// Distance of seed times; the window if `None`.
    #[serde(default, with = "time_span::optional", skip_serializing_if = "Option::is_none")]
    pub step: Option<Duration>,
    /// Largest number of seed times of validation and of test.
    #[serde(default = "one")]
    pub num_eval_timestamps: usize,
    /// Which entities are seeds.
    #[serde(default)]
    pub entities: WindowEntities,
    /// Number of recommended rows, for [`Aggregate::List`].
    #[serde(default = "ten")]
    pub eval_k: usize,
    /// Name of the target.
    #[serde(default = "target")]
    pub target_column: String,
    /// Columns `(table, column)` that a model of the task must not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_columns: Vec<(String, String)>,
}

fn one() -> usize {
    1
}
fn ten() -> usize {
    10
}
fn target() -> String {
    "target".into()
}

/// What a [`WindowTask`] computes of the rows in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Number of rows; of rows with a value if there is a column.
    Count,
    /// Sum; 0 without rows.
    Sum,
    /// Mean. Entities without a value have no label.
    Mean,
    /// Smallest value. Entities without a value have no label.
    Min,
    /// Largest value. Entities without a value have no label.
    Max,
    /// 1 if there is a row, 0 if not.
    Exists,
    /// Number of distinct values.
    Distinct,
    /// The rows to which a foreign key, given by its column, refers, for recommendation. Entities without any have no
    /// label.
    List,
}

/// Which entities are seeds of a [`WindowTask`] at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowEntities {
    /// Those with at least one child row in the window, whether it passes the filter or not. The choice of seeds depends
    /// on rows after the seed time, as in many tasks of RelBench; a count is then never 0 without a filter.
    #[default]
    WithRows,
    /// Those with at least one child row in the time up to the seed's of this length: `(t - length, t]`.
    Active(#[serde(with = "time_span")] Duration),
    /// All rows of the entity table.
    All,
}

/// Makes a binary label of an aggregate: 1 if its comparison with a number holds, 0 if not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// How the aggregate compares with `value`.
    pub op: Comparison,
    /// The number.
    pub value: f64,
}

impl WindowTask {
    /// A task with a seed time per window, one seed time of validation and of test, and seeds
    /// [with rows](WindowEntities::WithRows).
    pub fn new(
        name: impl Into<String>,
        entity_table: impl Into<String>,
        table: impl Into<String>,
        aggregate: Aggregate,
        window: Duration,
    ) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            entity_table: entity_table.into(),
            table: table.into(),
            key: None,
            aggregate,
            column: None,
            filter: vec![],
            threshold: None,
            window,
            step: None,
            num_eval_timestamps: one(),
            entities: WindowEntities::default(),
            eval_k: ten(),
            target_column: target(),
            remove_columns: vec![],
        }
    }
    /// Sets the column that is aggregated.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
    /// Adds a condition that rows must fulfil.
    #[must_use]
    pub fn with_filter(
        mut self,
        column: impl Into<String>,
        op: Comparison,
        value: impl Into<ConditionValue>,
    ) -> Self {
        self.filter.push(Condition { column: column.into(), op, value: value.into() });
        self
    }
    /// Makes the label binary.
    #[must_use]
    pub fn with_threshold(mut self, op: Comparison, value: f64) -> Self {
        self.threshold = Some(Threshold { op, value });
        self
    }
    /// Sets which entities are seeds.
    #[must_use]
    pub fn with_entities(mut self, entities: WindowEntities) -> Self {
        self.entities = entities;
        self
    }
    /// Sets the distance of seed times.
    #[must_use]
    pub fn with_step(mut self, step: Duration) -> Self {
        self.step = Some(step);
        self
    }
    /// Sets the largest number of seed times of validation and of test.
    #[must_use]
    pub fn with_num_eval_timestamps(mut self, count: usize) -> Self {
        self.num_eval_timestamps = count;
        self
    }
    /// Sets the name of the target.
    #[must_use]
    pub fn with_target_column(mut self, name: impl Into<String>) -> Self {
        self.target_column = name.into();
        self
    }

    /// What is predicted.
    pub fn task_type(&self) -> TaskType {
        match self.aggregate {
            Aggregate::List => TaskType::Recommendation,
            Aggregate::Exists => TaskType::BinaryClassification,
            _ if self.threshold.is_some() => TaskType::BinaryClassification,
            _ => TaskType::Regression,
        }
    }
}
