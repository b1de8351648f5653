//! Parses the fields of rows; names the options that accept invalid ones.

use crate::columns::narrow::NotF32;
use crate::files::Cut;
use crate::tables::schema::decoder::Decoder;
use crate::tables::text::parse_number::{parse_f32, parse_f64, parse_i64};
use crate::tables::text::time::TimeUnit;

/// A column before the attributes.
#[derive(Clone, Copy)]
pub(crate) enum LeadingColumn {
    Id,
    Weight,
    Label,
    Time,
}

/// A field of a row: bytes of a text, or a typed value of a Parquet file.
pub(crate) trait Field: Copy {
    /// Whether the field is empty or null.
    fn is_empty(self) -> bool;
    /// The whole number, if the field is one.
    fn int(self) -> Option<i64>;
    fn float(self) -> Result<f32, NotF32>;
    /// The time; `Err`: the expected value.
    fn time(self) -> Result<i64, &'static str> {
        self.int().ok_or("an int64")
    }
    /// Bytes that should be UTF-8, empty for a null; `None` for another type.
    fn bytes(&self) -> Option<&[u8]>;
    /// The option that accepts this field in a column whose type it does not have.
    fn remedy(self, column: LeadingColumn) -> &'static str;
    /// The field in an error.
    fn found(self) -> Cut;
}

/// The notation of numbers in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notation {
    /// Decimal mark.
    pub(crate) decimal: u8,
    /// Unit of the parsed timestamps; `None`: timestamps are whole numbers without conversion.
    pub(crate) time: Option<TimeUnit>,
}

impl Notation {
    /// The notation of GraphLearn.
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

/// A field of a text file.
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

/// Remedy for a number that f32 cannot represent.
pub(crate) const ROUND: &str = "`Decoder::round_floats` takes the nearest f32; `AttrType::Double` keeps f64, `AttrType::Int` whole numbers";
/// Remedy for an empty field that should be a number.
pub(crate) const EMPTY_NUMBER: &str = "`Decoder::empty_as_zero` reads an empty number as 0";
/// Remedy for a date or a fraction as timestamp.
const OTHER_TIMES: &str =
    "`Csv::with_time_unit` reads dates of ISO 8601 and fractions of seconds since 1970";
/// Remedy for a date or a fraction in a table of GraphLearn, which has no dates.
const NUMBER_TIMES: &str = "write times as whole numbers, such as seconds since 1970";
/// Remedy for a time that is not a multiple of the unit.
const FINER_UNIT: &str =
    "`Csv::with_time_unit` sets the unit; `TimeUnit::Microseconds` has six digits of a second";
/// Remedy for a decimal comma.
pub(crate) const DECIMAL: &str = "`Csv::with_decimal(',')` reads decimal commas";
/// Remedy for bytes that are not UTF-8.
pub(crate) const OTHER_ENCODING: &str =
    "`Csv::with_encoding(Encoding::Latin1)` reads other bytes than UTF-8";
/// Remedy for an empty label.
pub(crate) const EMPTY_LABEL: &str =
    "`Decoder::empty_label_as(-1)` reads an empty label as no class";
/// Remedy for texts as ids of nodes whose ids are numbers in the other table.
pub(crate) const NUMBER_IDS: &str =
    "read the ids of both tables as numbers, or both by `Csv::with_text_ids`";
/// Remedy for texts as labels.
pub(crate) const TEXT_LABELS: &str = "`Decoder::text_labels` numbers labels that are texts";
/// The remedy for the table of a decoder. Options of `Csv` apply to CSV files only.
pub(crate) fn remedy_of(decoder: &Decoder, remedy: &'static str) -> &'static str {
    match remedy {
        _ if decoder.csv.is_some() => remedy,
        OTHER_TIMES => NUMBER_TIMES,
        OTHER_ENCODING | DECIMAL => "",
        _ => remedy,
    }
}

/// Remedy for floats as labels.
pub(crate) const FLOAT_LABELS: &str = "labels are classes, whole numbers without a point: convert the column (pandas: `astype(\"Int64\")`), or number its \
     texts by `Decoder::text_labels`";
/// Remedy for `1.0` as an id.
const WHOLE_AS_FLOAT: &str = "write whole numbers without a point (pandas writes a column with gaps as floats: convert it to `Int64`)";
/// Remedy for texts as ids.
pub(crate) const TEXT_IDS: &str = "`Csv::with_text_ids` reads ids that are texts (`with_text_src_ids`, `with_text_dst_ids` \
     those of one endpoint), in GraphLearn's format `:string` in the header";
