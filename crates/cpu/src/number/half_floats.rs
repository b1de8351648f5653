//! Conversions between f32 and 16-bit floats without branches, so that loops vectorise.
//!
//! The conversions of the crate `half` test the processor's features for every element (f16) or branch on NaN (bf16), so
//! loops over them stay scalar. These functions return the same numbers, rounded to nearest with ties to even. NaN keeps
//! its sign and the top of its payload; conversions to f32 keep a signalling NaN signalling. Intermediate results are
//! never denormal unless the argument is.

/// Converts the bits of a bf16 to f32, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bits of the bf16 nearest to `x`.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    // Adds half an ulp minus one, plus the last bit that is kept, so a tie rounds up only if that bit is odd. An overflow
    // carries into the exponent, which gives infinity.
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1));
    let nan = bits | 0x0040_0000;
    let is_nan = bits & 0x7FFF_FFFF > 0x7F80_0000;
    ((if is_nan { nan } else { rounded }) >> 16) as u16
}

/// Converts the bits of an f16 to f32, exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    /// Exponent and mantissa of f16 infinity, shifted to their position in f32.
    const INFINITY: u32 = 0x7C00 << 13;
    let h = u32::from(bits);
    let magnitude = (h & 0x7FFF) << 13;
    // The exponents of infinity and NaN are rebased twice.
    let bias = if magnitude >= INFINITY { 224 << 23 } else { 112 << 23 };
    // A denormal number counts units of 2^-24, which is one ulp of 0.5.
    let denormal = (f32::from_bits(0x3F00_0000 | (h & 0x3FF)) - 0.5).to_bits();
    let is_denormal = h & 0x7C00 == 0;
    let magnitude = if is_denormal { denormal } else { magnitude.wrapping_add(bias) };
    f32::from_bits(((h & 0x8000) << 16) | magnitude)
}

/// The bits of the f16 nearest to `x`.
#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    // As above: ties to even, overflow into the exponent (65520 and above become infinity).
    let normal =
        magnitude.wrapping_add(0xFFF + ((magnitude >> 13) & 1)).wrapping_sub(112 << 23) >> 13;
    // Below the normal range: the last bit of 0.5 is worth 2^-24, so adding 0.5 rounds.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let nan = 0x7E00 | ((magnitude >> 13) & 0x3FF);
    let finite = if magnitude < 113 << 23 { denormal } else { normal };
    // 2^16 and above, including infinity.
    let number = if magnitude >= 143 << 23 { 0x7C00 } else { finite };
    let out = if magnitude > 0x7F80_0000 { nan } else { number };
    (((bits >> 16) & 0x8000) | out) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    /// Equal bits, or NaN of equal sign on both sides.
    fn same(got: f32, want: f32) -> bool {
        got.to_bits() == want.to_bits()
            || (got.is_nan() && want.is_nan() && got.is_sign_negative() == want.is_sign_negative())
    }

    #[test]
    fn every_16_bit_value() {
        for bits in 0..=u16::MAX {
            let (b, h) = (bf16_to_f32(bits), f16_to_f32(bits));
            assert!(same(b, bf16::from_bits(bits).to_f32()), "bf16 {bits:#06x} -> {b}");
            assert!(same(h, f16::from_bits(bits).to_f32()), "f16 {bits:#06x} -> {h}");
            // A round trip returns the same bits, and quiet NaNs.
            let quiet = |nan: bool, bit: u16| if nan { bits | bit } else { bits };
            assert_eq!(f32_to_bf16(b), quiet(b.is_nan(), 0x40));
            assert_eq!(f32_to_f16(h), quiet(h.is_nan(), 0x200));
        }
    }

    fn check(x: f32) {
        let (b, h) = (f32_to_bf16(x), f32_to_f16(x));
        assert_eq!(b, bf16::from_f32(x).to_bits(), "bf16 of {x:e} ({:#010x})", x.to_bits());
        assert_eq!(h, f16::from_f32(x).to_bits(), "f16 of {x:e} ({:#010x})", x.to_bits());
    }

    /// Every 16-bit value, the midpoints between adjacent values, and the f32 numbers next to both.
    #[test]
    fn ties_and_their_neighbours() {
        for bits in 0..=u16::MAX {
            for (at, next) in [
                (bf16_to_f32(bits), bf16_to_f32(bits.wrapping_add(1))),
                (f16_to_f32(bits), f16_to_f32(bits.wrapping_add(1))),
            ] {
                let tie = ((f64::from(at) + f64::from(next)) / 2.0) as f32;
                for x in [at, tie] {
                    for step in [-1i32, 0, 1] {
                        check(f32::from_bits(x.to_bits().wrapping_add_signed(step)));
                    }
                }
            }
        }
    }

    /// 8 million values of f32 in steps of the golden ratio, with all exponents, denormal numbers, infinities and NaN.
    #[test]
    fn values_all_over_f32() {
        let mut bits = 0u32;
        for _ in 0..8_000_000 {
            check(f32::from_bits(bits));
            bits = bits.wrapping_add(0x9E37_79B1);
        }
        for x in [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            f32::MAX,
            f32::MIN_POSITIVE,
            65_519.0,
            65_520.0,
            65_536.0,
        ] {
            check(x);
        }
        for bits in (0..0x80_0000).step_by(11) {
            check(f32::from_bits(bits)); // denormal in f32
            check(f32::from_bits(0x3300_0000 + bits)); // around the least f16
        }
    }
}
