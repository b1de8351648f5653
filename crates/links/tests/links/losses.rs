//! Losses against formulas written as loops over numbers.

use burn::tensor::{Device, Tensor};
use burn_gnn_links::{Dot, LinkLoss};
use burn_gnn_testutil::{assert_close, devices, matrix, panic_text, values};

use crate::differences::gradients;

const ALL: [LinkLoss; 7] = [
    LinkLoss::Bce,
    LinkLoss::Margin { margin: 0.3 },
    LinkLoss::Bpr,
    LinkLoss::SampledSoftmax,
    LinkLoss::InfoNce { temperature: 0.3 },
    LinkLoss::SelfAdversarial { margin: 0.7, temperature: 1.3 },
    LinkLoss::SelfAdversarial { margin: 0.7, temperature: 0.0 },
];

fn formula(loss: LinkLoss, p: f64, s: &[f64]) -> f64 {
    let log_sigmoid = |x: f64| -(1.0 + (-x).exp()).ln();
    let k = s.len() as f64;
    let mean = |f: &dyn Fn(f64) -> f64| s.iter().map(|&x| f(x)).sum::<f64>() / k;
    let softmax = |t: f64| {
        let others: f64 = s.iter().map(|x| (x / t).exp()).sum();
        -((p / t).exp() / ((p / t).exp() + others)).ln()
    };
    match loss {
        LinkLoss::Bce => -log_sigmoid(p) - mean(&|x| log_sigmoid(-x)),
        LinkLoss::Margin { margin } => mean(&|x| (margin - p + x).max(0.0)),
        LinkLoss::Bpr => -mean(&|x| log_sigmoid(p - x)),
        LinkLoss::SampledSoftmax => softmax(1.0),
        LinkLoss::InfoNce { temperature } => softmax(temperature),
        LinkLoss::SelfAdversarial { margin, temperature } => {
            let sum: f64 = s.iter().map(|x| (temperature * x).exp()).sum();
            let term = |x: &f64| (temperature * x).exp() / sum * log_sigmoid(-margin - x);
            -log_sigmoid(margin + p) - s.iter().map(term).sum::<f64>()
        }
    }
}

#[test]
fn losses_equal_their_formulas() {
    for device in &devices() {
        let (links, negatives) = (matrix(device, "p", 3, 1), matrix(device, "s", 3, 4));
        let (p, s) = (values(&links), values(&negatives));
        for loss in ALL {
            let got = loss.forward(links.clone().squeeze_dim(1), negatives.clone());
            let want = (0..3).map(|i| formula(loss, p[i], &s[4 * i..][..4])).sum::<f64>() / 3.0;
            assert_close(&format!("{loss:?}"), &values(&got), &[want], 1e-12);
        }
    }
}

/// Weights of the self-adversarial loss are constants, so that its differences are not compared, but for equal weights.
#[test]
fn gradients_of_losses_are_differences() {
    for device in &devices() {
        let d = &device.clone().autodiff();
        let x = [matrix(d, "p", 3, 1), matrix(d, "s", 3, 4)];
        let constant = |l: &LinkLoss| !matches!(l, LinkLoss::SelfAdversarial { temperature, .. } if *temperature > 0.0);
        for loss in ALL.into_iter().filter(constant) {
            gradients(&format!("{loss:?}"), &Dot::new(), &x, |_, x| {
                vec![loss.forward(x[0].clone().squeeze_dim(1), x[1].clone()).unsqueeze_dim(1)]
            });
        }
        let (margin, t) = (0.7, 1.3);
        let s = x[1].clone().require_grad();
        let loss = LinkLoss::SelfAdversarial { margin, temperature: t };
        let grads = loss.forward(x[0].clone().squeeze_dim(1), s.clone()).backward();
        let got = values(&s.grad(&grads).unwrap());
        let v = values(&s);
        let want: Vec<f64> = (0..12)
            .map(|k| {
                let row = &v[k / 4 * 4..][..4];
                let sum: f64 = row.iter().map(|x| (t * x).exp()).sum();
                (t * v[k]).exp() / sum / (1.0 + (-margin - v[k]).exp()) / 3.0
            })
            .collect();
        assert_close("self-adversarial", &got, &want, 1e-12);
    }
}

