//! Reads knowledge graphs for inductive link prediction: one graph to train on, another with other entities to test on.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{format_error, ids_below, inside, node_count, read_json};
use crate::layouts::metadata::{INDUCTIVE_TRIPLES, Layout, METADATA, Part, only};
use crate::layouts::triples::knowledge_graph::KnowledgeGraph;
use crate::layouts::triples::npy_parts::{Entities, read_names, read_triples};

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, Entities>,
    num_relations: u64,
    relation_names_file: String,
    splits: BTreeMap<String, SplitEntry>,
    negatives: NegativeFiles,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: Part,
    valid: Part,
    test: Part,
    inductive_train: Part,
    inductive_valid: Part,
    inductive_test: Part,
}

#[derive(Deserialize)]
struct NegativeFiles {
    head: NegativeFile,
    tail: NegativeFile,
}

#[derive(Deserialize)]
struct NegativeFile {
    file: String,
}

/// False heads and tails of each test triple, fixed so that all models are ranked against the same entities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityNegatives {
    /// Number of false entities for each triple and side.
    pub per_triple: usize,
    /// False heads: `per_triple` entities for each triple, in the order of the triples.
    pub heads: Vec<u32>,
    /// False tails, in the same order.
    pub tails: Vec<u32>,
}

impl EntityNegatives {
    /// False heads of a triple.
    ///
    /// # Panics
    /// If there is no triple of this number.
    #[must_use]
    pub fn heads_of(&self, triple: usize) -> &[u32] {
        &self.heads[triple * self.per_triple..][..self.per_triple]
    }

    /// False tails of a triple.
    ///
    /// # Panics
    /// If there is no triple of this number.
    #[must_use]
    pub fn tails_of(&self, triple: usize) -> &[u32] {
        &self.tails[triple * self.per_triple..][..self.per_triple]
    }
}

/// Two knowledge graphs with the same relations and different entities (Teru, Denis, Hamilton, ICML 2020).
///
/// A model trains on `known.train` and is chosen on `known.valid`. At the test it reads `unseen.train` and ranks
/// `unseen.test`, whose entities it has never seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InductiveKnowledgeGraph {
    /// The graph to train on.
    pub known: KnowledgeGraph,
    /// The graph of other entities. Its list of relations equals that of `known`.
    pub unseen: KnowledgeGraph,
    /// False heads and tails of the triples `unseen.test`.
    pub negatives: EntityNegatives,
}

/// Reads a set for inductive link prediction in the layout `inductive_triples` (`metadata.json`).
///
/// | files | content |
/// | --- | --- |
/// | `triples/{train,valid,test}.npy` | `[3, T]`: heads, relations, tails of the first graph |
/// | `inductive/triples/{train,valid,test}.npy` | the same of the second graph |
/// | `entities.txt`, `inductive/entities.txt`, `relations.txt` | one name per line |
/// | `inductive/negatives/test_{head,tail}.npy` | `[T, k]`: false heads and tails of each test triple of the second graph |
///
/// As in [`load_dataset`](crate::load_dataset), the files are not trusted: counts and ids are checked, and file names must
/// be inside `dir`.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for another layout, contradictory counts, and numbers out of range.
///
/// # Cost
/// One read of each file. Memory: the names once, 12 bytes per triple, `8 k` bytes per test triple.
pub fn load_inductive_triples(dir: impl AsRef<Path>) -> Result<InductiveKnowledgeGraph, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(&json))
}

