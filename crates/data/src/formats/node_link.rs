//! Reads node-link JSON, as NetworkX and D3 write graphs.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Graph};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::columns::data_column::{Cell, NamedColumns};
use crate::files::{format_error, read_error};
use crate::formats::attributed_graph::{AttributedGraph, IdColumn, Undirected};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::{Format, explained};

/// Reads a graph in node-link form (`networkx.node_link_data`, D3), plain, gzip or zstd:
///
/// ```text
/// {"directed": false, "multigraph": false, "graph": {},
///  "nodes": [{"id": 0, "club": "Mr. Hi"}, {"id": 33, "club": "Officer"}],
///  "links": [{"source": 0, "target": 33, "weight": 4}]}
/// ```
///
/// Edges are under `links` or, as NetworkX writes from version 3.4 on, under `edges`. Nodes are numbered in the order of the
/// file; `ids` of the node frame has their ids, all whole numbers or all texts. Without `"directed": true` every edge is in
/// both directions: the reverses of the edges follow them, as in [`Graph::add_reverse_edges`]. Attributes become columns of
/// nodes and edges: booleans, whole numbers (int64), numbers (float32), lists of numbers `[rows, numbers]`, texts; `weight`
/// of edges is float32 always, and the `key` of a multigraph an attribute. All nodes have the same attributes, and all
/// edges. Attributes of the graph as a whole and other entries of the file are not read.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::load_node_link;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("g.json");
///     let text = r#"{"nodes": [{"id": "a", "x": [1, 2]}, {"id": "b", "x": [0.5, 1]}], "edges": [{"source": "b", "target": "a"}]}"#;
///     std::fs::write(&path, text).unwrap();
///     let g = load_node_link(&path, &Device::flex())?;
///     assert_eq!((g.relation("_E")?.src(), g.nodes(..)?.get::<2>("x")?.dims()), (&[1, 0][..], [2, 2]));
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for other JSON, an entry without `id`, `source` or `target`, ids that occur
/// twice or are numbers here and texts there, an edge of an unknown node, an attribute that some have and others have not,
/// or that is `null`, an object or of another type than before.
///
/// # Cost
/// One pass over the file; memory the columns.
pub fn load_node_link(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let own = [Format::NodeLink, Format::Json];
    let graph = parse(path).map_err(|e| explained(e, path, "node-link JSON", &own))?;
    let graph = graph.build("node-link JSON", device).map_err(|e| e.in_file(path))?;
    graph.map_err(|why| format_error(path, why))
}

fn parse(path: &Path) -> Result<AttributedGraph, DataError> {
    let reader = BufReader::with_capacity(1 << 16, text_of(path, true)?);
    let mut json = serde_json::Deserializer::from_reader(reader);
    let parsed = json.deserialize_map(Document).and_then(|graph| json.end().map(|()| graph));
    parsed.map_err(|e| {
        if e.is_io() {
            return read_error(path, e.into());
        }
        format_error(path, format!("expected node-link JSON, found: {e}"))
    })
}

/// The whole file.
struct Document;

impl<'de> Visitor<'de> for Document {
    type Value = AttributedGraph;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with `nodes` and `links` or `edges`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AttributedGraph, A::Error> {
        let (mut nodes, mut edges) = (None, None);
        let mut directed = None;
        while let Some(key) = map.next_key::<String>()? {
            let repeated = match key.as_str() {
                "nodes" => nodes.replace(map.next_value_seed(List(["id"]))?).is_some(),
                "links" | "edges" => {
                    edges.replace(map.next_value_seed(List(["source", "target"]))?).is_some()
                }
                "directed" => directed.replace(map.next_value::<bool>()?).is_some(),
                _ => map.next_value::<IgnoredAny>().map(|_| false)?,
            };
            if repeated {
                return Err(A::Error::custom(format!("expected one list of {key}, found two")));
            }
        }
        let (Some(([ids], nodes)), Some(([src, dst], edges))) = (nodes, edges) else {
            return Err(A::Error::custom("expected `nodes`, and `links` or `edges`"));
        };
        let undirected = if directed.unwrap_or(false) { Undirected::None } else { Undirected::All };
        Ok(AttributedGraph { ids, nodes, src, dst, edges, undirected })
    }
}

