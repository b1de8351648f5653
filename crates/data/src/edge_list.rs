//! Reads edge lists: one edge per line.

mod lines;

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Graph, Ids, NodeIds, Texts};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::files::{Expected, table_error, within_limit};
use crate::host_column::f32_column;
use crate::tables::{Blocks, EdgeTable, TableColumns, WEIGHT, parse_blocks};
use lines::Edges;

/// What an edge list looks like: `source destination [weight]` on each line, nothing else. Lines that are empty or
/// begin with a mark of a comment are passed over.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{EdgeListFormat, load_edge_list};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("friends.txt");
/// std::fs::write(&path, "# who knows whom\n7 1000 0.5\n1000 8 2\n").unwrap();
/// let g = load_edge_list(&path, &EdgeListFormat::new().weighted().undirected(), &Device::flex())?;
/// let r = g.relation("_E")?;
/// assert_eq!((r.src(), r.dst()), (&[0, 2, 2, 1][..], &[2, 1, 0, 2][..])); // nodes by ascending id: 7, 8, 1000
/// assert_eq!(g.nodes("_N")?.ids().unwrap().number(1000), Some(2));
/// # Ok::<(), burn_gnn_data::DataError>(())
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
    /// Whether ids are texts and not whole numbers.
    pub text_ids: bool,
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
            text_ids: false,
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
        if self.text_ids && self.num_nodes.is_some() {
            return wrong("num_nodes", "none for ids that are texts", "a number");
        }
        Ok(())
    }

    fn expected(&self) -> Expected {
        let between = self.delimiter.as_ref().map_or("white space".into(), |d| format!("{d:?}"));
        let what = format!("{} fields separated by {between}", if self.weighted { 3 } else { 2 });
        Expected {
            what,
            remedy: "`EdgeListFormat` says the delimiter and whether there are weights",
        }
    }
}

/// Reads an edge list; edge `i` is the `i`-th line that is no comment. Files may be plain, gzip or zstd.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Table`] with file, line and field for another number of fields, an id that is no
/// whole number (or no number of a node), a weight that is none, text that is not UTF-8;
/// [`GraphError::Setting`](burn_gnn_graph::GraphError::Setting) for a format that cannot be.
///
/// # Cost
/// Parsed in parallel; memory the columns, twice while blocks are joined. A terminal shows how far a file of 64 MiB and
/// more is.
pub fn read_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
) -> Result<EdgeTable, DataError> {
    format.check()?;
    read(path.as_ref(), format).map_err(|e| e.in_file(path))
}

fn read(path: &Path, format: &EdgeListFormat) -> Result<EdgeTable, DataError> {
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
        all.append(block);
        within_limit(path.display(), "edges", all.src.len() as u64)?;
    }
    Ok(EdgeTable {
        src: all.src,
        dst: all.dst,
        columns: TableColumns {
            weights: format.weighted.then_some(all.weights),
            ..TableColumns::default()
        },
        places: Default::default(),
    })
}

/// [`read_edge_list`] as a homogeneous graph: weights are the edge column [`WEIGHT`], and unless the format gives a
/// number of nodes, `ids` of the node frame maps ids to numbers and back.
///
/// # Errors
/// As [`read_edge_list`] and [`Graph::homogeneous`].
pub fn load_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
    device: &Device,
) -> Result<Graph, DataError> {
    let table = read_edge_list(&path, format)?;
    assemble(table, format, device).map_err(|e| e.in_file(path))
}

fn assemble(
    table: EdgeTable,
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
            "e:2: expected 2 fields separated by white space, got \"3\"; `EdgeListFormat` says the delimiter and whether there are weights",
        );
        refused(
            "1 2 3\n",
            new(),
            "e:1: expected 2 fields separated by white space, got \"1 2 3\"; `EdgeListFormat` says the delimiter and whether there are weights",
        );
        refused(
            "1,2\n",
            new().with_delimiter(",").weighted(),
            "e:1: expected 3 fields separated by \",\", got \"1,2\"; `EdgeListFormat` says the delimiter and whether there are weights",
        );
        refused(
            "1,2,x\n",
            new().with_delimiter(",").weighted(),
            "e:1:3: expected a float (weight), got \"x\"",
        );
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
