//! Defines how CSV files are written, and which of their columns are read.

use serde::{Deserialize, Serialize};

use crate::tables::text::encoding::Encoding;
use crate::tables::text::time::TimeUnit;

/// Selects the columns of a CSV or Parquet file that a [`Decoder`](crate::Decoder) reads, by name, and describes the
/// dialect of a CSV file: by default RFC 4180 in UTF-8 with a header.
///
/// Other columns are not read. Empty lines are skipped. Each other row is read or is an error; so is a quote that is not
/// closed, even in a column that is not read.
///
/// | pandas' `read_csv` | here |
/// | --- | --- |
/// | `sep="::"` (one character or more, no regular expression) | `with_delimiter("::")` |
/// | `header=None, names=[…]` | `with_columns([…])`; columns after the named ones are not read |
/// | `skiprows=3` | `with_skipped_lines(3)` |
/// | `comment="#"` | `with_comment("#")`, at the start of a line alone |
/// | `quoting=csv.QUOTE_NONE` | `without_quotes()` |
/// | `quotechar="'"`, `escapechar="\\"` | `with_quote('\'')`, `with_escape('\\')` |
/// | `na_values=["NA"]`; by default only an empty field is missing | `with_missing(["NA"])` |
/// | `decimal=","` | `with_decimal(',')` |
/// | `encoding="latin-1"` | `with_encoding(Encoding::Latin1)` |
/// | `parse_dates=["when"]` | `with_timestamp("when").with_time_unit(TimeUnit::Seconds)` |
///
/// A Parquet file (feature `parquet`) is detected from its first bytes and read by the same names. Its ids are texts if
/// their column contains texts, independent of [`text_ids`](Self::text_ids). A null is an empty field, a time is a number
/// in the unit of its column, and lines in errors are rows, counted from 1. A list column of numbers is an attribute of
/// the type [`AttrType::vector`](crate::AttrType::vector), by the name of the list. Options about text, missing values
/// included, do not apply.
///
/// ```
/// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.csv");
/// std::fs::write(&path, "city;person;age\n\"Bonn; Bad Godesberg\";7;40\nKöln;9;31\n").unwrap();
/// let csv = Csv::new(["age", "city"]).with_id("person").with_delimiter(';');
/// let people = read_nodes(&path, &Decoder::new().with_attributes([AttrType::Int, AttrType::Text]).csv(csv))?;
/// assert_eq!((people.ids.number(9), people.columns.attributes.ints), (Some(1), vec![40, 31]));
/// assert_eq!(people.columns.attributes.texts[0].get(0), "Bonn; Bad Godesberg");
/// // The ratings of MovieLens, without a header:
/// let ratings = dir.path().join("ratings.dat");
/// std::fs::write(&ratings, "1::1193::5::978300760\n1::661::3::978302109\n").unwrap();
/// let csv = Csv::default().with_delimiter("::").with_columns(["user", "movie", "stars", "when"]);
/// let csv = csv.with_endpoints("user", "movie").with_weight("stars").with_timestamp("when");
/// let ratings = burn_gnn_data::read_edges(&ratings, &Decoder::new().csv(csv))?;
/// assert_eq!(ratings.columns.weights.unwrap(), [5.0, 3.0]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Csv {
    /// Delimiter between fields, one character or more. A comma by default.
    pub delimiter: String,
    /// Names of the first columns of a file without a header; `None`: the first row that is not a comment is the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Number of lines before the header, or before the first row, that are skipped.
    #[serde(skip_serializing_if = "is_default")]
    pub skipped_lines: u64,
    /// Lines that begin with this mark are skipped; `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Quote around fields that contain delimiters, line ends or quotes, which are doubled. An ASCII character, `"` by
    /// default; `None`: quotes have no special meaning.
    pub quote: Option<char>,
    /// Escape before a character that loses its special meaning, inside and outside of quotes; an ASCII character. `None`
    /// by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<char>,
    /// Decimal mark of weights and float attributes; an ASCII character, `.` by default.
    pub decimal: char,
    /// Texts that are read as empty fields, with or without quotes; none by default. [`Decoder::empty_label`] and
    /// [`Decoder::empty_as_zero`] determine the value of an empty field.
    ///
    /// [`Decoder::empty_label`]: crate::Decoder::empty_label
    /// [`Decoder::empty_as_zero`]: crate::Decoder::empty_as_zero
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Character encoding.
    #[serde(skip_serializing_if = "is_default")]
    pub encoding: Encoding,
    /// Unit of the timestamps in the graph. Timestamps in the file are seconds since 1970, with or without a fraction, or
    /// dates of ISO 8601. `None`: timestamps are whole numbers without conversion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Column of node ids; `id` by default.
    pub id: String,
    /// Column of source ids; `src_id` by default.
    pub src: String,
    /// Column of destination ids; `dst_id` by default.
    pub dst: String,
    /// Whether ids of nodes, and of both endpoints of edges, are texts instead of whole numbers.
    pub text_ids: bool,
    /// Whether source ids of edges are texts, even without [`text_ids`](Self::text_ids).
    pub text_src_ids: bool,
    /// Whether destination ids of edges are texts, even without [`text_ids`](Self::text_ids).
    pub text_dst_ids: bool,
    /// Column of weights; `weight` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Column of labels; `label` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Column of timestamps; `timestamp` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Columns of the attributes, one for each of [`Decoder::attr_types`](crate::Decoder::attr_types).
    pub attributes: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Csv {
    fn default() -> Self {
        Self {
            delimiter: ",".into(),
            columns: None,
            skipped_lines: 0,
            comment: None,
            quote: Some('"'),
            escape: None,
            decimal: '.',
            missing: vec![],
            encoding: Encoding::default(),
            time_unit: None,
            id: "id".into(),
            src: "src_id".into(),
            dst: "dst_id".into(),
            text_ids: false,
            text_src_ids: false,
            text_dst_ids: false,
            weight: None,
            label: None,
            timestamp: None,
            attributes: vec![],
        }
    }
}

