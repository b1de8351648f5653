//! Reads triples that are known to be false, which are stored next to a knowledge graph.

use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::files::read_json;
use crate::layouts::metadata::{Layout, METADATA, Part, TRIPLES};
use crate::layouts::triples::knowledge_graph::{KnowledgeGraph, Triple};
use crate::layouts::triples::npy_parts::read_triples;

#[derive(Deserialize)]
struct Metadata {
    hard_negatives: Option<Parts>,
}

#[derive(Deserialize)]
struct Parts {
    valid: Part,
    test: Part,
}

/// False triples for validation and test of triple classification, such as those of CoDEx.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TripleNegatives {
    /// False triples that belong to the validation triples.
    pub valid: Vec<Triple>,
    /// False triples that belong to the test triples.
    pub test: Vec<Triple>,
}

/// Reads the false triples of a knowledge graph in the layout `triples`, for triple classification.
///
/// `metadata.json` names them under `hard_negatives`, with a file (`triples/valid_negatives.npy`,
/// `triples/test_negatives.npy`, `[3, T]`) and a count for `valid` and `test`. `graph` is the knowledge graph of the
/// same folder, read by [`load_knowledge_graph`](crate::load_knowledge_graph), and bounds the numbers. Returns `None`
/// for a set without false triples.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for another layout, another count than declared, and a number out of range.
///
/// # Cost
/// One read of each file. Memory: 12 bytes per triple.
pub fn load_triple_negatives(
    dir: impl AsRef<Path>,
    graph: &KnowledgeGraph,
) -> Result<Option<TripleNegatives>, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    let read = || -> Result<Option<TripleNegatives>, DataError> {
        Layout::expect(&json, TRIPLES, "; other layouts have no false triples")?;
        let meta: Metadata = read_json(&json)?;
        let Some(parts) = meta.hard_negatives else { return Ok(None) };
        let part =
            |p: &Part| read_triples(dir, &json, p, graph.entities.len(), graph.relations.len());
        Ok(Some(TripleNegatives { valid: part(&parts.valid)?, test: part(&parts.test)? }))
    };
    read().map_err(|e| e.in_file(&json))
}
