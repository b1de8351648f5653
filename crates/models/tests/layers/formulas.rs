//! Formulas written out with one-hot matrices and loops, for the layers that golden vectors do not cover.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Linear;
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_models::*;
use burn_gnn_ops::{Segments, TypeIndex};

use crate::views::graph;
use crate::{close, devices, matrix, values};

/// Every parameter drawn anew, so that no bias is 0.
struct Draw(usize);

impl ModuleMapper for Draw {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let name = format!("param {}", self.0);
        param.map(|t| {
            let shape = t.dims();
            matrix(&t.device(), &name, 1, shape.iter().product()).reshape(shape)
        })
    }
}

fn drawn<M: Module>(layer: M) -> M {
    to_dtype(layer, FloatDType::F64).map(&mut Draw(0))
}

fn one_hot(device: &Device, ids: &[u32], n: usize) -> Tensor<2> {
    let v: Vec<f64> = ids.iter().flat_map(|&i| (0..n).map(move |j| f64::from(u8::from(i as usize == j)))).collect();
    Tensor::from_data(TensorData::new(v, [ids.len(), n]), (device, DType::F64))
}

/// `[edges, sources]` and `[edges, destinations]`: rows of ends are products with them, sums over in-edges with the
/// transposed second.
fn ends(device: &Device, r: &Relation) -> (Tensor<2>, Tensor<2>) {
    (one_hot(device, r.src(), r.num_src()), one_hot(device, r.dst(), r.num_dst()))
}

fn linear(l: &Linear, x: Tensor<2>) -> Tensor<2> {
    let y = x.matmul(l.weight.val());
    match &l.bias {
        Some(b) => y + b.val().unsqueeze(),
        None => y,
    }
}

/// In f64; Burn's own is computed in f32 on one backend.
fn sigmoid(x: Tensor<2>) -> Tensor<2> {
    (x.neg().exp() + 1.0).recip()
}

fn mlp(m: &Mlp, x: Tensor<2>) -> Tensor<2> {
    let y = linear(&m.layers[0], x);
    m.layers[1..].iter().fold(y, |y, l| linear(l, relu(y)))
}

/// `[edges, 1]` over the in-edges of destinations.
fn softmax_into(d: &Tensor<2>, logits: Tensor<2>) -> Tensor<2> {
    let e = logits.exp();
    e.clone() / d.clone().matmul(d.clone().transpose().matmul(e))
}

/// States of an LSTM after each row, by PyTorch's gates.
fn lstm(cell: &LstmCell, xs: &[Tensor<2>]) -> Vec<Tensor<2>> {
    let (n, d) = (xs[0].dims()[0], cell.hh.weight.val().dims()[0]);
    let (mut h, mut c) = (matrix(&xs[0].device(), "", n, d) * 0.0, matrix(&xs[0].device(), "", n, d) * 0.0);
    let mut states = vec![];
    for x in xs {
        let gates = (linear(&cell.ih, x.clone()) + linear(&cell.hh, h)).chunk(4, 1);
        c = sigmoid(gates[1].clone()) * c + sigmoid(gates[0].clone()) * gates[2].clone().tanh();
        h = sigmoid(gates[3].clone()) * c.clone().tanh();
        states.push(h.clone());
    }
    states
}

fn same<const D: usize>(what: &str, got: &Tensor<D>, want: &Tensor<D>) {
    assert_eq!(got.dims(), want.dims(), "{what}");
    close(what, &values(got), &values(want), 1e-11);
}

#[test]
fn gine_conv() {
    for device in &devices() {
        let g = graph();
        let layer = drawn(GineConvConfig::new(4, vec![4, 5, 3]).with_d_edge(Some(3)).with_learn_eps(true).init(device));
        let (x, e) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        let (s, d) = ends(device, &g.relations()[0]);
        let messages = relu(s.matmul(x.clone()) + linear(layer.lin.as_ref().unwrap(), e.clone()));
        let eps = values(&layer.eps.as_ref().unwrap().val())[0];
        let want = mlp(layer.nn.as_ref().unwrap(), x.clone() * (1.0 + eps) + d.transpose().matmul(messages));
        same("gine_conv", &layer.forward_on(&g, 0, x, e), &want);
    }
}

