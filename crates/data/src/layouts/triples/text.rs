//! Reads knowledge graphs from text files: triples of names, or triples of numbers in OpenKE's format.

use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use hashbrown::HashSet;

use crate::columns::interner::Interner;
use crate::files::{Expected, format_error, io_error, same_count, table_error, within_limit};
use crate::layouts::triples::knowledge_graph::{KnowledgeGraph, Triple};
use crate::tables::text::blocks::{Blocks, lines};
use crate::tables::text::format::explained;
use crate::tables::text::parse_number::parse_i64;

/// Names of the parts in file names.
const PARTS: [&str; 3] = ["train", "valid", "test"];

/// A folder with triples in text files.
pub(super) struct TextTriples {
    dir: PathBuf,
    parts: [PathBuf; 3],
    /// Whether the triples are numbers in OpenKE's order. Otherwise they are names.
    numbers: bool,
}

impl TextTriples {
    /// Finds the files of a folder; `None` if it contains no text triples.
    pub(super) fn find(dir: &Path) -> Result<Option<Self>, DataError> {
        let of = |prefix: &str, end: &str| PARTS.map(|p| dir.join(format!("{prefix}{p}{end}")));
        let found = |parts, numbers| Ok(Some(Self { dir: dir.into(), parts, numbers }));
        if dir.join("train2id.txt").is_file() {
            return found(of("", "2id.txt"), true);
        }
        if dir.join("train.txt").is_file() {
            return found(of("", ".txt"), false);
        }
        let Ok(entries) = std::fs::read_dir(dir) else { return Ok(None) };
        let mut prefixes = vec![];
        for entry in entries {
            let name = entry.map_err(|e| io_error(dir, e))?.file_name();
            prefixes.extend(name.to_string_lossy().strip_suffix("train.txt").map(str::to_owned));
        }
        match prefixes.as_slice() {
            [] => Ok(None),
            [prefix] => found(of(prefix, ".txt"), false),
            several => Err(format_error(
                dir,
                format!("expected one file `…train.txt`, found {}", several.len()),
            )),
        }
    }

    pub(super) fn read(&self) -> Result<KnowledgeGraph, DataError> {
        let entities = Names::find(&self.dir, ["entity2id.txt", "entities.dict"])?;
        let relations = Names::find(&self.dir, ["relation2id.txt", "relations.dict"])?;
        let name = self.dir.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if !self.numbers {
            return self.of_names(name, entities, relations);
        }
        let missing = |file| {
            let file = self.dir.join(file);
            move || io_error(&file, std::io::ErrorKind::NotFound.into())
        };
        let counts = [
            entities.as_ref().ok_or_else(missing("entity2id.txt"))?.texts.texts().len(),
            relations.as_ref().ok_or_else(missing("relation2id.txt"))?.texts.texts().len(),
        ];
        let [train, valid, test] = self.of_numbers(counts)?;
        let owned = |names: Option<Names>| names.map_or(vec![], |n| n.into_strings());
        Ok(KnowledgeGraph {
            name,
            entities: owned(entities),
            relations: owned(relations),
            train,
            valid,
            test,
        })
    }

