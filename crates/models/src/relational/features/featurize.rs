//! Aggregates the rows around seeds as columns of one table, for tabular models.
//!
//! ```text
//! for each seed (in parallel):
//!     for each path of foreign keys from the entity, of at most two steps:
//!         rows = visible rows at the end of the path, the latest `max_rows` of each list, in the order of time
//!         for each column: aggregates over rows
//! ```

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseGraph, DatabaseTable, DatabaseTask,
    Part, Protocol, Targets,
};
use burn_gnn_graph::{EdgeType, Texts};
use rayon::prelude::*;

use crate::error::ModelError;
use crate::relational::database_seeds::{DatabaseSeeds, is_visible};
use crate::relational::relational_data::for_task;

/// Options of [`featurize`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeaturizeOptions {
    /// Steps along foreign keys: 1 or 2; 2 by default.
    pub hops: usize,
    /// Rows of each list of rows that refer to a row, the latest ones; 512 by default.
    pub max_rows: usize,
}

impl Default for FeaturizeOptions {
    fn default() -> Self {
        Self { hops: 2, max_rows: 512 }
    }
}

/// Microseconds of a day.
const DAY: f64 = 86_400_000_000.0;

/// A path of foreign keys from the entity.
struct Path {
    /// Edge types, from the entity outward, and whether each leads to the rows that refer to a row.
    steps: Vec<(usize, bool)>,
    /// Table at its end.
    table: usize,
    name: String,
}

/// What a feature is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    /// Number of rows.
    Count,
    /// Days since the time of the latest row.
    SinceRow,
    /// The value of the only row, or of the latest one.
    Last,
    Mean,
    Min,
    Max,
    /// Number of distinct values.
    Distinct,
    /// Days since the latest value.
    Since,
}

impl Aggregate {
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::SinceRow | Self::Since => "since",
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Distinct => "distinct",
        }
    }
}

/// A column of the result.
#[derive(Clone, Debug)]
pub(crate) struct Feature {
    pub(crate) name: String,
    /// Number of its table and of its column there.
    pub(crate) table: usize,
    pub(crate) column: Option<usize>,
    path: usize,
    aggregate: Aggregate,
    /// Whether the values are numbers; otherwise they are rows of the table, whose categories are the values.
    is_number: bool,
}

/// Features of seeds.
pub(crate) struct Features {
    pub(crate) features: Vec<Feature>,
    /// `[seeds, features]`, NaN where a value is missing; categories as row of their table.
    pub(crate) values: Vec<f64>,
}

