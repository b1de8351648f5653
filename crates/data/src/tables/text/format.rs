//! Recognises the formats of graph files by how they begin, for every reader of text.
//!
//! A file of another format must not be read as if it were one's own: the size line of a Matrix Market file has the form
//! of an edge. [`reject_others`] looks at the first bytes before anything is parsed. METIS's graphs and graph6 have no
//! header; [`is_metis`] and [`is_graph6`] compare a whole file with its own first numbers.

use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;

use super::blocks::{Blocks, lines};
use super::decompress::text_of;
use super::parse_number::parse_i64;
use crate::files::{LIMIT, format_error, text_error};

/// Bytes at the start of a file in which a format is recognised; scripts write a page of comments at most.
const HEAD: u64 = 1 << 16;

/// A format that a file shows by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    MatrixMarket,
    Graphml,
    Gexf,
    RdfXml,
    Html,
    Xml,
    Gml,
    Pajek,
    Dot,
    Dimacs,
    Graph6,
    /// A JSON object of nodes and edges.
    NodeLink,
    Json,
    Turtle,
    NTriples,
    Npy,
    Zip,
    Tar,
    Parquet,
    Hdf5,
    Pickle,
}

impl Format {
    /// The format that `start` begins, if it shows one.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let magic: [(&[u8], Self); 9] = [
            (b"\x93NUMPY", Self::Npy),
            (b"PK\x03\x04", Self::Zip),
            (b"PAR1", Self::Parquet),
            (b"\x89HDF", Self::Hdf5),
            (b"\x80\x02", Self::Pickle),
            (b"\x80\x03", Self::Pickle),
            (b"\x80\x04", Self::Pickle),
            (b"\x80\x05", Self::Pickle),
            (b">>", Self::Graph6),
        ];
        if let Some((_, format)) = magic.iter().find(|(bytes, _)| start.starts_with(bytes)) {
            let named = start.get(2..).is_some_and(|rest| {
                [&b"graph6<<"[..], b"sparse6<<", b"digraph6<<"].iter().any(|n| rest.starts_with(n))
            });
            return (*format != Self::Graph6 || named).then_some(*format);
        }
        if start.get(257..262) == Some(b"ustar") {
            return Some(Self::Tar);
        }
        let text = String::from_utf8_lossy(start);
        let text = text.trim_start();
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("%%matrixmarket") {
            return Some(Self::MatrixMarket);
        }
        if text.starts_with('<') {
            return of_markup(text);
        }
        if text.starts_with('{') || text.starts_with('[') {
            return of_json(text);
        }
        of_lines(&lower)
    }

    /// Its name, and what to do with a file of it.
    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::MatrixMarket => ("a Matrix Market file", "read it with `load_matrix_market`"),
            Self::Graphml => ("GraphML", "read it with `load_graphml` (feature `graphml`)"),
            Self::Gexf => ("GEXF", "not supported; save it as GraphML for `load_graphml`"),
            Self::RdfXml => {
                ("RDF/XML", "not supported; convert it to Turtle or N-Triples for `read_rdf`")
            }
            Self::Html => ("an HTML page", "download the file itself"),
            Self::Xml => ("XML of an unknown kind", "not supported"),
            Self::Gml => ("GML", "not supported; save it as GraphML for `load_graphml`"),
            Self::Pajek => (
                "a Pajek file",
                "not supported; save it as GraphML for `load_graphml` or as a list of edges",
            ),
            Self::Dot => (
                "a DOT file of Graphviz",
                "not supported; save it as GraphML for `load_graphml` or as a list of edges",
            ),
            Self::Dimacs => {
                ("a DIMACS file", "not supported; save it as a list of edges for `load_edge_list`")
            }
            Self::Graph6 => (
                "a graph6 or sparse6 file",
                "not supported; save it as a list of edges for `load_edge_list`",
            ),
            Self::NodeLink => ("node-link JSON", "read it with `load_node_link`"),
            Self::Json => (
                "JSON",
                "`load_node_link` reads node-link JSON, `load_dataset` a folder with `metadata.json`",
            ),
            Self::Turtle => ("Turtle", "read it with `read_rdf` (feature `rdf`)"),
            Self::NTriples => ("N-Triples", "read it with `read_rdf` (feature `rdf`)"),
            Self::Npy => ("a `.npy` array", "read it with `read_npy`"),
            Self::Zip => (
                "a zip archive",
                "`Npz` reads `.npz` (feature `npz`), `read_torch` `.pt` (feature `torch`); unpack others",
            ),
            Self::Tar => ("a tar archive", "unpack it"),
            Self::Parquet => {
                ("a Parquet file", "read it as a table, with `Decoder::csv` (feature `parquet`)")
            }
            Self::Hdf5 => ("an HDF5 file", "not supported; save its arrays as `.npy`"),
            Self::Pickle => ("a Python pickle", "not supported; save its arrays as `.npy`"),
        }
    }
}

