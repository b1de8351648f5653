//! Finds columns that leak the label of a task.

use std::collections::BTreeMap;
use std::fmt;

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, DatabaseTask, Part,
    Protocol, References, Targets,
};

use crate::error::ModelError;
use crate::metrics::scores::roc_auc_of;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::features::featurize::{Features, FeaturizeOptions};
use crate::relational::relational_data::for_task;

/// A column that leaks the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakingColumn {
    /// Table.
    pub table: String,
    /// Column.
    pub column: String,
    /// What was found.
    pub why: String,
}

impl fmt::Display for LeakingColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, column, why } = self;
        write!(
            f,
            "table `{table}`, column `{column}`: {why}; remove it (`remove_columns` of the task), or replace it by a \
             value of its row's time"
        )
    }
}

/// Fewest rows with a value and a label that are compared.
const MIN_ROWS: usize = 20;

/// Columns whose values, as a training seed sees them, determine its label, and columns of tables without times that are
/// statistics over all times.
pub(crate) fn leaking_columns(
    db: &Database,
    task: &DatabaseTask,
    before: i64,
    most_rows: usize,
) -> Result<Vec<LeakingColumn>, ModelError> {
    let db = &*for_task(db, Some(task))?;
    let mut leaks = of_labels(db, task, most_rows)?;
    for leak in statistics_over_all_times(db, before)? {
        if !leaks.iter().any(|l| l.table == leak.table && l.column == leak.column) {
            leaks.push(leak);
        }
    }
    Ok(leaks)
}

fn of_labels(
    db: &Database,
    task: &DatabaseTask,
    most_rows: usize,
) -> Result<Vec<LeakingColumn>, ModelError> {
    let all = DatabaseSeeds::of_task(db, task, Part::Train, Protocol::SeedTime);
    let count = most_rows.min(all.len());
    let positions: Vec<u32> = (0..count).map(|i| (i * all.len() / count) as u32).collect();
    let seeds = all.select(&positions);
    let (labels, is_class): (Vec<f64>, bool) = match &seeds.targets {
        Some(Targets::Classes(v)) => {
            (v.iter().map(|&y| if y < 0 { f64::NAN } else { y as f64 }).collect(), true)
        }
        Some(Targets::Values(v)) => (v.clone(), false),
        _ => return Ok(vec![]),
    };
    let graph = db.to_graph()?;
    let options = FeaturizeOptions { hops: 1, ..FeaturizeOptions::default() };
    let found = Features::new(db, &graph, &task.entity_table, &seeds, &options)?;
    let width = found.features.len();
    let mut leaks: Vec<LeakingColumn> = vec![];
    for (i, feature) in found.features.iter().enumerate() {
        let Some(column) = feature.column else { continue };
        let table = &db.tables()[feature.table];
        let column = &table.columns()[column];
        let is_known = leaks.iter().any(|l| l.table == table.name() && l.column == column.name());
        if is_known {
            continue;
        }
        let values: Vec<f64> = found.values.iter().skip(i).step_by(width).copied().collect();
        let codes = feature.codes(column, &values);
        let pairs = codes.into_iter().zip(labels.iter().copied());
        let pairs: Vec<(f64, f64)> = pairs.filter(|(x, y)| !x.is_nan() && !y.is_nan()).collect();
        if let Some(why) = determines(&pairs, labels.len(), is_class) {
            leaks.push(LeakingColumn {
                table: table.name().to_owned(),
                column: column.name().to_owned(),
                why: format!("its value at the time of the seed (`{}`) {why}", feature.name),
            });
        }
    }
    Ok(leaks)
}

/// How values determine labels.
fn determines(pairs: &[(f64, f64)], rows: usize, is_class: bool) -> Option<String> {
    let n = pairs.len();
    if n < MIN_ROWS || n * 2 < rows {
        return None;
    }
    let first = pairs[0];
    if pairs.iter().all(|p| p.0 == first.0) || pairs.iter().all(|p| p.1 == first.1) {
        return None;
    }
    let equal = pairs.iter().filter(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + y.abs())).count();
    if equal * 100 >= n * 99 {
        return Some(format!("equals the label in {equal} of {n} rows"));
    }
    let r = correlation(pairs);
    if r.abs() >= 0.9999 {
        return Some(format!("is a linear function of the label (correlation {r:.5})"));
    }
    if is_class && pairs.iter().all(|p| p.1 == 0.0 || p.1 == 1.0) {
        let scores: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let labels: Vec<bool> = pairs.iter().map(|p| p.1 > 0.5).collect();
        let positive = labels.iter().filter(|y| **y).count();
        if positive.min(n - positive) >= MIN_ROWS / 2 {
            let auc = roc_auc_of(scores, &labels).ok()?;
            let auc = auc.max(1.0 - auc);
            if auc >= 0.995 {
                return Some(format!("separates the classes (area under the ROC curve {auc:.4})"));
            }
        }
    }
    let mut groups: BTreeMap<u64, (f64, bool)> = BTreeMap::new();
    for &(x, y) in pairs {
        let group = groups.entry(x.to_bits()).or_insert((y, true));
        group.1 &= group.0 == y;
    }
    let is_function = groups.values().all(|group| group.1);
    if is_function && groups.len() * 5 <= n {
        return Some(format!("determines the label: each of its {} values has one", groups.len()));
    }
    None
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let (mx, my) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    if xx == 0.0 || yy == 0.0 { 0.0 } else { xy / (xx * yy).sqrt() }
}

