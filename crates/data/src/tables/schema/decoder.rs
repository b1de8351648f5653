//! Describes the columns of a table and the contents of its attributes.

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use super::attr_type::AttrType;
use super::csv_options::Csv;
use crate::columns::narrow::RoundedCount;
use crate::files::decoder_error;

/// The delimiter between attributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delimiter {
    /// This text. An empty delimiter does not split.
    Exact(String),
    /// Any of these characters, GraphLearn's `attr_delimiter`: with `"::"`, the text `a::b` has the parts `a`, an empty
    /// one and `b`. An empty text has no parts. Equal to [`Exact`](Self::Exact) for one character.
    AnyOf {
        /// The characters.
        any_of: String,
    },
}

impl Default for Delimiter {
    fn default() -> Self {
        Self::Exact(":".into())
    }
}

/// Describes a node or edge table: its optional columns and the types of its attributes.
///
/// Nodes: `id [weight] [label] [timestamp] [attributes]`; edges:
/// `src_id dst_id [weight] [label] [timestamp] [attributes]`. The table must have exactly the columns of the decoder.
/// (GraphLearn reads timestamps of edges only.)
///
/// ```
/// use burn_gnn_graph::Ids;
/// use burn_gnn_data::{AttrType, Decoder, read_nodes};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("items");
/// std::fs::write(&path, "id:int64\tfeature:string\n10001\tred:1:0.1\n10002\tblue:2:0.2\n").unwrap();
/// let d = Decoder::new().with_attributes([AttrType::string_buckets(500), AttrType::Int, AttrType::Float]);
/// let items = read_nodes(&path, &d)?;
/// assert_eq!(items.ids.ids(), &Ids::Int(vec![10001, 10002]));
/// assert_eq!(items.columns.attributes.ints, [63, 1, d.bucket(0, "blue")?, 2]); // two whole numbers a row: the bucket of `red`, and 1
/// assert_eq!(items.columns.attributes.floats, [0.1, 0.2]);
/// // The same in a description, with GraphLearn's names:
/// let same: Decoder = serde_json::from_str(r#"{"attr_types": [["string", 500], "int", "float"]}"#).unwrap();
/// assert_eq!(same, d);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decoder {
    /// Whether there is a column of weights.
    pub weighted: bool,
    /// Whether there is a column of labels.
    pub labeled: bool,
    /// Whether labels are names of classes; see [`text_labels`](Self::text_labels).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub text_labels: bool,
    /// Whether there is a column of timestamps.
    pub timestamped: bool,
    /// Types of the attributes; empty if there is no attribute column.
    pub attr_types: Vec<AttrType>,
    /// Delimiter between attributes.
    pub attr_delimiter: Delimiter,
    /// Embedding size of each attribute (`None` or 0: no embedding); empty if no attribute is embedded. Used by
    /// [`feature_spec`](Self::feature_spec) only.
    pub attr_dims: Vec<Option<usize>>,
    /// Whether an empty weight, timestamp or number is read as 0, as in GraphLearn, instead of an error. Labels are
    /// excepted, since 0 is a class: see [`empty_label`](Self::empty_label).
    pub empty_as_zero: bool,
    /// The label of an empty field, such as -1 for no class (GraphLearn reads 0, the first class). `None`: an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_label: Option<i64>,
    /// Whether a weight or float attribute that f32 cannot represent is rounded to the nearest f32 instead of an error: a
    /// number beyond 3.4e38 becomes infinite, one below 1.4e-45 becomes 0, and a whole number beyond 2^24 may become
    /// another one. Fractions are always rounded to the nearest f32.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub round_floats: bool,
    /// Counts the numbers that `round_floats` changed.
    #[serde(skip)]
    pub rounded: RoundedCount,
    /// Options of a CSV or Parquet table; `None` for GraphLearn's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csv: Option<Csv>,
}

