//! Computes activations in Burn primitives.

use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::Activation;

use crate::primitives::bools;

/// The activation, such that Burn differentiates it as kernels do.
pub(crate) fn value<B: Backend>(x: FloatTensor<B>, f: Activation) -> FloatTensor<B> {
    let above = B::float_greater_elem(x.clone(), 0f32.into(), bools::<B>(&x));
    let low = match f {
        Activation::None => return x,
        // The gradient at 0 is 0.
        Activation::Relu => {
            let closed = B::float_lower_equal_elem(x.clone(), 0f32.into(), bools::<B>(&x));
            return B::float_mask_fill(x, closed, 0f32.into());
        }
        Activation::LeakyRelu(slope) => B::float_mul_scalar(x.clone(), slope.into()),
        Activation::Elu(alpha) => {
            // Masks positive entries, whose exponential and its derivative may overflow.
            let below = B::float_mask_fill(x.clone(), above.clone(), 0f32.into());
            B::float_mul_scalar(B::float_sub_scalar(B::float_exp(below), 1f32.into()), alpha.into())
        }
    };
    B::float_mask_where(low, above, x)
}

/// The gradient of the argument, from the result `y` and its gradient. Where a ReLU is 0 the gradient is set to 0 and not
/// multiplied by 0, so that an infinite gradient does not become NaN.
pub(crate) fn chain<B: Backend>(
    y: FloatTensor<B>,
    grad: FloatTensor<B>,
    f: Activation,
) -> FloatTensor<B> {
    let low = match f {
        Activation::None => return grad,
        Activation::Relu => {
            let closed = B::float_lower_equal_elem(y.clone(), 0f32.into(), bools::<B>(&y));
            return B::float_mask_fill(grad, closed, 0f32.into());
        }
        Activation::LeakyRelu(slope) => B::float_mul_scalar(grad.clone(), slope.into()),
        Activation::Elu(alpha) => {
            B::float_mul(grad.clone(), B::float_add_scalar(y.clone(), alpha.into()))
        }
    };
    let above = B::float_greater_elem(y.clone(), 0f32.into(), bools::<B>(&y));
    B::float_mask_where(low, above, grad)
}
