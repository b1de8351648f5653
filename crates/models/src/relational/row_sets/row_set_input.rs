//! Gathers the latest visible rows along paths of foreign keys.
//!
//! ```text
//! for each seed and path:
//!     rows = {entity}, or nothing if the row of the entity is not visible
//!     for each step:  rows = the latest `limit` visible rows that refer to each row, or the row that each refers to
//!     keep the latest `limit` of the last step, in the order of time
//! join to each row the rows to which it refers
//! ```

use std::collections::HashMap;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{DatabaseGraph, NEVER};
use burn_gnn_graph::Relation;

use crate::error::ModelError;
use crate::relational::columns::column_encoding::log_days;
use crate::relational::columns::table_rows::TableInput;
use crate::relational::database_seeds::{DatabaseSeeds, is_visible};
use crate::relational::relational_data::RelationalData;
use crate::relational::row_sets::row_paths::{RowPath, RowStep};

/// Numbers that describe the set of a path for a seed: its size, whether it is empty, how fresh it is.
pub(crate) const SET_NUMBERS: usize = 3;
/// Numbers that describe a seed: phases of its time, and the gap between its time and what it sees.
pub(crate) const SEED_NUMBERS: usize = 6;

/// Sines and cosines of multiples of the phase of the year, of which [`SEED_NUMBERS`] has the first.
pub(crate) const OVERTONES: usize = 6;

/// Numbers of latest rows over which [`WindowMeans`](crate::WindowMeans) averages.
pub(crate) const WINDOWS: [usize; 4] = [1, 6, 20, 60];
/// Rows of an average entity that are added to each window.
const PRIOR_ROWS: f32 = 4.0;

/// Microseconds of a day.
const DAY: f64 = 86_400_000_000.0;

/// The rows of one path for all seeds of a batch.
#[derive(Clone, Debug)]
pub struct RowSet {
    /// Input of the encoder of the rows' table.
    pub(crate) rows: TableInput,
    /// By joined path: input of the encoder of its table, and which of its rows joins which row of the set.
    pub(crate) joined: Vec<(TableInput, Relation)>,
    /// From rows to seeds.
    pub(crate) pool: Relation,
    /// From the latest row to its seed.
    pub(crate) latest: Relation,
    /// Age of each row in days at the time that its seed sees, `[rows, 1]`; 0 of rows without a time.
    pub(crate) ages: Tensor<2>,
    /// Weight of each row in each window, `[rows, windows]`: `1 / (n + 4)` of the last `n` rows, 0 of others.
    pub(crate) windows: Tensor<2>,
    /// `n / (n + 4)` for each seed and window, `[seeds, windows]`.
    pub(crate) shares: Tensor<2>,
}

/// The rows of all paths for the seeds of a batch.
#[derive(Clone, Debug)]
pub struct RowSets {
    /// By path.
    pub(crate) sets: Vec<RowSet>,
    /// `[seeds, SEED_NUMBERS + paths · SET_NUMBERS]`.
    pub(crate) numbers: Tensor<2>,
    /// Sines and cosines of two, three and four times the phase of the year, `[seeds, OVERTONES]`.
    pub(crate) overtones: Tensor<2>,
}

impl RowSets {
    /// Inputs of all encoders, with the relation of each to the rows or seeds that it belongs to.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&TableInput, &Relation)> {
        self.sets.iter().flat_map(|set| {
            let joined = set.joined.iter().map(|(input, relation)| (input, relation));
            std::iter::once((&set.rows, &set.pool)).chain(joined)
        })
    }
}

/// Reads rows along one edge type.
struct Step<'a> {
    relation: &'a Relation,
    times: &'a [i64],
    limit: Option<usize>,
    /// Table that the step leads to.
    table: usize,
}

impl<'a> Step<'a> {
    fn all(graph: &'a DatabaseGraph, steps: &[RowStep]) -> Result<Vec<Self>, ModelError> {
        let step = |step: &RowStep| {
            let schema = graph.graph().schema();
            let etype = step.etype(schema)?;
            let relation = &graph.graph().relations()[etype];
            let (times, table) = (graph.edge_times(etype)?, schema.endpoints(etype).0);
            Ok(Self { relation, times, limit: step.limit, table })
        };
        steps.iter().map(step).collect()
    }

