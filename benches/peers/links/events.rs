//! Measures training of models of events on a generated stream of the size of Wikipedia's edits.
//!
//! `benches/links/tgn.py` trains PyTorch Geometric's TGN example on the same events.

use anyhow::{Result, bail, ensure};
use burn_gnn::data::{EventSplit, EventStream};
use burn_gnn::links::{
    EventFitConfig, EventHistory, EventModel, EventTask, TgatConfig, TgnConfig, fit_events,
};
use burn_gnn::models::seeded;
use serde_json::json;

use super::draw;
use crate::measure::{Entry, Times, device, emit, memory_mb};

const USERS: u64 = 8_227;
const ITEMS: u64 = 1_000;
const EVENTS: u64 = 157_474;
const FEATURES: usize = 172;
/// Seconds between events.
const STEP: i64 = 17;
/// As in PyTorch Geometric's example.
const BATCH: usize = 200;
const HIDDEN: usize = 100;
const NEIGHBORS: usize = 10;

/// Events of users with items; small numbers are frequent.
fn stream(scale: u64) -> Result<EventStream> {
    let (users, items, events) = (USERS * scale, ITEMS * scale, EVENTS * scale);
    let skewed = |e: u64, column, n| draw(e, column, n).min(draw(e, column + 1, n)) as u32;
    let src = (0..events).map(|e| skewed(e, 0, users)).collect();
    let dst = (0..events).map(|e| users as u32 + skewed(e, 2, items)).collect();
    let time = (0..events as i64).map(|e| e * STEP).collect();
    let value = |i: u64| draw(i, 4, 2048) as f32 / 1024.0 - 1.0;
    let features = (0..events * FEATURES as u64).map(value).collect();
    let stream = EventStream::new((users + items) as usize, src, dst, time)?;
    Ok(stream.with_features(FEATURES, features)?)
}

/// Trains `events` events, which end at `end` tenths of a stream that is `scale` times as long as Wikipedia's.
pub(crate) fn run(kind: &str, scale: u64, end: usize, events: Option<usize>) -> Result<()> {
    ensure!((1..10).contains(&end), "events: expected an end of 1 to 9 tenths, found {end}");
    let stream = stream(scale)?;
    let end = stream.len() * end / 10;
    let start = end.saturating_sub(events.unwrap_or(end));
    let split =
        EventSplit { train: start..end, val: end..end + BATCH, test: end + BATCH..stream.len() };
    let history = EventHistory::new(&stream);
    let candidates = stream.destinations();
    let val_negatives = vec![candidates[0]; BATCH];
    let of = Of { history: &history, split: &split, candidates: &candidates, val_negatives };
    let device = device().autodiff();
    match kind {
        "tgn" => {
            let config = TgnConfig { neighbors: NEIGHBORS, ..TgnConfig::new(HIDDEN) };
            of.measure(kind, scale, seeded(0, || config.init(FEATURES, &device))?)
        }
        "tgat" => {
            let config = TgatConfig { neighbors: NEIGHBORS, ..TgatConfig::new(HIDDEN) };
            of.measure(kind, scale, seeded(0, || config.init(FEATURES, &device))?)
        }
        other => bail!("unknown model `{other}`; there are tgn and tgat"),
    }
}

struct Of<'a> {
    history: &'a EventHistory,
    split: &'a EventSplit,
    candidates: &'a [u32],
    val_negatives: Vec<u32>,
}

impl Of<'_> {
    fn measure<M: EventModel>(&self, kind: &str, scale: u64, model: M) -> Result<()> {
        let Self { history, split, candidates, val_negatives } = self;
        let task = EventTask { history, split, candidates, val_negatives };
        let config = EventFitConfig {
            epochs: 1,
            batch: BATCH,
            lr: 1e-4,
            decay: false,
            ..EventFitConfig::default()
        };
        let fitted = fit_events(model, task, &config, |_, _| ())?;
        let (epoch, events) = (fitted.epochs[0], split.train.len());
        let more = [
            ("events", json!(events)),
            ("us_per_event", json!((epoch.seconds * 1e6 / events as f64).round())),
            ("loss", json!(epoch.loss)),
            ("peak_mb", json!(memory_mb().1.round())),
        ];
        let graph = format!("wikipedia-like x{scale}");
        let entry = Entry { group: "events", graph: &graph, op: kind };
        emit(entry, Some(&Times::once(epoch.seconds)), &more);
        Ok(())
    }
}