#[test]
fn negatives_of_minus_infinity_are_ignored() {
    for device in &devices() {
        let d = &device.clone().autodiff();
        let links = matrix(d, "p", 2, 1).squeeze_dim::<1>(1);
        let some = matrix(d, "s", 2, 2);
        let none = Tensor::full([2, 2], f64::NEG_INFINITY, (d, some.dtype()));
        for loss in ALL {
            let s = some.clone().require_grad();
            let all = Tensor::cat(vec![s.clone(), none.clone()], 1);
            let y = loss.forward(links.clone(), all.clone());
            let [with] = values(&y)[..] else { unreachable!() };
            let [without] = values(&loss.forward(links.clone(), s.clone()))[..] else {
                unreachable!()
            };
            let means = matches!(loss, LinkLoss::Bce | LinkLoss::Margin { .. } | LinkLoss::Bpr);
            if !means && !matches!(loss, LinkLoss::SelfAdversarial { temperature: 0.0, .. }) {
                assert_close(&format!("{loss:?}"), &[with], &[without], 1e-12);
            }
            let grad = values(&s.grad(&y.backward()).unwrap());
            assert!(with.is_finite() && grad.iter().all(|g| g.is_finite()), "{loss:?}: {grad:?}");
        }
    }
}

#[test]
fn large_scores_do_not_overflow() {
    let d = &Device::flex().autodiff();
    let links = Tensor::<1>::from_data([1e4f32, -1e4], d).require_grad();
    let negatives = Tensor::<2>::from_data([[1e4f32, -1e4], [1e4, 0.0]], d);
    for loss in ALL {
        let y = loss.forward(links.clone(), negatives.clone());
        let grad = values(&links.grad(&y.clone().backward()).unwrap());
        assert!(values(&y)[0].is_finite() && grad.iter().all(|g| g.is_finite()), "{loss:?}");
    }
}

/// With all candidates drawn in expectation as often as `q` says, the corrected softmax is that over all candidates.
#[test]
fn the_correction_subtracts_logarithms() {
    let d = &Device::flex();
    let links = matrix(d, "p", 3, 1).squeeze_dim::<1>(1);
    let negatives = matrix(d, "s", 3, 4);
    let q = Tensor::full([3, 4], (0.5f64).ln(), (d, negatives.dtype()));
    let got = LinkLoss::SampledSoftmax.forward_corrected(
        links.clone(),
        None,
        negatives.clone(),
        q.clone(),
    );
    let twice = Tensor::cat(vec![negatives.clone(), negatives.clone()], 1);
    let want = LinkLoss::SampledSoftmax.forward(links.clone(), twice);
    assert_close("each counts twice", &values(&got), &values(&want), 1e-12);
    let text = panic_text(|| {
        LinkLoss::Bpr.forward_corrected(links.clone(), None, negatives.clone(), q.transpose())
    });
    assert!(text.contains("`negatives_log_q`: expected shape [3, 4]"), "{text}");
}

#[test]
fn losses_reject_wrong_arguments() {
    let d = &Device::flex();
    let (links, negatives) = (Tensor::<1>::zeros([2], d), Tensor::<2>::zeros([3, 4], d));
    let text = panic_text(|| LinkLoss::Bce.forward(links.clone(), negatives.clone()));
    assert_eq!(text, "link_loss: `rows of negatives`: expected 2 (one per link), got 3; give 2");
    let text =
        panic_text(|| LinkLoss::InfoNce { temperature: 0.0 }.forward(links.clone(), negatives));
    assert!(text.contains("rows of negatives"), "{text}");
    let e = LinkLoss::InfoNce { temperature: 0.0 }.check().unwrap_err().to_string();
    assert_eq!(e, "`temperature` must lie in numbers above 0, got 0");
    assert!(LinkLoss::Margin { margin: f64::NAN }.check().is_err());
    assert!(LinkLoss::SelfAdversarial { margin: 1.0, temperature: -1.0 }.check().is_err());
    for loss in ALL {
        let none = loss.forward(Tensor::zeros([0], d), Tensor::zeros([0, 4], d));
        assert_eq!(values(&none), [0.0], "{loss:?}");
    }
}