    /// Appends the latest visible rows that the step leads to from `row`, in the order of time.
    fn follow(&self, row: u32, visible: i64, out: &mut Vec<u32>) {
        let csc = self.relation.csc();
        let (limit, first) = (self.limit.unwrap_or(1), out.len());
        let seen = |p: &usize| self.times[csc.edge_id(*p) as usize] <= visible;
        let latest = csc.row(row as usize).rev().filter(seen).take(limit);
        out.extend(latest.map(|p| csc.indices()[p]));
        out[first..].reverse();
    }
}

/// Checks that a graph has the foreign keys of paths.
pub(crate) fn check_paths(data: &RelationalData, paths: &[RowPath]) -> Result<(), ModelError> {
    let schema = data.graph().graph().schema();
    for path in paths {
        schema.ntype(path.table.as_str())?;
        for step in path.steps.iter().chain(path.joined.iter().flatten()) {
            step.etype(schema)?;
        }
    }
    Ok(())
}

/// Gathers the rows of `paths` for seeds, which are rows of table number `entity`.
pub(crate) fn row_sets(
    data: &RelationalData,
    paths: &[RowPath],
    entity: usize,
    seeds: &DatabaseSeeds,
    device: &Device,
) -> Result<RowSets, ModelError> {
    let width = SEED_NUMBERS + paths.len() * SET_NUMBERS;
    let mut numbers = vec![0f32; seeds.len() * width];
    for (i, out) in numbers.chunks_mut(width).enumerate() {
        seed_numbers(seeds.times[i], seeds.visible[i], &mut out[..SEED_NUMBERS]);
    }
    let times = data.graph().row_times(entity)?;
    let of_seeds = seeds.entities.iter().zip(&seeds.visible);
    let start = |(&row, &seen)| is_visible(times, row, seen).then_some(row);
    let start: Vec<Option<u32>> = of_seeds.map(start).collect();
    let mut sets = Vec::with_capacity(paths.len());
    for (p, path) in paths.iter().enumerate() {
        let at = SEED_NUMBERS + p * SET_NUMBERS;
        let mut describe = |seed: usize, set: [f32; SET_NUMBERS]| {
            let first = seed * width + at;
            numbers[first..first + SET_NUMBERS].copy_from_slice(&set);
        };
        sets.push(row_set(data, path, (seeds, &start), device, &mut describe)?);
    }
    let data = TensorData::new(numbers, [seeds.len(), width]);
    let phases = seeds.times.iter().map(|&time| phase(time));
    let all = phases.flat_map(|phase| (2..=4).map(move |k| (f64::from(k) * phase).sin_cos()));
    let all: Vec<f32> = all.flat_map(|(sin, cos)| [sin as f32, cos as f32]).collect();
    let overtones = TensorData::new(all, [seeds.len(), OVERTONES]);
    let (numbers, overtones) =
        (Tensor::from_data(data, device), Tensor::from_data(overtones, device));
    Ok(RowSets { sets, numbers, overtones })
}

/// Phase of the year.
fn phase(time: i64) -> f64 {
    const YEAR: i64 = 31_556_952_000_000;
    std::f64::consts::TAU * time.rem_euclid(YEAR) as f64 / YEAR as f64
}

/// Phase of the year, and the gap between the time of a seed and what it sees.
fn seed_numbers(time: i64, visible: i64, out: &mut [f32]) {
    let phase = phase(time);
    let gap = time as f64 - visible as f64;
    let days = gap / DAY;
    let all = [
        phase.sin(),
        phase.cos(),
        log_days(gap),
        (days / 1000.0).min(10.0),
        (-days / 60.0).exp(),
        (-days / 365.0).exp(),
    ];
    out.iter_mut().zip(all).for_each(|(out, x)| *out = x as f32);
}

