//! Gradients that are 0 are 0, not -0: the sign would show in `1 / x` and in comparisons of bits.

use burn::tensor::{DType, Tensor};
use burn_gnn_ops::*;

use crate::devices;
use burn_gnn_testutil::graphs;

/// Of the operand that is subtracted: on nodes by GSpMM and by the kernel of edges, with broadcast axes and without.
#[test]
fn of_a_difference() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for target in Target::ALL {
            for columns in [3, 1] {
                let ones = |rows, columns| {
                    Tensor::<2>::ones([rows, columns], (&device, DType::F64)).require_grad()
                };
                let (x, y) = (ones(8, 3), ones(target.rows(&relation), columns));
                let out: Tensor<2> =
                    gsddmm(&relation, SddmmOp::Sub, Target::Edge, target, x, y.clone());
                // Edges 0 to 3 get no gradient: they, and nodes without edges, sum up to 0.
                let mask = Tensor::<1>::from_data(
                    [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
                    (&device, DType::F64),
                );
                let grads = (out * mask.unsqueeze_dim(1)).sum().backward();
                let d = y.grad(&grads).unwrap().into_data().try_to_vec::<f64>().unwrap();
                let what = format!("{backend}, {target:?}, {columns} columns: {d:?}");
                assert!(d.contains(&0.0), "{what}, nothing is 0");
                assert!(d.iter().all(|d| d.to_bits() != (-0.0f64).to_bits()), "{what}");
            }
        }
    }
}
