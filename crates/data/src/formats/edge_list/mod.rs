//! Reads edge lists: one edge per line.

mod lines;
mod python_dict;

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Graph, Ids, NodeIds, Texts};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::columns::data_column::NamedColumns;
use crate::columns::host_column::f32_column;
use crate::columns::narrow::RoundedCount;
use crate::files::{Expected, format_error, setting, table_error, within_limit};
use crate::tables::rows::columns::TableColumns;
use crate::tables::schema::column_names::WEIGHT;
use crate::tables::table::EdgeTable;
use crate::tables::text::blocks::{Blocks, parse_blocks};
use crate::tables::text::format::{is_metis, reject_others};
use lines::Edges;

/// What an edge list looks like: `source destination [weight | attributes]` on each line, nothing else. Lines that are empty or
/// begin with a mark of a comment are passed over.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{EdgeListFormat, load_edge_list};
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("friends.txt");
///     std::fs::write(&path, "# who knows whom\n7 1000 0.5\n1000 8 2\n").unwrap();
///     let g = load_edge_list(&path, &EdgeListFormat::new().weighted().undirected(), &Device::flex())?;
///     let r = g.relation("_E")?;
///     assert_eq!((r.src(), r.dst()), (&[0, 2, 2, 1][..], &[2, 1, 0, 2][..])); // nodes by ascending id: 7, 8, 1000
///     assert_eq!(g.nodes("_N")?.ids().unwrap().number(1000), Some(2));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EdgeListFormat {
    /// Exactly what stands between fields; `None` for any number of spaces and tabs.
    pub delimiter: Option<String>,
    /// What comments begin with; `#` and `%` by default.
    pub comments: Vec<String>,
    /// Whether there is a third field, the weight.
    pub weighted: bool,
    /// Whether a Python dictionary of attributes follows the ids, as `networkx.write_edgelist` writes it:
    /// `1 2 {'weight': 3}`. Every edge has the same attributes.
    pub attributes: bool,
    /// Whether ids are texts and not whole numbers.
    pub text_ids: bool,
    /// Whether a weight that f32 cannot represent (one that would become infinite or 0, a whole number that would become
    /// another) is the nearest f32, and not an error.
    pub round_weights: bool,
    /// Counts the weights that `round_weights` changed.
    #[serde(skip)]
    pub rounded: RoundedCount,
    /// Whether lines may have more fields, which are not read.
    pub extra_fields: bool,
    /// Whether every edge is meant in both directions: reverses follow the edges.
    pub undirected: bool,
    /// Lines before the first edge that are passed over, whatever they hold.
    pub header_lines: u64,
    /// Ids are the node numbers `0..num_nodes`, isolated nodes among them. `None`: the nodes are those that edges name,
    /// numbered by ascending id.
    pub num_nodes: Option<usize>,
    /// Whether a long file draws a progress bar (on a terminal).
    pub progress: bool,
}

impl Default for EdgeListFormat {
    fn default() -> Self {
        Self {
            delimiter: None,
            comments: vec!["#".into(), "%".into()],
            weighted: false,
            attributes: false,
            text_ids: false,
            round_weights: false,
            rounded: RoundedCount::default(),
            extra_fields: false,
            undirected: false,
            header_lines: 0,
            num_nodes: None,
            progress: true,
        }
    }
}

