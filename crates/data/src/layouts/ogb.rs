//! Reads the raw files of the Open Graph Benchmark's node data sets: plain or compressed CSV.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, EdgeType, Graph, Relation};

use crate::columns::host_column::{f32_column, i64_column};
use crate::dataset::{Dataset, Features, Split};
use crate::files::{
    duplicate, format_error, inside, io_error, same_count, table_error, unknown_ntype,
};
use crate::layouts::matrix::{Matrix, read_matrix, read_names};

/// Reads an unpacked data set of the Open Graph Benchmark for node classification (`ogbn-…`), homogeneous or
/// heterogeneous, with one label per node.
///
/// ```text
/// raw/num-node-list.csv.gz  edge.csv.gz [node-feat.csv.gz] node-label.csv.gz           split/<name>/{train,valid,test}.csv.gz
///
/// raw/num-node-dict.csv.gz  triplet-type-list.csv.gz
/// raw/relations/<src>___<relation>___<dst>/edge.csv.gz
/// raw/node-feat/<type>/node-feat.csv.gz  raw/node-label/<type>/node-label.csv.gz       split/<name>/<type>/{train,valid,test}.csv.gz
/// ```
///
/// Files may be plain, too (`edge.csv`). A homogeneous set has node type `_N` and edge type `_E`. Edges keep their
/// order; OGB stores each once, so a symmetric graph wants [`Graph::add_reverse_edges`]. A label that is no number (OGB
/// writes `nan`) or negative is -1, a fraction is an error. The number of classes is the largest label plus 1. Of further files of nodes and
/// edges, `node_year` and `edge_reltype` are left out; [`load_ogb_graph`] reads them.
///
/// # Paper
/// Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020.
///
/// # Errors
/// [`DataError::Io`] for a missing file, [`DataError::Table`] with file, line and column for a cell that is no number
/// or a row of another width, [`DataError::Format`] for counts that disagree, a relation listed twice, a set of many
/// graphs or one with several labelled types, and for what a [`Dataset`] has no place for: several labels per node, edge
/// features, other files of nodes and edges than the two above (`node_species`), all of which [`load_ogb_graph`] reads;
/// and the errors of [`Graph`] construction.
pub fn load_ogb(dir: impl AsRef<Path>) -> Result<Dataset, DataError> {
    load(dir.as_ref(), true)
}

/// [`load_ogb`] with or without progress bars of its long files.
pub(crate) fn load(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    read(dir, progress).map_err(|e| e.in_file(dir))
}

/// A data set of the Open Graph Benchmark with all that its files hold.
#[derive(Clone, Debug)]
pub struct OgbGraph {
    /// Name of the folder.
    pub name: String,
    /// The graph, with features and labels as columns.
    pub graph: Graph,
    /// Splits by name, and in it by node type.
    pub splits: BTreeMap<String, BTreeMap<String, Split>>,
}

/// Reads the folder of [`load_ogb`] as a graph with everything in its frames: several labels per node as in
/// `ogbn-proteins`, labels of several node types, edge features, and the further files of nodes and edges.
///
/// | file | column | shape, type |
/// | --- | --- | --- |
/// | `node-feat` | `x` of nodes | `[nodes, features]`, float32 |
/// | `node-label` | `y` of nodes | `[nodes]`, of several columns `[nodes, labels]`; int64 with -1 for none (`nan`), float32 if one is no whole number |
/// | `edge-feat` | `edge_attr` of edges | `[edges, features]`, float32 |
/// | `node_year`, `node_species` (also as `species`), `edge_reltype` and all others `node_…`, `edge_…` | its name | as `y`, float32 also where one is `nan` |
///
/// ```no_run
/// use burn::tensor::Device;
/// use burn_gnn_data::load_ogb_graph;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let proteins = load_ogb_graph("ogbn_proteins", &Device::flex())?;
///     let labels = proteins.graph.nodes("_N")?.get_int::<2>("y")?; // [132534, 112]
///     let train = &proteins.splits["species"]["_N"].train;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// As [`load_ogb`], but for what it has no place for.
pub fn load_ogb_graph(dir: impl AsRef<Path>, device: &Device) -> Result<OgbGraph, DataError> {
    let dir = dir.as_ref();
    read_graph(dir, device).map_err(|e| e.in_file(dir))
}