/// `Â` with weights, `[destinations, sources]`.
fn normalised(device: &Device, g: &Graph, w: &Tensor<2>) -> Tensor<2> {
    let r = &g.relations()[0];
    let (s, d) = ends(device, r);
    let (into, out): (Vec<_>, Vec<_>) = (r.in_degrees().collect(), r.out_degrees().collect());
    let c: Vec<f64> = (0..r.num_edges()).map(|e| (f64::from(into[r.dst()[e] as usize] * out[r.src()[e] as usize])).powf(-0.5)).collect();
    let c = Tensor::<2>::from_data(TensorData::new(c, [r.num_edges(), 1]), (device, DType::F64));
    d.transpose().matmul(s * c * w.clone())
}

#[test]
fn propagation() {
    for device in &devices() {
        let (g, x, w) = (graph(), matrix(device, "x", 6, 4), matrix(device, "w", 8, 1));
        let a = normalised(device, &g, &w);
        let appnp = AppnpConvConfig::new().with_hops(2).with_alpha(0.3).init();
        let hop = |z: Tensor<2>| a.clone().matmul(z) * 0.7 + x.clone() * 0.3;
        same("appnp_conv", &appnp.forward_on(&g, 0, x.clone(), Some(w.clone().squeeze_dim(1)), Mode::Eval), &hop(hop(x.clone())));
        for width in [3, 6] {
            let sg = drawn(SgConvConfig::new(4, width).with_hops(2).init(device));
            let want = a.clone().matmul(a.clone()).matmul(x.clone()).matmul(sg.weight.val()) + sg.bias.as_ref().unwrap().val().unsqueeze();
            same("sg_conv", &sg.forward_on(&g, 0, x.clone(), Some(w.clone().squeeze_dim(1))), &want);
        }
    }
}

#[test]
fn an_edge_dropped_from_a_hop_leaves_no_message() {
    let (device, g) = (Device::flex(), graph());
    let appnp = AppnpConvConfig::new().with_hops(1).with_alpha(0.0).with_edge_dropout(0.5).init();
    let ones = matrix(&device, "x", 6, 1) * 0.0 + 1.0;
    let mode = Mode::Train { seed: 1, step: 1 };
    let kept = values(&appnp.forward(&g, ones.clone(), mode));
    assert_ne!(kept, values(&appnp.forward(&g, ones.clone(), Mode::Train { seed: 1, step: 2 })));
    assert_eq!(kept, values(&appnp.forward(&g, ones, mode)));
}

#[test]
fn edge_conv() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let r = &g.relations()[0];
        let (s, d) = ends(device, r);
        for widths in [vec![3], vec![5], vec![5, 2]] {
            for by in [Aggregator::Max, Aggregator::Min, Aggregator::Mean, Aggregator::Sum] {
                let layer = drawn(EdgeConvConfig::new(4, widths.clone()).with_aggregator(by).init(device));
                let (u, v) = (s.clone().matmul(x.clone()), d.clone().matmul(x.clone()));
                let m = linear(&layer.theta, u - v.clone()) + linear(&layer.phi, v);
                let m = layer.nn.as_ref().map_or(m.clone(), |nn| mlp(nn, relu(m)));
                same(&format!("edge_conv {widths:?} {by:?}"), &layer.forward(&g, x.clone()), &reduced(r, &m, by));
            }
        }
    }
}

