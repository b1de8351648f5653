//! Compares an epoch with features from a mapped file and from each cache, under the same limit.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use anyhow::{Context, Result, ensure};
use burn_gnn::graph::Graph;
use burn_gnn::sampling::{FeatureSource, MappedRows, MiniBatch, RowType, write_rows};
use burn_gnn_store::{CacheStats, CachedRows, PackedBatches, PlannedRows, StoreError, StoredRows};
use serde::Serialize;

use crate::args::Args;
use crate::generate::Shape;
use crate::learn::{Batches, Rows, State, train};
use crate::phases::Phases;

/// What an epoch took with one way of reading features.
#[derive(Debug, Serialize)]
pub(crate) struct Epoch {
    features: &'static str,
    /// Packing, before the first epoch.
    #[serde(skip)]
    pack_s: Option<f64>,
    /// Batches and their features alone.
    load_s: f64,
    /// The same, and training.
    train_s: f64,
    hit_rate: Option<f64>,
    rows_read: Option<u64>,
    bytes_read: Option<u64>,
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "features {}: ", self.features)?;
        if let Some(seconds) = self.pack_s {
            write!(f, "packed in {seconds:.2} s, ")?;
        }
        write!(f, "loaded in {:.2} s, trained in {:.2} s", self.load_s, self.train_s)?;
        if let (Some(rate), Some(rows)) = (self.hit_rate, self.rows_read) {
            write!(f, ", {:.1} % of rows in memory, {rows} read", 100.0 * rate)?;
        }
        self.bytes_read.map_or(Ok(()), |bytes| write!(f, ", {:.1} MB", bytes as f64 / 1e6))
    }
}

type Loaded = Result<(MiniBatch, Vec<f32>)>;

/// Runs the same epoch with batches packed, in a cache of those needed first, in one of those used last, and
/// mapped. Caches have the budget of training. Losses must be equal, bit for bit. It also prints:
/// the fewest rows that a cache as large as the planned one can read, one by one. `say` gets each result as soon as
/// it is there.
pub(crate) fn compare(
    args: &Args,
    shape: &Shape,
    graph: &Graph,
    rows: &Rows,
    seeds: &[u32],
    dir: &Path,
    (phases, say): (&mut Phases<'_>, &dyn Fn(String)),
) -> Result<(Vec<Epoch>, u64)> {
    let (mapped, packed, budget) =
        (dir.join("rows.safetensors"), dir.join("rows.packed"), args.memory / 4);
    let batches = || -> Result<_> {
        let (batches, places) = (Batches::new(args, graph, seeds.to_vec())?, rows.clone());
        let steps = batches.steps();
        let make = move |step: u64| -> Result<(MiniBatch, Vec<u32>), StoreError> {
            let (batch, nodes) = batches.make(step)?;
            Ok((batch, places.places(nodes)?))
        };
        Ok((make, steps))
    };
    let all = || -> Result<_> {
        let (make, steps) = batches()?;
        Ok((0..steps).map(make))
    };
    phases.run("map", || Ok(write_rows(&mapped, &*rows.file, RowType::F16)?))?;
    phases.run("pack", || {
        // An error of the sampler comes out here; below there is none.
        drop(all()?);
        PackedBatches::write(&packed, &rows.file, budget, || all().into_iter().flatten())
            .map(drop)
            .map_err(Into::into)
    })?;
    let took = |phases: &Phases<'_>| {
        Ok::<_, anyhow::Error>(phases.done.last().context("the phase has ended")?.wall_s)
    };
    let pack_s = took(phases)?;

    let (mut out, mut capacity, mut fewest, steps) = (vec![], 0, 0, batches()?.1);
    let mut losses: Option<Vec<f32>> = None;
    for (features, load_name, train_name) in [
        ("packed", "load: packed", "train: packed"),
        ("planned", "load: planned", "train: planned"),
        ("last used", "load: last used", "train: last used"),
        // Last, as it takes longest.
        ("mapped", "load: mapped", "train: mapped"),
    ] {
        // Each epoch begins with an empty cache, whose statistics it returns.
        let mut epoch = |name,
                         consume: &mut dyn FnMut(
            &mut dyn Iterator<Item = Loaded>,
        ) -> Result<()>|
         -> Result<_> {
            let stats = phases.run(name, || {
                Ok(match features {
                    "mapped" => {
                        let source = MappedRows::open(&mapped)?;
                        consume(&mut ahead(all()?).map(|batch| {
                            batch.and_then(|(b, ids)| Ok((b, source.gather(&ids)?)))
                        }))?;
                        None
                    }
                    "last used" => {
                        let source = CachedRows::new(StoredRows::open(rows.file.path())?, budget);
                        consume(&mut ahead(all()?).map(|batch| {
                            batch.and_then(|(b, ids)| Ok((b, source.gather_rows(&ids)?)))
                        }))?;
                        Some(source.stats())
                    }
                    "planned" => {
                        let (make, steps) = batches()?;
                        let mut planned = PlannedRows::of_steps(
                            rows.file.clone(),
                            budget,
                            args.window,
                            0..steps,
                            make,
                        );
                        capacity = planned.capacity();
                        consume(
                            &mut planned
                                .by_ref()
                                .map(|b| b.map(|b| (b.batch, b.rows)).map_err(Into::into)),
                        )?;
                        Some(planned.stats())
                    }
                    // Nothing is sampled: blocks are packed with their rows.
                    _ => {
                        let source = PackedBatches::open(&packed)?;
                        let sampler = Batches::new(args, graph, vec![])?.sampler;
                        consume(
                            &mut source
                                .epoch(0, &sampler)
                                .map(|b| b.map(|b| (b.batch, b.rows)).map_err(Into::into)),
                        )?;
                        let source = source.rows();
                        Some(CacheStats {
                            bytes_read: source.read_bytes(),
                            ..CacheStats::default()
                        })
                    }
                })
            })?;
            Ok((stats, took(phases)?))
        };
        let (stats, load_s) = epoch(load_name, &mut |batches| {
            let mut found = 0;
            for batch in batches {
                drop(batch?);
                found += 1;
            }
            ensure!(found == steps, "expected {steps} batches with {features} rows, found {found}");
            Ok(())
        })?;
        let (_, train_s) = epoch(train_name, &mut |batches| {
            let of = train(args, shape, State::new(args)?, batches, |_| Ok(()))?.losses;
            let expected = losses.get_or_insert_with(|| of.clone());
            ensure!(
                expected.iter().map(|l| l.to_bits()).eq(of.iter().map(|l| l.to_bits())),
                "losses of {features} rows are others: {of:?}"
            );
            Ok(())
        })?;
        let cached = stats.filter(|s| s.misses > 0);
        let done = Epoch {
            features,
            pack_s: (features == "packed").then_some(pack_s),
            load_s,
            train_s,
            hit_rate: cached.map(|s| s.hit_rate()),
            rows_read: cached.map(|s| s.misses),
            bytes_read: stats.map(|s| s.bytes_read),
        };
        say(done.to_string());
        out.push(done);
        if features == "planned" {
            let ids = all()?.map(|batch| batch.map(|b| b.1)).collect::<Result<Vec<_>, _>>()?;
            fewest = fewest_reads(&ids, rows.file.num_rows(), capacity);
            let mb = (fewest * rows.file.row_bytes() as u64) as f64 / 1e6;
            say(format!(
                "the fewest rows that any cache of {capacity} reads one by one: {fewest}, {mb:.1} MB"
            ));
        }
    }
    for name in [&mapped, &packed] {
        std::fs::remove_file(name).with_context(|| format!("removing {}", name.display()))?;
    }
    Ok((out, fewest))
}