fn read_graph(dir: &Path, device: &Device) -> Result<OgbGraph, DataError> {
    let raw = Raw::read(dir, true)?;
    let (mut graph, mut split_types) = (raw.graph.clone(), vec![]);
    for (name, &count) in raw.graph.schema().ntypes().iter().zip(raw.graph.node_counts()) {
        let frame = graph.nodes_mut(name.as_str())?;
        if let Some(path) = find(&raw.node_folder("node-feat", name), "node-feat") {
            frame.insert_column("x", numbers(&path, count, Kind::Floats)?.column(device, false))?;
        }
        if let Some(path) = find(&raw.node_folder("node-label", name), "node-label") {
            frame.insert_column("y", numbers(&path, count, Kind::Labels)?.column(device, true))?;
        }
        for (column, path) in further(&raw.node_folder("node-feat", name), "node_")? {
            let values = numbers(&path, count, Kind::Any)?;
            frame.insert_column(&column, values.column(device, true))?;
        }
        split_types.push(name.clone());
    }
    let counts: Vec<usize> = raw.graph.relations().iter().map(|r| r.num_edges()).collect();
    for (ty, count) in counts.into_iter().enumerate() {
        let (frame, folder) = (graph.edges_mut(ty)?, raw.edge_folder(ty));
        if let Some(path) = find(&folder, "edge-feat") {
            frame.insert_column(
                "edge_attr",
                numbers(&path, count, Kind::Floats)?.column(device, false),
            )?;
        }
        for (column, path) in further(&folder, "edge_")? {
            let values = numbers(&path, count, Kind::Any)?;
            frame.insert_column(&column, values.column(device, true))?;
        }
    }
    let mut all: BTreeMap<String, BTreeMap<String, Split>> = BTreeMap::new();
    for (name, &count) in split_types.iter().zip(raw.graph.node_counts()) {
        for (split, s) in splits(&dir.join("split"), raw.typed.then_some(name), count)? {
            all.entry(split).or_default().insert(name.clone(), s);
        }
    }
    Ok(OgbGraph { name: folder_name(dir), graph, splits: all })
}

/// What the numbers of a file are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Floats,
    /// Whole numbers where all are.
    Any,
    /// Whole numbers where all are or are missing.
    Labels,
}

/// Numbers of a row per node or edge.
enum Numbers {
    Ints(Matrix<i64>),
    Floats(Matrix<f32>),
}

fn numbers(path: &Path, rows: usize, kind: Kind) -> Result<Numbers, DataError> {
    if kind != Kind::Floats {
        match read_matrix::<i64>(path, None, b',', true) {
            Ok(m) => {
                same_count(path, "number of rows", rows as u64, m.rows)?;
                let missing = |v| if kind == Kind::Labels && v < 0 { -1 } else { v };
                let values = m.values.into_iter().map(missing).collect();
                return Ok(Numbers::Ints(Matrix { values, ..m }));
            }
            Err(DataError::Table { column: 1.., .. }) => {}
            Err(e) => return Err(e),
        }
    }
    if kind == Kind::Labels {
        let m: Matrix<f64> = read_matrix(path, None, b',', true)?;
        same_count(path, "number of rows", rows as u64, m.rows)?;
        let class = |&v: &f64| label(v).filter(|&l| v.is_nan() || l as f64 == v);
        if let Some(values) = m.values.iter().map(class).collect() {
            return Ok(Numbers::Ints(Matrix { rows: m.rows, cols: m.cols, values }));
        }
    }
    let m: Matrix<f32> = read_matrix(path, None, b',', true)?;
    same_count(path, "number of rows", rows as u64, m.rows)?;
    Ok(Numbers::Floats(m))
}

