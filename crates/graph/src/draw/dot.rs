//! Renders graphs and drawings as Graphviz text.

use std::fmt::Write;

use crate::draw::drawing::Drawing;
use crate::graph::Graph;
use burn_gnn_structure::Schema;

/// Fill colours of node types.
const COLORS: [&str; 8] =
    ["#a6cee3", "#b2df8a", "#fb9a99", "#fdbf6f", "#cab2d6", "#ffff99", "#8dd3c7", "#d9d9d9"];

impl Graph {
    /// Renders the graph as Graphviz text, for `dot -Tsvg`. For small graphs, as it writes every node and edge.
    ///
    /// A node is labelled with its id in files ([`Frame::ids`](crate::Frame::ids)) or its number, and with its type if there
    /// are several; an edge is labelled with its relation if there are several edge types. [`Drawing::to_dot`] labels the
    /// nodes of a subgraph with their original ids, and draws undirected edges once.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let dot = Graph::homogeneous(2, vec![0], vec![1])?.to_dot();
    /// assert_eq!(dot.lines().next(), Some("digraph {"));
    /// assert!(dot.contains("n0_0 -> n0_1"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Panics
    /// Edges in a file cannot be read; [`read_stored`](Self::read_stored) returns the error.
    ///
    /// # Cost
    /// `O(V + E)`; the text has about 40 bytes per node and 20 per edge.
    pub fn to_dot(&self) -> String {
        let schema = self.schema();
        let mut out = Dot::new(schema);
        for (t, frame) in self.node_frames().iter().enumerate() {
            for v in 0..frame.len() {
                let id = frame.ids().and_then(|ids| ids.id(v as u32));
                let id = id.map_or_else(|| v.to_string(), |id| id.to_string());
                out.node((t, v), &id, COLORS[t % COLORS.len()], "");
            }
        }
        for (t, relation) in self.relations().iter().enumerate() {
            let (s, d) = schema.endpoints(t);
            for (&u, &v) in relation.src().iter().zip(relation.dst()) {
                out.edge(t, (s, u as usize), (d, v as usize), &[]);
            }
        }
        out.end()
    }
}

impl Drawing<'_> {
    /// Renders the picture as Graphviz text, as [`Graph::to_dot`], with labels, groups, highlights and weights. Graphviz
    /// computes the layout.
    pub fn to_dot(&self) -> String {
        let (g, offsets) = (self.graph(), self.offsets());
        let (highlighted, (lines, _)) = (self.is_highlighted(), self.lines());
        let mut out = Dot::new(g.schema());
        for (t, &count) in g.node_counts().iter().enumerate() {
            for v in 0..count {
                let color = match self.group(t, v) {
                    Some((group, _)) => COLORS[group as usize % COLORS.len()],
                    None => COLORS[t % COLORS.len()],
                };
                let more = if highlighted[offsets[t] + v] { ", penwidth=3" } else { "" };
                out.node((t, v), &self.label(t, v), color, more);
            }
        }
        for line in &lines {
            let (s, d) = g.schema().endpoints(line.etype);
            let mut attributes = vec![];
            attributes.extend(line.reverse.map(|_| "dir=none".to_owned()));
            attributes.extend(line.weight.map(|w| format!("tooltip=\"weight {w}\"")));
            let ends = (line.ends.0 - offsets[s], line.ends.1 - offsets[d]);
            out.edge(line.etype, (s, ends.0), (d, ends.1), &attributes);
        }
        out.end()
    }
}

/// A text in Graphviz's language.
struct Dot<'a> {
    schema: &'a Schema,
    out: String,
}

