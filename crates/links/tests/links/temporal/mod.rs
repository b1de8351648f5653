//! Models of events: equality with PyTorch Geometric, no reading of later events, threads, and UCI messages.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{EventStream, load_events};
use burn_gnn_links::{
    EdgeBank, EdgeBankMemory, EventFitConfig, EventHistory, EventModel, EventTask,
    GraphMixerConfig, LinkQueries, MemoryUpdater, MessageAggregation, TgnConfig, TgnMemoryConfig,
    fit_events, pair_metrics,
};
use burn_gnn_ops::seeded;
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, data};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Vectors {
    sizes: BTreeMap<String, usize>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    mean: bool,
    training: bool,
    weights: BTreeMap<String, Vec<f32>>,
    src: Vec<u32>,
    dst: Vec<u32>,
    time: Vec<i64>,
    features: Vec<f32>,
    states: Vec<State>,
}

#[derive(Deserialize)]
struct State {
    memory: Vec<f64>,
    last_update: Vec<i64>,
}

/// The vectors are made by `tgn_memory.py` in this folder.
#[test]
fn tgn_memory_equals_pytorch_geometric() {
    let vectors: Vectors = serde_json::from_str(include_str!("tgn_memory.json")).unwrap();
    let size = |name: &str| vectors.sizes[name];
    let (nodes, memory, time) = (size("nodes"), size("memory"), size("time"));
    let device = Device::flex();
    for case in &vectors.cases {
        let aggregation =
            if case.mean { MessageAggregation::Mean } else { MessageAggregation::Last };
        let config = TgnMemoryConfig {
            aggregation,
            update_without_messages: case.training,
            ..TgnMemoryConfig::new(memory, time, size("raw"))
        };
        let mut model = config.init(&device);
        let vector = |name: &str| {
            let values = case.weights[name].clone();
            let n = values.len();
            Param::from_tensor(Tensor::<1>::from_data(TensorData::new(values, [n]), &device))
        };
        let linear = |weight: &str, bias: &str, outputs: usize| {
            let values = case.weights[weight].clone();
            let inputs = values.len() / outputs;
            let w = Tensor::<2>::from_data(TensorData::new(values, [outputs, inputs]), &device);
            Linear { weight: Param::from_tensor(w.transpose()), bias: Some(vector(bias)) }
        };
        model.time.frequencies = vector("time_enc.lin.weight");
        model.time.phases = vector("time_enc.lin.bias");
        let MemoryUpdater::Gru(cell) = &mut model.updater else { unreachable!("the default") };
        cell.input = linear("gru.weight_ih", "gru.bias_ih", 3 * memory);
        cell.hidden = linear("gru.weight_hh", "gru.bias_hh", 3 * memory);
        let events = EventStream::new(nodes, case.src.clone(), case.dst.clone(), case.time.clone())
            .unwrap()
            .with_features(size("raw"), case.features.clone())
            .unwrap();
        let all: Vec<u32> = (0..nodes as u32).collect();
        let mut state = model.new_state(nodes);
        for (i, expected) in case.states.iter().enumerate() {
            let batch = i * size("batch")..(i + 1) * size("batch");
            if case.training {
                model.update(&events, &mut state, batch).unwrap();
            } else {
                model.update_at_once(&events, &mut state, batch).unwrap();
            }
            let found = model.read(&events, &state, &all).unwrap();
            let values: Vec<f64> = found.memory.into_data().iter::<f64>().collect();
            assert_close("memory", &values, &expected.memory, 1e-5);
            assert_eq!(found.last_update, expected.last_update, "batch {i}");
        }
    }
}

