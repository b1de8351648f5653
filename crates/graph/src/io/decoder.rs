//! Node and edge tables: which columns there are, attributes, and ids of any value to 0..n.

use std::collections::HashMap;
use std::path::Path;

use super::table::{Field, FieldType, Table, TableColumn, line_of, table_error};
use crate::GraphError;

/// Which optional columns a node or edge table has, and what is inside its attribute column.
///
/// Nodes: `id [weight] [label] [attributes]`; edges: `src_id dst_id [weight] [label] [attributes]`. A
/// column is there if and only if the decoder says so.
///
/// ```
/// use burn_gnn_graph::io::{Decoder, FieldType, TableColumn, read_nodes};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("items");
/// std::fs::write(&path, "id:int64\tfeature:string\n10001\tred:1:0.1\n10002\tblue:2:0.2\n").unwrap();
/// let d = Decoder::new().with_attributes([FieldType::Text, FieldType::Int, FieldType::Float]);
/// let items = read_nodes(&path, &d)?;
/// assert_eq!(items.ids, [10001, 10002]);
/// assert_eq!(items.attributes[1], TableColumn::Int(vec![1, 2]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoder {
    /// Whether there is a column of weights.
    pub weighted: bool,
    /// Whether there is a column of labels.
    pub labeled: bool,
    /// Types of the attributes; empty if there is no attribute column.
    pub attr_types: Vec<FieldType>,
    /// Characters, each of which separates attributes (as in GraphLearn, a set and not a word).
    pub attr_delimiter: String,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { weighted: false, labeled: false, attr_types: vec![], attr_delimiter: ":".into() }
    }
}

impl Decoder {
    /// Ids only.
    pub fn new() -> Self {
        Self::default()
    }
    /// With a column of weights.
    #[must_use]
    pub fn weighted(mut self) -> Self {
        self.weighted = true;
        self
    }
    /// With a column of labels.
    #[must_use]
    pub fn labeled(mut self) -> Self {
        self.labeled = true;
        self
    }
    /// With a column of attributes.
    #[must_use]
    pub fn with_attributes(mut self, types: impl IntoIterator<Item = FieldType>) -> Self {
        self.attr_types = types.into_iter().collect();
        self
    }
    /// With other characters between attributes than `:`.
    #[must_use]
    pub fn with_delimiter(mut self, characters: impl Into<String>) -> Self {
        self.attr_delimiter = characters.into();
        self
    }
    fn fields(&self, ids: &[&str]) -> Vec<Field> {
        let mut fields: Vec<Field> = ids.iter().map(|n| Field::new(*n, FieldType::Int)).collect();
        if self.weighted {
            fields.push(Field::new("weight", FieldType::Float));
        }
        if self.labeled {
            fields.push(Field::new("label", FieldType::Int));
        }
        if !self.attr_types.is_empty() {
            fields.push(Field::new("feature", FieldType::Text));
        }
        fields
    }
}

/// A node table.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTable {
    /// Id of each node, in the order of the file; all different.
    pub ids: Vec<i64>,
    /// Weight of each node.
    pub weights: Option<Vec<f32>>,
    /// Label of each node.
    pub labels: Option<Vec<i64>>,
    /// Attributes, in the order of [`Decoder::attr_types`].
    pub attributes: Vec<TableColumn>,
}

/// An edge table. Parallel edges stay.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeTable {
    /// Source id of each edge, in the order of the file.
    pub src: Vec<i64>,
    /// Destination id of each edge.
    pub dst: Vec<i64>,
    /// Weight of each edge.
    pub weights: Option<Vec<f32>>,
    /// Label of each edge.
    pub labels: Option<Vec<i64>>,
    /// Attributes, in the order of [`Decoder::attr_types`].
    pub attributes: Vec<TableColumn>,
}

/// Reads a node table. Row `i` is line `i + 2` of the file.
///
/// # Errors
/// As [`Table::read`]; an id that an earlier row has; an attribute column with another number of
/// attributes, or with one that is not of its type.
pub fn read_nodes(path: impl AsRef<Path>, decoder: &Decoder) -> Result<NodeTable, GraphError> {
    let path = path.as_ref();
    let mut columns = Columns(Table::read(path, &decoder.fields(&["id"]))?.columns.into_iter());
    let ids = columns.ints();
    IdIndex::new(path, &ids)?;
    let (weights, labels, attributes) = columns.rest(path, decoder, 2)?;
    Ok(NodeTable { ids, weights, labels, attributes })
}

/// Reads an edge table. Row `i` is line `i + 2` of the file, and edge `i`.
///
/// # Errors
/// As [`read_nodes`]; edges may repeat.
pub fn read_edges(path: impl AsRef<Path>, decoder: &Decoder) -> Result<EdgeTable, GraphError> {
    let path = path.as_ref();
    let mut columns = Columns(Table::read(path, &decoder.fields(&["src_id", "dst_id"]))?.columns.into_iter());
    let (src, dst) = (columns.ints(), columns.ints());
    let (weights, labels, attributes) = columns.rest(path, decoder, 3)?;
    Ok(EdgeTable { src, dst, weights, labels, attributes })
}