impl Numbers {
    /// `[rows]` of one number per row, else `[rows, numbers]`.
    fn column(self, device: &Device, single: bool) -> Column {
        let shape = |rows, cols| if cols == 1 && single { vec![rows] } else { vec![rows, cols] };
        match self {
            Self::Ints(m) => i64_column(m.values, shape(m.rows, m.cols), device),
            Self::Floats(m) => f32_column(m.values, shape(m.rows, m.cols), device),
        }
    }
}

/// The files `<prefix>….csv[.gz]` of a folder by the name of their column, and `species`, as `ogbn-proteins` is published.
fn further(dir: &Path, prefix: &str) -> Result<BTreeMap<String, PathBuf>, DataError> {
    let mut out = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(out) };
    for entry in entries {
        let path = entry.map_err(|e| io_error(dir, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix(".csv");
        let column = match stem {
            Some("species") if prefix == "node_" => "node_species",
            Some(stem) if stem.starts_with(prefix) => stem,
            _ => continue,
        };
        if out.insert(column.to_owned(), path.clone()).is_some() {
            return Err(format_error(
                &path,
                format!("expected one file for `{column}`, found two"),
            ));
        }
    }
    Ok(out)
}

/// The structure, and where the other files lie.
struct Raw {
    dir: PathBuf,
    graph: Graph,
    typed: bool,
    /// The file that lists the relations, of a heterogeneous set.
    list: Option<PathBuf>,
}

impl Raw {
    fn read(dir: &Path, progress: bool) -> Result<Self, DataError> {
        let raw = dir.join("raw");
        let typed = raw.join("relations").is_dir();
        let (graph, list) =
            if typed { typed_graph(&raw, progress)? } else { plain_graph(&raw, progress)? };
        Ok(Self { dir: raw, graph, typed, list })
    }
    /// Where the files of a node type lie.
    fn node_folder(&self, kind: &str, ntype: &str) -> PathBuf {
        if self.typed { self.dir.join(kind).join(ntype) } else { self.dir.clone() }
    }
    /// Where the files of an edge type lie.
    fn edge_folder(&self, ty: usize) -> PathBuf {
        let EdgeType { src, relation, dst } = &self.graph.schema().etypes()[ty];
        let folder = format!("{src}___{relation}___{dst}");
        if self.typed { self.dir.join("relations").join(folder) } else { self.dir.clone() }
    }

    /// Refuses files that a [`Dataset`] has no place for.
    fn nothing_left_out(&self) -> Result<(), DataError> {
        /// Files that are not needed to classify nodes.
        const SPARE: [&str; 2] = ["node_year", "edge_reltype"];
        let mut left = vec![];
        for name in self.graph.schema().ntypes() {
            left.extend(further(&self.node_folder("node-feat", name), "node_")?);
        }
        for ty in 0..self.graph.relations().len() {
            let folder = self.edge_folder(ty);
            left.extend(find(&folder, "edge-feat").map(|path| ("edge-feat".to_owned(), path)));
            left.extend(further(&folder, "edge_")?);
        }
        match left.into_iter().find(|(column, _)| !SPARE.contains(&column.as_str())) {
            Some((column, path)) => Err(format_error(
                &path,
                format!(
                    "expected no `{column}`, for which a `Dataset` has no place; `load_ogb_graph` reads it"
                ),
            )),
            None => Ok(()),
        }
    }
}

fn folder_name(dir: &Path) -> String {
    dir.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned())
}