/// Rows of edges by destination, in a loop.
fn reduced(r: &Relation, m: &Tensor<2>, by: Aggregator) -> Tensor<2> {
    let (d, m_values) = (m.dims()[1], values(m));
    let mut out = vec![0.0; r.num_dst() * d];
    for v in 0..r.num_dst() {
        let edges: Vec<usize> = (0..r.num_edges()).filter(|&e| r.dst()[e] as usize == v).collect();
        for c in 0..d {
            let column = edges.iter().map(|&e| m_values[e * d + c]);
            if !edges.is_empty() {
                out[v * d + c] = match by {
                    Aggregator::Sum => column.sum(),
                    Aggregator::Mean => column.sum::<f64>() / edges.len() as f64,
                    Aggregator::Max => column.fold(f64::NEG_INFINITY, f64::max),
                    Aggregator::Min => column.fold(f64::INFINITY, f64::min),
                };
            }
        }
    }
    Tensor::from_data(TensorData::new(out, [r.num_dst(), d]), (&m.device(), DType::F64))
}

#[test]
fn pna_conv() {
    for device in &devices() {
        let g = graph();
        let r = &g.relations()[0];
        let (s, d) = ends(device, r);
        let (x, f) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        let all = [PnaAggregator::Sum, PnaAggregator::Mean, PnaAggregator::Max, PnaAggregator::Min, PnaAggregator::Var, PnaAggregator::Std];
        let degrees: Vec<f64> = r.in_degrees().map(f64::from).collect();
        for d_edge in [None, Some(3)] {
            let config = PnaConvConfig::from_graph(&g, 0, 4, 5);
            let delta = config.delta;
            assert!((delta - degrees.iter().map(|d| (d + 1.0).ln()).sum::<f64>() / 6.0).abs() < 1e-12);
            let layer = drawn(config.with_d_edge(d_edge).with_aggregators(all.to_vec()).init(device));
            let mut m = linear(&layer.pre_src, s.clone().matmul(x.clone())) + linear(&layer.pre_dst, d.clone().matmul(x.clone()));
            if let Some(pre) = &layer.pre_edge {
                m = m + linear(pre, f.clone());
            }
            let mut parts = vec![x.clone()];
            for a in all {
                let var = || reduced(r, &(m.clone() * m.clone()), Aggregator::Mean) - reduced(r, &m, Aggregator::Mean).powi_scalar(2);
                let y = match a {
                    PnaAggregator::Sum => reduced(r, &m, Aggregator::Sum),
                    PnaAggregator::Mean => reduced(r, &m, Aggregator::Mean),
                    PnaAggregator::Max => reduced(r, &m, Aggregator::Max),
                    PnaAggregator::Min => reduced(r, &m, Aggregator::Min),
                    PnaAggregator::Var => relu(var()),
                    PnaAggregator::Std => (relu(var()) + 1e-5).sqrt(),
                };
                let scaled = |of: &dyn Fn(f64) -> f64| {
                    let v: Vec<f64> = degrees.iter().map(|&d| if d == 0.0 { 0.0 } else { of((d + 1.0).ln()) }).collect();
                    y.clone() * Tensor::<2>::from_data(TensorData::new(v, [6, 1]), (device, DType::F64))
                };
                parts.extend([scaled(&|_| 1.0), scaled(&|l| l / delta), scaled(&|l| delta / l)]);
            }
            let want = linear(&layer.post, Tensor::cat(parts, 1));
            // The root of a variance that is 0 up to rounding is known to the root of that rounding only.
            let got = layer.forward_on(&g, 0, x.clone(), d_edge.map(|_| f.clone()));
            close("pna_conv", &values(&got), &values(&want), 1e-9);
        }
    }
}

