//! Parses decimal numbers, with optional spaces around them as in GraphLearn.

use crate::columns::narrow::{self, NotF32};

/// Parses a whole number of 64 bits; `None` for an empty text.
#[inline]
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let text = trimmed(text);
    let (negative, digits) = signed(text);
    if digits.is_empty() {
        return None;
    }
    // Eighteen digits cannot overflow.
    if digits.len() > 18 {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    let mut value = 0i64;
    for &d in digits {
        let d = d.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        value = value * 10 + i64::from(d);
    }
    Some(if negative { -value } else { value })
}

/// Parses a float, including `nan` and `inf`; `None` for an empty text.
pub(crate) fn parse_f64(text: &[u8]) -> Option<f64> {
    let text = trimmed(text);
    match short(text) {
        Some((value, _)) => Some(value),
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Parses the nearest f32 of a decimal number, including `nan` and `inf`, unless f32 [cannot represent
/// it](narrow::from_f64). An empty text is not a number.
#[inline]
pub(crate) fn parse_f32(text: &[u8]) -> Result<f32, NotF32> {
    let text = trimmed(text);
    let wide = match short(text) {
        Some((_, Some(whole))) => return narrow::from_i64(whole),
        Some((value, None)) => value,
        None => return long(text),
    };
    nearest(text, wide)
}

/// [`parse_f32`] of a text that [`short`] does not parse.
#[cold]
fn long(text: &[u8]) -> Result<f32, NotF32> {
    let number = std::str::from_utf8(text).map_err(|_| NotF32::NoNumber)?;
    // Beyond 2^53, f64 does not represent every whole number.
    if let Ok(whole) = number.parse() {
        return narrow::from_i128(whole);
    }
    nearest(text, number.parse().map_err(|_| NotF32::NoNumber)?)
}

/// The nearest f32 of the number `text`, whose nearest f64 is `wide`. Rounding the f64 gives another f32 only if the f64
/// lies halfway between two f32.
#[inline]
fn nearest(text: &[u8], wide: f64) -> Result<f32, NotF32> {
    const HALFWAY: u64 = 1 << 28;
    let near = narrow::from_f64(wide)?;
    let halfway = wide.to_bits() & (2 * HALFWAY - 1) == HALFWAY;
    if halfway || (near != 0.0 && near.abs() < f32::MIN_POSITIVE) {
        return std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(NotF32::NoNumber);
    }
    Ok(near)
}

/// Powers of ten that are exact in f64.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Parses a number of few digits, and the whole number if it has no point and no exponent. The digits fit in 53 bits and
/// the power of ten is exact, so a single operation rounds (Clinger, "How to read floating point numbers accurately",
/// 1990). `None` for any other text.
#[inline]
fn short(text: &[u8]) -> Option<(f64, Option<i64>)> {
    /// Digits and a point that cannot overflow 64 bits.
    const MOST: usize = 19;
    let (negative, digits) = signed(text);
    let (mut mantissa, mut at, mut point) = (0u64, 0, None);
    while let Some(&b) = digits.get(at) {
        let d = b.wrapping_sub(b'0');
        if d <= 9 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(d));
        } else if b == b'.' && point.is_none() {
            point = Some(at);
        } else {
            break;
        }
        at += 1;
    }
    let count = at - usize::from(point.is_some());
    if count == 0 || at > MOST || mantissa > 1 << 53 {
        return None;
    }
    let mut power = point.map_or(0, |p| p as i32 + 1 - at as i32);
    let whole = at == digits.len() && point.is_none();
    if at < digits.len() {
        let [b'e' | b'E', exponent @ ..] = &digits[at..] else { return None };
        let (down, exponent) = signed(exponent);
        if !matches!(exponent.len(), 1..=3) {
            return None;
        }
        let mut value = 0;
        for &b in exponent {
            let d = b.wrapping_sub(b'0');
            if d > 9 {
                return None;
            }
            value = value * 10 + i32::from(d);
        }
        power += if down { -value } else { value };
    }
    let by = *POWERS.get(power.unsigned_abs() as usize)?;
    let value = if power < 0 { mantissa as f64 / by } else { mantissa as f64 * by };
    let sign = |v: f64| if negative { -v } else { v };
    // -0 is a float.
    let whole = (whole && !(negative && mantissa == 0)).then(|| sign(1.0) as i64 * mantissa as i64);
    Some((sign(value), whole))
}

/// Parses a whole number at the start of a text, at most 18 digits with an optional `-`, and returns its length. `None` for
/// any other text.
#[inline]
pub(crate) fn leading_i64(text: &[u8]) -> Option<(i64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let (value, end) = digits(text, start, 0);
    if end == start || end - start > 18 {
        return None;
    }
    let value = value as i64;
    Some((if negative { -value } else { value }, end))
}

/// Parses a decimal number at the start of a text, to the same f32 as [`parse_f32`], and returns its length. `None` for
/// numbers that take more than a few operations, and for any other text.
///
/// Up to 19 digits fit in an integer of 64 bits, and powers of ten up to 10^22 are exact in f64. The f64 computed from
/// them is off by at most two units in the last place. So its nearest f32 is that of the number, unless the f64 is within
/// a few units of the middle between two f32.
#[inline]
pub(crate) fn leading_f32(text: &[u8]) -> Option<(f32, usize)> {
    const HALFWAY: u64 = 1 << 28;
    const CLOSE: u64 = 4;
    /// Every whole number below is exact in f32.
    const MOST: f32 = (1u32 << f32::MANTISSA_DIGITS) as f32;
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let (mut mantissa, mut end) = digits(text, start, 0);
    let (mut count, mut power) = (end - start, 0);
    if text.get(end) == Some(&b'.') {
        let point = end + 1;
        (mantissa, end) = digits(text, point, mantissa);
        count += end - point;
        power = point as i32 - end as i32;
    }
    if count == 0 || count > 19 {
        return None;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = text.get(end + 1);
        let from = end + 1 + usize::from(matches!(sign, Some(b'-' | b'+')));
        let (exponent, to) = digits(text, from, 0);
        if !matches!(to - from, 1..=3) {
            return None;
        }
        power += if sign == Some(&b'-') { -(exponent as i32) } else { exponent as i32 };
        end = to;
    }
    let by = *POWERS.get(power.unsigned_abs() as usize)?;
    let wide = if power < 0 { mantissa as f64 / by } else { mantissa as f64 * by };
    let near = wide as f32;
    let close = (wide.to_bits() & (2 * HALFWAY - 1)).abs_diff(HALFWAY) <= CLOSE;
    if mantissa != 0 && (close || !(f32::MIN_POSITIVE..MOST).contains(&near)) {
        return None;
    }
    Some((if negative { -near } else { near }, end))
}

/// Appends the digits of a text from `at` on to `value` and returns the end of the digits. The value is invalid for more
/// than 19 digits.
#[inline]
fn digits(text: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    while let Some(eight) =
        text.get(at..at + 8).and_then(|t| t.try_into().ok()).and_then(eight_digits)
    {
        value = value.wrapping_mul(100_000_000).wrapping_add(eight);
        at += 8;
    }
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d <= 9) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (value, at)
}