/// Columns of tables without times that are an aggregate of all rows that refer to their row, also of those from
/// `before` on.
fn statistics_over_all_times(db: &Database, before: i64) -> Result<Vec<LeakingColumn>, ModelError> {
    let mut leaks = vec![];
    for child in db.tables().iter().filter(|table| table.time_column().is_some()) {
        let times = child.row_times();
        for (key, foreign) in child.foreign_keys().iter().enumerate() {
            let parent = db.table(&foreign.table)?;
            if parent.time_column().is_some() {
                continue;
            }
            let references = db.references(child.name(), key)?;
            for (what, all, past) in aggregates(child, parent.rows(), &references, &times, before) {
                for column in parent.columns() {
                    let name = column.name();
                    if is_aggregate(column, &all, &past) {
                        leaks.push(LeakingColumn {
                            table: parent.name().to_owned(),
                            column: name.to_owned(),
                            why: format!(
                                "it is {what} of table `{}` over all times, which includes rows after the seeds",
                                child.name()
                            ),
                        });
                    }
                }
            }
        }
    }
    leaks.dedup_by(|a, b| a.table == b.table && a.column == b.column);
    Ok(leaks)
}

/// Whether a column equals an aggregate over all times, and not that of the past.
fn is_aggregate(column: &DatabaseColumn, all: &[f64], past: &[f64]) -> bool {
    if column.kind() != ColumnKind::Number {
        return false;
    }
    let number = |row: usize| match column.values() {
        ColumnValues::Ints(v) if !column.is_missing(row) => v[row] as f64,
        ColumnValues::Floats(v) if !column.is_missing(row) => v[row],
        _ => f64::NAN,
    };
    let is_same = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
    // Only rows for which the past gives another value tell both apart.
    let telling = (0..all.len()).filter(|&row| {
        !all[row].is_nan() && !is_same(all[row], past[row]) && !number(row).is_nan()
    });
    let (mut count, mut same) = (0, 0);
    for row in telling {
        count += 1;
        same += usize::from(is_same(number(row), all[row]));
    }
    count >= 3 && same * 100 >= count * 98
}

/// Named aggregates per parent row, over all rows and over those before a time.
fn aggregates(
    child: &DatabaseTable,
    parents: usize,
    references: &References,
    times: &[i64],
    before: i64,
) -> Vec<(String, Vec<f64>, Vec<f64>)> {
    let over = |value: &dyn Fn(usize) -> f64, past: bool| {
        let mut of = vec![[0.0, 0.0, f64::NAN, f64::NAN]; parents];
        for (row, &parent) in references.rows.iter().enumerate() {
            let x = value(row);
            if parent == References::NONE || x.is_nan() || (past && times[row] >= before) {
                continue;
            }
            let [count, sum, min, max] = &mut of[parent as usize];
            (*count, *sum) = (*count + 1.0, *sum + x);
            (*min, *max) = (min.min(x), max.max(x));
        }
        of
    };
    type Rows = Vec<[f64; 4]>;
    let mut all = vec![];
    let mut add = |name: String, both: &[Rows; 2], f: &dyn Fn(&[f64; 4]) -> f64| {
        let [of_all, of_past] = both.each_ref().map(|rows| rows.iter().map(f).collect());
        all.push((name, of_all, of_past));
    };
    let rows = [over(&|_| 1.0, false), over(&|_| 1.0, true)];
    add("the number of rows".into(), &rows, &|of| of[0]);
    for column in child.columns().iter().filter(|c| c.kind() == ColumnKind::Number) {
        let value = |row: usize| match column.values() {
            ColumnValues::Ints(v) if !column.is_missing(row) => v[row] as f64,
            ColumnValues::Floats(v) if !column.is_missing(row) => v[row],
            _ => f64::NAN,
        };
        let rows = [over(&value, false), over(&value, true)];
        let name = column.name();
        add(format!("the sum of column `{name}`"), &rows, &|of| of[1]);
        add(format!("the mean of column `{name}`"), &rows, &|of| of[1] / of[0]);
        add(format!("the minimum of column `{name}`"), &rows, &|of| of[2]);
        add(format!("the maximum of column `{name}`"), &rows, &|of| of[3]);
    }
    all
}