fn read(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    let raw = Raw::read(dir, progress)?;
    raw.nothing_left_out()?;
    let schema = raw.graph.schema().clone();
    let (mut features, mut labels) = (BTreeMap::new(), vec![]);
    for (name, &count) in schema.ntypes().iter().zip(raw.graph.node_counts()) {
        let file = |kind: &str| find(&raw.node_folder(kind, name), kind);
        let same = |path: &Path, rows| same_count(path, "number of rows", count as u64, rows);
        if let Some(path) = file("node-feat") {
            let m: Matrix<f32> = read_matrix(&path, None, b',', progress)?;
            same(&path, m.rows)?;
            let dense = Features::Dense { rows: m.rows, cols: m.cols, values: m.values };
            features.insert(name.clone(), dense);
        }
        if let Some(path) = file("node-label") {
            let m: Matrix<f64> = read_matrix(&path, None, b',', progress)?;
            same(&path, m.rows)?;
            labels.push((name.clone(), path, m));
        }
    }
    if labels.len() != 1 {
        return Err(format_error(
            &raw.dir,
            format!(
                "expected labels of one node type, found those of {}; `load_ogb_graph` reads all",
                labels.len()
            ),
        ));
    }
    let (target, path, m) = labels.swap_remove(0);
    if m.cols > 1 {
        let why = format!(
            "expected one label per node, found {}; `load_ogb_graph` reads all of them",
            m.cols
        );
        return Err(format_error(&path, why));
    }
    let class = |(row, &x): (usize, &f64)| {
        label(x).ok_or_else(|| {
            let expected = "a class, a whole number in 0..2^53, or nan for none";
            table_error(&path, row as u64 + 1, 1, expected, &x.to_string())
        })
    };
    let labels: Vec<i64> = m.values.iter().enumerate().map(class).collect::<Result<_, _>>()?;
    let num_classes = labels.iter().max().map_or(0, |&m| (m + 1).max(0)) as u64;
    let class_names =
        crate::dataset::described_class_names(&path, num_classes, None, labels.len())?;
    let splits = splits(&dir.join("split"), raw.typed.then_some(&*target), labels.len())?;
    for (split, s) in &splits {
        crate::dataset::check_split(raw.list.as_deref().unwrap_or(dir), split, s, &labels)?;
    }
    let num_classes = num_classes as usize;
    Ok(Dataset {
        name: folder_name(dir),
        graph: raw.graph,
        target,
        num_classes,
        class_names,
        labels,
        features,
        splits,
        inverse_edges_stored: false,
    })
}

/// A class, or -1; `None` for a fraction. Label files hold floats where some nodes have no label.
fn label(x: f64) -> Option<i64> {
    /// Beyond it f64 does not have every whole number.
    const MOST: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    match x {
        _ if x.is_nan() || x < 0.0 => Some(-1),
        _ => (x.fract() == 0.0 && x <= MOST).then_some(x as i64),
    }
}

/// `<stem>.csv.gz` or `<stem>.csv` in a folder, where there is one.
fn find(dir: &Path, stem: &str) -> Option<PathBuf> {
    [".csv.gz", ".csv"].iter().map(|end| dir.join(format!("{stem}{end}"))).find(|p| p.exists())
}

/// The same, or an error that names the first of them.
fn expect(dir: &Path, stem: &str) -> Result<PathBuf, DataError> {
    let missing =
        || io_error(&dir.join(format!("{stem}.csv.gz")), std::io::ErrorKind::NotFound.into());
    find(dir, stem).ok_or_else(missing)
}

type Loaded = (Graph, Option<PathBuf>);

fn edges(
    path: &Path,
    [sources, destinations]: [usize; 2],
    progress: bool,
) -> Result<Relation, DataError> {
    let m: Matrix<i64> = read_matrix(path, Some(2), b',', progress)?;
    let src: Vec<i64> = m.values.iter().step_by(2).copied().collect();
    let dst: Vec<i64> = m.values.iter().skip(1).step_by(2).copied().collect();
    Relation::from_coo_i64(sources, destinations, &src, &dst)
        .map_err(|e| DataError::from(e).in_file(path))
}

fn count(path: &Path, value: i64) -> Result<usize, DataError> {
    let expected = || format_error(path, format!("expected a number of nodes, found {value}"));
    let count = u64::try_from(value).map_err(|_| expected())?;
    crate::files::node_count(path, "of this file", count, 0)
}