impl Decoder {
    /// A table with ids only.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a column of weights.
    #[must_use]
    pub fn weighted(mut self) -> Self {
        self.weighted = true;
        self
    }
    /// Adds a column of labels.
    #[must_use]
    pub fn labeled(mut self) -> Self {
        self.labeled = true;
        self
    }
    /// Adds a column of labels that are texts. Class `i` is the `i`-th name in ascending order of bytes over all rows of
    /// the table. An empty label is no class, -1 (or [`empty_label_as`](Self::empty_label_as)). The texts are kept as well,
    /// and [`class_names`](crate::class_names) returns the names.
    ///
    /// Each table numbers its classes by itself, and a shard of a table is an error. For texts that are features, use
    /// attributes ([`AttrType::Text`], [`AttrType::string_buckets`]).
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::{Builder, Csv, Decoder, LABEL_TEXT, class_names};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("items.csv");
    /// std::fs::write(&path, "id,category\n1,toys\n2,books\n3,\n4,toys\n").unwrap();
    /// let decoder = Decoder::new().csv(Csv::default().with_label("category")).text_labels();
    /// let g = Builder::new().node(&path, "item", decoder).build(&Device::flex())?;
    /// let items = g.nodes("item")?;
    /// let labels = items.get_int::<1>("label")?.into_data().try_to_vec::<i64>().unwrap();
    /// assert_eq!(labels, [1, 0, -1, 1]);
    /// assert_eq!(class_names(items.text(LABEL_TEXT)?), ["books", "toys"]);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    #[must_use]
    pub fn text_labels(mut self) -> Self {
        (self.labeled, self.text_labels) = (true, true);
        self
    }
    /// Adds a column of timestamps.
    #[must_use]
    pub fn timestamped(mut self) -> Self {
        self.timestamped = true;
        self
    }
    /// Sets the types of the attributes.
    #[must_use]
    pub fn with_attributes(mut self, types: impl IntoIterator<Item = AttrType>) -> Self {
        self.attr_types = types.into_iter().collect();
        self
    }
    /// Sets the delimiter between attributes; `:` by default.
    #[must_use]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.attr_delimiter = Delimiter::Exact(delimiter.into());
        self
    }
    /// Splits attributes at any of these characters, as GraphLearn does.
    #[must_use]
    pub fn with_delimiter_set(mut self, characters: impl Into<String>) -> Self {
        self.attr_delimiter = Delimiter::AnyOf { any_of: characters.into() };
        self
    }
    /// Sets the embedding sizes, one per attribute.
    #[must_use]
    pub fn with_dims(mut self, dims: impl IntoIterator<Item = Option<usize>>) -> Self {
        self.attr_dims = dims.into_iter().collect();
        self
    }
    /// Reads empty weights, timestamps and numbers as 0. Empty labels remain an error.
    #[must_use]
    pub fn empty_as_zero(mut self) -> Self {
        self.empty_as_zero = true;
        self
    }
    /// Rounds weights and float attributes that f32 cannot represent to the nearest f32, and counts them
    /// ([`rounded`](Self::rounded)). [`AttrType::Double`] keeps them instead.
    ///
    /// ```
    /// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("cities.csv");
    /// std::fs::write(&path, "id,people\n1,16777217\n").unwrap();
    /// let cities = Decoder::new().with_attributes([AttrType::Float]).csv(Csv::new(["people"]));
    /// assert!(read_nodes(&path, &cities).is_err());
    /// let cities = cities.round_floats();
    /// assert_eq!(read_nodes(&path, &cities)?.columns.attributes.floats, [16_777_216.0]);
    /// assert_eq!(cities.rounded.get(), 1);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    #[must_use]
    pub fn round_floats(mut self) -> Self {
        self.round_floats = true;
        self
    }
    /// The count of rounded numbers, if numbers are to be rounded.
    pub(crate) fn rounding(&self) -> Option<&RoundedCount> {
        self.round_floats.then_some(&self.rounded)
    }
    /// Reads empty labels as this number, such as -1 for no class.
    #[must_use]
    pub fn empty_label_as(mut self, label: i64) -> Self {
        self.empty_label = Some(label);
        self
    }

    /// Reads CSV or Parquet files with these columns. Each attribute is a column then, and is not split. If `csv` has names
    /// for weight, label or timestamp, these columns are added as by [`weighted`](Self::weighted),
    /// [`labeled`](Self::labeled) and [`timestamped`](Self::timestamped).
    #[must_use]
    pub fn csv(mut self, csv: Csv) -> Self {
        self.weighted |= csv.weight.is_some();
        self.labeled |= csv.label.is_some();
        self.timestamped |= csv.timestamp.is_some();
        self.csv = Some(csv);
        self
    }

    /// The column of each attribute in [`Attributes`](crate::Attributes), which groups attributes by kind.
    pub fn slots(&self) -> Vec<Slot> {
        self.layout().0
    }
    /// Columns of floats, of whole numbers and buckets, of texts, and of doubles.
    #[doc(hidden)]
    pub fn widths(&self) -> [usize; 4] {
        let [floats, ints, texts, doubles, _] = self.layout().1;
        [floats, ints, texts, doubles]
    }
    /// The slots of the attributes, and the number of columns of each kind: floats, ints, texts, doubles, lists.
    pub(crate) fn layout(&self) -> (Vec<Slot>, [usize; 5]) {
        let mut next = [0; 5];
        let mut take = |kind: usize, count: usize| {
            next[kind] += count;
            next[kind] - count
        };
        let slot = |t: &AttrType| match t {
            AttrType::Float => Slot::Float(take(0, 1)),
            AttrType::Vector { size } => Slot::Float(take(0, *size as usize)),
            AttrType::Int | AttrType::IntBuckets { .. } | AttrType::TextBuckets { .. } => {
                Slot::Int(take(1, 1))
            }
            AttrType::Text => Slot::Text(take(2, 1)),
            AttrType::Double => Slot::Double(take(3, 1)),
            AttrType::MultiText { .. } => Slot::List(take(4, 1)),
        };
        let slots = self.attr_types.iter().map(slot).collect();
        (slots, next)
    }
    /// Names of the lists of the multi-valued attributes ([`Frame::list`](burn_gnn_graph::Frame::list)), in their order:
    /// the names of their columns in a CSV or Parquet table, otherwise [`list_attr`](crate::list_attr). So is the second
    /// list of a column that is read twice.
    pub fn list_names(&self) -> Vec<String> {
        let names = self.csv.as_ref().map_or(&[][..], |csv| &csv.attributes);
        let mut lists: Vec<String> = vec![];
        for (i, slot) in self.slots().into_iter().enumerate() {
            if let Slot::List(j) = slot {
                let own = names.get(i).filter(|name| !lists.contains(name));
                lists.push(own.cloned().unwrap_or_else(|| format!("list_attr_{j}")));
            }
        }
        lists
    }
    /// The bucket of a text of attribute `i`.
    ///
    /// # Errors
    /// [`DataError::Decoder`]: there is no such attribute, or its type is not a text with buckets.
    pub fn bucket(&self, i: usize, text: &str) -> Result<i64, DataError> {
        match self.attr_types.get(i) {
            Some(
                AttrType::TextBuckets { buckets, hash, .. }
                | AttrType::MultiText { buckets: Some(buckets), hash, .. },
            ) => Ok(hash.bucket(text, *buckets)),
            other => Err(decoder_error(
                format!("attribute {i}"),
                format!("expected a string with buckets, got {other:?}"),
            )),
        }
    }
    pub(crate) fn check(&self) -> Result<(), DataError> {
        // `Decoder::csv` sets these flags; a description may lack them.
        let named = self.csv.iter().flat_map(|csv| {
            [
                ("weight", "weighted", &csv.weight, self.weighted),
                ("label", "labeled", &csv.label, self.labeled),
                ("timestamp", "timestamped", &csv.timestamp, self.timestamped),
            ]
        });
        for (name, flag, column, read) in named {
            if let Some(column) = column.as_ref().filter(|c| !read && **c != name) {
                let message = format!(
                    "expected a decoder that is `{flag}`, as it names the column `{column}`, got one that is not"
                );
                return Err(decoder_error(format!("csv.{name}"), message));
            }
        }
        if self.text_labels && !self.labeled {
            let message = "expected a decoder that is `labeled`, got one that is not";
            return Err(decoder_error("text_labels", message));
        }
        self.attr_types.iter().try_for_each(AttrType::check)
    }
}

/// The column of an attribute in [`Attributes`](crate::Attributes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Column of `floats`; the first of a vector.
    Float(usize),
    /// Column of `doubles`.
    Double(usize),
    /// Column of `ints`.
    Int(usize),
    /// Entry of `texts`.
    Text(usize),
    /// Entry of `lists`.
    List(usize),
}
