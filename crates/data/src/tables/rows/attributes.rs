//! Splits and parses the attribute column of a table.

use burn_gnn_graph::{Ragged, Texts};

use super::field::{DECIMAL, EMPTY_NUMBER, Notation, OTHER_ENCODING, ROUND, remedy_of};
use crate::columns::host_column::pick_rows;
use crate::columns::narrow::{NotF32, rounded};
use crate::files::Expected;
use crate::tables::schema::attr_type::AttrType;
use crate::tables::schema::decoder::{Decoder, Delimiter, Slot};
use crate::tables::schema::hash;
use crate::tables::text::parse_number::parse_i64;

/// Attributes of all rows, grouped by kind as in GraphLearn. [`Decoder::slots`] maps each attribute to its column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// `[rows, floats]`, row-major.
    pub floats: Vec<f32>,
    /// `[rows, doubles]`, row-major.
    pub doubles: Vec<f64>,
    /// `[rows, ints]`, row-major: whole numbers, and buckets of numbers and texts.
    pub ints: Vec<i64>,
    /// Texts, one column per attribute.
    pub texts: Vec<Texts>,
    /// Buckets or keys of multi-valued texts, one column per attribute.
    pub lists: Vec<Ragged>,
}

impl Attributes {
    pub(crate) fn empty(decoder: &Decoder) -> Self {
        let [.., texts, _, lists] = decoder.layout().1;
        let (texts, lists) = (vec![Texts::new(); texts], vec![Ragged::default(); lists]);
        Self { texts, lists, ..Self::default() }
    }
    pub(crate) fn append(&mut self, other: &Self) {
        self.floats.extend_from_slice(&other.floats);
        self.doubles.extend_from_slice(&other.doubles);
        self.ints.extend_from_slice(&other.ints);
        self.texts.iter_mut().zip(&other.texts).for_each(|(a, b)| a.append(b));
        self.lists.iter_mut().zip(&other.lists).for_each(|(a, b)| a.append(b));
    }
    /// Selects `rows` out of `count`, in any order.
    pub(crate) fn select(&self, count: usize, rows: &[u32]) -> Self {
        let width = |values: usize| values.checked_div(count).unwrap_or(0);
        Self {
            floats: pick_rows(&self.floats, rows, width(self.floats.len())),
            doubles: pick_rows(&self.doubles, rows, width(self.doubles.len())),
            ints: pick_rows(&self.ints, rows, width(self.ints.len())),
            texts: self.texts.iter().map(|t| t.select(rows.iter().map(|&r| r as usize))).collect(),
            lists: self.lists.iter().map(|l| l.select(rows)).collect(),
        }
    }
    /// Adds a row for a node that the table does not contain: numbers are 0, texts empty, buckets 0 or the bucket of
    /// missing values.
    pub(crate) fn push_missing(&mut self, decoder: &Decoder) {
        for (t, slot) in decoder.attr_types.iter().zip(decoder.slots()) {
            let missing = t.missing_bucket();
            match slot {
                Slot::Float(_) => {
                    let count = if let AttrType::Vector { size } = t { *size as usize } else { 1 };
                    self.floats.extend(std::iter::repeat_n(0.0, count));
                }
                Slot::Double(_) => self.doubles.push(0.0),
                Slot::Int(_) => self.ints.push(missing.unwrap_or(0)),
                Slot::Text(j) => self.texts[j].push(""),
                Slot::List(j) => self.lists[j].push(missing),
            }
        }
    }
}

/// The parser of attributes, constructed once per block of rows.
pub(crate) struct AttributeReader<'a> {
    decoder: &'a Decoder,
    slots: Vec<Slot>,
    /// The delimiter, if it is one character, as in most tables.
    one: Option<char>,
    notation: Notation,
}

impl<'a> AttributeReader<'a> {
    pub(crate) fn new(decoder: &'a Decoder, notation: Notation) -> Self {
        let (Delimiter::Exact(text) | Delimiter::AnyOf { any_of: text }) = &decoder.attr_delimiter;
        let mut chars = text.chars();
        let one = chars.next().filter(|_| chars.next().is_none());
        Self { decoder, slots: decoder.slots(), one, notation }
    }

    fn each<'t>(&self, text: &'t str, f: impl FnMut(&'t str)) {
        match (&self.decoder.attr_delimiter, self.one) {
            (_, Some(c)) => text.split(c).for_each(f),
            (Delimiter::AnyOf { any_of }, None) => text.split(|c| any_of.contains(c)).for_each(f),
            (Delimiter::Exact(d), None) if d.is_empty() => std::iter::once(text).for_each(f),
            (Delimiter::Exact(d), None) => text.split(d.as_str()).for_each(f),
        }
    }

