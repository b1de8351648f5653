//! Loads knowledge graphs: triples of entities and relations, for link prediction.

#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{EdgeType, Graph};
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{
    format_error, ids_below, inside, node_count, read_bounded, read_json, same_count,
};
use crate::layouts::metadata::{Layout, METADATA, Part, TRIPLES};
use text::TextTriples;

/// Largest file of names that is read; a million names of a hundred letters take 100 MB.
const MAX_NAMES: u64 = 1 << 30;

/// One fact: `head` stands in `relation` to `tail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Triple {
    /// Number of an entity.
    pub head: u32,
    /// Number of a relation.
    pub relation: u32,
    /// Number of an entity.
    pub tail: u32,
}

impl Triple {
    /// The same fact from its tail's side: relation `r` becomes `r + num_relations`. Ranking the heads of a triple is
    /// ranking the tails of its reciprocal (Lacroix, Usunier, Obozinski, ICML 2018).
    #[must_use]
    pub fn reciprocal(self, num_relations: u32) -> Self {
        Self { head: self.tail, relation: self.relation + num_relations, tail: self.head }
    }
}

/// Triples in three parts, with names.
///
/// Entities and relations are numbered from 0 in the order of their names. Every id in a triple is below the number of
/// names; a reader checks that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnowledgeGraph {
    /// Short name.
    pub name: String,
    /// Name of each entity.
    pub entities: Vec<String>,
    /// Name of each relation.
    pub relations: Vec<String>,
    /// Triples to learn from, and the only ones to pass messages over.
    pub train: Vec<Triple>,
    /// Triples to choose settings on.
    pub valid: Vec<Triple>,
    /// Triples that only the final number sees.
    pub test: Vec<Triple>,
}

impl KnowledgeGraph {
    /// The graph that a relational model passes messages over: node type `entity`, for relation `r` the edge type `2 r`
    /// with the train triples of `r` from head to tail in their order, and as edge type `2 r + 1` the same edges
    /// reversed round. A relation without train triples has edge types without edges.
    ///
    /// ```
    /// use burn_gnn_data::{KnowledgeGraph, Triple};
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let names = |n: &[&str]| n.iter().map(|n| n.to_string()).collect();
    ///     let family = KnowledgeGraph {
    ///         entities: names(&["Ann", "Bo"]),
    ///         relations: names(&["parent of", "sibling of"]),
    ///         train: vec![Triple { head: 0, relation: 0, tail: 1 }],
    ///         ..KnowledgeGraph::default()
    ///     };
    ///     let g = family.train_graph()?;
    ///     assert_eq!((g.num_nodes("entity")?, g.relations().len()), (2, 4));
    ///     assert_eq!((g.relations()[0].src(), g.relations()[1].src()), (&[0][..], &[1][..]));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// An entity or relation of a train triple that has no name, or more edges of a relation than it can number.
    pub fn train_graph(&self) -> Result<Graph, DataError> {
        const ENTITY: &str = "entity";
        let mut endpoints = vec![(vec![], vec![]); self.relations.len()];
        for t in &self.train {
            let bound = endpoints.len() as u64;
            let of_relation = endpoints.get_mut(t.relation as usize);
            let (heads, tails) = of_relation.ok_or_else(|| {
                DataError::Graph(GraphError::IdOutOfRange {
                    what: "relation".into(),
                    id: u64::from(t.relation),
                    bound,
                })
            })?;
            heads.push(t.head);
            tails.push(t.tail);
        }
        // Edge types are sorted by name. Names of relations may hold what names of edge types may not, so they are
        // numbers, filled up to one width.
        let width = endpoints.len().saturating_sub(1).to_string().len();
        let mut builder = Graph::builder().nodes(ENTITY, self.entities.len());
        for (r, (heads, tails)) in endpoints.into_iter().enumerate() {
            builder =
                builder.edges(EdgeType::new(ENTITY, format!("{r:0width$}"), ENTITY), heads, tails);
        }
        Ok(builder.build()?.with_inverse_relations("-inv")?)
    }
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, Entities>,
    num_relations: u64,
    relation_names_file: String,
    splits: BTreeMap<String, SplitEntry>,
}

#[derive(Deserialize)]
struct Entities {
    count: u64,
    names_file: String,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: Part,
    valid: Part,
    test: Part,
}

