//! Builds a graph from tables.

use std::collections::BTreeMap;

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, EdgeType, Frame, Graph, Ids, NodeIds};

use super::read::join_problems;
use super::rows::attributes::Attributes;
use super::rows::columns::TableColumns;
use super::schema::attr_type::AttrType;
use super::schema::column_names::{
    DOUBLE_ATTRS, FLOAT_ATTRS, INT_ATTRS, LABEL, LABEL_TEXT, TEXT_KEYS, TIMESTAMP, WEIGHT,
    text_attr,
};
use super::schema::decoder::{Decoder, Slot};
use super::schema::hash;
use super::schema::read_options::{ReadOptions, UnknownNodes};
use super::table::{NodeTable, read_edges_with, read_nodes_with, resolve};
use super::text::source::Source;
use crate::columns::host_column::{column_of, f32_column, i64_column, unsupported};
use crate::files::{duplicate, unknown_ntype};

/// Reads node tables and edge tables into one [`Graph`].
///
/// The book: [data](https://github.com/burn-gnn/burn-gnn/blob/main/docs/data.md).
///
/// Nodes are numbered in the order of the rows of their table. [`Frame::ids`] maps their ids to numbers and back. Edge `i`
/// is row `i`. Weights, labels, timestamps and attributes become columns of the frames with the names [`WEIGHT`],
/// [`LABEL`], [`TIMESTAMP`], [`FLOAT_ATTRS`] and so on. Multi-valued attributes become lists
/// ([`Decoder::list_names`]). Texts without buckets become keys ([`TEXT_KEYS`]) and texts ([`text_attr`]). If the table has
/// a header ([`Decoder::csv`]), the names of the attributes are the [`Column::names`] of [`FLOAT_ATTRS`],
/// [`DOUBLE_ATTRS`], [`INT_ATTRS`] and [`TEXT_KEYS`].
///
/// Each edge of an undirected table is in the graph in both directions, with the same attributes. Between nodes of one
/// type, the reverse edges follow the edges in the same relation (self loops have none). Between two types, they are a
/// relation `<relation>_reverse`, as in GraphLearn.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{AttrType, Builder, Decoder};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = |name: &str, text: &str| { let p = dir.path().join(name); std::fs::write(&p, text).unwrap(); p };
/// # let items = path("items", "id:int64\tfeature:string\n10001\tfeature1:1:0.1\n10002\tfeature2:2:0.2\n10003\tfeature3:3:0.3\n");
/// # let users = path("users", "id:int64\tfeature:string\n123\t0.1:0.2:0.3\n124\t0.4:0.5:0.6\n125\t0.7:0.8:0.9\n");
/// # let buys = path("buys", "src_id:int64\tdst_id:int64\tweight:float\n123\t10001\t0.1\n124\t10001\t0.2\n124\t10002\t0.3\n");
/// let g = Builder::new()
///     .node(items, "item", Decoder::new().with_attributes([AttrType::string_buckets(100), AttrType::Int, AttrType::Float]))
///     .node(users, "user", Decoder::new().with_attributes([AttrType::Float; 3]))
///     .edge(buys, ("user", "buys", "item"), Decoder::new().weighted(), false)
///     .build(&Device::flex())?;
/// assert_eq!(g.relation("buys")?.dst(), [0, 0, 1]);
/// assert_eq!(g.relation("buys_reverse")?.src(), [0, 0, 1]);
/// assert_eq!(g.nodes("user")?.ids().unwrap().number(124), Some(1));
/// assert_eq!(g.nodes("user")?.get::<2>("float_attrs")?.dims(), [3, 3]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    nodes: Vec<(Source, String, Decoder)>,
    edges: Vec<(Source, EdgeType, Decoder, bool)>,
    options: ReadOptions,
}

