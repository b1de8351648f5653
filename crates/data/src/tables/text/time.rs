//! Parses times: seconds since 1970, and dates of ISO 8601.

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use super::parse_number::parse_i64;
use crate::files::{cut, setting};

/// Unit of the timestamps of a graph, which are counted from 1970-01-01T00:00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Days.
    Days,
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
    /// Billionths of a second: 1677 to 2262.
    Nanoseconds,
}

/// Parses a time as databases have it: a date of ISO 8601 with an optional time of day and time zone, as microseconds
/// since 1970-01-01T00:00:00 UTC, rounded down.
///
/// ```
/// use burn_gnn_data::{format_time, parse_time};
/// assert_eq!(parse_time("1970-01-02")?, 86_400_000_000);
/// assert_eq!(format_time(parse_time("2014-12-31T23:59:59.5+01:00")?), "2014-12-31 22:59:59.5");
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// `GraphError::Setting` for another text.
pub fn parse_time(text: &str) -> Result<i64, DataError> {
    let expected = "a date of ISO 8601, such as 2014-12-31 or 2014-12-31T23:59:59.5Z";
    microseconds(text.as_bytes())
        .ok_or_else(|| setting("time", expected, &format!("`{}`", cut(text))))
}

/// Formats microseconds since 1970 as `2014-12-31`, or as `2014-12-31 23:59:59.5` if it is not midnight (UTC).
pub fn format_time(microseconds: i64) -> String {
    iso_text(microseconds)
}

/// Parses a date of ISO 8601 with an optional time to microseconds since 1970, rounded down. `None` for another text, and
/// for a time that does not fit 64 bits.
pub(crate) fn microseconds(text: &[u8]) -> Option<i64> {
    i64::try_from(date(text)?.div_euclid(1000)).ok()
}

/// Formats microseconds since 1970 as `2014-12-31`, or as `2014-12-31 23:59:59.5` if it is not midnight.
pub(crate) fn iso_text(microseconds: i64) -> String {
    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;
    let (days, of_day) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
    // Days since 0000-03-01, in cycles of 400 years.
    let (cycle, day) = ((days + 719_468).div_euclid(146_097), (days + 719_468).rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * cycle + i64::from(month <= 2);
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if of_day > 0 {
        let seconds = of_day / SECOND;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        text += &format!(" {hour:02}:{minute:02}:{second:02}");
        let fraction = of_day % SECOND;
        if fraction > 0 {
            text += format!(".{fraction:06}").trim_end_matches('0');
        }
    }
    text
}

const NANOS: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * NANOS;

impl TimeUnit {
    fn nanos(self) -> i128 {
        match self {
            Self::Days => DAY,
            Self::Seconds => NANOS,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1000,
            Self::Nanoseconds => 1,
        }
    }

    /// Parses seconds since 1970, with an optional fraction, or a date with an optional time, to this unit. `Err`: the
    /// expected value.
    pub(crate) fn parse(self, text: &[u8]) -> Result<i64, &'static str> {
        let nanos = seconds(text).or_else(|| date(text)).ok_or(
            "seconds since 1970 or an ISO 8601 date, such as 2014-12-31 or 2014-12-31T23:59:59.5Z",
        )?;
        if nanos % self.nanos() != 0 {
            return Err("a time that is a multiple of the unit");
        }
        i64::try_from(nanos / self.nanos()).map_err(|_| "a time that fits 64 bits in its unit")
    }
}

/// Parses decimal seconds to nanoseconds; further digits must be 0.
fn seconds(text: &[u8]) -> Option<i128> {
    let text = text.trim_ascii();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let at = memchr::memchr(b'.', digits);
    let (whole, fraction) = at.map_or((digits, &b""[..]), |i| (&digits[..i], &digits[i + 1..]));
    let nanos = i128::from(number(whole)?) * NANOS + fraction_of(fraction)?;
    Some(if negative { -nanos } else { nanos })
}

/// The nanoseconds of the digits after a point.
fn fraction_of(digits: &[u8]) -> Option<i128> {
    let (kept, rest) = digits.split_at(digits.len().min(9));
    if rest.iter().any(|&b| b != b'0') || !kept.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = kept.iter().fold(0i128, |n, &b| n * 10 + i128::from(b - b'0'));
    Some(value * 10i128.pow(9 - kept.len() as u32))
}

/// Parses digits without a sign.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().all(u8::is_ascii_digit).then(|| parse_i64(digits))?
}