fn plain_graph(raw: &Path, progress: bool) -> Result<Loaded, DataError> {
    let path = expect(raw, "num-node-list")?;
    let counts: Matrix<i64> = read_matrix(&path, Some(1), b',', false)?;
    let &[n] = counts.values.as_slice() else {
        return Err(format_error(
            &path,
            format!(
                "expected one graph, found {}; sets of many graphs are not for node classification",
                counts.rows
            ),
        ));
    };
    let n = count(&path, n)?;
    let edges = edges(&expect(raw, "edge")?, [n, n], progress)?;
    Ok((Graph::builder().nodes("_N", n).relation(("_N", "_E", "_N"), edges).build()?, None))
}

fn typed_graph(raw: &Path, progress: bool) -> Result<Loaded, DataError> {
    let path = expect(raw, "num-node-dict")?;
    let text = read_names(&path)?;
    let mut lines = text.lines();
    let (Some(names), Some(counts), 0) = (lines.next(), lines.next(), lines.count()) else {
        let found = text.lines().count();
        return Err(format_error(
            &path,
            format!("expected a line of names and one of counts, found {found} lines"),
        ));
    };
    let (found, declared) = (counts.split(',').count(), names.split(',').count());
    same_count(&path, "number of counts", declared as u64, found)?;
    let (mut b, mut nodes) = (Graph::builder(), BTreeMap::new());
    for (name, n) in names.split(',').map(str::trim).zip(counts.split(',')) {
        let n = n
            .trim()
            .parse()
            .map_err(|_| format_error(&path, format!("expected a number of nodes, found {n:?}")))?;
        let n = count(&path, n)?;
        b = b.nodes(name, n);
        if nodes.insert(name, n).is_some() {
            return Err(duplicate("node type", name).in_file(&path));
        }
    }
    let list = expect(raw, "triplet-type-list")?;
    let (text, mut known) = (read_names(&list)?, BTreeSet::new());
    for line in text.lines() {
        let mut parts = line.split(',').map(str::trim);
        let (Some(s), Some(r), Some(d), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format_error(
                &list,
                format!("expected `source,relation,destination`, found {line:?}"),
            ));
        };
        // A short list must not make much of one file.
        if !known.insert((s, r, d)) {
            let name = EdgeType::new(s, r, d).to_string();
            return Err(duplicate("edge type", name).in_file(&list));
        }
        let count = |end: &str| {
            let found = nodes.get(end).copied();
            found.ok_or_else(|| unknown_ntype(end, nodes.keys().copied()).in_file(&list))
        };
        let endpoints = [count(s)?, count(d)?];
        let folder = inside(raw, &list, &format!("relations/{s}___{r}___{d}"))?;
        let edges = edges(&expect(&folder, "edge")?, endpoints, progress)?;
        b = b.relation(EdgeType::new(s, r, d), edges);
    }
    Ok((b.build()?, Some(list)))
}

