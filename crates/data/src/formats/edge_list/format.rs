//! Options of an edge list.

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use crate::columns::narrow::RoundedCount;
use crate::files::{Expected, setting};

/// Options of an edge list, a text file with one edge per line: `source destination [weight | attributes]`.
///
/// Empty lines and comments are skipped.
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
    /// Text between two fields; `None` for any number of spaces and tabs.
    pub delimiter: Option<String>,
    /// Prefixes of comment lines. Default: `#` and `%`.
    pub comments: Vec<String>,
    /// Whether the third field is a weight.
    pub weighted: bool,
    /// Whether the third field is a Python dictionary of attributes, as `networkx.write_edgelist` writes it:
    /// `1 2 {'weight': 3}`. All edges must have the same attributes.
    pub attributes: bool,
    /// Whether ids are texts. By default they are integers.
    pub text_ids: bool,
    /// Whether weights and float attributes that f32 cannot represent are rounded to the nearest f32. By default they are
    /// errors. Such a number would become infinite or 0, or is an integer that would change its value.
    pub round_weights: bool,
    /// Number of weights and attributes that [`round_weights`](Self::round_weights) changed.
    #[serde(skip)]
    pub rounded: RoundedCount,
    /// Whether lines may have further fields, which are ignored.
    pub extra_fields: bool,
    /// Whether the graph is undirected: the reverses of all edges are appended.
    pub undirected: bool,
    /// Number of lines to skip at the start of the file.
    pub header_lines: u64,
    /// Number of nodes, if the ids are node numbers `0..num_nodes`. There may be isolated nodes. With `None`, the nodes
    /// are the endpoints of edges, numbered by ascending id.
    pub num_nodes: Option<usize>,
    /// Whether reading a long file draws a progress bar on a terminal.
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
    /// Integer ids separated by spaces or tabs.
    pub fn new() -> Self {
        Self::default()
    }
    /// The default format of `networkx.write_edgelist`: a dictionary of attributes after each edge. The file of an
    /// undirected `networkx.Graph` contains each edge once; add [`undirected`](Self::undirected) for it.
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
    /// Sets the text between two fields.
    #[must_use]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }
    /// Sets the prefixes of comment lines. With an empty list there are no comments.
    #[must_use]
    pub fn with_comments(mut self, comments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.comments = comments.into_iter().map(Into::into).collect();
        self
    }
    /// Reads a weight from the third field.
    #[must_use]
    pub fn weighted(mut self) -> Self {
        self.weighted = true;
        self
    }
    /// Reads ids as texts.
    #[must_use]
    pub fn with_text_ids(mut self) -> Self {
        self.text_ids = true;
        self
    }
    /// Rounds weights and float attributes that f32 cannot represent to the nearest f32.
    #[must_use]
    pub fn round_weights(mut self) -> Self {
        self.round_weights = true;
        self
    }
    /// Ignores further fields of a line, such as the time after a rating.
    #[must_use]
    pub fn with_extra_fields(mut self) -> Self {
        self.extra_fields = true;
        self
    }
    /// Appends the reverses of all edges.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.undirected = true;
        self
    }
    /// Skips lines at the start of the file.
    #[must_use]
    pub fn with_header_lines(mut self, lines: u64) -> Self {
        self.header_lines = lines;
        self
    }
    /// Enables or disables the progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// Declares that ids are node numbers `0..num_nodes`.
    #[must_use]
    pub fn with_num_nodes(mut self, num_nodes: usize) -> Self {
        self.num_nodes = Some(num_nodes);
        self
    }

    pub(super) fn check(&self) -> Result<(), DataError> {
        let wrong = |arg, expected: &str, found: &str| Err(setting(arg, expected, found));
        if self.delimiter.as_deref().is_some_and(|d| d.is_empty() || d.contains(['\n', '\r'])) {
            return wrong(
                "delimiter",
                "non-empty text without line breaks",
                &format!("{:?}", self.delimiter),
            );
        }
        if self.comments.iter().any(String::is_empty) {
            return wrong("comments", "non-empty prefixes", "an empty one");
        }
        if self.weighted && self.attributes {
            return wrong("weighted", "either weights or attributes", "both");
        }
        if self.text_ids && self.num_nodes.is_some() {
            return wrong("num_nodes", "none for text ids", "a number");
        }
        Ok(())
    }

    pub(super) fn expected(&self) -> Expected {
        let between = self.delimiter.as_ref().map_or("white space".into(), |d| format!("{d:?}"));
        let fields = if self.weighted || self.attributes { 3 } else { 2 };
        let what = format!("{fields} fields separated by {between}");
        Expected { what, remedy: "set delimiter, weights and extra fields in `EdgeListFormat`" }
    }
}
