//! Parses texts of a manifest into words, hashes and single licences.

/// FNV-1a with 64 bits: the same value in every version and on every machine, which `std`'s hashers do not promise.
pub(crate) fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The lower-cased words of a text: longest runs of letters and digits; everything else, `-` and `_` included,
/// separates.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}

/// Column of a word: `fnv1a64(word) mod buckets`.
pub(crate) fn bucket(word: &str, buckets: u32) -> u32 {
    (fnv1a64(word.as_bytes()) % u64::from(buckets)) as u32
}

/// Part of a crate in the 60/20/20 split: `fnv1a64(name) mod 10` is 0 to 5, 6 or 7, 8 or 9.
pub(crate) fn part(name: &str) -> usize {
    match fnv1a64(name.as_bytes()) % 10 {
        0..=5 => 0,
        6 | 7 => 1,
        _ => 2,
    }
}

/// Hash of an entry of `authors`: of the name before any `<…>`, lower-cased, white space folded. An entry that is
/// nothing but an address has no name and gives nothing.
pub(crate) fn author(entry: &str) -> Option<u64> {
    let name = entry.split('<').next().unwrap_or("");
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    (!name.is_empty() && !name.contains('@')).then(|| fnv1a64(name.as_bytes()))
}

/// The single licences of an SPDX expression, also of the old form with `/`. An exception stays with its licence:
/// `Apache-2.0 WITH LLVM-exception` is one.
pub(crate) fn licenses(expression: &str) -> Vec<String> {
    let spaced = expression.replace(['/', '(', ')'], " OR ");
    let mut out: Vec<String> = vec![String::new()];
    for token in spaced.split_whitespace() {
        if token.eq_ignore_ascii_case("or") || token.eq_ignore_ascii_case("and") {
            out.push(String::new());
        } else if let Some(last) = out.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(token);
        }
    }
    out.retain(|l| !l.is_empty());
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_vectors() {
        // From the authors' test suite.
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn words_are_lower_case_and_split_at_dashes() {
        assert_eq!(
            words("serde_json: A JSON-file (v2)!").collect::<Vec<_>>(),
            ["serde", "json", "a", "json", "file", "v2"]
        );
        assert_eq!(words(" -- ").count(), 0);
    }

    #[test]
    fn authors_are_names_only() {
        assert_eq!(author("Ada  Lovelace <ada@x.org>"), Some(fnv1a64(b"ada lovelace")));
        assert_eq!(author("ada LOVELACE"), author("Ada Lovelace <other@y.org>"));
        for unnamed in ["", " <a@b.c>", "a@b.c", "  "] {
            assert_eq!(author(unnamed), None, "{unnamed:?}");
        }
    }

    #[test]
    fn expressions_fall_apart() {
        assert_eq!(licenses("MIT OR Apache-2.0"), ["Apache-2.0", "MIT"]);
        assert_eq!(licenses("MIT/Apache-2.0"), ["Apache-2.0", "MIT"]);
        assert_eq!(
            licenses("(MIT OR Apache-2.0) AND Unicode-3.0"),
            ["Apache-2.0", "MIT", "Unicode-3.0"]
        );
        assert_eq!(
            licenses("Apache-2.0 WITH LLVM-exception OR MIT"),
            ["Apache-2.0 WITH LLVM-exception", "MIT"]
        );
        assert!(licenses("").is_empty());
    }
}
