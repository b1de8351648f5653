//! Reads node-link JSON files.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Graph};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::columns::data_column::{Cell, NamedColumns};
use crate::files::{format_error, read_error};
use crate::formats::attributed_graph::{
    AttributeOptions, AttributedGraph, IdColumn, Undirected, with_rounding_remedy,
};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::{Format, explained};

/// Reads node-link JSON as a homogeneous graph. NetworkX (`node_link_data`) and D3 write this format. The file may be plain
/// text, gzip or zstd.
///
/// ```text
/// {"directed": false, "multigraph": false, "graph": {},
///  "nodes": [{"id": 0, "club": "Mr. Hi"}, {"id": 33, "club": "Officer"}],
///  "links": [{"source": 0, "target": 33, "weight": 4}]}
/// ```
///
/// * **Nodes** are numbered in the order of the file. [`ids`](burn_gnn_graph::Frame::ids) of the node frame maps their ids,
///   all integers or all texts, to numbers and back.
/// * **Edges** are the list `links`, or `edges` in files of NetworkX 3.4 and later. Unless `directed` is true, the reverses
///   of all edges except self loops are appended.
/// * **Attributes** are columns of nodes and edges: bool, int64, float32, texts, or `[rows, length]` for lists of numbers.
///   The edge attribute `weight` is always float32. The `key` of a multigraph is an attribute. All nodes must have the
///   same attributes, and all edges.
/// * **Ignored**: attributes of the whole graph and unknown keys of the file.
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
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Format`], with line and column, for other JSON; for a node without `id` or an edge without `source` or
///   `target`; for repeated ids, and ids of both types; for an edge with an unknown endpoint; and for an attribute that is
///   missing, `null`, an object, of another type than in the first row, or a number that f32 cannot represent
///   ([`load_node_link_with`] rounds it).
///
/// # Cost
/// One sequential pass over the file. Memory: the columns.
pub fn load_node_link(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    load_node_link_with(path, &AttributeOptions::new(), device)
}

/// [`load_node_link`] with options.
///
/// # Errors
/// Those of [`load_node_link`].
pub fn load_node_link_with(
    path: impl AsRef<Path>,
    options: &AttributeOptions,
    device: &Device,
) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let accepted = [Format::NodeLink, Format::Json];
    let graph =
        parse(path, options).map_err(|e| explained(e, path, "node-link JSON", &accepted))?;
    let graph = graph.build("node-link JSON", device).map_err(|e| e.in_file(path))?;
    graph.map_err(|why| format_error(path, why))
}

fn parse(path: &Path, options: &AttributeOptions) -> Result<AttributedGraph, DataError> {
    let reader = BufReader::with_capacity(1 << 16, text_of(path, options.progress)?);
    let mut json = serde_json::Deserializer::from_reader(reader);
    let parsed =
        json.deserialize_map(Document(options)).and_then(|graph| json.end().map(|()| graph));
    parsed.map_err(|e| {
        if e.is_io() {
            return read_error(path, e.into());
        }
        format_error(path, format!("expected node-link JSON, found: {e}"))
    })
}

/// Visitor of the top-level object.
struct Document<'a>(&'a AttributeOptions);

impl<'de> Visitor<'de> for Document<'_> {
    type Value = AttributedGraph;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with `nodes` and `links` or `edges`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AttributedGraph, A::Error> {
        let (mut nodes, mut edges) = (None, None);
        let mut directed = None;
        while let Some(key) = map.next_key::<String>()? {
            let repeated = match key.as_str() {
                "nodes" => nodes.replace(map.next_value_seed(List(["id"], self.0))?).is_some(),
                "links" | "edges" => {
                    let list = List(["source", "target"], self.0);
                    edges.replace(map.next_value_seed(list)?).is_some()
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

/// Visitor of a list of objects with these id fields and with attributes.
struct List<'a, const N: usize>([&'static str; N], &'a AttributeOptions);

/// Id columns and attribute columns of a list.
type Rows<const N: usize> = ([IdColumn; N], NamedColumns);

impl<'de, const N: usize> DeserializeSeed<'de> for List<'_, N> {
    type Value = Rows<N>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Rows<N>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for List<'_, N> {
    type Value = Rows<N>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a list of objects with {:?}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows<N>, A::Error> {
        let mut rows: Rows<N> = (std::array::from_fn(|_| IdColumn::default()), self.1.columns());
        while seq.next_element_seed(Object { keys: self.0, rows: &mut rows })?.is_some() {}
        Ok(rows)
    }
}

/// Visitor of one node or edge.
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
                    _ => Err(format!("an integer or a text as `{key}`")),
                },
                None => columns.set(&key, cell).map_err(with_rounding_remedy),
            };
            set.map_err(|expected| A::Error::custom(format!("expected {expected}")))?;
        }
        if let Some(k) = found.iter().position(|found| !found) {
            return Err(A::Error::missing_field(self.keys[k]));
        }
        columns.end_row().map_err(|expected| A::Error::custom(format!("expected {expected}")))
    }
}

/// Visitor of the value of an attribute.
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
        let wide = || E::custom(format!("expected a signed 64-bit integer, found {v}"));
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
    use burn_gnn_graph::GraphError;

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
    fn files_of_networkx() {
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
        // A directed multigraph with text ids and edges before nodes.
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
        assert_eq!(weight.try_to_vec::<f32>().unwrap(), [1.0, 2.0], "integer weights are float32");
        assert_eq!(load(r#"{"nodes": [], "links": []}"#).unwrap().total_nodes(), 0);
        assert_eq!(load(r#"{"nodes": [{"id": 7}], "links": []}"#).unwrap().total_nodes(), 1);
    }

    #[test]
    fn errors_name_the_expected_content() {
        for (text, part) in [
            ("", "expected node-link JSON"),
            ("[]", "expected an object with `nodes`"),
            ("{\"nodes\": []}", "expected `nodes`, and `links` or `edges`"),
            (r#"{"nodes": [], "links": [], "edges": []}"#, "expected one list of edges, found two"),
            (r#"{"nodes": [{}], "links": []}"#, "missing field `id`"),
            (r#"{"nodes": [{"id": 1, "id": 2}], "links": []}"#, "expected one `id`"),
            (r#"{"nodes": [{"id": 1.5}], "links": []}"#, "an integer or a text as `id`"),
            (r#"{"nodes": [{"id": 1}, {"id": "a"}], "links": []}"#, "ids of one type"),
            (r#"{"nodes": [{"id": 1}, {"id": 1}], "links": []}"#, "found `1` twice"),
            (r#"{"nodes": [{"id": 1}], "links": [{"source": 1}]}"#, "missing field `target`"),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}"#,
                "edge 1: expected a node id, found `2`",
            ),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": "1"}]}"#,
                "expected a node id",
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
            (
                r#"{"nodes": [{"id": 1, "x": 1e300}], "links": []}"#,
                "a number that f32 can represent (`x`)",
            ),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 1, "weight": 1e-60}]}"#,
                "a number that f32 can represent (`weight`)",
            ),
            (
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 1, "weight": 16777217.0}]}"#,
                "a number that f32 can represent (`weight`)",
            ),
            (r#"{"nodes": [], "links": []} x"#, "trailing characters"),
            ("<graphml>", "found GraphML; read it with `load_graphml`"),
        ] {
            let e = load(text).unwrap_err().to_string();
            assert!(e.contains("g.json") && e.contains(part), "expected {part:?} in {e}");
        }
    }

    #[test]
    fn numbers_beyond_f32_are_rounded_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.json");
        let text = r#"{"nodes": [{"id": 1, "x": [1e300, 0.5, 16777217]}, {"id": 2, "x": [1, 2, 3]}],
            "links": [{"source": 1, "target": 2, "weight": 16777217}, {"source": 2, "target": 2, "weight": 3}]}"#;
        std::fs::write(&path, text).unwrap();
        let e = load_node_link(&path, &Device::flex()).unwrap_err().to_string();
        assert!(e.contains("`AttributeOptions::round_values` takes the nearest f32"), "{e}");
        let options = AttributeOptions::new().round_values().with_progress(false);
        let g = load_node_link_with(&path, &options, &Device::flex()).unwrap();
        let x = g.nodes("_N").unwrap().get::<2>("x").unwrap().into_data();
        assert_eq!(
            x.try_to_vec::<f32>().unwrap(),
            [f32::INFINITY, 0.5, 16_777_216.0, 1.0, 2.0, 3.0]
        );
        let weight = g.edges("_E").unwrap().get::<1>(WEIGHT).unwrap().into_data();
        assert_eq!(weight.try_to_vec::<f32>().unwrap(), [16_777_216.0, 3.0, 16_777_216.0]);
        // The reverse of the first edge is no further number of the file.
        assert_eq!(options.rounded.get(), 3);
    }

    /// An integer weight is checked when the column is converted to f32.
    #[test]
    fn integer_weights_beyond_f32_are_typed_errors() {
        let text = |weight: i64| {
            format!(
                r#"{{"nodes": [{{"id": 1}}], "links": [{{"source": 1, "target": 1, "weight": {weight}}}]}}"#
            )
        };
        let e = load(&text((1 << 24) + 1)).unwrap_err();
        assert!(e.to_string().contains("g.json") && e.to_string().contains("16777217"), "{e}");
        assert!(matches!(e.cause(), DataError::Graph(GraphError::Setting { arg: "weight", .. })));
        assert!(load(&text(1 << 24)).is_ok());
    }
}
