//! Dropout and batch normalisation depend on device and training flag as in Burn, in every layer and model; evaluation and
//! inference do not train.

use burn::module::{Module, ParamGroup};
use burn::nn::BatchNorm;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use crate::fixtures::registry::{each_far_layer, each_layer, each_model, each_typed_model};
use crate::fixtures::views::graph;
use crate::properties::inference::typed_features;
use crate::{STEP, assert_close, devices, matrix, pass, typed, values};

/// Whether a layer behaves otherwise in training.
fn follows_the_flag<M: Module>(
    name: &str,
    make: impl Fn() -> M,
    result: impl Fn(&M, bool) -> Vec<f64>,
) -> bool {
    let wide = |seed| to_dtype(seeded(seed, &make), FloatDType::F64);
    let (layer, other) = (wide(3), wide(4));
    let trained = |layer: &M| result(layer, true);
    let (valid, tracked) = (result(&layer, false), trained(&layer));
    let is_valid = |what: &str, got: &M| {
        assert_close(&format!("{name}, {what}"), &trained(got), &valid, 1e-9);
    };
    is_valid("frozen", &layer.clone().freeze());
    let both = (layer.clone(), other.clone());
    let both = both.freeze_group(ParamGroup::ids_from_module(layer.clone()));
    is_valid("frozen group", &both.0);
    let trains = valid.iter().zip(&tracked).any(|(a, b)| (a - b).abs() > 1e-6 * (1.0 + a.abs()));
    let again = |what: &str, got: &M, want: &M| {
        assert_eq!(trained(got), trained(want), "{name}, {what}");
    };
    if trains {
        again("outside of the frozen group", &both.1, &other);
        again("without gradients alone", &layer.clone().no_grad(), &layer);
        again("unfrozen", &layer.clone().freeze().unfreeze(), &layer);
        again("back from `valid`", &layer.valid().train(), &layer);
        is_valid("frozen, then `valid` and `train`", &layer.clone().freeze().valid().train());
    }
    trains
}

#[test]
fn layers_follow_the_flag() {
    let g = graph();
    for device in &devices() {
        let mut trained = vec![];
        macro_rules! check {
            ($name:expr, $make:expr, $run:expr $(,)?) => {{
                let name: &str = $name;
                let inputs = || (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3));
                let differs =
                    state(name, $make, |l, trains| values(&pass(l, trains, $run, &g, inputs())));
                if differs {
                    trained.push(name.split(' ').next().unwrap_or_default().to_owned());
                }
            }};
        }
        /// Fixes the types of the closures.
        fn state<M: Module>(
            name: &str,
            make: impl Fn() -> M,
            result: impl Fn(&M, bool) -> Vec<f64>,
        ) -> bool {
            follows_the_flag(name, make, result)
        }
        let d = &device.clone().autodiff();
        each_layer!(check, d);
        each_far_layer!(check, d);
        let han = HanConvConfig::from_graph(&g, [("_N", 4)], 3, 2).with_dropout(0.3);
        check!("han_conv", || han.init(d), |l: &HanConv, g: &dyn GraphView, x, _| {
            l.forward(g, typed(g, vec![x]))["_N"].clone()
        });
        trained.sort();
        trained.dedup();
        let expected =
            ["appnp_conv", "gat_conv", "gatv2_conv", "han_conv", "hgt_conv", "transformer_conv"];
        assert_eq!(trained, expected);
    }
}

#[test]
fn models_follow_the_flag() {
    for device in &devices() {
        let g = graph();
        let d = &device.clone().autodiff();
        let x = NodeTensors::from(matrix(device, "x", 6, 4));
        fn logits<M: NodeClassifier>(
            model: &M,
            trains: bool,
            g: &Graph,
            x: &NodeTensors,
            of: &str,
        ) -> Vec<f64> {
            if !trains {
                return values(&model.valid().logits(g, x, of));
            }
            let x = x.clone().map(|_, x| Tensor::from_inner(x));
            values(&model.logits(&g.at_step(STEP.0, STEP.1), &x, of).inner())
        }
        macro_rules! check {
            ($name:expr, $layers:expr, $model:expr) => {
                let name: &str = $name;
                let trains =
                    follows_the_flag(name, || $model, |m, trains| logits(m, trains, &g, &x, "_N"));
                // Between layers and after attention heads.
                let without = name.starts_with("sage 1") || name == "gin 1 false";
                assert_eq!(trains, !without, "{name} has dropout");
            };
        }
        each_model!(check, d);
        let g = Graph::builder()
            .nodes("a", 3)
            .nodes("b", 2)
            .nodes("c", 3)
            .edges(("a", "r", "c"), vec![1, 2, 0], vec![0, 2, 2])
            .edges(("b", "s", "a"), vec![0, 1, 1], vec![0, 1, 2])
            .edges(("c", "t", "b"), vec![0, 1, 2], vec![0, 1, 1])
            .build()
            .unwrap();
        let x = typed_features(&g, device);
        macro_rules! check_typed {
            ($name:expr, $layers:expr, $model:expr) => {
                let trains =
                    follows_the_flag($name, || $model, |m, trains| logits(m, trains, &g, &x, "a"));
                assert!(trains, "{} has dropout", $name);
            };
        }
        each_typed_model!(check_typed, &g, d);
    }
}

