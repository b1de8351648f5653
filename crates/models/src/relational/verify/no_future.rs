//! Verifies that no row after a seed's time changes what a model reads, and finds columns that leak the label.
//!
//! For a sample of seeds, the database is changed in two ways: all rows after the time that the seed sees are deleted,
//! and their values and references are replaced. Batch, encoder outputs, predictions and `featurize` row of the seed
//! must keep every bit.

use std::fmt;

use burn::tensor::Tensor;
use burn_gnn_data::{
    ColumnValues, Database, DatabaseColumn, DatabaseTable, DatabaseTask, ListColumn, NEVER, Part,
    Protocol,
};
use burn_gnn_graph::Relation;
use burn_gnn_graph::internal::cpu_device;
use burn_gnn_ops::seeded;
use burn_gnn_sampling::{SampleKey, Strategy};

use crate::error::ModelError;
use crate::relational::columns::column_encoding::EncoderOptions;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_rows::TableInput;
use crate::relational::database_sampler::{DatabaseBatch, DatabaseSampler};
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::features::featurize::{FeaturizeOptions, featurize};
use crate::relational::relational_data::{RelationalData, statistics_end};
use crate::relational::relational_model::{RelationalConfig, RelationalKind, RelationalModel};
use crate::relational::row_sets::row_paths::RowPath;
use crate::relational::verify::leaks::{LeakingColumn, leaking_columns};

/// Options of [`verify_no_future`].
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Which rows validation and test seeds see.
    pub protocol: Protocol,
    /// Seeds of each part that are verified, spread evenly over its rows; 4 by default.
    pub seeds: usize,
    /// Rows that each hop draws; 16 and 16 by default.
    pub fanouts: Vec<i64>,
    /// The model, of which an untrained one of kind `Sage` and one of kind `RowSets` is evaluated.
    pub model: RelationalConfig,
    /// Training rows of which columns are compared with the label; 4000 by default.
    pub rows: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        let model = RelationalConfig::new().with_hidden(16);
        Self { protocol: Protocol::Frozen, seeds: 4, fanouts: vec![16, 16], model, rows: 4000 }
    }
}

/// A seed for which later rows change something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutureRead {
    /// Part of the task.
    pub part: Part,
    /// Row of the part.
    pub row: usize,
    /// How the later rows were changed: `deleted` or `changed`.
    pub change: &'static str,
    /// What differs, such as `input of table "results"`.
    pub what: String,
}

/// Result of [`verify_no_future`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoFutureReport {
    /// Number of seeds that were verified.
    pub seeds: usize,
    /// Seeds that read a later row; empty unless the library has an error.
    pub reads: Vec<FutureRead>,
    /// Columns that contain or determine the label.
    pub leaks: Vec<LeakingColumn>,
}

impl NoFutureReport {
    /// Whether no seed reads a later row, and no column leaks.
    pub fn is_clean(&self) -> bool {
        self.reads.is_empty() && self.leaks.is_empty()
    }
}

impl fmt::Display for NoFutureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.seeds == 1 { "" } else { "s" };
        match self.reads.len() {
            0 => write!(f, "{} seed{plural}: no later row changes a bit", self.seeds)?,
            n => write!(f, "{} seed{plural}: later rows change {n} results", self.seeds)?,
        }
        for FutureRead { part, row, change, what } in &self.reads {
            write!(f, "\n{part} row {row}: {what} differs after later rows were {change}")?;
        }
        for leak in &self.leaks {
            write!(f, "\n{leak}")?;
        }
        match self.leaks.len() {
            0 => write!(f, "\nno column leaks the label"),
            _ => Ok(()),
        }
    }
}

