//! Reads GraphML files.

use std::cell::Cell as Shared;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Graph};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::columns::data_column::Cell;
use crate::files::{CountingReader, cut, format_error, text_error};
use crate::formats::attributed_graph::{
    AttributeOptions, AttributedGraph, IdColumn, Undirected, with_rounding_remedy,
};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::{Format, explained};
use crate::tables::text::parse_number::parse_i64;

/// Reads a GraphML file as a homogeneous graph (cargo feature `graphml`). NetworkX, igraph, Gephi and yEd write this
/// format. The file may be plain text, gzip or zstd.
///
/// * **Nodes** are numbered in the order of the file. [`ids`](burn_gnn_graph::Frame::ids) of the node frame maps their
///   text ids to numbers and back.
/// * **Edges** keep the order of the file. The reverses of undirected edges (`edgedefault="undirected"`, or
///   `directed="false"` at an edge), except self loops, are appended.
/// * **Attributes**: each `key` of nodes or edges is a column named by its `attr.name`. `boolean` becomes bool, `int` and
///   `long` int64, `float` and `double` float32, `string` texts. The edge attribute `weight` is always float32. A node or
///   edge without a value gets the `default` of the key.
/// * **Ignored**: attributes of the whole graph, ids of edges, and drawing attributes of yEd (`yfiles.type`).
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::load_graphml;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("g.graphml");
///     let text = r#"<?xml version='1.0' encoding='utf-8'?>
///     <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
///       <key id="d0" for="edge" attr.name="weight" attr.type="double" />
///       <graph edgedefault="undirected">
///         <node id="a" /> <node id="b" />
///         <edge source="b" target="a"> <data key="d0">0.5</data> </edge>
///       </graph>
///     </graphml>"#;
///     std::fs::write(&path, text).unwrap();
///     let g = load_graphml(&path, &Device::flex())?;
///     assert_eq!((g.relation("_E")?.src(), g.edges("_E")?.get::<1>("weight")?.dims()), (&[1, 0][..], [2]));
///     Ok(())
/// }
/// ```
///
/// # Errors
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Format`], with the byte offset, for XML that is not well-formed or not GraphML; for an unknown key or
///   node and a repeated id; for a value that does not have the declared type or that f32 cannot represent
///   ([`load_graphml_with`] rounds it); and for an attribute without default that some nodes or edges lack.
/// * [`DataError::Format`], too, for what is not supported: several graphs, graphs nested in nodes, hyperedges, ports.
///
/// # Cost
/// One sequential pass over the file. Memory: the columns, with default values limited to 1 MiB and 4 bytes per byte of
/// the file.
pub fn load_graphml(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    load_graphml_with(path, &AttributeOptions::new(), device)
}

/// [`load_graphml`] with options.
///
/// # Errors
/// Those of [`load_graphml`].
pub fn load_graphml_with(
    path: impl AsRef<Path>,
    options: &AttributeOptions,
    device: &Device,
) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let graph =
        parse(path, options).map_err(|e| explained(e, path, "GraphML", &[Format::Graphml]))?;
    let graph = graph.build("GraphML", device).map_err(|e| e.in_file(path))?;
    graph.map_err(|why| format_error(path, why))
}

/// Declared type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Float,
    Text,
}

/// A declared attribute.
struct Key {
    name: String,
    ty: Type,
    of_nodes: bool,
    of_edges: bool,
    default: Option<Cell>,
    /// Whether the attribute describes a drawing of the graph, as yEd writes it. Its values are skipped.
    is_drawing: bool,
}

/// The element that encloses the current position.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Within {
    Graphml,
    /// Declaration of the attribute with this index.
    Key(usize),
    /// Default value of the attribute with this index.
    Default(usize),
    Graph,
    Node,
    Edge,
    /// A value of a node or edge, with the index of its key; `None` for a value that is skipped.
    Data(Option<usize>),
    /// An element that is skipped.
    Other,
}

/// Bytes that default values may take in any case. Defaults are limited because a short key can give a long value to
/// every node.
const DEFAULTS_FREE: u64 = 1 << 20;
/// Further bytes that default values may take, per byte of the file.
const DEFAULTS_PER_BYTE: u64 = 4;

struct Parser {
    keys: Vec<Key>,
    by_id: BTreeMap<String, usize>,
    /// Values of the current node or edge.
    values: BTreeMap<usize, Cell>,
    graph: AttributedGraph,
    /// Default for the attribute `directed` of edges.
    directed: bool,
    each_undirected: Vec<bool>,
    graphs: usize,
    /// Bytes of the file that have been read.
    read: Rc<Shared<u64>>,
    /// Bytes of default values.
    defaults: u64,
}

fn parse(path: &Path, options: &AttributeOptions) -> Result<AttributedGraph, DataError> {
    let read = Rc::<Shared<u64>>::default();
    let counted = read.clone();
    let inner = text_of(path, options.progress)?;
    let inner = CountingReader { inner, count: move |bytes| counted.set(counted.get() + bytes) };
    let mut xml = Reader::from_reader(BufReader::with_capacity(1 << 16, inner));
    let mut parser = Parser {
        keys: vec![],
        by_id: BTreeMap::new(),
        values: BTreeMap::new(),
        graph: AttributedGraph {
            ids: IdColumn::default(),
            nodes: options.columns(),
            src: IdColumn::default(),
            dst: IdColumn::default(),
            edges: options.columns(),
            undirected: Undirected::None,
        },
        directed: true,
        each_undirected: vec![],
        graphs: 0,
        read,
        defaults: 0,
    };
    let (mut buffer, mut within, mut text) = (vec![], Vec::<Within>::new(), String::new());
    loop {
        buffer.clear();
        let event = match xml.read_event_into(&mut buffer) {
            Ok(event) => event,
            Err(quick_xml::Error::Io(e)) => {
                let copy = std::io::Error::new(e.kind(), e.to_string());
                return Err(text_error(path, copy));
            }
            Err(e) => {
                let at = xml.error_position();
                return Err(format_error(path, format!("byte {at}: expected XML, found: {e}")));
            }
        };
        let step = match event {
            Event::Start(e) => parser.open(&e, within.last()).map(|w| {
                // The text of a value starts here.
                if matches!(w, Within::Data(_) | Within::Default(_)) {
                    text.clear();
                }
                within.push(w);
            }),
            Event::Empty(e) => parser.open(&e, within.last()).and_then(|w| {
                text.clear();
                parser.close(w, &text)
            }),
            Event::End(_) => match within.pop() {
                Some(w) => parser.close(w, &text),
                None => Err("expected no closing tag".into()),
            },
            Event::Text(t) => {
                text.push_str(&t);
                Ok(())
            }
            Event::CData(t) => {
                text.push_str(&t);
                Ok(())
            }
            Event::GeneralRef(r) => entity(&r).map(|c| text.push(c)),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => Ok(()),
        };
        // Text outside of values is dropped.
        if !matches!(within.last(), Some(Within::Data(_) | Within::Default(_))) {
            text.clear();
        }
        step.map_err(|why: String| {
            format_error(path, format!("before byte {}: {why}", xml.buffer_position()))
        })?;
    }
    if !within.is_empty() || parser.graphs == 0 {
        return Err(format_error(
            path,
            "expected a whole GraphML file with a graph, found the end",
        ));
    }
    let mut graph = parser.graph;
    graph.undirected = Undirected::Some(parser.each_undirected);
    Ok(graph)
}

/// Resolves a character reference.
fn entity(name: &str) -> Result<char, String> {
    let numbered =
        |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    let c = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        name => match name.strip_prefix('#') {
            Some(number) => match number.strip_prefix('x') {
                Some(hex) => numbered(hex, 16),
                None => numbered(number, 10),
            },
            None => None,
        },
    };
    c.ok_or_else(|| format!("expected a known entity, found `&{};`", cut(name)))
}

/// Value of an XML attribute.
fn attribute(e: &BytesStart, name: &str) -> Result<Option<String>, String> {
    let found =
        e.try_get_attribute(name).map_err(|e| format!("expected attributes, found: {e}"))?;
    let value = |a: quick_xml::events::attributes::Attribute<'_>| {
        a.normalized_value(quick_xml::XmlVersion::Implicit1_0).map(|v| v.into_owned())
    };
    let value = found.map(value).transpose();
    value.map_err(|e| format!("expected a value of `{name}`, found: {e}"))
}

fn required(e: &BytesStart, name: &str, of: &str) -> Result<String, String> {
    attribute(e, name)?.ok_or_else(|| format!("expected `{name}` of {of}, found none"))
}

impl Parser {
    /// Handles an opening tag inside `parent` and returns the kind of the new element.
    fn open(&mut self, e: &BytesStart, parent: Option<&Within>) -> Result<Within, String> {
        let name = e.local_name();
        let name: &str = name.as_ref();
        match (parent, name) {
            (None, "graphml") => Ok(Within::Graphml),
            (None, other) => Err(format!("expected `graphml`, found `{}`", cut(other))),
            (Some(Within::Data(None) | Within::Other), _) => Ok(Within::Other),
            (Some(Within::Data(Some(_)) | Within::Default(_)), other) => {
                Err(format!("expected a value, found an element `{}`", cut(other)))
            }
            (Some(Within::Graphml), "key") => self.key(e).map(Within::Key),
            (Some(Within::Graphml), "graph") if self.graphs == 0 => {
                self.graphs = 1;
                self.directed = match &*required(e, "edgedefault", "a graph")? {
                    "directed" => true,
                    "undirected" => false,
                    other => {
                        let other = cut(other);
                        return Err(format!(
                            "expected `directed` or `undirected`, found `{other}`"
                        ));
                    }
                };
                Ok(Within::Graph)
            }
            (_, "graph") => Err("expected one graph, found another, which is not supported".into()),
            (_, "hyperedge" | "port" | "endpoint") => {
                Err(format!("expected nodes and edges, found a {name}, which is not supported"))
            }
            (Some(&Within::Key(key)), "default") => Ok(Within::Default(key)),
            (Some(Within::Graph), "node") => {
                self.graph.ids.push(FileId::Text(&required(e, "id", "a node")?))?;
                Ok(Within::Node)
            }
            (Some(Within::Graph), "edge") => {
                self.graph.src.push(FileId::Text(&required(e, "source", "an edge")?))?;
                self.graph.dst.push(FileId::Text(&required(e, "target", "an edge")?))?;
                let directed = match attribute(e, "directed")?.as_deref() {
                    None => self.directed,
                    Some("true") => true,
                    Some("false") => false,
                    Some(other) => {
                        let other = cut(other);
                        return Err(format!(
                            "expected `true` or `false` of `directed`, found `{other}`"
                        ));
                    }
                };
                self.each_undirected.push(!directed);
                Ok(Within::Edge)
            }
            (Some(parent @ (Within::Node | Within::Edge)), "data") => {
                let id = required(e, "key", "a value")?;
                let key = self.by_id.get(&id).copied();
                let key =
                    key.ok_or_else(|| format!("expected a declared key, found `{}`", cut(&id)))?;
                let declared = &self.keys[key];
                let fits =
                    if *parent == Within::Node { declared.of_nodes } else { declared.of_edges };
                if declared.is_drawing {
                    return Ok(Within::Data(None));
                }
                if !fits {
                    return Err(format!("expected a key of this element, found `{}`", cut(&id)));
                }
                Ok(Within::Data(Some(key)))
            }
            // Attributes of the graph, and descriptions.
            (Some(Within::Graphml | Within::Graph | Within::Key(_)), "data" | "desc") => {
                Ok(Within::Other)
            }
            (Some(Within::Node | Within::Edge), "desc") => Ok(Within::Other),
            (Some(Within::Graphml), _) => Ok(Within::Other),
            (_, other) => Err(format!("expected an element of GraphML, found `{}`", cut(other))),
        }
    }

    fn key(&mut self, e: &BytesStart) -> Result<usize, String> {
        let id = required(e, "id", "a key")?;
        let of = attribute(e, "for")?.unwrap_or_else(|| "all".into());
        let (of_nodes, of_edges) = (matches!(&*of, "node" | "all"), matches!(&*of, "edge" | "all"));
        let is_drawing = attribute(e, "yfiles.type")?.is_some();
        let ty = match attribute(e, "attr.type")?.as_deref() {
            None | Some("string") => Type::Text,
            Some("boolean") => Type::Bool,
            Some("int" | "long" | "integer") => Type::Int,
            Some("float" | "double") => Type::Float,
            Some(other) => {
                let other = cut(other);
                return Err(format!(
                    "expected boolean, int, long, float, double or string, found `{other}`"
                ));
            }
        };
        let name = attribute(e, "attr.name")?.unwrap_or_else(|| id.clone());
        if self.by_id.insert(id.clone(), self.keys.len()).is_some() {
            return Err(format!("expected keys of different ids, found `{}` twice", cut(&id)));
        }
        self.keys.push(Key { name, ty, of_nodes, of_edges, default: None, is_drawing });
        Ok(self.keys.len() - 1)
    }

    /// Handles a closing tag, with the text of the element.
    fn close(&mut self, within: Within, text: &str) -> Result<(), String> {
        match within {
            Within::Default(key) if !self.keys[key].is_drawing => {
                self.keys[key].default = Some(cell(&self.keys[key], text)?);
                Ok(())
            }
            Within::Data(Some(key)) => {
                let value = cell(&self.keys[key], text)?;
                match self.values.insert(key, value) {
                    None => Ok(()),
                    Some(_) => {
                        Err(format!("expected one value of `{}`", cut(&self.keys[key].name)))
                    }
                }
            }
            Within::Node | Within::Edge => self.end_row(within == Within::Node),
            _ => Ok(()),
        }
    }

    fn end_row(&mut self, node: bool) -> Result<(), String> {
        let columns = if node { &mut self.graph.nodes } else { &mut self.graph.edges };
        let mut values = std::mem::take(&mut self.values);
        for (index, key) in self.keys.iter().enumerate() {
            let declared = if node { key.of_nodes } else { key.of_edges };
            if !declared || key.is_drawing {
                continue;
            }
            let value = values.remove(&index).or_else(|| {
                let default = key.default.clone()?;
                self.defaults += match &default {
                    Cell::Text(text) => 8 + text.len() as u64,
                    _ => 8,
                };
                Some(default)
            });
            if let Some(value) = value {
                columns
                    .set(&key.name, value)
                    .map_err(|expected| format!("expected {}", with_rounding_remedy(expected)))?;
            }
        }
        let most = DEFAULTS_FREE + self.read.get().saturating_mul(DEFAULTS_PER_BYTE);
        if self.defaults > most {
            return Err(format!(
                "expected default values of at most {most} bytes, found more; write each value explicitly"
            ));
        }
        let element = if node { "node" } else { "edge" };
        columns.end_row().map_err(|expected| {
            format!("expected {expected}, of this {element}; give it a value or the key a default")
        })
    }
}

fn cell(key: &Key, text: &str) -> Result<Cell, String> {
    let word = text.trim();
    let value = match key.ty {
        Type::Text => Some(Cell::Text(text.to_owned())),
        Type::Bool => match word {
            "true" | "True" | "1" => Some(Cell::Bool(true)),
            "false" | "False" | "0" => Some(Cell::Bool(false)),
            _ => None,
        },
        Type::Int => parse_i64(word.as_bytes()).map(Cell::Int),
        Type::Float => word.parse().ok().map(Cell::Float),
    };
    value.ok_or_else(|| {
        let what = match key.ty {
            Type::Text => "a text",
            Type::Bool => "`true` or `false`",
            Type::Int => "an integer",
            Type::Float => "a number",
        };
        format!("expected {what} (`{}`), found `{}`", cut(&key.name), cut(word))
    })
}

#[cfg(test)]
mod tests {
    use burn_gnn_graph::GraphError;

    use super::*;
    use crate::tables::schema::column_names::WEIGHT;

    fn load(text: &str) -> Result<Graph, DataError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.graphml");
        std::fs::write(&path, text).unwrap();
        load_graphml(&path, &Device::flex())
    }

    /// A file of `networkx.write_graphml`, version 3.
    const NETWORKX: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key id="d3" for="edge" attr.name="weight" attr.type="long" />
  <key id="d2" for="node" attr.name="kept" attr.type="boolean" />
  <key id="d1" for="node" attr.name="age" attr.type="long" />
  <key id="d0" for="node" attr.name="name" attr.type="string" />
  <graph edgedefault="undirected">
    <node id="0">
      <data key="d0">Ann &amp; &lt;Bo&gt; &#233;</data>
      <data key="d1">41</data>
      <data key="d2">True</data>
    </node>
    <node id="7">
      <data key="d0"></data>
      <data key="d1">-3</data>
      <data key="d2">False</data>
    </node>
    <edge source="0" target="7">
      <data key="d3">4</data>
    </edge>
    <edge source="7" target="7">
      <data key="d3">5</data>
    </edge>
  </graph>
</graphml>
"#;

    #[test]
    fn files_of_networkx() {
        for text in [NETWORKX.to_owned(), format!("\u{feff}{NETWORKX}")] {
            let g = load(&text).unwrap();
            let r = g.relation("_E").unwrap();
            assert_eq!((r.src(), r.dst()), (&[0, 1, 1][..], &[1, 1, 0][..]));
            let nodes = g.nodes("_N").unwrap();
            assert_eq!(nodes.ids().unwrap().number("7"), Some(1));
            assert_eq!(
                nodes.text("name").unwrap().iter().collect::<Vec<_>>(),
                ["Ann & <Bo> é", ""]
            );
            assert_eq!(nodes.to_ints("age").unwrap(), [41, -3]);
            let kept = nodes.column("kept").unwrap().to_data();
            assert_eq!(kept.iter::<bool>().collect::<Vec<_>>(), [true, false]);
            let weight = g.edges("_E").unwrap().get::<1>(WEIGHT).unwrap().into_data();
            assert_eq!(weight.try_to_vec::<f32>().unwrap(), [4.0, 5.0, 4.0]);
        }
    }

    /// Namespace prefixes, defaults, directions of single edges, drawings of yEd, comments, CDATA.
    #[test]
    fn files_of_other_programs() {
        let text = r#"<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!-- Created by igraph -->
<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <g:key for="node" id="d6" yfiles.type="nodegraphics"/>
  <g:key id="c" for="node" attr.name="color" attr.type="string"><g:default>yellow</g:default></g:key>
  <g:key id="w" for="edge" attr.name="x" attr.type="double"><g:default>1.5</g:default></g:key>
  <g:graph id="G" edgedefault="directed">
    <g:data key="d0"><y:Any/></g:data>
    <g:node id="a"><g:data key="c"><![CDATA[gr<een]]></g:data><g:data key="d6"><y:ShapeNode><y:Fill color="x"/></y:ShapeNode></g:data></g:node>
    <g:node id="b"/>
    <g:edge id="e0" source="a" target="b"/>
    <g:edge source="b" target="a" directed="false"><g:data key="w">NaN</g:data></g:edge>
  </g:graph>
</g:graphml>"#;
        let g = load(text).unwrap();
        assert_eq!(g.relation("_E").unwrap().src(), [0, 1, 0]);
        let color: Vec<&str> = g.nodes("_N").unwrap().text("color").unwrap().iter().collect();
        assert_eq!(color, ["gr<een", "yellow"]);
        let x: Vec<f32> =
            g.edges("_E").unwrap().get::<1>("x").unwrap().into_data().try_to_vec().unwrap();
        assert!(x[0] == 1.5 && x[1].is_nan() && x[2].is_nan(), "{x:?}");
    }

    /// A weight or attribute that f32 cannot represent is an error.
    #[test]
    fn numbers_beyond_f32_are_typed_errors() {
        let text = |ty: &str, value: &str| {
            format!(
                "<graphml><key id=\"w\" for=\"edge\" attr.name=\"weight\" attr.type=\"{ty}\"/><graph edgedefault=\"directed\"><node id=\"a\"/>\
                 <edge source=\"a\" target=\"a\"><data key=\"w\">{value}</data></edge></graph></graphml>"
            )
        };
        for value in ["1e300", "1e-60", "16777217.0", "-1e39"] {
            let e = load(&text("double", value)).unwrap_err();
            assert!(matches!(e, DataError::Format { .. }), "{e:?}");
            let part = "expected a number that f32 can represent (`weight`)";
            assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        }
        // An integer weight is checked when the column is converted to f32.
        let e = load(&text("long", "16777217")).unwrap_err();
        assert!(matches!(e.cause(), DataError::Graph(GraphError::Setting { arg: "weight", .. })));
        for (ty, value) in [("double", "0.1"), ("double", "INF"), ("long", "16777216")] {
            assert!(load(&text(ty, value)).is_ok(), "{value}");
        }
        // Rounded and counted by an option.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.graphml");
        let options = AttributeOptions::new().round_values().with_progress(false);
        for (read, (ty, value, near)) in (1..).zip([
            ("double", "1e300", f32::INFINITY),
            ("double", "-1e-60", 0.0),
            ("long", "16777217", 16_777_216.0),
        ]) {
            std::fs::write(&path, text(ty, value)).unwrap();
            let g = load_graphml_with(&path, &options, &Device::flex()).unwrap();
            let weight = g.edges("_E").unwrap().get::<1>("weight").unwrap().into_data();
            assert_eq!(weight.try_to_vec::<f32>().unwrap(), [near]);
            assert_eq!(options.rounded.get(), read);
        }
    }

    #[test]
    fn errors_name_the_expected_content() {
        let graph = |inner: &str| {
            format!(
                "<graphml><key id=\"i\" for=\"node\" attr.name=\"n\" attr.type=\"int\"/><graph edgedefault=\"directed\">{inner}</graph></graphml>"
            )
        };
        for (text, part) in [
            (String::new(), "expected a whole GraphML file"),
            ("<graphml>".into(), "expected a whole GraphML file"),
            ("<graphml></graphml>".into(), "expected a whole GraphML file"),
            ("<graphml><graph>".into(), "expected `edgedefault` of a graph"),
            ("<graphml></x>".into(), "expected XML, found"),
            ("<gexf></gexf>".into(), "found GEXF; not supported; save it as GraphML"),
            (graph("<node/>"), "expected `id` of a node"),
            (graph("<node id=\"a\"/><node id=\"a\"/>"), "found `a` twice"),
            (
                graph("<node id=\"a\"/><edge source=\"a\" target=\"b\"/>"),
                "edge 1: expected a node id, found `b`",
            ),
            (graph("<edge source=\"a\"/>"), "expected `target` of an edge"),
            (graph("<hyperedge/>"), "found a hyperedge, which is not supported"),
            (
                graph("<node id=\"a\"><graph edgedefault=\"directed\"/></node>"),
                "expected one graph",
            ),
            (
                graph("<node id=\"a\"><data key=\"x\">1</data></node>"),
                "expected a declared key, found `x`",
            ),
            (
                graph("<node id=\"a\"><data key=\"i\">1.5</data></node>"),
                "expected an integer (`n`), found `1.5`",
            ),
            (
                graph("<node id=\"a\"><data key=\"i\">1</data></node><node id=\"b\"/>"),
                "expected the attribute `n`, which other rows have, of this node",
            ),
            (
                graph("<node id=\"a\"><data key=\"i\"><b/></data></node>"),
                "expected a value, found an element `b`",
            ),
            (graph("<node id=\"a\"><data key=\"i\">&x;</data></node>"), "found `&x;`"),
            (graph("<vertex/>"), "expected an element of GraphML, found `vertex`"),
            (
                "{\"nodes\": [], \"links\": []}".into(),
                "found node-link JSON; read it with `load_node_link`",
            ),
        ] {
            let e = load(&text).unwrap_err().to_string();
            assert!(e.contains("g.graphml") && e.contains(part), "expected {part:?} in {e}");
        }
        // A long default for a thousand nodes.
        let long = "x".repeat(100_000);
        let nodes: String = (0..1_000).map(|i| format!("<node id=\"{i}\"/>")).collect();
        let text = format!(
            "<graphml><key id=\"i\" for=\"node\"><default>{long}</default></key><graph edgedefault=\"directed\">{nodes}</graph></graphml>"
        );
        assert!(load(&text).unwrap_err().to_string().contains("default values of at most"));
    }
}
