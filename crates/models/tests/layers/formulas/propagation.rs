//! Formulas of layers with several hops, and of normalised edge weights.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use super::{drawn, endpoints, same};
use crate::fixtures::views::graph;
use crate::{assert_close, devices, matrix, values};

/// `Â` with weights, `[destinations, sources]`.
fn normalised(device: &Device, g: &Graph, w: &Tensor<2>) -> Tensor<2> {
    let r = &g.relations()[0];
    let (s, d) = endpoints(device, r);
    let (into, out): (Vec<_>, Vec<_>) = (r.in_degrees().collect(), r.out_degrees().collect());
    let c: Vec<f64> = (0..r.num_edges())
        .map(|e| (f64::from(into[r.dst()[e] as usize] * out[r.src()[e] as usize])).powf(-0.5))
        .collect();
    let c = Tensor::<2>::from_data(TensorData::new(c, [r.num_edges(), 1]), (device, DType::F64));
    d.transpose().matmul(s * c * w.clone())
}

#[test]
fn propagation() {
    for device in &devices() {
        let (g, x, w) = (graph(), matrix(device, "x", 6, 4), matrix(device, "w", 8, 1));
        let a = normalised(device, &g, &w);
        let edges = g.edge_type("_E").unwrap().with_weight(w.clone().squeeze_dim::<1>(1));
        let appnp = AppnpConvConfig::new().with_hops(2).with_alpha(0.3).init(device);
        let hop = |z: Tensor<2>| a.clone().matmul(z) * 0.7 + x.clone() * 0.3;
        same("appnp_conv", &appnp.forward(&edges, x.clone()), &hop(hop(x.clone())));
        for width in [3, 6] {
            let sg = drawn(SgConvConfig::new(4, width).with_hops(2).init(device));
            let want = a.clone().matmul(a.clone()).matmul(x.clone()).matmul(sg.weight.val())
                + sg.bias.as_ref().unwrap().val().unsqueeze();
            same("sg_conv", &sg.forward(&edges, x.clone()), &want);
        }
    }
}

/// The node of an edge whose sum is taken for the source of another.
type AtSrc = fn(&Graph, usize) -> u32;

/// `w_e · l_u · r_v` by edge, from sums of `c` over the edges of each end; 0 instead of the root of no sum.
fn by_sums(device: &Device, g: &Graph, w: &Tensor<2>, (c, at_src): (&[f64], AtSrc)) -> Tensor<2> {
    let r = &g.relations()[0];
    let root = |sum: f64| if sum > 0.0 { sum.powf(-0.5) } else { 0.0 };
    let edges = 0..r.num_edges();
    let into = |v: u32| edges.clone().filter(|&e| r.dst()[e] == v).map(|e| c[e]).sum::<f64>();
    let src =
        |e: usize| edges.clone().filter(|&k| at_src(g, k) == r.src()[e]).map(|k| c[k]).sum::<f64>();
    let factors: Vec<f64> = edges.clone().map(|e| root(src(e)) * root(into(r.dst()[e]))).collect();
    w.clone()
        * Tensor::<2>::from_data(TensorData::new(factors, [r.num_edges(), 1]), (device, DType::F64))
}

/// Edges with as many in-edges of sources, and edges out of sources.
const AT_SRC: [(DegreeNorm, AtSrc); 2] = [
    (DegreeNorm::BothIn, |g, e| g.relations()[0].dst()[e]),
    (DegreeNorm::Both, |g, e| g.relations()[0].src()[e]),
];

