//! Hand-written gradients against central differences in f64.

use burn::tensor::TensorData;
use burn_gnn_ops::{BinaryOp, Reduce};

use crate::{Call, KINDS, assert_near, devices, graphs};

/// Central differences of the loss in every entry of one operand.
fn differences(
    call: &Call,
    device: &burn::tensor::Device,
    side: fn(&mut Call) -> &mut TensorData,
) -> Vec<f64> {
    // The error of central differences is about step² / 6 plus 1e-16 / step.
    let step = 1e-5;
    let n = side(&mut call.clone()).num_elements();
    (0..n)
        .map(|i| {
            let moved = |by: f64| {
                let mut call = call.clone();
                side(&mut call).as_mut_slice::<f64>().unwrap()[i] += by;
                call.loss(device)
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        })
        .collect()
}

#[test]
fn every_op_reducer_and_broadcast() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                for (i, (kind, lhs, rhs)) in KINDS.into_iter().enumerate() {
                    let what = format!("{backend}, {op:?} {reduce:?}, {kind}");
                    let call = Call::new(&relation, op, reduce, lhs, rhs, i as u64 + 1);
                    let got = call.kernel(&device);
                    assert_near(
                        &format!("{what}, d lhs"),
                        &got.lhs,
                        &differences(&call, &device, |c| &mut c.lhs),
                        1e-7,
                    );
                    assert_near(
                        &format!("{what}, d rhs"),
                        &got.rhs,
                        &differences(&call, &device, |c| &mut c.rhs),
                        1e-7,
                    );
                    if op.uses_lhs() {
                        assert!(
                            got.lhs.iter().any(|&g| g != 0.0),
                            "{what}: a gradient of zeros proves nothing"
                        );
                    }
                }
            }
        }
    }
}