/// XML and N-Triples, which both begin with `<`.
fn of_markup(text: &str) -> Option<Format> {
    let first = text.lines().next().unwrap_or_default().trim_end();
    let iri = first.split('>').next().is_some_and(|name| name.contains(':') && !name.contains(' '));
    if iri && first.ends_with('.') && first.contains("> <") {
        return Some(Format::NTriples);
    }
    // The name of the root element, which follows declarations and comments.
    let (mut rest, mut markup) = (text, false);
    loop {
        rest = rest.trim_start();
        let after = if rest.starts_with("<?") {
            rest.split_once("?>")
        } else if rest.starts_with("<!--") {
            rest.split_once("-->")
        } else if rest.get(..9).is_some_and(|d| d.eq_ignore_ascii_case("<!doctype")) {
            if rest.get(9..).is_some_and(|d| d.trim_start().to_lowercase().starts_with("html")) {
                return Some(Format::Html);
            }
            // Entities of RDF/XML are declared between brackets.
            let plain = rest.find('>') < rest.find('[') || !rest.contains('[');
            if plain { rest.split_once('>') } else { rest.split_once("]>") }
        } else {
            break;
        };
        let Some((_, after)) = after else { return markup.then_some(Format::Xml) };
        (rest, markup) = (after, true);
    }
    let name: String = rest
        .strip_prefix('<')?
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.'))
        .collect();
    match name.rsplit(':').next().unwrap_or_default() {
        "graphml" => Some(Format::Graphml),
        "gexf" => Some(Format::Gexf),
        "RDF" => Some(Format::RdfXml),
        "html" => Some(Format::Html),
        _ => markup.then_some(Format::Xml),
    }
}

fn of_json(text: &str) -> Option<Format> {
    let object = text.strip_prefix('{').is_some_and(|t| t.trim_start().starts_with('"'));
    let list = text.strip_prefix('[').is_some_and(|t| t.trim_start().starts_with(['{', '[']));
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    match (object && text.contains("\":"), list) {
        (true, _) if has("nodes") && (has("directed") || has("links") || has("edges")) => {
            Some(Format::NodeLink)
        }
        (true, _) | (_, true) => Some(Format::Json),
        _ => None,
    }
}

