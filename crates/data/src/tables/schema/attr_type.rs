//! Defines the types of table attributes, and parses their notation.

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use super::hash::{IntBuckets, TextHash};
use crate::files::decoder_error;

/// The type of an attribute, and how its values are encoded as inputs of a network.
///
/// Descriptions (serde) accept GraphLearn's notation: `"int"`, `"float"`, `"string"`, `["int", 1000]`,
/// `["string", 500]`, `["string", 800, true]`, `["string", null, true]`. A serialized type is an object that also contains
/// the hash.
///
/// ```
/// use burn_gnn_data::{AttrType, TextHash};
/// let city: AttrType = serde_json::from_str(r#"["string", 500]"#)?;
/// assert_eq!(city, AttrType::string_buckets(500));
/// let text = r#"{"type":"string","buckets":500,"hash":"murmur_hash64a"}"#;
/// assert_eq!(serde_json::to_string(&city)?, text);
/// assert_eq!(serde_json::from_str::<AttrType>(text)?, city);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum AttrType {
    /// A number, f32.
    Float,
    /// A number, f64: a column of [`DOUBLE_ATTRS`](crate::DOUBLE_ATTRS), for values that f32 cannot represent, such as
    /// large counts or coordinates. `"double"` in a description; GraphLearn has no such type.
    Double,
    /// A vector of numbers, f32: a list in a Parquet file; in text, numbers joined by `,`, with or without brackets.
    Vector {
        /// Numbers in each row, 1 to 2²⁰.
        size: u32,
    },
    /// A whole number, i64. With an embedding dimension, it is a key of a growing embedding.
    Int,
    /// A text. With an embedding dimension, its 63-bit hash is a key of a growing embedding.
    Text,
    /// A whole number that is one of `buckets` categories, or is hashed into one.
    IntBuckets {
        /// Number of buckets, at least 1.
        buckets: u32,
        /// How a number is mapped to its bucket.
        by: IntBuckets,
        /// Whether an empty value gets a separate row, bucket number `buckets`.
        missing_row: bool,
    },
    /// A text hashed into one of `buckets` categories.
    TextBuckets {
        /// Number of buckets, at least 1.
        buckets: u32,
        /// The hash.
        hash: TextHash,
        /// Whether an empty text gets a separate row, bucket number `buckets`.
        missing_row: bool,
    },
    /// Several texts joined by `,`, each hashed. An empty text is one empty value.
    MultiText {
        /// Number of buckets, at least 1; `None` for a growing embedding, whose keys are 63-bit hashes.
        buckets: Option<u32>,
        /// The hash; growing embeddings always use [`TextHash::FarmFingerprint64`].
        hash: TextHash,
        /// Whether an empty value gets a separate row, bucket number `buckets`.
        missing_row: bool,
    },
}