/// Verifies on a user's data that no row after a seed's time reaches a model, and names columns that leak the label: a
/// label copied into a feature, or a statistic over all times in a table without times.
///
/// For [`seeds`](VerifyOptions::seeds) rows of each part, rows after the time that the seed sees are deleted, and
/// changed. Inputs of the encoders, their outputs, the prediction of an untrained model and the
/// [`featurize`](crate::featurize) row must be the same bits. The statistics of the encoders must not change if rows
/// from the validation time on do.
///
/// # Errors
/// An unknown task, options out of range, values that do not fit their columns.
///
/// # Cost
/// Two copies of the database per seed.
pub fn verify_no_future(
    db: &Database,
    task: &str,
    options: &VerifyOptions,
) -> Result<NoFutureReport, ModelError> {
    let task = db.task(task)?;
    let before = statistics_end(db, task);
    let statistics = |db: &Database| {
        let hidden = options.model.hidden;
        RelationalData::fit_encoders(db, Some(task), before, hidden, &EncoderOptions::default())
    };
    let encoders = statistics(db)?;
    let device = cpu_device();
    let data = RelationalData::new(db, Some(task), &encoders)?;
    let models = [RelationalKind::Sage, RelationalKind::RowSets].map(|kind| {
        let config = options.model.clone().with_kind(kind);
        let paths = config.paths(data.graph(), &task.entity_table, before)?;
        let graph = data.graph().graph();
        let model = seeded(0, || config.try_init(graph, &paths, &encoders, &[1], &device))?;
        Ok::<_, ModelError>((model, paths))
    });
    let models = models.into_iter().collect::<Result<Vec<_>, _>>()?;
    let check = Check { task, encoders: &encoders, models: &models, options };
    let mut report = NoFutureReport::default();
    // Rows before the validation time only: changing all others changes no statistic.
    if before != i64::MAX {
        for (change, other) in [
            ("deleted", without_rows_after(db, before.saturating_sub(1), None)?.0),
            ("changed", with_rows_changed(db, before.saturating_sub(1))?),
        ] {
            if statistics(&other)? != encoders {
                let what = "statistics of the encoders".to_owned();
                report.reads.push(FutureRead { part: Part::Train, row: 0, change, what });
            }
        }
    }
    for part in Part::ALL {
        let all = DatabaseSeeds::of_task(db, task, part, options.protocol);
        let count = options.seeds.min(all.len());
        for i in 0..count {
            let row = i * all.len() / count;
            let mut seed = all.select(&[row as u32]);
            seed.targets = None;
            report.seeds += 1;
            let of_all = check.results(db, &data, &seed)?;
            let mut compare = |change, db: &Database, entity: u32| {
                let seed = DatabaseSeeds { entities: vec![entity], ..seed.clone() };
                let data = RelationalData::new(db, Some(task), &encoders)?;
                let found = check.results(db, &data, &seed)?;
                let differs = of_all.iter().zip(&found).find(|(a, b)| a.1 != b.1);
                if let Some((_, (what, _))) = differs {
                    report.reads.push(FutureRead { part, row, change, what: what.clone() });
                }
                Ok::<_, ModelError>(())
            };
            let time = seed.visible[0];
            let (deleted, entity) =
                without_rows_after(db, time, Some((&task.entity_table, seed.entities[0])))?;
            if let Some(entity) = entity {
                compare("deleted", &deleted, entity)?;
            }
            compare("changed", &with_rows_changed(db, time)?, seed.entities[0])?;
        }
    }
    report.leaks = leaking_columns(db, task, before, options.rows)?;
    Ok(report)
}

/// What is evaluated for each seed.
struct Check<'a> {
    task: &'a DatabaseTask,
    encoders: &'a [TableEncoderConfig],
    /// Models of sampled trees and of paths.
    models: &'a [(RelationalModel, Vec<RowPath>)],
    options: &'a VerifyOptions,
}

/// Bits of a result, with its name.
type Named = (String, Vec<u64>);

