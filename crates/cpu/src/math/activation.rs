//! Activations and their derivatives, as scalar functions.

use burn_gnn_plan::Activation;

use crate::number::{Acc, Exp};

/// The value and the derivative of an activation.
pub(crate) trait ScalarActivation {
    /// The value at `x`.
    fn value<A: Acc + Exp>(self, x: A) -> A;
    /// The derivative, from the result `y`. To multiply it with a gradient use [`chain`](Self::chain).
    fn slope_from_output<A: Acc>(self, y: A) -> A;
    /// The gradient of the argument, from the result `y` and its gradient. For a ReLU with `y = 0` it selects 0 instead
    /// of multiplying by 0, so an infinite gradient does not become NaN.
    fn chain<A: Acc>(self, y: A, grad: A) -> A;
}

impl ScalarActivation for Activation {
    #[inline(always)]
    fn value<A: Acc + Exp>(self, x: A) -> A {
        match self {
            Self::None => x,
            // -0 becomes 0. The comparison is false for NaN, so NaN propagates.
            Self::Relu => select(x <= A::ZERO, A::ZERO, x),
            Self::LeakyRelu(slope) => select(x > A::ZERO, x, x * A::of_f64(slope)),
            Self::Elu(alpha) => select(x > A::ZERO, x, A::of_f64(alpha) * (x.exp_() - A::ONE)),
        }
    }

    #[inline(always)]
    fn slope_from_output<A: Acc>(self, y: A) -> A {
        match self {
            Self::None => A::ONE,
            Self::Relu => select(y <= A::ZERO, A::ZERO, A::ONE),
            Self::LeakyRelu(slope) => select(y > A::ZERO, A::ONE, A::of_f64(slope)),
            Self::Elu(alpha) => select(y > A::ZERO, A::ONE, y + A::of_f64(alpha)),
        }
    }

    #[inline(always)]
    fn chain<A: Acc>(self, y: A, grad: A) -> A {
        match self {
            Self::None => grad,
            Self::Relu => select(y <= A::ZERO, A::ZERO, grad),
            _ => grad * self.slope_from_output(y),
        }
    }
}

/// A choice between two computed values, without a branch, so that loops vectorise.
#[inline(always)]
fn select<A>(take: bool, a: A, b: A) -> A {
    if take { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::{Activation, ScalarActivation};

    const ALL: [Activation; 5] = [
        Activation::None,
        Activation::Relu,
        Activation::LeakyRelu(0.2),
        Activation::LeakyRelu(0.0),
        Activation::Elu(0.7),
    ];

    #[test]
    fn slope_equals_central_difference() {
        for f in ALL {
            for x in [-30.0f64, -2.0, -0.3, 0.4, 5.0] {
                let step = 1e-6;
                let want = (f.value(x + step) - f.value(x - step)) / (2.0 * step);
                let got = f.slope_from_output(f.value(x));
                assert!((got - want).abs() < 1e-8, "{f:?} at {x}: {got} against {want}");
                assert_eq!(f.chain(f.value(x), 3.0), 3.0 * got);
            }
        }
    }

    #[test]
    fn zero_infinity_and_nan() {
        let slopes = ALL.map(|f| f.slope_from_output(f.value(0.0f64)));
        assert_eq!(slopes, [1.0, 0.0, 0.2, 0.0, 0.7]);
        for f in ALL {
            assert!(f.value(f32::NAN).is_nan(), "{f:?}");
            assert_eq!(f.value(f32::INFINITY), f32::INFINITY, "{f:?}");
        }
        let low = ALL.map(|f| f.value(f64::NEG_INFINITY));
        assert_eq!(low[..3], [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]);
        assert_eq!(low[4], -0.7);
        assert_eq!(Activation::Relu.chain(0.0f32, f32::INFINITY), 0.0);
        assert_eq!(Activation::Elu(1.0).value(200.0f32), 200.0);
    }
}