    /// Reads lines `head relation tail` of names.
    fn of_names(
        &self,
        name: String,
        entities: Option<Names>,
        relations: Option<Names>,
    ) -> Result<KnowledgeGraph, DataError> {
        let (mut entities, mut relations) = (Numbering::new(entities), Numbering::new(relations));
        let mut parts: [Vec<Triple>; 3] = Default::default();
        for (path, triples) in self.parts.iter().zip(&mut parts) {
            let mut tabs = None;
            each_line(path, |line, text| {
                // If tabs separate the fields, names may contain spaces. The first line decides.
                let tabs = *tabs.get_or_insert(text.contains('\t'));
                let split: [Option<&str>; 4] = if tabs {
                    let mut fields = text.split('\t').map(str::trim);
                    std::array::from_fn(|_| fields.next())
                } else {
                    let mut fields = text.split_ascii_whitespace();
                    std::array::from_fn(|_| fields.next())
                };
                let [Some(head), Some(relation), Some(tail), None] = split else {
                    let expected = "head, relation and tail, separated by tabs";
                    return Err(table_error(path, line, 0, with_remedy(expected, split[3]), text));
                };
                let number = |field: usize, names: &mut Numbering, name: &str| {
                    let number = match name {
                        "" => Err("a non-empty name".to_owned()),
                        name => names.number(name),
                    };
                    number.map_err(|expected| table_error(path, line, field, expected, name))
                };
                let head = number(1, &mut entities, head)?;
                let relation = number(2, &mut relations, relation)?;
                let tail = number(3, &mut entities, tail)?;
                triples.push(Triple { head, relation, tail });
                within_limit(path.display(), "edges", triples.len() as u64)
            })?;
        }
        let [train, valid, test] = parts;
        let listed = relations.listed_in.is_some();
        let (entities, relations) = (entities.names, relations.names);
        if !listed {
            check_column_order(&self.parts[0], &train, &entities, &relations)?;
        }
        let owned = |names: Interner| names.into_texts().iter().map(str::to_owned).collect();
        Ok(KnowledgeGraph {
            name,
            entities: owned(entities),
            relations: owned(relations),
            train,
            valid,
            test,
        })
    }

    /// Reads the number of triples, then lines `head tail relation` of numbers.
    fn of_numbers(&self, [entities, relations]: [usize; 2]) -> Result<[Vec<Triple>; 3], DataError> {
        let mut parts: [Vec<Triple>; 3] = Default::default();
        for (path, triples) in self.parts.iter().zip(&mut parts) {
            let mut count = None;
            each_line(path, |line, text| {
                let mut fields = text.split_ascii_whitespace();
                let split: [Option<&str>; 4] = std::array::from_fn(|_| fields.next());
                if count.is_none() {
                    let of_lines = match split {
                        [Some(n), None, None, None] => parse_u64(n),
                        _ => None,
                    };
                    count = Some(of_lines.ok_or_else(|| {
                        table_error(path, line, 0, "the number of triples alone", text)
                    })?);
                    return Ok(());
                }
                let [Some(head), Some(tail), Some(relation), None] = split else {
                    let expected = "head, tail and relation, separated by spaces";
                    return Err(table_error(path, line, 0, with_remedy(expected, split[3]), text));
                };
                let number = |field: usize, what: &str, text: &str, bound: usize| {
                    let number = parse_u64(text).filter(|&n| n < bound as u64);
                    let expected = || format!("the number of {what} in 0..{bound}");
                    number
                        .map(|n| n as u32)
                        .ok_or_else(|| table_error(path, line, field, expected(), text))
                };
                let head = number(1, "an entity", head, entities)?;
                let tail = number(2, "an entity", tail, entities)?;
                let relation = number(3, "a relation", relation, relations)?;
                triples.push(Triple { head, relation, tail });
                within_limit(path.display(), "edges", triples.len() as u64)
            })?;
            let count = count.ok_or_else(|| {
                format_error(path, "expected the number of triples, found the end")
            })?;
            same_count(path, "number of triples", count, triples.len())?;
        }
        Ok(parts)
    }
}

/// Adds a remedy if the line has a fourth field.
fn with_remedy(expected: &str, fourth: Option<&str>) -> Expected {
    let times = "facts with a time are not supported; read tables with timestamps with a `Builder`";
    Expected::from(expected).or(if fourth.is_some() { times } else { "" })
}

/// Returns an error if the columns seem to be in the order of KB2E: head, tail, relation. Then names of the second column
/// are heads, too, and names of the third column are not.
fn check_column_order(
    path: &Path,
    train: &[Triple],
    entities: &Interner,
    relations: &Interner,
) -> Result<(), DataError> {
    let heads: HashSet<u32> = train.iter().map(|t| t.head).collect();
    let is_head = |name: &str| entities.get(name).is_some_and(|e| heads.contains(&e));
    let tails_are_heads = train.iter().any(|t| heads.contains(&t.tail));
    if tails_are_heads || !relations.texts().iter().any(is_head) {
        return Ok(());
    }
    let why = "expected head, relation and tail, found heads in the second column and none in the third; \
               swap these columns if they are tail and relation, or list the relations in `relation2id.txt`";
    Err(format_error(path, why))
}

