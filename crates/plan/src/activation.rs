//! Activations whose derivative follows from their result.

/// A function of one number that an operator applies to its result before writing it (an epilogue).
///
/// The derivative of every one of them follows from the result alone, so an operator with an epilogue
/// keeps its output for backward and never the sum before it. NaN stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// `x`
    #[default]
    None,
    /// `max(x, 0)`; derivative 0 at 0.
    Relu,
    /// `x` above 0, `slope · x` elsewhere; derivative `slope` at 0. The slope is finite and not negative.
    LeakyRelu(f64),
    /// `x` above 0, `alpha · (e^x - 1)` elsewhere; derivative `alpha` at 0. `alpha` is finite and positive.
    /// The difference is taken as it stands, so the error near 0 is one rounding of 1.
    Elu(f64),
}

/// A parameter outside its range, in which the sign of the argument could not be told from the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivationRange {
    /// The parameter.
    pub arg: &'static str,
    /// Its range.
    pub range: &'static str,
    /// What it is.
    pub value: f64,
}

impl Activation {
    /// Whether the parameter lies in its range.
    ///
    /// # Errors
    /// A negative or non-finite slope, an `alpha` that is not finite and positive.
    ///
    /// ```
    /// use burn_gnn_plan::Activation;
    /// assert!(Activation::LeakyRelu(0.2).check().is_ok());
    /// assert_eq!(Activation::Elu(-1.0).check().unwrap_err().range, "a finite number above 0");
    /// ```
    pub fn check(self) -> Result<(), ActivationRange> {
        let refuse = |arg, range, value| Err(ActivationRange { arg, range, value });
        match self {
            Self::LeakyRelu(slope) if !(slope.is_finite() && slope >= 0.0) => {
                refuse("`slope` of LeakyRelu", "a finite number from 0", slope)
            }
            Self::Elu(alpha) if !(alpha.is_finite() && alpha > 0.0) => refuse("`alpha` of Elu", "a finite number above 0", alpha),
            _ => Ok(()),
        }
    }
}