#[test]
fn transformer_conv() {
    for device in &devices() {
        let g = graph();
        let (s, d) = ends(device, &g.relations()[0]);
        let (x, f) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        for (concat, beta, d_edge) in [(true, true, None), (false, false, None), (true, false, Some(3)), (false, true, Some(3))] {
            let config = TransformerConvConfig::new(4, 3, 2).with_concat(concat).with_beta(beta).with_d_edge(d_edge);
            let layer = drawn(config.init(device));
            let edge = layer.lin_edge.as_ref().map(|l| linear(l, f.clone()));
            let at_edges = |l: &Linear, ends: &Tensor<2>| ends.clone().matmul(linear(l, x.clone()));
            let plus = |y: Tensor<2>| edge.clone().map_or(y.clone(), |e| y + e);
            let (k, v, q) = (plus(at_edges(&layer.lin_key, &s)), plus(at_edges(&layer.lin_value, &s)), at_edges(&layer.lin_query, &d));
            let head = |h: usize| {
                let of = |t: &Tensor<2>| t.clone().slice_dim(1, 3 * h..3 * h + 3);
                let shares = softmax_into(&d, (of(&k) * of(&q)).sum_dim(1) / 3f64.sqrt());
                d.clone().transpose().matmul(of(&v) * shares)
            };
            let h = if concat { Tensor::cat(vec![head(0), head(1)], 1) } else { (head(0) + head(1)) / 2.0 };
            let r = linear(layer.lin_skip.as_ref().unwrap(), x.clone());
            let want = match &layer.lin_beta {
                Some(gate) => {
                    let b = sigmoid(linear(gate, Tensor::cat(vec![h.clone(), r.clone(), h.clone() - r.clone()], 1)));
                    b.clone() * r + (b.neg() + 1.0) * h
                }
                None => h + r,
            };
            let got = layer.forward_on(&g, 0, x.clone(), d_edge.map(|_| f.clone()), Mode::Eval);
            same(&format!("transformer_conv concat {concat}, beta {beta}, edges {d_edge:?}"), &got, &want);
        }
    }
}

/// Two edge types on one node type and one from another.
fn two_types() -> Graph {
    Graph::builder()
        .nodes("a", 4)
        .nodes("b", 3)
        .edges(("a", "r", "a"), vec![0, 1, 3, 3], vec![1, 1, 0, 1])
        .edges(("a", "s", "a"), vec![2, 0], vec![1, 3])
        .edges(("b", "t", "a"), vec![0, 2, 2], vec![1, 0, 0])
        .build()
        .unwrap()
}

#[test]
fn han_conv() {
    for device in &devices() {
        let g = two_types();
        let layer = drawn(HanConvConfig::new(vec![3, 5], 2, 2).init(g.schema(), device));
        let x = [matrix(device, "a", 4, 3), matrix(device, "b", 3, 5)];
        let z: Vec<_> = x.iter().zip(&layer.proj).map(|(x, l)| linear(l, x.clone())).collect();
        let by_relation: Vec<Tensor<2>> = (0..3)
            .map(|r| {
                let ((s, d), (t, _)) = (ends(device, &g.relations()[r]), g.schema().ends(r));
                let (u, v) = (s.matmul(z[t].clone()), d.clone().matmul(z[0].clone()));
                let head = |h: usize| {
                    let of = |y: &Tensor<2>| y.clone().slice_dim(1, 2 * h..2 * h + 2);
                    let a = |p: &Param<Tensor<3>>| p.val().slice_dim(1, h..h + 1).reshape([2, 1]);
                    let score = of(&u).matmul(a(&layer.lin_src[r])) + of(&v).matmul(a(&layer.lin_dst[r]));
                    let shares = softmax_into(&d, burn::tensor::activation::leaky_relu(score, 0.2));
                    d.clone().transpose().matmul(of(&u) * shares)
                };
                relu(Tensor::cat(vec![head(0), head(1)], 1))
            })
            .collect();
        let score = |h: &Tensor<2>| linear(&layer.q, linear(&layer.k_lin, h.clone()).tanh()).mean();
        let shares = values(&softmax(Tensor::cat(by_relation.iter().map(score).collect(), 0), 0));
        let want = by_relation.iter().zip(shares).map(|(h, s)| h.clone() * s).reduce(|a, b| a + b).unwrap();
        let got = layer.forward(&g, x.to_vec(), Mode::Eval);
        same("han_conv", got[0].as_ref().unwrap(), &want);
        assert!(got[1].is_none());
    }
}