fn row_set(
    data: &RelationalData,
    path: &RowPath,
    (seeds, start): (&DatabaseSeeds, &[Option<u32>]),
    device: &Device,
    describe: &mut impl FnMut(usize, [f32; SET_NUMBERS]),
) -> Result<RowSet, ModelError> {
    let graph = data.graph();
    let table = graph.graph().schema().ntype(path.table.as_str())?;
    let row_times = graph.row_times(table)?;
    let time_of = |row: u32| row_times.map(|times| times[row as usize]).filter(|&t| t != NEVER);
    let steps = Step::all(graph, &path.steps)?;
    let (mut rows, mut indptr): (Vec<u32>, Vec<u32>) = (vec![], vec![0]);
    for (seed, first) in start.iter().enumerate() {
        let visible = seeds.visible[seed];
        let mut found: Vec<u32> = first.iter().copied().collect();
        for step in &steps {
            let from = std::mem::take(&mut found);
            from.iter().for_each(|&row| step.follow(row, visible, &mut found));
            if let Some(limit) = step.limit.filter(|_| from.len() > 1) {
                // The latest rows of several lists; equal times keep the order of the lists.
                found.sort_by_key(|&row| time_of(row));
                found.drain(..found.len().saturating_sub(limit));
            }
        }
        let days = |row: &u32| time_of(*row).map(|t| (seeds.times[seed] as f64 - t as f64) / DAY);
        let fresh = found.last().and_then(days).map_or(0.0, |days| (-days / 200.0).exp());
        let count = found.len() as f64;
        let set = [count.ln_1p() / 3.0 - 1.0, f64::from(u8::from(found.is_empty())), fresh];
        describe(seed, set.map(|x| x as f32));
        rows.extend(found);
        indptr.push(rows.len() as u32);
    }
    let of_row = |of: &[i64]| {
        let each = indptr.windows(2).zip(of).map(|(w, &time)| (time, (w[1] - w[0]) as usize));
        each.flat_map(|(time, n)| std::iter::repeat_n(time, n)).collect::<Vec<i64>>()
    };
    let (times, seen) = (of_row(&seeds.times), of_row(&seeds.visible));
    let joined = path.joined.iter().map(|steps| {
        let steps = Step::all(graph, steps)?;
        join(data, &steps, &rows, &times, &seen, device)
    });
    let joined = joined.collect::<Result<Vec<_>, ModelError>>()?;
    let age = |(&row, &seen): (&u32, &i64)| {
        time_of(row).map_or(0.0, |time| ((seen as f64 - time as f64) / DAY) as f32)
    };
    let ages: Vec<f32> = rows.iter().zip(&seen).map(age).collect();
    let count = rows.len();
    let (mut last, mut ends) = (vec![], vec![0]);
    let (mut windows, mut shares) = (vec![], vec![]);
    for w in indptr.windows(2) {
        let n = (w[1] - w[0]) as usize;
        let weight = WINDOWS.map(|window| 1.0 / (n.min(window) as f32 + PRIOR_ROWS));
        shares.extend(weight.iter().zip(WINDOWS).map(|(x, window)| x * n.min(window) as f32));
        for rank in (0..n).rev() {
            let of = weight.iter().zip(WINDOWS);
            windows.extend(of.map(|(&x, window)| if rank < window { x } else { 0.0 }));
        }
        if w[1] > w[0] {
            last.push(w[1] - 1);
        }
        ends.push(last.len() as u32);
    }
    let tensor = |values: Vec<f32>, rows: usize| {
        let columns = WINDOWS.len();
        Tensor::from_data(TensorData::new(values, [rows, columns]), device)
    };
    Ok(RowSet {
        windows: tensor(windows, count),
        shares: tensor(shares, seeds.len()),
        rows: data.tables()[table].input(&rows, &times, &seen, device)?,
        joined,
        pool: Relation::from_rows(count, indptr, (0..count as u32).collect())?,
        latest: Relation::from_rows(count, ends, last)?,
        ages: Tensor::from_data(TensorData::new(ages, [count, 1]), device),
    })
}

/// The rows to which `rows` refer along `steps`, each once per time.
fn join(
    data: &RelationalData,
    steps: &[Step<'_>],
    rows: &[u32],
    times: &[i64],
    seen: &[i64],
    device: &Device,
) -> Result<(TableInput, Relation), ModelError> {
    let table = steps.last().map_or(0, |step| step.table);
    // Rows without ages are the same for all seeds.
    let has_ages = data.tables()[table].has_ages();
    let (mut ids, mut id_times, mut id_seen) = (vec![], vec![], vec![]);
    let (mut indptr, mut src) = (vec![0u32], vec![]);
    let (mut number_of, mut found) = (HashMap::new(), vec![]);
    for (i, &row) in rows.iter().enumerate() {
        let mut at = Some(row);
        for step in steps {
            at = at.and_then(|row| {
                found.clear();
                step.follow(row, seen[i], &mut found);
                found.first().copied()
            });
        }
        if let Some(to) = at {
            let key = if has_ages { (to, times[i], seen[i]) } else { (to, 0, 0) };
            let number = *number_of.entry(key).or_insert_with(|| {
                ids.push(to);
                id_times.push(times[i]);
                id_seen.push(seen[i]);
                ids.len() as u32 - 1
            });
            src.push(number);
        }
        indptr.push(src.len() as u32);
    }
    let input = data.tables()[table].input(&ids, &id_times, &id_seen, device)?;
    Ok((input, Relation::from_rows(ids.len(), indptr, src)?))
}
