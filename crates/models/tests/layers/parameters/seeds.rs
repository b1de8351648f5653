//! Layers initialized in sequence have different weights and masks; models of one seed are equal on every thread.

use std::sync::Barrier;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use crate::fixtures::registry::{each_far_layer, each_layer};
use crate::fixtures::views::graph;
use crate::{STEP, devices, matrix, pass, values};

fn two_in_a_row<M: Module>(
    name: &str,
    make: impl Fn() -> M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    device: &Device,
) {
    let g = graph();
    let result = |layer: &M, trains| {
        values(&pass(
            layer,
            trains,
            &run,
            &g,
            (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3)),
        ))
    };
    let wide = |(a, b): (M, M)| (to_dtype(a, FloatDType::F64), to_dtype(b, FloatDType::F64));
    let two = || (make(), make());
    let has_weights = make().num_params() > 0;
    // Tests on other threads seed the generator of the device, so that two layers in a row may be equal once.
    let mut differ = (0..5).map(|_| {
        let (a, b) = wide(two());
        result(&a, false) != result(&b, false)
    });
    assert_eq!(differ.any(|d| d), has_weights, "{name}: weights outside of a scope");
    let (a, b) = wide(seeded(1, two));
    assert_eq!(result(&a, false) != result(&b, false), has_weights, "{name}: weights in a scope");
    // With the weights of the first, the second keeps masks of its own; clones keep those of the first.
    let b = b.load_record(a.clone().into_record());
    assert_eq!(result(&a, false), result(&b, false), "{name}");
    let kept = {
        let (x, e) = (
            Tensor::from_inner(matrix(device, "x", 6, 4)),
            Tensor::from_inner(matrix(device, "e", 8, 3)),
        );
        values(&run(&a, &g.without_dropout(), x, e).inner())
    };
    let drops = result(&a, true) != kept;
    assert_eq!(result(&a, true) != result(&b, true), drops, "{name}: masks");
    assert_eq!(result(&a, true), result(&a.clone(), true), "{name}: a clone");
    let (again, _) = wide(seeded(1, two));
    assert_eq!(result(&a, true), result(&again, true), "{name}: the same seed");
    let (other, _) = wide(seeded(2, two));
    assert_eq!(
        result(&a, true) != result(&other, true),
        has_weights || drops,
        "{name}: another seed"
    );
}

#[test]
fn layers_made_one_after_the_other_differ() {
    for device in &devices() {
        macro_rules! two {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                two_in_a_row($name, $make, $run, device)
            };
        }
        let tracked = &device.clone().autodiff();
        each_layer!(two, tracked);
        each_far_layer!(two, tracked);
    }
}

struct Weights(Vec<Vec<f64>>);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(values(&param.val()));
    }
}

/// All parameters of all models, and logits with dropout.
fn models(g: &Graph, device: &Device) -> Vec<Vec<f64>> {
    fn all<M: NodeClassifier>(model: M, g: &Graph, x: &NodeTensors, out: &mut Vec<Vec<f64>>) {
        let mut weights = Weights(vec![]);
        model.visit(&mut weights);
        // Parameters that do not begin as constants differ from one another.
        let drawn: Vec<_> = weights.0.iter().filter(|w| w.iter().any(|v| *v != w[0])).collect();
        assert!((0..drawn.len()).all(|i| (0..i).all(|j| drawn[i][..2] != drawn[j][..2])));
        out.append(&mut weights.0);
        let step = g.at_step(STEP.0, STEP.1);
        out.push(values(&model.logits(&step, x, "_N")));
        // Keys of masks are not parameters: they stay with a model that was on the plain device.
        out.push(values(&model.valid().train().logits(&step, x, "_N")));
    }
    let (d, mut out) = (&device.clone().autodiff(), vec![]);
    let x = NodeTensors::from([("_N", matrix(device, "x", 6, 4).cast(FloatDType::F32))]);
    all(GcnConfig::new(4, 3).with_hidden(4).with_num_layers(3).init(d), g, &x, &mut out);
    all(SageConfig::new(4, 3).with_hidden(4).with_num_layers(3).init(d), g, &x, &mut out);
    all(GatConfig::new(4, 3).with_num_layers(3).init(d), g, &x, &mut out);
    all(GinConfig::new(4, 3).with_hidden(4).init(d), g, &x, &mut out);
    all(
        RgcnConfig::new(3)
            .with_dropout(0.5)
            .try_init(g, [("_N", TypeInput::Features(4))], d)
            .unwrap(),
        g,
        &x,
        &mut out,
    );
    all(
        RgcnConfig::new(3).with_dropout(0.5).try_init(g, TypeMap::default(), d).unwrap(),
        g,
        &NodeTensors::default(),
        &mut out,
    );
    all(
        HgtConfig::new(3).try_init(g, [("_N", TypeInput::Features(4))], d).unwrap(),
        g,
        &x,
        &mut out,
    );
    out
}

#[test]
fn models_of_one_seed_are_the_same_on_threads_at_the_same_time() {
    const RANKS: usize = 4;
    for device in &devices() {
        let (g, start) = (&graph(), &Barrier::new(RANKS));
        let ranks = std::thread::scope(|s| {
            let rank = |seed| {
                s.spawn(move || {
                    start.wait();
                    seeded(seed, || models(g, device))
                })
            };
            let threads: Vec<_> = [7, 7, 7, 8].into_iter().map(rank).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(ranks[0] == ranks[1] && ranks[0] == ranks[2], "{device:?}");
        assert!(ranks[0] != ranks[3], "{device:?}");
    }
}
