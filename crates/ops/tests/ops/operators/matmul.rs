//! Products with weights, also added to a sum, against loops and finite differences, and corner cases.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::{matmul_rows, matmul_rows_onto, try_matmul_rows, try_matmul_rows_onto};

use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, central_differences};

/// `n`, `k`, `m`; the last ones are cut into blocks by the product and shared among threads, of the very last one
/// gradients of weights are summed in runs of rows.
const SIZES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [9, 33, 16],
    [700, 70, 11],
    [600, 300, 16],
    [3, 4, 5],
    [7, 1, 2],
    [0, 3, 2],
    [3, 0, 2],
    [3, 2, 0],
    [600, 257, 64],
    [2000, 64, 129],
    [4100, 5, 20],
];

fn tensor(data: &[f64], shape: [usize; 2], device: &Device, dtype: DType) -> Tensor<2> {
    Tensor::from_data(TensorData::new(data.to_vec(), shape), (device, dtype))
}

/// `sum + x · w` by loops.
fn loops(x: &[f64], w: &[f64], sum: &[f64], [n, k, m]: [usize; 3]) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        sum[i * m + j] + (0..k).map(|l| x[i * k + l] * w[l * m + j]).sum::<f64>()
    };
    (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
}

#[test]
fn values_and_gradients() {
    for [n, k, m] in SIZES {
        let (x, w, sum, c) =
            (numbers(1, n * k), numbers(2, k * m), numbers(3, n * m), numbers(4, n * m));
        let zeros = vec![0.0; n * m];
        let transposed = |a: &[f64], rows: usize, columns: usize| -> Vec<f64> {
            (0..columns)
                .flat_map(|j| (0..rows).map(move |i| (i, j)))
                .map(|(i, j)| a[i * columns + j])
                .collect()
        };
        let d_x = loops(&c, &transposed(&w, k, m), &vec![0.0; n * k], [n, m, k]);
        let d_w = loops(&transposed(&x, n, k), &c, &vec![0.0; k * m], [k, n, m]);
        for (backend, device) in devices() {
            for (dtype, bound) in [(DType::F64, 1e-11), (DType::F32, 2e-3)] {
                for onto in [false, true] {
                    let what = format!("{n} x {k} x {m}, {backend}, {dtype:?}, onto {onto}");
                    let device = device.clone().autodiff();
                    let leaf =
                        |data: &[f64], shape| tensor(data, shape, &device, dtype).require_grad();
                    let (tx, tw, ts) = (leaf(&x, [n, k]), leaf(&w, [k, m]), leaf(&sum, [n, m]));
                    let y = if onto {
                        matmul_rows_onto(tx.clone(), tw.clone(), ts.clone())
                    } else {
                        matmul_rows(tx.clone(), tw.clone())
                    };
                    assert_eq!(y.dims(), [n, m], "{what}");
                    let grads = (y.clone() * tensor(&c, [n, m], &device, dtype)).sum().backward();
                    assert_close(
                        &what,
                        &f64s(y),
                        &loops(&x, &w, if onto { &sum } else { &zeros }, [n, k, m]),
                        bound,
                    );
                    assert_close(
                        &format!("{what}, d x"),
                        &f64s(tx.grad(&grads).unwrap()),
                        &d_x,
                        bound,
                    );
                    assert_close(
                        &format!("{what}, d w"),
                        &f64s(tw.grad(&grads).unwrap()),
                        &d_w,
                        bound,
                    );
                    if onto {
                        assert_close(
                            &format!("{what}, d sum"),
                            &f64s(ts.grad(&grads).unwrap()),
                            &c,
                            1e-6,
                        );
                    }
                }
            }
        }
    }
}

/// Sums run in f32 and are rounded once, so a result lies within a rounding of the sum over the rounded operands.
#[test]
fn finite_differences() {
    let (n, k, m) = (4, 3, 5);
    let parts = [numbers(1, n * k), numbers(2, k * m), numbers(3, n * m)];
    let cotangent = numbers(4, n * m);
    for (backend, device) in devices() {
        let device = device.autodiff();
        let loss = |parts: &[Vec<f64>; 3], onto: bool| {
            let [x, w, sum] = [(0, [n, k]), (1, [k, m]), (2, [n, m])]
                .map(|(i, s)| tensor(&parts[i], s, &device, DType::F64).require_grad());
            let y = if onto {
                matmul_rows_onto(x.clone(), w.clone(), sum.clone())
            } else {
                matmul_rows(x.clone(), w.clone())
            };
            ((y * tensor(&cotangent, [n, m], &device, DType::F64)).sum(), [x, w, sum])
        };
        for onto in [false, true] {
            let (value, leaves) = loss(&parts, onto);
            let grads = value.backward();
            for (i, leaf) in leaves.iter().enumerate().take(if onto { 3 } else { 2 }) {
                let want = central_differences(parts[i].len(), 1e-6, |at, by| {
                    let mut parts = parts.clone();
                    parts[i][at] += by;
                    loss(&parts, onto).0.into_scalar::<f64>()
                });
                assert_close(
                    &format!("{backend}, onto {onto}, operand {i}"),
                    &f64s(leaf.grad(&grads).unwrap()),
                    &want,
                    1e-8,
                );
            }
        }
    }
}