/// Columns of a table whose types are those of [`Decoder::fields`], taken one by one.
struct Columns(std::vec::IntoIter<TableColumn>);

type Rest = (Option<Vec<f32>>, Option<Vec<i64>>, Vec<TableColumn>);

impl Columns {
    fn ints(&mut self) -> Vec<i64> {
        match self.0.next() {
            Some(TableColumn::Int(v)) => v,
            // `Table::read` returns exactly the types it was asked for.
            _ => vec![],
        }
    }

    /// Weights, labels and attributes; the first of them is column `column` of the file.
    fn rest(mut self, path: &Path, decoder: &Decoder, column: usize) -> Result<Rest, GraphError> {
        let weights = decoder.weighted.then(|| match self.0.next() {
            Some(TableColumn::Float(v)) => v,
            _ => vec![],
        });
        let labels = decoder.labeled.then(|| self.ints());
        let column = column + usize::from(decoder.weighted) + usize::from(decoder.labeled);
        let attributes = match self.0.next() {
            Some(TableColumn::Text(rows)) => attributes(path, decoder, column, &rows)?,
            _ => vec![],
        };
        Ok((weights, labels, attributes))
    }
}

/// Splits an attribute column into one column per attribute. An empty text has no attributes at all.
fn attributes(path: &Path, decoder: &Decoder, column: usize, rows: &[String]) -> Result<Vec<TableColumn>, GraphError> {
    let types = &decoder.attr_types;
    // Grown row by row: a description that lies about the number of attributes must not reserve memory for all rows.
    let mut out: Vec<TableColumn> = vec![];
    let empty = || types.iter().map(|t| TableColumn::empty(*t)).collect();
    for (row, text) in rows.iter().enumerate() {
        let parts = || text.split(|c| decoder.attr_delimiter.contains(c));
        let count = if text.is_empty() { 0 } else { parts().count() };
        if count != types.len() {
            let expected = format!("{} attributes separated by {:?}, not {count}", types.len(), decoder.attr_delimiter);
            return Err(table_error(path, line_of(row), column, expected, text));
        }
        if row == 0 {
            out = empty();
        }
        for (i, part) in parts().enumerate() {
            let wrong = |kind: &str| table_error(path, line_of(row), column, format!("{kind} as attribute {i}"), part);
            match &mut out[i] {
                TableColumn::Int(v) => v.push(part.trim().parse().map_err(|_| wrong("an int64"))?),
                TableColumn::Float(v) => v.push(part.trim().parse().map_err(|_| wrong("a float"))?),
                TableColumn::Text(v) => v.push(part.to_owned()),
            }
        }
    }
    Ok(if rows.is_empty() { empty() } else { out })
}

/// Ids of any value to the position of their row.
///
/// ```
/// use burn_gnn_graph::io::IdIndex;
/// let users = IdIndex::new("users", &[123, 124, -9])?;
/// assert_eq!((users.get(-9), users.get(1)), (Some(2), None));
/// assert!(IdIndex::new("users", &[5, 5]).is_err());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IdIndex {
    len: usize,
    /// `None` where id `i` is row `i`, as in tables that a program wrote.
    positions: Option<HashMap<i64, u32>>,
}