/// Reads a knowledge graph from a folder, in the layout that the files there have.
///
/// | files | who writes them | layout |
/// | --- | --- | --- |
/// | `metadata.json` with `"layout": "triples"` | | `.npy` arrays `[3, T]` int32 or int64 for train, valid and test (row 0 heads, row 1 relations, row 2 tails), text files with one name of an entity or relation per line |
/// | `train.txt`, `valid.txt`, `test.txt` | FB15k-237, WN18RR, CoDEx, YAGO3-10, UMLS, Nations, GraIL | a line `head<TAB>relation<TAB>tail` of names; also with a prefix (`wordnet-mlj12-train.txt`), and gzip or zstd under these names |
/// | `train2id.txt`, `valid2id.txt`, `test2id.txt`, `entity2id.txt`, `relation2id.txt` | OpenKE | the number of lines, then `head tail relation` by number, or `name<TAB>number` |
///
/// Names in text triples are numbered in the order of the files, train first; where the folder has `entity2id.txt` and
/// `relation2id.txt` (`name<TAB>number`, with or without a first line that counts them) or `entities.dict` and
/// `relations.dict` (`number<TAB>name`), by these. Triples keep their order; one that stands there twice is two.
///
/// As in [`load_dataset`](super::load_dataset) nothing in the files is trusted: counts are compared with the
/// description, ids with the number of names, and file names must stay inside `dir`.
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
/// [`DataError::Io`] for a missing file, [`DataError::Version`] for another layout version; [`DataError::Table`] with file
/// and line for a line of another form, facts with times among them, and for a name or number that the list of names does
/// not have; [`DataError::Format`] for anything else that is not what the layout asks for: data for node classification,
/// triples in the order head, tail, relation where names tell.
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
    let probe: Layout = read_json(&json)?;
    if probe.layout.as_deref() != Some(TRIPLES) {
        let found = probe.layout.map_or("none".into(), |l| format!("`{l}`"));
        let why = format!(
            "expected layout `{TRIPLES}`, found {found}; `load_dataset` reads data for node classification"
        );
        return Err(format_error(&json, why));
    }
    probe.check_version(&json)?;
    let meta: Metadata = read_json(&json)?;
    let only = |what: &str, found: usize| {
        format_error(&json, format!("{what}: expected exactly one, found {found}"))
    };
    let (Some((ntype, entities)), 1) = (meta.node_types.first_key_value(), meta.node_types.len())
    else {
        return Err(only("node_types", meta.node_types.len()));
    };
    let (Some((_, split)), 1) = (meta.splits.first_key_value(), meta.splits.len()) else {
        return Err(only("splits", meta.splits.len()));
    };
    let names = |file: &str, what: &str, count: u64| -> Result<Vec<String>, DataError> {
        let path = inside(dir, &json, file)?;
        let text = String::from_utf8(read_bounded(&path, MAX_NAMES)?);
        let text = text.map_err(|e| {
            format_error(&path, format!("expected UTF-8, found {}", e.utf8_error()))
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // Counted first: a name takes more memory than an empty line of the file.
        let found = text.lines().count();
        same_count(&path, what, count, found)?;
        let mut names = Vec::with_capacity(found);
        names.extend(text.lines().map(str::to_owned));
        Ok(names)
    };
    let entity_names = names(&entities.names_file, "number of entities", entities.count)?;
    node_count(&json, ntype, entities.count, u64::MAX)?;
    let relations = names(&meta.relation_names_file, "number of relations", meta.num_relations)?;
    let part = |p: &Part| -> Result<Vec<Triple>, DataError> {
        let array = NpyArray::read(&inside(dir, &json, &p.file)?)?;
        array.expect_shape(&[Some(3), None])?;
        let (path, count) = (array.path.clone(), array.shape[1]);
        same_count(&path, "number of triples", p.count, count)?;
        let mut heads = array.into_i64()?;
        let mut middle = heads.split_off(count);
        let tails = middle.split_off(count);
        let entity = |what, ids| ids_below(&path, what, ids, entity_names.len());
        let (heads, tails) = (entity("head", heads)?, entity("tail", tails)?);
        let middle = ids_below(&path, "relation", middle, relations.len())?;
        let joined = heads.into_iter().zip(middle).zip(tails);
        Ok(joined.map(|((head, relation), tail)| Triple { head, relation, tail }).collect())
    };
    let (train, valid, test) = (part(&split.train)?, part(&split.valid)?, part(&split.test)?);
    tracing::debug!(
        name = meta.name,
        entities = entity_names.len(),
        triples = train.len(),
        "knowledge graph read"
    );
    Ok(KnowledgeGraph { name: meta.name, entities: entity_names, relations, train, valid, test })
}