/// Computes one row per seed of `seeds` (rows of `entity_table`): aggregates of the rows that the seed sees, at most two
/// foreign keys away. `task` removes its columns. [`DatabaseTable::write`] writes the result to a file. The result is a table with the columns `entity` (row of the entity
/// table), `time`, and one per aggregate:
///
/// | column | aggregates over the rows of a path |
/// | --- | --- |
/// | rows | `count`, `since` (days since the latest row) |
/// | numbers | `mean`, `min`, `max`, `last` |
/// | booleans | `mean`, `last` |
/// | categories | `distinct`, `last` |
/// | texts | `distinct` |
/// | times | `since` (days since the latest value) |
///
/// A path is named by its tables and keys: `results.driverId` are the results that refer to the driver,
/// `results.driverId>raceId` the races to which these refer. Values of the entity, and of rows to which it refers,
/// are single: they have no aggregates but `last`, which the name omits.
///
/// A row, also that of the entity, is read if its time is at most that which the seed sees ([`DatabaseSeeds::visible`]). Later rows change no bit of the
/// row of a seed, nor does the order of rows or the number of threads.
///
/// # Errors
/// An unknown table, seeds that do not fit it, options of 0 or more than 2 hops.
///
/// # Cost
/// `O(rows of the paths · columns)` per seed, in parallel over seeds; 8 bytes per value.
///
/// ```
/// use burn_gnn_data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
/// use burn_gnn_models::{FeaturizeOptions, DatabaseSeeds, featurize};
/// let column = |name, kind, values| DatabaseColumn::new(name, kind, values);
/// let users = DatabaseTable::new("users", [column("id", ColumnKind::Key, ColumnValues::Ints(vec![7, 3]))?])?;
/// let orders = DatabaseTable::new("orders", [
///     column("user", ColumnKind::Key, ColumnValues::Ints(vec![3, 3, 7]))?,
///     column("price", ColumnKind::Number, ColumnValues::Floats(vec![5.0, 7.0, 1.0]))?,
///     column("date", ColumnKind::Time, ColumnValues::Times(vec![10, 20, 30]))?,
/// ])?;
/// let orders = orders.with_foreign_key(["user"], "users")?.with_time_column("date")?;
/// let db = Database::new("shop", [users.with_primary_key(["id"])?, orders])?;
/// let table = featurize(&db, "users", &DatabaseSeeds::at(&[1, 0], 20), None, &FeaturizeOptions::default())?;
/// let means = table.column("orders.user.price.mean")?;
/// assert_eq!((means.values(), means.is_missing(1)), (&ColumnValues::Floats(vec![6.0, 0.0]), true));
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn featurize(
    db: &Database,
    entity_table: &str,
    seeds: &DatabaseSeeds,
    task: Option<&DatabaseTask>,
    options: &FeaturizeOptions,
) -> Result<DatabaseTable, ModelError> {
    let db = for_task(db, task)?;
    let found = Features::new(&db, &db.to_graph()?, entity_table, seeds, options)?;
    let entities = seeds.entities.iter().map(|&row| i64::from(row)).collect();
    let mut columns = vec![
        DatabaseColumn::new("entity", ColumnKind::Number, ColumnValues::Ints(entities))?,
        DatabaseColumn::new("time", ColumnKind::Time, ColumnValues::Times(seeds.times.clone()))?,
    ];
    let width = found.features.len();
    for (i, feature) in found.features.iter().enumerate() {
        let values: Vec<f64> = found.values.iter().skip(i).step_by(width).copied().collect();
        columns.push(feature.column_of(&db, values)?);
    }
    Ok(DatabaseTable::new("features", columns)?)
}

/// [`featurize`] for the rows of a part of a task, with their targets in a column `target`, except those of a
/// recommendation. Several labels of a row become `target_0`, `target_1`, ….
///
/// # Errors
/// An unknown task; as [`featurize`].
pub fn featurize_task(
    db: &Database,
    task: &str,
    part: Part,
    protocol: Protocol,
    options: &FeaturizeOptions,
) -> Result<DatabaseTable, ModelError> {
    let task = db.task(task)?;
    let seeds = DatabaseSeeds::of_task(db, task, part, protocol);
    let table = featurize(db, &task.entity_table, &seeds, Some(task), options)?;
    let mut columns = table.columns().to_vec();
    let mut add = |name: String, values: Vec<f64>| {
        let values = ColumnValues::Floats(values);
        columns.push(DatabaseColumn::new(name, ColumnKind::Number, values)?);
        Ok::<_, ModelError>(())
    };
    match seeds.targets {
        Some(Targets::Values(values)) => add("target".into(), values)?,
        Some(Targets::Classes(classes)) => {
            let value = |class: i64| if class < 0 { f64::NAN } else { class as f64 };
            add("target".into(), classes.into_iter().map(value).collect())?;
        }
        Some(Targets::Labels { columns: labels, values }) => {
            for label in 0..labels {
                let of = values.iter().skip(label).step_by(labels).map(|&y| f64::from(y));
                add(format!("target_{label}"), of.collect())?;
            }
        }
        Some(Targets::Lists(_)) | None => {}
    }
    Ok(DatabaseTable::new("features", columns)?)
}