#[test]
fn gated_graph_conv() {
    for device in &devices() {
        let g = Graph::builder()
            .nodes("a", 4)
            .edges(("a", "r", "a"), vec![0, 1, 3, 3], vec![1, 1, 0, 1])
            .edges(("a", "s", "a"), vec![2, 0], vec![1, 3])
            .build()
            .unwrap();
        let layer = drawn(GatedGraphConvConfig::from_graph(&g, 3, 2).init(device));
        let x = matrix(device, "x", 4, 2);
        let mut h = Tensor::cat(vec![x.clone(), matrix(device, "", 4, 1) * 0.0], 1);
        for _ in 0..2 {
            let a = (0..2)
                .map(|r| {
                    let (s, d) = ends(device, &g.relations()[r]);
                    d.transpose().matmul(linear(&layer.linears[r], s.matmul(h.clone())))
                })
                .reduce(|a, b| a + b)
                .unwrap();
            let (i, k) = (linear(&layer.ih, a).chunk(3, 1), linear(&layer.hh, h.clone()).chunk(3, 1));
            let r = sigmoid(i[0].clone() + k[0].clone());
            let z = sigmoid(i[1].clone() + k[1].clone());
            let n = (i[2].clone() + r * k[2].clone()).tanh();
            h = n.clone() + z * (h - n);
        }
        same("gated_graph_conv", &layer.forward(&g, x), &h);
    }
}

#[test]
fn lstm_over_neighbours_and_layers() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let layer = drawn(SageConvConfig::new(4, 3).with_aggregator(SageAggregator::Lstm).init(device));
        let r = &g.relations()[0];
        let row = |v: u32| x.clone().slice_dim(0, v as usize..v as usize + 1);
        let last = |v: usize| {
            let xs: Vec<_> = (0..r.num_edges()).filter(|&e| r.dst()[e] as usize == v).map(|e| row(r.src()[e])).collect();
            if xs.is_empty() { row(0) * 0.0 } else { lstm(layer.lstm.as_ref().unwrap(), &xs).pop().unwrap() }
        };
        let h = Tensor::cat((0..6).map(last).collect(), 0);
        let want = linear(&layer.fc_neigh, h) + linear(layer.fc_self.as_ref().unwrap(), x.clone());
        same("sage_conv lstm", &layer.forward(&g, x), &want);

        let xs: Vec<_> = (0..3).map(|l| matrix(device, &format!("layer {l}"), 5, 2)).collect();
        let jk = drawn(JumpingKnowledgeConfig::new(Jumping::Lstm).with_layers(3).with_d(2).init(device));
        let there = lstm(jk.lstm.as_ref().unwrap(), &xs);
        let mut back = lstm(jk.lstm_reverse.as_ref().unwrap(), &xs.iter().rev().cloned().collect::<Vec<_>>());
        back.reverse();
        let score = |(a, b): (&Tensor<2>, &Tensor<2>)| linear(jk.att.as_ref().unwrap(), Tensor::cat(vec![a.clone(), b.clone()], 1));
        let shares = softmax(Tensor::cat(there.iter().zip(&back).map(score).collect(), 1), 1).chunk(3, 1);
        let want = xs.iter().zip(shares).map(|(x, s)| x.clone() * s).reduce(|a, b| a + b).unwrap();
        same("jumping_knowledge lstm", &jk.forward(xs.clone()), &want);
        let join = |mode| JumpingKnowledgeConfig::new(mode).init(device).forward(xs.clone());
        same("jumping_knowledge cat", &join(Jumping::Cat), &Tensor::cat(xs.clone(), 1));
        same("jumping_knowledge max", &join(Jumping::Max), &xs[0].clone().max_pair(xs[1].clone()).max_pair(xs[2].clone()));
    }
}

