//! Defines how CSV files are written, and which of their columns are read.

use serde::{Deserialize, Serialize};

use crate::tables::text::encoding::Encoding;
use crate::tables::text::time::TimeUnit;

/// Which columns of a CSV file a [`Decoder`] reads, by name, and how the file is written: by default as in RFC 4180, in
/// UTF-8, with a header. Columns that are not named are not read. Empty lines are passed over. Every other row is read or
/// is an error: also a quote that is not closed, in a column that is read or not.
///
/// | pandas' `read_csv` | here |
/// | --- | --- |
/// | `sep="::"` (one character or more, no regular expression) | `with_delimiter("::")` |
/// | `header=None, names=[…]` | `with_columns([…])`; columns behind those named are not read |
/// | `skiprows=3` | `with_skipped_lines(3)` |
/// | `comment="#"` | `with_comment("#")`, at the start of a line alone |
/// | `quoting=csv.QUOTE_NONE` | `without_quotes()` |
/// | `quotechar="'"`, `escapechar="\\"` | `with_quote('\'')`, `with_escape('\\')` |
/// | `na_values=["NA"]`; nothing but an empty field is missing unless it is named | `with_missing(["NA"])` |
/// | `decimal=","` | `with_decimal(',')` |
/// | `encoding="latin-1"` | `with_encoding(Encoding::Latin1)` |
/// | `parse_dates=["when"]` | `with_timestamp("when").with_time_unit(TimeUnit::Seconds)` |
///
/// A Parquet file (feature `parquet`), detected from its first bytes, is read by the same names: its ids are texts if
/// their column holds texts, whatever [`text_ids`](Self::text_ids) says, a null is an empty field, a time is a number
/// in the unit of its column, and lines in errors are rows, counted from 1. A list column of numbers is an attribute of
/// the type [`AttrType::vector`](crate::AttrType::vector), by the name of the list. What says how text is written,
/// missing values included, does not apply to it.
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
    /// Between fields; one character or more. A comma by default.
    pub delimiter: String,
    /// Names of the first columns of a file without a header; `None`: the first row that is no comment has the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Lines before the header, or before the first row, that are passed over, whatever they hold.
    #[serde(skip_serializing_if = "is_default")]
    pub skipped_lines: u64,
    /// What lines begin with that are passed over; `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Around fields that hold delimiters, line ends or quotes; two of them inside are one. An ASCII character, `"` by
    /// default; `None`: quotes are characters like any other.
    pub quote: Option<char>,
    /// Before a character that stands for itself, inside of quotes and outside; an ASCII character. `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<char>,
    /// Between the whole number and the fraction of weights and float attributes; an ASCII character, `.` by default.
    pub decimal: char,
    /// Fields that are read as empty ones, also in quotes; none by default. See [`Decoder::empty_label`] and
    /// [`Decoder::empty_as_zero`] for what an empty field is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// How characters are stored.
    #[serde(skip_serializing_if = "is_default")]
    pub encoding: Encoding,
    /// What timestamps become: those of the file are seconds since 1970, with a fraction or not, or dates of ISO 8601.
    /// `None`: timestamps are whole numbers as they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Column of node ids; `id` by default.
    pub id: String,
    /// Column of source ids; `src_id` by default.
    pub src: String,
    /// Column of destination ids; `dst_id` by default.
    pub dst: String,
    /// Whether ids are texts and not whole numbers: those of nodes, and of both endpoints of edges.
    pub text_ids: bool,
    /// Whether the source ids of edges are texts, whatever [`text_ids`](Self::text_ids) says.
    pub text_src_ids: bool,
    /// Whether the destination ids of edges are texts, whatever [`text_ids`](Self::text_ids) says.
    pub text_dst_ids: bool,
    /// Column of weights; `weight` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Column of labels; `label` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Column of timestamps; `timestamp` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Columns of the attributes, one for each of [`Decoder::attr_types`].
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
    /// Attributes in these columns; everything else in columns of GraphLearn's names.
    pub fn new(attributes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { attributes: attributes.into_iter().map(Into::into).collect(), ..Self::default() }
    }
    /// With another character, or several, between fields.
    #[must_use]
    #[doc(alias = "sep")]
    #[doc(alias = "separator")]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = delimiter.into();
        self
    }
    /// For a file without a header whose first columns have these names; rows may have more fields, all the same number.
    #[must_use]
    #[doc(alias = "header")]
    #[doc(alias = "names")]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }
    /// Without the first lines of the file.
    #[must_use]
    #[doc(alias = "skiprows")]
    pub fn with_skipped_lines(mut self, lines: u64) -> Self {
        self.skipped_lines = lines;
        self
    }
    /// Without lines that begin with this mark.
    #[must_use]
    pub fn with_comment(mut self, mark: impl Into<String>) -> Self {
        self.comment = Some(mark.into());
        self
    }
    /// With another character than `"` around fields.
    #[must_use]
    pub fn with_quote(mut self, quote: char) -> Self {
        self.quote = Some(quote);
        self
    }
    /// With quotes that are characters like any other.
    #[must_use]
    pub fn without_quotes(mut self) -> Self {
        self.quote = None;
        self
    }
    /// With this character before one that stands for itself, as Spark writes `\"` inside of quotes.
    #[must_use]
    pub fn with_escape(mut self, escape: char) -> Self {
        self.escape = Some(escape);
        self
    }
    /// With fractions behind this character, such as a comma.
    #[must_use]
    pub fn with_decimal(mut self, decimal: char) -> Self {
        self.decimal = decimal;
        self
    }
    /// With these texts for missing values, such as `NA` or `\N`.
    #[must_use]
    #[doc(alias = "na_values")]
    pub fn with_missing(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.missing = texts.into_iter().map(Into::into).collect();
        self
    }
    /// With another encoding than UTF-8.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }
    /// With timestamps in this unit, of seconds since 1970 or of dates of ISO 8601 (`2014-01-31`, `2014-01-31T12:00:00.5Z`,
    /// UTC unless they say otherwise). A time between two of the unit is an error. In a Parquet file whole numbers and
    /// times stay as they are.
    #[must_use]
    #[doc(alias = "parse_dates")]
    pub fn with_time_unit(mut self, unit: TimeUnit) -> Self {
        self.time_unit = Some(unit);
        self
    }
    /// With another column of node ids.
    #[must_use]
    pub fn with_id(mut self, name: impl Into<String>) -> Self {
        self.id = name.into();
        self
    }
    /// With other columns of source and destination ids.
    #[must_use]
    pub fn with_endpoints(mut self, src: impl Into<String>, dst: impl Into<String>) -> Self {
        (self.src, self.dst) = (src.into(), dst.into());
        self
    }
    /// With ids that are texts, of nodes and of both endpoints of edges.
    #[must_use]
    pub fn with_text_ids(mut self) -> Self {
        self.text_ids = true;
        self
    }
    /// With edges whose sources have texts for ids and whose destinations may have numbers.
    #[must_use]
    pub fn with_text_src_ids(mut self) -> Self {
        self.text_src_ids = true;
        self
    }
    /// With edges whose destinations have texts for ids and whose sources may have numbers.
    #[must_use]
    pub fn with_text_dst_ids(mut self) -> Self {
        self.text_dst_ids = true;
        self
    }
    /// With weights, in this column.
    #[must_use]
    pub fn with_weight(mut self, name: impl Into<String>) -> Self {
        self.weight = Some(name.into());
        self
    }
    /// With labels, in this column.
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>) -> Self {
        self.label = Some(name.into());
        self
    }
    /// With timestamps, in this column.
    #[must_use]
    pub fn with_timestamp(mut self, name: impl Into<String>) -> Self {
        self.timestamp = Some(name.into());
        self
    }
}