/// Parses `YYYY-MM-DD`, then optionally `T` or a space, `HH:MM`, `:SS`, a fraction, and `Z` or `±HH:MM` (UTC by default),
/// to nanoseconds since 1970.
fn date(text: &[u8]) -> Option<i128> {
    let text = text.trim_ascii();
    let two = |at: usize, most: i64| number(text.get(at..at + 2)?).filter(|&n| n <= most);
    let (year, month, day) = (number(text.get(..4)?)?, two(5, 12)?, two(8, 31)?);
    if text[4] != b'-' || text[7] != b'-' || month == 0 || day == 0 || day > days_in(year, month) {
        return None;
    }
    let days = i128::from(days_since_1970(year, month, day)) * DAY;
    let Some((b'T' | b't' | b' ', _)) = text[10..].split_first() else {
        return text.get(10).is_none().then_some(days);
    };
    if text.get(13) != Some(&b':') {
        return None;
    }
    let minutes = two(11, 23)? * 60 + two(14, 59)?;
    let (mut nanos, mut rest) = (i128::from(minutes) * 60 * NANOS, &text[16..]);
    if rest.first() == Some(&b':') {
        nanos += i128::from(two(17, 59)?) * NANOS;
        rest = &text[19..];
        if let [b'.' | b',', fraction @ ..] = rest {
            let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            nanos += fraction_of(&fraction[..digits]).filter(|_| digits > 0)?;
            rest = &fraction[digits..];
        }
    }
    let offset = match rest {
        b"" | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let hours = number(zone.get(..2)?).filter(|&n| n < 24)?;
            let minutes = match &zone[2..] {
                b"" => 0,
                [b':', m @ ..] | m if m.len() == 2 => number(m).filter(|&n| n < 60)?,
                _ => return None,
            };
            (hours * 60 + minutes) * if *sign == b'+' { 1 } else { -1 }
        }
        _ => return None,
    };
    Some(days + nanos - i128::from(offset) * 60 * NANOS)
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in the proleptic Gregorian calendar. The computation starts years in March, so that the leap day is the last day.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 1970-01-01 is 719,468 days after 0000-03-01.
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimeUnit::{Days, Microseconds, Milliseconds, Nanoseconds, Seconds};

    /// Values of Python's `datetime.fromisoformat(…).timestamp()`.
    #[test]
    fn times_in_their_units() {
        for (text, unit, value) in [
            ("1289241911.72836", Microseconds, 1_289_241_911_728_360),
            ("978300760", Seconds, 978_300_760),
            ("-1.5", Milliseconds, -1500),
            ("2014-01-01", Days, 16_071),
            ("2014-01-01", Seconds, 1_388_534_400),
            ("2000-02-29T12:30:15Z", Seconds, 951_827_415),
            ("1969-12-31 23:59:59.25", Milliseconds, -750),
            ("2024-03-10T08:00+05:30", Seconds, 1_710_037_800),
            ("2024-03-10T08:00:00-0800", Seconds, 1_710_086_400),
            ("1900-03-01", Days, -25_508),
            ("2262-04-11T23:47:16.854775807", Nanoseconds, i64::MAX),
        ] {
            assert_eq!(unit.parse(text.as_bytes()), Ok(value), "{text}");
        }
    }

    #[test]
    fn microseconds_and_their_texts() {
        for (text, value) in [
            ("1970-01-01", 0),
            ("2014-12-31 23:59:59.5", 1_420_070_399_500_000),
            ("1969-12-31 23:59:59.999999", -1),
            ("2000-02-29", 951_782_400_000_000),
            ("1900-03-01 00:00:01", -2_203_891_199_000_000),
            ("0001-01-01", -62_135_596_800_000_000),
            ("9999-12-31 23:00:00", 253_402_297_200_000_000),
        ] {
            assert_eq!(microseconds(text.as_bytes()), Some(value), "{text}");
            assert_eq!(iso_text(value), text);
        }
        assert_eq!(microseconds(b"1970-01-01 00:00:00.0000019"), Some(1));
        assert_eq!(microseconds(b"1969-12-31 23:59:59.9999991"), Some(-1), "rounded down");
        assert_eq!(microseconds(b"2024-03-10T08:00+05:30"), Some(1_710_037_800_000_000));
        assert_eq!(microseconds(b"1420070399"), None);
        for day in (-700_000..800_000).step_by(97) {
            let text = iso_text(day * 86_400_000_000);
            assert_eq!(microseconds(text.as_bytes()), Some(day * 86_400_000_000), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "x",
            "2014-13-01",
            "2014-02-30",
            "2014-00-01",
            "2014-1-1",
            "2014-01-01T",
            "1.2.3",
            "2014-01-01T25:00",
            "2014-01-01T10",
            "2014-01-01T10:00:0",
            "2014-01-01T10:00+5",
            "1e9",
            "2014-01-01T10:00:00.Z",
            "2014-01-01x",
            "20\u{e9}4-01-01",
            "+-1",
            "-",
        ] {
            assert!(Nanoseconds.parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Seconds.parse(b"1.5").unwrap_err().contains("multiple of the unit"));
        assert!(Days.parse(b"2014-01-01T01:00").unwrap_err().contains("multiple of the unit"));
        assert!(Nanoseconds.parse(b"2300-01-01").unwrap_err().contains("fits 64 bits"));
    }
}