impl AttrType {
    /// A vector of `size` numbers, such as an embedding: a list column of a Parquet file, or numbers joined by `,` in a
    /// text. It becomes `size` columns of the float attributes. Readers return an error for a list of another length and
    /// for a null.
    ///
    /// ```
    /// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("papers.csv");
    /// std::fs::write(&path, "id,pages,embedding\n1,9,\"[0.5, 1, 2]\"\n2,8,\"3,4,5\"\n").unwrap();
    /// let types = [AttrType::Float, AttrType::vector(3)];
    /// let papers = Decoder::new().with_attributes(types).csv(Csv::new(["pages", "embedding"]));
    /// let read = read_nodes(&path, &papers)?.columns.attributes;
    /// assert_eq!(read.floats, [9.0, 0.5, 1.0, 2.0, 8.0, 3.0, 4.0, 5.0]);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    pub fn vector(size: u32) -> Self {
        Self::Vector { size }
    }
    /// A whole number that is hashed into one of `buckets` categories, GraphLearn's `("int", buckets)`. Numbers below
    /// `buckets` may share a bucket (with 1000 buckets, 7 is in bucket 88). For numbers that are categories, use
    /// [`category`](Self::category).
    ///
    /// ```
    /// use burn_gnn_data::{AttrType, IntBuckets};
    /// let hashed = AttrType::IntBuckets { buckets: 1000, by: IntBuckets::FarmFingerprint64, missing_row: false };
    /// assert_eq!(AttrType::hashed_int(1000), hashed);
    /// ```
    #[doc(alias = "int_buckets")]
    pub fn hashed_int(buckets: u32) -> Self {
        Self::IntBuckets { buckets, by: IntBuckets::default(), missing_row: false }
    }
    /// A whole number in `0..count` that is a category, [`IntBuckets::Identity`]. Readers return an error for another
    /// number.
    ///
    /// ```
    /// use burn_gnn_data::{AttrType, Decoder, read_nodes};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("nodes");
    /// std::fs::write(&path, "id:int64\tfeature:string\n1\t7\n").unwrap();
    /// let read = |ty| Ok::<_, burn_gnn_data::DataError>(read_nodes(&path, &Decoder::new().with_attributes([ty]))?.columns.attributes.ints);
    /// assert_eq!((read(AttrType::category(1000))?, read(AttrType::hashed_int(1000))?), (vec![7], vec![88]));
    /// assert!(read(AttrType::category(7)).is_err());
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    pub fn category(count: u32) -> Self {
        Self::IntBuckets { buckets: count, by: IntBuckets::Identity, missing_row: false }
    }
    /// A text that is hashed into one of `buckets` categories, GraphLearn's `("string", buckets)`.
    pub fn string_buckets(buckets: u32) -> Self {
        Self::TextBuckets { buckets, hash: TextHash::MurmurHash64A, missing_row: false }
    }
    /// Several texts joined by `,`, GraphLearn's `("string", buckets, True)`; `None` for a growing embedding.
    pub fn multi_string(buckets: impl Into<Option<u32>>) -> Self {
        Self::MultiText {
            buckets: buckets.into(),
            hash: TextHash::FarmFingerprint64,
            missing_row: false,
        }
    }
    /// Gives empty values a separate row after the buckets. GraphLearn assigns them to bucket 0 or to the bucket of the
    /// empty text. Only for attributes with buckets.
    ///
    /// # Panics
    /// The type has no buckets.
    #[track_caller]
    #[must_use]
    pub fn with_missing_row(mut self) -> Self {
        match self.missing_row() {
            Some(row) => *row = true,
            None => panic!(
                "expected an attribute with buckets for a row of missing values, got {self:?}"
            ),
        }
        self
    }
    /// Whether empty values have a separate row; `None` for a type without buckets.
    fn missing_row(&mut self) -> Option<&mut bool> {
        match self {
            Self::IntBuckets { missing_row, .. }
            | Self::TextBuckets { missing_row, .. }
            | Self::MultiText { missing_row, buckets: Some(_), .. } => Some(missing_row),
            _ => None,
        }
    }
    /// The bucket of empty values, if they have a separate one.
    pub(crate) fn missing_bucket(&self) -> Option<i64> {
        match *self {
            Self::IntBuckets { buckets, missing_row: true, .. }
            | Self::TextBuckets { buckets, missing_row: true, .. }
            | Self::MultiText { buckets: Some(buckets), missing_row: true, .. } => {
                Some(i64::from(buckets))
            }
            _ => None,
        }
    }
    /// Constructs a type from GraphLearn's tuple `(type[, bucket[, multival]])`.
    ///
    /// # Errors
    /// [`DataError::Decoder`] as in GraphLearn: a type other than `int`, `float`, `double` and `string`, several values of
    /// another type than string, buckets of floats, 0 buckets.
    pub fn from_parts(ty: &str, buckets: Option<u64>, multi: bool) -> Result<Self, DataError> {
        let refuse = |message: String| Err(decoder_error("attr_types", message));
        let buckets = match buckets {
            None => None,
            Some(b) => match u32::try_from(b) {
                Ok(b) if (1..=MOST_BUCKETS).contains(&b) => Some(b),
                _ => return refuse(format!("expected 1 to {MOST_BUCKETS} buckets, got {b}")),
            },
        };
        match (ty, buckets, multi) {
            ("int" | "float" | "double", _, true) => {
                refuse("multi-value attribute must be string type.".into())
            }
            ("float", None, _) => Ok(Self::Float),
            ("double", None, _) => Ok(Self::Double),
            ("float" | "double", Some(b), _) => {
                refuse(format!("expected buckets for int and string only, got {b} buckets of {ty}"))
            }
            ("int", None, _) => Ok(Self::Int),
            ("int", Some(b), _) => Ok(Self::hashed_int(b)),
            ("string", None, false) => Ok(Self::Text),
            ("string", Some(b), false) => Ok(Self::string_buckets(b)),
            ("string", b, true) => Ok(Self::multi_string(b)),
            _ => refuse(format!("expected a type of int, float, double, string, got {ty:?}")),
        }
    }
    /// Rows of the embedding table: buckets and, if there is one, the row of missing values. `None` without buckets.
    pub fn rows(&self) -> Option<usize> {
        match *self {
            Self::IntBuckets { buckets, missing_row, .. }
            | Self::TextBuckets { buckets, missing_row, .. }
            | Self::MultiText { buckets: Some(buckets), missing_row, .. } => {
                Some(buckets as usize + usize::from(missing_row))
            }
            _ => None,
        }
    }
    pub(crate) fn check(&self) -> Result<(), DataError> {
        if let Self::Vector { size } = *self
            && !(1..=MOST_NUMBERS).contains(&size)
        {
            let message = format!("expected 1 to {MOST_NUMBERS} numbers in a vector, got {size}");
            return Err(decoder_error("attr_types", message));
        }
        match self.rows() {
            Some(n) if n == 0 || n > MOST_BUCKETS as usize + 1 => {
                let message = format!("expected 1 to {MOST_BUCKETS} buckets, got {n}");
                Err(decoder_error("attr_types", message))
            }
            _ => Ok(()),
        }
    }
}

