//! Builds graphs from nodes and edges with ids and named attributes.

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Graph, Ids, NodeIds, Texts};

use crate::columns::data_column::NamedColumns;
use crate::columns::narrow::RoundedCount;
use crate::files::{setting, within_limit};
use crate::tables::schema::column_names::WEIGHT;

/// Options of [`load_node_link_with`](crate::load_node_link_with) and `load_graphml_with`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{AttributeOptions, load_node_link, load_node_link_with};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("g.json");
/// std::fs::write(&path, r#"{"nodes": [{"id": 1, "mass": 2e40}], "links": []}"#).unwrap();
/// assert!(load_node_link(&path, &Device::flex()).is_err()); // f32 has no 2e40
/// let options = AttributeOptions::new().round_values();
/// load_node_link_with(&path, &options, &Device::flex())?;
/// assert_eq!(options.rounded.get(), 1);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeOptions {
    /// Whether a number that f32 cannot represent is rounded to the nearest f32. By default it is an error. Such a number
    /// would become infinite or 0, or is an integer that would change its value.
    pub round_values: bool,
    /// Number of values that [`round_values`](Self::round_values) changed.
    pub rounded: RoundedCount,
    /// Whether reading a long file draws a progress bar on a terminal.
    pub progress: bool,
}

impl Default for AttributeOptions {
    fn default() -> Self {
        Self { round_values: false, rounded: RoundedCount::default(), progress: true }
    }
}

impl AttributeOptions {
    /// Numbers that f32 cannot represent are errors.
    pub fn new() -> Self {
        Self::default()
    }
    /// Rounds numbers that f32 cannot represent to the nearest f32, and counts them ([`rounded`](Self::rounded)).
    #[must_use]
    pub fn round_values(mut self) -> Self {
        self.round_values = true;
        self
    }
    /// Enables or disables the progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// Columns without rows that round as these options say.
    pub(crate) fn columns(&self) -> NamedColumns {
        NamedColumns::with_rounding(self.round_values.then(|| self.rounded.clone()))
    }
}

/// Adds the option that accepts a number that f32 cannot represent to the expected content of an attribute.
pub(crate) fn with_rounding_remedy(expected: String) -> String {
    if expected.contains("f32 can") {
        format!("{expected}; `AttributeOptions::round_values` takes the nearest f32")
    } else {
        expected
    }
}

/// Ids of nodes or endpoints, all integers or all texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdColumn(Option<Ids>);

impl IdColumn {
    /// Appends an id. `Err`: the expected content.
    pub(crate) fn push(&mut self, id: FileId<'_>) -> Result<(), String> {
        match (&mut self.0, id) {
            (None, FileId::Int(id)) => self.0 = Some(Ids::Int(vec![id])),
            (None, FileId::Text(id)) => self.0 = Some(Ids::Text([id].into_iter().collect())),
            (Some(Ids::Int(ids)), FileId::Int(id)) => ids.push(id),
            (Some(Ids::Text(ids)), FileId::Text(id)) => ids.push(id),
            _ => return Err("ids of one type, integers or texts".into()),
        }
        Ok(())
    }
    fn into_ids(self) -> Ids {
        self.0.unwrap_or_else(|| Ids::Text(Texts::new()))
    }
}

/// Which edges are undirected, so that their reverses are appended.
#[derive(Clone, Debug)]
pub(crate) enum Undirected {
    None,
    All,
    /// One flag per edge.
    #[cfg_attr(
        not(feature = "graphml"),
        allow(dead_code, reason = "only GraphML declares the direction of each edge")
    )]
    Some(Vec<bool>),
}

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) struct AttributedGraph {
    pub(crate) ids: IdColumn,
    pub(crate) nodes: NamedColumns,
    pub(crate) src: IdColumn,
    pub(crate) dst: IdColumn,
    pub(crate) edges: NamedColumns,
    pub(crate) undirected: Undirected,
}

impl AttributedGraph {
    /// Builds a homogeneous graph with `ids` and attribute columns. The reverses of undirected edges, except self loops,
    /// follow all edges. `what` names the format in errors. The inner `Err` is a message about the content of the file.
    pub(crate) fn build(
        self,
        what: &str,
        device: &Device,
    ) -> Result<Result<Graph, String>, DataError> {
        within_limit(what, "nodes", self.nodes.rows() as u64)?;
        within_limit(what, "edges", self.edges.rows() as u64)?;
        let ids = NodeIds::new(self.ids.into_ids());
        if let Some((again, _)) = ids.repeated().next() {
            let id = ids.ids().get(again);
            return Ok(Err(format!("expected distinct node ids, found `{id}` twice")));
        }
        let (from, to) = (self.src.into_ids(), self.dst.into_ids());
        let numbers = |endpoints: &Ids| {
            ids.numbers(endpoints, 1).map_err(|missing| {
                let (edge, id) = (missing[0], endpoints.get(missing[0]));
                format!("edge {}: expected a node id, found `{id}`", edge + 1)
            })
        };
        let (mut src, mut dst) = match (numbers(&from), numbers(&to)) {
            (Ok(src), Ok(dst)) => (src, dst),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        let reversed = |edge: usize| match &self.undirected {
            Undirected::None => false,
            Undirected::All => true,
            Undirected::Some(each) => each[edge],
        };
        let back: Vec<u32> =
            (0..src.len()).filter(|&e| src[e] != dst[e] && reversed(e)).map(|e| e as u32).collect();
        let (sources, destinations): (Vec<u32>, Vec<u32>) =
            back.iter().map(|&e| (dst[e as usize], src[e as usize])).unzip();
        let rows: Vec<u32> = (0..src.len() as u32).chain(back).collect();
        src.extend(sources);
        dst.extend(destinations);
        let mut graph = Graph::homogeneous(ids.len(), src, dst)?;
        let nodes = graph.nodes_mut(..)?;
        self.nodes.insert(nodes, what, device)?;
        nodes.set_ids(ids)?;
        let wrong = |expected: String| {
            setting(WEIGHT, &with_rounding_remedy(expected), "a number that f32 cannot represent")
        };
        self.edges.into_floats(WEIGHT).map_err(wrong)?.insert_rows(
            graph.edges_mut(0)?,
            &rows,
            what,
            device,
        )?;
        Ok(Ok(graph))
    }
}