#[test]
fn attention_readout() {
    for device in &devices() {
        let x = matrix(device, "x", 5, 3);
        let readout = drawn(AttentionReadoutConfig::new(3).with_d_output(Some(2)).init(device));
        let (scores, rows) = (linear(&readout.gate_nn, x.clone()), linear(readout.feat_nn.as_ref().unwrap(), x.clone()));
        let of = |a: usize, b: usize| (softmax(scores.clone().slice_dim(0, a..b), 0) * rows.clone().slice_dim(0, a..b)).sum_dim(0);
        let want = Tensor::cat(vec![of(0, 2), of(0, 1) * 0.0, of(2, 5)], 0);
        same("attention_readout", &readout.forward(x, &Segments::from_lengths(&[2, 0, 3])), &want);
    }
}

#[test]
fn link_scorers() {
    for device in &devices() {
        let (h, t) = (matrix(device, "h", 3, 4), matrix(device, "t", 3, 4));
        let ids = Tensor::<1, Int>::from_data(TensorData::new(vec![1i64, 0, 1], [3]), device);
        for score in [LinkScore::DistMult, LinkScore::ComplEx, LinkScore::TransEL1, LinkScore::TransEL2] {
            let scorer = drawn(LinkScorerConfig::new(score, 2, 4).init(device));
            let (hv, tv, rv) = (values(&h), values(&t), values(&scorer.relations.val()));
            let of = |i: usize, j: usize| {
                let r = if i == 1 { 0 } else { 1 };
                let (h, t, r) = (&hv[4 * i..4 * i + 4], &tv[4 * j..4 * j + 4], &rv[4 * r..4 * r + 4]);
                match score {
                    LinkScore::DistMult => (0..4).map(|k| h[k] * r[k] * t[k]).sum(),
                    // Re((a + bi)(c + di)(e - fi)), columns k and k + 2
                    LinkScore::ComplEx => (0..2)
                        .map(|k| {
                            let (a, b, c, d) = (h[k], h[k + 2], r[k], r[k + 2]);
                            (a * c - b * d) * t[k] + (a * d + b * c) * t[k + 2]
                        })
                        .sum::<f64>(),
                    LinkScore::TransEL1 => -(0..4).map(|k| (h[k] + r[k] - t[k]).abs()).sum::<f64>(),
                    LinkScore::TransEL2 => -((0..4).map(|k| (h[k] + r[k] - t[k]).powi(2)).sum::<f64>() + 1e-12).sqrt(),
                }
            };
            let want: Vec<f64> = (0..3).map(|i| of(i, i)).collect();
            close(&format!("{score:?}"), &values(&scorer.forward(h.clone(), ids.clone(), t.clone())), &want, 1e-12);
            let want: Vec<f64> = (0..9).map(|k| of(k / 3, k % 3)).collect();
            close(&format!("{score:?} against all"), &values(&scorer.against_all(h.clone(), ids.clone(), t.clone())), &want, 1e-11);
        }
    }
}

#[test]
fn typed_linear() {
    for device in &devices() {
        let (x, types) = (matrix(device, "x", 5, 4), [2u8, 0, 2, 1, 0]);
        for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
            let layer = drawn(TypedLinearConfig::new(4, 6, 3).with_weights(weights).init(device));
            let w = values(&layer.weight.val());
            let entry = |t: usize, i: usize, o: usize| match weights {
                RelWeights::Full => w[(t * 4 + i) * 6 + o],
                RelWeights::Basis(b) => {
                    let c = values(&layer.coeff.as_ref().unwrap().val());
                    (0..b).map(|k| c[t * b + k] * w[(k * 4 + i) * 6 + o]).sum()
                }
                RelWeights::BlockDiagonal(b) if i / (4 / b) == o / (6 / b) => w[((t * b + i / 2) * 2 + i % 2) * 3 + o % 3],
                RelWeights::BlockDiagonal(_) => 0.0,
            };
            let xv = values(&x);
            let dot = |i: usize, o: usize| (0..4).map(|k| xv[i * 4 + k] * entry(types[i] as usize, k, o)).sum();
            let want: Vec<f64> = (0..30).map(|k| dot(k / 6, k % 6)).collect();
            close(&format!("{weights:?}"), &values(&layer.forward(x.clone(), &TypeIndex::new(&types, 3))), &want, 1e-12);
        }
    }
}