/// Most buckets. They are node ids of a relation when rows of a table are summed.
const MOST_BUCKETS: u32 = u32::MAX - 2;
/// Most numbers of a vector.
const MOST_NUMBERS: u32 = 1 << 20;

/// An attribute type in a description.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Name(String),
    One((String,)),
    Single(String, Option<u64>),
    Multi(String, Option<u64>, bool),
    Full(Full),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    #[serde(rename = "type")]
    ty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    multi: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<TextHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<IntBuckets>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    missing_row: bool,
}

impl TryFrom<Form> for AttrType {
    type Error = DataError;

    fn try_from(form: Form) -> Result<Self, DataError> {
        let full = match form {
            Form::Name(ty) | Form::One((ty,)) => return Self::from_parts(&ty, None, false),
            Form::Single(ty, buckets) => return Self::from_parts(&ty, buckets, false),
            Form::Multi(ty, buckets, multi) => return Self::from_parts(&ty, buckets, multi),
            Form::Full(full) => full,
        };
        let mut out = Self::from_parts(&full.ty, full.buckets, full.multi)?;
        let refuse = |message: &str| Err(decoder_error("attr_types", message));
        match (&mut out, full.size) {
            (_, None) => {}
            (Self::Float, Some(size)) => out = Self::Vector { size },
            _ => return refuse("expected `size` of a float only, the numbers of a vector"),
        }
        match (&mut out, full.hash, full.by) {
            (_, None, None) => {}
            (
                Self::TextBuckets { hash, .. } | Self::MultiText { hash, buckets: Some(_), .. },
                Some(h),
                None,
            ) => *hash = h,
            (Self::MultiText { buckets: None, .. }, Some(TextHash::FarmFingerprint64), None) => {}
            (Self::IntBuckets { by, .. }, None, Some(b)) => *by = b,
            _ => {
                return refuse(
                    "expected `hash` only with string buckets and `by` only with int buckets",
                );
            }
        }
        match out.missing_row() {
            Some(row) => *row = full.missing_row,
            None if full.missing_row => {
                return refuse("expected `missing_row` only with buckets");
            }
            None => {}
        }
        Ok(out)
    }
}