fn read(dir: &Path, json: &Path) -> Result<InductiveKnowledgeGraph, DataError> {
    Layout::expect(json, INDUCTIVE_TRIPLES, "; read knowledge graphs with `load_knowledge_graph`")?;
    let meta: Metadata = read_json(json)?;
    let (_, split) = only(json, "splits", &meta.splits)?;
    let what = "number of relations";
    let relations = read_names(dir, json, &meta.relation_names_file, what, meta.num_relations)?;
    let graph = |ntype: &str, parts: [&Part; 3]| -> Result<KnowledgeGraph, DataError> {
        let entry = meta.node_types.get(ntype).ok_or_else(|| {
            format_error(json, format!("node_types: expected an entry `{ntype}`, found none"))
        })?;
        let what = "number of entities";
        let entities = read_names(dir, json, &entry.names_file, what, entry.count)?;
        node_count(json, ntype, entry.count, u64::MAX)?;
        let part = |p| read_triples(dir, json, p, entities.len(), relations.len());
        let [train, valid, test] = [part(parts[0])?, part(parts[1])?, part(parts[2])?];
        let (name, relations) = (meta.name.clone(), relations.clone());
        Ok(KnowledgeGraph { name, entities, relations, train, valid, test })
    };
    let known = graph("entity", [&split.train, &split.valid, &split.test])?;
    let parts = [&split.inductive_train, &split.inductive_valid, &split.inductive_test];
    let unseen = graph("inductive_entity", parts)?;
    let negatives = |file: &NegativeFile,
                     what: &str,
                     width: Option<usize>|
     -> Result<(Vec<u32>, usize), DataError> {
        let array = NpyArray::read(&inside(dir, json, &file.file)?)?;
        array.expect_shape(&[Some(unseen.test.len()), width])?;
        let (path, width) = (array.path.clone(), array.shape[1]);
        Ok((ids_below(&path, what, array.into_i64()?, unseen.entities.len())?, width))
    };
    let (heads, per_triple) = negatives(&meta.negatives.head, "false head", None)?;
    let (tails, _) = negatives(&meta.negatives.tail, "false tail", Some(per_triple))?;
    let negatives = EntityNegatives { per_triple, heads, tails };
    Ok(InductiveKnowledgeGraph { known, unseen, negatives })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::arrays::npy::npy_bytes;
    use crate::layouts::triples::knowledge_graph::Triple;

    fn put(dir: &Path, file: &str, descr: &str, shape: &str, data: &[u8]) {
        std::fs::write(dir.join(file), npy_bytes(descr, false, shape, data)).unwrap();
    }

    /// Two entities and one relation, then three other entities; `edit` is applied last.
    fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<InductiveKnowledgeGraph, DataError> {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        for sub in ["triples", "inductive/triples", "inductive/negatives"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        std::fs::write(dir.join("entities.txt"), "a\nb\n").unwrap();
        std::fs::write(dir.join("inductive/entities.txt"), "x\ny\nz\n").unwrap();
        std::fs::write(dir.join("relations.txt"), "r\n").unwrap();
        let triples: [(&str, [i32; 3]); 6] = [
            ("triples/train.npy", [0, 0, 1]),
            ("triples/valid.npy", [1, 0, 0]),
            ("triples/test.npy", [1, 0, 1]),
            ("inductive/triples/train.npy", [0, 0, 1]),
            ("inductive/triples/valid.npy", [1, 0, 2]),
            ("inductive/triples/test.npy", [2, 0, 0]),
        ];
        for (file, ids) in triples {
            put(dir, file, "<i4", "(3, 1)", bytemuck::cast_slice(&ids));
        }
        let negatives = "inductive/negatives/test_";
        put(
            dir,
            &format!("{negatives}head.npy"),
            "<i2",
            "(1, 2)",
            bytemuck::cast_slice(&[0i16, 1]),
        );
        put(
            dir,
            &format!("{negatives}tail.npy"),
            "<i2",
            "(1, 2)",
            bytemuck::cast_slice(&[1i16, 2]),
        );
        let part = |file: &str| json!({"file": file, "count": 1});
        let mut meta = json!({
            "name": "toy", "layout_version": 1, "layout": "inductive_triples",
            "node_types": {
                "entity": {"count": 2, "names_file": "entities.txt"},
                "inductive_entity": {"count": 3, "names_file": "inductive/entities.txt"},
            },
            "num_relations": 1, "relation_names_file": "relations.txt",
            "splits": {"x": {
                "train": part(triples[0].0), "valid": part(triples[1].0), "test": part(triples[2].0),
                "inductive_train": part(triples[3].0), "inductive_valid": part(triples[4].0),
                "inductive_test": part(triples[5].0),
            }},
            "negatives": {
                "head": {"file": format!("{negatives}head.npy")},
                "tail": {"file": format!("{negatives}tail.npy")},
            },
        });
        edit(dir, &mut meta);
        std::fs::write(dir.join(METADATA), meta.to_string()).unwrap();
        load_inductive_triples(dir)
    }

    fn rejected(edit: impl FnOnce(&Path, &mut Value), file: &str, part: &str) {
        let e = toy(edit).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with(file)), "{e:?}");
    }

    #[test]
    fn both_graphs_and_the_negatives_are_read() {
        let set = toy(|_, _| {}).unwrap();
        assert_eq!(set.known.train, [Triple { head: 0, relation: 0, tail: 1 }]);
        assert_eq!(set.unseen.test, [Triple { head: 2, relation: 0, tail: 0 }]);
        assert_eq!((set.known.entities.len(), set.unseen.entities.len()), (2, 3));
        assert_eq!(set.known.relations, set.unseen.relations);
        assert_eq!(set.negatives.heads_of(0), [0, 1]);
        assert_eq!(set.negatives.tails_of(0), [1, 2]);
    }

    #[test]
    fn deviations_are_errors() {
        let json = "metadata.json";
        rejected(
            |_, m| m["layout"] = json!("triples"),
            json,
            "read knowledge graphs with `load_knowledge_graph`",
        );
        rejected(
            |_, m| drop(m["node_types"].as_object_mut().unwrap().remove("inductive_entity")),
            json,
            "expected an entry `inductive_entity`",
        );
        rejected(|_, m| m["splits"] = json!({}), json, "splits: expected exactly one, found 0");
        // Entity 2 exists in the second graph, not in the first.
        let far = |d: &Path, _: &mut Value| {
            put(d, "triples/train.npy", "<i4", "(3, 1)", bytemuck::cast_slice(&[0i32, 0, 2]));
        };
        rejected(far, "triples/train.npy", "tail of entry 0: expected 0..2, found 2");
        let head = "inductive/negatives/test_head.npy";
        let far = |d: &Path, _: &mut Value| {
            put(d, head, "<i2", "(1, 2)", bytemuck::cast_slice(&[0i16, 3]));
        };
        rejected(far, head, "false head of entry 1: expected 0..3, found 3");
        let tail = "inductive/negatives/test_tail.npy";
        let short = |d: &Path, _: &mut Value| {
            put(d, tail, "<i2", "(1, 1)", bytemuck::cast_slice(&[0i16]));
        };
        rejected(short, tail, "expected shape [1, 2], found [1, 1]");
        let e = toy(|d, _| std::fs::remove_file(d.join(head)).unwrap()).unwrap_err();
        assert!(matches!(&e, DataError::Io { path, .. } if path.ends_with(head)), "{e:?}");
    }

    #[test]
    fn a_published_set() {
        let Some(dir) = burn_gnn_testutil::data("grail_fb237_v1") else { return };
        let set = load_inductive_triples(dir).unwrap();
        assert_eq!((set.known.entities.len(), set.unseen.entities.len()), (1594, 1093));
        assert_eq!((set.known.train.len(), set.unseen.train.len()), (4245, 1993));
        assert_eq!((set.unseen.test.len(), set.negatives.per_triple), (205, 50));
        // No false entity makes a known triple.
        let all = [&set.unseen.train, &set.unseen.valid, &set.unseen.test];
        let known: std::collections::BTreeSet<Triple> =
            all.into_iter().flatten().copied().collect();
        for (i, &t) in set.unseen.test.iter().enumerate() {
            let false_heads = set.negatives.heads_of(i).iter().map(|&head| Triple { head, ..t });
            let false_tails = set.negatives.tails_of(i).iter().map(|&tail| Triple { tail, ..t });
            assert!(false_heads.chain(false_tails).all(|t| !known.contains(&t)), "triple {i}");
        }
    }
}
