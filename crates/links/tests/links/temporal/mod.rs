//! Models of events: equality with PyTorch Geometric, no reading of later events, threads, errors, and UCI messages.

mod series;

use burn::module::{ModuleVisitor, Param};
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{EventSplit, EventStream, load_events};
use burn_gnn_links::{
    DyGFormerConfig, EdgeBank, EdgeBankMemory, EventFitConfig, EventHistory, EventModel, EventTask,
    GraphMixerConfig, LinkQueries, MemoryUpdater, MessageAggregation, StepDropout, TgatConfig,
    TgnConfig, TgnMemoryConfig, evaluate_events, fit_events, pair_metrics,
};
use burn_gnn_ops::{Stream, seeded};
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
    // DyGLib's batches, which may end between events of equal times.
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
    let both = || EdgeBank::new().with_both_directions().with_popularity();
    assert!((ap(both()) - 0.9020).abs() < 5e-4);
    // A window as long as the stream remembers every pair.
    let window = EdgeBank::new().with_memory(EdgeBankMemory::Window(i64::MAX));
    assert!((ap(window) - 0.7664).abs() < 5e-5);
    assert!(ap(EdgeBank::new().with_memory(EdgeBankMemory::Window(3600))) < 0.7);
    // Batches that end between times; the figure is also computed with NumPy.
    let strict = |mut bank: EdgeBank| {
        bank.advance(events, 0..test.start);
        let (positive, negative) = bank.score_events(events, test.clone(), negatives, 200).unwrap();
        pair_metrics(&positive, &negative).unwrap().ap
    };
    let [one, two] = [EdgeBank::new(), both()].map(strict);
    assert!((one - 0.76584).abs() < 5e-6, "{one}");
    assert!((two - 0.9020).abs() < 5e-4, "{two}");
}

