//! Cross entropy of chosen rows against its composition and finite differences, and corner cases.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::{
    LossReduction, OpsError, Stream, cross_entropy_rows, cross_entropy_rows_reference,
    try_cross_entropy_rows,
};
use proptest::prelude::*;

use crate::numerics::half_types::{HALVES, rounded};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, central_differences};

#[derive(Clone, Debug)]
struct Case {
    n: usize,
    classes: usize,
    logits: Vec<f64>,
    rows: Arc<[u32]>,
    targets: Arc<[u32]>,
    reduction: LossReduction,
    dtype: DType,
}

impl Case {
    fn new(n: usize, classes: usize, chosen: usize, reduction: LossReduction, seed: u64) -> Self {
        let stream = Stream::new(seed, "rows", 0);
        let below =
            |i: usize, c: u64, bound: usize| (stream.uniform(i as u64, c) * bound as f64) as u32;
        Self {
            n,
            classes,
            logits: numbers(seed, n * classes).iter().map(|x| 3.0 * x).collect(),
            rows: (0..chosen).map(|i| below(i, 0, n)).collect(),
            targets: (0..chosen).map(|i| below(i, 1, classes)).collect(),
            reduction,
            dtype: DType::F64,
        }
    }

    /// Loss and gradient of the logits of 1.5 times the loss.
    fn run(&self, device: &Device, reference: bool) -> [Vec<f64>; 2] {
        let data = TensorData::new(self.logits.clone(), [self.n, self.classes]);
        let logits =
            Tensor::<2>::from_data(data, (&device.clone().autodiff(), self.dtype)).require_grad();
        let f = if reference { cross_entropy_rows_reference } else { cross_entropy_rows };
        let loss = f(logits.clone(), &self.rows, &self.targets, self.reduction);
        assert_eq!((loss.dims(), loss.dtype()), ([1], self.dtype));
        let mut scaled = loss.clone() * 1.5;
        if reference {
            // Without rows the reference is a constant.
            scaled = scaled + (logits.clone() * 0.0).sum();
        }
        let grads = scaled.backward();
        [f64s(loss), f64s(logits.grad(&grads).unwrap())]
    }
}

const BOTH: [LossReduction; 3] = [LossReduction::Sum, LossReduction::Mean, LossReduction::Over(70)];

#[test]
fn agrees_with_the_composition() {
    for (n, classes, chosen) in [
        (1, 1, 1),
        (5, 3, 4),
        (7, 16, 7),
        (9, 17, 30),
        (4, 40, 2),
        (300, 5, 200),
        (3, 2, 0),
        (0, 3, 0),
    ] {
        for reduction in BOTH {
            let case = Case::new(n, classes, chosen, reduction, 4);
            for (backend, device) in devices() {
                let (a, b) = (case.run(&device, false), case.run(&device, true));
                for i in 0..2 {
                    assert_close(
                        &format!("{backend}, {n} x {classes}, {chosen} rows, {reduction:?}, {i}"),
                        &a[i],
                        &b[i],
                        1e-12,
                    );
                }
            }
        }
    }
}

#[test]
fn finite_differences() {
    let case = Case::new(6, 5, 8, LossReduction::Mean, 3);
    for (backend, device) in devices() {
        let got = case.run(&device, false);
        let want = central_differences(case.logits.len(), 1e-5, |i, by| {
            let mut case = case.clone();
            case.logits[i] += by;
            1.5 * case.run(&device, false)[0][0]
        });
        assert_close(backend, &got[1], &want, 1e-7);
        assert!(got[1].iter().any(|g| g.abs() > 0.01));
        for r in (0..6).filter(|r| !case.rows.contains(r)) {
            assert_eq!(got[1][r as usize * 5..][..5], [0.0; 5], "row {r} was not chosen");
        }
    }
}

proptest! {
    #[test]
    fn any_rows(n in 1usize..20, classes in 1usize..40, chosen in 0usize..30, mean: bool, seed in 1u64..1000) {
        let case = Case::new(n, classes, chosen, BOTH[usize::from(mean)], seed);
        let (a, b) = (case.run(&Device::flex(), false), case.run(&Device::flex(), true));
        for i in 0..2 {
            assert_close("any rows", &a[i], &b[i], 1e-12);
        }
    }
}

#[test]
fn any_number_of_threads() {
    for dtype in [DType::F32, DType::F64] {
        let mut case = Case::new(9000, 47, 6000, LossReduction::Mean, 2);
        case.dtype = dtype;
        for (backend, device) in devices() {
            let what = format_args!("{backend}, {dtype:?}");
            assert_same_bits_on_threads(what, || case.run(&device, false).concat());
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    for (dtype, ulp) in HALVES {
        let mut half = Case::new(40, 20, 30, LossReduction::Mean, 5);
        half.logits = rounded(&half.logits, dtype);
        let mut single = half.clone();
        (half.dtype, single.dtype) = (dtype, DType::F32);
        let (a, b) = (half.run(&Device::flex(), false), single.run(&Device::flex(), false));
        assert_close("loss", &a[0], &b[0], ulp);
        assert_close("gradient", &a[1], &b[1], 2.0 * ulp);
    }
}

#[test]
fn infinities_and_nan_stay_visible() {
    const INF: f32 = f32::INFINITY;
    for (backend, device) in devices() {
        let loss = |row: [f32; 3], target: u32| {
            let x = Tensor::<2>::from_data([row], &device);
            f64s(cross_entropy_rows(x, &[0].into(), &[target].into(), LossReduction::Sum))[0]
        };
        assert_eq!(loss([1e30, 0.0, -1e30], 0), 0.0, "{backend}");
        assert_eq!(loss([1e30, 0.0, 0.0], 1), f64::from(1e30f32));
        assert_eq!(loss([0.0, -INF, -INF], 0), 0.0);
        assert_eq!(loss([0.0, -INF, 0.0], 1), f64::INFINITY);
        assert!(loss([f32::NAN, 0.0, 0.0], 1).is_nan());
        assert!(loss([INF, 0.0, 0.0], 1).is_nan());
        assert!(loss([-INF; 3], 1).is_nan());
    }
}

#[test]
fn without_rows_zero_is_tracked() {
    for reduction in BOTH {
        let [loss, grad] = Case::new(4, 3, 0, reduction, 1).run(&Device::flex(), false);
        assert_eq!((loss, grad), (vec![0.0], vec![0.0; 12]));
    }
}

#[test]
fn errors() {
    let x = || Tensor::<2>::zeros([4, 3], &Device::flex());
    let text = |rows: &[u32], targets: &[u32]| -> String {
        let r: Result<Tensor<1>, OpsError> =
            try_cross_entropy_rows(x(), &rows.into(), &targets.into(), LossReduction::Mean);
        r.unwrap_err().to_string()
    };
    assert_eq!(
        text(&[0, 4], &[0, 0]),
        "cross_entropy_rows: `rows[1]` must lie in 0..4 (rows of `logits`), got 4; number them from 0"
    );
    assert_eq!(
        text(&[0, 1], &[3, 0]),
        "cross_entropy_rows: `targets[0]` must lie in 0..3 (classes of `logits`), got 3; number them from 0"
    );
    assert_eq!(
        text(&[0, 1], &[0]),
        "cross_entropy_rows: `targets` must have 2 rows (one per entry of `rows`), got 1; give as many rows"
    );
}