#[test]
fn edge_bank_has_the_figures_of_the_notes() {
    let Some(dir) = data("uci_messages") else { return };
    let set = load_events(dir).unwrap();
    let (events, test) = (&set.events, set.split.test.clone());
    let negatives = set.test_negatives.as_ref().unwrap();
    let ap = |mut bank: EdgeBank| {
        bank.advance(events, 0..test.start);
        let (mut positive, mut negative) = (vec![], vec![]);
        for start in test.clone().step_by(200) {
            let batch = start..(start + 200).min(test.end);
            let of = &negatives[batch.start - test.start..batch.end - test.start];
            let scores = bank.scores(&LinkQueries::with_negatives(events, batch.clone(), of));
            let (p, n) = scores.split_at(batch.len());
            positive.extend(p.iter().map(|&s| s as f32));
            negative.extend(n.iter().map(|&s| s as f32));
            bank.advance(events, batch);
        }
        pair_metrics(&positive, &negative).unwrap().ap
    };
    assert!((ap(EdgeBank::new()) - 0.7664).abs() < 5e-5);
    let both = EdgeBank::new().with_both_directions().with_popularity();
    assert!((ap(both) - 0.9020).abs() < 5e-4);
    // A window as long as the stream remembers every pair.
    let window = EdgeBank::new().with_memory(EdgeBankMemory::Window(i64::MAX));
    assert!((ap(window) - 0.7664).abs() < 5e-5);
    assert!(ap(EdgeBank::new().with_memory(EdgeBankMemory::Window(3600))) < 0.7);
}

/// The first events of UCI messages.
fn first_events(count: usize) -> Option<(EventStream, Vec<u32>)> {
    let set = load_events(data("uci_messages")?).unwrap();
    let events = set.events.slice(0..count);
    let destinations = events.destinations();
    Some((events, destinations))
}

#[test]
fn later_messages_change_no_bit_of_logits_and_memory() {
    let Some((events, _)) = first_events(3000) else { return };
    let model = seeded(0, || TgnConfig::new(8).init(0, &Device::flex()).unwrap());
    let batches = events.batches(200).unwrap();
    let at = batches[9].start;
    let time = events.time()[at];
    let of = |s: &EventStream| {
        let history = EventHistory::new(s);
        let mut state = model.new_state(&history);
        for batch in &batches[..9] {
            model.advance(&history, &mut state, batch.clone()).unwrap();
        }
        let (src, dst) = (events.src()[at..at + 50].to_vec(), events.dst()[at..at + 50].to_vec());
        let queries = LinkQueries { src, dst, time: vec![time; 50] };
        let logits = model.logits(&history, &state, &queries, None).unwrap().into_data();
        (logits.iter::<f32>().map(f32::to_bits).collect::<Vec<_>>(), state)
    };
    let (expected, state) = of(&events);
    let keep = |end: usize| {
        let column = |of: &[u32]| of[..end].to_vec();
        (column(events.src()), column(events.dst()), events.time()[..end].to_vec())
    };
    let (src, dst, times) = keep(at);
    let removed = EventStream::new(events.num_nodes(), src, dst, times).unwrap();
    let (mut src, mut dst, mut times) = keep(events.len());
    for e in at..events.len() {
        (src[e], dst[e]) = (dst[e], src[e / 2]);
        times[e] = time + (times[e] - time) / 3;
    }
    let changed = EventStream::new(events.num_nodes(), src, dst, times).unwrap();
    for s in [removed, changed] {
        let (found, found_state) = of(&s);
        assert!(found == expected && found_state == state);
    }
}

#[test]
fn training_learns_and_has_the_same_bits_on_any_number_of_threads() {
    let Some((events, candidates)) = first_events(2400) else { return };
    let history = EventHistory::new(&events);
    let split = burn_gnn_data::EventSplit::by_time(&events, 0.2, 0.2).unwrap();
    let negatives: Vec<u32> =
        split.val.clone().map(|e| candidates[e * 7 % candidates.len()]).collect();
    let task = EventTask {
        history: &history,
        split: &split,
        candidates: &candidates,
        val_negatives: &negatives,
    };
    let config = EventFitConfig { epochs: 2, batch: 100, lr: 3e-3, ..EventFitConfig::default() };
    let device = Device::flex().autodiff();
    let train = || {
        let model = seeded(1, || GraphMixerConfig::new(16).init(0, &device).unwrap());
        let fitted = fit_events(model, task, &config, |_, _| ()).unwrap();
        assert!(fitted.epochs[1].loss < fitted.epochs[0].loss);
        assert!(fitted.val.ap > 0.6, "{:?}", fitted.val);
        fitted.epochs.iter().flat_map(|e| [e.loss, e.val.ap]).collect::<Vec<f64>>()
    };
    assert_same_bits_on_threads("losses and validation", train);
}
