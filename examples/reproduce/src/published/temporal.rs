//! Links of events in time: EdgeBank and learned models against one random destination per event.
//!
//! EdgeBank and the memory of TGN read events in batches of about 200, as in DyGLib, but no batch ends between events of
//! equal times. The latest events of a node are strictly before the time of each query. Validation chooses the epoch; the
//! test is read once per seed, and not at all with `--tune`.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use burn::tensor::Device;
use burn_gnn::data::{EventDataset, load_events};
use burn_gnn::models::seeded;
use burn_gnn_links::{
    DyGFormerConfig, EdgeBank, EventFitConfig, EventHistory, EventModel, EventTask,
    GraphMixerConfig, TgnConfig, evaluate_events, fit_events, pair_metrics, random_destinations,
};

use super::Args;
use super::row::Row;
use super::sets::Sets;

/// Events per batch.
const BATCH: usize = 200;

/// Published average precision.
fn published(set: &str, model: &str) -> Option<f64> {
    Some(match (set, model) {
        ("uci_messages", "edgebank") => 0.762,
        ("uci_messages", "tgn") => 0.9234,
        ("uci_messages", "graphmixer") => 0.9325,
        ("uci_messages", "dygformer") => 0.9579,
        _ => return None,
    })
}

pub(crate) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("events") {
        if args.wants_set(&set.name) {
            let set = load_events(&set.folder)?;
            of_events(args, &set, emit)?;
        }
    }
    Ok(())
}

/// Shortest and longest period of time encodings: a second, or the smallest gap between times if it is longer, and a
/// hundred times the training part.
fn periods(set: &EventDataset) -> [f64; 2] {
    let times = &set.events.time()[set.split.train.clone()];
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > 0);
    let shortest = gaps.min().unwrap_or(1) as f64;
    let span = times.last().unwrap_or(&0) - times.first().unwrap_or(&0);
    [shortest, (100.0 * span as f64).max(10.0 * shortest)]
}

fn of_events(args: &Args, set: &EventDataset, emit: &mut dyn FnMut(Row)) -> Result<()> {
    // Without given negatives: destinations up to the end of the part, so that validation does not depend on the test.
    let negatives = |given: &Option<Vec<u32>>, part: Range<usize>, epoch| match given {
        Some(given) => given.clone(),
        None => {
            let seen = set.events.slice(0..part.end).destinations();
            random_destinations(&seen, 0, epoch, part)
        }
    };
    let val_negatives = negatives(&set.val_negatives, set.split.val.clone(), 1);
    let test_negatives = negatives(&set.test_negatives, set.split.test.clone(), 2);
    // The part of the figures.
    let (part, negatives, metric) = match args.tune {
        true => (&set.split.val, &val_negatives, "valid ap"),
        false => (&set.split.test, &test_negatives, "ap"),
    };
    let bank = |bank| bank_ap(set, bank, part.clone(), negatives);
    let both = || EdgeBank::new().with_both_directions().with_popularity();
    let baseline = bank(both())?;
    let row = |model: &str, protocol: &str, ours: Vec<f64>, seconds| Row {
        set: set.name.clone(),
        model: model.to_owned(),
        protocol: format!("split by time, 1 random destination per event; {protocol}"),
        metric: metric.to_owned(),
        published: published(&set.name, model),
        baseline: Some(baseline),
        ours,
        seconds,
    };
    for (model, memory) in [("edgebank", EdgeBank::new()), ("edgebank_both", both())] {
        if args.wants(&set.name, model) {
            let start = Instant::now();
            let ap = bank(memory)?;
            let protocol = "pairs of earlier batches of 200";
            emit(row(model, protocol, vec![ap], start.elapsed().as_secs_f64()));
        }
    }
    let history = EventHistory::new(&set.events);
    let candidates = set.events.slice(set.split.train.clone()).destinations();
    let task = EventTask {
        history: &history,
        split: &set.split,
        candidates: &candidates,
        val_negatives: &val_negatives,
    };
    let (features, periods, device) =
        (set.events.feature_size(), periods(set), Device::flex().autodiff());
    let run = Run { args, task, test_negatives: &test_negatives };
    if args.wants(&set.name, "tgn") {
        let config = TgnConfig { periods, ..TgnConfig::new(32) };
        let (ours, seconds) = run.train(|| Ok(config.init(features, &device)?), TGN)?;
        let protocol = "memory of earlier batches of 200, latest events before each time";
        emit(row("tgn", protocol, ours, seconds));
    }
    if args.wants(&set.name, "graphmixer") {
        let config =
            GraphMixerConfig { periods, time: 24, expansion: 2, ..GraphMixerConfig::new(32) };
        let (ours, seconds) = run.train(|| Ok(config.init(features, &device)?), MIXER)?;
        emit(row("graphmixer", "latest events before each time", ours, seconds));
    }
    if args.wants(&set.name, "dygformer") {
        let config = DyGFormerConfig {
            periods,
            hidden: 32,
            time: 24,
            length: 16,
            layers: 1,
            expansion: 2,
            ..DyGFormerConfig::new(10)
        };
        let (ours, seconds) = run.train(|| Ok(config.init(features, &device)?), DYGFORMER)?;
        emit(row("dygformer", "latest events before each time", ours, seconds));
    }
    Ok(())
}

