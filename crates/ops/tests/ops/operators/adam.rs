//! A step of Adam against the formula in f64.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::{
    AdamDecay, AdamStep, adam_step, adam_step_rows, try_adam_step, try_adam_step_rows,
};

use crate::numerics::half_types::HALVES;
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads};

pub(crate) const DECAYS: [AdamDecay; 3] =
    [AdamDecay::None, AdamDecay::L2(0.01), AdamDecay::Decoupled(0.1)];

fn step(time: usize, decay: AdamDecay) -> AdamStep {
    AdamStep { lr: 0.01, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, time, decay }
}

/// Runs ten steps. Returns the parameter and both moments.
pub(crate) fn run(device: &Device, dtype: DType, n: usize, decay: AdamDecay) -> [Vec<f64>; 3] {
    let tensor =
        |data: Vec<f64>| Tensor::<1>::from_data(TensorData::new(data, [n]), (device, dtype));
    let (mut p, mut m, mut v) = (tensor(numbers(1, n)), tensor(vec![0.0; n]), tensor(vec![0.0; n]));
    for time in 1..=10 {
        (p, m, v) = adam_step(p, tensor(numbers(10 + time as u64, n)), m, v, step(time, decay));
    }
    [f64s(p), f64s(m), f64s(v)]
}

/// The formula of PyTorch's documentation, in f64.
fn formula(n: usize, decay: AdamDecay) -> [Vec<f64>; 3] {
    let (mut p, mut m, mut v) = (numbers(1, n), vec![0.0; n], vec![0.0; n]);
    let (b1, b2, eps, lr) = (f64::from(0.9f32), f64::from(0.999f32), f64::from(1e-8f32), 0.01);
    for time in 1..=10 {
        let grad = numbers(10 + time as u64, n);
        for i in 0..n {
            let mut g = grad[i];
            match decay {
                AdamDecay::None => {}
                AdamDecay::L2(penalty) => g += f64::from(penalty) * p[i],
                AdamDecay::Decoupled(rate) => p[i] -= lr * f64::from(rate) * p[i],
            }
            m[i] = b1 * m[i] + (1.0 - b1) * g;
            v[i] = b2 * v[i] + (1.0 - b2) * g * g;
            let (m, v) = (m[i] / (1.0 - b1.powi(time)), v[i] / (1.0 - b2.powi(time)));
            p[i] -= lr * m / (v.sqrt() + eps);
        }
    }
    [p, m, v]
}

#[test]
fn follows_the_formula() {
    for (backend, device) in devices() {
        for decay in DECAYS {
            for n in [1, 7, 100] {
                let want = formula(n, decay);
                let (double, single) =
                    (run(&device, DType::F64, n, decay), run(&device, DType::F32, n, decay));
                for i in 0..3 {
                    // β and its powers are f32, so parameters differ by 1e-5 of the ten steps of 0.01; a penalty
                    // propagates the difference to the moments.
                    let tolerance =
                        if i == 0 || matches!(decay, AdamDecay::L2(_)) { 1e-6 } else { 1e-12 };
                    assert_close(
                        &format!("{backend}, {decay:?}, {i}"),
                        &double[i],
                        &want[i],
                        tolerance,
                    );
                    assert_close(
                        &format!("{backend}, {decay:?}, {i}, f32"),
                        &single[i],
                        &want[i],
                        2e-6,
                    );
                }
            }
        }
    }
}

#[test]
fn any_number_of_threads() {
    for (backend, device) in devices() {
        for dtype in [DType::F32, DType::F64] {
            assert_same_bits_on_threads(format_args!("{backend}, {dtype:?}"), || {
                run(&device, dtype, 300_001, DECAYS[1]).concat()
            });
        }
    }
}