#[test]
fn edge_weight_norm_refuses_what_it_cannot_divide() {
    let (device, g) = (Device::flex(), graph());
    let norm = EdgeWeightNorm::new();
    let refuse = |w: Vec<f32>| norm.forward(&g, 0, Tensor::from_data(w.as_slice(), &device)).unwrap_err().to_string();
    assert_eq!(refuse(vec![1.0; 7]), "`weight`: expected 8 (one per edge of the relation), got 7");
    assert_eq!(refuse(vec![1.0, 1.0, -2.0, 1.0, 1.0, 1.0, 1.0, 1.0]), "`weight of edge 2` must lie in numbers above 0, got -2");
    // Ones: the normalisation by degree.
    let ones = Tensor::<1>::ones([8], (&device, DType::F64));
    let conv = drawn(GraphConvConfig::new(3, 2).with_norm(DegreeNorm::None).init(&device));
    let both = drawn(GraphConvConfig::new(3, 2).init(&device));
    let x = matrix(&device, "x", 6, 3);
    let w = norm.forward(&g, 0, ones).unwrap();
    close("ones", &values(&conv.forward_on(&g, 0, x.clone(), Some(w))), &values(&both.forward(&g, x)), 1e-12);
    // A block does not hold all edges out of its sources.
    let block = crate::views::View::block(&g, &[2]);
    let refused = norm.forward(&block, 0, Tensor::ones([1], &device)).unwrap_err().to_string();
    assert!(refused.starts_with("`norm` must lie in Right or None on a part of a graph"), "{refused}");
    assert!(norm.with_norm(DegreeNorm::Right).forward(&block, 0, Tensor::ones([1], &device)).is_ok());
}

#[test]
fn refusals_of_layers() {
    let d = &Device::flex();
    let text = |e: ModelError| e.to_string();
    assert_eq!(text(GatConvConfig::new(3, 2, 0).try_init(d).unwrap_err()), "`heads` must lie in 1.., got 0");
    assert!(text(GatConvConfig::new(3, 2, 1).with_attn_dropout(1.0).try_init(d).unwrap_err()).contains("0.0..1.0, got 1"));
    assert!(text(GatConvConfig::new(3, 2, 1).with_slope(f64::NAN).try_init(d).unwrap_err()).contains("`slope`"));
    let shared = Gatv2ConvConfig::new(3, 2, 1).with_share_weights(true).with_d_dst(Some(4)).try_init(d);
    assert_eq!(text(shared.unwrap_err()), "`d_dst`: expected 3 (the weight of sources serves destinations too), got 4");
    assert!(text(GinConvConfig::new(vec![3]).try_init(d).unwrap_err()).contains("`number of widths`"));
    assert!(text(GineConvConfig::new(3, vec![4, 2]).try_init(d).unwrap_err()).starts_with("`widths[0]`: expected 3"));
    assert!(text(EdgeConvConfig::new(3, vec![]).try_init(d).unwrap_err()).contains("got 0"));
    assert!(text(PnaConvConfig::new(3, 2, 0.0).try_init(d).unwrap_err()).contains("`delta`"));
    assert!(text(AppnpConvConfig::new().with_alpha(1.5).try_init().unwrap_err()).contains("0.0..=1.0, got 1.5"));
    assert!(text(TransformerConvConfig::new(3, 2, 1).with_root_weight(false).with_beta(true).try_init(d).unwrap_err()).contains("`beta`"));
    assert!(text(HgtConvConfig::new(3, 2, 1, 1, 2).with_relations(Some(vec![0])).try_init(d).unwrap_err()).contains("one per edge type"));
    assert!(text(HanConvConfig::new(vec![3], 2, 1).try_init(two_types().schema(), d).unwrap_err()).contains("one per node type"));
    assert!(text(LinkScorerConfig::new(LinkScore::ComplEx, 2, 3).try_init(d).unwrap_err()).contains("must divide d = 3"));
    assert!(text(JumpingKnowledgeConfig::new(Jumping::Lstm).with_layers(1).try_init(d).unwrap_err()).contains("layers · d / 2"));
    assert!(text(GatedGraphConvConfig::new(0, 1).try_init(d).unwrap_err()).contains("`hidden`"));
    assert!(
        text(HgtConfig::new(2).with_hidden(6).init(&two_types(), &[TypeInput::Embedding; 2], d).unwrap_err())
            .contains("must divide hidden")
    );
}

