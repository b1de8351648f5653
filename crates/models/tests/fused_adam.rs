//! `FusedAdam` compared with Burn's optimizers.
#![allow(deprecated)]

use burn::module::{Module, Param};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_models::FusedAdamConfig;

#[derive(Module, Debug)]
struct Two {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

fn model(device: &Device, dtype: DType) -> Two {
    let data = |n: usize, by: f64| (0..n).map(|i| (i as f64 * by).sin()).collect::<Vec<_>>();
    let weight = Tensor::<2>::from_data(TensorData::new(data(35, 0.7), [5, 7]), (device, dtype));
    let bias = Tensor::<1>::from_data(TensorData::new(data(7, 1.3), [7]), (device, dtype));
    Two { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias) }
}

/// Gradients that differ from step to step.
fn gradients(m: &Two, k: usize) -> GradientsParams {
    let k = 0.3 * k as f64 + 0.5;
    let loss = ((m.weight.val() * k).sin() * m.weight.val()).sum()
        + (m.bias.val().powi_scalar(3) * k).sum();
    GradientsParams::from_grads(loss.backward(), m)
}

fn values(m: &Two) -> Vec<f64> {
    let f = |x: TensorData| x.convert_dtype(DType::F64).try_into_vec::<f64>().unwrap();
    [f(m.weight.val().into_data()), f(m.bias.val().into_data())].concat()
}

fn train(
    mut optimizer: ModuleOptimizer,
    mut m: Two,
    steps: std::ops::Range<usize>,
) -> (Two, ModuleOptimizer) {
    for k in steps {
        let grads = gradients(&m, k);
        m = optimizer.step(0.02, m, grads);
    }
    (m, optimizer)
}

fn l2() -> Option<WeightDecayConfig> {
    Some(WeightDecayConfig::new(0.05))
}

fn pairs() -> Vec<(&'static str, ModuleOptimizer, ModuleOptimizer)> {
    let fused = || FusedAdamConfig::new().with_epsilon(1e-6).with_beta_2(0.99);
    let adam = || AdamConfig::new().with_epsilon(1e-6).with_beta_2(0.99);
    vec![
        ("defaults", FusedAdamConfig::new().init(), AdamConfig::new().init()),
        ("adam", fused().init(), adam().init()),
        ("L2", fused().with_weight_decay(l2()).init(), adam().with_weight_decay(l2()).init()),
        (
            "AdamW",
            fused().with_decoupled_weight_decay(Some(0.1)).init(),
            AdamWConfig::new().with_epsilon(1e-6).with_beta_2(0.99).with_weight_decay(0.1).init(),
        ),
    ]
}

#[test]
fn equals_burns_own() {
    for device in burn_gnn_testutil::devices() {
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
            for (what, fused, burns) in pairs() {
                let start = model(&device.clone().autodiff(), dtype);
                let before = values(&start);
                let a = values(&train(fused, start.clone(), 0..25).0);
                let b = values(&train(burns, start.clone(), 0..25).0);
                assert!(
                    a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs())),
                    "{what}, {dtype:?}: {a:?} against {b:?}"
                );
                assert!(
                    a.iter().zip(&before).any(|(a, b)| (a - b).abs() > 0.1),
                    "{what}: nothing moved"
                );
                assert_eq!(values(&start), before, "{what}: a clone of the model was written");
            }
        }
    }
}

#[test]
fn state_is_saved_and_loaded() {
    let start = model(&Device::flex().autodiff(), DType::F32);
    for (what, fused, burns) in pairs() {
        let (m, optimizer) = train(fused.clone(), start.clone(), 0..5);
        let bytes = optimizer.into_bytes().unwrap();
        let want = values(&train(optimizer, m.clone(), 5..9).0);
        let again = fused.from_bytes(bytes.clone()).unwrap();
        assert_eq!(values(&train(again, m.clone(), 5..9).0), want, "{what}");
        // The record of one is a record of the other.
        let other = values(&train(burns.from_bytes(bytes).unwrap(), m, 5..9).0);
        assert!(
            other.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6),
            "{what}: {other:?} against {want:?}"
        );
    }
}

#[test]
fn gradients_are_clipped() {
    use burn::grad_clipping::GradientClippingConfig::Value;
    let start = model(&Device::flex().autodiff(), DType::F64);
    let fused = FusedAdamConfig::new().with_grad_clipping(Some(Value(0.1))).init();
    let burns = AdamConfig::new().with_grad_clipping(Some(Value(0.1))).init();
    let (a, b) =
        (values(&train(fused, start.clone(), 0..5).0), values(&train(burns, start, 0..5).0));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
#[should_panic(expected = "this state was made by AMSGrad")]
fn amsgrad_is_refused() {
    let start = model(&Device::flex().autodiff(), DType::F64);
    let (m, optimizer) = train(AdamConfig::new().with_amsgrad(true).init(), start, 0..2);
    let fused = FusedAdamConfig::new().init().from_bytes(optimizer.into_bytes().unwrap()).unwrap();
    train(fused, m, 2..3);
}

#[test]
#[should_panic(expected = "exclude each other")]
fn two_decays_are_refused() {
    let _ = FusedAdamConfig::new()
        .with_weight_decay(l2())
        .with_decoupled_weight_decay(Some(0.1))
        .init();
}