/// Formats of which a line shows what they are; `text` is in lower case.
fn of_lines(text: &str) -> Option<Format> {
    let comment = |line: &&str| {
        !line.is_empty() && !["#", "%", "//"].iter().any(|mark| line.starts_with(mark))
    };
    let mut significant = text.lines().map(str::trim).filter(comment);
    let first = significant.next()?;
    if first.starts_with("@prefix ") || first.starts_with("@base ") {
        return Some(Format::Turtle);
    }
    let sparql = first.strip_prefix("prefix ").or(first.strip_prefix("base "));
    if sparql.is_some_and(|t| t.ends_with('>') && t.contains('<')) {
        return Some(Format::Turtle);
    }
    if let Some(section) = first.strip_prefix('*') {
        let word = section.split_ascii_whitespace().next().unwrap_or_default();
        let known = ["vertices", "network", "arcs", "edges", "arcslist", "edgeslist", "matrix"];
        return known.contains(&word).then_some(Format::Pajek);
    }
    let of_gml = |line: &str| {
        line.strip_prefix("graph").is_some_and(|t| t.trim_start().starts_with('['))
            || line == "graph" && text.contains('[')
    };
    let preamble = ["creator ", "version ", "directed ", "comment ", "label "];
    if of_gml(first)
        || preamble.iter().any(|word| first.starts_with(word)) && significant.any(of_gml)
    {
        return Some(Format::Gml);
    }
    let graph = first.strip_prefix("strict").map_or(first, str::trim_start);
    if let Some(name) = graph.strip_prefix("digraph").or(graph.strip_prefix("graph")) {
        let separate = name.is_empty() || name.starts_with([' ', '\t', '{', '"']);
        if separate && (name.contains('{') || text.lines().any(|l| l.trim() == "{")) {
            return Some(Format::Dot);
        }
    }
    // `p edge <nodes> <edges>`, after comments that begin with `c`.
    let problem = text
        .lines()
        .map(str::trim)
        .find(|line| !(line.is_empty() || *line == "c" || line.starts_with("c ")))?;
    let words: Vec<&str> = problem.split_ascii_whitespace().take(5).collect();
    let dimacs = matches!(words[..], ["p", kind, n, m]
        if kind.parse::<f64>().is_err() && n.parse::<u64>().is_ok() && m.parse::<u64>().is_ok());
    dimacs.then_some(Format::Dimacs)
}

/// Rejects a file that is recognised as another format than `own`, which a reader of `what` reads. The first `skip` lines
/// are passed over.
///
/// # Errors
/// Those of opening the file; [`DataError::Format`] with the name of the format and the function that reads it.
pub(crate) fn reject_others(
    path: &Path,
    what: &str,
    own: &[Format],
    skip: u64,
) -> Result<(), DataError> {
    let mut start = vec![];
    let mut reader = text_of(path, false)?.take(HEAD);
    reader.read_to_end(&mut start).map_err(|e| text_error(path, e))?;
    let mut rest = &start[..];
    for _ in 0..skip {
        let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(()) };
        rest = &rest[end + 1..];
    }
    match Format::of(rest) {
        Some(other) if !own.contains(&other) => {
            let (name, remedy) = other.described();
            Err(format_error(path, format!("expected {what}, found {name}; {remedy}")))
        }
        _ => Ok(()),
    }
}

/// An error of a reader of `what`, or, where the file is recognised as another format than `own`, what it is.
pub(crate) fn explained(e: DataError, path: &Path, what: &str, own: &[Format]) -> DataError {
    if matches!(e, DataError::Io { .. } | DataError::Feature { .. }) {
        return e;
    }
    reject_others(path, what, own, 0).err().unwrap_or(e)
}

