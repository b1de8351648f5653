//! Tasks whose labels are declared: aggregates over the rows of a window after each seed time.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use burn_gnn_files::DataError;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::column::{ColumnValues, DatabaseColumn};
use super::database::Database;
use super::references::References;
use super::table::{DatabaseTable, ForeignKey, NEVER};
use super::task::{DatabaseTask, Destination, Part, Targets, TaskKind, TaskRows, TaskType};
use super::time_order::time_order;
use super::time_span;
use crate::files::setting;
use crate::tables::TimeUnit;

/// Largest number of seed times of a part.
const MOST_TIMES: i64 = 1 << 20;

/// A task whose label is an aggregate over the rows of a child table in a window after the seed time, such as the number
/// of orders of a customer in the next 30 days.
///
/// For a seed at time `t`, the aggregate is over the child rows that refer to the entity, have a time in
/// `(t, t + window]` and pass the filter. It reads `column` of the child table, without rows in which it is missing.
///
/// * **Seed times**, as in RelBench: training seeds run back from `val_timestamp - window` in steps to the first time
///   of the database. Validation seeds run from `val_timestamp` in steps, as long as their window ends by `test_timestamp`;
///   test seeds from `test_timestamp`, as long as it ends by the last time of the database; each of them at most
///   `num_eval_timestamps`. No training window reaches the validation time.
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
    /// Makes the label binary: whether the aggregate compares so with a number.
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
    /// Those with at least one child row in the window, whether it passes the filter or not. The choice of seeds knows
    /// the future, as in many tasks of RelBench; labels such as a count are then never 0 without a filter.
    #[default]
    WithRows,
    /// Those with at least one child row in the time up to the seed's of this length: `(t - length, t]`.
    Active(#[serde(with = "time_span")] Duration),
    /// All rows of the entity table.
    All,
}

/// A comparison of a value with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    NotEqual,
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// Less or equal.
    #[serde(rename = "<=")]
    LessEqual,
    /// Greater.
    #[serde(rename = ">")]
    Greater,
    /// Greater or equal.
    #[serde(rename = ">=")]
    GreaterEqual,
}

impl Comparison {
    /// Whether values of this order compare so.
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// A condition on a row of the child table. A missing value fulfils none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Column of the child table.
    pub column: String,
    /// How its value compares with `value`.
    pub op: Comparison,
    /// The constant.
    pub value: ConditionValue,
}

/// The constant of a [`Condition`], of the type of its column. Times are texts of ISO 8601 or microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

impl From<bool> for ConditionValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<i64> for ConditionValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<f64> for ConditionValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
impl From<&str> for ConditionValue {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

/// Makes a label of an aggregate: 1 if it compares so with a number, 0 if not.
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

    /// The task with the labels of all parts. A database without a test time has no test part.
    ///
    /// # Errors
    /// As [`rows`](Self::rows) and [`seed_times`](Self::seed_times).
    ///
    /// # Cost
    /// A join and a sort of the child table; per seed time a sort of the rows in its window. Seed times in parallel.
    pub fn to_task(&self, db: &Database) -> Result<DatabaseTask, DataError> {
        let plan = Plan::new(self, db)?;
        let entities = db.table(&self.entity_table)?;
        let entity_column = entities.primary_key().join("+");
        let (name, target) = (&*self.name, &*self.target_column);
        let mut task =
            DatabaseTask::new(name, self.task_type(), &*self.entity_table, entity_column, target);
        task.description = self.description.clone();
        task.kind = TaskKind::Forecast;
        task.destination = plan.destination.clone().map(|table| Destination {
            table,
            column: self.column.clone().unwrap_or_default(),
            k: self.eval_k,
        });
        task.remove_columns = self.remove_columns.clone();
        task.timedelta = Some(plan.window);
        task.num_eval_timestamps = self.num_eval_timestamps;
        for (part, times) in Part::ALL.into_iter().zip(self.seed_times(db)?) {
            *task.rows_mut(part) = plan.rows(&times);
        }
        Ok(task)
    }

    /// The labels at given seed times.
    ///
    /// # Errors
    /// `GraphError::Setting` for a window or step of length 0, and for a column or threshold that the aggregate does not
    /// use. [`DataError::Database`] for an unknown table or column, a child table without time column or without foreign
    /// key to the entity table, a column that cannot be aggregated so, and a condition of another type than its column.
    pub fn rows(&self, db: &Database, times: &[i64]) -> Result<TaskRows, DataError> {
        Ok(Plan::new(self, db)?.rows(times))
    }