/// A layer with batch normalisation as a model.
#[derive(Module, Debug)]
struct Pna {
    conv: PnaConv,
}

impl Layerwise for Pna {
    fn num_layers(&self) -> usize {
        1
    }
    fn inputs(&self, _: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
        Ok(features.clone())
    }
    fn layer<G: GraphView + ?Sized>(&self, _: usize, g: &G, x: NodeTensors) -> NodeTensors {
        x.map(|_, x| self.conv.forward(&g, x))
    }
}

impl NodeClassifier for Pna {
    fn logits_over<V: LayerViews>(&self, views: &V, x: &NodeTensors, of: &str) -> Tensor<2> {
        self.conv.forward(&views.view(0), x[of].clone())
    }
}

/// `evaluate` and `infer` of a model that trains give what its `valid` gives, and its running statistics stay.
fn judged_without_training<M: NodeClassifier + Layerwise>(
    name: &str,
    model: M,
    norms: impl Fn(&M) -> Vec<BatchNorm>,
    device: &Device,
) {
    let (g, labels) = (graph(), [0, 1, 2, 0, 1, 2]);
    let rows = Rows::new(&[0, 1, 2, 3, 4, 5], &labels, 3).unwrap();
    let x = NodeTensors::from([("_N", matrix(device, "x", 6, 4).cast(FloatDType::F32))]);
    // Statistics that are not those of the first moment.
    model.logits(&g, &x.clone().map(|_, x| Tensor::from_inner(x)), "_N");
    let statistics = |m: &M| -> Vec<Vec<f64>> {
        let of = |n: &BatchNorm| {
            [values(&n.running_mean.value_sync()), values(&n.running_var.value_sync())]
        };
        norms(m).iter().flat_map(of).collect()
    };
    let before = statistics(&model);
    assert!(
        !before.is_empty() && before.iter().any(|s| s.iter().any(|v| *v != 0.0 && *v != 1.0)),
        "{name}"
    );
    for on_device in [false, true] {
        let x = x.clone().map(|_, x| if on_device { Tensor::from_inner(x) } else { x });
        let task = NodeTask {
            graph: &g,
            features: x.clone(),
            target: "_N".into(),
            train: rows.clone(),
            val: Rows::default(),
            test: Rows::default(),
        };
        let plain = x.clone().map(|_, x| x.without_autodiff());
        let want = model.valid().logits(&g, &plain, "_N");
        let counts = evaluate(&model, &task, &rows).unwrap();
        let expected = Counts::new(&want, &rows);
        assert_close(
            &format!("{name}, loss"),
            &[counts.mean_loss()],
            &[expected.mean_loss()],
            1e-5,
        );
        let got = infer(&model, &g, x, "_N", &InferenceConfig::new().with_max_nodes(2)).unwrap();
        assert!(!got.is_autodiff());
        assert_close(&format!("{name}, infer"), &values(&got), &values(&want), 1e-4);
    }
    assert_eq!(statistics(&model), before, "{name}: running statistics");
    // They move in training, and not where the module is frozen.
    let tracked = || x.clone().map(|_, x| Tensor::from_inner(x));
    model.clone().freeze().logits(&g, &tracked(), "_N");
    assert_eq!(statistics(&model), before, "{name}: frozen");
    model.logits(&g, &tracked(), "_N");
    assert_ne!(statistics(&model), before, "{name}: training");
}

#[test]
fn evaluation_and_inference_keep_running_statistics() {
    for device in &devices() {
        let d = &device.clone().autodiff();
        seeded(5, || {
            for heads in [true, false] {
                let gin = GinConfig::new(4, 3).with_hidden(5).with_num_layers(2);
                let gin = gin.with_batch_norm(true).with_heads(heads).init(d);
                judged_without_training(&format!("gin {heads}"), gin, |m| m.norms.clone(), device);
            }
            let conv = PnaConvConfig::new(4, 3, 0.9).with_batch_norm(true).init(d);
            let norms = |m: &Pna| m.conv.towers.iter().filter_map(|t| t.norm.clone()).collect();
            judged_without_training("pna", Pna { conv }, norms, device);
        });
    }
}
