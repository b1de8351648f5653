//! Dropout masks and initial values are functions of original ids.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_ops::{Stream, dropout, glorot_uniform, uniform_rows};

use crate::{devices, f64s, numbers};
use burn_gnn_testutil::assert_close;

fn matrix(rows: usize, cols: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(numbers(1, rows * cols), [rows, cols]), (device, DType::F64))
}

#[test]
fn entries_follow_the_stream() {
    let stream = Stream::new(11, "layer", 3);
    let ids = [9u64, 1 << 40, 0, 5];
    for (_, device) in devices() {
        for cols in [1, 3, 4, 9] {
            for prob in [0.0, 0.25, 0.7] {
                let x = matrix(4, cols, &device);
                let want: Vec<f64> = f64s(x.clone())
                    .into_iter()
                    .enumerate()
                    .map(|(i, v)| {
                        let keep = stream.uniform(ids[i / cols], (i % cols) as u64) >= prob;
                        if keep { v / (1.0 - prob) } else { 0.0 }
                    })
                    .collect();
                assert_close(
                    "dropout",
                    &f64s(dropout(x, prob, stream, Some(ids.into()))),
                    &want,
                    1e-15,
                );
            }
        }
    }
}

#[test]
fn gradients_have_the_same_mask() {
    let stream = Stream::new(1, "layer", 0);
    for (_, device) in devices() {
        let x = matrix(50, 6, &device.autodiff()).require_grad();
        let y = dropout(x.clone(), 0.4, stream, None);
        let grads = y.clone().sum().backward();
        let ratio: Vec<f64> =
            f64s(y).into_iter().zip(f64s(x.clone())).map(|(y, x)| y / x).collect();
        assert_close("d x", &f64s(x.grad(&grads).unwrap()), &ratio, 1e-12);
        let dropped = ratio.iter().filter(|&&r| r == 0.0).count() as f64 / 300.0;
        assert!((dropped - 0.4).abs() < 0.1, "{dropped}");
    }
}

#[test]
fn ids_carry_the_mask_and_threads_do_not_matter() {
    let stream = Stream::new(2, "layer", 0);
    for (_, device) in devices() {
        let (rows, cols) = (3000, 17);
        let x = matrix(rows, cols, &device);
        let forward = f64s(dropout(x.clone(), 0.5, stream, None));
        let descending: Vec<u64> = (0..rows as u64).rev().collect();
        let y = f64s(dropout(x.flip([0]), 0.5, stream, Some(descending.into())));
        let back: Vec<f64> = y.chunks(cols).rev().flatten().copied().collect();
        assert_eq!(forward, back);
        for n in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            let again =
                pool.install(|| f64s(dropout(matrix(rows, cols, &device), 0.5, stream, None)));
            assert!(again == forward, "{n} threads");
        }
        assert_eq!(dropout(Tensor::<2>::zeros([0, 3], &device), 0.5, stream, None).dims(), [0, 3]);
        assert_eq!(dropout(Tensor::<2>::zeros([3, 0], &device), 0.5, stream, None).dims(), [3, 0]);
    }
}

#[test]
fn initial_values_take_any_dtype() {
    let data = glorot_uniform(Stream::new(0, "w", 0), 4, 2, [4, 2]);
    for (_, device) in devices() {
        let double = Tensor::<2>::from_data(data.clone(), (&device, DType::F64));
        let single = Tensor::<2>::from_data(data.clone(), (&device, DType::F32));
        assert_eq!(single.dtype(), DType::F32);
        assert_close("cast", &f64s(single), &f64s(double), 1e-7);
    }
    let a = uniform_rows(Stream::new(0, "w", 0), Some(&[3, 8]), 2, 2, 0.0, 1.0);
    let b = uniform_rows(Stream::new(0, "w", 0), Some(&[8, 3]), 2, 2, 0.0, 1.0);
    let rows = |d: TensorData| d.try_into_vec::<f64>().unwrap();
    assert_eq!(rows(a)[..2], rows(b)[2..]);
}