impl EdgeListFormat {
    /// Whole numbers between spaces or tabs.
    pub fn new() -> Self {
        Self::default()
    }
    /// As `networkx.write_edgelist` writes by default: a dictionary of attributes behind each edge. A `networkx.Graph`
    /// is [`undirected`](Self::undirected) and has each edge once.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_data::{EdgeListFormat, load_edge_list};
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let dir = tempfile::tempdir().unwrap();
    ///     let path = dir.path().join("graph.edgelist");
    ///     std::fs::write(&path, "1 2 {'weight': 3, 'color': 'red'}\n2 3 {'weight': 0.5, 'color': 'blue'}\n").unwrap();
    ///     let g = load_edge_list(&path, &EdgeListFormat::networkx(), &Device::flex())?;
    ///     assert_eq!(g.edges("_E")?.get::<1>("weight")?.dims(), [2]);
    ///     assert_eq!(g.edges("_E")?.text("color")?.get(1), "blue");
    ///     Ok(())
    /// }
    /// ```
    pub fn networkx() -> Self {
        Self { attributes: true, ..Self::default() }
    }
    /// With exactly this text between fields.
    #[must_use]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }
    /// With other marks of comments; none for no comments.
    #[must_use]
    pub fn with_comments(mut self, comments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.comments = comments.into_iter().map(Into::into).collect();
        self
    }
    /// With weights.
    #[must_use]
    pub fn weighted(mut self) -> Self {
        self.weighted = true;
        self
    }
    /// With ids that are texts.
    #[must_use]
    pub fn with_text_ids(mut self) -> Self {
        self.text_ids = true;
        self
    }
    /// With the nearest f32 for weights that f32 cannot represent.
    #[must_use]
    pub fn round_weights(mut self) -> Self {
        self.round_weights = true;
        self
    }
    /// With more fields in a line than are read, such as the times behind a rating.
    #[must_use]
    pub fn with_extra_fields(mut self) -> Self {
        self.extra_fields = true;
        self
    }
    /// With every edge in both directions.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.undirected = true;
        self
    }
    /// With lines to pass over at the start.
    #[must_use]
    pub fn with_header_lines(mut self, lines: u64) -> Self {
        self.header_lines = lines;
        self
    }
    /// With or without a progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// With node numbers as ids.
    #[must_use]
    pub fn with_num_nodes(mut self, num_nodes: usize) -> Self {
        self.num_nodes = Some(num_nodes);
        self
    }

    fn check(&self) -> Result<(), DataError> {
        let wrong =
            |arg, expected: &str, found: &str| Err(crate::files::setting(arg, expected, found));
        if self.delimiter.as_deref().is_some_and(|d| d.is_empty() || d.contains(['\n', '\r'])) {
            return wrong(
                "delimiter",
                "a text without line ends that is not empty",
                &format!("{:?}", self.delimiter),
            );
        }
        if self.comments.iter().any(String::is_empty) {
            return wrong("comments", "marks that are not empty", "an empty one");
        }
        if self.weighted && self.attributes {
            return wrong("weighted", "no third field before attributes", "weights");
        }
        if self.text_ids && self.num_nodes.is_some() {
            return wrong("num_nodes", "none for ids that are texts", "a number");
        }
        Ok(())
    }

    fn expected(&self) -> Expected {
        let between = self.delimiter.as_ref().map_or("white space".into(), |d| format!("{d:?}"));
        let fields = if self.weighted || self.attributes { 3 } else { 2 };
        let what = format!("{fields} fields separated by {between}");
        Expected {
            what,
            remedy: "`EdgeListFormat` says the delimiter, whether there are weights and whether there are more fields",
        }
    }
}

/// Reads an edge list; edge `i` is the `i`-th line that is no comment. Files may be plain, gzip or zstd; a byte order mark
/// is skipped.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Table`] with file, line and field for another number of fields, an id that is no
/// whole number (or no number of a node), a weight that is none, text that is not UTF-8; [`DataError::Format`] for a file
/// that is recognised as another format (Matrix Market, METIS, GraphML, GML, Pajek, DOT, JSON, …), with the function that
/// reads it where there is one; [`GraphError::Setting`](burn_gnn_graph::GraphError::Setting) for a format that cannot be,
/// and for attributes other than `weight`, for which an [`EdgeTable`] has no columns ([`load_edge_list`] does).
///
/// # Cost
/// Parsed in parallel; memory the columns, twice while blocks are joined. A terminal shows how far a file of 64 MiB and
/// more is.
pub fn read_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
) -> Result<EdgeTable, DataError> {
    let (mut table, attributes) = read_checked(path.as_ref(), format)?;
    if let Some(other) = attributes.columns().iter().find(|c| c.name() != WEIGHT) {
        return Err(setting(
            "attributes",
            "`weight` alone (`load_edge_list` makes a column of each attribute)",
            other.name(),
        )
        .in_file(path));
    }
    let attributes = into_floats(attributes).map_err(|e| e.in_file(&path))?;
    if let Some(weights) = attributes.columns().first() {
        let weights = weights.floats().ok_or_else(|| {
            setting("attributes", "`weight` as a number", "something else").in_file(path)
        })?;
        table.columns.weights = Some(weights);
    }
    Ok(table)
}