    /// The seed times of training, validation and test, ascending.
    ///
    /// # Errors
    /// `GraphError::Setting` for a window or step of length 0, for more than 2²⁰ seed times in a part, for a database without
    /// validation time, and if the window of the first validation or test seed ends after the data of the part.
    pub fn seed_times(&self, db: &Database) -> Result<[Vec<i64>; 3], DataError> {
        let (window, step) = (self.micros(self.window)?, self.micros(self.step())?);
        let Some(val) = db.val_timestamp() else {
            let expected = "a database with a validation time (`Database::with_timestamps`), or seed times (`WindowTask::rows`)";
            return Err(setting("val_timestamp", expected, "none"));
        };
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for table in db.tables().iter().filter(|table| table.time_column().is_some()) {
            for time in table.row_times().into_iter().filter(|&time| time != NEVER) {
                (first, last) = (first.min(time), last.max(time));
            }
        }
        // The number of steps from `from` to `to`, and one more; 0 if `to` is earlier.
        let count = |from: i64, to: i64| match to.checked_sub(from) {
            Some(span) if span >= 0 => span / step + 1,
            _ => 0,
        };
        let begin = val.saturating_sub(window);
        let train = count(first, begin);
        if train > MOST_TIMES {
            let expected = format!("a step with at most {MOST_TIMES} training seed times");
            let found = format!("{} with {train}", time_span::to_text(&self.step()));
            return Err(setting("step", &expected, &found));
        }
        let train = (0..train).rev().map(|i| begin - i * step).collect();
        let eval = |part: Part, from: i64, end: i64| {
            let found = count(from, end.saturating_sub(window));
            if found == 0 {
                let window = time_span::to_text(&self.window);
                let expected = format!(
                    "a window that ends by the {} after the {part} time",
                    if part == Part::Val { "test time" } else { "last time of the database" }
                );
                return Err(setting(
                    "window",
                    &expected,
                    &format!("{window}, which ends later; shorten it or move the time"),
                ));
            }
            let found = found.min(self.num_eval_timestamps.try_into().unwrap_or(i64::MAX));
            if found > MOST_TIMES {
                let expected = format!("at most {MOST_TIMES}");
                return Err(setting("num_eval_timestamps", &expected, &found.to_string()));
            }
            Ok((0..found).map(|i| from + i * step).collect())
        };
        let test = match db.test_timestamp() {
            Some(test) => eval(Part::Test, test, last)?,
            None => vec![],
        };
        Ok([train, eval(Part::Val, val, db.test_timestamp().unwrap_or(last))?, test])
    }

    fn step(&self) -> Duration {
        self.step.unwrap_or(self.window)
    }
    fn micros(&self, span: Duration) -> Result<i64, DataError> {
        let micros = i64::try_from(span.as_micros()).ok().filter(|&micros| micros > 0);
        micros.ok_or_else(|| {
            let expected = "a length of at least one microsecond and at most 292,000 years";
            setting("window", expected, &format!("{span:?}"))
        })
    }
}

/// The values that are aggregated, by row of the child table.
enum Values {
    /// Rows count, whatever their values.
    Rows,
    Numbers(Vec<f64>),
    /// Equal values have equal codes.
    Codes(Vec<u64>),
    /// Rows of another table.
    References(Vec<u32>),
}

/// A [`WindowTask`] with the columns of its database.
struct Plan {
    aggregate: Aggregate,
    threshold: Option<Threshold>,
    task_type: TaskType,
    window: i64,
    /// Length of the time before the seed's in which entities must have a row.
    look_back: Option<i64>,
    all: bool,
    /// Time of each entity; `None` for a table without times.
    entity_times: Option<Vec<i64>>,
    num_entities: usize,
    /// Child rows with an entity and a time, by time, then by primary key.
    order: Vec<u32>,
    /// Their times.
    times: Vec<i64>,
    /// Their entities.
    entities: Vec<u32>,
    /// Whether each child row counts: it passes the filter, and its value is not missing.
    counts: Vec<bool>,
    values: Values,
    destination: Option<String>,
}

