//! `Display` of graphs: types, counts, columns and memory in a few lines.

use std::fmt;

use burn_gnn_structure::internal::{count_noun, noun, readable_bytes};

use crate::features::column::Column;
use crate::features::frame::Frame;
use crate::graph::Graph;

/// Largest number of types that `Display` lists.
const SHOWN: usize = 24;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.schema();
        let [nodes, ntypes, edges, etypes] = [
            (self.total_nodes(), "node"),
            (s.ntypes().len(), "type"),
            (self.total_edges(), "edge"),
            (s.etypes().len(), "type"),
        ]
        .map(|(n, what)| count_noun(n, what));
        writeln!(f, "Graph: {nodes} of {ntypes}, {edges} of {etypes}")?;
        let etypes: Vec<String> = s.etypes().iter().map(ToString::to_string).collect();
        let lengths = s.ntypes().iter().chain(etypes.iter().take(SHOWN)).map(String::len);
        let width = lengths.max().unwrap_or(0);
        for (what, names, frames) in
            [("node", s.ntypes(), self.node_frames()), ("edge", &etypes[..], self.edge_frames())]
        {
            for (name, frame) in names.iter().zip(frames).take(SHOWN) {
                let columns = frame.columns();
                let columns =
                    columns.map(|(n, c)| format!("  {n}{:?}{}", c.shape().as_slice(), names_of(c)));
                let (count, columns) = (frame.len(), columns.collect::<String>());
                let row = format!("{count:>10} {:<5}{columns}", noun(count, what));
                writeln!(f, "  {name:<width$}  {}", row.trim_end())?;
            }
            if names.len() > SHOWN {
                writeln!(f, "  … and {} more {what} types", names.len() - SHOWN)?;
            }
        }
        let (edges, derived) = (8 * self.total_edges(), self.derived_bytes());
        let features =
            self.node_frames().iter().chain(self.edge_frames()).map(Frame::column_bytes).sum();
        let [edges, features, derived] =
            [edges, features, derived.host + derived.device].map(readable_bytes);
        writeln!(
            f,
            "  memory: edges {edges}, features {features}, derived {derived}; `stats()` counts degrees, loops and isolated nodes"
        )
    }
}

/// Formats the names of the entries of a row.
fn names_of(column: &Column) -> String {
    const MOST: usize = 8;
    let Some(names) = column.names() else { return String::new() };
    let more = if names.len() > MOST { ", …" } else { "" };
    format!(" ({}{more})", names[..names.len().min(MOST)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_a_table() {
        let text = Graph::builder()
            .nodes("paper", 4)
            .edges(("paper", "cites", "paper"), vec![0], vec![1])
            .build()
            .unwrap()
            .to_string();
        assert!(text.starts_with("Graph: 4 nodes of 1 type, 1 edge of 1 type"), "{text}");
        assert!(
            text.lines().any(|l| l.contains("paper:cites:paper") && l.ends_with("1 edge")),
            "{text}"
        );
        assert!(
            text.lines()
                .last()
                .unwrap()
                .starts_with("  memory: edges 8 B, features 0 B, derived 0 B;"),
            "{text}"
        );
        let many = (0..40).fold(Graph::builder().nodes("a", 1), |b, i| {
            b.edges(("a", format!("r{i}"), "a"), vec![], vec![])
        });
        assert!(many.build().unwrap().to_string().contains("… and 16 more edge types"));
    }
}