/// Training of each model, chosen on the validation part of `uci_messages`. While the epochs of DyGFormer were chosen, its
/// test figures had been read too (BENCHMARKS.md).
const TGN: Schedule = Schedule { epochs: 6, lr: 1e-3, dropout: 0.1 };
const MIXER: Schedule = Schedule { epochs: 4, lr: 2e-3, dropout: 0.1 };
const DYGFORMER: Schedule = Schedule { epochs: 4, lr: 2e-3, dropout: 0.1 };

#[derive(Clone, Copy)]
struct Schedule {
    epochs: usize,
    lr: f64,
    dropout: f64,
}

struct Run<'a> {
    args: &'a Args,
    task: EventTask<'a>,
    test_negatives: &'a [u32],
}

impl Run<'_> {
    /// Test figures of all seeds, or validation figures with `--tune`, and seconds.
    fn train<M: EventModel>(
        &self,
        build: impl Fn() -> Result<M>,
        schedule: Schedule,
    ) -> Result<(Vec<f64>, f64)> {
        let (start, mut ours) = (Instant::now(), vec![]);
        let EventTask { history, split, .. } = self.task;
        for seed in 0..self.args.seeds {
            let Schedule { epochs, lr, dropout } = schedule;
            let config = EventFitConfig {
                epochs,
                lr,
                dropout,
                batch: BATCH,
                seed,
                ..EventFitConfig::default()
            };
            let fitted = fit_events(seeded(seed, &build)?, self.task, &config, |epoch, e| {
                self.args.note(format_args!(
                    "seed {seed}  epoch {epoch:>2}  loss {:.4}  validation AP {:.4}  {:.1} s",
                    e.loss, e.val.ap, e.seconds
                ));
            })?;
            if self.args.tune {
                ours.push(fitted.val.ap);
                continue;
            }
            let mut state = fitted.state;
            let test = evaluate_events(
                &fitted.model,
                history,
                &mut state,
                split.test.clone(),
                self.test_negatives,
                BATCH,
            )?;
            self.args.note(format_args!(
                "seed {seed}  validation AP {:.4}  test AP {:.4}",
                fitted.val.ap, test.ap
            ));
            ours.push(test.ap);
        }
        Ok((ours, start.elapsed().as_secs_f64()))
    }
}

/// AP of a baseline on a part of the events, in batches of 200.
fn bank_ap(
    set: &EventDataset,
    mut bank: EdgeBank,
    part: Range<usize>,
    negatives: &[u32],
) -> Result<f64> {
    let events = &set.events;
    bank.advance(events, 0..part.start);
    let (positive, negative) = bank.score_events(events, part, negatives, BATCH)?;
    Ok(pair_metrics(&positive, &negative)?.ap)
}