impl Check<'_> {
    /// Everything that is computed for a seed.
    fn results(
        &self,
        db: &Database,
        data: &RelationalData,
        seed: &DatabaseSeeds,
    ) -> Result<Vec<Named>, ModelError> {
        let (task, options) = (self.task, self.options);
        let mut all = vec![];
        let (table, device) = (&task.entity_table, cpu_device());
        for (model, paths) in self.models {
            if paths.is_empty() {
                for strategy in [Strategy::Uniform, Strategy::Latest] {
                    let (seed, fanouts) = (seed.clone(), options.fanouts.clone());
                    let sampler =
                        DatabaseSampler::new(data, table, seed, fanouts, strategy, &device)?;
                    self.of_batch(model, &sampler.batch(&[0], SampleKey::new(0))?, &mut all);
                }
            } else {
                let sampler = DatabaseSampler::of_paths(data, table, seed.clone(), paths, &device)?;
                self.of_batch(model, &sampler.batch(&[0], SampleKey::new(0))?, &mut all);
            }
        }
        let features = FeaturizeOptions::default();
        let row = featurize(db, &task.entity_table, seed, Some(task), &features)?;
        // The number of the entity changes where rows before it are deleted.
        for column in row.columns().iter().skip(1) {
            let name = format!("feature `{}`", column.name());
            all.push((name, cell_bits(column)));
        }
        Ok(all)
    }

    fn of_batch(&self, model: &RelationalModel, batch: &DatabaseBatch, all: &mut Vec<Named>) {
        for (block, i) in batch.sample.blocks.iter().zip(1..) {
            for (relation, etype) in block.relations().iter().zip(block.schema().etypes()) {
                all.push((format!("sampled edges `{etype}` of block {i}"), edge_bits(relation)));
            }
        }
        if let Some(sets) = &batch.sets {
            for (input, relation) in sets.inputs() {
                let mut bits = input_bits(input);
                bits.extend(edge_bits(relation));
                all.push(("input of a path".into(), bits));
            }
        } else {
            let encoded = model.encode(batch);
            for (input, encoder) in batch.inputs.iter().zip(self.encoders) {
                let table = &encoder.table;
                all.push((format!("input of table `{table}`"), input_bits(input)));
                let output = tensor_bits(encoded[table.as_str()].clone());
                all.push((format!("encoder output of table `{table}`"), output));
            }
        }
        all.push(("prediction".into(), tensor_bits(model.forward(batch, 0))));
    }
}

fn edge_bits(relation: &Relation) -> Vec<u64> {
    let edges = relation.src().iter().zip(relation.dst());
    edges.map(|(&u, &v)| u64::from(u) << 32 | u64::from(v)).collect()
}

fn input_bits(input: &TableInput) -> Vec<u64> {
    let mut bits = tensor_bits(input.numbers().clone());
    bits.extend(tensor_bits(input.ages().clone()));
    bits.extend(input.distinct().map(edge_bits).unwrap_or_default());
    if let Some((relation, weights)) = input.entries() {
        bits.extend(edge_bits(relation));
        // Not as a matrix: a reshape of no elements fails.
        bits.extend(weights.clone().into_data().iter::<f64>().map(f64::to_bits));
    }
    bits
}

fn tensor_bits(x: Tensor<2>) -> Vec<u64> {
    x.into_data().iter::<f64>().map(f64::to_bits).collect()
}

/// Bits of the value of the first row of a column.
fn cell_bits(column: &DatabaseColumn) -> Vec<u64> {
    let missing = u64::from(column.is_missing(0));
    let value = match column.values() {
        ColumnValues::Ints(v) | ColumnValues::Times(v) => vec![v[0] as u64],
        ColumnValues::Floats(v) => vec![v[0].to_bits()],
        ColumnValues::Bools(v) => vec![u64::from(v[0])],
        ColumnValues::Texts(v) => v.get(0).bytes().map(u64::from).collect(),
        ColumnValues::Lists(_) | ColumnValues::Vectors { .. } => vec![],
    };
    value.into_iter().chain([missing]).collect()
}

/// The database without rows after a time, and the new number of an entity, if its row is kept.
fn without_rows_after(
    db: &Database,
    time: i64,
    entity: Option<(&str, u32)>,
) -> Result<(Database, Option<u32>), ModelError> {
    let entity = match entity {
        None => None,
        Some((table, row)) => {
            let times = db.table(table)?.row_times();
            let is_kept = |&row: &u32| times[row as usize] <= time && times[row as usize] != NEVER;
            let before = (0..row).filter(is_kept).count() as u32;
            is_kept(&row).then_some(before)
        }
    };
    Ok((db.frozen_at(time), entity))
}

