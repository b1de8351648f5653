//! Applies epilogues: bias, activation and dropout in one pass.

mod call;
mod operator;
pub(crate) mod reference;

use burn_gnn_plan::{Activation, EpiloguePlan, RowDropout};

pub(crate) use operator::Epilogue;

use burn::tensor::Tensor;

use crate::check::{accept, check_dtype, check_rows, check_same};
use crate::dense::precision::{enter, enter_if};
use crate::error::OpsError;
use crate::operator::{operands, reference as plain, tensor};

const NAME: &str = "bias_activation";

/// Bias, activation and dropout in one pass: `dropout(activation(x + bias))`.
///
/// # Shapes
/// - `x`: `[rows, columns]`; `bias`: `[columns]`
/// - returns `[rows, columns]`
///
/// # Semantics
/// The mask of a row is a function of its original id, as in [`dropout`](crate::dropout()): entry `(r, c)` is kept, and
/// multiplied by `1 / (1 - prob)`, if `stream.uniform(ids[r], c) >= prob`. f16 and bf16 are computed in f32 and rounded
/// once.
///
/// # Gradients
/// Saved for backward: for a ReLU one bit per entry (whether ReLU and dropout let it through); for another activation
/// the result, from which its derivative is computed (see [`Activation`]); without activation nothing. Dropout masks of
/// the latter two are drawn again. The gradient of the bias is summed over fixed blocks of rows and then over blocks in
/// order, so that it has the same bits for any number of threads. An entry that is dropped or cut off by a ReLU has
/// gradient 0, also where the incoming gradient is infinite. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_bias_activation`] returns.
///
/// # Cost
/// Forward reads `x` once and writes the result once. Backward reads the gradient (and the bits or the result) once and
/// writes the gradient of `x` once; it sums the gradient of the bias in the same pass. On Flex a tensor without other
/// references is overwritten.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Activation, bias_activation};
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, -2.0], [-3.0, 4.0]], &device);
/// let bias = Tensor::<1>::from_data([0.5, 1.0], &device);
/// let y = bias_activation(x, Some(bias), Activation::Relu, None);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [1.5, 0.0, 0.0, 5.0]);
/// ```
#[track_caller]
pub fn bias_activation(
    x: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    dropout: Option<&RowDropout>,
) -> Tensor<2> {
    accept(try_bias_activation(x, bias, activation, dropout))
}

/// [`bias_activation`] that returns an error instead of panicking.
///
/// # Errors
/// A bias whose length is not the feature size; different element types or devices; an element type without a kernel; a
/// parameter of the activation out of range; a dropout probability outside `[0, 1)`; dropout ids that are not one per
/// row.
pub fn try_bias_activation(
    x: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    dropout: Option<&RowDropout>,
) -> Result<Tensor<2>, OpsError> {
    let x = enter(NAME, "x", x)?;
    let bias = enter_if(NAME, "bias", bias)?;
    let plan = plan(&x, bias.as_ref(), activation, dropout)?;
    if bias.is_none() && plan.is_identity() {
        return Ok(x);
    }
    Ok(tensor(Epilogue { plan, biased: bias.is_some(), open: false }, operands(Some(x), bias)))
}

/// [`bias_activation`] in plain tensor operations, differentiated by Burn: the reference for tests of the kernels.
///
/// # Panics
/// As [`bias_activation`].
#[track_caller]
pub fn bias_activation_reference(
    x: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    dropout: Option<&RowDropout>,
) -> Tensor<2> {
    let plan = accept(plan(&x, bias.as_ref(), activation, dropout));
    plain(Epilogue { plan, biased: bias.is_some(), open: false }, operands(Some(x), bias))
}

fn plan(
    x: &Tensor<2>,
    bias: Option<&Tensor<1>>,
    activation: Activation,
    dropout: Option<&RowDropout>,
) -> Result<EpiloguePlan, OpsError> {
    check_dtype(NAME, "x", x.dtype())?;
    if let Some(bias) = bias {
        check_rows(NAME, "bias", "one per feature of `x`", x.dims()[1], bias.dims()[0])?;
        check_same(NAME, ("bias", bias), ("x", x))?;
    }
    Ok(EpiloguePlan::new(x.dims(), activation, dropout)?)
}
