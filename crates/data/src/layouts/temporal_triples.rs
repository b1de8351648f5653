//! Reads the layout `temporal_triples`: facts of a knowledge graph, each with a time step.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{format_error, ids_below, inside, node_count, read_json, same_count};
use crate::layouts::metadata::{Layout, METADATA, Part, only};
use crate::layouts::triples::npy_parts::{Entities, read_names};

/// Value of `layout` in the description.
const TEMPORAL: &str = "temporal_triples";

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

/// A fact that is true at a time step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimedTriple {
    /// Time step.
    pub time: u32,
    /// Number of the head entity.
    pub head: u32,
    /// Number of the relation.
    pub relation: u32,
    /// Number of the tail entity.
    pub tail: u32,
}

/// A knowledge graph whose facts have time steps: training, validation and test facts in this order of time, and the
/// names of entities and relations. Facts of a part are sorted by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalKnowledgeGraph {
    /// Short name.
    pub name: String,
    /// Name of each entity.
    pub entities: Vec<String>,
    /// Name of each relation.
    pub relations: Vec<String>,
    /// Training facts.
    pub train: Vec<TimedTriple>,
    /// Validation facts.
    pub valid: Vec<TimedTriple>,
    /// Test facts.
    pub test: Vec<TimedTriple>,
}

/// Reads a folder of the layout `temporal_triples`: `metadata.json`, arrays `[4, T]` of heads, relations, tails and time
/// steps for train, valid and test, and text files with one name per line.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for all other deviations, such as contradictory counts and parts that overlap in time.
pub fn load_temporal_triples(dir: impl AsRef<Path>) -> Result<TemporalKnowledgeGraph, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(&json))
}

fn read(dir: &Path, json: &Path) -> Result<TemporalKnowledgeGraph, DataError> {
    Layout::expect(json, TEMPORAL, "")?;
    let meta: Metadata = read_json(json)?;
    let (ntype, entry) = only(json, "node_types", &meta.node_types)?;
    let (_, split) = only(json, "splits", &meta.splits)?;
    let entities = read_names(dir, json, &entry.names_file, "number of entities", entry.count)?;
    node_count(json, ntype, entry.count, u64::MAX)?;
    let relations = read_names(
        dir,
        json,
        &meta.relation_names_file,
        "number of relations",
        meta.num_relations,
    )?;
    let part = |part: &Part| -> Result<Vec<TimedTriple>, DataError> {
        let array = NpyArray::read(&inside(dir, json, &part.file)?)?;
        array.expect_shape(&[Some(4), None])?;
        let (path, count) = (array.path.clone(), array.shape[1]);
        same_count(&path, "number of facts", part.count, count)?;
        let mut heads = array.into_i64()?;
        let mut middle = heads.split_off(count);
        let mut tails = middle.split_off(count);
        let times = tails.split_off(count);
        let ids = |what, ids, bound| ids_below(&path, what, ids, bound);
        let (heads, middle) =
            (ids("head", heads, entities.len())?, ids("relation", middle, relations.len())?);
        let (tails, times) =
            (ids("tail", tails, entities.len())?, ids("time step", times, u32::MAX as usize)?);
        let facts = heads.into_iter().zip(middle).zip(tails).zip(times);
        let fact = |(((head, relation), tail), time)| TimedTriple { time, head, relation, tail };
        let mut facts: Vec<TimedTriple> = facts.map(fact).collect();
        facts.sort_by_key(|fact| fact.time);
        Ok(facts)
    };
    let (train, valid, test) = (part(&split.train)?, part(&split.valid)?, part(&split.test)?);
    let mut last = train.last();
    for (name, part) in [("valid", &valid), ("test", &test)] {
        if let (Some(last), Some(first)) = (last, part.first())
            && first.time <= last.time
        {
            let why = format!(
                "{name}: expected time steps after {}, the last one of earlier parts, found {}",
                last.time, first.time
            );
            return Err(format_error(json, why));
        }
        last = part.last().or(last);
    }
    Ok(TemporalKnowledgeGraph { name: meta.name, entities, relations, train, valid, test })
}