impl Csv {
    /// Reads attributes from these columns, and ids, weights, labels and timestamps from columns of the default names.
    pub fn new(attributes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { attributes: attributes.into_iter().map(Into::into).collect(), ..Self::default() }
    }
    /// Sets the delimiter between fields, one character or more.
    #[must_use]
    #[doc(alias = "sep")]
    #[doc(alias = "separator")]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = delimiter.into();
        self
    }
    /// Reads a file without a header whose first columns have these names. Rows may have more fields, but all the same
    /// number.
    #[must_use]
    #[doc(alias = "header")]
    #[doc(alias = "names")]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }
    /// Skips the first lines of the file.
    #[must_use]
    #[doc(alias = "skiprows")]
    pub fn with_skipped_lines(mut self, lines: u64) -> Self {
        self.skipped_lines = lines;
        self
    }
    /// Skips lines that begin with this mark.
    #[must_use]
    pub fn with_comment(mut self, mark: impl Into<String>) -> Self {
        self.comment = Some(mark.into());
        self
    }
    /// Sets the quote around fields.
    #[must_use]
    pub fn with_quote(mut self, quote: char) -> Self {
        self.quote = Some(quote);
        self
    }
    /// Reads quotes as plain characters.
    #[must_use]
    pub fn without_quotes(mut self) -> Self {
        self.quote = None;
        self
    }
    /// Sets the escape, such as `\` for files of Spark, which writes `\"` inside quotes.
    #[must_use]
    pub fn with_escape(mut self, escape: char) -> Self {
        self.escape = Some(escape);
        self
    }
    /// Sets the decimal mark, such as a comma.
    #[must_use]
    pub fn with_decimal(mut self, decimal: char) -> Self {
        self.decimal = decimal;
        self
    }
    /// Reads these texts as missing values, such as `NA` or `\N`.
    #[must_use]
    #[doc(alias = "na_values")]
    pub fn with_missing(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.missing = texts.into_iter().map(Into::into).collect();
        self
    }
    /// Sets the character encoding.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }
    /// Converts timestamps to this unit, from seconds since 1970 or dates of ISO 8601 (`2014-01-31`,
    /// `2014-01-31T12:00:00.5Z`; UTC by default). A time that is not a multiple of the unit is an error. In a Parquet file,
    /// whole numbers and times are not converted.
    #[must_use]
    #[doc(alias = "parse_dates")]
    pub fn with_time_unit(mut self, unit: TimeUnit) -> Self {
        self.time_unit = Some(unit);
        self
    }
    /// Sets the column of node ids.
    #[must_use]
    pub fn with_id(mut self, name: impl Into<String>) -> Self {
        self.id = name.into();
        self
    }
    /// Sets the columns of source and destination ids.
    #[must_use]
    pub fn with_endpoints(mut self, src: impl Into<String>, dst: impl Into<String>) -> Self {
        (self.src, self.dst) = (src.into(), dst.into());
        self
    }
    /// Reads ids of nodes, and of both endpoints of edges, as texts.
    #[must_use]
    pub fn with_text_ids(mut self) -> Self {
        self.text_ids = true;
        self
    }
    /// Reads source ids of edges as texts; destination ids may be numbers.
    #[must_use]
    pub fn with_text_src_ids(mut self) -> Self {
        self.text_src_ids = true;
        self
    }
    /// Reads destination ids of edges as texts; source ids may be numbers.
    #[must_use]
    pub fn with_text_dst_ids(mut self) -> Self {
        self.text_dst_ids = true;
        self
    }
    /// Reads weights from this column.
    #[must_use]
    pub fn with_weight(mut self, name: impl Into<String>) -> Self {
        self.weight = Some(name.into());
        self
    }
    /// Reads labels from this column.
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>) -> Self {
        self.label = Some(name.into());
        self
    }
    /// Reads timestamps from this column.
    #[must_use]
    pub fn with_timestamp(mut self, name: impl Into<String>) -> Self {
        self.timestamp = Some(name.into());
        self
    }
}
