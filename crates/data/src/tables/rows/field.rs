//! Parses the fields of rows; names the options that accept invalid ones.

use crate::columns::narrow::NotF32;
use crate::files::Cut;
use crate::tables::schema::decoder::Decoder;
use crate::tables::text::parse_number::{parse_f32, parse_f64, parse_i64};
use crate::tables::text::time::TimeUnit;

/// A column that stands before the attributes.
#[derive(Clone, Copy)]
pub(crate) enum LeadingColumn {
    Id,
    Weight,
    Label,
    Time,
}

/// A field of a row: bytes of a text, or the value of a file with types.
pub(crate) trait Field: Copy {
    /// Whether nothing is there.
    fn is_empty(self) -> bool;
    /// The integer that it is, if it is one.
    fn int(self) -> Option<i64>;
    fn float(self) -> Result<f32, NotF32>;
    /// The time that it is; `Err`: what was expected.
    fn time(self) -> Result<i64, &'static str> {
        self.int().ok_or("an int64")
    }
    /// Bytes that should be UTF-8, none where nothing is there; `None` for another type.
    fn bytes(&self) -> Option<&[u8]>;
    /// What to do about a field that is not the number that a column should have.
    fn remedy(self, column: LeadingColumn) -> &'static str;
    /// As errors show it.
    fn found(self) -> Cut;
}

/// How the numbers of a text are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notation {
    /// Between whole numbers and fractions.
    pub(crate) decimal: u8,
    /// What timestamps become; `None`: they are whole numbers as they stand.
    pub(crate) time: Option<TimeUnit>,
}

impl Notation {
    /// As GraphLearn writes numbers.
    pub(crate) const PLAIN: Self = Self { decimal: b'.', time: None };

    #[inline]
    pub(crate) fn float(self, text: &[u8]) -> Result<f32, NotF32> {
        if self.decimal == b'.' {
            return parse_f32(text);
        }
        parse_f32(&self.with_point(text).ok_or(NotF32::NoNumber)?)
    }
    pub(crate) fn double(self, text: &[u8]) -> Option<f64> {
        if self.decimal == b'.' {
            return parse_f64(text);
        }
        parse_f64(&self.with_point(text)?)
    }
    /// A number with a point in place of the decimal mark; `None` for a text that contains a point.
    fn with_point(self, text: &[u8]) -> Option<Vec<u8>> {
        let point = |&b: &u8| if b == self.decimal { b'.' } else { b };
        (!text.contains(&b'.')).then(|| text.iter().map(point).collect())
    }
}

/// A field of a text.
#[derive(Clone, Copy)]
pub(crate) struct TextField<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) notation: Notation,
}

impl Field for TextField<'_> {
    fn is_empty(self) -> bool {
        self.text.is_empty()
    }
    fn int(self) -> Option<i64> {
        parse_i64(self.text)
    }
    fn float(self) -> Result<f32, NotF32> {
        self.notation.float(self.text)
    }
    fn time(self) -> Result<i64, &'static str> {
        match self.notation.time {
            Some(unit) => unit.parse(self.text),
            None => self.int().ok_or("an int64"),
        }
    }
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.text)
    }
    fn remedy(self, column: LeadingColumn) -> &'static str {
        match (column, self.text) {
            (LeadingColumn::Id, b"") => "",
            (LeadingColumn::Weight | LeadingColumn::Time, b"") => EMPTY_NUMBER,
            (LeadingColumn::Label, b"") => EMPTY_LABEL,
            // A number with a point, as `1.0`.
            (LeadingColumn::Id, text) if is_fraction(text) => WHOLE_AS_FLOAT,
            (LeadingColumn::Label, text) if is_fraction(text) => FLOAT_LABELS,
            (LeadingColumn::Id, _) => TEXT_IDS,
            (LeadingColumn::Weight, text) if text.contains(&b',') => DECIMAL,
            (LeadingColumn::Weight, _) => "",
            (LeadingColumn::Label, _) => TEXT_LABELS,
            (LeadingColumn::Time, _) if self.notation.time.is_some() => FINER_UNIT,
            (LeadingColumn::Time, _) => OTHER_TIMES,
        }
    }
    fn found(self) -> Cut {
        self.text.into()
    }
}

fn is_fraction(text: &[u8]) -> bool {
    text.contains(&b'.') && !matches!(parse_f32(text), Err(NotF32::NoNumber))
}

/// What to do about a number that f32 cannot represent.
pub(crate) const ROUND: &str = "`Decoder::round_floats` takes the nearest f32; `AttrType::Double` keeps f64, `AttrType::Int` whole numbers";
/// What to do about an empty field that should be a number.
pub(crate) const EMPTY_NUMBER: &str = "`Decoder::empty_as_zero` reads an empty number as 0";
/// What to do about a date, or a fraction, that should be a number.
const OTHER_TIMES: &str =
    "`Csv::with_time_unit` reads dates of ISO 8601 and fractions of seconds since 1970";
/// The same in GraphLearn's tables, which have no dates.
const NUMBER_TIMES: &str = "write times as whole numbers, such as seconds since 1970";
/// What to do about a time that its unit does not have.
const FINER_UNIT: &str =
    "`Csv::with_time_unit` sets the unit; `TimeUnit::Microseconds` has six digits of a second";
/// What to do about a decimal comma.
pub(crate) const DECIMAL: &str = "`Csv::with_decimal(',')` reads decimal commas";
/// What to do about bytes that are no UTF-8.
pub(crate) const OTHER_ENCODING: &str =
    "`Csv::with_encoding(Encoding::Latin1)` reads other bytes than UTF-8";
/// What to do about an empty field that should be a class.
pub(crate) const EMPTY_LABEL: &str =
    "`Decoder::empty_label_as(-1)` reads an empty label as no class";
/// What to do about texts where ids of the other table are numbers.
pub(crate) const NUMBER_IDS: &str =
    "read the ids of both tables as numbers, or both by `Csv::with_text_ids`";
/// What to do about texts where classes are expected.
pub(crate) const TEXT_LABELS: &str = "`Decoder::text_labels` numbers labels that are texts";
/// A remedy that helps the tables of a decoder: those of `Csv` help CSV files alone.
pub(crate) fn remedy_of(decoder: &Decoder, remedy: &'static str) -> &'static str {
    match remedy {
        _ if decoder.csv.is_some() => remedy,
        OTHER_TIMES => NUMBER_TIMES,
        OTHER_ENCODING | DECIMAL => "",
        _ => remedy,
    }
}

/// What to do about labels that are floats.
pub(crate) const FLOAT_LABELS: &str = "labels are classes, whole numbers without a point: convert the column (pandas: `astype(\"Int64\")`), or number its \
     texts by `Decoder::text_labels`";
/// What to do about `1.0` where whole numbers are expected.
const WHOLE_AS_FLOAT: &str = "write whole numbers without a point (pandas writes a column with gaps as floats: convert it to `Int64`)";
/// What to do about texts where numbers are expected as ids.
pub(crate) const TEXT_IDS: &str = "`Csv::with_text_ids` reads ids that are texts (`with_text_src_ids`, `with_text_dst_ids` \
     those of one endpoint), in GraphLearn's format `:string` in the header";
