//! Reads Cora, Citeseer and PubMed from the pickles of Planetoid, `ind.<name>.<part>`.

use std::collections::HashSet;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;

use crate::arrays::pickle::{Id, Pickle, Value, Vocabulary};
use crate::dataset::sparse::csr;
use crate::dataset::{Dataset, Features, Split, described_class_names};
use crate::files::{format_error, read_bounded, table_error};

/// Validation nodes of the public split.
const VALIDATION: usize = 500;
/// Largest accepted file in bytes. The largest file of PubMed has 12 MB.
const MOST: u64 = (1 << 30) - 1;

/// Reads `ind.<name>.{x,tx,allx,y,ty,ally,graph,test.index}`.
///
/// The first nodes are those of `allx`, followed by the test nodes at the ids in `test.index`. Ids between the test
/// nodes that are not in `test.index` (15 in Citeseer) are nodes without features and label. The split is the public
/// one: the nodes of `x` are training nodes, the next 500 are validation nodes.
pub(super) fn load(dir: &Path, name: &str) -> Result<Dataset, DataError> {
    let path = |part: &str| dir.join(format!("ind.{name}.{part}"));
    let index = test_index(&path("test.index"))?;
    let matrix = |part: &str| read_pickle(&path(part), |p| sparse(p, &path(part)));
    let labels = |part: &str| read_pickle(&path(part), |p| one_hot(p, p.top()));
    let (all, tx) = (matrix("allx")?, matrix("tx")?);
    let (y, all_y, test_y) = (labels("y")?, labels("ally")?, labels("ty")?);
    let described = path("allx");
    let same = |part: &str, expected: usize, found: usize| {
        let why = || {
            format!("expected {expected} rows to match `{}`, found {found}", described.display())
        };
        if expected == found { Ok(()) } else { Err(format_error(&path(part), why())) }
    };
    same("ally", all.rows(), all_y.0.len())?;
    same("tx", index.len(), tx.rows())?;
    same("ty", index.len(), test_y.0.len())?;
    let n = all.rows();
    let last = index.iter().copied().max().map_or(n, |m| m as usize + 1);
    // Limits the number of nodes without features: a single large id in `test.index` must not allocate memory for
    // billions of nodes.
    let limit = n + 2 * index.len() + 64;
    if last > limit || index.iter().any(|&v| (v as usize) < n) {
        let found = index
            .iter()
            .find(|&&v| (v as usize) < n || v as usize >= limit)
            .copied()
            .unwrap_or_default();
        return Err(format_error(
            &path("test.index"),
            format!("expected numbers in {n}..{limit}, found {found}"),
        ));
    }
    if all.cols() != tx.cols() {
        return Err(format_error(
            &path("tx"),
            format!("expected {} columns as in allx, found {}", all.cols(), tx.cols()),
        ));
    }
    let (train, classes) = (y.0.len(), all_y.1.max(test_y.1));
    if train > n {
        return Err(format_error(
            &path("y"),
            format!("expected at most {n} training nodes, found {train}"),
        ));
    }
    let mut node_labels = all_y.0;
    node_labels.resize(last, -1);
    for (&v, &label) in index.iter().zip(&test_y.0) {
        node_labels[v as usize] = label;
    }
    let graph = read_pickle(&path("graph"), |p| adjacency(p, last))?;
    let features = joined(all, tx, &index, last);
    let mut test = index;
    test.sort_unstable();
    let val = (train..(train + VALIDATION).min(n)).map(|v| v as u32).collect();
    let split = Split { train: (0..train as u32).collect(), val, test };
    crate::dataset::check_split(&path("y"), "public", &split, &node_labels)?;
    let class_names = described_class_names(&path("ally"), classes as u64, None, last)?;
    Ok(Dataset::homogeneous(name, graph, class_names, node_labels, features, split))
}

