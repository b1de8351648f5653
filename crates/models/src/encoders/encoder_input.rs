//! Validates and converts node attributes for a [`FeatureEncoder`](crate::FeatureEncoder).

use std::collections::HashMap;

use burn::tensor::{Element, Tensor};
use burn_gnn_data::{
    DOUBLE_ATTRS, Decoder, FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec, INT_ATTRS, Slot,
    TEXT_KEYS,
};
use burn_gnn_graph::{Frame, GraphError, Relation};

use crate::error::ModelError;

/// Input of a [`FeatureEncoder`](crate::FeatureEncoder): the attributes of some nodes, in the order of its parts.
#[derive(Clone, Debug)]
pub struct EncoderInput {
    pub(crate) rows: usize,
    pub(crate) parts: Vec<PartInput>,
}

/// The values of consecutive number attributes, or of one attribute with an embedding.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per attribute
pub(crate) enum PartInput {
    /// `[rows, numbers]`, on the plain device.
    Numbers(Tensor<2>),
    /// A relation from rows of the embedding table to nodes, with one edge per value.
    Lookup(Relation),
}

impl EncoderInput {
    /// Number of nodes.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Attributes of a node type, copied to the host on first use.
pub(crate) struct HostColumns<'a> {
    frame: &'a Frame,
    /// `None` for all nodes.
    ids: Option<&'a [u32]>,
    ints: HashMap<&'static str, Vec<i64>>,
    /// Number of float, integer, text and double attributes of the decoder.
    widths: [usize; 4],
    /// Names of the lists.
    lists: Vec<String>,
}

impl<'a> HostColumns<'a> {
    pub(crate) fn new(
        frame: &'a Frame,
        ids: Option<&'a [u32]>,
        decoder: &Decoder,
    ) -> Result<Self, ModelError> {
        if let Some(&id) = ids.unwrap_or(&[]).iter().find(|id| **id as usize >= frame.len()) {
            return Err(GraphError::IdOutOfRange {
                what: frame.label().into(),
                id: id.into(),
                bound: frame.len() as u64,
            }
            .into());
        }
        let lists = decoder.list_names();
        Ok(Self { frame, ids, ints: HashMap::new(), widths: decoder.widths(), lists })
    }
    pub(crate) fn rows(&self) -> usize {
        self.ids.map_or(self.frame.len(), <[u32]>::len)
    }

    /// Returns column `at` of a matrix of integers.
    fn ints(&mut self, name: &'static str, at: usize) -> Result<Vec<i64>, ModelError> {
        if !self.ints.contains_key(name) {
            // Returns an error unless the column has integers of rank 2.
            self.frame.get_int::<2>(name)?;
            let values = self.column(name)?;
            self.ints.insert(name, values);
        }
        let width = self.width(name);
        Ok(self.ints[name].iter().skip(at).step_by(width).copied().collect())
    }

    /// Returns the number of attributes of the decoder in a column.
    fn width(&self, name: &str) -> usize {
        let [floats, ints, texts, doubles] = self.widths;
        match name {
            FLOAT_ATTRS => floats,
            DOUBLE_ATTRS => doubles,
            INT_ATTRS => ints,
            _ => texts,
        }
    }

    /// Returns all values of a column in row-major order. A frame with another number of attributes belongs to another
    /// table, and is an error.
    fn column<E: Element>(&self, name: &str) -> Result<Vec<E>, ModelError> {
        let (column, label) = (self.frame.column(name)?, self.frame.label());
        let column = self.ids.map_or_else(|| column.clone(), |ids| column.select(ids));
        let values = column.to_data().convert_dtype(E::dtype()).try_to_vec().map_err(|e| {
            ModelError::encoder(format!(
                "{label}, column `{name}`: {e:?}; convert the column to f64"
            ))
        })?;
        let (expected, width) =
            (self.width(name), column.shape().as_slice().get(1).copied().unwrap_or(1));
        if width == expected {
            return Ok(values);
        }
        Err(ModelError::encoder(format!(
            "column `{name}` of {label}: expected {expected} attributes (those of the decoder), found {width}; pass the \
             frame of the table that the decoder describes"
        )))
    }

