//! Lengths of time as texts, such as `30 days`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Names of units, the first one for writing, and their microseconds, from the longest.
const UNITS: [(&[&str], u64); 7] = [
    (&["weeks", "week", "w"], 604_800_000_000),
    (&["days", "day", "d"], 86_400_000_000),
    (&["hours", "hour", "h"], 3_600_000_000),
    (&["minutes", "minute", "min"], 60_000_000),
    (&["seconds", "second", "s"], 1_000_000),
    (&["milliseconds", "millisecond", "ms"], 1_000),
    (&["microseconds", "microsecond", "us"], 1),
];

/// Parses a whole number and a unit: `30 days`, `12h`.
fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim_start());
    let unit = UNITS.iter().find(|u| u.0.contains(&unit));
    let micros = unit.and_then(|u| number.parse::<u64>().ok()?.checked_mul(u.1));
    micros.map(Duration::from_micros).ok_or_else(|| {
        format!("expected a whole number and a unit from weeks to microseconds, such as `30 days`, found `{text}`")
    })
}

/// Formats a length of time in the longest unit of which it is a multiple. Parts of a microsecond are dropped.
pub(crate) fn to_text(span: &Duration) -> String {
    let micros = span.as_micros();
    let divides = |u: &&(&[&str], u64)| micros.is_multiple_of(u128::from(u.1));
    // Weeks are parsed, but written as days, as in RelBench.
    let unit = UNITS[1..].iter().find(divides).unwrap_or(&UNITS[6]);
    format!("{} {}", micros / u128::from(unit.1), unit.0[0])
}

pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&to_text(span))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// For optional lengths of time.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::serialize(span, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| super::parse(&text)).transpose().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_spans() {
        for (text, seconds, again) in [
            ("30 days", 2_592_000, "30 days"),
            ("2 weeks", 1_209_600, "14 days"),
            ("36h", 129_600, "36 hours"),
            (" 5 min ", 300, "5 minutes"),
            ("0 s", 0, "0 days"),
        ] {
            let span = parse(text).unwrap();
            assert_eq!((span.as_secs(), &*to_text(&span)), (seconds, again));
        }
        assert_eq!(to_text(&Duration::from_micros(1_500)), "1500 microseconds");
        for wrong in ["", "days", "3", "-3 days", "1.5 h", "3 fortnights", "99999999999999 weeks"] {
            assert!(parse(wrong).unwrap_err().contains("such as `30 days`"), "{wrong}");
        }
    }
}