/// Parses eight digits at once: adjacent pairs are combined three times (Lemire, "Quickly parsing eight digits", 2018).
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let v = u64::from_le_bytes(text);
    let high = v & 0xf0f0_f0f0_f0f0_f0f0;
    let beyond_nine = (v.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0) >> 4;
    if high | beyond_nine != 0x3333_3333_3333_3333 {
        return None;
    }
    let v = v - 0x3030_3030_3030_3030;
    let v = v.wrapping_mul(10).wrapping_add(v >> 8);
    let low = (v & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((v >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(low.wrapping_add(high) >> 32)
}

#[inline]
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Trims white space. Most texts have none, which is checked first.
#[inline]
fn trimmed(text: &[u8]) -> &[u8] {
    match text {
        [first, .., last] if *first > b' ' && *last > b' ' => text,
        _ => text.trim_ascii(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_numbers_equal_those_of_the_standard_library(text in "[ +-]{0,2}[0-9]{0,21}[ x]?", v in any::<i64>()) {
            prop_assert_eq!(parse_i64(text.as_bytes()), text.trim_ascii().parse().ok());
            prop_assert_eq!(parse_i64(v.to_string().as_bytes()), Some(v));
        }

        /// Bit for bit, unless f32 cannot represent the number.
        #[test]
        fn floats_equal_those_of_the_standard_library(
            text in "[+-]?[0-9]{0,20}[.]?[0-9]{0,20}([eE][+-]?[0-9]{0,4})?",
            x in any::<f64>(),
            y in any::<f32>(),
        ) {
            for text in [text, x.to_string(), y.to_string(), format!("{x:e}"), format!("{y:.9e}")] {
                let wide: Option<f64> = text.parse().ok();
                prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), wide.map(f64::to_bits), "{}", text);
                let near: Option<f32> = text.parse().ok();
                match parse_f32(text.as_bytes()) {
                    Ok(v) => prop_assert_eq!(Some(v.to_bits()), near.map(f32::to_bits), "{}", text),
                    Err(NotF32::NoNumber) => prop_assert_eq!(near, None, "{}", text),
                    Err(NotF32::Inexact(v)) => prop_assert_eq!(Some(v), near, "{}", text),
                }
                let long = format!("{text},12345678");
                if let Some((v, length)) = leading_f32(long.as_bytes()) {
                    let number = &long[..length];
                    let same = parse_f32(number.as_bytes()).unwrap();
                    prop_assert_eq!(v.to_bits(), same.to_bits(), "{}", number);
                }
                if let Some((v, length)) = leading_i64(long.as_bytes()) {
                    prop_assert_eq!(long[..length].parse(), Ok(v));
                }
            }
        }

        /// Numbers halfway between two f32, and slightly larger ones.
        #[test]
        fn numbers_halfway_between_two_f32(bits in 0u32..0x7f00_0000, more in "[0-9]{0,3}") {
            let (low, high) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            let text = format!("{:.160}{more}", f64::midpoint(f64::from(low), f64::from(high)));
            for text in [text, format!("{:.17e}", f64::midpoint(f64::from(low), f64::from(high)))] {
                let near = text.parse::<f32>().unwrap().to_bits();
                if let Ok(v) = parse_f32(text.as_bytes()) {
                    prop_assert_eq!(v.to_bits(), near, "{}", text);
                }
                if let Some((v, _)) = leading_f32(text.as_bytes()) {
                    prop_assert_eq!(v.to_bits(), near, "{}", text);
                }
            }
        }
    }

    #[test]
    fn floats() {
        for (text, value) in [
            (" 0.5 ", Some(0.5)),
            ("1e2", Some(100.0)),
            ("+.5E-1", Some(0.05)),
            ("7.", Some(7.0)),
            ("inf", Some(f32::INFINITY)),
            ("", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("2,5", None),
            ("12abc", None),
            ("\u{e9}", None),
        ] {
            assert_eq!(parse_f32(text.as_bytes()).ok(), value, "{text}");
        }
        assert!(parse_f32(b"nan").unwrap().is_nan() && parse_f32(b"\xff").is_err());
        assert!(parse_f32(b"-0").unwrap().is_sign_negative());
        for (text, near) in [
            ("1e300", f32::INFINITY),
            ("1e-60", 0.0),
            ("16777217", 16_777_216.0),
            ("16777217.0", 16_777_216.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("18446744073709551615", 18_446_744_073_709_551_616.0),
        ] {
            assert_eq!(parse_f32(text.as_bytes()), Err(NotF32::Inexact(near)), "{text}");
        }
    }
}