/// Reads a pickle and converts it.
fn read_pickle<T>(
    path: &Path,
    read: impl FnOnce(&Pickle<'_>) -> Result<T, DataError>,
) -> Result<T, DataError> {
    read(&Pickle::read(path, &read_bounded(path, MOST)?, Vocabulary::Numpy)?)
}

fn test_index(path: &Path) -> Result<Vec<u32>, DataError> {
    let text = String::from_utf8_lossy(&read_bounded(path, MOST)?).into_owned();
    let mut seen = HashSet::new();
    let number = |(i, line): (usize, &str)| {
        let wrong = |expected: &str| table_error(path, i as u64 + 1, 1, expected, line);
        let v: u32 = line
            .trim()
            .parse()
            .ok()
            .filter(|&v| v < u32::MAX - 1)
            .ok_or_else(|| wrong("a node id"))?;
        if seen.insert(v) { Ok(v) } else { Err(wrong("a node id that occurs once")) }
    };
    text.lines().enumerate().map(number).collect()
}

/// Converts a `scipy.sparse.csr_matrix`.
fn sparse(p: &Pickle<'_>, path: &Path) -> Result<Features, DataError> {
    let Value::Matrix(Some(state)) = p.get(p.top()) else {
        return Err(p.wrong("a CSR matrix of SciPy", p.top()));
    };
    // Old versions of SciPy wrote `shape`.
    let shape = p.entry(state, "_shape").or_else(|_| p.entry(state, "shape"))?;
    let &[rows, cols] = p.items(shape) else {
        return Err(p.wrong("a shape of rows and columns", shape));
    };
    let size = |id: Id| usize::try_from(p.int(id)?).map_err(|_| p.wrong("a length", id));
    let array = |name: &str| p.entry(state, name);
    csr(
        path,
        size(rows)?,
        size(cols)?,
        &p.ints(array("indptr")?)?,
        p.ints(array("indices")?)?,
        p.floats(array("data")?)?,
    )
}

/// Converts one-hot rows to classes, with -1 for a row of zeros. Returns the number of columns, too.
fn one_hot(p: &Pickle<'_>, id: Id) -> Result<(Vec<i64>, usize), DataError> {
    let &[rows, cols] = p.shape(id)?.as_slice() else {
        return Err(p.wrong("an array of rows and columns", id));
    };
    let values = p.ints(id)?;
    if cols == 0 || cols > 1 << 20 {
        return Err(p.wrong("an array of 1 to 1048576 columns", id));
    }
    debug_assert_eq!(values.len(), rows * cols);
    let class = |row: &[i64]| match row.iter().filter(|&&x| x != 0).count() {
        0 => Ok(-1),
        1 => Ok(row.iter().position(|&x| x != 0).map_or(-1, |c| c as i64)),
        _ => Err(p.wrong("at most one class in each row", id)),
    };
    Ok((values.chunks_exact(cols).map(class).collect::<Result<_, _>>()?, cols))
}

/// Builds the graph from a dictionary of neighbour lists. Every edge is stored once in each direction, sorted by source
/// and destination. Self loops are dropped.
fn adjacency(p: &Pickle<'_>, nodes: usize) -> Result<Graph, DataError> {
    let entries = p.dict(p.top()).ok_or_else(|| p.wrong("a dictionary of neighbours", p.top()))?;
    let node = |id: Id| -> Result<u32, DataError> {
        let v = p.int(id)?;
        u32::try_from(v)
            .ok()
            .filter(|&v| (v as usize) < nodes)
            .ok_or_else(|| p.wrong(&format!("a node id in 0..{nodes}"), id))
    };
    let mut lists = HashSet::new();
    for &(_, neighbours) in entries {
        p.list(neighbours).ok_or_else(|| p.wrong("a list of neighbours", neighbours))?;
        // A pickle can refer to one list many times, so a small file could describe very many edges.
        if !lists.insert(neighbours) {
            return Err(p.wrong("a separate list of neighbours for each node", neighbours));
        }
    }
    drop(lists);
    // A pickle can repeat a neighbour in one byte, so repetitions are removed before they take memory as edges.
    let (mut edges, mut near) = (vec![], vec![]);
    for &(u, neighbours) in entries {
        let u = node(u)?;
        near.clear();
        for &v in p.items(neighbours) {
            near.push(node(v)?);
        }
        near.sort_unstable();
        near.dedup();
        edges.extend(near.iter().filter(|&&v| v != u).map(|&v| (u, v)));
    }
    let there = edges.len();
    edges.reserve_exact(there);
    for i in 0..there {
        let (u, v) = edges[i];
        edges.push((v, u));
    }
    edges.sort_unstable();
    edges.dedup();
    let (src, dst) = edges.into_iter().unzip();
    Ok(Graph::homogeneous(nodes, src, dst)?)
}

/// Concatenates the rows of `all` and of `test`, whose row `i` becomes row `index[i]`. Entries are sorted by row and
/// column.
fn joined(all: Features, test: Features, index: &[u32], rows: usize) -> Features {
    let cols = all.cols();
    let mut entries = vec![];
    for (m, at) in [(all, None), (test, Some(index))] {
        if let Features::Sparse { row, col, value, .. } = m {
            let target = |r: u32| at.map_or(r, |at| at[r as usize]);
            entries
                .extend(row.into_iter().zip(col).zip(value).map(|((r, c), v)| (target(r), c, v)));
        }
    }
    entries.sort_by_key(|e| (e.0, e.1));
    let mut out = (vec![], vec![], vec![]);
    for (r, c, v) in entries {
        out.0.push(r);
        out.1.push(c);
        out.2.push(v);
    }
    Features::Sparse { rows, cols, row: out.0, col: out.1, value: out.2 }
}