impl Features {
    pub(crate) fn new(
        db: &Database,
        graph: &DatabaseGraph,
        entity_table: &str,
        seeds: &DatabaseSeeds,
        options: &FeaturizeOptions,
    ) -> Result<Self, ModelError> {
        let hops = options.hops;
        ModelError::check_range("hops", "1..=2", hops, (1..=2).contains(&hops))?;
        ModelError::check_sizes(&[("max_rows", options.max_rows)], 0.0)?;
        let entity = graph.graph().schema().ntype(entity_table)?;
        seeds.check(db.tables()[entity].rows())?;
        let paths = paths(db, graph, entity, hops)?;
        let features: Vec<Feature> =
            paths.iter().enumerate().flat_map(|(i, path)| features_of(db, i, path)).collect();
        let edges = (0..graph.graph().relations().len())
            .map(|etype| Ok((&graph.graph().relations()[etype], graph.edge_times(etype)?)))
            .collect::<Result<Vec<_>, ModelError>>()?;
        // Layouts are derived once, before threads read them.
        for path in &paths {
            for &(etype, _) in &path.steps {
                edges[etype].0.csc();
            }
        }
        let row_times =
            (0..db.tables().len()).map(|t| graph.row_times(t)).collect::<Result<Vec<_>, _>>()?;
        let mut values = vec![f64::NAN; features.len() * seeds.len()];
        let width = features.len().max(1);
        values.par_chunks_mut(width).enumerate().for_each(|(seed, out)| {
            let (time, visible) = (seeds.times[seed], seeds.visible[seed]);
            let entity_row = seeds.entities[seed];
            // The row of the entity may be later than what the seed sees.
            let is_seen = is_visible(row_times[entity], entity_row, visible);
            let own: Vec<u32> = is_seen.then_some(entity_row).into_iter().collect();
            let mut next = 0;
            for (i, path) in paths.iter().enumerate() {
                let mut rows = own.clone();
                for &(etype, _) in &path.steps {
                    let (relation, times) = edges[etype];
                    let csc = relation.csc();
                    let mut found = vec![];
                    for &row in &rows {
                        let of_row = csc.row(row as usize);
                        let seen = of_row.filter(|&p| times[csc.edge_id(p) as usize] <= visible);
                        let first = found.len();
                        found.extend(seen.map(|p| csc.indices()[p]));
                        let extra = (found.len() - first).saturating_sub(options.max_rows);
                        found.drain(first..first + extra);
                    }
                    rows = found;
                }
                let latest = latest(&rows, row_times[path.table]);
                while let Some(feature) = features.get(next).filter(|f| f.path == i) {
                    let at = At { rows: &rows, latest, time, row_times: row_times[path.table] };
                    out[next] = feature.value(&db.tables()[path.table], &at);
                    next += 1;
                }
            }
        });
        Ok(Self { features, values })
    }
}

/// The rows of a path for a seed.
struct At<'a> {
    rows: &'a [u32],
    latest: Option<u32>,
    time: i64,
    row_times: Option<&'a [i64]>,
}

/// The row of the latest time; of equal times the last one, in the order of time and key.
fn latest(rows: &[u32], times: Option<&[i64]>) -> Option<u32> {
    match times {
        None => rows.last().copied(),
        Some(times) => rows.iter().copied().max_by_key(|&row| times[row as usize]),
    }
}