/// A list of objects with these ids, and attributes.
struct List<const N: usize>([&'static str; N]);

/// Ids and attributes of a list.
type Rows<const N: usize> = ([IdColumn; N], NamedColumns);

impl<'de, const N: usize> DeserializeSeed<'de> for List<N> {
    type Value = Rows<N>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Rows<N>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for List<N> {
    type Value = Rows<N>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a list of objects with {:?}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows<N>, A::Error> {
        let mut rows: Rows<N> = (std::array::from_fn(|_| IdColumn::default()), Default::default());
        while seq.next_element_seed(Object { keys: self.0, rows: &mut rows })?.is_some() {}
        Ok(rows)
    }
}

/// One node or edge.
struct Object<'a, const N: usize> {
    keys: [&'static str; N],
    rows: &'a mut Rows<N>,
}

impl<'de, const N: usize> DeserializeSeed<'de> for Object<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Object<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "an object with {:?}", self.keys)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (ids, columns) = self.rows;
        let mut found = [false; N];
        while let Some(key) = map.next_key::<String>()? {
            let cell = map.next_value_seed(Value)?;
            let set = match self.keys.iter().position(|k| *k == key) {
                Some(k) if std::mem::replace(&mut found[k], true) => Err(format!("one `{key}`")),
                Some(k) => match &cell {
                    Cell::Int(id) => ids[k].push(FileId::Int(*id)),
                    Cell::Text(id) => ids[k].push(FileId::Text(id)),
                    _ => Err(format!("a whole number or a text as `{key}`")),
                },
                None => columns.set(&key, cell),
            };
            set.map_err(|expected| A::Error::custom(format!("expected {expected}")))?;
        }
        if let Some(k) = found.iter().position(|found| !found) {
            return Err(A::Error::missing_field(self.keys[k]));
        }
        columns.end_row().map_err(|expected| A::Error::custom(format!("expected {expected}")))
    }
}

