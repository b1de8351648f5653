//! Reads the raw files of the Open Graph Benchmark's node data sets: plain or compressed CSV.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relation};

use crate::files::{format_error, same_count, unknown_ntype};
use crate::matrix::{Matrix, read_lines, read_matrix};
use crate::{Dataset, Features, Split};

/// Reads an unpacked data set of the Open Graph Benchmark for node classification (`ogbn-…`), homogeneous or
/// heterogeneous.
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
/// order; OGB stores each once, so a symmetric graph wants [`Graph::add_reverse_edges`]. Labels are the first column of
/// the label file; a label that is no number (OGB writes `nan`) or negative is -1. The number of classes is the largest
/// label plus 1.
///
/// # Paper
/// Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020.
///
/// # Errors
/// [`DataError::Io`] for a missing file, [`DataError::Table`] with file, line and column for a cell that is no number
/// or a row of another width, [`DataError::Format`] for counts that disagree, a set of many graphs or one with several
/// labelled types, and the errors of [`Graph`] construction.
pub fn load_ogb(dir: impl AsRef<Path>) -> Result<Dataset, DataError> {
    load(dir.as_ref(), true)
}

/// [`load_ogb`] with or without progress bars of its long files.
pub(crate) fn load(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    read(dir, progress).map_err(|e| e.in_file(dir))
}

fn read(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    let raw = dir.join("raw");
    let typed = raw.join("relations").is_dir();
    let (graph, sources) =
        if typed { typed_graph(&raw, progress)? } else { plain_graph(&raw, progress)? };
    let schema = graph.schema().clone();
    let (mut features, mut labels) = (BTreeMap::new(), vec![]);
    for (name, &count) in schema.ntypes().iter().zip(graph.node_counts()) {
        let read = |kind: &str| {
            let folder = if typed { raw.join(kind).join(name) } else { raw.clone() };
            let Some(path) = find(&folder, kind) else { return Ok(None) };
            let m: Matrix<f32> = read_matrix(&path, None, b',', progress)?;
            same_count(&path, "number of rows", count as u64, m.rows)?;
            Ok::<_, DataError>(Some((path, m)))
        };
        if let Some((_, m)) = read("node-feat")? {
            let dense = Features::Dense { rows: m.rows, cols: m.cols, values: m.values };
            features.insert(name.clone(), dense);
        }
        if let Some((path, m)) = read("node-label")? {
            labels.push((name.clone(), path, m));
        }
    }
    if labels.len() != 1 {
        return Err(format_error(
            &raw,
            format!("expected labels of one node type, found those of {}", labels.len()),
        ));
    }
    let (target, path, m) = labels.swap_remove(0);
    let labels: Vec<i64> = m.values.chunks_exact(m.cols.max(1)).map(|row| label(row[0])).collect();
    let num_classes = labels.iter().max().map_or(0, |&m| (m + 1).max(0)) as u64;
    let class_names =
        super::dataset::described_class_names(&path, num_classes, None, labels.len())?;
    let splits = splits(&dir.join("split"), typed.then_some(&*target), labels.len())?;
    let name = dir.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    for (split, s) in &splits {
        super::dataset::check_split(sources.as_deref().unwrap_or(dir), split, s, &labels)?;
    }
    let num_classes = num_classes as usize;
    Ok(Dataset {
        name,
        graph,
        target,
        num_classes,
        class_names,
        labels,
        features,
        splits,
        inverse_edges_stored: false,
    })
}

/// A class, or -1. Label files hold floats where some nodes have no label; above 2^24 floats skip numbers.
fn label(x: f32) -> i64 {
    if (0.0..16_777_216.0).contains(&x) { x as i64 } else { -1 }
}

/// `<stem>.csv.gz` or `<stem>.csv` in a folder, where there is one.
fn find(dir: &Path, stem: &str) -> Option<PathBuf> {
    [".csv.gz", ".csv"].iter().map(|end| dir.join(format!("{stem}{end}"))).find(|p| p.exists())
}

/// The same, or an error that names the first of them.
fn expect(dir: &Path, stem: &str) -> Result<PathBuf, DataError> {
    let missing = || {
        crate::files::io_error(
            &dir.join(format!("{stem}.csv.gz")),
            std::io::ErrorKind::NotFound.into(),
        )
    };
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
    let lines = read_lines(&path)?;
    let [names, counts] = lines.as_slice() else {
        return Err(format_error(
            &path,
            format!("expected a line of names and one of counts, found {} lines", lines.len()),
        ));
    };
    let (names, counts): (Vec<&str>, Vec<&str>) =
        (names.split(',').collect(), counts.split(',').collect());
    same_count(&path, "number of counts", names.len() as u64, counts.len())?;
    let (mut b, mut nodes) = (Graph::builder(), BTreeMap::new());
    for (name, n) in names.iter().zip(counts) {
        let n = n
            .trim()
            .parse()
            .map_err(|_| format_error(&path, format!("expected a number of nodes, found {n:?}")))?;
        let n = count(&path, n)?;
        b = b.nodes(name.trim(), n);
        nodes.insert(name.trim(), n);
    }
    let list = expect(raw, "triplet-type-list")?;
    for line in read_lines(&list)? {
        let parts: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[s, r, d] = parts.as_slice() else {
            return Err(format_error(
                &list,
                format!("expected `source,relation,destination`, found {line:?}"),
            ));
        };
        let count = |end: &str| {
            let found = nodes.get(end).copied();
            found.ok_or_else(|| unknown_ntype(end, nodes.keys().copied()).in_file(&list))
        };
        let endpoints = [count(s)?, count(d)?];
        let folder = crate::files::inside(raw, &list, &format!("relations/{s}___{r}___{d}"))?;
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
        let folder = entry.map_err(|e| crate::files::io_error(dir, e))?.path();
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
        refused(
            "raw/node-feat.csv.gz",
            "1,2\n",
            "number of rows: expected 4 as the description says, found 1",
        );
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
