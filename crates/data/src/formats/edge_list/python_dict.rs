//! Parses the attribute dictionaries of NetworkX, which are printed Python dictionaries.

use crate::columns::data_column::Cell;
use crate::tables::text::parse_number::parse_i64;

/// Parses the entries of a dictionary like `{'weight': 3, 'color': 'red', 'pos': [1, 2.5]}`; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<Vec<(String, Cell)>> {
    let mut rest = Rest(text.trim());
    let mut entries = vec![];
    rest.eat('{')?;
    while rest.eat('}').is_none() {
        let key = match rest.0.starts_with(['\'', '"']) {
            true => rest.text()?,
            // A key may be a number or a name.
            false => rest.word().to_owned(),
        };
        rest.eat(':')?;
        entries.push((key, rest.value()?));
        if rest.eat(',').is_none() {
            rest.eat('}')?;
            break;
        }
    }
    rest.0.is_empty().then_some(entries)
}

/// The text that is not parsed yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Consumes a character and the white space after it.
    fn eat(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?.trim_start();
        Some(())
    }

    /// Consumes a number or a name: the text before the next punctuation mark.
    fn word(&mut self) -> &'a str {
        let end = self.0.find([',', ':', '}', ']', ')']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word.trim_end()
    }

    fn value(&mut self) -> Option<Cell> {
        if self.0.starts_with(['\'', '"']) {
            return self.text().map(Cell::Text);
        }
        let close = match self.0.chars().next()? {
            '[' => ']',
            '(' => ')',
            _ => {
                return Some(match self.word() {
                    "True" => Cell::Bool(true),
                    "False" => Cell::Bool(false),
                    word => number(word)?,
                });
            }
        };
        self.0 = self.0[1..].trim_start();
        let mut numbers = vec![];
        while self.eat(close).is_none() {
            numbers.push(number(self.word())?);
            if self.eat(',').is_none() {
                self.eat(close)?;
                break;
            }
        }
        let whole = |n: &Cell| if let Cell::Int(i) = n { Some(*i) } else { None };
        if let Some(ints) = numbers.iter().map(whole).collect() {
            return Some(Cell::Ints(ints));
        }
        let float = |n: &Cell| match n {
            Cell::Int(i) => *i as f64,
            Cell::Float(f) => *f,
            _ => unreachable!("`number` returns integers and floats only"),
        };
        Some(Cell::Floats(numbers.iter().map(float).collect()))
    }

    /// Consumes a quoted text.
    fn text(&mut self) -> Option<String> {
        let quote = self.0.chars().next()?;
        let (mut out, mut chars) = (String::new(), self.0[1..].char_indices());
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.0 = self.0[1 + at + 1..].trim_start();
                return Some(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            let digits = match chars.next()?.1 {
                'n' => {
                    out.push('\n');
                    continue;
                }
                't' => {
                    out.push('\t');
                    continue;
                }
                'r' => {
                    out.push('\r');
                    continue;
                }
                'x' => 2,
                'u' => 4,
                'U' => 8,
                c @ ('\\' | '\'' | '"') => {
                    out.push(c);
                    continue;
                }
                _ => return None,
            };
            let mut code = 0u32;
            for _ in 0..digits {
                code = code.checked_mul(16)? + chars.next()?.1.to_digit(16)?;
            }
            out.push(char::from_u32(code)?);
        }
        None
    }
}

/// Parses a number. NumPy 2 prints numbers as `np.float64(0.5)`.
fn number(word: &str) -> Option<Cell> {
    let word = match word.strip_prefix("np.") {
        Some(call) => call.split_once('(')?.1,
        None => word,
    };
    let int = parse_i64(word.as_bytes()).map(Cell::Int);
    int.or_else(|| word.parse().ok().map(Cell::Float))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_dictionaries() {
        let (int, float) = (Cell::Int, Cell::Float);
        let text = |t: &str| Cell::Text(t.into());
        for (printed, entries) in [
            ("{}", vec![]),
            ("{'weight': 3}", vec![("weight", int(3))]),
            (
                "{'w': -0.5, 'ok': True, \"it's\": 1e-05}",
                vec![("w", float(-0.5)), ("ok", Cell::Bool(true)), ("it's", float(1e-5))],
            ),
            ("{'c': 'a, b}', 0: \"d'\"}", vec![("c", text("a, b}")), ("0", text("d'"))]),
            (
                "{'pos': (1, 2.5), 'ids': [1, 2], 'one': (7,)}",
                vec![
                    ("pos", Cell::Floats(vec![1.0, 2.5])),
                    ("ids", Cell::Ints(vec![1, 2])),
                    ("one", Cell::Ints(vec![7])),
                ],
            ),
            ("{'t': 'a\\n\\xe9\\'\\\\'}", vec![("t", text("a\né'\\"))]),
        ] {
            let expected: Vec<_> = entries.into_iter().map(|(k, c)| (k.to_owned(), c)).collect();
            assert_eq!(parse(printed), Some(expected), "{printed}");
        }
        for wrong in [
            "",
            "{",
            "{'a'}",
            "{'a': None}",
            "{'a': 1",
            "{'a': 1} x",
            "{'a': {}}",
            "{'a': [[1]]}",
            "{'a': '",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