impl Plan {
    fn new(task: &WindowTask, db: &Database) -> Result<Self, DataError> {
        let window = task.micros(task.window)?;
        let look_back = match task.entities {
            WindowEntities::Active(span) => Some(task.micros(span)?),
            WindowEntities::WithRows | WindowEntities::All => None,
        };
        let (entities, child) = (db.table(&task.entity_table)?, db.table(&task.table)?);
        if child.time_column().is_none() {
            let why = "expected a table with a time column, whose rows are in windows, found none; declare it";
            return Err(child.error("", None, why));
        }
        if task.threshold.is_some() && matches!(task.aggregate, Aggregate::Exists | Aggregate::List)
        {
            let expected = "no threshold for `exists` and `list`, which are no numbers";
            return Err(setting("threshold", expected, "one"));
        }
        let references = db.references(&task.table, task.key_number(child)?)?;
        let child_times = child.row_times();
        let mut counts = vec![true; child.rows()];
        for condition in &task.filter {
            condition.apply(child, &mut counts)?;
        }
        let column = task.column.as_ref().map(|name| child.column(name)).transpose()?;
        let (values, destination) = task.values(db, child, column, &mut counts)?;
        if let Some(missing) = column.and_then(DatabaseColumn::missing) {
            counts.iter_mut().zip(missing).for_each(|(counts, missing)| *counts &= !missing);
        }
        let mut order = time_order(child, Some(&child_times))
            .unwrap_or_else(|| (0..child.rows() as u32).collect());
        order.retain(|&row| {
            references.rows[row as usize] != References::NONE && child_times[row as usize] != NEVER
        });
        Ok(Self {
            aggregate: task.aggregate,
            threshold: task.threshold,
            task_type: task.task_type(),
            window,
            look_back,
            all: task.entities == WindowEntities::All,
            entity_times: entities.time_column().map(|_| entities.row_times()),
            num_entities: entities.rows(),
            times: order.iter().map(|&row| child_times[row as usize]).collect(),
            entities: order.iter().map(|&row| references.rows[row as usize]).collect(),
            order,
            counts,
            values,
            destination,
        })
    }

    /// Rows at all seed times, which are independent of each other.
    fn rows(&self, times: &[i64]) -> TaskRows {
        let found: Vec<(Vec<u32>, Targets)> = times.par_iter().map(|&t| self.at(t)).collect();
        let mut all = TaskRows::empty(self.task_type);
        for (&time, (entities, targets)) in times.iter().zip(found) {
            all.times.resize(all.times.len() + entities.len(), time);
            all.entities.extend(entities);
            match (&mut all.targets, targets) {
                (Targets::Classes(all), Targets::Classes(new)) => all.extend(new),
                (Targets::Values(all), Targets::Values(new)) => all.extend(new),
                (Targets::Lists(all), Targets::Lists(new)) => all.extend(new),
                _ => unreachable!("`at` makes targets of the task type"),
            }
        }
        all
    }

    /// Positions in the order of times after `from` and up to `to`.
    fn between(&self, from: i64, to: i64) -> std::ops::Range<usize> {
        let start = self.times.partition_point(|&time| time <= from);
        start..self.times.partition_point(|&time| time <= to).max(start)
    }

    /// Entities and targets at one seed time.
    fn at(&self, time: i64) -> (Vec<u32>, Targets) {
        let end = time.saturating_add(self.window);
        let pair = |i: usize| (self.entities[i], self.order[i]);
        let mut pairs: Vec<(u32, u32)> = self.between(time, end).map(pair).collect();
        // Stable: the rows of an entity stay in the order of their times, so that sums have one order.
        pairs.sort_by_key(|pair| pair.0);
        let mut seeds: Vec<u32> = match self.look_back {
            _ if self.all => (0..self.num_entities as u32).collect(),
            None => pairs.iter().map(|pair| pair.0).collect(),
            Some(back) => self.entities[self.between(time.saturating_sub(back), time)].to_vec(),
        };
        seeds.sort_unstable();
        seeds.dedup();
        if let Some(of) = &self.entity_times {
            seeds.retain(|&entity| of[entity as usize] <= time && of[entity as usize] != NEVER);
        }
        let mut targets = TaskRows::empty(self.task_type).targets;
        let mut rest = &pairs[..];
        let mut rows = vec![];
        seeds.retain(|&entity| {
            rest = &rest[rest.partition_point(|pair| pair.0 < entity)..];
            let len = rest.partition_point(|pair| pair.0 == entity);
            rows.clear();
            let counted = rest[..len].iter().map(|pair| pair.1);
            rows.extend(counted.filter(|&row| self.counts[row as usize]));
            self.push(&rows, &mut targets)
        });
        (seeds, targets)
    }

