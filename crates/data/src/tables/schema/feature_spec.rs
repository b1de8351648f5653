//! Describes the encoding of each attribute: kind, table rows, output features.

use std::fmt;
use std::ops::Range;

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use super::attr_type::AttrType;
use super::decoder::{Decoder, Slot};
use crate::files::decoder_error;

/// How an attribute is encoded as features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeatureKind {
    /// The number itself, one feature.
    Number,
    /// A row of a table of `rows` rows.
    Embedding {
        /// Rows of the table.
        rows: usize,
    },
    /// A row of a table that grows with the values seen.
    Dynamic,
    /// Sum or mean of rows of a table of `rows` rows.
    Bag {
        /// Rows of the table.
        rows: usize,
    },
    /// Sum or mean of rows of a table that grows with the values seen.
    DynamicBag,
}

/// One attribute in the output of an encoder, or one number of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeaturePart {
    /// Number of the attribute.
    pub attribute: usize,
    /// Its encoding.
    pub kind: FeatureKind,
    /// Column of its values.
    pub slot: Slot,
    /// Its output features.
    pub columns: Range<usize>,
}

/// The layout of encoded attributes, in the order of the attributes. (GraphLearn orders floats first, then whole numbers,
/// then texts.) `Display` prints one line per attribute.
///
/// ```
/// use burn_gnn_data::{AttrType, Decoder};
/// let types = [AttrType::string_buckets(500), AttrType::string_buckets(800), AttrType::hashed_int(1000)];
/// let d = Decoder::new().with_attributes(types).with_dims([Some(8), Some(12), Some(16)]);
/// let spec = d.feature_spec()?;
/// assert_eq!(spec.width(), 36);
/// assert_eq!(spec.to_string(), "\
/// attribute 0  columns 0..8    embedding, 500 rows
/// attribute 1  columns 8..20   embedding, 800 rows
/// attribute 2  columns 20..36  embedding, 1000 rows
/// ");
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureSpec {
    /// One part per attribute that is not excluded; for a vector, one per number.
    pub parts: Vec<FeaturePart>,
}

impl FeatureSpec {
    /// Output feature size.
    pub fn width(&self) -> usize {
        self.parts.last().map_or(0, |p| p.columns.end)
    }
}

impl fmt::Display for FeatureSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes = || self.parts.chunk_by(|a, b| a.attribute == b.attribute);
        let names = |parts: &[FeaturePart]| {
            let (first, last) = (&parts[0], &parts[parts.len() - 1]);
            (
                format!("attribute {}", first.attribute),
                format!("columns {}..{}", first.columns.start, last.columns.end),
            )
        };
        let width = |text: fn((String, String)) -> String| {
            attributes().map(|parts| text(names(parts)).len()).max().unwrap_or(0)
        };
        let (first, second) = (width(|n| n.0), width(|n| n.1));
        for parts in attributes() {
            let (attribute, columns) = names(parts);
            let kind = match parts[0].kind {
                FeatureKind::Number if parts.len() > 1 => format!("{} numbers", parts.len()),
                FeatureKind::Number => "number".to_owned(),
                FeatureKind::Embedding { rows } => format!("embedding, {rows} rows"),
                FeatureKind::Dynamic => "growing embedding".into(),
                FeatureKind::Bag { rows } => format!("embedding bag, {rows} rows"),
                FeatureKind::DynamicBag => "growing embedding bag".into(),
            };
            writeln!(f, "{attribute:<first$}  {columns:<second$}  {kind}")?;
        }
        Ok(())
    }
}

impl Decoder {
    /// The encoding of each attribute: numbers, embeddings of size `attr_dims`, bags of embeddings.
    ///
    /// # Errors
    /// [`DataError::Decoder`] as GraphLearn asserts: another number of `attr_dims` than of attributes, a size for a float,
    /// no size for buckets or for a text.
    pub fn feature_spec(&self) -> Result<FeatureSpec, DataError> {
        self.feature_spec_without(&[])
    }

