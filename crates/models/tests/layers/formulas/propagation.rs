//! Layers that go several hops, and weights of edges.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;

use super::{drawn, ends, same};
use crate::views::graph;
use crate::{close, devices, matrix, values};

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