/// With weights as floats.
fn into_floats(attributes: NamedColumns) -> Result<NamedColumns, DataError> {
    let wrong =
        |expected: String| setting("attributes", &format!("`weight`: {expected}"), "another");
    attributes.into_floats(WEIGHT).map_err(wrong)
}

/// [`read_edge_list`] of a file that is known to be one, without attributes: another file says so.
pub(crate) fn read_declared(path: &Path, format: &EdgeListFormat) -> Result<EdgeTable, DataError> {
    format.check()?;
    read(path, format).map(|(table, _)| table)
}

/// The edges, and their attributes.
fn read_checked(
    path: &Path,
    format: &EdgeListFormat,
) -> Result<(EdgeTable, NamedColumns), DataError> {
    format.check()?;
    reject_others(path, EDGES, &[], format.header_lines).map_err(|e| e.in_file(path))?;
    let read = read(path, format).map_err(|e| e.in_file(path));
    if has_form_of_metis(&read, format) && is_metis(path)? {
        return Err(format_error(
            path,
            format!(
                "expected {EDGES}, found a graph in METIS's format (nodes and edges, then the neighbours of each node); \
                 not supported, write it as a list of edges"
            ),
        ));
    }
    read
}

/// What is expected of a file.
const EDGES: &str = "a list of edges";

/// Whether the file may be one of METIS: it is no list of edges, or its first line has the form of METIS's, the number of
/// nodes and that of edges, and fits the lines after it.
fn has_form_of_metis(
    read: &Result<(EdgeTable, NamedColumns), DataError>,
    format: &EdgeListFormat,
) -> bool {
    /// Formats that METIS's first line may give as its third number.
    const FORMATS: [f32; 8] = [0.0, 1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0];
    if format.delimiter.is_some() || format.header_lines > 0 {
        return false;
    }
    let table = match read {
        Ok((table, _)) if !table.src.is_empty() => table,
        Ok(_) => return false,
        Err(e) => return matches!(e, DataError::Table { .. }),
    };
    let number = |ids: &Ids| match ids {
        Ids::Int(ids) => Some(ids[0]),
        Ids::Text(ids) => ids.get(0).parse().ok(),
    };
    let after = table.src.len() as i64 - 1;
    let (Some(nodes), Some(edges)) = (number(&table.src), number(&table.dst)) else { return false };
    let fits = match &table.columns.weights {
        // Two neighbours on each line.
        None => edges == after,
        Some(w) => FORMATS.contains(&w[0]),
    };
    fits && nodes >= after && edges >= 1
}

fn read(path: &Path, format: &EdgeListFormat) -> Result<(EdgeTable, NamedColumns), DataError> {
    let blocks = Blocks::whole(path, format.progress)?;
    // Lines before a block are known when the blocks before it are; the first block alone holds the header, or the
    // blocks are few.
    let mut skip = format.header_lines;
    let blocks = blocks.map(|block| {
        let block = block?;
        let here = skip.min(count_lines(&block));
        skip -= here;
        Ok((here, block))
    });
    let parsed = parse_blocks(blocks, |_, block: Result<(u64, Vec<u8>), DataError>| {
        block.map(|(skip, block)| Edges::parse(&block, skip, format))
    })?;
    let mut all = Edges::empty(format);
    for block in parsed {
        if let Some((line, field, expected, found)) = block.problem {
            return Err(table_error(path, all.lines + line, field, expected, found));
        }
        all.append(block)
            .map_err(|(line, expected)| table_error(path, line, 3, expected, "another edge"))?;
        within_limit(path.display(), "edges", all.src.len() as u64)?;
    }
    let table = EdgeTable {
        src: all.src,
        dst: all.dst,
        columns: TableColumns {
            weights: format.weighted.then_some(all.weights),
            ..TableColumns::default()
        },
        places: Default::default(),
    };
    Ok((table, all.attributes))
}