#[test]
fn models_learn_two_cliques() {
    let pairs = (0..10u32).flat_map(|u| (0..10u32).map(move |v| (u, v))).filter(|(u, v)| u / 5 == v / 5 || u + v == 9);
    let (src, dst) = pairs.unzip();
    let g = Graph::homogeneous(10, src, dst).unwrap();
    let labels: Vec<i64> = (0..10).map(|i| i / 5).collect();
    fn learns<M: NodeClassifier + burn::module::ModuleDisplay>(name: &str, model: M, g: &Graph, labels: &[i64], x: Option<Tensor<2>>) {
        let rows = |ids: &[u32]| Rows::new(ids, labels, 2).unwrap();
        let (train_rows, val) = (rows(&[0, 9]), rows(&[1, 2, 7, 8]));
        let task = NodeTask { graph: g, features: vec![x], target: 0, train: train_rows, val };
        let config = TrainConfig::new().with_epochs(60).with_lr(0.02).with_seed(1).with_progress(false);
        let trained = train(model, &task, &config, &Alone, |_| {}).unwrap();
        let all = rows(&(0..10).collect::<Vec<_>>());
        assert!(evaluate(&trained.model, &task, &all, &Alone).accuracy() >= 0.9, "{name}");
    }
    for device in &devices() {
        let d = &device.clone().autodiff();
        let x = Some(Tensor::<2>::eye(10, device));
        learns("sage", SageConfig::new(10, 2).with_hidden(16).init(d), &g, &labels, x.clone());
        learns("gat", GatConfig::new(10, 2).with_dropout(0.2).with_attn_dropout(0.2).init(d), &g, &labels, x.clone());
        learns("gin", GinConfig::new(10, 2).with_hidden(8).with_layers(2).with_dropout(0.0).init(d), &g, &labels, x.clone());
        let hgt = HgtConfig::new(2).with_hidden(8).with_heads(2).init(&g, &[TypeInput::Features(10)], d).unwrap();
        learns("hgt", hgt, &g, &labels, x);
    }
}

#[test]
fn logits_of_graphs_do_not_depend_on_the_batch() {
    for device in &devices() {
        let (one, x) = (graph(), matrix(device, "x", 6, 3));
        let r = &one.relations()[0];
        let twice = |ids: &[u32]| ids.iter().copied().chain(ids.iter().map(|v| v + 6)).collect::<Vec<_>>();
        let both = Graph::homogeneous(12, twice(r.src()), twice(r.dst())).unwrap();
        let gin = drawn(GinConfig::new(3, 2).with_hidden(4).with_layers(2).init(device));
        let a = gin.forward_graphs(&one, x.clone(), &Segments::from_lengths(&[6]));
        let b = gin.forward_graphs(&both, Tensor::cat(vec![x.clone(), x], 0), &Segments::from_lengths(&[6, 0, 6]));
        close("first", &values(&b.clone().slice_dim(0, 0..1)), &values(&a), 1e-12);
        close("last", &values(&b.slice_dim(0, 2..3)), &values(&a), 1e-12);
    }
}