#[test]
fn an_edge_bank_reads_no_event_of_the_time_of_a_query() {
    let events = EventStream::new(3, vec![0, 0, 0, 0], vec![1, 1, 1, 1], vec![1, 1, 1, 2]).unwrap();
    let (positive, negative) = EdgeBank::new().score_events(&events, 0..4, &[2; 4], 1).unwrap();
    assert_eq!((positive, negative), (vec![0.0, 0.0, 0.0, 1.0], vec![0.0; 4]));
    let error = |part, negatives: &[u32], batch| {
        EdgeBank::new().score_events(&events, part, negatives, batch).unwrap_err().to_string()
    };
    assert!(error(0..5, &[2; 5], 1).contains("`events` must lie in 0..4"));
    assert!(error(0..2, &[2], 1).contains("`negatives`: expected 2"));
    assert!(error(0..2, &[2, 3], 1).contains("`negatives` must lie in 0..3"));
    assert!(error(0..2, &[2, 2], 0).contains("`batch`"));
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
        let queries = LinkQueries { src, dst, time: vec![time; 50], scored: None };
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
    let split = EventSplit::by_time(&events, 0.2, 0.2).unwrap();
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

#[test]
fn an_edge_bank_with_a_window_reads_negative_times() {
    let events = EventStream::new(3, vec![0, 1], vec![1, 2], vec![-100, -50]).unwrap();
    let queries = LinkQueries { src: vec![0, 1], dst: vec![1, 2], time: vec![0; 2], scored: None };
    for mut bank in [EdgeBank::new(), EdgeBank::default()]
        .map(|bank| bank.with_memory(EdgeBankMemory::Window(20)))
    {
        assert_eq!(bank.scores(&queries), [0.0, 0.0]);
        bank.advance(&events, 0..2);
        assert_eq!(bank.scores(&queries), [0.0, 1.0]);
    }
}

/// Five events with one feature, the first three for training.
fn few_events() -> EventHistory {
    let events = EventStream::new(4, vec![0, 1, 0, 2, 1], vec![1, 2, 3, 3, 3], vec![1, 2, 3, 4, 5]);
    EventHistory::new(&events.unwrap().with_features(1, vec![0.5; 5]).unwrap())
}

/// Ranks score parts of a batch. Nodes repeat within it, have more and fewer events than sequences, and none.
#[test]
fn parts_of_a_batch_have_the_logits_and_gradients_of_the_batch() {
    fn check<M: EventModel>(name: &str, model: M) {
        let draw = Stream::new(4, "events", 0);
        let node = |i, column| (draw.uniform(i, column).powi(2) * 11.0) as u32;
        let [src, dst] = [0, 1].map(|column| (0..90).map(|i| node(i, column)).collect());
        let time = (0..90).map(|i| i / 2).collect();
        let features = (0..90).map(|i| draw.uniform(i, 2) as f32).collect();
        let events = EventStream::new(12, src, dst, time).unwrap();
        let history = EventHistory::new(&events.with_features(1, features).unwrap());
        let mut state = model.new_state(&history);
        for batch in [0..30, 30..60, 60..80] {
            model.advance(&history, &mut state, batch).unwrap();
        }
        let negatives: Vec<u32> = (0..10).map(|i| (i * 5 + 11) % 12).collect();
        let queries = LinkQueries::with_negatives(history.events(), 80..90, &negatives);
        for prob in [0.0, 0.3] {
            let dropout = StepDropout { prob, seed: 7, step: 3, rows: None };
            let of = |queries: &LinkQueries| {
                let logits = model.logits(&history, &state, queries, Some(&dropout)).unwrap();
                let found: Vec<f64> = logits.clone().into_data().iter::<f64>().collect();
                let weights = Tensor::<1>::from_data(TensorData::from(&*found), &logits.device());
                let grads =
                    GradientsParams::from_grads((logits * weights).sum().backward(), &model);
                (found, grads)
            };
            let (whole, whole_grads) = of(&queries);
            assert!(whole.iter().any(|x| (x - whole[0]).abs() > 1e-3), "{name}: {whole:?}");
            let (mut positive, mut negative, mut sums) = (vec![], vec![], vec![]);
            for part in [0..3, 3..4, 4..10] {
                let (found, grads) = of(&queries.clone().with_part(part.clone()));
                let (p, n) = found.split_at(part.len());
                positive.extend_from_slice(p);
                negative.extend_from_slice(n);
                sums.push(grads);
            }
            let found = [positive, negative].concat();
            assert_close(&format!("{name}, dropout {prob}"), &found, &whole, 1e-5);
            let of = |grads: &[&GradientsParams]| gradients(&model, grads);
            let sums = of(&sums.iter().collect::<Vec<_>>());
            for ((param, found), (_, expected)) in sums.iter().zip(of(&[&whole_grads])) {
                let name = format!("{name}, dropout {prob}, {param}");
                assert_close(&name, found, &expected, 1e-4);
            }
        }
    }
    let device = Device::flex().autodiff();
    seeded(2, || {
        check("TGN", TgnConfig::new(8).init(1, &device).unwrap());
        check("TGAT", TgatConfig::new(8).init(1, &device).unwrap());
        check("GraphMixer", GraphMixerConfig::new(8).init(1, &device).unwrap());
        for patch in [1, 2] {
            let config = DyGFormerConfig { length: 8, patch, ..DyGFormerConfig::new(8) };
            check("DyGFormer", config.init(1, &device).unwrap());
        }
    });
}

/// Sums of gradients by parameter, which is numbered.
fn gradients<M: EventModel>(model: &M, grads: &[&GradientsParams]) -> Vec<(String, Vec<f64>)> {
    struct Sums<'a> {
        grads: &'a [&'a GradientsParams],
        found: Vec<(String, Vec<f64>)>,
    }
    impl ModuleVisitor for Sums<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let of = self.grads.iter().filter_map(|grads| grads.get::<D>(param.id));
            let sum = of.reduce(|a, b| a + b);
            let values = sum.map_or(vec![], |sum| sum.into_data().iter::<f64>().collect());
            let name = format!("parameter {} of {:?}", self.found.len(), param.dims());
            self.found.push((name, values));
        }
    }
    let mut sums = Sums { grads, found: vec![] };
    model.visit(&mut sums);
    sums.found
}

#[test]
fn events_with_another_number_of_features_are_errors() {
    fn check<M: EventModel>(model: M) {
        let history = few_events();
        // No event is in the state before the first batch.
        let mut state = model.new_state(&history);
        for _ in 0..2 {
            let e = evaluate_events(&model, &history, &mut state, 0..3, &[3; 3], 2).unwrap_err();
            let e = e.to_string();
            assert!(e.contains("`events`: expected 2 (features per event"), "{e}");
        }
        assert!(model.advance(&history, &mut state, 0..2).is_ok() == (size_of::<M::State>() == 0));
    }
    let device = Device::flex();
    check(TgnConfig::new(4).init(2, &device).unwrap());
    check(TgatConfig::new(4).init(2, &device).unwrap());
    check(GraphMixerConfig::new(4).init(2, &device).unwrap());
    check(DyGFormerConfig::new(4).init(2, &device).unwrap());
}

