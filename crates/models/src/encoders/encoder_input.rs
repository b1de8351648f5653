//! Validates and converts node attributes for a [`FeatureEncoder`](crate::FeatureEncoder).

use std::collections::HashMap;

use burn::tensor::{Element, Tensor};
use burn_gnn_data::{
    DOUBLE_ATTRS, Decoder, FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec, INT_ATTRS, Slot,
    TEXT_KEYS,
};
use burn_gnn_graph::{Frame, GraphError, Relation};

use crate::error::ModelError;

/// What an encoder takes: the attributes of some nodes, in the order of its parts.
#[derive(Clone, Debug)]
pub struct EncoderInput {
    pub(crate) rows: usize,
    pub(crate) parts: Vec<PartInput>,
}

/// The values of one run of numbers, or of one embedded attribute.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per attribute
pub(crate) enum PartInput {
    /// `[rows, numbers]`, on the plain device.
    Numbers(Tensor<2>),
    /// From rows of the table to nodes: one edge per value.
    Lookup(Relation),
}

impl EncoderInput {
    /// Number of nodes.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Attributes of one type of nodes on the host, read when they are asked for.
pub(crate) struct HostColumns<'a> {
    frame: &'a Frame,
    /// `None` for all nodes.
    ids: Option<&'a [u32]>,
    ints: HashMap<&'static str, Vec<i64>>,
    /// Columns of floats, whole numbers, texts and doubles of the decoder.
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

    /// Column `at` of a matrix of whole numbers.
    fn ints(&mut self, name: &'static str, at: usize) -> Result<Vec<i64>, ModelError> {
        if !self.ints.contains_key(name) {
            // Asked for as integers of rank 2, so that other columns are an error.
            self.frame.get_int::<2>(name)?;
            let values = self.column(name)?;
            self.ints.insert(name, values);
        }
        let width = self.width(name);
        Ok(self.ints[name].iter().skip(at).step_by(width).copied().collect())
    }

    /// Columns that the decoder has under a name.
    fn width(&self, name: &str) -> usize {
        let [floats, ints, texts, doubles] = self.widths;
        match name {
            FLOAT_ATTRS => floats,
            DOUBLE_ATTRS => doubles,
            INT_ATTRS => ints,
            _ => texts,
        }
    }

    /// All values of a column, row by row. Refuses a frame with another number of attributes of a kind, which is that
    /// of another table.
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
            "column `{name}` of {label}: expected {expected} attributes, as the decoder has, found {width}; give the \
             frame of the table that it has read"
        )))
    }

    /// Values of an embedded attribute, and the node of each.
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

    /// Columns of numbers that lie side by side, `count` from slot `first` on, row after row.
    pub(crate) fn numbers(&self, first: Slot, count: usize) -> Result<Vec<f64>, ModelError> {
        let name = numbers_of(first);
        let (Slot::Float(at) | Slot::Double(at) | Slot::Int(at) | Slot::Text(at) | Slot::List(at)) =
            first;
        let values: Vec<f64> = self.column(name)?;
        let rows = values.chunks_exact(self.width(name));
        Ok(rows.flat_map(|row| row[at..at + count].iter().copied()).collect())
    }
}

/// Column of a frame that holds numbers of a kind.
pub(crate) fn numbers_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Float(_) => FLOAT_ATTRS,
        Slot::Double(_) => DOUBLE_ATTRS,
        _ => INT_ATTRS,
    }
}

/// Relation from the rows of a table to nodes; a value outside the table is an error, an unknown key of a growing table
/// no edge.
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

/// Runs of numbers that lie side by side, and embedded attributes alone: `(first part, number of parts)`.
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
