//! Reads data sets of tables in GraphLearn's format, described by `tables.json`.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Texts};
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, Features, Split};
use crate::dataset::{check_split, feature_size, sparse_size};
use crate::files::{
    FormatVersion, format_error, inside, read_json, referenced, same_count, table_error,
    unknown_ntype, without_remedy,
};
use crate::tables::schema::attr_type::AttrType;
use crate::tables::schema::decoder::Decoder;
use crate::tables::table::{NodeTable, read_edges, read_nodes, resolve};
use crate::tables::text::source::Source;

/// File name of the description.
pub(crate) const TABLES: &str = "tables.json";

/// Content of `tables.json`, which describes a data set of tables. [`load_dataset`](crate::load_dataset) reads it.
///
/// Ids in the tables may be any int64. Nodes are numbered in the order of the rows of their table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablesDescription {
    /// Version of the format, [`FORMAT_VERSION`](Self::FORMAT_VERSION).
    pub format_version: u32,
    /// Short name of the data set.
    pub name: String,
    /// Node type to classify. Its table has a label column.
    pub target: String,
    /// Whether the edge tables contain the reverses of all relations.
    pub inverse_edges_stored: bool,
    /// Node tables by node type.
    pub node_types: BTreeMap<String, NodeTableEntry>,
    /// Edge tables with the columns `src_id` and `dst_id`.
    pub edge_types: Vec<EdgeTableEntry>,
    /// Names of the classes. Label `i` in the table of the target is class `i`, and -1 is no label.
    pub class_names: Vec<String>,
    /// Splits by name.
    pub splits: BTreeMap<String, SplitTables>,
    /// Comments for readers of the file.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl TablesDescription {
    /// The version that this library writes and reads.
    pub const FORMAT_VERSION: u32 = 1;
}

/// A node table: `id [label] [feature]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTableEntry {
    /// File in the folder.
    pub file: String,
    /// Number of rows.
    pub count: u64,
    /// Whether there is a label column. The table of the target must have one.
    #[serde(default)]
    pub labeled: bool,
    /// Content of the feature column, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<TableFeatures>,
    /// A table `id name` for readers of the files. It is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_file: Option<String>,
}

/// Content of a feature column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TableFeatures {
    /// A dense vector: numbers joined by `:`.
    Dense {
        /// Length of the vector.
        size: u64,
    },
    /// Bucket numbers in `0..size` joined by `,`. The features are the counts of the buckets.
    Buckets {
        /// Number of buckets.
        size: u64,
    },
}

/// An edge table: `src_id dst_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeTableEntry {
    /// Node type of sources.
    pub src: String,
    /// Name of the relation.
    pub relation: String,
    /// Node type of destinations.
    pub dst: String,
    /// File in the folder.
    pub file: String,
    /// Number of rows.
    pub count: u64,
}

/// Tables `id weight` of the nodes in each part of a split. Weights are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitTables {
    /// Training nodes.
    pub train: SplitTable,
    /// Validation nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val: Option<SplitTable>,
    /// Test nodes.
    pub test: SplitTable,
}

/// One part of a split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitTable {
    /// File in the folder.
    pub file: String,
    /// Number of rows.
    pub count: u64,
}

/// Reads a folder of tables. See [`load_dataset`](crate::load_dataset).
pub(crate) fn load(dir: &Path) -> Result<Dataset, DataError> {
    let json = dir.join(TABLES);
    read_json::<FormatVersion>(&json)?.check(&json, TablesDescription::FORMAT_VERSION)?;
    assemble(dir, read_json(&json)?, |path| Source::from(path)).map_err(|e| e.in_file(&json))
}

