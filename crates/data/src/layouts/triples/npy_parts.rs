//! Reads files of the layouts of triples: lists of names, and arrays of triples.

use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{format_error, ids_below, inside, read_bounded, same_count};
use crate::layouts::metadata::Part;
use crate::layouts::triples::knowledge_graph::Triple;

/// Largest accepted file of names in bytes. A million names of a hundred letters take 100 MB.
const MAX_NAMES: u64 = 1 << 30;

/// The entities of a graph in a description.
#[derive(Deserialize)]
pub(crate) struct Entities {
    pub(crate) count: u64,
    pub(crate) names_file: String,
}

/// Reads a file with one name per line; `json` is the description that names it.
pub(crate) fn read_names(
    dir: &Path,
    json: &Path,
    file: &str,
    what: &str,
    count: u64,
) -> Result<Vec<String>, DataError> {
    let path = inside(dir, json, file)?;
    let text = String::from_utf8(read_bounded(&path, MAX_NAMES)?);
    let text =
        text.map_err(|e| format_error(&path, format!("expected UTF-8, found {}", e.utf8_error())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Lines are counted before names are allocated, because a name takes more memory than an empty line.
    let found = text.lines().count();
    same_count(&path, what, count, found)?;
    let mut names = Vec::with_capacity(found);
    names.extend(text.lines().map(str::to_owned));
    Ok(names)
}

/// Reads an array `[3, T]` of heads, relations and tails.
pub(super) fn read_triples(
    dir: &Path,
    json: &Path,
    part: &Part,
    num_entities: usize,
    num_relations: usize,
) -> Result<Vec<Triple>, DataError> {
    let array = NpyArray::read(&inside(dir, json, &part.file)?)?;
    array.expect_shape(&[Some(3), None])?;
    let (path, count) = (array.path.clone(), array.shape[1]);
    same_count(&path, "number of triples", part.count, count)?;
    let mut heads = array.into_i64()?;
    let mut middle = heads.split_off(count);
    let tails = middle.split_off(count);
    let entity = |what, ids| ids_below(&path, what, ids, num_entities);
    let (heads, tails) = (entity("head", heads)?, entity("tail", tails)?);
    let middle = ids_below(&path, "relation", middle, num_relations)?;
    let joined = heads.into_iter().zip(middle).zip(tails);
    Ok(joined.map(|((head, relation), tail)| Triple { head, relation, tail }).collect())
}