/// Whether a file of numbers is a graph in the format of METIS: a line `nodes edges [format [constraints]]`, then a line
/// of neighbours for each node, from 1, such that every edge stands at both of its nodes. Lists of edges practically
/// never have this form: their first line would have to count the lines after it.
///
/// # Cost
/// One pass over the file up to the first line that METIS does not write; 8 bytes per neighbour.
pub(crate) fn is_metis(path: &Path) -> Result<bool, DataError> {
    /// Nodes, edges, numbers before the neighbours, numbers per neighbour.
    struct Head {
        nodes: i64,
        edges: i64,
        before: usize,
        step: usize,
    }
    let head = |n: &[i64]| {
        let (&[nodes, edges, ref more @ ..], true) = (n, n.len() <= 4) else { return None };
        let format = more.first().copied().unwrap_or(0);
        let digits = [format / 100, format / 10 % 10, format % 10];
        let constraints = more.get(1).copied().unwrap_or(1);
        let fits = nodes >= 1
            && nodes <= LIMIT as i64
            && edges >= 1
            && digits.iter().all(|d| (0..=1).contains(d))
            && (1..=16).contains(&constraints);
        let before = digits[0] + digits[1] * constraints;
        fits.then_some(Head { nodes, edges, before: before as usize, step: 1 + digits[2] as usize })
    };
    let (mut known, mut node): (Option<Head>, i64) = (None, 0);
    let (mut pairs, mut numbers): (Vec<(u32, u32)>, Vec<i64>) = (vec![], vec![]);
    for block in Blocks::whole(path, false)? {
        for line in lines(&block?) {
            if line.starts_with(b"%") || line.starts_with(b"#") {
                continue;
            }
            numbers.clear();
            for field in line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()) {
                let Some(number) = parse_i64(field) else { return Ok(false) };
                numbers.push(number);
            }
            let Some(h) = &known else {
                known = head(&numbers);
                if known.is_none() {
                    return Ok(false);
                }
                continue;
            };
            if node == h.nodes {
                if numbers.is_empty() {
                    continue;
                }
                return Ok(false);
            }
            node += 1;
            let Some(neighbours) = numbers.get(h.before..) else { return Ok(false) };
            if neighbours.len() % h.step != 0 {
                return Ok(false);
            }
            for &other in neighbours.iter().step_by(h.step) {
                if !(1..=h.nodes).contains(&other) || pairs.len() as i64 == 2 * h.edges {
                    return Ok(false);
                }
                pairs.push((node as u32, other as u32));
            }
        }
    }
    let Some(h) = known else { return Ok(false) };
    if node != h.nodes || pairs.len() as i64 != h.edges.saturating_mul(2) {
        return Ok(false);
    }
    // A line names each neighbour once; sorted, the reverses of all pairs are the pairs.
    pairs.sort_unstable();
    let repeated = pairs.windows(2).any(|w| w[0] == w[1]);
    let mirrored = |&(a, b): &(u32, u32)| a != b && pairs.binary_search(&(b, a)).is_ok();
    Ok(!repeated && pairs.iter().all(mirrored))
}

