//! Reads data sets of `.npy` arrays, described by `metadata.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relation};
use serde::Deserialize;

use crate::arrays::npy::{NpyArray, NpyValues};
use crate::dataset::{Dataset, Features, Split};
use crate::dataset::{check_split, described_class_names, feature_size, sparse_size};
use crate::files::{
    format_error, ids_below, inside, node_count, read_json, referenced, same_count, unknown_ntype,
};
use crate::layouts::metadata::{Layout, METADATA, Part, TRIPLES};

#[derive(Deserialize)]
struct Metadata {
    name: String,
    target_node_type: String,
    inverse_edges_stored: bool,
    node_types: BTreeMap<String, NodeType>,
    edge_types: Vec<EdgeEntry>,
    labels: BTreeMap<String, LabelEntry>,
    splits: BTreeMap<String, SplitEntry>,
    num_nodes: Option<u64>,
    num_edges: Option<u64>,
}

#[derive(Deserialize)]
struct NodeType {
    count: u64,
    features: Option<FeatureEntry>,
}

#[derive(Deserialize)]
#[serde(tag = "format", rename_all = "lowercase")]
pub(super) enum FeatureEntry {
    Coo { shape: [u64; 2], nnz: u64, indices_file: String, values_file: String },
    Dense { shape: [u64; 2], file: Option<String>, scale: Option<f32> },
}

#[derive(Deserialize)]
struct EdgeEntry {
    src: String,
    relation: String,
    dst: String,
    count: u64,
    file: String,
}

#[derive(Deserialize)]
struct LabelEntry {
    file: String,
    num_classes: u64,
    class_names: Option<Vec<String>>,
    num_labelled: Option<u64>,
}

#[derive(Deserialize)]
struct SplitEntry {
    node_type: String,
    train: Part,
    val: Option<Part>,
    test: Part,
}

/// Reads a data set from the folder of `metadata.json`.
///
/// Edges and labels may have any integer type, dense features float32 or int8 (multiplied by `scale`), and sparse features
/// COO format. The types are those of the array headers. Counts in the description are compared with the arrays, ids with
/// their ranges, and sizes with the length of the file before memory is allocated. Labels of node types other than the
/// target are checked and dropped.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Format`] for truncated or contradictory arrays and descriptions, and for a knowledge graph (layout
///   `triples`), which has no labels.
/// * [`DataError::Version`] for another version of the layout.
/// * Edges or splits with ids out of range.
pub(crate) fn load(dir: &Path) -> Result<Dataset, DataError> {
    let json = dir.join(METADATA);
    read(dir, json.clone()).map_err(|e| e.in_file(json))
}

fn read(dir: &Path, json: PathBuf) -> Result<Dataset, DataError> {
    /// Task of another layout, for the error.
    #[derive(Deserialize)]
    struct Task {
        task: Option<String>,
    }
    let (probe, Task { task }) = (read_json::<Layout>(&json)?, read_json(&json)?);
    if let Some(layout) = probe.layout.as_ref().filter(|l| *l != "nodes") {
        let task = task.map_or(String::new(), |t| format!(" ({t})"));
        let remedy = if layout == TRIPLES { "; read it with `load_knowledge_graph`" } else { "" };
        let why = format!(
            "expected node classification data, found layout `{layout}`{task}, which has no node labels{remedy}"
        );
        return Err(format_error(&json, why));
    }
    probe.check_version(&json)?;
    let set = Reader { dir, json: &json };
    let meta: Metadata = read_json(&json)?;
    let graph = set.graph(&meta)?;
    let mut features = BTreeMap::new();
    for (name, t) in &meta.node_types {
        if let Some(f) = &t.features {
            features.insert(name.clone(), set.features(name, t.count, f)?);
        }
    }
    let target = meta.target_node_type;
    graph.schema().ntype(&target)?;
    let mut of_target = None;
    for (name, entry) in &meta.labels {
        let labels = set.labels(graph.num_nodes(name)?, entry)?;
        if *name == target {
            let names = described_class_names(
                &json,
                entry.num_classes,
                entry.class_names.clone(),
                labels.len(),
            )?;
            of_target = Some((labels, names));
        }
    }
    let (labels, class_names) = of_target.ok_or_else(|| {
        format_error(
            &json,
            format!("labels: expected an entry for the target `{target}`, found none"),
        )
    })?;
    let mut splits = BTreeMap::new();
    for (name, entry) in &meta.splits {
        if entry.node_type != target {
            let why = format!(
                "split `{name}`: expected nodes of the target `{target}`, found `{}`",
                entry.node_type
            );
            return Err(format_error(&json, why));
        }
        let part = |p: &Part| set.part(p, labels.len());
        let split = Split {
            train: part(&entry.train)?,
            val: entry.val.as_ref().map_or(Ok(vec![]), part)?,
            test: part(&entry.test)?,
        };
        check_split(&json, name, &split, &labels)?;
        splits.insert(name.clone(), split);
    }
    tracing::debug!(
        name = meta.name,
        nodes = graph.total_nodes(),
        edges = graph.total_edges(),
        "data set read"
    );
    Ok(Dataset {
        name: meta.name,
        graph,
        target,
        num_classes: class_names.len(),
        class_names,
        labels,
        features,
        splits,
        inverse_edges_stored: meta.inverse_edges_stored,
    })
}

