//! Parses the header of a table: `name:type` per column.

use std::path::Path;

use burn_gnn_files::DataError;

use crate::files::{Expected, table_error};
use crate::tables::schema::decoder::Decoder;

/// The header of a table, validated against the decoder.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Roles of the columns, such as `weight`, for messages.
    pub(crate) names: Vec<&'static str>,
    /// Whether a column is declared with 32 bits.
    pub(crate) narrow: Vec<bool>,
    /// Positions of the columns in the file, from 0.
    pub(crate) positions: Vec<usize>,
    /// Whether an id column contains texts.
    pub(crate) text_ids: Vec<bool>,
}

/// Families of types. Types of a family are equivalent, as in GraphLearn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Int,
    Float,
    Text,
    /// An id: a whole number or a text.
    Id,
}

impl Header {
    /// Number of columns.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Parses a header line and compares it with the columns of the decoder.
    pub(crate) fn parse(
        path: &Path,
        line: Option<&[u8]>,
        ids: &[&'static str],
        decoder: &Decoder,
    ) -> Result<Self, DataError> {
        let mut columns: Vec<(&'static str, Family)> =
            ids.iter().map(|&n| (n, Family::Id)).collect();
        let optional = [
            (decoder.weighted, ("weight", Family::Float)),
            (
                decoder.labeled,
                ("label", if decoder.text_labels { Family::Text } else { Family::Int }),
            ),
            (decoder.timestamped, ("timestamp", Family::Int)),
            (!decoder.attr_types.is_empty(), ("attributes", Family::Text)),
        ];
        columns.extend(optional.into_iter().filter(|o| o.0).map(|o| o.1));
        let shown = |(name, family): (&str, Family)| match family {
            Family::Int | Family::Id => format!("{name}:int64"),
            Family::Float => format!("{name}:float"),
            Family::Text => format!("{name}:string"),
        };
        let Some(line) = line else {
            let expected = format!("a header of {} `name:type` columns", columns.len());
            return Err(table_error(path, 1, 0, expected, "an empty file"));
        };
        let text = std::str::from_utf8(line)
            .map_err(|_| table_error(path, 1, 0, "a header in UTF-8", line))?;
        // Counted before they are collected: an entry takes more memory than a tab.
        if text.split('\t').count() != columns.len() {
            let all: Vec<String> = columns.iter().map(|&c| shown(c)).collect();
            let expected = Expected::from(format!(
                "{} columns `{}` as the decoder says",
                columns.len(),
                all.join(" ")
            ));
            let remedy = if text.contains(':') { "" } else { "`Decoder::csv` reads CSV files" };
            return Err(table_error(path, 1, 0, expected.or(remedy), text));
        }
        let (mut narrow, mut text_ids) = (vec![], vec![]);
        for (i, (item, &column)) in text.split('\t').zip(&columns).enumerate() {
            let wrong = || {
                let or = if column.1 == Family::Id {
                    format!(" or `{}:string`", column.0)
                } else {
                    String::new()
                };
                table_error(path, 1, i + 1, format!("a column like `{}`{or}", shown(column)), item)
            };
            let (_, ty) =
                item.split_once(':').filter(|(_, ty)| !ty.contains(':')).ok_or_else(wrong)?;
            let ty = ty.trim();
            let family = match ty {
                "int" | "int32" | "long" | "int64" => Family::Int,
                "float" | "double" => Family::Float,
                "string" => Family::Text,
                _ => return Err(wrong()),
            };
            match (column.1, family) {
                (Family::Id, Family::Int | Family::Text) => text_ids.push(family == Family::Text),
                (a, b) if a == b => {}
                _ => return Err(wrong()),
            }
            narrow.push(matches!(ty, "int" | "int32"));
        }
        let positions = (0..columns.len()).collect();
        Ok(Self { names: columns.into_iter().map(|c| c.0).collect(), narrow, positions, text_ids })
    }
}
