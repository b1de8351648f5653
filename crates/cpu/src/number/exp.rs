//! The exponential without branches, so that loops vectorise.

/// `e^x` for a softmax, where `x` is a logit minus the maximum.
pub trait Exp {
    /// `e^self`. In f32 the relative error is below 2e-7 if the result is a normal number. The result is 0 below the range
    /// of f32, infinity above it, and NaN for NaN.
    fn exp_(self) -> Self;
}

impl Exp for f64 {
    #[inline(always)]
    fn exp_(self) -> f64 {
        self.exp()
    }
}

impl Exp for f32 {
    /// `x = n ln 2 + r` with `|r| <= ln 2 / 2`: a polynomial for `e^r`, and `n` is added to the exponent bits (Cephes
    /// `expf`). There are no branches, so all lanes run the same instructions.
    #[inline(always)]
    fn exp_(self) -> f32 {
        const LOG2E: f32 = std::f32::consts::LOG2_E;
        // ln 2 in two parts; the first part has few significant bits, so `n * HIGH` is exact.
        const HIGH: f32 = 0.693_359_4;
        const LOW: f32 = -2.121_944_4e-4;
        // Adding this constant rounds to an integer, which is then in the low bits.
        const ROUND: f32 = 12_582_912.0;
        // Beyond these bounds the result is 0 or infinity. The comparisons are false for NaN, which propagates.
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
        // 2^n as two factors, because `n` may exceed the range of exponents. Denormal results are correct.
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
    fn limits_of_the_range() {
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
