//! Formulas of layers whose messages depend on both endpoints of an edge.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::activation::{leaky_relu, relu};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_models::*;
use burn_gnn_ops::{Activation, GraphView};

use super::{drawn, endpoints, linear, mlp, same, sigmoid, softmax_into};
use crate::fixtures::views::{View, graph};
use crate::{assert_close, devices, matrix, values};

#[test]
fn gine_conv() {
    for device in &devices() {
        let g = graph();
        let layer = drawn(
            GineConvConfig::new(4, vec![4, 5, 3])
                .with_d_edge(Some(3))
                .with_learn_eps(true)
                .init(device),
        );
        let (x, e) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        let (s, d) = endpoints(device, &g.relations()[0]);
        let messages = relu(s.matmul(x.clone()) + linear(layer.lin.as_ref().unwrap(), e.clone()));
        let eps = values(&layer.eps.as_ref().unwrap().val())[0];
        let want = mlp(
            layer.nn.as_ref().unwrap(),
            x.clone() * (1.0 + eps) + d.transpose().matmul(messages),
        );
        same("gine_conv", &layer.forward(g.edge_type("_E").unwrap().with_features(e), x), &want);
    }
}

#[test]
fn gin_conv_with_edge_weights() {
    for device in &devices() {
        let (g, x, w) = (graph(), matrix(device, "x", 6, 4), matrix(device, "w", 8, 1));
        let r = &g.relations()[0];
        let messages = endpoints(device, r).0.matmul(x.clone()) * w.clone();
        for by in [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min] {
            let layer = drawn(
                GinConvConfig::new(vec![4, 3]).with_aggregator(by).with_init_eps(0.5).init(device),
            );
            let want = mlp(layer.nn.as_ref().unwrap(), x.clone() * 1.5 + reduced(r, &messages, by));
            same(
                &format!("gin_conv {by:?}"),
                &layer.forward(
                    g.edge_type("_E").unwrap().with_weight(w.clone().squeeze_dim::<1>(1)),
                    x.clone(),
                ),
                &want,
            );
        }
    }
}

#[test]
fn attention_with_edge_features() {
    for device in &devices() {
        let g = graph();
        let (s, d) = endpoints(device, &g.relations()[0]);
        let (x, f, w) =
            (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3), matrix(device, "w", 8, 1));
        let of = |t: &Tensor<2>, h: usize| t.clone().slice_dim(1, 3 * h..3 * h + 3);
        let vector =
            |p: &Param<Tensor<3>>, h: usize| p.val().slice_dim(1, h..h + 1).reshape([3, 1]);
        let into = |m: Tensor<2>| d.clone().transpose().matmul(m);

        let gat = drawn(GatConvConfig::new(4, 3, 2).with_d_edge(Some(3)).init(device));
        let z = linear(&gat.fc, x.clone());
        let (u, v, e) = (
            s.clone().matmul(z.clone()),
            d.clone().matmul(z),
            linear(gat.lin_edge.as_ref().unwrap(), f.clone()),
        );
        let shares = |h: usize| {
            let endpoints =
                of(&u, h).matmul(vector(&gat.attn_l, h)) + of(&v, h).matmul(vector(&gat.attn_r, h));
            let edge = of(&e, h).matmul(vector(gat.attn_edge.as_ref().unwrap(), h));
            softmax_into(&d, leaky_relu(endpoints + edge, 0.2))
        };
        let bias = gat.bias.as_ref().unwrap().val().unsqueeze::<2>();
        let want = |w: &Tensor<2>| {
            let head = |h: usize| into(of(&u, h) * shares(h) * w.clone());
            Tensor::cat(vec![head(0), head(1)], 1) + bias.clone()
        };
        let ones = w.clone() * 0.0 + 1.0;
        let edges = g.edge_type("_E").unwrap().with_features(f.clone());
        same("gat_conv", &gat.forward(&edges, x.clone()), &want(&ones));
        let weight: Tensor<1> = w.clone().squeeze_dim(1);
        same(
            "gat_conv weighted",
            &gat.forward(edges.clone().with_weight(weight), x.clone()),
            &want(&w),
        );
        let (y, attention) = gat.forward_with_attention(&edges, x.clone());
        same("gat_conv with attention", &y, &want(&ones));
        same("attention of gat_conv", &attention, &Tensor::cat(vec![shares(0), shares(1)], 1));

        let gatv2 = drawn(Gatv2ConvConfig::new(4, 3, 2).with_d_edge(Some(3)).init(device));
        let u = s.clone().matmul(linear(&gatv2.fc_src, x.clone()));
        let v = d.clone().matmul(linear(gatv2.fc_dst.as_ref().unwrap(), x.clone()));
        let both =
            leaky_relu(u.clone() + v + linear(gatv2.lin_edge.as_ref().unwrap(), f.clone()), 0.2);
        let shares = |h: usize| softmax_into(&d, of(&both, h).matmul(vector(&gatv2.attn, h)));
        let want = Tensor::cat(vec![into(of(&u, 0) * shares(0)), into(of(&u, 1) * shares(1))], 1);
        same("gatv2_conv", &gatv2.forward(&edges, x.clone()), &want);
        let (y, attention) = gatv2.forward_with_attention(&edges, x);
        same("gatv2_conv with attention", &y, &want);
        same("attention of gatv2_conv", &attention, &Tensor::cat(vec![shares(0), shares(1)], 1));
    }
}