/// Names with numbers from a file.
struct Names {
    path: PathBuf,
    texts: Interner,
}

impl Names {
    /// Reads the first existing file of `<name>2id.txt` (name, number) and `<names>.dict` (number, name).
    fn find(dir: &Path, files: [&str; 2]) -> Result<Option<Self>, DataError> {
        for (file, number_first) in files.into_iter().zip([false, true]) {
            let path = dir.join(file);
            if path.is_file() {
                return Self::read(path, number_first).map(Some);
            }
        }
        Ok(None)
    }

    fn read(path: PathBuf, number_first: bool) -> Result<Self, DataError> {
        let (mut names, mut first, mut count) = (vec![], true, None);
        each_line(&path, |line, text| {
            let text = text.trim();
            if std::mem::take(&mut first) && !text.contains(['\t', ' ']) {
                count = Some(parse_u64(text).ok_or_else(|| {
                    table_error(
                        &path,
                        line,
                        0,
                        "the number of names, or a name and its number",
                        text,
                    )
                })?);
                return Ok(());
            }
            let split = |c: &[char]| {
                if number_first { text.split_once(c) } else { text.rsplit_once(c) }
            };
            let (a, b) = split(&['\t']).or_else(|| split(&[' '])).unwrap_or((text, ""));
            let (name, number) = if number_first { (b, a) } else { (a, b) };
            let name = name.trim();
            match parse_u64(number.trim()).and_then(|n| u32::try_from(n).ok()) {
                Some(number) if !name.is_empty() => names.push((number, line, name.to_owned())),
                _ => {
                    let expected = if number_first {
                        "a number and a name, separated by a tab"
                    } else {
                        "a name and its number, separated by a tab"
                    };
                    return Err(table_error(&path, line, 0, expected, text));
                }
            }
            Ok(())
        })?;
        if let Some(count) = count {
            same_count(&path, "number of names", count, names.len())?;
        }
        names.sort_unstable();
        let mut texts = Interner::default();
        for (i, (number, line, name)) in names.iter().enumerate() {
            if *number as usize != i {
                let expected = format!("numbers 0..{}, each once", names.len());
                return Err(table_error(&path, *line, 0, expected, &number.to_string()));
            }
            if texts.number(name) as usize != i {
                return Err(table_error(&path, *line, 0, "a name that occurs once", name));
            }
        }
        Ok(Self { path, texts })
    }

    fn into_strings(self) -> Vec<String> {
        self.texts.into_texts().iter().map(str::to_owned).collect()
    }
}

/// Numbers of names, from a file or in order of first occurrence.
struct Numbering {
    names: Interner,
    /// The file with all names.
    listed_in: Option<PathBuf>,
}

impl Numbering {
    fn new(names: Option<Names>) -> Self {
        match names {
            Some(Names { path, texts }) => Self { names: texts, listed_in: Some(path) },
            None => Self { names: Interner::default(), listed_in: None },
        }
    }
    /// Number of a name. `Err`: the expected content.
    fn number(&mut self, name: &str) -> Result<u32, String> {
        match &self.listed_in {
            None => Ok(self.names.number(name)),
            Some(path) => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                self.names.get(name).ok_or_else(|| format!("a name in `{file}`"))
            }
        }
    }
}

fn parse_u64(text: &str) -> Option<u64> {
    parse_i64(text.as_bytes()).and_then(|n| u64::try_from(n).ok())
}

