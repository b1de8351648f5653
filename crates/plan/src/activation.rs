//! Defines activations whose derivative is a function of the result.

use crate::error::PlanError;

/// Activation that an operator applies to every entry of its result before writing it (an epilogue).
///
/// The derivative of each variant is a function of the result, so an operator with an epilogue saves its output
/// for backward and never the sum before it. NaN stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// `x`
    #[default]
    None,
    /// `max(x, 0)`; derivative 0 at 0, and -0 becomes 0.
    Relu,
    /// `x` above 0, `slope · x` elsewhere; derivative `slope` at 0. The slope is finite and not negative.
    LeakyRelu(f64),
    /// `x` above 0, `alpha · (e^x - 1)` elsewhere; derivative `alpha` at 0. `alpha` is finite and positive.
    /// `e^x - 1` is computed as written and not by `expm1`, so near 0 the error is one rounding of 1.
    Elu(f64),
}

impl Activation {
    /// Checks that the parameter is in its range. `op` is the name of the operator in the error.
    ///
    /// # Errors
    /// A negative or non-finite slope; an `alpha` that is not finite and positive.
    ///
    /// ```
    /// use burn_gnn_plan::Activation;
    /// assert!(Activation::LeakyRelu(0.2).check("bias_activation").is_ok());
    /// assert!(Activation::Elu(-1.0).check("bias_activation").unwrap_err().to_string().contains("a finite number above 0"));
    /// ```
    pub fn check(self, op: &'static str) -> Result<(), PlanError> {
        let error = |arg, range, value| Err(PlanError::Activation { op, arg, range, value });
        match self {
            Self::LeakyRelu(slope) if !(slope.is_finite() && slope >= 0.0) => {
                error("`slope` of LeakyRelu", "a finite number from 0", slope)
            }
            Self::Elu(alpha) if !(alpha.is_finite() && alpha > 0.0) => {
                error("`alpha` of Elu", "a finite number above 0", alpha)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Activation;

    #[test]
    fn parameters_are_checked() {
        for f in [
            Activation::None,
            Activation::Relu,
            Activation::LeakyRelu(0.2),
            Activation::LeakyRelu(0.0),
            Activation::Elu(0.7),
        ] {
            assert_eq!(f.check("op"), Ok(()));
        }
        for f in [
            Activation::LeakyRelu(-0.1),
            Activation::LeakyRelu(f64::NAN),
            Activation::Elu(0.0),
            Activation::Elu(f64::INFINITY),
        ] {
            assert!(f.check("op").is_err(), "{f:?}");
        }
        let text = Activation::LeakyRelu(-0.5).check("bias_activation").unwrap_err().to_string();
        assert_eq!(
            text,
            "bias_activation: `slope` of LeakyRelu must be a finite number from 0, got -0.5: \
             otherwise its derivative is not a function of its result; apply the activation as a separate operation"
        );
    }
}