#[test]
fn sage_conv_with_rows_of_length_1() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let mean = reduced(
            &g.relations()[0],
            &endpoints(device, &g.relations()[0]).0.matmul(x.clone()),
            Reduce::Mean,
        );
        for width in [3, 5] {
            let layer = drawn(SageConvConfig::new(4, width).with_normalize(true).init(device));
            let y = linear(layer.fc_self.as_ref().unwrap(), x.clone())
                + linear(&layer.fc_neigh, mean.clone());
            let unit = |row: &[f64]| {
                let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
                row.iter().map(|v| v / length).collect::<Vec<_>>()
            };
            let want: Vec<f64> = values(&y).chunks_exact(width).flat_map(unit).collect();
            assert_close("sage_conv", &values(&layer.forward(&g, x.clone())), &want, 1e-12);
            let relu = layer.forward(g.edge_type("_E").unwrap().then(Activation::Relu), x.clone());
            assert_close(
                "sage_conv, relu",
                &values(&relu),
                &want.iter().map(|v| v.max(0.0)).collect::<Vec<_>>(),
                1e-12,
            );
        }
        // Node 5 has no edges: without features its row is 0, and stays so.
        let tracked = &device.clone().autodiff();
        let layer = to_dtype(
            SageConvConfig::new(4, 3).with_normalize(true).with_bias(false).init(tracked),
            FloatDType::F64,
        );
        let mut rows = values(&x);
        rows[20..].fill(0.0);
        let x = Tensor::<2>::from_data(TensorData::new(rows, [6, 4]), (tracked, DType::F64))
            .require_grad();
        let y = layer.forward(&g, x.clone());
        assert_eq!(values(&y)[15..], [0.0; 3]);
        let grads = y.sum().backward();
        assert!(values(&x.grad(&grads).unwrap()).iter().all(|v| v.is_finite()));
        assert!(
            values(&layer.fc_neigh.weight.val().grad(&grads).unwrap())
                .iter()
                .all(|v| v.is_finite())
        );
    }
}

#[test]
fn edge_conv() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let r = &g.relations()[0];
        let (s, d) = endpoints(device, r);
        for widths in [vec![3], vec![5], vec![5, 2]] {
            for by in [Reduce::Max, Reduce::Min, Reduce::Mean, Reduce::Sum] {
                let layer =
                    drawn(EdgeConvConfig::new(4, widths.clone()).with_aggregator(by).init(device));
                let (u, v) = (s.clone().matmul(x.clone()), d.clone().matmul(x.clone()));
                let m = linear(&layer.theta, u - v.clone()) + linear(&layer.phi, v);
                let m = layer.nn.as_ref().map_or(m.clone(), |nn| mlp(nn, relu(m)));
                same(
                    &format!("edge_conv {widths:?} {by:?}"),
                    &layer.forward(&g, x.clone()),
                    &reduced(r, &m, by),
                );
            }
        }
    }
}