/// The database with other values and references in all rows after a time.
fn with_rows_changed(db: &Database, time: i64) -> Result<Database, ModelError> {
    let tables = db.tables().iter().map(|table| table_changed(table, time));
    let tables = tables.collect::<Result<Vec<_>, ModelError>>()?;
    Ok(Database::new(db.name(), tables)?.with_timestamps(db.val_timestamp(), db.test_timestamp()))
}

fn table_changed(table: &DatabaseTable, time: i64) -> Result<DatabaseTable, ModelError> {
    let times = table.row_times();
    let later: Vec<usize> = (0..table.rows()).filter(|&row| times[row] > time).collect();
    if later.is_empty() {
        return Ok(table.clone());
    }
    let is_primary = |name: &str| table.primary_key().iter().any(|key| key == name);
    let changed = |column: &DatabaseColumn| {
        if is_primary(column.name()) {
            return Ok(column.clone());
        }
        let is_time = table.time_column() == Some(column.name());
        let values = changed_values(column.values(), &later, is_time, table.is_key(column.name()));
        let mut new = DatabaseColumn::new(column.name(), column.kind(), values)?;
        if let Some(missing) = column.missing() {
            new = new.with_missing(missing.to_vec())?;
        }
        Ok(new)
    };
    let columns = table.columns().iter().map(changed).collect::<Result<Vec<_>, ModelError>>()?;
    let mut new = DatabaseTable::new(table.name(), columns)?;
    if !table.primary_key().is_empty() {
        new = new.with_primary_key(table.primary_key().to_vec())?;
    }
    if table.has_lenient_key() {
        new = new.with_lenient_key();
    }
    for key in table.foreign_keys() {
        new = new.with_foreign_key(key.columns.clone(), key.table.clone())?;
    }
    Ok(match table.time_column() {
        Some(name) => new.with_time_column(name)?,
        None => new,
    })
}

/// Other values in some rows: numbers move, references rotate among these rows, times become later.
fn changed_values(
    values: &ColumnValues,
    rows: &[usize],
    is_time: bool,
    is_key: bool,
) -> ColumnValues {
    let mut values = values.clone();
    let next = |i: usize| rows[(i + 1) % rows.len()];
    match &mut values {
        ColumnValues::Ints(v) if is_key => {
            let old = v.clone();
            rows.iter().enumerate().for_each(|(i, &row)| v[row] = old[next(i)]);
        }
        ColumnValues::Ints(v) => {
            rows.iter().for_each(|&row| v[row] = v[row].wrapping_mul(3).wrapping_add(7))
        }
        ColumnValues::Floats(v) => rows.iter().for_each(|&row| v[row] = v[row] * 3.0 + 7.0),
        ColumnValues::Times(v) => {
            let shift = if is_time { 1 } else { 86_400_000_000 };
            rows.iter().for_each(|&row| v[row] = v[row].saturating_add(shift));
        }
        ColumnValues::Bools(v) => rows.iter().for_each(|&row| v[row] = !v[row]),
        ColumnValues::Texts(v) => {
            let mut from: Vec<usize> = (0..v.len()).collect();
            rows.iter().enumerate().for_each(|(i, &row)| from[row] = next(i));
            let text = |(row, &other): (usize, &usize)| match is_key || row == other {
                true => v.get(other).to_owned(),
                false => format!("{} changed", v.get(other)),
            };
            *v = from.iter().enumerate().map(text).collect();
        }
        ColumnValues::Lists(v) => {
            let mut from: Vec<u32> = (0..v.len() as u32).collect();
            rows.iter().enumerate().for_each(|(i, &row)| from[row] = next(i) as u32);
            *v = ListColumn::select(v, &from);
        }
        ColumnValues::Vectors { width, values } => {
            for &row in rows {
                values[row * *width..(row + 1) * *width].iter_mut().for_each(|x| *x += 1.0);
            }
        }
    }
    values
}