#[test]
fn invalid_settings_of_models_are_errors() {
    let device = Device::flex();
    let rejected = |e: String, part: &str| assert!(e.contains(part), "expected {part:?} in {e}");
    let tgn = |edit: fn(TgnConfig) -> TgnConfig| {
        edit(TgnConfig::new(4)).init(0, &device).unwrap_err().to_string()
    };
    rejected(tgn(|c| TgnConfig { hidden: 0, ..c }), "`hidden` must lie in 1..");
    rejected(tgn(|c| TgnConfig { heads: 3, ..c }), "`heads` = 3 must divide hidden + time = 8");
    rejected(tgn(|c| TgnConfig { periods: [0.0, 1.0], ..c }), "`periods` must lie in");
    let mixer = GraphMixerConfig { time: 0, ..GraphMixerConfig::new(4) };
    rejected(mixer.init(0, &device).unwrap_err().to_string(), "`time` must lie in 1..");
    let dygformer = |edit: fn(DyGFormerConfig) -> DyGFormerConfig| {
        edit(DyGFormerConfig::new(4)).init(0, &device).unwrap_err().to_string()
    };
    rejected(dygformer(|c| DyGFormerConfig { channel: 0, ..c }), "`channel` must lie in 1..");
    rejected(dygformer(|c| DyGFormerConfig { patch: 5, ..c }), "`patch` = 5 must divide length");
    rejected(dygformer(|c| DyGFormerConfig { heads: 0, ..c }), "`heads` must lie in 1..");
}

#[test]
fn invalid_settings_and_losses_of_training_are_errors() {
    let (history, device) = (few_events(), Device::flex().autodiff());
    let split = EventSplit { train: 0..3, val: 3..4, test: 4..5 };
    let (candidates, val_negatives) = (&[1][..], &[0][..]);
    let task = EventTask { history: &history, split: &split, candidates, val_negatives };
    let rejected = |edit: fn(&mut EventFitConfig), part: &str| {
        let model = seeded(0, || GraphMixerConfig::new(4).init(1, &device).unwrap());
        let mut config = EventFitConfig { batch: 1, epochs: 3, ..EventFitConfig::default() };
        edit(&mut config);
        let e = fit_events(model, task, &config, |_, _| ()).unwrap_err().to_string();
        assert!(e.contains(part), "expected {part:?} in {e}");
    };
    rejected(|c| c.lr = 0.0, "`lr` must lie in finite numbers above 0");
    rejected(|c| c.dropout = 1.0, "`dropout` must lie in 0.0..1.0");
    rejected(|c| c.lr = 1e38, "epoch 0, training batch 1: the loss is ");
}

#[test]
fn invalid_tasks_are_errors_before_training() {
    let history = few_events();
    let split = |train, val| EventSplit { train, val, test: 4..5 };
    let rejected = |split: EventSplit, candidates: &[u32], val_negatives: &[u32], part: &str| {
        let task = EventTask { history: &history, split: &split, candidates, val_negatives };
        let model = GraphMixerConfig::new(4).init(1, &Device::flex().autodiff()).unwrap();
        let config = EventFitConfig::default();
        let e = fit_events(model, task, &config, |_, _| panic!("no epoch ends")).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    };
    rejected(split(0..3, 3..4), &[], &[0], "`candidates` must lie in 1..");
    rejected(split(0..3, 3..4), &[1, 4], &[0], "`candidates` must lie in 0..4 (nodes");
    rejected(split(0..3, 3..4), &[1], &[], "`negatives`: expected 1 (one per event), got 0");
    rejected(split(0..3, 3..4), &[1], &[9], "`negatives` must lie in 0..4 (nodes");
    rejected(split(0..0, 0..4), &[1], &[0; 4], "`split.train` must lie in 1..");
    rejected(split(0..4, 4..4), &[1], &[], "`split.val` must lie in 1..");
    rejected(split(0..3, 3..9), &[1], &[0; 6], "`split.val` must lie in 0..5 (events), got 3..9");
}