#[test]
fn what_others_hold_stays() {
    for (_, device) in devices() {
        let ones = Tensor::<2>::ones([3, 2], &device);
        let zeros = Tensor::<2>::zeros([3, 2], &device);
        let (p, m, _) = adam_step(
            ones.clone(),
            ones.clone(),
            zeros.clone(),
            zeros.clone(),
            step(1, AdamDecay::None),
        );
        assert_eq!((f64s(ones), f64s(zeros)), (vec![1.0; 6], vec![0.0; 6]));
        assert!(
            f64s(p).iter().all(|p| (p - 0.99).abs() < 1e-6)
                && f64s(m).iter().all(|m| (m - 0.1).abs() < 1e-6)
        );
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let device = Device::flex();
    for (dtype, ulp) in HALVES {
        for decay in DECAYS {
            let one = |dtype| {
                let x = Tensor::<1>::from_data([1.0, -0.5, 2.0], (&device, dtype));
                let zeros = || Tensor::<1>::zeros([3], (&device, dtype));
                let (p, m, v) = adam_step(x.clone(), x, zeros(), zeros(), step(1, decay));
                [f64s(p), f64s(m), f64s(v)].concat()
            };
            assert_close(&format!("{dtype:?}"), &one(dtype), &one(DType::F32), ulp);
        }
    }
}

#[test]
fn errors() {
    let device = Device::flex();
    let t = |n: usize| Tensor::<1>::zeros([n], &device);
    let e =
        try_adam_step(t(3), t(2), t(3), t(3), step(1, AdamDecay::None)).unwrap_err().to_string();
    assert_eq!(
        e,
        "adam_step: `grad` must have shape [3], got [2]; transpose or reshape it, or correct the other operands"
    );
    let e =
        try_adam_step(t(3), t(3), t(3), t(4), step(1, AdamDecay::None)).unwrap_err().to_string();
    assert_eq!(
        e,
        "adam_step: `moment_2` must have shape [3], got [4]; transpose or reshape it, or correct the other operands"
    );
    let double = Tensor::<1>::zeros([3], (&device, DType::F64));
    let e =
        try_adam_step(t(3), t(3), double, t(3), step(1, AdamDecay::None)).unwrap_err().to_string();
    assert_eq!(e, "adam_step: `moment_1` is F64 and `param` is F32; cast one of them");
    let e =
        try_adam_step(t(3), t(3), t(3), t(3), step(0, AdamDecay::None)).unwrap_err().to_string();
    assert_eq!(e, "adam_step: `step.time` must be at least 1, got 0");
}

#[test]
#[should_panic(expected = "adam_step: an update is not differentiable")]
fn tracked_tensors_are_refused() {
    let t = || Tensor::<1>::zeros([3], &Device::flex().autodiff());
    let _ = adam_step(t().require_grad(), t(), t(), t(), step(1, AdamDecay::None));
}

/// The given rows are updated as a separate tensor would be; the remaining rows are kept.
pub(crate) fn some_rows(device: &Device, dtype: DType) {
    let (rows, width) = (7, 3);
    let tensor = |data: &[f64], rows: usize| {
        Tensor::<2>::from_data(TensorData::new(data.to_vec(), [rows, width]), (device, dtype))
    };
    for ids in [vec![], vec![0u32, 2, 6], vec![3], (0..7).collect()] {
        let ids: std::sync::Arc<[u32]> = ids.into();
        let all: [Vec<f64>; 3] =
            [1, 2, 3].map(|seed| numbers(seed, rows * width).iter().map(|x| x.abs()).collect());
        let part = |x: &[f64]| {
            ids.iter().flat_map(|&i| x[i as usize * width..][..width].to_vec()).collect::<Vec<_>>()
        };
        let grad = tensor(&numbers(4, ids.len() * width), ids.len());
        let step = step(3, AdamDecay::L2(0.01));
        let [p, m, v] = [0, 1, 2].map(|i| tensor(&all[i], rows));
        let held = m.clone();
        let (p, m, v) = adam_step_rows(p, grad.clone(), m, v, &ids, step);
        assert_eq!(f64s(held), f64s(tensor(&all[1], rows)));
        let alone = (!ids.is_empty()).then(|| {
            let [p, m, v] = [0, 1, 2].map(|i| tensor(&part(&all[i]), ids.len()));
            adam_step(p, grad, m, v, step)
        });
        let alone = alone.map_or([vec![], vec![], vec![]], |(p, m, v)| [p, m, v].map(f64s));
        for (i, got) in [p, m, v].into_iter().enumerate() {
            let mut want = f64s(tensor(&all[i], rows));
            for (k, &id) in ids.iter().enumerate() {
                want[id as usize * width..][..width]
                    .copy_from_slice(&alone[i][k * width..][..width]);
            }
            assert_eq!(f64s(got), want, "{dtype:?} {ids:?} {i}");
        }
    }
}

#[test]
fn of_some_rows() {
    for (_, device) in devices() {
        some_rows(&device, DType::F32);
        some_rows(&device, DType::F64);
    }
}

#[test]
fn rows_that_are_refused() {
    let device = Device::flex();
    let zeros = |rows: usize| Tensor::<2>::zeros([rows, 2], &device);
    let run = |ids: &[u32], grad: usize, time: usize| {
        let step = step(time, AdamDecay::None);
        try_adam_step_rows(zeros(4), zeros(grad), zeros(4), zeros(4), &ids.into(), step)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        run(&[1, 4], 2, 1),
        "adam_step_rows: `ids[1]` must lie in 0..4 (rows of `param`), got 4; number them from 0"
    );
    assert_eq!(
        run(&[2, 2], 2, 1),
        "adam_step_rows: `ids[1]` must be above 2 (they ascend, each once), got 2; sort them and remove repeats"
    );
    assert_eq!(
        run(&[2], 2, 1),
        "adam_step_rows: `grad` must have 1 rows (one per id), got 2; give as many rows"
    );
    assert_eq!(run(&[2], 1, 0), "adam_step_rows: `step.time` must be at least 1, got 0");
    let step = step(1, AdamDecay::None);
    let wide = Tensor::<2>::zeros([4, 3], &device);
    let e = try_adam_step_rows(zeros(4), zeros(1), wide, zeros(4), &[0].into(), step).unwrap_err();
    assert_eq!(
        e.to_string(),
        "adam_step_rows: `moment_1` must have shape [4, 2], got [4, 3]; transpose or reshape it, or correct the other operands"
    );
}
