//! Links of events in time: EdgeBank and learned models against one random destination per event.
//!
//! Events are read as DyGLib reads them: in batches of 200 for EdgeBank and for the memory of TGN, and strictly before the
//! time of each event for the latest events of a node. Validation chooses the epoch; the test is read once per seed.

use std::time::Instant;

use anyhow::Result;
use burn::tensor::Device;
use burn_gnn::data::{EventDataset, load_events};
use burn_gnn::links::{
    DyGFormerConfig, EdgeBank, EventFitConfig, EventHistory, EventModel, EventTask,
    GraphMixerConfig, LinkQueries, TgnConfig, evaluate_events, fit_events, pair_metrics,
    random_destinations,
};
use burn_gnn::models::seeded;

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
    let all = set.events.destinations();
    let negatives = |given: &Option<Vec<u32>>, part: std::ops::Range<usize>, epoch| match given {
        Some(given) => given.clone(),
        None => random_destinations(&all, 0, epoch, part),
    };
    let val_negatives = negatives(&set.val_negatives, set.split.val.clone(), 1);
    let test_negatives = negatives(&set.test_negatives, set.split.test.clone(), 2);
    let baseline =
        bank_ap(set, EdgeBank::new().with_both_directions().with_popularity(), &test_negatives)?;
    let row = |model: &str, protocol: &str, ours: Vec<f64>, seconds| Row {
        set: set.name.clone(),
        model: model.to_owned(),
        protocol: format!("split by time, 1 random destination per event; {protocol}"),
        metric: "ap".to_owned(),
        published: published(&set.name, model),
        baseline: Some(baseline),
        ours,
        seconds,
    };
    for (model, bank) in [
        ("edgebank", EdgeBank::new()),
        ("edgebank_both", EdgeBank::new().with_both_directions().with_popularity()),
    ] {
        if args.wants(&set.name, model) {
            let start = Instant::now();
            let ap = bank_ap(set, bank, &test_negatives)?;
            let protocol = "reads batches of 200";
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

/// Training of each model, chosen on the validation part of `uci_messages`.
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
    /// Test figures of all seeds, and seconds.
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

/// Test figure of a baseline that reads batches of 200 events.
fn bank_ap(set: &EventDataset, mut bank: EdgeBank, negatives: &[u32]) -> Result<f64> {
    let (events, test) = (&set.events, set.split.test.clone());
    bank.advance(events, 0..test.start);
    let (mut positive, mut negative) = (vec![], vec![]);
    for start in test.clone().step_by(BATCH) {
        let batch = start..(start + BATCH).min(test.end);
        let of = &negatives[batch.start - test.start..batch.end - test.start];
        let scores = bank.scores(&LinkQueries::with_negatives(events, batch.clone(), of));
        let (p, n) = scores.split_at(batch.len());
        positive.extend(p.iter().map(|&s| s as f32));
        negative.extend(n.iter().map(|&s| s as f32));
        bank.advance(events, batch);
    }
    Ok(pair_metrics(&positive, &negative)?.ap)
}
