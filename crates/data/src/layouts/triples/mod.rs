//! Reads knowledge graphs: triples of entities and relations, for link prediction.

mod inductive;
mod knowledge_graph;
mod negatives;
pub(crate) mod npy_parts;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::files::{format_error, node_count, read_json};
use crate::layouts::metadata::{FOR_NODES, Layout, METADATA, Part, TRIPLES, only};
pub use inductive::{EntityNegatives, InductiveKnowledgeGraph, load_inductive_triples};
pub use knowledge_graph::{KnowledgeGraph, Triple};
pub use negatives::{TripleNegatives, load_triple_negatives};
use npy_parts::{Entities, read_names, read_triples};
use text::TextTriples;

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, Entities>,
    num_relations: u64,
    relation_names_file: String,
    splits: BTreeMap<String, SplitEntry>,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: Part,
    valid: Part,
    test: Part,
}

/// Reads a knowledge graph from a folder. The names of its files select the layout:
///
/// | files | data sets and programs | layout |
/// | --- | --- | --- |
/// | `metadata.json` with `"layout": "triples"` | | `.npy` arrays `[3, T]` int32 or int64 for train, valid and test (row 0 heads, row 1 relations, row 2 tails), text files with one name of an entity or relation per line |
/// | `train.txt`, `valid.txt`, `test.txt` | FB15k-237, WN18RR, CoDEx, YAGO3-10, UMLS, Nations, GraIL | a line `head<TAB>relation<TAB>tail` of names; also with a prefix (`wordnet-mlj12-train.txt`), and gzip or zstd under these names |
/// | `train2id.txt`, `valid2id.txt`, `test2id.txt`, `entity2id.txt`, `relation2id.txt` | OpenKE | the number of lines, then `head tail relation` by number, or `name<TAB>number` |
///
/// Names in text triples are numbered in order of first occurrence: training, validation, test. If the folder contains
/// `entity2id.txt` and `relation2id.txt` (`name<TAB>number`, optionally after a line with the count), or `entities.dict` and
/// `relations.dict` (`number<TAB>name`), these files define the numbers. Triples keep their order, and repeated triples are
/// kept.
///
/// As in [`load_dataset`](crate::load_dataset), the files are not trusted: counts and ids are checked, and file names must
/// be inside `dir`.
///
/// ```
/// use burn_gnn_data::{Triple, load_knowledge_graph};
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let dir = dir.path();
///     std::fs::write(dir.join("train.txt"), "Ann\tparent of\tBo\nBo\tsibling of\tCy\n").unwrap();
///     std::fs::write(dir.join("valid.txt"), "").unwrap();
///     std::fs::write(dir.join("test.txt"), "Ann\tparent of\tCy\n").unwrap();
///     let family = load_knowledge_graph(dir)?;
///     assert_eq!(family.entities, ["Ann", "Bo", "Cy"]);
///     assert_eq!(family.test, [Triple { head: 0, relation: 0, tail: 2 }]);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Table`], with file and line, for a line with another number of fields, such as a fact with a time, and for
///   a name or number that is not in the list of names.
/// * [`DataError::Format`] for all other deviations from the layout: data for node classification, contradictory counts, and
///   text triples whose names show that the order is head, tail, relation.
///
/// # Cost
/// One sequential pass over each text file. Memory: the names once, and 12 bytes per triple.
pub fn load_knowledge_graph(dir: impl AsRef<Path>) -> Result<KnowledgeGraph, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    if !json.exists()
        && let Some(text) = TextTriples::find(dir)?
    {
        return text.read();
    }
    read(dir, json.clone()).map_err(|e| e.in_file(json))
}

fn read(dir: &Path, json: PathBuf) -> Result<KnowledgeGraph, DataError> {
    if dir.is_dir() && !json.exists() {
        let why = format!(
            "expected a knowledge graph with `train.txt`, `train2id.txt` or `{METADATA}`, found none of them"
        );
        return Err(format_error(dir, why));
    }
    Layout::expect(&json, TRIPLES, FOR_NODES)?;
    let meta: Metadata = read_json(&json)?;
    let (ntype, entities) = only(&json, "node_types", &meta.node_types)?;
    let (_, split) = only(&json, "splits", &meta.splits)?;
    let entity_names =
        read_names(dir, &json, &entities.names_file, "number of entities", entities.count)?;
    node_count(&json, ntype, entities.count, u64::MAX)?;
    let relations = read_names(
        dir,
        &json,
        &meta.relation_names_file,
        "number of relations",
        meta.num_relations,
    )?;
    let part = |p: &Part| read_triples(dir, &json, p, entity_names.len(), relations.len());
    let (train, valid, test) = (part(&split.train)?, part(&split.valid)?, part(&split.test)?);
    tracing::debug!(
        name = meta.name,
        entities = entity_names.len(),
        triples = train.len(),
        "knowledge graph read"
    );
    Ok(KnowledgeGraph { name: meta.name, entities: entity_names, relations, train, valid, test })
}
