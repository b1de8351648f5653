//! Activations, and their derivatives as functions of the result.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::Activation;
use cubecl::prelude::*;

use crate::device::launch::{address, arg, empty, grid, wide};

/// The function of an activation, and its parameter.
pub(crate) fn kind(activation: Activation) -> (Kind, f64) {
    match activation {
        Activation::None => (Kind::None, 0.0),
        Activation::Relu => (Kind::Relu, 0.0),
        Activation::LeakyRelu(slope) => (Kind::LeakyRelu, slope),
        Activation::Elu(alpha) => (Kind::Elu, alpha),
    }
}

/// The function of an activation, as a compile-time argument of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    None,
    Relu,
    LeakyRelu,
    Elu,
}

/// Applies an activation to a vector.
#[cube]
pub(crate) fn activate<A: Float, N: Size>(
    x: Vector<A, N>,
    parameter: A,
    #[comptime] kind: Kind,
) -> Vector<A, N> {
    let zero = Vector::<A, N>::new(A::new(0.0_f32));
    let parameter = Vector::<A, N>::new(parameter);
    if comptime!(kind == Kind::None) {
        x
    } else if comptime!(kind == Kind::Relu) {
        // -0 becomes 0; NaN is not at most 0 and stays.
        select_many(x.less_equal(&zero), zero, x)
    } else if comptime!(kind == Kind::LeakyRelu) {
        select_many(x.greater_than(&zero), x, x * parameter)
    } else {
        select_many(
            x.greater_than(&zero),
            x,
            parameter * (x.exp() - Vector::<A, N>::new(A::new(1.0_f32))),
        )
    }
}

/// `act'(y) · g`. For a ReLU with `y = 0` it selects 0 instead of multiplying by 0, so an infinite gradient does not become
/// NaN.
#[cube]
pub(crate) fn pulled<A: Float>(y: A, g: A, parameter: A, #[comptime] kind: Kind) -> A {
    let mut low = A::new(0.0_f32);
    if comptime!(kind == Kind::LeakyRelu) {
        low = g * parameter;
    } else if comptime!(kind == Kind::Elu) {
        low = g * (y + parameter);
    }
    if comptime!(kind == Kind::None) {
        g
    } else if comptime!(kind == Kind::Relu) {
        // The comparison is false for NaN, so NaN propagates.
        select(y <= A::new(0.0_f32), low, g)
    } else {
        select(y > A::new(0.0_f32), g, low)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn chain_kernel<F: Float, A: Float>(
    y: &[F],
    grad: &[F],
    out: &mut [A],
    parameter: InputScalar,
    n: usize,
    #[comptime] kind: Kind,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    out[pos] =
        pulled::<A>(A::cast_from(y[pos]), A::cast_from(grad[pos]), parameter.get::<A>(), kind);
}

/// `act'(out) · grad` in the accumulator type. `out` is read only if there is an activation.
pub(crate) fn chain(
    grad: &CubeTensor,
    out: Option<CubeTensor>,
    activation: Activation,
) -> CubeTensor {
    let (sums, n) = (wide(grad.dtype), grad.meta.num_elements());
    let (kind, parameter) = kind(activation);
    let (Some(out), true) = (out.filter(|_| kind != Kind::None), n > 0) else {
        return cast(grad.clone(), sums);
    };
    let out = into_contiguous(out);
    let h = empty(grad, grad.meta.shape().clone(), sums);
    let (count, dim) = grid(&h.client, n);
    // SAFETY: all three tensors have `n` entries, which the callers have checked; threads beyond them return early.
    unsafe {
        chain_kernel::launch_unchecked(
            &h.client,
            count,
            dim,
            address([grad, &h], n),
            arg(&out),
            arg(grad),
            arg(&h),
            InputScalar::new(parameter, elem(sums)),
            n,
            kind,
            [elem(grad.dtype), elem(sums)],
        );
    }
    h
}
