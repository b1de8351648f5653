//! Compares the models with references that are written from the formulas, node by node in f64, and checks that no model
//! reads an event at or after the time of a query.

use burn::nn::{LayerNorm, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_data::EventStream;
use burn_gnn_ops::{Stream, seeded};

use super::dygformer::{DyGFormer, DyGFormerConfig};
use super::graph_mixer::{GraphMixer, GraphMixerConfig};
use super::history::{EventHistory, LinkQueries};
use super::layers::{FeedForward, GruCell, PairDecoder, TemporalAttention, TimeEncoding};
use super::memory::{MemoryUpdater, MessageAggregation};
use super::model::EventModel;
use super::tgn::{Tgat, TgatConfig, Tgn, TgnConfig};
use super::train::link_loss;

type Row = Vec<f64>;

fn values<const D: usize>(x: Tensor<D>) -> Row {
    x.into_data().iter::<f64>().collect()
}

fn lin(l: &Linear, x: &[f64]) -> Row {
    let [d_in, d_out] = l.weight.dims();
    assert_eq!(x.len(), d_in);
    let w = values(l.weight.val());
    let b = l.bias.as_ref().map_or(vec![0.0; d_out], |b| values(b.val()));
    (0..d_out).map(|j| b[j] + (0..d_in).map(|i| x[i] * w[i * d_out + j]).sum::<f64>()).collect()
}

fn norm(l: &LayerNorm, x: &[f64]) -> Row {
    let (g, b) = (values(l.gamma.val()), values(l.beta.as_ref().unwrap().val()));
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter().zip(g).zip(b).map(|((v, g), b)| (v - mean) / (var + 1e-5).sqrt() * g + b).collect()
}

fn relu(x: Row) -> Row {
    x.into_iter().map(|v| v.max(0.0)).collect()
}

fn feed_forward(f: &FeedForward, x: &[f64]) -> Row {
    lin(&f.second, &relu(lin(&f.first, x)))
}

fn softmax(x: &[f64]) -> Row {
    let max = x.iter().copied().fold(f64::MIN, f64::max);
    let e: Row = x.iter().map(|v| (v - max).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|v| v / sum).collect()
}

fn time(t: &TimeEncoding, dt: i64) -> Row {
    let (w, b) = (values(t.frequencies.val()), values(t.phases.val()));
    w.into_iter().zip(b).map(|(w, b)| (dt as f64 * w + b).cos()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sum_rows(a: &[f64], b: &[f64]) -> Row {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn decode(d: &PairDecoder, a: &[f64], b: &[f64]) -> f64 {
    lin(&d.second, &relu(lin(&d.first, &[a, b].concat())))[0]
}

/// The `k` latest events of a node before a time by a scan of the stream, latest first: event, other node, features.
fn latest(s: &EventStream, v: u32, t: i64, k: usize) -> Vec<(usize, u32, Row)> {
    let of = |e: usize| s.src()[e] == v || s.dst()[e] == v;
    let events = (0..s.len()).rev().filter(|&e| s.time()[e] < t && of(e)).take(k);
    events
        .map(|e| {
            let is_source = s.src()[e] == v;
            let mut f = vec![f64::from(u8::from(is_source))];
            f.extend(s.features_of(e).iter().map(|&v| f64::from(v)));
            (e, if is_source { s.dst()[e] } else { s.src()[e] }, f)
        })
        .collect()
}

/// One node of [`TemporalAttention`].
fn attend(
    a: &TemporalAttention,
    encode: &TimeEncoding,
    x: &[f64],
    neighbors: &[(Row, Row, i64)],
) -> Row {
    let own = [x, &time(encode, 0)].concat();
    let (q, size) = (lin(&a.query, &own), own.len() / a.heads);
    let keys: Vec<Row> =
        neighbors.iter().map(|(y, f, dt)| [&y[..], f, &time(encode, *dt)].concat()).collect();
    let mut attended = vec![0.0; own.len()];
    for h in 0..a.heads {
        let part = h * size..(h + 1) * size;
        let logits: Row = keys
            .iter()
            .map(|k| dot(&q[part.clone()], &lin(&a.key, k)[part.clone()]) / (size as f64).sqrt())
            .collect();
        for (weight, k) in softmax(&logits).into_iter().zip(&keys) {
            let v = lin(&a.value, k);
            part.clone().for_each(|i| attended[i] += weight * v[i]);
        }
    }
    let h = norm(&a.norm, &sum_rows(&lin(&a.output, &attended), &own));
    lin(&a.merge[1], &relu(lin(&a.merge[0], &[&h[..], x].concat())))
}

fn tgat(m: &Tgat, s: &EventStream, v: u32, t: i64, depth: usize) -> Row {
    if depth == 0 {
        return vec![0.0; m.hidden];
    }
    let neighbors: Vec<(Row, Row, i64)> = latest(s, v, t, m.neighbors)
        .into_iter()
        .map(|(e, u, f)| (tgat(m, s, u, s.time()[e], depth - 1), f, t - s.time()[e]))
        .collect();
    attend(&m.layers[depth - 1], &m.time, &tgat(m, s, v, t, depth - 1), &neighbors)
}

fn mixer(m: &GraphMixer, s: &EventStream, v: u32, t: i64) -> Row {
    let width = m.input.weight.dims()[0];
    let mut x: Vec<Row> = latest(s, v, t, m.neighbors)
        .into_iter()
        .map(|(e, _, f)| [&f[..], &time(&m.time, t - s.time()[e])].concat())
        .collect();
    x.resize(m.neighbors, vec![0.0; width]);
    let mut x: Vec<Row> = x.iter().map(|row| lin(&m.input, row)).collect();
    for layer in &m.layers {
        for c in 0..x[0].len() {
            let column: Row = x.iter().map(|row| row[c]).collect();
            let mixed = feed_forward(&layer.tokens, &norm(&layer.token_norm, &column));
            x.iter_mut().zip(mixed).for_each(|(row, add)| row[c] += add);
        }
        for row in &mut x {
            *row = sum_rows(row, &feed_forward(&layer.channels, &norm(&layer.channel_norm, row)));
        }
    }
    let mean: Row =
        (0..x[0].len()).map(|c| x.iter().map(|r| r[c]).sum::<f64>() / x.len() as f64).collect();
    lin(&m.output, &mean)
}

fn dygformer(m: &DyGFormer, s: &EventStream, pair: [u32; 2], t: i64) -> f64 {
    // Neighbour, event features and encoded time of each entry; `None` where there is none.
    let sequence = |v: u32| {
        let size = s.feature_size() + 2;
        let mut own = vec![0.0; size];
        own[0] = 1.0;
        let mut entries = vec![Some((v, own, time(&m.time, 0)))];
        for (e, u, f) in latest(s, v, t, m.length - 1) {
            entries.push(Some((u, [&[0.0], &f[..]].concat(), time(&m.time, t - s.time()[e]))));
        }
        entries.resize(m.length, None);
        entries
    };
    let sequences = pair.map(sequence);
    let count = |u: u32, i: usize| {
        sequences[i].iter().flatten().filter(|entry| entry.0 == u).count() as f64
    };
    let encode = |n: f64| lin(&m.counts[1], &relu(lin(&m.counts[0], &[n])));
    let (events, times) = (m.events.weight.dims()[0], m.times.weight.dims()[0]);
    let counts = m.co_occurrence.weight.dims()[0];
    let mut x: Vec<Row> = vec![];
    for sequence in &sequences {
        for patch in sequence.chunks(m.patch) {
            let zeros = |n: usize| vec![0.0; n / m.patch];
            let mut parts: [Row; 3] = Default::default();
            for entry in patch {
                match entry {
                    None => {
                        parts[0].extend(zeros(events));
                        parts[1].extend(zeros(times));
                        parts[2].extend(zeros(counts));
                    }
                    Some((u, f, dt)) => {
                        parts[0].extend(f);
                        parts[1].extend(dt);
                        parts[2].extend(sum_rows(&encode(count(*u, 0)), &encode(count(*u, 1))));
                    }
                }
            }
            let channels = [&m.events, &m.times, &m.co_occurrence];
            x.push(channels.iter().zip(&parts).flat_map(|(l, x)| lin(l, x)).collect());
        }
    }
    for layer in &m.layers {
        let width = x[0].len();
        let size = width / layer.heads;
        let qkv: Vec<Row> =
            x.iter().map(|r| lin(&layer.attention, &norm(&layer.norms[0], r))).collect();
        let part = |i: usize, h: usize| i * width + h * size..i * width + (h + 1) * size;
        let next: Vec<Row> = (0..x.len())
            .map(|i| {
                let mut mixed = vec![];
                for h in 0..layer.heads {
                    let logits: Row = qkv
                        .iter()
                        .map(|k| dot(&qkv[i][part(0, h)], &k[part(1, h)]) / (size as f64).sqrt())
                        .collect();
                    let weights = softmax(&logits);
                    mixed.extend((0..size).map(|c| {
                        qkv.iter().zip(&weights).map(|(v, w)| w * v[part(2, h)][c]).sum::<f64>()
                    }));
                }
                let row = sum_rows(&x[i], &lin(&layer.output, &mixed));
                sum_rows(&row, &feed_forward(&layer.mlp, &norm(&layer.norms[1], &row)))
            })
            .collect();
        x = next;
    }
    let tokens = x.len() / 2;
    let z = |i: usize| {
        let of = &x[i * tokens..(i + 1) * tokens];
        let mean: Row = (0..of[0].len())
            .map(|c| of.iter().map(|r| r[c]).sum::<f64>() / tokens as f64)
            .collect();
        lin(&m.output, &mean)
    };
    decode(&m.decoder, &z(0), &z(1))
}

fn gru(cell: &GruCell, x: &[f64], h: &[f64]) -> Row {
    let (a, b, d) = (lin(&cell.input, x), lin(&cell.hidden, h), h.len());
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    (0..d)
        .map(|i| {
            let (r, z) = (sigmoid(a[i] + b[i]), sigmoid(a[d + i] + b[d + i]));
            let n = (a[2 * d + i] + r * b[2 * d + i]).tanh();
            (1.0 - z) * n + z * h[i]
        })
        .collect()
}

/// Memories of all nodes as they are read after the given batches.
fn memories(m: &Tgn, s: &EventStream, batches: &[std::ops::Range<usize>], mean: bool) -> Vec<Row> {
    let MemoryUpdater::Gru(cell) = &m.memory.updater else { unreachable!("made with a GRU") };
    let d = cell.hidden.weight.dims()[0];
    let (mut memory, mut last) = (vec![vec![0.0; d]; s.num_nodes()], vec![0; s.num_nodes()]);
    let mut stored: Vec<Vec<usize>> = vec![vec![]; s.num_nodes()];
    let read = |memory: &[Row], last: &[i64], stored: &[usize], v: usize| -> (Row, i64) {
        let Some(&latest) = stored.last() else { return (memory[v].clone(), last[v]) };
        let used = if mean { stored } else { &stored[stored.len() - 1..] };
        let mut total: Row = vec![];
        for &e in used {
            let u = if s.src()[e] as usize == v { s.dst()[e] } else { s.src()[e] } as usize;
            let f: Row = s.features_of(e).iter().map(|&v| f64::from(v)).collect();
            let dt = time(&m.memory.time, s.time()[e] - last[v]);
            let message = [&memory[v][..], &memory[u], &f, &dt].concat();
            total = if total.is_empty() { message } else { sum_rows(&total, &message) };
        }
        total.iter_mut().for_each(|x| *x /= used.len() as f64);
        (gru(cell, &total, &memory[v]), s.time()[latest])
    };
    for batch in batches {
        let of_batch: std::collections::BTreeSet<usize> =
            batch.clone().flat_map(|e| [s.src()[e] as usize, s.dst()[e] as usize]).collect();
        let new: Vec<(usize, (Row, i64))> =
            of_batch.iter().map(|&v| (v, read(&memory, &last, &stored[v], v))).collect();
        for (v, (row, time)) in new {
            (memory[v], last[v]) = (row, time);
            stored[v].clear();
        }
        for e in batch.clone() {
            stored[s.src()[e] as usize].push(e);
            stored[s.dst()[e] as usize].push(e);
        }
    }
    (0..s.num_nodes()).map(|v| read(&memory, &last, &stored[v], v).0).collect()
}

/// Random events between distinct nodes, with equal times.
fn random_events(
    seed: u64,
    events: usize,
    times: std::ops::Range<i64>,
) -> Vec<(u32, u32, i64, [f32; 2])> {
    let stream = Stream::new(seed, "events", 0);
    let below = |e: usize, column, n: f64| (stream.uniform(e as u64, column) * n) as u32;
    (0..events)
        .map(|e| {
            let (u, v) = (below(e, 0, 7.0), below(e, 1, 6.0));
            let v = if v >= u { v + 1 } else { v };
            let span = (times.end - times.start) as f64;
            let time = times.start + i64::from(below(e, 2, span));
            let f = [3, 4].map(|c| stream.uniform(e as u64, c) as f32);
            (u, v, time, f)
        })
        .collect()
}

fn stream_of(mut events: Vec<(u32, u32, i64, [f32; 2])>) -> EventStream {
    events.sort_by_key(|e| e.2);
    let features = events.iter().flat_map(|e| e.3).collect();
    let column = |i: usize| events.iter().map(|e| if i == 0 { e.0 } else { e.1 }).collect();
    let times = events.iter().map(|e| e.2).collect();
    EventStream::new(8, column(0), column(1), times).unwrap().with_features(2, features).unwrap()
}

fn queries() -> LinkQueries {
    LinkQueries {
        src: vec![0, 1, 2, 0, 7, 3],
        dst: vec![1, 2, 5, 4, 0, 7],
        time: vec![20, 20, 12, 31, 20, 0],
        scored: None,
    }
}

fn close(found: Tensor<1>, expected: &[f64]) {
    let found = values(found);
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "query {i}: {a}, expected {b}");
    }
    assert!(found.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-4), "all equal: {found:?}");
}

fn tgn_model(aggregation: MessageAggregation) -> Tgn {
    let config =
        TgnConfig { time: 4, periods: [1.0, 50.0], neighbors: 3, aggregation, ..TgnConfig::new(6) };
    seeded(1, || config.init(2, &Device::flex()).unwrap())
}
fn tgat_model() -> Tgat {
    let config = TgatConfig { time: 4, periods: [1.0, 50.0], neighbors: 3, ..TgatConfig::new(6) };
    seeded(2, || config.init(2, &Device::flex()).unwrap())
}
fn mixer_model() -> GraphMixer {
    let config = GraphMixerConfig {
        time: 4,
        periods: [1.0, 50.0],
        neighbors: 4,
        ..GraphMixerConfig::new(6)
    };
    seeded(3, || config.init(2, &Device::flex()).unwrap())
}
fn dygformer_model(patch: usize) -> DyGFormer {
    let config = DyGFormerConfig {
        hidden: 5,
        time: 4,
        periods: [1.0, 50.0],
        length: 6,
        patch,
        ..DyGFormerConfig::new(4)
    };
    seeded(4, || config.init(2, &Device::flex()).unwrap())
}

#[test]
fn tgat_equals_its_reference() {
    let (s, q, m) = (stream_of(random_events(5, 40, 0..30)), queries(), tgat_model());
    let z = |v, t| tgat(&m, &s, v, t, 2);
    let expected: Row = (0..q.len())
        .map(|i| decode(&m.decoder, &z(q.src[i], q.time[i]), &z(q.dst[i], q.time[i])))
        .collect();
    close(m.logits(&EventHistory::new(&s), &(), &q, None).unwrap(), &expected);
}

#[test]
fn graph_mixer_equals_its_reference() {
    let (s, q, m) = (stream_of(random_events(6, 40, 0..30)), queries(), mixer_model());
    let z = |v, t| mixer(&m, &s, v, t);
    let expected: Row = (0..q.len())
        .map(|i| decode(&m.decoder, &z(q.src[i], q.time[i]), &z(q.dst[i], q.time[i])))
        .collect();
    close(m.logits(&EventHistory::new(&s), &(), &q, None).unwrap(), &expected);
}

#[test]
fn dygformer_equals_its_reference() {
    for patch in [1, 2] {
        let (s, q) = (stream_of(random_events(7, 40, 0..30)), queries());
        let m = dygformer_model(patch);
        let expected: Row =
            (0..q.len()).map(|i| dygformer(&m, &s, [q.src[i], q.dst[i]], q.time[i])).collect();
        close(m.logits(&EventHistory::new(&s), &(), &q, None).unwrap(), &expected);
    }
}

#[test]
fn tgn_equals_its_reference() {
    for aggregation in [MessageAggregation::Last, MessageAggregation::Mean] {
        let (s, m) = (stream_of(random_events(8, 60, 0..30)), tgn_model(aggregation));
        let history = EventHistory::new(&s);
        let batches = s.batches(7).unwrap();
        let mut state = m.new_state(&history);
        for batch in &batches[..4] {
            m.advance(&history, &mut state, batch.clone()).unwrap();
        }
        let memory = memories(&m, &s, &batches[..4], aggregation == MessageAggregation::Mean);
        let q = queries();
        let z = |v: u32, t: i64| {
            let neighbors: Vec<(Row, Row, i64)> = latest(&s, v, t, m.neighbors)
                .into_iter()
                .map(|(e, u, f)| (memory[u as usize].clone(), f, t - s.time()[e]))
                .collect();
            attend(&m.attention, &m.time, &memory[v as usize], &neighbors)
        };
        let expected: Row = (0..q.len())
            .map(|i| decode(&m.decoder, &z(q.src[i], q.time[i]), &z(q.dst[i], q.time[i])))
            .collect();
        close(m.logits(&history, &state, &q, None).unwrap(), &expected);
    }
}

/// Bits of the logits and the loss of queries at time `t`, and of the state before them.
fn bits<M: EventModel>(
    m: &M,
    s: &EventStream,
    t: i64,
    state_bits: impl Fn(&M::State) -> Vec<u32>,
) -> Vec<u32> {
    let history = EventHistory::new(s);
    let mut state = m.new_state(&history);
    let earlier = s.before(t).end;
    // The complete batches before that of the first event at or after `t`.
    let batches = s.batches(5).unwrap();
    for batch in batches.iter().filter(|batch| batch.end <= earlier && batch.len() >= 5) {
        m.advance(&history, &mut state, batch.clone()).unwrap();
    }
    let q = LinkQueries {
        src: vec![0, 1, 2, 3],
        dst: vec![1, 4, 5, 7],
        time: vec![t; 4],
        scored: None,
    };
    let logits = m.logits(&history, &state, &q, None).unwrap();
    let loss = link_loss(logits.clone());
    let mut found: Vec<u32> =
        Tensor::cat(vec![logits, loss], 0).into_data().iter::<f32>().map(f32::to_bits).collect();
    found.extend(state_bits(&state));
    found
}

#[test]
fn events_at_or_after_a_query_change_no_bit() {
    let (tgn, tgat) = (tgn_model(MessageAggregation::Last), tgat_model());
    let (mixer, dygformer) = (mixer_model(), dygformer_model(2));
    for seed in 0..20 {
        let t = 15;
        let all = random_events(100 + seed, 60, 0..30);
        let earlier: Vec<_> = all.iter().copied().filter(|e| e.2 < t).collect();
        // Every later event is removed, changed, or joined by others at the time of the query.
        let changed = random_events(500 + seed, 40, t..40);
        let added = [&all[..], &random_events(900 + seed, 25, t..t + 1)].concat();
        let with = |more: &[_]| stream_of([&earlier[..], more].concat());
        let streams = [stream_of(all.clone()), with(&[]), with(&changed), stream_of(added)];
        let memory = |state: &super::memory::MemoryState| {
            (0..8).flat_map(|v| state.memory(v).to_vec()).map(f32::to_bits).collect()
        };
        let of = |s: &EventStream| {
            [
                bits(&tgn, s, t, memory),
                bits(&tgat, s, t, |_| vec![]),
                bits(&mixer, s, t, |_| vec![]),
                bits(&dygformer, s, t, |_| vec![]),
            ]
        };
        let expected = of(&streams[0]);
        for s in &streams[1..] {
            assert_eq!(of(s), expected, "seed {seed}");
        }
        // An event just before the query is read.
        let mut seen = all.clone();
        seen.push((0, 1, t - 1, [0.5, 0.5]));
        let found = of(&stream_of(seen));
        assert!((0..4).all(|i| found[i] != expected[i]), "seed {seed}");
    }
}
