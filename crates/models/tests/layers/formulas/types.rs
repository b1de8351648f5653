//! Formulas of layers on several node or edge types.

use burn::module::Param;
use burn::tensor::activation::{leaky_relu, relu, softmax};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Relabel;
use burn_gnn_models::*;
use burn_gnn_ops::TypeIndex;
use burn_gnn_sampling::ToBlock;

use super::{drawn, endpoints, linear, one_hot, same, softmax_into, two_types};
use crate::{assert_close, devices, matrix, typed, values};

/// What each relation of [`two_types`] gives the nodes of `a`, and their weighted sum by means over some nodes.
fn han(device: &Device, layer: &HanConv, x: &[Tensor<2>; 2], nodes: &[u32]) -> Tensor<2> {
    let g = two_types();
    let z: Vec<_> = x.iter().zip(&layer.proj).map(|(x, l)| linear(l, x.clone())).collect();
    let by_relation: Vec<Tensor<2>> = (0..3)
        .map(|r| {
            let ((s, d), (t, _)) = (endpoints(device, &g.relations()[r]), g.schema().endpoints(r));
            let (u, v) = (s.matmul(z[t].clone()), d.clone().matmul(z[0].clone()));
            let head = |h: usize| {
                let of = |y: &Tensor<2>| y.clone().slice_dim(1, 2 * h..2 * h + 2);
                let a = |p: &Param<Tensor<3>>| p.val().slice_dim(1, h..h + 1).reshape([2, 1]);
                let score =
                    of(&u).matmul(a(&layer.lin_src[r])) + of(&v).matmul(a(&layer.lin_dst[r]));
                let shares = softmax_into(&d, leaky_relu(score, 0.2));
                d.clone().transpose().matmul(of(&u) * shares)
            };
            let all = relu(Tensor::cat(vec![head(0), head(1)], 1));
            one_hot(device, nodes, 4).matmul(all)
        })
        .collect();
    let score = |h: &Tensor<2>| linear(&layer.q, linear(&layer.k_lin, h.clone()).tanh()).mean();
    let shares = values(&softmax(Tensor::cat(by_relation.iter().map(score).collect(), 0), 0));
    by_relation.iter().zip(shares).map(|(h, s)| h.clone() * s).reduce(|a, b| a + b).unwrap()
}

#[test]
fn han_conv() {
    for device in &devices() {
        let g = two_types();
        let config = HanConvConfig::from_graph(&g, [("a", 3), ("b", 5)], 2, 2);
        let x = [matrix(device, "a", 4, 3), matrix(device, "b", 3, 5)];
        for local in [false, true] {
            let layer = drawn(config.clone().with_local_scores(local).init(device));
            let got = layer.forward(&g, typed(&g, x.to_vec()));
            same("han_conv", &got["a"], &han(device, &layer, &x, &[0, 1, 2, 3]));
            assert!(got.get("b").is_none());
        }
    }
}

#[test]
fn han_conv_on_a_block_by_its_nodes() {
    for device in &devices() {
        let g = two_types();
        let config = HanConvConfig::from_graph(&g, [("a", 3), ("b", 5)], 2, 2);
        let x = [matrix(device, "a", 4, 3), matrix(device, "b", 3, 5)];
        let seeds = [("a", vec![1u32, 0])];
        let block = g.in_subgraph(seeds.clone(), Relabel::No).unwrap().to_block(&g, seeds).unwrap();
        let rows = x
            .iter()
            .enumerate()
            .map(|(t, x)| one_hot(device, block.src_nodes(t), x.dims()[0]).matmul(x.clone()))
            .collect();
        let rows = typed(&g, rows);
        let layer = drawn(config.clone().init(device));
        let refused = layer.try_forward(&block, rows.clone()).unwrap_err();
        assert!(matches!(refused, ModelError::PartOfGraph { rows: 2, total: 4, .. }), "{refused}");
        let local = drawn(config.with_local_scores(true).init(device));
        let got = local.try_forward(&block, rows.clone()).unwrap()["a"].clone();
        same("han_conv", &got, &han(device, &local, &x, &[1, 0]));
        // Scores of all nodes weigh other relations more.
        let whole = layer.relation_scores(&g, typed(&g, x.to_vec()));
        let exact = layer.forward_with_scores(&block, rows, &whole)["a"].clone();
        let want = one_hot(device, &[1, 0], 4).matmul(han(device, &layer, &x, &[0, 1, 2, 3]));
        same("han_conv with the scores of the graph", &exact, &want);
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
                RelWeights::BlockDiagonal(b) if i / (4 / b) == o / (6 / b) => {
                    w[((t * b + i / 2) * 2 + i % 2) * 3 + o % 3]
                }
                RelWeights::BlockDiagonal(_) => 0.0,
            };
            let xv = values(&x);
            let dot = |i: usize, o: usize| {
                (0..4).map(|k| xv[i * 4 + k] * entry(types[i] as usize, k, o)).sum()
            };
            let want: Vec<f64> = (0..30).map(|k| dot(k / 6, k % 6)).collect();
            assert_close(
                &format!("{weights:?}"),
                &values(&layer.forward(x.clone(), &TypeIndex::new(&types, 3))),
                &want,
                1e-12,
            );
        }
    }
}