impl Builder {
    /// A builder without tables.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a table of the nodes of a type.
    #[must_use]
    pub fn node(
        mut self,
        source: impl Into<Source>,
        ntype: impl Into<String>,
        decoder: Decoder,
    ) -> Self {
        self.nodes.push((source.into(), ntype.into(), decoder));
        self
    }
    /// Adds a table of the edges of a type. (GraphLearn's order is source, destination, relation.)
    #[must_use]
    pub fn edge(
        mut self,
        source: impl Into<Source>,
        etype: impl Into<EdgeType>,
        decoder: Decoder,
        directed: bool,
    ) -> Self {
        self.edges.push((source.into(), etype.into(), decoder, directed));
        self
    }
    /// Sets options for all tables.
    ///
    /// ```
    /// use burn_gnn_data::{Builder, ReadOptions, UnknownNodes};
    /// let options = ReadOptions::new().with_unknown_nodes(UnknownNodes::Add).with_max_problems(20);
    /// let builder = Builder::new().with_options(options);
    /// ```
    #[must_use]
    pub fn with_options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// Reads all tables into a graph with its columns on `device`.
    ///
    /// # Errors
    /// As [`read_nodes`](crate::read_nodes) and [`read_edges`](crate::read_edges). Unless [`UnknownNodes::Add`] is set:
    /// [`DataError::Table`] (several as [`DataError::Problems`]) for an edge with a node that its table does not contain,
    /// [`GraphError::UnknownNodeType`](burn_gnn_graph::GraphError::UnknownNodeType) for an edge type between types without
    /// a table. Two tables of one type, invalid names, and f64 attributes on a device without f64.
    pub fn build(self, device: &Device) -> Result<Graph, DataError> {
        let mut types = BTreeMap::new();
        for (source, ntype, decoder) in self.nodes {
            let table = read_nodes_with(source, &decoder, &self.options)?;
            if types.insert(ntype.clone(), (table, decoder)).is_some() {
                return Err(duplicate("node type", ntype));
            }
        }
        let mut edges = vec![];
        for (source, etype, decoder, directed) in self.edges {
            let table = read_edges_with(source, &decoder, &self.options)?;
            for (ntype, ids) in [(&etype.src, &table.src), (&etype.dst, &table.dst)] {
                if self.options.unknown_nodes == UnknownNodes::Add {
                    let node = types
                        .entry(ntype.clone())
                        .or_insert_with(|| (NodeTable::none(ids), Decoder::new()));
                    node.0.add_unknown(ids, &node.1);
                } else if !types.contains_key(ntype) {
                    return Err(unknown_ntype(ntype, types.keys()));
                }
            }
            edges.push((etype, table, decoder, directed));
        }
        let mut graph = Graph::builder();
        for (ntype, (table, _)) in &types {
            graph = graph.nodes(ntype, table.ids.len());
        }
        let (mut frames, mut problems) = (vec![], vec![]);
        for (etype, table, decoder, directed) in edges {
            let most = self.options.max_problems.saturating_sub(problems.len()).max(1);
            let end = |column, name: &String, ids: &Ids| {
                resolve(ids, &types[name].0.ids, &table.places, column, name, most)
            };
            match (end(0, &etype.src, &table.src), end(1, &etype.dst, &table.dst)) {
                (Ok(src), Ok(dst)) => {
                    if !directed && etype.src != etype.dst {
                        graph = graph.edges(reverse_of(&etype), dst.clone(), src.clone());
                    }
                    graph = graph.edges(etype.clone(), src, dst);
                }
                (src, dst) => problems.extend(src.err().into_iter().chain(dst.err()).flatten()),
            }
            frames.push((etype, table, decoder, directed));
        }
        problems.truncate(self.options.max_problems);
        join_problems(problems)?;
        let mut graph = graph.build()?;
        for (ntype, (table, decoder)) in types {
            let frame = graph.nodes_mut(&ntype)?;
            let NodeTable { ids, columns, .. } = table;
            insert(frame, columns, &decoder, device)?;
            frame.set_ids(ids)?;
        }
        for (etype, table, decoder, directed) in frames {
            insert(graph.edges_mut(&etype)?, table.columns, &decoder, device)?;
            if !directed && etype.src == etype.dst {
                graph = graph.add_reverse_edges(&etype)?;
            } else if !directed {
                let frame = graph.edges(&etype)?.clone();
                graph.edges_mut(reverse_of(&etype))?.copy_rows(&frame)?;
            }
        }
        Ok(graph)
    }
}

fn reverse_of(etype: &EdgeType) -> EdgeType {
    EdgeType::new(&*etype.dst, format!("{}_reverse", etype.relation), &*etype.src)
}

