//! Computes the exponential without branches, so that loops vectorise.

/// `e^x` for a softmax: the argument is a logit less the largest logit.
pub trait Exp {
    /// `e^self`; relative error below 2e-7 (f32) where the result is a normal number, 0 below the range,
    /// infinity above, NaN for NaN.
    fn exp_(self) -> Self;
}

impl Exp for f64 {
    #[inline(always)]
    fn exp_(self) -> f64 {
        self.exp()
    }
}

impl Exp for f32 {
    /// `x = n ln 2 + r` with `|r| <= ln 2 / 2`, a polynomial for `e^r`, `n` into the exponent bits
    /// (Cephes `expf`). No branches: every lane does the same.
    #[inline(always)]
    fn exp_(self) -> f32 {
        const LOG2E: f32 = std::f32::consts::LOG2_E;
        // ln 2 in two parts, the first exact in few bits.
        const HIGH: f32 = 0.693_359_4;
        const LOW: f32 = -2.121_944_4e-4;
        // Adding it rounds to an integer, which then stands in the low bits.
        const ROUND: f32 = 12_582_912.0;
        // Beyond these the result is 0 or infinity all the same. NaN passes through `max` and `min` of this form.
        let x = if self < -104.0 { -104.0 } else { self };
        let x = if x > 89.0 { 89.0 } else { x };
        let shifted = x * LOG2E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * HIGH) - n * LOW;
        let p = 1.987_569_1e-4;
        let p = p * r + 1.398_199_9e-3;
        let p = p * r + 8.333_452e-3;
        let p = p * r + 4.166_579_6e-2;
        let p = p * r + 1.666_666_6e-1;
        let p = p * r + 5e-1;
        let e = (p * r) * r + r + 1.0;
        // 2^n in two factors, as n may lie outside the range of exponents: denormal results come out right.
        let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
        let half = n >> 1;
        let power = |k: i32| f32::from_bits(((k + 127) as u32) << 23);
        e * power(half) * power(n - half)
    }
}

#[cfg(test)]
mod tests {
    use super::Exp;

    #[test]
    fn close_to_the_exact_value() {
        let mut worst = 0.0f64;
        for i in 0..2_000_000 {
            let x = -87.0 + i as f32 * (175.0 / 2_000_000.0);
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(x.exp_()) / want - 1.0).abs());
        }
        assert!(worst < 2e-7, "{worst}");
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(0f32.exp_(), 1.0);
        assert_eq!(f32::NEG_INFINITY.exp_(), 0.0);
        assert_eq!((-110f32).exp_(), 0.0);
        assert_eq!(f32::INFINITY.exp_(), f32::INFINITY);
        assert_eq!(89f32.exp_(), f32::INFINITY);
        assert!(f32::NAN.exp_().is_nan());
        // A denormal number.
        let x = -95f32;
        assert!((f64::from(x.exp_()) / f64::from(x).exp() - 1.0).abs() < 1e-3);
    }
}