/// [`read_edge_list`] as a homogeneous graph: weights are the edge column [`WEIGHT`], attributes edge columns of their
/// names (bool, int64, float32 or texts; `weight` is float32), and unless the format gives a number of nodes, `ids` of the
/// node frame maps ids to numbers and back.
///
/// # Errors
/// As [`read_edge_list`] and [`Graph::homogeneous`].
pub fn load_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
    device: &Device,
) -> Result<Graph, DataError> {
    let (table, attributes) = read_checked(path.as_ref(), format)?;
    assemble(table, attributes, format, device).map_err(|e| e.in_file(path))
}

fn assemble(
    table: EdgeTable,
    attributes: NamedColumns,
    format: &EdgeListFormat,
    device: &Device,
) -> Result<Graph, DataError> {
    let mut graph = match (&table.src, &table.dst, format.num_nodes) {
        (Ids::Int(src), Ids::Int(dst), Some(n)) => {
            // Ids were compared with the number of nodes as they were read.
            let narrow = |ids: &[i64]| ids.iter().map(|&v| v as u32).collect();
            Graph::homogeneous(n, narrow(src), narrow(dst))?
        }
        (src, dst, _) => {
            let nodes = NodeIds::new(ascending(src, dst));
            let number = |ids: &Ids| nodes.numbers(ids, 1).unwrap_or_default();
            let (src, dst) = (number(src), number(dst));
            let mut graph = Graph::homogeneous(nodes.len(), src, dst)?;
            graph.nodes_mut(..)?.set_ids(nodes)?;
            graph
        }
    };
    if let Some(w) = table.columns.weights {
        let w = f32_column(w, [graph.relations()[0].num_edges()], device);
        graph.edges_mut(0)?.insert_column(WEIGHT, w)?;
    }
    into_floats(attributes)?.insert(graph.edges_mut(0)?, "list of edges", device)?;
    if format.undirected { Ok(graph.add_reverse_edges(0)?) } else { Ok(graph) }
}

/// The ids of two columns, each once, ascending.
fn ascending(src: &Ids, dst: &Ids) -> Ids {
    match (src, dst) {
        (Ids::Int(src), Ids::Int(dst)) => {
            let mut all = [src.as_slice(), dst].concat();
            all.par_sort_unstable();
            all.dedup();
            Ids::Int(all)
        }
        _ => {
            let texts = |ids: &Ids| if let Ids::Text(t) = ids { t.clone() } else { Texts::new() };
            let (src, dst) = (texts(src), texts(dst));
            let mut all: Vec<&str> = src.iter().chain(dst.iter()).collect();
            all.par_sort_unstable();
            all.dedup();
            Ids::Text(all.into_iter().collect())
        }
    }
}

