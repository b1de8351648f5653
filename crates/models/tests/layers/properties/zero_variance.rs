//! Gradients of roots at 0: of a standard deviation, a norm.

use burn::tensor::{FloatDType, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;

use crate::{assert_close, devices, matrix, values};

/// Sum of what `f` makes of `x`, and its gradient.
fn gradient(x: &Tensor<2>, f: impl Fn(Tensor<2>) -> Tensor<2>) -> (f64, Vec<f64>) {
    let x = Tensor::<2>::from_inner(x.clone()).require_grad();
    let y = f(x.clone()).sum();
    let grad = x.grad(&y.clone().backward()).unwrap();
    (values(&y.inner())[0], values(&grad))
}

/// With DGL's bound, the variance of a node of one in-edge is 0, and so is its gradient.
#[test]
fn a_standard_deviation_of_one_message_has_gradient_0() {
    let g = Graph::homogeneous(3, vec![0, 0, 1], vec![1, 2, 2]).unwrap();
    for device in &devices() {
        let d = &device.clone().autodiff();
        let config = PnaConvConfig::new(2, 3, 0.9)
            .with_aggregators(vec![PnaAggregator::Mean, PnaAggregator::Std])
            .with_scalers(vec![PnaScaler::Identity])
            .with_std_eps(1e-30);
        let conv = to_dtype(seeded(1, || config.init(d)), FloatDType::F64);
        let x = matrix(device, "x", 3, 2);
        let (_, got) = gradient(&x, |x| conv.forward(&g, x));
        let h = 1e-5;
        let at = |i: usize, by: f64| {
            let mut moved = values(&x);
            moved[i] += by;
            let data = TensorData::new(moved, [3, 2]);
            gradient(&Tensor::from_data(data, (device, x.dtype())), |x| conv.forward(&g, x)).0
        };
        let want: Vec<f64> = (0..6).map(|i| (at(i, h) - at(i, -h)) / (2.0 * h)).collect();
        assert_close("pna", &got, &want, 1e-6);
    }
}

#[test]
fn gradients_of_standard_deviations_stay_small_in_f32() {
    let n = 1000u32;
    // One or two in-edges for every node.
    let (src, dst): (Vec<u32>, Vec<u32>) =
        (0..n + n / 2).map(|e| ((e * 7919 + 13) % n, e % n)).unzip();
    let g = Graph::homogeneous(n as usize, src, dst).unwrap();
    for device in &devices() {
        let d = &device.clone().autodiff();
        let config = PnaConvConfig::new(8, 8, 0.9).with_std_eps(1e-30);
        let conv = seeded(1, || config.init(d));
        let x = matrix(device, "x", n as usize, 8).cast(FloatDType::F32);
        let (_, got) = gradient(&x, |x| conv.forward(&g, x));
        let most = got.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(most > 0.0 && most < 1e3, "{device:?}: {most}");
    }
}

#[test]
fn a_row_of_0_is_normalised_with_gradient_0() {
    let g = Graph::homogeneous(3, vec![0, 1], vec![1, 0]).unwrap();
    for device in &devices() {
        let d = &device.clone().autodiff();
        let config = SageConvConfig::new(2, 2).with_normalize(true).with_bias(false);
        let conv = seeded(1, || config.init(d));
        // Node 2 has neither features nor neighbours.
        let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, -1.0], [0.0, 0.0]], device);
        let (_, got) = gradient(&x, |x| conv.forward(&g, x));
        assert!(got[..4].iter().all(|v| v.is_finite() && v.abs() < 10.0), "{got:?}");
        assert_eq!(got[4..], [0.0, 0.0], "{device:?}");
    }
}