impl NodeTable {
    /// A table without nodes whose ids are of the kind of `like`.
    fn none(like: &Ids) -> Self {
        Self {
            ids: NodeIds::new(like.select(&[])),
            columns: TableColumns::default(),
            places: Default::default(),
        }
    }
    /// Appends the nodes of `ids` that are not in the table. [`resolve`] returns an error for ids of another kind.
    fn add_unknown(&mut self, ids: &Ids, decoder: &Decoder) {
        if self.ids.is_empty() && self.ids.ids().kind() != ids.kind() {
            self.ids = NodeIds::new(ids.select(&[]));
        }
        if self.ids.ids().kind() != ids.kind() {
            return;
        }
        let Err(missing) = self.ids.numbers(ids, usize::MAX) else { return };
        let missing: Vec<u32> = missing.into_iter().map(|i| i as u32).collect();
        let new = NodeIds::new(ids.select(&missing));
        let mut fresh = vec![true; new.len()];
        new.repeated().for_each(|(i, _)| fresh[i] = false);
        let mut all = self.ids.ids().clone();
        for (i, _) in fresh.iter().enumerate().filter(|f| *f.1) {
            all.push(new.ids().get(i));
            self.columns.push_missing(decoder);
        }
        self.ids = NodeIds::new(all);
    }
}

/// Inserts the columns of a table into a frame.
fn insert(
    frame: &mut Frame,
    columns: TableColumns,
    decoder: &Decoder,
    device: &Device,
) -> Result<(), DataError> {
    let n = frame.len();
    let TableColumns { weights, labels, label_texts, timestamps, attributes } = columns;
    if let Some(w) = weights {
        frame.insert_column(WEIGHT, f32_column(w, [n], device))?;
    }
    for (name, column) in [(LABEL, labels), (TIMESTAMP, timestamps)] {
        if let Some(v) = column {
            frame.insert_column(name, i64_column(v, [n], device))?;
        }
    }
    if let Some(texts) = label_texts {
        frame.insert_text(LABEL_TEXT, texts)?;
    }
    let [floats, ints, texts, doubles] = decoder.widths();
    // Names the columns of the attributes of one kind; the numbers of a vector are `name[0]`, `name[1]`, …
    let named = |column: Column, is_kind: fn(&Slot) -> bool| {
        let Some(csv) = &decoder.csv else { return Ok(column) };
        let slots = decoder.slots();
        let kinds = csv.attributes.iter().zip(&decoder.attr_types).zip(&slots);
        let names = kinds.filter(|(_, slot)| is_kind(slot)).flat_map(|((name, ty), _)| match ty {
            AttrType::Vector { size } => (0..*size).map(|i| format!("{name}[{i}]")).collect(),
            _ => vec![name.clone()],
        });
        column.with_names(names)
    };
    let Attributes { floats: f, doubles: d, ints: i, texts: t, lists } = attributes;
    if floats > 0 {
        let column = f32_column(f, [n, floats], device);
        frame.insert_column(FLOAT_ATTRS, named(column, |s| matches!(s, Slot::Float(_)))?)?;
    }
    if doubles > 0 {
        let column = column_of(TensorData::new(d, [n, doubles]), device).map_err(|dtype| {
            unsupported(frame.label(), DOUBLE_ATTRS, format!("{dtype:?}"), device)
        })?;
        frame.insert_column(DOUBLE_ATTRS, named(column, |s| matches!(s, Slot::Double(_)))?)?;
    }
    if ints > 0 {
        let column = i64_column(i, [n, ints], device);
        frame.insert_column(INT_ATTRS, named(column, |s| matches!(s, Slot::Int(_)))?)?;
    }
    if texts > 0 {
        let keys: Vec<i64> =
            (0..n).flat_map(|r| t.iter().map(move |t| hash::key(t.get(r)))).collect();
        let column = i64_column(keys, [n, texts], device);
        frame.insert_column(TEXT_KEYS, named(column, |s| matches!(s, Slot::Text(_)))?)?;
        t.into_iter()
            .enumerate()
            .try_for_each(|(i, texts)| frame.insert_text(&text_attr(i), texts))?;
    }
    let names = decoder.list_names();
    Ok(lists.into_iter().zip(names).try_for_each(|(list, name)| frame.insert_list(&name, list))?)
}