impl<'a> Dot<'a> {
    fn new(schema: &'a Schema) -> Self {
        Self { schema, out: "digraph {\n  node [shape=ellipse, style=filled];\n".to_owned() }
    }
    /// Node `v` of type `t`, called `id`.
    fn node(&mut self, (t, v): (usize, usize), id: &str, color: &str, more: &str) {
        let ntypes = self.schema.ntypes();
        let label = if ntypes.len() > 1 { format!("{} {id}", ntypes[t]) } else { id.to_owned() };
        // A `String` takes every text.
        let _ = writeln!(
            self.out,
            "  n{t}_{v} [label={}, fillcolor=\"{color}\"{more}];",
            quoted(&label)
        );
    }
    /// An edge of type `t` from a node to another.
    fn edge(&mut self, t: usize, from: (usize, usize), to: (usize, usize), more: &[String]) {
        let etypes = self.schema.etypes();
        let label = (etypes.len() > 1).then(|| format!("label={}", quoted(&etypes[t].relation)));
        let attributes: Vec<String> = label.into_iter().chain(more.iter().cloned()).collect();
        let attributes = match &attributes[..] {
            [] => String::new(),
            some => format!(" [{}]", some.join(", ")),
        };
        let _ = writeln!(self.out, "  n{}_{} -> n{}_{}{attributes};", from.0, from.1, to.0, to.1);
    }
    fn end(mut self) -> String {
        self.out.push_str("}\n");
        self.out
    }
}

/// A text in double quotes, as Graphviz reads it; line ends are written as `\n`.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".into(),
            '\\' => "\\\\".into(),
            '\n' => "\\n".into(),
            c if c.is_control() => " ".into(),
            c => String::from(c),
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use crate::draw::drawing::Drawing;
    use crate::graph::Graph;
    use burn_gnn_structure::{Ids, NodeIds};

    #[test]
    fn drawings_have_original_ids_and_lines() {
        // 7 - 2 in both directions, 7 -> 4, and a self loop.
        let g = Graph::homogeneous(9, vec![7, 2, 7, 7], vec![2, 7, 4, 7]).unwrap();
        let around = g.node_subgraph([("_N", [7, 4, 2])], crate::Relabel::Yes).unwrap();
        let drawing = Drawing::of_subgraph(&around).unwrap().with_highlighted("_N", &[0]).unwrap();
        let drawing = drawing.undirected().with_edge_weights("_E", &[0.5, 2.0, 1.0, 3.0]).unwrap();
        let expected = [
            "digraph {",
            "  node [shape=ellipse, style=filled];",
            r##"  n0_0 [label="7", fillcolor="#a6cee3", penwidth=3];"##,
            r##"  n0_1 [label="4", fillcolor="#a6cee3"];"##,
            r##"  n0_2 [label="2", fillcolor="#a6cee3"];"##,
            r#"  n0_0 -> n0_2 [dir=none, tooltip="weight 2"];"#,
            r#"  n0_0 -> n0_1 [tooltip="weight 1"];"#,
            r#"  n0_0 -> n0_0 [tooltip="weight 3"];"#,
            "}",
        ];
        assert_eq!(drawing.to_dot().lines().collect::<Vec<_>>(), expected);
        let plain = Drawing::new(&g).unwrap();
        assert_eq!(plain.to_dot(), g.to_dot());
        let strong = drawing.with_min_weight(1.5).unwrap().to_dot();
        assert!(strong.contains("n0_0 -> n0_2") && !strong.contains("n0_0 -> n0_1"));
    }

    #[test]
    fn nodes_and_edges_of_all_types() {
        let mut g = Graph::builder()
            .nodes("author", 2)
            .nodes("paper", 1)
            .edges(("author", "writes", "paper"), vec![1, 1], vec![0, 0])
            .edges(("paper", "cites", "paper"), vec![0], vec![0])
            .build()
            .unwrap();
        let names = NodeIds::new(Ids::Text(["Ann \"A\" \\ B", "line\nend"].into_iter().collect()));
        g.nodes_mut("author").unwrap().set_ids(names).unwrap();
        let expected = [
            "digraph {",
            "  node [shape=ellipse, style=filled];",
            r##"  n0_0 [label="author Ann \"A\" \\ B", fillcolor="#a6cee3"];"##,
            r##"  n0_1 [label="author line\nend", fillcolor="#a6cee3"];"##,
            r##"  n1_0 [label="paper 0", fillcolor="#b2df8a"];"##,
            r#"  n0_1 -> n1_0 [label="writes"];"#,
            r#"  n0_1 -> n1_0 [label="writes"];"#,
            r#"  n1_0 -> n1_0 [label="cites"];"#,
            "}",
        ];
        assert_eq!(g.to_dot().lines().collect::<Vec<_>>(), expected);
        assert_eq!(
            Graph::builder().build().unwrap().to_dot(),
            "digraph {\n  node [shape=ellipse, style=filled];\n}\n"
        );
    }
}
