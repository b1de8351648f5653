//! GSpMM gives the same bits for any number of threads, and sums half floats in f32.

use burn::tensor::{DType, Device, Tensor};
use burn_gnn_ops::{BinaryOp, Reduce, gspmm};

use crate::calls::{Call, Gspmm};
use burn_gnn_testutil::graphs;

#[test]
fn any_number_of_threads() {
    // Large enough for dozens of pieces of work, with one destination that has a tenth of the edges.
    let relation = graphs::random(9000, 7000, 60_000, 3.0);
    for op in [BinaryOp::CopyLhs, BinaryOp::CopyRhs, BinaryOp::Mul, BinaryOp::Div] {
        for reduce in Reduce::ALL {
            for kind in
                [(&[33usize][..], &[33usize][..]), (&[48], &[1]), (&[4, 8], &[4, 1]), (&[1], &[31])]
            {
                Call::new(&relation, Gspmm(op, reduce), kind, 8)
                    .check_threads(&format!("{kind:?}"));
            }
        }
    }
}

#[test]
fn half_floats_are_f32_rounded_once() {
    let relation = graphs::random(30, 20, 400, 2.0);
    for operation in Gspmm::all() {
        for kind in [(&[9usize][..], &[9usize][..]), (&[9], &[1]), (&[2, 1], &[1, 3])] {
            Call::new(&relation, operation, kind, 5).check_halves(&format!("{kind:?}"));
        }
    }
}

#[test]
fn half_sums_do_not_stall() {
    // 3000 ones: a sum in f16 would stop at 2048, a sum in bf16 at 256.
    let relation = graphs::relation(1, 1, &vec![(0, 0); 3000]);
    for dtype in [DType::F16, DType::BF16] {
        let x = burn::tensor::Tensor::<2>::ones([1, 1], (&Device::flex(), dtype));
        let sum = crate::f64s(burn_gnn_ops::copy_u_sum(&relation, x))[0];
        assert!((sum - 3000.0).abs() <= 8.0, "{dtype:?}: {sum}");
    }
}

#[test]
fn half_gradients_do_not_stall() {
    // One source of 3000 out-edges: its gradient is the sum of 3000 ones.
    let relation = graphs::relation(1, 3000, &(0..3000).map(|v| (0, v)).collect::<Vec<_>>());
    let device = Device::flex().autodiff();
    for dtype in [DType::F16, DType::BF16] {
        for weighted in [false, true] {
            let x = burn::tensor::Tensor::<2>::ones([1, 1], (&device, dtype)).require_grad();
            let ones = burn::tensor::Tensor::<1>::ones([3000], (&device, dtype));
            let y: burn::tensor::Tensor<2> = if weighted {
                burn_gnn_ops::u_mul_e_sum(&relation, x.clone(), ones)
            } else {
                burn_gnn_ops::copy_u_sum(&relation, x.clone())
            };
            let grads = y.sum().backward();
            let d = x.grad(&grads).unwrap();
            assert_eq!(d.dtype(), dtype);
            let d = crate::f64s(d)[0];
            assert!((d - 3000.0).abs() <= 8.0, "{dtype:?}, weighted {weighted}: {d}");
        }
    }
}

#[test]
fn small_shares_of_a_mean_are_not_lost() {
    // 5e-5 over 3000 edges is below the smallest f16; the sum of 128 products is not.
    let relation = graphs::relation(3000, 1, &(0..3000).map(|u| (u, 0)).collect::<Vec<_>>());
    let device = Device::flex().autodiff();
    let dtype = DType::F16;
    let x = Tensor::<2>::ones([3000, 128], (&device, dtype)).require_grad();
    let w = Tensor::<1>::ones([3000], (&device, dtype)).require_grad();
    let out: Tensor<2> = gspmm(&relation, BinaryOp::Mul, Reduce::Mean, x, w.clone());
    let grads = (out * Tensor::<2>::full([1, 128], 5e-5, (&device, dtype))).sum().backward();
    let d = crate::f64s(w.grad(&grads).unwrap());
    assert!(d.iter().all(|&d| (d - 128.0 * 5e-5 / 3000.0).abs() < 1e-7), "{:?}", &d[..3]);
}