/// Rows of edges by destination, in a loop.
fn reduced(r: &Relation, m: &Tensor<2>, by: Reduce) -> Tensor<2> {
    let (d, m_values) = (m.dims()[1], values(m));
    let mut out = vec![0.0; r.num_dst() * d];
    for v in 0..r.num_dst() {
        let edges: Vec<usize> = (0..r.num_edges()).filter(|&e| r.dst()[e] as usize == v).collect();
        for c in 0..d {
            let column = edges.iter().map(|&e| m_values[e * d + c]);
            if !edges.is_empty() {
                out[v * d + c] = match by {
                    Reduce::Sum => column.sum(),
                    Reduce::Mean => column.sum::<f64>() / edges.len() as f64,
                    Reduce::Max => column.fold(f64::NEG_INFINITY, f64::max),
                    Reduce::Min => column.fold(f64::INFINITY, f64::min),
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
        let (s, d) = endpoints(device, r);
        let (x, f) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        let all = [
            PnaAggregator::Sum,
            PnaAggregator::Mean,
            PnaAggregator::Max,
            PnaAggregator::Min,
            PnaAggregator::Var,
            PnaAggregator::Std,
        ];
        let degrees: Vec<f64> = r.in_degrees().map(f64::from).collect();
        let config = PnaConvConfig::from_edges(&g, 4, 6);
        let delta = config.delta;
        assert!((delta - degrees.iter().map(|d| (d + 1.0).ln()).sum::<f64>() / 6.0).abs() < 1e-12);
        let configs = [
            config.clone(),
            config.clone().with_towers(3).with_mixing(true),
            config.clone().with_towers(2).with_divide_input(true).with_post_layers(2),
            config.with_towers(2).with_divide_input(true).with_pre_layers(3).with_mixing(true),
        ];
        for (config, d_edge) in
            configs.iter().flat_map(|config| [(config, None), (config, Some(3))])
        {
            let layer = drawn(
                config.clone().with_d_edge(d_edge).with_aggregators(all.to_vec()).init(device),
            );
            let tower = |(i, tower): (usize, &PnaTower)| {
                let d_in = if config.divide_input { 4 / config.towers } else { 4 };
                let x = if config.divide_input {
                    x.clone().slice_dim(1, i * d_in..(i + 1) * d_in)
                } else {
                    x.clone()
                };
                let mut m = linear(&tower.pre_src, s.clone().matmul(x.clone()))
                    + linear(&tower.pre_dst, d.clone().matmul(x.clone()));
                if let Some(pre) = &tower.pre_edge {
                    let f = layer
                        .edge_encoder
                        .as_ref()
                        .map_or(f.clone(), |encoder| linear(encoder, f.clone()));
                    m = m + linear(pre, f);
                }
                assert_eq!(
                    (tower.pre_more.len(), tower.post_more.len()),
                    (config.pre_layers - 1, config.post_layers - 1)
                );
                for layer in &tower.pre_more {
                    m = linear(layer, relu(m));
                }
                let reduce = |a: PnaAggregator| {
                    let var = || {
                        reduced(r, &(m.clone() * m.clone()), Reduce::Mean)
                            - reduced(r, &m, Reduce::Mean).powi_scalar(2)
                    };
                    match a {
                        PnaAggregator::Sum => reduced(r, &m, Reduce::Sum),
                        PnaAggregator::Mean => reduced(r, &m, Reduce::Mean),
                        PnaAggregator::Max => reduced(r, &m, Reduce::Max),
                        PnaAggregator::Min => reduced(r, &m, Reduce::Min),
                        PnaAggregator::Var => relu(var()),
                        PnaAggregator::Std if config.mixing => {
                            let mask = values(&var())
                                .into_iter()
                                .map(|v| f64::from(u8::from(v > 1e-5)))
                                .collect::<Vec<_>>();
                            let [rows, columns] = var().dims();
                            var().abs().sqrt()
                                * Tensor::from_data(
                                    TensorData::new(mask, [rows, columns]),
                                    (device, DType::F64),
                                )
                        }
                        PnaAggregator::Std => (relu(var()) + 1e-5).sqrt(),
                    }
                };
                // All aggregators under the first scaler, then under the next.
                let mut parts = vec![x.clone()];
                let scalers: [&dyn Fn(f64) -> f64; 3] = [&|_| 1.0, &|l| l / delta, &|l| delta / l];
                for of in scalers {
                    let v: Vec<f64> = degrees
                        .iter()
                        .map(|&d| if d == 0.0 { 0.0 } else { of((d + 1.0).ln()) })
                        .collect();
                    let scale =
                        Tensor::<2>::from_data(TensorData::new(v, [6, 1]), (device, DType::F64));
                    parts.extend(all.map(|a| reduce(a) * scale.clone()));
                }
                tower
                    .post_more
                    .iter()
                    .fold(linear(&tower.post, Tensor::cat(parts, 1)), |y, layer| {
                        linear(layer, relu(y))
                    })
            };
            let towers: Vec<_> = layer.towers.iter().enumerate().map(tower).collect();
            assert_eq!(towers.len(), config.towers);
            let y = Tensor::cat(towers, 1);
            let want = layer.lin.as_ref().map_or(y.clone(), |lin| linear(lin, y));
            // The root of a variance that is 0 up to rounding is known to the root of that rounding only.
            let got = layer.forward(
                g.edge_type("_E").unwrap().with_features(d_edge.map(|_| f.clone())),
                x.clone(),
            );
            assert_close(&format!("pna_conv {config}"), &values(&got), &values(&want), 1e-9);
        }
    }
}

/// As a rank without nodes, whose backward pass other ranks wait for.
#[test]
fn towers_of_no_rows_keep_their_gradients() {
    let device = &Device::flex().autodiff();
    let view = View::block(&graph(), &[]);
    let config = PnaConvConfig::new(4, 6, 0.9).with_towers(2);
    for config in [config.clone(), config.with_divide_input(true).with_mixing(true)] {
        let layer = to_dtype(config.init(device), FloatDType::F64);
        let x = Tensor::<2>::zeros([0, 4], (device, DType::F64)).require_grad();
        let y = layer.forward(&view, x.clone());
        assert_eq!(y.dims(), [0, 6]);
        let grads = y.sum().backward();
        assert!(x.grad(&grads).is_some());
    }
}

#[test]
fn transformer_conv() {
    for device in &devices() {
        let g = graph();
        let (s, d) = endpoints(device, &g.relations()[0]);
        let (x, f) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        for (concat, beta, d_edge) in [
            (true, true, None),
            (false, false, None),
            (true, false, Some(3)),
            (false, true, Some(3)),
        ] {
            let config = TransformerConvConfig::new(4, 3, 2)
                .with_concat(concat)
                .with_beta(beta)
                .with_d_edge(d_edge);
            let layer = drawn(config.init(device));
            let edge = layer.lin_edge.as_ref().map(|l| linear(l, f.clone()));
            let at_edges =
                |l: &Linear, endpoints: &Tensor<2>| endpoints.clone().matmul(linear(l, x.clone()));
            let plus = |y: Tensor<2>| edge.clone().map_or(y.clone(), |e| y + e);
            let (k, v, q) = (
                plus(at_edges(&layer.lin_key, &s)),
                plus(at_edges(&layer.lin_value, &s)),
                at_edges(&layer.lin_query, &d),
            );
            let head = |h: usize| {
                let of = |t: &Tensor<2>| t.clone().slice_dim(1, 3 * h..3 * h + 3);
                let shares = softmax_into(&d, (of(&k) * of(&q)).sum_dim(1) / 3f64.sqrt());
                d.clone().transpose().matmul(of(&v) * shares)
            };
            let h = if concat {
                Tensor::cat(vec![head(0), head(1)], 1)
            } else {
                (head(0) + head(1)) / 2.0
            };
            let r = linear(layer.lin_skip.as_ref().unwrap(), x.clone());
            let want = match &layer.lin_beta {
                Some(gate) => {
                    let b = sigmoid(linear(
                        gate,
                        Tensor::cat(vec![h.clone(), r.clone(), h.clone() - r.clone()], 1),
                    ));
                    b.clone() * r + (b.neg() + 1.0) * h
                }
                None => h + r,
            };
            let got = layer.forward(
                g.edge_type("_E").unwrap().with_features(d_edge.map(|_| f.clone())),
                x.clone(),
            );
            same(
                &format!("transformer_conv concat {concat}, beta {beta}, edges {d_edge:?}"),
                &got,
                &want,
            );
        }
    }
}

#[test]
fn res_gated_graph_conv() {
    for device in &devices() {
        let g = graph();
        let (s, d) = endpoints(device, &g.relations()[0]);
        let (x, f) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
        for (root, d_edge) in [(true, None), (false, None), (true, Some(3))] {
            let config = ResGatedGraphConvConfig::new(4, 3).with_root_weight(root);
            let layer = drawn(config.with_d_edge(d_edge).init(device));
            let at_edges = |l: &Linear, endpoints: &Tensor<2>| {
                let of_nodes = endpoints.clone().matmul(x.clone());
                let parts = [Some(of_nodes), d_edge.map(|_| f.clone())];
                linear(l, Tensor::cat(parts.into_iter().flatten().collect(), 1))
            };
            let gate = sigmoid(at_edges(&layer.lin_key, &d) + at_edges(&layer.lin_query, &s));
            let sum = d.clone().transpose().matmul(gate * at_edges(&layer.lin_value, &s));
            let own = layer.lin_skip.as_ref().map(|l| linear(l, x.clone()));
            let want = own.map_or(sum.clone(), |own| sum + own);
            let want = want + layer.bias.as_ref().unwrap().val().unsqueeze();
            let edges = g.edge_type("_E").unwrap().with_features(d_edge.map(|_| f.clone()));
            let what = format!("res_gated_graph_conv root {root}, edges {d_edge:?}");
            same(&what, &layer.forward(edges, x.clone()), &want);
        }
    }
}