#[test]
fn norms_by_in_degrees_and_by_weights() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let w = matrix(device, "w", 8, 1) + 1.5;
        let weight: Tensor<1> = w.clone().squeeze_dim(1);
        let edges = g.edge_type("_E").unwrap().with_weight(weight.clone());
        let (s, d) = endpoints(device, &g.relations()[0]);
        let adjacency = |by_edge: Tensor<2>| d.clone().transpose().matmul(s.clone() * by_edge);
        for (norm, at_src) in AT_SRC {
            let by_degree = by_sums(device, &g, &w, (&[1.0; 8], at_src));
            for width in [3, 6] {
                let conv = drawn(GcnConvConfig::new(4, width).with_norm(norm).init(device));
                let (own, bias) = (
                    conv.weight.as_ref().unwrap().val(),
                    conv.bias.as_ref().unwrap().val().unsqueeze::<2>(),
                );
                let want = adjacency(by_degree.clone()).matmul(x.clone()).matmul(own) + bias;
                same(&format!("gcn_conv {norm:?}"), &conv.forward(&edges, x.clone()), &want);
            }
            let by_weight = by_sums(device, &g, &w, (&values(&w), at_src));
            let normed = EdgeWeightNorm::new().with_norm(norm).forward(&g, weight.clone()).unwrap();
            same(&format!("edge_weight_norm {norm:?}"), &normed.unsqueeze_dim::<2>(1), &by_weight);
            for (weighted, by_edge) in [(false, by_degree), (true, by_weight)] {
                let a = adjacency(by_edge);
                let sg = drawn(
                    SgConvConfig::new(4, 3)
                        .with_hops(2)
                        .with_norm(norm)
                        .with_weighted_norm(weighted)
                        .init(device),
                );
                let want = a.clone().matmul(a.clone()).matmul(x.clone()).matmul(sg.weight.val());
                let want = want + sg.bias.as_ref().unwrap().val().unsqueeze();
                same(
                    &format!("sg_conv {norm:?} {weighted}"),
                    &sg.forward(&edges, x.clone()),
                    &want,
                );
                let appnp = AppnpConvConfig::new()
                    .with_hops(2)
                    .with_alpha(0.3)
                    .with_norm(norm)
                    .with_weighted_norm(weighted)
                    .init(device);
                let hop = |z: Tensor<2>| a.clone().matmul(z) * 0.7 + x.clone() * 0.3;
                let got = appnp.forward(&edges, x.clone());
                same(&format!("appnp_conv {norm:?} {weighted}"), &got, &hop(hop(x.clone())));
            }
        }
    }
}

#[test]
fn gcn_conv_without_a_weight_takes_another_or_none() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4));
        let none = drawn(GcnConvConfig::new(4, 4).with_weight(false).init(device));
        let ones = x.clone().slice_dim(0, 0..1).transpose() * 0.0 + 1.0;
        let a = normalised(device, &g, &Tensor::cat(vec![ones.clone(), ones], 0));
        let bias = none.bias.as_ref().unwrap().val().unsqueeze::<2>();
        same("no weight", &none.forward(&g, x.clone()), &(a.clone().matmul(x.clone()) + bias));
        for width in [3, 6] {
            let outer = drawn(GcnConvConfig::new(4, width).with_weight(false).init(device));
            let weight = matrix(device, "weight", 4, width);
            let bias = outer.bias.as_ref().unwrap().val().unsqueeze::<2>();
            let want = a.clone().matmul(x.clone()).matmul(weight.clone()) + bias;
            same("weight of the caller", &outer.with_weight(weight).forward(&g, x.clone()), &want);
        }
    }
}

#[test]
fn an_edge_dropped_from_a_hop_leaves_no_message() {
    let (device, g) = (Device::flex().autodiff(), graph());
    let appnp = seeded(1, || {
        AppnpConvConfig::new().with_hops(1).with_alpha(0.0).with_dropout(0.5).init(&device)
    });
    let ones = matrix(&device, "x", 6, 1) * 0.0 + 1.0;
    let kept = values(&appnp.forward(&g.at_step(1, 1), ones.clone()));
    assert_ne!(kept, values(&appnp.forward(&g.at_step(1, 2), ones.clone())));
    assert_eq!(kept, values(&appnp.forward(&g.at_step(1, 1), ones.clone())));
    // Without a key other edges are dropped in every pass, and none on a plain device or by request.
    let all = values(&appnp.forward(&g, ones.clone().inner()));
    assert_ne!(kept, all);
    assert_eq!(values(&appnp.forward(&g.without_dropout(), ones.clone())), all);
    let passes: Vec<_> = (0..8).map(|_| values(&appnp.forward(&g, ones.clone()))).collect();
    assert!(passes.iter().any(|pass| *pass != passes[0]), "{passes:?}");
}