/// Whether a line is a graph of at most 62 nodes in graph6 or digraph6, or begins as sparse6 does.
pub(crate) fn is_graph6(line: &[u8]) -> bool {
    let directed = line.strip_prefix(b"&");
    let sparse = line.strip_prefix(b":");
    let body = directed.or(sparse).unwrap_or(line);
    let Some((&first, rest)) = body.split_first() else { return false };
    if !body.iter().all(|b| (63..=126).contains(b)) || first == 126 {
        return false;
    }
    let n = usize::from(first - 63);
    let bits = if directed.is_some() { n * n } else { n * n.saturating_sub(1) / 2 };
    sparse.is_some() || rest.len() == bits.div_ceil(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as the programs named write them, and what they are.
    #[test]
    fn formats_by_their_first_lines() {
        let graphml = "<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">";
        for (text, format) in [
            ("%%MatrixMarket matrix coordinate real general\n", Some(Format::MatrixMarket)),
            ("%%matrixmarket matrix array real general\n", Some(Format::MatrixMarket)),
            (graphml, Some(Format::Graphml)),
            ("<!-- igraph -->\n<graphml>\n", Some(Format::Graphml)),
            ("<?xml version=\"1.0\"?>\n<gexf version=\"1.2\">", Some(Format::Gexf)),
            (
                "<?xml version=\"1.0\"?>\n<!DOCTYPE rdf:RDF [\n<!ENTITY owl \"http://x#\" >\n]>\n<rdf:RDF xmlns=\"u:\">",
                Some(Format::RdfXml),
            ),
            ("<rdf:RDF\n  xmlns:rdf=\"u:\">", Some(Format::RdfXml)),
            ("<!DOCTYPE html>\n<html>", Some(Format::Html)),
            ("<?xml version=\"1.0\"?><svg>", Some(Format::Xml)),
            ("graph [\n  node [\n    id 0\n", Some(Format::Gml)),
            (
                "Creator \"igraph version 0.10\"\nVersion 1\ngraph\n[\n  directed 1\n",
                Some(Format::Gml),
            ),
            ("# made by hand\nGraph\n[\n", Some(Format::Gml)),
            ("*Vertices 4\n1 \"a\"\n", Some(Format::Pajek)),
            ("% comment\n*network karate\n*vertices 34\n", Some(Format::Pajek)),
            ("strict digraph \"\" {\n\ta -> b;\n}\n", Some(Format::Dot)),
            ("graph G\n{\n  a -- b\n}\n", Some(Format::Dot)),
            ("// dot\ngraph{a--b}", Some(Format::Dot)),
            ("c a comment\np edge 5 4\ne 1 2\n", Some(Format::Dimacs)),
            ("p col 5 4\n", Some(Format::Dimacs)),
            (">>graph6<<DQc\n", Some(Format::Graph6)),
            (">>sparse6<<:Fa@x^\n", Some(Format::Graph6)),
            (
                "{\"directed\": false, \"multigraph\": false, \"graph\": {}, \"nodes\": [",
                Some(Format::NodeLink),
            ),
            ("{\n  \"nodes\": [], \"links\": []}", Some(Format::NodeLink)),
            ("{\"layout\": \"nodes\"}", Some(Format::Json)),
            ("[[0, 1], [1, 2]]", Some(Format::Json)),
            ("@prefix x: <http://x/#> .\n", Some(Format::Turtle)),
            ("# ontology\n@base <http://x/> .\n", Some(Format::Turtle)),
            ("PREFIX x: <http://x/#>\n", Some(Format::Turtle)),
            ("<http://x/a> <http://x/r> <http://x/b> .\n", Some(Format::NTriples)),
            ("\u{93}", None),
            // Lists of edges and tables.
            ("", None),
            ("0 1\n1 2\n", None),
            ("# a comment\n% another\n7 1000\n", None),
            ("a b\nb c\n", None),
            ("graph theory\ngraph paper\n", None),
            ("version 2\n", None),
            ("p q r s\n", None),
            ("<a> <b>\n", None),
            ("*star wars\n", None),
            ("{ }\n", None),
            (">> 1\n", None),
            ("id:int64\tlabel:int32\n", None),
            ("prefix suffix\n", None),
        ] {
            assert_eq!(Format::of(text.as_bytes()), format, "{text}");
        }
        assert_eq!(Format::of(b"\x93NUMPY\x01\x00"), Some(Format::Npy));
        assert_eq!(Format::of(b"PK\x03\x04"), Some(Format::Zip));
        // Of SuiteSparse, after gzip is off.
        let tar = [b"karate/karate.mtx".as_slice(), &[0; 240], b"ustar\x0000"].concat();
        assert_eq!(Format::of(&tar), Some(Format::Tar));
    }

    fn metis(text: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g");
        std::fs::write(&path, text).unwrap();
        is_metis(&path).unwrap()
    }

    #[test]
    fn metis_is_recognised_by_its_own_counts() {
        // The manual's example, with and without weights.
        let manual = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
        assert!(metis(manual));
        assert!(metis("% a comment\n2 1 11\n5 2 7\n5 1 7\n"));
        assert!(metis("2 1 011 1\n5 2 7\n5 1 7\n\n"));
        assert!(metis("4 3\n2 3\n1 3\n1 2\n\n"), "the last node has no neighbours");
        assert!(metis("4 4\n2 4\n1 3\n2 4\n1 3\n"), "a cycle has the form of a list of edges");
        for list in [
            "",
            "4 3\n",
            "4 4\n2 4\n1 3\n2 4\n1 2\n",
            "4 4\n2 4\n1 3\n2 4\n",
            "4 4\n2 4\n1 3\n2 4\n1 3\n1 2\n",
            "0 1\n1 2\n",
            "1 1\n1 1\n",
            "3 3\n2 5\n1 3\n1 2\n",
            "a b\n",
            "2 1 7\n2\n1\n",
        ] {
            assert!(!metis(list), "{list}");
        }
    }

    #[test]
    fn graph6_is_recognised_by_its_length() {
        for line in ["DQc", "A_", ":Fa@x^", "?", "&BP_"] {
            assert!(is_graph6(line.as_bytes()), "{line}");
        }
        for line in ["", "7", "DQ", "a,b", "DQcc"] {
            assert!(!is_graph6(line.as_bytes()), "{line}");
        }
    }
}