    /// Returns the values of an attribute with an embedding, and the node of each value.
    pub(crate) fn values(&mut self, slot: Slot) -> Result<(Vec<i64>, Vec<u32>), ModelError> {
        let one_each = |values: Vec<i64>| {
            let nodes = (0..values.len() as u32).collect();
            (values, nodes)
        };
        match slot {
            Slot::Int(j) => self.ints(INT_ATTRS, j).map(one_each),
            Slot::Text(j) => self.ints(TEXT_KEYS, j).map(one_each),
            Slot::List(j) => {
                let list = self.frame.list(&self.lists[j])?;
                let (mut values, mut nodes) = (vec![], vec![]);
                for i in 0..self.ids.map_or(list.len(), <[u32]>::len) {
                    let row = list.row(self.ids.map_or(i, |ids| ids[i] as usize));
                    values.extend_from_slice(row);
                    nodes.extend(std::iter::repeat_n(i as u32, row.len()));
                }
                Ok((values, nodes))
            }
            Slot::Float(j) | Slot::Double(j) => {
                Err(ModelError::encoder(format!("float {j} has no embedding")))
            }
        }
    }

    /// Returns `count` consecutive number attributes from slot `first` on, in row-major order.
    pub(crate) fn numbers(&self, first: Slot, count: usize) -> Result<Vec<f64>, ModelError> {
        let name = numbers_of(first);
        let (Slot::Float(at) | Slot::Double(at) | Slot::Int(at) | Slot::Text(at) | Slot::List(at)) =
            first;
        let values: Vec<f64> = self.column(name)?;
        let rows = values.chunks_exact(self.width(name));
        Ok(rows.flat_map(|row| row[at..at + count].iter().copied()).collect())
    }
}

/// Returns the column of a frame that contains numbers of the kind of `slot`.
pub(crate) fn numbers_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Float(_) => FLOAT_ATTRS,
        Slot::Double(_) => DOUBLE_ATTRS,
        _ => INT_ATTRS,
    }
}

/// Creates the relation from rows of an embedding table to nodes. A value outside the table is an error; an unknown key of
/// a growing table has no edge.
pub(crate) fn lookup(
    attribute: usize,
    kind: FeatureKind,
    rows: usize,
    keys: Option<&HashMap<i64, u32>>,
    (values, nodes): (Vec<i64>, Vec<u32>),
    num_nodes: usize,
) -> Result<Relation, ModelError> {
    let (mut src, mut dst) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    for (value, node) in values.into_iter().zip(nodes) {
        let row = match keys {
            Some(keys) => keys.get(&value).copied(),
            None => {
                let outside = || {
                    let arg = format!("attribute {attribute} ({kind:?}), row {node}");
                    ModelError::out_of_range(arg, format!("0..{rows}"), value)
                };
                let row = u32::try_from(value).ok().filter(|&v| (v as usize) < rows);
                Some(row.ok_or_else(outside)?)
            }
        };
        if let Some(row) = row {
            src.push(row);
            dst.push(node);
        }
    }
    Ok(Relation::from_coo(rows, num_nodes, src, dst)?)
}

/// Groups consecutive number attributes, each with `(first part, number of parts)`. An attribute with an embedding is a
/// group of one.
pub(crate) fn runs(spec: &FeatureSpec) -> Vec<(usize, usize)> {
    let follows = |before: &FeaturePart, part: &FeaturePart| {
        let next = match before.slot {
            Slot::Float(j) => Slot::Float(j + 1),
            Slot::Double(j) => Slot::Double(j + 1),
            Slot::Int(j) => Slot::Int(j + 1),
            other => other,
        };
        [before.kind, part.kind] == [FeatureKind::Number; 2] && part.slot == next
    };
    let mut first = 0;
    let run = |run: &[FeaturePart]| {
        first += run.len();
        (first - run.len(), run.len())
    };
    spec.parts.chunk_by(follows).map(run).collect()
}
