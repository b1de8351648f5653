//! Writes a graph in Graphviz's language.

use std::fmt::Write;

use crate::Graph;

/// Fill colours of node types, one after the other.
const COLORS: [&str; 8] =
    ["#a6cee3", "#b2df8a", "#fb9a99", "#fdbf6f", "#cab2d6", "#ffff99", "#8dd3c7", "#d9d9d9"];

impl Graph {
    /// The graph in Graphviz's language, for `dot -Tsvg` and its relatives. Every node and edge is written: for small
    /// graphs and subgraphs.
    ///
    /// A node is labelled by its id in files ([`Frame::ids`](crate::Frame::ids)) if there is one, else by its number,
    /// with its type where there are several; an edge by its relation where there are several edge types.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let dot = Graph::homogeneous(2, vec![0], vec![1])?.to_dot();
    /// assert_eq!(dot.lines().next(), Some("digraph {"));
    /// assert!(dot.contains("n0_0 -> n0_1"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Cost
    /// `O(V + E)`, in a text of some 40 bytes per node and 20 per edge.
    pub fn to_dot(&self) -> String {
        let schema = self.schema();
        let mut out = String::from("digraph {\n  node [shape=ellipse, style=filled];\n");
        let mut line = |text: std::fmt::Arguments<'_>| {
            // A `String` takes every text.
            let _ = writeln!(out, "  {text}");
        };
        let many_ntypes = schema.ntypes().len() > 1;
        for (t, (ntype, frame)) in schema.ntypes().iter().zip(self.node_frames()).enumerate() {
            let color = COLORS[t % COLORS.len()];
            for v in 0..frame.len() {
                let id = frame
                    .ids()
                    .and_then(|ids| ids.id(v as u32))
                    .map_or_else(|| v.to_string(), |id| id.to_string());
                let label = if many_ntypes { format!("{ntype} {id}") } else { id };
                line(format_args!("n{t}_{v} [label={}, fillcolor=\"{color}\"];", quoted(&label)));
            }
        }
        for (t, (etype, relation)) in schema.etypes().iter().zip(self.relations()).enumerate() {
            let (s, d) = schema.endpoints(t);
            let label = if schema.etypes().len() > 1 {
                format!(" [label={}]", quoted(&etype.relation))
            } else {
                String::new()
            };
            for (u, v) in relation.src().iter().zip(relation.dst()) {
                line(format_args!("n{s}_{u} -> n{d}_{v}{label};"));
            }
        }
        out.push_str("}\n");
        out
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
    use crate::{Graph, Ids, NodeIds};

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