#[test]
fn sums_of_16_bit_floats_are_rounded_once() {
    let device = Device::flex();
    for [n, k, m] in [[1, 1, 1], [3, 4, 5], [600, 257, 64], [5000, 64, 33], [2000, 64, 129]] {
        for (dtype, ulp) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
            let device = device.clone().autodiff();
            // Rounded operands.
            let leaf = |seed, shape: [usize; 2]| {
                tensor(&numbers(seed, shape[0] * shape[1]), shape, &device, dtype).require_grad()
            };
            let (x, w, sum) = (leaf(1, [n, k]), leaf(2, [k, m]), leaf(3, [n, m]));
            let c = tensor(&numbers(4, n * m), [n, m], &device, dtype);
            let [xs, ws, sums, cs] = [&x, &w, &sum, &c].map(|t| f64s(t.clone()));
            let transposed = |a: &[f64], rows: usize, columns: usize| -> Vec<f64> {
                (0..columns)
                    .flat_map(|j| (0..rows).map(move |i| (i, j)))
                    .map(|(i, j)| a[i * columns + j])
                    .collect()
            };
            let y = matmul_rows_onto(x.clone(), w.clone(), sum.clone());
            let grads = (y.clone() * c).sum().backward();
            let near = |what: &str, got: Tensor<2>, want: &[f64]| {
                for (i, (got, want)) in f64s(got).into_iter().zip(want).enumerate() {
                    // A rounding of the result, and of f32 sums over thousands of terms.
                    let bound = ulp * want.abs() + 2e-3;
                    assert!(
                        (got - want).abs() <= bound,
                        "{what} {n} x {k} x {m} {dtype:?} [{i}]: {got} for {want}"
                    );
                }
            };
            near("y", y, &loops(&xs, &ws, &sums, [n, k, m]));
            near(
                "x · w",
                matmul_rows(x.clone(), w.clone()),
                &loops(&xs, &ws, &vec![0.0; n * m], [n, k, m]),
            );
            near(
                "d x",
                x.grad(&grads).unwrap(),
                &loops(&cs, &transposed(&ws, k, m), &vec![0.0; n * k], [n, m, k]),
            );
            near(
                "d w",
                w.grad(&grads).unwrap(),
                &loops(&transposed(&xs, n, k), &cs, &vec![0.0; k * m], [k, n, m]),
            );
        }
    }
}

/// Blocks and runs start at fixed rows, so results have the same bits for any number of threads.
#[test]
fn sums_of_16_bit_floats_do_not_depend_on_threads() {
    let run = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let device = Device::flex().autodiff();
            let leaf = |seed, shape: [usize; 2]| {
                tensor(&numbers(seed, shape[0] * shape[1]), shape, &device, DType::BF16)
                    .require_grad()
            };
            let (x, w) = (leaf(1, [9000, 64]), leaf(2, [64, 48]));
            let y = matmul_rows(x.clone(), w.clone());
            let grads = (y.clone() * y.clone()).sum().backward();
            [f64s(y), f64s(x.grad(&grads).unwrap()), f64s(w.grad(&grads).unwrap())]
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn views_are_read_as_they_are_seen() {
    for (backend, device) in devices() {
        let [n, k, m] = [5, 3, 4];
        let (x, w) = (numbers(1, k * n), numbers(2, m * k));
        let transposed = |data: &[f64], shape| tensor(data, shape, &device, DType::F64).transpose();
        let entry = |i: usize, j: usize| (0..k).map(|l| x[l * n + i] * w[j * k + l]).sum::<f64>();
        let want: Vec<f64> =
            (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
        assert_close(
            backend,
            &f64s(matmul_rows(transposed(&x, [k, n]), transposed(&w, [m, k]))),
            &want,
            1e-12,
        );
        // Rows from the middle of another tensor.
        let all = tensor(&numbers(5, 9 * k), [9, k], &device, DType::F64);
        let w = tensor(&w[..k * 2], [k, 2], &device, DType::F64);
        let want = f64s(matmul_rows(all.clone(), w.clone()).slice_dim(0, 2..6));
        assert_close(backend, &f64s(matmul_rows(all.slice_dim(0, 2..6), w)), &want, 1e-12);
    }
}

#[test]
fn a_sum_that_others_hold_stays() {
    for (backend, device) in devices() {
        let [x, w, sum] =
            [1, 2, 3].map(|seed| tensor(&numbers(seed, 16), [4, 4], &device, DType::F32));
        let before = f64s(sum.clone());
        let held = sum.clone();
        let y = matmul_rows_onto(x.clone(), w.clone(), sum);
        assert_eq!(f64s(held.clone()), before, "{backend}");
        // A tensor without other references may be overwritten; the result is the same.
        assert_eq!(f64s(matmul_rows_onto(x, w, held)), f64s(y), "{backend}");
    }
}

#[test]
fn what_is_refused() {
    let device = Device::flex();
    let t = |shape: [usize; 2]| Tensor::<2>::zeros(shape, &device);
    let text = |r: Result<Tensor<2>, burn_gnn_ops::OpsError>| r.unwrap_err().to_string();
    assert!(text(try_matmul_rows(t([2, 3]), t([4, 5]))).contains("`w`"));
    assert!(text(try_matmul_rows_onto(t([2, 3]), t([3, 5]), t([3, 5]))).contains("`sum`"));
    assert!(text(try_matmul_rows_onto(t([2, 3]), t([3, 5]), t([2, 4]))).contains("[2, 5]"));
    assert!(
        text(try_matmul_rows_onto(t([2, 3]), t([3, 5]), t([2, 5]).cast(DType::F64)))
            .contains("`sum`")
    );
}
