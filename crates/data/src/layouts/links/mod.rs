//! Reads undirected graphs whose links are split for link prediction.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{format_error, ids_below, inside, node_count, read_json, same_count};
use crate::layouts::metadata::{FOR_NODES, LINKS, Layout, METADATA, only};

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, Nodes>,
    splits: BTreeMap<String, SplitEntry>,
}

#[derive(Deserialize)]
struct Nodes {
    count: u64,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: LinkFile,
    val: LinkFile,
    test: LinkFile,
}

#[derive(Deserialize)]
struct LinkFile {
    file: String,
    count: u64,
    negatives_file: Option<String>,
}

/// A pair of nodes without direction, the smaller number first.
pub type NodePair = [u32; 2];

/// An undirected graph whose links are split into training, validation and test, with absent pairs to compare with.
///
/// The three parts together are the links of the graph. A model trains on `train` and is chosen on `val` against
/// `val_negatives`. At the test it may read `train` and `val`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSet {
    /// Short name.
    pub name: String,
    /// Number of nodes.
    pub num_nodes: usize,
    /// Training links.
    pub train: Vec<NodePair>,
    /// Validation links.
    pub val: Vec<NodePair>,
    /// Test links.
    pub test: Vec<NodePair>,
    /// Pairs without a link, for validation.
    pub val_negatives: Vec<NodePair>,
    /// Pairs without a link, for the test.
    pub test_negatives: Vec<NodePair>,
}

/// Reads a graph in the layout `links` (`metadata.json`): `links/{train,val,test}.npy` are `[2, E]`, each undirected
/// link once, and `links/{val,test}_negatives.npy` are absent pairs.
///
/// As in [`load_dataset`](crate::load_dataset), the files are not trusted: counts and ids are checked, and file names must
/// be inside `dir`. Pairs are returned with the smaller number first.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for another layout, contradictory counts, node numbers out of range, a link from a node to
///   itself, and parts without a file of absent pairs.
///
/// # Cost
/// One read of each file. Memory: 8 bytes per pair.
pub fn load_links(dir: impl AsRef<Path>) -> Result<LinkSet, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(&json))
}

fn read(dir: &Path, json: &Path) -> Result<LinkSet, DataError> {
    Layout::expect(json, LINKS, FOR_NODES)?;
    let meta: Metadata = read_json(json)?;
    let (ntype, nodes) = only(json, "node_types", &meta.node_types)?;
    let (_, split) = only(json, "splits", &meta.splits)?;
    let num_nodes = node_count(json, ntype, nodes.count, 0)?;
    let pairs = |file: &str, count: Option<u64>| -> Result<Vec<NodePair>, DataError> {
        let array = NpyArray::read(&inside(dir, json, file)?)?;
        array.expect_shape(&[Some(2), None])?;
        let (path, found) = (array.path.clone(), array.shape[1]);
        if let Some(count) = count {
            same_count(&path, "number of links", count, found)?;
        }
        let mut first = array.into_i64()?;
        let second = ids_below(&path, "second node", first.split_off(found), num_nodes)?;
        let first = ids_below(&path, "first node", first, num_nodes)?;
        let ordered = |(i, (a, b)): (usize, (u32, u32))| {
            if a == b {
                let why = format!("pair of entry {i}: expected two nodes, found node {a} twice");
                return Err(format_error(&path, why));
            }
            Ok([a.min(b), a.max(b)])
        };
        first.into_iter().zip(second).enumerate().map(ordered).collect()
    };
    let links = |p: &LinkFile| pairs(&p.file, Some(p.count));
    let negatives = |part: &str, p: &LinkFile| match &p.negatives_file {
        Some(file) => pairs(file, None),
        None => {
            let why = format!("part `{part}`: expected a field `negatives_file`, found none");
            Err(format_error(json, why))
        }
    };
    Ok(LinkSet {
        train: links(&split.train)?,
        val: links(&split.val)?,
        test: links(&split.test)?,
        val_negatives: negatives("val", &split.val)?,
        test_negatives: negatives("test", &split.test)?,
        name: meta.name,
        num_nodes,
    })
}