#[test]
fn edge_weight_norm_validates_weights_and_views() {
    let (device, g) = (Device::flex(), graph());
    let norm = EdgeWeightNorm::new();
    let refuse = |w: Vec<f32>| {
        norm.forward(&g, Tensor::from_data(w.as_slice(), &device)).unwrap_err().to_string()
    };
    assert_eq!(
        refuse(vec![1.0; 7]),
        "`weight`: expected 8 (one per edge of the relation), got 7; give 8"
    );
    assert_eq!(
        refuse(vec![1.0, 1.0, -2.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        "`weight of edge 2` must lie in numbers not below 0, got -2"
    );
    // Ones: the normalisation by degree.
    let ones = Tensor::<1>::ones([8], (&device, DType::F64));
    let conv = drawn(GcnConvConfig::new(3, 2).with_norm(DegreeNorm::None).init(&device));
    let both = drawn(GcnConvConfig::new(3, 2).init(&device));
    let x = matrix(&device, "x", 6, 3);
    let w = norm.forward(&g, ones).unwrap();
    assert_close(
        "ones",
        &values(&conv.forward(g.edge_type("_E").unwrap().with_weight(w), x.clone())),
        &values(&both.forward(&g, x)),
        1e-12,
    );
    // A block does not hold all edges out of its sources.
    let block = crate::fixtures::views::View::block(&g, &[2]);
    let refused = norm.forward(&block, Tensor::ones([1], &device)).unwrap_err().to_string();
    assert!(
        refused.starts_with("`norm` must lie in Right or None on a part of a graph"),
        "{refused}"
    );
    let both_in = norm.clone().with_norm(DegreeNorm::BothIn);
    let refused = both_in.forward(&block, Tensor::ones([1], &device)).unwrap_err().to_string();
    assert!(
        refused.starts_with("`norm` must lie in Right or None on a part of a graph")
            && refused.ends_with("BothIn"),
        "{refused}"
    );
    let refused = both_in
        .forward(super::two_types().edge_type("t").unwrap(), Tensor::ones([3], &device))
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "`norm` must lie in None, Left, Right or Both on an edge type of two node types, got BothIn"
    );
    assert!(norm.with_norm(DegreeNorm::Right).forward(&block, Tensor::ones([1], &device)).is_ok());
}

/// Where all weights of a sum are 0, the normalised weights are 0 with gradient 0; other gradients are finite.
#[test]
fn edge_weight_norm_of_sums_that_are_0() {
    for device in devices().into_iter().map(|device| device.autodiff()) {
        // Edges 3, 4 and 5 are all edges into node 4; edges 4 and 5 are all edges out of node 3.
        let weights = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0, 5.0];
        for norm in [DegreeNorm::Both, DegreeNorm::BothIn, DegreeNorm::Left, DegreeNorm::Right] {
            let w = Tensor::<1>::from_data(weights, (&device, DType::F64)).require_grad();
            let y = EdgeWeightNorm::new().with_norm(norm).forward(&graph(), w.clone()).unwrap();
            let grads = y.clone().sum().backward();
            let (y, dw) = (values(&y.inner()), values(&w.grad(&grads).unwrap()));
            assert!(y.iter().chain(&dw).all(|x| x.is_finite()), "{norm:?}: {y:?} {dw:?}");
            assert_eq!(y[3..6], [0.0; 3], "{norm:?}");
            assert_eq!(dw[4..6], [0.0; 2], "{norm:?}");
        }
    }
}
