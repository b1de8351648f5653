//! Reads the structure of a graph from the folder `raw`, and finds its other files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relation};

use crate::files::{
    duplicate, format_error, inside, io_error, node_count, same_count, unknown_ntype,
};
use crate::layouts::matrix::{Matrix, read_matrix, read_names};

/// The structure of a graph and the paths of its files.
pub(super) struct Raw {
    pub(super) dir: PathBuf,
    pub(super) graph: Graph,
    pub(super) typed: bool,
    /// The file that lists the relations of a heterogeneous graph.
    pub(super) list: Option<PathBuf>,
}

impl Raw {
    pub(super) fn read(dir: &Path, progress: bool) -> Result<Self, DataError> {
        let raw = dir.join("raw");
        let typed = raw.join("relations").is_dir();
        let (graph, list) =
            if typed { typed_graph(&raw, progress)? } else { plain_graph(&raw, progress)? };
        Ok(Self { dir: raw, graph, typed, list })
    }
    /// Folder with the files of a node type.
    pub(super) fn node_folder(&self, kind: &str, ntype: &str) -> PathBuf {
        if self.typed { self.dir.join(kind).join(ntype) } else { self.dir.clone() }
    }
    /// Folder with the files of an edge type.
    pub(super) fn edge_folder(&self, ty: usize) -> PathBuf {
        let EdgeType { src, relation, dst } = &self.graph.schema().etypes()[ty];
        let folder = format!("{src}___{relation}___{dst}");
        if self.typed { self.dir.join("relations").join(folder) } else { self.dir.clone() }
    }

    /// Returns an error if there are files that a [`Dataset`](crate::Dataset) cannot contain.
    pub(super) fn check_no_unread_files(&self) -> Result<(), DataError> {
        /// Files that node classification does not need.
        const NOT_NEEDED: [&str; 2] = ["node_year", "edge_reltype"];
        let mut unread = vec![];
        for name in self.graph.schema().ntypes() {
            unread.extend(further_files(&self.node_folder("node-feat", name), "node_")?);
        }
        for ty in 0..self.graph.relations().len() {
            let folder = self.edge_folder(ty);
            unread.extend(find(&folder, "edge-feat").map(|path| ("edge-feat".to_owned(), path)));
            unread.extend(further_files(&folder, "edge_")?);
        }
        match unread.into_iter().find(|(column, _)| !NOT_NEEDED.contains(&column.as_str())) {
            Some((column, path)) => Err(format_error(
                &path,
                format!(
                    "expected no `{column}`, which a `Dataset` cannot contain; read it with `load_ogb_graph`"
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Files `<prefix>….csv[.gz]` of a folder, by the name of their column. The file `species` of `ogbn-proteins` is the column
/// `node_species`.
pub(super) fn further_files(
    dir: &Path,
    prefix: &str,
) -> Result<BTreeMap<String, PathBuf>, DataError> {
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

/// Path of `<stem>.csv.gz` or `<stem>.csv` in a folder, if one of them exists.
pub(super) fn find(dir: &Path, stem: &str) -> Option<PathBuf> {
    [".csv.gz", ".csv"].iter().map(|end| dir.join(format!("{stem}{end}"))).find(|p| p.exists())
}

/// [`find`], or an error that names `<stem>.csv.gz`.
pub(super) fn expect(dir: &Path, stem: &str) -> Result<PathBuf, DataError> {
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
    node_count(path, "of this file", count, 0)
}

fn plain_graph(raw: &Path, progress: bool) -> Result<Loaded, DataError> {
    let path = expect(raw, "num-node-list")?;
    let counts: Matrix<i64> = read_matrix(&path, Some(1), b',', false)?;
    let &[n] = counts.values.as_slice() else {
        return Err(format_error(
            &path,
            format!(
                "expected one graph, found {}; data sets of many graphs are not supported",
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
            format!("expected a line of names and a line of counts, found {found} lines"),
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
        // A repeated relation would load the same file again and again.
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
