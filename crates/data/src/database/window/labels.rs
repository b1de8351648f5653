//! Computes the labels of window tasks.

use std::collections::HashMap;

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::declaration::{Aggregate, Threshold, WindowEntities, WindowTask};
use super::seed_times::micros;
use crate::database::column::{ColumnValues, DatabaseColumn};
use crate::database::database::Database;
use crate::database::references::References;
use crate::database::table::{DatabaseTable, ForeignKey, NEVER};
use crate::database::task::{
    DatabaseTask, Destination, Part, Targets, TaskKind, TaskRows, TaskType,
};
use crate::database::time_order::time_order;
use crate::files::setting;

impl WindowTask {
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
        let window = micros("window", task.window)?;
        let look_back = match task.entities {
            WindowEntities::Active(span) => Some(micros("entities", span)?),
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