impl IdIndex {
    /// From the ids of a node table; `path` is what errors name.
    ///
    /// # Errors
    /// [`GraphError::Table`] at the second row with an id; [`GraphError::TooLarge`].
    pub fn new(path: impl AsRef<Path>, ids: &[i64]) -> Result<Self, GraphError> {
        let (path, len) = (path.as_ref(), ids.len());
        let limit = u64::from(u32::MAX) - 1;
        if len as u64 > limit {
            return Err(GraphError::TooLarge { relation: path.display().to_string(), what: "nodes", count: len as u64, limit });
        }
        if ids.iter().enumerate().all(|(i, &id)| i as i64 == id) {
            return Ok(Self { len, positions: None });
        }
        let mut positions = HashMap::with_capacity(len);
        for (i, &id) in ids.iter().enumerate() {
            if let Some(first) = positions.insert(id, i as u32) {
                let expected = format!("an id that occurs once (line {} has it)", line_of(first as usize));
                return Err(table_error(path, line_of(i), 1, expected, &id.to_string()));
            }
        }
        Ok(Self { len, positions: Some(positions) })
    }
    /// Number of ids.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Position of an id.
    pub fn get(&self, id: i64) -> Option<u32> {
        match &self.positions {
            None => u32::try_from(id).ok().filter(|&i| (i as usize) < self.len),
            Some(map) => map.get(&id).copied(),
        }
    }
    /// Positions of a whole column of another table.
    ///
    /// # Errors
    /// [`GraphError::Table`] at the first id that is not there; `path` and `column` (from 1) say where
    /// `ids` come from, and `whose` what they should name.
    pub fn positions(&self, path: impl AsRef<Path>, column: usize, whose: &str, ids: &[i64]) -> Result<Vec<u32>, GraphError> {
        let find = |(row, &id): (usize, &i64)| {
            let expected = || format!("the id of a `{whose}` node");
            self.get(id).ok_or_else(|| table_error(path.as_ref(), line_of(row), column, expected(), &id.to_string()))
        };
        ids.iter().enumerate().map(find).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldType::{Float, Int, Text};

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn nodes(text: &str, d: &Decoder) -> Result<NodeTable, GraphError> {
        let (_dir, path) = file(text);
        read_nodes(&path, d)
    }

    #[test]
    fn every_form_of_node_and_edge_table() {
        for bits in 0..8 {
            let (w, l, a) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
            let d = Decoder { weighted: w, labeled: l, attr_types: if a { vec![Int, Text] } else { vec![] }, attr_delimiter: "|:".into() };
            let pick =
                |parts: [&str; 4], on: [bool; 4]| parts.iter().zip(on).filter(|p| p.1).map(|p| *p.0).collect::<Vec<_>>().join("\t") + "\n";
            let (head, row) = (["id:int64", "w:float", "l:int32", "f:string"], ["7", "0.5", "-1", "3|x"]);
            let t = nodes(&(pick(head, [true, w, l, a]) + &pick(row, [true, w, l, a])), &d).unwrap();
            let attrs = if a { vec![TableColumn::Int(vec![3]), TableColumn::Text(vec!["x".into()])] } else { vec![] };
            let (weights, labels) = (w.then(|| vec![0.5]), l.then(|| vec![-1]));
            assert_eq!(t, NodeTable { ids: vec![7], weights: weights.clone(), labels: labels.clone(), attributes: attrs.clone() });
            let (_dir, path) = file(&(format!("dst:int64\t{}8\t{}", pick(head, [true, w, l, a]), pick(row, [true, w, l, a]))));
            let t = read_edges(&path, &d).unwrap();
            assert_eq!(t, EdgeTable { src: vec![8], dst: vec![7], weights, labels, attributes: attrs });
        }
    }

    #[test]
    fn documented_tables() {
        let d = Decoder::new().with_attributes([Text, Int, Text, Int, Float, Float]);
        let t = nodes("id:int64\tfeature:string\n0\tshanghai:0:s2:10:0.1:0.5\n1\tbeijing:1:s2:11:0.1:0.5\n", &d).unwrap();
        assert_eq!(t.attributes[0], TableColumn::Text(vec!["shanghai".into(), "beijing".into()]));
        assert_eq!(t.attributes[3], TableColumn::Int(vec![10, 11]));
        assert_eq!(t.attributes[5], TableColumn::Float(vec![0.5, 0.5]));
        let users = IdIndex::new("users", &[123, 124, 125]).unwrap();
        let items = IdIndex::new("items", &[10001, 10002, 10003]).unwrap();
        let (_dir, path) = file("src_id:int64\tdst_id:int64\tweight:float\n123\t10001\t0.1\n124\t10001\t0.2\n124\t10002\t0.3\n");
        let e = read_edges(&path, &Decoder::new().weighted()).unwrap();
        assert_eq!(users.positions(&path, 1, "user", &e.src).unwrap(), [0, 1, 1]);
        assert_eq!(items.positions(&path, 2, "item", &e.dst).unwrap(), [0, 0, 1]);
        assert_eq!(e.weights.unwrap(), [0.1, 0.2, 0.3]);
    }

    #[test]
    fn refusals() {
        let refused = |text: &str, d: &Decoder, end: &str| {
            let e = nodes(text, d).unwrap_err();
            assert!(matches!(e, GraphError::Table { .. }) && e.to_string().ends_with(end), "expected {end:?} at the end of {e}");
        };
        refused("id:int64\n3\n4\n3\n", &Decoder::new(), ":4:1: expected an id that occurs once (line 2 has it), got \"3\"");
        let d = Decoder::new().labeled().with_attributes([Int, Float]);
        let head = "id:int64\tl:int\tf:string\n";
        refused(&format!("{head}0\t0\t1:2:3"), &d, ":2:3: expected 2 attributes separated by \":\", not 3, got \"1:2:3\"");
        refused(&format!("{head}0\t0\t"), &d, "not 0, got \"\"");
        refused(&format!("{head}0\t0\t1:2\n1\t0\tx:2"), &d, ":3:3: expected an int64 as attribute 0, got \"x\"");
        refused(&format!("{head}0\t0\t1:y"), &d, ":2:3: expected a float as attribute 1, got \"y\"");
        refused("id:int64\tl:int\n0\t1\n", &Decoder::new(), "expected 1 columns `id:int64`, got \"id:int64\\tl:int\"");
        let e = IdIndex::new("n", &[5, 6]).unwrap().positions("edges", 2, "crate", &[6, 7]).unwrap_err().to_string();
        assert_eq!(e, "edges:3:2: expected the id of a `crate` node, got \"7\"");
        let dense = IdIndex::new("n", &[0, 1]).unwrap();
        assert_eq!((dense.get(1), dense.get(2), dense.get(-1), dense.get(i64::MAX)), (Some(1), None, None, None));
    }
}
