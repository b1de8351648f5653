//! Parses numbers in tables: base 10, with surrounding spaces, as GraphLearn does.

/// A whole number that fits 64 bits; an empty text is none.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
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

/// A float, `nan` and `inf` included; an empty text is none.
pub(crate) fn parse_f32(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_the_standard_library(text in "[ +-]{0,2}[0-9]{0,21}[ x]?", v in any::<i64>()) {
            prop_assert_eq!(parse_i64(text.as_bytes()), text.trim_ascii().parse().ok());
            prop_assert_eq!(parse_i64(v.to_string().as_bytes()), Some(v));
        }
    }

    #[test]
    fn floats() {
        for (text, value) in [
            (" 0.5 ", Some(0.5)),
            ("1e2", Some(100.0)),
            ("inf", Some(f32::INFINITY)),
            ("", None),
            ("2,5", None),
            ("12abc", None),
        ] {
            assert_eq!(parse_f32(text.as_bytes()), value, "{text}");
        }
        assert!(parse_f32(b"nan").unwrap().is_nan() && parse_f32(b"\xff").is_none());
    }
}