    /// [`feature_spec`](Self::feature_spec) without the attributes in these columns of the [`Csv`](crate::Csv).
    ///
    /// # Errors
    /// As [`feature_spec`](Self::feature_spec); no such column.
    pub fn feature_spec_without(&self, excluded: &[String]) -> Result<FeatureSpec, DataError> {
        let names = self.csv.as_ref().map_or(&[][..], |csv| &csv.attributes);
        if let Some(name) = excluded.iter().find(|name| !names.contains(name)) {
            let message = format!(
                "expected columns of attributes, {names:?}, got `{name}`; name one of these"
            );
            return Err(decoder_error("excluded", message));
        }
        if !self.attr_dims.is_empty() && self.attr_dims.len() != self.attr_types.len() {
            let counts = format!("({} and {})", self.attr_dims.len(), self.attr_types.len());
            let message = format!("The size of attr_dims must be equal with attr_types. {counts}");
            return Err(decoder_error("attr_dims", message));
        }
        self.check()?;
        let (mut parts, mut end) = (vec![], 0usize);
        for (i, (t, slot)) in self.attr_types.iter().zip(self.slots()).enumerate() {
            if names.get(i).is_some_and(|name| excluded.contains(name)) {
                continue;
            }
            let refuse = |message: String| decoder_error(format!("attr_dims[{i}]"), message);
            let dim = self.attr_dims.get(i).copied().flatten().filter(|&d| d > 0);
            let kind = match (t, dim) {
                (
                    AttrType::Float | AttrType::Double | AttrType::Vector { .. } | AttrType::Int,
                    None,
                ) => FeatureKind::Number,
                (AttrType::Int | AttrType::Text, Some(_)) => FeatureKind::Dynamic,
                (AttrType::MultiText { buckets: None, .. }, Some(_)) => FeatureKind::DynamicBag,
                (AttrType::MultiText { .. }, Some(_)) => {
                    FeatureKind::Bag { rows: t.rows().unwrap_or(0) }
                }
                (AttrType::IntBuckets { .. } | AttrType::TextBuckets { .. }, Some(_)) => {
                    FeatureKind::Embedding { rows: t.rows().unwrap_or(0) }
                }
                (AttrType::Float | AttrType::Double | AttrType::Vector { .. }, Some(d)) => {
                    return Err(refuse(format!("expected none for a float, got {d}")));
                }
                (t, None) => {
                    return Err(refuse(format!(
                        "expected the dimension of an embedding for {t:?}, got none; give one by \
                         `Decoder::with_dims`, or leave the attribute out (of a CSV table by `FeatureEncoderConfig::without`)"
                    )));
                }
            };
            let count = if let AttrType::Vector { size } = t { *size as usize } else { 1 };
            for k in 0..count {
                let start = end;
                end = start
                    .checked_add(dim.unwrap_or(1))
                    .filter(|&e| e <= u32::MAX as usize)
                    .ok_or_else(|| {
                        refuse("expected fewer than 2^32 columns together, got more".into())
                    })?;
                let slot = if let Slot::Float(j) = slot { Slot::Float(j + k) } else { slot };
                parts.push(FeaturePart { attribute: i, kind, slot, columns: start..end });
            }
        }
        Ok(FeatureSpec { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttrType::{Float, Int, Text};

    fn spec(types: Vec<AttrType>, dims: &[usize]) -> Result<FeatureSpec, DataError> {
        Decoder::new()
            .with_attributes(types)
            .with_dims(dims.iter().map(|&d| (d > 0).then_some(d)))
            .feature_spec()
    }

    #[test]
    fn the_five_documented_cases() {
        let width = |types, dims: &[usize]| spec(types, dims).unwrap().width();
        assert_eq!(width(vec![Float; 20], &[]), 20);
        assert_eq!(width(vec![Float, Int, Int], &[]), 3);
        assert_eq!(width(vec![Float, Int, AttrType::hashed_int(1000)], &[0, 0, 16]), 18);
        let strings = vec![
            AttrType::string_buckets(500),
            AttrType::string_buckets(800),
            AttrType::hashed_int(1000),
        ];
        assert_eq!(width(strings, &[8, 12, 16]), 36);
        assert_eq!(
            width(vec![AttrType::string_buckets(500), AttrType::multi_string(800)], &[8, 12]),
            20
        );
    }

    #[test]
    fn every_type_with_and_without_a_dimension() {
        let kind = |t, d| spec(vec![t], &[d]).map(|s| (s.parts[0].kind, s.width()));
        assert_eq!(kind(Float, 0).unwrap(), (FeatureKind::Number, 1));
        assert_eq!(kind(Int, 0).unwrap(), (FeatureKind::Number, 1));
        assert_eq!(kind(Int, 5).unwrap(), (FeatureKind::Dynamic, 5));
        assert_eq!(kind(Text, 5).unwrap(), (FeatureKind::Dynamic, 5));
        assert_eq!(
            kind(AttrType::hashed_int(9), 5).unwrap(),
            (FeatureKind::Embedding { rows: 9 }, 5)
        );
        assert_eq!(
            kind(AttrType::string_buckets(9).with_missing_row(), 5).unwrap(),
            (FeatureKind::Embedding { rows: 10 }, 5)
        );
        assert_eq!(kind(AttrType::multi_string(9), 5).unwrap(), (FeatureKind::Bag { rows: 9 }, 5));
        assert_eq!(kind(AttrType::multi_string(None), 5).unwrap(), (FeatureKind::DynamicBag, 5));
        for (t, d, part) in [
            (Float, 4, "attr_dims[0]`: expected none for a float, got 4"),
            (
                Text,
                0,
                "attr_dims[0]`: expected the dimension of an embedding for Text, got none; give one by",
            ),
            (AttrType::hashed_int(9), 0, "expected the dimension of an embedding"),
            (AttrType::string_buckets(9), 0, "expected the dimension of an embedding"),
            (AttrType::multi_string(9), 0, "expected the dimension of an embedding"),
            (AttrType::multi_string(None), 0, "expected the dimension of an embedding"),
        ] {
            let e = kind(t, d).unwrap_err();
            assert!(
                matches!(e, DataError::Decoder { .. }) && e.to_string().contains(part),
                "{t:?}: {e}"
            );
        }
        let e = spec(vec![Float, Int], &[3]).unwrap_err().to_string();
        assert!(
            e.contains("The size of attr_dims must be equal with attr_types. (1 and 2)"),
            "{e}"
        );
    }

    #[test]
    fn parts_have_the_order_of_the_attributes() {
        // GraphLearn orders the float first.
        let s = spec(
            vec![AttrType::multi_string(7), Int, Float, AttrType::string_buckets(3)],
            &[4, 0, 0, 2],
        )
        .unwrap();
        let columns: Vec<_> = s.parts.iter().map(|p| (p.slot, p.columns.clone())).collect();
        assert_eq!(
            columns,
            [
                (Slot::List(0), 0..4),
                (Slot::Int(0), 4..5),
                (Slot::Float(0), 5..6),
                (Slot::Int(1), 6..8)
            ]
        );
    }
}