/// Reads arrays of a folder.
pub(super) struct Reader<'a> {
    pub(super) dir: &'a Path,
    pub(super) json: &'a Path,
}

impl Reader<'_> {
    fn path(&self, file: &str) -> Result<PathBuf, DataError> {
        inside(self.dir, self.json, file)
    }

    fn array(&self, file: &str) -> Result<NpyArray, DataError> {
        NpyArray::read(&self.path(file)?)
    }

    /// Total size of the distinct files of edges, features and labels.
    fn bytes(&self, meta: &Metadata) -> Result<u64, DataError> {
        let named =
            meta.edge_types.iter().map(|e| &e.file).chain(meta.labels.values().map(|l| &l.file));
        let mut files: Vec<Result<PathBuf, DataError>> =
            named.map(|file| self.path(file)).collect();
        for (name, t) in &meta.node_types {
            match &t.features {
                None => {}
                Some(FeatureEntry::Coo { indices_file, values_file, .. }) => {
                    files.extend([self.path(indices_file), self.path(values_file)])
                }
                Some(FeatureEntry::Dense { file, .. }) => {
                    files.push(self.dense_path(name, file.as_deref()))
                }
            }
        }
        let bytes = referenced(self.json, files)?;
        // Files of splits do not count as data of the nodes, because they need not contain all nodes.
        let parts = meta
            .splits
            .values()
            .flat_map(|s| [Some(&s.train), s.val.as_ref(), Some(&s.test)])
            .flatten();
        referenced(self.json, parts.map(|part| self.path(&part.file))).map(|_| bytes)
    }

    fn dense_path(&self, ntype: &str, file: Option<&str>) -> Result<PathBuf, DataError> {
        file.map_or_else(|| self.path(&format!("features/{ntype}.npy")), |f| self.path(f))
    }

    fn graph(&self, meta: &Metadata) -> Result<Graph, DataError> {
        let mut b = Graph::builder();
        let bytes = self.bytes(meta)?;
        for (name, t) in &meta.node_types {
            b = b.nodes(name, node_count(self.json, name, t.count, bytes)?);
        }
        for e in &meta.edge_types {
            for end in [&e.src, &e.dst] {
                if !meta.node_types.contains_key(end) {
                    return Err(unknown_ntype(end, meta.node_types.keys()));
                }
            }
            let array = self.array(&e.file)?;
            array.expect_shape(&[Some(2), None])?;
            let count = array.shape[1];
            same_count(&array.path, "number of edges", e.count, count)?;
            let path = array.path.clone();
            let mut src = array.into_i64()?;
            let dst = src.split_off(count);
            let t = EdgeType::new(&*e.src, &*e.relation, &*e.dst);
            // The counts have been checked above.
            let nodes = |ntype: &String| meta.node_types[ntype].count as usize;
            let relation = Relation::from_coo_i64(nodes(&e.src), nodes(&e.dst), &src, &dst);
            b = b.relation(
                t.clone(),
                relation
                    .map_err(|e| DataError::from(e.in_relation(&t.to_string())).in_file(&path))?,
            );
        }
        let graph = b.build()?;
        for (what, declared, found) in [
            ("num_nodes", meta.num_nodes, graph.total_nodes()),
            ("num_edges", meta.num_edges, graph.total_edges()),
        ] {
            if let Some(n) = declared {
                same_count(self.json, what, n, found)?;
            }
        }
        Ok(graph)
    }

    pub(super) fn features(
        &self,
        ntype: &str,
        count: u64,
        entry: &FeatureEntry,
    ) -> Result<Features, DataError> {
        let (FeatureEntry::Coo { shape, .. } | FeatureEntry::Dense { shape, .. }) = entry;
        if shape[0] != count {
            let why = format!(
                "features of `{ntype}`: expected {count} rows, one per node, found {}",
                shape[0]
            );
            return Err(format_error(self.json, why));
        }
        let (rows, cols) = match entry {
            FeatureEntry::Coo { .. } => sparse_size(self.json, ntype, shape[0], shape[1])?,
            FeatureEntry::Dense { .. } => feature_size(self.json, shape[0], shape[1])?,
        };
        match entry {
            FeatureEntry::Coo { nnz, indices_file, values_file, .. } => {
                let indices = self.array(indices_file)?;
                indices.expect_shape(&[Some(2), None])?;
                let n = indices.shape[1];
                same_count(&indices.path, "number of entries", *nnz, n)?;
                let values = self.array(values_file)?;
                values.expect_shape(&[Some(n)])?;
                let path = indices.path.clone();
                let mut row = indices.into_i64()?;
                let col = row.split_off(n);
                let within = |what, ids: Vec<i64>, bound| ids_below(&path, what, ids, bound);
                Ok(Features::Sparse {
                    rows,
                    cols,
                    row: within("row", row, rows)?,
                    col: within("column", col, cols)?,
                    value: values.into_f32()?,
                })
            }
            FeatureEntry::Dense { file, scale, .. } => {
                let array = NpyArray::read(&self.dense_path(ntype, file.as_deref())?)?;
                array.expect_shape(&[Some(rows), Some(cols)])?;
                let scale_by = match (&array.values, scale) {
                    (NpyValues::I8(_), None) => {
                        return Err(format_error(
                            self.json,
                            format!(
                                "features of `{ntype}`: expected `scale` of int8 features, found none"
                            ),
                        ));
                    }
                    (_, scale) => scale.unwrap_or(1.0),
                };
                let values = match array.values {
                    NpyValues::I8(v) => v.into_iter().map(|v| f32::from(v) * scale_by).collect(),
                    NpyValues::F32(v) => v,
                    _ => return Err(array.wrong_dtype("float32 or int8")),
                };
                Ok(Features::Dense { rows, cols, values })
            }
        }
    }

    fn labels(&self, nodes: usize, entry: &LabelEntry) -> Result<Vec<i64>, DataError> {
        let array = self.array(&entry.file)?;
        array.expect_shape(&[Some(nodes)])?;
        let path = array.path.clone();
        let labels = array.into_i64()?;
        if let Some((i, &l)) = labels
            .iter()
            .enumerate()
            .find(|&(_, &l)| l < -1 || l >= 0 && l as u64 >= entry.num_classes)
        {
            return Err(format_error(
                &path,
                format!("label of node {i}: expected -1 or 0..{}, found {l}", entry.num_classes),
            ));
        }
        if let Some(n) = entry.num_labelled {
            same_count(
                &path,
                "number of labelled nodes",
                n,
                labels.iter().filter(|&&l| l >= 0).count(),
            )?;
        }
        Ok(labels)
    }

    fn part(&self, part: &Part, nodes: usize) -> Result<Vec<u32>, DataError> {
        let array = self.array(&part.file)?;
        array.expect_shape(&[None])?;
        same_count(&array.path, "number of nodes", part.count, array.shape[0])?;
        let path = array.path.clone();
        ids_below(&path, "node", array.into_i64()?, nodes)
    }
}
