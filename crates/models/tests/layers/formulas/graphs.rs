//! Formulas of layers with one output row per graph of a batch.

use burn::module::Module;
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::Segments;

use super::{drawn, linear, same};
use crate::fixtures::views::graph;
use crate::{assert_close, devices, matrix, values};

#[test]
fn attention_readout() {
    for device in &devices() {
        let x = matrix(device, "x", 5, 3);
        let readout = drawn(AttentionReadoutConfig::new(3).with_d_output(Some(2)).init(device));
        let (scores, rows) = (
            linear(&readout.gate_nn, x.clone()),
            linear(readout.feat_nn.as_ref().unwrap(), x.clone()),
        );
        let of = |a: usize, b: usize| {
            (softmax(scores.clone().slice_dim(0, a..b), 0) * rows.clone().slice_dim(0, a..b))
                .sum_dim(0)
        };
        let want = Tensor::cat(vec![of(0, 2), of(0, 1) * 0.0, of(2, 5)], 0);
        same("attention_readout", &readout.forward(x, &Segments::from_lengths(&[2, 0, 3])), &want);
    }
}

#[test]
fn logits_of_graphs_do_not_depend_on_the_batch() {
    for device in &devices() {
        let (one, x) = (graph(), matrix(device, "x", 6, 3));
        let r = &one.relations()[0];
        let twice =
            |ids: &[u32]| ids.iter().copied().chain(ids.iter().map(|v| v + 6)).collect::<Vec<_>>();
        let both = Graph::homogeneous(12, twice(r.src()), twice(r.dst())).unwrap();
        let gin = drawn(GinConfig::new(3, 2).with_hidden(4).with_num_layers(2).init(device));
        let a = gin.forward_graphs(&one, x.clone(), &Segments::from_lengths(&[6]));
        let b = gin.forward_graphs(
            &both,
            Tensor::cat(vec![x.clone(), x], 0),
            &Segments::from_lengths(&[6, 0, 6]),
        );
        assert_close("first", &values(&b.clone().slice_dim(0, 0..1)), &values(&a), 1e-12);
        assert_close("last", &values(&b.slice_dim(0, 2..3)), &values(&a), 1e-12);
    }
}

/// Training normalises by the rows at hand, everything else by running means, on the whole graph and in chunks alike.
#[test]
fn batch_norm_of_gin() {
    for device in &devices() {
        let (g, x) = (graph(), matrix(device, "x", 6, 4).cast(FloatDType::F32));
        let config = GinConfig::new(4, 2).with_hidden(5).with_num_layers(1).with_dropout(0.0);
        let gin = seeded(0, || config.with_batch_norm(true).init(&device.clone().autodiff()));
        let logits = |norm: &dyn Fn(Tensor<2>) -> Tensor<2>| {
            let h = relu(norm(gin.layers[0].forward(&g, x.clone())));
            linear(&gin.heads[0], x.clone()) + linear(&gin.heads[1], h)
        };
        let by_batch = |h: Tensor<2>| {
            let mean = h.clone().mean_dim(0);
            let variance = (h.clone() - mean.clone()).powi_scalar(2).mean_dim(0);
            (h - mean) / (variance + 1e-5).sqrt()
        };
        let train = || values(&gin.forward(&g, x.clone()));
        assert_close("training", &train(), &values(&logits(&by_batch)), 1e-4);
        let last = (2..4).fold(train(), |_, _| train());
        // Moments start at 0 and 1 and have come nearer to those of the batch four times.
        let h = gin.layers[0].forward(&g, x.clone());
        let mean = h.clone().mean_dim(0);
        let variance = (h - mean.clone()).powi_scalar(2).mean_dim(0);
        let left = 0.9f64.powi(4);
        let (mean, variance) = (mean * (1.0 - left), variance * (1.0 - left) + left);
        let by_running = |h: Tensor<2>| (h - mean.clone()) / (variance.clone() + 1e-5).sqrt();
        let plain = gin.valid();
        let eval = values(&plain.forward(&g, x.clone()));
        assert_close("evaluation", &eval, &values(&logits(&by_running)), 1e-4);
        assert_ne!(eval, last);
        let chunks = InferenceConfig::new().with_max_nodes(2);
        assert_close(
            "chunks",
            &values(&infer(&plain, &g, x.clone(), "_N", &chunks).unwrap()),
            &eval,
            1e-5,
        );
    }
}