/// A value of an attribute.
struct Value;

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Cell, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a boolean, a number, a text or a list of numbers")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Cell, E> {
        Ok(Cell::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Cell, E> {
        Ok(Cell::Int(v))
    }
    fn visit_u64<E: Error>(self, v: u64) -> Result<Cell, E> {
        let wide = || E::custom(format!("expected a number of 64 bits with sign, found {v}"));
        i64::try_from(v).map(Cell::Int).map_err(|_| wide())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Cell, E> {
        Ok(Cell::Float(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Cell, E> {
        Ok(Cell::Text(v.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
        let (mut ints, mut floats) = (vec![], vec![]);
        while let Some(cell) = seq.next_element_seed(Value)? {
            match cell {
                Cell::Int(i) if floats.is_empty() => ints.push(i),
                Cell::Int(i) => floats.push(i as f64),
                Cell::Float(x) => {
                    floats.extend(std::mem::take(&mut ints).into_iter().map(|i| i as f64));
                    floats.push(x);
                }
                _ => return Err(A::Error::custom("expected a list of numbers")),
            }
        }
        Ok(if floats.is_empty() { Cell::Ints(ints) } else { Cell::Floats(floats) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::schema::column_names::WEIGHT;

    fn load(text: &str) -> Result<Graph, DataError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.json");
        std::fs::write(&path, text).unwrap();
        load_node_link(&path, &Device::flex())
    }

    /// `json.dumps(node_link_data(g))` of NetworkX 3.3 (`links`) and 3.4 (`edges`).
    #[test]
    fn what_networkx_writes() {
        let with = |key: &str| {
            format!(
                "{{\"directed\": false, \"multigraph\": false, \"graph\": {{\"name\": \"club\"}}, \"nodes\": [{{\"club\": \"Mr. Hi\", \
                 \"kept\": true, \"id\": 0}}, {{\"club\": \"Officer\", \"kept\": false, \"id\": 33}}, {{\"club\": \"\", \"kept\": true, \
                 \"id\": 5}}], \"{key}\": [{{\"weight\": 4, \"source\": 0, \"target\": 33}}, {{\"weight\": 0.5, \"source\": 5, \
                 \"target\": 5}}]}}"
            )
        };
        for text in [with("links"), with("edges"), format!("\u{feff}{}", with("links"))] {
            let g = load(&text).unwrap();
            let r = g.relation("_E").unwrap();
            assert_eq!((r.src(), r.dst()), (&[0, 2, 1][..], &[1, 2, 0][..]), "nodes in file order");
            let nodes = g.nodes("_N").unwrap();
            assert_eq!(nodes.ids().unwrap().number(33), Some(1));
            assert_eq!(
                nodes.text("club").unwrap().iter().collect::<Vec<_>>(),
                ["Mr. Hi", "Officer", ""]
            );
            let kept = nodes.column("kept").unwrap().to_data();
            assert_eq!(kept.iter::<bool>().collect::<Vec<_>>(), [true, false, true]);
            let weight = g.edges("_E").unwrap().get::<1>(WEIGHT).unwrap().into_data();
            assert_eq!(weight.try_to_vec::<f32>().unwrap(), [4.0, 0.5, 4.0]);
        }
        // Directed, with keys of a multigraph, ids that are texts, edges before nodes.
        let g = load(
            r#"{"links": [{"source": "b", "target": "a", "key": 0, "weight": 1}, {"source": "b", "target": "a", "key": 1, "weight": 2}],
            "directed": true, "multigraph": true, "nodes": [{"id": "a", "x": [1, 2.5]}, {"id": "b", "x": [3, 4]}]}"#,
        )
        .unwrap();
        assert_eq!(g.relation("_E").unwrap().src(), [1, 1]);
        assert_eq!(g.edges("_E").unwrap().to_ints("key").unwrap(), [0, 1]);
        let x = g.nodes("_N").unwrap().get::<2>("x").unwrap().into_data();
        assert_eq!(x.try_to_vec::<f32>().unwrap(), [1.0, 2.5, 3.0, 4.0]);
        let weight = g.edges("_E").unwrap().get::<1>(WEIGHT).unwrap().into_data();
        assert_eq!(weight.try_to_vec::<f32>().unwrap(), [1.0, 2.0], "whole numbers, too");
        assert_eq!(load(r#"{"nodes": [], "links": []}"#).unwrap().total_nodes(), 0);
        assert_eq!(load(r#"{"nodes": [{"id": 7}], "links": []}"#).unwrap().total_nodes(), 1);
    }

    #[test]
    fn refusals() {
        for (text, part) in [
            ("", "expected node-link JSON"),
            ("[]", "expected an object with `nodes`"),
            ("{\"nodes\": []}", "expected `nodes`, and `links` or `edges`"),
            (r#"{"nodes": [], "links": [], "edges": []}"#, "expected one list of edges, found two"),
            (r#"{"nodes": [{}], "links": []}"#, "missing field `id`"),
            (r#"{"nodes": [{"id": 1, "id": 2}], "links": []}"#, "expected one `id`"),
            (r#"{"nodes": [{"id": 1.5}], "links": []}"#, "a whole number or a text as `id`"),
            (r#"{"nodes": [{"id": 1}, {"id": "a"}], "links": []}"#, "ids of one kind"),
            (r#"{"nodes": [{"id": 1}, {"id": 1}], "links": []}"#, "found `1` twice"),
            (r#"{"nodes": [{"id": 1}], "links": [{"source": 1}]}"#, "missing field `target`"),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}"#,
                "edge 1: expected the id of a node, found `2`",
            ),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": "1"}]}"#,
                "expected the id of a node",
            ),
            (
                r#"{"nodes": [{"id": 1, "x": 1}, {"id": 2}], "links": []}"#,
                "the attribute `x`, which other rows have",
            ),
            (r#"{"nodes": [{"id": 1}, {"id": 2, "x": 1}], "links": []}"#, "not the new one `x`"),
            (r#"{"nodes": [{"id": 1, "x": null}], "links": []}"#, "invalid type: null"),
            (r#"{"nodes": [{"id": 1, "x": {}}], "links": []}"#, "invalid type: map"),
            (r#"{"nodes": [{"id": 1, "x": ["a"]}], "links": []}"#, "a list of numbers"),
            (
                r#"{"nodes": [{"id": 1, "x": 1}, {"id": 2, "x": "a"}], "links": []}"#,
                "a number as in the first row (`x`)",
            ),
            (r#"{"nodes": [], "links": []} x"#, "trailing characters"),
            ("<graphml>", "found GraphML; read it with `load_graphml`"),
        ] {
            let e = load(text).unwrap_err().to_string();
            assert!(e.contains("g.json") && e.contains(part), "expected {part:?} in {e}");
        }
    }
}
