//! Shift and divisor of a softmax, including groups in which every logit is masked (-inf).

use crate::number::Acc;

/// The number that a softmax subtracts from the logits of a group: the maximum, or 0 if the maximum is `-inf`. In that
/// case every logit is `-inf`, whose exponential is 0, or NaN, whose exponential is NaN.
#[inline(always)]
pub(crate) fn shift<A: Acc>(largest: A) -> A {
    if largest == A::of_f64(f64::NEG_INFINITY) { A::ZERO } else { largest }
}

/// The number by which a softmax divides the exponentials of a group: their sum, or 1 if the sum is 0. The maximum
/// contributes 1 to the sum, so the sum is 0 only if every logit is masked. NaN propagates.
#[inline(always)]
pub(crate) fn divisor<A: Acc>(sum: A) -> A {
    if sum == A::ZERO { A::ONE } else { sum }
}

/// `1 / sum`, or 0 if the sum is 0; see [`divisor`].
#[inline(always)]
pub(crate) fn inverse<A: Acc>(sum: A) -> A {
    if sum == A::ZERO { A::ZERO } else { A::ONE / sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_masked_logits() {
        const INF: f32 = f32::INFINITY;
        assert_eq!([-INF, -3e38, 0.0, INF].map(shift), [0.0, -3e38, 0.0, INF]);
        assert_eq!([0.0f32, 1.0, 1e-45].map(divisor), [1.0, 1.0, 1e-45]);
        assert_eq!([0.0, 4.0, INF].map(inverse), [0.0, 0.25, 0.0]);
        assert!(
            shift(f32::NAN).is_nan() && divisor(f32::NAN).is_nan() && inverse(f64::NAN).is_nan()
        );
    }
}