/// Prefetch queue: a thread prepares batches while the consumer uses one; at most two are queued.
fn ahead<I, B: Send + 'static>(batches: I) -> impl Iterator<Item = Result<B>>
where
    I: Iterator<Item = Result<B, StoreError>> + Send + 'static,
{
    let (made, make) = sync_channel(2);
    std::thread::spawn(move || {
        for batch in batches {
            // There is no receiver: the epoch has ended with an error.
            if made.send(batch.map_err(anyhow::Error::from)).is_err() {
                return;
            }
        }
    });
    make.into_iter()
}

/// Fewest rows that any cache of so many rows reads, knowing all batches: after each, those stay that are needed
/// first (Belady 1966).
fn fewest_reads(batches: &[Vec<u32>], rows: usize, capacity: usize) -> u64 {
    const NEVER: u32 = u32::MAX;
    // Of each read, the batch that needs the row next.
    let mut next = vec![NEVER; rows];
    let mut next_use: Vec<Vec<u32>> = vec![];
    for (step, ids) in batches.iter().enumerate().rev() {
        next_use.push(
            ids.iter().map(|&id| std::mem::replace(&mut next[id as usize], step as u32)).collect(),
        );
    }
    next_use.reverse();
    let (mut kept, mut is_kept, mut reads) = (Vec::<(u32, u32)>::new(), vec![false; rows], 0);
    for ((step, ids), next_use) in (0u32..).zip(batches).zip(&next_use) {
        reads += ids.iter().filter(|&&id| !is_kept[id as usize]).count() as u64;
        kept.iter().for_each(|k| is_kept[k.1 as usize] = false);
        kept.retain(|k| k.0 > step);
        kept.extend(next_use.iter().copied().zip(ids.iter().copied()).filter(|k| k.0 != NEVER));
        if kept.len() > capacity {
            if capacity > 0 {
                kept.select_nth_unstable(capacity - 1);
            }
            kept.truncate(capacity);
        }
        kept.iter().for_each(|k| is_kept[k.1 as usize] = true);
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::fewest_reads;

    #[test]
    fn an_optimal_cache_keeps_what_is_needed_first() {
        let batches = [vec![0, 1], vec![2], vec![1], vec![0, 2]];
        assert_eq!(fewest_reads(&batches, 3, 0), 6);
        assert_eq!(fewest_reads(&batches, 3, 1), 5); // row 1, then row 0 or 2
        assert_eq!(fewest_reads(&batches, 3, 3), 3);
    }
}