fn splits(
    dir: &Path,
    ntype: Option<&str>,
    nodes: usize,
) -> Result<BTreeMap<String, Split>, DataError> {
    let mut out = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(out) };
    for entry in entries {
        let folder = entry.map_err(|e| io_error(dir, e))?.path();
        let inner = ntype.map_or(folder.clone(), |t| folder.join(t));
        if !inner.is_dir() {
            continue;
        }
        let part = |stem: &str| -> Result<Vec<u32>, DataError> {
            let path = expect(&inner, stem)?;
            let m: Matrix<i64> = read_matrix(&path, Some(1), b',', false)?;
            let id = |&v: &i64| match u32::try_from(v).ok().filter(|&v| (v as usize) < nodes) {
                Some(v) => Ok(v),
                None => Err(format_error(
                    &path,
                    format!("expected node numbers in 0..{nodes}, found {v}"),
                )),
            };
            m.values.iter().map(id).collect()
        };
        let split = Split { train: part("train")?, val: part("valid")?, test: part("test")? };
        out.insert(
            folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned()),
            split,
        );
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_graph::GraphError;
    use std::io::Write;

    fn put(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = if name.ends_with(".gz") {
            let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        } else {
            text.as_bytes().to_vec()
        };
        std::fs::write(path, bytes).unwrap();
    }

    fn plain() -> tempfile::TempDir {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        put(dir, "raw/num-node-list.csv.gz", "4\n");
        put(dir, "raw/num-edge-list.csv.gz", "3\n");
        put(dir, "raw/edge.csv.gz", "0,1\n3,2\n0,1\n");
        put(dir, "raw/node-feat.csv.gz", "0.5,-1\n1e-3,2\n0,0\n4,5\n");
        put(dir, "raw/node-label.csv", "2\n0\nnan\n1\n");
        put(dir, "split/time/train.csv.gz", "0\n");
        put(dir, "split/time/valid.csv.gz", "3\n");
        put(dir, "split/time/test.csv", "1\n");
        tmp
    }

    #[test]
    fn a_homogeneous_set() {
        let tmp = plain();
        let d = load_ogb(tmp.path()).unwrap();
        let r = d.graph.relation("_E").unwrap();
        assert_eq!((r.src(), r.dst(), r.num_src()), (&[0, 3, 0][..], &[1, 2, 1][..], 4));
        assert_eq!((d.labels, d.num_classes, d.target.as_str()), (vec![2, 0, -1, 1], 3, "_N"));
        assert_eq!(
            d.features["_N"],
            Features::Dense { rows: 4, cols: 2, values: vec![0.5, -1., 1e-3, 2., 0., 0., 4., 5.] }
        );
        assert_eq!(d.splits["time"], Split { train: vec![0], val: vec![3], test: vec![1] });
    }

    /// Labels and features as f32 would have them are others.
    #[test]
    fn numbers_that_f32_cannot_represent() {
        let tmp = plain();
        let read = |name: &str, text: &str| {
            put(tmp.path(), name, text);
            load_ogb(tmp.path())
        };
        // Not -1, as f32 would have it; so many classes are too many for four nodes.
        let e = read("raw/node-label.csv", "2\n16777217.0\nnan\n-1\n").unwrap_err().to_string();
        assert!(e.contains("expected at most 65536 for 4 nodes, found 16777218"), "{e}");
        let e = read("raw/node-label.csv", "2\n0\n0.5\n1\n").unwrap_err().to_string();
        assert!(
            e.contains("node-label.csv:3:1: expected a class") && e.ends_with("got \"0.5\""),
            "{e}"
        );
        put(tmp.path(), "raw/node-label.csv", "2\n0\nnan\n1\n");
        for number in ["1e300", "1e-60", "16777217"] {
            let e = read("raw/node-feat.csv.gz", &format!("1,2\n3,4\n5,{number}\n6,7\n"));
            let part = format!(
                "node-feat.csv.gz:3:2: expected a number that f32 can represent, got {number:?}"
            );
            let e = e.unwrap_err().to_string();
            assert!(e.contains(&part), "{e}");
        }
    }

    #[test]
    fn a_typed_set() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        put(dir, "raw/num-node-dict.csv.gz", "author,paper\n2,3\n");
        put(dir, "raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,cites,paper\n");
        put(dir, "raw/relations/author___writes___paper/edge.csv.gz", "0,2\n1,0\n");
        put(dir, "raw/relations/paper___cites___paper/edge.csv.gz", "2,1\n");
        put(dir, "raw/node-feat/paper/node-feat.csv.gz", "1\n2\n3\n");
        put(dir, "raw/node-label/paper/node-label.csv.gz", "1\n0\n1\n");
        for (part, id) in [("train", "0"), ("valid", "1"), ("test", "2")] {
            put(dir, &format!("split/time/paper/{part}.csv.gz"), &format!("{id}\n"));
        }
        let d = load_ogb(dir).unwrap();
        assert_eq!(
            (d.graph.schema().ntypes(), d.graph.node_counts()),
            (&["author".to_owned(), "paper".into()][..], &[2, 3][..])
        );
        assert_eq!(d.graph.relation(("author", "writes", "paper")).unwrap().dst(), [2, 0]);
        assert_eq!((d.target.as_str(), d.num_classes, d.features["paper"].cols()), ("paper", 2, 1));
        put(dir, "raw/triplet-type-list.csv.gz", "author,writes,book\n");
        assert!(matches!(
            load_ogb(dir).unwrap_err().cause(),
            DataError::Graph(GraphError::UnknownNodeType { .. })
        ));
        put(dir, "raw/triplet-type-list.csv.gz", "author,../../x,paper\n");
        assert!(matches!(load_ogb(dir), Err(DataError::Format { .. })));
        put(dir, "raw/triplet-type-list.csv.gz", &"author,writes,paper\n".repeat(1_000));
        let e = load_ogb(dir).unwrap_err().to_string();
        assert!(e.contains("triplet-type-list.csv.gz") && e.contains("author:writes:paper"), "{e}");
        let long = format!("author,{},paper\n", "w".repeat(70_000));
        put(dir, "raw/triplet-type-list.csv.gz", &long);
        let e = load_ogb(dir).unwrap_err().to_string();
        assert!(e.contains("expected at most 4096 bytes") && e.len() < 1_000, "{e}");
        put(dir, "raw/num-node-dict.csv.gz", "author,author\n2,3\n");
        assert!(load_ogb(dir).unwrap_err().to_string().contains("author"));
    }

    /// The layout of ogbn-proteins, as it is published: labels in several columns, features of edges, `species.csv.gz`.
    #[test]
    fn several_labels_and_edge_features() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        put(dir, "raw/num-node-list.csv.gz", "3\n");
        put(dir, "raw/num-edge-list.csv.gz", "2\n");
        put(dir, "raw/edge.csv.gz", "0,1\n2,0\n");
        put(dir, "raw/node-label.csv.gz", "0,1,nan\n1,0,0\n1,1,1\n");
        let refused = |part: &str| {
            let e = load_ogb(dir).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("`load_ogb_graph`"), "expected {part:?} in {e}");
        };
        refused("node-label.csv.gz: expected one label per node, found 3");
        put(dir, "raw/edge-feat.csv.gz", "0.5,1\n0,2e-1\n");
        refused("edge-feat.csv.gz: expected no `edge-feat`");
        put(dir, "raw/species.csv.gz", "3702\n9606\n3702\n");
        refused("species.csv.gz: expected no `node_species`");
        put(dir, "raw/edge_reltype.csv.gz", "0\n1\n");
        put(dir, "split/species/train.csv.gz", "0\n");
        put(dir, "split/species/valid.csv.gz", "2\n");
        put(dir, "split/species/test.csv.gz", "1\n");

        let d = load_ogb_graph(dir, &Device::flex()).unwrap();
        let nodes = d.graph.nodes("_N").unwrap();
        let y = nodes.get_int::<2>("y").unwrap();
        assert_eq!(y.dims(), [3, 3]);
        assert_eq!(y.into_data().try_to_vec::<i64>().unwrap(), [0, 1, -1, 1, 0, 0, 1, 1, 1]);
        assert_eq!(nodes.to_ints("node_species").unwrap(), [3702, 9606, 3702]);
        let edges = d.graph.edges("_E").unwrap();
        let attr: Vec<f32> = edges.get::<2>("edge_attr").unwrap().into_data().try_to_vec().unwrap();
        assert_eq!(attr, [0.5, 1.0, 0.0, 0.2]);
        assert_eq!(edges.to_ints("edge_reltype").unwrap(), [0, 1]);
        let split = Split { train: vec![0], val: vec![2], test: vec![1] };
        assert_eq!(d.splits["species"]["_N"], split);
        // Targets that are no classes, and features of one column.
        put(dir, "raw/node-label.csv.gz", "0.5\nnan\n1\n");
        put(dir, "raw/node-feat.csv.gz", "1\n2\n3\n");
        let d = load_ogb_graph(dir, &Device::flex()).unwrap();
        let nodes = d.graph.nodes("_N").unwrap();
        assert_eq!(nodes.get::<2>("x").unwrap().dims(), [3, 1]);
        let y: Vec<f32> = nodes.get::<1>("y").unwrap().into_data().try_to_vec().unwrap();
        assert!(y[0] == 0.5 && y[1].is_nan() && y[2] == 1.0);
        put(dir, "raw/edge-feat.csv.gz", "0.5,1\n");
        let e = load_ogb_graph(dir, &Device::flex()).unwrap_err().to_string();
        assert!(e.contains("edge-feat.csv.gz: number of rows: expected 2"), "{e}");
    }

    /// What ogbn-arxiv and ogbn-mag have beside their features stays unread, and is there for who wants it.
    #[test]
    fn years_and_relation_types() {
        let tmp = plain();
        put(tmp.path(), "raw/node_year.csv.gz", "2010\n2011\n2012\n2013\n");
        assert_eq!(load_ogb(tmp.path()).unwrap().num_classes, 3);
        let d = load_ogb_graph(tmp.path(), &Device::flex()).unwrap();
        let nodes = d.graph.nodes("_N").unwrap();
        assert_eq!(nodes.to_ints("node_year").unwrap(), [2010, 2011, 2012, 2013]);
        assert_eq!(nodes.to_ints("y").unwrap(), [2, 0, -1, 1]);
        put(tmp.path(), "raw/node_x.csv", "1\n2\n3\n4\n");
        assert!(load_ogb(tmp.path()).unwrap_err().to_string().contains("expected no `node_x`"));
    }

    #[test]
    fn refusals() {
        let refused = |name: &str, text: &str, part: &str| {
            let tmp = plain();
            put(tmp.path(), name, text);
            let e = load_ogb(tmp.path()).unwrap_err();
            assert!(e.to_string().contains(part), "expected {part:?} in {e}");
            e
        };
        let e = refused(
            "raw/edge.csv.gz",
            "0,1\n3,x\n",
            "edge.csv.gz:2:2: expected an int64, got \"x\"",
        );
        assert!(matches!(e, DataError::Table { .. }));
        refused(
            "raw/edge.csv.gz",
            "0,1\n3\n",
            "edge.csv.gz:2: expected 2 numbers separated by commas, got \"3\"",
        );
        refused("raw/node-feat.csv.gz", "1,2\n3\n", "node-feat.csv.gz:2: expected 2 numbers");
        refused("raw/node-feat.csv.gz", "1,2\n", "number of rows: expected 4 as declared, found 1");
        refused("raw/num-node-list.csv.gz", "4\n5\n", "expected one graph, found 2");
        refused("raw/num-node-list.csv.gz", "-4\n", "expected a number of nodes, found -4");
        refused("raw/num-node-list.csv.gz", "900000000000\n", "exceed the limit");
        // Made-up names of so many classes would fill the memory.
        refused(
            "raw/node-label.csv",
            "2\n0\nnan\n122222\n",
            "num_classes: expected at most 65536 for 4 nodes, found 122223",
        );
        refused("split/time/train.csv.gz", "9\n", "expected node numbers in 0..4, found 9");
        refused("split/time/train.csv.gz", "2\n", "node 2 of train without a label");
        assert!(matches!(
            refused("raw/edge.csv.gz", "0,4\n", "`dst` must lie in 0..4").cause(),
            DataError::Graph(GraphError::NodeOutOfRange { .. })
        ));
        let tmp = plain();
        std::fs::remove_file(tmp.path().join("raw/edge.csv.gz")).unwrap();
        assert!(load_ogb(tmp.path()).unwrap_err().to_string().contains("edge.csv.gz"));
    }
}