/// All paths from a table, shorter ones first.
fn paths(
    db: &Database,
    graph: &DatabaseGraph,
    entity: usize,
    hops: usize,
) -> Result<Vec<Path>, ModelError> {
    let schema = graph.graph().schema();
    // Edge types into each table: those of rows that refer to its rows, and back.
    let mut keys = vec![];
    for key in graph.keys() {
        let forward =
            EdgeType::from((key.table.as_str(), key.columns.as_str(), key.refers_to.as_str()));
        let back_name = format!("rev_{}", key.columns);
        let back = EdgeType::from((key.refers_to.as_str(), back_name.as_str(), key.table.as_str()));
        keys.push((key, schema.etype(&forward)?, schema.etype(&back)?));
    }
    let tables = db.tables();
    let mut all =
        vec![Path { steps: vec![], table: entity, name: tables[entity].name().to_owned() }];
    let mut first = 0;
    for hop in 0..hops {
        let last = all.len();
        for i in first..last {
            let (steps, table, name) = (all[i].steps.clone(), all[i].table, all[i].name.clone());
            let before = steps.last().copied();
            for &(key, forward, back) in &keys {
                let step = |etype: usize, many: bool, name: String| {
                    let mut steps = steps.clone();
                    steps.push((etype, many));
                    Path { steps, table: schema.endpoints(etype).0, name }
                };
                let start =
                    |sign: &str| if hop == 0 { String::new() } else { format!("{name}{sign}") };
                if key.refers_to == tables[table].name() {
                    let of = format!("{}{}.{}", start("<"), key.table, key.columns);
                    all.push(step(forward, true, of));
                }
                // A row that refers to the row before leads back to it.
                if key.table == tables[table].name() && before != Some((forward, true)) {
                    let of = if hop == 0 {
                        format!("{}>{}", name, key.columns)
                    } else {
                        format!("{}{}", start(">"), key.columns)
                    };
                    all.push(step(back, false, of));
                }
            }
        }
        first = last;
    }
    Ok(all)
}

/// The features of a path.
fn features_of(db: &Database, path: usize, of: &Path) -> Vec<Feature> {
    let table = &db.tables()[of.table];
    let many = of.steps.iter().any(|step| step.1);
    let feature = |column: Option<usize>, aggregate: Aggregate, is_number: bool| {
        let mut name = of.name.clone();
        if let Some(column) = column {
            name = format!("{name}.{}", table.columns()[column].name());
        }
        if many || !matches!(aggregate, Aggregate::Last) {
            name = format!("{name}.{}", aggregate.name());
        }
        Feature { name, table: of.table, column, path, aggregate, is_number }
    };
    let mut all = vec![];
    if many {
        all.push(feature(None, Aggregate::Count, true));
        if table.time_column().is_some() {
            all.push(feature(None, Aggregate::SinceRow, true));
        }
    }
    for (i, column) in table.columns().iter().enumerate() {
        let is_row_time = table.time_column() == Some(column.name());
        let aggregates: &[Aggregate] = match (column.kind(), many) {
            (ColumnKind::Number, true) => {
                &[Aggregate::Mean, Aggregate::Min, Aggregate::Max, Aggregate::Last]
            }
            (ColumnKind::Boolean, true) => &[Aggregate::Mean, Aggregate::Last],
            (ColumnKind::Category, true) => &[Aggregate::Distinct, Aggregate::Last],
            (ColumnKind::Text, true) => &[Aggregate::Distinct],
            (ColumnKind::Number | ColumnKind::Boolean | ColumnKind::Category, false) => {
                &[Aggregate::Last]
            }
            (ColumnKind::Time, many) if !(many && is_row_time) => &[Aggregate::Since],
            _ => &[],
        };
        let category = column.kind() == ColumnKind::Category;
        all.extend(aggregates.iter().map(|&aggregate| {
            feature(Some(i), aggregate, !(category && aggregate == Aggregate::Last))
        }));
    }
    all
}

/// A value as a number: numbers, and booleans as 0 and 1; NaN where it is missing.
fn number(column: &DatabaseColumn, row: u32) -> f64 {
    let row = row as usize;
    if column.is_missing(row) {
        return f64::NAN;
    }
    match column.values() {
        ColumnValues::Ints(v) => v[row] as f64,
        ColumnValues::Floats(v) => v[row],
        ColumnValues::Bools(v) => f64::from(u8::from(v[row])),
        _ => f64::NAN,
    }
}

