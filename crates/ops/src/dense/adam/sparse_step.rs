//! Computes a step of Adam for some rows of an embedding table.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_plan::{AdamRows, AdamStep};

use crate::check::{accept, check_dtype, check_rows, check_same, check_shape};
use crate::dense::adam::step::{AdamStepped, stepped};
use crate::error::OpsError;
use crate::operator::call;

const NAME: &str = "adam_step_rows";

/// [`adam_step`](crate::adam_step) for rows `ids` of a table, whose gradient has these rows only: for a large embedding
/// table of which a batch reads a few rows. The remaining rows keep their values and moments.
///
/// # Shapes
/// - `param`, `moment_1`, `moment_2`: `[rows, width]`; `ids`: ascending, each once; `grad`: `[ids.len(), width]`
/// - returns parameter and moments, `[rows, width]`
///
/// # Semantics
/// `step.time` counts the steps of the table, as in PyTorch's `SparseAdam`: a row that is updated for the first time at
/// step 100 gets the bias correction of a row with 99 gradients of 0. Not differentiable: tracked tensors panic.
///
/// # Panics
/// With the text of the error that [`try_adam_step_rows`] returns.
///
/// # Cost
/// Proportional to the updated rows if the tensors have no other references; otherwise the table is copied first.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{AdamDecay, AdamStep, adam_step_rows};
/// let device = Device::flex();
/// let zeros = || Tensor::<2>::zeros([1000, 2], &device);
/// let grad = Tensor::<2>::from_data([[0.5, -2.0]], &device);
/// let step = AdamStep { lr: 0.1, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, time: 1, decay: AdamDecay::None };
/// let (p, ..) = adam_step_rows(zeros(), grad, zeros(), zeros(), &[7].into(), step);
/// let p = p.into_data().try_to_vec::<f32>().unwrap();
/// assert!((p[14] + 0.1).abs() < 1e-5 && p.iter().filter(|&&x| x == 0.0).count() == 1998);
/// ```
#[track_caller]
pub fn adam_step_rows(
    param: Tensor<2>,
    grad: Tensor<2>,
    moment_1: Tensor<2>,
    moment_2: Tensor<2>,
    ids: &Arc<[u32]>,
    step: AdamStep,
) -> AdamStepped<2> {
    accept(try_adam_step_rows(param, grad, moment_1, moment_2, ids, step))
}

/// [`adam_step_rows`] that returns an error instead of panicking.
///
/// # Errors
/// Different shapes, element types or devices; an element type without a kernel; an id out of range; ids that are not
/// strictly ascending; a step numbered 0.
pub fn try_adam_step_rows(
    param: Tensor<2>,
    grad: Tensor<2>,
    moment_1: Tensor<2>,
    moment_2: Tensor<2>,
    ids: &Arc<[u32]>,
    step: AdamStep,
) -> Result<AdamStepped<2>, OpsError> {
    check_dtype(NAME, "param", param.dtype())?;
    let [rows, width] = param.dims();
    check_rows(NAME, "grad", "one per id", ids.len(), grad.dims()[0])?;
    let shapes = [
        ("grad", &grad, [ids.len(), width]),
        ("moment_1", &moment_1, [rows, width]),
        ("moment_2", &moment_2, [rows, width]),
    ];
    for (arg, x, expected) in shapes {
        check_shape(NAME, arg, &expected, &x.dims())?;
        check_same(NAME, (arg, x), ("param", &param))?;
    }
    let op = AdamRows::new(step, ids, rows)?;
    // Not every backend supports tensors without rows.
    if ids.is_empty() || width == 0 {
        return Ok((param, moment_1, moment_2));
    }
    Ok(stepped(call(op, [param, grad, moment_1, moment_2].map(Tensor::into_dispatch))))
}