    /// Appends the target of an entity with these rows; `false` if it has none.
    fn push(&self, rows: &[u32], targets: &mut Targets) -> bool {
        let number = match targets {
            Targets::Lists(all) => {
                let Values::References(to) = &self.values else { return false };
                let mut list: Vec<u32> = rows.iter().map(|&row| to[row as usize]).collect();
                list.sort_unstable();
                list.dedup();
                let is_label = !list.is_empty();
                if is_label {
                    all.push(list);
                }
                return is_label;
            }
            _ => self.number(rows),
        };
        let Some(number) = number else { return false };
        match targets {
            Targets::Classes(all) => {
                let order = |t: Threshold| number.partial_cmp(&t.value).map(|o| t.op.holds(o));
                let class = self.threshold.map_or(number > 0.0, |t| order(t).unwrap_or(false));
                all.push(class.into());
            }
            Targets::Values(all) => all.push(number),
            Targets::Lists(_) | Targets::Labels { .. } => return false,
        }
        true
    }

    /// The aggregate of rows; `None` if there are none and it has no value then.
    fn number(&self, rows: &[u32]) -> Option<f64> {
        let count = rows.len() as f64;
        let value = |&row: &u32| match &self.values {
            Values::Numbers(of) => of[row as usize],
            Values::Rows | Values::Codes(_) | Values::References(_) => 0.0,
        };
        match self.aggregate {
            Aggregate::Count | Aggregate::Exists => Some(count),
            Aggregate::Sum => Some(rows.iter().map(value).fold(0.0, |sum, v| sum + v)),
            Aggregate::Mean => (!rows.is_empty())
                .then(|| rows.iter().map(value).fold(0.0, |sum, v| sum + v) / count),
            Aggregate::Min => rows.iter().map(value).reduce(f64::min),
            Aggregate::Max => rows.iter().map(value).reduce(f64::max),
            Aggregate::Distinct => {
                let Values::Codes(codes) = &self.values else { return None };
                let mut found: Vec<u64> = rows.iter().map(|&row| codes[row as usize]).collect();
                found.sort_unstable();
                found.dedup();
                Some(found.len() as f64)
            }
            Aggregate::List => None,
        }
    }
}

impl WindowTask {
    /// Number of the foreign key of the child table to the entity table.
    fn key_number(&self, child: &DatabaseTable) -> Result<usize, DataError> {
        let all = child.foreign_keys();
        let to_entity = |i: &usize| {
            all[*i].table == self.entity_table
                && self.key.as_ref().is_none_or(|key| *key == all[*i].name())
        };
        let found: Vec<usize> = (0..all.len()).filter(to_entity).collect();
        if let [number] = found[..] {
            return Ok(number);
        }
        let names =
            |keys: &[usize]| -> Vec<String> { keys.iter().map(|&i| all[i].name()).collect() };
        let why = match found.len() {
            0 => format!(
                "task `{}`: expected a foreign key to `{}`, found the keys {:?}; name one in `key`, or declare it",
                self.name,
                self.entity_table,
                names(&(0..all.len()).collect::<Vec<_>>())
            ),
            _ => format!(
                "task `{}`: expected one foreign key to `{}`, found {:?}; name one in `key`",
                self.name,
                self.entity_table,
                names(&found)
            ),
        };
        Err(child.error("", None, why))
    }

