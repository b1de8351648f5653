//! Truncates texts from files in error messages.

/// Most characters of a text from a file in an error message.
const SHOWN: usize = 80;
/// Most characters of a message that contains such texts.
const LONGEST: usize = 1000;

/// A text for an error message: its first 80 characters and, if it is longer, its length in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut(pub String);

impl Cut {
    fn new(start: &str, most: usize, bytes: usize) -> Self {
        match start.char_indices().nth(most) {
            None => Self(start.to_owned()),
            Some((end, _)) => Self(format!("{}… ({bytes} bytes)", &start[..end])),
        }
    }
}

impl From<&str> for Cut {
    fn from(text: &str) -> Self {
        Self::new(text, SHOWN, text.len())
    }
}
impl From<&String> for Cut {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}
impl From<&[u8]> for Cut {
    /// Bytes that should be UTF-8. Only the displayed part is decoded.
    fn from(bytes: &[u8]) -> Self {
        // A character takes at most four bytes.
        Self::new(
            &String::from_utf8_lossy(&bytes[..bytes.len().min(4 * (SHOWN + 1))]),
            SHOWN,
            bytes.len(),
        )
    }
}

/// Truncates `text` as [`Cut`] does.
pub fn cut(text: &str) -> String {
    Cut::from(text).0
}

/// Truncates the quoted texts of a message, then the message itself: an error of a parser may quote a text of the file,
/// and a list of names may be as long as the file.
pub fn cut_quoted(message: String) -> String {
    if message.len() <= SHOWN {
        return message;
    }
    let (mut out, mut rest) = (String::new(), &*message);
    while let Some(at) = rest.find(['`', '"']).filter(|_| out.len() < 4 * LONGEST) {
        let quote = &rest[at..=at];
        let inside = &rest[at + 1..];
        // Texts in double quotes come from `Debug`, which escapes quotes inside.
        let end = match quote {
            "`" => inside.find('`'),
            _ => inside.match_indices('"').map(|m| m.0).find(|&i| !escaped(&inside[..i])),
        };
        out.push_str(&rest[..=at]);
        let Some(end) = end else {
            rest = inside;
            break;
        };
        let text = &inside[..end];
        // A text that was truncated before already has its length.
        let is_cut = text.ends_with(" bytes)") && text.len() < 8 * SHOWN && text.contains('…');
        out.push_str(&if is_cut { text.to_owned() } else { cut(text) });
        out.push_str(quote);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Cut::new(&out, LONGEST, message.len()).0
}

/// Whether the character after `text` is escaped by a backslash at its end.
fn escaped(text: &str) -> bool {
    text.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!(cut("ab"), "ab");
        assert_eq!(cut(&"é".repeat(200)), format!("{}… (400 bytes)", "é".repeat(80)));
        assert_eq!(
            Cut::from(&b"\xff".repeat(99)[..]).0,
            format!("{}… (99 bytes)", "\u{fffd}".repeat(80))
        );
        assert_eq!(
            Cut::from("🦀".repeat(81).as_bytes()).0,
            format!("{}… (324 bytes)", "🦀".repeat(80))
        );
    }

    #[test]
    fn quoted_texts_in_messages_are_truncated() {
        let (x, shown) = ("x".repeat(300), "x".repeat(80));
        let plain = "expected a message that is longer than eighty characters, found one without any quoted text";
        assert_eq!(cut_quoted(plain.to_owned()), plain);
        assert_eq!(
            cut_quoted(format!("expected `a`, found `{x}` in `b`")),
            format!("expected `a`, found `{shown}… (300 bytes)` in `b`")
        );
        let quoted = format!("{:?}", format!("\"{x}"));
        assert_eq!(
            cut_quoted(format!("found {quoted}, at 7")),
            format!("found \"\\\"{}… (302 bytes)\", at 7", "x".repeat(78))
        );
        // A text that was truncated before keeps its length.
        assert_eq!(
            cut_quoted(format!("found `{}`", cut(&x))),
            format!("found `{shown}… (300 bytes)`")
        );
        let names = cut_quoted(format!("{:?}", vec!["name"; 100_000]));
        assert_eq!((names.chars().count(), names.ends_with("… (800000 bytes)")), (1000 + 16, true));
        assert!(cut_quoted("`".to_owned() + &"y".repeat(5000)).len() < 1100);
    }
}