impl From<AttrType> for Form {
    fn from(t: AttrType) -> Self {
        let full = |ty: &str, buckets: Option<u32>, multi, hash, by, missing_row| {
            Self::Full(Full {
                ty: ty.into(),
                size: None,
                buckets: buckets.map(u64::from),
                multi,
                hash,
                by,
                missing_row,
            })
        };
        match t {
            AttrType::Float => Self::Name("float".into()),
            AttrType::Double => Self::Name("double".into()),
            AttrType::Vector { size } => Self::Full(Full {
                ty: "float".into(),
                size: Some(size),
                buckets: None,
                multi: false,
                hash: None,
                by: None,
                missing_row: false,
            }),
            AttrType::Int => Self::Name("int".into()),
            AttrType::Text => Self::Name("string".into()),
            AttrType::IntBuckets { buckets, by, missing_row } => {
                full("int", Some(buckets), false, None, Some(by), missing_row)
            }
            AttrType::TextBuckets { buckets, hash, missing_row } => {
                full("string", Some(buckets), false, Some(hash), None, missing_row)
            }
            AttrType::MultiText { buckets, hash, missing_row } => {
                full("string", buckets, true, Some(hash), None, missing_row)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_documentation() {
        let read = |text: &str| serde_json::from_str::<AttrType>(text);
        for (text, ty) in [
            (r#""int""#, AttrType::Int),
            (r#""float""#, AttrType::Float),
            (r#"["float"]"#, AttrType::Float),
            (r#""double""#, AttrType::Double),
            (r#"["float", null]"#, AttrType::Float),
            (r#"{"type": "float", "size": 3}"#, AttrType::vector(3)),
            (r#""string""#, AttrType::Text),
            (r#"["int", 1000]"#, AttrType::hashed_int(1000)),
            (r#"["string", 500]"#, AttrType::string_buckets(500)),
            (r#"["string", 500, false]"#, AttrType::string_buckets(500)),
            (r#"["string", 800, true]"#, AttrType::multi_string(800)),
            (r#"["string", null, true]"#, AttrType::multi_string(None)),
            (r#"{"type": "int", "buckets": 9, "by": "modulo", "missing_row": true}"#, {
                AttrType::IntBuckets { buckets: 9, by: IntBuckets::Modulo, missing_row: true }
            }),
        ] {
            assert_eq!(read(text).unwrap(), ty, "{text}");
            let written = serde_json::to_string(&ty).unwrap();
            assert_eq!(read(&written).unwrap(), ty, "{written}");
        }
        let saved = serde_json::to_string(&AttrType::multi_string(800).with_missing_row()).unwrap();
        assert_eq!(
            saved,
            r#"{"type":"string","buckets":800,"multi":true,"hash":"farm_fingerprint64","missing_row":true}"#
        );
    }

    #[test]
    fn impossible_ones() {
        for (text, part) in [
            (r#""long""#, "expected a type of int, float, double, string, got \"long\""),
            (r#"["int", 10, true]"#, "multi-value attribute must be string type."),
            (r#"["float", null, true]"#, "multi-value attribute must be string type."),
            (r#"["float", 10]"#, "got 10 buckets of float"),
            (r#"["string", 0]"#, "buckets, got 0"),
            (r#"{"type": "int", "size": 3}"#, "expected `size` of a float only"),
            (r#"["int", 4294967295]"#, "buckets, got 4294967295"),
            (
                r#"{"type": "int", "buckets": 9, "hash": "murmur_hash64a"}"#,
                "expected `hash` only with string buckets",
            ),
            (
                r#"{"type": "string", "missing_row": true}"#,
                "expected `missing_row` only with buckets",
            ),
        ] {
            let e = serde_json::from_str::<AttrType>(text).unwrap_err().to_string();
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
