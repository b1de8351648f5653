//! Layers that make a message of both ends of an edge.

use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_models::*;

use super::{drawn, ends, linear, mlp, same, sigmoid, softmax_into};
use crate::views::graph;
use crate::{close, devices, matrix, values};

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
