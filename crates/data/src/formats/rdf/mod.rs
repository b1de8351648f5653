//! Reads RDF (N-Triples and Turtle) as graphs.

mod nesting;
mod options;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Ids, NodeIds};
use hashbrown::HashMap;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use oxttl::{NTriplesParser, TurtleParseError, TurtleParser};

use crate::columns::interner::Interner;
use crate::files::decompression_limit::expansion_limit;
use crate::files::{
    CountingReader, Expected, cut, format_error, setting, table_error, text_error, within_limit,
};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::{Format, explained};
use crate::tables::text::source::Source;
use nesting::Nesting;
pub use options::{RdfOptions, RdfSyntax};

/// A graph that was read from RDF.
#[derive(Clone, Debug)]
pub struct RdfGraph {
    /// Node type [`RDF_NODE`] with the terms as `ids`; an edge type per predicate, an edge per triple.
    pub graph: Graph,
    /// The predicate (IRI) of each relation.
    pub predicates: BTreeMap<String, String>,
    /// Triples of removed predicates as terms, in the order of the files.
    pub removed: Vec<[String; 3]>,
}

/// Node type of a graph that was read from RDF.
pub const RDF_NODE: &str = "entity";

/// Reads RDF files as one graph, as R-GCN reads its data sets. Each subject and object, literals included, is a node, and
/// each predicate is a relation. The graph is a set of triples: a triple that occurs twice is one edge.
///
/// Nodes are numbered in the order of their first occurrence, subject before object. `ids` of the node frame contains their
/// terms: IRIs, literals in N-Triples notation (`"1"^^<http://…#integer>`), and blank nodes as `_:b<n>`, numbered in the
/// order of the files, since their labels are local to a file. The name of a relation is the part of its predicate after the
/// last `#`, `/` or `:`, with `-` for characters that names may not contain. If several predicates have the same name, the
/// later ones in the order of their IRIs get the suffixes `-2`, `-3`, …; [`RdfGraph::predicates`] maps names to IRIs. Edges of
/// a relation are sorted by source and destination. For R-GCN, add [`Graph::with_inverse_relations`].
///
/// ```
/// use burn_gnn_data::{RdfOptions, read_rdf};
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("staff.ttl");
///     let text = "@prefix x: <http://x.org/#> . x:ann x:worksWith x:bo ; x:memberOf x:group1 . x:bo x:memberOf x:group2 .";
///     std::fs::write(&path, text).unwrap();
///     let staff = read_rdf(&path, &RdfOptions::new().without("http://x.org/#memberOf"))?;
///     let g = staff.graph.with_inverse_relations("-inv")?;
///     assert_eq!((g.num_nodes("entity")?, g.relation("worksWith")?.dst(), g.relation("worksWith-inv")?.dst()), (2, &[1][..], &[0][..]));
///     assert_eq!(g.nodes("entity")?.ids().unwrap().number("http://x.org/#bo"), Some(1));
///     assert_eq!(staff.removed[1], ["http://x.org/#bo", "http://x.org/#memberOf", "http://x.org/#group2"]); // the labels
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Table`] with file, line and column for a syntax error, a relative IRI without a base
/// ([`RdfOptions::with_base`]) among them; [`DataError::Format`] for such an IRI in lenient mode, a file whose name implies
/// no syntax or that is another format (RDF/XML), Turtle with more than 256 nested brackets, or more than 16384 predicates
/// and one for each 64 bytes of the files, since each becomes a relation;
/// [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge).
///
/// # Cost
/// One thread per call; time `O(triples)` except for sorting; memory for the distinct terms and 12 bytes per triple.
pub fn read_rdf(source: impl Into<Source>, options: &RdfOptions) -> Result<RdfGraph, DataError> {
    let mut reader = Reader {
        options,
        terms: Interner::default(),
        num_blanks: 0,
        blanks: HashMap::new(),
        unnamed: HashMap::new(),
        predicates: HashMap::new(),
        read: Rc::default(),
        spelled: 0,
        aside: 0,
        removed: vec![],
        absolute: false,
    };
    let source = source.into();
    for path in source.files()? {
        let own = [Format::Turtle, Format::NTriples];
        reader.file(&path).map_err(|e| explained(e, &path, "Turtle or N-Triples", &own))?;
    }
    reader.finish().map_err(|e| e.in_file(source.label()))
}

/// Predicates that any file may have, and bytes of the files for each further predicate, since a relation takes a kilobyte.
const PREDICATES_FREE: u64 = 1 << 14;
const BYTES_PER_PREDICATE: u64 = 64;
/// Most bytes of the terms of all triples, and of the distinct terms, for each byte of the files: a long prefix occurs once
/// in a file and in each term.
const SPELLED_PER_BYTE: u32 = 256;
const KEPT_PER_BYTE: u32 = 32;

struct Reader<'a> {
    options: &'a RdfOptions,
    terms: Interner,
    /// Blank nodes so far.
    num_blanks: u32,
    /// Labels of blank nodes of the file that is read.
    blanks: HashMap<String, u32>,
    /// Blank nodes without a label, by the number of the parser.
    unnamed: HashMap<u128, u32>,
    /// Bytes of text that were read.
    read: Rc<Cell<u64>>,
    /// Bytes of the terms of all triples, with prefixes and abbreviations expanded.
    spelled: u64,
    /// Bytes of predicates and removed triples, which are stored in addition to the terms.
    aside: u64,
    predicates: HashMap<String, Vec<(u32, u32)>>,
    removed: Vec<[String; 3]>,
    /// Whether IRIs must be absolute after bases are applied, as in Turtle.
    absolute: bool,
}

/// Message of the parser about a relative IRI without a base.
const NO_SCHEME: &str = "No scheme found";
/// Remedy for a relative IRI.
const WITH_BASE: &str = "`RdfOptions::with_base` gives relative IRIs the base that the file lacks";

/// Whether an IRI has no scheme. Blank nodes (`_:b0`) are not IRIs.
fn is_relative(iri: &str) -> bool {
    let scheme = iri.split_once(':').map_or("", |(scheme, _)| scheme);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme != "_"
        && !(scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(plain))
}

impl Reader<'_> {
    fn file(&mut self, path: &Path) -> Result<(), DataError> {
        let syntax = match self.options.syntax {
            Some(syntax) => syntax,
            None => by_name(path)?,
        };
        let read = self.read.clone();
        let count = move |bytes| read.set(read.get() + bytes);
        let input = CountingReader { inner: text_of(path, self.options.progress)?, count };
        self.blanks.clear();
        self.unnamed.clear();
        self.absolute = false;
        let lenient = self.options.lenient;
        match syntax {
            RdfSyntax::NTriples => {
                let parser =
                    if lenient { NTriplesParser::new().lenient() } else { NTriplesParser::new() };
                parser.for_reader(input).try_for_each(|triple| self.triple(path, triple))
            }
            RdfSyntax::Turtle => {
                let mut parser =
                    if lenient { TurtleParser::new().lenient() } else { TurtleParser::new() };
                if let Some(base) = &self.options.base {
                    let wrong = |_| setting("base", "an absolute IRI", &cut(base));
                    parser = parser.with_base_iri(base.as_str()).map_err(wrong)?;
                }
                self.absolute = true;
                parser
                    .for_reader(Nesting::new(input))
                    .try_for_each(|triple| self.triple(path, triple))
            }
        }
    }

    fn triple(
        &mut self,
        path: &Path,
        triple: Result<Triple, TurtleParseError>,
    ) -> Result<(), DataError> {
        let Triple { subject, predicate, object } = triple.map_err(|e| match e {
            TurtleParseError::Syntax(e) => {
                let at = e.location().start;
                let expected = if e.message().contains(NO_SCHEME) && self.absolute {
                    Expected::from("an absolute IRI, or a base to resolve it against").or(WITH_BASE)
                } else {
                    "RDF".into()
                };
                table_error(path, at.line + 1, at.column as usize + 1, expected, e.message())
            }
            TurtleParseError::Io(e) => text_error(path, e),
        })?;
        let subject = match subject {
            NamedOrBlankNode::NamedNode(n) => n.into_string(),
            NamedOrBlankNode::BlankNode(b) => self.blank(b),
        };
        let object_is_iri = matches!(object, Term::NamedNode(_));
        let object = match object {
            Term::NamedNode(n) => n.into_string(),
            Term::BlankNode(b) => self.blank(b),
            literal => literal.to_string(),
        };
        let predicate = predicate.into_string();
        // The lenient parser accepts relative IRIs, which are ambiguous in a graph.
        let iris = [Some(&subject), Some(&predicate), object_is_iri.then_some(&object)];
        let relative = iris.into_iter().flatten().find(|iri| self.absolute && is_relative(iri));
        if let Some(iri) = relative.map(|iri| cut(iri)) {
            let why = format!("expected absolute IRIs, or a base, found `{iri}`; {WITH_BASE}");
            return Err(format_error(path, why));
        }
        self.spelled += (subject.len() + predicate.len() + object.len()) as u64;
        let (read, kept) =
            (self.read.get(), self.terms.texts().parts().0.len() as u64 + self.aside);
        for (bytes, most) in [(self.spelled, SPELLED_PER_BYTE), (kept, KEPT_PER_BYTE)] {
            if bytes > expansion_limit(read, most) {
                let why = format!(
                    "expected terms of at most {most} bytes for each of the {read} read, found {bytes}; shorten the prefixes"
                );
                return Err(format_error(path, why));
            }
        }
        if self.options.removed.contains(&predicate) {
            self.aside += (subject.len() + predicate.len() + object.len()) as u64;
            self.removed.push([subject, predicate, object]);
            return Ok(());
        }
        let endpoints = (self.terms.number(&subject), self.terms.number(&object));
        within_limit(path.display(), "nodes", self.terms.texts().len() as u64)?;
        if !self.predicates.contains_key(&predicate) {
            self.aside += predicate.len() as u64;
        }
        self.predicates.entry(predicate).or_default().push(endpoints);
        let most = PREDICATES_FREE + read / BYTES_PER_PREDICATE;
        if self.predicates.len() as u64 > most {
            let why = format!(
                "expected at most {most} predicates in {read} bytes, found more; each is a relation of its own"
            );
            return Err(format_error(path, why));
        }
        Ok(())
    }

    /// Numbers continue over files, since blank nodes are local to a file.
    fn blank(&mut self, node: BlankNode) -> String {
        let next = self.num_blanks;
        let number = match node.as_ref().unique_id() {
            Some(id) => *self.unnamed.entry(id).or_insert(next),
            None => *self.blanks.entry(node.into_string()).or_insert(next),
        };
        if number == next {
            self.num_blanks += 1;
        }
        format!("_:b{number}")
    }

    fn finish(self) -> Result<RdfGraph, DataError> {
        let sorted: BTreeMap<String, Vec<(u32, u32)>> = self.predicates.into_iter().collect();
        let mut graph = Graph::builder().nodes(RDF_NODE, self.terms.texts().len());
        let mut predicates: BTreeMap<String, String> = BTreeMap::new();
        // The next free suffix of each name. All suffixes below are in use, so none is tested twice.
        let mut next: HashMap<String, usize> = HashMap::new();
        for (iri, mut edges) in sorted {
            edges.sort_unstable();
            edges.dedup();
            let local = relation_name(&iri);
            let number = next.entry(local.clone()).or_insert(1);
            let name = loop {
                let name = if *number == 1 { local.clone() } else { format!("{local}-{number}") };
                *number += 1;
                if !predicates.contains_key(&name) {
                    break name;
                }
            };
            let (src, dst) = edges.into_iter().unzip();
            graph = graph.edges(EdgeType::new(RDF_NODE, &*name, RDF_NODE), src, dst);
            predicates.insert(name, iri);
        }
        let mut graph = graph.build()?;
        graph.nodes_mut(RDF_NODE)?.set_ids(NodeIds::new(Ids::Text(self.terms.into_texts())))?;
        Ok(RdfGraph { graph, predicates, removed: self.removed })
    }
}

fn by_name(path: &Path) -> Result<RdfSyntax, DataError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    if name.ends_with(".nt") {
        Ok(RdfSyntax::NTriples)
    } else if name.ends_with(".ttl") {
        Ok(RdfSyntax::Turtle)
    } else {
        Err(format_error(
            path,
            "expected a name that ends with .nt or .ttl (.gz, .zst), found another; say the syntax",
        ))
    }
}

/// The last part of an IRI as a name of a relation.
fn relation_name(iri: &str) -> String {
    let local =
        iri.trim_end_matches(['#', '/', ':']).rsplit(['#', '/', ':']).next().unwrap_or_default();
    let mut name = String::with_capacity(local.len());
    for c in local.chars() {
        let plain = !(c.is_control()
            || c == '\\'
            || c == '_' && name.ends_with('_')
            || c == '.' && name.is_empty());
        name.push(if plain { c } else { '-' });
    }
    if name.is_empty() { "relation".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, text: &str, options: &RdfOptions) -> Result<RdfGraph, DataError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), text).unwrap();
        read_rdf(dir.path().join(name), options)
    }

    fn terms(g: &RdfGraph) -> Vec<String> {
        let Ids::Text(t) = g.graph.nodes(RDF_NODE).unwrap().ids().unwrap().ids() else {
            panic!("numbers")
        };
        t.iter().map(str::to_owned).collect()
    }

    #[test]
    fn n_triples_and_turtle_give_the_same_graph() {
        let nt = "# people\n<http://x/#a> <http://x/#knows> <http://x/#b> .\n<http://x/#a> <http://x/#age> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
                  <http://x/#b> <http://x/#knows> <http://x/#a> .\n<http://x/#a> <http://x/#knows> <http://x/#b> .\n<http://x/#b> <http://x/#name> \"B\\u00e4r\"@de .\n";
        let ttl = "@prefix x: <http://x/#> .\nx:a x:knows x:b ; x:age 7 .\nx:b x:knows x:a ; x:name \"Bär\"@de .\n";
        let (a, b) = (
            read("p.nt", nt, &RdfOptions::new()).unwrap(),
            read("p.ttl", ttl, &RdfOptions::new()).unwrap(),
        );
        assert_eq!(
            terms(&a),
            [
                "http://x/#a",
                "http://x/#b",
                "\"7\"^^<http://www.w3.org/2001/XMLSchema#integer>",
                "\"Bär\"@de"
            ]
        );
        assert_eq!((terms(&a), &a.predicates), (terms(&b), &b.predicates));
        for (x, y) in a.graph.relations().iter().zip(b.graph.relations()) {
            assert_eq!((x.src(), x.dst()), (y.src(), y.dst()));
        }
        let knows = a.graph.relation("knows").unwrap();
        assert_eq!(
            (knows.src(), knows.dst()),
            (&[0, 1][..], &[1, 0][..]),
            "a triple said twice is one edge"
        );
        assert_eq!(a.predicates["age"], "http://x/#age");
    }

    #[test]
    fn removed_predicates_leave_neither_edges_nor_nodes() {
        let nt = "<u:a> <u:r> <u:b> .\n<u:a> <u:label> <u:c> .\n<u:d> <u:label> \"x\" .\n";
        let g = read("p.nt", nt, &RdfOptions::new().without("u:label")).unwrap();
        assert_eq!((terms(&g), g.graph.total_edges()), (vec!["u:a".to_owned(), "u:b".into()], 1));
        assert_eq!(g.removed, [["u:a", "u:label", "u:c"], ["u:d", "u:label", "\"x\""]]);
    }

    #[test]
    fn relative_iris_need_a_base() {
        let new = RdfOptions::new;
        let ttl = "@prefix : <#> .\n<> a :Ontology .\n:Agent :partOf <other> .\n";
        for options in [new(), new().lenient()] {
            let base = options.clone().with_base("http://x.org/ns/prov");
            let g = read("p.ttl", ttl, &base).unwrap();
            let (prov, agent) = ("http://x.org/ns/prov", "http://x.org/ns/prov#Agent");
            let ontology = "http://x.org/ns/prov#Ontology";
            assert_eq!(terms(&g), [prov, ontology, agent, "http://x.org/ns/other"]);
            assert_eq!(g.predicates["partOf"], "http://x.org/ns/prov#partOf");
            // The file's own base comes first.
            let own = format!("@base <http://y.org/> .\n{ttl}");
            for options in [&options, &base] {
                let g = read("p.ttl", &own, options).unwrap();
                assert_eq!(terms(&g)[0], "http://y.org/", "{options:?}");
                assert_eq!(terms(&g)[2], "http://y.org/#Agent");
            }
            let relative = "@base <ns/> .\n<a> a <b> .\n";
            assert_eq!(terms(&read("p.ttl", relative, &base).unwrap())[0], "http://x.org/ns/ns/a");
            for text in
                [ttl, "<a> <u:r> <u:b> .", "<u:a> <r> <u:b> .", "<u:a> <u:r> <b> .", relative]
            {
                let e = read("p.ttl", text, &options).unwrap_err().to_string();
                assert!(
                    e.contains("p.ttl") && e.contains("`RdfOptions::with_base`"),
                    "{text}: {e}"
                );
            }
        }
        let e = read("p.ttl", ttl, &new()).unwrap_err();
        assert!(matches!(e, DataError::Table { line: 1, .. }), "{e}");
        let e = read("p.ttl", ttl, &new().with_base("ns")).unwrap_err().to_string();
        assert!(e.contains("`base`: expected an absolute IRI, got ns"), "{e}");
        // Blank nodes and literals are no IRIs.
        assert!(read("p.ttl", "_:a <u:r> [ <u:s> \"x\" ] .", &new().lenient()).is_ok());
    }

    #[test]
    fn marks_and_other_formats() {
        let new = RdfOptions::new;
        let g = read("p.ttl", "\u{feff}@prefix x: <u:> .\nx:a x:r x:b .\n", &new()).unwrap();
        assert_eq!(terms(&g), ["u:a", "u:b"]);
        assert!(read("p.nt", "\u{feff}<u:a> <u:r> <u:b> .\n", &new()).is_ok());
        let xml = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"u:\">\n</rdf:RDF>\n";
        for name in ["p.owl", "p.ttl", "p.nt"] {
            let e = read(name, xml, &new()).unwrap_err().to_string();
            assert!(e.contains("found RDF/XML; not supported; convert it to Turtle"), "{e}");
        }
    }

    #[test]
    fn blank_nodes_of_different_files_differ() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.nt", "2.nt"] {
            std::fs::write(dir.path().join(name), "_:x <u:r> _:y .\n_:y <u:r> <u:a> .\n").unwrap();
        }
        let g = read_rdf(dir.path(), &RdfOptions::new()).unwrap();
        assert_eq!(terms(&g), ["_:b0", "_:b1", "u:a", "_:b2", "_:b3"]);
        assert_eq!(g.graph.relation("r").unwrap().src(), [0, 1, 3, 4]);
        // A literal is no blank node and no IRI, whatever it says.
        let g = read("p.nt", "<u:a> <u:r> \"u:a\" .\n<u:a> <u:r> \"_:b0\" .\n", &RdfOptions::new())
            .unwrap();
        assert_eq!(g.graph.node_counts(), [3]);
    }

    #[test]
    fn names_of_relations() {
        for (iri, name) in [
            ("http://x.org/a#b", "b"),
            ("http://x.org/a/b/", "b"),
            ("urn:x:isa", "isa"),
            ("http://x.org/a__b", "a_-b"),
            ("http://x.org/.hidden", "-hidden"),
            ("#", "relation"),
        ] {
            assert_eq!(relation_name(iri), name, "{iri}");
        }
        let nt = "<u:a> <http://y/#type> <u:b> .\n<u:a> <http://x/#type> <u:b> .\n<u:a> <http://x/#type-2> <u:b> .\n";
        let g = read("p.nt", nt, &RdfOptions::new()).unwrap();
        let found: Vec<(&str, &str)> =
            g.predicates.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            found,
            [
                ("type", "http://x/#type"),
                ("type-2", "http://x/#type-2"),
                ("type-3", "http://y/#type")
            ]
        );
    }

    #[test]
    fn compressed_files_and_refusals() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.nt.zst");
        std::fs::write(&path, zstd::encode_all(&b"<u:a> <u:r> <u:b> .\n"[..], 1).unwrap()).unwrap();
        assert_eq!(read_rdf(&path, &RdfOptions::new()).unwrap().graph.total_edges(), 1);
        let e =
            read("p.nt", "<u:a> <u:r> <u:b> .\n<u:a> <u:r> .\n", &RdfOptions::new()).unwrap_err();
        assert!(matches!(&e, DataError::Table { line: 2, .. }), "{e:?}");
        let e = read("p.rdf", "<rdf/>", &RdfOptions::new()).unwrap_err();
        assert!(
            matches!(&e, DataError::Format { .. })
                && e.to_string().contains("ends with .nt or .ttl"),
            "{e}"
        );
        assert_eq!(
            read("p", "", &RdfOptions::new().with_syntax(RdfSyntax::Turtle))
                .unwrap()
                .graph
                .total_edges(),
            0
        );
        let odd = "<u:a> <u:r> <http://x y/> .\n";
        assert!(read("p.nt", odd, &RdfOptions::new()).is_err());
    }

    proptest! {
        /// Any set of triples comes back as its edges, each once, with its terms.
        #[test]
        fn triples_are_edges(triples in prop::collection::vec((0u8..6, 0u8..3, 0u8..6), 0..40)) {
            let text: String = triples.iter().map(|(s, p, o)| format!("<u:n{s}> <u:p{p}> <u:n{o}> .\n")).collect();
            let g = read("p.nt", &text, &RdfOptions::new()).unwrap();
            let names = terms(&g);
            let mut found: Vec<(String, String, String)> = vec![];
            for (t, r) in g.graph.schema().etypes().iter().zip(g.graph.relations()) {
                for (&s, &d) in r.src().iter().zip(r.dst()) {
                    found.push((names[s as usize].clone(), g.predicates[&t.relation].clone(), names[d as usize].clone()));
                }
            }
            let mut expected: Vec<_> = triples.iter().map(|(s, p, o)| (format!("u:n{s}"), format!("u:p{p}"), format!("u:n{o}"))).collect();
            expected.sort();
            expected.dedup();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