fn count_lines(block: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', block).count() as u64 + u64::from(!block.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, format: &EdgeListFormat) -> Result<EdgeTable, DataError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e");
        std::fs::write(&path, text).unwrap();
        read_edge_list(&path, format)
    }

    fn load(text: &str, format: &EdgeListFormat) -> Graph {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e");
        std::fs::write(&path, text).unwrap();
        load_edge_list(&path, format, &Device::flex()).unwrap()
    }

    fn ints(ids: &Ids) -> Vec<i64> {
        if let Ids::Int(ids) = ids { ids.clone() } else { panic!("texts") }
    }

    proptest! {
        /// What is written comes back, whatever stands between fields and lines.
        #[test]
        fn there_and_back(
            edges in prop::collection::vec((-50i64..50, -50i64..50, -9i32..9), 0..40),
            between in prop::sample::select(vec![" ", "\t", "  \t", ",", ";", "::", " , "]),
            end in prop::sample::select(vec!["\n", "\r\n", "\n\n", "\n# a comment 1 2\n", "\n  % other\r\n"]),
            weighted: bool,
            undirected: bool,
        ) {
            let line = |(u, v, w): &(i64, i64, i32)| {
                let weight = if weighted { format!("{between}{}", f64::from(*w) / 2.0) } else { String::new() };
                format!("{u}{between}{v}{weight}{end}")
            };
            let text: String = edges.iter().map(line).collect();
            let mut format = EdgeListFormat { weighted, undirected, ..EdgeListFormat::new() };
            if !between.trim().is_empty() {
                format = format.with_delimiter(between);
            }
            let t = read(&text, &format).unwrap();
            prop_assert_eq!(ints(&t.src), edges.iter().map(|e| e.0).collect::<Vec<_>>());
            prop_assert_eq!(ints(&t.dst), edges.iter().map(|e| e.1).collect::<Vec<_>>());
            let weights: Vec<f32> = edges.iter().map(|e| e.2 as f32 / 2.0).collect();
            prop_assert_eq!(&t.columns.weights, &weighted.then_some(weights));
            let g = load(&text, &format);
            let ids = g.nodes("_N").unwrap().ids().unwrap();
            prop_assert!(ints(ids.ids()).windows(2).all(|w| w[0] < w[1]));
            let r = g.relation("_E").unwrap();
            for (i, e) in edges.iter().enumerate() {
                prop_assert_eq!((ids.number(e.0), ids.number(e.1)), (Some(r.src()[i]), Some(r.dst()[i])));
            }
            let loops = edges.iter().filter(|e| e.0 == e.1).count();
            prop_assert_eq!(r.num_edges(), if undirected { 2 * edges.len() - loops } else { edges.len() });
        }
    }

    #[test]
    fn texts_numbers_and_headers() {
        let g = load("b;a\nköln;b\n", &EdgeListFormat::new().with_text_ids().with_delimiter(";"));
        assert_eq!(
            (g.relation("_E").unwrap().src(), g.relation("_E").unwrap().dst()),
            (&[1, 2][..], &[0, 1][..])
        );
        assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("köln"), Some(2));
        let g =
            load("src dst\n4 0\n", &EdgeListFormat::new().with_header_lines(1).with_num_nodes(6));
        assert_eq!(
            (g.node_counts(), g.relation("_E").unwrap().src(), g.nodes("_N").unwrap().ids()),
            (&[6][..], &[4][..], None)
        );
        assert_eq!(load("", &EdgeListFormat::new()).node_counts(), [0]);
        assert_eq!(load("x\ny\n", &EdgeListFormat::new().with_header_lines(9)).total_edges(), 0);
        let none: [&str; 0] = [];
        assert_eq!(
            load("#1 2\n", &EdgeListFormat::new().with_comments(none).with_text_ids())
                .total_edges(),
            1
        );
    }

    /// More than one block, and a wrong line far behind.
    #[test]
    fn lines_are_counted_over_blocks() {
        let many = "10 11\n# x\n".repeat(300_000);
        let t = read(&many, &EdgeListFormat::new()).unwrap();
        assert_eq!((t.src.len(), t.dst.get(299_999)), (300_000, burn_gnn_graph::FileId::Int(11)));
        let e = read(&format!("{many}1 x\n{many}"), &EdgeListFormat::new()).unwrap_err();
        assert!(e.to_string().contains("e:600001:2: expected an int64, got \"x\""), "{e}");
        assert_eq!(
            read(&many, &EdgeListFormat::new().with_header_lines(599_998)).unwrap().src.len(),
            1
        );
    }

    /// Of NetworkX 3: `write_edgelist(g, path)`, with `data=["weight"]`, with `delimiter=","`.
    #[test]
    fn what_networkx_writes() {
        let text = "1 2 {'weight': 3, 'color': 'dark red', 'kept': True}\n2 7 {'kept': False, 'weight': 0.5, 'color': ''}\n";
        let g = load(text, &EdgeListFormat::networkx().undirected());
        assert_eq!(g.relation("_E").unwrap().src(), [0, 1, 1, 2]);
        let edges = g.edges("_E").unwrap();
        let weights: Vec<f32> = edges.get::<1>(WEIGHT).unwrap().into_data().try_to_vec().unwrap();
        assert_eq!(weights, [3.0, 0.5, 3.0, 0.5]);
        let color: Vec<&str> = edges.text("color").unwrap().iter().collect();
        assert_eq!(color, ["dark red", "", "dark red", ""]);
        let kept = edges.column("kept").unwrap().to_data();
        assert_eq!(kept.iter::<bool>().collect::<Vec<_>>(), [true, false, true, false]);

        let g = load("0 1 {}\n1 2 {}\n", &EdgeListFormat::networkx());
        assert_eq!((g.total_edges(), g.edges("_E").unwrap().columns().count()), (2, 0));
        let g = load("0 1 3.5\n", &EdgeListFormat::new().weighted());
        assert_eq!(g.total_edges(), 1);
        let commas = EdgeListFormat::networkx().with_delimiter(",").with_text_ids();
        let g = load("New York,Oslo,{'km': 5900, 'a': 1}\n", &commas);
        assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("Oslo"), Some(1));
        assert_eq!(g.edges("_E").unwrap().to_ints("km").unwrap(), [5900]);
        let t = read("1 2 {'weight': 3}\n", &EdgeListFormat::networkx()).unwrap();
        assert_eq!(t.columns.weights, Some(vec![3.0]));

        // Attributes are those of every edge, also over blocks.
        let many = "10 11 {'weight': 1}\n".repeat(100_000);
        let t = read(&format!("{many}1 2 {{'weight': 0.5}}\n"), &EdgeListFormat::networkx());
        assert_eq!(t.unwrap().columns.weights.unwrap()[100_000], 0.5);
        for (text, part) in [
            (
                "1 2 {'w': 1}\n2 3 {}\n".to_owned(),
                "e:2:3: expected the attribute `w`, which other rows have",
            ),
            (
                "1 2 {}\n2 3 {'w': 1}\n".into(),
                "e:2:3: expected an attribute that the rows before have",
            ),
            (
                "1 2 {'w': 1}\n2 3 {'w': 'x'}\n".into(),
                "e:2:3: expected a number as in the first row (`w`)",
            ),
            ("1 2 {'w': 1, 'w': 2}\n".into(), "expected the attribute `w` once"),
            ("1 2 {'w': None}\n".into(), "e:1:3: expected a dictionary of booleans, numbers"),
            ("1 2\n".into(), "e:1:3: expected a dictionary"),
            (format!("{many}1 2 {{}}\n"), "e:100001:3: expected the attribute `weight`"),
            (format!("{many}1 2 {{'weight': 'x'}}\n"), ":100001:3: expected "),
        ] {
            let e = read(&text, &EdgeListFormat::networkx()).unwrap_err().to_string();
            assert!(e.contains(part), "expected {part:?} in {e}");
        }
        let e = read("1 2 {'km': 3}\n", &EdgeListFormat::networkx()).unwrap_err().to_string();
        assert!(e.contains("`load_edge_list` makes a column of each attribute"), "{e}");
    }

    /// Files of other formats are errors that name them, whatever ids the format has; none becomes a graph.
    #[test]
    fn files_of_other_formats() {
        let xml = "<?xml version='1.0'?>\n";
        let cycle = "4 4\n2 4\n1 3\n2 4\n1 3\n";
        for (text, part) in [
            (
                "%%MatrixMarket matrix coordinate pattern general\n3 3\n1 2\n",
                "a Matrix Market file; read it with `load_matrix_market`",
            ),
            (&format!("{xml}<graphml>\n"), "GraphML; read it with `load_graphml`"),
            (&format!("{xml}<gexf>\n"), "GEXF; not supported"),
            ("graph [\nnode [\nid 0\n]\n]\n", "GML; not supported"),
            ("*Vertices 2\n1 \"a\"\n2 \"b\"\n*Arcs\n1 2 1\n", "a Pajek file; not supported"),
            ("digraph g {\na b\n}\n", "a DOT file of Graphviz; not supported"),
            (
                "{\"directed\": false, \"nodes\": [], \"links\": []}",
                "node-link JSON; read it with `load_node_link`",
            ),
            (">>graph6<<DQc\n", "a graph6 or sparse6 file; not supported"),
            ("p edge 2 1\ne 1 2\n", "a DIMACS file; not supported"),
            (cycle, "a graph in METIS's format"),
            (
                "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n",
                "a graph in METIS's format",
            ),
            ("DQc\n", "this may be graph6, which is not supported"),
        ] {
            for format in [
                EdgeListFormat::new(),
                EdgeListFormat::new().with_text_ids(),
                EdgeListFormat::new().weighted(),
            ] {
                let e = read(text, &format).unwrap_err().to_string();
                assert!(e.contains(part), "expected {part:?} in {e}");
                assert!(e.contains("a list of edges") || e.contains("graph6"), "{e}");
            }
        }
        let e = read("2 1 11\n5 2 7\n5 1 7\n", &EdgeListFormat::new().weighted()).unwrap_err();
        assert!(e.to_string().contains("METIS"), "{e}");
        // With a header to pass over, what follows is what the caller says.
        let banner = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n";
        assert_eq!(load(banner, &EdgeListFormat::new().with_header_lines(2)).total_edges(), 1);
        assert_eq!(read("4 4\n2 4\n1 3\n2 4\n1 2\n", &EdgeListFormat::new()).unwrap().src.len(), 5);
        let e = read("1 2 {}\n", &EdgeListFormat::new()).unwrap_err().to_string();
        assert!(e.contains("`EdgeListFormat::networkx` reads the dictionaries"), "{e}");
    }

    #[test]
    fn byte_order_marks() {
        let format = EdgeListFormat::new();
        assert_eq!(ints(&read("\u{feff}1 2\n3 4\n", &format).unwrap().src), [1, 3]);
        let g = load("\u{feff}a b\n", &EdgeListFormat::new().with_text_ids());
        assert_eq!(g.nodes("_N").unwrap().ids().unwrap().number("a"), Some(0));
        assert_eq!(ints(&read("\u{feff}# c\n1 2\n", &format).unwrap().src), [1]);
        let marked = "\u{feff}%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n";
        assert!(read(marked, &format).unwrap_err().to_string().contains("load_matrix_market"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e");
        let utf16: Vec<u8> = "\u{feff}1 2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(&path, utf16).unwrap();
        let e = read_edge_list(&path, &format).unwrap_err().to_string();
        assert!(e.contains("expected UTF-8, found the byte order mark of UTF-16"), "{e}");
    }

    #[test]
    fn refusals() {
        let refused = |text: &str, format: EdgeListFormat, end: &str| {
            let e = read(text, &format).unwrap_err().to_string();
            assert!(e.ends_with(end), "expected {end:?} at the end of {e}");
        };
        let new = EdgeListFormat::new;
        refused(
            "1 2\n3\n",
            new(),
            "e:2: expected 2 fields separated by white space, got \"3\"; `EdgeListFormat` says the delimiter, whether there are weights and whether there are more fields",
        );
        refused(
            "1 2 3\n",
            new(),
            "e:1: expected 2 fields separated by white space, got \"1 2 3\"; `EdgeListFormat` says the delimiter, whether there are weights and whether there are more fields",
        );
        refused(
            "1,2\n",
            new().with_delimiter(",").weighted(),
            "e:1: expected 3 fields separated by \",\", got \"1,2\"; `EdgeListFormat` says the delimiter, whether there are weights and whether there are more fields",
        );
        refused(
            "1,2,x\n",
            new().with_delimiter(",").weighted(),
            "e:1:3: expected a float (weight), got \"x\"",
        );
        for (weight, near) in [("1e300", f32::INFINITY), ("1e-60", 0.0), ("16777217", 16_777_216.0)]
        {
            let text = format!("1 2 {weight} 1289241911.72836\n");
            let weighted = new().weighted().with_extra_fields();
            refused(
                &text,
                weighted.clone(),
                &format!(
                    "e:1:3: expected a number that f32 can represent (weight), got {weight:?}; `EdgeListFormat::round_weights` takes the nearest f32"
                ),
            );
            let rounding = weighted.round_weights();
            assert_eq!(read(&text, &rounding).unwrap().columns.weights.unwrap(), [near]);
            assert_eq!(rounding.rounded.get(), 1);
        }
        refused("1,,2\n", new().with_delimiter(","), "e:1:2: expected an int64, got \"\"");
        refused(
            "0 3\n",
            new().with_num_nodes(3),
            "e:1:2: expected a node number in 0..3, got \"3\"",
        );
        refused(
            "-1 0\n",
            new().with_num_nodes(3),
            "e:1:1: expected a node number in 0..3, got \"-1\"",
        );
        refused(
            "",
            new().with_delimiter(""),
            "`delimiter`: expected a text without line ends that is not empty, got Some(\"\")",
        );
        refused(
            "",
            new().with_comments([""]),
            "`comments`: expected marks that are not empty, got an empty one",
        );
        refused(
            "",
            new().with_text_ids().with_num_nodes(1),
            "`num_nodes`: expected none for ids that are texts, got a number",
        );
        assert!(matches!(read_edge_list("no/such/file", &new()), Err(DataError::Io { .. })));
    }
}