/// Builds the data set of a description. `open` opens the tables by their paths.
pub(crate) fn assemble(
    dir: &Path,
    d: TablesDescription,
    open: impl Fn(&Path) -> Source,
) -> Result<Dataset, DataError> {
    let json = dir.join(TABLES);
    let parts = d
        .splits
        .values()
        .flat_map(|s| [Some(&s.train), s.val.as_ref(), Some(&s.test)])
        .flatten()
        .map(|part| &part.file);
    let named = d
        .node_types
        .values()
        .map(|t| &t.file)
        .chain(d.edge_types.iter().map(|t| &t.file))
        .chain(parts);
    referenced(&json, named.map(|file| inside(dir, &json, file)))?;
    let mut b = Graph::builder();
    let (mut index, mut features, mut labels) = (BTreeMap::new(), BTreeMap::new(), None);
    for (name, entry) in &d.node_types {
        let path = inside(dir, &json, &entry.file)?;
        let mut decoder = Decoder { labeled: entry.labeled, ..Decoder::default() };
        match &entry.features {
            None => {}
            Some(TableFeatures::Dense { size }) if entry.count > 0 => {
                let (_, cols) = feature_size(&json, entry.count, *size)?;
                // Each number takes at least two bytes of a line, a digit and a separator. Without this bound a short
                // description could allocate a vector per attribute without limit.
                let longest = std::fs::metadata(&path).map_or(0, |m| m.len()) / 2;
                if *size == 0 || *size > longest {
                    return Err(format_error(
                        &json,
                        format!(
                            "features of `{name}`: expected a size of 1 to {longest}, found {size}"
                        ),
                    ));
                }
                decoder = decoder.with_attributes(vec![AttrType::Float; cols]);
            }
            // Buckets are parsed below. A table without rows is read like this, too, since it cannot confirm the size.
            Some(_) => decoder = decoder.with_attributes([AttrType::Text]).with_delimiter(""),
        }
        let table = read_nodes(open(&path), &decoder)?;
        same_count(&path, "number of rows", entry.count, table.ids.len())?;
        if let Some(f) = &entry.features {
            let column = 2 + usize::from(entry.labeled);
            features.insert(name.clone(), features_of(&json, name, &path, column, f, &table)?);
        }
        b = b.nodes(name, table.ids.len());
        index.insert(name.as_str(), table.ids);
        if *name == d.target {
            labels = table.columns.labels;
            check_labels(&path, labels.as_deref().unwrap_or(&[]), d.class_names.len())?;
        }
    }
    let find = |name: &str| index.get(name).ok_or_else(|| unknown_ntype(name, d.node_types.keys()));
    for e in &d.edge_types {
        let path = inside(dir, &json, &e.file)?;
        let (s, t) = (find(&e.src)?, find(&e.dst)?);
        let table = read_edges(open(&path), &Decoder::new())?;
        same_count(&path, "number of rows", e.count, table.src.len())?;
        let end = |column, nodes, ids, whose| {
            resolve(ids, nodes, &table.places, column, whose, 1).map_err(first)
        };
        let (src, dst) = (end(0, s, &table.src, &e.src)?, end(1, t, &table.dst, &e.dst)?);
        b = b.edges(EdgeType::new(&*e.src, &*e.relation, &*e.dst), src, dst);
    }
    let target = find(&d.target)?;
    let labels = labels.ok_or_else(|| {
        format_error(
            &json,
            format!("expected a label column in the table of `{}`, found none", d.target),
        )
    })?;
    let part = |p: &SplitTable| -> Result<Vec<u32>, DataError> {
        let path = inside(dir, &json, &p.file)?;
        let table = read_nodes(open(&path), &Decoder::new().weighted())?;
        same_count(&path, "number of rows", p.count, table.ids.len())?;
        resolve(table.ids.ids(), target, &table.places, 0, &d.target, 1).map_err(first)
    };
    let mut splits = BTreeMap::new();
    for (name, s) in &d.splits {
        let split = Split {
            train: part(&s.train)?,
            val: s.val.as_ref().map_or(Ok(vec![]), part)?,
            test: part(&s.test)?,
        };
        check_split(&json, name, &split, &labels)?;
        splits.insert(name.clone(), split);
    }
    Ok(Dataset {
        name: d.name,
        graph: b.build()?,
        target: d.target,
        num_classes: d.class_names.len(),
        class_names: d.class_names,
        labels,
        features,
        splits,
        inverse_edges_stored: d.inverse_edges_stored,
    })
}

/// The first of one or more problems.
fn first(mut problems: Vec<DataError>) -> DataError {
    without_remedy(problems.swap_remove(0))
}

/// Line number of a row, after the header.
fn line_of(row: usize) -> u64 {
    row as u64 + 2
}

fn check_labels(path: &Path, labels: &[i64], classes: usize) -> Result<(), DataError> {
    match labels.iter().position(|&l| l < -1 || l >= classes as i64) {
        None => Ok(()),
        Some(i) => Err(table_error(
            path,
            line_of(i),
            2,
            format!("label -1 or 0..{classes}"),
            &labels[i].to_string(),
        )),
    }
}

/// Converts the feature column of a node table.
fn features_of(
    json: &Path,
    name: &str,
    path: &Path,
    column: usize,
    kind: &TableFeatures,
    table: &NodeTable,
) -> Result<Features, DataError> {
    let (TableFeatures::Dense { size } | TableFeatures::Buckets { size }) = kind;
    let rows = table.ids.len() as u64;
    let (rows, cols) = match kind {
        TableFeatures::Dense { .. } if rows > 0 => feature_size(json, rows, *size)?,
        _ => sparse_size(json, name, rows, *size)?,
    };
    if let TableFeatures::Dense { .. } = kind {
        return Ok(Features::Dense { rows, cols, values: table.columns.attributes.floats.clone() });
    }
    let (mut row, mut col, mut value) = (vec![], vec![], vec![]);
    let texts = table.columns.attributes.texts.iter().flat_map(Texts::iter);
    for (r, text) in texts.enumerate() {
        let mut counts: BTreeMap<u32, f32> = BTreeMap::new();
        for part in text.split(',') {
            let bucket = part.trim().parse::<u32>().ok().filter(|&b| (b as usize) < cols);
            let expected = || format!("numbers in 0..{cols} joined by `,`");
            *counts
                .entry(
                    bucket
                        .ok_or_else(|| table_error(path, line_of(r), column, expected(), part))?,
                )
                .or_default() += 1.0;
        }
        for (c, n) in counts {
            row.push(r as u32);
            col.push(c);
            value.push(n);
        }
    }
    Ok(Features::Sparse { rows, cols, row, col, value })
}