    /// Parses the attribute text of a row and appends it to `out`. After an error `out` contains a part of the row.
    ///
    /// The error is the expected and the found value.
    pub(crate) fn read<'t>(
        &self,
        text: &'t str,
        out: &mut Attributes,
    ) -> Result<(), (Expected, &'t str)> {
        let types = &self.decoder.attr_types;
        // A single attribute may be empty, except with the delimiters of GraphLearn.
        let nothing = text.is_empty()
            && (types.len() != 1 || matches!(self.decoder.attr_delimiter, Delimiter::AnyOf { .. }));
        let (mut count, mut problem) = (0, None);
        if !nothing {
            self.each(text, |part| {
                if count < types.len() && problem.is_none() {
                    problem = self.push(count, part.as_bytes(), out).err().map(|e| {
                        (Expected { what: format!("{} as attribute {count}", e.what), ..e }, part)
                    });
                }
                count += 1;
            });
        }
        if count != types.len() {
            let (Delimiter::Exact(d) | Delimiter::AnyOf { any_of: d }) =
                &self.decoder.attr_delimiter;
            let expected = format!("{} attributes separated by {d:?}, not {count}", types.len());
            return Err((
                Expected::from(expected).or("`Decoder::with_delimiter` sets what separates them"),
                text,
            ));
        }
        problem.map_or(Ok(()), Err)
    }

    /// Appends a number to the float attributes.
    #[inline]
    pub(crate) fn push_float(
        &self,
        number: Result<f32, NotF32>,
        out: &mut Attributes,
    ) -> Result<(), Expected> {
        let number = rounded(number, self.decoder.rounding());
        out.floats.push(number.map_err(|e| e.expected("a float".into(), ROUND))?);
        Ok(())
    }

    /// Parses attribute `i` of a row and appends it to `out`, which has the attributes before it. The error is the
    /// expected value.
    #[inline]
    pub(crate) fn push(&self, i: usize, part: &[u8], out: &mut Attributes) -> Result<(), Expected> {
        let t = &self.decoder.attr_types[i];
        let zero = self.decoder.empty_as_zero && part.is_empty();
        let int = || {
            if zero {
                return Ok(0);
            }
            let remedy = if part.is_empty() { EMPTY_NUMBER } else { "" };
            parse_i64(part).ok_or_else(|| Expected::from("an int64").or(remedy))
        };
        let text = || {
            std::str::from_utf8(part).map_err(|_| {
                Expected::from("UTF-8 text").or(remedy_of(self.decoder, OTHER_ENCODING))
            })
        };
        let no_float = || {
            Expected::from("a float").or(match part {
                b"" => EMPTY_NUMBER,
                _ if part.contains(&b',') => remedy_of(self.decoder, DECIMAL),
                _ => "",
            })
        };
        let own = t.missing_bucket();
        let missing = |value: &[u8]| own.filter(|_| value.is_empty());
        match (*t, self.slots[i]) {
            (AttrType::Float, Slot::Float(_)) => {
                let number = if zero { Ok(0.0) } else { self.notation.float(part) };
                let is_number = number != Err(NotF32::NoNumber);
                self.push_float(number, out).map_err(|e| if is_number { e } else { no_float() })?;
            }
            (AttrType::Double, Slot::Double(_)) => {
                let number = if zero { Some(0.0) } else { self.notation.double(part) };
                out.doubles.push(number.ok_or_else(no_float)?);
            }
            (AttrType::Vector { size }, _) => {
                let wrong = || Expected::from(format!("{size} numbers joined by `,`"));
                let inside = part.trim_ascii();
                let bare = inside.strip_prefix(b"[").and_then(|t| t.strip_suffix(b"]"));
                let before = out.floats.len();
                for (i, number) in bare.unwrap_or(inside).split(|&b| b == b',').enumerate() {
                    let number = self.notation.float(number);
                    if number == Err(NotF32::NoNumber) {
                        return Err(wrong());
                    }
                    self.push_float(number, out).map_err(|e| e.of_entry(i))?;
                }
                if out.floats.len() - before != size as usize {
                    return Err(wrong());
                }
            }
            (AttrType::Text, Slot::Text(j)) => out.texts[j].push(text()?),
            (AttrType::TextBuckets { buckets, hash, .. }, _) => {
                let text = text()?;
                out.ints.push(missing(part).unwrap_or_else(|| hash.bucket(text, buckets)));
            }
            (AttrType::IntBuckets { buckets, by, .. }, _) => out.ints.push(match missing(part) {
                Some(bucket) => bucket,
                None => {
                    by.bucket(int()?, buckets).ok_or_else(|| format!("a number in 0..{buckets}"))?
                }
            }),
            (AttrType::MultiText { buckets, hash, .. }, Slot::List(j)) => {
                out.lists[j].push(text()?.split(',').map(|value| match buckets {
                    Some(b) => missing(value.as_bytes()).unwrap_or_else(|| hash.bucket(value, b)),
                    None => hash::key(value),
                }));
            }
            _ => out.ints.push(int()?),
        }
        Ok(())
    }
}
