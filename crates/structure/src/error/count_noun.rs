//! Formats a count with its noun: `1 edge`, `2 edges`.

use std::fmt::Display;

/// The singular or plural of a noun: `node` for 1, otherwise `nodes`.
pub fn noun(n: impl Copy + From<u8> + PartialEq, one: &str) -> String {
    if n == 1.into() { one.to_owned() } else { format!("{one}s") }
}

/// A count with its noun: `1 node`, `0 nodes`.
pub fn count_noun(n: impl Copy + Display + From<u8> + PartialEq, one: &str) -> String {
    format!("{n} {}", noun(n, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0u64, 1, 2].map(|n| count_noun(n, "edge")), ["0 edges", "1 edge", "2 edges"]);
    }
}