/// Calls `read` with the number and the text of each non-blank line.
fn each_line(
    path: &Path,
    read: impl FnMut(u64, &str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    lines_of(path, read).map_err(|e| explained(e, path, "triples, or a list of names", &[]))
}

fn lines_of(
    path: &Path,
    mut read: impl FnMut(u64, &str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut number = 0;
    for block in Blocks::whole(path, true)? {
        for line in lines(&block?) {
            number += 1;
            let text = std::str::from_utf8(line)
                .map_err(|_| table_error(path, number, 0, "UTF-8 text", line))?;
            if !text.trim().is_empty() {
                read(number, text)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_knowledge_graph;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).unwrap());
        dir
    }

    fn triples(part: &[Triple]) -> Vec<[u32; 3]> {
        part.iter().map(|t| [t.head, t.relation, t.tail]).collect()
    }

    /// As FB15k-237, WN18RR, CoDEx and UMLS are published.
    #[test]
    fn names_separated_by_tabs() {
        let train =
            "/m/027rn\t/location/form of government\t/m/06cx9\n/m/06cx9\t_hypernym\t/m/017dcd\n";
        let dir = folder(&[
            ("train.txt", train),
            ("valid.txt", "/m/017dcd\t_hypernym\t/m/new\n"),
            ("test.txt", "\n/m/027rn\t_hypernym\t/m/06cx9\r\n"),
        ]);
        let k = load_knowledge_graph(dir.path()).unwrap();
        assert_eq!(k.entities, ["/m/027rn", "/m/06cx9", "/m/017dcd", "/m/new"]);
        assert_eq!(k.relations, ["/location/form of government", "_hypernym"]);
        assert_eq!(triples(&k.train), [[0, 0, 1], [1, 1, 2]]);
        assert_eq!((triples(&k.valid), triples(&k.test)), (vec![[2, 1, 3]], vec![[0, 1, 1]]));
        assert_eq!(k.name, dir.path().file_name().unwrap().to_str().unwrap());
        assert_eq!(k.train_graph().unwrap().relations().len(), 4);
        // WN18 as its authors publish it; spaces.
        let parts = ["train", "valid", "test"].map(|p| format!("wordnet-mlj12-{p}.txt"));
        let dir = folder(&[(&parts[0], "a r b\nb r c\n"), (&parts[1], ""), (&parts[2], "")]);
        assert_eq!(
            triples(&load_knowledge_graph(dir.path()).unwrap().train),
            [[0, 0, 1], [1, 0, 2]]
        );
    }

    #[test]
    fn lists_of_names_give_the_numbers() {
        let text = [("train.txt", "a\tr\tb\n"), ("valid.txt", "c\ts\ta\n"), ("test.txt", "")];
        let of_dict = [("entities.dict", "0\tc\n1\tb\n2\ta\n"), ("relations.dict", "0\ts\n1\tr\n")];
        let counted =
            [("entity2id.txt", "3\nb\t1\na\t2\nc\t0\n"), ("relation2id.txt", "2\nr 1\ns 0\n")];
        let of_kb2e =
            [("entity2id.txt", "b\t1\na\t2\nc\t0\n"), ("relation2id.txt", "r\t1\ns\t0\n")];
        for names in [of_dict, counted, of_kb2e] {
            let k = load_knowledge_graph(folder(&[&text[..], &names].concat()).path()).unwrap();
            assert_eq!(
                (k.entities, k.relations),
                (vec!["c".into(), "b".into(), "a".into()], vec!["s".to_owned(), "r".into()])
            );
            assert_eq!((triples(&k.train), triples(&k.valid)), (vec![[2, 1, 1]], vec![[0, 0, 2]]));
        }
    }

    /// OpenKE: counts, and the relation last.
    #[test]
    fn numbers_of_openke() {
        let files = [
            ("entity2id.txt", "3\n/m/06rf7\t0\n/m/0c94fn\t1\nNew York\t2\n"),
            ("relation2id.txt", "2\n/people/born in\t0\n/film/x\t1\n"),
            ("train2id.txt", "2\n0 2 1\n2 1 0\n"),
            ("valid2id.txt", "1\n1\t0\t1\n"),
            ("test2id.txt", "0\n"),
        ];
        let k = load_knowledge_graph(folder(&files).path()).unwrap();
        assert_eq!(k.entities, ["/m/06rf7", "/m/0c94fn", "New York"]);
        assert_eq!(k.relations, ["/people/born in", "/film/x"]);
        assert_eq!(
            (triples(&k.train), triples(&k.valid)),
            (vec![[0, 1, 2], [2, 0, 1]], vec![[1, 1, 0]])
        );
        assert!(k.test.is_empty());
        let refused = |file: &str, text: &str, part: &str| {
            let dir = folder(&files);
            std::fs::write(dir.path().join(file), text).unwrap();
            let e = load_knowledge_graph(dir.path()).unwrap_err().to_string();
            assert!(e.contains(part), "expected {part:?} in {e}");
        };
        refused("train2id.txt", "2\n0 1 1\n", "train2id.txt: number of triples: expected 2");
        refused("train2id.txt", "0 1 1\n", ":1: expected the number of triples alone");
        refused("train2id.txt", "", "expected the number of triples, found the end");
        refused("train2id.txt", "1\n0 1 2\n", ":2:3: expected the number of a relation in 0..2");
        refused("train2id.txt", "1\n3 1 0\n", ":2:1: expected the number of an entity in 0..3");
        refused("entity2id.txt", "2\na\t0\nb\t0\n", "expected numbers 0..2, each once");
        refused("entity2id.txt", "2\na\t0\na\t1\n", "expected a name that occurs once");
        refused("entity2id.txt", "3\na\t0\nb\t1\n", "number of names: expected 3");
        refused("entity2id.txt", "a\tb\n", ":1: expected a name and its number");
        let dir = folder(&files[1..]);
        let e = load_knowledge_graph(dir.path()).unwrap_err();
        assert!(
            matches!(e, DataError::Io { .. }) && e.to_string().contains("entity2id.txt"),
            "{e}"
        );
    }

    #[test]
    fn refusals() {
        let refused = |train: &str, part: &str| {
            let dir = folder(&[("train.txt", train), ("valid.txt", ""), ("test.txt", "")]);
            let e = load_knowledge_graph(dir.path()).unwrap_err().to_string();
            assert!(e.contains(part), "expected {part:?} in {e}");
        };
        let three = "train.txt:1: expected head, relation and tail, separated by tabs";
        refused("a\tb\n", three);
        refused("a\tr\tb\t2014-01-01\n", three);
        refused("a\tr\tb\t2014-01-01\n", "read tables with timestamps with a `Builder`");
        refused("a\t\tb\n", ":1:2: expected a non-empty name");
        refused("a\tr\tb\na r b\n", "train.txt:2: expected head");
        refused("<u:a> <u:r> <u:b> .\n", "found N-Triples; read it with `read_rdf`");
        // KB2E: tails before relations.
        refused("a\tb\tr\nb\tc\tr\n", "swap these columns");
        let listed = [
            ("train.txt", "a\tb\tr\nb\tc\tr\n"),
            ("valid.txt", ""),
            ("test.txt", ""),
            ("relations.dict", "0\tb\n1\tc\n"),
        ];
        assert_eq!(load_knowledge_graph(folder(&listed).path()).unwrap().relations, ["b", "c"]);
        let dir = folder(&[("train.txt", "a\tr\tb\n"), ("valid.txt", "")]);
        assert!(matches!(load_knowledge_graph(dir.path()), Err(DataError::Io { .. })));
        let e = load_knowledge_graph(folder(&[("x", "")]).path()).unwrap_err().to_string();
        assert!(
            e.contains("expected a knowledge graph with `train.txt`, `train2id.txt` or"),
            "{e}"
        );
        let dir = folder(&[
            ("train.txt", "a\tr\tb\n"),
            ("valid.txt", ""),
            ("test.txt", ""),
            ("entity2id.txt", "a\t0\n"),
        ]);
        let e = load_knowledge_graph(dir.path()).unwrap_err().to_string();
        assert!(e.contains("train.txt:1:3: expected a name in `entity2id.txt`, got \"b\""), "{e}");
    }
}