impl Feature {
    /// Values of [`Features::values`], NaN where they are missing, as numbers that are equal for equal values of the column:
    /// of texts the rank among the distinct ones.
    pub(crate) fn codes(&self, column: &DatabaseColumn, values: &[f64]) -> Vec<f64> {
        let of = |f: &dyn Fn(usize) -> f64| {
            let code = |&x: &f64| if x.is_nan() { x } else { f(x as usize) };
            values.iter().map(code).collect()
        };
        match column.values() {
            _ if self.is_number => values.to_vec(),
            ColumnValues::Ints(v) => of(&|row| v[row] as f64),
            ColumnValues::Texts(v) => {
                let known = values.iter().filter(|x| !x.is_nan());
                let mut distinct: Vec<&str> = known.map(|&x| v.get(x as usize)).collect();
                distinct.sort_unstable();
                distinct.dedup();
                of(&|row| distinct.partition_point(|text| *text < v.get(row)) as f64)
            }
            _ => values.to_vec(),
        }
    }

    fn value(&self, table: &DatabaseTable, at: &At<'_>) -> f64 {
        let since = |time: i64| (at.time as f64 - time as f64) / DAY;
        let Some(column) = self.column.map(|column| &table.columns()[column]) else {
            return match self.aggregate {
                Aggregate::Count => at.rows.len() as f64,
                _ => match (at.latest, at.row_times) {
                    (Some(row), Some(times)) => since(times[row as usize]),
                    _ => f64::NAN,
                },
            };
        };
        let known = || at.rows.iter().map(|&row| number(column, row)).filter(|x| !x.is_nan());
        match self.aggregate {
            Aggregate::Count | Aggregate::SinceRow => f64::NAN,
            Aggregate::Last => match at.latest {
                Some(row) if !self.is_number && !column.is_missing(row as usize) => f64::from(row),
                Some(row) if self.is_number => number(column, row),
                _ => f64::NAN,
            },
            Aggregate::Mean => {
                let (count, sum) = known().fold((0.0, 0.0), |(n, sum), x| (n + 1.0, sum + x));
                sum / count
            }
            Aggregate::Min => known().fold(f64::NAN, f64::min),
            Aggregate::Max => known().fold(f64::NAN, f64::max),
            Aggregate::Distinct => distinct(column, at.rows) as f64,
            Aggregate::Since => {
                let row = at.latest.map(|row| row as usize);
                match (row.filter(|&row| !column.is_missing(row)), column.values()) {
                    (Some(row), ColumnValues::Times(v)) => since(v[row]),
                    _ => f64::NAN,
                }
            }
        }
    }

    /// The values as a column of the result.
    fn column_of(&self, db: &Database, values: Vec<f64>) -> Result<DatabaseColumn, ModelError> {
        let name = self.name.clone();
        let categories = self.column.map(|i| db.tables()[self.table].columns()[i].values());
        if self.is_number {
            return Ok(DatabaseColumn::new(
                name,
                ColumnKind::Number,
                ColumnValues::Floats(values),
            )?);
        }
        let missing = values.iter().map(|x| x.is_nan()).collect();
        let values = match categories {
            Some(ColumnValues::Texts(texts)) => {
                let text = |x: &f64| if x.is_nan() { "" } else { texts.get(*x as usize) };
                ColumnValues::Texts(values.iter().map(text).collect::<Texts>())
            }
            Some(ColumnValues::Ints(ints)) => {
                let int = |x: &f64| if x.is_nan() { 0 } else { ints[*x as usize] };
                ColumnValues::Ints(values.iter().map(int).collect())
            }
            _ => ColumnValues::Floats(values),
        };
        Ok(DatabaseColumn::new(name, ColumnKind::Category, values)?.with_missing(missing)?)
    }
}

/// Number of distinct values of rows, without missing ones.
fn distinct(column: &DatabaseColumn, rows: &[u32]) -> usize {
    let known = rows.iter().map(|&row| row as usize).filter(|&row| !column.is_missing(row));
    match column.values() {
        ColumnValues::Ints(v) => {
            let mut seen: Vec<i64> = known.map(|row| v[row]).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len()
        }
        ColumnValues::Texts(v) => {
            let mut seen: Vec<&str> = known.map(|row| v.get(row)).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len()
        }
        _ => 0,
    }
}
