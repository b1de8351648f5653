//! Converts texts in one-byte encodings to UTF-8 as they are read.

use std::io::Read;

use serde::{Deserialize, Serialize};

/// Character encoding of a text file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// ISO 8859-1: a byte is the code point of its character.
    Latin1,
    /// Windows-1252: Latin-1 with letters and punctuation in 128 to 159 (five of these bytes remain control characters).
    Windows1252,
}

/// The characters of the bytes 128 to 159 in Windows-1252.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

impl Encoding {
    /// Converts a text to UTF-8 as it is read.
    pub(crate) fn decoded(self, text: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match self {
            Self::Utf8 => text,
            _ => Box::new(Decoded { text, encoding: self, rest: vec![], at: 0 }),
        }
    }
    fn char(self, byte: u8) -> char {
        match (self, byte) {
            (Self::Windows1252, 128..=159) => WINDOWS[usize::from(byte - 128)],
            _ => char::from(byte),
        }
    }
}

struct Decoded {
    text: Box<dyn Read + Send>,
    encoding: Encoding,
    /// Converted bytes; those from `at` on were not returned yet.
    rest: Vec<u8>,
    at: usize,
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.rest.len() {
            let mut bytes = [0; 1 << 13];
            let n = self.text.read(&mut bytes)?;
            self.at = 0;
            self.rest.clear();
            for &byte in &bytes[..n] {
                if byte.is_ascii() {
                    self.rest.push(byte);
                } else {
                    let mut room = [0; 4];
                    let utf8 = self.encoding.char(byte).encode_utf8(&mut room);
                    self.rest.extend_from_slice(utf8.as_bytes());
                }
            }
        }
        let n = buffer.len().min(self.rest.len() - self.at);
        buffer[..n].copy_from_slice(&self.rest[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte() {
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let read = |encoding: Encoding| {
            let mut text = String::new();
            encoding
                .decoded(Box::new(std::io::Cursor::new(bytes.clone())))
                .read_to_string(&mut text)
                .unwrap();
            text
        };
        assert_eq!(
            read(Encoding::Latin1),
            bytes.iter().map(|&b| char::from(b)).collect::<String>()
        );
        let windows = read(Encoding::Windows1252);
        assert_eq!(windows.chars().count(), 100_000);
        let some: String = windows.chars().skip(0x7f).take(4).collect();
        assert_eq!(some, "\u{7f}€\u{81}‚");
        assert_eq!(windows.chars().nth(0xe9), Some('é'));
    }
}