    /// The values that the aggregate reads, and the table of which they are rows. Rows without one do not count.
    fn values(
        &self,
        db: &Database,
        child: &DatabaseTable,
        column: Option<&DatabaseColumn>,
        counts: &mut [bool],
    ) -> Result<(Values, Option<String>), DataError> {
        let wrong = |column: &DatabaseColumn, expected: &str| {
            let (name, found) = (&self.name, column.values().type_name());
            let aggregate = format!("{:?}", self.aggregate).to_lowercase();
            let why = format!(
                "task `{name}`, aggregate `{aggregate}`: expected {expected}, found {found}; choose another column or aggregate"
            );
            child.error(column.name(), None, why)
        };
        let Some(column) = column else {
            if matches!(self.aggregate, Aggregate::Count | Aggregate::Exists) {
                return Ok((Values::Rows, None));
            }
            let aggregate = format!("a column for the aggregate {:?}", self.aggregate);
            return Err(setting("column", &aggregate, "none"));
        };
        let values = match self.aggregate {
            Aggregate::Count | Aggregate::Exists => Values::Rows,
            Aggregate::Sum | Aggregate::Mean | Aggregate::Min | Aggregate::Max => {
                Values::Numbers(match column.values() {
                    ColumnValues::Ints(v) => v.iter().map(|&v| v as f64).collect(),
                    ColumnValues::Floats(v) => v.clone(),
                    ColumnValues::Bools(v) => v.iter().map(|&v| f64::from(u8::from(v))).collect(),
                    _ => return Err(wrong(column, "numbers or booleans")),
                })
            }
            Aggregate::Distinct => Values::Codes(match column.values() {
                ColumnValues::Ints(v) | ColumnValues::Times(v) => {
                    v.iter().map(|&v| v as u64).collect()
                }
                // 0 and -0 are equal.
                ColumnValues::Floats(v) => v.iter().map(|&v| (v + 0.0).to_bits()).collect(),
                ColumnValues::Bools(v) => v.iter().map(|&v| u64::from(v)).collect(),
                ColumnValues::Texts(v) => {
                    let mut codes = HashMap::new();
                    let code = |text| {
                        let next = codes.len() as u64;
                        *codes.entry(text).or_insert(next)
                    };
                    v.iter().map(code).collect()
                }
                _ => return Err(wrong(column, "numbers, texts, times or booleans")),
            }),
            Aggregate::List => {
                let is_of = |key: &ForeignKey| key.columns == [column.name()];
                let Some(number) = child.foreign_keys().iter().position(is_of) else {
                    return Err(wrong(column, "the column of a foreign key"));
                };
                let references = db.references(child.name(), number)?;
                let known = counts.iter_mut().zip(&references.rows);
                known.for_each(|(counts, &row)| *counts &= row != References::NONE);
                let table = child.foreign_keys()[number].table.clone();
                return Ok((Values::References(references.rows), Some(table)));
            }
        };
        Ok((values, None))
    }
}

impl Condition {
    /// Clears the flags of rows that do not fulfil the condition.
    fn apply(&self, table: &DatabaseTable, counts: &mut [bool]) -> Result<(), DataError> {
        let column = table.column(&self.column)?;
        let wrong = |expected: &str| {
            let found = serde_json::to_string(&self.value).unwrap_or_default();
            let why = format!(
                "filter: expected {expected} as in the column, found {found}; correct the value"
            );
            table.error(&self.column, None, why)
        };
        let op = self.op;
        let float = |a: f64, b: f64| a.partial_cmp(&b).is_some_and(|order| op.holds(order));
        let mut keep = |holds: &dyn Fn(usize) -> bool| {
            let rows = counts.iter_mut().enumerate().filter(|(_, counts)| **counts);
            rows.for_each(|(row, counts)| *counts = !column.is_missing(row) && holds(row));
        };
        match (column.values(), &self.value) {
            (ColumnValues::Ints(v), ConditionValue::Int(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Ints(v), ConditionValue::Float(x)) => keep(&|i| float(v[i] as f64, *x)),
            (ColumnValues::Floats(v), ConditionValue::Int(x)) => keep(&|i| float(v[i], *x as f64)),
            (ColumnValues::Floats(v), ConditionValue::Float(x)) => keep(&|i| float(v[i], *x)),
            (ColumnValues::Bools(v), ConditionValue::Bool(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Times(v), ConditionValue::Int(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Texts(v), ConditionValue::Text(x)) => {
                keep(&|i| op.holds(v.get(i).cmp(x.as_str())));
            }
            (ColumnValues::Times(v), ConditionValue::Text(x)) => {
                let time = TimeUnit::Microseconds.parse(x.as_bytes());
                let time = time.map_err(|_| wrong("a time of ISO 8601, such as 2014-12-31,"))?;
                keep(&|i| op.holds(v[i].cmp(&time)));
            }
            (ColumnValues::Ints(_) | ColumnValues::Floats(_), _) => return Err(wrong("a number")),
            (ColumnValues::Bools(_), _) => return Err(wrong("true or false")),
            (ColumnValues::Times(_), _) => return Err(wrong("a time")),
            (ColumnValues::Texts(_), _) => return Err(wrong("a text")),
            (ColumnValues::Lists(_) | ColumnValues::Vectors { .. }, _) => {
                let why = format!(
                    "filter: expected a column of single values, found {}; choose another column",
                    column.values().type_name()
                );
                return Err(table.error(&self.column, None, why));
            }
        }
        Ok(())
    }
}
